package linear

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
)

// Flow is the linear system in continuous time that has a given response over steps of one size,
//
//	x' = A x + B u + w,  y = C x + D u + v,
//
// for steps of any size, as algorithms with variable steps take them.
type Flow struct {
	Space StateSpace // w and v are the last columns of B and D, for an additional input of 1
	// deaf means that only the values of inputs at the start of a step have an effect, as with a solver that makes one
	// internal step per step.
	deaf bool
	size float64      // of A: its 1-norm, 1/s
	term [2][]float64 // terms of the series of the states
	now  [][]float64  // derivatives of the inputs, and 1
	end  []float64    // inputs at the end
}

// errNoFlow means that a response is not that of a system in continuous time.
var errNoFlow = errors.New("its response over a step is not that of a system in continuous time, probably because of " +
	"dead time, sampling or internal steps of its own [own-steps]")

// NewFlow returns the system in continuous time with a response over steps of size h to nu inputs. The response must have
// Own and OwnY. Errors: it is not that of a system in continuous time, as with dead time or sampling.
func NewFlow(r *Response, h float64, nu int) (*Flow, error) {
	n := r.States()
	f := &Flow{}
	with := func(of *mat.Dense, own []float64) *mat.Dense {
		rows, _ := of.Dims()
		m := mat.NewDense(rows, nu+1, nil)
		for k := range nu {
			m.SetCol(k, mat.Col(nil, k, of))
		}
		for i, v := range own {
			m.Set(i, nu, v)
		}
		return m
	}
	direct := with(r.D[0], r.OwnY)
	if n == 0 {
		f.Space.D = direct
		return f, nil
	}
	held := with(r.B[0], r.Own)
	f.deaf = nu > 0 && len(r.D) > 1 && mat.Norm(r.D[1], 1) <= Nothing*mat.Norm(r.D[0], 1) && mat.Norm(r.B[1], 1) <= Nothing*mat.Norm(r.B[0], 1)
	var err error
	if f.Space.A, f.Space.B, err = continuous(r.A, held, h); err != nil {
		return nil, err
	}
	f.size = mat.Norm(f.Space.A, 1)
	// y⁺ = C_r x + D_r u with C_r = C A_d, D_r = C B_d + D.
	var c mat.Dense
	if err := c.Solve(r.A.T(), r.C.T()); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) || float64(condition) > 1e12 {
			return nil, errNoFlow
		}
	}
	f.Space.C = mat.DenseCopyOf(c.T())
	var through mat.Dense
	through.Mul(f.Space.C, held)
	direct.Sub(direct, &through)
	f.Space.D = direct
	return f, nil
}

// continuous returns A and B of x' = A x + B u from x⁺ = ad x + held u over steps of size h with held inputs.
func continuous(ad, held *mat.Dense, h float64) (a, b *mat.Dense, err error) {
	// e^{Mh} of M = [A B; 0 0], with inputs scaled so that A determines the number of square roots.
	const largest = 0.1
	n, nu := held.Dims()
	sizes := make([]float64, nu)
	for k := range sizes {
		for i := range n {
			sizes[k] = max(sizes[k], math.Abs(held.At(i, k))/largest)
		}
		if sizes[k] == 0 {
			sizes[k] = 1
		}
	}
	m := mat.NewDense(n+nu, n+nu, nil)
	m.Slice(0, n, 0, n).(*mat.Dense).Copy(ad)
	for k, size := range sizes {
		for i := range n {
			m.Set(i, n+k, held.At(i, k)/size)
		}
		m.Set(n+k, n+k, 1)
	}
	log, err := logarithm(m)
	if err != nil {
		return nil, nil, err
	}
	log.Scale(1/h, log)
	a, b = mat.DenseCopyOf(log.Slice(0, n, 0, n)), mat.NewDense(n, nu, nil)
	for k, size := range sizes {
		for i := range n {
			b.Set(i, k, log.At(i, n+k)*size)
		}
	}
	return a, b, nil
}

const (
	// A step is made in pieces of length pieceSize/‖A‖ at most, by pieceTerms terms of the series; a step of more than
	// mostPieces pieces by a matrix exponential.
	pieceSize, pieceTerms, mostPieces = 1, 20, 100
)

