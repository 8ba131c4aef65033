package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/long"
)

// Implicit coupling of chains with cubic springs, where iterates may diverge until the step is short enough: no run
// takes many more attempts than the macro step asks for, and all follow the independent integration of the whole
// chain.
func TestImplicitChains(t *testing.T) {
	take := long.Sample(36)
	const masses, pieces, stop = 20, 4, 0.004
	for _, seed := range []int{3, 1, 2, 4, 5, 6} {
		path, reference := "", exact.DefaultChain(masses)
		reference.Seed = seed
		for _, scheme := range []struct {
			algorithm string
			error     float64
		}{
			{"implicit --param order=2", 0.2}, {"implicit --param order=1", 0.05}, {"im-slocal", 5e-3}, {"im-milne", 5e-4},
		} {
			for _, H := range []float64{2e-6, 5e-6, 1e-6} {
				if !take() {
					continue
				}
				if path == "" {
					var err error
					set := map[string]float64{"seed": float64(seed)}
					if path, err = fmus.WriteChain(filepath.Join(t.TempDir()), fmus.Chain{Masses: masses, Subsystems: pieces, Set: set}); err != nil {
						t.Fatal(err)
					}
				}
				t.Run(fmt.Sprintf("seed %d, %s, %g s", seed, scheme.algorithm, H), func(t *testing.T) {
					t.Parallel()
					o := complete(t, append([]string{path, "--stop-time", fmt.Sprint(stop), "--step-size", fmt.Sprint(H),
						"--output-interval", "2e-5", "--algorithm"}, strings.Fields(scheme.algorithm)...)...)
					// The first forces change within 50 ns, and fixed steps make them oscillate for a while.
					e, s := chainError(t, o, reference, pieces, 5e-4), o.manifest.Steps
					t.Logf("%d steps and %d rejected, NRMSE %.2g", s.Accepted, s.Rejected, e)
					most := 2000
					if strings.HasPrefix(scheme.algorithm, "implicit") {
						most = int(1.05 * stop / H)
					}
					if s.Accepted > most || s.Rejected > 50 {
						t.Errorf("%d steps and %d rejected, more than %d and 50", s.Accepted, s.Rejected, most)
					}
					if !(e <= scheme.error) {
						t.Errorf("the error is %g, more than %g", e, scheme.error)
					}
				})
			}
		}
	}
}

// With steps of one size, the solvers of the interface equation give the same results. The steps of a run that rejects
// some end at other points.
func TestImplicitSolversAgree(t *testing.T) {
	take := long.Sample(16)
	for _, name := range []string{"corrector-oscillator", "quarter-car-b", "quarter-car-a", "contact-oscillator", "crane",
		"two-mass-dd", "two-mass-fd", "two-mass-ff"} {
		for _, kind := range []string{"fixed-point", "newton-los", "broyden", "iqn"} {
			if !take() {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				args := []string{system(t, name), "--algorithm", "implicit", "--output-interval", "0.01"}
				want, got := complete(t, args...), complete(t, append(args, "--param", "solver.kind="+kind)...)
				worst := 0.0
				for column, values := range want.columns {
					size, off := 0.0, 0.0
					for n, v := range values {
						size, off = max(size, math.Abs(v)), max(off, math.Abs(v-got.columns[column][n]))
					}
					if off > 0 {
						worst = max(worst, off/size)
					}
				}
				bound := 1e-9
				if got.manifest.Steps.Rejected > 0 {
					bound = 2e-4
				}
				if t.Logf("%d steps rejected, difference %.2g", got.manifest.Steps.Rejected, worst); !(worst <= bound) {
					t.Errorf("the results differ by %.2g, allowed are %g", worst, bound)
				}
			})
		}
	}
}
