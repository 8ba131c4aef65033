package analyze

import (
	"math"
	"reflect"
	"testing"
)

// A single unstable point is unknown unless it is unstable close by on both sides; a window of two points,
// and those at the ends, stand.
func TestConfirmed(t *testing.T) {
	noise := func(at ...float64) func(float64) float64 {
		return func(h float64) float64 {
			for _, v := range at {
				if h == v {
					return 1.01
				}
			}
			return 0.99
		}
	}
	window := func(from, to float64) func(float64) float64 {
		return func(h float64) float64 {
			if h >= from && h <= to {
				return 1.01
			}
			return 0.99
		}
	}
	nowhere := func(h float64) float64 {
		if h == 3 {
			return 1.01
		}
		if math.Abs(h-3) < 0.5 {
			return math.NaN()
		}
		return 0.99
	}
	for name, c := range map[string]struct {
		radius  func(float64) float64
		unknown []float64
	}{
		"noise": {noise(3), []float64{3}}, "window": {window(2.9, 3.1), nil}, "one side": {window(3, 3.1), []float64{3}}, "two": {window(2.9, 4.1), nil},
		"end": {noise(5), nil}, "not known beside": {nowhere, []float64{3}}, "nothing": {noise(), nil},
	} {
		var points []Radius
		for _, h := range []float64{1, 2, 3, 4, 5} {
			points = append(points, Radius{h, c.radius(h)})
		}
		kept, unknown := confirmed(points, c.radius)
		if !reflect.DeepEqual(unknown, c.unknown) || len(kept)+len(unknown) != len(points) {
			t.Errorf("%s: kept %v, unknown %v", name, kept, unknown)
		}
	}
	s := Strategy{Stable: []Range{{1, 8}}, Unknown: []float64{3}}
	for h, want := range map[float64]bool{2: true, 3: false, 3.1: false, 3.5: true, 4.5: false} {
		if s.covers(h, 1) != want {
			t.Errorf("covers(%g) is not %t", h, want)
		}
	}
}
