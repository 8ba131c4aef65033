package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// identified is the model of one subsystem identified from its inputs and outputs during the run
// (haid 2.1), by recursive least squares or by subspaces. It is a difference equation over macro
// steps of one size,
//
//	y_{n+1} = c + Σ_m b_{0,m} q_m(n) + Σ_{j=1…r} (a_j y_{n+1−j} + Σ_m b_{j,m} q_m(n−j)).
//
// An input over a step is Σ q_m φ_m(s), with φ_0 = 1 and φ_1 = ℓ, the course of a deviation. The
// equation is exact for a linear subsystem of order r; b_0 is the response to the inputs,
// including direct feedthrough. Least squares choose the smallest order that explains the outputs
// as well as the highest one; subspaces choose the order from singular values.
//
// Polynomials of degree p of consecutive steps share p of their p + 1 points. From p = 3 on there
// would be more coefficients q than independent data, and the small excitation would be lost in
// them. An input is then represented by its extrapolation and by the constant part and the part
// along ℓ of its excitation. For earlier steps, least squares use the extrapolation error at the
// end and the same two parts.
//
// Until the model is trusted, and after it was lost, pseudo-random numbers excite each input, by a
// constant and along ℓ. This separates the response from the effect of the coupling. The amplitude
// is at most a thousandth of the recent extrapolation error. If the response is lost in rounding
// although the model explains everything else, the amplitude is raised step by step to at most a
// thousandth of the recent change of the input.
//
// A model is trusted after trustAfter predictions in a row with errors up to trustBound, of steps
// that were not used to make it, if its responses are certain to responseBound. It is lost if a
// prediction error exceeds lostBound, or if an extrapolation error exceeds strayBound times the
// largest one before the model was trusted. The next model must then predict twice as many steps.
// Identified models are used together or not at all: the correction of one side of a coupling with
// a nonlinear other side may do harm.
type identified struct {
	of        *modelCorrector
	subsystem int
	x         *master.Exec
	inputs    []int // entries of u that vary
	ny, nq    int   // number of outputs; regressors of all inputs for the current step
	nlag      int   // regressors of all inputs for an earlier step
	shaped    bool  // inputs are polynomials
	apart     bool  // the excitation has regressors of its own

	fit     *num.LeastSquares
	window  *num.SubspaceWindow // replaces fit; nil = least squares
	sigma   []float64           // subspaces: standard errors of the responses, [nq × ny]
	phi     []float64           // regressors of the current step
	solved  []float64           // coefficients of the next model
	q       []float64           // of the current step, [nq]
	scratch []float64
	end     []float64 // by input: extrapolation at the end of the current step
	now     []float64 // outputs at the end of the step
	pending bool      // update has processed the current step
	before  excitation
	current float64 // prediction error of the current step

	identifiedState
}

// identifiedState is the state of an identified model between two steps, apart from the data in fit or window.
type identifiedState struct {
	theta    []float64 // coefficients by rows, [regressors × ny]
	order    int       // r of theta; −1 = no model
	states   int       // subspaces: order of the current model
	singular []float64 // subspaces: singular values from which it was chosen

	past   [maxIdentifiedOrder + 1][]float64 // regressors of the inputs, newest first, [nlag]; past[0]: current step
	ends   []float64                         // by input: extrapolation at the end of the previous step
	y      [maxIdentifiedOrder + 1][]float64 // outputs, newest first; y[0] at the start of the step
	have   int                               // number of points in y
	H      float64                           // s
	degree int                               // of the input polynomials

	held    int    // steps in a row that theta predicted well
	trusted bool   // the model is used
	waits   bool   // another model is not trusted yet
	trial   int    // number of good predictions before the model is trusted
	why     string // reason why the model is not used
	made    int    // number of models so far

	seed           uint64
	dither, kick   []float64 // by input: excitation of the current step, constant and along ℓ
	errors, recent []float64 // by input: largest extrapolation error, so far and recently
	changes        []float64 // by input: largest recent change over a step
	raised         float64   // amplitude of the excitation relative to the first one
	since          int       // steps with this amplitude
	tired          bool      // the largest amplitude did not help

	largest, sizes []float64 // by output: largest recent change over a step, largest magnitude
	off            []float64 // by output: prediction error of the current step
	missed         []float64 // by output: largest recent extrapolation error
	worst          float64   // largest prediction error
}

