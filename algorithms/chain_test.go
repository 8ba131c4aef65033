package algorithms

import (
	"context"
	"fmt"
	"testing"

	"github.com/macrostep/macrostep/algorithms/internal/solver"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// springChain is n masses in a row, one subsystem each, joined by springs and
// dampers that the subsystem on the left of each holds: it takes position and
// velocity of the right neighbour and gives it the force. The first is fixed to
// a wall by a spring of its own, and moves at the start.
func springChain(tb testing.TB, n int) *master.System {
	tb.Helper()
	const c, d = 1e4, 10.0
	subs := make([]master.Subsystem, n)
	var connections []master.Connection
	name := func(i int) string { return fmt.Sprint("m", i) }
	for i := range n {
		v := 0.0
		if i == 0 {
			v = 1
		}
		// u = (force from the left, x and v of the right neighbour)
		subs[i] = mastertest.NewLinear(name(i), mastertest.Matrices{
			A: [][]float64{{0, 1}, {-2 * c, -2 * d}},
			B: [][]float64{{0, 0, 0}, {1, c, d}},
			C: [][]float64{{1, 0}, {0, 1}, {c, d}},
		}, []float64{0, v})
		if i == 0 {
			continue
		}
		connections = append(connections,
			master.Connection{From: endpoint(name(i-1), "y3"), To: endpoint(name(i), "u1")},
			master.Connection{From: endpoint(name(i), "y1"), To: endpoint(name(i-1), "u2")},
			master.Connection{From: endpoint(name(i), "y2"), To: endpoint(name(i-1), "u3")})
	}
	sys, err := master.NewSystem(subs, connections)
	if err != nil {
		tb.Fatal(err)
	}
	return sys
}

// What a macro step of a chain costs grows linearly with its length: steps of
// the subsystems, and operations of the solver.
func TestChainCostsGrowLinearly(t *testing.T) {
	const steps = 3
	type cost struct{ steps, factor, solve float64 }
	var costs []cost
	for _, n := range []int{300, 600, 1200, 2400} {
		c := newExplicit(t, Config{Scheme: Implicit, Order: 1})
		r, err := master.NewRun(springChain(t, n), c, master.Options{Stop: steps * 1e-3, Step: 1e-3})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res.Iterations > 2*steps {
			t.Errorf("%d masses: %d correctors in %d steps", n, res.Iterations, steps)
		}
		total := 0
		for _, k := range res.SubsystemSteps {
			total += k
		}
		factor, solve := c.scheme.(*implicit).blocks[0].solver.(*solver.Newton).Operations()
		costs = append(costs, cost{float64(total), float64(factor), float64(solve)})
	}
	for i := 1; i < len(costs); i++ {
		a, b := costs[i-1], costs[i]
		for what, ratio := range map[string]float64{"steps": b.steps / a.steps, "factorisation": b.factor / a.factor, "solution": b.solve / a.solve} {
			if ratio > 2.05 {
				t.Errorf("%s: twice the masses cost %.3f times as much", what, ratio)
			}
		}
	}
	t.Logf("costs %+v", costs)
}

// BenchmarkImplicitChain is an implicit macro step of a chain of n subsystems.
func BenchmarkImplicitChain(b *testing.B) {
	for _, n := range []int{300, 600, 1200, 2400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newExplicit(b, Config{Scheme: Implicit, Order: 1})
			r, err := master.NewRun(springChain(b, n), c, master.Options{Stop: 1e9, Step: 1e-3})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			if err := r.Start(ctx); err != nil {
				b.Fatal(err)
			}
			defer func() {
				if _, err := r.Close(); err != nil {
					b.Error(err)
				}
			}()
			for range 3 {
				if _, err := r.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Step(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
