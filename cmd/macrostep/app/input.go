package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// Flags that several commands have.

func stringFlag(name, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Usage: usage}
}

func boolFlag(name, usage string) *cli.BoolFlag { return &cli.BoolFlag{Name: name, Usage: usage} }

func listFlag(name, usage string) cli.Flag {
	return repeatable{&cli.StringSliceFlag{Name: name, Usage: usage + "; repeatable", KeepSpace: true}}
}

func jsonFlag() cli.Flag { return boolFlag("json", "print JSON") }

func forceFlag() cli.Flag { return boolFlag(flagForce, "replace existing files") }

func selectFlag(does string) cli.Flag {
	return listFlag(flagSelect, does+" only the variables that match `GLOB` (* and ? only)")
}

func timeColumnFlag() cli.Flag {
	return stringFlag("time-column", "the column `NAME` is the time (default: time or t)")
}

func outputFlag(usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: flagOutput, Aliases: []string{"o"}, Usage: usage}
}

// inCategory puts flags under a title in the help.
func inCategory(title string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.StringFlag:
			f.Category = title
		case *cli.BoolFlag:
			f.Category = title
		case *cli.IntFlag:
			f.Category = title
		case repeatable:
			f.Category = title
		case valueOptional:
			f.Category = title
		}
	}
	return flags
}

// settingFlags returns the flags of settings of a run; without names, of all.
func settingFlags(names ...string) (list []cli.Flag) {
	for _, e := range simulate.Settings {
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		s := cli.StringSliceFlag{Name: e.Name, Usage: e.Doc, Category: e.Category, Hidden: e.Hint != "", KeepSpace: true}
		one := cli.StringFlag{Name: e.Name, Usage: e.Doc, Category: e.Category, Hidden: e.Hint != ""}
		if e.Name == flagOutput {
			one.Aliases = []string{"o"}
		}
		if e.Default != "" {
			one.Usage += " (default: " + e.Default + ")"
			s.Usage = one.Usage
		}
		switch {
		case e.Value() == "":
			list = append(list, &cli.BoolFlag{Name: e.Name, Usage: e.Doc, Category: e.Category, Hidden: e.Hint != ""})
		case strings.Contains(e.Value(), " "):
			list = append(list, pair{&s})
		case e.Repeats:
			list = append(list, repeatable{&s})
		case e.Bare != "":
			list = append(list, valueOptional{&one, e.Bare})
		default:
			list = append(list, &one)
		}
	}
	return list
}

// settings applies the settings that are given as flags.
func (in *input) settings(r *simulate.Request) {
	for _, f := range in.Command.Flags {
		name := f.Names()[0]
		if simulate.Find(name) == nil || !in.IsSet(name) {
			continue
		}
		var texts []string
		switch f.(type) {
		case *cli.BoolFlag:
			texts = []string{strconv.FormatBool(in.Bool(name))}
		case pair:
			texts = []string{strings.Join(in.StringSlice(name), " ")}
		case repeatable:
			texts = in.StringSlice(name)
		default:
			if text := in.String(name); text != "" { // newInput has reported it
				texts = []string{text}
			}
		}
		for _, text := range texts {
			in.add(r.Apply(name, text, "--"+name))
		}
	}
}

// input reads the flags and arguments of a command and collects errors, so that the user sees all of them
// together.
type input struct {
	*cli.Context
	errs []error
}

// newInput returns an input with an error for each empty value.
func newInput(c *cli.Context) *input {
	in := &input{Context: c}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		switch f.(type) {
		case *cli.StringFlag, valueOptional:
			if c.IsSet(name) && c.String(name) == "" {
				in.fail(name, errors.New("the value is empty"))
			}
		}
	}
	return in
}

// fail collects an error about a flag; err may be nil.
func (in *input) fail(flag string, err error) {
	if err != nil {
		in.errs = append(in.errs, fmt.Errorf("--%s: %w", flag, err))
	}
}

// add collects an error; err may be nil.
func (in *input) add(err error) { in.errs = append(in.errs, err) }

// err returns all errors as a usage error, or nil.
func (in *input) err() error {
	if err := errors.Join(in.errs...); err != nil {
		return &usageError{in.Command.Name, err}
	}
	return nil
}

// bound reads a number with a condition.
type bound = func(text string) (float64, error)

var (
	positive     = simulate.Positive(simulate.ParseNumber)
	notNegative  = simulate.NotNegative(simulate.ParseNumber)
	positiveTime = simulate.Positive(simulate.ParseTime)
)

// float returns the value or default of a flag; 0 if there is neither.
func (in *input) float(name string, b bound) float64 {
	if in.String(name) == "" {
		return 0
	}
	v, err := b(in.String(name))
	in.fail(name, err)
	return v
}

// number returns the value of a flag; nil if it is not given or wrong.
func (in *input) number(name string, b bound) *simulate.Setting {
	if !in.IsSet(name) {
		return nil
	}
	failed := len(in.errs)
	v := in.float(name, b)
	if len(in.errs) > failed {
		return nil
	}
	return &simulate.Setting{Value: v, Source: "--" + name}
}

// oneOf returns the index of the value of a flag among the possible ones.
func (in *input) oneOf(name string, values []string) int {
	i := slices.Index(values, in.String(name))
	if i < 0 {
		in.fail(name, fmt.Errorf("%q is not one of %s%s", in.String(name), strings.Join(values, ", "), diag.DidYouMean(in.String(name), values)))
	}
	return max(i, 0)
}

// globs returns the selection of a flag.
func (in *input) globs(name string) record.Selection {
	s, err := record.ParseSelection(in.StringSlice(name))
	in.fail(name, err)
	return s
}

// assignments reads the NAME=VALUE of a flag; each name may occur once.
func (in *input) assignments(name string) []assemble.Assignment {
	list, errs := assignments(in.StringSlice(name), "NAME=VALUE")
	for _, err := range errs {
		in.fail(name, err)
	}
	return list
}

// assignments reads texts of a form like NAME=VALUE; each name may occur once.
func assignments(texts []string, form string) (list []assemble.Assignment, errs []error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		switch name = strings.TrimSpace(name); {
		case !ok || name == "":
			errs = append(errs, fmt.Errorf("%q is not %s", text, form))
		case slices.ContainsFunc(list, func(a assemble.Assignment) bool { return a.Name == name }):
			errs = append(errs, fmt.Errorf("%s is given twice", name))
		default:
			list = append(list, assemble.Assignment{Name: name, Value: value})
		}
	}
	return list, errs
}

// each reads the values of a list flag one by one.
func each[T any](in *input, name string, read func(text string) (T, error)) (list []T) {
	for _, text := range in.StringSlice(name) {
		v, err := read(text)
		in.fail(name, err)
		list = append(list, v)
	}
	return list
}
