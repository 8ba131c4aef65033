package analyze

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// settledIn runs an algorithm up to a time and returns what a forecast predicts of it: its steps, FMU steps per second
// and, if o is not nil, its error against the solution of haid's oscillator.
func settledIn(t *testing.T, sys *master.System, v *forecast.Varying, tolerance, H, stop float64,
	with algorithms.With, o *exact.Haid) (s forecast.Settled) {
	t.Helper()
	c, err := algorithms.New(v.Preset, map[string]string{v.Tolerance: fmt.Sprint(tolerance), "order": v.Order}, with)
	if err != nil {
		t.Fatal(err)
	}
	run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: stop, Step: H, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var steps []float64
	var square [3]float64
	before := 0.0
	for more := true; more; {
		if more, err = run.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := run.Point()
		h := at.T - before
		if before = at.T; h == 0 || o == nil {
			continue
		}
		steps = append(steps, h)
		for k, want := range o.Outputs(at.T) {
			square[k] += h * (at.Y[k] - want) * (at.Y[k] - want)
		}
	}
	result, err := run.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.Accepted, s.Rejected = result.Accepted, result.Rejected
	for _, n := range result.SubsystemSteps {
		s.FMUSteps += float64(n) / result.Time
	}
	if o == nil {
		return s
	}
	s.Step = median(steps, stop)
	const samples = 5000
	var sum, squares [3]float64
	for n := range samples {
		for k, v := range o.Outputs(stop * float64(n) / samples) {
			sum[k] += v / samples
			squares[k] += v * v / samples
		}
	}
	for k := range square {
		s.Error = max(s.Error, math.Sqrt(square[k]/stop/(squares[k]-sum[k]*sum[k])))
	}
	return s
}

// median returns the length of the median step of a run over time t.
func median(steps []float64, t float64) float64 {
	slices.Sort(steps)
	sum := 0.0
	return steps[slices.IndexFunc(steps, func(h float64) bool { sum += h; return sum >= t/2 })]
}

// Step sizes, cost and error of every algorithm with variable steps are those of a run from the operating point.
// Rounding may decide whether a step is rejected, and then changes all that follow: steps and cost agree to 25 %, errors
// within a factor of 2.5.
func testSettled(t *testing.T) {
	const H = 1e-4
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	bonds := []algorithms.Bond{{Name: "spring", Pairs: []algorithms.Pair{{Effort: "two.y1", Flow: "one.y2"}}}}
	for name, caps := range map[string]func(*master.Caps){"derivatives": nil,
		"substeps": func(c *master.Caps) { c.InputDerivatives = false }} {
		build := func() *master.System { return analyzetest.Haid(t, o, analyzetest.With(caps)) }
		r := analyse(t, build(), Options{Step: H, Stop: 0.03, Order: 1, From: H, To: 2 * H, Error: 0.01, Bonds: bonds})
		for _, v := range r.Varying {
			if v.Why != "" {
				t.Errorf("%s: %+v", name, v)
			}
			for _, s := range v.Settled {
				if s.Fails != "" {
					t.Errorf("%s, %s: %+v", name, v.Preset, s)
					continue
				}
				var with algorithms.With
				if v.Preset == "ecco" {
					with.Bonds = bonds
				}
				want := settledIn(t, build(), &v, s.Tolerance, H, 0.03, with, &o)
				near := func(got, want float64) bool { return math.Abs(got-want) <= 0.25*want }
				if !near(s.Step, want.Step) || !near(s.FMUSteps, want.FMUSteps) ||
					!(s.Error <= 2.5*max(want.Error, 1e-4) && want.Error <= 2.5*max(s.Error, 1e-4)) {
					t.Errorf("%s, %s, order %s, %s %g: %+v, and a run %+v", name, v.Preset, v.Order, v.Tolerance, s.Tolerance, s, want)
				}
			}
		}
		for _, a := range r.Structure.Algorithms {
			seen := slices.ContainsFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset == a.Preset })
			if forecast.ToleranceOf(a.Preset) != "" && a.Refused == "" && !seen {
				t.Errorf("%s: no forecast of %s", name, a.Preset)
			}
		}
		if c := r.RecommendedVarying; c != nil && (c.Error+c.Doubt > 0.01 || r.Promised != nil && c.FMUSteps >= r.Promised.FMUSteps) {
			t.Errorf("%s: %+v beside %+v", name, c, r.Promised)
		}
	}
}

