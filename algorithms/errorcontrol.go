package algorithms

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// firstPart is the default first step size relative to the step size of the run.
const firstPart = 1e-3

// errorControl estimates the error of a macro step, accepts or rejects the step, and chooses
// order and size of the next one (meyer 4 and 5).
type errorControl struct {
	*estimate
	config   Control
	fixed    int // the order, with Control.FixedOrder
	coupling *Coupling
	scheme   scheme
	in       *input.Approximation
	tol      *tolerances

	steps    *stepControl
	entries  []int    // coupling inputs that are extrapolated
	pos, vel []int    // judged outputs at position and velocity level
	names    []string // judged variables, for reports

	second   []float64   // y [ny] of the second solution
	coupled  []float64   // L y + b [nu] at the end of the step
	middle   []float64   // L y + b [nu] at the middle of a doubled step
	middleAt float64     // s; NaN = the step was not doubled
	astray   bool        // inputs deviate from their extrapolation by more than expected
	past     num.History // history whose newest point is the end of the step
	e, w     []float64   // scratch: errors and weights of the judged variables
	scratch  []float64
	first    float64 // s, size of the first step; 0 = that of the run
	size     float64 // s, step size of the run
	audit    audit
	errorControlState
}

type errorControlState struct {
	asked bool // the last attempt requested its repetition
	next  decision
	creep creep
}

// creep detects steps that stay far below the step size of the run.
type creep struct {
	steps int     // number of steps since the time since
	since float64 // s
	told  bool    // the warning was given
}

// Steps creep if creepSteps of them in a row have a mean size below creepPart times the step
// size of the run.
const (
	creepSteps = 5000
	creepPart  = 1e-6
)

// take counts a step that ends at t and returns the mean step size (s) if the steps creep beside the step
// size of the run; else 0.
func (c *creep) take(t, size float64) float64 {
	if c.steps++; c.steps < creepSteps || c.told {
		return 0
	}
	mean := (t - c.since) / creepSteps
	c.steps, c.since = 0, t
	if mean < creepPart*size {
		return mean
	}
	return 0
}

// check refuses step doubling if a subsystem cannot take half a step, and estimates without any
// extrapolated input.
func (j *errorControl) check(s *master.System) error {
	extrapolated, held := coupledInputs(s)
	if len(extrapolated) == 0 && len(held) > 0 && !j.config.FixedStep {
		return fmt.Errorf("%w: the error estimate compares extrapolated inputs, but all coupled inputs are held "+
			"because they or their sources "+
			"are discrete (such as %s), so the estimate is always 0; choose a fixed step size (control.step=fixed, explicit, "+
			"gauss-seidel), ecco or predictor-corrector",
			master.ErrCapability, s.InName(held[0]))
	}
	if !j.halves {
		return nil
	}
	for _, info := range s.Infos {
		if !info.Caps.VariableStep {
			return fmt.Errorf("%s: %w: richardson also takes every macro step in two halves, but the component "+
				"cannot vary its step "+
				"(canHandleVariableCommunicationStepSize): choose an algorithm with a fixed step size (explicit, "+
				"gauss-seidel, "+
				"implicit, or ex-local with control.step=fixed)", info, master.ErrCapability)
		}
	}
	return nil
}

func (j *errorControl) repeats() bool { return j.twice || !j.config.FixedStep }

func (j *errorControl) firstStep(H float64) float64 {
	if j.config.FixedStep {
		return 0
	}
	j.size = H
	j.first = j.config.H0
	if j.first == 0 {
		j.first = min(max(firstPart*H, j.config.HMin), j.config.HMax)
	}
	return j.first
}

// disturb starts again with the first step size.
func (j *errorControl) disturb() float64 {
	j.steps.failures = 0
	return j.first
}

func (j *errorControl) monitored() []string { return j.names }

func (j *errorControl) init(x *master.Exec, t0 float64) error {
	sys := x.Sys
	j.pos, j.vel, j.names = nil, nil, nil
	var held []int
	if j.entries, held = coupledInputs(sys); len(held) > 0 && !j.config.FixedStep {
		x.Note(fmt.Sprintf("the error estimate ignores inputs that are held over each macro step because they or "+
			"their sources "+
			"are discrete (%d, such as %s): limit their delay with control.h-max", len(held), sys.InName(held[0])))
	}
	if err := j.chooseStates(sys); err != nil {
		return err
	}
	if j.byInputs {
		j.names = nil
		for _, k := range j.entries {
			j.names = append(j.names, sys.InName(k)+" (coupling input)")
		}
	}
	if j.note != nil {
		if text := j.note(sys); text != "" {
			x.Note(text)
		}
	}
	n := max(len(j.entries), len(j.pos), len(j.vel))
	j.second = make([]float64, len(x.Y))
	j.coupled, j.middle = make([]float64, len(x.W)), make([]float64, len(x.W))
	j.middleAt = math.NaN()
	j.past = num.History{Times: make([]float64, input.MaxPoints+1), Values: make([][]float64, input.MaxPoints+1)}
	j.e, j.w, j.scratch = make([]float64, n), make([]float64, n), make([]float64, n)
	j.steps = &stepControl{config: &j.config}
	j.errorControlState = errorControlState{creep: creep{since: t0}}
	j.audit.init(x, j.in, j.implicit)
	j.coupling.order = 0
	if j.config.FixedOrder {
		j.coupling.order = j.fixed
	}
	return nil
}

