package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
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

Where the models tell nothing, as of FMUs that take steps of their own, or only at
some steps, the system itself is run: twice over, the second time with its coupled
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

// highestAnalyzed is the highest order that can be asked for.
const highestAnalyzed = 5

// defaultError is the error asked of what is recommended.
const defaultError = 0.01

// defaultRuns is the time for runs, in s.
const defaultRuns = "20"

// waits gives how long the console is left alone.
func waits(con *console) time.Duration {
	if _, ok := con.terminal(); !ok {
		return lineEvery
	}
	return quietFor
}

// mostRuns is the longest time for runs that can be asked for, in s.
const mostRuns = 86400

// firstRuns is the time for runs before a run, in s.
const firstRuns = 20

// runsOf lets an analysis run the system anew where its models tell nothing.
func (p *program) runsOf(path string, open openOptions, seconds float64, con *console) analyze.Runs {
	told := time.Now()
	return analyze.Runs{
		Time: time.Duration(seconds * float64(time.Second)),
		Observe: func(what string) {
			if time.Since(told) > waits(con) {
				con.status(what)
				told = time.Now()
			}
		},
		Again: func(ctx context.Context) (*master.System, func() error, error) {
			sys, err := p.open(ctx, path, open)
			if err != nil {
				return nil, nil, err
			}
			return sys.System, sys.Close, nil
		},
	}
}

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
			&cli.StringFlag{Name: "plot", Usage: "write pictures (SVG) into the folder `DIR`: the spectral radius over the step, the stability over step and gain, the system with its loops"},
			&cli.StringFlag{Name: flagProfile, Usage: "write profiles of the program into `DIR`, for go tool pprof"},
		},
		Action: p.analyze,
	}
}

