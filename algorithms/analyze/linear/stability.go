package linear

import (
	"math/cmplx"

	"gonum.org/v1/gonum/mat"
)

const (
	// Marginal is the largest excess of a radius over 1 that counts as no growth: undamped systems have radius 1.
	Marginal = 1e-6
	// SlowPart is the least ratio of the excess of a radius over 1 to the misfit of a model that shows growth.
	SlowPart = 30
)

// Stable reports whether nothing grows.
func Stable(radius float64) bool { return radius <= 1+Marginal }

// Largest returns the eigenvalue of largest magnitude; 0 = there are no states.
func (r *Response) Largest() (worst complex128) {
	var e mat.Eigen
	if r.A == nil || !e.Factorize(r.A, mat.EigenNone) {
		return 0
	}
	for _, v := range e.Values(nil) {
		if cmplx.Abs(v) > cmplx.Abs(worst) {
			worst = v
		}
	}
	return worst
}

// Unstable reports whether the model grows with its inputs held, by more than its misfit can explain.
func (r *Response) Unstable() bool {
	return cmplx.Abs(r.Largest()) > 1+max(Marginal, SlowPart*r.Misfit)
}
