package twin

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
)

// A model that grows by itself is rejected if its component does not grow.
func TestModelGrowsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		a, model float64 // of x' = a x + u
		refuted  bool
	}{
		"grows": {0.8, 0.8, false}, "at another rate": {0.79, 0.8, false}, "grows fast": {300, 300, false},
		"dies out": {-0.3, 0.8, true}, "stands": {0, 0.8, true}, "fast model": {-0.3, 300, true}, "stable": {-0.3, -2, false},
	} {
		sys := analyzetest.Pair(t, analyzetest.Lag("one", c.a, 1, 1), analyzetest.Lag("two", -4, 1, 1))
		const h = 0.02
		o := Options{Step: h}
		_, err := At(t.Context(), sys, o, func(p *Point) error {
			s := &linear.StateSpace{A: mat.NewDense(1, 1, []float64{c.model}), B: mat.NewDense(1, 1, []float64{1}),
				C: mat.NewDense(1, 1, []float64{1}), D: mat.NewDense(1, 1, nil)}
			r, err := s.Over(h, 0)
			if err != nil {
				return err
			}
			r.Ways = []float64{1e-3}
			err = p.grows(0, h, r)
			if c.refuted != (err != nil && strings.Contains(err.Error(), "with its inputs held, and it does not")) {
				t.Errorf("%s: %v", name, err)
			}
			return p.X.Restore(0)
		})
		if err != nil {
			t.Error(name, err)
		}
	}
}
