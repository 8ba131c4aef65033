package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
)

// identified is the model of one subsystem from its inputs and outputs while it
// runs (haid 2.1, by recursive least squares or by subspaces), as a difference
// equation over the macro steps of one size,
//
//	y_{n+1} = c + Σ_m b_{0,m} q_m(n) + Σ_{j=1…r} (a_j y_{n+1−j} + Σ_m b_{j,m} q_m(n−j)),
//
// where Σ q_m φ_m(s) is what each input was over a step, φ_0 = 1 and φ_1 = ℓ, the
// course of a deviation: a linear subsystem of order r follows it exactly, its
// direct feedthrough in b_0 included, which is the response asked for. Least squares
// take the smallest order that explains the outputs as well as the highest does,
// subspaces that of the singular values.
//
// Until the model is trusted, and after it was lost, pseudo-random numbers put
// each input off, by a constant and along ℓ, by up to a thousandth of the error that
// the extrapolation has made of late anyway: that sets it apart from what the coupling makes
// of the outputs. It is trusted once it has predicted trustAfter steps that it was
// not made from within trustBound, and its responses are certain to responseBound. It is lost when a prediction is off by
// lostBound, or an extrapolation errs strayBound times as much as any before it was
// trusted; the next one must then predict twice as many steps. Identified models are
// used together or not at all: to correct one side of a coupling whose other side
// is not linear may do harm.
type identified struct {
	of        *modelCorrector
	subsystem int
	x         *master.Exec
	inputs    []int // entries of u that move
	ny, nq    int   // outputs; coefficients of all inputs over a step

	fit            *leastSquares
	window         *subspaceWindow // in place of fit; nil = none
	sigma          []float64       // standard errors of the responses by subspaces, [nq × ny]
	states         int             // of the model in force, by subspaces
	singular       []float64       // that tell them
	phi            []float64
	theta, solved  []float64 // by rows, [regressors × ny]
	order          int       // r of theta; −1 = none
	q              [maxIdentifiedOrder + 1][]float64
	y              [maxIdentifiedOrder + 1][]float64 // newest first; y[0] at the start of the step
	now            []float64                         // y at its end
	have           int                               // points of y before the step
	H              float64
	degree         int
	held           int // steps predicted well since theta was made
	trusted        bool
	waits          bool // the model of another is not trusted
	trial          int  // steps to be predicted well before it is trusted
	seed           uint64
	dither         []float64 // by input, of the present step
	errors, recent []float64 // by input: largest error of the extrapolation so far, and of late
	largest        []float64 // by output: largest change over a step
	pending        bool
	worst, current float64
	scratch        []float64
	why            string
	made           int
}

// Bounds of the identification.
const (
	maxIdentifiedOrder = 4
	ditherPart         = 1e-3
	trustAfter         = 20
	longestTrial       = 1000
	trustBound         = 0.02
	strayBound         = 4
	lostBound          = 0.2
	responseBound      = 0.1
	forgetting         = 0.98  // where predictions fail
	fading             = 0.995 // of what is left of an extrapolation error after a step
)

func newIdentified(x *master.Exec, of *modelCorrector, i int) *identified {
	sys := x.Sys
	s := &identified{of: of, subsystem: i, x: x, order: -1, worst: math.NaN(), seed: uint64(i)*0x9e3779b97f4a7c15 + 1}
	for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
		if sys.SourceSubsystem(k) >= 0 || x.External(k) {
			s.inputs = append(s.inputs, k)
		}
	}
	s.ny = sys.OutAt[i+1] - sys.OutAt[i]
	degrees := 1
	if of.in.shapes(i) {
		degrees += of.in.order
	}
	s.nq = len(s.inputs) * degrees
	n := s.size(maxIdentifiedOrder)
	s.fit = newLeastSquares(n, s.ny)
	s.phi, s.scratch = make([]float64, n), make([]float64, n)
	s.theta, s.solved = make([]float64, n*s.ny), make([]float64, n*s.ny)
	for k := range s.q {
		s.q[k], s.y[k] = make([]float64, s.nq), make([]float64, s.ny)
	}
	s.now, s.largest = make([]float64, s.ny), make([]float64, s.ny)
	s.dither, s.errors, s.recent = make([]float64, len(s.inputs)), make([]float64, len(s.inputs)), make([]float64, len(s.inputs))
	if of.config.Subspace {
		s.window, s.sigma = newSubspaceWindow(s.nq, s.ny), make([]float64, s.nq*s.ny)
	}
	copy(s.y[0], x.Y[sys.OutAt[i]:sys.OutAt[i+1]])
	s.have, s.trial = 1, trustAfter
	s.why = "its model is being identified"
	return s
}

