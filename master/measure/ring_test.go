package measure

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"
)

// Poles of signals with known ones are found: beside faster ones, fast and lightly damped, growing, and beside a motion that stays.
func TestPoles(t *testing.T) {
	for name, c := range map[string]struct {
		span, step float64
		parts      []complex128
		slowest    complex128
	}{
		"one":            {10, 1e-3, []complex128{-1}, -1},
		"two":            {10, 1e-3, []complex128{-0.5, -2}, -0.5},
		"swing":          {10, 1e-3, []complex128{-0.3 + 6i, -5}, -0.3 + 6i},
		"fast swing":     {10, 1e-3, []complex128{-0.2 + 600i}, -0.2 + 600i},
		"grows":          {10, 1e-2, []complex128{0.05 + 1i, -1}, 0.05 + 1i},
		"stays":          {10, 1e-3, []complex128{0, -0.9 + 3i}, -0.9 + 3i},
		"soon dies out":  {100, 1e-3, []complex128{-40}, -40},
		"undamped":       {10, 1e-3, []complex128{4i}, 4i},
		"like constants": {10, 1e-3, []complex128{-0.3, -0.3 + 2i, -9}, -0.3},
	} {
		r := &ring{}
		for k := range int(c.span/c.step) + 1 {
			r.t = append(r.t, float64(k)*c.step)
		}
		for k := range 2 {
			r.d = append(r.d, nil)
			for s := range 2 {
				v := make([]float64, len(r.t))
				for j, p := range c.parts {
					a := cmplx.Rect(1+0.4*float64(s)-0.3*float64(k*j), float64(k+2*s+j))
					for i := range v {
						v[i] += real(a * cmplx.Exp(p*complex(r.t[i], 0)))
					}
				}
				r.d[k] = append(r.d[k], v)
			}
		}
		poles, window, err := r.poles()
		near := func(p complex128) bool { return cmplx.Abs(p-c.slowest) <= 0.01*cmplx.Abs(c.slowest) }
		if err != nil || !slices.ContainsFunc(poles, near) {
			t.Errorf("%s: %v in %g s, %v", name, poles, window, err)
			continue
		}
		amplitudes, _ := r.fit(poles, window/10, window)
		i := slices.IndexFunc(poles, near)
		j := slices.Index(c.parts, c.slowest)
		if got, want := amplitudes[1][1][i], cmplx.Rect(1.4-0.3*float64(j), float64(3+j)); cmplx.Abs(got-want) > 0.05 && imag(c.slowest) != 0 {
			t.Errorf("%s: amplitude %v, not %v", name, got, want)
		}
	}
}

// Noise and signals of other kinds have no poles.
func TestNoPoles(t *testing.T) {
	r := &ring{}
	seed := uint64(1)
	v, w := []float64{}, []float64{}
	for k := range 5000 {
		r.t = append(r.t, float64(k)*1e-3)
		seed = seed*6364136223846793005 + 1442695040888963407
		v = append(v, float64(seed>>40))
		w = append(w, math.Sin(float64(k*k)*1e-5))
	}
	over := slices.Clone(w)
	over[4000] = math.Inf(1)
	for _, d := range [][]float64{v, w, over, make([]float64, len(w))} {
		r.d = [][][]float64{{d}}
		if poles, window, err := r.poles(); err == nil {
			t.Errorf("%v in %g s", poles, window)
		}
	}
}
