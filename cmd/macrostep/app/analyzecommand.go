package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/workdir"
)

const analyzeHelp = `Predicts whether a coupling is stable, with which margin and error, and which
algorithm and step are better, from linear models of the components at an
operating point. The verdict is on the algorithm, order and step of the system, or
those of the flags; a better setting follows with its command. More: macrostep
help checking

Examples:
   macrostep analyze system.ssp
   macrostep analyze system.ssp --algorithm gauss-seidel --param order=1
   macrostep analyze system.ssp --at 0.5 --error 1e-4 --plot pictures`

// waits returns the time between lines of progress.
func waits(con *console) time.Duration {
	if _, ok := con.terminal(); !ok {
		return lineEvery
	}
	return quietFor
}

// mostRuns is the largest value of --runs in s.
const mostRuns = 86400

func (p *program) analyzeCommand() *cli.Command {
	return &cli.Command{
		Name: "analyze", Usage: "predict whether a coupling will be stable, and with which step", ArgsUsage: "SYSTEM",
		UsageText: "macrostep analyze SYSTEM [--algorithm PRESET] [--step-size H] [--at T] [--all]", Description: analyzeHelp,
		Flags: slices.Concat(settingFlags(analyzed...), []cli.Flag{
			&cli.StringFlag{Name: "error", Usage: "largest acceptable error `E`, relative to the standard deviation of an output",
				Value: fmt.Sprint(simulate.DefaultError)},
			stringFlag("at", "operating point: time `T` in seconds, reached by explicit coupling at the macro step (default: the start)"),
			stringFlag("from", "smallest step tried, `H` in seconds (default: 1/30 of the macro step)"),
			stringFlag("to", "largest step tried, `H` in seconds (default: 30 times the macro step)"),
			&cli.IntFlag{Name: "order", Usage: "highest extrapolation order `K` compared", Value: 2},
			withValue("20", stringFlag("runs", "time for runs of the system itself where models are missing, `SECONDS`; 0: none")),
			boolFlag("all", "print all algorithms, modes and reasons"), jsonFlag(),
			stringFlag("plot", "write pictures (SVG) into the folder `DIR`: the spectral radius over the step, the system with its loops"),
			forceFlag(), debugFlag([]debugKey{profileKey}),
		}),
		Action: p.supervised(p.analyze),
	}
}

// analysis holds the settings of an analysis from the command line.
type analysis struct {
	analyze.Options
	open    simulate.OpenOptions // with the algorithm to judge
	at      *simulate.Setting
	seconds float64 // for runs of the system itself
	debug   debugging
}

func parseAnalysis(c *cli.Context) (*analysis, error) {
	in := newInput(c)
	a := &analysis{
		open: simulate.OpenOptions{Logger: slog.New(slog.DiscardHandler)},
		Options: analyze.Options{From: in.float("from", positiveTime), To: in.float("to", positiveTime), Order: c.Int("order"),
			Error: in.float("error", positive)},
		at: in.number("at", simulate.ParseTime), seconds: in.float("runs", notNegativeTime), debug: readDebug(in, []debugKey{profileKey}),
	}
	a.open.Dial = dial
	in.settings(&a.open.Request)
	a.open.Copy, a.open.Sandboxed, a.Rates = &workdir.Copy{}, true, a.open.Rates
	if a.seconds > mostRuns {
		in.fail("runs", fmt.Errorf("%g is more than %d seconds", a.seconds, mostRuns))
	}
	if a.Order < 0 || a.Order > simulate.HighestAnalyzed {
		in.fail("order", fmt.Errorf("%d is not between 0 and %d", a.Order, simulate.HighestAnalyzed))
	}
	if a.From > 0 && a.To > 0 && a.From >= a.To {
		in.add(fmt.Errorf("--from %g is not below --to %g", a.From, a.To))
	}
	return a, in.err()
}

// of adds the settings of the system.
func (a *analysis) of(sys *simulate.System) error {
	a.Start, a.At, a.Step, a.Stop = sys.Start.Value, sys.Start.Value, sys.Step.Value, sys.Stop.Value
	a.Bonds, a.Rates = sys.Bonds, simulate.RatesWith(a.Rates, sys.Rates)
	if a.at != nil {
		a.At = a.at.Value
	}
	if sys.Tolerance != nil {
		a.Tolerance = sys.Tolerance.Value
	}
	if err := analyze.CheckRates(sys.System, a.Rates); err != nil {
		return err
	}
	if sys.BondsSeen != nil {
		a.BondsSeen = sys.BondsSeen()
	}
	if a.At < a.Start {
		return &usageError{"analyze", fmt.Errorf("--at %g is before the start at %g s", a.At, a.Start)}
	}
	return nil
}

