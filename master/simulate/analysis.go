package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// HighestAnalyzed is the highest order that an analysis looks at.
const HighestAnalyzed = 5

// DefaultError is the largest error of a recommended step, relative to the standard
// deviation of an output.
const DefaultError = 0.01

// firstRuns is the time for runs before a run, in s.
const firstRuns = 20

// Again returns a function that opens a system once more, for analyses that run it where
// its models leave a question open.
func (by Runner) Again(path string, open OpenOptions) func(context.Context) (*master.System, func() error, error) {
	if by.Open == nil {
		by.Open = Open
	}
	return func(ctx context.Context) (*master.System, func() error, error) {
		sys, err := by.Open(ctx, path, open)
		if err != nil {
			return nil, nil, err
		}
		return sys.System, sys.Close, nil
	}
}

// analyse analyses the coupling of the run on instances of its own. It runs the system
// where models leave a question open, for some seconds; 0 = never.
func (r *run) analyse(ctx context.Context, seconds float64) (report *analyze.Report, err error) {
	open, sys := r.open, r.sys
	open.Trace, open.Logger = nil, r.events.aside()
	open.Isolation.Components = slices.Concat(open.Isolation.Components, sys.Once)
	other, err := r.Open(ctx, r.System, open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	c, order := r.chosen, r.chosen.order()
	o := analyze.Options{Start: sys.Start.Value, At: sys.Start.Value, Step: sys.Step.Value, Stop: sys.Stop.Value, Order: min(max(order, 1), HighestAnalyzed), Error: DefaultError, Bonds: c.Bonds, Rates: c.Rates}
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	o.Runs = analyze.Runs{
		Time:    time.Duration(seconds * float64(time.Second)),
		Again:   r.Again(r.System, open),
		Observe: r.events.doing,
		Only:    func(preset string, k int) bool { return preset == c.Preset && k == order },
	}
	o.Own = &analyze.Own{Preset: c.Preset, New: func() (master.Algorithm, error) {
		same, err := algorithms.New(c.Preset, c.Values, algorithms.With{Bonds: c.Bonds, Rates: c.Rates})
		if err != nil {
			return nil, err
		}
		return same.Algorithm, nil
	}}
	r.events.doing("the coupling is analysed")
	defer r.events.doing("")
	return analyze.Run(ctx, other.System, o)
}

// judgeGrowth finds out why an output grows steadily. It sets result.Unstable if the
// coupling is the cause, and returns what else there is to say.
func (r *run) judgeGrowth(ctx context.Context, result *master.Result) (note string) {
	report, failed := r.out.Analysis, error(nil)
	if report == nil {
		report, failed = r.analyse(ctx, 0)
	}
	result.Unstable, note = causeOfGrowth(result.Growing, report, r.chosen, failed)
	for _, text := range []string{result.Unstable, note} {
		if text != "" {
			r.events.logger().Warn(text)
		}
	}
	return note
}

// ofRun returns the index of the strategy that a run takes, -1 = it was not analysed.
func ofRun(report *analyze.Report, choice *Chosen) int {
	order := choice.order()
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
func causeOfGrowth(growing *master.Growth, report *analyze.Report, choice *Chosen, failed error) (unstable, note string) {
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
	return unstable + fmt.Sprintf("recommended: %s --step-size %.4g", report.Strategies[report.Recommended].Flags(), report.StepToTake), ""
}

// undecided is the growth from which a run warns although its cause is not known.
const undecided = 10

// analyseFirst analyses the coupling before the run, and reports what it found about the
// algorithm of the run.
func (r *run) analyseFirst(ctx context.Context, m *record.Manifest) error {
	report, err := r.analyse(ctx, firstRuns)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			r.out.Begun = true
			return cause
		}
		text := "analysis: the coupling could not be analysed, and is run all the same: " + err.Error()
		r.events.logger().Warn(text)
		m.Warnings = append(m.Warnings, text)
		return nil
	}
	r.out.Analysis = report
	told, unstable := verdict(report, r.chosen, len(r.Rates) > 0)
	for _, line := range told {
		r.events.note(line)
	}
	for _, line := range unstable {
		r.events.logger().Warn(line)
	}
	m.Notes, m.Warnings = append(m.Notes, told...), append(m.Warnings, unstable...)
	return nil
}

// verdict returns what an analysis says of the algorithm of a run: notes, and warnings if
// it is unstable. rates = the user has given some.
func verdict(report *analyze.Report, choice *Chosen, rates bool) (told, unstable []string) {
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
			with = ", rates " + strings.Join(s.Rates, ", ")
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
		text := fmt.Sprintf("analysis: %s of order %d%s, steps of %.4g s: %s; stable steps: %s", s.Preset, s.Order, with, report.Step, radius, s.Ranges(report))
		for _, f := range s.Forecasts {
			if f.Step == report.Step {
				text += fmt.Sprintf("; expected error %s over %.4g s, most in %s", f.Size(), report.Horizon, f.Of)
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
				by = strings.ReplaceAll(s.Mode.String(), "\n", "; ")
			}
			unstable = append(unstable, fmt.Sprintf("analysis: %s, %s", growth(s, report.Step), by))
		}
	}
	if report.Recommended >= 0 && report.Recommended != at {
		s := report.Strategies[report.Recommended]
		without := ""
		if rates && len(s.Rates) == 0 {
			without = ", without --rate"
		}
		told = append(told, fmt.Sprintf("analysis: recommended: %s --step-size %.4g%s: %s", s.Flags(), report.StepToTake, without, report.Why))
	}
	return told, unstable
}

// otherwise returns which parameters of an energy correction have other values than those with which it is analysed, ""
// if none has. What it takes for spurious decides whether the coupling grows.
func otherwise(choice *Chosen) string {
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
		preset, s.Short, s.Long, s.Step, s.Rejected, s.Accepted, s.Forecast.Size(), s.Time, s.Of, s.FMUSteps)
}
