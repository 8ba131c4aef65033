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

// firstPart of the step size of the run is the first one, unless it is given.
const firstPart = 1e-3

// errorControl estimates the error of a macro step, decides whether it stands,
// and chooses order and size of the next (meyer 4 and 5).
type errorControl struct {
	*estimate
	config   Control
	fixed    int // the order, if it is fixed
	coupling *Coupling
	scheme   scheme
	in       *input.Approximation
	tol      *tolerances

	steps    *stepControl
	entries  []int // coupling inputs that are extrapolated
	pos, vel []int // outputs judged, by level
	names    []string

	second   []float64   // y [ny] of the second solution
	coupled  []float64   // L y + b [nu] at the end of the step
	middle   []float64   // and at the middle of a doubled step
	middleAt float64     // NaN: the step was not doubled
	astray   bool        // inputs were further off their extrapolation than expected
	past     num.History // with the end of the step in front
	e, w     []float64   // scratch over the variables judged
	scratch  []float64
	asked    bool // the last attempt asked for its repetition
	next     decision
	first    float64 // s, size of the first step; 0 = that of the run
	creep    creep
	audit    audit
}

// creep finds out whether the steps stay far below what the run was asked for.
type creep struct {
	size  float64 // s, macro step of the run
	steps int     // since
	since float64 // time of the run, s
	told  bool
}

// So many steps in a row creep that are on average below this part of that of the run.
const (
	creepSteps = 5000
	creepPart  = 1e-6
)

// take counts a step that ends at t, and gives the mean size (s) of those that creep; 0 =
// none do.
func (c *creep) take(t float64) float64 {
	if c.steps++; c.steps < creepSteps || c.told {
		return 0
	}
	mean := (t - c.since) / creepSteps
	c.steps, c.since = 0, t
	if mean < creepPart*c.size {
		return mean
	}
	return 0
}

// check refuses step doubling where a subsystem cannot take half a step, and estimates
// that have nothing to go by.
func (j *errorControl) check(s *master.System) error {
	extrapolated, held := coupledInputs(s)
	if len(extrapolated) == 0 && len(held) > 0 && !j.config.FixedStep {
		return fmt.Errorf("%w: the error estimate compares extrapolated inputs, and every coupled input is held, because its variability or that of its source is discrete "+
			"(such as %s): the estimate is 0 whatever the step; choose steps of one size (control.step=fixed, explicit, gauss-seidel), or ecco or predictor-corrector",
			master.ErrCapability, s.InName(held[0]))
	}
	if !j.halves {
		return nil
	}
	for _, info := range s.Infos {
		if !info.Caps.VariableStep {
			return fmt.Errorf("%s: %w: richardson takes every macro step in two halves as well, and the component cannot vary its step (canHandleVariableCommunicationStepSize): "+
				"choose an algorithm that takes steps of one size (explicit, gauss-seidel, implicit, or ex-local with control.step=fixed)", info, master.ErrCapability)
		}
	}
	return nil
}

func (j *errorControl) repeats() bool { return j.twice || !j.config.FixedStep }

func (j *errorControl) firstStep(H float64) float64 {
	if j.config.FixedStep {
		return 0
	}
	j.creep.size = H
	j.first = j.config.H0
	if j.first == 0 {
		j.first = min(max(firstPart*H, j.config.HMin), j.config.HMax)
	}
	return j.first
}

// disturb begins anew with the first size.
func (j *errorControl) disturb() float64 {
	j.steps.failures = 0
	return j.first
}

func (j *errorControl) monitored() []string { return j.names }

