package master_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// deriving is a fake with directional derivatives.
type deriving struct {
	*fake
	slope func(u float64) float64
	asked int
	err   error
}

func (d *deriving) DirectionalDerivative(du, dy []float64) error {
	d.asked++
	dy[0] = d.slope(d.u[0]) * du[0]
	return d.err
}

// derivingPair is pair with derivatives of the first.
func derivingPair(f, slope func(u float64) float64) (*deriving, []master.Subsystem) {
	subs := pair(f)
	d := &deriving{fake: subs[0].(*fake), slope: slope}
	d.info.Caps.DirectionalDerivative = true
	subs[0] = d
	return d, subs
}

// Curvature, rounding and what moves nothing are no lies.
func TestInitRightDerivatives(t *testing.T) {
	for name, c := range map[string]struct {
		f, slope func(u float64) float64
		start    float64
	}{
		"curved":  {func(u float64) float64 { return 3 + math.Sin(300*u) }, func(u float64) float64 { return 300 * math.Cos(300*u) }, 3},
		"noisy":   {func(u float64) float64 { return 3 - u*u + 1e-9*math.Sin(1e12*u) }, func(u float64) float64 { return -2 * u }, 1},
		"nothing": {func(u float64) float64 { return 3 - 1e-9*u }, func(float64) float64 { return 0 }, 1},
	} {
		_, subs := derivingPair(c.f, c.slope)
		for _, s := range subs {
			s.Info().StartIn = []float64{c.start}
		}
		r, err := begun(t, system(t, subs, ring...))
		if err != nil && name != "noisy" { // whose loop has no exact solution
			t.Errorf("%s: %v", name, err)
		}
		if res, _ := r.Close(); len(res.Warnings) > 0 {
			t.Errorf("%s: %q", name, res.Warnings)
		}
	}
}

// What moves by itself, by noise, or with an input that it names, denies nothing.
func TestInitNoLeaks(t *testing.T) {
	calls := 0.0
	for name, eval := range map[string]func(u, y []float64){
		"counts":  func(u, y []float64) { calls++; y[0] = calls },
		"settles": func(u, y []float64) { calls++; y[0] = min(calls, 2) },
		"noise":   func(u, y []float64) { y[0] = 3 + 1e-9*u[0] },
		"other":   func(u, y []float64) { y[0] = u[1] },
	} {
		calls = 0
		a, c := newFake("a", 2, 1), newFake("c", 0, 2)
		a.info.Init.On = [][]int{{1}}
		a.eval = eval
		c.eval = func(u, y []float64) { y[0], y[1] = 5, 7 }
		r := initialized(t, system(t, []master.Subsystem{a, c}, wire("c.y1", "a.u1"), wire("c.y2", "a.u2")))
		if res := end(t, r); len(res.Warnings) > 0 {
			t.Errorf("%s: %q", name, res.Warnings)
		}
	}
}

// leaky is a fake that finds dependencies which it denies.
type leaky struct {
	saved
	ins [][]int
}

func (l *leaky) VerifyFeedthrough(_ context.Context, _ master.Experiment, _ float64, ins []int) ([]master.Leak, error) {
	l.ins = append(l.ins, slices.Clone(ins))
	return []master.Leak{{Slope: 2}}, nil
}

// A dependency that was found within a step closes loops; only subsystems that the run takes back
// are tested, for the inputs of which their description denies one.
func TestStepLeaks(t *testing.T) {
	for _, c := range []struct{ shorten, declared, tested bool }{{false, false, false}, {false, true, false}, {true, true, false}, {true, false, true}} {
		a, b := &leaky{saved: newSaved("a", 2, 1)}, newSaved("b", 1, 1)
		b.depends()
		if c.declared {
			a.depends()
		}
		o := master.Options{Stop: 1, Step: 0.1}
		if c.shorten {
			o.Discard = master.ShortenOnDiscard
		}
		res := run(t, newRun(t, system(t, []master.Subsystem{a, b}, ring...), o))
		if (len(res.Warnings) > 0) != c.tested || c.tested && (len(a.ins) != 1 || !slices.Equal(a.ins[0], []int{0})) {
			t.Errorf("%+v: tested for %v, %q", c, a.ins, res.Warnings)
		}
		looped := slices.ContainsFunc(res.Loops, func(l master.Loop) bool { return !l.Initialization && slices.Contains(l.Variables, "a.y1") })
		if looped != (c.tested || c.declared) {
			t.Errorf("%+v: loops %+v", c, res.Loops)
		}
	}
}
