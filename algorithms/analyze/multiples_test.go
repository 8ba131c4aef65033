package analyze

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// ownSteps is a subsystem that takes steps of its own, as some FMUs do: those that end within the
// step that it is asked for.
type ownSteps struct {
	*mastertest.Linear
	own float64
}

func (s *ownSteps) Step(ctx context.Context, t, H float64) (float64, error) {
	last := math.Floor((t+H)/s.own + 1e-6)
	for n := math.Floor(t/s.own + 1e-6); n < last; n++ {
		if _, err := s.Linear.Step(ctx, n*s.own, s.own); err != nil {
			return t, err
		}
	}
	return t + H, nil
}

// loopOf is a loop of two masses on springs, coupled by a third; a subsystem may be wrapped.
func loopOf(t *testing.T, wrap func(*mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	make1 := func(name string, c float64) master.Subsystem {
		s := mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{0, 1}, {-c, -0.4}}, B: [][]float64{{0}, {3}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
		s.Info().Caps.InputDerivatives, s.Info().Caps.DirectionalDerivative = false, false
		return wrap(s)
	}
	return analyzetest.Pair(t, make1("one", 7), make1("two", 9))
}

// Of subsystems with steps of their own, that is told which holds at whole multiples of them, and
// nothing is recommended that is not known.
func TestOwnSteps(t *testing.T) {
	const own = 0.02
	o := Options{Step: own, Order: 0, Stop: 10}
	stepped, err := Run(t.Context(), loopOf(t, func(l *mastertest.Linear) master.Subsystem { return &ownSteps{l, own} }), o)
	if err != nil {
		t.Fatal(err)
	}
	alone := map[int]*Report{} // by multiple
	for i, s := range stepped.Strategies {
		if s.Preset != "explicit" && s.Preset != "gauss-seidel" {
			continue
		}
		if s.Multiples != own || len(s.Points) != scan.MostMultiples {
			t.Fatalf("%s: multiples of %g, %d points, %s", s.Preset, s.Multiples, len(s.Points), s.Why)
		}
		for n, point := range s.Points {
			if n >= 3 && !long.On {
				break
			}
			if alone[n] == nil {
				if alone[n], err = Run(t.Context(), loopOf(t, func(l *mastertest.Linear) master.Subsystem { return l }), Options{Step: point.Step, Order: 0, From: point.Step, To: 1.01 * point.Step}); err != nil {
					t.Fatal(err)
				}
			}
			if want := alone[n].Strategies[i].Now; math.Abs(point.Step-float64(n+1)*own) > 1e-12 || math.Abs(point.Radius-want) > 1e-6 {
				t.Errorf("%s: radius %.9f at %g s, want %.9f", s.Preset, point.Radius, point.Step, want)
			}
		}
	}
	if k := stepped.Recommended; k < 0 || !stepped.Strategies[k].covers(stepped.StepToTake, stepped.From) {
		t.Errorf("recommended: %d with %g s: %s", k, stepped.StepToTake, stepped.Why)
	}
}

// An error that is below what is asked for and not certain to be is not promised, and told so.
func TestRecommendsWithoutPromise(t *testing.T) {
	for _, c := range []struct {
		off, doubt float64
		want       string
	}{
		{9e-4, 0.03, "can be promised of nothing that was looked at with a margin of stability; this one comes nearest: what it is expected to be off by is an order of magnitude only, as the models are off by 0.03"},
		{8e-3, 3e-3, "is uncertain by 0.003"},
		{2e-2, 1e-5, "nothing that was looked at has an error of at most 0.01 and a margin"},
	} {
		r := Report{From: 0.1, Recommended: -1, Strategies: []Strategy{{
			Result: scan.Result{Points: []scan.Radius{{Step: 0.1, Radius: 0.9}}, Stable: []scan.Range{{From: 0.1, To: 10}}}, Forecasts: []forecast.Forecast{{Step: 1, Error: c.off, Doubt: c.doubt, FMUSteps: 1}},
		}}}
		if r.recommend(0.01); r.Recommended != 0 || !strings.Contains(r.Why, c.want) {
			t.Errorf("off by %g, doubt %g: %d, %s", c.off, c.doubt, r.Recommended, r.Why)
		}
	}
}

// A step that is not known to be stable is not recommended, though a longer one is.
func TestRecommendsKnown(t *testing.T) {
	r := &Report{Step: 0.01, From: 1e-3, To: 1, Recommended: -1, Strategies: []Strategy{
		{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 0.09, Radius: 0.5}}, Stable: []scan.Range{{From: 0.09, To: 0.09}}}},
		{Preset: "implicit", Result: scan.Result{Points: []scan.Radius{{Step: 0.005, Radius: 0.5}, {Step: 0.02, Radius: 0.6}}, Stable: []scan.Range{{From: 0.005, To: 0.03}}}},
	}}
	if r.recommend(0.01); r.Recommended != 1 || r.StepToTake != 0.01 {
		t.Errorf("%+v", r)
	}
	r.Strategies, r.Recommended = r.Strategies[:1], -1
	if r.recommend(0.01); r.Recommended >= 0 {
		t.Errorf("%+v", r)
	}
}

// A step near one that is unknown, or without a margin below the end of a range, is not recommended.
func TestCovers(t *testing.T) {
	s := Strategy{Result: scan.Result{Stable: []scan.Range{{From: 1, To: 8}}, Gaps: []scan.Gap{{From: 3, To: 3}}}}
	for h, want := range map[float64]bool{2: true, 3: false, 3.1: false, 3.5: true, 4.5: false} {
		if s.covers(h, 1) != want {
			t.Errorf("covers(%g) is not %t", h, want)
		}
	}
}
