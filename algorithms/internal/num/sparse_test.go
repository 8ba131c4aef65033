package num

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// newSparse returns the matrix with value(i, j) where has(i, j), and a diagonal.
func newSparse(n int, has func(i, j int) bool, value func(i, j int) float64) *Matrix {
	a := &Matrix{N: n, ColStart: []int{0}}
	for j := range n {
		for i := range n {
			if i == j || has(i, j) {
				a.Row, a.Val = append(a.Row, i), append(a.Val, value(i, j))
			}
		}
		a.ColStart = append(a.ColStart, len(a.Row))
	}
	return a
}

// matrixOf is a matrix without zeros in its pattern.
func matrixOf(rows ...[]float64) *Matrix {
	return newSparse(len(rows), func(int, int) bool { return true }, func(i, j int) float64 { return rows[i][j] })
}

// neighbours is the pattern of a tridiagonal matrix.
func neighbours(i, j int) bool { return i == j+1 || j == i+1 }

func factored(t testing.TB, a *Matrix) *LU {
	t.Helper()
	f := NewLU(a)
	if err := f.Factor(a); err != nil {
		t.Fatal(err)
	}
	return f
}

// denseOf returns the full form of a.
func denseOf(a *Matrix) *mat.Dense {
	d := mat.NewDense(a.N, a.N, nil)
	for j := range a.N {
		for p := a.ColStart[j]; p < a.ColStart[j+1]; p++ {
			d.Set(a.Row[p], j, a.Val[p])
		}
	}
	return d
}

func randomSparse(rng *rand.Rand, n int, density float64) *Matrix {
	return newSparse(n, func(int, int) bool { return rng.Float64() < density }, func(int, int) float64 { return rng.NormFloat64() })
}

