package scan_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
)

// The spectral radius is that of the independent propagation matrix, with and without
// correction, from measured responses and from directional derivatives.
func TestRadius(t *testing.T) {
	for name, caps := range map[string]func(*master.Caps){"measured": nil, "directional": func(c *master.Caps) { c.SaveState = false }} {
		o := exact.DefaultHaid()
		_, err := twin.At(t.Context(), analyzetest.Haid(t, o, analyzetest.With(caps)),
			twin.Options{Step: 1e-4, Order: 4}, func(p *twin.Point) error {
				for k := range 5 {
					for _, H := range []float64{2e-5, 1e-4, 3e-4, 1e-3} {
						for _, correct := range []bool{false, true} {
							s := &twin.Scheme{Preset: "explicit", Order: k}
							if correct {
								s = &twin.Scheme{Preset: "model-based-corrector", Order: k, Hidden: true}
							}
							want := exact.Corrected{Haid: o, H: H, P: k, Correct: correct, Alpha: 1}.Radius()
							mode, err := (&scan.Scanner{Point: p}).Spectrum(s, H, -1, 1, false)
							if err != nil {
								return fmt.Errorf("%s, k = %d, H = %g: %w", s.Preset, k, H, err)
							}
							if got := mode.Radius(); !(math.Abs(got-want) <= 1e-6*want) {
								t.Errorf("%s, %s, k = %d, H = %g: radius %.9f, want %.9f", name, s.Preset, k, H, got, want)
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

// The radius of many subsystems is that of the eigenvalues, also where LAPACK returns wrong factors of the matrix.
func TestManyEigenvalues(t *testing.T) {
	sys, radius := analyzetest.Masses(t, 100)
	_, err := twin.At(t.Context(), sys, twin.Options{Step: 2e-3, Order: 1}, func(p *twin.Point) error {
		for _, h := range []float64{2e-3, 2.004e-3} {
			mode, err := (&scan.Scanner{Point: p}).Spectrum(&twin.Scheme{Preset: "explicit"}, h, -1, 1, false)
			if err != nil {
				return err
			}
			if want := radius(h); math.Abs(mode.Radius()-want) > 1e-6 {
				t.Errorf("at %g s the radius is %.9f, want %.9f", h, mode.Radius(), want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
