package linear

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The logarithm inverts the exponential, also of defective and stiff matrices. A matrix without a real logarithm is an
// error.
func TestLogarithm(t *testing.T) {
	for name, m := range map[string]*mat.Dense{
		"oscillation": mat.NewDense(2, 2, []float64{0, 1, -3, -0.2}),
		"integrators": mat.NewDense(3, 3, []float64{0, 1, 0, 0, 0, 1, 0, 0, 0}),
		"stiff":       mat.NewDense(3, 3, []float64{-20, 1, 4, 0, -1e-6, 1, 0.3, 0, -0.5}),
		"nothing":     mat.NewDense(2, 2, nil),
	} {
		var e mat.Dense
		e.Exp(m)
		got, err := logarithm(&e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got.Sub(got, m)
		if off := mat.Norm(got, 1); !(off <= 1e-7) {
			t.Errorf("%s: off by %g", name, off)
		}
	}
	for name, m := range map[string]*mat.Dense{
		"dead time": mat.NewDense(2, 2, []float64{0, 1, 0, 0}),
		"reversal":  mat.NewDense(2, 2, []float64{-0.5, 0, 0, 0.3}),
	} {
		if got, err := logarithm(m); err == nil {
			t.Errorf("%s: %v", name, mat.Formatted(got))
		}
	}
}

// A flow made from the response over one step equals the system over steps of other sizes with polynomial inputs: by the
// series, in pieces, and for stiff systems by the exponential.
func TestFlowSteps(t *testing.T) {
	const h, order = 0.01, 2
	for name, fast := range map[string]float64{"slow": -3, "stiff": -2000} {
		space := StateSpace{
			A: mat.NewDense(3, 3, []float64{0, 1, 0, -40, -0.5, 2, 1, 0, fast}), B: mat.NewDense(3, 2, []float64{0, 0.1, 3, 0, 0, -fast}),
			C: mat.NewDense(2, 3, []float64{1, 0, 0, 0, 0.2, 1}), D: mat.NewDense(2, 2, []float64{0, 0.3, 0, 0}),
		}
		r, err := space.Over(h, order)
		if err != nil {
			t.Fatal(err)
		}
		r.Own, r.OwnY = make([]float64, 3), make([]float64, 2) // moved by w = (0, 1, 0), v = (0.5, 0)
		pushed := StateSpace{A: space.A, B: mat.NewDense(3, 1, []float64{0, 1, 0}), C: space.C, D: mat.NewDense(2, 1, []float64{0.5, 0})}
		own, err := pushed.Over(h, 0)
		if err != nil {
			t.Fatal(err)
		}
		mat.Col(r.Own, 0, own.B[0])
		mat.Col(r.OwnY, 0, own.D[0])
		f, err := NewFlow(r, h, 2)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, H := range []float64{h / 7, 3.3 * h, 20 * h} {
			want, err := space.Over(H, order)
			if err != nil {
				t.Fatal(err)
			}
			drift, err := pushed.Over(H, 0)
			if err != nil {
				t.Fatal(err)
			}
			u := [][]float64{{0.3, -1}, {2, 0.7}, {-5, 11}} // with derivatives at the start
			x, y, factor := []float64{0, 0, 0}, make([]float64, 2), 1.0
			exact := mat.Col(nil, 0, drift.D[0])
			for m := range u {
				if m > 0 {
					factor *= H / float64(m)
				}
				Multiply(exact, want.D[m], u[m], factor)
			}
			if err := f.Step(x, y, u, H); err != nil {
				t.Fatal(name, err)
			}
			for o, v := range exact {
				if math.Abs(y[o]-v) > 1e-7*(1+math.Abs(v)) {
					t.Errorf("%s, over %g s: output %d is %.12g, and %.12g exactly", name, H, o, y[o], v)
				}
			}
			off, err := f.Off(want, H, 2)
			if err != nil || off > 1e-6 {
				t.Errorf("%s, over %g s: off by %g of itself, %v", name, H, off, err)
			}
		}
		if stiff := f.size*20*h > mostPieces; stiff != (name == "stiff") {
			t.Errorf("%s: A has the size %g, which does not tell the ways of a step apart", name, f.size)
		}
	}
}

// Eigenvalues of matrices of every size are found, including sizes 0 and 1.
func TestEigenvaluesOfEverySize(t *testing.T) {
	for n := range 6 {
		m := &mat.Dense{}
		if n > 0 {
			m = mat.NewDense(n, n, nil)
		}
		for i := range n {
			for j := i; j < n; j++ {
				m.Set(i, j, float64(1+i+10*(j-i)))
			}
		}
		values, ok := Eigenvalues(Compressed(m))
		if sum := 0.0; !ok || len(values) != n {
			t.Errorf("n = %d: %v, %t", n, values, ok)
		} else {
			for _, v := range values {
				sum += real(v)
			}
			if math.Abs(sum-float64(n*(n+1)/2)) > 1e-9 {
				t.Errorf("n = %d: %v", n, values)
			}
		}
	}
}
