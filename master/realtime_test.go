package master_test

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macrostep/macrostep/master"
)

// simulated runs a subsystem whose steps, counted from 1, take the times in slow, on a clock
// that only waiting moves. act is called after each step.
func simulated(t *testing.T, o master.Options, slow map[int]time.Duration, act func(*master.Run)) (result master.Result, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a", 0, 1)
		n := 0
		f.step = func(t, H float64) (float64, error) {
			n++
			time.Sleep(slow[n])
			return t + H, nil
		}
		r := newRun(t, system(t, []master.Subsystem{f}), o)
		r.Simulate()
		begin := time.Now()
		if err = r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for more := true; more && err == nil; {
			if more, err = r.Step(t.Context()); act != nil {
				act(r)
			}
		}
		var closing error
		if result, closing = r.Close(); err == nil {
			err = closing
		}
		took = time.Since(begin)
	})
	return result, took, err
}

// roughly reports whether two times in seconds agree to the nanoseconds of a clock.
func roughly(a, b float64) bool { return math.Abs(a-b) < 1e-8 }

// On a clock that only waiting moves a run takes exactly the time that it simulates, over the factor,
// all of it waiting and no work.
func TestRealtimeTakesItsTime(t *testing.T) {
	for _, factor := range []float64{0, 1, 2} {
		result, took, err := simulated(t, master.Options{Stop: 0.2, Step: 1e-3, Realtime: &master.Realtime{Factor: factor}}, nil, nil)
		want := 0.2 / max(factor, 1)
		timing := result.Realtime
		if err != nil || !roughly(took.Seconds(), want) || !roughly(result.WallSeconds, want) || !roughly(timing.Waited, want) || result.MasterSeconds > 1e-8 {
			t.Errorf("factor %g: %v after %v: %g s, of which the run waited %g and worked %g",
				factor, err, took, result.WallSeconds, timing.Waited, result.MasterSeconds)
		}
		if timing.Deadlines != 200 || timing.Overruns != 0 || timing.Lateness.Worst > 1e-8 {
			t.Errorf("factor %g: %+v", factor, timing)
		}
	}
}

// On the clock of the machine it takes that time at least, and records how late each deadline was met.
func TestRealtime(t *testing.T) {
	r := newRun(t, system(t, []master.Subsystem{newFake("a", 0, 1)}), master.Options{Stop: 0.1, Step: 1e-3, Realtime: &master.Realtime{}})
	begin := time.Now()
	result := run(t, r)
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	timing, count := result.Realtime, 0
	for _, b := range timing.Lateness.Histogram {
		count += b.Count
	}
	if l := timing.Lateness; timing.Deadlines != 100 || count != 100 || l.P50 > l.P99 || l.P999 > l.Worst || l.Worst <= 0 {
		t.Errorf("%+v", timing)
	}
	if timing.Waited > result.WallSeconds || result.MasterSeconds > result.WallSeconds-timing.Waited {
		t.Errorf("%g s, of which the run waited %g and worked %g", result.WallSeconds, timing.Waited, result.MasterSeconds)
	}
}

// After a step that takes fifteen slots, each policy does what it says.
func TestOverrun(t *testing.T) {
	const slot = 20 * time.Millisecond
	for _, c := range []struct {
		policy                   master.OverrunPolicy
		took                     time.Duration
		steps, overruns, skipped int
	}{{master.CatchUp, 17 * slot, 10, 8, 0}, {master.SkipSlots, 24 * slot, 10, 1, 14}, {master.StopOnOverrun, 17 * slot, 3, 1, 0}} {
		o := master.Options{Stop: 0.2, Step: slot.Seconds(), Realtime: &master.Realtime{Overrun: c.policy}}
		result, took, err := simulated(t, o, map[int]time.Duration{3: 15 * slot}, nil)
		timing := result.Realtime
		if took != c.took || result.Accepted != c.steps || timing.Overruns != c.overruns || timing.Skipped != c.skipped ||
			!roughly(timing.Lateness.Worst, 0.28) || timing.WorstAt != 0.06 {
			t.Errorf("%s: after %v %d steps, %+v", c.policy, took, result.Accepted, timing)
		}
		if stops := c.policy == master.StopOnOverrun; errors.Is(err, master.ErrOverrun) != stops || stops && !strings.Contains(err.Error(), "0.06") || !stops && err != nil {
			t.Errorf("%s: %v, %s", c.policy, err, result.Status)
		}
	}
}

