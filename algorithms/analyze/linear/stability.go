package linear

import (
	"math/cmplx"

	"gonum.org/v1/gonum/mat"
)

const (
	// Marginal is how far above 1 a radius counts as no growth: undamped systems have radius 1.
	Marginal = 1e-6
	// SlowPart is how much farther from 1 than the misfit of a model a radius has to be to show growth.
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

// Unstable reports whether the model grows by itself by more than it may be off by.
func (r *Response) Unstable() bool {
	return cmplx.Abs(r.Largest()) > 1+max(Marginal, SlowPart*r.Misfit)
}