// sharedFlags are flags that a run needs too, to simulate the system that was analysed.
var sharedFlags = []string{flagSet, "start-time", "stop-time", "tolerance", "quirk", "compile", "strict"}

// ownFlags are flags that a longer analysis needs too.
var ownFlags = []string{flagAlgorithm, flagParam, flagRate, "step-size", "at", "from", "to", "order", "error"}

// analyzed are the settings of a run that an analysis has.
var analyzed = append([]string{flagAlgorithm, flagParam, flagRate, "step-size", "stateless", flagOn, flagHostTimeout, flagCredentials, flagCA}, sharedFlags...)

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
		for _, name := range []string{radiusPicture, graphPicture} {
			if err := free(filepath.Join(pictures, name)); err != nil {
				return err
			}
		}
	}
	report, err := p.analysed(c.Context, a, path)
	if err != nil {
		return err
	}
	if pictures != "" {
		if err := p.plotAnalysis(pictures, path, report); err != nil {
			return &runError{err}
		}
	}
	if c.Bool("json") {
		return writeJSON(p.data(), report)
	}
	v := &verdictPrinter{out: p.stdout, r: report, width: min(p.stdout.width(), verdictWidth), command: "macrostep run " + quote(path) + repeated(c, sharedFlags), analysed: repeated(c, ownFlags)}
	v.print()
	if c.Bool("all") {
		fmt.Fprintln(p.stdout)
		v.all()
	} else if report.Verdict.State != analyze.Uncoupled {
		fmt.Fprintln(p.stdout, "\nAll algorithms, modes and reasons: --all; the stability map: --plot DIR")
	}
	return nil
}

// analysed opens a system and analyses it. What its FMUs print is discarded: every trial run would repeat it.
func (p *program) analysed(ctx context.Context, a *analysis, path string) (report *analyze.Report, err error) {
	restore, err := silence(p.out)
	if err != nil {
		return nil, &runError{err}
	}
	defer func() { err = errors.Join(err, restore()) }()
	defer func() { err = errors.Join(err, a.open.Copy.Remove()) }()
	sys, err := p.open(ctx, path, a.open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	if err := a.of(sys); err != nil {
		return nil, err
	}
	request := a.open.Request
	request.System, request.Rates = path, a.Rates
	chosen, err := simulate.Choose(p.presets, &request, sys)
	if err != nil {
		return nil, err
	}
	a.Own = chosen.Own(p.presets)
	a.Runs = trial.Options{
		Time:  time.Duration(a.seconds * float64(time.Second)),
		Again: simulate.Runner{Open: p.open}.Again(path, a.open),
	}
	if report, err = p.runAnalysis(ctx, a, sys); err != nil {
		return nil, &runError{err}
	}
	if bare := a.open.Copy.Bare(); bare != "" {
		fmt.Fprintln(p.stderr, "warning: the FMUs were analysed in an empty folder, because they may write files in the working folder, of which no "+
			"copy can be made: "+bare+"; if they read files of it, analyse them in a smaller folder, or run the system here once")
	}
	return report, nil
}

// runAnalysis runs an analysis and shows its progress.
func (p *program) runAnalysis(ctx context.Context, a *analysis, sys *simulate.System) (report *analyze.Report, err error) {
	con := newConsole(p.stderr)
	defer con.clear()
	printed, analysed, total := time.Now(), 0, 0
	show := func(text string) {
		if time.Since(printed) > waits(con) {
			con.status(text)
			printed = time.Now()
		}
	}
	a.Runs.Observe = show
	a.Observe = func(done, all int) {
		analysed, total = done, all
		show(fmt.Sprintf("%d of %d algorithms and orders analysed", done, all))
	}
	err = profile(a.debug.Profile, func() (err error) {
		report, err = analyze.Run(ctx, sys.System, a.Options)
		return err
	})
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil:
		return report, err
	case total > 0:
		return nil, fmt.Errorf("%w with %d of %d algorithms and orders analysed: no report is written", cause, analysed, total)
	}
	return nil, fmt.Errorf("%w before the operating point was reached: no report is written", cause)
}
