package master

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"
)

// A remainder of the simulated time below gridTolerance·H is not a step.
const (
	gridTolerance = 1e-9
	maxRetries    = 20
	tickInterval  = 250 * time.Millisecond
	flushInterval = time.Second
)

var errOnce = errors.New("a run can be started only once; call NewRun with new subsystems")

// Run runs the system from start to stop, once. The result is valid also if err is not nil. Cancellation
// of ctx ends the run at the next communication point.
func (r *Run) Run(ctx context.Context) (res Result, err error) {
	if r.phase != fresh {
		return r.result, errOnce
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r.Start(ctx) == nil {
		_ = r.stepToEnd(ctx) // Close gives the error
	}
	return r.Close()
}

func (r *Run) stepToEnd(ctx context.Context) (err error) {
	defer r.contain(&err)
	for more := true; more && err == nil; {
		if r.accepted >= r.admitted {
			err = r.admit(ctx)
		}
		if err == nil {
			more, err = r.step(ctx)
		}
	}
	return err
}

// Step takes one macro step. more is false at the end of the run and after an error.
func (r *Run) Step(ctx context.Context) (more bool, err error) {
	if r.err != nil {
		return false, r.err
	}
	if r.phase == fresh || r.phase == closed {
		return false, errors.New("a run can be stepped only after its start and before its close")
	}
	if r.phase == finished {
		return false, nil
	}
	defer r.contain(&err)
	return r.step(ctx)
}

func (r *Run) step(ctx context.Context) (more bool, err error) {
	if ctx.Err() != nil {
		return false, r.cancelled(ctx)
	}
	if r.disturbed {
		r.tellDisturbance()
	}
	next, planned := r.target(r.until())
	H, end, err := r.takeStep(ctx, planned)
	if end != nil && H == 0 {
		r.x.revert()
		return false, r.terminate(end, true)
	}
	reached := r.t + H
	if H == planned {
		reached = next
	}
	if err == nil {
		err = r.x.Finite(reached)
	}
	if err != nil {
		r.x.revert()
		return false, r.fail(err)
	}
	r.accept(reached, H, reached == next)
	missed := r.pace(ctx)
	if err := r.recordPoint(); err != nil {
		return false, err
	}
	if missed != nil {
		return false, r.fail(missed)
	}
	if end != nil {
		return false, r.terminate(end, false)
	}
	return r.goOn()
}

// accept accepts a step of size H to the time reached.
func (r *Run) accept(reached, H float64, whole bool) {
	r.reach(reached, H, whole, r.trial.Next)
	r.accepted++
	for len(r.orders) <= r.trial.Order {
		r.orders = append(r.orders, 0)
	}
	r.orders[r.trial.Order]++
	if r.own.open {
		r.own.see(r.x)
	}
	r.x.keep()
	r.record.point.Y = r.x.shown()
	if r.growth.see(r.t, r.x.Y); r.growth.due() {
		r.lookForGrowth()
	}
	r.x.CoupleAll(r.t, r.x.W)
	r.alg.Accept(r.x, r.t)
}

// terminate ends the run regularly at the present point, because a subsystem has ended the simulation there or, if
// within is true, in the step from there.
func (r *Run) terminate(end *StepError, within bool) error {
	r.phase = finished
	r.ended = end.Error()
	if within && !(end.Reached <= r.t) {
		r.ended += fmt.Sprintf("; the run ends at the last common point, t = %.12g s", r.t)
		if !math.IsNaN(end.Reached) {
			r.ended += fmt.Sprintf("; to run up to %.12g s, choose a step size with a communication point there", end.Reached)
		}
		r.warn(r.ended)
	}
	if r.opt.Strict {
		return r.fail(end)
	}
	return nil
}

// Terminated reports whether a subsystem has ended the simulation.
func (r *Run) Terminated() bool { return r.ended != "" }

// goOn does the periodic work that is due at a communication point.
func (r *Run) goOn() (more bool, err error) {
	if r.ticked.Load() {
		r.ticked.Store(false)
		r.tick.Reset(tickInterval)
		if err := r.onTick(time.Now()); err != nil {
			return false, err
		}
	}
	if r.atEnd() || r.stopped != "" {
		r.phase = finished
		return false, nil
	}
	if c := r.opt.Checkpoints; c != nil && c.Every > 0 {
		if err := r.checkpointIfDue(c); err != nil {
			return false, r.fail(err)
		}
	}
	return true, nil
}

// takeStep attempts the step by H, repeated with smaller sizes, until an attempt is accepted. It returns
// its size, and how a subsystem has ended the simulation at its end; size 0 = a subsystem has ended it within the step.
func (r *Run) takeStep(ctx context.Context, H float64) (_ float64, end *StepError, err error) {
	if err := r.x.save(r.t); err != nil {
		return 0, nil, err
	}
	last := H       // attempted
	var cause error // why the last attempt is repeated
	for range maxRetries {
		// Before the first attempt, too: repeated steps equal each other, but often not a first one.
		if err := r.x.RestoreAll(); err != nil {
			return 0, nil, err
		}
		accepted, failure, err := r.attempt(ctx, H)
		if err != nil {
			return 0, nil, err
		}
		if accepted {
			return H, r.x.terminated(), nil
		}
		if end := ending(failure); end != nil {
			return 0, end, nil
		}
		if cause = failure; failure == nil {
			cause = errors.New(r.trial.Why)
		}
		shorter, err := r.shorter(H, failure)
		if err != nil {
			return 0, nil, err
		}
		r.opt.Logger.Debug("macro step rejected", "t", r.t, "H", H, "next", shorter, "why", cause)
		r.rejected++
		r.alg.Reject(r.t, H)
		r.x.revert()
		if r.t+shorter == r.t {
			break
		}
		last, H = H, shorter
	}
	return 0, nil, fmt.Errorf("the step from t = %.12g s was rejected down to H = %.4g s; the last attempt: %w",
		r.t, last, cause)
}

// ending returns the error of a subsystem that has ended the simulation within a step; nil = it has not.
func ending(failure error) (end *StepError) {
	if errors.Is(failure, ErrTerminated) && errors.As(failure, &end) {
		return end
	}
	return nil
}

// attempt makes one attempt at the step by H. failure is its error, which a repetition may avoid; err
// ends the run.
func (r *Run) attempt(ctx context.Context, H float64) (accepted bool, failure, err error) {
	trial := &r.trial
	*trial = Trial{Est: math.NaN(), Indicator: math.NaN()}
	failure = r.alg.Attempt(ctx, r.x, r.t, H, trial)
	r.iterations += trial.Iters
	r.jacobians += trial.Jacobians
	if failure != nil { // there is no estimate
		trial.Est, trial.Indicator = math.NaN(), math.NaN()
	}
	accepted = failure == nil && trial.Verdict == Accept
	if r.opt.Attempts != nil {
		err = r.opt.Attempts.RecordAttempt(r.t, H, *trial, accepted, failure)
	}
	return accepted, failure, err
}

// shorter returns the size of the next attempt, after one by H that failed or whose verdict was Retry.
func (r *Run) shorter(H float64, failure error) (float64, error) {
	var step *StepError
	switch {
	case failure != nil:
		if !errors.As(failure, &step) || !errors.Is(failure, ErrDiscard) {
			return 0, failure
		}
		if !r.x.repeats() {
			return 0, fmt.Errorf("%w; %s", failure, r.discardRemedy())
		}
		if done := step.Reached - r.t; done > 0 && done < H {
			return done, nil
		}
	default:
		if info := r.inflexible(); !r.x.repeats() || info != nil {
			return 0, fmt.Errorf("the step from t = %.12g s by %.4g s is to be repeated with a smaller one, because %s; %w: %s",
				r.t, H, r.trial.Why, ErrCapability, r.repeatRemedy(info))
		}
		if next := r.trial.Next; next > 0 && next < H {
			return next, nil
		}
	}
	return H / 2, nil
}

// repeatRemedy returns the remedy if a step cannot be repeated.
func (r *Run) repeatRemedy(info *Info) string {
	if info == nil {
		return "not every subsystem is taken back; choose a smaller step size"
	}
	return fmt.Sprintf("%s cannot roll back and take a shorter step (canGetAndSetFMUstate, "+
		"canHandleVariableCommunicationStepSize); choose a smaller step size", info)
}

func (r *Run) onTick(now time.Time) error {
	if now.Sub(r.lastFlush) >= flushInterval && r.pacer == nil {
		r.lastFlush = now
		began := time.Now()
		for _, rec := range r.opt.Recorders {
			if err := rec.Flush(); err != nil {
				return r.fail(err)
			}
		}
		r.inRecorders += time.Since(began)
	}
	r.tidy()
	r.tellNotes()
	if r.opt.Observe != nil {
		p := Progress{T: r.t, Start: r.opt.Start, Stop: r.opt.Stop, Steps: r.accepted, Rejected: r.rejected,
			Iterations: r.iterations, Wall: r.earlier + now.Sub(r.startWall)}
		if r.pacer != nil {
			p.Timing = r.pacer.result()
		}
		r.opt.Observe(p)
	}
	return nil
}

// tidy calls Options.Tidy.
func (r *Run) tidy() {
	if r.opt.Tidy != nil {
		restored, lasting := r.opt.Tidy()
		for _, text := range restored {
			r.note(text)
		}
		for _, text := range lasting {
			r.warn(text)
		}
	}
}

// fail ends the stepping with an error, unless there is one already.
func (r *Run) fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// contain turns a panic of a Go subsystem, algorithm or recorder into an error of the run, so that
// results are kept and the other subsystems are ended.
func (r *Run) contain(err *error) {
	if *err != nil {
		r.reportElsewhere(*err)
	}
	if p := recover(); p != nil {
		r.x.revert()
		near := ""
		if r.x.current != outside {
			near = " near subsystem " + r.sys.Infos[r.x.current].Name
		}
		r.opt.Logger.Error("panic"+near, "t", r.t, "panic", p, "stack", string(debug.Stack()))
		*err = r.fail(fmt.Errorf("panic%s at t = %.12g s: %v", near, r.t, p))
	}
}

// reportElsewhere logs a panic of another thread than the run's own.
func (r *Run) reportElsewhere(err error) {
	var p *panicError
	if errors.As(err, &p) {
		r.opt.Logger.Error("panic near subsystem "+p.subsystem, "t", r.t, "panic", p.value, "stack", string(p.stack))
	}
}
