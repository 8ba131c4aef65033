package test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/long"
)

// nrmse returns the normalised root mean square error (36) of meyer over the four states of the contact oscillator,
// at one communication point of a run in each 0.1 ms: hundreds lie within the nanoseconds of an impact, where all
// depends on its instant.
func nrmse(t testing.TB, o *outcome) float64 {
	t.Helper()
	var times []float64
	var rows []int
	for i, now := range o.column(t, "time") {
		if len(times) == 0 || math.Floor(now*1e4) > math.Floor(times[len(times)-1]*1e4) {
			times, rows = append(times, now), append(rows, i)
		}
	}
	reference, err := exact.DefaultContactOscillator().Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([][]float64, 4), make([][]float64, 4)
	for c, name := range []string{"left.x", "left.v", "right.x", "right.v"} {
		column := o.column(t, name)
		for i, x := range reference {
			got[c], want[c] = append(got[c], column[rows[i]]), append(want[c], x[c])
		}
	}
	return relativeError(got, want)
}

// impacts are the times at which the mass hits the contact: its velocity turns over between two close points.
func impacts(t testing.TB) []float64 {
	t.Helper()
	const n = 20000
	times := make([]float64, n+1)
	for i := range times {
		times[i] = 0.2 * float64(i) / n
	}
	x, err := exact.DefaultContactOscillator().Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for i := 1; i <= n; i++ {
		if x[i-1][1]-x[i][1] > 20 { // m/s within 10 µs
			if len(out) == 0 || times[i]-out[len(out)-1] > 1e-3 {
				out = append(out, times[i])
			}
		}
	}
	return out
}

// Order control needs no more macro steps than the best fixed order, and clearly fewer than low ones; the errors stay
// within the bounds below; step size and order drop at the impacts (meyer 6.1, Figs. 11 to 14).
func testMeyerContactOscillator(t *testing.T) {
	take := long.Sample(5)
	at := impacts(t)
	if len(at) != 3 {
		t.Fatalf("%d impacts at %v, want 3", len(at), at)
	}
	path := system(t, "contact-oscillator")
	for _, c := range []struct {
		estimator string
		error     float64 // largest NRMSE
		order     float64 // highest that the order comes down to at every impact
	}{
		// The estimate of im-milne does not feel the contact inside of a step: how large the error is depends on where
		// it falls. It was 6e-5 to 5e-4 in nine runs. Explicit estimates are audited: 2e-5 to 5e-5.
		{"ex-local", 1e-4, 4}, {"ex-milne", 1e-4, 4}, {"im-milne", 1e-3, 3}, {"ex-slocal", 1e-4, 1}, {"im-slocal", 1e-4, 1},
	} {
		if !take() {
			continue
		}
		t.Run(c.estimator, func(t *testing.T) {
			t.Parallel()
			steps := map[string]int{}
			for _, k := range []string{"1", "2", "3", "4", "auto"} {
				trace := filepath.Join(t.TempDir(), "trace.csv")
				o := complete(t, path, "--algorithm", c.estimator, "--param", "order="+k, "--trace", trace)
				steps[k] = o.manifest.Steps.Accepted
				if k == "auto" {
					if e := nrmse(t, o); !(e <= c.error) {
						t.Errorf("the error is %g, more than %g", e, c.error)
					}
					drops(t, attempts(t, trace), at, c.order)
				}
			}
			best := min(steps["1"], steps["2"], steps["3"], steps["4"])
			if float64(steps["auto"]) > 1.08*float64(best) || 2*steps["auto"] > steps["1"] || 5*steps["auto"] > 4*steps["2"] {
				t.Errorf("order control takes %d steps; fixed orders %v", steps["auto"], steps)
			}
		})
	}
}

// drops holds the step size and the order at the impacts against the usual ones.
func drops(t testing.TB, table []map[string]float64, impacts []float64, highest float64) {
	var sizes []float64
	for _, a := range table {
		if a["accepted"] == 1 {
			sizes = append(sizes, a["H"])
		}
	}
	slices.Sort(sizes)
	usual := sizes[len(sizes)/2]
	for _, at := range impacts {
		least, order := math.Inf(1), math.Inf(1)
		for _, a := range table {
			if a["accepted"] == 1 && math.Abs(a["t"]-at) < 2e-3 {
				least, order = min(least, a["H"]), min(order, a["k"])
			}
		}
		if !(least < usual/20 && order <= highest) {
			t.Errorf("at the impact at %.4g s the step size is %.3g s at least and the order %g; usual is %.3g s", at, least, order, usual)
		}
	}
}

