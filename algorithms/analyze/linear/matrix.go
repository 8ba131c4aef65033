package linear

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Finite reports whether no value is NaN or infinite.
func Finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// identity returns I [n × n].
func identity(n int) *mat.Dense {
	m := mat.NewDense(n, n, nil)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}

// Multiply adds factor·m·v to dst: dst [n], m [n × k], v [k].
func Multiply(dst []float64, m *mat.Dense, v []float64, factor float64) {
	for i := range dst {
		row := m.RawRowView(i)
		for j, x := range v {
			dst[i] += factor * row[j] * x
		}
	}
}

// Taylor puts the m-th derivative at s of polynomials into dst [n]; u[l] [n] are their l-th derivatives at 0.
func Taylor(dst []float64, u [][]float64, m int, s float64) {
	copy(dst, u[m])
	factor := 1.0
	for l := m + 1; l < len(u); l++ {
		factor *= s / float64(l-m)
		for k, v := range u[l] {
			dst[k] += factor * v
		}
	}
}

// Eigenvalues returns the eigenvalues of m [n × n], which Balance has scaled, and overwrites m; ok is false if they were not
// found. It does not use mat.Eigen, whose own balancing does not end if entries are rounding errors of zeros.
func Eigenvalues(m *mat.Dense) (values []complex128, ok bool) {
	n, _ := m.Dims()
	values = make([]complex128, n)
	switch n { // LAPACK does not accept an empty work space
	case 0:
		return values, true
	case 1:
		values[0] = complex(m.At(0, 0), 0)
		return values, true
	}
	raw, impl := m.RawMatrix(), gonum.Implementation{}
	re, im, tau, work := make([]float64, n), make([]float64, n), make([]float64, n-1), make([]float64, 1)
	impl.Dgehrd(n, 0, n-1, raw.Data, raw.Stride, tau, work, -1)
	work = make([]float64, max(int(work[0]), n))
	impl.Dgehrd(n, 0, n-1, raw.Data, raw.Stride, tau, work, len(work))
	for i := 2; i < n; i++ {
		clear(raw.Data[i*raw.Stride : i*raw.Stride+i-1])
	}
	impl.Dhseqr(lapack.EigenvaluesOnly, lapack.SchurNone, n, 0, n-1, raw.Data, raw.Stride, re, im, nil, 1, work, -1)
	work = make([]float64, max(int(work[0]), n))
	left := impl.Dhseqr(lapack.EigenvaluesOnly, lapack.SchurNone, n, 0, n-1, raw.Data, raw.Stride, re, im, nil, 1, work, len(work))
	for i := range values {
		values[i] = complex(re[i], im[i])
	}
	return values, left == 0
}

// Balance scales the variables of a map m [n × n] by powers of two, so that rows and columns have similar norms, and
// returns the sizes S [n]: m becomes S⁻¹ m S.
func Balance(m *mat.Dense) (size []float64) {
	const sweeps = 10
	d, _ := m.Dims()
	size = make([]float64, d)
	for i := range size {
		size[i] = 1
	}
	for range sweeps {
		for i := range d {
			row, column := 0.0, 0.0
			for j := range d {
				if j != i {
					row += math.Abs(m.At(i, j))
					column += math.Abs(m.At(j, i))
				}
			}
			if row == 0 || column == 0 {
				continue
			}
			f := math.Exp2(math.Round(math.Log2(row/column) / 2))
			if f == 1 {
				continue
			}
			size[i] *= f
			for j := range d {
				m.Set(i, j, m.At(i, j)/f)
			}
			for j := range d {
				m.Set(j, i, m.At(j, i)*f)
			}
		}
	}
	return size
}

// Compressed returns a smaller matrix with the same nonzero eigenvalues: with M P = Q R of
// rank r, it is R Pᵀ Q, r × r. In propagation matrices outputs depend on states, so r is much below the size.
func Compressed(m *mat.Dense) *mat.Dense {
	const rounding = 1e-14
	d, _ := m.Dims()
	if d == 0 {
		return m
	}
	qr := mat.DenseCopyOf(m)
	raw := qr.RawMatrix()
	pivots, tau := make([]int, d), make([]float64, d)
	for i := range pivots {
		pivots[i] = -1
	}
	work := make([]float64, 1)
	lapack64.Geqp3(raw, pivots, tau, work, -1)
	work = make([]float64, int(work[0]))
	lapack64.Geqp3(raw, pivots, tau, work, len(work))
	r := 0
	for r < d && math.Abs(qr.At(r, r)) > rounding*math.Abs(qr.At(0, 0)) {
		r++
	}
	if r == 0 || r == d || !factored(m, qr, pivots, tau, work) {
		return m
	}
	// (R Pᵀ) Q = (Qᵀ (R Pᵀ)ᵀ)ᵀ
	rp := mat.NewDense(d, r, nil) // (R Pᵀ)ᵀ
	for i := range r {
		for j := i; j < d; j++ {
			rp.Set(pivots[j], i, qr.At(i, j))
		}
	}
	raw.Cols = r // the other reflectors leave the first r rows as they are
	lapack64.Ormqr(blas.Left, blas.Trans, raw, tau[:r], rp.RawMatrix(), work, -1)
	work = make([]float64, max(int(work[0]), 1))
	lapack64.Ormqr(blas.Left, blas.Trans, raw, tau[:r], rp.RawMatrix(), work, len(work))
	return mat.DenseCopyOf(rp.Slice(0, r, 0, r).T())
}

// factored checks M P = Q R with a random vector. Geqp3 of gonum 0.17 returns wrong factors of some
// matrices with nearly dependent columns.
func factored(m, qr *mat.Dense, pivots []int, tau, work []float64) bool {
	const alike = 1e-10
	rng := rand.New(rand.NewPCG(9, 10))
	d, _ := m.Dims()
	w, product := mat.NewVecDense(d, nil), mat.NewDense(d, 1, nil)
	for j, at := range pivots {
		v := rng.NormFloat64()
		w.SetVec(at, v)
		for i := range j + 1 {
			product.Set(i, 0, product.At(i, 0)+qr.At(i, j)*v)
		}
	}
	lapack64.Ormqr(blas.Left, blas.NoTrans, qr.RawMatrix(), tau, product.RawMatrix(), work, len(work))
	var want, off mat.VecDense
	want.MulVec(m, w)
	off.SubVec(&want, product.ColView(0))
	return mat.Norm(&off, 2) <= alike*mat.Norm(&want, 2)
}

const (
	// OutputRounding is the relative uncertainty of outputs; many are differences of larger numbers.
	OutputRounding = 1e-14
	// Untrusted is the misfit above which a model is rejected.
	Untrusted = 0.05
	// Nothing is the size, relative to a typical magnitude, below which a value counts as 0.
	Nothing = 1e-9
)
