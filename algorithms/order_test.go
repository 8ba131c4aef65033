package algorithms_test

import (
	"fmt"
	"math"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/oracle"
)

// convergence returns the slope of the global error over H in the norm of
// schweizer (36), over positions or velocities, fitted through four step sizes.
// The subsystems are exact, so it is the coupling error alone.
func convergence(t *testing.T, o exact.TwoMass, name string, c Config, history, velocity bool) float64 {
	t.Helper()
	const end, halvings, coarsest = 0.5, 4, 1.0 / 512
	var xs, ys []float64
	for i := range halvings {
		H := coarsest / float64(int(1)<<i)
		s := cut(o, name)
		options := master.Options{Stop: end, Step: H}
		if history {
			options.Past = s.history(c.Order, H)
		}
		states := s.run(t, newExplicit(t, c), options)
		times := make([]float64, len(states))
		for n := range times {
			times[n] = float64(n) * H
		}
		position, speed := oracle.GlobalError(o, times, states)
		if velocity {
			position = speed
		}
		xs, ys = append(xs, math.Log(H)), append(ys, math.Log(position))
	}
	return slope(xs, ys)
}

// slope fits a line by least squares.
func slope(xs, ys []float64) float64 {
	n, sx, sy, sxx, sxy := float64(len(xs)), 0.0, 0.0, 0.0, 0.0
	for i, x := range xs {
		sx, sy, sxx, sxy = sx+x, sy+ys[i], sxx+x*x, sxy+x*ys[i]
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// Explicit coupling has the global order k+1 in positions and velocities with
// exact history (schweizer 3.2); a start from one point limits it to 2.
func TestGlobalOrder(t *testing.T) {
	take := long.Sample(5)
	for _, name := range []string{"ff", "fd", "dd"} {
		for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
			for k := 0; k <= 3; k++ {
				for _, history := range []bool{true, false} {
					if !take() {
						continue
					}
					t.Run(fmt.Sprintf("%s/scheme=%d/order=%d/history=%t", name, scheme, k, history), func(t *testing.T) {
						want := float64(k + 1)
						if !history {
							want = min(want, 2)
						}
						for _, velocity := range []bool{false, true} {
							got := convergence(t, symmetric, name, Config{Scheme: scheme, Order: k}, history, velocity)
							if math.Abs(got-want) > 0.1 {
								t.Errorf("velocity=%t: order %.3f, want %g", velocity, got, want)
							}
						}
					})
				}
			}
		}
	}
}

// The order depends on the delivery: min(k+1, 2) for a fixed number of substeps, 1 for held inputs.
func TestDeliveryOrder(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   float64
	}{
		{Config{Order: 1, Delivery: Substeps, Substeps: 4}, 2},
		{Config{Order: 3, Delivery: Substeps, Substeps: 2}, 2},
		{Config{Order: 3, Delivery: Held}, 1},
	} {
		if got := convergence(t, symmetric, "ff", test.config, true, false); math.Abs(got-test.want) > 0.1 {
			t.Errorf("%+v: order %.3f, want %g", test.config, got, test.want)
		}
	}
}

// The difference between substeps and derivatives falls with the square of the number of substeps.
func TestSubstepsApproachDerivatives(t *testing.T) {
	const H, steps = 1.0 / 512, 128
	distance := func(n int) float64 {
		end := func(c Config) [4]float64 {
			s := cut(symmetric, "ff")
			states := s.run(t, newExplicit(t, c), master.Options{Stop: H * steps, Step: H, Past: s.history(3, H)})
			return states[steps]
		}
		return math.Abs(end(Config{Order: 3, Delivery: Substeps, Substeps: n})[0] - end(Config{Order: 3})[0])
	}
	for _, n := range []int{4, 8} {
		if ratio := distance(n) / distance(2*n); math.Abs(ratio-4) > 0.2 {
			t.Errorf("from %d to %d substeps the distance falls by %.3f, want 4", n, 2*n, ratio)
		}
	}
}

// Order k is exact for an input that is a polynomial of degree k in time, on any grid: with an
// uneven history and a short last step.
func TestUnevenGrid(t *testing.T) {
	for k := 0; k <= MaxOrder; k++ {
		for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
			// The source is a chain of integrators, y = (1+t)^k / k! by its start.
			chain := make([][]float64, k+1)
			c, x0 := make([]float64, k+1), make([]float64, k+1)
			c[0] = 1
			power := func(t float64, m int) float64 { return math.Pow(1+t, float64(m)) / math.Gamma(float64(m)+1) }
			for i := range chain {
				chain[i] = make([]float64, k+1)
				if i < k {
					chain[i][i+1] = 1
				}
				x0[i] = power(0, k-i)
			}
			source := mastertest.NewLinear("source", mastertest.Matrices{A: chain, C: [][]float64{c}}, x0)
			sys := system(t, []master.Subsystem{integrator("sink"), source}, "source.y1 sink.u1")
			o := master.Options{Stop: 1.03, Step: 0.125}
			at := 0.0
			for j := range k {
				at -= []float64{0.05, 0.2, 0.11, 0.3, 0.07}[j]
				o.Past = append([]master.PastOutputs{{T: at, Y: []float64{math.NaN(), power(at, k)}}}, o.Past...)
			}
			_, memory := simulate(t, sys, newExplicit(t, Config{Scheme: scheme, Order: k}), o)
			last := len(memory.T) - 1
			if memory.T[last] != 1.03 || memory.T[last]-memory.T[last-1] > 0.04 {
				t.Fatalf("the last step is not a short one: %v", memory.T)
			}
			for n, when := range memory.T {
				if want := power(when, k+1) - power(0, k+1); math.Abs(memory.Y[n][0]-want) > 1e-13 {
					t.Errorf("scheme %d, order %d: %.17g at t = %g, want %.17g", scheme, k, memory.Y[n][0], when, want)
				}
			}
		}
	}
}
