package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/trial"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// HighestAnalyzed is the highest order that is analysed.
const HighestAnalyzed = 5

// DefaultError is the largest error of a recommended step, relative to the standard
// deviation of an output.
const DefaultError = 0.01

// firstRuns is the time limit of trial runs before a run, in s.
const firstRuns = 20

// opener opens a copy of a system.
type opener = func(context.Context) (*master.System, func() error, error)

// Again returns a function that opens a system once more, for the trial runs of an analysis.
func (by Runner) Again(path string, open OpenOptions) func(context.Context) (*master.System, func() error, error) {
	if by.Open == nil {
		by.Open = Open
	}
	if abs, err := filepath.Abs(path); err == nil { // it is opened in a copy of the working folder
		path = abs
	}
	return func(ctx context.Context) (*master.System, func() error, error) {
		sys, err := by.Open(ctx, path, open)
		if err != nil {
			return nil, nil, err
		}
		return sys.System, sys.Close, nil
	}
}

// aside opens the system of the run once more for an analysis and returns the options of the
// analysis; again opens further copies. The caller closes the system.
func (r *run) aside(ctx context.Context) (other *System, o analyze.Options, again opener, err error) {
	open, sys := r.open, r.sys
	open.Trace, open.Logger, open.Sandboxed = nil, r.events.aside(), true
	open.Isolation.Components = slices.Concat(open.Isolation.Components, sys.Once)
	if other, err = r.Open(ctx, r.System, open); err != nil {
		return nil, o, nil, err
	}
	c := r.chosen
	o = analyze.Options{
		Start: sys.Start.Value, At: sys.Start.Value, Step: sys.Step.Value, Stop: sys.Stop.Value,
		Order: min(max(c.order(), 1), HighestAnalyzed), Error: DefaultError, Bonds: c.Bonds, Rates: c.Rates,
	}
	if sys.Tolerance != nil {
		o.Tolerance = sys.Tolerance.Value
	}
	return other, o, r.Again(r.System, open), nil
}

// analyse analyses the coupling of the run on separate instances. Where models are missing, it
// makes trial runs for some seconds.
func (r *run) analyse(ctx context.Context) (report *analyze.Report, err error) {
	other, o, again, err := r.aside(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	c, order := r.chosen, r.chosen.order()
	o.Runs = trial.Options{
		Time:    firstRuns * time.Second,
		Again:   again,
		Observe: r.events.doing,
		Only:    func(preset string, k int) bool { return preset == c.Preset && k == order },
	}
	o.Own = c.Own(r.Presets)
	r.events.doing("the coupling is analysed")
	defer r.events.doing("")
	return analyze.Run(ctx, other.System, o)
}

// Own returns the algorithm for an analysis.
func (c *Chosen) Own(presets algorithms.Catalog) *forecast.Own {
	own := &forecast.Own{Preset: c.Preset, Order: c.order(), New: func() (master.Algorithm, error) {
		same, err := presets.New(c.Preset, c.Values, algorithms.With{Bonds: c.Bonds, Rates: c.Rates})
		if err != nil {
			return nil, err
		}
		return same.Algorithm, nil
	}}
	defaults, err := presets.New(c.Preset, nil)
	for _, key := range slices.Sorted(maps.Keys(c.Values)) {
		if err == nil && key != "order" && c.Values[key] != defaults.Values[key] {
			own.Changed = append(own.Changed, key+"="+c.Values[key])
		}
	}
	return own
}

// growth describes an unstable strategy.
func growth(preset string, order int, step, radius float64) string {
	grows := fmt.Sprintf("by %.3g %%", 100*(radius-1))
	if radius > 2 {
		grows = fmt.Sprintf("%.3g times", radius)
	}
	return fmt.Sprintf("the coupling is unstable with %s of order %d and steps of %.4g s: it grows %s in each", preset, order, step, grows)
}

// analyseFirst analyses the coupling before the run and reports the result for the algorithm
// of the run.
func (r *run) analyseFirst(ctx context.Context, m *record.Manifest) error {
	report, err := r.analyse(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			r.out.Begun = true
			return cause
		}
		text := "analysis: the coupling could not be analysed, and is run nevertheless: " + err.Error()
		r.events.logger().Warn(text)
		m.Warnings = append(m.Warnings, text)
		return nil
	}
	r.out.Analysis = report
	notes, warnings := verdict(report, r.chosen, len(r.Rates) > 0)
	for _, line := range notes {
		r.events.note(line)
	}
	for _, line := range warnings {
		r.events.logger().Warn(line)
	}
	m.Notes, m.Warnings = append(m.Notes, notes...), append(m.Warnings, warnings...)
	return nil
}

// verdict returns the notes of an analysis on the algorithm of a run, and warnings if it is
// unstable or expected to fail. rates: the user has given some.
func verdict(report *analyze.Report, choice *Chosen, rates bool) (notes, warnings []string) {
	v, now := report.Verdict, report.Now()
	setting := choice.Preset
	if now != nil {
		setting = fmt.Sprintf("%s of order %d", choice.Preset, choice.order())
		if len(now.Strategy.Rates) > 0 {
			setting += ", rates " + strings.Join(now.Strategy.Rates, ", ")
		}
		setting += fmt.Sprintf(", steps of %.4g s", report.Step)
	}
	off := ""
	if f := v.Error; f != nil && v.State != analyze.Unstable {
		off = fmt.Sprintf("; expected error %s over %.4g s, most in %s", f.Percent(), report.Horizon, f.Of)
	}
	switch v.State {
	case analyze.Unstable:
		if report.Large != "" && now.Strategy.Seen == nil {
			notes = append(notes, fmt.Sprintf("analysis: %s: %s; %s", setting, v, report.Large))
			break
		}
		text := "analysis: " + growth(choice.Preset, choice.order(), report.Step, now.Strategy.Now)
		if now.Strategy.Mode != nil {
			text += fmt.Sprintf(" (%s; in %s)", report.Describe(now.Strategy), report.Where(now.Strategy.Mode))
		}
		notes = append(notes, fmt.Sprintf("analysis: %s: %s", setting, v))
		warnings = append(warnings, text)
	case analyze.Itself, analyze.Fails:
		warnings = append(warnings, "analysis: "+v.String())
	case analyze.Unknown, analyze.Uncoupled:
		notes = append(notes, fmt.Sprintf("analysis: %s: %s%s", v.State, v.Text, off))
	default:
		notes = append(notes, fmt.Sprintf("analysis: %s: %s%s", setting, v, off))
	}
	if report.Recommended >= 0 && !v.Keep {
		s := report.Strategies[report.Recommended]
		without := ""
		if rates && len(s.Rates) == 0 {
			without = ", without --rate"
		}
		notes = append(notes, fmt.Sprintf("analysis: recommended: %s --step-size %.4g%s: %s",
			s.Flags(), report.StepToTake, without, report.Why))
	}
	return notes, warnings
}