func (j *errorControl) attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	k := j.coupling.order
	judged := len(j.in.Times()) >= j.pointsFor(k) && j.coupling.jump == 0
	o := attemptOutcome{H: H, order: k, norms: unknownNorms}
	audited := judged && !j.config.FixedStep && j.audit.due(H)
	difference := math.NaN()
	if audited {
		var err error
		if difference, err = j.compareHalves(ctx, x, t, H, k); err != nil {
			return err
		}
	}
	e, err := j.take(ctx, x, t, H, k, judged)
	trial.Iters, trial.Jacobians = e.iterations, e.jacobians
	var worst share // of an error that is too large
	switch {
	case errors.Is(err, errNotConverged):
		o.result = notConverged
		trial.Why = err.Error()
	case err != nil:
		return err
	default:
		x.CoupleAll(t+H, j.coupled)
		o.result = stepUnjudged
		if judged {
			if err := j.judge(ctx, x, t, difference, &o); err != nil {
				return err
			}
			trial.Est = o.norms.largest()
		}
		if o.result == errorTooLarge {
			worst = j.most(x, H, k)
			trial.Why = fmt.Sprintf("the estimated error is %.3g times the tolerance, mostly that %s", trial.Est, worst)
			if err := x.Finite(t + H); err != nil {
				trial.Why = err.Error()
			}
		}
	}
	j.audit.conclude(audited, o.accepted(), H)
	return j.conclude(x, t, o, trial, worst)
}

// judge estimates the error of the step from t that was just taken and accepts or rejects the step.
// difference is that of an audit; NaN = there was none.
func (j *errorControl) judge(ctx context.Context, x *master.Exec, t, difference float64, o *attemptOutcome) error {
	o.norms = j.norms(x, o.H, o.order)
	if j.sees(x, t, o.H, difference, &o.norms); j.audit.blind {
		o.norms.inner = difference
	}
	if j.steps.passes(o.norms) && !j.config.FixedStep {
		jumped, err := j.jumped(ctx, x, t, o.H, o.order)
		if err != nil {
			return err
		}
		if !math.IsNaN(jumped) {
			o.norms.inner = jumped
		}
	}
	o.result = stepAccepted
	if !j.steps.passes(o.norms) {
		o.result = errorTooLarge
	}
	return nil
}

// conclude chooses order and size of the next attempt and completes the trial.
func (j *errorControl) conclude(x *master.Exec, t float64, o attemptOutcome, trial *master.Trial, worst share) error {
	past := j.in.History()
	if o.accepted() {
		past = j.withNew(t + o.H)
	}
	next, err := j.decide(o, past)
	if err != nil {
		if trial.Why != "" {
			remedy := ""
			if j.remedy != nil {
				remedy = j.remedy(j, x.Sys, o.order, worst)
			}
			err = fmt.Errorf("%w; the last attempt: %s%s", err, trial.Why, remedy)
		}
		return fmt.Errorf("t = %.12g s: %w", t, err)
	}
	j.next, j.asked, trial.Next = next, !o.accepted(), next.H
	if !o.accepted() {
		trial.Verdict = master.Retry
		return nil
	}
	if mean := j.creep.take(t+o.H, j.size); mean > 0 && o.result == stepAccepted {
		j.creep.told = true
		part := j.most(x, o.H, o.order)
		x.Note(fmt.Sprintf("t = %.6g s: the steps stay at %.2g s because of the error %s; if noise or rounding "+
			"causes it, "+
			"smaller steps do not help: loosen control.atol for it (control.atol=%s:VALUE), or use another algorithm",
			t+o.H, mean, part, part.name))
	}
	return nil
}

// decide chooses order and size of the next attempt from a history [points].
func (j *errorControl) decide(o attemptOutcome, past num.History) (decision, error) {
	for i, u := range j.entries {
		j.w[i] = j.tol.input(u, past.Values[0][u])
	}
	return j.steps.conclude(o, past, j.entries, j.w[:len(j.entries)], j.scratch)
}

