package validate

import (
	"math"
	"testing"
)

// The spectral radius is right for real and complex eigenvalues, defective and
// nilpotent matrices.
func TestSpectralRadius(t *testing.T) {
	for _, c := range []struct {
		m    [][]float64
		want float64
	}{
		{[][]float64{{0, 2}, {3, 0}}, math.Sqrt(6)},
		{[][]float64{{0, -2}, {2, 0}}, 2},
		{[][]float64{{1, 100}, {0, 1}}, 1},
		{[][]float64{{0, 1}, {0, 0}}, 0},
		{[][]float64{{1e200, 0}, {0, 1}}, 1e200},
		{[][]float64{{0.5, 0.1, 0}, {0, 0.2, 0.3}, {0.1, 0, 0.4}}, 0.5547},
		{nil, 0},
	} {
		if got, ok := spectralRadius(c.m); !ok || math.Abs(got-c.want) > 1e-4*max(c.want, 1e-3) {
			t.Errorf("%v: %g, %t, want %g", c.m, got, ok, c.want)
		}
	}
	if _, ok := spectralRadius([][]float64{{math.NaN()}}); ok {
		t.Error("of NaN there is a radius")
	}
}
