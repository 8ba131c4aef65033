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
