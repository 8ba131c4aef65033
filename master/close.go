package master

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Close ends the run at any stage: it ends the recorders, and terminates and frees the subsystems. The
// error is the one that ended the stepping, joined with those of the recorders. What goes wrong when
// subsystems are ended changes no result and is a warning.
func (r *Run) Close() (Result, error) {
	if r.phase == closed {
		return r.result, r.err
	}
	if r.phase != fresh {
		defer runtime.UnlockOSThread()
	}
	defer r.unmark(r.parts)
	r.wall = r.stepping()
	if r.pacer != nil {
		r.pacer.stop()
	}
	if r.tick != nil {
		r.tick.Stop()
	}
	if r.can.reporter != nil && r.accepted > 0 {
		report := r.can.reporter.Report()
		for _, text := range report.Warnings {
			r.warn(text)
		}
		r.notes = append(r.notes, report.Notes...)
	}
	if r.started {
		r.tidy()
	}
	r.keepCosts()
	r.conclude()
	r.phase = closed
	var errs []error
	for _, rec := range r.opt.Recorders[:r.record.begun] {
		if err := r.end(rec); err != nil && !errors.Is(r.err, err) {
			errs = append(errs, err)
			r.blame(errs)
		}
	}
	r.err = errors.Join(append([]error{r.err}, errs...)...)
	told := len(r.warnings)
	r.releaseAll()
	r.x.crew.stop()
	r.result.Warnings = append(r.result.Warnings, r.warnings[told:]...)
	return r.result, r.err
}

// releaseAll ends the subsystems, except those in use by another run because this one has not started
// or was refused.
func (r *Run) releaseAll() {
	for i := range r.sys.Subsystems {
		if r.parts == nil {
			parts := r.subsystemParts(i)
			if r.mark(parts) != nil {
				continue
			}
			defer r.unmark(parts)
		}
		_ = r.x.crew.on(i, func() error { r.release(i); return nil })
	}
}

// blame marks a run as failed if only its end went wrong.
func (r *Run) blame(errs []error) {
	if len(errs) > 0 && r.err == nil {
		r.result.Status, r.result.Reason = Failed, errors.Join(errs...).Error()
	}
}

// end ends one recorder; a panic in it does not affect the others.
func (r *Run) end(rec Recorder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a recorder: %v", p)
		}
	}()
	return rec.End(r.result)
}

// release ends one subsystem; a panic in it does not affect the others.
func (r *Run) release(i int) {
	try := func(f func() error) {
		if err := r.x.crew.guarded(i, f); err != nil {
			r.warn(fmt.Sprintf("%s: ending: %s; no result is lost", r.sys.Infos[i], strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	if state := r.x.states[i]; state != nil {
		try(func() error { return r.x.saver[i].FreeState(state) })
	}
	able := &r.x.able[i]
	if able.terminator != nil && r.started {
		try(able.terminator.Terminate)
	}
	if able.closer != nil {
		try(able.closer.Close)
	}
}

// concludeParts fills in the reports of algorithm, hooks and subsystems.
func (r *Run) concludeParts() {
	res := &r.result
	if r.can.reporter != nil && r.ready {
		report := r.can.reporter.Report()
		res.Monitored, res.Bonds, res.Models = report.Monitored, report.Bonds, report.Models
	}
	for _, h := range r.opt.Hooks {
		if e, ok := h.(Expecter); ok {
			res.Expectations.add(e.Expectations())
		}
	}
	for i, info := range r.sys.Infos {
		if all := r.restarts(i); len(all) > 0 {
			if res.Restarts == nil {
				res.Restarts = map[string][]Restart{}
			}
			res.Restarts[info.Name] = all
		}
	}
}

// conclude fills the result from the state of the run.
func (r *Run) conclude() {
	res := &r.result
	r.tellNotes()
	r.tellOddities()
	r.judgeGrowth()
	if r.accepted > 0 {
		var warnings []string
		res.OwnSteps, warnings = r.own.tell(r.sys, (r.t-r.opt.Start)/float64(r.accepted))
		for _, text := range warnings {
			r.warn(text)
		}
	}
	res.Workers = len(r.x.crew.errs)
	res.Time, res.Accepted, res.Rejected = r.t, r.accepted, r.rejected
	if r.parts != nil { // else algorithm, hooks and subsystems may be in use by another run
		r.concludeParts()
	}
	inside := make([]float64, len(r.x.crew.errs)) // by worker
	for i := range r.sys.Subsystems {
		res.SubsystemSteps = append(res.SubsystemSteps, r.x.steps[i])
		res.SubsystemSaves = append(res.SubsystemSaves, r.x.saves[i])
		res.SubsystemRestores = append(res.SubsystemRestores, r.x.restores[i])
		seconds := r.subsystemSeconds(i)
		res.SubsystemSeconds = append(res.SubsystemSeconds, seconds)
		inside[r.x.crew.owner[i]] += seconds
	}
	if r.tick != nil {
		res.WallSeconds = r.wall.Seconds()
	}
	res.MasterSeconds = res.WallSeconds - slices.Max(inside)
	if p := r.pacer; p != nil {
		res.Realtime = p.result()
		res.MasterSeconds -= p.waited.Seconds()
		if text := res.Realtime.Missed(); text != "" && !errors.Is(r.err, ErrOverrun) {
			r.warn(text)
		}
	}
	res.MasterSeconds = max(0, res.MasterSeconds)
	res.RecordSeconds = min(r.inRecorders.Seconds(), res.MasterSeconds)
	res.StartSeconds = r.starting.Seconds()
	res.Orders, res.Iterations, res.Jacobians, res.Manipulated = r.orders, r.iterations, r.jacobians, r.manipulated
	res.Loops, res.Warnings, res.Notes = r.loops, append(r.initWarnings, r.warnings...), r.notes
	switch {
	case r.ended != "" && (r.err == nil || errors.Is(r.err, ErrTerminated)):
		res.Status, res.Reason = Terminated, r.ended
	case r.err == nil && r.phase == finished:
		res.Status, res.Reason = Complete, r.stopped
	case r.err == nil:
		res.Status, res.Reason = Incomplete, fmt.Sprintf("stopped at t = %.12g s", r.t)
	case errors.Is(r.err, context.Canceled), errors.Is(r.err, context.DeadlineExceeded), errors.Is(r.err, ErrInterrupted):
		res.Status, res.Reason = Incomplete, fmt.Sprintf("cancelled at t = %.12g s: %v", r.t, r.err)
	default:
		res.Status, res.Reason = Failed, r.err.Error()
	}
}
