package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// One state that feeds a component without states: the coupled step is of rank 1, or 0.
func TestOneState(t *testing.T) {
	for _, rate := range []float64{-2, 0.5} {
		if rate > 0 && !long.On {
			continue
		}
		lag := mastertest.NewLinear("lag", mastertest.Matrices{A: [][]float64{{rate}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{1})
		gain := mastertest.NewLinear("gain", mastertest.Matrices{D: [][]float64{{0.25}}}, nil)
		at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
		sys, err := master.NewSystem([]master.Subsystem{lag, gain}, []master.Connection{
			{From: at("gain", "y1"), To: at("lag", "u1")}, {From: at("lag", "y1"), To: at("gain", "u1")},
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), sys, Options{Step: 0.01, Stop: 1, Order: 2, Error: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			if want := math.Exp((rate + 0.25) * 0.01); s.Why != "" || math.Abs(s.Now-want) > 1e-3 {
				t.Errorf("%s, order %d: radius %.6f, want %.6f; %s", s.Preset, s.Order, s.Now, want, s.Why)
			}
		}
	}
}
