package master_test

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// wrapped is a subsystem behind a decorator.
type wrapped struct{ master.Subsystem }

func (w *wrapped) Unwrap() master.Subsystem { return w.Subsystem }

// counted records attempts.
type counted struct{ n int }

func (c *counted) RecordAttempt(_, _ float64, _ master.Trial, _ bool, _ error) error {
	c.n++
	return nil
}

// nothing is a recorder without a state, of which all values are alike.
type nothing struct{}

func (nothing) Begin(*master.System, []master.Port) error { return nil }
func (nothing) Record(*master.Point) error                { return nil }
func (nothing) Flush() error                              { return nil }
func (nothing) End(master.Result) error                   { return nil }

// coupledPair is a system of the two subsystems, each behind what the functions make of it.
func coupledPair(t testing.TB, subs []*mastertest.Linear, wrap func(master.Subsystem) master.Subsystem) *master.System {
	return system(t, []master.Subsystem{wrap(subs[0]), wrap(subs[1])}, mastertest.OscillatorConnections()...)
}

func plain(s master.Subsystem) master.Subsystem { return s }

// kit is all that a run is made of.
type kit struct {
	sys *master.System
	alg master.Algorithm
	opt master.Options
}

func (k *kit) run(t testing.TB) *master.Run {
	t.Helper()
	return made(t, k.sys, k.alg, k.opt)
}

func newKit(t testing.TB) *kit {
	return &kit{coupledPair(t, mastertest.Oscillator(), plain), explicit(t, algorithms.Config{Order: 2}),
		master.Options{Stop: 0.5, Step: 0.01, Recorders: []master.Recorder{&everything{}}}}
}

// Two runs at once share nothing that has a state: the second one does not start, says
// what is shared and what to do, and the first one computes what it does alone.
func TestInUse(t *testing.T) {
	undisturbed := newKit(t)
	want := timeless(run(t, undisturbed.run(t)))
	for name, test := range map[string]struct {
		share func(first, second *kit)
		says  string
	}{
		"a system":   {func(a, b *kit) { b.sys = a.sys }, "the system; both runs"},
		"subsystems": {func(a, b *kit) { b.sys = system(t, a.sys.Subsystems, mastertest.OscillatorConnections()...) }, "the subsystem first; both runs"},
		"a wrapped subsystem": {func(a, b *kit) {
			b.sys = coupledPair(t, []*mastertest.Linear{a.sys.Subsystems[0].(*mastertest.Linear), mastertest.Oscillator()[1]}, func(s master.Subsystem) master.Subsystem { return &wrapped{s} })
		}, "the subsystem first;"},
		"an algorithm": {func(a, b *kit) { b.alg = a.alg }, "the algorithm (*algorithms.Coupling)"},
		"a recorder":   {func(a, b *kit) { b.opt.Recorders = a.opt.Recorders }, "the recorder *master_test.everything"},
		"a recorder of attempts": {func(a, b *kit) {
			c := &counted{}
			a.opt.Attempts, b.opt.Attempts = c, c
		}, "the recorder of attempts *master_test.counted"},
		"a hook": {func(a, b *kit) {
			var v *master.Variable
			h := &hook{}
			h.bind = func(r *master.Run) (err error) { v, err = r.Variable("first.y1"); return err }
			h.at = func(*master.Run) error {
				_, err := v.Value()
				return err
			}
			a.opt.Hooks, b.opt.Hooks = []master.Hook{h}, []master.Hook{h}
		}, "the hook *master_test.hook"},
	} {
		for _, early := range []bool{true, false} { // the second run is made before the first one starts
			a, b := newKit(t), newKit(t)
			test.share(a, b)
			first := a.run(t)
			var second *master.Run
			if early {
				second = b.run(t)
			}
			start(t, first)
			for range 10 {
				step(t, first)
			}
			var err error
			if second == nil {
				second, err = master.NewRun(b.sys, b.alg, b.opt)
			}
			if second != nil {
				var result master.Result
				result, err = second.Run(t.Context())
				if result.Status != master.Failed || result.Accepted != 0 {
					t.Errorf("%s: %+v", name, result)
				}
			}
			if contains(t, name, err, test.says, "or close the other run first"); !errors.Is(err, master.ErrInUse) {
				t.Errorf("%s: %v", name, err)
			}
			got := toTheEnd(t, first)
			if !reflect.DeepEqual(timeless(got), want) || !reflect.DeepEqual(a.opt.Recorders[0].(*everything).rows, undisturbed.opt.Recorders[0].(*everything).rows) {
				t.Errorf("%s: the first run is not what it is alone", name)
			}
			// The mark has gone.
			b.opt.Recorders = []master.Recorder{&everything{}}
			if again, err := b.run(t).Run(t.Context()); err != nil || again.Status != master.Complete {
				t.Errorf("%s: after the first: %v", name, err)
			}
		}
	}
}

