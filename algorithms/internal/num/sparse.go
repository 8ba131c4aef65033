package num

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Matrix is a square matrix of fixed pattern by compressed columns: the
// rows and values of column j are Row[ColStart[j]:ColStart[j+1]] and the same
// part of Val. Rows ascend in each column, and the diagonal is always part of
// the pattern.
type Matrix struct {
	N             int
	ColStart, Row []int
	Val           []float64
}

var (
	ErrSingular  = errors.New("the interface Jacobian is singular")
	ErrNotFinite = errors.New("not a finite number")
)

// EntryError is a failure of the numerics at one unknown: a column of the
// Jacobian, or an entry of a vector. It wraps ErrSingular or ErrNotFinite.
type EntryError struct {
	Index int
	Err   error
}

func (e *EntryError) Error() string { return fmt.Sprintf("unknown %d: %v", e.Index, e.Err) }
func (e *EntryError) Unwrap() error { return e.Err }

// pivotPreference is the part of the largest candidate that the entry on the
// diagonal must reach to be the pivot. It bounds the growth of entries by
// 1 + 1/pivotPreference per elimination and keeps the fill of the ordering,
// which is chosen for pivots on the diagonal. The value is the one recommended
// by Duff, Erisman and Reid, Direct Methods for Sparse Matrices (2nd ed. 2017),
// section 5.2.
const pivotPreference = 0.1

// pivotNoise times the machine precision and the number of updates is the part
// of the largest update of an entry below which what is left of it counts as
// rounding: it is no pivot. Entries of an interface Jacobian are not known that
// well. The value finds the rank of random matrices with one column too many;
// a hundredth of it misses one in thirty.
const pivotNoise = 1000

// LU holds the factors of R A Q = Pᵀ L U: R scales each row to a largest
// entry in [½, 1) by powers of two, which costs no accuracy; Q orders the
// columns for little fill; P is chosen by pivoting.
//
// Source: J.R. Gilbert, T. Peierls, Sparse partial pivoting in time
// proportional to arithmetic operations, SIAM J. Sci. Stat. Comput. 9 (1988);
// T.A. Davis, Direct Methods for Sparse Linear Systems (2006), chapters 3 and 6.
// Entries that are zero in number are left out of the factors, since patterns
// hold every dependency that is only assumed.
type LU struct {
	n       int
	order   []int     // column k of the factors is column order[k] of the matrix
	scale   []float64 // R, by row
	pivoted []int     // place of each row among the pivots; -1 = not yet
	// Columns of L below the diagonal, which is 1, and of U above it. While
	// factoring, lRow holds rows of the matrix, afterwards places.
	lStart, lRow []int
	lVal         []float64
	uStart, uRow []int
	uVal         []float64
	diagonal     []float64 // of U

	x, largest          []float64 // the column in work, and the largest update of each entry
	reached             []int     // reached[top:] are its nonzero rows in topological order
	path, next          []int     // of the search for them
	mark                []int     // factored column in which a row was reached last
	forFactor, forSolve int
}

// NewLU orders the columns of a for little fill, and takes storage for the
// factors. Only the pattern of a is read.
func NewLU(a *Matrix) *LU {
	n := a.N
	order, fill := minimumDegree(a)
	return &LU{
		n: n, order: order,
		scale: make([]float64, n), pivoted: make([]int, n), diagonal: make([]float64, n),
		lStart: make([]int, n+1), lRow: make([]int, 0, fill), lVal: make([]float64, 0, fill),
		uStart: make([]int, n+1), uRow: make([]int, 0, fill), uVal: make([]float64, 0, fill),
		x: make([]float64, n), largest: make([]float64, n),
		reached: make([]int, n), path: make([]int, n), next: make([]int, n), mark: make([]int, n),
	}
}

// Archive carries the factors of a call of factor without an error. The pattern
// of the matrix fixes the rest.
func (f *LU) Archive(a Archive) {
	Carry(a, f.scale, f.pivoted, f.diagonal, f.lStart)
	a.IntList(&f.lRow)
	a.FloatList(&f.lVal)
	a.Ints(f.uStart)
	a.IntList(&f.uRow)
	a.FloatList(&f.uVal)
	if a.Reading() && a.Err() == nil && !f.whole() {
		a.Fail(errors.New("the saved factors of an interface Jacobian are none"))
	}
}

