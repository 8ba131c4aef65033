package scan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
)

// A propagation matrix formed in steps from several subsystems at once equals the one from single steps, also for
// schemes whose steps have effects along the whole chain.
func TestFormsInGroups(t *testing.T) {
	const n = 40
	sys, _ := analyzetest.Masses(t, n)
	_, err := twin.At(t.Context(), sys, twin.Options{Step: 2e-3, Order: 2}, func(p *twin.Point) error {
		for _, preset := range []string{"explicit", "gauss-seidel", "implicit"} {
			for _, H := range []float64{2e-3, 0.05} {
				s := &twin.Scheme{Preset: preset, Order: 1}
				if preset == "implicit" {
					s.Params = map[string]string{"solver.tolerance": "1e-12"}
				}
				twins, sys, err := p.Twins(s, H, -1, 1, false)
				if err != nil {
					return err
				}
				g, err := NewPropagator(p, s, H, twins, sys)
				if err != nil {
					return err
				}
				formed, err := g.form(s)
				if err != nil {
					return fmt.Errorf("%s, %g s: %w", preset, H, err)
				}
				every := make([][]bool, n)
				var each [][]int
				for i := range every {
					each, every[i] = append(each, []int{i}), slices.Repeat([]bool{true}, n)
				}
				want, err := g.formIn(each, every)
				if err != nil {
					return err
				}
				if _, err := g.Run.Close(); err != nil {
					return err
				}
				t.Logf("%s, %g s: %d steps for %d columns, reach %d", preset, H, g.batches(g.apart(g.within(s.Reach)), g.columns()), g.Size(), s.Reach)
				if preset == "explicit" && s.Reach != 1 {
					t.Errorf("explicit coupling reaches %d connections", s.Reach)
				}
				for r := range g.Size() {
					largest := 0.0
					for _, v := range want.RawRowView(r) {
						largest = max(largest, math.Abs(v))
					}
					for c, v := range want.RawRowView(r) {
						if got := formed.At(r, c); math.Abs(got-v) > 1e-9*largest {
							t.Fatalf("%s, %g s: entry %d, %d is %g, want %g", preset, H, r, c, got, v)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
