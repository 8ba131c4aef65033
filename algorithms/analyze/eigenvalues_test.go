package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// One state that feeds a component without states: the coupled step is of rank 1, or 0.
func TestOneState(t *testing.T) {
	for _, rate := range []float64{-2, 0.5} {
		if rate > 0 && !long.On {
			continue
		}
		gain := mastertest.NewLinear("gain", mastertest.Matrices{D: [][]float64{{0.25}}}, nil)
		sys := analyzetest.Pair(t, analyzetest.Lag("lag", rate, 1, 1), gain)
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
