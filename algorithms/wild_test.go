package algorithms_test

import (
	"context"
	"math"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// disturbed is a mass on a spring whose outputs an evaluation of a step may change.
type disturbed struct {
	*mastertest.Linear
	change func(t float64, evaluation int, y []float64)
	replay master.Replay
	t      float64
	at     int // evaluations of the step from t
}

func (d *disturbed) Unwrap() master.Subsystem { return d.Linear }

func (d *disturbed) Step(ctx context.Context, t, H float64) (float64, error) {
	if t != d.t {
		d.t, d.at = t, 0
	}
	d.at++
	return d.Linear.Step(ctx, t, H)
}

func (d *disturbed) Outputs(y []float64) error {
	err := d.Linear.Outputs(y)
	if d.change != nil && d.at > 0 {
		d.change(d.t, d.at, y)
	}
	return err
}

func (d *disturbed) VerifyRollback(context.Context, master.Experiment, float64) (master.Replay, error) {
	return d.replay, nil
}

// masses are two of them, each driven by the position of the other.
func masses(t *testing.T) (subs [2]*disturbed, sys *master.System) {
	for i := range subs {
		subs[i] = &disturbed{Linear: mastertest.NewLinear(string(rune('a'+i)), mastertest.Matrices{
			A: [][]float64{{0, 1}, {-400, -1}}, B: [][]float64{{0}, {200}}, C: [][]float64{{1, 0}},
		}, []float64{1 - 1.6*float64(i), 0})}
	}
	return subs, system(t, []master.Subsystem{subs[0], subs[1]}, "a.y1 b.u1", "b.y1 a.u1")
}

// A wild iterate has no effect on later steps.
func TestWildIterate(t *testing.T) {
	const steps, H = 100, 0.01
	for _, kind := range []SolverKind{NewtonFD, NewtonLOS, Broyden, IQN} {
		for _, wild := range []float64{1e12, 1e100} {
			c := Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: kind}}
			o := master.Options{Stop: steps * H, Step: H}
			_, sys := masses(t)
			want, undisturbed := simulate(t, sys, newExplicit(t, c), o)
			subs, sys := masses(t)
			subs[0].change = func(now float64, evaluation int, y []float64) {
				if math.Abs(now-10*H) < H/2 && evaluation <= 2 {
					y[0] = wild
				}
			}
			got, memory := simulate(t, sys, newExplicit(t, c), o)
			if more := got.Iterations - want.Iterations; more < -20 || more > 60 {
				t.Errorf("solver %d, %g: %d correctors, undisturbed %d", kind, wild, got.Iterations, want.Iterations)
			}
			bound := 1e-9
			if got.Rejected > 0 {
				bound = 1e-4 // steps of other sizes
			}
			last, ideal := memory.Y[len(memory.Y)-1], undisturbed.Y[len(undisturbed.Y)-1]
			for i := range ideal {
				if !(math.Abs(last[i]-ideal[i]) <= bound) {
					t.Errorf("solver %d, %g: output %d ends at %g, undisturbed at %g (%d rejected)", kind, wild, i, last[i], ideal[i], got.Rejected)
				}
			}
		}
	}
}

// After a spike, steps are solved to the tolerance of the values then: y = w + sin(0.8 y) / 2.
func TestSpikeIsForgotten(t *testing.T) {
	const steps, H = 60, 0.01
	for _, kind := range []SolverKind{NewtonFD, Broyden, IQN} {
		gain := func(d float64) mastertest.Matrices { return mastertest.Matrices{D: [][]float64{{d}}} }
		input := func(t float64) float64 {
			if t > 9.5*H && t < 12.5*H {
				return 1e8
			}
			return math.Sin(t)
		}
		a := &disturbed{Linear: mastertest.NewLinear("a", gain(1), nil), change: func(t float64, _ int, y []float64) {
			y[0] = input(t+H) + math.Sin(y[0])/2
		}}
		sys := system(t, []master.Subsystem{a, mastertest.NewLinear("b", gain(0.8), nil)}, "a.y1 b.u1", "b.y1 a.u1")
		_, memory := simulate(t, sys, newExplicit(t, Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: kind}}), master.Options{Stop: steps * H, Step: H})
		for n := range memory.T {
			if memory.T[n] < 16.5*H { // three points after it have its tolerance
				continue
			}
			y := 0.0
			for range 100 {
				y = input(memory.T[n]) + math.Sin(0.8*y)/2
			}
			if off := math.Abs(memory.Y[n][0] - y); !(off < 1e-9) {
				t.Errorf("solver %d: a.y1 is off by %.2g at %g s", kind, off, memory.T[n])
				break
			}
		}
	}
}

// With replay noise below the tolerance, steps are solved where values pass through 0, too.
func TestNoiseAtZero(t *testing.T) {
	const steps, H, noise = 300, 0.01, 1e-6
	for _, noisy := range [][]int{{0, 1}, {0}} {
		_, sys := masses(t)
		c := Config{Scheme: Implicit, Order: 1}
		o := master.Options{Stop: steps * H, Step: H}
		_, want := simulate(t, sys, newExplicit(t, c), o)
		subs, sys := masses(t)
		calls := 0
		for _, i := range noisy {
			subs[i].replay.Replays = noise
			subs[i].change = func(_ float64, _ int, y []float64) {
				calls++
				y[0] += noise * (math.Mod(float64(calls)*0.618034, 1) - 0.5)
			}
		}
		got, memory := simulate(t, sys, newExplicit(t, c), o)
		if got.Rejected > 0 {
			t.Errorf("%v: %d steps rejected", noisy, got.Rejected)
		}
		for n := range want.T {
			if math.Abs(memory.Y[n][0]-want.Y[n][0]) > 1e-3 {
				t.Fatalf("%v: %g at %g s, without noise %g", noisy, memory.Y[n][0], want.T[n], want.Y[n][0])
			}
		}
	}
}
