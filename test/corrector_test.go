package test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// haidArgs gives the command line for haid's oscillator with an exact history of
// p points.
func haidArgs(t testing.TB, system string, o exact.Haid, p int, H float64) []string {
	t.Helper()
	args := []string{system, "--step-size", fmt.Sprint(H), "--param", fmt.Sprintf("order=%d", p)}
	for _, s := range []struct {
		name string
		v    float64
	}{
		{"one.s0", o.Start[0]}, {"one.v0", o.Start[1]}, {"two.s0", o.Start[2]}, {"two.v0", o.Start[3]},
		{"two.c_k", o.CK}, {"two.d_k", o.DK}, {"two.n_d", o.ND},
	} {
		args = append(args, "--set", fmt.Sprintf("%s=%v", s.name, s.v))
	}
	if p > 0 && o.ND == 1 {
		var b strings.Builder
		b.WriteString("time,one.s,one.v,two.F\n")
		for j := p; j > 0; j-- {
			at := -float64(j) * H
			y := o.Outputs(at)
			fmt.Fprintf(&b, "%v,%v,%v,%v\n", at, y[0], y[1], y[2])
		}
		path := filepath.Join(t.TempDir(), "history.csv")
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--history", path)
	}
	return args
}

var haidOutputs = []string{"one.s", "one.v", "two.F"}

