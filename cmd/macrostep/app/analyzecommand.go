package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
)

const analyzeHelp = `Predicts whether a coupling will be stable, with which algorithm, at which
extrapolation orders and up to which macro step. Use it before a long run, or when a
run diverges.

The components are initialised, and a linear model of each is taken at the
operating point (the start, or --at): from steps repeated from a saved state,
which include the solver of the FMU, else from its directional derivatives. Each
algorithm then runs on the models over a range of step sizes. The spectral radius
is the factor by which the fastest-growing motion is multiplied in every macro
step; above 1 the coupling is unstable. Stability is not monotone in the step, so
all stable ranges are listed. Growth below a millionth per step counts as stable,
because undamped motion has radius 1.

The coupled motion is forecast from the operating point with each algorithm at
several step sizes and compared with the same at a much finer step. The error is the
root mean square over time, divided by the standard deviation of the output, for the
output where it is largest. The error of one step from exact values is given in the
same measure, with the power of H by which it grows. Each component is also driven
along the forecast motion beside its model: where the two part, errors are marked as
an order of magnitude (~) or unknown. The cheapest algorithm within --error is
recommended. For algorithms that choose their steps, the report shows which steps
they settle at for tolerances that match --error, also with rates.

Components that take several steps per macro step, or one per several (--rate, or as
the system asks), are analysed as such: the radius is that of a macro step, from the
growth over a period after which all have stepped. Implicit coupling is analysed
without rates.

Where no models can be had, for example because FMUs take steps of their own, the
system itself is run twice, the second time with its coupled inputs moved a
little at the operating point; the growth of the difference shows whether the
coupling is stable (--runs limits the time). Moves of different size must agree,
and growth below 0.0003 per step is not seen. Windows of stability between the
steps tried are missed.

The results hold near the operating point. Analyse several if the system is
nonlinear.

Examples:
   macrostep analyze system.ssp
   macrostep analyze system.ssp --step-size 1e-3 --at 0.5 --order 3
   macrostep analyze system.ssp --error 1e-4
   macrostep analyze system.ssp --rate motor=10 --rate room=1/5
   macrostep analyze system.ssp --from 1e-5 --to 0.1 --json
   macrostep analyze system.ssp --plot pictures`

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
		Name: "analyze", Usage: "predict whether a coupling will be stable, and with which step", ArgsUsage: "SYSTEM",
		UsageText: "macrostep analyze SYSTEM [--step-size H] [--at T] [--order K] [--json]", Description: analyzeHelp,
		Flags: []cli.Flag{
			stringFlag("step-size", "macro step `H` in seconds, the middle of the range tried (default: of the system)"),
			stringFlag("start-time", "`T` in seconds (default: of the system)"),
			stringFlag("stop-time", "`T` in seconds: errors are forecast up to it, over at most 1000 macro steps (default: of the system)"),
			&cli.StringFlag{Name: "error", Usage: "largest acceptable error `E`, relative to the standard deviation of an output",
				Value: fmt.Sprint(simulate.DefaultError)},
			stringFlag("at", "operating point: time `T` in seconds, reached by explicit coupling at the macro step (default: the start)"),
			stringFlag("from", "smallest step tried, `H` in seconds (default: 1/30 of the macro step)"),
			stringFlag("to", "largest step tried, `H` in seconds (default: 30 times the macro step)"),
			&cli.IntFlag{Name: "order", Usage: "highest extrapolation order `K`", Value: 2},
			&cli.StringFlag{Name: "runs", Usage: "time for runs of the system itself where models are missing, `SECONDS`; 0: none", Value: "20"},
			stringFlag("tolerance", "relative tolerance `R` for the solvers in the FMUs"),
			listFlag(flagSet, "parameter or start value, `COMPONENT.VARIABLE=VALUE`, also of a connector of a system"),
			listFlag(flagRate, "`COMPONENT=N` steps per macro step, or COMPONENT=1/N: one step per N macro steps, as in the run"),
			listFlag(flagStateless, "`COMPONENT` whose outputs follow its inputs at once"),
			boolFlag("compile", "compile the C sources of FMUs that have no library for this platform"),
			strictFlag(), jsonFlag(),
			stringFlag("plot", "write pictures (SVG) into the folder `DIR`: the spectral radius over the step, the system with its loops"),
			forceFlag(), debugFlag([]debugKey{profileKey}),
		},
		Action: p.supervised(p.analyze),
	}
}

