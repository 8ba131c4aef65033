package solver

import (
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

const (
	// broydenRefresh is the contraction above which the first Jacobian is refreshed: the updates no
	// longer improve it.
	broydenRefresh = 0.5
	// broydenTiny is the smallest cosine of the angle between s and B⁻¹ y for an update. A smaller
	// one would lose more than half of the digits.
	broydenTiny = 0x1p-26
	// broydenNoise is the smallest length of s for an update, relative to z. A smaller one has fewer
	// than three correct digits.
	broydenNoise = 1000 * 0x1p-52
	// broydenMemory is the default number of updates kept.
	broydenMemory = 30
)

// Broyden is Broyden's first ("good") method: Newton's method with a Jacobian B that is updated
// after each correction by
//
//	B₊ = B + (y − B s) sᵀD / (sᵀD s),  s = Δz, y = Δr,
//
// the smallest change, in the norm with weights D, with B₊ s = y. B is not formed: by the formula
// of Sherman and Morrison, B₊⁻¹ = (I + a tᵀ) B⁻¹ with t = D s and a = (s − B⁻¹ y) / (tᵀ B⁻¹ y). A
// correction costs one solution with the first Jacobian and two scalar products per update. All
// updates are dropped when the memory is full. They are kept over macro steps with one H and
// degree.
//
// Source: C.G. Broyden, A class of methods for solving nonlinear simultaneous equations, Math.
// Comp. 19 (1965); the product form with limited memory: C.T. Kelley, Iterative Methods for Linear
// and Nonlinear Equations (1995), section 7.3. Deviations: s is the actual step, which may differ
// from the correction; updates with a tiny denominator are left out.
type Broyden struct {
	memory int // largest number of updates; 0 = broydenMemory

	keptJacobian
	metric
	broydenState
	started   bool      // there is a previous iterate with these factors
	z, dz     []float64 // the previous iterate and its correction −B⁻¹ r
	step, hit []float64 // s and B⁻¹ y
}

type broydenState struct {
	updates []rankOne // [:kept] are used
	kept    int
}

// rankOne is the factor I + a tᵀ.
type rankOne struct{ a, t []float64 }

var (
	_ Solver   = (*Broyden)(nil)
	_ Weighted = (*Broyden)(nil)
)

func (s *Broyden) Init(pattern *num.Matrix) {
	n := pattern.N
	*s = Broyden{
		memory: s.memory, z: make([]float64, n), dz: make([]float64, n),
		step: make([]float64, n), hit: make([]float64, n),
	}
	if s.memory == 0 {
		s.memory = broydenMemory
	}
	s.keptJacobian.Init(pattern)
	s.metric.Init(n)
}

func (s *Broyden) Begin(H float64, degree int) {
	if s.renew(H, degree) {
		s.kept = 0
	}
	s.started = false
}

func (s *Broyden) Archive(a num.Archive) {
	s.keptJacobian.Archive(a)
	a.All(&s.broydenState)
}

func (s *Broyden) TakeJacobian(j *num.Matrix) error {
	s.kept, s.started = 0, false
	return s.keptJacobian.TakeJacobian(j)
}

func (s *Broyden) Correct(z, r, dz []float64) error {
	if err := s.apply(r, dz); err != nil {
		return err
	}
	for _, u := range s.updates[:s.kept] {
		u.apply(dz)
	}
	if s.started && s.learn(z, dz) {
		if s.kept > 0 {
			s.updates[s.kept-1].apply(dz)
		} else { // the memory was full
			copy(dz, r)
			s.lu.Solve(dz)
		}
	}
	for i, v := range dz {
		dz[i] = -v
	}
	if err := num.CheckFinite(dz); err != nil {
		s.started, s.stale = false, true
		return err
	}
	copy(s.z, z)
	copy(s.dz, dz)
	s.started = true
	return nil
}

// learn adds the update for the step to z, with v = B⁻¹ r, and reports whether the updates have
// changed.
func (s *Broyden) learn(z, v []float64) bool {
	for i := range z {
		s.step[i] = z[i] - s.z[i]
		s.hit[i] = v[i] + s.dz[i]
	}
	length := math.Sqrt(s.dot(s.step, s.step))
	denominator := s.dot(s.step, s.hit)
	if !(length > broydenNoise*math.Sqrt(s.dot(z, z))) ||
		!(math.Abs(denominator) > broydenTiny*length*math.Sqrt(s.dot(s.hit, s.hit))) {
		return false
	}
	if s.kept == s.memory {
		s.kept = 0
		return true
	}
	if s.kept == len(s.updates) {
		s.updates = append(s.updates, rankOne{make([]float64, len(z)), make([]float64, len(z))})
	}
	u := s.updates[s.kept]
	for i := range z {
		u.a[i] = (s.step[i] - s.hit[i]) / denominator
		u.t[i] = s.step[i] * s.inverse[i] * s.inverse[i]
	}
	s.kept++
	return true
}

// apply replaces v by (I + a tᵀ) v.
func (u rankOne) apply(v []float64) {
	sum := 0.0
	for i, t := range u.t {
		sum += float64(t * v[i])
	}
	for i, a := range u.a {
		v[i] += float64(a * sum)
	}
}

func (s *Broyden) Contraction(theta float64) (diverging bool) {
	return s.judge(theta, broydenRefresh)
}
