package master

import (
	"errors"
	"math"
)

// Outcome is the verdict on a run, by Result.Outcome. Summary, manifest, pages, metrics and exit code are
// based on it.
type Outcome struct {
	// Ended is "complete", "terminated", "failed" or "interrupted".
	Ended string `json:"ended"`
	// Stability is "not judged"; "grows" if an output grows, of which a run alone does not know whether the coupling or the
	// system itself is the cause; "unstable" if the coupling is; "stable" if a comparison with other runs has shown that.
	Stability string `json:"stability"`
	// Growth describes what grows or overflows; "" = nothing.
	Growth string `json:"growth"`
	// Expectations is "none", "met", "not met", or "undecided" if none failed but the run ended before
	// all were decided.
	Expectations string `json:"expectations"`
}

// The values of an Outcome.
const (
	EndedComplete    = "complete"
	EndedTerminated  = "terminated"
	EndedFailed      = "failed"
	EndedInterrupted = "interrupted"

	NotJudged = "not judged"
	Grows     = "grows"
	Unstable  = "unstable"
	Stable    = "stable"

	NoExpectations        = "none"
	ExpectationsMet       = "met"
	ExpectationsNotMet    = "not met"
	ExpectationsUndecided = "undecided"
)

// Expectations counts the expectations of hooks.
type Expectations struct {
	Met       int
	Failed    int
	Undecided int // the run ended before
}

func (e *Expectations) add(o Expectations) {
	e.Met, e.Failed, e.Undecided = e.Met+o.Met, e.Failed+o.Failed, e.Undecided+o.Undecided
}

// Expecter is a hook with expectations of its run. Expectations is called at the end.
type Expecter interface{ Expectations() Expectations }

// DivergedError marks an error as that of an unstable coupling: values overflow, or steps are refused down to nothing.
type DivergedError struct{ Err error }

func (e *DivergedError) Error() string { return e.Err.Error() }

// Unwrap returns the marked error.
func (e *DivergedError) Unwrap() error { return e.Err }

// Outcome is the verdict on the run.
func (r *Result) Outcome() Outcome {
	o := Outcome{Ended: string(r.Status), Stability: NotJudged, Expectations: NoExpectations}
	if r.Status == Incomplete {
		o.Ended = EndedInterrupted
	}
	switch {
	case r.Diverged:
		o.Stability, o.Growth = Unstable, r.Reason
	case r.Growing != nil:
		o.Stability, o.Growth = Grows, r.Growing.String()+CauseUnknown
	}
	switch e := r.Expectations; {
	case e.Failed > 0:
		o.Expectations = ExpectationsNotMet
	case e.Undecided > 0:
		o.Expectations = ExpectationsUndecided
	case e.Met > 0:
		o.Expectations = ExpectationsMet
	}
	return o
}

// String returns the verdict as in "complete, unstable, expectations not met". It omits a stability that was not judged, and
// expectations if there are none.
func (o Outcome) String() string {
	text := o.Ended
	if o.Stability != NotJudged {
		text += ", " + o.Stability
	}
	if o.Expectations != NoExpectations {
		text += ", expectations " + o.Expectations
	}
	return text
}

// Regular reports whether the run ended regularly.
func (o Outcome) Regular() bool { return o.Ended == EndedComplete || o.Ended == EndedTerminated }

// OK reports whether the run is a success (exit code 0): it ended regularly and met all expectations. A
// strict run must also be complete, and nothing may grow.
func (o Outcome) OK(strict bool) bool {
	asExpected := o.Expectations == NoExpectations || o.Expectations == ExpectationsMet
	return o.Regular() && asExpected && (!strict || o.Ended == EndedComplete && o.Stability != Unstable && o.Stability != Grows)
}

// far is a magnitude, relative to the nominal value, in which a failed run has diverged: subsystems fail where values overflow in them.
const far = 1e15

// judgeGrowth determines whether the run has diverged, and whether an output grows.
func (r *Run) judgeGrowth() {
	var d *DivergedError
	r.result.Diverged = errors.As(r.err, &d)
	for _, k := range r.growth.outputs {
		i := owner(r.sys.OutAt, k)
		size := math.Abs(r.x.keptY[k]) / r.sys.Infos[i].Out[k-r.sys.OutAt[i]].Magnitude()
		r.result.Diverged = r.result.Diverged || r.err != nil && size > far
	}
	if r.result.Growing = r.growth.most(0); r.result.Growing == nil && r.growth.seen.Output != "" {
		r.result.Growing = &r.growth.seen
	}
	if g := r.result.Growing; g != nil && r.growth.seen.Output == "" {
		r.warnOf(g)
	}
}

// lookForGrowth warns of strong growth during the run.
func (r *Run) lookForGrowth() {
	if g := r.growth.most(strong); g != nil && r.growth.seen.Output == "" {
		r.growth.seen = *g
		r.warnOf(g)
	}
}

// warnOf warns of growth.
func (r *Run) warnOf(g *Growth) {
	r.warn(g.String() + CauseUnknown + ": the system itself, or an unstable coupling, for which smaller steps, implicit, or an algorithm that chooses " +
		"its steps, such as ex-milne, are the remedy")
}
