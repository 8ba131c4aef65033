package analyze

import (
	"fmt"
	"math"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// haidSystem is haid's oscillator of exact subsystems in Go.
func haidSystem(t testing.TB, o exact.Haid, caps func(*master.Caps)) *master.System {
	t.Helper()
	one := mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{1e-3, 1})
	two := mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, []float64{-2e-3, 0.3})
	if caps != nil {
		caps(&one.Info().Caps)
		caps(&two.Info().Caps)
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{one, two}, []master.Connection{
		{From: at("two", "y1"), To: at("one", "u1")}, {From: at("one", "y1"), To: at("two", "u1")}, {From: at("one", "y2"), To: at("two", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// The spectral radius is that of the independent propagation matrix, with and without
// correction, from measured responses and from directional derivatives.
func TestRadius(t *testing.T) {
	for name, caps := range map[string]func(*master.Caps){"measured": nil, "directional": func(c *master.Caps) { c.SaveState = false }} {
		o := exact.DefaultHaid()
		err := at(t.Context(), haidSystem(t, o, caps), Options{Step: 1e-4, Order: 4}, func(p *point) error {
			for k := range 5 {
				for _, H := range []float64{2e-5, 1e-4, 3e-4, 1e-3} {
					for _, correct := range []bool{false, true} {
						s := &scheme{preset: "explicit", order: k}
						if correct {
							s = &scheme{preset: "model-based-corrector", order: k, hidden: true}
						}
						want := exact.Corrected{Haid: o, H: H, P: k, Correct: correct, Alpha: 1}.Radius()
						mode, err := p.spectrum(s, H, -1, 1)
						if err != nil {
							return fmt.Errorf("%s, k = %d, H = %g: %w", s.preset, k, H, err)
						}
						if got := mode.radius(); !(math.Abs(got-want) <= 1e-6*want) {
							t.Errorf("%s, %s, k = %d, H = %g: radius %.9f, want %.9f", name, s.preset, k, H, got, want)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(name, err)
		}
	}
}