// size gives the number of regressors of an order.
func (s *identified) size(order int) int { return 1 + s.nq + order*(s.ny+s.nq) }

// excite puts the offset of the next step on the inputs, on top of what there is.
func (s *identified) excite() {
	// An extrapolation amplifies what the points are off by up to 2^(k+1) − 1 times.
	part := ditherPart / (math.Exp2(float64(s.degree+1)) - 1)
	for j, k := range s.inputs {
		s.dither[j] = 0
		if s.of.in.kick != nil {
			s.of.in.kick[k] = 0
		}
		if s.trusted {
			continue
		}
		s.dither[j] = part * s.recent[j] * s.random()
		s.of.in.bias[k] += s.dither[j]
		if s.nq > len(s.inputs) {
			s.of.in.kick[k] = part * s.recent[j] * s.random()
		}
	}
}

// random gives a number in [−1, 1), by xorshift64.
func (s *identified) random() float64 {
	s.seed ^= s.seed << 13
	s.seed ^= s.seed >> 7
	s.seed ^= s.seed << 17
	return float64(s.seed>>11)/(1<<52) - 1
}

// update takes the step just taken.
func (s *identified) update() (u modelUpdate, err error) {
	in, sys := s.of.in, s.x.Sys
	H := s.of.span(s.subsystem)
	copy(s.now, s.x.Y[sys.OutAt[s.subsystem]:sys.OutAt[s.subsystem+1]])
	degree := 0
	if in.shapes(s.subsystem) {
		degree = in.old.degree
	}
	if math.Abs(H-s.H) > sameStep*H || degree != s.degree {
		s.forget(H, degree)
	}
	s.pending = true
	for j, k := range s.inputs {
		s.takeInput(j, k, degree)
	}
	if s.have <= maxIdentifiedOrder {
		u.why = s.why
		return u, nil
	}
	s.regressors()
	s.current = math.NaN()
	if s.order >= 0 {
		s.current = s.predict()
		if s.current <= trustBound {
			s.held++
		} else {
			s.held = 0
		}
		if !(s.current <= s.worst) && s.trusted {
			s.worst = s.current
		}
	}
	if s.trusted && !(s.current <= lostBound) {
		s.lose(fmt.Sprintf("its identified model is lost: a prediction is off by %.2g of the change", s.current))
	}
	bound := s.of.config.Refresh
	forget := 1.0
	if s.order >= 0 && !(s.current <= max(bound, 1e-6)) {
		forget = forgetting
	}
	if s.window != nil {
		s.window.add(s.q[0], s.now)
	} else {
		s.fit.add(s.phi, s.now, forget)
	}
	if s.order < 0 || !(s.current <= bound) {
		if s.make() {
			u.evaluations, u.changed = 1, true
		}
	}
	if !s.trusted && s.order >= 0 && s.held >= s.trial {
		s.trusted, u.changed = true, true
	}
	if !s.trusted {
		u.why = s.why
	}
	return u, nil
}

// lose gives up a model that was trusted; the next one is tried for longer.
func (s *identified) lose(why string) {
	s.trusted, s.why, s.order, s.held = false, why, -1, 0
	s.trial = min(2*s.trial, longestTrial)
	s.restart()
}

// restart leaves nothing of the data.
func (s *identified) restart() {
	s.fit.reset()
	if s.window != nil {
		s.window.reset()
	}
}

// forget starts anew for steps of another size or polynomials of another degree.
func (s *identified) forget(H float64, degree int) {
	s.H, s.degree = H, degree
	clear(s.recent)
	s.restart()
	s.order, s.held, s.trusted, s.have = -1, 0, false, min(s.have, 1)
	s.why = "its model is being identified"
}

