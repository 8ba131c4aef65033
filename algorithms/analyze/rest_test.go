package analyze

import (
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
)

// lagLoop is a loop of two lags x' = −x + b u, y = x, with a gain of g around it.
func lagLoop(t *testing.T, g, x0 float64) *master.System {
	t.Helper()
	return analyzetest.Pair(t, analyzetest.Lag("one", -1, 1, x0), analyzetest.Lag("two", -1, g, 0))
}

// With a gain of 1 around a loop an eigenvalue is 1 at every step and in every strategy: the radius
// is no smaller, and what dies out besides is told apart.
func TestLasts(t *testing.T) {
	for g, want := range map[float64]float64{0.9: math.Exp((math.Sqrt(0.9) - 1) * 0.01), 1: 1, 1.02: math.Exp((math.Sqrt(1.02) - 1) * 0.01)} {
		if g != 1 && !long.On {
			continue
		}
		r, err := Run(t.Context(), lagLoop(t, g, 1), Options{Step: 0.01, From: 5e-3, To: 0.02, Stop: 1, Order: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			if math.Abs(s.Now-want) > 1e-4 || g == 1 && math.Abs(s.Now-1) > linear.Marginal {
				t.Errorf("gain %g: %s, order %d: radius %.9g, want %.9g", g, s.Preset, s.Order, s.Now, want)
			}
			for _, at := range s.Points {
				if g == 1 && math.Abs(at.Radius-1) > linear.Marginal {
					t.Errorf("%s, order %d: radius %.9g at %g s", s.Preset, s.Order, at.Radius, at.Step)
				}
			}
			if formed := s.Preset != "model-based-corrector"; formed && s.Lasts != (g == 1) || s.Lasts && math.Abs(s.Besides-math.Exp(-0.02)) > 3e-4 {
				t.Errorf("gain %g: %s, order %d: lasts %t besides %.9g", g, s.Preset, s.Order, s.Lasts, s.Besides)
			}
		}
	}
}

// Of a system at rest no error is told, and none decides what is recommended.
func TestAtRest(t *testing.T) {
	r, err := Run(t.Context(), lagLoop(t, -50, 0), Options{Step: 0.01, Stop: 5, Order: 1, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.WhyNoError, "moves from here on") || r.Promised != nil || r.Recommended < 0 || r.StepToTake != 0.01 {
		t.Errorf("%q, promised %+v, recommended %d at %g s", r.WhyNoError, r.Promised, r.Recommended, r.StepToTake)
	}
	for _, s := range r.Strategies {
		if s.Forecasts != nil || s.Local != nil || len(s.Stable) == 0 {
			t.Errorf("%s: %+v, %+v, %v", s.Preset, s.Forecasts, s.Local, s.Stable)
		}
	}
}
