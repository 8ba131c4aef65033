package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
)

// Check asks for the error of a run, which is measured by runs with other algorithms and steps.
type Check struct {
	Limit  float64                                 // of the error, relative to the motion of a variable; a larger one is a warning
	Budget time.Duration                           // wall time; 0 = unlimited
	known  func(run *measure.Samples) *measure.Bar // nil = it must be measured; the same for one that it returns
}

// Accuracy asks for the cheapest setting with an error. What the request and the documents give stays.
type Accuracy struct {
	Limit float64          // of the error, relative to the motion
	Of    record.Selection // of variables whose errors count; by default all outputs that feed inputs
}

// ParseAccuracy reads LIMIT[:VARIABLE,…].
func ParseAccuracy(text string) (*Accuracy, error) {
	limit, names, of := strings.Cut(text, ":")
	a := &Accuracy{}
	var err error
	if a.Limit, err = ParseLimit(limit); err == nil && of {
		if a.Of, err = record.ParseSelection(strings.Split(names, ",")); err == nil && a.Of.IsNone() {
			err = errors.New("none names no output")
		}
	}
	return a, err
}

// DefaultLimit is the limit of a check without one.
const DefaultLimit = 0.05

// check measures the error of the run, whose results are complete, and adds it to the manifest. The error is that of a strict run
// which is not within the limit.
func (r *run) check(ctx context.Context) error {
	warnings := r.out.Manifest.Warnings
	tell := func(e *record.Error, outcome master.Outcome) error {
		m := *r.out.Manifest
		m.Error, m.Outcome, m.Warnings = e, outcome, slices.Clone(warnings)
		for i, w := range m.Warnings {
			if strings.Contains(w, master.CauseUnknown) && !strings.HasSuffix(outcome.Growth, master.CauseUnknown) {
				m.Warnings[i] = outcome.Growth
			}
		}
		if w := e.Warning(); w != "" {
			m.Warnings = append(m.Warnings, w)
		}
		r.out.Manifest = &m
		r.mark.set(&m)
		defer r.mark.publish()
		return r.mark.end()
	}
	// In case that the process ends meanwhile.
	unknown := &record.Error{Limit: r.Check.Limit, Strict: r.Strict, Unknown: "the process ended while it was measured"}
	if err := tell(unknown, r.out.Manifest.Outcome); err != nil {
		return err
	}
	e, outcome := r.measured(ctx)
	r.events.doing("")
	if err := tell(e, outcome); err != nil {
		return fmt.Errorf("the error is %s, but was not written: %w", e, err)
	}
	if err := e.Failure(); err != nil || outcome.OK(r.Strict) || !outcome.OK(false) {
		return err
	}
	return errors.New(cmp.Or(r.out.Result.Reason, outcome.Growth))
}

// measured measures the error of the run, and judges its stability.
func (r *run) measured(ctx context.Context) (*record.Error, master.Outcome) {
	e, outcome := &record.Error{Limit: r.Check.Limit, Strict: r.Strict}, r.out.Manifest.Outcome
	if why := r.unrepeatable(); why != "" {
		e.Unknown = "not checked, because the run cannot be repeated: " + why
		return e, outcome
	}
	plan := &measure.Plan{
		Setting: measure.Setting{Preset: r.chosen.Preset, Params: r.chosen.Values, Step: r.sys.Step.Value, Rates: r.chosen.Rates},
		Samples: r.samples, Reverts: r.reverts(), Serial: r.sys.Few, Progress: r.events.doing, Seconds: r.out.Result.WallSeconds,
	}
	if b := r.Check.Budget; b > 0 {
		plan.Deadline = time.Now().Add(b)
	}
	mode := r.open.Isolate
	if r.Check.known != nil {
		if bar := r.Check.known(r.samples); bar != nil {
			fill(e, r.samples, bar)
			return e, stability(outcome, r.out.Result.Growing, e, bar)
		}
	}
	var bar *measure.Bar
	measured := func(mode assemble.Isolation) error {
		return r.instances(ctx, mode, func(m *Model, o OpenOptions) (err error) {
			plan.Begin = r.begins(m, o, r.out.Manifest.EndTime)
			bar, err = plan.Measure(ctx)
			return err
		})
	}
	err := measured(mode)
	if errors.Is(err, measure.ErrDiffers) && mode == assemble.IsolateAuto { // instances in one process may influence each other
		err = measured(assemble.IsolateAlways)
	}
	if err != nil {
		e.Unknown = err.Error()
		return e, outcome
	}
	fill(e, r.samples, bar)
	return e, stability(outcome, r.out.Result.Growing, e, bar)
}

// Errors relative to the motion. A run with one of at most smallError goes as the reference does; with more than farther, beyond
// that of an opposite motion of the same size, it goes farther; with more than tooFar, nothing else need be seen.
const smallError, farther, tooFar = 0.5, 2, 100

// stability judges the stability of a run with an outcome by its error. grows is what grows in it, nil = nothing.
func stability(o master.Outcome, grows *master.Growth, e *record.Error, bar *measure.Bar) master.Outcome {
	worst := math.NaN()
	if e.Worst != nil && !bar.Partial {
		worst = *e.Worst
	}
	switch {
	case worst <= smallError && grows == nil:
		o.Stability = master.Stable
	case worst <= smallError:
		o.Growth = fmt.Sprintf("%s, with %s as well: the coupling is not the cause", grows, bar.Reference)
	case grows == nil && worst > tooFar:
		o.Stability = master.Unstable
		o.Growth = fmt.Sprintf("%s goes %.2g times as far as with %s: the coupling is unstable", e.Where, worst, bar.Reference)
	case grows != nil && (worst > farther || bar.Grows == nil && worst > smallError):
		o.Stability = master.Unstable
		o.Growth = fmt.Sprintf("%s, and not so with %s: the coupling is unstable", grows, bar.Reference)
	case grows != nil && worst > smallError:
		o.Growth = fmt.Sprintf("%s, with %s as well, of which it is off by %.2g times the motion: the coupling may add to it", grows, bar.Reference, worst)
	}
	return o
}

