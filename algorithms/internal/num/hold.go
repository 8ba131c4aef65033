package num

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"
)

// Hold is a linear system x' = A x + B u discretised for a step of size h and inputs that are
// polynomials u(s) = Σ u⁽ⁱ⁾ sⁱ/i!, 0 ≤ s ≤ h, given by their derivatives at the start:
//
//	x(h) = A_d x(0) + Σ B_i u⁽ⁱ⁾,  A_d = e^{A h},  B_i = ∫₀ʰ e^{A(h−s)} B sⁱ/i! ds.
//
// Source: haid (13), without its A⁻¹.
type Hold struct {
	A *mat.Dense   // A_d [n×n]; empty if n = 0
	B []*mat.Dense // B_i [n×m], i = 0…order; empty if n = 0 or m = 0
}

// NewHold discretises x' = A x + B u, A [n×n] and B [n×m], for a step h ≥ 0 in s and polynomial
// inputs of an order ≥ 0. With a nil or empty A there are no states, with a nil or empty B no
// inputs. The matrices are not kept.
//
// All of A_d and B_i come from one exponential of the block matrix
//
//	⎡A h  B h      ⎤
//	⎢      0  I    ⎥
//	⎢         0  I ⎥
//	⎣            0 ⎦
//
// as in C. Van Loan, Computing integrals involving the matrix exponential, IEEE Trans. Automatic
// Control 23 (1978), so A may be singular. The exponential is that of N. Higham, Functions of
// Matrices, algorithm 10.20, with two changes for stiff systems: A is balanced first, and X = e^M −
// I is squared by X ← X (2 I + X), since squaring I + X would lose digits of the slow modes.
//
// Errors: inconsistent dimensions, numbers that are not finite, and overflow.
func NewHold(a, b mat.Matrix, h float64, order int) (*Hold, error) {
	n, m, err := sizesOf(a, b)
	if err != nil {
		return nil, err
	}
	if !(h >= 0) || math.IsInf(h, 0) {
		return nil, fmt.Errorf("the step is %v s; it must be a number and not negative", h)
	}
	if order < 0 {
		return nil, fmt.Errorf("the order of the polynomial is %d; it must not be negative", order)
	}
	d := &Hold{A: &mat.Dense{}, B: make([]*mat.Dense, order+1)}
	for i := range d.B {
		d.B[i] = &mat.Dense{}
	}
	if n == 0 {
		return d, nil
	}

	w, t, units := holdMatrix(a, b, n, m, h, order)
	if math.IsInf(mat.Norm(w, 1), 0) || !finite(w.RawMatrix().Data) {
		return nil, fmt.Errorf("the matrices A and B times the step of %v s contain numbers that are not finite", h)
	}
	ad, x := expHold(w, n)

	scale := 1.0 // hⁱ
	d.A = mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			d.A.Set(i, j, ad.At(i, j)*t[i]/t[j])
		}
	}
	ok := finite(d.A.RawMatrix().Data)
	for k := 0; k <= order && m > 0; k++ {
		d.B[k] = mat.NewDense(n, m, nil)
		for i := range n {
			for j := range m {
				d.B[k].Set(i, j, x.At(i, n+k*m+j)*t[i]*units[j]*scale)
			}
		}
		ok = ok && finite(d.B[k].RawMatrix().Data)
		scale *= h
	}
	if !ok {
		return nil, fmt.Errorf("the system grows beyond the range of numbers over a step of %v s", h)
	}
	return d, nil
}

// holdMatrix returns the balanced block matrix M = [T⁻¹ A T h, T⁻¹ B h S⁻¹; 0, N] with the
// diagonals of T and S.
func holdMatrix(a, b mat.Matrix, n, m int, h float64, order int) (w *mat.Dense, t, units []float64) {
	balanced := make([]float64, n*n)
	for i := range n {
		for j := range n {
			balanced[i*n+j] = a.At(i, j) * h
		}
	}
	t = balance(balanced, n)
	size := n + m*(order+1)
	w = mat.NewDense(size, size, nil)
	for i := range n {
		copy(w.RawRowView(i), balanced[i*n:][:n])
	}
	units = make([]float64, m)
	for j := range m {
		largest := 0.0
		for i := range n {
			largest = max(largest, math.Abs(b.At(i, j)*h/t[i]))
		}
		units[j] = powerOfTwo(largest)
		for i := range n {
			w.Set(i, n+j, b.At(i, j)*h/t[i]/units[j])
		}
	}
	for i := n; i < size-m; i++ {
		w.Set(i, i+m, 1)
	}
	return w, t, units
}

