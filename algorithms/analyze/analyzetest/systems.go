// Package analyzetest provides systems with known solutions for tests of an analysis.
package analyzetest

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// System couples subsystems by connections such as "one.y1 -> two.u1".
func System(t testing.TB, subs []master.Subsystem, links ...string) *master.System {
	t.Helper()
	var out []master.Connection
	end := func(text string) master.Endpoint {
		name, port, _ := strings.Cut(text, ".")
		return master.Endpoint{Subsystem: name, Port: port}
	}
	for _, l := range links {
		from, to, _ := strings.Cut(l, " -> ")
		out = append(out, master.Connection{From: end(from), To: end(to)})
	}
	sys, err := master.NewSystem(subs, out)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// Pair couples two subsystems with one output each to a loop.
func Pair(t testing.TB, one, two master.Subsystem) *master.System {
	t.Helper()
	port := func(i *master.Info, p master.Port) string { return i.Name + "." + p.Name }
	a, b := one.Info(), two.Info()
	return System(t, []master.Subsystem{one, two}, port(b, b.Out[0])+" -> "+port(a, a.In[0]), port(a, a.Out[0])+" -> "+port(b, b.In[0]))
}

// Lag is x' = a x + b u, y = x.
func Lag(name string, a, b, x0 float64) *mastertest.Linear {
	return mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{a}}, B: [][]float64{{b}}, C: [][]float64{{1}}}, []float64{x0})
}

// Haid returns haid's oscillator of exact subsystems in Go. wrap, if not nil, may replace each subsystem.
func Haid(t testing.TB, o exact.Haid, wrap func(*mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	one := mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{1e-3, 1})
	two := mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, []float64{-2e-3, 0.3})
	subs := []master.Subsystem{one, two}
	if wrap != nil {
		subs = []master.Subsystem{wrap(one), wrap(two)}
	}
	return System(t, subs, "two.y1 -> one.u1", "one.y1 -> two.u1", "one.y2 -> two.u2")
}

// With returns a wrap for Haid that changes the capabilities; change may be nil.
func With(change func(*master.Caps)) func(*mastertest.Linear) master.Subsystem {
	return func(s *mastertest.Linear) master.Subsystem {
		if change != nil {
			change(&s.Info().Caps)
		}
		return s
	}
}

// Masses returns a chain of n masses coupled by displacements and velocities, each a subsystem with its springs and
// dampers, and its radius under explicit coupling with held inputs.
func Masses(t testing.TB, n int) (*master.System, func(H float64) float64) {
	t.Helper()
	const c, d = 1e3, 2.0
	var subs []master.Subsystem
	var links []string
	a, b := [][]float64{{0, 1}, {-2 * c, -2 * d}}, [][]float64{{0, 0, 0, 0}, {c, d, c, d}}
	for i := range n {
		matrices := mastertest.Matrices{A: a, B: b, C: [][]float64{{1, 0}, {0, 1}}}
		subs = append(subs, mastertest.NewLinear(fmt.Sprint("m", i), matrices, []float64{math.Sin(float64(i)), 0}))
		for k, from := range []int{i - 1, i + 1} {
			for o := 1; o <= 2 && from >= 0 && from < n; o++ {
				links = append(links, fmt.Sprintf("m%d.y%d -> m%d.u%d", from, o, i, 2*k+o))
			}
		}
	}
	return System(t, subs, links...), func(H float64) float64 {
		block := mat.NewDense(6, 6, nil) // [A B; 0 0]: e^{AH} and ∫e^{As}B ds
		for i := range 2 {
			for j := range 2 {
				block.Set(i, j, a[i][j]*H)
			}
			for j := range 4 {
				block.Set(i, 2+j, b[i][j]*H)
			}
		}
		var e mat.Dense
		e.Exp(block)
		phi := mat.NewDense(2*n, 2*n, nil)
		for m := range n {
			for k, of := range []int{m, m - 1, m + 1} { // itself, and its neighbours by its inputs
				for i := range 2 {
					for j := 0; j < 2 && of >= 0 && of < n; j++ {
						phi.Set(2*m+i, 2*of+j, e.At(i, 2*k+j))
					}
				}
			}
		}
		return Radius(phi)
	}
}

// Radius returns the spectral radius of a matrix.
func Radius(m mat.Matrix) (worst float64) {
	var e mat.Eigen
	e.Factorize(m, mat.EigenNone)
	for _, v := range e.Values(nil) {
		worst = max(worst, cmplx.Abs(v))
	}
	return worst
}
