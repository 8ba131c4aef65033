package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
)

const (
	flagDisable = "disable"
	flagSARIF   = "sarif"
	flagFormat  = "format"
)

const validateHelp = `Checks FMUs, systems, their documents and scenarios against the rules of FMI 2.0 and
SSP, and systems for common coupling faults. Only --dynamic executes code of FMUs,
in separate processes. Exit codes: 0 no errors; 1 errors found; 2 a file cannot be
read, or wrong usage. More: macrostep help checking

Examples:
   macrostep validate system.ssp
   macrostep validate model.fmu --dynamic
   macrostep validate --explain MD17`

// errFindings ends the program with exit code 1 and prints nothing more.
var errFindings = &runError{errors.New("")}

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check FMUs, SSPs, their documents, and scenarios", ArgsUsage: "FILE…",
		UsageText: "macrostep validate FILE… [FLAGS]\nmacrostep validate SCENARIO.yaml [SYSTEM]\nmacrostep validate --list | --explain ID", Description: validateHelp,
		Flags: append([]cli.Flag{
			boolFlag("strict", "treat deviations from the standards as errors"),
			listFlag(flagDisable, "leave out the findings of the rule `ID`"),
			boolFlag("dynamic", "try each FMU, in separate processes"),
			boolFlag("compile", "with --dynamic: compile the C sources of FMUs that have no library for this platform"),
			stringFlag("step-size", "with --dynamic: steps of `H` seconds (default: that of the FMU)"),
			jsonFlag(),
			boolFlag(flagSARIF, "print the findings as SARIF 2.1.0, for code hosts and editors"),
			&cli.StringFlag{Name: flagFormat, Hidden: true, Usage: "`FORM`", Value: "text"},
			boolFlag("list", "list all rules"),
			stringFlag(flagExplain, "explain the rule `ID`, and what to do about its findings"),
		}, settingFlags(flagAlgorithm, flagParam, flagOn, flagHostTimeout)...),
		Action: func(c *cli.Context) error {
			if c.Bool("dynamic") {
				return p.supervised(p.validate)(c)
			}
			return p.validate(c)
		},
	}
}

// trialTimeout is the longest time of a call into an FMU during a trial.
const trialTimeout = time.Minute

func (p *program) validate(c *cli.Context) error {
	in := newInput(c)
	words := []string{"text", "json", flagSARIF}
	format := words[in.oneOf(flagFormat, words)]
	switch {
	case c.Bool("json") && c.Bool(flagSARIF):
		in.fail(flagSARIF, errors.New("--json prints in another form"))
	case c.Bool("json"):
		format = "json"
	case c.Bool(flagSARIF):
		format = flagSARIF
	}
	if err := in.err(); err != nil {
		return err
	}
	if c.Bool("list") || c.IsSet(flagExplain) {
		return p.showRules(c, format)
	}
	if c.NArg() == 0 {
		in.add(errors.New("FILE (an .fmu, an .ssp, a folder or a document) is missing; to see the rules: macrostep validate --list"))
		return in.err()
	}
	if slices.ContainsFunc(c.Args().Slice(), isScenario) {
		return p.validateScenario(c, format)
	}
	var request simulate.Request
	in.settings(&request)
	o := validate.Options{
		Strict: c.Bool("strict"), Disable: c.StringSlice(flagDisable), Dynamic: c.Bool("dynamic"), Compile: c.Bool("compile"),
		StepTimeout: trialTimeout, Cache: fmuslave.CacheDir(),
		Launcher: &worker.Launcher{Timeout: trialTimeout}, Assemble: simulate.Reading(c.Context),
	}
	if request.Step != nil {
		o.Step = request.Step.Value
	}
	for _, id := range o.Disable {
		if _, known := validate.Find(id); !known {
			in.fail(flagDisable, unknownRule(id))
		}
	}
	if in.IsSet(flagOn) && len(request.On) > 0 { // else settings has reported an error
		if len(request.On) != 1 || request.On[0].Pattern != "*" || !o.Dynamic {
			in.fail(flagOn, errors.New("give one host, for the trials of --dynamic"))
		} else {
			client, err := request.Client(request.On[0].Host)
			if err != nil {
				return err
			}
			defer client.Close()
			o.Launcher = client.Launcher(host.Place{Apart: true, Limits: &worker.Launcher{Timeout: trialTimeout}})
		}
	}
	if request.Algorithm != "" && in.err() == nil {
		_, err := p.presets.New(request.Algorithm, request.Params)
		in.add(err)
	}
	if err := in.err(); err != nil {
		return err
	}
	restore, err := silence(p.out) // of what FMUs print
	if err != nil {
		return &runError{err}
	}
	reports, failed := p.validateFiles(c, o, request)
	if err := restore(); err != nil {
		return &runError{err}
	}
	if cause := context.Cause(c.Context); cause != nil {
		return &runError{cause}
	}
	switch {
	case format == "json":
		err = writeValidationJSON(p.data(), reports)
	case format == flagSARIF:
		err = writeSARIF(p.data(), reports)
	case len(reports) > 0:
		writeValidation(p.stdout, reports)
	}
	switch {
	case err != nil || failed != nil:
		return errors.Join(failed, err)
	case slices.ContainsFunc(reports, func(r *validate.Report) bool { return r.Count(diag.Error) > 0 }):
		return errFindings
	}
	return nil
}

