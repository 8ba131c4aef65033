package algorithms_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// oscillator is haid's two-mass oscillator (27).
type oscillator struct {
	m1, m2, c1, c2, d1, d2, ck, dk float64
	start                          [4]float64 // s1 v1 s2 v2
}

func haids(ck, dk float64) oscillator {
	return oscillator{m1: 10, m2: 10, c1: 1e6, c2: 1e7, d1: 1, d2: 2, ck: ck, dk: dk, start: [4]float64{0, 1, 0, 1}}
}

func (o oscillator) subsystems() (one, two *mastertest.Linear) {
	one = mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.c1 / o.m1, -o.d1 / o.m1}}, B: [][]float64{{0}, {1 / o.m1}},
		C: [][]float64{{1, 0}, {0, 1}},
	}, o.start[:2])
	two = mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.ck + o.c2) / o.m2, -(o.dk + o.d2) / o.m2}}, B: [][]float64{{0, 0}, {o.ck / o.m2, o.dk / o.m2}},
		C: [][]float64{{o.ck, o.dk}}, D: [][]float64{{-o.ck, -o.dk}},
	}, o.start[2:])
	return one, two
}

func oscillatorSystem(t testing.TB, one, two master.Subsystem) *master.System {
	t.Helper()
	return system(t, []master.Subsystem{one, two}, "two.y1 one.u1", "one.y1 two.u1", "one.y2 two.u2")
}

// outputs returns y at a time, of the coupled system (haid (34), (35)).
func (o oscillator) outputs(t float64) []float64 {
	a := mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-(o.c1 + o.ck) / o.m1, -(o.d1 + o.dk) / o.m1, o.ck / o.m1, o.dk / o.m1,
		0, 0, 0, 1,
		o.ck / o.m2, o.dk / o.m2, -(o.ck + o.c2) / o.m2, -(o.dk + o.d2) / o.m2,
	})
	a.Scale(t, a)
	var e mat.Dense
	e.Exp(a)
	var x mat.VecDense
	x.MulVec(&e, mat.NewVecDense(4, o.start[:]))
	return []float64{x.AtVec(0), x.AtVec(1), o.ck*(x.AtVec(2)-x.AtVec(0)) + o.dk*(x.AtVec(3)-x.AtVec(1))}
}

// run takes the oscillator to t = stop with an exact history, and gives the
// largest relative error of an output.
func (o oscillator) run(t testing.TB, c Config, H, stop float64) (float64, master.Result) {
	t.Helper()
	one, two := o.subsystems()
	opt := master.Options{Stop: stop, Step: H}
	for j := 5; j > 0; j-- {
		opt.Past = append(opt.Past, master.PastOutputs{T: -float64(j) * H, Y: o.outputs(-float64(j) * H)})
	}
	res, memory := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, c), opt)
	worst := 0.0
	for i, want := range o.outputs(stop) {
		worst = max(worst, math.Abs(memory.Y[len(memory.Y)-1][i]-want)/math.Abs(want))
	}
	return worst, res
}

func byModels(s Scheme, order int, source JacobianSource) Config {
	return Config{Scheme: s, Order: order, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: source}}
}

