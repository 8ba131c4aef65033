package test

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
)

// nrmse gives the norm of the normalised root mean square errors (36) of columns
// [time] against references.
func nrmse(got, want [][]float64) float64 {
	total := 0.0
	for i := range got {
		mean, wrong, spread := 0.0, 0.0, 0.0
		for _, v := range want[i] {
			mean += v / float64(len(want[i]))
		}
		for j, v := range want[i] {
			wrong += (v - got[i][j]) * (v - got[i][j])
			spread += (v - mean) * (v - mean)
		}
		total += wrong / spread
	}
	return math.Sqrt(total)
}

// meyer's Example 1 with the settings of the system's annotation against the
// monolithic solution, in the ranges of what the paper's figures and an independent
// reproduction show: the estimators that judge the coupling force or solve the
// coupling follow the impacts; those that judge the states explicitly do not feel
// them, and their error depends on where the impact falls in a step.
func TestContactOscillator(t *testing.T) {
	for preset, bound := range map[string]float64{"ex-local": 0.1, "ex-milne": 0.1, "ex-slocal": 1e-3, "im-milne": 1e-3, "im-slocal": 1e-3} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			o := complete(t, system(t, "contact-oscillator"), "--algorithm", preset, "--output-interval", "1e-3")
			names := []string{"left.x", "left.v", "right.x", "right.v"}
			var got [][]float64
			for _, n := range names {
				got = append(got, o.columns[n])
			}
			rows, err := exact.DefaultContactOscillator().Solve(o.columns["time"][1:])
			if err != nil {
				t.Fatal(err)
			}
			want := make([][]float64, len(names))
			for i := range want {
				want[i] = append(want[i], exact.DefaultContactOscillator().Start[i])
				for _, x := range rows {
					want[i] = append(want[i], x[i])
				}
			}
			e := nrmse(got, want)
			t.Logf("%d steps, NRMSE %.2g", o.manifest.Steps.Accepted, e)
			if !(e <= bound) {
				t.Errorf("the error is %g, not at most %g", e, bound)
			}
			if n := o.manifest.Steps.Accepted; n < 300 || n > 2500 {
				t.Errorf("%d steps", n)
			}
		})
	}
}