// withNew returns the history with the end t of the step as newest point.
func (j *errorControl) withNew(t float64) num.History {
	n := 0
	put := func(t float64, v []float64) { j.past.Times[n], j.past.Values[n] = t, v; n++ }
	put(t, j.coupled)
	if !math.IsNaN(j.middleAt) {
		put(j.middleAt, j.middle)
	}
	for i, t := range j.in.Times() {
		if n < len(j.past.Times) {
			put(t, j.in.At(i))
		}
	}
	return num.History{Times: j.past.Times[:n], Values: j.past.Values[:n]}
}

// pointsFor returns the number of communication points that the estimate at order k needs.
func (j *errorControl) pointsFor(k int) int {
	if j.points == nil {
		return k + 1
	}
	return j.points(&j.config, k)
}

// take takes the macro step and, if judged, the second solution, whose outputs go to j.second.
func (j *errorControl) take(ctx context.Context, x *master.Exec, t, H float64, k int, judged bool) (effort, error) {
	j.middleAt = math.NaN()
	if j.solve == nil {
		return j.coupling.advance(ctx, x, t, H, k)
	}
	return j.solve(ctx, j, x, t, H, k, judged)
}

// norms returns the weighted norms of the estimated errors.
func (j *errorControl) norms(x *master.Exec, H float64, k int) errorNorms {
	n := unknownNorms
	if j.byInputs {
		n.u = orInf(j.defect(j.coupled)) // (21), (24)
		return n
	}
	factorPos, factorVel := j.factors(j, H, k)
	if len(j.pos) > 0 {
		n.pos = j.norm(x, j.pos, factorPos)
	}
	if len(j.vel) > 0 || len(j.pos) == 0 {
		n.vel = j.norm(x, j.vel, factorVel)
	}
	return n
}

// share is the error of one variable.
type share struct {
	name             string
	input            int // coupling input; -1 = an output
	error, tolerance float64
}

func (p share) String() string {
	return fmt.Sprintf("of %s (%.2g, tolerance %.2g)", p.name, p.error, p.tolerance)
}

// most returns the variable with the largest weighted error in the step of size H that was just
// estimated.
func (j *errorControl) most(x *master.Exec, H float64, k int) (worst share) {
	take := func(name string, input int, e, w float64) {
		if worst.name == "" || math.IsNaN(e) || math.Abs(e)*worst.tolerance > worst.error*w {
			worst = share{name, input, math.Abs(e), w}
		}
	}
	if j.byInputs {
		for _, u := range j.entries {
			take(x.Sys.InName(u), u, j.in.Extrapolated(u)-j.coupled[u], j.tol.input(u, j.coupled[u]))
		}
		return worst
	}
	pos, vel := j.factors(j, H, k)
	for _, y := range j.pos {
		take(x.Sys.OutName(y), -1, pos*(x.Y[y]-j.second[y]), j.tol.output(y, x.Y[y]))
	}
	for _, y := range j.vel {
		take(x.Sys.OutName(y), -1, vel*(x.Y[y]-j.second[y]), j.tol.output(y, x.Y[y]))
	}
	return worst
}

// norm returns the weighted norm of factor times the difference between outputs and the second
// solution.
func (j *errorControl) norm(x *master.Exec, outputs []int, factor float64) float64 {
	for i, y := range outputs {
		j.e[i] = factor * (x.Y[y] - j.second[y])
		j.w[i] = j.tol.output(y, x.Y[y])
	}
	return orInf(num.WRMS(j.e[:len(outputs)], j.w[:len(outputs)]))
}

// orInf maps NaN to +Inf.
func orInf(norm float64) float64 {
	if math.IsNaN(norm) {
		return math.Inf(1)
	}
	return norm
}

func (j *errorControl) accept(x *master.Exec, t float64) {
	if !math.IsNaN(j.middleAt) {
		j.in.Push(j.middleAt, j.middle)
	}
	j.coupling.order = j.next.order
}

func (j *errorControl) review() []string { return nil }

func (j *errorControl) archive(a *master.Archive) {
	a.Section("control of order and step size")
	a.All(&j.errorControlState, &j.steps.stepState, &j.audit.auditState)
}

// reject takes order and size for the repetition. A step that a subsystem discarded counts as a
// failure.
func (j *errorControl) reject(t, H float64) {
	if j.asked {
		j.asked = false
		j.coupling.order = j.next.order
		return
	}
	o := attemptOutcome{H: H, order: j.coupling.order, result: stepDiscarded, norms: unknownNorms}
	if next, err := j.decide(o, j.in.History()); err == nil {
		j.coupling.order = next.order
	}
}
