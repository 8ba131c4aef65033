package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
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
// Polynomials of subsequent steps share p of the p + 1 points that they go through. From
// p = 3 on they would outnumber what is independent of them, and what puts an
// input off is so small beside them that it would be lost: there, an input is its extrapolation,
// the constant and the part along ℓ that it was put off by; and of the steps before, in
// least squares, by how much the extrapolation was off at the end, and the same two.
//
// Until the model is trusted, and after it was lost, pseudo-random numbers put
// each input off, by a constant and along ℓ, by up to a thousandth of the error that
// the extrapolation has made of late anyway: that sets it apart from what the coupling makes
// of the outputs. Where that is lost in rounding, while the model explains all else, it is
// raised step by step, up to a thousandth of what the input changes by. It is trusted once it has predicted trustAfter steps that it was
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
	ny, nq    int   // outputs; regressors for all inputs over a step
	nlag      int   // and over one of the steps before
	shaped    bool  // inputs are polynomials
	apart     bool  // by what an input is put off are regressors of their own

	fit            *num.LeastSquares
	window         *num.SubspaceWindow // in place of fit; nil = none
	sigma          []float64           // standard errors of the responses by subspaces, [nq × ny]
	states         int                 // of the model in force, by subspaces
	singular       []float64           // that tell them
	phi            []float64
	theta, solved  []float64                         // by rows, [regressors × ny]
	order          int                               // r of theta; −1 = none
	q              []float64                         // of the present step, [nq]
	past           [maxIdentifiedOrder + 1][]float64 // newest first, [nlag]; past[0] is to be of the present step
	ends, end      []float64                         // by input: the extrapolation at the end of the last step, of the present one
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
	dither, kick   []float64 // by input: what the present step puts it off by, and the next one takes back
	before         excitation
	errors, recent []float64 // by input: largest error of the extrapolation so far, and of late
	changes        []float64 // by input: largest change over a step of late
	raised         float64   // what puts the inputs off is so many times more than at first
	since          int       // steps with it
	tired          bool      // the most was no help
	largest, sizes []float64 // by output: largest change over a step, largest value
	missed         []float64 // by output: largest error of its extrapolation of late
	pending        bool
	worst, current float64
	scratch        []float64
	why            string
	made           int
}

// Bounds of the identification.
const (
	maxIdentifiedOrder = num.MaxStates
	apartFrom          = 3 // degree
	ditherPart         = 1e-3
	unmissed           = 1e-12 // of the change of an input: what it is off by is rounding
	trustAfter         = 20
	longestTrial       = 1000
	trustBound         = 0.02
	strayBound         = 4
	missedPart         = 1e-3
	lostBound          = 0.2
	raise              = 32
	longestRaised      = 4     // times the regressors, steps
	inexact            = 1e-11 // of the outputs, over a step
	inexactOver        = 1e-8  // over a window
	responseBound      = 0.1
	raisedBound        = 0.01  // in its place, where excitation may yet be raised, or was a short time ago
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
	s.shaped = of.in.Shapes(i) && of.in.Order() > 0
	s.apart = s.shaped && of.in.Order() >= apartFrom
	width := 1
	if s.shaped {
		width += of.in.Order()
	}
	if s.apart {
		width += 2
	}
	s.nq = len(s.inputs) * width
	s.nlag = s.nq
	if s.apart && !of.config.Subspace {
		s.nlag = len(s.inputs) * 3
	}
	n := s.size(maxIdentifiedOrder)
	s.fit = num.NewLeastSquares(n, s.ny)
	s.phi, s.scratch = make([]float64, n), make([]float64, n)
	s.theta, s.solved = make([]float64, n*s.ny), make([]float64, n*s.ny)
	s.q = make([]float64, s.nq)
	for k := range s.past {
		s.past[k], s.y[k] = make([]float64, s.nlag), make([]float64, s.ny)
	}
	s.ends, s.end = make([]float64, len(s.inputs)), make([]float64, len(s.inputs))
	for _, of := range []*[]float64{&s.now, &s.largest, &s.sizes, &s.missed} {
		*of = make([]float64, s.ny)
	}
	for _, of := range []*[]float64{&s.dither, &s.kick, &s.before.dither, &s.before.kick, &s.errors, &s.recent, &s.changes} {
		*of = make([]float64, len(s.inputs))
	}
	s.raised = 1
	if of.config.Subspace {
		s.window, s.sigma = num.NewSubspaceWindow(s.nq, s.ny), make([]float64, s.nq*s.ny)
	}
	copy(s.y[0], x.Y[sys.OutAt[i]:sys.OutAt[i+1]])
	s.have, s.trial = 1, trustAfter
	s.why = "its model is being identified"
	return s
}

