package algorithms_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// halves returns the two subsystems of haid's oscillator.
func halves(o exact.Haid) (one, two *mastertest.Linear) {
	one = mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}},
		C: [][]float64{{1, 0}, {0, 1}},
	}, o.Start[:2])
	two = mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, o.Start[2:])
	return one, two
}

func oscillatorSystem(t testing.TB, one, two master.Subsystem) *master.System {
	t.Helper()
	return system(t, []master.Subsystem{one, two}, "two.y1 one.u1", "one.y1 two.u1", "one.y2 two.u2")
}

// runHaid runs the oscillator to t = stop with an exact history, and returns the
// largest relative error of an output.
func runHaid(t testing.TB, c Config, H, stop float64) (float64, master.Result) {
	t.Helper()
	o := exact.DefaultHaid()
	one, two := halves(o)
	opt := master.Options{Stop: stop, Step: H}
	for j := 5; j > 0; j-- {
		opt.Past = append(opt.Past, master.PastOutputs{T: -float64(j) * H, Y: o.Outputs(-float64(j) * H)})
	}
	res, memory := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, c), opt)
	worst := 0.0
	for i, want := range o.Outputs(stop) {
		worst = max(worst, math.Abs(memory.Y[len(memory.Y)-1][i]-want)/math.Abs(want))
	}
	return worst, res
}

func byModels(s Scheme, order int, source JacobianSource) Config {
	return Config{Scheme: s, Order: order, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: source}}
}

// The correction gains one order of the global error at every order of the hold
// (haid 4.3), for both schemes.
func TestModelCorrectorOrders(t *testing.T) {
	const stop = 4e-3
	steps := []float64{1e-5, 1e-5, 2e-5, 8e-5, 8e-5}
	near := []float64{0.1, 0.1, 0.1, 0.2, 0.35} // at high orders rounding prevents smaller steps
	for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
		for p, H := range steps {
			plain, _ := runHaid(t, Config{Scheme: scheme, Order: p}, H, stop)
			large, _ := runHaid(t, byModels(scheme, p, DirectionalJacobian), H, stop)
			small, res := runHaid(t, byModels(scheme, p, DirectionalJacobian), H/2, stop)
			order := math.Log2(large / small)
			if math.Abs(order-float64(p+2)) > near[p] || !(large < plain/3) || res.Jacobians != 2 {
				t.Errorf("scheme %d, p = %d: order %.2f, want %d; error %.2g, uncorrected %.2g; %d Jacobians of two linear subsystems",
					scheme, p, order, p+2, large, plain, res.Jacobians)
			}
		}
	}
}

// The correction works with variable steps, with rates, and for direct feedthrough only.
func TestModelCorrectorCombines(t *testing.T) {
	varying := func(c Config) Config {
		all := []Tolerance{{Value: 1e-3}}
		c.Control = Control{Estimator: PredictorCorrector, Safety: 0.8, RatioMin: 0.2, RatioMax: 1.5, HMin: 1e-6, HMax: 4e-5, PCTolerance: all, PCRho: all}
		return c
	}
	rated := func(c Config, r Rate) Config { c.Rates = []Rate{r}; return c }
	for _, c := range []struct {
		name   string
		config Config
		gain   float64 // the factor by which the error is smaller, at least
	}{
		{"varying steps", varying(byModels(Jacobi, 1, AnyJacobian)), 10},
		{"fast", rated(byModels(Jacobi, 1, AnyJacobian), Rate{"two", 4, 1}), 30},
		{"slow", rated(byModels(Jacobi, 1, AnyJacobian), Rate{"one", 1, 2}), 3},
		{"slow, held", rated(byModels(Jacobi, 0, AnyJacobian), Rate{"one", 1, 2}), 3},
		{"feedthrough", Config{Correct: FeedthroughCorrection, Order: 1, Model: Model{Refresh: 0.01}}, 1.5},
	} {
		plain := c.config
		plain.Correct = NoCorrection
		without, _ := runHaid(t, plain, 2e-5, 4e-3)
		with, res := runHaid(t, c.config, 2e-5, 4e-3)
		t.Logf("%s: error %.2g, uncorrected %.2g; %d steps", c.name, with, without, res.Accepted)
		if !(with < without/c.gain) || len(res.Warnings) > 0 {
			t.Errorf("%s: error %.2g, uncorrected %.2g; %q", c.name, with, without, res.Warnings)
		}
	}
}