// A step a little longer than a slot waits for the next slot, and this wait is no work.
func TestSkipWaits(t *testing.T) {
	const slot = 20 * time.Millisecond
	slow := map[int]time.Duration{}
	for i := range 8 {
		slow[i] = slot + slot/10
	}
	result, took, err := simulated(t, master.Options{Stop: 0.12, Step: slot.Seconds(), Realtime: &master.Realtime{Overrun: master.SkipSlots}}, slow, nil)
	// Six steps take two slots each, of which they wait nine tenths of one.
	if err != nil || took != 12*slot || !roughly(result.WallSeconds, 0.24) || !roughly(result.Realtime.Waited, 0.108) || result.MasterSeconds > 1e-8 {
		t.Errorf("%v after %v: %g s, of which the run waited %g and worked %g", err, took, result.WallSeconds, result.Realtime.Waited, result.MasterSeconds)
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
		sys, _ := oscillator(t)
		_, err := master.NewRun(sys, preset(t, test.preset, nil), master.Options{Stop: 1, Step: test.step, Realtime: &test.rt})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %v", test.preset, test.rt, err)
		}
	}
}

// A long wait ends with the context.
func TestRealtimeCancelled(t *testing.T) {
	f := newFake("a", 0, 1)
	r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 2e5, Step: 1e5, Realtime: &master.Realtime{}}) // a day
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	result, err := r.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || result.Accepted > 1 {
		t.Errorf("%v after %d steps", err, result.Accepted)
	}
}

// After a pause nothing has to be caught up.
func TestResync(t *testing.T) {
	const pause = 500 * time.Millisecond
	for _, resync := range []bool{true, false} {
		result, took, err := simulated(t, master.Options{Stop: 0.2, Step: 0.02, Realtime: &master.Realtime{}}, nil, func(r *master.Run) {
			if r.Steps() == 5 {
				time.Sleep(pause)
				if resync {
					r.Resync()
				}
			}
		})
		// Without Resync the remaining steps are late and follow at once.
		worst, want := 0.0, 200*time.Millisecond+pause
		if !resync {
			worst, want = 0.48, 100*time.Millisecond+pause
		}
		if err != nil || took != want || !roughly(result.Realtime.Lateness.Worst, worst) {
			t.Errorf("resync %v: %v after %v: %+v", resync, err, took, result.Realtime)
		}
	}
}

// collection returns the settings of the garbage collector.
func collection() (percent int, limit int64) {
	percent = debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

// The collector is as it was once the last run in real time is closed, however they end and
// overlap.
func TestRealtimeCollector(t *testing.T) {
	percent, limit := collection()
	restored := func(how string) {
		t.Helper()
		if p, l := collection(); p != percent || l != limit {
			t.Fatalf("%s: %d %% and a limit of %d, not %d %% and %d", how, p, l, percent, limit)
		}
	}
	made := func(rt master.Realtime, step func(t, H float64) (float64, error)) *master.Run {
		f := newFake("a", 0, 1)
		f.step = step
		return newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1e-3, Step: 1e-3, Realtime: &rt})
	}
	end := func(r *master.Run) { _, _ = r.Close() }
	for _, firstEndsFirst := range []bool{true, false} {
		first, second := made(master.Realtime{}, nil), made(master.Realtime{}, nil)
		start(t, first)
		start(t, second)
		if !firstEndsFirst {
			first, second = second, first
		}
		end(first)
		if p, _ := collection(); p != -1 {
			t.Errorf("the collector is back at %d %% before the second run has ended", p)
		}
		end(second)
		restored("two at once")
	}
	r := made(master.Realtime{}, func(float64, float64) (float64, error) { panic("oops") })
	start(t, r)
	if _, err := r.Step(t.Context()); err == nil {
		t.Error("the panic is no error")
	}
	end(r)
	restored("a panic")
	r = made(master.Realtime{Priority: 99}, nil) // with the right to it or without
	_ = r.Start(t.Context())
	end(r)
	restored("a priority")
	first, refused := made(master.Realtime{}, nil), master.Options{Stop: 1e-3, Step: 1e-3, Realtime: &master.Realtime{}, Strict: true}
	start(t, first)
	f := newFake("a", 0, 1)
	f.y[0] = math.NaN()
	r = newRun(t, system(t, []master.Subsystem{f}), refused)
	if err := r.Start(t.Context()); err == nil {
		t.Error("NaN at the start is no error")
	}
	end(r)
	end(first)
	restored("one that does not start")
}

// One missed deadline in a hundred is a warning.
func TestMissedDeadlines(t *testing.T) {
	slow := map[int]time.Duration{}
	for i := range 10 {
		slow[i] = 4 * time.Millisecond
	}
	result, _, err := simulated(t, master.Options{Stop: 0.02, Step: 0.002, Realtime: &master.Realtime{}}, slow, nil)
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "deadlines were missed (100 %)") {
		t.Errorf("%v: %q", err, result.Warnings)
	}
	for missed, want := range map[int]string{9: "", 24: "24 of 1000 deadlines were missed (2.4 %)"} {
		timing := master.Timing{Deadlines: 1000, Overruns: missed}
		if text := timing.Missed(); text != want && (want == "" || !strings.HasPrefix(text, want)) {
			t.Errorf("%d missed: %q", missed, text)
		}
	}
}
