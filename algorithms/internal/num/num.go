// Package num holds numerics that do not depend on coupling: sparse LU factors, polynomials on
// unequal grids, weighted norms, least squares, the discretisation of linear systems and their
// identification from data.
package num

import (
	"fmt"
	"slices"
)

// Archive saves numbers to a checkpoint or restores them; [master.Archive] implements it.
//
// [master.Archive]: https://pkg.go.dev/github.com/macrostep/macrostep/master#Archive
type Archive interface {
	Float(*float64)
	Int(*int)
	Index(v *int, lowest, highest int)
	Floats([]float64)
	Ints([]int)
	FloatList(*[]float64)
	IntList(*[]int)
	Bool(*bool)
	Bools([]bool)
	String(*string)
	Word(*uint64)
	Reading() bool
	Err() error
	Fail(error)
}

// Carry saves or restores values in their order: slices, and pointers to single values.
func Carry(a Archive, values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case *float64:
			a.Float(v)
		case *int:
			a.Int(v)
		case *uint64:
			a.Word(v)
		case *bool:
			a.Bool(v)
		case *string:
			a.String(v)
		case []float64:
			a.Floats(v)
		case []int:
			a.Ints(v)
		case []bool:
			a.Bools(v)
		default:
			panic(fmt.Sprintf("num: %T cannot be archived", v))
		}
	}
}

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