// sizesOf returns the numbers of states and inputs.
func sizesOf(a, b mat.Matrix) (n, m int, err error) {
	n, cols := dims(a)
	if n != cols {
		return 0, 0, fmt.Errorf("A is %d×%d: it must be square", n, cols)
	}
	rows, m := dims(b)
	if n > 0 && m > 0 && rows != n {
		return 0, 0, fmt.Errorf("B has %d rows, but there are %d states", rows, n)
	}
	return n, m, nil
}

// dims returns the dimensions of a matrix; 0 for a nil interface or a nil *mat.Dense.
func dims(a mat.Matrix) (rows, columns int) {
	if a == nil {
		return 0, 0
	}
	if d, ok := a.(*mat.Dense); ok && d == nil {
		return 0, 0
	}
	return a.Dims()
}

// expHold returns the leading n rows and columns of e^M, and e^M − I. It overwrites M.
func expHold(m *mat.Dense, n int) (lead, x *mat.Dense) {
	// θ₁₃ and the coefficients of the [13/13] Padé approximant: Higham, table 10.4.
	const theta = 5.371920351148152
	b := [...]float64{64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
		129060195264000, 10559470521600, 670442572800, 33522128640,
		1323241920, 40840800, 960960, 16380, 182, 1}
	halvings := 0
	if norm := mat.Norm(m, 1); norm > theta {
		halvings = int(math.Ceil(math.Log2(norm / theta)))
		m.Scale(math.Ldexp(1, -halvings), m)
	}
	size, _ := m.Dims()
	var m2, m4, m6, even, odd, t, scaled mat.Dense
	m2.Mul(m, m)
	m4.Mul(&m2, &m2)
	m6.Mul(&m4, &m2)
	combine := func(dst *mat.Dense, c6, c4, c2 float64) {
		dst.Scale(c6, &m6)
		scaled.Scale(c4, &m4)
		dst.Add(dst, &scaled)
		scaled.Scale(c2, &m2)
		dst.Add(dst, &scaled)
	}
	part := func(dst *mat.Dense, k int) { // Σ b[k+2i] M²ⁱ
		var low mat.Dense
		combine(dst, b[k+12], b[k+10], b[k+8])
		dst.Mul(&m6, dst)
		combine(&low, b[k+6], b[k+4], b[k+2])
		dst.Add(dst, &low)
		for i := range size {
			dst.Set(i, i, dst.At(i, i)+b[k])
		}
	}
	part(&even, 0)
	part(&t, 1)
	odd.Mul(m, &t)

	// (V − U)⁻¹ (V + U) − I = (V − U)⁻¹ 2 U. The matrix is regular for such norms (Higham,
	// section 10.3). A bad condition reported by Solve is due to the units.
	even.Sub(&even, &odd)
	odd.Scale(2, &odd)
	x = mat.NewDense(size, size, nil)
	var lu mat.LU
	lu.Factorize(&even)
	var condition mat.Condition
	if err := lu.SolveTo(x, false, &odd); errors.As(err, &condition) && math.IsInf(float64(condition), 1) {
		x.Apply(func(_, _ int, _ float64) float64 { return math.NaN() }, x)
	}

	return square(x, n, halvings), x
}

// square replaces x = e^M − I by e^(2^k M) − I and returns the leading n rows and columns of e^(2^k
// M).
func square(x *mat.Dense, n, k int) (lead *mat.Dense) {
	plusIdentity := func() *mat.Dense {
		e := mat.DenseCopyOf(x.Slice(0, n, 0, n))
		for i := range n {
			e.Set(i, i, e.At(i, i)+1)
		}
		return e
	}
	lead = plusIdentity()
	var t mat.Dense
	for range k {
		t.Mul(x, x)
		x.Scale(2, x)
		x.Add(x, &t)
		var next mat.Dense
		next.Mul(lead, lead)
		lead = &next
	}
	// The relative error of the powers is about ε 2^k; the absolute error of I + X is ε. If the
	// states decay within the step, the powers are more accurate.
	if math.Ldexp(mat.Norm(lead, 1), k) > 1 {
		lead = plusIdentity()
	}
	return lead
}

// balance scales the rows and columns of a [n×n] to similar sizes by powers of two, a ← T⁻¹ a T, and
// returns the diagonal of T.
func balance(a []float64, n int) []float64 {
	t := slices.Repeat([]float64{1}, n)
	if finite(a) {
		lapackgonum.Implementation{}.Dgebal(lapack.Scale, n, a, n, t)
	}
	return t
}

// powerOfTwo returns the largest power of two up to x > 0; 1 for 0.
func powerOfTwo(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 1
	}
	_, e := math.Frexp(x)
	return math.Ldexp(1, e-1)
}

// finite reports whether all numbers are finite.
func finite(x []float64) bool {
	return CheckFinite(x) == nil
}