// The correction gains one order of the global error at every order of the hold
// (haid 4.3), for both schemes, and by whichever Jacobian.
func TestModelCorrectorOrders(t *testing.T) {
	const stop = 4e-3
	o := haids(2e5, 5e2)
	steps := []float64{1e-5, 1e-5, 2e-5, 8e-5, 8e-5}
	near := []float64{0.1, 0.1, 0.1, 0.2, 0.35} // at high orders rounding comes before smaller steps
	for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
		for p, H := range steps {
			plain, _ := o.run(t, Config{Scheme: scheme, Order: p}, H, stop)
			var by [2]float64
			for i, source := range []JacobianSource{DirectionalJacobian, RollbackJacobian} {
				large, _ := o.run(t, byModels(scheme, p, source), H, stop)
				small, res := o.run(t, byModels(scheme, p, source), H/2, stop)
				order := math.Log2(large / small)
				if math.Abs(order-float64(p+2)) > near[p] {
					t.Errorf("scheme %d, p = %d, %s: order %.2f, want %d", scheme, p, choices("model-based-corrector", "model.jacobian")[source], order, p+2)
				}
				if !(large < plain/3) {
					t.Errorf("scheme %d, p = %d, %s: error %.2g, uncorrected %.2g", scheme, p, choices("model-based-corrector", "model.jacobian")[source], large, plain)
				}
				if res.Jacobians != 2 {
					t.Errorf("scheme %d, p = %d, %s: %d Jacobians of two linear subsystems", scheme, p, choices("model-based-corrector", "model.jacobian")[source], res.Jacobians)
				}
				by[i] = large
			}
			if math.Abs(by[0]-by[1]) > 1e-5*by[0]+1e-10 {
				t.Errorf("scheme %d, p = %d: error %g by derivatives, %g by repeated steps", scheme, p, by[0], by[1])
			}
		}
	}
}

// The correction holds on steps that vary, with rates, and for feedthrough alone.
func TestModelCorrectorCombines(t *testing.T) {
	o := haids(2e5, 5e2)
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
		{"varying steps, repeated", varying(byModels(Jacobi, 1, RollbackJacobian)), 10},
		{"fast", rated(byModels(Jacobi, 1, AnyJacobian), Rate{"two", 4, 1}), 30},
		{"slow", rated(byModels(Jacobi, 1, AnyJacobian), Rate{"one", 1, 2}), 3},
		{"slow, held", rated(byModels(Jacobi, 0, AnyJacobian), Rate{"one", 1, 2}), 3},
		{"feedthrough", Config{Correct: FeedthroughCorrection, Order: 1, Model: Model{Refresh: 0.01}}, 1.5},
	} {
		plain := c.config
		plain.Correct = NoCorrection
		without, _ := o.run(t, plain, 2e-5, 4e-3)
		with, res := o.run(t, c.config, 2e-5, 4e-3)
		t.Logf("%s: error %.2g, uncorrected %.2g; %d steps", c.name, with, without, res.Accepted)
		if !(with < without/c.gain) || len(res.Warnings) > 0 {
			t.Errorf("%s: error %.2g, uncorrected %.2g; %q", c.name, with, without, res.Warnings)
		}
	}
}

// doubtful is a linear subsystem with wrong derivatives.
type doubtful struct {
	*mastertest.Linear
	nan   bool
	lies  bool
	wrong bool // the derivatives are three times what they should be, which no test has found
}

func (d *doubtful) Linearize(dx, du, dxdot, dy []float64) error {
	err := d.Linear.Linearize(dx, du, dxdot, dy)
	if d.nan {
		dy[0] = math.NaN()
	}
	for i := range dxdot {
		if d.wrong {
			dxdot[i] *= 3
		}
	}
	return err
}

func (d *doubtful) VerifyDerivatives(context.Context, master.Experiment, float64) (master.SlopeTest, error) {
	if d.lies {
		return master.SlopeTest{}, fmt.Errorf("%w: the derivative is 1 and differences give 2", master.ErrCapability)
	}
	return master.SlopeTest{}, nil
}

// From its first steps on, where the history is short, and in turns, the correction goes
// on top of Gauss–Seidel at every order.
func TestModelFromTheStart(t *testing.T) {
	o := haids(2e5, 5e2)
	for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
		for order := range MaxOrder {
			var off [2]float64
			for i, config := range []Config{{Scheme: scheme, Order: order}, byModels(scheme, order, DirectionalJacobian)} {
				one, two := o.subsystems()
				_, memory := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, config), master.Options{Stop: 2e-2, Step: 2e-5})
				off[i] = math.Abs(memory.Y[len(memory.Y)-1][0] - o.outputs(2e-2)[0])
			}
			// From order 2 on, what the first steps leave is all that there is.
			if !(off[1] < off[0]) && (order < 2 || !(off[1] < 1e-9)) {
				t.Errorf("scheme %d, order %d: error %g corrected, %g not", scheme, order, off[1], off[0])
			}
		}
	}
}

