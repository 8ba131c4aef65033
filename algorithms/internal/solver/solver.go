// Package solver holds solvers of the interface equation.
package solver

import "github.com/macrostep/macrostep/algorithms/internal/num"

// Solver computes corrections for the interface equation r(z) = z − Φ(z) = 0 with n unknowns. Φ(z)
// are the coupled outputs after a macro step with inputs z at its end.
//
// A solver keeps its data over macro steps with the same H and degree. It is used as follows:
//
//	s.Begin(H, degree)
//	for {
//		r := z − Φ(z)
//		if s.NeedsJacobian() { s.TakeJacobian(∂r/∂z at z) }
//		s.Correct(z, r, dz)
//		// stop if dz is small; from the second correction on, give up if
//		// s.Contraction(‖dz‖/‖dz before‖)
//		z += dz
//	}
//	s.Accept() or s.Reject()
//
// After Init, calls allocate only until internal buffers have reached their final size. Slices
// belong to the caller, have n entries, do not overlap and are used during the call only.
type Solver interface {
	// Init sets the pattern of ∂r/∂z, whose values are not read, and drops all data.
	Init(pattern *num.Matrix)
	// Begin starts an attempt at a macro step. Data are kept if H and degree have not changed. H
	// is compared exactly, so steps that differ by rounding must be passed as the same number.
	// An earlier attempt without Accept or Reject counts as accepted.
	Begin(H float64, degree int)
	// NeedsJacobian reports whether Correct needs ∂r/∂z at the current iterate.
	NeedsJacobian() bool
	// TakeJacobian sets ∂r/∂z, with the pattern of Init. The matrix is not kept. The error is a
	// *num.EntryError.
	TakeJacobian(j *num.Matrix) error
	// Correct computes the correction dz at z with the residual r. A *num.EntryError names an entry
	// of r or dz that is not a finite number; dz is then invalid.
	Correct(z, r, dz []float64) error
	// Contraction judges theta, the ratio of the weighted norms of the last two corrections of this
	// attempt. It may request a new Jacobian. diverging means that more corrections do not help.
	Contraction(theta float64) (diverging bool)
	// Accept and Reject conclude the attempt. They are allowed without an attempt.
	Accept()
	Reject()
	// Archive saves or restores the data kept between attempts.
	Archive(a num.Archive)
}

// Weighted is implemented by solvers whose corrections depend on norms of z or r, and so on the
// units of the unknowns: all except Newton.
type Weighted interface {
	// Weigh sets the weights w [n], positive and finite, by which z and r are divided in norms; the
	// default is 1. It is called after Init, and again if the weights have changed. The weights of
	// the convergence test are suitable.
	Weigh(w []float64)
}

// regime is the step size and the degree for which data are valid.
type regime struct {
	H      float64
	degree int
}

// becomes sets step size and degree and reports whether they have changed.
func (g *regime) becomes(H float64, degree int) bool {
	next := regime{H, degree}
	changed := *g != next
	*g = next
	return changed
}

// metric defines weighted norms of unknowns and residuals.
type metric struct {
	inverse []float64 // 1 / weights
}

func (m *metric) Init(n int) {
	m.inverse = make([]float64, n)
	for i := range m.inverse {
		m.inverse[i] = 1
	}
}

func (m *metric) Weigh(w []float64) {
	for i, v := range w {
		m.inverse[i] = 1 / v
	}
}

// dot returns the scalar product of a and b, both divided by the weights.
func (m *metric) dot(a, b []float64) float64 {
	sum := 0.0
	for i, w := range m.inverse {
		sum += float64(float64(a[i]*w) * float64(b[i]*w))
	}
	return sum
}
