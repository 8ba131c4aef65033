// Package linear has linear models of subsystems: the response of one over a step (Response), a state space found in
// measured responses (Realise) or given (StateSpace), the system in continuous time with a response (Flow), and matrix
// functions for them. It is independent of subsystems and algorithms.
package linear

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// Response is the linear map of one subsystem over one step of one size h, in deviations
// from the operating point:
//
//	x⁺ = A x + Σ_m B_m q_m,  y⁺ = C x + Σ_m D_m q_m,  u(s) = Σ_m q_m (s/h)^m, 0 ≤ s ≤ h,
//
// y⁺ being the outputs at the end of the step, so that D_m is their response to the input
// over the step, including its end. A and C are nil if there are no states.
type Response struct {
	A, C *mat.Dense
	B, D []*mat.Dense // by power m
	// Misfit is the distance of a measured response from that of the model, or from being
	// linear, relative to the largest response of each output to each input.
	Misfit float64
	Ways   []float64 // by input: its move in the measurement
	// Own and OwnY are added to x⁺ and y⁺ for the motion with held inputs (Drive), OwnMisfit is its misfit; nil = unknown.
	Own, OwnY []float64
	OwnMisfit float64
	// Whole also has the states that no input reaches; nil = there are none.
	Whole *Response
}

// States returns n.
func (r *Response) States() int {
	if r.A == nil {
		return 0
	}
	n, _ := r.A.Dims()
	return n
}

// Silent reports whether no input affects any output.
func (r *Response) Silent() bool {
	for _, d := range r.D {
		for _, v := range d.RawMatrix().Data {
			if v != 0 {
				return false
			}
		}
	}
	return r.A == nil
}

// StateSpace is a subsystem x' = A x + B u, y = C x + D u in deviations from the operating
// point; A, B, C are nil if there are no states.
type StateSpace struct{ A, B, C, D *mat.Dense }

// Over returns the exact response over a step of size h to polynomials of an order (haid (13)).
// Errors: overflow.
func (s *StateSpace) Over(h float64, order int) (*Response, error) {
	r := &Response{}
	if s.A == nil {
		for range order + 1 {
			r.D = append(r.D, s.D)
		}
		return r, nil
	}
	hold, err := num.NewHold(s.A, s.B, h, order)
	if err != nil {
		return nil, err
	}
	ny, _ := s.C.Dims()
	r.A, r.C = hold.A, new(mat.Dense)
	r.C.Mul(s.C, hold.A)
	factor := 1.0 // m!/h^m, of the coefficient in s/h to the derivative
	for m, b := range hold.B {
		if m > 0 {
			factor *= float64(m) / h
		}
		var bm mat.Dense
		bm.Scale(factor, b)
		_, nu := bm.Dims()
		dm := mat.NewDense(ny, max(nu, 1), nil)
		dm.Mul(s.C, &bm)
		dm.Add(dm, s.D)
		r.B, r.D = append(r.B, &bm), append(r.D, dm)
	}
	return r, nil
}

// Realise returns the system whose outputs at the ends of steps, after inputs over the first of them,
// are markov[j] [ny × columns], j = 0 … 2 half stride, by the eigensystem
// realisation algorithm on blocks of responses stride steps apart; nil matrices = there are no states. rounding
// [ny × columns] is the uncertainty of the entries; singular values below it, or below noise relative to the largest,
// count as 0.
//
// Source: J.-N. Juang, R. Pappa, An eigensystem realization algorithm for modal parameter
// identification and model reduction, J. Guidance 8 (1985).
func Realise(markov []*mat.Dense, rounding *mat.Dense, noise float64, stride int) (a, b, c *mat.Dense, err error) {
	ny, nu := markov[0].Dims()
	half := (len(markov) - 1) / 2 / stride
	if half < 1 {
		return nil, nil, nil, errors.New("there are too few steps to find a model [noise]")
	}
	rows, columns := sizes(markov)
	h0, h1 := mat.NewDense(half*ny, half*nu, nil), mat.NewDense(half*ny, half*nu, nil)
	put := func(h *mat.Dense, i, j int, m *mat.Dense) {
		for p := range ny {
			for q := range nu {
				if rows[p] != 0 && columns[q] != 0 { // else the entries are 0
					h.Set(i*ny+p, j*nu+q, m.At(p, q)/rows[p]/columns[q])
				}
			}
		}
	}
	for i := range half {
		for j := range half {
			at := 1 + (i+j)*stride
			put(h0, i, j, markov[at])
			put(h1, i, j, markov[at+1])
		}
	}
	if !Finite(h0.RawMatrix().Data...) {
		return nil, nil, nil, errors.New("its outputs are not finite [diverges]")
	}
	var svd mat.SVD
	if !svd.Factorize(h0, mat.SVDThin) {
		return nil, nil, nil, errors.New("its responses have no singular values")
	}
	sv := svd.Values(nil)
	worst := 0.0
	for i := range ny {
		for j := range nu {
			if rows[i] != 0 && columns[j] != 0 {
				worst = max(worst, rounding.At(i, j)/rows[i]/columns[j])
			}
		}
	}
	n := order(sv, noise, worst, half)
	if n == 0 {
		return nil, nil, nil, nil
	}
	if n == len(sv) && noise > 0 && half > 1 {
		return nil, nil, nil, fmt.Errorf("its responses over %d steps do not show the number of states: there are too many, "+
			"or there is too much noise [noise]", len(markov))
	}
	a, b, c = balanced(&svd, h1, n, ny, nu)
	for i := range n {
		for j := range ny {
			c.Set(j, i, c.At(j, i)*math.Sqrt(sv[i])*cmp.Or(rows[j], 1))
		}
		for j := range nu {
			b.Set(i, j, b.At(i, j)*math.Sqrt(sv[i])*cmp.Or(columns[j], 1))
		}
	}
	return a, b, c, nil
}

