package exact

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mat"
)

// Haid is the two-mass oscillator of haid 3.1 in force/displacement decomposition:
// (27), and (43) where ND is not 1. Subsystem I holds mass 1, subsystem II mass 2
// and the coupling element.
type Haid struct {
	M1, M2, C1, C2, D1, D2 float64 // kg, N/m, N s/m
	CK, DK                 float64 // N/m, N s/m
	ND, DMin, DMax         float64
	Start                  [4]float64 // s1, v1, s2, v2
}

// DefaultHaid has the parameters of haid 3.1 with the coupling of 4.3.
func DefaultHaid() Haid {
	return Haid{M1: 10, M2: 10, C1: 1e6, C2: 1e7, D1: 1, D2: 2, CK: 2e5, DK: 5e2, ND: 1, DMin: 10, DMax: 1e4, Start: [4]float64{0, 1, 0, 1}}
}

// matrices returns A, B, C, D of both subsystems (5) and L (2): x = s1 v1 s2 v2,
// u = F, s1, v1, y = s1, v1, F.
func (o Haid) matrices() (a, b, c, d, l *mat.Dense) {
	a = mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-o.C1 / o.M1, -o.D1 / o.M1, 0, 0,
		0, 0, 0, 1,
		0, 0, -(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2,
	})
	b = mat.NewDense(4, 3, []float64{0, 0, 0, 1 / o.M1, 0, 0, 0, 0, 0, 0, o.CK / o.M2, o.DK / o.M2})
	c = mat.NewDense(3, 4, []float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, o.CK, o.DK})
	d = mat.NewDense(3, 3, []float64{0, 0, 0, 0, 0, 0, 0, -o.CK, -o.DK})
	l = mat.NewDense(3, 3, []float64{0, 0, 1, 1, 0, 0, 0, 1, 0})
	return a, b, c, d, l
}

// exponential returns e^a. It balances rows and columns first, because displacements and
// velocities of a stiff oscillator differ by orders of magnitude.
func exponential(a *mat.Dense) *mat.Dense {
	n, _ := a.Dims()
	scale := make([]float64, n)
	for i := range scale {
		scale[i] = 1
	}
	m := mat.DenseCopyOf(a)
	for changed := true; changed; {
		changed = false
		for i := range n {
			row, column := 0.0, 0.0
			for j := range n {
				if j != i {
					row += math.Abs(m.At(i, j))
					column += math.Abs(m.At(j, i))
				}
			}
			if row == 0 || column == 0 {
				continue
			}
			f := math.Exp2(math.Round(math.Log2(row/column) / 2))
			if row/f+column*f >= 0.9*(row+column) {
				continue
			}
			changed = true
			scale[i] *= f
			for j := range n {
				m.Set(i, j, m.At(i, j)/f)
				m.Set(j, i, m.At(j, i)*f)
			}
		}
	}
	e := new(mat.Dense)
	e.Exp(m)
	for i := range n {
		for j := range n {
			e.Set(i, j, e.At(i, j)*scale[i]/scale[j])
		}
	}
	return e
}

// hold returns e^{AH} and B_d0 … B_dp, ∫ e^{A(H−s)} B s^i/i! ds (13), by one block
// exponential.
func hold(a, b *mat.Dense, H float64, p int) (ad *mat.Dense, bd []*mat.Dense) {
	n, m := b.Dims()
	size := n + m*(p+1)
	block := mat.NewDense(size, size, nil)
	block.Slice(0, n, 0, n).(*mat.Dense).Scale(H, a)
	block.Slice(0, n, n, n+m).(*mat.Dense).Scale(H, b)
	for i := range m * p {
		block.Set(n+i, n+m+i, H)
	}
	e := exponential(block)
	for i := range p + 1 {
		bd = append(bd, mat.DenseCopyOf(e.Slice(0, n, n+i*m, n+(i+1)*m)))
	}
	return mat.DenseCopyOf(e.Slice(0, n, 0, n)), bd
}

// holdWeights are those of the extrapolation ext_p on equal steps.
var holdWeights = [][]float64{{1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}, {5, -10, 10, -5, 1}}

// stateWeights are γ_p of the state correction: 1/2, 5/12, … (24), (25).
var stateWeights = []float64{1. / 2, 5. / 12, 3. / 8, 251. / 720, 95. / 288}

// Corrected is a co-simulation of Haid with steps of one size H and the hold of
// order p, with or without model-based correction of share alpha, as (38) to (42)
// have it: z = x, ȳ_n, …, ȳ_{n−p}, δu.
type Corrected struct {
	Haid
	H       float64
	P       int
	Correct bool
	Alpha   float64
}

