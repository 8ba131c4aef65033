package num

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// bigHold returns A_d and all B_i side by side by the Taylor series of the block
// matrix in 400 bits, scaled and squared.
func bigHold(a, b [][]float64, h float64, order int) (ad, bs *mat.Dense) {
	const precision, terms, halvings = 400, 40, 60
	n, m := len(a), 0
	if n > 0 {
		m = len(b[0])
	}
	size := n + m*(order+1)
	zero := func() [][]*big.Float {
		z := make([][]*big.Float, size)
		for i := range z {
			z[i] = make([]*big.Float, size)
			for j := range z[i] {
				z[i][j] = new(big.Float).SetPrec(precision)
			}
		}
		return z
	}
	mul := func(x, y [][]*big.Float) [][]*big.Float {
		z := zero()
		t := new(big.Float).SetPrec(precision)
		for i := range size {
			for k := range size {
				if x[i][k].Sign() == 0 {
					continue
				}
				for j := range size {
					if y[k][j].Sign() != 0 {
						z[i][j].Add(z[i][j], t.Mul(x[i][k], y[k][j]))
					}
				}
			}
		}
		return z
	}
	w := zero()
	H := new(big.Float).SetPrec(precision).SetFloat64(h)
	for i := range n {
		for j := range n {
			w[i][j].SetFloat64(a[i][j])
		}
		for j := range m {
			w[i][n+j].SetFloat64(b[i][j])
		}
	}
	for i := n; i < size-m; i++ {
		w[i][i+m].SetFloat64(1)
	}
	for i := range w {
		for j := range w[i] {
			w[i][j].Mul(w[i][j], H)
			w[i][j].SetMantExp(w[i][j], -halvings)
		}
	}
	e, term := zero(), zero()
	for i := range size {
		e[i][i].SetFloat64(1)
		term[i][i].SetFloat64(1)
	}
	for k := 1; k <= terms; k++ {
		term = mul(term, w)
		for i := range term {
			for j := range term[i] {
				term[i][j].Quo(term[i][j], new(big.Float).SetInt64(int64(k)))
				e[i][j].Add(e[i][j], term[i][j])
			}
		}
	}
	for range halvings {
		e = mul(e, e)
	}
	ad, bs = mat.NewDense(n, n, nil), mat.NewDense(n, m*(order+1), nil)
	for i := range n {
		for j := range size {
			v, _ := e[i][j].Float64()
			if j < n {
				ad.Set(i, j, v)
			} else {
				bs.Set(i, j-n, v)
			}
		}
	}
	return ad, bs
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

// relative returns the largest difference of got from want, in parts of the
// largest of want (of one, if want is zero).
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
	// tolerance, if not 1e-12: an undamped oscillation of phase φ is known to
	// φ ε only; of a mass that has come to rest, the velocity to ε of what it was.
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
	{name: "no inputs", a: [][]float64{{-3, 1}, {0, -2}}, h: 0.25},
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
			if c.b == nil {
				c.b = make([][]float64, len(c.a))
			}
			d, err := NewHold(denseRows(c.a), denseRows(c.b), c.h, order)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			tolerance := max(c.tolerance, 1e-12)
			m := len(c.b[0])
			if m == 0 {
				if !d.B[order].IsEmpty() {
					t.Errorf("%s: B_%d is not empty", c.name, order)
				}
				continue
			}
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

// Closed forms, written down independently of any matrix exponential.
func TestHoldClosedForms(t *testing.T) {
	const tolerance = 1e-12
	check := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			t.Errorf("%s: %.17g, want %.17g", name, got, want)
		}
	}
	must := func(a, b [][]float64, h float64, order int) *Hold {
		t.Helper()
		d, err := NewHold(denseRows(a), denseRows(b), h, order)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, z := range []float64{-1e6, -1e3, -30, -1, -1e-3} {
		h := 0.5
		a := z / h
		d := must([][]float64{{a}}, [][]float64{{3}}, h, 2)
		check(fmt.Sprint("e^z at ", z), d.A.At(0, 0), math.Exp(z))
		b0 := math.Expm1(z) / a
		check(fmt.Sprint("B_0 at ", z), d.B[0].At(0, 0), 3*b0)
		if z <= -1 { // the closed forms cancel below
			b1 := (b0 - h) / a
			check(fmt.Sprint("B_1 at ", z), d.B[1].At(0, 0), 3*b1)
			check(fmt.Sprint("B_2 at ", z), d.B[2].At(0, 0), 3*(b1-h*h/2)/a)
		}
	}

	w, h := 7.0, 0.3
	d := must([][]float64{{0, 1}, {-w * w, 0}}, [][]float64{{0}, {1}}, h, 1)
	s, c := math.Sincos(w * h)
	check("cos", d.A.At(0, 0), c)
	check("sin/ω", d.A.At(0, 1), s/w)
	check("−ω sin", d.A.At(1, 0), -w*s)
	check("B_0 of the position", d.B[0].At(0, 0), (1-c)/(w*w))
	check("B_0 of the velocity", d.B[0].At(1, 0), s/w)
	check("B_1 of the position", d.B[1].At(0, 0), (h-s/w)/(w*w))

	d = must([][]float64{{0, 1}, {0, 0}}, [][]float64{{0}, {1}}, h, 4)
	power := 1.0
	for i, f := range []float64{1, 2, 6, 24, 120} {
		power *= h
		check(fmt.Sprintf("h^%d/%d!", i+1, i+1), d.B[i].At(1, 0), power/f)
		check(fmt.Sprintf("h^%d/%d!", i+2, i+2), d.B[i].At(0, 0), power*h/(f*float64(i+2)))
	}
}

func TestHoldWithoutStates(t *testing.T) {
	for _, b := range []mat.Matrix{nil, (*mat.Dense)(nil), &mat.Dense{}} {
		d, err := NewHold(b, b, 1e-3, 2)
		if err != nil {
			t.Fatal(err)
		}
		if !d.A.IsEmpty() || len(d.B) != 3 || !d.B[2].IsEmpty() {
			t.Errorf("matrices of a system without states: %v", d)
		}
	}
}

// A shape is 1 at the end of the step and 0 at the points before it, also where
// the newest of these is not the start of the step.
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
