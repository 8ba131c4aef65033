package twin

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// A model that grows by itself, of a component that does not, is none: the growth is looked for on the
// component. That of one that does grow stands.
func TestModelGrowsAlone(t *testing.T) {
	end := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	for name, c := range map[string]struct {
		a, model float64 // of x' = a x + u
		refuted  bool
	}{
		"grows": {0.8, 0.8, false}, "at another rate": {0.79, 0.8, false}, "grows fast": {300, 300, false}, "dies out": {-0.3, 0.8, true}, "stands": {0, 0.8, true}, "fast model": {-0.3, 300, true}, "stable": {-0.3, -2, false},
	} {
		lag := func(name string, a float64) *mastertest.Linear {
			return mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{a}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{1})
		}
		sys, err := master.NewSystem([]master.Subsystem{lag("one", c.a), lag("two", -4)}, []master.Connection{{From: end("one", "y1"), To: end("two", "u1")}, {From: end("two", "y1"), To: end("one", "u1")}})
		if err != nil {
			t.Fatal(name, err)
		}
		const h = 0.02
		o := Options{Step: h}
		_, err = At(t.Context(), sys, o, func(p *Point) error {
			s := &linear.StateSpace{A: mat.NewDense(1, 1, []float64{c.model}), B: mat.NewDense(1, 1, []float64{1}), C: mat.NewDense(1, 1, []float64{1}), D: mat.NewDense(1, 1, nil)}
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