// whole reports whether solve can do with the factors.
func (f *LU) whole() bool {
	inside := func(i int) bool { return i >= 0 && i < f.n }
	column := func(start, row []int, val []float64) bool {
		ok := len(row) == len(val) && start[0] == 0 && start[f.n] == len(row) && slices.IsSorted(start)
		for _, i := range row {
			ok = ok && inside(i)
		}
		return ok
	}
	ok := column(f.lStart, f.lRow, f.lVal) && column(f.uStart, f.uRow, f.uVal)
	for _, i := range f.pivoted {
		ok = ok && inside(i)
	}
	return ok
}

// Factor factors a, of the pattern given to NewLU. The work is
// proportional to the operations on nonzero entries. An *EntryError says which
// column is a combination of others to working precision (ErrSingular), or
// holds or leads to something other than a finite number (ErrNotFinite); the
// factors are then of no use.
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

// equilibrate finds the scales of the rows, and refuses what is not finite.
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

// reach puts the rows in which L⁻¹ times the column is not zero into
// f.reached[top:], each one before those that it updates: the nodes met by a
// depth-first search from the nonzeros of the column through the columns of L.
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

// eliminate solves L x = column in f.x, and stores the column of U.
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

// pivot chooses the row of the pivot among the rows reached.
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
	if len(b) != f.n {
		panic(fmt.Sprintf("algorithms: solve with %d right sides for %d unknowns", len(b), f.n))
	}
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

// N returns the number of unknowns.
func (f *LU) N() int { return f.n }

// Operations returns the multiplications, divisions and additions of the last
// factor and of the last solve.
func (f *LU) Operations() (factor, solve int) { return f.forFactor, f.forSolve }

// minimumDegree orders the unknowns so that elimination on the diagonal of
// A + Aᵀ fills in little: always one with the fewest neighbours left, by an
// upper bound of their number. fill is the number of entries below the diagonal
// of the factor, unless rows are dense. Ties go to the one whose degree changed
// last, at first to the smallest index.
//
// Source: P.R. Amestoy, T.A. Davis, I.S. Duff, An approximate minimum degree
// ordering algorithm, SIAM J. Matrix Anal. Appl. 17 (1996), algorithm 2 with
// aggressive absorption and without supervariables: the graph is a quotient
// graph, where an eliminated node is an element, which stands for the clique of
// its members. Rows with more than 10√n neighbours are left out and come last,
// as in the authors' later code.
func minimumDegree(a *Matrix) (order []int, fill int) {
	n := a.N
	g := newQuotientGraph(a)
	order = make([]int, 0, n)
	queue := newDegreeQueue(n)
	dense := max(16, int(10*math.Sqrt(float64(n))))
	var last []int
	gone := make([]bool, n) // eliminated, or left out
	for i := range n {
		if len(g.variables[i]) > dense {
			gone[i] = true
			last = append(last, i)
		}
	}
	for i := n - 1; i >= 0; i-- {
		if gone[i] {
			continue
		}
		kept := g.variables[i][:0]
		for _, v := range g.variables[i] {
			if !gone[v] {
				kept = append(kept, v)
			}
		}
		g.keepRight(i, kept)
		queue.insert(i, len(kept))
	}
	absorbed := make([]bool, n)
	in := make([]int, n) // 1 + the element in which a variable was seen last
	outside := make([]int, n)
	seen := make([]int, n) // 1 + the element for which outside was counted
	for left := n - len(last); left > 0; left-- {
		p := queue.pop()
		order = append(order, p)
		gone[p] = true
		// The members of the new element: the neighbours of p.
		start := len(g.pool)
		in[p] = p + 1
		for _, v := range g.variables[p] {
			in[v] = p + 1
			g.pool = append(g.pool, v)
		}
		for _, e := range g.elements[p] {
			if absorbed[e] {
				continue
			}
			for _, v := range g.members[e] {
				if in[v] != p+1 {
					in[v] = p + 1
					g.pool = append(g.pool, v)
				}
			}
			absorbed[e] = true
		}
		members := g.pool[start:len(g.pool):len(g.pool)]
		g.members[p] = members
		fill += len(members)
		// outside[e] becomes the number of members of e that p does not have.
		for _, i := range members {
			for _, e := range g.elements[i] {
				if absorbed[e] {
					continue
				}
				if seen[e] != p+1 {
					seen[e], outside[e] = p+1, len(g.members[e])
				}
				outside[e]--
			}
		}
		for _, i := range members {
			degree := len(members) - 1
			elements := g.elements[i][:0]
			for _, e := range g.elements[i] {
				if !absorbed[e] && outside[e] == 0 {
					absorbed[e] = true
				}
				if !absorbed[e] {
					elements = append(elements, e)
					degree += outside[e]
				}
			}
			kept := g.variables[i][:0]
			for _, v := range g.variables[i] {
				if in[v] != p+1 {
					kept = append(kept, v)
				}
			}
			g.keepRight(i, kept)
			degree += len(kept)
			// The new element takes the place of p or of one absorbed.
			g.elements[i] = append(elements, p)
			queue.remove(i)
			queue.insert(i, min(degree, queue.degree[i]+len(members)-1, left-2))
		}
	}
	return append(order, last...), fill
}