// doubtful is a linear subsystem with wrong derivatives.
type doubtful struct {
	*mastertest.Linear
	fault string // "NaN"; "lies": the test of derivatives fails; "wrong": they are three times too large, and it passes
}

func (d *doubtful) Linearize(dx, du, dxdot, dy []float64) error {
	err := d.Linear.Linearize(dx, du, dxdot, dy)
	if d.fault == "NaN" {
		dy[0] = math.NaN()
	}
	for i := range dxdot {
		if d.fault == "wrong" {
			dxdot[i] *= 3
		}
	}
	return err
}

func (d *doubtful) VerifyDerivatives(context.Context, master.Experiment, float64) (master.SlopeTest, error) {
	if d.fault == "lies" {
		return master.SlopeTest{}, fmt.Errorf("%w: the derivative is 1 and differences give 2", master.ErrCapability)
	}
	return master.SlopeTest{}, nil
}

// The correction reduces the error at every order without an exact history, also with Gauss–Seidel.
func TestModelFromTheStart(t *testing.T) {
	o := exact.DefaultHaid()
	for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
		for order := range MaxOrder {
			var off [2]float64
			for i, config := range []Config{{Scheme: scheme, Order: order}, byModels(scheme, order, DirectionalJacobian)} {
				one, two := halves(o)
				_, memory := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, config), master.Options{Stop: 2e-2, Step: 2e-5})
				off[i] = math.Abs(memory.Y[len(memory.Y)-1][0] - o.Outputs(2e-2)[0])
			}
			// From order 2 on, the errors of the first steps dominate.
			if !(off[1] < off[0]) && (order < 2 || !(off[1] < 1e-9)) {
				t.Errorf("scheme %d, order %d: error %g corrected, %g not", scheme, order, off[1], off[0])
			}
		}
	}
}

// The excitation during identification does not increase the error.
func TestIdentificationDisturbsLittle(t *testing.T) {
	for order := range MaxOrder {
		var plain, sought float64
		for n := 10; n < 100; n += 5 {
			s, r := runHaid(t, byModels(Jacobi, order, IdentifiedJacobian), 1e-4, float64(n)*1e-4)
			if r.Models["one"].Uncorrected < n {
				break
			}
			p, _ := runHaid(t, Config{Order: order}, 1e-4, float64(n)*1e-4)
			plain, sought = math.Hypot(plain, p), math.Hypot(sought, s)
		}
		if !(sought < 1.1*plain) {
			t.Errorf("order %d: error %g while a model is sought, %g without", order, sought, plain)
		}
	}
}

// Models that fail leave their subsystem uncorrected with a warning, or end the run.
func TestModelFailures(t *testing.T) {
	for fault, says := range map[string]string{
		"NaN": "one: 50 macro steps went uncorrected, first at t = 2e-05 s: the directional derivative by the " +
			"state x1 is not a finite number",
		"lies": "one: directional derivatives at t = 0 s: capability missing: the derivative is 1 and differences " +
			"give 2; the run goes on without",
		"wrong": "its directional derivatives contradict its steps",
	} {
		for _, stop := range []bool{false, true} {
			one, two := halves(exact.DefaultHaid())
			config := byModels(Jacobi, 0, DirectionalJacobian)
			config.Model.Stop = stop
			H := 2e-5
			if fault == "wrong" {
				H = 2e-3 // over short steps they do not count
			}
			res, _, err := try(t, oscillatorSystem(t, &doubtful{one, fault}, two), newExplicit(t, config), master.Options{Stop: 50 * H, Step: H})
			switch {
			case stop && (err == nil || !strings.Contains(err.Error(), "one: ")):
				t.Errorf("%s, stop: %v", fault, err)
			case !stop && (err != nil || !strings.Contains(strings.Join(res.Warnings, "\n"), says)):
				t.Errorf("%s: %v, %q", fault, err, res.Warnings)
			case !stop && res.Models["two"].Source != "directional":
				t.Errorf("%s: %+v", fault, res.Models)
			}
		}
	}
}

