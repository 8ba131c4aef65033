package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/validate"
)

const (
	flagDisable = "disable"
	flagFormat  = "format"
)

const validateHelp = `Judges files by the rules of FMI 2.0 and SSP, and systems by what couplings go wrong
with: an .fmu or its folder, a modelDescription.xml, an .ssp, its folder or an .ssd,
an .ssv, .ssm or .ssb by itself, an OspSystemStructure.xml.

Each rule has an id that stays: FA for archives and libraries, MD for model
descriptions, SD for SSP and OSP documents, CC for the coupling, DY for trials. Errors
stop macrostep run as well. Warnings do not; those that break the letter of a standard
are errors with --strict, here and there. Notes are worth knowing.

Nothing of an FMU is executed, unless --dynamic is given: then each FMU is loaded,
initialised with its own start values, stepped, taken back, reset and run again, all in
processes of its own; one that does not come back from a call for a minute is ended. What
is measured is kept in the cache folder by the hash of the FMU, and runs use it.

Exit codes: 0 no errors; 1 errors found; 2 a file cannot be looked at, or wrong usage.

Examples:
   macrostep validate system.ssp
   macrostep validate model.fmu --dynamic
   macrostep validate resources/*.fmu --strict --disable FA12
   macrostep validate --list
   macrostep validate --explain MD17
   macrostep validate system.ssp --format json | jq '.files[].findings[].id'
   macrostep validate system.ssp --format sarif > findings.sarif`

// formats are the forms of the report.
var formats = []choice{{"text", "for people, with the lines of the documents"}, {"json", "for programs"}, {"sarif", "SARIF 2.1.0, for code hosts and editors"}}

// errFindings ends the program with exit code 1 and says nothing more.
var errFindings = &runError{errors.New("")}

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "judge FMUs, SSPs and their documents", ArgsUsage: "FILE…",
		UsageText: "macrostep validate FILE… [FLAGS]\nmacrostep validate --list | --explain ID", Description: validateHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "take deviations from the standards as errors"},
			repeatable{&cli.StringSliceFlag{Name: flagDisable, Usage: "leave out what the rule `ID` finds; repeatable", KeepSpace: true}},
			&cli.BoolFlag{Name: "dynamic", Usage: "try each FMU, in processes of its own"},
			&cli.BoolFlag{Name: "compile", Usage: "with --dynamic: compile the C sources of FMUs that have no library for this platform"},
			&cli.StringFlag{Name: "step-size", Usage: "step of the trials, `H` seconds (default: of the FMU)"},
			&cli.StringFlag{Name: flagAlgorithm, Usage: "judge systems for the coupling algorithm `PRESET` (default: that of the system)"},
			repeatable{&cli.StringSliceFlag{Name: flagParam, Usage: "parameter of the algorithm, `KEY=VALUE`; repeatable", KeepSpace: true}},
			&cli.StringFlag{Name: flagFormat, Usage: "print the findings as `FORM`: text, json or sarif", Value: "text"},
			&cli.BoolFlag{Name: "list", Usage: "list all rules"},
			&cli.StringFlag{Name: flagExplain, Usage: "tell what the rule `ID` asks for, and what to do"},
		},
		Action: func(c *cli.Context) error {
			if c.Bool("dynamic") {
				return p.supervised(p.validate)(c)
			}
			return p.validate(c)
		},
	}
}

// validateRequest is what macrostep validate asks of the engine.
type validateRequest struct {
	Strict, Dynamic bool
	Compile         bool
	Disable         []string
	Step            float64 // of trials, s; 0 = of the FMU
	Algorithm       string  // "" = of the documents, else the default
	Params          map[string]string
}

