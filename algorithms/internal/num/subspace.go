package num

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// SubspaceWindow holds the last macro steps of one subsystem and identifies a linear system from
// them by a subspace method:
//
//	x_{n+1} = A x_n + B [1, q_n],   y_{n+1} = C x_n + D [1, q_n].
//
// q are the coefficients of the inputs over a step, as in the type identified of package
// algorithms. The block Hankel matrix of inputs and outputs is factored into orthogonal and
// triangular matrices. The largest gap of the singular values of the part of the outputs that the
// inputs do not explain gives the number of states. A and C follow from the left singular vectors,
// B, D and the initial state from least squares.
//
// Source: M. Verhaegen, P. Dewilde, Subspace model identification, part 1: the
// output-error state-space model identification class of algorithms (MOESP), Int. J.
// Control 56 (1992).
type SubspaceWindow struct {
	nq, ny  int
	size    int       // capacity in steps
	inputs  []float64 // scales
	outputs []float64 // scales
	steps
}

// steps is the state of a SubspaceWindow.
type steps struct {
	rows  []float64 // ring buffer of rows [nq + ny]
	at, n int       // position of the next step, number of steps
	wait  int       // steps until the next attempt

	singular []float64 // from which the number of states was chosen
	states   int       // number of states of the last system
	residual float64   // its residual relative to the outputs
}

// MaxStates is the largest number of states that are identified.
const MaxStates = 4

// NotFinite is the reason for no model if its numbers are not finite.
const NotFinite = "the identified model is not finite"

const (
	// hankelRows is the number of block rows. It exceeds MaxStates so that some singular values
	// show the noise.
	hankelRows = 2 * MaxStates
	// negligible is the size of singular values, relative to the outputs, that are rounding.
	negligible = 1e-15
	// noiseBand is the largest ratio of singular values of noise to singular value MaxStates+1,
	// which is certainly noise.
	noiseBand = 3
	// openShare is the largest share of the regularisation in a response that the data determine.
	openShare = 0.1
	// leastGap is the smallest ratio of two singular values that determines an order.
	leastGap = 2
)

// NewSubspaceWindow returns an empty window for nq coefficients and ny outputs.
func NewSubspaceWindow(nq, ny int) *SubspaceWindow {
	size := 2*(1+hankelRows*(nq+ny)) + hankelRows
	return &SubspaceWindow{nq: nq, ny: ny, size: size, steps: steps{rows: make([]float64, size*(nq+ny))},
		inputs: make([]float64, nq), outputs: make([]float64, ny)}
}

// Reset drops all steps.
func (w *SubspaceWindow) Reset() { w.n, w.at, w.wait = 0, 0, 0 }

// Archive saves or restores the window.
func (w *SubspaceWindow) Archive(a Archive) { a.All(&w.steps) }

// Add adds a step with the coefficients q of the inputs and the outputs y at its end.
func (w *SubspaceWindow) Add(q, y []float64) {
	row := w.rows[w.at*(w.nq+w.ny):][:w.nq+w.ny]
	copy(row[copy(row, q):], y)
	w.at = (w.at + 1) % w.size
	w.n = min(w.n+1, w.size)
	w.wait = max(w.wait-1, 0)
}

// Due reports whether the window is full and has enough new steps since the last attempt.
func (w *SubspaceWindow) Due() bool { return w.n == w.size && w.wait == 0 }

// States returns the number of states of the last system.
func (w *SubspaceWindow) States() int { return w.states }

// Singular returns the singular values from which the number of states was chosen.
func (w *SubspaceWindow) Singular() []float64 { return w.singular }

// Residual returns the residual of the last system relative to the outputs.
func (w *SubspaceWindow) Residual() float64 { return w.residual }

// step returns the unscaled inputs and outputs of step k, counted from the oldest.
func (w *SubspaceWindow) step(k int) (q, y []float64) {
	row := w.rows[(w.at+k)%w.size*(w.nq+w.ny):][:w.nq+w.ny]
	return row[:w.nq], row[w.nq:]
}