// apart gives the largest difference from the rows of y, relative to the largest
// value of each output.
func (o *outcome) apart(t testing.TB, y [][3]float64) float64 {
	t.Helper()
	worst := 0.0
	for k, name := range haidOutputs {
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
	path := system(t, "corrector-oscillator")
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.5}
	for p := range 5 {
		for _, c := range []struct {
			jacobian  string
			alpha     float64
			tolerance float64
		}{{"directional", 1, 1e-9}, {"directional", 0.5, 1e-9}, {"rollback", 1, 1e-7}} {
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

// The strategy on linear subsystems is stable where the eigenvalues say so: 200
// points over stiffness, damping, step size and order, with and without correction.
func TestCorrectorStability(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	logarithmic := func(from, to float64) float64 { return math.Exp(math.Log(from) + r.Float64()*math.Log(to/from)) }
	stable := 0
	for n := 0; n < 200; {
		o := exact.DefaultHaid()
		o.CK, o.DK = logarithmic(1, 1e10), logarithmic(1, 1e7)
		e := exact.Corrected{Haid: o, H: logarithmic(1e-6, 3e-3), P: r.IntN(5), Correct: r.IntN(2) == 1, Alpha: 1}
		radius := e.Radius()
		if math.IsNaN(radius) || math.Abs(radius-1) <= 1e-3 {
			continue
		}
		n++
		if radius < 1 {
			stable++
		}
		if got := grows(t, e); got != (radius > 1) {
			t.Errorf("%+v: radius %.6f, grows: %t", e, radius, got)
		}
	}
	t.Logf("%d of 200 points are stable", stable)
}

// grows runs the strategy over 10 000 steps, from unequal starts, and tells
// whether the outputs grow in the end.
func grows(t testing.TB, e exact.Corrected) bool {
	t.Helper()
	const n = 10000
	config := algorithms.Config{Order: e.P}
	if e.Correct {
		config.Correct, config.Model = algorithms.ModelCorrection, algorithms.Model{Alpha: e.Alpha, Refresh: 0.01}
	}
	alg, err := algorithms.NewCoupling(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &windows{from: [2]float64{n / 2 * e.H, 3 * n / 4 * e.H}}
	run, err := master.NewRun(haidSystem(t, e.Haid), alg, master.Options{Stop: n * e.H, Step: e.H, Recorders: []master.Recorder{w}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := run.Run(t.Context()); err != nil {
		return res.Status == master.Failed // beyond all numbers
	}
	return w.largest[1] > w.largest[0]
}

// windows keeps the largest output of each of two parts of a run.
type windows struct {
	from    [2]float64
	largest [2]float64
}

func (w *windows) Begin(*master.System, []master.Port) error { return nil }
func (w *windows) Flush() error                              { return nil }
func (w *windows) End(master.Result) error                   { return nil }
func (w *windows) Record(p *master.Point) error {
	at := 0
	switch {
	case p.T >= w.from[1]:
		at = 1
	case p.T < w.from[0]:
		return nil
	}
	for _, y := range p.Y {
		w.largest[at] = max(w.largest[at], math.Abs(y))
	}
	return nil
}

// haidSystem is haid's oscillator of exact subsystems in Go.
func haidSystem(t testing.TB, o exact.Haid) *master.System {
	t.Helper()
	one := mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{1e-3, 1})
	two := mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, []float64{-2e-3, 0.3})
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{one, two}, []master.Connection{
		{From: at("two", "y1"), To: at("one", "u1")}, {From: at("one", "y1"), To: at("two", "u1")}, {From: at("one", "y2"), To: at("two", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// errorsOf gives the norm (33) of the differences of the outputs from what is
// wanted, from a row on.
func errorsOf(got, want [][3]float64, from int) float64 {
	total := 0.0
	n := float64(len(want) - from)
	for k := range 3 {
		mean, e, s := 0.0, 0.0, 0.0
		for _, v := range want[from:] {
			mean += v[k] / n
		}
		for i, v := range want[from:] {
			e += (got[from+i][k] - v[k]) * (got[from+i][k] - v[k])
			s += (v[k] - mean) * (v[k] - mean)
		}
		total += e / s / 3
	}
	return math.Sqrt(total)
}

// rowsOf gives the values of three columns.
func (o *outcome) rowsOf(t testing.TB, names [3]string) [][3]float64 {
	t.Helper()
	out := make([][3]float64, o.rows)
	for k, name := range names {
		for n, v := range o.column(t, name) {
			out[n][k] = v
		}
	}
	return out
}

// localError runs the linear oscillator and gives its local errors (31) from the
// row on, at which identification has found its models: the outputs of each step
// against those of the coupled system from the states at its start.
func localError(t testing.TB, o exact.Haid, p int, H float64, from int, args ...string) float64 {
	t.Helper()
	const n = 1000
	one := [3]string{"one.s", "one.v", "two.F"}
	all := append(haidArgs(t, system(t, "corrector-oscillator"), o, p, H), "--record", "one.*", "--record", "two.*", "--stop-time", fmt.Sprint(n*H))
	if len(args) > 0 {
		one = [3]string{"raw.one.s", "raw.one.v", "two.F"}
		all = append(all, "--record", "raw.*", "--param", "model.raw=true")
	}
	got := complete(t, append(all, args...)...)
	x, second := got.rowsOf(t, one), got.rowsOf(t, [3]string{"two.s", "two.v", "two.F"})
	y := got.rowsOf(t, [3]string(haidOutputs))
	want := [][3]float64{y[0]}
	for i := range n {
		from := o
		from.Start = [4]float64{x[i][0], x[i][1], second[i][0], second[i][1]}
		want = append(want, [3]float64(from.Outputs(H)))
	}
	return errorsOf(y, want, from)
}

// Without directional derivatives, by repeated steps, the correction is as good;
// identified models reach at least half of the gain, in the logarithm of the local
// error, once they are found.
func TestCorrectorSources(t *testing.T) {
	o := exact.DefaultHaid()
	t.Log("local error     H    without  derivatives  repeated  least squares  subspaces")
	for p := range 3 {
		for _, H := range []float64{1e-5, 2e-5, 4e-5} {
			var e [5]float64
			e[0] = localError(t, o, p, H, 300)
			for i, args := range [][]string{{"model.jacobian=directional"}, {"model.jacobian=rollback"}, {"model.jacobian=identify"}, {"model.jacobian=identify", "--param", "model.identification=subspace"}} {
				e[1+i] = localError(t, o, p, H, 300, append([]string{"--algorithm", "model-based-corrector", "--param"}, args...)...)
			}
			t.Logf("p = %d    %6.0e   %8.2g     %8.2g  %8.2g       %8.2g   %8.2g", p, H, e[0], e[1], e[2], e[3], e[4])
			if math.Abs(e[2]-e[1]) > 1e-3*e[1] {
				t.Errorf("p = %d, H = %g: local error %g by repeated steps, %g by derivatives", p, H, e[2], e[1])
			}
			for i, how := range []string{"least squares", "subspaces"} {
				if gain := math.Log(e[0]/e[3+i]) / math.Log(e[0]/e[1]); !(gain >= 0.5) {
					t.Errorf("p = %d, H = %g: identification by %s reaches %.2f of the gain", p, H, how, gain)
				}
			}
		}
	}
}

// With nonlinear damping the correction stabilises what is unstable without it
// (haid 5, Fig. 9), and identification never does worse than no correction.
func TestCorrectorNonlinear(t *testing.T) {
	path := system(t, "corrector-oscillator")
	t.Log("global error  n_d  p   H     without  derivatives  repeated  least squares  subspaces")
	stabilised := 0
	for _, nd := range []float64{1, 1.25, 1.5, 1.75, 2} {
		o := exact.DefaultHaid()
		o.Start, o.ND = [4]float64{0, 10, 0, 10}, nd
		for p := range 3 {
			for _, H := range []float64{1e-3, 1e-4} {
				const stop = 0.3
				var times []float64
				for i := range int(math.Round(stop/H)) + 1 {
					times = append(times, float64(i)*H)
				}
				states, err := o.Reference(times)
				if err != nil {
					t.Fatal(err)
				}
				var want [][3]float64
				for _, x := range states {
					want = append(want, [3]float64{x[0], x[1], o.Force(x)})
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
						e[i] = errorsOf(got.rowsOf(t, [3]string(haidOutputs)), want, 0)
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
