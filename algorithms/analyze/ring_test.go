package analyze

import (
	"fmt"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/master"
)

// Of a motion that dies away over many subsystems to less than numbers hold, errors are forecast; those
// of outputs that move by next to nothing are not told of.
func TestRingForecast(t *testing.T) {
	const n = 60
	var subs []master.Subsystem
	var links []string
	for i := range n {
		sub := analyzetest.Lag(fmt.Sprint("c", i), -1, 1, float64(max(1-i, 0)))
		sub.Info().Caps.InputDerivatives = false
		subs = append(subs, sub)
		links = append(links, fmt.Sprintf("c%d.y1 -> c%d.u1", i, (i+1)%n))
	}
	sys := analyzetest.System(t, subs, links...)
	r, err := Run(t.Context(), sys, Options{Step: 1e-2, Stop: 1, Order: 0, From: 5e-3, To: 2e-2, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if r.WhyNoError != "" || r.Promised == nil {
		t.Fatalf("%s; %s", r.WhyNoError, r.Why)
	}
	for _, s := range r.Strategies {
		for _, f := range s.Forecasts {
			if f.Step <= 1e-2 && f.Error > 1 && s.Preset != "model-based-corrector" {
				t.Errorf("%s, %g s: off by %g of %s", s.Preset, f.Step, f.Error, f.Of)
			}
		}
	}
}