// scale computes scales of inputs and outputs, powers of two; 1 if all values are 0.
func (w *SubspaceWindow) scale() {
	clear(w.inputs)
	clear(w.outputs)
	for k := range w.size {
		q, y := w.step(k)
		for i, v := range q {
			w.inputs[i] = max(w.inputs[i], math.Abs(v))
		}
		for i, v := range y {
			w.outputs[i] = max(w.outputs[i], math.Abs(v))
		}
	}
	for _, of := range [][]float64{w.inputs, w.outputs} {
		for i, v := range of {
			if of[i] = 1; v > 0 {
				of[i] = powerOfTwo(v)
			}
		}
	}
}

// Identify identifies the system and writes it to theta [regressors × ny by rows] as a difference
// equation over lags steps, with the regressors of the type identified of package algorithms. sigma
// [nq × ny] gets the standard errors of the responses to the current inputs; +Inf if the data do
// not determine them. why is the reason if there is no system.
func (w *SubspaceWindow) Identify(lags int, theta, sigma []float64) (why string) {
	w.wait = w.size / 4
	w.scale()
	a, c, why := w.dynamics()
	if why != "" {
		return why
	}
	b, d, why := w.responses(a, c, sigma)
	if why != "" {
		return why
	}
	w.predictor(lags, a, b, c, d, theta)
	if CheckFinite(theta) != nil {
		return NotFinite
	}
	return ""
}

// hankel returns the transposed block Hankel matrix: a constant, the inputs and the outputs, scaled.
func (w *SubspaceWindow) hankel() *mat.Dense {
	nu, ny := 1+hankelRows*w.nq, hankelRows*w.ny
	columns := w.size - hankelRows + 1
	h := mat.NewDense(columns, nu+ny, nil)
	for j := range columns {
		row := h.RawRowView(j)
		row[0] = 1
		for i := range hankelRows {
			q, y := w.step(j + i)
			for k, v := range q {
				row[1+i*w.nq+k] = v / w.inputs[k]
			}
			for k, v := range y {
				row[nu+i*w.ny+k] = v / w.outputs[k]
			}
		}
	}
	return h
}

// dynamics determines the number of states, A and C; both are nil if there are no states.
func (w *SubspaceWindow) dynamics() (a, c *mat.Dense, why string) {
	nu, ny := 1+hankelRows*w.nq, hankelRows*w.ny
	h := w.hankel()
	if CheckFinite(h.RawMatrix().Data) != nil {
		return nil, nil, "its inputs and outputs are not finite"
	}
	var qr mat.QR
	qr.Factorize(h)
	var r mat.Dense
	qr.RTo(&r)
	// The columns of L22 are the unexplained part of the outputs. If the inputs are dependent, it
	// includes the columns of L21 outside of their range.
	var svd mat.SVD
	if !svd.Factorize(r.Slice(0, nu, 0, nu).T(), mat.SVDFull) {
		return nil, nil, "its inputs have no singular values"
	}
	sv := svd.Values(nil)
	rank := 0
	for rank < nu && sv[rank] > independent*sv[0] {
		rank++
	}
	outputs := r.Slice(0, nu+ny, nu, nu+ny).T() // [L21, L22]
	unexplained := mat.NewDense(ny, nu-rank+ny, nil)
	if rank < nu {
		var v mat.Dense
		svd.VTo(&v)
		unexplained.Slice(0, ny, 0, nu-rank).(*mat.Dense).Mul(mat.DenseCopyOf(outputs).Slice(0, ny, 0, nu), v.Slice(0, nu, rank, nu))
	}
	unexplained.Slice(0, ny, nu-rank, nu-rank+ny).(*mat.Dense).Copy(r.Slice(nu, nu+ny, nu, nu+ny).T())
	if !svd.Factorize(unexplained, mat.SVDThin) {
		return nil, nil, "its outputs have no singular values"
	}
	w.singular = svd.Values(nil)
	n, why := chooseOrder(w.singular, mat.Norm(outputs, 2))
	if w.states = n; n == 0 || why != "" {
		return nil, nil, why
	}
	var gamma mat.Dense
	svd.UTo(&gamma)
	var shift mat.QR
	shift.Factorize(gamma.Slice(0, ny-w.ny, 0, n))
	a = mat.NewDense(n, n, nil)
	if shift.SolveTo(a, false, gamma.Slice(w.ny, ny, 0, n)) != nil {
		return nil, nil, fmt.Sprintf("its outputs do not determine the %d states that they seem to have", n)
	}
	return a, mat.DenseCopyOf(gamma.Slice(0, w.ny, 0, n)), ""
}