func (p *program) analyze(c *cli.Context) (err error) {
	if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"); err != nil {
		return err
	}
	var errs []error
	number := func(name string, positive bool) *setting {
		if !c.IsSet(name) {
			return nil
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(c.String(name)), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || positive && v <= 0 {
			errs = append(errs, fmt.Errorf("--%s: %q is not a finite number%s", name, c.String(name), map[bool]string{true: " above 0"}[positive]))
			return nil
		}
		return &setting{Value: v, Source: "--" + name}
	}
	open := openOptions{Strict: c.Bool("strict"), Stateless: c.StringSlice("stateless"), Compile: c.Bool("compile"),
		Start: number("start-time", false), Stop: number("stop-time", false), Step: number("step-size", true), Tolerance: number("tolerance", true),
		Isolation: isolation{Mode: assemble.IsolateAuto}, Logger: slog.New(slog.DiscardHandler)}
	most := &setting{Value: defaultError}
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
	if k := c.Int("order"); k < 0 || k > highestAnalyzed {
		errs = append(errs, fmt.Errorf("--order: %d does not lie between 0 and %d", k, highestAnalyzed))
	}
	if from != nil && to != nil && from.Value >= to.Value {
		errs = append(errs, fmt.Errorf("--from %g is not below --to %g", from.Value, to.Value))
	}
	if err := errors.Join(errs...); err != nil {
		return &usageError{c.Command.Name, err}
	}
	sys, err := p.open(c.Context, c.Args().First(), open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	o := analyze.Options{Start: sys.Start.Value, At: sys.Start.Value, Step: sys.Step.Value, Stop: sys.Stop.Value,
		Order: c.Int("order"), Error: most.Value, Map: c.String("plot") != "", Bonds: sys.Bonds, Rates: ratesWith(rates, sys.Rates)}
	if err := analyze.CheckRates(sys.System, o.Rates); err != nil {
		return err
	}
	if sys.BondsSeen != nil {
		o.BondsSeen = sys.BondsSeen()
	}
	con := newConsole(p.stderr, slog.LevelWarn)
	defer con.clear()
	told, looked, total := time.Now(), 0, 0
	o.Observe = func(done, all int) {
		looked, total = done, all
		if time.Since(told) > waits(con) {
			con.status(fmt.Sprintf("%d of %d algorithms and orders looked at", done, all))
			told = time.Now()
		}
	}
	o.Runs = p.runsOf(c.Args().First(), open, seconds, con)
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	for _, s := range []struct {
		given *setting
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
	if dir := c.String(flagProfile); dir != "" {
		err = profile(dir, run)
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

const flagAnalyze = "analyze"

// analyse analyses the coupling of a run on instances of its own. It takes runs of the
// system where models tell nothing, for some seconds; 0 = none.
func (p *program) analyse(ctx context.Context, r *runRequest, open openOptions, sys *opened, choice *algorithms.Choice, bonds []algorithms.Bond, rates []algorithms.Rate, con *console, seconds float64) (report *analyze.Report, err error) {
	open.Trace, open.Logger = nil, con.aside()
	open.Isolation.Components = slices.Concat(open.Isolation.Components, sys.Once)
	other, err := p.open(ctx, r.System, open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	order := orderOf(choice)
	o := analyze.Options{Start: sys.Start.Value, At: sys.Start.Value, Step: sys.Step.Value, Stop: sys.Stop.Value, Order: min(max(order, 1), highestAnalyzed), Error: defaultError, Bonds: bonds, Rates: rates}
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	o.Runs = p.runsOf(r.System, open, seconds, con)
	o.Runs.Only = func(preset string, k int) bool { return preset == choice.Preset && k == order }
	o.Own = &analyze.Own{Preset: choice.Preset, New: func() (master.Algorithm, error) {
		same, err := algorithms.New(choice.Preset, choice.Values, algorithms.With{Bonds: bonds, Rates: rates})
		if err != nil {
			return nil, err
		}
		return same.Algorithm, nil
	}}
	con.status("the coupling is analysed")
	defer con.clear()
	return analyze.Run(ctx, other.System, o)
}

// orderOf is the extrapolation order of a run, 0 if its algorithm has none.
func orderOf(choice *algorithms.Choice) int {
	order, err := strconv.Atoi(choice.Values["order"])
	if err != nil {
		return 0
	}
	return order
}

// ofRun returns the index of the strategy that a run takes, -1 = it was not analysed.
func ofRun(report *analyze.Report, choice *algorithms.Choice) int {
	order := orderOf(choice)
	return slices.IndexFunc(report.Strategies, func(s analyze.Strategy) bool { return s.Preset == choice.Preset && s.Order == order })
}

// growth returns the sentence on an unstable strategy.
func growth(s *analyze.Strategy, step float64) string {
	return fmt.Sprintf("the coupling is unstable with %s of order %d and steps of %.4g s: it grows by %.3g %% in each", s.Preset, s.Order, step, 100*(s.Now-1))
}

// itself reports whether growth is that of the system itself: far below the step of the run
// it is about as fast, whereas that of an unstable coupling vanishes with the step.
func itself(s *analyze.Strategy, step float64) bool {
	least := s.Points[0]
	return least.Step < step/10 && math.Log(least.Radius)/least.Step > math.Log(s.Now)/step/2
}

// causeOfGrowth finds out why an output grows steadily: unstable is the cause if it is the
// coupling, note what else there is to say.
func causeOfGrowth(growing *master.Growth, report *analyze.Report, choice *algorithms.Choice, failed error) (unstable, note string) {
	var s *analyze.Strategy
	if failed == nil {
		if at := ofRun(report, choice); at >= 0 {
			s = &report.Strategies[at]
		}
	}
	switch {
	case failed == nil && report.Whole != nil:
		return "", fmt.Sprintf("%s: the system itself is unstable, whatever the step: %s", growing, report.Whole)
	case failed != nil || s == nil || otherwise(choice) != "" || !s.Known() || len(s.Points) == 0 || report.Large != "":
		if growing.By < undecided {
			return "", ""
		}
		text := fmt.Sprintf("%s: the coupling or the system itself may be unstable; the analysis cannot decide which", growing)
		if failed != nil {
			text += ": " + failed.Error()
		}
		return "", text
	case s.IsStable():
		return "", ""
	case itself(s, report.Step):
		return "", fmt.Sprintf("%s: the system itself is unstable: it grows by %.3g %% in each second, with the smallest steps analysed too", growing, 100*math.Expm1(math.Log(s.Points[0].Radius)/s.Points[0].Step))
	}
	unstable = fmt.Sprintf("%s: %s; ", growing, growth(s, report.Step))
	if report.Recommended < 0 {
		return unstable + "no algorithm and step of those analysed can be recommended", ""
	}
	return unstable + fmt.Sprintf("recommended: %s --step-size %.4g", chosen(&report.Strategies[report.Recommended]), report.StepToTake), ""
}

// undecided is the growth from which a run warns although its cause is not known.
const undecided = 10

// analyseFirst analyses the coupling before the run and prints what it
// found on the strategy of the run. told are notes for the manifest, unstable its warnings.
func (p *program) analyseFirst(ctx context.Context, r *runRequest, open openOptions, sys *opened, choice *algorithms.Choice, bonds []algorithms.Bond, rates []algorithms.Rate, con *console) (told, unstable []string, report *analyze.Report, err error) {
	report, err = p.analyse(ctx, r, open, sys, choice, bonds, rates, con, firstRuns)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, nil, nil, &runError{cause}
		}
		unstable = []string{"analysis: the coupling could not be analysed, and is run all the same: " + err.Error()}
		con.logger().Warn(unstable[0])
		return nil, unstable, nil, nil
	}
	at := ofRun(report, choice)
	switch other := otherwise(choice); {
	case at >= 0 && other != "":
		told = append(told, fmt.Sprintf("analysis: whether it grows is unknown: %s is analysed with the values that its parameters have by themselves, and the run has %s", choice.Preset, other))
		if report.Own != nil && report.Own.Fails == "" {
			told = append(told, "analysis: "+ownOf(choice.Preset, report))
		}
	case at < 0 && report.Own != nil && report.Own.Fails != "":
		unstable = append(unstable, fmt.Sprintf("analysis: the run is expected to fail: %s", report.Own.Fails))
	case at < 0 && report.Own != nil:
		told = append(told, "analysis: "+ownOf(choice.Preset, report))
	case at < 0:
		told = append(told, fmt.Sprintf("analysis: nothing is told of %s: %s", choice.Preset, report.WhyNotOwn))
	case report.Strategies[at].Points == nil:
		told = append(told, fmt.Sprintf("analysis: unknown: %s", report.Strategies[at].Why))
	default:
		s := &report.Strategies[at]
		with := ""
		if len(s.Rates) > 0 {
			with = ", rates " + someOf(s.Rates, ", ")
		}
		radius := "the spectral radius is not known"
		switch {
		case s.MeanGrowth && s.Mode != nil:
			radius = fmt.Sprintf("the growth in each, in the mean over runs of the models, is %.6g", s.Now)
		case s.Mode != nil:
			radius = fmt.Sprintf("the spectral radius is %.6g", s.Now)
		case s.Known():
			radius = fmt.Sprintf("the spectral radius seen in runs is %.6g", s.Now)
		}
		text := fmt.Sprintf("analysis: %s of order %d%s, steps of %.4g s: %s; stable steps: %s", s.Preset, s.Order, with, report.Step, radius, rangesOf(s, report))
		for _, f := range s.Forecasts {
			if f.Step == report.Step {
				text += fmt.Sprintf("; expected error %s over %.4g s, most in %s", errorOf(&f), report.Horizon, f.Of)
			}
		}
		told = append(told, text)
		switch {
		case !s.Known() || s.IsStable():
		case report.Large != "":
			told = append(told, "analysis: unstable for small motions; "+report.Large)
		default:
			if report.Whole != nil {
				unstable = append(unstable, fmt.Sprintf("analysis: the system itself is unstable, whatever the step: %s", report.Whole))
				break
			}
			by := "as runs show"
			switch {
			case s.MeanGrowth && s.Mode != nil:
				by = "in the mean over runs of the models"
			case s.Mode != nil:
				by = strings.ReplaceAll(modeOf(s.Mode), "\n", "; ")
			}
			unstable = append(unstable, fmt.Sprintf("analysis: %s, %s", growth(s, report.Step), by))
		}
	}
	if report.Recommended >= 0 && report.Recommended != at {
		s := report.Strategies[report.Recommended]
		without := ""
		if len(r.Rates) > 0 && len(s.Rates) == 0 {
			without = ", without --rate"
		}
		told = append(told, fmt.Sprintf("analysis: recommended: %s --step-size %.4g%s: %s", chosen(&s), report.StepToTake, without, report.Why))
	}
	for _, line := range told {
		fmt.Fprintln(p.stdout, line)
	}
	for _, line := range unstable {
		con.logger().Warn(line)
	}
	return told, unstable, report, nil
}

// otherwise returns which parameters of an energy correction have other values than those with which it is analysed, ""
// if none has. What it takes for spurious decides whether the coupling grows.
func otherwise(choice *algorithms.Choice) string {
	if choice.Preset != "energy-correction" {
		return ""
	}
	plain, err := algorithms.New(choice.Preset, nil)
	if err != nil {
		return ""
	}
	var other []string
	for _, key := range slices.Sorted(maps.Keys(choice.Values)) {
		if v := choice.Values[key]; key != "order" && v != plain.Values[key] {
			other = append(other, key+"="+v)
		}
	}
	return strings.Join(other, ", ")
}

// ownOf tells what is expected of the algorithm of a run that is none of the strategies.
func ownOf(preset string, r *analyze.Report) string {
	s := r.Own
	if s.Cut {
		return fmt.Sprintf("%s: more than %d steps are expected over %.4g s, half of the time of at most %.3g s", preset, s.Accepted-1, s.Time, s.Step)
	}
	return fmt.Sprintf("%s: steps of %.2g to %.2g s are expected, half of the time of at most %.3g s, and %d rejected beside %d; expected error %s over %.4g s, most in %s; %.4g FMU steps per second",
		preset, s.Short, s.Long, s.Step, s.Rejected, s.Accepted, errorOf(&s.Forecast), s.Time, s.Of, s.FMUSteps)
}
