package test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/haid"
	"github.com/macrostep/macrostep/test/long"
)

// haidArgs gives the command line for haid's oscillator with an exact history of
// p points.
func haidArgs(t testing.TB, system string, o exact.Haid, p int, H float64) []string {
	t.Helper()
	args, err := haid.Args(system, o, p, H, filepath.Join(t.TempDir(), "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// apart gives the largest difference from the rows of y, relative to the largest
// value of each output.
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

// The corrected co-simulation is that of the propagation matrix (42), at every
// order, with Jacobians from directional derivatives and from repeated steps.
func TestCorrectorPropagation(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.5}
	take := long.Sample(4)
	for p := range 5 {
		for _, c := range []struct {
			jacobian  string
			alpha     float64
			tolerance float64
		}{{"directional", 1, 1e-9}, {"directional", 0.5, 1e-9}, {"rollback", 1, 1e-7}} {
			if !take() {
				continue
			}
			const H, n = 1e-4, 500
			e := exact.Corrected{Haid: o, H: H, P: p, Correct: true, Alpha: c.alpha}
			got := complete(t, append(haidArgs(t, path, o, p, H), "--algorithm", "model-based-corrector", "--stop-time", fmt.Sprint(n*H),
				"--param", "model.jacobian="+c.jacobian, "--param", fmt.Sprintf("model.alpha=%g", c.alpha))...)
			_, y := e.Solve(n)
			d := got.apart(t, y)
			t.Logf("p = %d, %s, alpha = %g: %.2g, %d Jacobians", p, c.jacobian, c.alpha, d, got.manifest.Jacobians)
			if !(d <= c.tolerance) {
				t.Errorf("p = %d, %s, alpha = %g: off by %.2g", p, c.jacobian, c.alpha, d)
			}
			if got.manifest.Jacobians != 2 {
				t.Errorf("p = %d, %s: %d Jacobians of two linear FMUs", p, c.jacobian, got.manifest.Jacobians)
			}
		}
	}
}

// The strategy on linear subsystems is stable where the eigenvalues say so:
// points over stiffness, damping, step size and order, with and without correction.
func testCorrectorStability(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 6))
	logarithmic := func(from, to float64) float64 { return math.Exp(math.Log(from) + r.Float64()*math.Log(to/from)) }
	stable, points := 0, 50
	if long.On {
		points = 200
	}
	for n := 0; n < points; {
		o := exact.DefaultHaid()
		o.CK, o.DK, o.Start = logarithmic(1, 1e10), logarithmic(1, 1e7), [4]float64{1e-3, 1, -2e-3, 0.3}
		e := exact.Corrected{Haid: o, H: haid.Even(logarithmic(1e-6, 3e-3)), P: r.IntN(5), Correct: r.IntN(2) == 1, Alpha: 1}
		radius := e.Radius()
		if math.IsNaN(radius) || math.Abs(radius-1) <= 1e-3 {
			continue
		}
		n++
		if radius < 1 {
			stable++
		}
		got, err := haid.Grows(t.Context(), e, 10000)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if got != (radius > 1) {
			t.Errorf("%+v: radius %.6f, grows: %t", e, radius, got)
		}
	}
	t.Logf("%d of %d points are stable", stable, points)
}

// The strategy on linear subsystems is accurate to 1 % where the propagation matrices
// say so, and with their error, away from the limit.
func TestCorrectorAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	logarithmic := func(from, to float64) float64 { return math.Exp(math.Log(from) + r.Float64()*math.Log(to/from)) }
	accurate, points := 0, 50
	if long.On {
		points = 200
	}
	for n := 0; n < points; {
		o := exact.DefaultHaid()
		o.CK, o.DK = logarithmic(1, 1e10), logarithmic(1, 1e7)
		e := exact.Corrected{Haid: o, H: haid.Even(logarithmic(1e-5, 3e-3)), P: r.IntN(3), Correct: r.IntN(2) == 1, Alpha: 1}
		steps := int(0.1 / e.H)
		want := e.GlobalError(steps)
		if math.Abs(want-0.01) <= 1e-6 {
			continue
		}
		n++
		got, err := haid.GlobalError(t.Context(), e, steps, 0.01)
		switch {
		case err != nil:
			t.Fatalf("%+v: %v", e, err)
		case (got <= 0.01) != (want <= 0.01), want > 1e-4 && want <= 0.01 && math.Abs(got-want) > 1e-3*want:
			t.Errorf("%+v: error %g, by propagation matrices %g", e, got, want)
		case got <= 0.01:
			accurate++
		}
	}
	t.Logf("%d of %d points are accurate", accurate, points)
}

// localError runs the linear oscillator and gives its local errors (31) from the
// row on, at which identification has found its models: the outputs of each step
// against those of the coupled system from the states at its start.
func localError(t testing.TB, o exact.Haid, p int, H float64, from int, args ...string) float64 {
	t.Helper()
	const n = 1000
	all := append(haidArgs(t, system(t, "corrector-oscillator"), o, p, H), haid.LocalArgs(len(args) > 0)...)
	got := complete(t, append(append(all, "--stop-time", fmt.Sprint(n*H)), args...)...)
	return haid.LocalError(got.columns, o, H, from)
}

