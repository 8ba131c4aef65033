package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
)

// arrange separates the arguments of a command into flags, each as --name=value, and the rest. Unlike cli,
// it accepts flags before and after arguments; everything after -- is an argument. help is flagHelp or
// flagHelpAll if one of them is given.
func arrange(cmd *cli.Command, args []string) (flags, rest []string, help string, err error) {
	known := map[string]cli.Flag{}
	for _, f := range cmd.Flags {
		for _, name := range f.Names() {
			known[name] = f
		}
	}
	seen := map[string]bool{}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return flags, append(rest, args[i+1:]...), help, nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		switch name {
		case "h", flagHelp, flagHelpAll:
			help = cmp.Or(help, name)
			continue
		}
		if arg == "-vv" {
			name, value, hasValue = flagVerbose, "2", true
		}
		f, ok := known[name]
		if !ok {
			return nil, nil, help, fmt.Errorf("there is no flag %s%s", dashed(name), nearestFlag(cmd, known, name))
		}
		name = f.Names()[0]
		if seen[name] && !repeats(f) {
			return nil, nil, help, fmt.Errorf("%s is given twice; give it once", dashed(name))
		}
		seen[name] = true
		switch {
		case hasValue:
		case bareValue(f) != "":
			value = bareValue(f)
		default:
			if i++; i == len(args) {
				return nil, nil, help, fmt.Errorf("%s needs a value", dashed(name))
			}
			value = args[i]
			next, _, _ := strings.Cut(strings.TrimLeft(value, "-"), "=")
			if _, isFlag := known[next]; isFlag && strings.HasPrefix(value, "--") {
				return nil, nil, help, fmt.Errorf("%s needs a value, and %s is a flag; write %s=VALUE if it is meant as the value",
					dashed(name), value, dashed(name))
			}
		}
		flags = append(flags, "--"+name+"="+value)
		if _, two := f.(pair); two {
			if i++; i == len(args) {
				return nil, nil, help, fmt.Errorf("%s needs two values", dashed(name))
			}
			flags = append(flags, "--"+name+"="+args[i])
		}
	}
	return flags, rest, help, nil
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// bareValue returns the value of a flag that is given without one; "" = it needs one.
func bareValue(f cli.Flag) string {
	switch f := f.(type) {
	case valueOptional:
		return f.bare
	case *cli.BoolFlag:
		return "true"
	}
	return ""
}

func repeats(f cli.Flag) bool {
	_, ok := f.(repeatable)
	return ok
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func nearestFlag(cmd *cli.Command, known map[string]cli.Flag, name string) string {
	var names []string
	for f := range known {
		names = append(names, dashed(f))
	}
	slices.Sort(names)
	hint := diag.DidYouMean(dashed(name), names)
	if meant := flagSynonyms[name]; known[meant] != nil {
		hint = "; its job is done by " + dashed(meant)
	}
	return fmt.Sprintf("%s (macrostep %s --help-all lists them)", hint, cmd.Name)
}

// tellOld prints a line about a flag that the next release will not have.
func (p *program) tellOld(name string) {
	hint := oldFlags[name]
	if e := simulate.Find(name); e != nil {
		hint = e.Hint
	}
	if hint != "" {
		fmt.Fprintf(p.stderr, "macrostep: --%s goes with the next release; in its place there is %s\n", name, hint)
	}
}

// oldFlags are flags of the program that go with the next release, and what is in their place.
var oldFlags = map[string]string{flagMetrics: "--live, which serves /metrics", flagLogLevel: "-v or -vv", flagLogCalls: "--debug calls=FILE",
	flagFormat: "--json or --sarif", flagRuns: "--budget", flagAt: "nothing: the whole run is analysed"}

// Flags of analyze that go.
const flagRuns, flagAt = "runs", "at"

// flagSynonyms are words that other tools use for our flags.
var flagSynonyms = map[string]string{
	"map": "match", "preset": flagAlgorithm, "method": flagAlgorithm, "solver": flagAlgorithm, "master": flagAlgorithm,
	"dt": "step-size", "end-time": "stop-time", "threads": flagWorkers, "results": flagOutput,
	"parameter": flagSet, "interval": "output-interval", "variables": "record",
}