func (p *program) validate(c *cli.Context) error {
	format := c.String(flagFormat)
	if !slices.ContainsFunc(formats, func(f choice) bool { return f.word == format }) {
		return &usageError{c.Command.Name, fmt.Errorf("--%s: %q is none of text, json and sarif", flagFormat, format)}
	}
	if c.Bool("list") || c.IsSet(flagExplain) {
		return p.tellRules(c, format)
	}
	if c.NArg() == 0 {
		return &usageError{c.Command.Name, errors.New("FILE (an .fmu, an .ssp, a folder or a document) is missing; to see the rules: macrostep validate --list")}
	}
	r := validateRequest{Strict: c.Bool("strict"), Dynamic: c.Bool("dynamic"), Compile: c.Bool("compile"), Disable: c.StringSlice(flagDisable), Algorithm: c.String(flagAlgorithm), Params: map[string]string{}}
	var errs []error
	for _, id := range r.Disable {
		if _, known := validate.Find(id); !known {
			errs = append(errs, unknownRule("--"+flagDisable, id))
		}
	}
	params, err := assignments(flagParam, c.StringSlice(flagParam))
	errs = append(errs, err)
	for _, a := range params {
		r.Params[a.Name] = a.Value
	}
	if r.Algorithm != "" && err == nil {
		_, err := p.presets.New(r.Algorithm, r.Params)
		errs = append(errs, err)
	}
	if c.IsSet("step-size") {
		r.Step, err = strconv.ParseFloat(strings.TrimSpace(c.String("step-size")), 64)
		if err != nil || !(r.Step > 0) || math.IsInf(r.Step, 0) {
			errs = append(errs, fmt.Errorf("--step-size: %q is not a finite number above 0", c.String("step-size")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &usageError{c.Command.Name, err}
	}
	var reports []*validate.Report
	var failed error
	for _, path := range c.Args().Slice() {
		report, err := p.backend.Validate(c.Context, path, r)
		if cause := context.Cause(c.Context); cause != nil {
			return &runError{cause}
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		reports = append(reports, report)
	}
	switch format {
	case "json":
		err = writeValidationJSON(p.data(), reports)
	case "sarif":
		err = writeSARIF(p.data(), reports)
	default:
		if len(reports) > 0 {
			writeValidation(p.stdout, reports)
		}
	}
	switch {
	case err != nil || failed != nil:
		return errors.Join(failed, err)
	case slices.ContainsFunc(reports, func(r *validate.Report) bool { return r.Count(diag.Error) > 0 }):
		return errFindings
	}
	return nil
}

func unknownRule(flag, id string) error {
	var ids []string
	for _, r := range validate.Rules() {
		ids = append(ids, r.ID)
	}
	return fmt.Errorf("%s: there is no rule %q%s; macrostep validate --list shows all", flag, id, diag.DidYouMean(strings.ToUpper(id), ids))
}

// ruleInfo is the JSON of a rule.
type ruleInfo struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	Strict string `json:"strict"` // level with --strict
	Doc    string `json:"doc"`
	Remedy string `json:"remedy"`
	Ref    string `json:"reference"`
}

func newRuleInfo(r *diag.Rule) ruleInfo {
	strict := r.Level
	if r.Strict {
		strict = diag.Error
	}
	return ruleInfo{r.ID, r.Level.String(), strict.String(), r.Doc, r.Remedy, r.Ref}
}

// tellRules lists the rules, or explains one.
func (p *program) tellRules(c *cli.Context, format string) error {
	if c.NArg() > 0 {
		return &usageError{c.Command.Name, fmt.Errorf("%q is too much; --list and --%s look at no file", c.Args().First(), flagExplain)}
	}
	if format == "sarif" {
		return &usageError{c.Command.Name, errors.New("rules are told as text or json; SARIF is for findings")}
	}
	rules := validate.Rules()
	if id := c.String(flagExplain); c.IsSet(flagExplain) {
		r, known := validate.Find(id)
		if !known {
			for k, text := range validate.Elsewhere() {
				if strings.EqualFold(k, id) {
					fmt.Fprintf(p.stdout, "%s has no rule of its own.\n\n%s\n", k, fold(text, 0))
					return nil
				}
			}
			return &usageError{c.Command.Name, unknownRule("--"+flagExplain, id)}
		}
		if format == "json" {
			return writeJSON(p.data(), newRuleInfo(r))
		}
		explainRule(p.stdout, r)
		return nil
	}
	if format == "json" {
		var all []ruleInfo
		for _, r := range rules {
			all = append(all, newRuleInfo(r))
		}
		return writeJSON(p.data(), all)
	}
	for n, s := range validate.Sections() {
		if n > 0 {
			fmt.Fprintln(p.stdout)
		}
		fmt.Fprintf(p.stdout, "%s  %s\n", s.Prefix, s.Title)
		var rows [][]string
		for _, r := range rules {
			if strings.HasPrefix(r.ID, s.Prefix) {
				rows = append(rows, []string{"  " + r.ID, levelText(r), firstSentence(r.Doc)})
			}
		}
		table(p.stdout, rows)
	}
	fmt.Fprintf(p.stdout, "\n%s; * = an error with --strict. More of one: macrostep validate --%s ID\n", plural(len(rules), "rule"), flagExplain)
	return nil
}

func levelText(r *diag.Rule) string {
	if r.Strict && r.Level != diag.Error {
		return levelWord(r.Level) + "*"
	}
	return levelWord(r.Level)
}

// levelWord is what people read: what is only worth knowing is a note.
func levelWord(l diag.Level) string {
	if l == diag.Info {
		return "note"
	}
	return l.String()
}

// firstSentence returns the requirement without what follows from it.
func firstSentence(doc string) string {
	for i := 0; i+2 < len(doc); i++ {
		if doc[i] == '.' && doc[i+1] == ' ' && doc[i+2] >= 'A' && doc[i+2] <= 'Z' {
			return doc[:i+1]
		}
	}
	return doc
}

func explainRule(w io.Writer, r *diag.Rule) {
	level := levelWord(r.Level)
	if r.Strict && r.Level != diag.Error {
		level += ", an error with --strict"
	}
	fmt.Fprintf(w, "%s (%s)\n\n%s\n", r.ID, level, fold(r.Doc, 0))
	if r.Remedy != "" {
		fmt.Fprintf(w, "\nRemedy: %s\n", strings.TrimLeft(fold(r.Remedy, 8), " "))
	}
	fmt.Fprintf(w, "\nSource: %s\n", r.Ref)
}
