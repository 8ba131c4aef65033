package oracle

import (
	"cmp"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
)

// Scheme is a coupling scheme on one decomposition.
type Scheme struct {
	Decomposition string // "ff", "fd" or "dd"
	Implicit      bool   // the polynomials go through the value at the end of the macro step
	Order         int    // k
	Substeps      int    // polynomials sampled at the midpoints of so many substeps; 0 = delivered exactly
	Sequence      []int  // Gauss–Seidel: 0 and 1 in the order in which the masses are stepped; nil = Jacobi
	History       bool   // the k points before the start are known exactly
}

// String names the scheme: "fd/implicit/k=2".
func (s Scheme) String() string {
	kind := "explicit"
	switch {
	case s.Implicit:
		kind = "implicit"
	case s.Sequence != nil:
		kind = fmt.Sprintf("sequence=%v", s.Sequence)
	}
	return fmt.Sprintf("%s/%s/k=%d", s.Decomposition, kind, s.Order)
}

// Methods returns the Jacobi schemes with all orders up to highest on the three decompositions, delivered exactly:
// the 24 of schweizer up to 3.
func Methods(highest int) (all []Scheme) {
	for _, d := range []string{"ff", "fd", "dd"} {
		for _, implicit := range []bool{false, true} {
			for k := range highest + 1 {
				all = append(all, Scheme{Decomposition: d, Implicit: implicit, Order: k})
			}
		}
	}
	return all
}

// Depth is the number of communication points that a macro step needs to know. The recurrence has 4·Depth eigenvalues
// (schweizer 2.1; the printed 4k is that of the implicit scheme with k > 0). Many are 0, since past points enter by
// the coupling variables only.
func (s Scheme) Depth() int {
	if s.Implicit {
		return max(s.Order, 1)
	}
	return s.Order + 1
}

// Mass is one mass as a subsystem: x' = A x + B u, u = K [x1 v1 x2 v2].
type Mass struct {
	A, B, K *mat.Dense
	ByForce bool // driven by the coupling force, else by the motion of the other mass
}

// Masses cuts the oscillator in two (schweizer 2.1 to 2.3).
func Masses(o exact.TwoMass, decomposition string) [2]Mass {
	byForce := [2]bool{decomposition != "dd", decomposition == "ff"}
	var out [2]Mass
	for i := range out {
		m, c, d := o.M1, o.C1, o.D1
		if i == 1 {
			m, c, d = o.M2, o.C2, o.D2
		}
		p := &out[i]
		p.ByForce = byForce[i]
		if byForce[i] {
			sign := 1 - 2*float64(i)
			p.A = mat.NewDense(2, 2, []float64{0, 1, -c / m, -d / m})
			p.B = mat.NewDense(2, 1, []float64{0, 1 / m})
			p.K = mat.NewDense(1, 4, []float64{-sign * o.Cc, -sign * o.Dc, sign * o.Cc, sign * o.Dc})
			continue
		}
		p.A = mat.NewDense(2, 2, []float64{0, 1, -(c + o.Cc) / m, -(d + o.Dc) / m})
		p.B = mat.NewDense(2, 2, []float64{0, 0, o.Cc / m, o.Dc / m})
		p.K = mat.NewDense(2, 4, nil)
		for j := range 2 {
			p.K.Set(j, 2*(1-i)+j, 1)
		}
	}
	return out
}

// Symmetric returns the oscillator of equal masses of 1 kg and equal springs whose eigenvalue is r ± i·w in 1/s (schweizer
// 3.1): a mass m with it has d = −2 m r and c = m (r² + w²).
func Symmetric(r, w float64) exact.TwoMass {
	c, d := r*r+w*w, -2*r
	return exact.TwoMass{M1: 1, C1: c, D1: d, M2: 1, C2: c, D2: d, Cc: c, Dc: d}
}

