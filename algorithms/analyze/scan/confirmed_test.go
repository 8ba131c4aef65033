package scan

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

// A single point between others is unknown unless steps close by on both sides agree with it. A window of two points, and
// the points at the ends, are doubted only if responses are noisy.
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
	two := func(h float64) float64 { // noise at two points that follow each other
		if h == 3 || h == 4 {
			return 1.01
		}
		return 0.99
	}
	for name, c := range map[string]struct {
		radius func(float64) float64
		noisy  bool
		gaps   []Range
	}{
		"noise": {noise(3), false, []Range{{3, 3}}}, "window": {window(2.9, 3.1), false, nil},
		"one side": {window(3, 3.1), false, []Range{{3, 3}}},
		"two":      {window(2.9, 4.1), false, nil}, "end": {noise(5), false, nil},
		"not known beside": {nowhere, false, []Range{{3, 3}}}, "nothing": {noise(), false, nil},
		"two of noise": {two, true, []Range{{3, 4}}}, "a window and noise": {window(2.9, 4.1), true, nil},
		"noise at the end": {noise(5), true, []Range{{5, 5}}},
		"alone and stable": {func(h float64) float64 { return 2 - noise(3)(h) }, false, []Range{{3, 3}}},
	} {
		radius := func(h float64) (float64, error) {
			v := c.radius(h)
			if math.IsNaN(v) {
				return v, errors.New("not known")
			}
			return v, nil
		}
		var looked []look
		for _, h := range []float64{1, 2, 3, 4, 5} {
			looked = append(looked, look{Radius: Radius{h, c.radius(h)}})
		}
		confirm(looked, radius, func(float64) bool { return c.noisy })
		var s Result
		s.take(looked)
		var gaps []Range
		for _, g := range s.Gaps {
			gaps = append(gaps, Range{g.From, g.To})
		}
		if !reflect.DeepEqual(gaps, c.gaps) {
			t.Errorf("%s: points %v, gaps %v", name, s.Points, s.Gaps)
		}
	}
}
