package solver

import "github.com/macrostep/macrostep/algorithms/internal/num"

// Solver proposes corrections for the interface equation
// r(z) = z − Φ(z) = 0, where Φ are the coupled outputs that a macro step with
// inputs z at its end gives; z [n].
//
// A solver keeps what it learns for as long as the equation stays alike: over
// the macro steps of one H and degree. It is driven like this:
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
// After Init, and once the storage that grows with use has grown, no call
// allocates. Slices belong to the caller, have n entries, do not overlap and are
// used during the call only.
type Solver interface {
	// Init takes the pattern of ∂r/∂z, whose values are not read, and forgets
	// everything.
	Init(pattern *num.Matrix)
	// Begin is a new attempt at a macro step. H are compared exactly: steps that
	// differ by rounding only must be given as the same number. What has been
	// learnt is kept if neither changed; an attempt before that was not
	// concluded counts as accepted.
	Begin(H float64, degree int)
	// NeedsJacobian asks for ∂r/∂z at the present iterate, before Correct.
	NeedsJacobian() bool
	// TakeJacobian takes it: values on the pattern of Init, which the caller may
	// change afterwards. The error is a *num.EntryError.
	TakeJacobian(j *num.Matrix) error
	// Correct puts the correction at z, where the residual is r, into dz. An
	// *num.EntryError names an entry of r or dz that is not a finite number; dz is
	// then of no use.
	Correct(z, r, dz []float64) error
	// Contraction takes the ratio of the norms of the last two corrections of
	// this attempt, weighted as the caller judges. It decides on a refresh;
	// diverging means that further corrections will not help.
	Contraction(theta float64) (diverging bool)
	// Accept and Reject conclude the attempt. Either may be told of an attempt
	// that was never begun.
	Accept()
	Reject()
	// Archive carries what is kept between attempts.
	Archive(a num.Archive)
}

// Weighted is the interface of solvers whose corrections depend on the units of
// the unknowns, since they measure lengths in z or r: all but Newton.
type Weighted interface {
	// Weigh takes w [n], positive and finite: changes of the unknowns by their w
	// count the same. It is called between Init and Correct, again when the
	// weights have changed. The weights of the convergence test serve. Without
	// it all are 1.
	Weigh(w []float64)
}

// regime reports whether a new attempt solves an equation like the last one.
type regime struct {
	H      float64
	degree int
}

func (g *regime) Archive(a num.Archive) {
	num.Carry(a, &g.H, &g.degree)
}

// becomes takes the step size and degree of a new attempt; true: they are others.
func (g *regime) becomes(H float64, degree int) bool {
	next := regime{H, degree}
	changed := *g != next
	*g = next
	return changed
}

// metric measures unknowns and residuals, which have the same units.
type metric struct {
	inverse []float64 // of the weights
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

// dot is the product of a and b, both in weights.
func (m *metric) dot(a, b []float64) float64 {
	sum := 0.0
	for i, w := range m.inverse {
		sum += float64(float64(a[i]*w) * float64(b[i]*w))
	}
	return sum
}
