package num

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Matrix is a square sparse matrix in compressed column form. The rows of column j are
// Row[ColStart[j]:ColStart[j+1]], in ascending order; the same part of Val holds the values. The
// pattern includes the diagonal.
type Matrix struct {
	N             int
	ColStart, Row []int
	Val           []float64
}

// Causes of an EntryError.
var (
	ErrSingular  = errors.New("the interface Jacobian is singular")
	ErrNotFinite = errors.New("not a finite number")
)

// EntryError is an error at one unknown: a column of the Jacobian or an entry of a vector. It wraps
// ErrSingular or ErrNotFinite.
type EntryError struct {
	Index int
	Err   error
}

func (e *EntryError) Error() string { return fmt.Sprintf("unknown %d: %v", e.Index, e.Err) }
func (e *EntryError) Unwrap() error { return e.Err }

// pivotPreference is the smallest ratio of the diagonal entry to the largest candidate at which the
// diagonal entry is the pivot. It bounds the growth of entries by 1 + 1/pivotPreference per
// elimination. Diagonal pivots keep the fill low, since the ordering assumes them. The value is
// recommended by Duff, Erisman and Reid, Direct Methods for Sparse Matrices (2nd ed. 2017), section
// 5.2.
const pivotPreference = 0.1

// pivotNoise times the machine precision and the number of updates is the relative size, with
// respect to the largest update, below which an entry counts as rounding and cannot be the pivot.
// Entries of an interface Jacobian are less accurate than that. With this value, the rank of random
// matrices with one dependent column is found; with a hundredth of it, one in thirty is missed.
const pivotNoise = 1000

// LU holds the factors of R A Q = Pᵀ L U. R scales each row by a power of two to a largest entry in
// [½, 1). Q orders the columns for low fill. P results from pivoting.
//
// Source: J.R. Gilbert, T. Peierls, Sparse partial pivoting in time
// proportional to arithmetic operations, SIAM J. Sci. Stat. Comput. 9 (1988);
// T.A. Davis, Direct Methods for Sparse Linear Systems (2006), chapters 3 and 6.
// Entries with the value 0 are left out of the factors, since patterns include assumed dependencies.
type LU struct {
	n     int
	order []int // column k of the factors is column order[k] of the matrix
	factors

	x, largest          []float64 // current column, and the largest update of each entry
	reached             []int     // reached[top:] are its nonzero rows in topological order
	path, next          []int     // of the depth-first search for these rows
	mark                []int     // last column in which a row was reached
	forFactor, forSolve int       // operations
}

// factors is the state of an LU.
type factors struct {
	scale   []float64 // R, by row
	pivoted []int     // position of each row among the pivots; -1 = no pivot yet
	// Columns of L below the diagonal, which is 1, and of U above it. During the factorisation,
	// lRow holds rows of the matrix, afterwards positions of pivots.
	lStart, lRow []int
	lVal         []float64
	uStart, uRow []int
	uVal         []float64
	diagonal     []float64 // of U
}

// NewLU orders the columns of a for low fill and allocates the factors. Only the pattern of a is
// used.
func NewLU(a *Matrix) *LU {
	n := a.N
	order, fill := minimumDegree(a)
	return &LU{
		n: n, order: order,
		factors: factors{
			scale: make([]float64, n), pivoted: make([]int, n), diagonal: make([]float64, n),
			lStart: make([]int, n+1), lRow: make([]int, 0, fill), lVal: make([]float64, 0, fill),
			uStart: make([]int, n+1), uRow: make([]int, 0, fill), uVal: make([]float64, 0, fill),
		},
		x: make([]float64, n), largest: make([]float64, n),
		reached: make([]int, n), path: make([]int, n), next: make([]int, n), mark: make([]int, n),
	}
}

// Archive saves or restores the factors. The matrix must have the same pattern.
func (f *LU) Archive(a Archive) { a.All(&f.factors) }