// unrepeatable returns why the run cannot be repeated, "" if it can.
func (r *run) unrepeatable() string {
	switch {
	case r.Builder != "":
		return "its components are not all FMUs"
	case r.Realtime != nil:
		return "it is in real time"
	case r.checkpoint != nil:
		return "it is resumed from a checkpoint"
	case len(r.opt.Hooks) > 1 || len(r.opt.Hooks) == 1 && r.player == nil:
		return "a program or a page acts on it"
	}
	return ""
}

// instances opens the system of the run for runs of new instances, during a function.
func (r *run) instances(ctx context.Context, mode assemble.Isolation, use func(*Model, OpenOptions) error) error {
	o := r.open
	o.Calls, o.Logger, o.Sandboxed = nil, slog.New(slog.DiscardHandler), true
	o.Isolate = mode
	o.IsolateComponents = slices.Concat(o.IsolateComponents, r.sys.Once)
	model, err := OpenModel(ctx, r.System, o)
	if err != nil {
		return err
	}
	o.Set = nil
	if err = use(model, o); errors.Is(err, measure.ErrStuck) {
		return err
	}
	return errors.Join(err, model.Close())
}

// begins returns how to begin runs as the run was, up to a time, with other settings and recorders.
func (r *run) begins(model *Model, o OpenOptions, stop float64) func(context.Context, measure.Setting, master.Recorder, ...master.Hook) (*master.Run, func() error, error) {
	return func(ctx context.Context, s measure.Setting, rec master.Recorder, hooks ...master.Hook) (*master.Run, func() error, error) {
		sys, err := model.Instantiate(o)
		if err != nil {
			return nil, nil, err
		}
		job, err := r.repeat(sys, s, stop, rec, hooks)
		if err == nil {
			err = job.Start(ctx)
		}
		return job, sys.Close, err
	}
}

// repeat prepares a run of a system as the run was, with another setting and recorder, and with further hooks.
func (r *run) repeat(sys *System, s measure.Setting, stop float64, rec master.Recorder, hooks []master.Hook) (*master.Run, error) {
	with := algorithms.With{Bonds: r.chosen.Bonds, Rates: s.Rates}
	if algorithms.UsesEnergy(s.Preset) {
		with.Bonds = r.bonds()
	}
	choice, err := r.Presets.New(s.Preset, s.Params, with)
	if err != nil {
		return nil, err
	}
	if len(choice.Monitor) > 0 && sys.Monitor != nil {
		if sys.System, err = sys.Monitor(choice.Monitor); err != nil {
			return nil, err
		}
	}
	opt := master.Options{Start: r.opt.Start, Stop: stop, Step: s.Step, Discard: choice.Discard, Workers: 1,
		Tidy: sys.Tidy, Tolerance: r.opt.Tolerance, Recorders: []master.Recorder{rec}, Hooks: slices.Clone(hooks)}
	if r.scenario != nil {
		player := r.scenario.Play()
		player.Items, player.Resolve = sys.ItemsOf, sys.Resolve
		opt.Hooks = append(opt.Hooks, player)
	}
	if r.signals != nil {
		if opt.Signals, err = record.BindInputs(r.signals, sys.System); err != nil {
			return nil, err
		}
	}
	if r.history != nil {
		if opt.Past, err = record.BindHistory(r.history, sys.System, opt.Start, r.chosen.order()); err != nil {
			return nil, err
		}
	}
	return master.NewRun(sys.System, choice.Algorithm, opt)
}

// fill describes a measured error.
func fill(e *record.Error, s *measure.Samples, bar *measure.Bar) {
	e.Until, e.Partial, e.Runs, e.AtMost = bar.Until, bar.Partial, bar.Runs, bar.AtMost
	if bar.Err != nil {
		e.Unknown = bar.Err.Error()
		return
	}
	e.Reference = bar.Reference.String()
	e.Variables = map[string]record.VariableError{}
	for k, d := range bar.Distances {
		v := record.VariableError{Absolute: d.RMS, Largest: d.Largest, Shift: d.Shift, Unit: s.Unit(k)}
		if !d.Still && finite(d.Relative) {
			v.Relative = &bar.Distances[k].Relative
		}
		if bar.Undetermined && finite(d.Mean+d.RootMeanSquare+d.Lowest+d.Highest) {
			v.Moments = &record.Moments{Mean: d.Mean, RMS: d.RootMeanSquare, Lowest: d.Lowest, Highest: d.Highest}
		}
		if finite(v.Absolute) && finite(v.Largest) {
			e.Variables[s.Name(k)] = v
		}
	}
	if bar.Undetermined {
		e.Determined = &bar.Determined
	}
	switch {
	case bar.At < 0:
		e.Unknown = "no output that feeds an input moves"
	case !finite(bar.Worst):
		e.Unknown = fmt.Sprintf("%s overflows", s.Name(bar.At))
	default:
		e.Worst, e.Where = &bar.Worst, s.Name(bar.At)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
