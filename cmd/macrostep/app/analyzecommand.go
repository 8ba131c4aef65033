package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
)

const analyzeHelp = `Tells before a run whether the coupling will be stable, with which algorithm, at
which extrapolation orders and up to which macro step.

The components are initialised, and a linear model of each is taken at the
operating point (the start, or --at): by steps repeated from a saved state, the
solver of the FMU included, else from its directional derivatives. Then each
algorithm itself is run on the models over a range of step sizes. The spectral
radius is the factor by which what grows most is multiplied in every macro step;
above 1 the coupling is unstable. Stability is not monotone in the step: all
ranges are listed. What grows by less than a millionth in a step counts as stable,
as what is not damped at all has to.

From the operating point on, the coupled motion is forecast with each algorithm and
some step sizes, and compared with that at a much finer one: the error is the root
mean square over time by the standard deviation of the output, of the output where
it is largest. The error that the coupling makes in one step, from exact values, is
told in the same measure, with the power of H by which it grows. Each component is led
along the forecast motion beside its model: where they part, the errors are marked as
an order of magnitude (~), or unknown. The cheapest that keeps to --error is
recommended. Of algorithms that choose their steps it is told where these settle, at
tolerances that --error asks for, with rates too.

Components that take several steps a macro step, or one over several (--rate, or as the
system asks), are analysed as such: the radius is that of a macro step, from the growth
over a period, after which all take part. Implicit coupling is analysed without rates.

Where the models tell nothing, as of FMUs that take steps of their own, the system
itself is run: twice over, the second time with its coupled
inputs moved a little at the operating point, and the growth of the difference tells
whether the coupling is stable (--runs). Moves of different size have to agree, and
growth by less than 0.0003 in a step is not seen. Windows of stability that lie
between the steps that are looked at are missed.

What is told holds near the operating point. Where the system is not linear, look
at several.

Examples:
   macrostep analyze system.ssp
   macrostep analyze system.ssp --step-size 1e-3 --at 0.5 --order 3
   macrostep analyze system.ssp --error 1e-4
   macrostep analyze system.ssp --rate motor=10 --rate room=1/5
   macrostep analyze system.ssp --from 1e-5 --to 0.1 --json
   macrostep analyze system.ssp --plot pictures`

// defaultRuns is the time for runs, in s.
const defaultRuns = "20"

// waits returns how long the console is left alone.
func waits(con *console) time.Duration {
	if _, ok := con.terminal(); !ok {
		return lineEvery
	}
	return quietFor
}

// mostRuns is the longest time for runs that can be asked for, in s.
const mostRuns = 86400

func (p *program) analyzeCommand() *cli.Command {
	return &cli.Command{
		Name: "analyze", Usage: "tell whether a coupling will be stable, and with which step", ArgsUsage: "SYSTEM",
		UsageText: "macrostep analyze SYSTEM [--step-size H] [--at T] [--order K] [--json]", Description: analyzeHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "step-size", Usage: "macro step `H` in seconds, in the middle of the range that is looked at (default: of the system)"},
			&cli.StringFlag{Name: "start-time", Usage: "`T` in seconds (default: of the system)"},
			&cli.StringFlag{Name: "stop-time", Usage: "`T` in seconds: errors are forecast up to it, at most over 1000 macro steps (default: of the system)"},
			&cli.StringFlag{Name: "error", Usage: "largest error `E` of what is recommended, relative to the standard deviation of an output", Value: "0.01"},
			&cli.StringFlag{Name: "at", Usage: "operating point: time `T` in seconds, reached by explicit coupling at the macro step (default: the start)"},
			&cli.StringFlag{Name: "from", Usage: "smallest step that is looked at, `H` in seconds (default: 1/30 of the macro step)"},
			&cli.StringFlag{Name: "to", Usage: "largest one, `H` in seconds (default: 30 times the macro step)"},
			&cli.IntFlag{Name: "order", Usage: "highest extrapolation order `K`", Value: 2},
			&cli.StringFlag{Name: "runs", Usage: "time for runs of the system itself where its models tell nothing, `SECONDS`; 0 = none", Value: defaultRuns},
			&cli.StringFlag{Name: "tolerance", Usage: "relative tolerance told to the FMUs"},
			repeatable{&cli.StringSliceFlag{Name: "set", Usage: "parameter or start value, `COMPONENT.VARIABLE=VALUE`, also of a connector of a system; repeatable", KeepSpace: true}},
			repeatable{&cli.StringSliceFlag{Name: flagRate, Usage: "`COMPONENT=N` steps a macro step, or COMPONENT=1/N: one step over N macro steps, as in the run; repeatable", KeepSpace: true}},
			repeatable{&cli.StringSliceFlag{Name: "stateless", Usage: "`COMPONENT` whose outputs follow its inputs at once; repeatable", KeepSpace: true}},
			&cli.BoolFlag{Name: "compile", Usage: "compile the C sources of FMUs that have no library for this platform"},
			&cli.BoolFlag{Name: "strict", Usage: "take deviations from the standards as errors"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.StringFlag{Name: "plot", Usage: "write pictures (SVG) into the folder `DIR`: the spectral radius over the step, the system with its loops"},
			debugFlag([]debugKey{profileKey}, ""),
		},
		Action: p.supervised(p.analyze),
	}
}