// balanced returns the realisation of order n from the singular values of the first Hankel matrix and the second, h1, with
// b and c not yet scaled.
func balanced(svd *mat.SVD, h1 mat.Matrix, n, ny, nu int) (a, b, c *mat.Dense) {
	sv := svd.Values(nil)
	var u, v, t mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	rows, columns := h1.Dims()
	un, vn := mat.DenseCopyOf(u.Slice(0, rows, 0, n)), mat.DenseCopyOf(v.Slice(0, columns, 0, n))
	a = new(mat.Dense)
	t.Mul(un.T(), h1)
	a.Mul(&t, vn)
	for i := range n {
		for j := range n {
			a.Set(i, j, a.At(i, j)/(math.Sqrt(sv[i])*math.Sqrt(sv[j])))
		}
	}
	return a, mat.DenseCopyOf(vn.Slice(0, nu, 0, n).T()), mat.DenseCopyOf(un.Slice(0, ny, 0, n))
}

// sizes returns the largest responses after the first step: of each output, and to each input relative to these.
func sizes(markov []*mat.Dense) (rows, columns []float64) {
	ny, nu := markov[0].Dims()
	rows, columns = make([]float64, ny), make([]float64, nu)
	for _, m := range markov[1:] {
		for i := range ny {
			for j := range nu {
				rows[i] = max(rows[i], math.Abs(m.At(i, j)))
			}
		}
	}
	for _, m := range markov[1:] {
		for i := range ny {
			for j := range nu {
				if rows[i] != 0 {
					columns[j] = max(columns[j], math.Abs(m.At(i, j))/rows[i])
				}
			}
		}
	}
	return rows, columns
}

// order returns the number of singular values of a Hankel matrix of half blocks that exceed noise, relative to the largest,
// and worst, the largest uncertainty of an entry.
func order(sv []float64, noise, worst float64, half int) (n int) {
	floor := max(noise*sv[0], 3*float64(half)*worst)
	for n < len(sv) && sv[n] > floor {
		n++
	}
	return n
}

// Misfit returns the largest distance of responses from those of the model found in them, at least rounding, relative to
// the largest response of each output to each input.
func Misfit(markov []*mat.Dense, rounding, a, b, c *mat.Dense) float64 {
	ny, nu := markov[0].Dims()
	largest := mat.NewDense(ny, nu, nil)
	off := mat.DenseCopyOf(rounding)
	var x, y, next mat.Dense
	if a != nil {
		x.CloneFrom(b)
	}
	for j, m := range markov {
		if j > 0 && a != nil {
			y.Mul(c, &x)
			next.Mul(a, &x)
			x.Copy(&next)
		}
		for o := range ny {
			for k := range nu {
				v := m.At(o, k)
				largest.Set(o, k, max(largest.At(o, k), math.Abs(v)))
				if j > 0 && a != nil {
					v -= y.At(o, k)
				}
				if j > 0 {
					off.Set(o, k, max(off.At(o, k), math.Abs(v)))
				}
			}
		}
	}
	// Inputs that affect an output much less than others do not count.
	worst := 0.0
	for o := range ny {
		row := 0.0
		for k := range nu {
			row = max(row, largest.At(o, k))
		}
		for k := range nu {
			if l := largest.At(o, k); l > 1e-9*row {
				worst = max(worst, off.At(o, k)/l)
			}
		}
	}
	return worst
}