// size returns the number of regressors of an order.
func (s *identified) size(order int) int { return 1 + s.nq + order*(s.ny+s.nlag) }

// regressorOf returns the regressor of the present step that is input j along ℓ, or its
// constant part.
func (s *identified) regressorOf(j int, along bool) int {
	width := s.nq / len(s.inputs)
	at := 1 + j*width
	if s.apart {
		at += width - 2
	}
	if along && s.degree > 0 {
		at++
	}
	return at
}

// excite puts the offsets of the next step on the inputs, on top of what there is. Each takes
// back the one before, so that hardly anything is left in the states in the end.
func (s *identified) excite() {
	// An extrapolation amplifies what the points are off by up to 2^(k+1) − 1 times.
	part := ditherPart / (math.Exp2(float64(s.degree+1)) - 1)
	b := &s.before
	b.seed, b.attempted = s.seed, true
	copy(b.dither, s.dither)
	copy(b.kick, s.kick)
	for j, k := range s.inputs {
		most := part / 2 * min(s.raised*s.recent[j], s.changes[j])
		if s.trusted {
			most = 0
		}
		before := s.dither[j]
		s.dither[j] = most * s.random()
		s.of.in.SetBias(k, s.of.in.Bias(k)+(s.dither[j]-before))
		if s.shaped {
			before = s.kick[j]
			s.kick[j] = most * s.random()
			s.of.in.SetKick(k, s.kick[j]-before)
		}
	}
}

// excitation is that of the last accepted step, to which a rejected attempt goes back.
type excitation struct {
	seed         uint64
	dither, kick []float64
	attempted    bool // an attempt has changed it since
}

// random returns a number in [−1, 1), by xorshift64.
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
	for o, v := range s.now {
		s.sizes[o] = max(s.sizes[o], math.Abs(v))
		if s.raised == 1 { // else it is what the inputs are put off by that is missed
			s.missed[o] = max(fading*s.missed[o], s.of.missed[sys.OutAt[s.subsystem]+o])
		}
	}
	degree := 0
	if in.Shapes(s.subsystem) {
		degree = in.Degree()
	}
	if !s.of.sameSize(H, s.H) || degree != s.degree {
		s.forget(H, degree)
	}
	s.pending = true
	s.since++
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
		s.window.Add(s.q, s.now)
	} else {
		s.fit.Add(s.phi, s.now, forget)
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
	s.fit.Reset()
	if s.window != nil {
		s.window.Reset()
	}
}

// forget starts anew for steps of another size or polynomials of another degree.
func (s *identified) forget(H float64, degree int) {
	s.H, s.degree = H, degree
	clear(s.recent)
	clear(s.changes)
	clear(s.missed)
	s.raised, s.since, s.tired = 1, 0, false
	s.restart()
	s.order, s.held, s.trusted, s.have = -1, 0, false, min(s.have, 1)
	s.why = "its model is being identified"
}

