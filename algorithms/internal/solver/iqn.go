package solver

import (
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

const (
	// iqnRelaxation is the default ω of a correction without columns.
	iqnRelaxation = 0.5
	// iqnReuse is the default number of earlier macro steps whose differences are used.
	iqnReuse = 8
	// iqnMemory is the default number of differences that are kept.
	iqnMemory = 40
	// iqnFilter is the default smallest independent part of a column. In chains of 3 to 40 unknowns
	// with cubic springs, weakly and strongly coupled, with and without noise, 1e-4 needs the
	// fewest corrections. Values from 1e-2 on lose directions if the coupling is strong; 1e-6 fits
	// curvature and noise.
	iqnFilter = 1e-4
	// iqnNoise is the smallest length of a difference, relative to the iterate. A smaller one has
	// fewer than three correct digits.
	iqnNoise = 1000 * 0x1p-52
	// iqnPatience plus the number of unknowns is the number of corrections in a row that may grow.
	iqnPatience = 3
)

// IQN is the interface quasi-Newton method with an inverse Jacobian from a least squares model
// (IQN-ILS). It needs no Jacobian. The columns of V and W are the differences of r and of Φ = z − r
// between iterates of this and earlier macro steps with the same H and degree, newest first:
//
//	dz = W α − r,  α = argmin ‖V α + r‖
//
// in the weighted norm. Without columns the correction is −ω r. V is orthogonalised by modified
// Gram–Schmidt, starting with the newest column. A column whose independent part is smaller than
// filter is dropped (QR2 filter).
//
// Source: J. Degroote, K.-J. Bathe, J. Vierendeels, Performance of a new partitioned procedure
// versus a monolithic procedure in fluid–structure interaction, Computers & Structures 87 (2009);
// the filter: R. Haelterman et al., Improving the performance of the partitioned QN-ILS procedure
// for fluid–structure interaction problems: filtering, Computers & Structures 171 (2016).
// Deviation: differences between consecutive iterates, which span the same space as differences
// from the last iterate.
type IQN struct {
	Relaxation float64 // ω; 0 = iqnRelaxation
	reuse      int     // macro steps; 0 = iqnReuse, negative = none
	memory     int     // columns; 0 = iqnMemory
	filter     float64 // 0 = iqnFilter

	iqnState
	metric
	open    bool // an attempt has begun and is not concluded
	started bool // z and r belong to the previous iterate of this attempt
	z, r    []float64
	growing int // corrections in a row that grew
	// V = Q R for the columns in from: orthogonal columns q, R[i][k] = triangle[k*memory+i].
	q        [][]float64
	triangle []float64
	from     []int
	alpha    []float64
	rest     []float64
}

type iqnState struct {
	regime
	columns []difference // [:kept] are used, oldest first; the rest is storage
	kept    int
	attempt int // number of the current attempt
}

// difference is a column of V and W.
type difference struct {
	dr, dphi []float64
	attempt  int
}

var (
	_ Solver   = (*IQN)(nil)
	_ Weighted = (*IQN)(nil)
)

func (s *IQN) Init(pattern *num.Matrix) {
	n := pattern.N
	*s = IQN{Relaxation: s.Relaxation, reuse: s.reuse, memory: s.memory, filter: s.filter}
	if s.Relaxation == 0 {
		s.Relaxation = iqnRelaxation
	}
	if s.reuse == 0 {
		s.reuse = iqnReuse
	}
	s.reuse = max(s.reuse, 0)
	if s.memory == 0 {
		s.memory = iqnMemory
	}
	if s.filter == 0 {
		s.filter = iqnFilter
	}
	s.metric.Init(n)
	s.z, s.r, s.rest = make([]float64, n), make([]float64, n), make([]float64, n)
	s.triangle, s.alpha = make([]float64, s.memory*s.memory), make([]float64, s.memory)
	s.from = make([]int, 0, s.memory)
}

func (s *IQN) Begin(H float64, degree int) {
	s.Accept()
	if s.becomes(H, degree) {
		s.kept = 0
	}
	s.open, s.started, s.growing = true, false, 0
}

func (s *IQN) NeedsJacobian() bool            { return false }
func (s *IQN) TakeJacobian(*num.Matrix) error { return nil }

func (s *IQN) Correct(z, r, dz []float64) error {
	if err := num.CheckFinite(r); err != nil {
		return err
	}
	if s.started {
		s.learn(z, r)
	}
	copy(s.z, z)
	copy(s.r, r)
	s.started = true
	s.orthogonalise()
	if len(s.from) == 0 {
		for i, v := range r {
			dz[i] = -s.Relaxation * v
		}
		return nil
	}
	s.fit(r)
	for i, v := range r {
		dz[i] = -v
	}
	for k, at := range s.from {
		for i, w := range s.columns[at].dphi {
			dz[i] += float64(s.alpha[k] * w)
		}
	}
	s.sift()
	return num.CheckFinite(dz)
}

// learn adds the difference between this iterate and the previous one.
func (s *IQN) learn(z, r []float64) {
	if s.kept == s.memory {
		s.drop(0)
	}
	if s.kept == len(s.columns) {
		s.columns = append(s.columns, difference{dr: make([]float64, len(z)), dphi: make([]float64, len(z))})
	}
	c := &s.columns[s.kept]
	c.attempt = s.attempt
	for i := range z {
		c.dr[i] = r[i] - s.r[i]
		c.dphi[i] = z[i] - s.z[i] - c.dr[i]
	}
	if math.Sqrt(s.dot(c.dr, c.dr)) > iqnNoise*math.Sqrt(s.dot(z, z)) {
		s.kept++
	}
}

func (s *IQN) Archive(a num.Archive) { a.All(&s.iqnState) }

// drop removes column at and keeps its storage.
func (s *IQN) drop(at int) {
	gone := s.columns[at]
	copy(s.columns[at:s.kept], s.columns[at+1:s.kept])
	s.kept--
	s.columns[s.kept] = gone
}

// orthogonalise factors V = Q R from the newest to the oldest column and lists the independent
// columns in from.
func (s *IQN) orthogonalise() {
	s.from = s.from[:0]
	for at := s.kept - 1; at >= 0 && len(s.from) < len(s.z); at-- {
		k := len(s.from)
		if k == len(s.q) {
			s.q = append(s.q, make([]float64, len(s.z)))
		}
		q := s.q[k]
		size := 0.0
		for i, v := range s.columns[at].dr {
			q[i] = v * s.inverse[i]
			size += float64(q[i] * q[i])
		}
		for i, other := range s.q[:k] {
			s.triangle[k*s.memory+i] = project(other, q)
		}
		left := 0.0
		for _, v := range q {
			left += float64(v * v)
		}
		size, left = math.Sqrt(size), math.Sqrt(left)
		if !(left > s.filter*size) {
			continue
		}
		s.triangle[k*s.memory+k] = left
		for i := range q {
			q[i] /= left
		}
		s.from = append(s.from, at)
	}
}

// fit solves the least squares problem for alpha. It orthogonalises −r like another column, which
// is as stable as Householder reflections (Å. Björck, Solving linear least squares problems by
// Gram–Schmidt orthogonalization, BIT 7 (1967)).
func (s *IQN) fit(r []float64) {
	for i, v := range r {
		s.rest[i] = -v * s.inverse[i]
	}
	for k := range s.from {
		s.alpha[k] = project(s.q[k], s.rest)
	}
	for k := len(s.from) - 1; k >= 0; k-- {
		column := s.triangle[k*s.memory : (k+1)*s.memory]
		s.alpha[k] /= column[k]
		for i := range k {
			s.alpha[i] -= float64(column[i] * s.alpha[k])
		}
	}
}

// project removes the part along the unit vector q from v and returns its length.
func project(q, v []float64) float64 {
	sum := 0.0
	for i, x := range q {
		sum += float64(x * v[i])
	}
	for i, x := range q {
		v[i] -= float64(sum * x)
	}
	return sum
}

// sift drops the columns that are not in from.
func (s *IQN) sift() {
	kept := 0
	for k := len(s.from) - 1; k >= 0; k-- { // from descends
		s.columns[kept], s.columns[s.from[k]] = s.columns[s.from[k]], s.columns[kept]
		kept++
	}
	s.kept = kept
}

func (s *IQN) Contraction(theta float64) (diverging bool) {
	if theta < 1 {
		s.growing = 0
		return false
	}
	s.growing++
	return s.growing > iqnPatience+len(s.z) || math.IsNaN(theta)
}

func (s *IQN) Accept() {
	if !s.open {
		return
	}
	s.open = false
	s.attempt++
	for s.kept > 0 && s.columns[0].attempt < s.attempt-s.reuse {
		s.drop(0)
	}
}

func (s *IQN) Reject() {
	if !s.open {
		return
	}
	s.open = false
	for s.kept > 0 && s.columns[s.kept-1].attempt == s.attempt {
		s.kept--
	}
}
