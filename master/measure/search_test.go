package measure_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/measure"
)

func fixed(preset, order string, H float64) measure.Setting {
	return measure.Setting{Preset: preset, Params: map[string]string{"order": order}, Step: H}
}

// searching returns a search beside a run of the oscillator, in which subsystems are what wrap makes of them.
func searching(t *testing.T, s measure.Setting, wrap func(master.Subsystem) master.Subsystem) *measure.Search {
	t.Helper()
	H := s.Step
	p := plan(t, s, wrap)
	p.Samples = &measure.Samples{Stop: 10}
	return &measure.Search{Plan: *p, Others: []measure.Setting{fixed("explicit", "1", H), fixed("gauss-seidel", "1", H), fixed("implicit", "1", H)}}
}

// distance returns how far a run is from one with far smaller steps.
func distance(t *testing.T, s measure.Setting) float64 {
	t.Helper()
	run := plan(t, s, plain).Samples
	fine := &measure.Samples{Stop: 10, At: func() []float64 { return run.T }}
	resample(t, fine, plan(t, fixed("implicit", "2", 1e-3), plain).Samples)
	d, _ := run.Worst(measure.Apart(run, fine, len(run.T)))
	return d
}

// The recommendation keeps the error that is asked for, by a run with far smaller steps, and is the cheapest trial that does; the error
// of each trial is that of a run with its setting.
func TestSearch(t *testing.T) {
	for _, c := range []struct {
		present measure.Setting
		error   float64
		cheaper bool // than the run
	}{
		{fixed("explicit", "0", 0.05), 0.01, false}, {fixed("explicit", "1", 0.01), 0, true}, {fixed("explicit", "0", 0.5), 0, false},
	} {
		o := searching(t, c.present, plain)
		o.Error = c.error
		out, err := o.Run(t.Context())
		if err != nil || out.Err != nil || out.Best == nil {
			t.Fatalf("%v: %v, %+v", c.present, err, out)
		}
		if got := distance(t, out.Best.Setting); got > out.Best.Bound || out.Best.Bound > out.Error || out.Best.Cost < out.Present.Cost != c.cheaper {
			t.Errorf("%v: asked for %.3g, %v is %.3g off, not %.3g", c.present, out.Error, out.Best.Setting, got, out.Best.Bound)
		}
		for _, l := range out.Lines {
			for _, trial := range l.Trials {
				if trial.Usable && trial.Bound <= out.Error && float64(trial.Cost) < float64(out.Best.Cost) {
					t.Errorf("%v: %v is cheaper than %v", c.present, trial.Setting, out.Best.Setting)
				}
				if got := distance(t, trial.Setting); trial.Usable && (got > 1.2*trial.Bound || trial.Error > 1.6*got+1.01*max(out.Change, 0.05*out.Error)) {
					t.Errorf("%v is %.3g off, not %.3g", trial.Setting, got, trial.Error)
				}
			}
		}
	}
}

// late gives the outputs of the step before in steps that are repeated, so that implicit and explicit coupling go to different limits.
type late struct {
	master.Subsystem
	at    float64
	again bool
}

func (l *late) Unwrap() master.Subsystem { return l.Subsystem }

func (l *late) Step(ctx context.Context, t, H float64) (float64, error) {
	l.again = t == l.at
	l.at = t
	return l.Subsystem.Step(ctx, t, H)
}

func (l *late) Outputs(y []float64) error {
	err := l.Subsystem.Outputs(y)
	if l.again {
		y[0] *= 1.1
	}
	return err
}

// Where references of two schemes disagree, what they differ by is the least error of every trial, and nothing more accurate is promised.
func TestSearchDisagrees(t *testing.T) {
	o := searching(t, fixed("explicit", "0", 0.1), func(s master.Subsystem) master.Subsystem { return &late{Subsystem: s, at: math.NaN()} })
	o.Error = 0.01
	out, err := o.Run(t.Context())
	if err != nil || out.Best != nil && out.Best.Bound <= 0.01 {
		t.Errorf("%v, %+v", err, out.Best)
	}
	for _, l := range out.Lines {
		for _, trial := range l.Trials {
			if trial.Bound < 0.02 {
				t.Errorf("%v: %+v", trial.Setting, trial)
			}
		}
	}
}

// A run that cannot begin is an error; one that is interrupted leaves what is known.
func TestSearchEnds(t *testing.T) {
	o := searching(t, fixed("explicit", "0", 0.1), plain)
	begin := o.Begin
	o.Begin = func(context.Context, measure.Setting, master.Recorder, ...master.Hook) (*master.Run, func() error, error) {
		return nil, nil, errors.New("no license")
	}
	if out, err := o.Run(t.Context()); out != nil || err == nil || err.Error() != "no license" {
		t.Errorf("%+v, %v", out, err)
	}
	o.Begin = begin
	o.Samples = &measure.Samples{Stop: 10}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	trials := 0
	o.Found = func(c *measure.Comparison) {
		if trials++; trials == 3 {
			cancel(enough)
		}
	}
	out, err := o.Run(ctx)
	if err != nil || !errors.Is(out.Err, enough) || !(out.Present.Error > 0.01) || len(out.Lines[2].Trials) != 1 || len(out.Lines[3].Trials) != 0 {
		t.Errorf("%v, %+v", err, out)
	}
}

// Where a finer reference fails, the one before stays, with what it changed by as its error.
func TestSearchFinerFails(t *testing.T) {
	o := searching(t, fixed("explicit", "0", 0.05), plain)
	o.Error = 1e-5
	begin := o.Begin
	o.Begin = func(ctx context.Context, s measure.Setting, rec master.Recorder, hooks ...master.Hook) (*master.Run, func() error, error) {
		if s.Step < 0.05/8 {
			return nil, nil, errors.New("no license")
		}
		return begin(ctx, s, rec)
	}
	out, err := o.Run(t.Context())
	if err != nil || out.Reference.Step < 0.05/8 || !(out.Change > 1e-5) || !(out.Present.Bound > out.Present.Error) || out.Best != nil && out.Best.Bound <= 1e-5 {
		t.Errorf("%v, %+v", err, out)
	}
}

// A search ends, with what is known, where a subsystem does not return from a long step.
func TestSearchStuck(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := searching(t, fixed("explicit", "0", 0.05), func(s master.Subsystem) master.Subsystem { return &stuck{s, 0.06, cancel} })
	o.Limits = true
	out, err := o.Run(ctx)
	if err != nil || !errors.Is(out.Err, measure.ErrStuck) || !errors.Is(out.Err, context.Canceled) || math.IsNaN(out.Present.Error) {
		t.Fatalf("%v, %+v", err, out)
	}
	if first := out.Lines[0].Trials[0]; !errors.Is(first.Err, measure.ErrStuck) || first.Usable || first.Step < 0.06 {
		t.Errorf("%+v", first)
	}
}

// stuck does not return from steps that are longer than a limit in s.
type stuck struct {
	master.Subsystem
	limit float64
	tell  func()
}

func (s *stuck) Unwrap() master.Subsystem { return s.Subsystem }

func (s *stuck) Step(ctx context.Context, t, h float64) (float64, error) {
	if h > s.limit {
		s.tell()
		select {}
	}
	return s.Subsystem.Step(ctx, t, h)
}
