package master_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// inRealtime runs a subsystem that takes some time for the steps that are told.
func inRealtime(t *testing.T, o master.Options, slow map[int]time.Duration) (master.Result, time.Duration, error) {
	t.Helper()
	f := newFake("a", 0, 1)
	n := 0
	f.step = func(t, H float64) (float64, error) {
		n++
		time.Sleep(slow[n])
		return t + H, nil
	}
	r := newRun(t, system(t, []master.Subsystem{f}), o)
	begin := time.Now()
	result, err := r.Run(t.Context())
	return result, time.Since(begin), err
}

// A run in real time takes the time that it simulates, over the factor, and says how late it was.
func TestRealtime(t *testing.T) {
	for _, factor := range []float64{0, 1, 4} {
		percent := debug.SetGCPercent(77)
		result, took, err := inRealtime(t, master.Options{Stop: 0.2, Step: 1e-3, Realtime: &master.Realtime{Factor: factor}}, nil)
		if back := debug.SetGCPercent(percent); back != 77 {
			t.Errorf("the collector is left at %d", back)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := time.Duration(0.2 / max(factor, 1) * float64(time.Second))
		if took < want {
			t.Errorf("factor %g: it took %v, less than %v", factor, took, want)
		}
		timing := result.Realtime
		if timing.Deadlines != 200 || timing.Lateness.P50 > timing.Lateness.P99 || timing.Lateness.P999 > timing.Lateness.Worst || timing.Lateness.Worst <= 0 {
			t.Errorf("factor %g: %+v", factor, timing)
		}
		count := 0
		for _, b := range timing.Lateness.Histogram {
			count += b.Count
		}
		if count != 200 {
			t.Errorf("the histogram counts %d", count)
		}
		if result.MasterSeconds > want.Seconds()/2 && timing.Overruns == 0 {
			t.Errorf("waiting counts as work: %g s", result.MasterSeconds)
		}
	}
}

// Of a step that takes fifteen slots, each policy makes what it says. Whatever else the
// machine does is shorter.
func TestOverrun(t *testing.T) {
	const slot = 20 * time.Millisecond
	slow := map[int]time.Duration{3: 15 * slot}
	run := func(p master.OverrunPolicy) (master.Result, time.Duration, error) {
		return inRealtime(t, master.Options{Stop: 0.2, Step: slot.Seconds(), Realtime: &master.Realtime{Overrun: p}}, slow)
	}
	result, took, err := run(master.CatchUp)
	if err != nil || result.Realtime.Overruns < 8 || result.Realtime.Skipped != 0 || took < 17*slot || result.Realtime.Lateness.Worst < 0.27 {
		t.Errorf("catch up: %v after %v: %+v", err, took, result.Realtime)
	}
	if at := result.Realtime.WorstAt; at < 0.059 || at > 0.101 {
		t.Errorf("the worst was at %g", at)
	}
	result, took, err = run(master.SkipSlots)
	if err != nil || result.Realtime.Overruns < 1 || result.Realtime.Skipped < 14 || result.Realtime.Skipped > 50 || took < 24*slot {
		t.Errorf("skip: %v after %v: %+v", err, took, result.Realtime)
	}
	if result.WallSeconds > took.Seconds()-5*slot.Seconds() { // of the slots after the slow one
		t.Errorf("skip: waiting counts as work: %g s of %v", result.WallSeconds, took)
	}
	result, _, err = run(master.StopOnOverrun)
	if !errors.Is(err, master.ErrOverrun) || result.Status != master.Failed || result.Accepted > 3 || !strings.Contains(err.Error(), "0.06") && result.Accepted == 3 {
		t.Errorf("stop: %v: %+v", err, result)
	}
}

// What has no bound is refused unless asked for.
func TestRealtimeRefuses(t *testing.T) {
	for _, test := range []struct {
		preset string
		rt     master.Realtime
		step   float64
		want   string
	}{
		{"implicit", master.Realtime{}, 1e-3, "iterates"}, {"im-slocal", master.Realtime{}, 1e-3, "repeats"},
		{"predictor-corrector", master.Realtime{}, 1e-3, "size"}, {"implicit", master.Realtime{Unbounded: true}, 1e-3, ""},
		{"explicit", master.Realtime{}, 1e-3, ""}, {"explicit", master.Realtime{Factor: -1}, 1e-3, "factor"},
		{"explicit", master.Realtime{Factor: 1e6}, 1e-3, "microsecond"}, {"explicit", master.Realtime{Factor: 1e-18}, 1e-3, "real time"},
		{"explicit", master.Realtime{Priority: 100}, 1e-3, "priority"}, {"explicit", master.Realtime{Overrun: 9}, 1e-3, "policy"},
	} {
		c, err := algorithms.New(test.preset, nil)
		if err != nil {
			t.Fatal(err)
		}
		linear := mastertest.Oscillator()
		sys := system(t, []master.Subsystem{linear[0], linear[1]}, mastertest.OscillatorConnections()...)
		_, err = master.NewRun(sys, c.Algorithm, master.Options{Stop: 1, Step: test.step, Realtime: &test.rt})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %v", test.preset, test.rt, err)
		}
	}
}

// A long wait ends with the context.
func TestRealtimeCancelled(t *testing.T) {
	f := newFake("a", 0, 1)
	r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 100, Step: 50, Realtime: &master.Realtime{}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	result, err := r.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second || result.Accepted > 1 {
		t.Errorf("%v after %v and %d steps", err, time.Since(begin), result.Accepted)
	}
}

// After a pause nothing has to be caught up.
func TestResync(t *testing.T) {
	f := newFake("a", 0, 1)
	r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 0.2, Step: 0.02, Realtime: &master.Realtime{}})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.Steps() == 5 {
			time.Sleep(600 * time.Millisecond)
			r.Resync()
		}
	}
	result, err := r.Close()
	if err != nil || result.Realtime.Lateness.Worst > 0.4 {
		t.Errorf("%v: %+v", err, result.Realtime)
	}
}
