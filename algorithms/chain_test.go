package algorithms_test

import (
	"fmt"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
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
	var wires []string
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
		left, right := name(i-1), name(i)
		wires = append(wires, left+".y3 "+right+".u1", right+".y1 "+left+".u2", right+".y2 "+left+".u3")
	}
	return system(tb, subs, wires...)
}

// The number of subsystem steps in a macro step of a chain grows linearly with its length. For the
// operations of the solver see TestChainIsLinear.
func TestChainCostsGrowLinearly(t *testing.T) {
	const steps = 3
	last := 0
	for _, n := range []int{300, 600, 1200, 2400} {
		res, _ := simulate(t, springChain(t, n), newExplicit(t, Config{Scheme: Implicit, Order: 1}), master.Options{Stop: steps * 1e-3, Step: 1e-3})
		if res.Iterations > 2*steps {
			t.Errorf("%d masses: %d correctors in %d steps", n, res.Iterations, steps)
		}
		total := 0
		for _, k := range res.SubsystemSteps {
			total += k
		}
		if last > 0 && float64(total) > 2.05*float64(last) {
			t.Errorf("%d masses take %d steps, half of them %d", n, total, last)
		}
		last = total
	}
}