// limited supports few orders of input derivatives.
type limited struct {
	*mastertest.Linear
	most int
}

func (l *limited) PrepareInputDerivatives(order int) error {
	if order > l.most {
		return fmt.Errorf("%w: up to order %d", master.ErrCapability, l.most)
	}
	return l.Linear.PrepareInputDerivatives(order)
}

// Forecast steps are those of runs for a source without inputs that feeds another component, and for components that
// support fewer orders of input derivatives than an algorithm asks for, whose inputs are sampled in substeps.
func TestSettledSteps(t *testing.T) {
	for name, c := range map[string]struct {
		build func() *master.System
		part  float64 // largest relative deviation
		runs  int     // least number
	}{
		"source": {func() *master.System {
			source := mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {-100, 0}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
			return analyzetest.System(t, []master.Subsystem{source, analyzetest.Lag("lag", -20, 20, 0)}, "source.y1 -> lag.u1")
		}, 0.1, 7},
		"few orders": {func() *master.System {
			part := func(name string, a float64) master.Subsystem {
				return &limited{mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{0, 1}, {a, -2}}, B: [][]float64{{0}, {20}},
					C: [][]float64{{1, 0}}}, []float64{1, 0}), 1}
			}
			return analyzetest.Pair(t, part("a", -100), part("b", -60))
		}, 0.15, 10},
	} {
		r := analyse(t, c.build(), Options{Step: 0.01, Stop: 2, Order: 1, From: 0.01, To: 0.02, Error: 0.01})
		runs := 0
		for _, v := range r.Varying {
			if len(v.Settled) == 0 {
				t.Errorf("%s: %+v", name, v)
			}
			for _, s := range v.Settled {
				runs++
				got := settledIn(t, c.build(), &v, s.Tolerance, r.Step, r.Horizon, algorithms.With{}, nil)
				told, want := float64(s.Accepted), float64(got.Accepted)
				if name == "few orders" {
					told, want = s.FMUSteps, got.FMUSteps
				}
				if !(math.Abs(told-want) <= c.part*want) {
					t.Errorf("%s: %s, order %s, %g: %.4g steps, and %.4g in a run", name, v.Preset, v.Order, s.Tolerance, told, want)
				}
			}
		}
		if runs < c.runs {
			t.Errorf("%s: %d runs are forecast: %s", name, runs, r.WhyNoError)
		}
	}
}

// With rates, components take several steps per chosen step, or one per several, as in a run.
func testSettledRates(t *testing.T) {
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	rates := []algorithms.Rate{{Component: "one", Steps: 4, Over: 1}, {Component: "two", Steps: 1, Over: 2}}
	r := analyse(t, analyzetest.Haid(t, o, nil), Options{Step: 1e-4, Stop: 0.05, Order: 1, From: 1e-4, To: 2e-4, Error: 0.1, Rates: rates})
	k := slices.IndexFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset == "predictor-corrector" })
	if v := &r.Varying[k]; len(v.Settled) < 2 {
		t.Errorf("%+v", v)
	}
	for _, s := range r.Varying[k].Settled {
		got := settledIn(t, analyzetest.Haid(t, o, nil), &r.Varying[k], s.Tolerance, r.Step, r.Horizon, algorithms.With{Rates: rates}, nil)
		if math.Abs(float64(s.Accepted-got.Accepted)) > 0.1*float64(got.Accepted) {
			t.Errorf("tolerance %g: %d steps, and %d in a run", s.Tolerance, s.Accepted, got.Accepted)
		}
	}
}
