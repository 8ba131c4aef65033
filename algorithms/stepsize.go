package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Bounds of meyer 5.3 and 5.2.2.
const (
	shrinkAtLeast   = 0.9  // largest ratio of a step that shrinks
	shrinkAfterFail = 0.25 // smallest ratio after the first failure, the ratio after later ones
	failuresToOne   = 3    // after more failures in a row the order is at most 1
	failuresToZero  = 5    // after more failures in a row the order is 0
)

// discardMemory is the number of accepted steps before a size that a subsystem discarded is
// tried again. Each discarded step costs a step of all other subsystems.
const discardMemory = 20

// errorNorms are the weighted norms of the error of an attempt: the estimates for positions,
// velocities and coupling inputs, and the difference found by an audit. A level that is not
// judged has NaN, an error that is not finite +Inf.
type errorNorms struct{ pos, vel, u, inner float64 }

var unknownNorms = errorNorms{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// largest returns the largest norm; NaN if no level is judged.
func (e errorNorms) largest() float64 {
	v := math.NaN()
	for _, n := range [...]float64{e.pos, e.vel, e.u, e.inner} {
		if math.IsNaN(v) || n > v {
			v = n
		}
	}
	return v
}

// outcome is the result of an attempt.
type outcome uint8

const (
	stepAccepted outcome = iota
	stepUnjudged         // accepted: the history is too short for an estimate
	errorTooLarge
	notConverged
	stepDiscarded // by a subsystem
)

// attemptOutcome describes an attempt.
type attemptOutcome struct {
	H      float64
	order  int
	norms  errorNorms
	result outcome
}

// accepted reports whether the step is kept.
func (o attemptOutcome) accepted() bool { return o.result == stepAccepted || o.result == stepUnjudged }

// decision is the order and the size (s) of the next attempt.
type decision struct {
	order int
	H     float64
}

// stepControl is the combined control of order and step size of meyer 5 (flowcharts in Figs. 6
// and 7).
type stepControl struct {
	config *Control
	stepState
}

type stepState struct {
	failures  int     // failed attempts of the current step
	successes int     // accepted steps in a row at one order without a smaller step
	refused   float64 // size that a subsystem discarded, s
	memory    int     // accepted steps for which refused is still avoided
}

// passes is the local error test (25)–(27).
func (s *stepControl) passes(e errorNorms) bool {
	return s.config.FixedStep || !(e.largest() > 1)
}

// conclude chooses order and size of the next attempt. The newest point of hist is the end of
// an accepted step, else its start; entries are the coupling inputs with weights w at that
// point. An error means that no smaller step is allowed, and names remedies.
func (s *stepControl) conclude(o attemptOutcome, hist num.History, entries []int, w, scratch []float64) (decision, error) {
	if o.accepted() {
		s.failures = 0
		s.successes++
		s.memory = max(s.memory-1, 0)
	} else {
		s.failures++
		s.successes = 0
	}
	if o.result == stepDiscarded {
		s.refused, s.memory = o.H, discardMemory
	}
	next := decision{o.order, o.H}
	if s.config.FixedStep && o.result == notConverged {
		return next, fmt.Errorf("the corrector did not converge in a step of %.3g s, and control.step=fixed allows "+
			"no smaller one: "+
			"choose a smaller step size or control.step=variable, loosen solver.tolerance, or choose another "+
			"solver.kind", o.H)
	}
	ratio := func(order int) float64 { return s.ratio(o, order, hist, entries, w, scratch) }
	if !s.config.FixedOrder && o.result != stepUnjudged && o.result != stepDiscarded {
		norms := func(j int) float64 { return hist.ScaledDerivative(j, o.H, entries, w, scratch) }
		next.order = s.keepOrderOne(o, s.chooseOrder(o.order, hist, norms), hist, ratio)
	}
	if next.order != o.order {
		s.successes = 0
	}
	if s.config.FixedStep && o.accepted() {
		return next, nil
	}
	switch {
	case o.result == stepUnjudged:
	case o.result == stepAccepted:
		next.H = o.H * s.growth(ratio(next.order))
	case o.result == errorTooLarge && s.failures == 1:
		next.H = o.H * min(shrinkAtLeast, max(shrinkAfterFail, shrinkAtLeast*ratio(next.order)))
	case o.result == stepDiscarded:
		next.H = o.H / 2
	default:
		next.H = o.H * shrinkAfterFail
	}
	next.H = min(next.H, s.config.HMax)
	if s.memory > 0 && next.H >= s.refused {
		next.H = min(o.H, s.refused)
	}
	if next.H >= o.H {
		return next, nil
	}
	s.successes = 0
	if next.H <= s.config.HMin {
		return next, &master.DivergedError{Err: fmt.Errorf("the step size fell to %.3g s, not above control.h-min=%g: loosen control.rtol or "+
			"control.atol, choose another error estimate "+
			"or a smaller control.h-min, or look for a jump in the system at this time", next.H, s.config.HMin)}
	}
	return next, nil
}

// keepOrderOne returns the order to use instead of a chosen order. At order 0, outputs with
// direct feedthrough lag by an amount proportional to the step size. Order 1 is kept until
// three points are free of this lag, and while it allows the largest growth; after a large
// error at order 0 it is preferred to a tiny step.
func (s *stepControl) keepOrderOne(o attemptOutcome, chosen int, hist num.History, ratio func(order int) float64) int {
	switch {
	case chosen != 0:
	case o.order == 1 && o.accepted() && (s.successes <= 2 || ratio(1) >= s.config.RatioMax):
		return 1
	case o.order == 0 && o.result == errorTooLarge && s.failures <= failuresToOne && s.config.MaxOrder > 0 && hist.Holds(1):
		return 1
	}
	return chosen
}

// chooseOrder chooses the order by the rules of meyer 5.2.2.
func (s *stepControl) chooseOrder(k int, hist num.History, sdn func(j int) float64) int {
	next := k
	switch {
	case k == 1 && hist.Holds(2) && sdn(1) <= sdn(2)/2:
		next = 0
	case k > 1 && hist.Holds(k+1) && max(sdn(k), sdn(k-1)) <= sdn(k+1):
		next = k - 1
	}
	switch {
	case s.failures > failuresToZero:
		next = 0
	case s.failures > failuresToOne:
		next = min(next, 1)
	}
	if next != k || s.successes <= k || !hist.Holds(k+2) {
		return next
	}
	switch {
	case k == 0:
		if sdn(2) < sdn(1)/2 {
			next = 1
		}
	case sdn(k) <= min(sdn(k+1), sdn(k+2)):
		next = k - 1
	case sdn(k+2) < sdn(k+1):
		next = k + 1
	}
	return min(next, s.config.MaxOrder)
}

// ratio returns the step size ratio r, by (32) from the errors of the step or, if the order
// changes, by (33) from the a-priori estimate.
func (s *stepControl) ratio(o attemptOutcome, order int, hist num.History, entries []int, w, scratch []float64) float64 {
	if order != o.order {
		if !hist.Holds(order + 1) {
			return 1
		}
		e := orInf(hist.APriori(order, o.H, entries, w, scratch))
		return min(s.toPower(e, order+1), s.toPower(o.norms.inner, innerOrder))
	}
	return min(s.toPower(o.norms.pos, o.order+3), s.toPower(o.norms.vel, o.order+2),
		s.toPower(o.norms.u, o.order+1), s.toPower(o.norms.inner, innerOrder))
}

// toPower returns the step size ratio for an error of order p; +Inf if the error is not known.
func (s *stepControl) toPower(norm float64, p int) float64 {
	if math.IsNaN(norm) {
		return math.Inf(1)
	}
	return math.Pow(s.config.Safety*norm, -1/float64(p))
}

// growth bounds the ratio after an accepted step. A step that could grow by less than the
// largest ratio keeps its size.
func (s *stepControl) growth(r float64) float64 {
	switch {
	case r >= s.config.RatioMax:
		return s.config.RatioMax
	case r < 1:
		return min(shrinkAtLeast, max(s.config.RatioMin, r))
	}
	return 1
}