// chooseOrder returns the order at the largest gap of the singular values, among the gaps above
// noise only; all is the norm of the outputs.
func chooseOrder(singular []float64, all float64) (n int, why string) {
	floor := max(negligible*all, math.SmallestNonzeroFloat64)
	most := min(MaxStates, len(singular)-1)
	noise := noiseBand * max(floor, singular[most])
	before, widest := all, 0.0
	for k := range most + 1 {
		if gap := before / max(singular[k], floor); singular[k] <= noise && gap > widest {
			widest, n = gap, k
		}
		before = singular[k]
	}
	if widest < leastGap {
		return 0, "the singular values of its outputs determine no order"
	}
	return n, ""
}

// responses determines the scaled matrices B [n × (1+nq)] and D [ny × (1+nq)], whose first column
// belongs to the constant, and sigma.
func (w *SubspaceWindow) responses(a, c *mat.Dense, sigma []float64) (b, d *mat.Dense, why string) {
	n, m := w.states, 1+w.nq
	atB, atD := n, n+n*m
	fit := NewLeastSquares(atD+w.ny*m, 1)
	// x_k = power x_0 + Σ_j acc_j b_j with the columns b_j of B.
	power, acc := identityMatrix(n), make([]*mat.Dense, m)
	for j := range acc {
		acc[j] = zeroMatrix(n)
	}
	var t, ct mat.Dense
	row, input, z := make([]float64, fit.n), make([]float64, m), make([]float64, 1)
	for k := range w.size {
		q, y := w.step(k)
		input[0] = 1
		for j, v := range q {
			input[1+j] = v / w.inputs[j]
		}
		for o := range w.ny {
			clear(row)
			if n > 0 {
				ct.Mul(c.Slice(o, o+1, 0, n), power)
				copy(row, ct.RawRowView(0))
				for j := range m {
					ct.Mul(c.Slice(o, o+1, 0, n), acc[j])
					copy(row[atB+j*n:], ct.RawRowView(0))
				}
			}
			copy(row[atD+o*m:], input)
			z[0] = y[o] / w.outputs[o]
			fit.Add(row, z, 1)
		}
		if n > 0 {
			t.Mul(a, power)
			power.Copy(&t)
			for j := range m {
				t.Mul(a, acc[j])
				for i := range n {
					t.Set(i, i, t.At(i, i)+input[j])
				}
				acc[j].Copy(&t)
			}
		}
	}
	theta := w.solve(fit, atD, sigma)
	d = mat.NewDense(w.ny, m, theta[atD:])
	if n > 0 {
		b = mat.DenseCopyOf(mat.NewDense(m, n, theta[atB:atD]).T())
	}
	return b, d, ""
}

