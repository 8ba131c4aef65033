package algorithms

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// oscillator holds the parameters of the two-mass oscillator, schweizer (4).
type oscillator struct{ m1, m2, c1, c2, cc, d1, d2, dc float64 }

var (
	// symmetric is the model of schweizer 3.2.
	symmetric = oscillator{m1: 1, m2: 1, c1: 1000, c2: 1000, cc: 1000, d1: 10, d2: 10, dc: 10}
	// uneven tells the two masses apart.
	uneven = oscillator{m1: 1, m2: 1.75, c1: 1000, c2: 700, cc: 850, d1: 10, d2: 12, dc: 7}
)

// start are x1, v1, x2, v2 at t = 0.
var start = []float64{1, -20, -0.5, 30}

// monolith is the undivided system x' = A x, schweizer (4).
func (o oscillator) monolith() *mat.Dense {
	return mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-(o.c1 + o.cc) / o.m1, -(o.d1 + o.dc) / o.m1, o.cc / o.m1, o.dc / o.m1,
		0, 0, 0, 1,
		o.cc / o.m2, o.dc / o.m2, -(o.c2 + o.cc) / o.m2, -(o.d2 + o.dc) / o.m2,
	})
}

// exact gives the solution at t, also before the start.
func (o oscillator) exact(t float64) []float64 {
	var scaled, e mat.Dense
	scaled.Scale(t, o.monolith())
	e.Exp(&scaled)
	var x mat.VecDense
	x.MulVec(&e, mat.NewVecDense(4, start))
	return x.RawVector().Data
}

// force gives the force of the coupling element on mass 1.
func (o oscillator) force(x []float64) float64 { return o.cc*(x[2]-x[0]) + o.dc*(x[3]-x[1]) }

// mass is one of the masses: driven by a force, or by the motion of the other
// end of the coupling element.
func (o oscillator) mass(first, byForce bool) mastertest.Matrices {
	m, c, d := o.m1, o.c1, o.d1
	if !first {
		m, c, d = o.m2, o.c2, o.d2
	}
	unit := [][]float64{{1, 0}, {0, 1}}
	if byForce {
		return mastertest.Matrices{A: [][]float64{{0, 1}, {-c / m, -d / m}}, B: [][]float64{{0}, {1 / m}}, C: unit}
	}
	return mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(c + o.cc) / m, -(d + o.dc) / m}},
		B: [][]float64{{0, 0}, {o.cc / m, o.dc / m}}, C: unit,
	}
}

// split is one decomposition of the oscillator (schweizer 2.1 to 2.3) as the
// master sees it, and as the oracle does: x' = A x + B u with u = K x over the
// states of both masses.
type split struct {
	name        string
	subsystems  []*mastertest.Linear
	connections []master.Connection
	past        func(x []float64) []float64 // y; NaN where no extrapolated input needs it
	a, b, k     [2]*mat.Dense               // of mass 1 and 2; k [nu][4]
	// fromOther tells that all inputs of a mass come from the other mass
	// itself, so that Gauss–Seidel may know them at the end of the step.
	fromOther [2]bool
}