// Factor factors a, which has the pattern given to NewLU. The work is proportional to the
// operations on nonzero entries. An *EntryError names a column that depends on others to working
// precision (ErrSingular), or that has or leads to a number that is not finite (ErrNotFinite). The
// factors are then invalid.
func (f *LU) Factor(a *Matrix) error {
	f.forFactor = 0
	f.lRow, f.lVal, f.uRow, f.uVal = f.lRow[:0], f.lVal[:0], f.uRow[:0], f.uVal[:0]
	if err := f.equilibrate(a); err != nil {
		return err
	}
	for i := range f.n {
		f.pivoted[i], f.mark[i] = -1, -1
	}
	for k, column := range f.order {
		f.lStart[k], f.uStart[k] = len(f.lRow), len(f.uRow)
		top := f.reach(a, column, k)
		for _, i := range f.reached[top:] {
			f.x[i], f.largest[i] = 0, 0
		}
		for p := a.ColStart[column]; p < a.ColStart[column+1]; p++ {
			i := a.Row[p]
			f.x[i] = a.Val[p] * f.scale[i]
			f.largest[i] = math.Abs(f.x[i])
		}
		f.forFactor += a.ColStart[column+1] - a.ColStart[column]
		updates, err := f.eliminate(top)
		if err != nil {
			return &EntryError{column, err}
		}
		row, err := f.pivot(top, column, updates)
		if err != nil {
			return &EntryError{column, err}
		}
		pivot := f.x[row]
		f.diagonal[k], f.pivoted[row] = pivot, k
		for _, i := range f.reached[top:] {
			if f.pivoted[i] < 0 && f.x[i] != 0 {
				f.lRow = append(f.lRow, i)
				f.lVal = append(f.lVal, f.x[i]/pivot)
				f.forFactor++
			}
		}
	}
	f.lStart[f.n], f.uStart[f.n] = len(f.lRow), len(f.uRow)
	for p, i := range f.lRow {
		f.lRow[p] = f.pivoted[i]
	}
	return nil
}

// equilibrate computes the scales of the rows. It returns an error if an entry is not finite.
func (f *LU) equilibrate(a *Matrix) error {
	clear(f.scale)
	for j := range a.N {
		for p := a.ColStart[j]; p < a.ColStart[j+1]; p++ {
			v := math.Abs(a.Val[p])
			if !(v <= math.MaxFloat64) {
				return &EntryError{j, ErrNotFinite}
			}
			f.scale[a.Row[p]] = max(f.scale[a.Row[p]], v)
		}
	}
	for i, v := range f.scale {
		_, exponent := math.Frexp(v) // 0 for 0
		f.scale[i] = math.Ldexp(1, min(-exponent, 1023))
	}
	return nil
}

// reach writes the nonzero rows of L⁻¹ times the column to f.reached[top:], each before the rows
// that it updates. A depth-first search from the nonzeros of the column through the columns of L
// finds them.
func (f *LU) reach(a *Matrix, column, k int) (top int) {
	top = f.n
	for p := a.ColStart[column]; p < a.ColStart[column+1]; p++ {
		if a.Val[p] == 0 || f.mark[a.Row[p]] == k {
			continue
		}
		depth := 0
		f.path[0] = a.Row[p]
		for depth >= 0 {
			i := f.path[depth]
			j := f.pivoted[i]
			if f.mark[i] != k {
				f.mark[i] = k
				if j >= 0 {
					f.next[depth] = f.lStart[j]
				}
			}
			deeper := false
			if j >= 0 {
				for q := f.next[depth]; q < f.lStart[j+1]; q++ {
					if below := f.lRow[q]; f.mark[below] != k {
						f.next[depth] = q + 1
						depth++
						f.path[depth] = below
						deeper = true
						break
					}
				}
			}
			if !deeper {
				top--
				f.reached[top] = i
				depth--
			}
		}
	}
	return top
}

