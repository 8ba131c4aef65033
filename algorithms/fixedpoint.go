package algorithms

import (
	"math"

	"github.com/macrostep/macrostep/master"
)

const (
	// aitkenStart bounds the first ω of a macro step, and is the very first one.
	aitkenStart = 0.5
	// ω of Aitken's method stays between these sizes: below the one, corrections
	// of a tolerance of 1e-6 drown in rounding; above the other, the residual
	// changes too little for the extrapolation to be more than a guess.
	aitkenLeast, aitkenLargest = 1e-8, 100
	// aitkenTiny is the change of the residual, relative to its size, below which
	// it has lost half of its digits: ω is kept.
	aitkenTiny = 0x1p-26
	// fixedPointPatience is the number of corrections in a row that may grow:
	// what enters at one end of a chain of a few subsystems can grow on its way
	// to the other.
	fixedPointPatience = 4
)

// fixedPoint is the relaxed fixed point dz = −ω r, with a constant ω or Aitken's
//
//	ω₊ = −ω r·(r₊ − r) / ‖r₊ − r‖²,
//
// in weighted lengths: the secant method for one unknown, which is exact in two
// corrections if Φ is linear. The first correction of a macro step takes the
// last ω of the step before, but no more than aitkenStart.
//
// Source: B.M. Irons, R.C. Tuck, A version of the Aitken accelerator for
// computer iteration, Int. J. Numer. Methods Eng. 1 (1969); U. Küttler, W.A.
// Wall, Fixed-point fluid–structure interaction solvers with dynamic relaxation,
// Comput. Mech. 43 (2008). Deviations: the bounds, and ω is kept where
// the residual hardly changes.
type fixedPoint struct {
	relaxation float64 // ω; 0 = Aitken

	metric
	omega, accepted float64 // in force; at the last accepted step
	started         bool    // r is of the iterate before, in this attempt
	r, change       []float64
	growing         int
}

var (
	_ interfaceSolver = (*fixedPoint)(nil)
	_ weighted        = (*fixedPoint)(nil)
)

func (s *fixedPoint) init(pattern *sparseMatrix) {
	*s = fixedPoint{relaxation: s.relaxation, omega: s.relaxation, r: make([]float64, pattern.n), change: make([]float64, pattern.n)}
	if s.omega == 0 {
		s.omega = aitkenStart
	}
	s.accepted = s.omega
	s.metric.init(pattern.n)
}

func (s *fixedPoint) begin(float64, int) {
	s.started, s.growing = false, 0
	if s.relaxation == 0 {
		s.omega = math.Copysign(min(math.Abs(s.omega), aitkenStart), s.omega)
	}
}

func (s *fixedPoint) needsJacobian() bool              { return false }
func (s *fixedPoint) takeJacobian(*sparseMatrix) error { return nil }

func (s *fixedPoint) correct(z, r, dz []float64) error {
	checkLengths(len(s.r), z, r, dz)
	if err := checkFinite(r); err != nil {
		return err
	}
	if s.relaxation == 0 {
		if s.started {
			s.extrapolate(r)
		}
		copy(s.r, r)
		s.started = true
	}
	for i, v := range r {
		dz[i] = -s.omega * v
	}
	return checkFinite(dz)
}

// extrapolate gives the next ω from the residual and the one before.
func (s *fixedPoint) extrapolate(r []float64) {
	for i, v := range r {
		s.change[i] = v - s.r[i]
	}
	squared, before := s.dot(s.change, s.change), s.dot(s.r, s.r)
	if !(squared > aitkenTiny*aitkenTiny*before) {
		return
	}
	omega := -s.omega * (s.dot(s.r, s.change) / squared)
	if size := min(max(math.Abs(omega), aitkenLeast), aitkenLargest); omega != 0 && size-size == 0 {
		s.omega = math.Copysign(size, omega)
	}
}

func (s *fixedPoint) contraction(theta float64) (diverging bool) {
	if theta < 1 {
		s.growing = 0
		return false
	}
	s.growing++
	return s.growing > fixedPointPatience || math.IsNaN(theta)
}

func (s *fixedPoint) archive(a *master.Archive) {
	a.Float(&s.omega)
	a.Float(&s.accepted)
}

func (s *fixedPoint) accept() { s.accepted = s.omega }
func (s *fixedPoint) reject() { s.omega = s.accepted }
