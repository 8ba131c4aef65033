package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// solvers lists all solvers of the interface equation.
var solvers = []Solver{
	{Kind: NewtonFD}, {Kind: NewtonLOS}, {Kind: Broyden}, {Kind: IQN}, {Kind: FixedPoint}, {Kind: FixedPoint, GaussSeidel: true}, {Kind: FixedPoint, Relaxation: 0.9},
}

// All solvers find the same solution within their tolerance.
func TestSolversAgree(t *testing.T) {
	const H = 1.0 / 1024
	for _, name := range []string{"ff", "fd", "dd"} {
		want := cut(uneven, name).run(t, newExplicit(t, Config{Scheme: Implicit, Order: 2}), master.Options{Stop: 100 * H, Step: H})
		for _, solver := range solvers[1:] {
			t.Run(fmt.Sprintf("%s/%+v", name, solver), func(t *testing.T) {
				got := cut(uneven, name).run(t, newExplicit(t, Config{Scheme: Implicit, Order: 2, Solver: solver}), master.Options{Stop: 100 * H, Step: H})
				compareStates(t, got, want, 1e-9)
			})
		}
	}
}

// Global error orders are k+1 with exact history (schweizer 3.2).
func TestImplicitGlobalOrder(t *testing.T) {
	for _, name := range []string{"ff", "fd", "dd"} {
		for k := 0; k <= 3; k++ {
			for _, velocity := range []bool{false, true} {
				got := convergence(t, symmetric, name, Config{Scheme: Implicit, Order: k}, true, velocity)
				if want := float64(k + 1); math.Abs(got-want) > 0.1 {
					t.Errorf("%s, order %d, velocity %t: slope %.3f, want %g", name, k, velocity, got, want)
				}
			}
		}
	}
}

// On a linear system Newton takes one corrector a step, and the counts are those
// of the cost model: one save a step; evaluations = predictor + correctors +
// perturbed steps, one for each loop input and Jacobian; a restore for each.
func TestCostModel(t *testing.T) {
	const steps, H, k = 200, 1.0 / 1024, 2
	for _, name := range []string{"ff", "fd", "dd"} {
		s := cut(uneven, name)
		res, _ := simulate(t, s.system(t), newExplicit(t, Config{Scheme: Implicit, Order: k}), master.Options{Stop: steps * H, Step: H})
		// The first step interpolates by degree 1, all others by degree 2.
		if res.Iterations != steps || res.Jacobians != 2 {
			t.Errorf("%s: %d correctors and %d Jacobians in %d steps", name, res.Iterations, res.Jacobians, steps)
		}
		for i, sub := range s.subsystems {
			inputs := len(sub.Info().In)
			want := steps + res.Iterations + res.Jacobians*inputs
			if res.SubsystemSteps[i] != want || res.SubsystemRestores[i] != want || res.SubsystemSaves[i] != steps {
				t.Errorf("%s, %s: %d steps, %d restores, %d saves; want %d, %d, %d", name, sub.Info().Name,
					res.SubsystemSteps[i], res.SubsystemRestores[i], res.SubsystemSaves[i], want, want, steps)
			}
			if sub.Calls.Step != want || sub.Calls.Restore != want || sub.Calls.Save != steps || sub.Calls.Free != 1 {
				t.Errorf("%s, %s: called %+v", name, sub.Info().Name, sub.Calls)
			}
		}
	}
}

// Low-order sensitivities cost no step.
func TestSensitivitiesCostNoStep(t *testing.T) {
	const steps, H = 100, 1.0 / 1024
	s := cut(uneven, "dd")
	res, _ := simulate(t, s.system(t), newExplicit(t, Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: NewtonLOS}}), master.Options{Stop: steps * H, Step: H})
	for i := range s.subsystems {
		if res.SubsystemSteps[i] != steps+res.Iterations {
			t.Errorf("%d steps with %d correctors in %d macro steps", res.SubsystemSteps[i], res.Iterations, steps)
		}
	}
	if res.Jacobians == 0 || res.Iterations > 4*steps {
		t.Errorf("%d Jacobians, %d correctors", res.Jacobians, res.Iterations)
	}
}