// solve solves the least squares problem of responses with a regularisation. It sets the residual
// and the standard errors sigma of the coefficients from atD on.
func (w *SubspaceWindow) solve(fit *LeastSquares, atD int, sigma []float64) (theta []float64) {
	m := 1 + w.nq
	row, z := make([]float64, fit.n), make([]float64, 1)
	// Some constants are arbitrary, since states may be shifted. The regularisation makes
	// parameters small that the data do not determine; responses must not be among them.
	freedom := max(1, fit.weight-float64(fit.n))
	for i := range fit.n {
		clear(row)
		row[i], z[0] = independent, 0
		fit.Add(row, z, 1)
	}
	theta = make([]float64, fit.n)
	fit.Solve(fit.n, theta)
	scratch := make([]float64, fit.n)
	w.residual = math.Sqrt(fit.Residual(fit.n, 0) / freedom)
	for j := range w.nq {
		for o := range w.ny {
			spread := fit.Spread(atD+o*m+1+j, fit.n, scratch)
			sigma[j*w.ny+o] = w.residual * spread * w.outputs[o] / w.inputs[j]
			if spread*independent > openShare {
				sigma[j*w.ny+o] = math.Inf(1)
			}
		}
	}
	return theta
}

// predictor writes the system to theta as a difference equation over lags steps. Its predictions
// start from the state that fits the outputs of these steps best.
func (w *SubspaceWindow) predictor(lags int, a, b, c, d *mat.Dense, theta []float64) {
	n, m := w.states, 1+w.nq
	clear(theta)
	put := func(row, o int, v float64) { theta[row*w.ny+o] += v }
	// act adds the response to the input of the step j lags ago.
	act := func(j int, g mat.Matrix, factor float64) {
		for o := range w.ny {
			for k := range m {
				v := factor * g.At(o, k) * w.outputs[o]
				switch {
				case k == 0:
					put(0, o, v)
				case j == 0:
					put(k, o, v/w.inputs[k-1])
				default:
					put(1+w.nq+(j-1)*(w.ny+w.nq)+w.ny+k-1, o, v/w.inputs[k-1])
				}
			}
		}
	}
	act(0, d, 1)
	if n == 0 {
		return
	}
	// response[i] = C A^{i−1} B, response[0] = D.
	response := []mat.Matrix{d}
	gamma := mat.NewDense(lags*w.ny, n, nil)
	ca := mat.DenseCopyOf(c)
	for i := range lags {
		gamma.Slice(i*w.ny, (i+1)*w.ny, 0, n).(*mat.Dense).Copy(ca)
		var g mat.Dense
		g.Mul(ca, b)
		response = append(response, &g)
		var next mat.Dense
		next.Mul(ca, a)
		ca = &next
	}
	gain := timesPseudoInverse(ca, gamma)
	if gain == nil {
		theta[0] = math.NaN()
		return
	}
	var acted mat.Dense
	for j := 1; j <= lags; j++ {
		act(j, response[j], 1)
		at := (lags - j) * w.ny // of the outputs j lags ago
		of := gain.Slice(0, w.ny, at, at+w.ny)
		for o := range w.ny {
			for p := range w.ny {
				put(1+w.nq+(j-1)*(w.ny+w.nq)+p, o, of.At(o, p)*w.outputs[o]/w.outputs[p])
			}
		}
		// Remove the effect of the inputs of this and earlier steps from these outputs.
		for i := j; i <= lags; i++ {
			acted.Mul(of, response[i-j])
			act(i, &acted, -1)
		}
	}
}

// timesPseudoInverse returns a b⁺, where b⁺ is the pseudo-inverse; nil if b has no singular values.
func timesPseudoInverse(a, b *mat.Dense) *mat.Dense {
	var svd mat.SVD
	if !svd.Factorize(b, mat.SVDThin) {
		return nil
	}
	sv := svd.Values(nil)
	var u, v, product, scaled mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	scaled.Mul(a, &v)
	rows, _ := scaled.Dims()
	for i := range rows {
		for k, s := range sv {
			if s > independent*sv[0] {
				scaled.Set(i, k, scaled.At(i, k)/s)
			} else {
				scaled.Set(i, k, 0)
			}
		}
	}
	product.Mul(&scaled, u.T())
	return &product
}

func zeroMatrix(n int) *mat.Dense {
	if n == 0 {
		return &mat.Dense{}
	}
	return mat.NewDense(n, n, nil)
}

func identityMatrix(n int) *mat.Dense {
	m := zeroMatrix(n)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}
