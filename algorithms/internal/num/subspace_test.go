package num

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// sampledSystem is a stable and observable discrete-time linear system.
type sampledSystem struct {
	a, b, c, d *mat.Dense
	bias       []float64
}

func randomSystem(r *rand.Rand, n, nq, ny int) sampledSystem {
	dense := func(rows, columns int, size float64) *mat.Dense {
		if rows == 0 {
			return &mat.Dense{}
		}
		m := mat.NewDense(rows, columns, nil)
		for i := range rows {
			for j := range columns {
				m.Set(i, j, size*r.NormFloat64())
			}
		}
		return m
	}
	s := sampledSystem{a: dense(n, n, 0.1), b: dense(n, nq, 1), c: mat.NewDense(ny, max(n, 1), nil), d: dense(ny, nq, 0.5), bias: make([]float64, ny)}
	for i := range n {
		s.a.Set(i, i, s.a.At(i, i)+0.9-0.4*float64(i))
		for k := range ny {
			s.c.Set(k, i, r.NormFloat64())
		}
	}
	for k := range ny {
		s.bias[k] = 3 * r.NormFloat64()
	}
	return s
}

// fill runs the system with random inputs until the window is full, and returns the regressors and
// outputs of the next step.
func (s sampledSystem) fill(r *rand.Rand, w *SubspaceWindow, noise float64, scales []float64) (phi, y []float64) {
	n, ny := 0, w.ny
	if !s.a.IsEmpty() {
		n, _ = s.a.Dims()
	}
	x := mat.NewVecDense(max(n, 1), nil)
	lags := MaxStates
	phi = make([]float64, 1+w.nq+lags*(ny+w.nq))
	var past [][]float64 // y, then q, newest first
	for step := range w.size + 1 {
		q := mat.NewVecDense(w.nq, nil)
		for i := range w.nq {
			q.SetVec(i, r.NormFloat64())
		}
		var out, t, next mat.VecDense
		out.MulVec(s.d, q)
		if n > 0 {
			t.MulVec(s.c, x)
			out.AddVec(&out, &t)
			next.MulVec(s.a, x)
			t.Reset()
			t.MulVec(s.b, q)
			next.AddVec(&next, &t)
			x.CopyVec(&next)
		}
		y = make([]float64, ny)
		for k := range y {
			y[k] = out.AtVec(k) + s.bias[k] + noise*r.NormFloat64()
		}
		scaled := make([]float64, w.nq)
		for i := range scaled {
			scaled[i] = q.AtVec(i) * scales[i]
		}
		if step < w.size {
			w.Add(scaled, y)
			past = append([][]float64{append(append([]float64{}, y...), scaled...)}, past...)
			continue
		}
		phi[0] = 1
		at := 1 + copy(phi[1:], scaled)
		for j := range lags {
			at += copy(phi[at:], past[j])
		}
	}
	return phi, y
}

// From data of a linear system, the subspace method finds its order, its response to the current
// inputs and predictions, to rounding or, with noise, to the noise level.
func TestSubspace(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	for _, noise := range []float64{0, 1e-3} {
		for n := range MaxStates + 1 {
			for _, size := range [][2]int{{1, 1}, {2, 1}, {2, 3}} {
				nq, ny := size[0], size[1]
				name := fmt.Sprintf("noise %g, %d states, %d inputs, %d outputs", noise, n, nq, ny)
				s := randomSystem(r, n, nq, ny)
				w := NewSubspaceWindow(nq, ny)
				scales := []float64{1e6, 1e-3}[:nq]
				phi, y := s.fill(r, w, noise, scales)
				theta, sigma := make([]float64, len(phi)*ny), make([]float64, nq*ny)
				if why := w.Identify(MaxStates, theta, sigma); why != "" {
					t.Errorf("%s: %s", name, why)
					continue
				}
				// Modes that die out at once drown in noise.
				if noise == 0 && w.states != n {
					t.Errorf("%s: %d states from %.2g", name, w.states, w.singular)
				}
				tolerance := max(1e-9, 20*noise)
				for k := range ny {
					v := 0.0
					for i, p := range phi {
						v += theta[i*ny+k] * p
					}
					if !(math.Abs(v-y[k]) <= tolerance*(1+math.Abs(y[k]))) {
						t.Errorf("%s: prediction %g of y%d = %g", name, v, k, y[k])
					}
					for j := range nq {
						got, want := theta[(1+j)*ny+k]*scales[j], s.d.At(k, j)
						if !(math.Abs(got-want) <= tolerance) {
							t.Errorf("%s: response of y%d to q%d is %g, want %g", name, k, j, got, want)
						}
						if off := math.Abs(got - want); noise > 0 && off > 6*sigma[j*ny+k]*scales[j] {
							t.Errorf("%s: response off by %g, standard error %g", name, off, sigma[j*ny+k]*scales[j])
						}
					}
				}
			}
		}
	}
}

// Constant inputs and values that are not finite identify nothing.
func TestSubspaceRefusals(t *testing.T) {
	w := NewSubspaceWindow(1, 1)
	theta, sigma := make([]float64, 1+1+MaxStates*2), make([]float64, 1)
	for k := range w.size {
		w.Add([]float64{2}, []float64{math.Sin(0.1 * float64(k))})
	}
	if why := w.Identify(MaxStates, theta, sigma); why != "" || !math.IsInf(sigma[0], 1) {
		t.Errorf("a constant input: %q, standard error %g", why, sigma[0])
	}
	if w.Due() {
		t.Error("it tries again at once")
	}
	w.Add([]float64{1}, []float64{math.NaN()})
	if why := w.Identify(MaxStates, theta, sigma); why != "its inputs and outputs are not finite" {
		t.Errorf("NaN: %q", why)
	}
}
