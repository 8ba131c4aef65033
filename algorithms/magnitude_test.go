package algorithms

import (
	"math"
	"testing"
)

// The largest value counts until three points in a row are below a thousandth of it.
func TestMagnitude(t *testing.T) {
	var m magnitude
	for n, c := range []struct {
		value, want float64
		changes     bool
	}{
		{0, 0, false}, {-2, 2, true}, {1, 2, false}, {1e-3, 2, false}, {1e-3, 2, false}, {-0.5, 2, false}, {math.NaN(), 2, false},
		{math.Inf(1), 2, false}, {1e-3, 2, false}, {-1.5e-3, 2, false}, {0, 1.5e-3, true}, {3, 3, true},
		{0, 3, false}, {0, 3, false}, {0, 0, true}, {0, 0, false},
	} {
		if changes := m.see(c.value); m.largest != c.want || changes != c.changes {
			t.Errorf("%d: %g after %g, changes %v", n, m.largest, c.value, changes)
		}
	}
}
