package test

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
)

// The constant-step rows of sadjina's tables, from the FMUs through the command
// line. Bands are half a unit of the last printed digit; the error of Table III
// comes out 5.6 % low under every reading of the paper.
func TestSadjinaConstantSteps(t *testing.T) {
	nonlinear := func(component string) []string {
		return []string{"--set", component + ".d_c=900", "--set", component + ".n_d=1.5", "--stop-time", "2"}
	}
	type figures struct{ power, error, residual float64 }
	for _, c := range []struct {
		table      string
		system     string
		args       []string
		model      exact.QuarterCar
		cut        exact.Reticulation
		want, band figures
	}{
		{"III", "quarter-car-a", nil, exact.LinearQuarterCar(), exact.A, figures{0.4, 1.3, 6.4}, figures{0.05, 0.08, 0.055}},
		{"V", "quarter-car-a", nonlinear("wheel"), exact.NonlinearQuarterCar(), exact.A, figures{1, 4, 5}, figures{0.5, 0.5, 0.5}},
		{"VI", "quarter-car-b", nil, exact.LinearQuarterCar(), exact.B, figures{-192, 12, 23}, figures{0.5, 0.5, 0.5}},
		{"VII", "quarter-car-b", nonlinear("chassis"), exact.NonlinearQuarterCar(), exact.B, figures{-390, 30, 50}, figures{5, 5, 5}},
		{"VIII", "quarter-car-b", []string{"--set", "wheel.micro_steps=1"}, exact.LinearQuarterCar(), exact.B, figures{-220, 40, 30}, figures{5, 5, 5}},
	} {
		t.Run(c.table, func(t *testing.T) {
			t.Parallel()
			o := complete(t, append([]string{system(t, c.system), "--step-size", "1e-3"}, c.args...)...)
			force, velocity := "wheel.F_c", "chassis.v_c"
			if c.cut == exact.B {
				force, velocity = "chassis.F_c", "wheel.v_w"
			}
			m, err := c.model.Judge(c.cut, o.column(t, "time"), o.column(t, force), o.column(t, velocity))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("mean step %.4g ms, power %.4g W, error %.4g W, residual %.4g J", 1e3*m.Step, m.Power, m.Error, m.Residual)
			for _, f := range []struct {
				name            string
				got, want, band float64
			}{
				{"mean step", m.Step, 1e-3, 1e-12},
				{"mean power", m.Power, c.want.power, c.band.power},
				{"mean absolute error of the power", m.Error, c.want.error, c.band.error},
				{"residual energy", m.Residual, c.want.residual, c.band.residual},
			} {
				if !(math.Abs(f.got-f.want) <= f.band) {
					t.Errorf("%s is %g, printed %g ± %g", f.name, f.got, f.want, f.band)
				}
			}
		})
	}
}
