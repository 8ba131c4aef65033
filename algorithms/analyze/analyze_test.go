package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
)

// With many subsystems the limits are those of the eigenvalues.
func testManySubsystems(t *testing.T) {
	t.Run("25", func(t *testing.T) { ofMasses(t, 25) })
	t.Run("100", func(t *testing.T) { ofMasses(t, 100) })
}

func ofMasses(t *testing.T, n int) {
	sys, radius := analyzetest.Masses(t, n)
	r, err := Run(t.Context(), sys, Options{Step: 2e-3, Stop: 2, From: 5e-4, To: 0.05, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Strategies {
		if s.Preset != "explicit" || s.Order != 0 {
			continue
		}
		if want := radius(2e-3); math.Abs(s.Now-want) > 1e-6 {
			t.Errorf("radius %.6f, want %.6f", s.Now, want)
		}
		if len(s.Stable) == 0 {
			t.Fatal("nothing is stable")
		}
		limit := s.Stable[0].To
		if below, above := radius(0.995*limit), radius(1.005*limit); !(below <= 1 && above > 1) {
			t.Errorf("stable to %g s, radii %.6f and %.6f around it", limit, below, above)
		}
	}
	if r.Promised == nil {
		t.Errorf("recommended: %v, %s", r.Promised, r.Why)
	}
}
