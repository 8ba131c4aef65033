package algorithms

import "math"

// magnitude is the largest magnitude of a quantity at accepted points, from which the accuracy of solved steps is taken.
// A single event, such as a contact or a spike of an input, does not count for the rest of the run: a value
// that a few points in a row do not reach by far is forgotten.
type magnitude struct {
	largest float64
	lower   float64 // largest of the last points, if these are far below
	points  int     // their number
}

const (
	// A magnitude is far below the largest if it is less than this part of it. Absolute tolerances are a
	// hundredth of relative ones (absolutePart), so that they would hide all of it.
	farBelow = 1e-3
	// The number of points far below after which the largest is forgotten. A sine has as many around its
	// zeros if it has more than 9000 points in a period.
	pointsBelow = 3
)

// see takes the value at an accepted point, and reports whether largest changes. A value that is not finite has no effect.
func (m *magnitude) see(value float64) (changes bool) {
	v := math.Abs(value)
	switch {
	case v-v != 0:
		return false
	case v >= farBelow*m.largest:
		changes = v > m.largest
		*m = magnitude{largest: max(v, m.largest)}
		return changes
	}
	if m.lower, m.points = max(v, m.lower), m.points+1; m.points < pointsBelow {
		return false
	}
	*m = magnitude{largest: m.lower}
	return true
}
