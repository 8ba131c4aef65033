package master_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// measured makes runs in real time until what they measured is as it should be.
// What else the machine does may spoil one, and it fails the test only if it spoils all.
func measured(t *testing.T, run func() error) {
	t.Helper()
	var err error
	for range 30 {
		if err = run(); err == nil {
			return
		}
	}
	t.Error(err)
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
	}
	measured(t, func() error {
		result, _, err := inRealtime(t, master.Options{Stop: 0.1, Step: 1e-3, Realtime: &master.Realtime{}}, nil)
		if err == nil && result.MasterSeconds > 0.05 {
			err = fmt.Errorf("waiting counts as work: %g s", result.MasterSeconds)
		}
		return err
	})
}

// After a step that takes fifteen slots, each policy does what it says.
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
	measured(t, func() error {
		if at := result.Realtime.WorstAt; at < 0.059 || at > 0.101 {
			result, _, err = run(master.CatchUp)
			return errors.Join(err, fmt.Errorf("the worst was at %g", at))
		}
		return nil
	})
	result, took, err = run(master.SkipSlots)
	if err != nil || result.Realtime.Overruns < 1 || result.Realtime.Skipped < 14 || took < 24*slot {
		t.Errorf("skip: %v after %v: %+v", err, took, result.Realtime)
	}
	result, _, err = run(master.StopOnOverrun)
	if !errors.Is(err, master.ErrOverrun) || result.Status != master.Failed || result.Accepted > 3 || !strings.Contains(err.Error(), "0.06") && result.Accepted == 3 {
		t.Errorf("stop: %v: %+v", err, result)
	}
}

// Steps a little longer than a slot wait for the one after it: that is no work.
func TestSkipWaits(t *testing.T) {
	const slot = 20 * time.Millisecond
	slow := map[int]time.Duration{}
	for i := range 8 {
		slow[i] = slot + slot/10
	}
	measured(t, func() error {
		result, _, err := inRealtime(t, master.Options{Stop: 0.12, Step: slot.Seconds(), Realtime: &master.Realtime{Overrun: master.SkipSlots}}, slow)
		if err == nil && (result.Realtime.Waited <= 0 || result.MasterSeconds > result.WallSeconds-result.Realtime.Waited) {
			err = fmt.Errorf("waiting counts as work: %g s of %g s, %g s waited", result.MasterSeconds, result.WallSeconds, result.Realtime.Waited)
		}
		return err
	})
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
	const pause = 0.5
	measured(t, func() error {
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
				time.Sleep(time.Duration(pause * float64(time.Second)))
				r.Resync()
			}
		}
		result, err := r.Close()
		if err == nil && result.Realtime.Lateness.Worst >= pause {
			err = fmt.Errorf("%+v", result.Realtime)
		}
		return err
	})
}

// collection gives the settings of the garbage collector.
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
	start := func(r *master.Run) {
		t.Helper()
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end := func(r *master.Run) { _, _ = r.Close() }
	for _, firstEndsFirst := range []bool{true, false} {
		first, second := made(master.Realtime{}, nil), made(master.Realtime{}, nil)
		start(first)
		start(second)
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
	start(r)
	if _, err := r.Step(t.Context()); err == nil {
		t.Error("the panic is no error")
	}
	end(r)
	restored("a panic")
	r = made(master.Realtime{Priority: 99}, nil) // with the right to it or without
	_ = r.Start(t.Context())
	end(r)
	restored("a priority")
	first, refused := made(master.Realtime{}, nil), master.Options{Stop: 1e-3, Step: 1e-3, Realtime: &master.Realtime{}}
	start(first)
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

// The time that a run in real time took holds what it waited: it is no shorter than the
// clock was to go on.
func TestRealtimeTakesItsTime(t *testing.T) {
	result, _, err := inRealtime(t, master.Options{Stop: 0.2, Step: 0.01, Realtime: &master.Realtime{Factor: 2}}, nil)
	if err != nil || result.WallSeconds < 0.1 || result.Realtime.Waited > result.WallSeconds || result.MasterSeconds > result.WallSeconds-result.Realtime.Waited {
		t.Errorf("%v: %g s, of which the run waited %g and worked %g", err, result.WallSeconds, result.Realtime.Waited, result.MasterSeconds)
	}
}

// One missed deadline in a hundred is a warning.
func TestMissedDeadlines(t *testing.T) {
	slow := map[int]time.Duration{}
	for i := range 10 {
		slow[i] = 4 * time.Millisecond
	}
	result, _, err := inRealtime(t, master.Options{Stop: 0.02, Step: 0.002, Realtime: &master.Realtime{}}, slow)
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