func (j *errorControl) init(x *master.Exec, t0 float64) error {
	sys := x.Sys
	for i := range sys.Subsystems { // halves: those of richardson, and of the audit
		if err := x.Splits(i); err != nil && (j.halves || !j.config.FixedStep) {
			return err
		}
	}
	j.pos, j.vel, j.names = nil, nil, nil
	var held []int
	if j.entries, held = coupledInputs(sys); len(held) > 0 && !j.config.FixedStep {
		x.Note(fmt.Sprintf("the error estimate ignores inputs that are held over each macro step because they or their sources are discrete (%d, such as %s): "+
			"control.h-max limits by how much they may be late", len(held), sys.InName(held[0])))
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
	j.creep.since = t0
	if err := j.audit.init(x, j.in); err != nil {
		return err
	}
	j.coupling.order = 0
	if j.config.FixedOrder {
		j.coupling.order = j.fixed
	}
	return nil
}

func (j *errorControl) attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	k := j.coupling.order
	judged := len(j.in.Times()) >= j.pointsFor(k) && j.coupling.jump == 0
	outcome := attemptOutcome{H: H, order: k, norms: unknownNorms}
	audited := judged && !j.config.FixedStep && j.audit.due(H)
	difference := math.NaN()
	if audited {
		var err error
		if difference, err = j.compareHalves(ctx, x, t, H, k); err != nil {
			return master.Trial{Est: math.NaN(), Indicator: math.NaN()}, err
		}
	}
	e, err := j.take(ctx, x, t, H, k, judged)
	var worst share // of an error that is too large
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN(), Iters: e.iterations, Jacobians: e.jacobians}
	switch {
	case errors.Is(err, errNotConverged):
		outcome.result = notConverged
		trial.Why = err.Error()
	case err != nil:
		return trial, err
	default:
		x.CoupleAll(t+H, j.coupled)
		outcome.result = stepUnjudged
		if judged {
			outcome.norms = j.norms(x, H, k)
			if j.sees(x, t, H, difference, &outcome.norms); j.audit.blind {
				outcome.norms.inner = difference
			}
			if j.steps.passes(outcome.norms) && !j.config.FixedStep {
				jumped, err := j.jumped(ctx, x, t, H, k)
				if err != nil {
					return trial, err
				}
				if !math.IsNaN(jumped) {
					outcome.norms.inner = jumped
				}
			}
			trial.Est = outcome.norms.largest()
			outcome.result = stepAccepted
			if !j.steps.passes(outcome.norms) {
				outcome.result = errorTooLarge
				worst = j.most(x, H, k)
				trial.Why = fmt.Sprintf("the estimated error is %.3g times the tolerance, mostly that %s", trial.Est, worst)
			}
		}
	}
	stands := outcome.result == stepAccepted || outcome.result == stepUnjudged
	j.audit.conclude(audited, stands, H)
	past := j.in.History()
	if stands {
		past = j.withNew(t + H)
	}
	for i, u := range j.entries {
		j.w[i] = j.tol.input(u, past.Values[0][u])
	}
	next, err := j.steps.conclude(outcome, past, j.entries, j.w[:len(j.entries)], j.scratch)
	if err != nil {
		if trial.Why != "" {
			remedy := ""
			if j.remedy != nil {
				remedy = j.remedy(j, x.Sys, k, worst)
			}
			err = fmt.Errorf("%w; the last attempt: %s%s", err, trial.Why, remedy)
		}
		return trial, fmt.Errorf("t = %.12g s: %w", t, err)
	}
	if stands {
		if mean := j.creep.take(t + H); mean > 0 && judged {
			j.creep.told = true
			part := j.most(x, H, k)
			x.Note(fmt.Sprintf("t = %.6g s: the steps stay at %.2g s because of the error %s; where noise or rounding makes it, no smaller step helps: "+
				"loosen control.atol for it (control.atol=%s:VALUE), or take another algorithm", t+H, mean, part, part.name))
		}
	}
	j.next = next
	j.asked = !stands
	trial.Next = next.H
	if !stands {
		trial.Verdict = master.Retry
	}
	return trial, nil
}

// withNew returns the history with the end of the step in front.
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

// pointsFor returns the number of communication points that the estimate of degree k rests on.
func (j *errorControl) pointsFor(k int) int {
	if j.points == nil {
		return k + 1
	}
	return j.points(&j.config, k)
}

// take takes the macro step, and what the estimator compares it with, to j.second.
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

// share is the part of one variable in an error.
type share struct {
	name             string
	input            int // coupling input; -1: an output
	error, tolerance float64
}

func (p share) String() string {
	return fmt.Sprintf("of %s (%.2g, tolerance %.2g)", p.name, p.error, p.tolerance)
}

// most returns the variable that has the greatest part in the error of the step of size H
// that was just estimated.
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

// norm returns the weighted norm of the difference between some outputs and the second
// solution, times a factor.
func (j *errorControl) norm(x *master.Exec, outputs []int, factor float64) float64 {
	for i, y := range outputs {
		j.e[i] = factor * (x.Y[y] - j.second[y])
		j.w[i] = j.tol.output(y, x.Y[y])
	}
	return orInf(num.WRMS(j.e[:len(outputs)], j.w[:len(outputs)]))
}

// orInf makes the norm of what is no number one that never passes.
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
	j.steps.archive(a)
	num.Carry(a, &j.creep.steps, &j.creep.since, &j.creep.told)
	j.audit.archive(a)
}

// reject takes note that the step is repeated; a subsystem that discarded it
// counts as a failure.
func (j *errorControl) reject(t, H float64) {
	if j.asked {
		j.asked = false
		j.coupling.order = j.next.order
		return
	}
	outcome := attemptOutcome{H: H, order: j.coupling.order, result: stepDiscarded,
		norms: unknownNorms}
	for i, u := range j.entries {
		j.w[i] = j.tol.input(u, j.in.At(0)[u])
	}
	if next, err := j.steps.conclude(outcome, j.in.History(), j.entries, j.w[:len(j.entries)], j.scratch); err == nil {
		j.coupling.order = next.order
	}
}