// States returns x1, v1, x2, v2 at the points 0, H, …, steps·H and the spectral radius of the propagation matrix with
// full history. Without history the degree is min(k, n) in step n = 0, 1, …, and min(k, n+1) if implicit.
func States(o exact.TwoMass, s Scheme, H float64, steps int) (states [][4]float64, radius float64) {
	depth := s.Depth()
	z := mat.NewVecDense(4*depth, nil)
	points := 1
	if s.History {
		points = depth
	}
	for j := range points {
		for i, v := range o.At(-float64(j) * H) {
			z.SetVec(4*j+i, v)
		}
	}
	keep := func() { states = append(states, [4]float64(mat.Col(nil, 0, z)[:4])) }
	keep()
	full := Propagation(o, s, H)
	for n := range steps {
		m := full
		if points+n < depth {
			m = propagation(o, s, H, points+n)
		}
		next := mat.NewVecDense(4*depth, nil)
		next.MulVec(m, z)
		z = next
		keep()
	}
	return states, cmplx.Abs(Eigenvalues(full)[0])
}

// Propagation returns the matrix M of one macro step with full history, z_{N+1} = M z_N for z = [x_N; x_{N−1}; …] of
// Depth points, x = [x1 v1 x2 v2].
func Propagation(o exact.TwoMass, s Scheme, H float64) *mat.Dense {
	return propagation(o, s, H, s.Depth())
}

// propagation is Propagation when only so many points are known, x_N included. What the polynomials take from the end
// of the macro step makes the recurrence x_{N+1} = P x_{N+1} + Q z_N (schweizer (20)), which is solved for x_{N+1}.
func propagation(o exact.TwoMass, s Scheme, H float64, points int) *mat.Dense {
	masses := Masses(o, s.Decomposition)
	dim := 4 * s.Depth()
	p, q := mat.NewDense(4, 4, nil), mat.NewDense(4, dim, nil)
	order := s.Sequence
	if order == nil {
		order = []int{0, 1}
	}
	for turn, i := range order {
		m := masses[i]
		// Gauss–Seidel: the second one knows the motion of the first; the force is evaluated after both.
		ahead := s.Implicit || s.Sequence != nil && turn == 1 && !m.ByForce
		var nodes []float64
		if ahead {
			nodes = append(nodes, H)
		}
		for j := 0; len(nodes) < s.Order+1 && j < points; j++ {
			nodes = append(nodes, -float64(j)*H)
		}
		e, g := respond(m, H, nodes, s.Substeps)
		q.Slice(2*i, 2*i+2, 2*i, 2*i+2).(*mat.Dense).Copy(e)
		for j := range nodes {
			to, at := q, j
			if ahead {
				at--
			}
			if at < 0 {
				to, at = p, 0
			}
			var gk mat.Dense
			gk.Mul(g[j], m.K)
			rows := to.Slice(2*i, 2*i+2, 4*at, 4*at+4).(*mat.Dense)
			rows.Add(rows, &gk)
		}
	}
	for i := range 4 {
		for j := range 4 {
			p.Set(i, j, -p.At(i, j))
		}
		p.Set(i, i, 1+p.At(i, i))
	}
	matrix := mat.NewDense(dim, dim, nil)
	for i := 4; i < dim; i++ {
		matrix.Set(i, i-4, 1)
	}
	var x mat.Dense
	if err := x.Solve(p, q); err != nil {
		panic(fmt.Sprintf("the interface equation of %+v at H = %g: %v", s, H, err))
	}
	matrix.Slice(0, 4, 0, dim).(*mat.Dense).Copy(&x)
	return matrix
}