// takeInput puts the coefficients of an input over the step, and the error of its
// extrapolation.
func (s *identified) takeInput(j, k, degree int) {
	in := s.of.in
	degrees := s.nq / len(s.inputs)
	q := s.q[0][j*degrees : (j+1)*degrees]
	clear(q)
	p := in.polynomialOf(k, s.subsystem)
	if in.holds[k] || !in.shapes(s.subsystem) || degree == 0 {
		q[0] = in.last(k)
	} else {
		factor := 1.0
		for m := range min(degree, p.degree) + 1 {
			if m > 0 {
				factor *= s.H / float64(m)
			}
			q[m] = factor * in.evalOn(p, k, &p.start[m])
		}
	}
	q[0] += in.bias[k]
	s.alongCourse(q, k, degree)
	if y, ok := s.x.Sys.Source(k); ok {
		e := math.Abs(float64(s.x.Sys.Gain(k)*(s.x.Y[y]-s.of.keptY(y))) - (in.atEnd(k, s.subsystem) - in.last(k)))
		s.recent[j] = max(fading*s.recent[j], e)
		if !s.trusted || s.waits {
			s.errors[j] = max(s.errors[j], e)
		} else if e > strayBound*s.errors[j] {
			s.lose(fmt.Sprintf("with its identified model the extrapolation of %s errs %.2g times as much as without", s.x.Sys.InName(k), e/s.errors[j]))
		}
	}
}

// alongCourse turns the coefficients of an input into those of 1, of the course of
// a deviation, and of the powers between: q_0 + q_1 s + … + q_p s^p =
// α_0 + α_1 ℓ(s) + Σ α_{m+1} s^m, m = 1 … p−1, in this order.
func (s *identified) alongCourse(q []float64, k, degree int) {
	if degree == 0 {
		return
	}
	in := s.of.in
	course := shapePolynomial(degree, s.of.t, s.H, in.times[:in.points])
	along := q[degree] / course[degree]
	for m := range degree {
		q[m] -= float64(along * course[m])
	}
	copy(q[2:], q[1:degree])
	q[1] = along
}

// regressors lays out the row of the step.
func (s *identified) regressors() {
	s.phi[0] = 1
	at := 1 + copy(s.phi[1:], s.q[0])
	for r := 1; r <= maxIdentifiedOrder; r++ {
		at += copy(s.phi[at:], s.y[r-1])
		at += copy(s.phi[at:], s.q[r])
	}
}

// predict gives the largest error of an output, relative to its change over the
// step or to a thousandth of the largest change so far.
func (s *identified) predict() float64 {
	worst := 0.0
	n := s.size(s.order)
	for o := range s.ny {
		v := 0.0
		for i := range n {
			v += float64(s.theta[i*s.ny+o] * s.phi[i])
		}
		change := math.Abs(s.now[o] - s.y[0][o])
		s.largest[o] = max(s.largest[o], change)
		off := math.Abs(v - s.now[o])
		rounding := 1e-11 * max(math.Abs(s.now[o]), math.Abs(s.y[0][o]))
		if off <= rounding {
			continue
		}
		if e := off / max(change, 0.1*s.largest[o], rounding); !(e <= worst) {
			worst = e
		}
	}
	return worst
}

// make solves for the model, if the data allow; false: it stays as it was.
func (s *identified) make() bool {
	r, why := s.solve()
	if r < 0 {
		return false
	}
	if why == "" {
		if j := s.uncertain(s.size(r)); j >= 0 {
			why = fmt.Sprintf("the response to %s is not certain yet", s.x.Sys.InName(s.inputs[j]))
		}
	}
	if why != "" {
		s.why = why
		return false
	}
	s.theta, s.solved = s.solved, s.theta
	s.order, s.held = r, 0
	if s.window != nil {
		s.states, s.singular = s.window.states, s.window.singular
	}
	s.made++
	return true
}

// solve puts a model of order r into solved, or says why there is none; r < 0: there
// are too few data.
func (s *identified) solve() (r int, why string) {
	if s.window != nil {
		if !s.window.due() {
			return -1, ""
		}
		return maxIdentifiedOrder, s.window.identify(maxIdentifiedOrder, s.solved, s.sigma)
	}
	for ; r < maxIdentifiedOrder; r++ {
		if s.explains(r) {
			break
		}
	}
	n := s.size(r)
	if s.fit.weight < float64(n)+2 {
		return -1, ""
	}
	if !s.fit.excited(n) {
		return r, notExcited
	}
	s.fit.solve(n, s.solved)
	if checkFinite(s.solved[:n*s.ny]) != nil {
		return r, notFinite
	}
	return r, ""
}

