// Package oracle predicts what explicit coupling of the two-mass oscillator
// (schweizer) gives, by propagation matrices. It shares nothing with the
// product: the matrices come from e^{As} by quadrature and from the product form
// of the Lagrange polynomials.
package oracle

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
)

// Scheme is an explicit scheme on one decomposition.
type Scheme struct {
	Decomposition string // "ff", "fd" or "dd"
	Order         int    // k
	Substeps      int    // polynomials sampled at the midpoints of so many substeps; 0 = delivered exactly
	Sequence      []int  // Gauss–Seidel: 0 and 1 in the order in which the masses are stepped; nil = Jacobi
	History       bool   // the k points before the start are known exactly
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

// States gives x1, v1, x2, v2 at the points 0, H, …, steps·H and the spectral
// radius of the propagation matrix with full history.
func States(o exact.TwoMass, s Scheme, H float64, steps int) (states [][4]float64, radius float64) {
	k := s.Order
	z := mat.NewVecDense(4*(k+1), nil)
	points := 1
	if s.History {
		points = k + 1
	}
	for j := range points {
		for i, v := range o.At(-float64(j) * H) {
			z.SetVec(4*j+i, v)
		}
	}
	keep := func() { states = append(states, [4]float64(mat.Col(nil, 0, z)[:4])) }
	keep()
	masses := Masses(o, s.Decomposition)
	var m *mat.Dense
	for n := range steps {
		if now := min(points+n, k+1); m == nil || now != min(points+n-1, k+1) {
			m = propagation(masses, s, H, now)
		}
		next := mat.NewVecDense(4*(k+1), nil)
		next.MulVec(m, z)
		z = next
		keep()
	}
	var eig mat.Eigen
	if !eig.Factorize(m, mat.EigenNone) {
		return states, math.NaN()
	}
	for _, v := range eig.Values(nil) {
		radius = max(radius, math.Hypot(real(v), imag(v)))
	}
	return states, radius
}

// propagation gives the matrix M of one macro step for z = [x_N; x_{N−1}; …;
// x_{N−k}], z_{N+1} = M z_N, when points past points are known (one of them
// x_N). It is built from e^{As} by quadrature and from the product form of the
// Lagrange polynomials; substeps = 0 integrates the polynomials exactly, else
// they are sampled at the midpoints of so many substeps. sequence is the order
// of Gauss–Seidel; nil is Jacobi.
func propagation(masses [2]Mass, s Scheme, H float64, points int) *mat.Dense {
	k, substeps, sequence := s.Order, s.Substeps, s.Sequence
	dim := 4 * (k + 1)
	m := mat.NewDense(dim, dim, nil)
	for i := 4; i < dim; i++ {
		m.Set(i, i-4, 1)
	}
	order := sequence
	if order == nil {
		order = []int{0, 1}
	}
	for turn, i := range order {
		rows := m.Slice(2*i, 2*i+2, 0, dim).(*mat.Dense)
		rows.Slice(0, 2, 2*i, 2*i+2).(*mat.Dense).Copy(expm(masses[i].A, H))
		ahead := sequence != nil && turn == 1 && !masses[i].ByForce
		var nodes []float64
		if ahead {
			nodes = append(nodes, H)
		}
		for j := 0; len(nodes) < k+1 && j < points; j++ {
			nodes = append(nodes, -float64(j)*H)
		}
		for j := range nodes {
			g := mat.NewDense(2, masses[i].B.RawMatrix().Cols, nil)
			add := func(weight, s0 float64, e *mat.Dense) {
				var term mat.Dense
				term.Mul(e, masses[i].B)
				term.Scale(weight*lagrange(nodes, j, s0), &term)
				g.Add(g, &term)
			}
			if substeps == 0 {
				gauss(0, H, func(w, q float64) { add(w, q, expm(masses[i].A, H-q)) })
			} else {
				h := H / float64(substeps)
				for n := range substeps {
					mid := (float64(n) + 0.5) * h
					gauss(float64(n)*h, float64(n+1)*h, func(w, q float64) { add(w, mid, expm(masses[i].A, H-q)) })
				}
			}
			var gk, term mat.Dense
			gk.Mul(g, masses[i].K) // acts on the x of the node
			if ahead && j == 0 {
				// x_{N+1} of the other mass is in the rows that stand already.
				other := 2 * (1 - i)
				term.Mul(gk.Slice(0, 2, other, other+2), m.Slice(other, other+2, 0, dim))
				rows.Add(rows, &term)
				continue
			}
			old := j
			if ahead {
				old--
			}
			to := rows.Slice(0, 2, 4*old, 4*old+4).(*mat.Dense)
			to.Add(to, &gk)
		}
	}
	return m
}

func expm(a *mat.Dense, t float64) *mat.Dense {
	var scaled, e mat.Dense
	scaled.Scale(t, a)
	e.Exp(&scaled)
	return &e
}

// gauss visits the nodes of a quadrature over [a, b].
func gauss(a, b float64, f func(w, q float64)) {
	const n = 16
	var x, w [n]float64
	quad.Legendre{}.FixedLocations(x[:], w[:], a, b)
	for i := range x {
		f(w[i], x[i])
	}
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

// GlobalError is the norm (36) of schweizer over positions and over velocities:
// got [N][x1 v1 x2 v2] at the times [N] against the exact solution.
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
