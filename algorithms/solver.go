package algorithms

import (
	"fmt"

	"github.com/macrostep/macrostep/master"
)

// interfaceSolver proposes corrections for the interface equation
// r(z) = z − Φ(z) = 0, where Φ are the coupled outputs that a macro step with
// inputs z at its end gives; z [n].
//
// A solver keeps what it learns for as long as the equation stays alike: over
// the macro steps of one H and degree. It is driven like this:
//
//	s.begin(H, degree)
//	for {
//		r := z − Φ(z)
//		if s.needsJacobian() { s.takeJacobian(∂r/∂z at z) }
//		s.correct(z, r, dz)
//		// stop if dz is small; from the second correction on, give up if
//		// s.contraction(‖dz‖/‖dz before‖)
//		z += dz
//	}
//	s.accept() or s.reject()
//
// After init, and once the storage that grows with use has grown, no call
// allocates. Slices are the caller's, are used during the call only, must not
// overlap, and a length that is not n panics.
type interfaceSolver interface {
	// init takes the pattern of ∂r/∂z, whose values are not read, and forgets
	// everything.
	init(pattern *sparseMatrix)
	// begin is a new attempt at a macro step. H are compared exactly: steps that
	// differ by rounding only must be given as the same number. What has been
	// learnt is kept if neither changed; an attempt before that was not
	// concluded counts as accepted.
	begin(H float64, degree int)
	// needsJacobian asks for ∂r/∂z at the present iterate, before correct.
	needsJacobian() bool
	// takeJacobian takes it: values on the pattern of init, which the caller may
	// change afterwards. The error is an *entryError.
	takeJacobian(j *sparseMatrix) error
	// correct puts the correction at z, where the residual is r, into dz. An
	// *entryError names an entry of r or dz that is not a finite number; dz is
	// then of no use.
	correct(z, r, dz []float64) error
	// contraction tells the ratio of the norms of the last two corrections of
	// this attempt, weighted as the caller judges. It decides on a refresh;
	// diverging means that further corrections will not help.
	contraction(theta float64) (diverging bool)
	// accept and reject conclude the attempt. Either may be told of an attempt
	// that was never begun.
	accept()
	reject()
	// archive carries what is kept between attempts.
	archive(a *master.Archive)
}

// weighted is the interface of solvers whose corrections depend on the units of
// the unknowns, since they measure lengths in z or r: all but Newton.
type weighted interface {
	// weigh takes w [n], positive and finite: changes of the unknowns by their w
	// count the same. It is called between init and correct, again when the
	// weights have changed. The weights of the convergence test serve. Without
	// it all are 1.
	weigh(w []float64)
}

// regime reports whether a new attempt solves an equation like the last one.
type regime struct {
	H      float64
	degree int
}

func (g *regime) archive(a *master.Archive) {
	a.Float(&g.H)
	a.Int(&g.degree)
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

func (m *metric) init(n int) {
	m.inverse = make([]float64, n)
	for i := range m.inverse {
		m.inverse[i] = 1
	}
}

func (m *metric) weigh(w []float64) {
	if len(w) != len(m.inverse) {
		panic(fmt.Sprintf("algorithms: %d weights for %d unknowns", len(w), len(m.inverse)))
	}
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

// checkFinite gives an *entryError for the first entry that is no finite number.
func checkFinite(v []float64) error {
	for i, x := range v {
		if x-x != 0 {
			return &entryError{i, errNotFinite}
		}
	}
	return nil
}

// checkLengths panics unless all slices have n entries.
func checkLengths(n int, slices ...[]float64) {
	for _, s := range slices {
		if len(s) != n {
			panic(fmt.Sprintf("algorithms: a vector of %d entries for %d unknowns", len(s), n))
		}
	}
}
