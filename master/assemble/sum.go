package assemble

import (
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/ssp"
)

// newSum returns a function of OSP as a subsystem: outputs y_j = Σ u_i over the terms of j. It has no states,
// so it is stepped after its sources, with their new values.
func newSum(f ssp.Function) master.Subsystem {
	s := native.Func(f.Path, f.Inputs, f.Outputs, func(_ float64, u, y []float64) {
		for j, terms := range f.Terms {
			y[j] = 0
			for _, i := range terms {
				y[j] += u[i]
			}
		}
	})
	s.Info().Step = master.Feedthrough{On: f.Terms, Assumed: make([]bool, len(f.Terms))}
	s.Info().Init = s.Info().Step
	return s
}