// quotientGraph is the graph of a partly eliminated matrix. Variable i is
// adjacent to variables[i] and to the members of elements[i]. Both lists share
// the room that the row had at first: elements from the left, variables at the
// right end.
type quotientGraph struct {
	variables, elements [][]int
	members             [][]int // of an element
	pool                []int   // all members
}

// newQuotientGraph returns the graph of A + Aᵀ without the diagonal.
func newQuotientGraph(a *Matrix) *quotientGraph {
	n := a.N
	g := &quotientGraph{variables: make([][]int, n), elements: make([][]int, n), members: make([][]int, n)}
	at := make([]int, n+1)
	for j := range n {
		for _, i := range a.Row[a.ColStart[j]:a.ColStart[j+1]] {
			if i != j {
				at[i+1]++
				at[j+1]++
			}
		}
	}
	for i := range n {
		at[i+1] += at[i]
	}
	both := make([]int, at[n]) // an entry and its mirror image are in it twice
	filled := make([]int, n)
	put := func(i, j int) {
		both[at[i]+filled[i]] = j
		filled[i]++
	}
	for j := range n {
		for _, i := range a.Row[a.ColStart[j]:a.ColStart[j+1]] {
			if i != j {
				put(i, j)
				put(j, i)
			}
		}
	}
	seen := make([]int, n)
	for i := range n {
		room := both[at[i]:at[i+1]:at[i+1]]
		kept := room[:0]
		for _, j := range room {
			if seen[j] != i+1 {
				seen[j] = i + 1
				kept = append(kept, j)
			}
		}
		room = room[:len(kept):len(kept)]
		g.variables[i], g.elements[i] = room, room[:0]
	}
	return g
}

// keepRight keeps of the variables of i the part kept, which starts where they
// do, at the right end of the room.
func (g *quotientGraph) keepRight(i int, kept []int) {
	all := g.variables[i]
	right := all[len(all)-len(kept):]
	copy(right, kept)
	g.variables[i] = right
}

// degreeQueue holds nodes by degree: for each degree a list, linked both ways;
// -1 ends it.
type degreeQueue struct {
	head          []int // by degree
	before, after []int // by node
	degree        []int // by node
	least         int   // no node has a smaller degree
}

func newDegreeQueue(n int) *degreeQueue {
	q := &degreeQueue{head: make([]int, n), before: make([]int, n), after: make([]int, n), degree: make([]int, n)}
	for d := range q.head {
		q.head[d] = -1
	}
	return q
}

func (q *degreeQueue) insert(i, degree int) {
	first := q.head[degree]
	q.degree[i], q.before[i], q.after[i], q.head[degree] = degree, -1, first, i
	if first >= 0 {
		q.before[first] = i
	}
	q.least = min(q.least, degree)
}

func (q *degreeQueue) remove(i int) {
	before, after := q.before[i], q.after[i]
	if before < 0 {
		q.head[q.degree[i]] = after
	} else {
		q.after[before] = after
	}
	if after >= 0 {
		q.before[after] = before
	}
}

// pop takes the first node of the least degree. There must be one.
func (q *degreeQueue) pop() int {
	for q.head[q.least] < 0 {
		q.least++
	}
	i := q.head[q.least]
	q.remove(i)
	return i
}