// takeInput puts the regressors of an input for the step, and the error of its
// extrapolation.
func (s *identified) takeInput(j, k, degree int) {
	in := s.of.in
	width := s.nq / len(s.inputs)
	q := s.q[j*width : (j+1)*width]
	clear(q)
	first := in.Newest(k)
	if in.Holds(k) || !in.Shapes(s.subsystem) || degree == 0 {
		q[0] = first
	} else {
		factor := 1.0
		for m := range min(degree, in.DegreeOf(k)) + 1 {
			if m > 0 {
				factor *= s.H / float64(m)
			}
			q[m] = factor * in.Slope(k, m)
		}
	}
	end := in.AtEnd(k)
	if s.apart {
		s.takeApart(j, k, degree, end, q)
	} else {
		q[0] += in.Bias(k)
		s.alongCourse(q, k, degree)
	}
	if s.nlag == s.nq {
		copy(s.past[0][j*width:], q)
	}
	if y, ok := s.x.Sys.Source(k); ok {
		change := float64(s.x.Sys.Gain(k) * (s.x.Y[y] - s.of.keptY(y)))
		e := math.Abs(change - (end - first))
		s.recent[j] = max(fading*s.recent[j], e)
		if e <= unmissed*math.Abs(change) {
			// The source was stepped before: there is no error that excitation could follow.
			s.recent[j] = max(s.recent[j], ditherPart*math.Abs(change))
		}
		s.changes[j] = max(fading*s.changes[j], math.Abs(change), e)
		if !s.trusted || s.waits {
			s.errors[j] = max(s.errors[j], e)
		} else if e > strayBound*s.errors[j] {
			s.lose(fmt.Sprintf("with its identified model the extrapolation of %s errs %.2g times as much as without", s.x.Sys.InName(k), e/s.errors[j]))
		}
	}
}

// takeApart splits the coefficients q of an input into its extrapolation and what it
// was put off by, and puts the regressors of steps before.
func (s *identified) takeApart(j, k, degree int, end float64, q []float64) {
	in := s.of.in
	kick := 0.0
	if _, ahead := in.Ahead(k); degree > 0 && ahead {
		kick = in.Kick(k)
	}
	s.alongCourse(q[:len(q)-2], k, degree)
	if degree > 0 {
		q[1] -= kick
	}
	q[len(q)-2], q[len(q)-1] = in.Bias(k), kick
	s.end[j] = end - kick
	if s.nlag != s.nq {
		s.past[1][3*j] = in.Newest(k) - s.ends[j]
		copy(s.past[0][3*j+1:3*j+3], q[len(q)-2:])
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
	course := num.NewShape(degree, s.of.t, s.H, in.Times())
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
	at := 1 + copy(s.phi[1:], s.q)
	for r := 1; r <= maxIdentifiedOrder; r++ {
		at += copy(s.phi[at:], s.y[r-1])
		at += copy(s.phi[at:], s.past[r])
	}
}

// predict returns the largest error of an output, relative to its change over the
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
		s.excitation(s.size(r))
		return false
	}
	s.theta, s.solved = s.solved, s.theta
	s.order, s.held = r, 0
	if s.window != nil {
		s.states, s.singular = s.window.States(), s.window.Singular()
	}
	s.made++
	return true
}

// solve puts a model of order r into solved, or says why there is none; r < 0: there
// are too few data.
func (s *identified) solve() (r int, why string) {
	if s.window != nil {
		if !s.window.Due() {
			return -1, ""
		}
		return maxIdentifiedOrder, s.window.Identify(maxIdentifiedOrder, s.solved, s.sigma)
	}
	for ; r < maxIdentifiedOrder; r++ {
		if s.explains(r) {
			break
		}
	}
	n := s.size(r)
	if s.fit.Weight() < float64(n)+2 {
		return -1, ""
	}
	if !s.fit.Excited(n) {
		return r, notExcited
	}
	s.fit.Solve(n, s.solved)
	if num.CheckFinite(s.solved[:n*s.ny]) != nil {
		return r, notFinite
	}
	return r, ""
}

const (
	notExcited = "its inputs and outputs do not vary enough to identify a model"
	notFinite  = "the identified model is not finite"
)

// explains reports whether an order leaves no more than the highest one does.
func (s *identified) explains(r int) bool {
	n, all := s.size(r), s.size(maxIdentifiedOrder)
	for o := range s.ny {
		least := 1e-9 * s.largest[o]
		if s.fit.Residual(n, o) > 4*s.fit.Residual(all, o)+s.fit.Weight()*least*least {
			return false
		}
	}
	return true
}

// excitation follows an attempt that found no model of n regressors: it raises what puts
// the inputs off, or gives that up.
func (s *identified) excitation(n int) {
	all := s.size(maxIdentifiedOrder)
	switch {
	case s.raisable(n):
		if s.window != nil || s.since >= all {
			s.raised, s.since = raise*s.raised, 0
		}
	case s.raised > 1 && s.since >= longestRaised*all:
		s.raised, s.tired = 1, true
	}
}

