package algorithms_test

import (
	"context"
	"math"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// eulerMass is one side of rodriguez's double linear oscillator: a mass on a
// spring, integrated by one step of symplectic Euler. The one with the coupling
// spring (kc > 0) takes position and velocity of the other and gives the force,
// computed with the input at the start of its step; the other takes the force.
type eulerMass struct {
	info        master.Info
	m, k, c, kc float64
	x, v, f     float64
	u           [2]float64
}

func newEulerMass(name string, k, kc, v float64) *eulerMass {
	e := &eulerMass{m: 1, k: k, kc: kc, v: v, info: master.Info{Name: name, Caps: master.Caps{VariableStep: true, InputDerivatives: true},
		Out: []master.Port{{Name: "x"}, {Name: "v"}}}}
	if kc > 0 {
		e.info.In = []master.Port{{Name: "x"}, {Name: "v"}}
		e.info.Out = append(e.info.Out, master.Port{Name: "f"})
		e.info.Step = master.Feedthrough{On: [][]int{nil, nil, {0}}}
	} else {
		e.info.In = []master.Port{{Name: "f"}}
	}
	return e
}

func (e *eulerMass) Info() *master.Info { return &e.info }

func (e *eulerMass) SetInputs(u []float64) error { copy(e.u[:], u); return nil }

func (e *eulerMass) Outputs(y []float64) error { copy(y, []float64{e.x, e.v, e.f}); return nil }

// Its one stage is at the start of the step, where derivatives do not show.
func (e *eulerMass) PrepareInputDerivatives(int) error        { return nil }
func (e *eulerMass) SetInputDerivatives(int, []float64) error { return nil }

func (e *eulerMass) Step(_ context.Context, t, H float64) (float64, error) {
	force := e.u[0]
	if e.kc > 0 {
		force = -e.kc * (e.x - e.u[0])
	}
	e.v += H * (force - e.k*e.x - e.c*e.v) / e.m
	e.x += H * e.v
	if e.kc > 0 {
		e.f = e.kc * (e.x - e.u[0])
	}
	return t + H, nil
}

// doubleOscillator has the parameters of rodriguez; its mechanical
// energy is 10 kJ at the start.
func doubleOscillator(t testing.TB) *master.System {
	t.Helper()
	return system(t, []master.Subsystem{newEulerMass("left", 10, 100, 100), newEulerMass("right", 1000, 0, -100)},
		"left.f right.f", "right.x left.x", "right.v left.v")
}

// lastEnergy returns the mean mechanical energy over the last second of 10 s in
// steps of 1 ms: symplectic Euler makes it oscillate.
func lastEnergy(t testing.TB, c Config) float64 {
	t.Helper()
	c.Bonds = []Bond{{Name: "spring", Pairs: []Pair{{Effort: "left.f", Flow: "right.v"}}}}
	_, memory := simulate(t, doubleOscillator(t), newExplicit(t, c), master.Options{Stop: 10, Step: 1e-3})
	sum := 0.0
	const last = 1000
	for _, y := range memory.Y[len(memory.Y)-last:] {
		x1, v1, x2, v2 := y[0], y[1], y[3], y[4]
		sum += (v1*v1 + v2*v2 + 10*x1*x1 + 100*(x1-x2)*(x1-x2) + 1000*x2*x2) / 2
	}
	return sum / last
}

func corrected(mu float64) Config {
	return Config{Correct: EnergyCorrection, Energy: Energy{Mu: mu}}
}

// The μ that keeps the energy, by bisection, is that of (20) and (21).
func testSpuriousShare(t *testing.T) {
	const E0 = 1e4
	for _, test := range []struct {
		name  string
		rates []Rate
		order int
		want  float64
	}{
		{"single rate", nil, 0, 0.5},
		{"R = 2, hold", []Rate{{"right", 2, 1}}, 0, 0.625},
		{"R = 5, hold", []Rate{{"right", 5, 1}}, 0, 0.7},
		{"R = 10, hold", []Rate{{"right", 10, 1}}, 0, 0.725},
		{"R = 10, polynomial", []Rate{{"right", 10, 1}}, 1, 0.5},
		{"R = 1/2, hold", []Rate{{"left", 2, 1}}, 0, 0.5},
		{"R = 1/10, hold", []Rate{{"left", 10, 1}}, 0, 0.5},
		{"R = 1/2, polynomial", []Rate{{"left", 2, 1}}, 1, 0.25},
		{"R = 1/5, polynomial", []Rate{{"left", 5, 1}}, 1, 0.1},
		{"R = 1/10, polynomial", []Rate{{"left", 10, 1}}, 1, 0.05},
	} {
		at := func(mu float64) float64 {
			c := corrected(mu)
			c.Rates, c.Order = test.rates, test.order
			return lastEnergy(t, c)
		}
		lo, hi := 0.0, 2*test.want
		for range 9 {
			if mid := (lo + hi) / 2; at(mid) > E0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		got := (lo + hi) / 2
		t.Logf("%s: μ = %.4f, by the formula %.4f", test.name, got, test.want)
		if math.Abs(got-test.want) > 0.03*test.want {
			t.Errorf("%s: μ = %g keeps the energy, the formula gives %g", test.name, got, test.want)
		}
	}
}