// Propagation returns Φ of z_{n+1} = Φ z_n, of size 4 + 3(p+1) + 3.
func (o Corrected) Propagation() *mat.Dense {
	p := o.P
	size := 4 + 3*(p+1) + 3
	x, y, bd := o.predicted(size)
	offset := mat.NewDense(3, size, nil)
	if o.Correct {
		offset = o.correct(y, bd)
	}
	phi := mat.NewDense(size, size, nil)
	phi.Slice(0, 4, 0, size).(*mat.Dense).Copy(x)
	phi.Slice(4, 7, 0, size).(*mat.Dense).Copy(y)
	for j := 0; j < 3*p; j++ {
		phi.Set(7+j, 4+j, 1)
	}
	phi.Slice(size-3, size, 0, size).(*mat.Dense).Copy(offset)
	return phi
}

// predicted returns the states and outputs after a step without correction, as rows over z of some size, and the matrices
// B_d of hold.
func (o Corrected) predicted(size int) (x, y *mat.Dense, bd []*mat.Dense) {
	a, b, c, d, l := o.matrices()
	ad, bd := hold(a, b, o.H, o.P)
	// ũ^(m) at the start of the step as rows over z: derivatives of the polynomial
	// through the last p+1 points, plus δu for m = 0.
	inputs := make([]*mat.Dense, o.P+1)
	for m := range inputs {
		inputs[m] = mat.NewDense(3, size, nil)
		for j, w := range nodeDerivative(o.P, m, o.H) {
			part := inputs[m].Slice(0, 3, 4+3*j, 4+3*j+3).(*mat.Dense)
			part.Scale(w, l)
		}
		if m == 0 {
			for k := range 3 {
				inputs[0].Set(k, size-3+k, 1)
			}
		}
	}
	x = mat.NewDense(4, size, nil)
	x.Slice(0, 4, 0, 4).(*mat.Dense).Copy(ad)
	end := mat.NewDense(3, size, nil) // ũ at the end
	factor := 1.0
	for m := range inputs {
		if m > 0 {
			factor *= o.H / float64(m)
		}
		var moved, part mat.Dense
		moved.Mul(bd[m], inputs[m])
		x.Add(x, &moved)
		part.Scale(factor, inputs[m])
		end.Add(end, &part)
	}
	y = mat.NewDense(3, size, nil)
	y.Mul(c, x)
	var direct mat.Dense
	direct.Mul(d, end)
	y.Add(y, &direct)
	return x, y, bd
}

// correct replaces the predicted outputs y, rows over z, with the corrected ones, and returns the new δu.
func (o Corrected) correct(y *mat.Dense, bd []*mat.Dense) (offset *mat.Dense) {
	_, _, c, d, l := o.matrices()
	_, size := y.Dims()
	ext := mat.NewDense(3, size, nil) // of ȳ
	for j, w := range holdWeights[o.P] {
		for k := range 3 {
			ext.Set(k, 4+3*j+k, w)
		}
	}
	// (16), (18), (19): ȳ = (I − G L)⁻¹ (y − G L ext − G_0 δu).
	g := mat.DenseCopyOf(d)
	power := 1.0
	for i, w := range courseCoefficients(o.P) {
		if i > 0 {
			power *= float64(i) / o.H // i!/Hⁱ
		}
		var part mat.Dense
		part.Mul(c, bd[i])
		part.Scale(w*power, &part)
		g.Add(g, &part)
	}
	g0 := mat.NewDense(3, 3, nil)
	g0.Mul(c, bd[0])
	g0.Add(g0, d)
	var gl, lhs, extrapolated, shifted, solved mat.Dense
	gl.Mul(g, l)
	lhs.Scale(-1, &gl)
	for k := range 3 {
		lhs.Set(k, k, 1+lhs.At(k, k))
	}
	extrapolated.Mul(&gl, ext)
	y.Sub(y, &extrapolated)
	shifted.Mul(g0, pick(size, size-3))
	y.Sub(y, &shifted)
	var scaled mat.Condition // large because displacements are beside forces, and harmless
	if err := solved.Solve(&lhs, y); err != nil && !errors.As(err, &scaled) {
		panic(fmt.Sprint("exact: I − G L: ", err)) // not singular for the parameters of the paper
	}
	y.Copy(&solved)
	// (23): δu ← (1−α) δu + α γ L (ȳ − ext).
	var jump, change mat.Dense
	jump.Sub(y, ext)
	change.Mul(l, &jump)
	offset = mat.NewDense(3, size, nil)
	offset.Scale(o.Alpha*stateWeights[o.P], &change)
	for k := range 3 {
		offset.Set(k, size-3+k, offset.At(k, size-3+k)+1-o.Alpha)
	}
	return offset
}