// Step advances the states x [n] over h (s), with derivatives u[m] [nu] of the inputs at the start, and puts the outputs
// at the end into y [ny]. Errors: overflow.
func (f *Flow) Step(x, y []float64, u [][]float64, h float64) error {
	n, nu := len(x), len(u[0])
	if f.term[0] == nil {
		f.term = [2][]float64{make([]float64, n), make([]float64, n)}
		f.end = make([]float64, nu+1)
	}
	for len(f.now) < len(u) {
		f.now = append(f.now, make([]float64, nu+1))
	}
	heard := u
	if f.deaf {
		heard = u[:1]
	}
	pieces := max(math.Ceil(f.size*h/pieceSize), 1)
	if pieces > mostPieces && n > 0 {
		return f.exponential(x, y, heard, h)
	}
	for piece := range int(pieces) {
		at, over := float64(piece)*(h/pieces), h/pieces
		for m := range heard {
			Taylor(f.now[m][:nu], heard, m, at)
			f.now[m][nu] = 0
		}
		f.now[0][nu] = 1
		// x⁽ʲ⁺¹⁾ = A x⁽ʲ⁾ + B u⁽ʲ⁾
		term, next := f.term[0], f.term[1]
		copy(term, x)
		factor := 1.0
		for j := range pieceTerms {
			if n == 0 {
				break
			}
			clear(next)
			Multiply(next, f.Space.A, term, 1)
			if j < len(heard) {
				Multiply(next, f.Space.B, f.now[j], 1)
			}
			factor *= over / float64(j+1)
			for i, v := range next {
				x[i] += factor * v
			}
			term, next = next, term
		}
	}
	f.outputs(x, y, heard, h)
	return nil
}

// outputs returns y at the end of a step of size h.
func (f *Flow) outputs(x, y []float64, u [][]float64, h float64) {
	nu := len(u[0])
	Taylor(f.end[:nu], u, 0, h)
	f.end[nu] = 1
	clear(y)
	if len(x) > 0 {
		Multiply(y, f.Space.C, x, 1)
	}
	Multiply(y, f.Space.D, f.end, 1)
}

// exponential is Step by a matrix exponential.
func (f *Flow) exponential(x, y []float64, u [][]float64, h float64) error {
	r, err := f.Over(h, len(u)-1)
	if err != nil {
		return err
	}
	next := f.term[0]
	clear(next)
	Multiply(next, r.A, x, 1)
	factor := 1.0 // hᵐ/m!
	for m := range u {
		if m > 0 {
			factor *= h / float64(m)
		}
		copy(f.now[0], u[m])
		f.now[0][len(u[m])] = 0
		if m == 0 {
			f.now[0][len(u[m])] = 1
		}
		Multiply(next, r.B[m], f.now[0], factor)
	}
	copy(x, next)
	f.outputs(x, y, u, h)
	return nil
}

// Over returns the response over steps of size h to polynomials of an order, with w and v as an additional input.
func (f *Flow) Over(h float64, order int) (*Response, error) {
	r, err := f.Space.Over(h, order)
	if err == nil && f.deaf {
		for m := 1; m <= order; m++ {
			r.B[m].Zero()
			r.D[m].Zero()
		}
	}
	return r, err
}

// Off returns the largest distance of the flow from a response r over steps of another size h to nu inputs, which are held
// or have a slope over the first of some steps, relative to the largest response of each output to each held input.
func (f *Flow) Off(r *Response, h float64, nu int) (worst float64, err error) {
	const steps = 10
	mine, err := f.Over(h, len(r.D)-1)
	if err != nil {
		return 0, err
	}
	if nu == 0 {
		return 0, nil
	}
	ny, _ := r.D[0].Dims()
	sizes, most := mat.NewDense(ny, nu, nil), make([]float64, ny) // of the responses to held inputs
	for power := range min(len(r.D), 2) {
		a, b := Impulse(mine, power, steps), Impulse(r, power, steps)
		apart := mat.NewDense(ny, nu, nil)
		for j := range a {
			for o := range ny {
				for k := range nu {
					apart.Set(o, k, max(apart.At(o, k), math.Abs(a[j].At(o, k)-b[j].At(o, k))))
					if power == 0 {
						sizes.Set(o, k, max(sizes.At(o, k), math.Abs(a[j].At(o, k)), math.Abs(b[j].At(o, k))))
						most[o] = max(most[o], sizes.At(o, k))
					}
				}
			}
		}
		for o := range ny {
			for k := range nu {
				if size := sizes.At(o, k); size > Nothing*most[o] {
					worst = max(worst, apart.At(o, k)/size)
				}
			}
		}
	}
	return worst, nil
}

