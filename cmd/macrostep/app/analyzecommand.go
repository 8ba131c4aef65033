package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/simulate"
)

const analyzeHelp = `Runs the system with other algorithms and steps over the whole time. Prints the
error of the present setting (that of the system, or of the flags), its longest
usable step, and the command of a better setting, if there is one. Ctrl-C prints
what is known. More: macrostep help checking

Examples:
   macrostep analyze system.ssp
   macrostep analyze system.ssp --error 1% --budget 60
   macrostep analyze system.ssp --algorithm gauss-seidel --param order=1 --all`

// waits returns the time between lines of progress.
func waits(con *console) time.Duration {
	if _, ok := con.terminal(); !ok {
		return lineEvery
	}
	return quietFor
}

// The defaults of an analysis.
const (
	analysisBudget = 20.0 // s
	analysisOrder  = 1
)

func (p *program) analyzeCommand() *cli.Command {
	return &cli.Command{
		Name: "analyze", Usage: "measure how good a coupling is, and find a better one", ArgsUsage: "SYSTEM",
		UsageText: "macrostep analyze SYSTEM [--algorithm PRESET] [--step-size H] [--error E] [--all]", Description: analyzeHelp,
		Flags: slices.Concat(settingFlags(analyzed...), []cli.Flag{
			stringFlag("error", "recommend the cheapest setting with an error of at most `E`, such as 1% (default: that of the present setting, at most 5%)"),
			stringFlag("budget", "end after `T` seconds (default: 20)"),
			stringFlag("from", "try no steps shorter than `H` seconds (default: 1/30 of the macro step)"),
			stringFlag("to", "try no steps longer than `H` seconds (default: 30 times the macro step)"),
			&cli.IntFlag{Name: "order", Usage: "highest extrapolation order `K` of algorithms with fixed steps", Value: analysisOrder},
			boolFlag("all", "find the longest usable step of each algorithm; print all runs, and the structure of the system"), jsonFlag(),
			stringFlag("plot", "write pictures (SVG) into the folder `DIR`: the error over the step, the system with its loops"),
			forceFlag(), debugFlag([]debugKey{profileKey}),
			&cli.StringFlag{Name: flagRuns, Hidden: true, Usage: "`T`"}, &cli.StringFlag{Name: flagAt, Hidden: true, Usage: "`T`"},
		}),
		Action: p.supervised(p.analyze),
	}
}

// analysis holds the settings of an analysis from the command line.
type analysis struct {
	simulate.Search
	request simulate.Request
	debug   debugging
}

func parseAnalysis(c *cli.Context) (*analysis, error) {
	in := newInput(c)
	a := &analysis{debug: readDebug(in, []debugKey{profileKey}),
		Search: simulate.Search{Error: in.float("error", simulate.ParseLimit), From: in.float("from", positiveTime), To: in.float("to", positiveTime),
			Order: c.Int("order"), Limits: true, Kicks: true, All: c.Bool("all")}}
	in.settings(&a.request)
	budget := cmp.Or(in.float("budget", positiveTime), in.float(flagRuns, positiveTime), analysisBudget)
	a.Budget = assemble.Timeout(budget)
	if a.Order < 0 || a.Order > algorithms.MaxOrder {
		in.fail("order", fmt.Errorf("%d is not between 0 and %d", a.Order, algorithms.MaxOrder))
	}
	if a.From > 0 && a.To > 0 && a.From >= a.To {
		in.add(fmt.Errorf("--from %g is not below --to %g", a.From, a.To))
	}
	return a, in.err()
}

// sharedFlags are flags that a run needs too, to simulate the system that was analysed.
var sharedFlags = []string{flagSet, "start-time", "stop-time", "tolerance", "quirk", "compile", "strict", "input", "scenario", "isolate", "bond"}

// analyzed are the settings of a run that an analysis has.
var analyzed = append([]string{flagAlgorithm, flagParam, flagRate, "step-size", "stateless", flagOn, flagHostTimeout}, sharedFlags...)

// repeated returns flags of the command line.
func repeated(c *cli.Context, names []string) (text string) {
	for _, name := range names {
		if !c.IsSet(name) {
			continue
		}
		switch v := c.Value(name).(type) {
		case cli.StringSlice:
			for _, one := range v.Value() {
				text += " --" + name + " " + quote(one)
			}
		case bool:
			text += " --" + name
		default:
			text += fmt.Sprintf(" --%s %v", name, v)
		}
	}
	return text
}

func (p *program) analyze(c *cli.Context) error {
	if err := arguments(c, 1, 1, systemArgument); err != nil {
		return err
	}
	a, err := parseAnalysis(c)
	if err != nil {
		return err
	}
	path, pictures := c.Args().First(), c.String("plot")
	if pictures != "" && !c.Bool(flagForce) {
		for _, name := range []string{errorPicture, graphPicture} {
			if err := free(filepath.Join(pictures, name)); err != nil {
				return err
			}
		}
	}
	a.request.System = path
	report, ended := p.analysed(c.Context, a)
	if report == nil {
		return ended
	}
	if pictures != "" {
		if err := p.plotAnalysis(pictures, path, report); err != nil {
			return &runError{err}
		}
	}
	if c.Bool("json") {
		return errors.Join(writeJSON(p.data(), report), ended)
	}
	v := &analysisPrinter{out: p.stdout, r: report, width: min(p.stdout.width(), analysisWidth), command: "macrostep run " + quote(path) + repeated(c, sharedFlags)}
	v.print()
	if c.Bool("all") {
		v.all()
	} else if report.Verdict.State != analyze.Uncoupled {
		fmt.Fprintln(p.stdout, "\nAll runs, the limits of all algorithms, and the structure: --all; a picture: --plot DIR")
	}
	return ended
}

// analysed makes an analysis, and shows its progress. What FMUs print is discarded: every run would repeat it. Where it ends early, the
// report has what is known, and the error is the reason.
func (p *program) analysed(ctx context.Context, a *analysis) (report *analyze.Report, err error) {
	restore, err := silence(p.out)
	if err != nil {
		return nil, &runError{err}
	}
	defer func() { err = errors.Join(err, restore()) }()
	con := newConsole(p.stderr)
	defer con.clear()
	printed := time.Now()
	runner := simulate.Runner{Open: p.open, Presets: p.presets, Events: func(e simulate.Event) {
		if e.Kind == simulate.Doing && e.Text != "" && time.Since(printed) > waits(con) {
			con.status(e.Text)
			printed = time.Now()
		}
	}}
	err = profile(a.debug.Profile, func() (err error) {
		report, err = runner.Analyze(ctx, a.request, a.Search)
		return err
	})
	if report == nil && errors.Is(err, measure.ErrBudget) {
		err = &runError{fmt.Errorf("%w before one run has ended; more time: --budget", err)}
	}
	switch cause := context.Cause(ctx); {
	case cause != nil && report == nil:
		err = &runError{fmt.Errorf("%w before one run has ended: nothing is known", cause)}
	case cause != nil:
		err = errors.Join(err, &runError{cause})
	}
	return report, err
}
