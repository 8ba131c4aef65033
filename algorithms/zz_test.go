package algorithms

import (
	"testing"
)

func TestZZ(t *testing.T) {
	o := haids(2e5, 5e2)
	for p := range 3 {
		for _, H := range []float64{4e-5, 2e-5, 1e-5} {
			for _, src := range []JacobianSource{DirectionalJacobian, IdentifiedJacobian} {
				e, res := o.run(t, byModels(Jacobi, p, src), H, 8e-3)
				t.Logf("p=%d H=%g %s e=%.3g  %+v %q", p, H, jacobianSources[src], e, res.Models, res.Warnings)
			}
			e, _ := o.run(t, Config{Order: p}, H, 8e-3)
			t.Logf("uncorrected %.3g", e)
		}
	}
}