func randomVector(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// The factors solve regular systems as accurately as the condition of the matrix allows.
func TestSparseLUAgainstDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rowSize := make([]float64, 150)
	for i := range rowSize {
		rowSize[i] = math.Pow(10, float64(rng.IntN(25)-12))
	}
	// Values on the diagonal, and in row i off it.
	kinds := []struct {
		name     string
		diagonal func(i int) float64
		off      func(i int) float64
	}{
		{"dominant", func(int) float64 { return 10 + rng.Float64() }, nil},
		{"random", func(int) float64 { return rng.NormFloat64() }, nil},
		{"needs pivots", func(int) float64 { return 0 }, nil},
		{"tiny pivots", func(int) float64 { return 1e-14 * rng.NormFloat64() }, nil},
		{"identity minus small", func(int) float64 { return 1 }, func(int) float64 { return 1e-3 * rng.NormFloat64() }},
		{"bad rows", func(i int) float64 { return rowSize[i] * rng.NormFloat64() }, func(i int) float64 { return rowSize[i] * rng.NormFloat64() }},
		{"zeros in the pattern", func(int) float64 { return 2 }, func(int) float64 { return rng.NormFloat64() * float64(rng.IntN(2)) }},
	}
	tried := 0
	for _, kind := range kinds {
		for _, n := range []int{1, 2, 3, 5, 17, 60, 150} {
			for _, density := range []float64{1.5 / float64(n), 4 / float64(n), 0.5, 1} {
				a := newSparse(n, func(int, int) bool { return rng.Float64() < density }, func(i, j int) float64 {
					switch {
					case i == j:
						return kind.diagonal(i)
					case kind.off != nil:
						return kind.off(i)
					}
					return rng.NormFloat64()
				})
				// Rows scaled, as the condition of the task is independent of them.
				full := denseOf(a)
				for i := range n {
					size := mat.Norm(full.RowView(i), math.Inf(1))
					for j := range n {
						if size > 0 {
							full.Set(i, j, full.At(i, j)/size)
						}
					}
				}
				var reference mat.LU
				reference.Factorize(full)
				condition := reference.Cond()
				f := NewLU(a)
				err := f.Factor(a)
				if condition > 1e10 {
					continue // judged in TestSparseLUSingular
				}
				label := fmt.Sprintf("%s, n = %d, density %.2g, condition %.2g", kind.name, n, density, condition)
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				tried++
				want := randomVector(rng, n)
				b := mat.NewVecDense(n, nil)
				b.MulVec(denseOf(a), mat.NewVecDense(n, want))
				got := slices.Clone(b.RawVector().Data)
				f.Solve(got)
				size := mat.Norm(mat.NewVecDense(n, want), math.Inf(1))
				for i := range got {
					if d := math.Abs(got[i] - want[i]); !(d <= 1e-14*float64(n)*condition*size) {
						t.Fatalf("%s: x[%d] = %g, want %g", label, i, got[i], want[i])
					}
				}
				// Storage is used again without traces of what was in it.
				again := slices.Clone(b.RawVector().Data)
				if err := f.Factor(a); err != nil {
					t.Fatal(err)
				}
				f.Solve(again)
				if !slices.Equal(got, again) {
					t.Fatalf("%s: a second factorisation gives other bits", label)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d matrices are regular", tried)
	}
}

func TestSparseLUSingular(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	full := func(n int) *Matrix { return randomSparse(rng, n, 1) }
	at := func(a *Matrix, i, j int) *float64 {
		p, _ := slices.BinarySearch(a.Row[a.ColStart[j]:a.ColStart[j+1]], i)
		return &a.Val[a.ColStart[j]+p]
	}
	check := func(label string, a *Matrix, want error, column int) {
		t.Helper()
		err := NewLU(a).Factor(a)
		var entry *EntryError
		if !errors.Is(err, want) || !errors.As(err, &entry) {
			t.Errorf("%s: error %v, want %v", label, err, want)
		} else if column >= 0 && entry.Index != column {
			t.Errorf("%s: column %d, want %d", label, entry.Index, column)
		}
	}
	for _, n := range []int{1, 2, 3, 10, 60} {
		a := full(n)
		zero := rng.IntN(n)
		for i := range n {
			*at(a, i, zero) = 0
		}
		check(fmt.Sprintf("zero column, n = %d", n), a, ErrSingular, zero)

		a = full(n)
		for j := range n {
			*at(a, zero, j) = 0
		}
		check(fmt.Sprintf("zero row, n = %d", n), a, ErrSingular, -1)

		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			a = full(n)
			*at(a, rng.IntN(n), zero) = bad
			check(fmt.Sprintf("%g, n = %d", bad, n), a, ErrNotFinite, zero)
		}
		if n < 3 {
			continue
		}
		// Rank n−1 up to rounding, and many times over.
		for range 200 {
			a = full(n)
			c := randomVector(rng, n)
			for i := range n {
				sum := 0.0
				for j := 1; j < n; j++ {
					sum += c[j] * *at(a, i, j)
				}
				*at(a, i, 0) = sum
			}
			check(fmt.Sprintf("dependent columns, n = %d", n), a, ErrSingular, -1)
		}
	}
	// Two outputs that prescribe each other with gain 1: any value solves it.
	check("gain 1", matrixOf([]float64{1, -1}, []float64{-1, 1}), ErrSingular, -1)
	for label, a := range map[string]*Matrix{
		"ill scaled, but triangular": newSparse(3, func(i, j int) bool { return i < j }, func(i, j int) float64 { return []float64{1e-17, 1e3, 1}[(2*i+j)%3] }),
		"pivots small beside their neighbours, without " +
			"cancellation": matrixOf([]float64{1e-300, 1, 1}, []float64{1, 1e-300, 1e-300}, []float64{1, 1, 1e-300}),
		"factors of a small ratio": matrixOf([]float64{1, 1e-5}, []float64{1, 1}),
	} {
		if err := NewLU(a).Factor(a); err != nil {
			t.Errorf("%s: %v", label, err)
		}
	}
}

// Pivots are on the diagonal for moderate ratios, which limits the fill, and elsewhere if accuracy
// requires it. Rows are compared after scaling.
func TestSparseLUPivots(t *testing.T) {
	for _, test := range []struct {
		off      float64
		diagonal bool
	}{{0.5, true}, {5, true}, {20, false}} {
		a := newSparse(40, neighbours, func(i, j int) float64 {
			if i == j {
				return 1
			}
			return map[bool]float64{true: test.off, false: 1e-3}[i > j]
		})
		// Without scaling: all rows have the same largest entry.
		a.Val[a.ColStart[1]] = max(test.off, 1)
		f := factored(t, a)
		moved := 0
		for k, column := range f.order {
			if f.pivoted[column] != k {
				moved++
			}
		}
		if (moved == 0) != test.diagonal {
			t.Errorf("off the diagonal %g: %d of 40 pivots off the diagonal", test.off, moved)
		}
	}
	// 10 x + 1e17 y = 1e17, x + y = 2: x = y = 1. Pivoting on the 10 gives x = 0.
	a := matrixOf([]float64{10, 1e17}, []float64{1, 1})
	f := NewLU(a)
	f.order = []int{0, 1}
	if err := f.Factor(a); err != nil {
		t.Fatal(err)
	}
	x := []float64{1e17, 2}
	f.Solve(x)
	if math.Abs(x[0]-1) > 1e-15 || math.Abs(x[1]-1) > 1e-15 {
		t.Errorf("badly scaled row: %v, want 1, 1", x)
	}
}

// Zeros in the pattern need no storage in the factors.
func TestSparseLULeavesZerosOut(t *testing.T) {
	const n = 60
	a := newSparse(n, func(int, int) bool { return true }, func(i, j int) float64 {
		switch {
		case i == j:
			return 2
		case i == j+1 || j == i+1:
			return 0.5
		}
		return 0
	})
	f := factored(t, a)
	if entries := len(f.lRow) + len(f.uRow); entries > 4*n {
		t.Errorf("%d entries off the diagonal of the factors of a tridiagonal matrix of %d rows", entries, n)
	}
}

// Factors that overflow are refused. The entries of the last column double from row to row.
func TestSparseLUOverflow(t *testing.T) {
	const n = 1100
	a := newSparse(n, func(i, j int) bool { return i < n-1 && (i > j || j == n-1) }, func(i, j int) float64 {
		if i > j {
			return -1
		}
		return 1
	})
	f := NewLU(a)
	for k := range n {
		f.order[k] = k
	}
	var e *EntryError
	if err := f.Factor(a); !errors.Is(err, ErrNotFinite) || !errors.As(err, &e) || e.Index != n-1 {
		t.Errorf("error %v, want that column %d is not finite", err, n-1)
	}
}

// chainMatrix returns the Jacobian of a chain of blocks with two unknowns each, which
// depend on both neighbours. place numbers the unknowns; nil = along the chain.
func chainMatrix(blocks int, place []int) *Matrix {
	rng := rand.New(rand.NewPCG(7, 0))
	block := func(i int) int {
		if place != nil {
			i = place[i]
		}
		return i / 2
	}
	return newSparse(2*blocks, func(i, j int) bool { return max(block(i)-block(j), block(j)-block(i)) <= 1 }, func(i, j int) float64 {
		if i == j {
			return 1
		}
		return 0.3 * rng.NormFloat64()
	})
}

// Operations and storage of a chain are proportional to its length for any numbering.
func TestChainIsLinear(t *testing.T) {
	for _, numbered := range []string{"along", "at random"} {
		last, lastSolve, lastFill := 0.0, 0.0, 0.0
		for _, blocks := range []int{300, 600, 1200, 2400} {
			var place []int
			if numbered == "at random" {
				place = rand.New(rand.NewPCG(uint64(blocks), 1)).Perm(2 * blocks)
			}
			a := chainMatrix(blocks, place)
			f := factored(t, a)
			f.Solve(make([]float64, a.N))
			factor, solve := f.Operations()
			each, eachSolve := float64(factor)/float64(blocks), float64(solve)/float64(blocks)
			fill := float64(len(f.lRow)+len(f.uRow)) / float64(blocks)
			if each > 200 || eachSolve > 60 {
				t.Errorf("%s, %d blocks: %.1f operations per block to factor, %.1f to solve", numbered, blocks, each, eachSolve)
			}
			if last > 0 && (math.Abs(each/last-1) > 0.02 || math.Abs(eachSolve/lastSolve-1) > 0.02 || math.Abs(fill/lastFill-1) > 0.02) {
				t.Errorf("%s, %d blocks: %.2f, %.2f operations and %.2f entries per block; %.2f, %.2f and %.2f "+
					"with half of them",
					numbered, blocks, each, eachSolve, fill, last, lastSolve, lastFill)
			}
			last, lastSolve, lastFill = each, eachSolve, fill
		}
	}
}

// A hub that everything depends on comes last, and costs one full row and column.
func TestHubComesLast(t *testing.T) {
	const n, hub = 1000, 37
	f := factored(t, newSparse(n, func(i, j int) bool { return i == hub || j == hub }, func(i, j int) float64 {
		if i == j {
			return 2
		}
		return 1.0 / n
	}))
	if entries := len(f.lRow) + len(f.uRow); !slices.Contains(f.order[n-2:], hub) || entries != 2*(n-1) {
		t.Errorf("the hub is eliminated at place %d of %d, with %d entries off the diagonal of the factors", slices.Index(f.order, hub), n, entries)
	}
}

// The order is a permutation, reproducible, and has the smallest fill if that is known.
func TestMinimumDegree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, test := range []struct {
		name string
		a    *Matrix
		fill int // below the diagonal; -1 = any
	}{
		{"empty", &Matrix{ColStart: []int{0}}, 0},
		{"one", newSparse(1, nil, func(int, int) float64 { return 1 }), 0},
		{"path", newSparse(50, neighbours, func(int, int) float64 { return 1 }), 49},
		{"path given by half", newSparse(50, func(i, j int) bool { return i == j+1 }, func(int, int) float64 { return 1 }), 49},
		{"ring", newSparse(50, func(i, j int) bool { return (i+1)%50 == j }, func(int, int) float64 { return 1 }), 97},
		{"tree", newSparse(63, func(i, j int) bool { return (i-1)/2 == j && i > 0 }, func(int, int) float64 { return 1 }), 62},
		{"full", newSparse(30, func(int, int) bool { return true }, func(int, int) float64 { return 1 }), 435},
		{"random", randomSparse(rng, 200, 0.02), -1},
		{"shuffled chain", chainMatrix(100, rng.Perm(200)), -1},
	} {
		order, fill := minimumDegree(test.a)
		sorted := slices.Clone(order)
		slices.Sort(sorted)
		for i, v := range sorted {
			if i != v {
				t.Fatalf("%s: %v is no permutation", test.name, order)
			}
		}
		if len(order) != test.a.N {
			t.Errorf("%s: %d of %d ordered", test.name, len(order), test.a.N)
		}
		if test.fill >= 0 && fill != test.fill {
			t.Errorf("%s: %d entries, want %d", test.name, fill, test.fill)
		}
		if again, _ := minimumDegree(test.a); !slices.Equal(order, again) {
			t.Errorf("%s: two calls order differently", test.name)
		}
		if want := symbolicFill(test.a, order); fill != want {
			t.Errorf("%s: %d entries reported, the elimination game gives %d", test.name, fill, want)
		}
	}
}

// symbolicFill plays the elimination game on the graph of A + Aᵀ.
func symbolicFill(a *Matrix, order []int) int {
	adjacent := make([]map[int]bool, a.N)
	for i := range adjacent {
		adjacent[i] = map[int]bool{}
	}
	for j := range a.N {
		for _, i := range a.Row[a.ColStart[j]:a.ColStart[j+1]] {
			if i != j {
				adjacent[i][j], adjacent[j][i] = true, true
			}
		}
	}
	fill := 0
	for _, p := range order {
		fill += len(adjacent[p])
		for i := range adjacent[p] {
			for j := range adjacent[p] {
				if i != j {
					adjacent[i][j] = true
				}
			}
			delete(adjacent[i], p)
		}
	}
	return fill
}

// FuzzSparseLU checks that Factor either solves the system or returns an error with a column.
func FuzzSparseLU(f *testing.F) {
	f.Add([]byte{4, 0x13, 0x80, 0x40, 0x20, 0xff, 0x01}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) < 2 {
			return
		}
		n := int(data[0])%12 + 1
		next := 0
		take := func() int {
			next++
			return int(data[1+next%(len(data)-1)]) + int(seed>>(uint(next)%57))&3
		}
		a := newSparse(n, func(int, int) bool { return take()%3 == 0 }, func(int, int) float64 {
			switch b := take(); {
			case b%16 == 0:
				return 0
			case b == 251:
				return math.Inf(1)
			case b == 253:
				return 1e20
			case b == 254:
				return 1e-20
			default:
				return float64(b%15) - 7
			}
		})
		lu := NewLU(a)
		if err := lu.Factor(a); err != nil {
			var e *EntryError
			if !errors.As(err, &e) || e.Index < 0 || e.Index >= n {
				t.Fatal(err)
			}
			return
		}
		b := make([]float64, n)
		for i := range b {
			b[i] = float64(i%3 - 1)
		}
		x := slices.Clone(b)
		lu.Solve(x)
		got, largest, size := make([]float64, n), make([]float64, n), 0.0
		for j := range n {
			size = max(size, math.Abs(x[j]))
			for p := a.ColStart[j]; p < a.ColStart[j+1]; p++ {
				got[a.Row[p]] += a.Val[p] * x[j]
				largest[a.Row[p]] = max(largest[a.Row[p]], math.Abs(a.Val[p]))
			}
		}
		// The backward error, row by row.
		growth := math.Pow(1+1/pivotPreference, float64(n))
		for i := range b {
			bound := 1e-15 * growth * (1 + largest[i]*size)
			if d := math.Abs(got[i] - b[i]); d > bound {
				t.Fatalf("residual %g in row %d of %v %v: x = %v", d, i, a.Row, a.Val, x)
			}
		}
	})
}