// chained is a source that feeds a loop of two, which feeds a sink: one
// integrator each.
func chained(t *testing.T) ([]*mastertest.Linear, *master.System) {
	t.Helper()
	m := mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{3}}, C: [][]float64{{1}}}
	two := mastertest.Matrices{A: [][]float64{{-2}}, B: [][]float64{{1, -4}}, C: [][]float64{{1}}}
	subs := []*mastertest.Linear{
		mastertest.NewLinear("sink", m, []float64{0}),
		mastertest.NewLinear("second", m, []float64{0.5}),
		mastertest.NewLinear("first", two, []float64{0}),
		mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {-9, 0}}, C: [][]float64{{1, 0}}}, []float64{1, 0}),
	}
	sys := system(t, []master.Subsystem{subs[0], subs[1], subs[2], subs[3]},
		"source.y1 first.u1", "second.y1 first.u2", "first.y1 second.u1", "first.y1 sink.u1")
	return subs, sys
}

// Only inputs on loops are iterated. Subsystems on no loop are stepped once, after their sources,
// and their states are not saved.
func TestOnlyLoopsAreIterated(t *testing.T) {
	const steps = 50
	subs, sys := chained(t)
	subs[0].Info().Caps.SaveState, subs[3].Info().Caps.SaveState = false, false
	res, _ := simulate(t, sys, newExplicit(t, Config{Scheme: Implicit, Order: 1}), master.Options{Stop: steps * 0.01, Step: 0.01})
	loop := 2*steps + res.Jacobians
	if want := []int{steps, loop, loop, steps}; !slices.Equal(res.SubsystemSteps, want) {
		t.Errorf("steps %v, want %v", res.SubsystemSteps, want)
	}
	if want := []int{0, steps, steps, 0}; !slices.Equal(res.SubsystemSaves, want) {
		t.Errorf("saves %v, want %v", res.SubsystemSaves, want)
	}
}

// A subsystem on a loop without rollback is refused by name or, with Predict, stepped once with the
// predicted inputs and a warning.
func TestWithoutRollback(t *testing.T) {
	subs, sys := chained(t)
	subs[1].Info().Caps.SaveState = false
	o := master.Options{Stop: 0.5, Step: 0.01}
	_, _, err := try(t, sys, newExplicit(t, Config{Scheme: Implicit}), o)
	if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "second cannot go back") {
		t.Errorf("%v", err)
	}
	res, _ := simulate(t, sys, newExplicit(t, Config{Scheme: Implicit, Order: 1, Solver: Solver{Predict: true}}), o)
	if res.SubsystemSteps[1] != 50 || subs[1].Calls.Save != 0 {
		t.Errorf("%d steps, %d saves", res.SubsystemSteps[1], subs[1].Calls.Save)
	}
	if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "second cannot go back") }) {
		t.Errorf("warnings %q", res.Warnings)
	}
}

// noisy repeats its steps only within some noise.
type noisy struct {
	*mastertest.Linear
	noise float64
}

func (n noisy) Unwrap() master.Subsystem { return n.Linear }
func (n noisy) VerifyRollback(context.Context, master.Experiment, float64) (master.Replay, error) {
	return master.Replay{Replays: n.noise}, nil
}

// Replay noise above the tolerance is refused.
func TestNoiseRefused(t *testing.T) {
	for _, test := range []struct {
		noise float64
		fails bool
	}{{1e-6, false}, {1e-3, true}} {
		subs, _ := chained(t)
		sys := system(t, []master.Subsystem{noisy{subs[1], test.noise}, subs[2]}, "second.y1 first.u2", "first.y1 second.u1")
		_, _, err := try(t, sys, newExplicit(t, Config{Scheme: Implicit}), master.Options{Stop: 1, Step: 0.1})
		if got := errors.Is(err, master.ErrCapability) && strings.Contains(err.Error(), "second"); got != test.fails {
			t.Errorf("noise %g: %v", test.noise, err)
		}
	}
}