// chainSystem writes a chain without impulses and contacts but with its damping.
func chainSystem(t testing.TB, masses, subsystems int, damping float64) string {
	t.Helper()
	path, err := fmus.WriteChain(filepath.Join(t.TempDir()), fmus.Chain{Masses: masses, Subsystems: subsystems,
		Set: map[string]float64{"d": damping}})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fmuSteps returns the number of steps of all FMUs.
func (o *outcome) fmuSteps() (sum int) {
	for _, n := range o.manifest.FMUSteps {
		sum += n
	}
	return sum
}

// The chain of meyer 6.2 in a small size: order control needs hardly more steps than the best fixed order; explicit
// coupling is cheaper at low damping, implicit at high; low-order sensitivities are cheaper than differences and give
// the same results.
func testMeyerChain(t *testing.T) {
	chain := func(t *testing.T, damping float64, preset, stop, record string, params ...string) *outcome {
		args := []string{chainSystem(t, 20, 4, damping), "--algorithm", preset, "--stop-time", stop,
			"--step-size", "1e-5", "--record", record}
		for _, p := range append(params, "control.safety=6", "control.rtol=1e-3", "control.atol=1e-1", "control.h0=1e-7") {
			args = append(args, "--param", p)
		}
		return complete(t, args...)
	}
	for _, preset := range []string{"ex-slocal", "im-slocal"} {
		t.Run("order of "+preset, func(t *testing.T) {
			t.Parallel()
			steps := func(order string) int {
				return chain(t, 1e4, preset, "0.01", "none", "order="+order).manifest.Steps.Accepted
			}
			if best, auto := min(steps("1"), steps("2"), steps("3"), steps("4")), steps("auto"); float64(auto) > 1.1*float64(best) {
				t.Errorf("order control takes %d steps, the best fixed order %d", auto, best)
			}
		})
	}
	t.Run("damping", func(t *testing.T) {
		t.Parallel()
		ratio := func(damping float64) float64 { // explicit over implicit, while the impulses rise and fall
			steps := func(preset string) float64 { return float64(chain(t, damping, preset, "0.003", "none").fmuSteps()) }
			return steps("ex-slocal") / steps("im-slocal")
		}
		if low, high := ratio(1e3), ratio(1e6); low >= 1 || high < 5 {
			t.Errorf("explicit coupling costs %g times implicit coupling at low damping, %g times at high", low, high)
		}
	})
	t.Run("sensitivities", func(t *testing.T) {
		t.Parallel()
		fd := chain(t, 1e4, "im-slocal", "0.01", "s2.x_left", "solver.kind=newton-fd")
		los := chain(t, 1e4, "im-slocal", "0.01", "s2.x_left", "solver.kind=newton-los")
		if a, b := last(fd.column(t, "s2.x_left")), last(los.column(t, "s2.x_left")); los.fmuSteps() >= fd.fmuSteps() ||
			math.Abs(a-b) > 1e-6 {
			t.Errorf("%d and %d steps of FMUs, s2.x_left ends at %g and %g m", fd.fmuSteps(), los.fmuSteps(), a, b)
		}
	})
}

// relativeError is the normalised root mean square error (36) of meyer: got and want hold the points of each
// variable.
func relativeError(got, want [][]float64) float64 {
	total := 0.0
	for i, w := range want {
		mean, off, spread := 0.0, 0.0, 0.0
		for _, v := range w {
			mean += v / float64(len(w))
		}
		for j, v := range w {
			off += (v - got[i][j]) * (v - got[i][j])
			spread += (v - mean) * (v - mean)
		}
		total += off / spread
	}
	return math.Sqrt(total)
}

// meyer's Example 2 in small: the motion of the coupling masses against the independent integration of the whole
// chain, over the start of the first impulse and its end, explicitly at low and implicitly at high damping.
func testChainAgainstReference(t *testing.T) {
	const masses, pieces, stop = 16, 4, 3.5e-3
	paths := map[float64]string{}
	for _, d := range []float64{1e4, 5e5} {
		paths[d] = chainSystem(t, masses, pieces, d)
	}
	for _, c := range []struct {
		algorithm []string
		damping   float64
		bound     float64
	}{
		// The settings of the paper, and parts of its tolerances. Much smaller ones the first step of an implicit
		// run, of order 0, does not meet: at this damping the forces change within 50 ns.
		{[]string{"--algorithm", "ex-slocal"}, 1e4, 1e-3},
		{[]string{"--algorithm", "ex-slocal", "--param", "control.rtol=1e-5", "--param", "control.atol=1e-3"}, 1e4, 1e-5},
		{[]string{"--algorithm", "im-slocal", "--param", "solver.kind=newton-los"}, 5e5, 1e-3},
		{[]string{"--algorithm", "im-slocal", "--param", "solver.kind=newton-los", "--param", "control.rtol=1e-4",
			"--param", "control.atol=1e-2"}, 5e5, 1e-4},
	} {
		t.Run(fmt.Sprint(c.algorithm, c.damping), func(t *testing.T) {
			t.Parallel()
			o := complete(t, append([]string{paths[c.damping], "--stop-time", fmt.Sprint(stop), "--output-interval", "2e-5"},
				c.algorithm...)...)
			reference := exact.DefaultChain(masses)
			reference.Spring.D = c.damping
			e := chainError(t, o, reference, pieces, 0)
			t.Logf("%d steps and %d rejected, NRMSE %.2g", o.manifest.Steps.Accepted, o.manifest.Steps.Rejected, e)
			if !(e <= c.bound) {
				t.Errorf("the error is %g, not at most %g", e, c.bound)
			}
		})
	}
}

// chainError is the NRMSE of the motion of the coupling masses of a chain, without the start and the time before from.
func chainError(t testing.TB, o *outcome, reference exact.Chain, pieces int, from float64) float64 {
	t.Helper()
	times := o.column(t, "time")
	first := max(1, slices.IndexFunc(times, func(now float64) bool { return now >= from }))
	rows, err := reference.Solve(times[first:], 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	masses := reference.Masses
	var got, want [][]float64
	for i := range pieces {
		for _, v := range []struct {
			name string
			at   int
		}{
			{"x_left", masses / pieces * i}, {"x_right", masses/pieces*(i+1) - 1},
			{"v_left", masses + masses/pieces*i}, {"v_right", masses + masses/pieces*(i+1) - 1},
		} {
			column := o.column(t, fmt.Sprintf("s%d.%s", i+1, v.name))
			var exactly []float64
			for _, y := range rows {
				exactly = append(exactly, y[v.at])
			}
			got, want = append(got, column[first:]), append(want, exactly)
		}
	}
	return relativeError(got, want)
}
