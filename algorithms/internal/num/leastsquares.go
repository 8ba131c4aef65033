package num

import (
	"math"
)

// LeastSquares is a recursive least-squares fit z ≈ θᵀφ by orthogonal transformations. It keeps the
// triangular factor R of the regressors and the outputs after the same rotations.
//
// The leading part of the factor gives the fit by the first k regressors and its residuals, so the
// number of regressors can be chosen afterwards.
//
// Source: Å. Björck, Numerical Methods for Least Squares Problems (1996), 3.2
// (updating by Givens rotations), with exponential forgetting.
type LeastSquares struct {
	n, m     int       // regressors, outputs
	row, out []float64 // scratch
	fit
}

// fit is the state of a LeastSquares.
type fit struct {
	r       []float64 // R by rows, upper triangle, [n × n]
	z       []float64 // by rows, [n × m]
	rest    []float64 // sum of squares of the residuals of all n regressors, [m]
	weight  float64   // number of rows, weighted
	largest []float64 // by regressor: largest magnitude, weighted
}

// NewLeastSquares returns a fit of m outputs by n regressors.
func NewLeastSquares(n, m int) *LeastSquares {
	return &LeastSquares{n: n, m: m, row: make([]float64, n), out: make([]float64, m),
		fit: fit{r: make([]float64, n*n), z: make([]float64, n*m), rest: make([]float64, m), largest: make([]float64, n)}}
}

// Weight returns the weighted number of rows.
func (l *LeastSquares) Weight() float64 { return l.weight }

// Reset drops all rows.
func (l *LeastSquares) Reset() {
	clear(l.r)
	clear(l.z)
	clear(l.rest)
	clear(l.largest)
	l.weight = 0
}

// Archive saves or restores the fit.
func (l *LeastSquares) Archive(a Archive) { a.All(&l.fit) }

// Add adds a row with regressors phi [n] and outputs z [m]. The squares of the earlier rows are
// first multiplied by forget in (0, 1].
func (l *LeastSquares) Add(phi, z []float64, forget float64) {
	if forget < 1 {
		f := math.Sqrt(forget)
		for i := range l.r {
			l.r[i] *= f
		}
		for i := range l.z {
			l.z[i] *= f
		}
		for o := range l.rest {
			l.rest[o] *= forget
		}
		for k := range l.largest {
			l.largest[k] *= f
		}
	}
	l.weight = float64(l.weight*forget) + 1
	copy(l.row, phi)
	copy(l.out, z)
	for k, v := range phi {
		l.largest[k] = max(l.largest[k], math.Abs(v))
	}
	for k := range l.n {
		if l.row[k] == 0 {
			continue
		}
		a, b := l.r[k*l.n+k], l.row[k]
		h := math.Hypot(a, b)
		c, s := a/h, b/h
		for j := k; j < l.n; j++ {
			p, q := l.r[k*l.n+j], l.row[j]
			l.r[k*l.n+j], l.row[j] = float64(c*p)+float64(s*q), float64(c*q)-float64(s*p)
		}
		for o := range l.m {
			p, q := l.z[k*l.m+o], l.out[o]
			l.z[k*l.m+o], l.out[o] = float64(c*p)+float64(s*q), float64(c*q)-float64(s*p)
		}
	}
	for o, v := range l.out {
		l.rest[o] += float64(v * v)
	}
}

// Residual returns the sum of squares of the residuals of output o for the first k regressors.
func (l *LeastSquares) Residual(k, o int) float64 {
	sum := l.rest[o]
	for i := k; i < l.n; i++ {
		v := l.z[i*l.m+o]
		sum += float64(v * v)
	}
	return sum
}

// independent is the smallest relative part of a regressor that must be independent of the earlier
// regressors. It is above the rounding of long sums.
const independent = 1e-11

// Excited reports whether the first k regressors are independent. Regressors that were always 0 do
// not count.
func (l *LeastSquares) Excited(k int) bool {
	for i := range k {
		if l.largest[i] > 0 && !(math.Abs(l.r[i*l.n+i]) > independent*l.largest[i]*math.Sqrt(l.weight)) {
			return false
		}
	}
	return true
}

// Solve writes the fit by the first k regressors to theta [k × m by rows]. Regressors that were
// always 0 have the coefficient 0.
func (l *LeastSquares) Solve(k int, theta []float64) {
	for i := k - 1; i >= 0; i-- {
		d := l.r[i*l.n+i]
		for o := range l.m {
			if d == 0 {
				theta[i*l.m+o] = 0
				continue
			}
			v := l.z[i*l.m+o]
			for j := i + 1; j < k; j++ {
				v -= float64(l.r[i*l.n+j] * theta[j*l.m+o])
			}
			theta[i*l.m+o] = v / d
		}
	}
}

// Spread returns √((RᵀR)⁻¹)_ii of a fit by the first k regressors: the standard
// error of coefficient i for residuals of 1. scratch holds k numbers.
func (l *LeastSquares) Spread(i, k int, scratch []float64) float64 {
	// Rᵀ w = e_i
	clear(scratch[:k])
	sum := 0.0
	for q := i; q < k; q++ {
		v := 0.0
		if q == i {
			v = 1
		}
		for p := i; p < q; p++ {
			v -= float64(l.r[p*l.n+q] * scratch[p])
		}
		if d := l.r[q*l.n+q]; d != 0 {
			scratch[q] = v / d
		}
		sum += float64(scratch[q] * scratch[q])
	}
	return math.Sqrt(sum)
}