// pick returns the rows over z of three entries.
func pick(size, from int) *mat.Dense {
	m := mat.NewDense(3, size, nil)
	for k := range 3 {
		m.Set(k, from+k, 1)
	}
	return m
}

// courseCoefficients are c_i of Π_{j<p} (s + jH)/(H + jH) = Σ c_i (s/H)^i.
func courseCoefficients(p int) []float64 {
	c := []float64{1}
	for j := range p {
		next := make([]float64, len(c)+1)
		for i, v := range c {
			next[i] += v * float64(j) / float64(j+1)
			next[i+1] += v / float64(j+1)
		}
		c = next
	}
	return c
}

// nodeDerivative returns the weights of the values at 0, −H, …, −pH in the m-th
// derivative at 0 of the polynomial through them, by the Vandermonde system.
func nodeDerivative(p, m int, H float64) []float64 {
	v := mat.NewDense(p+1, p+1, nil)
	for i := range p + 1 {
		for j := range p + 1 {
			v.Set(i, j, math.Pow(-float64(j), float64(i)))
		}
	}
	rhs := mat.NewVecDense(p+1, nil)
	factorial := 1.0
	for i := 2; i <= m; i++ {
		factorial *= float64(i)
	}
	rhs.SetVec(m, factorial/math.Pow(H, float64(m)))
	var w mat.VecDense
	if err := w.SolveVec(v, rhs); err != nil {
		panic(err) // the nodes differ
	}
	return w.RawVector().Data
}

// Outputs returns y = s1, v1, F of the coupled system without co-simulation at a
// time, linear case (34) to (37).
func (o Haid) Outputs(t float64) []float64 {
	x := o.States(t)
	return []float64{x[0], x[1], o.CK*(x[2]-x[0]) + o.DK*(x[3]-x[1])}
}

// States returns x of the coupled system at a time, linear case.
func (o Haid) States(t float64) []float64 {
	a := mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-(o.C1 + o.CK) / o.M1, -(o.D1 + o.DK) / o.M1, o.CK / o.M1, o.DK / o.M1,
		0, 0, 0, 1,
		o.CK / o.M2, o.DK / o.M2, -(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2,
	})
	a.Scale(t, a)
	var x mat.VecDense
	x.MulVec(exponential(a), mat.NewVecDense(4, o.Start[:]))
	return x.RawVector().Data
}

// Coupled returns the matrix [7,4] from s1 v1 s2 v2 to the states and outputs
// s1 v1 s2 v2, s1 v1 F of the coupled system at a later time, linear case.
func (o Haid) Coupled(later float64) *mat.Dense {
	m := mat.NewDense(7, 4, nil)
	for k := range 4 {
		o.Start = [4]float64{}
		o.Start[k] = 1
		m.SetCol(k, append(o.States(later), o.Outputs(later)...))
	}
	return m
}

// Solve returns states and outputs of z at steps 0 … n, from an exact history: rows
// of s1 v1 s2 v2 and of ȳ.
func (o Corrected) Solve(n int) (x [][4]float64, y [][3]float64) {
	phi := o.Propagation()
	size, _ := phi.Dims()
	z := mat.NewVecDense(size, nil)
	for i, v := range o.Start {
		z.SetVec(i, v)
	}
	for j := range o.P + 1 {
		for k, v := range o.Outputs(-float64(j) * o.H) {
			z.SetVec(4+3*j+k, v)
		}
	}
	for range n + 1 {
		d := z.RawVector().Data
		x, y = append(x, [4]float64(d[:4])), append(y, [3]float64(d[4:7]))
		next := mat.NewVecDense(size, nil)
		next.MulVec(phi, z)
		z = next
	}
	return x, y
}

// Radius returns the spectral radius of the propagation matrix (29).
func (o Corrected) Radius() float64 {
	var e mat.Eigen
	if !e.Factorize(o.Propagation(), mat.EigenNone) {
		return math.NaN()
	}
	r := 0.0
	for _, v := range e.Values(nil) {
		r = max(r, math.Hypot(real(v), imag(v)))
	}
	return r
}

// LocalError returns the local error (31) of one step from exact values at the end
// of n steps of the reference, by the norm (33) over the outputs.
func (o Corrected) LocalError(n int) float64 {
	phi := o.Propagation()
	size, _ := phi.Dims()
	var reference, got [][3]float64
	for i := range n {
		t := float64(i) * o.H
		z := mat.NewVecDense(size, nil)
		for k, v := range o.States(t) {
			z.SetVec(k, v)
		}
		for j := range o.P + 1 {
			for k, v := range o.Outputs(t - float64(j)*o.H) {
				z.SetVec(4+3*j+k, v)
			}
		}
		var next mat.VecDense
		next.MulVec(phi, z)
		reference = append(reference, [3]float64(o.Outputs(t+o.H)))
		got = append(got, [3]float64{next.AtVec(4), next.AtVec(5), next.AtVec(6)})
	}
	return NRMSE(got, reference)
}

