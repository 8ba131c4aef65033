package analyze

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// forgetful promises to go back and does not.
type forgetful struct{ *mastertest.Linear }

func (forgetful) VerifyRollback(context.Context, master.Experiment, float64) (master.Replay, error) {
	return master.Replay{}, fmt.Errorf("%w: it leaves x where it was", master.ErrCapability)
}

// What is found not to go back is not taken back: such algorithms are refused, and not recommended.
func TestBrokenRollback(t *testing.T) {
	for _, broken := range []bool{false, true} {
		sys := analyzetest.Haid(t, exact.DefaultHaid(), func(s *mastertest.Linear) master.Subsystem {
			if broken && s.Info().Name == "two" {
				return forgetful{s}
			}
			return s
		})
		r, err := Run(t.Context(), sys, Options{Step: 1e-4, From: 1e-4, To: 2e-4})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			if refused := strings.Contains(s.Why, "it leaves x where it was") && s.Points == nil; refused != (broken && s.Preset == "implicit") {
				t.Errorf("broken %t: %s: %q, %v", broken, s.Preset, s.Why, s.Points)
			}
		}
		for _, a := range r.Structure.Algorithms {
			repeats := strings.HasPrefix(a.Preset, "ex-") || strings.HasPrefix(a.Preset, "im") || a.Preset == "richardson"
			if refused := strings.Contains(a.Refused, "it leaves x where it was"); refused != (broken && repeats) {
				t.Errorf("broken %t: %s: %q", broken, a.Preset, a.Refused)
			}
		}
		if s := r.Subsystems[1]; broken != strings.Contains(s.Why, "it leaves x where it was") {
			t.Errorf("broken %t: %+v", broken, s)
		}
	}
}