// eliminate solves L x = column in f.x and stores the column of U. updates is the number of updates.
func (f *LU) eliminate(top int) (updates int, err error) {
	for _, i := range f.reached[top:] {
		j := f.pivoted[i]
		if j < 0 || f.x[i] == 0 {
			continue
		}
		u := f.x[i]
		if u-u != 0 {
			return updates, ErrNotFinite
		}
		f.uRow = append(f.uRow, j)
		f.uVal = append(f.uVal, u)
		rows, values := f.lRow[f.lStart[j]:f.lStart[j+1]], f.lVal[f.lStart[j]:f.lStart[j+1]]
		for p, below := range rows {
			update := float64(values[p] * u)
			f.x[below] -= update
			f.largest[below] = max(f.largest[below], math.Abs(update))
		}
		f.forFactor += 2 * len(rows)
		updates++
	}
	return updates, nil
}

// pivot returns the row of the pivot, one of the rows reached.
func (f *LU) pivot(top, column, updates int) (int, error) {
	noise := pivotNoise * 0x1p-52 * float64(updates)
	best, size, diagonal := -1, 0.0, 0.0
	for _, i := range f.reached[top:] {
		if f.pivoted[i] >= 0 {
			continue
		}
		v := math.Abs(f.x[i])
		if !(v <= math.MaxFloat64) {
			return 0, ErrNotFinite
		}
		if v > size {
			best, size = i, v
		}
		if i == column {
			diagonal = v
		}
	}
	switch {
	case best < 0, size <= noise*f.largest[best]:
		return 0, ErrSingular
	case diagonal >= pivotPreference*size:
		return column, nil
	}
	return best, nil
}

// Solve replaces b [n] by A⁻¹ b. It needs a Factor call without an error.
func (f *LU) Solve(b []float64) {
	x := f.x
	for i, v := range b {
		x[f.pivoted[i]] = v * f.scale[i]
	}
	for k := range f.n {
		v := x[k]
		for p := f.lStart[k]; p < f.lStart[k+1]; p++ {
			x[f.lRow[p]] -= float64(f.lVal[p] * v)
		}
	}
	for k := f.n - 1; k >= 0; k-- {
		v := x[k] / f.diagonal[k]
		b[f.order[k]] = v
		for p := f.uStart[k]; p < f.uStart[k+1]; p++ {
			x[f.uRow[p]] -= float64(f.uVal[p] * v)
		}
	}
	f.forSolve = 2*f.n + 2*len(f.lRow) + 2*len(f.uRow)
}

// Operations returns the numbers of multiplications, divisions and additions of the last Factor and
// the last Solve.
func (f *LU) Operations() (factor, solve int) { return f.forFactor, f.forSolve }

// minimumDegree orders the unknowns for low fill in the elimination of A + Aᵀ: the next one is that with
// the fewest remaining neighbours, among equals the one that got this number last. Once all that remain
// are neighbours of each other, their order does not matter. fill is the number of entries below the
// diagonal of the factor.
func minimumDegree(a *Matrix) (order []int, fill int) {
	near := make([]map[int]bool, a.N)
	for i := range near {
		near[i] = map[int]bool{}
	}
	for j := range a.N {
		for _, i := range a.Row[a.ColStart[j]:a.ColStart[j+1]] {
			if i != j {
				near[i][j], near[j][i] = true, true
			}
		}
	}
	queue := make([][]int, a.N) // by degree; entries whose degree has changed are skipped
	for i := a.N - 1; i >= 0; i-- {
		queue[len(near[i])] = append(queue[len(near[i])], i)
	}
	gone := make([]bool, a.N)
	for d := 0; len(order) < a.N; {
		n := len(queue[d])
		if n == 0 {
			d++
			continue
		}
		p := queue[d][n-1]
		queue[d] = queue[d][:n-1]
		if gone[p] || len(near[p]) != d {
			continue
		}
		gone[p], order, fill = true, append(order, p), fill+d
		members := slices.Sorted(maps.Keys(near[p]))
		if d > 1 && d == a.N-len(order) {
			slices.Reverse(members)
			return append(order, members...), fill + d*(d-1)/2
		}
		for _, i := range members {
			delete(near[i], p)
			for _, j := range members {
				if i != j {
					near[i][j] = true
				}
			}
			queue[len(near[i])] = append(queue[len(near[i])], i)
			d = min(d, len(near[i]))
		}
	}
	return order, fill
}