func (o oscillator) split(name string) *split {
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	byForce := [2]bool{name != "dd", name == "ff"}
	s := &split{name: name}
	nan := math.NaN()
	for i, n := range []string{"mass1", "mass2"} {
		m := o.mass(i == 0, byForce[i])
		s.subsystems = append(s.subsystems, mastertest.NewLinear(n, m, start[2*i:2*i+2]))
		s.a[i], s.b[i] = fromRows(m.A), fromRows(m.B)
		sign := 1 - 2*float64(i)
		if byForce[i] {
			s.k[i] = fromRows([][]float64{{-sign * o.cc, -sign * o.dc, sign * o.cc, sign * o.dc}})
			gain := &master.Linear{Gain: sign}
			if i == 0 {
				gain = nil
			}
			s.connections = append(s.connections, master.Connection{From: at("coupling", "y1"), To: at(n, "u1"), Linear: gain})
			continue
		}
		s.fromOther[i] = true
		other := []string{"mass2", "mass1"}[i]
		k := mat.NewDense(2, 4, nil)
		for j := range 2 {
			k.Set(j, 2*(1-i)+j, 1)
			s.connections = append(s.connections, master.Connection{From: at(other, fmt.Sprintf("y%d", j+1)), To: at(n, fmt.Sprintf("u%d", j+1))})
		}
		s.k[i] = k
	}
	switch name {
	case "ff":
		s.past = func(x []float64) []float64 { return []float64{nan, nan, nan, nan, o.force(x)} }
	case "fd":
		s.past = func(x []float64) []float64 { return []float64{x[0], x[1], nan, nan, o.force(x)} }
	case "dd":
		s.past = func(x []float64) []float64 { return x }
		return s
	}
	s.subsystems = append(s.subsystems, mastertest.NewLinear("coupling",
		mastertest.Matrices{D: [][]float64{{-o.cc, -o.dc, o.cc, o.dc}}}, nil))
	for i, n := range []string{"mass1", "mass2"} {
		for j := range 2 {
			s.connections = append(s.connections, master.Connection{From: at(n, fmt.Sprintf("y%d", j+1)), To: at("coupling", fmt.Sprintf("u%d", 2*i+j+1))})
		}
	}
	return s
}

func fromRows(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, r := range rows {
		m.SetRow(i, r)
	}
	return m
}

func (s *split) system(t testing.TB) *master.System {
	t.Helper()
	var subs []master.Subsystem
	for _, l := range s.subsystems {
		subs = append(subs, l)
	}
	sys, err := master.NewSystem(subs, s.connections)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// run gives the states at every communication point.
func (s *split) run(t testing.TB, alg master.Algorithm, o master.Options) [][]float64 {
	t.Helper()
	memory := &mastertest.Memory{}
	o.Recorders = append(o.Recorders, memory)
	r, err := master.NewRun(s.system(t), alg, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var states [][]float64
	for _, y := range memory.Y {
		states = append(states, y[:4])
	}
	return states
}

// history gives the exact past of k points.
func (s *split) history(o oscillator, k int, H float64) []master.PastOutputs {
	var past []master.PastOutputs
	for j := k; j > 0; j-- {
		past = append(past, master.PastOutputs{T: -float64(j) * H, Y: s.past(o.exact(-float64(j) * H))})
	}
	return past
}

// propagation gives the matrix M of one macro step for z = [x_N; x_{N−1}; …;
// x_{N−k}], z_{N+1} = M z_N, when points past points are known (one of them
// x_N). It is built from e^{As} by quadrature and from the product form of the
// Lagrange polynomials; substeps = 0 integrates the polynomials exactly, else
// they are sampled at the midpoints of so many substeps. sequence is the order
// of Gauss–Seidel; nil is Jacobi.
func (s *split) propagation(H float64, k, points, substeps int, sequence []int) *mat.Dense {
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
		rows.Slice(0, 2, 2*i, 2*i+2).(*mat.Dense).Copy(expm(s.a[i], H))
		ahead := sequence != nil && turn == 1 && s.fromOther[i]
		var nodes []float64
		if ahead {
			nodes = append(nodes, H)
		}
		for j := 0; len(nodes) < k+1 && j < points; j++ {
			nodes = append(nodes, -float64(j)*H)
		}
		for j := range nodes {
			g := mat.NewDense(2, s.b[i].RawMatrix().Cols, nil)
			add := func(weight, s0 float64, e *mat.Dense) {
				var term mat.Dense
				term.Mul(e, s.b[i])
				term.Scale(weight*lagrange(nodes, j, s0), &term)
				g.Add(g, &term)
			}
			if substeps == 0 {
				gauss(0, H, func(w, q float64) { add(w, q, expm(s.a[i], H-q)) })
			} else {
				h := H / float64(substeps)
				for n := range substeps {
					mid := (float64(n) + 0.5) * h
					gauss(float64(n)*h, float64(n+1)*h, func(w, q float64) { add(w, mid, expm(s.a[i], H-q)) })
				}
			}
			var gk, term mat.Dense
			gk.Mul(g, s.k[i]) // acts on the x of the node
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
