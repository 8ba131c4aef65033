package algorithms_test

import (
	"fmt"
	"math"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/oracle"
)

// The trajectory of every explicit scheme is that of its propagation matrix.
func TestPropagationMatrix(t *testing.T) {
	const H, steps, tolerance = 1.0 / 1024, 400, 1e-12
	for _, name := range []string{"ff", "fd", "dd"} {
		for _, sequence := range [][]int{nil, {0, 1}, {1, 0}} {
			for k := 0; k <= MaxOrder; k++ {
				for _, substeps := range []int{0, 4} {
					for _, history := range []bool{false, true} {
						if k == 0 && (substeps > 0 || history) || k > 3 && substeps > 0 {
							continue // the same thing, or only slow
						}
						label := fmt.Sprintf("%s/sequence=%v/order=%d/substeps=%d/history=%t", name, sequence, k, substeps, history)
						t.Run(label, func(t *testing.T) {
							s := cut(uneven, name)
							o := master.Options{Stop: H * steps, Step: H}
							if history {
								o.Past = s.history(k, H)
							}
							config := Config{Order: k, Substeps: substeps}
							if sequence != nil {
								config.Scheme = GaussSeidel
								for _, i := range sequence {
									config.Sequence = append(config.Sequence, s.subsystems[i].Info().Name)
								}
								for _, l := range s.subsystems[2:] {
									config.Sequence = append(config.Sequence, l.Info().Name)
								}
							}
							if substeps > 0 {
								config.Delivery = Substeps
							}
							got := s.run(t, newExplicit(t, config), o)
							want, radius := oracle.States(uneven, oracle.Scheme{Decomposition: name, Order: k, Substeps: substeps, Sequence: sequence, History: history}, H, steps)
							if radius > 1 {
								t.Fatalf("spectral radius %g: choose a stable case", radius)
							}
							compareStates(t, got, want, tolerance)
						})
					}
				}
			}
		}
	}
}

func newExplicit(t testing.TB, c Config) *Coupling {
	t.Helper()
	e, err := NewCoupling(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// compareStates fails if the trajectories differ by more than the tolerance
// relative to their largest value, component by component.
func compareStates(t *testing.T, got, want [][4]float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d points, want %d", len(got), len(want))
	}
	for c := range want[0] {
		size := 0.0
		for _, x := range want {
			size = max(size, math.Abs(x[c]))
		}
		for n, x := range want {
			if d := math.Abs(got[n][c]-x[c]) / size; !(d <= tolerance) {
				t.Fatalf("state %d at step %d: %.17g, want %.17g: off by %.2g of the largest value", c, n, got[n][c], x[c], d)
			}
		}
	}
}

// A thousand steps on a grid that rounds.
func TestPropagationMatrixLong(t *testing.T) {
	const H, steps = 6.25e-4, 1000
	for _, name := range []string{"ff", "fd", "dd"} {
		s := cut(uneven, name)
		got := s.run(t, newExplicit(t, Config{Order: 2}), master.Options{Stop: H * steps, Step: H})
		want, _ := oracle.States(uneven, oracle.Scheme{Decomposition: name, Order: 2}, H, steps)
		compareStates(t, got, want, 1e-12)
	}
}

// Held inputs and order 0 give the same bits.
func TestHeldIsOrderZero(t *testing.T) {
	const H = 1.0 / 1024
	s := cut(uneven, "fd")
	zero := s.run(t, newExplicit(t, Config{}), master.Options{Stop: 100 * H, Step: H})
	s = cut(uneven, "fd")
	held := s.run(t, newExplicit(t, Config{Order: 3, Delivery: Held}), master.Options{Stop: 100 * H, Step: H})
	compareStates(t, held, zero, 0)
}
