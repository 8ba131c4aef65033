// Package num holds numerics that do not depend on coupling: sparse LU factors, polynomials on
// unequal grids, weighted norms, least squares, the discretisation of linear systems and their
// identification from data.
package num

import "slices"

// Archive saves values to a checkpoint, or restores them; master.Archive implements it.
type Archive interface{ All(places ...any) }

// LCM returns the least common multiple of a > 0 and b > 0.
func LCM(a, b int) int {
	g, r := a, b
	for r != 0 {
		g, r = r, g%r
	}
	return a / g * b
}

// Owner returns the part of a vector that holds entry k. Part i starts at at[i].
func Owner(at []int, k int) int {
	i, found := slices.BinarySearch(at, k)
	if !found {
		return i - 1
	}
	for at[i+1] == k {
		i++ // an empty part
	}
	return i
}

// Dot returns the scalar product of a and b. Each product and each sum is rounded.
func Dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v * b[i])
	}
	return sum
}

// CheckFinite returns an *EntryError for the first entry that is not a finite number.
func CheckFinite(v []float64) error {
	for i, x := range v {
		if x-x != 0 {
			return &EntryError{i, ErrNotFinite}
		}
	}
	return nil
}