func (p *program) analyze(c *cli.Context) (err error) {
	if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"); err != nil {
		return err
	}
	var errs []error
	number := func(name string, positive bool) *simulate.Setting {
		if !c.IsSet(name) {
			return nil
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(c.String(name)), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || positive && v <= 0 {
			errs = append(errs, fmt.Errorf("--%s: %q is not a finite number%s", name, c.String(name), map[bool]string{true: " above 0"}[positive]))
			return nil
		}
		return &simulate.Setting{Value: v, Source: "--" + name}
	}
	open := simulate.OpenOptions{Strict: c.Bool("strict"), Stateless: c.StringSlice("stateless"), Compile: c.Bool("compile"),
		Start: number("start-time", false), Stop: number("stop-time", false), Step: number("step-size", true), Tolerance: number("tolerance", true),
		Isolation: simulate.Isolation{Mode: assemble.IsolateAuto}, Logger: slog.New(slog.DiscardHandler)}
	most := &simulate.Setting{Value: simulate.DefaultError}
	if given := number("error", true); given != nil {
		most = given
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(c.String("runs")), 64)
	if err != nil || !(seconds >= 0 && seconds <= mostRuns) {
		errs = append(errs, fmt.Errorf("--runs: %q is no time in seconds from 0 to %d", c.String("runs"), mostRuns))
	}
	at, from, to := number("at", false), number("from", true), number("to", true)
	set, err := assignments("set", c.StringSlice("set"))
	errs = append(errs, err)
	open.Set = set
	rates, err := readRates(c.StringSlice(flagRate))
	errs = append(errs, err)
	debug, err := readDebug([]debugKey{profileKey}, c.StringSlice(flagDebug))
	errs = append(errs, err)
	if k := c.Int("order"); k < 0 || k > simulate.HighestAnalyzed {
		errs = append(errs, fmt.Errorf("--order: %d does not lie between 0 and %d", k, simulate.HighestAnalyzed))
	}
	if from != nil && to != nil && from.Value >= to.Value {
		errs = append(errs, fmt.Errorf("--from %g is not below --to %g", from.Value, to.Value))
	}
	if err := errors.Join(errs...); err != nil {
		return &usageError{c.Command.Name, err}
	}
	sys, err := p.backend.Open(c.Context, c.Args().First(), open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	o := analyze.Options{Start: sys.Start.Value, At: sys.Start.Value, Step: sys.Step.Value, Stop: sys.Stop.Value,
		Order: c.Int("order"), Error: most.Value, Bonds: sys.Bonds, Rates: simulate.RatesWith(rates, sys.Rates)}
	if err := analyze.CheckRates(sys.System, o.Rates); err != nil {
		return err
	}
	if sys.BondsSeen != nil {
		o.BondsSeen = sys.BondsSeen()
	}
	con := newConsole(p.stderr)
	defer con.clear()
	told, looked, total := time.Now(), 0, 0
	o.Observe = func(done, all int) {
		looked, total = done, all
		if time.Since(told) > waits(con) {
			con.status(fmt.Sprintf("%d of %d algorithms and orders looked at", done, all))
			told = time.Now()
		}
	}
	o.Runs = trial.Options{
		Time:  time.Duration(seconds * float64(time.Second)),
		Again: simulate.Runner{Open: p.backend.Open}.Again(c.Args().First(), open),
		Observe: func(what string) {
			if time.Since(told) > waits(con) {
				con.status(what)
				told = time.Now()
			}
		},
	}
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	for _, s := range []struct {
		given *simulate.Setting
		to    *float64
	}{{at, &o.At}, {from, &o.From}, {to, &o.To}} {
		if s.given != nil {
			*s.to = s.given.Value
		}
	}
	if o.At < o.Start {
		return &usageError{c.Command.Name, fmt.Errorf("--at %g lies before the start at %g s", o.At, o.Start)}
	}
	var report *analyze.Report
	run := func() (err error) {
		report, err = analyze.Run(c.Context, sys.System, o)
		return err
	}
	if debug.Profile != "" {
		err = profile(debug.Profile, run)
	} else {
		err = run()
	}
	con.clear()
	if err != nil {
		if cause := context.Cause(c.Context); cause != nil {
			err = fmt.Errorf("%w before the operating point was reached: there is no report, and nothing was written", cause)
			if total > 0 {
				err = fmt.Errorf("%w with %d of %d algorithms and orders looked at: there is no report, and nothing was written", cause, looked, total)
			}
		}
		return &runError{err}
	}
	if dir := c.String("plot"); dir != "" {
		if err := p.plotAnalysis(dir, c.Args().First(), report); err != nil {
			return &runError{err}
		}
	}
	if c.Bool("json") {
		e := json.NewEncoder(p.data())
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return printAnalysis(p.stdout, report, c.Args().First())
}
