package num

import (
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

func TestNorm(t *testing.T) {
	for _, test := range []struct {
		e, w []float64
		want float64
	}{
		{nil, nil, 0},
		{[]float64{3, 4}, []float64{1, 1}, math.Sqrt(12.5)},
		{[]float64{-1e-3, 0}, []float64{1e-3, 1e-300}, math.Sqrt(0.5)},
		{[]float64{0}, []float64{0}, 0}, // no error needs no weight
	} {
		if got := WRMS(test.e, test.w); !near(got, test.want, 1e-15) {
			t.Errorf("%v by %v: %g, want %g", test.e, test.w, got, test.want)
		}
	}
	if v := WRMS([]float64{math.NaN(), 1}, []float64{1, 1}); !math.IsNaN(v) {
		t.Errorf("the norm of NaN is %g", v)
	}
}

// Equidistant: the constants of meyer; unequal: quadrature.
func TestErrorConstants(t *testing.T) {
	const H = 0.25
	equal := []float64{1, 0.75, 0.5, 0.25, 0, -0.25, -0.5}
	for j, want := range [][2]float64{{0.5, 1}, {1. / 6, 0.5}, {0.125, 5. / 12}, {19. / 180, 3. / 8}, {math.NaN(), 251. / 720}} {
		pos, vel := ErrorConstants(j, H, equal)
		if !near(vel, want[1], 1e-14) || !math.IsNaN(want[0]) && !near(pos, want[0], 1e-14) {
			t.Errorf("degree %d: C_pos %g, C_vel %g, want %g", j, pos, vel, want)
		}
	}
	uneven := []float64{3, 2.2, 1.9, 0.4, -1, -1.1, -5}
	for j := range MaxNodes {
		const n = 20000
		pos, vel := 0.0, 0.0
		for i := range n {
			s := (float64(i) + 0.5) / n
			v := 1.0
			for m := range j {
				v *= (3 + s*H - uneven[m]) / (3 + H - uneven[m])
			}
			vel += v / n
			pos += v * (1 - s) / n // Cauchy's formula for the double integral
		}
		p, v := ErrorConstants(j, H, uneven)
		if !near(p, pos, 1e-8) || !near(v, vel, 1e-8) {
			t.Errorf("degree %d: %g and %g, by quadrature %g and %g", j, p, v, pos, vel)
		}
	}
}

// cubic is t³ at unequal points, the newest first, as entry 1 of two.
func cubic(n int) History {
	times := []float64{2, 1.5, 1.25, 0.5, 0.25, 0, -1}[:n]
	h := History{Times: times}
	for _, t := range times {
		h.Values = append(h.Values, []float64{0, t * t * t})
	}
	return h
}

// Derivatives and the a-priori estimate are exact on a cubic.
func TestHistoryNorms(t *testing.T) {
	const H = 0.5
	entries, w, scratch := []int{1}, []float64{2}, make([]float64, 1)
	h := cubic(6)
	for j, want := range map[int]float64{3: H * H * H * 6 / 2, 4: 0, 5: 0} {
		if got := h.ScaledDerivative(j, H, entries, w, scratch); !near(got, want, 1e-12) {
			t.Errorf("SDN(%d) = %g, want %g", j, got, want)
		}
	}
	// Degree 1: the secant. Degree 2 misses t³ by the product of the distances.
	if got, want := h.ScaledDerivative(1, H, entries, w, scratch), H*(8-3.375)/0.5/2; !near(got, want, 1e-13) {
		t.Errorf("SDN(1) = %g, want %g", got, want)
	}
	if got, want := h.APriori(2, H, entries, w, scratch), 0.5*1*1.25/2; !near(got, want, 1e-12) {
		t.Errorf("a-priori estimate %g, want %g", got, want)
	}
	if h.Holds(6) || !h.Holds(5) {
		t.Error("six points make degree 5")
	}
}
