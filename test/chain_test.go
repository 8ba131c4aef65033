package test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

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

// The chain of meyer 6.2 in a small size: order control against fixed orders,
// explicit against implicit over the damping, and the Jacobian by differences
// against low-order sensitivities.
func testMeyerChain(t *testing.T) {
	args := func(preset string, more ...string) []string {
		return append([]string{"--algorithm", preset, "--stop-time", "0.01", "--step-size", "1e-5", "--record", "none", "--param", "control.safety=6",
			"--param", "control.rtol=1e-3", "--param", "control.atol=1e-1", "--param", "control.h0=1e-7"}, more...)
	}
	t.Run("order", func(t *testing.T) {
		t.Parallel()
		path := chainSystem(t, 20, 4, 1e4)
		for _, preset := range []string{"ex-slocal", "im-slocal"} {
			best, steps := math.MaxInt, 0
			for _, k := range []string{"1", "2", "3", "4", "auto"} {
				o := complete(t, append([]string{path}, args(preset, "--param", "order="+k)...)...)
				steps = o.manifest.Steps.Accepted
				t.Logf("%s order %s: %d steps, orders %v", preset, k, steps, o.manifest.Orders)
				if k != "auto" {
					best = min(best, steps)
				}
			}
			if float64(steps) > 1.1*float64(best) {
				t.Errorf("%s: order control takes %d steps, the best fixed order %d", preset, steps, best)
			}
		}
	})
	t.Run("damping", func(t *testing.T) {
		t.Parallel()
		dampings := []float64{1e3, 1e4, 1e5, 1e6}
		var ratios []float64 // of the steps of FMUs, explicit over implicit
		for _, d := range dampings {
			path := chainSystem(t, 20, 4, d)
			cost := func(preset string) (macro, work int) {
				a := args(preset)
				a[3] = "0.003" // in which the impulses rise and fall
				m := complete(t, append([]string{path}, a...)...).manifest
				for _, n := range m.FMUSteps {
					work += n
				}
				return m.Steps.Accepted, work
			}
			macroExplicit, explicit := cost("ex-slocal")
			macroImplicit, implicit := cost("im-slocal")
			ratios = append(ratios, float64(explicit)/float64(implicit))
			t.Logf("d = %g N s/m: %d explicit and %d implicit macro steps, %d and %d steps of FMUs", d, macroExplicit, macroImplicit, explicit, implicit)
		}
		// Explicit coupling is cheaper at low damping, implicit coupling at high.
		if ratios[0] >= 1 || ratios[len(ratios)-1] < 5 {
			t.Errorf("explicit coupling costs %v times implicit coupling at the dampings %v", ratios, dampings)
		}
	})
	t.Run("sensitivities", func(t *testing.T) {
		t.Parallel()
		path := chainSystem(t, 20, 4, 1e4)
		work, final := map[string]int{}, map[string]float64{}
		for _, kind := range []string{"newton-fd", "newton-los"} {
			a := args("im-slocal", "--param", "solver.kind="+kind)
			a[7] = "s2.x_left" // instead of none
			o := complete(t, append([]string{path}, a...)...)
			for _, n := range o.manifest.FMUSteps {
				work[kind] += n
			}
			x := o.column(t, "s2.x_left")
			final[kind] = x[len(x)-1]
			t.Logf("%s: %d macro steps, %d FMU steps, %d correctors, %d Jacobians, s2.x_left = %.9g", kind, o.manifest.Steps.Accepted, work[kind],
				o.manifest.Iterations, o.manifest.Jacobians, final[kind])
		}
		if work["newton-los"] >= work["newton-fd"] {
			t.Errorf("FMU steps: %v", work)
		}
		if d := math.Abs(final["newton-los"] - final["newton-fd"]); d > 1e-6 {
			t.Errorf("the results differ by %g m", d)
		}
	})
}