// Without directional derivatives newton-los is refused with the reason.
func TestSensitivitiesRefused(t *testing.T) {
	subs, sys := chained(t)
	subs[2].Info().Caps.DirectionalDerivative = false
	_, _, err := try(t, sys, newExplicit(t, Config{Scheme: Implicit, Solver: Solver{Kind: NewtonLOS}}), master.Options{Stop: 1, Step: 0.1})
	if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "providesDirectionalDerivative") {
		t.Errorf("%v", err)
	}
}

// A step that the fixed point cannot solve is repeated in smaller pieces, and
// the grid is met again.
func TestNotConvergedShortens(t *testing.T) {
	const H = 0.5
	_, sys := chained(t)
	res, memory := simulate(t, sys, newExplicit(t, Config{Scheme: Implicit, Solver: Solver{Kind: FixedPoint, Relaxation: 1, MaxIterations: 30}}),
		master.Options{Stop: 4 * H, Step: H, Discard: master.ShortenOnDiscard})
	if res.Rejected == 0 {
		t.Fatal("every step converged: choose a larger one")
	}
	for n := range 5 {
		if !slices.Contains(memory.T, float64(n)*H) {
			t.Errorf("the grid point %g was not met: %v", float64(n)*H, memory.T)
		}
	}
}

// Parallel and serial runs give the same bits.
func TestWorkersGiveTheSameBits(t *testing.T) {
	for _, c := range []Config{
		{Order: 2}, {Scheme: GaussSeidel, Order: 1}, {Order: 2, Delivery: Substeps, Substeps: 3},
		{Scheme: Implicit, Order: 2}, {Scheme: Implicit, Order: 1, Solver: Solver{Kind: NewtonLOS}},
		{Scheme: Implicit, Solver: Solver{Kind: FixedPoint, GaussSeidel: true}},
		{Order: 1, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: IdentifiedJacobian}},
	} {
		var want *mastertest.Memory
		for _, workers := range []int{1, 2, 4} {
			subs, sys := chained(t)
			for _, s := range subs[:3] { // else substeps are not made up for at the end
				s.Info().Step = master.Feedthrough{On: [][]int{{0}}}
			}
			_, memory := simulate(t, sys, newExplicit(t, c), master.Options{Stop: 0.5, Step: 0.01, Workers: workers})
			if want == nil {
				want = memory
				continue
			}
			for n := range want.T {
				if memory.T[n] != want.T[n] || !slices.Equal(memory.Y[n], want.Y[n]) || !slices.Equal(memory.U[n], want.U[n]) {
					t.Fatalf("%+v: %d workers differ from one at point %d", c, workers, n)
				}
			}
		}
	}
}

// For inputs close to the smallest numbers, differences are computed as for inputs that are 0. Such
// values occur at the end of long chains.
func TestImplicitNearLeastNumbers(t *testing.T) {
	one := func(name string, x0 float64) master.Subsystem {
		return mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{x0})
	}
	sys := system(t, []master.Subsystem{one("a", 1e-320), one("b", 0)}, "a.y1 b.u1", "b.y1 a.u1")
	result, _ := simulate(t, sys, newExplicit(t, Config{Scheme: Implicit, Order: 1}), master.Options{Stop: 0.1, Step: 0.01})
	if result.Accepted != 10 {
		t.Errorf("%d steps", result.Accepted)
	}
}

// With fixed steps and an estimate, a corrector that does not converge ends the run without retries.
func TestFixedStepWithoutConvergence(t *testing.T) {
	_, sys := chained(t)
	c := adaptive(ImMilne, Implicit)
	c.Control.FixedStep = true
	c.Solver = Solver{Kind: FixedPoint, Relaxation: 1, MaxIterations: 2}
	res, _, err := try(t, sys, newExplicit(t, c), master.Options{Stop: 2, Step: 0.5})
	if err == nil || errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "t = 0 s") || !strings.Contains(err.Error(), "0.5 s") || res.Rejected != 0 {
		t.Errorf("%d attempts rejected, %v", res.Rejected, err)
	}
}
