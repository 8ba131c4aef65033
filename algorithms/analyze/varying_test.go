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

// settledIn runs an algorithm over a time on a system, and gives the median of its steps, by time, its FMU steps per second
// and the error of its outputs against haid's solution.
func settledIn(t *testing.T, sys *master.System, c *algorithms.Choice, o exact.Haid, H, stop float64) (s forecast.Settled) {
	t.Helper()
	run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: stop, Step: H, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var steps []float64
	var square, sum, squares [3]float64
	before := 0.0
	for more := true; more; {
		if more, err = run.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := run.Point()
		h := at.T - before
		if before = at.T; h == 0 {
			continue
		}
		steps = append(steps, h)
		for k, want := range o.Outputs(at.T) {
			square[k] += h * (at.Y[k] - want) * (at.Y[k] - want)
		}
	}
	const samples = 5000
	for n := range samples {
		for k, v := range o.Outputs(stop * float64(n) / samples) {
			sum[k] += v / samples
			squares[k] += v * v / samples
		}
	}
	for k := range square {
		s.Error = max(s.Error, math.Sqrt(square[k]/stop/(squares[k]-sum[k]*sum[k])))
	}
	result, err := run.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.Step, s.Accepted, s.Rejected = median(steps, stop), result.Accepted, result.Rejected
	for _, n := range result.SubsystemSteps {
		s.FMUSteps += float64(n) / stop
	}
	return s
}

// median returns the size that steps have at most in half of the time t, which they fill.
func median(steps []float64, t float64) float64 {
	slices.Sort(steps)
	sum := 0.0
	return steps[slices.IndexFunc(steps, func(h float64) bool { sum += h; return sum >= t/2 })]
}

// Where steps settle, at what cost and with which error, is what a run of the same algorithm from the operating point
// does, for each that chooses its steps. Whether a step is rejected may hang on rounding, and so may all that follow it: steps
// and cost are the same to 25 %, errors within a factor of 2.5.
func testSettled(t *testing.T) {
	const H = 1e-4
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	bonds := []algorithms.Bond{{Name: "spring", Pairs: []algorithms.Pair{{Effort: "two.y1", Flow: "one.y2"}}}}
	for name, caps := range map[string]func(*master.Caps){"derivatives": nil, "substeps": func(c *master.Caps) { c.InputDerivatives = false }} {
		r := analyse(t, analyzetest.Haid(t, o, analyzetest.With(caps)), Options{Step: H, Stop: 0.03, Order: 1, From: H, To: 2 * H, Error: 0.01, Bonds: bonds})
		seen := map[string]bool{}
		for _, v := range r.Varying {
			if v.Why != "" {
				t.Errorf("%s: %+v", name, v)
			}
			seen[v.Preset] = true
			for _, s := range v.Settled {
				if s.Fails != "" {
					t.Errorf("%s, %s: %+v", name, v.Preset, s)
					continue
				}
				params := map[string]string{v.Tolerance: fmt.Sprint(s.Tolerance), "order": v.Order}
				var with algorithms.With
				if v.Preset == "ecco" {
					with.Bonds = bonds
				}
				c, err := algorithms.New(v.Preset, params, with)
				if err != nil {
					t.Fatal(err)
				}
				want := settledIn(t, analyzetest.Haid(t, o, analyzetest.With(caps)), c, o, H, 0.03)
				near := func(got, want, within float64) bool { return math.Abs(got-want) <= within*want }
				if !near(s.Step, want.Step, 0.25) || !near(s.FMUSteps, want.FMUSteps, 0.25) || !(s.Error <= 2.5*max(want.Error, 1e-4) && want.Error <= 2.5*max(s.Error, 1e-4)) {
					t.Errorf("%s, %s, order %s, %s %g: %+v, and a run %+v", name, v.Preset, v.Order, v.Tolerance, s.Tolerance, s, want)
				}
				t.Logf("%s, %s, order %s, %s %g: steps %.3g (%.3g to %.3g) s for %.3g, error %.3g for %.3g, %.4g FMU steps/s for %.4g, %d rejected for %d",
					name, v.Preset, v.Order, v.Tolerance, s.Tolerance, s.Step, s.Short, s.Long, want.Step, s.Error, want.Error, s.FMUSteps, want.FMUSteps, s.Rejected, want.Rejected)
			}
		}
		for _, preset := range []string{"ex-local", "ex-milne", "ex-slocal", "richardson", "im-milne", "im-slocal", "predictor-corrector", "ecco"} {
			if !seen[preset] && !slices.ContainsFunc(r.Structure.Algorithms, func(a Applicability) bool { return a.Preset == preset && a.Refused != "" }) {
				t.Errorf("%s: nothing is told of %s", name, preset)
			}
		}
		if c := r.RecommendedVarying; c != nil && (c.Error+c.Doubt > 0.01 || r.Promised != nil && c.FMUSteps >= r.Promised.FMUSteps) {
			t.Errorf("%s: %+v beside %+v", name, c, r.Promised)
		}
		t.Logf("%+v\n%+v", r.RecommendedVarying, r.Promised)
	}
}

