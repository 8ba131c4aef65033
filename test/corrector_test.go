package test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/haid"
	"github.com/macrostep/macrostep/test/long"
)

// haidArgs returns the command line for haid's oscillator with an exact history of p points.
func haidArgs(t testing.TB, system string, o exact.Haid, p int, H float64) []string {
	t.Helper()
	args, err := haid.Args(system, o, p, H, filepath.Join(t.TempDir(), "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// apart returns the largest difference from the rows of y, relative to the largest value of each output.
func (o *outcome) apart(t testing.TB, y [][3]float64) float64 {
	t.Helper()
	worst := 0.0
	for k, name := range haid.Outputs {
		largest, off := 0.0, 0.0
		for n, v := range o.column(t, name) {
			largest, off = max(largest, math.Abs(y[n][k])), max(off, math.Abs(v-y[n][k]))
		}
		worst = max(worst, off/largest)
	}
	return worst
}

// The corrected co-simulation is that of the propagation matrix (42), at every order.
func TestCorrectorPropagation(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.5}
	take := long.Sample(3)
	for p := range 5 {
		for _, alpha := range []float64{1, 0.5} {
			if !take() {
				continue
			}
			const H, n = 1e-4, 500
			e := exact.Corrected{Haid: o, H: H, P: p, Correct: true, Alpha: alpha}
			got := complete(t, append(haidArgs(t, path, o, p, H), "--algorithm", "model-based-corrector", "--stop-time", fmt.Sprint(n*H),
				"--param", "model.jacobian=directional", "--param", fmt.Sprintf("model.alpha=%g", alpha))...)
			_, y := e.Solve(n)
			if d := got.apart(t, y); !(d <= 1e-9) {
				t.Errorf("p = %d, alpha = %g: off by %.2g", p, alpha, d)
			}
			if got.manifest.Jacobians != 2 {
				t.Errorf("p = %d: %d Jacobians of two linear FMUs", p, got.manifest.Jacobians)
			}
		}
	}
}

// On linear subsystems the strategy is stable where the eigenvalues of the propagation matrix show it, and its error
// is that of the matrices, at random stiffness, damping, step size and order, with and without correction.
func TestCorrectorPoints(t *testing.T) {
	t.Parallel()
	points := 25
	if long.On {
		points = 200
	}
	r := rand.New(rand.NewPCG(4, 6))
	logarithmic := func(from, to float64) float64 { return math.Exp(math.Log(from) + r.Float64()*math.Log(to/from)) }
	draw := func(from float64, orders int, start [4]float64) exact.Corrected {
		o := exact.DefaultHaid()
		o.CK, o.DK = logarithmic(1, 1e10), logarithmic(1, 1e7)
		if start != [4]float64{} {
			o.Start = start
		}
		return exact.Corrected{Haid: o, H: haid.Even(logarithmic(from, 3e-3)), P: r.IntN(orders), Correct: r.IntN(2) == 1, Alpha: 1}
	}
	for n := 0; n < points; {
		e := draw(1e-6, 5, [4]float64{1e-3, 1, -2e-3, 0.3})
		radius := e.Radius()
		if math.IsNaN(radius) || math.Abs(radius-1) <= 1e-3 {
			continue
		}
		n++
		if got, err := haid.Grows(t.Context(), e, 10000); err != nil || got != (radius > 1) {
			t.Errorf("%+v: radius %.6f, grows: %t, %v", e, radius, got, err)
		}
	}
	for n := 0; n < points; {
		e := draw(1e-5, 3, [4]float64{})
		steps := int(0.1 / e.H)
		want := e.GlobalError(steps)
		if math.Abs(want-0.01) <= 1e-6 {
			continue
		}
		n++
		got, err := haid.GlobalError(t.Context(), e, steps, 0.01)
		if err != nil || (got <= 0.01) != (want <= 0.01) || want > 1e-4 && want <= 0.01 && math.Abs(got-want) > 1e-3*want {
			t.Errorf("%+v: error %g, by propagation matrices %g, %v", e, got, want, err)
		}
	}
}

// localError returns the local error (31) of the linear oscillator from row from on, where identification has found
// its models: the outputs of each step against those of the coupled system from the states at its start.
func localError(t testing.TB, o exact.Haid, p int, H float64, from int, args ...string) float64 {
	t.Helper()
	const n = 1000
	all := append(haidArgs(t, system(t, "corrector-oscillator"), o, p, H), haid.LocalArgs(len(args) > 0)...)
	got := complete(t, append(append(all, "--stop-time", fmt.Sprint(n*H)), args...)...)
	return haid.LocalError(got.columns, o, H, from)
}

// Identified models reach at least half of the gain of directional derivatives, in the logarithm of the local error,
// once they are found.
func TestCorrectorSources(t *testing.T) {
	t.Parallel()
	o := exact.DefaultHaid()
	const from = 600 // by this row they are found, or it was given up
	t.Log("local error     H    without  derivatives  least squares  subspaces")
	take := long.Sample(11)
	for p := range 5 {
		for _, H := range []float64{1e-5, 1e-4} {
			if !take() {
				continue
			}
			var e [4]float64
			e[0] = localError(t, o, p, H, from)
			for i, args := range [][]string{{"model.jacobian=directional"}, {"model.jacobian=identify"}, {"model.jacobian=identify",
				"--param", "model.identification=subspace"}} {
				e[1+i] = localError(t, o, p, H, from, append([]string{"--algorithm", "model-based-corrector", "--param"}, args...)...)
			}
			t.Logf("p = %d    %6.0e   %8.2g     %8.2g       %8.2g   %8.2g", p, H, e[0], e[1], e[2], e[3])
			for i, how := range []string{"least squares", "subspaces"} {
				least := 0.5
				if i == 1 && p >= 2 && H == 1e-5 {
					// In its window the responses are lost in rounding: it may find nothing.
					least = -0.02
				}
				if gain := math.Log(e[0]/e[2+i]) / math.Log(e[0]/e[1]); !(gain >= least) {
					t.Errorf("p = %d, H = %g: identification by %s reaches %.2f of the gain", p, H, how, gain)
				}
			}
		}
	}
}

// FMUs without any optional capability, one of them with direct feedthrough: inputs sampled in substeps reach order
// 2, and identified models reduce the error of the whole run.
func testCorrectorBlackbox(t *testing.T) {
	t.Parallel()
	o := exact.DefaultHaid()
	path := system(t, "corrector-oscillator-blackbox")
	off := func(p int, H float64, args ...string) float64 {
		n := int(math.Round(0.02 / H))
		got := complete(t, append(append(haidArgs(t, path, o, p, H), "--stop-time", "0.02"), args...)...)
		want := make([][3]float64, n+1)
		for k := range want {
			copy(want[k][:], o.Outputs(float64(k)*H))
		}
		return exact.NRMSE(haid.Rows(got.columns), want)
	}
	for p := range 3 {
		large, small := off(p, 2e-5), off(p, 1e-5)
		order := math.Log2(large / small)
		corrected := off(p, 2e-5, "--algorithm", "model-based-corrector")
		t.Logf("p = %d: error %.2g, order %.2f, corrected %.2g", p, large, order, corrected)
		// At order 2 the error of the sampling is still below that of the extrapolation.
		if want := []float64{1, 2, 3}[p]; math.Abs(order-want) > 0.1 {
			t.Errorf("p = %d: order %.2f, want %g", p, order, want)
		}
		if !(corrected < 0.5*large) {
			t.Errorf("p = %d: error %.2g corrected, %.2g not", p, corrected, large)
		}
	}
}

// With variable steps the models of exact derivatives are those of each step: kept models give what models made anew
// in every step give.
func testCorrectorVariableSteps(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	var ends [2]float64
	for i, refresh := range []string{"0.01", "0"} {
		o := complete(t, path, "--algorithm", "model-based-corrector", "--param", "control=predictor-corrector",
			"--param", "pc.tolerance=0.1",
			"--param", "control.h-min=1e-5", "--stop-time", "0.02", "--param", "model.refresh="+refresh)
		v := o.column(t, "one.s")
		if ends[i] = v[len(v)-1]; len(v) < 50 {
			t.Fatalf("%d points", len(v))
		}
	}
	if math.Abs(ends[0]-ends[1]) > 1e-12*math.Abs(ends[1]) {
		t.Errorf("%v with models kept, %v with models made anew", ends[0], ends[1])
	}
}

// The energy at a bond includes what the correction of states adds to the inputs: with it the residual is half as
// large as without.
func TestCorrectorEnergy(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	var energy [2]float64
	for i, alpha := range []string{"0", "1"} {
		o := complete(t, path, "--algorithm", "model-based-corrector", "--param", "model.alpha="+alpha,
			"--bond", "k=two.F:one.v", "--stop-time", "0.3")
		energy[i] = o.manifest.Bonds["k"].ResidualEnergy
	}
	if !(math.Abs(energy[1]) < 0.55*math.Abs(energy[0])) {
		t.Errorf("residual energies %v", energy)
	}
}

// Correct derivatives of a nonlinear subsystem are not rejected, and identification works far from t = 0 and with
// Gauss–Seidel.
func TestCorrectorTrusts(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	for _, c := range []struct {
		args []string
		most int // macro steps without correction
	}{
		{[]string{"--set", "two.n_d=2", "--step-size", "3e-4", "--stop-time", "0.3"}, 0},
		{[]string{"--set", "two.n_d=1.5", "--set", "one.v0=0.3", "--set", "two.v0=0.3", "--step-size", "1e-4", "--stop-time", "0.3"}, 0},
		{[]string{"--param", "model.jacobian=identify", "--start-time", "1e6", "--stop-time", "1000000.05"}, 100},
		{[]string{"--param", "model.jacobian=identify", "--param", "scheme=gauss-seidel", "--stop-time", "0.1"}, 200},
		{[]string{"--param", "model.jacobian=identify", "--param", "scheme=gauss-seidel", "--param", "order=1", "--stop-time", "0.1"}, 200},
	} {
		o := complete(t, append([]string{path, "--algorithm", "model-based-corrector"}, c.args...)...)
		for name, m := range o.manifest.Models {
			if m.Uncorrected > c.most {
				t.Errorf("%v: %s: %d macro steps without correction: %s", c.args, name, m.Uncorrected, m.Reason)
			}
		}
		if len(o.manifest.Models) != 2 {
			t.Errorf("%v: models %v", c.args, o.manifest.Models)
		}
	}
}

// With nonlinear damping, models from derivatives at least halve the error at every n_d (haid 5,
// Fig. 9), and identified models do not increase it. Where the correction
// stabilises is in TestCorrectorPoint.
func testCorrectorNonlinear(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	t.Log("global error  n_d  p   H     without  derivatives  least squares  subspaces")
	for _, nd := range []float64{1, 1.25, 1.5, 1.75, 2} {
		o := haid.Nonlinear(nd)
		for p := range 3 {
			for _, H := range []float64{1e-3, 1e-4} {
				if H < 1e-3 && nd != 1.25 && nd != 2 {
					continue // many steps
				}
				const stop = 0.3
				want, err := haid.Reference(o, H, int(math.Round(stop/H)))
				if err != nil {
					t.Fatal(err)
				}
				var e [4]float64
				for i, params := range [][]string{
					nil, {"model.jacobian=directional"},
					{"model.jacobian=identify"}, {"model.jacobian=identify", "model.identification=subspace"},
				} {
					args := append(haidArgs(t, path, o, p, H), "--stop-time", fmt.Sprint(stop))
					if params != nil {
						args = append(args, "--algorithm", "model-based-corrector")
					}
					for _, param := range params {
						args = append(args, "--param", param)
					}
					got := run(t, args...)
					if e[i] = math.Inf(1); got.code == 0 {
						e[i] = exact.NRMSE(haid.Rows(got.columns), want)
					}
				}
				t.Logf("         %8.2f  %d %6.0e %8.2g     %8.2g       %8.2g   %8.2g", nd, p, H, e[0], e[1], e[2], e[3])
				if !(e[1] < 0.5*e[0]) {
					t.Errorf("n_d = %g, p = %d, H = %g: error %.3g with derivatives, %.3g without correction", nd, p, H, e[1], e[0])
				}
				if e[0] < 1 && max(e[2], e[3]) > 1.1*e[0] { // above 1 a run is unstable
					t.Errorf("n_d = %g, p = %d, H = %g: errors %.3g with identification, %.3g without correction", nd, p, H, e[2:], e[0])
				}
			}
		}
	}
}

// Where Jacobians are taken decides how far the correction stabilises the nonlinear oscillator (haid 5): with holds
// of order 2, from the start of the steps up to n_d = 1.75, with the inputs of the new step up to 1.85, from their end
// up to 1.5 only. The most accurate are those of the start with holds of order 0, and those of the end with order 1.
// The reference values are those of an independent
// implementation of the equations of the paper, with the classical Runge-Kutta method: the global error, and s1, v1
// and F at 0.15 s.
func testCorrectorPoint(t *testing.T) {
	t.Parallel()
	const H, n = 1e-3, 150
	path := system(t, "corrector-oscillator")
	for _, c := range []struct {
		p         int
		nd        float64
		point     string
		reference float64    // error of the reference
		end       [3]float64 // models made anew in every step; 0 = not compared
	}{
		{0, 1.5, "start", 0.07952, [3]float64{}}, {0, 1.5, "end", 0.08375, [3]float64{}},
		{1, 1.5, "start", 0.07859, [3]float64{}}, {1, 1.5, "end", 0.05131, [3]float64{}},
		{2, 1.5, "start", 0.1208, [3]float64{}}, {2, 1.5, "end", 0.1224, [3]float64{}},
		{0, 1.75, "start", 0.1468, [3]float64{0.00064336845, 0.020130061, -118.05658}},
		{0, 1.75, "end", 0.1477, [3]float64{0.00069952913, -0.010648869, -134.31128}},
		{1, 1.75, "start", 0.1506, [3]float64{0.00035137401, 0.052100427, -69.106692}},
		{1, 1.75, "end", 0.09885, [3]float64{0.000548565, 0.068310748, -111.49618}},
		{2, 1.75, "start", 0.5038, [3]float64{-0.00013926012, -0.0026400411, 49.502336}},
		{2, 1.75, "end", 6.531e14, [3]float64{1.6004582e12, 2.7420473e15, -3.8447456e19}},
	} {
		o := haid.Nonlinear(c.nd)
		want, err := haid.Reference(o, H, n)
		if err != nil {
			t.Fatal(err)
		}
		args := append(haidArgs(t, path, o, c.p, H), "--stop-time", fmt.Sprint(n*H), "--algorithm", "model-based-corrector")
		with := func(more ...string) *outcome { return complete(t, append(slices.Clip(args), more...)...) }
		kept := with("--param", "model.point="+c.point)
		// Which steps a model is kept for matters little, but for the first, after which the velocities part.
		e := exact.NRMSE(haid.Rows(kept.columns), want)
		if (c.reference < 1) != (e < 1) || e < 1 && math.Abs(e-c.reference) > 0.35*c.reference {
			t.Errorf("p = %d, n_d = %g, %s: error %.3g, of the reference %.3g", c.p, c.nd, c.point, e, c.reference)
		}
		if c.end[0] == 0 {
			continue
		}
		anew := with("--param", "model.point="+c.point, "--param", "model.refresh=0")
		for k, name := range haid.Outputs {
			y := anew.column(t, name)
			if off := math.Abs(y[n] - c.end[k]); !(off <= 1e-4*most(y)) {
				t.Errorf("p = %d, n_d = %g, %s: %s ends at %.8g, the reference at %.8g", c.p, c.nd, c.point, name, y[n], c.end[k])
			}
		}
		if auto := []string{"start", "end", "start-new"}[c.p]; c.point == auto && worst(t, with(), kept, "one.s") != 0 {
			t.Errorf("%s is not the default at order %d", auto, c.p)
		}
	}
	for _, c := range []struct {
		nd     float64
		point  string
		stable bool
	}{{1.5, "end", true}, {1.6, "end", false}, {1.75, "start", true}, {1.8, "start", false}, {1.85, "start-new", true}, {1.9, "start-new", false}} {
		o := haid.Nonlinear(c.nd)
		got := complete(t, append(haidArgs(t, path, o, 2, H), "--stop-time", "0.3", "--algorithm", "model-based-corrector",
			"--param", "model.point="+c.point, "--param", "model.refresh=0")...)
		if v := got.column(t, "one.v"); (math.Abs(last(v)) < 1) != c.stable {
			t.Errorf("n_d = %g, %s: one.v ends at %g", c.nd, c.point, last(v))
		}
	}
}

// With the inputs of the old and of the new step, the run is that of the equations of the paper.
func TestCorrectorStart(t *testing.T) {
	t.Parallel()
	const H, n = 1e-3, 150
	path := system(t, "corrector-oscillator")
	o := haid.Nonlinear(1.75)
	take := long.Sample(3)
	for p := range 3 {
		for _, point := range []string{"start-new", "start"} {
			if !take() {
				continue
			}
			got := complete(t, append(haidArgs(t, path, o, p, H), "--stop-time", fmt.Sprint(n*H), "--algorithm", "model-based-corrector",
				"--param", "model.refresh=0", "--param", "model.point="+point)...)
			if off := got.apart(t, haid.Corrected(o, p, H, n, point == "start-new")); !(off <= 1e-5) {
				t.Errorf("p = %d, %s: off by %.2g", p, point, off)
			}
		}
	}
}

// A run warns of model.point where a model does not come from directional derivatives.
func TestCorrectorPointInVain(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	const many = "its model is identified from many macro steps"
	for _, c := range []struct{ jacobian, point, why string }{
		{"identify", "start", many}, {"identify", "end", many}, {"identify", "auto", ""}, {"directional", "end", ""},
	} {
		w := strings.Join(complete(t, path, "--algorithm", "model-based-corrector", "--stop-time", "2e-3",
			"--param", "model.jacobian="+c.jacobian, "--param", "model.point="+c.point).manifest.Warnings, "\n")
		for _, name := range []string{"one", "two"} {
			if want := fmt.Sprintf("%s (corrector_%s.fmu): model.point=%s has no effect: %s", name, name, c.point,
				c.why); strings.Contains(w, want) != (c.why != "") || c.why == "" &&
				strings.Contains(w, "model.point") {
				t.Errorf("%+v: warnings %q", c, w)
			}
		}
	}
}

// A slope that is infinite at the start, like that of the square root at 0, is no model of the first step, which
// stays uncorrected with a warning: exact are 67 N after it, the model gives 7025 N.
func TestCorrectorGroundless(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"start", "end"} {
		r := complete(t, system(t, "sqrt-oscillator"), "--algorithm", "model-based-corrector", "--stop-time", "0.01",
			"--param", "model.point="+point)
		f := r.column(t, "left.f")
		if e := math.Abs(f[1]/67.1 - 1); e > 0.35 {
			t.Errorf("%s: %g N after the first step", point, f[1])
		}
		w := r.warnings()
		if told := strings.Contains(w, "1 macro steps went uncorrected, first at t = 0.001 s") && strings.Contains(w,
			"does not hold over the step: it would move left.f from 47.43 to 702"); told != (point == "start") {
			t.Errorf("%s: warnings %q", point, w)
		}
	}
}
