package solver

import (
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

const (
	// aitkenStart is the first ω of a run, and the largest first |ω| of a macro step.
	aitkenStart = 0.5
	// aitkenLeast and aitkenLargest bound |ω|. With a smaller value, corrections at a tolerance of
	// 1e-6 are lost in rounding; with a larger one, the residual changes too little for a useful
	// extrapolation.
	aitkenLeast, aitkenLargest = 1e-8, 100
	// aitkenTiny is the relative change of the residual below which ω is kept, since the change has
	// lost half of its digits.
	aitkenTiny = 0x1p-26
	// fixedPointPatience is the number of corrections in a row that may grow. A disturbance may grow
	// on its way along a chain of a few subsystems.
	fixedPointPatience = 4
)

// FixedPoint is the relaxed fixed point dz = −ω r, with a constant ω or Aitken's
//
//	ω₊ = −ω r·(r₊ − r) / ‖r₊ − r‖²,
//
// in weighted norms. For one unknown it is the secant method, which is exact after two corrections
// if Φ is linear. The first correction of a macro step uses the last ω of the previous step, at
// most aitkenStart.
//
// Source: B.M. Irons, R.C. Tuck, A version of the Aitken accelerator for
// computer iteration, Int. J. Numer. Methods Eng. 1 (1969); U. Küttler, W.A.
// Wall, Fixed-point fluid–structure interaction solvers with dynamic relaxation,
// Comput. Mech. 43 (2008). Deviations: ω is bounded, and kept if the residual hardly changes.
type FixedPoint struct {
	Relaxation float64 // ω; 0 = Aitken

	metric
	relaxation
	started   bool // r is the residual of the previous iterate of this attempt
	r, change []float64
	growing   int // corrections in a row that grew
}

// relaxation is the current ω, and that of the last accepted step.
type relaxation struct{ omega, accepted float64 }

var (
	_ Solver   = (*FixedPoint)(nil)
	_ Weighted = (*FixedPoint)(nil)
)

func (s *FixedPoint) Init(pattern *num.Matrix) {
	*s = FixedPoint{Relaxation: s.Relaxation, relaxation: relaxation{omega: s.Relaxation}, r: make([]float64, pattern.N), change: make([]float64, pattern.N)}
	if s.omega == 0 {
		s.omega = aitkenStart
	}
	s.accepted = s.omega
	s.metric.Init(pattern.N)
}

func (s *FixedPoint) Begin(float64, int) {
	s.started, s.growing = false, 0
	if s.Relaxation == 0 {
		s.omega = math.Copysign(min(math.Abs(s.omega), aitkenStart), s.omega)
	}
}

func (s *FixedPoint) NeedsJacobian() bool            { return false }
func (s *FixedPoint) TakeJacobian(*num.Matrix) error { return nil }

func (s *FixedPoint) Correct(z, r, dz []float64) error {
	if err := num.CheckFinite(r); err != nil {
		return err
	}
	if s.Relaxation == 0 {
		if s.started {
			s.extrapolate(r)
		}
		copy(s.r, r)
		s.started = true
	}
	for i, v := range r {
		dz[i] = -s.omega * v
	}
	return num.CheckFinite(dz)
}

// extrapolate updates ω from the residual r and the previous one.
func (s *FixedPoint) extrapolate(r []float64) {
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

func (s *FixedPoint) Contraction(theta float64) (diverging bool) {
	if theta < 1 {
		s.growing = 0
		return false
	}
	s.growing++
	return s.growing > fixedPointPatience || math.IsNaN(theta)
}

func (s *FixedPoint) Archive(a num.Archive) { a.All(&s.relaxation) }

func (s *FixedPoint) Accept() { s.accepted = s.omega }
func (s *FixedPoint) Reject() { s.omega = s.accepted }
