package algorithms

import (
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Bounds of meyer 5.3 and 5.2.2.
const (
	shrinkAtLeast   = 0.9  // a step that is to become smaller becomes so by this much
	shrinkAfterFail = 0.25 // bound after the first failure, and ratio after further ones
	failuresToOne   = 3    // more failures in a row than this: order 1 at most
	failuresToZero  = 5    // more: order 0
)

// discardMemory is the number of accepted steps for which a step does not grow
// to a size that a subsystem has refused: it would refuse it again, and each
// refusal costs the steps of all others.
const discardMemory = 20

// errorNorms are the weighted norms of the error of an attempt: the estimates for positions,
// velocities and coupling inputs, and the difference found by an audit. NaN where a level
// is not judged, +Inf where the error is not finite.
type errorNorms struct{ pos, vel, u, inner float64 }

var unknownNorms = errorNorms{math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// largest returns the largest norm; NaN if nothing is judged.
func (e errorNorms) largest() float64 {
	v := math.NaN()
	for _, n := range [...]float64{e.pos, e.vel, e.u, e.inner} {
		if math.IsNaN(v) || n > v {
			v = n
		}
	}
	return v
}

// outcome is what became of an attempt.
type outcome uint8

const (
	stepAccepted outcome = iota
	stepUnjudged         // accepted: the history is too short for an estimate
	errorTooLarge
	notConverged
	stepDiscarded // by a subsystem
)

// attemptOutcome is an attempt with all that the control goes by.
type attemptOutcome struct {
	H      float64
	order  int
	norms  errorNorms
	result outcome
}

// decision is the order and the size of the next attempt.
type decision struct {
	order int
	H     float64
}

// stepControl is the combined control of order and step size of meyer 5, after
// the flowcharts of Figs. 6 and 7.
type stepControl struct {
	config    *Control
	failures  int     // in a row, of the present step
	successes int     // in a row at one order without a smaller step
	refused   float64 // size that a subsystem refused, s
	memory    int     // accepted steps for which it is remembered
}

// archive carries what outlives a step; after one that stands there are no failures.
func (s *stepControl) archive(a *master.Archive) {
	num.Carry(a, &s.successes, &s.refused, &s.memory)
}

// passes is the local error test (25)–(27).
func (s *stepControl) passes(e errorNorms) bool {
	return s.config.FixedStep || !(e.largest() > 1)
}

// conclude decides what is next. hist holds the points with the end of the step
// in front if it stands; entries are the coupling inputs with weights w at the
// newest point. The error says that no smaller step is left, and what to do.
func (s *stepControl) conclude(o attemptOutcome, hist num.History, entries []int, w, scratch []float64) (decision, error) {
	stands := o.result == stepAccepted || o.result == stepUnjudged
	if stands {
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
	norms := func(j int) float64 { return hist.ScaledDerivative(j, o.H, entries, w, scratch) }
	next := decision{o.order, o.H}
	if s.config.FixedStep && o.result == notConverged {
		return next, fmt.Errorf("the corrector did not converge in a step of %.3g s, and control.step=fixed leaves no smaller one: "+
			"choose a smaller step size or control.step=variable, loosen solver.tolerance, or choose another solver.kind", o.H)
	}
	if !s.config.FixedOrder && o.result != stepUnjudged && o.result != stepDiscarded {
		next.order = s.chooseOrder(o.order, hist, norms)
		switch {
		case o.order == 1 && next.order == 0 && stands && (s.successes <= 2 || s.ratio(o, 1, hist, entries, w, scratch) >= s.config.RatioMax):
			// At order 0, outputs with direct feedthrough lag by an amount proportional to the step. Order 1
			// is kept until three points are free of that, and while it allows the largest growth.
			next.order = 1
		case o.order == 0 && next.order == 0 && o.result == errorTooLarge && s.failures <= failuresToOne && s.config.MaxOrder > 0 && hist.Holds(1):
			next.order = 1 // rather than a tiny step, for the same reason
		}
	}
	if next.order != o.order {
		s.successes = 0
	}
	if s.config.FixedStep && stands {
		return next, nil
	}
	switch {
	case o.result == stepUnjudged:
	case o.result == stepAccepted:
		next.H = o.H * s.growth(s.ratio(o, next.order, hist, entries, w, scratch))
	case o.result == errorTooLarge && s.failures == 1:
		r := s.ratio(o, next.order, hist, entries, w, scratch)
		next.H = o.H * min(shrinkAtLeast, max(shrinkAfterFail, shrinkAtLeast*r))
	case o.result == stepDiscarded:
		next.H = o.H / 2
	default:
		next.H = o.H * shrinkAfterFail
	}
	next.H = min(next.H, s.config.HMax)
	if s.memory > 0 && next.H >= s.refused {
		next.H = min(o.H, s.refused)
	}
	if next.H < o.H {
		s.successes = 0
	}
	// A step that keeps its size, because it is not judged or good enough, goes on.
	if next.H < o.H && next.H <= s.config.HMin {
		return next, fmt.Errorf("the step size fell to %.3g s, not above control.h-min=%g: loosen control.rtol or control.atol, choose another error estimate, "+
			"a smaller control.h-min, or look for a jump in the system at this time", next.H, s.config.HMin)
	}
	return next, nil
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

// ratio returns r of (32) from the errors of the step, or of (33) from the a-priori
// estimate if the order changes.
func (s *stepControl) ratio(o attemptOutcome, order int, hist num.History, entries []int, w, scratch []float64) float64 {
	if order != o.order {
		if !hist.Holds(order + 1) {
			return 1
		}
		e := orInf(hist.APriori(order, o.H, entries, w, scratch))
		return min(s.toPower(e, order+1), s.toPower(o.norms.inner, innerOrder))
	}
	return min(s.toPower(o.norms.pos, o.order+3), s.toPower(o.norms.vel, o.order+2), s.toPower(o.norms.u, o.order+1), s.toPower(o.norms.inner, innerOrder))
}

// toPower returns the ratio of step sizes after an error that goes with power p of the step;
// +Inf where it is not known.
func (s *stepControl) toPower(norm float64, p int) float64 {
	if math.IsNaN(norm) {
		return math.Inf(1)
	}
	return math.Pow(s.config.Safety*norm, -1/float64(p))
}

// growth bounds the ratio after a step that stands: a step that could grow by
// less than the largest ratio keeps its size.
func (s *stepControl) growth(r float64) float64 {
	switch {
	case r >= s.config.RatioMax:
		return s.config.RatioMax
	case r < 1:
		return min(shrinkAtLeast, max(s.config.RatioMin, r))
	}
	return 1
}