// NRMSE is the norm (33) of the outputs at a number of points against a reference:
// root mean squares of the differences over time by the standard deviation of the
// reference, root mean square over the outputs. Both have one row a point.
func NRMSE(got, reference [][3]float64) float64 {
	total := 0.0
	for k := range 3 {
		mean, e, s := 0.0, 0.0, 0.0
		for _, v := range reference {
			mean += v[k] / float64(len(reference))
		}
		for i, v := range reference {
			e += (got[i][k] - v[k]) * (got[i][k] - v[k])
			s += (v[k] - mean) * (v[k] - mean)
		}
		total += e / s / 3
	}
	return math.Sqrt(total)
}

// GlobalError returns the global error (32) over steps 1 … n from an exact history,
// by the norm (33) over the outputs, like NRMSE of Solve and Outputs, but in log n steps, from
// sums of z zᵀ: Σ_{i≤2m} = Σ_{i≤m} + Φᵐ (Σ_{i≤m}) Φᵐᵀ. Squares lose half of the digits: errors below about 1e-7 are
// noise. It is infinite if the outputs overflow.
func (o Corrected) GlobalError(n int) float64 {
	phi := o.Propagation()
	size, _ := phi.Dims()
	// z of the co-simulation, x and y of the coupled system, and 1 for the sums.
	all := size + 4 + 3 + 1
	step := mat.NewDense(all, all, nil)
	step.Slice(0, size, 0, size).(*mat.Dense).Copy(phi)
	step.Slice(size, size+7, size, size+4).(*mat.Dense).Copy(o.Coupled(o.H))
	step.Set(all-1, all-1, 1)
	z := mat.NewVecDense(all, nil)
	for i, v := range o.Start {
		z.SetVec(i, v)
		z.SetVec(size+i, v)
	}
	for j := range o.P + 1 {
		for k, v := range o.Outputs(-float64(j) * o.H) {
			z.SetVec(4+3*j+k, v)
		}
	}
	z.SetVec(all-1, 1)
	// sum = Σ_{1≤i≤m} z_i z_iᵀ and power = Φᵐ, for m the leading binary digits of n.
	var next mat.VecDense
	next.MulVec(step, z)
	sum, power := mat.NewDense(all, all, nil), mat.DenseCopyOf(step)
	sum.Outer(1, &next, &next)
	first := mat.DenseCopyOf(sum)
	move := func(sum, by *mat.Dense) {
		var t mat.Dense
		t.Mul(by, sum)
		sum.Mul(&t, by.T())
	}
	for digit := bits.Len(uint(n)) - 2; digit >= 0; digit-- {
		double := mat.DenseCopyOf(sum)
		move(double, power)
		sum.Add(sum, double)
		var squared mat.Dense
		squared.Mul(power, power)
		power.Copy(&squared)
		if n>>digit&1 == 1 {
			move(sum, step)
			sum.Add(sum, first)
			squared.Mul(power, step)
			power.Copy(&squared)
		}
	}
	total := 0.0
	for k := range 3 {
		y, reference := 4+k, size+4+k
		e := sum.At(y, y) - 2*sum.At(y, reference) + sum.At(reference, reference)
		mean := sum.At(reference, all-1) / float64(n)
		total += max(e, 0) / (sum.At(reference, reference) - float64(n)*mean*mean) / 3
	}
	if math.IsNaN(total) {
		return math.Inf(1)
	}
	return math.Sqrt(total)
}

// Reference returns s1 v1 s2 v2 of the coupled system at increasing times that start
// at 0, with the damping of (43), by integration to a relative tolerance of 1e-12.
func (o Haid) Reference(times []float64) ([][]float64, error) {
	f := func(_ float64, x, dx []float64) {
		force := o.Force(x)
		dx[0], dx[1] = x[1], (-o.C1*x[0]-o.D1*x[1]+force)/o.M1
		dx[2], dx[3] = x[3], (-o.C2*x[2]-o.D2*x[3]-force)/o.M2
	}
	return integrate(f, o.Start[:], times, 1e-12, []float64{1e-15, 1e-12, 1e-15, 1e-12})
}

// Force returns F of states s1 v1 s2 v2.
func (o Haid) Force(x []float64) float64 {
	w := x[3] - x[1]
	d := o.DK
	if o.ND != 1 {
		d = max(min(o.DK*math.Pow(math.Abs(w), o.ND-1), o.DMax), o.DMin)
	}
	return o.CK*(x[2]-x[0]) + d*w
}
