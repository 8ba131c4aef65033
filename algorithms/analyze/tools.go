package analyze

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mat"
)

// finite reports whether all values are numbers.
func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// ownerOf returns the subsystem of an entry of u or y, whose parts begin at offsets.
func ownerOf(offsets []int, entry int) int { return sort.SearchInts(offsets, entry+1) - 1 }

// identity returns I [n × n].
func identity(n int) *mat.Dense {
	m := mat.NewDense(n, n, nil)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}