// A singular interface is reported, and the outputs stay finite.
func TestModelSingular(t *testing.T) {
	gain := func(name string) *mastertest.Linear {
		l := mastertest.NewLinear(name, mastertest.Matrices{D: [][]float64{{1}}}, nil)
		l.Info().StartIn[0] = 1
		l.Info().Stateless = false
		return l
	}
	for _, stop := range []bool{false, true} {
		// y = u + x with x at rest: the feedthrough loop has gain 1.
		one := mastertest.NewLinear("one", mastertest.Matrices{A: [][]float64{{0}}, B: [][]float64{{0}}, C: [][]float64{{1}}, D: [][]float64{{1}}}, []float64{0})
		sys := system(t, []master.Subsystem{one, gain("two")}, "one.y1 two.u1", "two.y1 one.u1")
		res, _, err := try(t, sys, newExplicit(t, Config{Correct: FeedthroughCorrection, Model: Model{Stop: stop}}), master.Options{Stop: 1, Step: 0.1})
		const says = "I − L G at "
		if stop && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("stop: %v", err)
		}
		if !stop && (err != nil || !strings.Contains(strings.Join(res.Warnings, "\n"), says)) {
			t.Errorf("%v, %q", err, res.Warnings)
		}
	}
}

// A subsystem without a model keeps its outputs and is named; the others are corrected.
func TestModelMissing(t *testing.T) {
	one, two := halves(exact.DefaultHaid())
	one.Info().Caps.DirectionalDerivative = false
	res, _ := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, byModels(Jacobi, 0, DirectionalJacobian)), master.Options{Stop: 1e-3, Step: 2e-5})
	if m := res.Models["one"]; m.Source != "none" || !strings.Contains(m.Reason, "providesDirectionalDerivative") {
		t.Errorf("%+v", res.Models)
	}
	if !strings.Contains(strings.Join(res.Warnings, "\n"), "one: its outputs are not corrected") || res.Models["two"].Evaluations != 1 {
		t.Errorf("%q, %+v", res.Warnings, res.Models)
	}
}

// A step that an identified model misses by more than it would correct stays uncorrected and is counted; many of them are a
// warning.
func TestModelMispredicts(t *testing.T) {
	const steps, H, from = 600, 1e-4, 400 * 1e-4
	for _, order := range []int{0, 1} {
		for _, noise := range []float64{0, 1e-4} { // relative to half of the largest change over a step
			one, two := halves(exact.DefaultHaid())
			d := &disturbed{Linear: one}
			largest, calls := [2]float64{}, 0
			var last [2]float64
			d.change = func(now float64, _ int, y []float64) {
				calls++
				for o := range y {
					if clean := y[o]; now < from {
						largest[o] = max(largest[o], math.Abs(clean-last[o])/2)
						last[o] = clean
					} else {
						y[o] += noise * largest[o] * math.Sin(float64(calls*calls+o))
					}
				}
			}
			res, _ := simulate(t, oscillatorSystem(t, d, two), newExplicit(t, byModels(Jacobi, order, IdentifiedJacobian)), master.Options{Stop: steps * H, Step: H})
			m := res.Models["one"]
			warned := strings.Contains(strings.Join(res.Warnings, "\n"), "one: its identified model misses")
			if noise > 0 && (m.Mispredicted < 50 || !warned) || noise == 0 && (m.Mispredicted > 5 || warned) {
				t.Errorf("order %d, noise %g: %d steps mispredicted, %q", order, noise, m.Mispredicted, res.Warnings)
			}
		}
	}
}