// Impulse returns the outputs [ny × nu] after each step if each input has the coefficient 1 of a power of s/h over the
// first step and is 0 afterwards.
func Impulse(r *Response, power, steps int) []*mat.Dense {
	out := []*mat.Dense{r.D[power]}
	if r.A == nil {
		return out
	}
	x := mat.DenseCopyOf(r.B[power])
	for range steps - 1 {
		var y, next mat.Dense
		y.Mul(r.C, x)
		next.Mul(r.A, x)
		out, x = append(out, &y), &next
	}
	return out
}

// logarithm returns the principal logarithm of a matrix by inverse scaling and squaring: square roots until it is
// close to I, then the Padé approximant of order 8 in partial fractions (N. Higham, Functions of Matrices,
// 11.5; the roots by the product form of Denman and Beavers, 6.29).
//
// Errors: eigenvalues that are 0 or negative, or an inaccurate result.
func logarithm(m *mat.Dense) (*mat.Dense, error) {
	const (
		close, mostRoots = 0.25, 60
		points           = 8
		exact            = 1e-8 // relative to the matrix
	)
	n, _ := m.Dims()
	one := identity(n)
	root, roots := mat.DenseCopyOf(m), 0
	var x mat.Dense
	for x.Sub(root, one); !(mat.Norm(&x, 1) <= close); x.Sub(root, one) {
		if roots++; roots > mostRoots {
			return nil, errNoFlow
		}
		next, err := squareRoot(root)
		if err != nil {
			return nil, err
		}
		root = next
	}
	at, weights := make([]float64, points), make([]float64, points)
	quad.Legendre{}.FixedLocations(at, weights, 0, 1)
	sum := mat.NewDense(n, n, nil)
	for k, s := range at {
		var below, part mat.Dense
		below.Scale(s, &x)
		below.Add(&below, one)
		if err := part.Solve(&below, &x); err != nil {
			return nil, errNoFlow
		}
		part.Scale(weights[k], &part)
		sum.Add(sum, &part)
	}
	sum.Scale(math.Exp2(float64(roots)), sum)
	var back mat.Dense
	back.Exp(sum)
	back.Sub(&back, m)
	if off := mat.Norm(&back, 1); !(off <= exact*mat.Norm(m, 1)) {
		return nil, fmt.Errorf("%w (its logarithm is off by %.1g)", errNoFlow, off)
	}
	return sum, nil
}

// squareRoot returns the principal square root.
func squareRoot(a *mat.Dense) (*mat.Dense, error) {
	const (
		most     = 50
		rounding = 1e-14
	)
	n, _ := a.Dims()
	x, m := mat.DenseCopyOf(a), mat.DenseCopyOf(a)
	var inverse, next, sum mat.Dense
	for range most {
		if err := inverse.Inverse(m); err != nil {
			var condition mat.Condition
			if !errors.As(err, &condition) || math.IsInf(float64(condition), 0) {
				return nil, errNoFlow
			}
		}
		// x ← x (I + m⁻¹)/2, m ← (I + (m + m⁻¹)/2)/2.
		sum.Scale(0.5, &inverse)
		for i := range n {
			sum.Set(i, i, sum.At(i, i)+0.5)
		}
		next.Mul(x, &sum)
		x.Copy(&next)
		m.Add(m, &inverse)
		m.Scale(0.25, m)
		off := 0.0
		for i := range n {
			m.Set(i, i, m.At(i, i)+0.5)
			for j := range n {
				v := m.At(i, j)
				if i == j {
					v--
				}
				off = max(off, math.Abs(v))
			}
		}
		if !Finite(off) {
			return nil, errNoFlow
		}
		if off <= rounding*float64(n) {
			return x, nil
		}
	}
	return nil, errNoFlow
}
