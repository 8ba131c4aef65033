package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// told records its steps.
type told struct {
	*mastertest.Linear
	times, sizes []float64
	stopKnown    bool
}

func (s *told) EnterInit(ctx context.Context, e master.Experiment) error {
	s.stopKnown = e.StopKnown
	return s.Linear.EnterInit(ctx, e)
}

func (s *told) Step(ctx context.Context, t, H float64) (float64, error) {
	s.times, s.sizes = append(s.times, t), append(s.sizes, H)
	return s.Linear.Step(ctx, t, H)
}

func toldPair(t *testing.T) (a, b *told, sys *master.System) {
	t.Helper()
	a, b = &told{Linear: integrator("a")}, &told{Linear: integrator("b")}
	for _, s := range []*told{a, b} {
		s.Info().Source = s.Info().Name + ".fmu"
		s.Info().Caps = master.Caps{VariableStep: true}
	}
	sys = system(t, []master.Subsystem{a, b}, "a.y1 b.u1", "b.y1 a.u1")
	return a, b, sys
}

// With a constant macro step every subsystem gets the same step size to the bit, and no step ends
// after a stop time that was passed to the subsystem (fmi2 40, 49).
func TestStepsOfOneSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bounded := 0
	for range 200 {
		n, steps := 1+rng.IntN(12), 1+rng.IntN(40)
		start, H := 3*rng.Float64()-1, 0.001+0.2*rng.Float64()
		if rng.IntN(2) == 0 { // as users give them
			start, H = float64(rng.IntN(30))/10, float64(1+rng.IntN(30))/1000
		}
		for _, c := range []struct {
			config algorithms.Config
			own    float64 // of a
		}{
			{algorithms.Config{}, H},
			{algorithms.Config{Order: 1, Delivery: algorithms.Substeps, Substeps: n}, H / float64(n)},
			{algorithms.Config{Rates: []algorithms.Rate{{Component: "a", Steps: n, Over: 1}}}, H / float64(n)},
			{algorithms.Config{Rates: []algorithms.Rate{{Component: "a", Steps: 1, Over: n}}}, float64(n) * H},
		} {
			a, b, sys := toldPair(t)
			a.Info().Caps.VariableStep = c.config.Order > 0 // else a step that differs is refused
			alg := newExplicit(t, c.config)
			stop := start + float64(float64(steps)*H)
			if _, _, err := try(t, sys, alg, master.Options{Start: start, Stop: stop, Step: H}); err != nil {
				t.Fatalf("%+v from %v by %v: %v", c.config, start, H, err)
			}
			for _, s := range []*told{a, b} {
				own := H
				if s == a || c.config.Order > 0 {
					own = c.own
				}
				for k, h := range s.sizes {
					if h != own {
						t.Fatalf("%+v from %v by %v: step %d of %s gets %v, want %v", c.config, start, H, k, s.Info().Name, h, own)
					}
					if s.stopKnown && s.times[k]+h > stop {
						t.Fatalf("%+v from %v by %v: step %d of %s ends at %v, after %v", c.config, start, H, k, s.Info().Name, s.times[k]+h, stop)
					}
				}
				if s.stopKnown {
					bounded++
				}
			}
		}
	}
	if bounded < 400 {
		t.Errorf("%d subsystems got a stop time", bounded)
	}
}

// halving is an algorithm that takes half steps without declaring it.
type halving struct{ *algorithms.Coupling }

func (a halving) Attempt(ctx context.Context, x *master.Exec, t, H float64, _ *master.Trial) error {
	for i := range x.Sys.Subsystems {
		for _, at := range []float64{t, t + H/2} {
			if err := x.Step(ctx, i, at, H/2); err != nil {
				return err
			}
		}
	}
	return nil
}

// Algorithms that vary the step are refused if a subsystem cannot, and no step is taken.
func TestStepsThatAreRefused(t *testing.T) {
	run := func(alg master.Algorithm) error {
		a, _, sys := toldPair(t)
		a.Info().Caps.VariableStep = false
		_, _, err := try(t, sys, alg, master.Options{Stop: 1, Step: 0.1})
		if len(a.sizes) > 0 {
			t.Errorf("steps of %v", a.sizes)
		}
		return err
	}
	plain := newExplicit(t, algorithms.Config{})
	for name, err := range map[string]error{
		"a step of 0.05 s": run(halving{plain}),
		"two halves":       run(chosen(t, "richardson", map[string]string{"control.step": "fixed"}).Algorithm),
		"in two halves":    run(chosen(t, "richardson", nil).Algorithm),
		"the step sizes":   run(chosen(t, "predictor-corrector", nil).Algorithm),
	} {
		if err == nil || !errors.Is(err, master.ErrCapability) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range []string{name, "a (a.fmu)", "canHandleVariableCommunicationStepSize", "choose "} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("no %q in %q", part, err)
			}
		}
	}
}

// Estimates from extrapolated inputs are refused if all inputs are held.
func TestBlindEstimateIsRefused(t *testing.T) {
	for _, name := range []string{"ex-local", "ex-milne", "ex-slocal", "im-milne", "im-slocal", "richardson"} {
		for params, refused := range map[string]bool{"variable": true, "fixed": false} {
			a, _, sys := toldPair(t)
			a.Info().In[0].Discrete, a.Info().Out[0].Discrete = true, true
			err := chosen(t, name, map[string]string{"control.step": params}).Algorithm.Check(sys)
			if (err != nil) != refused || refused && !strings.Contains(fmt.Sprint(err), "a.u") {
				t.Errorf("%s, control.step=%s: %v", name, params, err)
			}
		}
	}
}