const (
	notExcited = "its inputs and outputs do not vary enough to identify a model"
	notFinite  = "the identified model is not finite"
)

// explains tells whether an order leaves no more than the highest one does.
func (s *identified) explains(r int) bool {
	n, all := s.size(r), s.size(maxIdentifiedOrder)
	for o := range s.ny {
		least := 1e-9 * s.largest[o]
		if s.fit.residual(n, o) > 4*s.fit.residual(all, o)+s.fit.weight*least*least {
			return false
		}
	}
	return true
}

// uncertain gives the first input for whose responses, to a constant and along ℓ, the
// standard error moves an output by more than responseBound of what the errors of
// the inputs move it; −1 = none.
func (s *identified) uncertain(n int) int {
	degrees := s.nq / len(s.inputs)
	for o := range s.ny {
		moved := 0.0
		for j, e := range s.errors {
			for m := range min(degrees, 2) {
				moved = max(moved, math.Abs(s.solved[(1+j*degrees+m)*s.ny+o])*e)
			}
		}
		for j, e := range s.errors {
			for m := range min(degrees, 2) {
				if moved > 0 && !(s.standardError(j*degrees+m, o, n)*e <= responseBound*moved) {
					return j
				}
			}
		}
	}
	return -1
}

// standardError is that of the coefficient j of the present inputs in output o, in a
// model of n regressors.
func (s *identified) standardError(j, o, n int) float64 {
	if s.window != nil {
		return s.sigma[j*s.ny+o]
	}
	freedom := max(1, s.fit.weight-float64(n))
	return math.Sqrt(s.fit.residual(n, o)/freedom) * s.fit.spread(1+j, n, s.scratch)
}

func (s *identified) respond(j int, _ *shape, to, offset []float64) {
	clear(to)
	clear(offset)
	if !s.trusted {
		return
	}
	degrees := s.nq / len(s.inputs)
	for at, k := range s.inputs {
		if k != s.of.columns[j].input {
			continue
		}
		for o := range to {
			offset[o] = s.theta[(1+at*degrees)*s.ny+o]
			to[o] = offset[o]
			if s.degree > 0 {
				to[o] = s.theta[(1+at*degrees+1)*s.ny+o]
			}
		}
	}
}

func (s *identified) accept() {
	if !s.pending {
		return
	}
	s.pending = false
	lastY, lastQ := s.y[maxIdentifiedOrder], s.q[maxIdentifiedOrder]
	copy(s.y[1:], s.y[:])
	copy(s.q[1:], s.q[:])
	s.y[0], s.q[0] = lastY, lastQ
	copy(s.y[0], s.now)
	s.have = min(s.have+1, maxIdentifiedOrder+1)
}

func (s *identified) reject() { s.pending = false }

func (s *identified) archive(a *master.Archive) {
	s.fit.archive(a)
	if s.window != nil {
		s.window.archive(a)
		a.Int(&s.states)
		a.FloatList(&s.singular)
	}
	a.Floats(s.theta)
	a.Index(&s.order, -1, maxIdentifiedOrder)
	for k := range s.q {
		a.Floats(s.q[k])
		a.Floats(s.y[k])
	}
	a.Index(&s.have, 0, maxIdentifiedOrder+1)
	a.Float(&s.H)
	a.Int(&s.degree)
	a.Int(&s.held)
	a.Bool(&s.trusted)
	a.Bool(&s.waits)
	a.Int(&s.trial)
	a.Word(&s.seed)
	a.Floats(s.dither)
	a.Floats(s.errors)
	a.Floats(s.recent)
	a.Floats(s.largest)
	a.Float(&s.worst)
	a.String(&s.why)
	a.Int(&s.made)
}

func (s *identified) predictionError() float64 { return s.worst }

// found gives the order of the model in force, nil if there is none, and the singular
// values that tell it.
func (s *identified) found() (order *int, singular []float64) {
	if s.order < 0 {
		return nil, nil
	}
	n := s.order
	if s.window != nil {
		n = s.states
	}
	return &n, s.singular
}