// Runs in many goroutines share a system, or an algorithm, or neither: each computes what it
// does alone, or is refused. go test -race looks on.
func TestInUseConcurrently(t *testing.T) {
	alone := newKit(t)
	run(t, alone.run(t))
	want := alone.opt.Recorders[0].(*everything).rows
	sys, alg := newKit(t).sys, newKit(t).alg
	var wg sync.WaitGroup
	var mu sync.Mutex
	done, refused := 0, 0
	for i := range 24 {
		k := newKit(t)
		switch i % 3 {
		case 0:
			k.sys = sys
		case 1:
			k.alg = alg
		}
		wg.Go(func() {
			r, err := master.NewRun(k.sys, k.alg, k.opt)
			if err == nil {
				_, err = r.Run(t.Context())
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, master.ErrInUse) && i%3 != 2:
				refused++
			case err != nil:
				t.Error(err)
			case !reflect.DeepEqual(k.opt.Recorders[0].(*everything).rows, want):
				t.Error("a run gave other values than alone")
			default:
				done++
			}
		})
	}
	wg.Wait()
	if done < 8 || done+refused != 24 {
		t.Errorf("%d runs were done, %d refused", done, refused)
	}
}

// A run that is made and given up marks nothing, and closing it ends no subsystem that
// another one steps.
func TestInUseNeverStarted(t *testing.T) {
	f := newFake("a", 0, 1)
	sys := system(t, []master.Subsystem{f})
	first := newRun(t, sys, master.Options{Stop: 1, Step: 0.1})
	idle := newRun(t, sys, master.Options{Stop: 1, Step: 0.1})
	start(t, first)
	if _, err := idle.Close(); err != nil || f.closed != 0 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
	if _, err := first.Close(); err != nil || f.closed != 1 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
}

// A run that is made and given up, without a close, is garbage with all its parts.
func TestRunGivenUp(t *testing.T) {
	given := func() (run weak.Pointer[master.Run], sub weak.Pointer[fake], h weak.Pointer[hook]) {
		f, k := newFake("a", 0, 1), &hook{}
		r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{k}})
		return weak.Make(r), weak.Make(f), weak.Make(k)
	}
	run, sub, h := given()
	runtime.GC()
	if run.Value() != nil || sub.Value() != nil || h.Value() != nil {
		t.Errorf("the run %v, its subsystem %v or its hook %v is held", run.Value() != nil, sub.Value() != nil, h.Value() != nil)
	}
}

// What has no state may be shared.
func TestStatelessPartsAreShared(t *testing.T) {
	a, b := newKit(t), newKit(t)
	a.opt.Recorders, b.opt.Recorders = []master.Recorder{nothing{}, &nothing{}}, []master.Recorder{nothing{}, &nothing{}}
	first := a.run(t)
	start(t, first)
	run(t, b.run(t))
	end(t, first)
}

// twin is a second name for a subsystem.
type twin struct {
	wrapped
	info master.Info
}

func (w *twin) Info() *master.Info { return &w.info }

// One object under two names would be stepped twice.
func TestOneSubsystemTwice(t *testing.T) {
	f := newFake("a", 0, 1)
	second := &twin{wrapped{f}, f.info}
	second.info.Name = "b"
	_, err := newRun(t, system(t, []master.Subsystem{f, second}), master.Options{Stop: 1, Step: 0.1}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the subsystems a and b of the system are the same object") {
		t.Error(err)
	}
}
