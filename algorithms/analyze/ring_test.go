package analyze

import (
	"fmt"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// Of a motion that dies away over many subsystems to less than numbers hold, errors are forecast; those
// of outputs that move by next to nothing are not told of.
func TestRingForecast(t *testing.T) {
	const n = 60
	var subs []master.Subsystem
	var links []master.Connection
	for i := range n {
		x0 := 0.0
		if i == 0 {
			x0 = 1
		}
		sub := mastertest.NewLinear(fmt.Sprint("c", i), mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{x0})
		sub.Info().Caps.InputDerivatives = false
		subs = append(subs, sub)
		links = append(links, master.Connection{From: master.Endpoint{Subsystem: fmt.Sprint("c", i), Port: "y1"}, To: master.Endpoint{Subsystem: fmt.Sprint("c", (i+1)%n), Port: "u1"}})
	}
	sys, err := master.NewSystem(subs, links)
	if err != nil {
		t.Fatal(err)
	}
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
