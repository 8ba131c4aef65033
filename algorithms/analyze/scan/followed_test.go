package scan

import (
	"math"
	"testing"
)

// A radius is an error if points of the run that lie farther apart give the opposite stability.
func TestFollowedResolved(t *testing.T) {
	series := func(grows float64) (y [][]float64) {
		for n := range 534 {
			k := float64(n)
			slow := math.Pow(grows, k)
			y = append(y, []float64{slow * math.Cos(0.02*k), slow*math.Sin(0.02*k+1) + math.Pow(0.98, k)*math.Cos(0.3*k)})
		}
		return y
	}
	for name, c := range map[string]struct {
		is, taken float64
		fails     bool
	}{
		"stable": {0.998, 0.998, false}, "stable taken for growing": {0.998, 1.004, true}, "growing": {1.002, 1.002, false},
		"growing taken for stable": {1.002, 0.9995, true}, "both stable": {0.998, 0.9995, false},
		"far off": {0.9, 1.1, false}, "undamped": {1, 1 + 1e-5, false},
	} {
		if err := resolved(series(c.is), c.taken); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