func (p *program) analyze(c *cli.Context) (err error) {
	if err := arguments(c, 1, 1, systemArgument); err != nil {
		return err
	}
	in := newInput(c)
	open := simulate.OpenOptions{Strict: c.Bool("strict"), Stateless: c.StringSlice(flagStateless), Compile: c.Bool("compile"),
		Start: in.number("start-time", anyNumber), Stop: in.number("stop-time", anyNumber), Step: in.number("step-size", positive),
		Tolerance: in.number("tolerance", positive), Set: in.assignments(flagSet),
		Isolation: simulate.Isolation{Mode: assemble.IsolateAuto}, Logger: slog.New(slog.DiscardHandler)}
	o := analyze.Options{From: in.float("from", positive), To: in.float("to", positive), Order: c.Int("order"), Error: in.float("error", positive)}
	at, seconds, rates := in.number("at", anyNumber), in.float("runs", notNegative), each(in, flagRate, readRate)
	debug := readDebug(in, []debugKey{profileKey})
	if seconds > mostRuns {
		in.fail("runs", fmt.Errorf("%g is more than %d seconds", seconds, mostRuns))
	}
	if o.Order < 0 || o.Order > simulate.HighestAnalyzed {
		in.fail("order", fmt.Errorf("%d is not between 0 and %d", o.Order, simulate.HighestAnalyzed))
	}
	if o.From > 0 && o.To > 0 && o.From >= o.To {
		in.add(fmt.Errorf("--from %g is not below --to %g", o.From, o.To))
	}
	if err := in.err(); err != nil {
		return err
	}
	pictures := c.String("plot")
	if pictures != "" && !c.Bool(flagForce) {
		for _, name := range []string{radiusPicture, graphPicture} {
			if err := free(filepath.Join(pictures, name)); err != nil {
				return err
			}
		}
	}
	sys, err := p.backend.Open(c.Context, c.Args().First(), open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	o.Start, o.At, o.Step, o.Stop = sys.Start.Value, sys.Start.Value, sys.Step.Value, sys.Stop.Value
	o.Bonds, o.Rates = sys.Bonds, simulate.RatesWith(rates, sys.Rates)
	if at != nil {
		o.At = at.Value
	}
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	if err := analyze.CheckRates(sys.System, o.Rates); err != nil {
		return err
	}
	if sys.BondsSeen != nil {
		o.BondsSeen = sys.BondsSeen()
	}
	con := newConsole(p.stderr)
	defer con.clear()
	printed, looked, total := time.Now(), 0, 0
	show := func(text string) {
		if time.Since(printed) > waits(con) {
			con.status(text)
			printed = time.Now()
		}
	}
	o.Observe = func(done, all int) {
		looked, total = done, all
		show(fmt.Sprintf("%d of %d algorithms and orders analysed", done, all))
	}
	o.Runs = trial.Options{
		Time:    time.Duration(seconds * float64(time.Second)),
		Again:   simulate.Runner{Open: p.backend.Open}.Again(c.Args().First(), open),
		Observe: show,
	}
	if o.At < o.Start {
		return &usageError{c.Command.Name, fmt.Errorf("--at %g is before the start at %g s", o.At, o.Start)}
	}
	var report *analyze.Report
	err = profile(debug.Profile, func() (err error) {
		report, err = analyze.Run(c.Context, sys.System, o)
		return err
	})
	con.clear()
	if err != nil {
		if cause := context.Cause(c.Context); cause != nil {
			err = fmt.Errorf("%w before the operating point was reached: no report is written", cause)
			if total > 0 {
				err = fmt.Errorf("%w with %d of %d algorithms and orders analysed: no report is written", cause, looked, total)
			}
		}
		return &runError{err}
	}
	if pictures != "" {
		if err := p.plotAnalysis(pictures, c.Args().First(), report); err != nil {
			return &runError{err}
		}
	}
	if c.Bool("json") {
		return writeJSON(p.data(), report)
	}
	printAnalysis(p.stdout, report, c.Args().First())
	return nil
}
