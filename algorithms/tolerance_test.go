package algorithms

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The absolute tolerance of a variable without nominal value follows the largest
// magnitude at accepted points, and is none of the user's or the description's.
func TestScales(t *testing.T) {
	part := func(name string) master.Subsystem {
		unit := [][]float64{{1, 0}, {0, 1}}
		return mastertest.NewLinear(name, mastertest.Matrices{A: unit, B: unit, C: unit}, []float64{0, 0})
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{part("mass1"), part("mass2")}, []master.Connection{
		{From: at("mass2", "y1"), To: at("mass1", "u1")}, {From: at("mass2", "y2"), To: at("mass1", "u2")},
		{From: at("mass1", "y1"), To: at("mass2", "u1")}, {From: at("mass1", "y2"), To: at("mass2", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	tol := tolerances{atol: []Tolerance{{"mass2.y1", 1e-3}}}
	if err := tol.init(sys); err != nil {
		t.Fatal(err)
	}
	y := []float64{1e6, -0.5, 1e6, 3}
	w := []float64{1e6, 3, 1e6, -0.5} // mass1 has the outputs of mass2, mass2 those of mass1
	tol.learn(w, y)
	tol.learn(make([]float64, 4), make([]float64, 4)) // what was large stays so
	for k, want := range []float64{1, 1e-6, 1e-3, 3e-6} {
		if !near(tol.outAbs[k]/want, 1, 1e-12) {
			t.Errorf("output %d: %g, want %g", k, tol.outAbs[k], want)
		}
	}
	for k, want := range []float64{1e-3, 3e-6, 1, 1e-6} {
		if !near(tol.inAbs[k]/want, 1, 1e-12) {
			t.Errorf("input %d: %g, want %g", k, tol.inAbs[k], want)
		}
	}
}