// respond returns what a mass makes of a macro step in which its inputs follow the polynomials through values at the
// nodes: E for its own state and g[j] for the value at node j.
func respond(m Mass, H float64, nodes []float64, substeps int) (e *mat.Dense, g []*mat.Dense) {
	_, nu := m.B.Dims()
	if substeps == 0 {
		e, moments := exact.StateSpace{A: m.A, B: m.B}.Propagation(H, len(nodes)-1)
		for j := range nodes {
			sum := mat.NewDense(2, nu, nil)
			for d, v := range derivatives(nodes, j) {
				var term mat.Dense
				term.Scale(v, moments[d])
				sum.Add(sum, &term)
			}
			g = append(g, sum)
		}
		return e, g
	}
	h := H / float64(substeps)
	eh, held := exact.StateSpace{A: m.A, B: m.B}.Propagation(h, 0)
	for j := range nodes {
		sum := mat.NewDense(2, nu, nil)
		for n := range substeps {
			var term mat.Dense
			term.Scale(lagrange(nodes, j, (float64(n)+0.5)*h), held[0])
			sum.Mul(eh, sum)
			sum.Add(sum, &term)
		}
		g = append(g, sum)
	}
	e, _ = exact.StateSpace{A: m.A}.Propagation(H, 0)
	return e, g
}

// lagrange is the polynomial that is 1 at node j and 0 at the others.
func lagrange(nodes []float64, j int, z float64) float64 {
	p := 1.0
	for q, node := range nodes {
		if q != j {
			p *= (z - node) / (nodes[j] - node)
		}
	}
	return p
}

// derivatives returns those of lagrange at 0, order 0 first, from its expanded product.
func derivatives(nodes []float64, j int) []float64 {
	c := []float64{1}
	for q, node := range nodes {
		if q == j {
			continue
		}
		scale := 1 / (nodes[j] - node)
		c = append(c, 0)
		for d := len(c) - 1; d >= 0; d-- {
			c[d] *= -node * scale
			if d > 0 {
				c[d] += c[d-1] * scale
			}
		}
	}
	factorial := 1.0
	for d := range c {
		c[d] *= factorial
		factorial *= float64(d + 1)
	}
	return c
}

// Eigenvalues returns those of a square matrix, largest magnitude first, of a conjugate pair the one with positive
// imaginary part first.
func Eigenvalues(m mat.Matrix) []complex128 {
	var eig mat.Eigen
	if !eig.Factorize(m, mat.EigenNone) {
		panic("the eigenvalues cannot be computed")
	}
	values := eig.Values(nil)
	slices.SortFunc(values, func(a, b complex128) int {
		if x, y := cmplx.Abs(a), cmplx.Abs(b); math.Abs(x-y) > 1e-12*x {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(imag(b), imag(a))
	})
	return values
}

// GlobalError is the norm (36) of schweizer over positions and over velocities: got [N][x1 v1 x2 v2] at the times [N]
// against the exact solution.
func GlobalError(o exact.TwoMass, times []float64, got [][4]float64) (position, velocity float64) {
	want := make([][4]float64, len(times))
	var mean [4]float64
	for n, t := range times {
		want[n] = o.At(t)
		for c := range mean {
			mean[c] += want[n][c] / float64(len(times))
		}
	}
	var sum [4]float64
	for c := range sum {
		num, den := 0.0, 0.0
		for n := range want {
			num += (want[n][c] - got[n][c]) * (want[n][c] - got[n][c])
			den += (want[n][c] - mean[c]) * (want[n][c] - mean[c])
		}
		sum[c] = num / den
	}
	return math.Sqrt(sum[0] + sum[2]), math.Sqrt(sum[1] + sum[3])
}

// Slope returns the exponent of H with which errors fall, by least squares of the logarithms.
func Slope(H, errors []float64) float64 {
	var mx, my, sxy, sxx float64
	n := float64(len(H))
	for i := range H {
		mx += math.Log(H[i]) / n
		my += math.Log(errors[i]) / n
	}
	for i := range H {
		dx := math.Log(H[i]) - mx
		sxy += dx * (math.Log(errors[i]) - my)
		sxx += dx * dx
	}
	return sxy / sxx
}