// Without directional derivatives, by repeated steps, the correction is as good;
// identified models reach at least half of the gain, in the logarithm of the local
// error, once they are found.
func TestCorrectorSources(t *testing.T) {
	t.Parallel()
	o := exact.DefaultHaid()
	const from = 600 // by this row they are found, or it was given up
	t.Log("local error     H    without  derivatives  repeated  least squares  subspaces")
	take := long.Sample(11)
	for p := range 5 {
		for _, H := range []float64{1e-5, 2e-5, 4e-5, 1e-4} {
			if !take() {
				continue
			}
			var e [5]float64
			e[0] = localError(t, o, p, H, from)
			for i, args := range [][]string{{"model.jacobian=directional"}, {"model.jacobian=rollback"}, {"model.jacobian=identify"}, {"model.jacobian=identify", "--param", "model.identification=subspace"}} {
				e[1+i] = localError(t, o, p, H, from, append([]string{"--algorithm", "model-based-corrector", "--param"}, args...)...)
			}
			t.Logf("p = %d    %6.0e   %8.2g     %8.2g  %8.2g       %8.2g   %8.2g", p, H, e[0], e[1], e[2], e[3], e[4])
			if math.Abs(e[2]-e[1]) > 1e-3*e[1] {
				t.Errorf("p = %d, H = %g: local error %g by repeated steps, %g by derivatives", p, H, e[2], e[1])
			}
			for i, how := range []string{"least squares", "subspaces"} {
				least := 0.5
				if i == 1 && p >= 2 && H == 1e-5 {
					// In its window the responses are lost in rounding: it may find nothing.
					least = -0.02
				}
				if gain := math.Log(e[0]/e[3+i]) / math.Log(e[0]/e[1]); !(gain >= least) {
					t.Errorf("p = %d, H = %g: identification by %s reaches %.2f of the gain", p, H, how, gain)
				}
			}
		}
	}
}

// FMUs without any optional capability, one of them with direct feedthrough: inputs sampled
// in substeps reach order 2, and identified models reduce the error of the whole run.
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

// With variable steps the models of exact derivatives are those of each step: kept ones give what
// those made anew in every step do.
func testCorrectorVariableSteps(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	var ends [2]float64
	for i, refresh := range []string{"0.01", "0"} {
		o := complete(t, path, "--algorithm", "model-based-corrector", "--param", "control=predictor-corrector", "--param", "pc.tolerance=0.1",
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

// What the correction of states adds to the inputs is in the energy at a bond: with it half as much is
// missing there as without (the formula of the monitor on the inputs that were set).
func TestCorrectorEnergy(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	var energy [2]float64
	for i, alpha := range []string{"0", "1"} {
		o := complete(t, path, "--algorithm", "model-based-corrector", "--param", "model.alpha="+alpha, "--bond", "k=two.F:one.v", "--monitor-energy", "--stop-time", "0.3")
		energy[i] = o.manifest.Bonds["k"].ResidualEnergy
	}
	if !(math.Abs(energy[1]) < 0.55*math.Abs(energy[0])) {
		t.Errorf("residual energies %v", energy)
	}
}

// Honest derivatives of a subsystem that is not linear are not taken for wrong, and identification
// works far from t = 0 and where subsystems are stepped in turn.
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

// With nonlinear damping the correction stabilises what is unstable without it
// (haid 5, Fig. 9), and identification never does worse than no correction.
func testCorrectorNonlinear(t *testing.T) {
	t.Parallel()
	path := system(t, "corrector-oscillator")
	t.Log("global error  n_d  p   H     without  derivatives  repeated  least squares  subspaces")
	stabilised := 0
	for _, nd := range []float64{1, 1.25, 1.5, 1.75, 2} {
		o := haid.Nonlinear(nd)
		for p := range 3 {
			for _, H := range []float64{1e-3, 1e-4} {
				const stop = 0.3
				want, err := haid.Reference(o, H, int(math.Round(stop/H)))
				if err != nil {
					t.Fatal(err)
				}
				var e [5]float64
				for i, args := range [][]string{nil, {"model.jacobian=directional"}, {"model.jacobian=rollback"}, {"model.jacobian=identify"}, {"model.jacobian=identify", "model.identification=subspace"}} {
					all := append(haidArgs(t, path, o, p, H), "--stop-time", fmt.Sprint(stop))
					if args != nil {
						all = append(all, "--algorithm", "model-based-corrector")
					}
					for _, a := range args {
						all = append(all, "--param", a)
					}
					got := run(t, all...)
					if e[i] = math.Inf(1); got.code == 0 {
						e[i] = exact.NRMSE(haid.Rows(got.columns), want)
					}
				}
				t.Logf("         %8.2f  %d %6.0e %8.2g     %8.2g  %8.2g       %8.2g   %8.2g", nd, p, H, e[0], e[1], e[2], e[3], e[4])
				if e[0] > 1 && e[1] < 1 {
					stabilised++
				}
				// Beyond 1 both are nothing but unstable.
				for i, how := range []string{"least squares", "subspaces"} {
					if e[3+i] > 1.1*e[0] && e[0] < 1 {
						t.Errorf("n_d = %g, p = %d, H = %g: error %.3g with identification by %s, %.3g without correction", nd, p, H, e[3+i], how, e[0])
					}
				}
			}
		}
	}
	if stabilised == 0 {
		t.Error("nothing that is unstable was stabilised")
	}
}