// validateFiles checks all files, until the context ends. The error is about files that cannot be read.
func (p *program) validateFiles(c *cli.Context, o validate.Options, request simulate.Request) (reports []*validate.Report, failed error) {
	o.Assemble.Dialects = p.dialects
	for _, path := range c.Args().Slice() {
		request.System = path
		o.Strategy = func(a *assemble.Assembly) assemble.Strategy { return simulate.StrategyOf(p.presets, a, &request) }
		report, err := validate.File(c.Context, path, o)
		switch {
		case c.Context.Err() != nil:
			return reports, failed
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			reports = append(reports, report)
		}
	}
	return reports, failed
}

func unknownRule(id string) error {
	var ids []string
	for _, r := range validate.Rules() {
		ids = append(ids, r.ID)
	}
	return fmt.Errorf("there is no rule %q%s", id, cmp.Or(diag.DidYouMean(strings.ToUpper(id), ids), "; macrostep validate --list shows all"))
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

// showRules lists the rules, or explains one.
func (p *program) showRules(c *cli.Context, format string) error {
	if c.NArg() > 0 {
		return &usageError{c.Command.Name, fmt.Errorf("%q is one argument too many; --list and --%s take no file",
			c.Args().First(), flagExplain)}
	}
	if format == flagSARIF {
		return &usageError{c.Command.Name, errors.New("--sarif is for findings; rules are printed as text, or with --json")}
	}
	if c.IsSet(flagExplain) {
		return p.showRule(c.String(flagExplain), format)
	}
	rules := validate.Rules()
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
	fmt.Fprintf(p.stdout, "\n%s; * = an error with --strict. More of one: macrostep validate --%s ID\n",
		plural(len(rules), "rule"), flagExplain)
	return nil
}

// showRule explains a rule, or an ID that belongs to no rule of its own.
func (p *program) showRule(id, format string) error {
	r, known := validate.Find(id)
	switch {
	case known && format == "json":
		return writeJSON(p.data(), newRuleInfo(r))
	case known:
		explainRule(p.stdout, r)
		return nil
	}
	for k, text := range validate.Elsewhere() {
		if strings.EqualFold(k, id) {
			fmt.Fprintf(p.stdout, "%s has no rule of its own.\n\n%s\n", k, fold(text, 0))
			return nil
		}
	}
	return &usageError{"validate", fmt.Errorf("--%s: %w", flagExplain, unknownRule(id))}
}

func levelText(r *diag.Rule) string {
	if r.Strict && r.Level != diag.Error {
		return levelWord(r.Level) + "*"
	}
	return levelWord(r.Level)
}

// levelWord returns the level for people: info is a note.
func levelWord(l diag.Level) string {
	if l == diag.Info {
		return "note"
	}
	return l.String()
}

// firstSentence returns the first sentence, which is the requirement.
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
	if r.Inert {
		level += "; in a run a note, with --strict too, as it changes no result"
	}
	fmt.Fprintf(w, "%s (%s)\n\n%s\n", r.ID, level, fold(r.Doc, 0))
	if r.Remedy != "" {
		fmt.Fprintf(w, "\nRemedy: %s\n", strings.TrimLeft(fold(r.Remedy, 8), " "))
	}
	fmt.Fprintf(w, "\nSource: %s\n", r.Ref)
}
