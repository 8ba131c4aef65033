package test

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/oracle"
)

// limitCase is a coupling with an independent propagation matrix, or one whose limits only runs can show.
type limitCase struct {
	name   string
	args   []string // of analyze, and of run but for those of the algorithm
	H      float64
	from   float64
	to     float64
	output string // that shows whether a run grows
	preset string
	// radius is that of the independent matrix; nil = there is none.
	radius  func(order int, H float64) float64
	highest int // order
	within  float64
	// sampled: inputs are sampled in substeps, which the matrix describes for order 0 only.
	sampled bool
}

// schweizerCases are those of schweizer: three decompositions, explicit and implicit.
func schweizerCases(t *testing.T, highest int) (out []limitCase) {
	for _, decomposition := range []string{"ff", "fd", "dd"} {
		for _, implicit := range []bool{false, true} {
			preset := "explicit"
			if implicit {
				preset = "implicit"
			}
			out = append(out, limitCase{name: decomposition, args: twoMassArgs(t, uneven, decomposition), H: 1e-2,
				from: 1e-3, to: 0.2, output: "mass1.x", preset: preset, highest: highest,
				radius: func(order int, H float64) float64 {
					s := oracle.Scheme{Decomposition: decomposition, Implicit: implicit, Order: order}
					return cmplx.Abs(oracle.Eigenvalues(oracle.Propagation(uneven, s, H))[0])
				}, within: 5e-3})
		}
	}
	return out
}

// haidCases are those of haid, with and without correction, from FMUs with rollback and from FMUs without optional
// capabilities.
func haidCases(t *testing.T, highest int) (out []limitCase) {
	for _, name := range []string{"corrector-oscillator", "corrector-oscillator-blackbox"} {
		for _, stiff := range []bool{false, true} {
			o, H := exact.DefaultHaid(), 3e-4
			o.CK, o.DK = 2e5, 5e2
			if stiff {
				o.CK, o.DK, H = 1e9, 3.6e5, 2e-4
			}
			for _, preset := range []string{"explicit", "model-based-corrector"} {
				c := limitCase{name: fmt.Sprintf("%s, c_k = %g", name, o.CK),
					args: []string{system(t, name), "--set", fmt.Sprint("two.c_k=", o.CK),
						"--set", fmt.Sprint("two.d_k=", o.DK)},
					H: H, from: H / 10, to: 30 * H, output: "one.s", preset: preset, highest: highest, within: 5e-3,
					radius: func(order int, H float64) float64 {
						return exact.Corrected{Haid: o, H: H, P: order, Correct: preset != "explicit", Alpha: 1}.Radius()
					}}
				if name != "corrector-oscillator" {
					if preset != "explicit" {
						continue // a run has to identify models first
					}
					c.within, c.sampled = 0.15, true
				}
				out = append(out, c)
			}
		}
	}
	return out
}

// The ends of the stable ranges that analyze reports are those of the independent propagation matrices, to 0.5 %
// where responses are measured and to 15 % for FMUs without optional capabilities, and, to 2 %, those of runs over
// 10000 steps.
func testLimits(t *testing.T) {
	cases := append(schweizerCases(t, 3), haidCases(t, 2)...)
	for _, name := range []string{"quarter-car-b", "quarter-car-a"} {
		cases = append(cases, limitCase{name: name, args: []string{system(t, name)}, H: 1e-3, from: 1e-3, to: 0.1,
			output: "chassis.F_c", preset: "explicit", highest: 0})
	}
	bySystem := map[string][]limitCase{} // explicit and implicit are of one report
	for _, c := range cases {
		bySystem[fmt.Sprint(c.args)] = append(bySystem[fmt.Sprint(c.args)], c)
	}
	var ends atomic.Int64
	t.Cleanup(func() {
		if n := ends.Load(); n < 4 {
			t.Errorf("%d ends of stable ranges", n)
		}
	})
	for _, of := range bySystem {
		t.Run(of[0].name, func(t *testing.T) {
			t.Parallel()
			ends.Add(int64(limitsOf(t, of)))
		})
	}
}

