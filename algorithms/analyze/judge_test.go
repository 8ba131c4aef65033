package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/fmus/exact"
)

// What is analysed after a run has grown does not depend on how many algorithms, orders, steps and components there are:
// the radius at its step, and that far below where it grows. The radius is that of a whole analysis.
func TestJudges(t *testing.T) {
	chain := func(n int) (judged *Judgement, whole float64, looks int) {
		sys, explicit := analyzetest.Masses(t, n)
		j, err := Judge(t.Context(), sys, Options{Step: 0.01, Stop: 1, Error: 0.01}, "explicit", 0)
		if err != nil {
			t.Fatal(err)
		}
		return j, explicit(0.01), j.Looks
	}
	for _, n := range []int{2, 25} {
		j, want, looks := chain(n)
		if math.Abs(j.Radius-want) > 1e-6 || j.Whole != nil || j.Itself != nil || looks > 2 || linear.Stable(want) != (looks == 1) {
			t.Errorf("%d masses: %+v, radius %.9f", n, j, want)
		}
	}
	o := exact.DefaultHaid()
	for _, c := range []struct {
		d, H  float64
		own   bool // the system itself is unstable
		looks int
	}{{o.D1, 1e-4, false, 1}, {o.D1, 3e-3, false, 2}, {-600, 1e-4, true, 4}} {
		o.D1 = c.d
		j, err := Judge(t.Context(), analyzetest.Haid(t, o, nil), Options{Step: c.H, Stop: 20 * c.H, Error: 0.01}, "explicit", 0)
		if err != nil {
			t.Fatal(err)
		}
		want := exact.Corrected{Haid: o, H: c.H, Alpha: 1}.Radius()
		if math.Abs(j.Radius-want) > 1e-6*want || (j.Itself != nil) != c.own || (j.Whole != nil) != c.own || j.Looks != c.looks {
			t.Errorf("d = %g, H = %g: %+v, %+v, radius %.9f", c.d, c.H, j, j.Itself, want)
		}
	}
	if _, err := Judge(t.Context(), analyzetest.Haid(t, o, nil), Options{Step: 1e-4, Stop: 1}, "ecco", 0); err == nil {
		t.Error("an algorithm that is not analysed is judged")
	}
}
