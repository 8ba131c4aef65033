// Package num is numerics that knows nothing of coupling: sparse factors,
// polynomials through points of unequal distance, weighted norms, least squares,
// linear systems over a step, and their identification from data.
package num

import (
	"fmt"
	"slices"
)

// Archive carries numbers to and from a checkpoint; [master.Archive] is one.
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

// Carry carries values of several kinds, in their order: slices, and pointers to single ones.
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
			panic(fmt.Sprintf("num: %T has no place in an archive", v))
		}
	}
}

// LCM returns the least common multiple of a and b, which are greater than 0.
func LCM(a, b int) int {
	g, r := a, b
	for r != 0 {
		g, r = r, g%r
	}
	return a / g * b
}

// Owner returns the part to which entry k of a vector belongs; part i begins at at[i].
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

// Dot returns the scalar product of a and b, rounded after each product and sum.
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