// limitsOf checks the ends of stable ranges in one report, and returns their number.
func limitsOf(t *testing.T, cases []limitCase) (ends int) {
	one := &cases[0]
	r := analysis(t, append(slices.Clone(one.args), "--step-size", fmt.Sprint(one.H), "--from", fmt.Sprint(one.from),
		"--to", fmt.Sprint(one.to),
		"--order", fmt.Sprint(one.highest), "--stop-time", fmt.Sprint(one.H))...)
	for _, c := range cases {
		for k := range c.highest + 1 {
			s := strategy(t, r, c.preset, k)
			if len(s.Points) == 0 {
				t.Errorf("%s, %s, order %d: %s", c.name, c.preset, k, s.Why)
				continue
			}
			for _, at := range s.Stable {
				for _, end := range []struct {
					H      float64
					begins bool
				}{{at.From, true}, {at.To, false}} {
					beside := func(g scan.Gap) bool { return g.From <= end.H*1.2 && g.To >= end.H/1.2 } // then it is not told
					if end.H <= c.from*1.001 || end.H >= c.to*0.999 || slices.ContainsFunc(s.Gaps, beside) {
						continue
					}
					ends++
					text := fmt.Sprintf("%-40s %-22s order %d: %-6s at %.5g s", c.name, c.preset, k,
						map[bool]string{true: "from", false: "to"}[end.begins], end.H)
					if c.radius != nil && !(c.sampled && k > 0) {
						if !turns(func(H float64) bool { return c.radius(k, H) > 1 }, end.H, end.begins, c.within) {
							t.Errorf("%s, and the matrix has none within %g %%", text, 100*c.within)
						}
					}
					if within := max(0.02, c.within); !turns(func(H float64) bool { return grows(t, c, k, H) }, end.H, end.begins, within) {
						t.Errorf("%s, and runs over 10000 steps show none within %g %%", text, 100*within)
					}
				}
			}
		}
	}
	return ends
}

// turns reports whether a coupling changes from unstable to stable (begins) or back within a part of H, the nearest
// neighbourhoods first: farther off there may be another change.
func turns(unstable func(H float64) bool, H float64, begins bool, within float64) bool {
	for beside := min(0.02, within); ; beside = min(2*beside, within) {
		if below := unstable(H / (1 + beside)); below == begins && unstable(H*(1+beside)) != begins {
			return true
		}
		if beside == within {
			return false
		}
	}
}

// grows reports whether a run over 10000 steps grows, by the second differences of an output.
func grows(t *testing.T, c limitCase, order int, H float64) bool {
	const steps = 10_000
	args := append(append([]string{}, c.args...), "--algorithm", c.preset, "--param", fmt.Sprint("order=", order),
		"--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(steps*H))
	if c.preset == "implicit" {
		args = append(args, "--param", "solver.tolerance=1e-9")
	}
	o := run(t, args...)
	if o.code != 0 {
		return true // beyond all numbers, or what an FMU takes
	}
	y := o.column(t, c.output)
	whole, early, late := 0.0, 0.0, 0.0
	for n := 1; n+1 < len(y); n++ {
		d := math.Abs(y[n+1] - 2*y[n] + y[n-1])
		whole = max(whole, d)
		switch part := 5 * n / len(y); part {
		case 1:
			early = max(early, d)
		case 4:
			late = max(late, d)
		}
	}
	return late > early && late > 1e-9*whole
}

// The recommendation for each of our systems is stable and has the promised error within a factor of 3; the forecast
// errors of explicit coupling hold likewise for some of them.
func testRecommendations(t *testing.T) {
	for _, name := range []string{"corrector-oscillator", "corrector-oscillator-blackbox", "energy-oscillator",
		"energy-star-3", "quarter-car-a", "quarter-car-b", "two-mass-ff", "two-mass-fd", "two-mass-dd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const finer = 20
			path := system(t, name)
			r := analysis(t, path)
			if r.Recommended < 0 || r.Promised == nil {
				t.Fatalf("%s; %s", r.Why, r.WhyNoError)
			}
			var outputs []string
			for _, c := range r.Structure.Connections {
				if !slices.Contains(outputs, c.From) {
					outputs = append(outputs, c.From)
				}
			}
			best := []string{path, "--algorithm", "implicit", "--param", "order=2", "--param", "solver.tolerance=1e-9"}
			if strings.Contains(name, "blackbox") {
				best = []string{path, "--algorithm", "gauss-seidel", "--param", "order=2", "--param", "substeps=2"}
			}
			check := func(s *analyze.Strategy, promised forecast.Forecast) {
				H, horizon := promised.Step, math.Floor(r.Horizon/promised.Step+1e-9)*promised.Step
				args := []string{path, "--algorithm", s.Preset, "--param", fmt.Sprint("order=", s.Order)}
				for key, value := range s.Params {
					args = append(args, "--param", key+"="+value)
				}
				fine := complete(t, append(slices.Clip(best), "--step-size", fmt.Sprint(H/finer), "--stop-time", fmt.Sprint(horizon))...)
				got := off(t, outputs, H, complete(t, append(args, "--step-size", fmt.Sprint(H), "--stop-time", fmt.Sprint(horizon))...),
					fine, H/finer)
				text := fmt.Sprintf("%-30s %s, order %d, %.4g s: promised %.3g of %s, got %.3g", name, s.Preset,
					s.Order, H, promised.Error, promised.Of, got)
				if t.Log(text); !(got < 3*promised.Error && promised.Error < 3*got) && max(got,
					promised.Error) > 1e-4 { // below that the model of the responses decides
					t.Error(text)
				}
			}
			check(&r.Strategies[r.Recommended], *r.Promised)
			for i := range r.Strategies {
				s := &r.Strategies[i]
				for _, f := range s.Forecasts {
					if f.Step == r.Step && s.Preset == "explicit" && (name == "quarter-car-b" || strings.Contains(name, "blackbox")) {
						check(s, f)
					}
				}
			}
		})
	}
}
