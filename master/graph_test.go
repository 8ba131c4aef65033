package master

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Strongly connected components against their definition, by brute-force
// reachability on random graphs, and their order.
func TestComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		n := 1 + rng.IntN(12)
		edges := make([][]int, n)
		reach := make([][]bool, n)
		for v := range n {
			reach[v] = make([]bool, n)
			for w := range n {
				if rng.Float64() < 1.2/float64(n) {
					edges[v] = append(edges[v], w)
					reach[v][w] = true
				}
			}
		}
		direct := make([][]bool, n)
		for v := range n {
			direct[v] = slices.Clone(reach[v])
		}
		for k := range n { // Warshall
			for v := range n {
				for w := range n {
					reach[v][w] = reach[v][w] || reach[v][k] && reach[k][w]
				}
			}
		}
		succ := func(v int) []int { return edges[v] }
		place := slices.Repeat([]int{-1}, n)
		sccs := components(n, succ)
		for c, scc := range sccs {
			if !slices.IsSorted(scc) {
				t.Fatalf("%v is not ascending", scc)
			}
			for _, v := range scc {
				if place[v] >= 0 {
					t.Fatalf("%d is in two components: %v", v, sccs)
				}
				place[v] = c
			}
			if got, want := cyclic(scc, succ), reach[scc[0]][scc[0]]; got != want {
				t.Fatalf("component %v of %v: cyclic is %t", scc, edges, got)
			}
		}
		for v := range n {
			if place[v] < 0 {
				t.Fatalf("%d is in no component: %v", v, sccs)
			}
			for w := range n {
				if together := v == w || reach[v][w] && reach[w][v]; together != (place[v] == place[w]) {
					t.Fatalf("%d and %d of %v: together is %t, components %v", v, w, edges, together, sccs)
				}
				if direct[v][w] && place[v] > place[w] {
					t.Fatalf("the edge %d → %d leads back in %v", v, w, sccs)
				}
			}
		}
	}
}

// A chain as long as systems get, which recursion would not survive.
func TestComponentsDeep(t *testing.T) {
	const n = 300_000
	sccs := components(n, func(v int) []int { return []int{(v + 1) % n} })
	if len(sccs) != 1 || len(sccs[0]) != n {
		t.Errorf("%d components", len(sccs))
	}
	sccs = components(n, func(v int) []int {
		if v == 0 {
			return nil
		}
		return []int{v - 1}
	})
	if len(sccs) != n || sccs[0][0] != n-1 || sccs[n-1][0] != 0 {
		t.Errorf("%d components", len(sccs))
	}
}

// Where times are so large that they are rounded to more than the tolerance of
// the grid, a stop on the grid is still one.
func TestGridFarOut(t *testing.T) {
	for _, test := range []struct {
		start, step float64
		steps       int
	}{
		{0, 0.1, 300_000_000}, {0, 0.1, 999_999_999}, {0, 1e-3, 1_000_000_000_000}, {1e6, 1e-4, 7}, {1e9, 1e-3, 1}, {-1e9, 1e-3, 12345}, {0.7, 1e-3, 1_000_000},
	} {
		stop := test.start + float64(float64(test.steps)*test.step)
		for _, near := range []float64{stop, math.Nextafter(stop, 1e300), math.Nextafter(stop, -1e300)} {
			if g := newGrid(test.start, near, test.step); g.whole != test.steps || g.rest {
				t.Errorf("%+v to %.17g: %d steps, rest %t", test, near, g.whole, g.rest)
			}
		}
	}
}