// heldAgainstRuns compares forecasts of adaptive algorithms with runs. A quantity may differ by a share part of its value
// in the run. It returns the number of comparisons.
func heldAgainstRuns(t *testing.T, build func() *master.System, r *Report, part float64, what string, of func(s *forecast.Settled, run *master.Result) (told, got float64), with ...algorithms.With) (n int) {
	t.Helper()
	for _, v := range r.Varying {
		if len(v.Settled) == 0 {
			t.Errorf("%+v", v)
		}
		for _, s := range v.Settled {
			c, err := algorithms.New(v.Preset, map[string]string{v.Tolerance: fmt.Sprint(s.Tolerance), "order": v.Order}, with...)
			if err != nil {
				t.Fatal(err)
			}
			run, err := master.NewRun(build(), c.Algorithm, master.Options{Stop: r.Horizon, Step: r.Step, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			result, err := run.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if told, got := of(&s, &result); !(math.Abs(told-got) <= part*got) {
				t.Errorf("%s, order %s, %g: %.4g %s, and %.4g in a run", v.Preset, v.Order, s.Tolerance, told, what, got)
			}
			n++
		}
	}
	return n
}

// A source without inputs that oscillates by itself, and feeds another component: its steps are as in a run.
func TestSettledSource(t *testing.T) {
	build := func() *master.System {
		source := mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {-100, 0}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
		return analyzetest.System(t, []master.Subsystem{source, analyzetest.Lag("lag", -20, 20, 0)}, "source.y1 -> lag.u1")
	}
	r := analyse(t, build(), Options{Step: 0.01, Stop: 2, Order: 1, From: 0.01, To: 0.02, Error: 0.01})
	heldAgainstRuns(t, build, r, 0.1, "steps", func(s *forecast.Settled, run *master.Result) (told, got float64) {
		return float64(s.Accepted), float64(run.Accepted)
	})
	if len(r.Varying) < 7 {
		t.Errorf("%d algorithms: %s", len(r.Varying), r.WhyNoError)
	}
}

// With rates, components take steps of their own in those that are chosen: as in a run.
func testSettledRates(t *testing.T) {
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	rates := []algorithms.Rate{{Component: "one", Steps: 4, Over: 1}, {Component: "two", Steps: 1, Over: 2}}
	r := analyse(t, analyzetest.Haid(t, o, nil), Options{Step: 1e-4, Stop: 0.05, Order: 1, From: 1e-4, To: 2e-4, Error: 0.1, Rates: rates})
	r.Varying = slices.DeleteFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset != "predictor-corrector" })
	build := func() *master.System { return analyzetest.Haid(t, o, nil) }
	told := heldAgainstRuns(t, build, r, 0.1, "steps", func(s *forecast.Settled, run *master.Result) (told, got float64) {
		return float64(s.Accepted), float64(run.Accepted)
	}, algorithms.With{Rates: rates})
	if told < 2 {
		t.Errorf("%d runs are forecast", told)
	}
}

// limited takes few orders of input derivatives.
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

// Components that take fewer orders of input derivatives than an algorithm asks for have their inputs sampled in substeps, in the
// forecast as in a run.
func TestSettledFewOrders(t *testing.T) {
	build := func() *master.System {
		part := func(name string, a float64) master.Subsystem {
			return &limited{mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{0, 1}, {a, -2}}, B: [][]float64{{0}, {20}}, C: [][]float64{{1, 0}}}, []float64{1, 0}), 1}
		}
		return analyzetest.Pair(t, part("a", -100), part("b", -60))
	}
	r := analyse(t, build(), Options{Step: 0.01, Stop: 2, Order: 1, From: 0.01, To: 0.02, Error: 0.01})
	told := heldAgainstRuns(t, build, r, 0.15, "FMU steps per second", func(s *forecast.Settled, run *master.Result) (told, got float64) {
		for _, n := range run.SubsystemSteps {
			got += float64(n) / run.Time
		}
		return s.FMUSteps, got
	})
	if told < 10 {
		t.Errorf("%d runs are forecast", told)
	}
}