// While a model is sought, the excitation leaves the run where it is without any.
func TestIdentificationDisturbsLittle(t *testing.T) {
	o := haids(2e5, 5e2)
	for order := range MaxOrder {
		var plain, sought float64
		for n := 10; n < 100; n += 5 {
			s, r := o.run(t, byModels(Jacobi, order, IdentifiedJacobian), 1e-4, float64(n)*1e-4)
			if r.Models["one"].Uncorrected < n {
				break
			}
			p, _ := o.run(t, Config{Order: order}, 1e-4, float64(n)*1e-4)
			plain, sought = math.Hypot(plain, p), math.Hypot(sought, s)
		}
		if !(sought < 1.1*plain) {
			t.Errorf("order %d: error %g while a model is sought, %g without", order, sought, plain)
		}
	}
}

// Models that fail leave their subsystem uncorrected, and the run tells, or they
// end it.
func TestModelFailures(t *testing.T) {
	o := haids(2e5, 5e2)
	for _, c := range []struct {
		name             string
		nan, lies, wrong bool
		says             string
	}{
		{"NaN", true, false, false, "one: 50 macro steps went uncorrected, first at t = 2e-05 s: the directional derivative by the state x1 is not a finite number"},
		{"lies", false, true, false, "one: directional derivatives at t = 0 s: capability missing: the derivative is 1 and differences give 2; the run goes on without"},
		{"wrong", false, false, true, "its directional derivatives do not tell what it does"},
	} {
		for _, stop := range []bool{false, true} {
			one, two := o.subsystems()
			config := byModels(Jacobi, 0, DirectionalJacobian)
			config.Model.Stop = stop
			H := 2e-5
			if c.wrong {
				H = 2e-3 // over short steps they do not count
			}
			res, _, err := try(t, oscillatorSystem(t, &doubtful{one, c.nan, c.lies, c.wrong}, two), newExplicit(t, config), master.Options{Stop: 50 * H, Step: H})
			switch {
			case stop && (err == nil || !strings.Contains(err.Error(), "one: ")):
				t.Errorf("%s, stop: %v", c.name, err)
			case !stop && (err != nil || !strings.Contains(strings.Join(res.Warnings, "\n"), c.says)):
				t.Errorf("%s: %v, %q", c.name, err, res.Warnings)
			case !stop && res.Models["two"].Source != "directional":
				t.Errorf("%s: %+v", c.name, res.Models)
			}
		}
	}
}

// A loop of which the inputs do not follow is told; nothing infinite comes of it.
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

// What has no model keeps its outputs, and is named; the others are corrected.
func TestModelMissing(t *testing.T) {
	o := haids(2e5, 5e2)
	one, two := o.subsystems()
	one.Info().Caps.DirectionalDerivative = false
	res, _ := simulate(t, oscillatorSystem(t, one, two), newExplicit(t, byModels(Jacobi, 0, DirectionalJacobian)), master.Options{Stop: 1e-3, Step: 2e-5})
	if m := res.Models["one"]; m.Source != "none" || !strings.Contains(m.Reason, "providesDirectionalDerivative") {
		t.Errorf("%+v", res.Models)
	}
	if !strings.Contains(strings.Join(res.Warnings, "\n"), "one: its outputs are not corrected") || res.Models["two"].Evaluations != 1 {
		t.Errorf("%q, %+v", res.Warnings, res.Models)
	}
}

// Parts that do not go together are refused.
func TestModelRefusals(t *testing.T) {
	for _, c := range []Config{
		{Scheme: Implicit, Correct: ModelCorrection},
		{Correct: ModelCorrection, Control: Control{Estimator: ExSLocal}},
	} {
		if _, err := NewCoupling(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
