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

// Hold is a linear system x' = A x + B u over one step of size h, whose input is
// a polynomial u(s) = Σ u⁽ⁱ⁾ sⁱ/i!, 0 ≤ s ≤ h, given by its derivatives at the
// start:
//
//	x(h) = A_d x(0) + Σ B_i u⁽ⁱ⁾,  A_d = e^{A h},  B_i = ∫₀ʰ e^{A(h−s)} B sⁱ/i! ds.
//
// Source: haid (13), without its A⁻¹.
type Hold struct {
	A *mat.Dense   // A_d [n×n]; empty if n = 0
	B []*mat.Dense // B_i [n×m], i = 0…order; empty if n = 0 or m = 0
}

// NewHold discretises x' = A x + B u, A [n×n] and B [n×m], for a step h ≥ 0 and
// polynomial inputs of an order ≥ 0. A nil or empty A is a system without states, a nil
// or empty B one without inputs. The matrices are not kept.
//
// All of A_d and B_i come from one exponential of the block matrix
//
//	⎡A h  B h      ⎤
//	⎢      0  I    ⎥
//	⎢         0  I ⎥
//	⎣            0 ⎦
//
// in the manner of C. Van Loan, Computing integrals involving the matrix exponential,
// IEEE Trans. Automatic Control 23 (1978), so that a singular A is nothing special.
// The exponential is that of N. Higham, Functions of Matrices, algorithm 10.20,
// with two changes for stiff systems: A is balanced first, and what is squared
// is X = e^M − I, by X ← X (2 I + X), since I + X would lose the digits of the slow modes,
// as many as the stiffness has.
//
// Errors: dimensions that do not fit, numbers that are not finite, and results
// that overflow.
func NewHold(a, b mat.Matrix, h float64, order int) (*Hold, error) {
	n, m, err := sizesOf(a, b)
	if err != nil {
		return nil, err
	}
	if !(h >= 0) || math.IsInf(h, 0) {
		return nil, fmt.Errorf("a step of %v s: it must be a number and not negative", h)
	}
	if order < 0 {
		return nil, fmt.Errorf("a polynomial of order %d: the order must not be negative", order)
	}
	d := &Hold{A: &mat.Dense{}, B: make([]*mat.Dense, order+1)}
	for i := range d.B {
		d.B[i] = &mat.Dense{}
	}
	if n == 0 {
		return d, nil
	}

	// Balanced and in units of the step: M = [T⁻¹ A T h, T⁻¹ B h S; 0, N].
	balanced := make([]float64, n*n)
	for i := range n {
		for j := range n {
			balanced[i*n+j] = a.At(i, j) * h
		}
	}
	t := balance(balanced, n)
	size := n + m*(order+1)
	w := mat.NewDense(size, size, nil)
	for i := range n {
		copy(w.RawRowView(i), balanced[i*n:][:n])
	}
	units := make([]float64, m)
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
	if math.IsInf(mat.Norm(w, 1), 0) || !finite(w.RawMatrix().Data) {
		return nil, fmt.Errorf("the matrices A and B times the step of %v s hold numbers that are not finite", h)
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
		return nil, fmt.Errorf("the system grows beyond what numbers can hold over a step of %v s: its fastest growth is too fast for the step", h)
	}
	return d, nil
}

// sizesOf returns the number of states and inputs.
func sizesOf(a, b mat.Matrix) (n, m int, err error) {
	n, cols := dims(a)
	if n != cols {
		return 0, 0, fmt.Errorf("A is %d×%d: it must be square", n, cols)
	}
	rows, m := dims(b)
	if n > 0 && m > 0 && rows != n {
		return 0, 0, fmt.Errorf("B has %d rows: there are %d states", rows, n)
	}
	return n, m, nil
}

// dims are the dimensions; those of a nil matrix, of either kind, are 0.
func dims(a mat.Matrix) (rows, columns int) {
	if a == nil {
		return 0, 0
	}
	if d, ok := a.(*mat.Dense); ok && d == nil {
		return 0, 0
	}
	return a.Dims()
}

// expHold returns e^M of the leading n rows and columns, and e^M − I as a whole.
// M is overwritten.
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

	// (V − U)⁻¹ (V + U) − I = (V − U)⁻¹ 2 U. The matrix is regular for such
	// norms (Higham, section 10.3), so the condition that Solve may report is
	// that of the units.
	even.Sub(&even, &odd)
	odd.Scale(2, &odd)
	x = mat.NewDense(size, size, nil)
	var lu mat.LU
	lu.Factorize(&even)
	var condition mat.Condition
	if err := lu.SolveTo(x, false, &odd); errors.As(err, &condition) && math.IsInf(float64(condition), 1) {
		x.Apply(func(_, _ int, _ float64) float64 { return math.NaN() }, x)
	}

	lead = mat.DenseCopyOf(x.Slice(0, n, 0, n))
	addIdentity := func(e *mat.Dense) {
		for i := range n {
			e.Set(i, i, e.At(i, i)+1)
		}
	}
	addIdentity(lead)
	for range halvings {
		t.Mul(x, x)
		x.Scale(2, x)
		x.Add(x, &t)
		var square mat.Dense
		square.Mul(lead, lead)
		lead = &square
	}
	// The powers are wrong by about ε 2^halvings of their size, I + X by ε: of a
	// system that has come to rest within the step, only the powers know the rest.
	if math.Ldexp(mat.Norm(lead, 1), halvings) > 1 {
		lead = mat.DenseCopyOf(x.Slice(0, n, 0, n))
		addIdentity(lead)
	}
	return lead, x
}

// balance makes the rows and columns of a [n×n] alike in size by powers of two, a ← T⁻¹ a T,
// and gives the diagonal of T.
func balance(a []float64, n int) []float64 {
	t := slices.Repeat([]float64{1}, n)
	if finite(a) {
		lapackgonum.Implementation{}.Dgebal(lapack.Scale, n, a, n, t)
	}
	return t
}

// powerOfTwo returns the power of two next below or equal to x > 0; 1 for 0.
func powerOfTwo(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 1
	}
	_, e := math.Frexp(x)
	return math.Ldexp(1, e-1)
}

// finite reports whether all numbers are.
func finite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
