package measure_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/measure"
)

// plan returns the plan for a run of the oscillator of mastertest, or what wrap makes of its subsystems, to 10 s.
func plan(t *testing.T, s measure.Setting, wrap func(master.Subsystem) master.Subsystem) *measure.Plan {
	t.Helper()
	p := &measure.Plan{Setting: s, Samples: &measure.Samples{Stop: 10}, Reverts: true}
	p.Begin = func(ctx context.Context, s measure.Setting, rec master.Recorder, hooks ...master.Hook) (*master.Run, func() error, error) {
		var subs []master.Subsystem
		for _, l := range mastertest.Oscillator() {
			subs = append(subs, wrap(l))
		}
		sys, err := master.NewSystem(subs, mastertest.OscillatorConnections())
		if err != nil {
			return nil, nil, err
		}
		choice, err := algorithms.New(s.Preset, s.Params, algorithms.With{})
		if err != nil {
			return nil, nil, err
		}
		run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 10, Step: s.Step, Workers: 1, Recorders: []master.Recorder{rec}, Hooks: hooks})
		if err == nil {
			err = run.Start(ctx)
		}
		return run, func() error { return nil }, err
	}
	run, _, err := p.Begin(t.Context(), s, p.Samples)
	if err != nil {
		t.Fatal(err)
	}
	for {
		more, err := run.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

func plain(s master.Subsystem) master.Subsystem { return s }

func explicit(order string, H float64) measure.Setting {
	return measure.Setting{Preset: "explicit", Params: map[string]string{"order": order}, Step: H}
}

// The bar is within a factor of 2 of the difference from a run with far smaller steps, which has hardly an error.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		setting measure.Setting
		reverts bool
	}{
		{explicit("0", 0.05), true}, {explicit("0", 0.05), false}, {explicit("0", 0.5), true}, {explicit("1", 0.05), true},
		{explicit("2", 0.05), true}, {explicit("2", 0.05), false},
		{measure.Setting{Preset: "gauss-seidel", Params: map[string]string{"order": "0"}, Step: 0.05}, false},
		{measure.Setting{Preset: "implicit", Params: map[string]string{"order": "1"}, Step: 0.1}, true},
		{measure.Setting{Preset: "im-milne", Params: map[string]string{"control.rtol": "1e-3", "control.h-max": "auto", "order": "auto"}, Step: 0.1}, true},
	} {
		for _, serial := range []bool{false, true} {
			p := plan(t, c.setting, plain)
			p.Reverts, p.Serial = c.reverts, serial
			bar, err := p.Measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exact := plan(t, measure.Setting{Preset: "implicit", Params: map[string]string{"order": "2"}, Step: 1e-3}, plain).Samples
			fine := &measure.Samples{Stop: 10, At: func() []float64 { return p.Samples.T }}
			resample(t, fine, exact)
			want, _ := p.Samples.Worst(measure.Apart(p.Samples, fine, len(p.Samples.T)))
			if off := bar.Worst / want; !(off > 0.5 && off < 2) || bar.AtMost || bar.Undetermined || bar.Until != 10 {
				t.Errorf("%v: %.3g, want %.3g; at most %t, undetermined %t, until %g s, reference %v", c.setting, bar.Worst, want,
					bar.AtMost, bar.Undetermined, bar.Until, bar.Reference)
			}
		}
	}
}

// resample samples a run kept in memory at the times of another.
func resample(t *testing.T, s, from *measure.Samples) {
	t.Helper()
	sys, err := master.NewSystem([]master.Subsystem{mastertest.Oscillator()[0], mastertest.Oscillator()[1]}, mastertest.OscillatorConnections())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(sys, nil); err != nil {
		t.Fatal(err)
	}
	y := make([]float64, len(from.V))
	for i, at := range from.T {
		for k := range y {
			y[k] = from.V[k][i]
		}
		if err := s.Record(&master.Point{T: at, Y: y, DiscreteOut: make([]master.Values, 2), Watch: make([]master.Values, 2)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(master.Result{}); err != nil {
		t.Fatal(err)
	}
}

// drifting gives other outputs in each instance.
type drifting struct {
	master.Subsystem
	by float64
}

func (d *drifting) Unwrap() master.Subsystem { return d.Subsystem }

func (d *drifting) Outputs(y []float64) error {
	err := d.Subsystem.Outputs(y)
	y[0] += d.by
	return err
}

// A system that does not repeat itself has no bar.
func TestMeasureDiffers(t *testing.T) {
	n := 0
	p := plan(t, explicit("0", 0.1), func(s master.Subsystem) master.Subsystem {
		n++
		return &drifting{s, 1e-12 * float64(n)}
	})
	if _, err := p.Measure(t.Context()); !errors.Is(err, measure.ErrDiffers) || !strings.Contains(err.Error(), " at 0 s") {
		t.Error(err)
	}
}

// A bar may be measured for a part of the run, at the end of a budget or when it is interrupted.
func TestMeasureBudget(t *testing.T) {
	p := plan(t, explicit("0", 0.1), plain)
	p.Deadline = time.Now()
	if _, err := p.Measure(t.Context()); !errors.Is(err, measure.ErrBudget) {
		t.Error(err)
	}
	p.Deadline = time.Time{}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	p.Progress = func(text string) {
		if strings.HasSuffix(text, " 40 %") {
			cancel(enough)
		}
	}
	bar, err := p.Measure(ctx)
	if err != nil || math.Abs(bar.Until-4) > 0.11 || !(bar.Worst > 0.01) {
		t.Errorf("%+v, %v", bar, err)
	}
}

// If all references fail, the bar has the reason.
func TestMeasureFails(t *testing.T) {
	p := plan(t, explicit("0", 0.1), plain)
	begin := p.Begin
	p.Begin = func(ctx context.Context, s measure.Setting, rec master.Recorder, hooks ...master.Hook) (*master.Run, func() error, error) {
		if s.Step < 0.1 {
			return nil, nil, errors.New("no license")
		}
		return begin(ctx, s, rec)
	}
	bar, err := p.Measure(t.Context())
	if err != nil || bar.Err == nil || !strings.Contains(bar.Err.Error(), "no license") {
		t.Errorf("%+v, %v", bar, err)
	}
}