// Bounds of the identification.
const (
	maxIdentifiedOrder = num.MaxStates
	apartFrom          = 3     // degree from which the excitation has regressors of its own
	ditherPart         = 1e-3  // amplitude of the excitation relative to the extrapolation error
	unmissed           = 1e-12 // extrapolation error, relative to the change, that counts as rounding
	trustAfter         = 20    // good predictions before the first model is trusted
	longestTrial       = 1000  // largest number of these predictions
	trustBound         = 0.02  // error of a good prediction
	strayBound         = 4     // ratio of extrapolation errors with and without the model
	missedPart         = 1e-3  // acceptable error of a response relative to extrapolation errors
	lostBound          = 0.2   // prediction error of a lost model
	raise              = 32    // factor between amplitudes of the excitation
	longestRaised      = 4     // steps with a raised amplitude, relative to the number of regressors
	inexact            = 1e-11 // residual of an exact model relative to the outputs, over a step
	inexactOver        = 1e-8  // the same over a window
	responseBound      = 0.1   // relative standard error of a certain response
	raisedBound        = 0.01  // the same if the amplitude may be raised, or was raised recently
	forgetting         = 0.98  // factor of the weights if predictions fail
	fading             = 0.995 // factor per step of recent extrapolation errors and changes
)

func newIdentified(x *master.Exec, of *modelCorrector, i int) *identified {
	sys := x.Sys
	s := &identified{of: of, subsystem: i, x: x,
		identifiedState: identifiedState{order: -1, worst: math.NaN(), seed: uint64(i)*0x9e3779b97f4a7c15 + 1}}
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
	for _, of := range []*[]float64{&s.now, &s.largest, &s.sizes, &s.off, &s.missed} {
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

// size returns the number of regressors of a model of an order.
func (s *identified) size(order int) int { return 1 + s.nq + order*(s.ny+s.nlag) }

// regressorOf returns the regressor of the current step for input j along ℓ, or for its constant
// part.
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

// excite adds the excitation of the next step to the input offsets. It removes the previous
// excitation, so that little of it remains in the states.
func (s *identified) excite() {
	// An extrapolation amplifies errors of its points by up to 2^(k+1) − 1.
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

// excitation is the excitation of the last accepted step, restored after a rejected attempt.
type excitation struct {
	seed         uint64
	dither, kick []float64
	attempted    bool // the excitation has changed since
}

// random returns a number in [−1, 1), by xorshift64.
func (s *identified) random() float64 {
	s.seed ^= s.seed << 13
	s.seed ^= s.seed >> 7
	s.seed ^= s.seed << 17
	return float64(s.seed>>11)/(1<<52) - 1
}

// update adds the step that was just taken to the data, judges the model and improves it.
func (s *identified) update() (u modelUpdate, err error) {
	s.observe()
	if s.have <= maxIdentifiedOrder {
		u.why = s.why
		return u, nil
	}
	s.regressors()
	s.judge()
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

// observe reads the outputs and the inputs of the step.
func (s *identified) observe() {
	in, at := s.of.in, s.x.Sys.OutAt[s.subsystem]
	H := s.of.span(s.subsystem)
	copy(s.now, s.x.Y[at:s.x.Sys.OutAt[s.subsystem+1]])
	for o, v := range s.now {
		s.sizes[o] = max(s.sizes[o], math.Abs(v))
		if s.raised == 1 { // else the excitation dominates these errors
			s.missed[o] = max(fading*s.missed[o], s.of.missed[at+o])
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
}

// judge compares the prediction of the step with its outputs.
func (s *identified) judge() {
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
		s.lose(fmt.Sprintf("its identified model is lost: the error of a prediction is %.2g of the change", s.current))
	}
}

// lose drops a trusted model. The next one must predict more steps before it is trusted.
func (s *identified) lose(why string) {
	s.trusted, s.why, s.order, s.held = false, why, -1, 0
	s.trial = min(2*s.trial, longestTrial)
	s.restart()
}

// restart drops all data.
func (s *identified) restart() {
	s.fit.Reset()
	if s.window != nil {
		s.window.Reset()
	}
}

// forget drops model and data after a change of the step size or of the degree of the polynomials.
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

// takeInput computes the regressors of an input for the step, and its extrapolation error.
func (s *identified) takeInput(j, k, degree int) {
	in := s.of.in
	width := s.nq / len(s.inputs)
	q := s.q[j*width : (j+1)*width]
	clear(q)
	first := in.Newest(k)
	if in.Known(k) {
		first = in.Last(k)
	}
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
			// The source was stepped before, so there is no extrapolation error to scale the
			// excitation.
			s.recent[j] = max(s.recent[j], ditherPart*math.Abs(change))
		}
		s.changes[j] = max(fading*s.changes[j], math.Abs(change), e)
		if !s.trusted || s.waits {
			s.errors[j] = max(s.errors[j], e)
		} else if e > strayBound*s.errors[j] {
			s.lose(fmt.Sprintf("with its identified model the extrapolation error of %s is %.2g times as large as without",
				s.x.Sys.InName(k), e/s.errors[j]))
		}
	}
}

// takeApart splits the coefficients q of an input into its extrapolation and its excitation, and
// sets the regressors for later steps.
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

// alongCourse replaces the coefficients q_0 + q_1 s + … + q_p s^p of an input by those of
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

// regressors sets phi for the step.
func (s *identified) regressors() {
	s.phi[0] = 1
	at := 1 + copy(s.phi[1:], s.q)
	for r := 1; r <= maxIdentifiedOrder; r++ {
		at += copy(s.phi[at:], s.y[r-1])
		at += copy(s.phi[at:], s.past[r])
	}
}

// predict returns the largest prediction error of an output, relative to its change over the step or
// to a tenth of its largest recent change.
func (s *identified) predict() float64 {
	worst := 0.0
	n := s.size(s.order)
	for o := range s.ny {
		v := 0.0
		for i := range n {
			v += float64(s.theta[i*s.ny+o] * s.phi[i])
		}
		change := math.Abs(s.now[o] - s.y[0][o])
		s.largest[o] = max(fading*s.largest[o], change)
		off := math.Abs(v - s.now[o])
		rounding := 1e-11 * max(math.Abs(s.now[o]), math.Abs(s.y[0][o]))
		if s.off[o] = off; off <= rounding {
			s.off[o] = 0
			continue
		}
		if e := off / max(change, 0.1*s.largest[o], rounding); !(e <= worst) {
			worst = e
		}
	}
	return worst
}

// used reports whether the model corrects the current step.
func (s *identified) used() bool { return s.trusted && !s.waits }

// misses reports whether the prediction missed the outputs of the step, raw, by more than the
// correction changes them, relative to their largest recent changes. A right model misses by the noise
// of its identification, too, and corrects well even where the correction is smaller.
func (s *identified) misses(corrected, raw []float64) bool {
	off, moved := 0.0, 0.0
	for o, largest := range s.largest {
		if largest > 0 {
			off, moved = max(off, s.off[o]/largest), max(moved, math.Abs(corrected[o]-raw[o])/largest)
		}
	}
	return off > max(moved, identificationNoise)
}

// identificationNoise is the largest error of a prediction by a right model, relative to the recent changes: up to 1e-5 on haid's
// oscillator. A wrong correction that is smaller does no more harm.
const identificationNoise = 1e-3

// make makes a new model if the data allow it, and reports whether it did.
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

// solve computes a model of order r in solved. why is the reason if there is none; r < 0 = there are
// too few data.
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
		return r, num.NotFinite
	}
	return r, ""
}

const notExcited = "its inputs and outputs do not vary enough to identify a model"

// explains reports whether a model of order r is as good as one of the highest order.
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

// excitation raises or resets the amplitude after a failed attempt to make a model of n regressors.
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

// raisable reports whether the amplitude may be raised: it is below its maximum, and the residual of
// a model of n regressors is rounding.
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

// uncertain returns the first input whose responses are not certain; −1 = none. A response is
// certain if its standard error, times the largest extrapolation error of the input, is small
// relative to the largest effect of such errors on the output or to the extrapolation error of
// the output.
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

// standardError returns the standard error of the coefficient of regressor i, one of the current
// inputs, in output o of a model of n regressors.
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

// reject restores the excitation before the attempt. The data hold accepted steps only: no control
// that repeats steps is allowed with models, and a discarded step ends before update.
func (s *identified) reject() {
	s.pending = false
	if b := &s.before; b.attempted {
		s.seed, b.attempted = b.seed, false
		copy(s.dither, b.dither)
		copy(s.kick, b.kick)
	}
}

func (s *identified) archive(a *master.Archive) {
	a.All(&s.identifiedState)
	s.fit.Archive(a)
	if s.window != nil {
		s.window.Archive(a)
	}
}

func (s *identified) predictionError() float64 { return s.worst }

// found returns the order of the model, nil if there is none, and the singular values from which it
// was chosen.
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