// Drive sets Own and OwnY, the motion with held inputs x⁺ = A x + Own,
// y⁺ = C x + OwnY, from the outputs at the ends of steps, in deviations from the operating
// point. off is the largest error of these outputs, relative to the largest magnitude of each.
func (r *Response) Drive(motion [][]float64) (off float64) {
	ny, n := len(motion[0]), r.States()
	r.Own, r.OwnY = make([]float64, n), append([]float64(nil), motion[0]...)
	sizes := make([]float64, ny)
	for _, y := range motion {
		for o, v := range y {
			sizes[o] = max(sizes[o], math.Abs(v))
		}
	}
	if n > 0 {
		r.fitOwn(motion, sizes)
	}
	x, next := make([]float64, n), make([]float64, n)
	y := make([]float64, ny)
	for _, want := range motion {
		copy(y, r.OwnY)
		copy(next, r.Own)
		if n > 0 {
			Multiply(y, r.C, x, 1)
			Multiply(next, r.A, x, 1)
		}
		x, next = next, x
		for o, v := range want {
			if sizes[o] > 0 {
				off = max(off, math.Abs(y[o]-v)/sizes[o])
			}
		}
	}
	return off
}

// fitOwn sets Own by least squares from the outputs at the ends of steps; sizes [ny] are their magnitudes.
func (r *Response) fitOwn(motion [][]float64, sizes []float64) {
	// y_{j+1} − y_1 = C (I + A + … + A^{j−1}) Own.
	ny, n := len(sizes), r.States()
	rows := mat.NewDense((len(motion)-1)*ny, n, nil)
	right := mat.NewVecDense((len(motion)-1)*ny, nil)
	sum, power := mat.NewDense(n, n, nil), identity(n)
	var next, block mat.Dense
	for j := 1; j < len(motion); j++ {
		sum.Add(sum, power)
		next.Mul(r.A, power)
		power.Copy(&next)
		block.Mul(r.C, sum)
		for o := range ny {
			scale := cmp.Or(sizes[o], 1)
			for c := range n {
				rows.Set((j-1)*ny+o, c, block.At(o, c)/scale)
			}
			right.SetVec((j-1)*ny+o, (motion[j][o]-motion[0][o])/scale)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(rows, mat.SVDThin) {
		return
	}
	sv := svd.Values(nil)
	if rank := order(sv, 1e-12, 0, 0); rank > 0 {
		var v mat.Dense
		svd.SolveTo(&v, right, rank)
		mat.Col(r.Own, 0, &v)
	}
}

// TakeWhole sets Whole if a model that also has the states that no input reaches fits better: the motion with held inputs
// counts as the response to an additional input.
func (r *Response) TakeWhole(markov []*mat.Dense, rounding *mat.Dense, noise float64, motion [][]float64, stride int) {
	ny, nu := markov[0].Dims()
	more := make([]*mat.Dense, len(markov))
	certain := mat.NewDense(ny, nu+1, nil)
	certain.Slice(0, ny, 0, nu).(*mat.Dense).Copy(rounding)
	for j, m := range markov {
		more[j] = mat.NewDense(ny, nu+1, nil)
		more[j].Slice(0, ny, 0, nu).(*mat.Dense).Copy(m)
		for o, v := range motion[j] {
			certain.Set(o, nu, max(certain.At(o, nu), OutputRounding*math.Abs(v)))
			if j > 0 {
				v -= motion[j-1][o]
			}
			more[j].Set(o, nu, v)
		}
	}
	a, b, c, err := Realise(more, certain, noise, stride)
	if err != nil || a == nil {
		return
	}
	w := &Response{A: a, C: c, D: r.D}
	n, _ := b.Dims()
	each := nu / len(r.D)
	for power := range r.D {
		w.B = append(w.B, mat.DenseCopyOf(b.Slice(0, n, power*each, (power+1)*each)))
	}
	if w.Misfit = Misfit(more, certain, a, b, c); w.Misfit > Untrusted {
		return
	}
	if w.OwnMisfit = w.Drive(motion); w.OwnMisfit < r.OwnMisfit {
		r.Whole, r.OwnMisfit = w, w.OwnMisfit
	}
}
