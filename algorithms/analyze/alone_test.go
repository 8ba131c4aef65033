package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
)

// x' = a x + b u, y = x in a loop with y' = −y + x: what grows by itself is told, with its rate; what the
// coupling holds is none of the whole.
func TestUnstableAlone(t *testing.T) {
	for name, c := range map[string]struct{ a, b, alone float64 }{
		"unstable": {3, 0.5, 3}, "held": {1, -9, 1}, "stable": {-1, -1, 0},
	} {
		sys := analyzetest.Pair(t, analyzetest.Lag("one", c.a, c.b, 1), analyzetest.Lag("two", -4, 1, 1))
		r, err := Run(t.Context(), sys, Options{Step: 1e-2, Order: 1, Stop: 1, From: 1e-3, To: 1e-1})
		if err != nil {
			t.Fatal(err)
		}
		if (c.alone != 0) != (len(r.Alone) == 1) || c.alone != 0 && (r.Alone[0].Component != "one" || math.Abs(r.Alone[0].Rate-c.alone) > 1e-6) {
			t.Errorf("%s: alone %+v", name, r.Alone)
		}
		// λ² + (4−a) λ − 4a − b = 0
		half := (c.a - 4) / 2
		want := half + math.Sqrt(half*half+4*c.a+c.b)
		if !(want > 0) {
			want = 0
		}
		if (want > 0) != (r.Whole != nil) || want > 0 && math.Abs(r.Whole.Rate-want) > 1e-2*want {
			t.Errorf("%s: whole %+v, want %g", name, r.Whole, want)
		}
	}
}