// raisable reports whether the inputs may be put off by more: a model of n regressors leaves
// nothing of the outputs but rounding, and they are not put off by the most yet.
func (s *identified) raisable(n int) bool {
	room := false
	for j, e := range s.recent {
		room = room || s.raised*e < s.changes[j]
	}
	if s.tired || !room {
		return false
	}
	if s.window != nil {
		return s.window.Residual() <= inexactOver
	}
	for o := range s.ny {
		most := inexact * s.sizes[o]
		if !(s.fit.Residual(n, o) <= s.fit.Weight()*most*most) {
			return false
		}
	}
	return true
}

// uncertain returns the first input for whose responses, to a constant and along ℓ, the
// standard error moves an output by more than the bound of what the errors of
// the inputs move it, and by more than a small part of what is missed of it anyway; −1 = none.
func (s *identified) uncertain(n int) int {
	bound := responseBound
	if s.raisable(n) || s.raised > 1 && s.since < longestRaised*s.size(maxIdentifiedOrder)/2 {
		bound = raisedBound
	}
	for o := range s.ny {
		moved := 0.0
		for j, e := range s.errors {
			for _, along := range []bool{false, true} {
				moved = max(moved, math.Abs(s.solved[s.regressorOf(j, along)*s.ny+o])*e)
			}
		}
		if moved == 0 {
			continue
		}
		most := max(bound*moved, missedPart*s.missed[o])
		for j, e := range s.errors {
			for _, along := range []bool{false, true} {
				if !(s.standardError(s.regressorOf(j, along), o, n)*e <= most) {
					return j
				}
			}
		}
	}
	return -1
}

// standardError is that of the coefficient of a regressor of the present inputs in
// output o, in a model of n regressors.
func (s *identified) standardError(i, o, n int) float64 {
	if s.window != nil {
		return s.sigma[(i-1)*s.ny+o]
	}
	freedom := max(1, s.fit.Weight()-float64(n))
	return math.Sqrt(s.fit.Residual(n, o)/freedom) * s.fit.Spread(i, n, s.scratch)
}

func (s *identified) respond(j int, _ *num.Shape, to, offset []float64) {
	clear(to)
	clear(offset)
	if !s.trusted {
		return
	}
	for at, k := range s.inputs {
		if k == s.of.columns[j].input {
			copy(offset, s.theta[s.regressorOf(at, false)*s.ny:])
			copy(to, s.theta[s.regressorOf(at, true)*s.ny:])
		}
	}
}

func (s *identified) accept() {
	s.before.attempted = false
	if !s.pending {
		return
	}
	s.pending = false
	lastY, last := s.y[maxIdentifiedOrder], s.past[maxIdentifiedOrder]
	copy(s.y[1:], s.y[:])
	copy(s.past[1:], s.past[:])
	s.y[0], s.past[0] = lastY, last
	copy(s.y[0], s.now)
	copy(s.ends, s.end)
	s.have = min(s.have+1, maxIdentifiedOrder+1)
}

// reject goes back to the excitation before the attempt. Data are taken from steps that
// stand only: no control that repeats steps goes with a model, and a step that a subsystem
// discards ends before update.
func (s *identified) reject() {
	s.pending = false
	if b := &s.before; b.attempted {
		s.seed, b.attempted = b.seed, false
		copy(s.dither, b.dither)
		copy(s.kick, b.kick)
	}
}

func (s *identified) archive(a *master.Archive) {
	s.fit.Archive(a)
	if s.window != nil {
		s.window.Archive(a)
		a.Int(&s.states)
		a.FloatList(&s.singular)
	}
	a.Floats(s.theta)
	a.Index(&s.order, -1, maxIdentifiedOrder)
	for k := range s.past {
		num.Carry(a, s.past[k], s.y[k])
	}
	a.Floats(s.ends)
	a.Index(&s.have, 0, maxIdentifiedOrder+1)
	num.Carry(a, &s.H, &s.degree, &s.held, &s.trusted, &s.waits, &s.trial, &s.seed, s.dither, s.kick, s.errors,
		s.recent, s.changes, &s.raised, &s.since, &s.tired, s.largest, s.sizes, s.missed, &s.worst, &s.why, &s.made)
}

func (s *identified) predictionError() float64 { return s.worst }

// found returns the order of the model in force, nil if there is none, and the singular
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
