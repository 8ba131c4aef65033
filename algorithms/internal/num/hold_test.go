package num

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// bigMatrix is a square matrix of numbers with 400 bits.
type bigMatrix [][]*big.Float

func newBig(size int) bigMatrix {
	m := make(bigMatrix, size)
	for i := range m {
		for range size {
			m[i] = append(m[i], new(big.Float).SetPrec(400))
		}
	}
	return m
}

func (m bigMatrix) times(by bigMatrix) bigMatrix {
	product := newBig(len(m))
	term := new(big.Float).SetPrec(400)
	for i, row := range m {
		for k, v := range row {
			for j := 0; j < len(m) && v.Sign() != 0; j++ {
				if by[k][j].Sign() != 0 {
					product[i][j].Add(product[i][j], term.Mul(v, by[k][j]))
				}
			}
		}
	}
	return product
}

// bigHold returns A_d and all B_i side by side by the Taylor series of the block
// matrix in 400 bits, scaled and squared.
func bigHold(a, b [][]float64, h float64, order int) (ad, bs *mat.Dense) {
	const terms, halvings = 40, 60
	n, m := len(a), len(b[0])
	size := n + m*(order+1)
	w, e, term := newBig(size), newBig(size), newBig(size)
	H := new(big.Float).SetPrec(400).SetFloat64(h)
	set := func(i, j int, v float64) {
		x := w[i][j].Mul(w[i][j].SetFloat64(v), H)
		x.SetMantExp(x, -halvings)
	}
	for i := range n {
		for j, v := range slices.Concat(a[i], b[i]) {
			set(i, j, v)
		}
	}
	for i := n; i < size-m; i++ {
		set(i, i+m, 1)
	}
	for i := range size {
		e[i][i].SetInt64(1)
		term[i][i].SetInt64(1)
	}
	for k := 1; k <= terms; k++ {
		term = term.times(w)
		for i, row := range term {
			for j, v := range row {
				v.Quo(v, new(big.Float).SetInt64(int64(k)))
				e[i][j].Add(e[i][j], v)
			}
		}
	}
	for range halvings {
		e = e.times(e)
	}
	all := mat.NewDense(n, size, nil)
	for i := range n {
		for j := range size {
			v, _ := e[i][j].Float64()
			all.Set(i, j, v)
		}
	}
	return mat.DenseCopyOf(all.Slice(0, n, 0, n)), mat.DenseCopyOf(all.Slice(0, n, n, size))
}

func denseRows(x [][]float64) *mat.Dense {
	if len(x) == 0 || len(x[0]) == 0 {
		return &mat.Dense{}
	}
	d := mat.NewDense(len(x), len(x[0]), nil)
	for i, row := range x {
		d.SetRow(i, row)
	}
	return d
}

// relative returns the largest difference of got and want relative to the largest entry of want, or
// to 1 if want is zero.
func relative(got, want mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(got, want)
	if !finite(d.RawMatrix().Data) {
		return math.Inf(1)
	}
	scale := mat.Max(absolute(want))
	if scale == 0 {
		scale = 1
	}
	return mat.Max(absolute(&d)) / scale
}

func absolute(x mat.Matrix) *mat.Dense {
	var d mat.Dense
	d.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, x)
	return &d
}

var holds = []struct {
	name string
	a, b [][]float64
	h    float64
	// tolerance, if not 1e-12: the rounding error of an undamped oscillation of phase φ is φ ε,
	// that of a decayed velocity is relative to its initial value.
	tolerance float64
}{
	{name: "scalar", a: [][]float64{{-3}}, b: [][]float64{{2, -5}}, h: 0.25},
	{name: "decayed scalar", a: [][]float64{{-300}}, b: [][]float64{{2}}, h: 0.25},
	{name: "tiny step", a: [][]float64{{-3}}, b: [][]float64{{2}}, h: 1e-12},
	{name: "stiff scalar", a: [][]float64{{-1e9}}, b: [][]float64{{1e9}}, h: 1e-3},
	{name: "growing", a: [][]float64{{40}}, b: [][]float64{{1}}, h: 1},
	{name: "integrator", a: [][]float64{{0}}, b: [][]float64{{1}}, h: 1e-3},
	{name: "zero", a: [][]float64{{0, 0}, {0, 0}}, b: [][]float64{{1, 2}, {3, 4}}, h: 0.1},
	{name: "nilpotent", a: [][]float64{{0, 1, 0}, {0, 0, 1}, {0, 0, 0}}, b: [][]float64{{0}, {0}, {1e3}}, h: 1e-2},
	{name: "oscillator", a: [][]float64{{0, 1}, {-1e6 / 10., -1 / 10.}}, b: [][]float64{{0}, {1 / 10.}}, h: 1e-3},
	{name: "haid II", a: [][]float64{{0, 1}, {-(1e9 + 1e7) / 10, -(3.6e5 + 2) / 10}}, b: [][]float64{{0, 0}, {1e8, 3.6e4}}, h: 3e-3, tolerance: 1e-11},
	{name: "oscillator over 1e3 radians", a: [][]float64{{0, 1}, {-1e6, 0}}, b: [][]float64{{0}, {1}}, h: 1, tolerance: 1e-11},
	{name: "slow and fast", a: [][]float64{{0, 1}, {-1e6, -1e6 - 1}}, b: [][]float64{{0}, {1e6}}, h: 1},
	{name: "slow and fast in ill-chosen units", a: [][]float64{{0, 1e-9}, {-1e15, -1e6 - 1}}, b: [][]float64{{0}, {1e15}}, h: 1},
	{name: "three time scales", a: [][]float64{{-1, 1, 0}, {0, -1e3, 1e3}, {0, 0, -1e6}}, b: [][]float64{{0}, {0}, {1e6}}, h: 1},
}

func TestHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	cases := holds
	for i := range 20 {
		n, m := 1+rng.IntN(5), 1+rng.IntN(3)
		a, b := make([][]float64, n), make([][]float64, n)
		for i := range n {
			a[i], b[i] = randomVector(rng, n), randomVector(rng, m)
		}
		cases = append(cases, cases[0])
		c := &cases[len(cases)-1]
		c.name, c.a, c.b, c.h = fmt.Sprint("random ", i), a, b, math.Exp(4*rng.NormFloat64()-2)
		c.h = min(c.h, 10)
	}
	for _, c := range cases {
		for order := range 5 {
			d, err := NewHold(denseRows(c.a), denseRows(c.b), c.h, order)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			tolerance := max(c.tolerance, 1e-12)
			m := len(c.b[0])
			ad, bs := bigHold(c.a, c.b, c.h, order)
			if e := relative(d.A, ad); e > tolerance {
				t.Errorf("%s, order %d: A_d is off by %.2g: %v, want %v", c.name, order, e, mat.Formatted(d.A), mat.Formatted(ad))
			}
			for i := range d.B {
				if e := relative(d.B[i], bs.Slice(0, len(c.a), i*m, (i+1)*m)); e > tolerance {
					t.Errorf("%s, order %d: B_%d is off by %.2g", c.name, order, i, e)
				}
			}
		}
	}
}

// A shape is 1 at the end of the step and 0 at the points before it, also if the newest of these is
// not the start of the step.
func TestShapePolynomial(t *testing.T) {
	past := []float64{0.2, 0.7, 1.1, 3}
	const H = 0.4
	for order := range 5 {
		for _, p := range [][]float64{nil, past} {
			if p == nil {
				p = []float64{0, H, 2 * H, 3 * H}
			}
			times := make([]float64, len(p))
			for i, d := range p {
				times[i] = 5 - d
			}
			full := NewShape(order, 5, H, times)
			c := full[:order+1]
			for i := range order {
				if v := polynomialAt(c, 0, -p[i]/H); math.Abs(v) > 1e-12 {
					t.Errorf("order %d: ℓ(−%v) = %v, want 0", order, p[i], v)
				}
			}
			if v := polynomialAt(c, 0, 1); math.Abs(v-1) > 1e-14 {
				t.Errorf("order %d: ℓ(H) = %v, want 1", order, v)
			}
		}
	}
}

func TestHoldRefuses(t *testing.T) {
	one := mat.NewDense(1, 1, []float64{1})
	for name, f := range map[string]func() error{
		"not square": func() error { _, err := NewHold(mat.NewDense(1, 2, nil), nil, 1, 0); return err },
		"rows of B":  func() error { _, err := NewHold(one, mat.NewDense(2, 1, nil), 1, 0); return err },
		"order":      func() error { _, err := NewHold(one, one, 1, -1); return err },
		"step":       func() error { _, err := NewHold(one, one, -1, 0); return err },
		"NaN step":   func() error { _, err := NewHold(one, one, math.NaN(), 0); return err },
		"NaN":        func() error { _, err := NewHold(mat.NewDense(1, 1, []float64{math.NaN()}), one, 1, 0); return err },
		"infinite":   func() error { _, err := NewHold(one, mat.NewDense(1, 1, []float64{math.Inf(1)}), 1, 0); return err },
		"overflow":   func() error { _, err := NewHold(one, one, 1e4, 0); return err },
		"huge": func() error {
			_, err := NewHold(mat.NewDense(2, 2, []float64{1e308, 1e308, 1e308, 1e308}), nil, 1, 0)
			return err
		},
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Systems without states or without inputs have empty matrices.
func TestHoldOfNothing(t *testing.T) {
	for _, c := range []struct{ a, b mat.Matrix }{
		{nil, nil}, {(*mat.Dense)(nil), (*mat.Dense)(nil)}, {&mat.Dense{}, &mat.Dense{}}, {mat.NewDense(1, 1, []float64{-3}), nil},
	} {
		d, err := NewHold(c.a, c.b, 0.5, 2)
		if err != nil {
			t.Fatal(err)
		}
		rows, _ := dims(c.a)
		if len(d.B) != 3 || !d.B[2].IsEmpty() || d.A.IsEmpty() != (rows == 0) || rows == 1 && !near(d.A.At(0, 0), math.Exp(-1.5), 1e-15) {
			t.Errorf("%v, %v: %v", c.a, c.b, d)
		}
	}
}
