package master

import (
	"errors"
	"math"
)

// Hook acts at the communication points of a run: it reads and writes variables
// (Run.Variable), and may end the run.
//
// In a run with checkpoints, hooks must be Archivers that carry their own state; the run carries the
// values that they have set. In a resumed run a hook is bound, then reads its archive, and is not called
// again at the communication point of the checkpoint.
type Hook interface {
	// Bind is called by NewRun, before any call of a subsystem, to look up the variables of the hook.
	Bind(r *Run) error
	// At is called at the start, after the initialisation, and at each accepted communication point,
	// before it is recorded. Values set there hold from that point on, and are recorded with it.
	// ErrStop ends the run at that point as complete; another error ends it as failed.
	At(r *Run) error
}

// EventSource is a hook with times at which it must be called, Signals that jump there, or a subsystem with events
// that it knows in advance. If the algorithm chooses the step sizes, steps end exactly at these times; with fixed
// steps the event of a hook or of Signals acts at the first communication point at or after them, and that of a
// subsystem within the step.
type EventSource interface {
	// NextEvent returns the first such time after t; +Inf = none.
	NextEvent(t float64) float64
}

// ErrStop is returned by a hook, wrapped or alone, to end the run as complete at the present
// communication point; Result.Reason is its text.
var ErrStop = errors.New("stopped")

// prepareHooks binds the hooks.
func (r *Run) prepareHooks() error {
	for _, h := range r.opt.Hooks {
		if err := h.Bind(r); err != nil {
			return err
		}
	}
	return nil
}

// act calls the hooks at the present communication point.
func (r *Run) act() error {
	r.seeInputs()
	for _, h := range r.opt.Hooks {
		err := h.At(r)
		if errors.Is(err, ErrStop) {
			r.stopped = err.Error()
		} else if err != nil {
			return err
		}
	}
	return nil
}

// seeInputs updates the inputs of the point to those that the subsystems get.
func (r *Run) seeInputs() {
	if s := r.x.steering; s != nil {
		copy(r.record.point.U, r.x.W)
		for i := range s.active {
			from, to := r.sys.InAt[i], r.sys.InAt[i+1]
			copy(r.record.point.U[from:to], s.inputs(i, r.record.point.U[from:to]))
		}
	}
}

// until returns the time that no step may pass if the algorithm chooses the step sizes.
func (r *Run) until() float64 {
	end := r.opt.Stop
	if r.want == 0 { // it chooses none
		return end
	}
	before := func(source any) {
		if e, ok := source.(EventSource); ok {
			// An event closer than rounding is now, or at the end.
			if t := e.NextEvent(r.t); t-r.t > rounding(r.t) && end-t > rounding(end) {
				end = t
			}
		}
	}
	for _, h := range r.opt.Hooks {
		before(h)
	}
	before(r.opt.Signals)
	for i := range r.x.able {
		before(r.x.able[i].events)
	}
	return end
}

// rounding is how far apart two times may be that are meant to be t.
func rounding(t float64) float64 { return 4 * 0x1p-52 * math.Abs(t) }

// tellDisturbance informs an algorithm that uses the history of inputs that a variable was set.
func (r *Run) tellDisturbance() {
	if r.can.disturbed == nil {
		return
	}
	r.disturbed = false
	if next := r.can.disturbed.Disturb(); next > 0 && r.want > 0 {
		r.want, r.lost = min(r.want, next), 0
	}
}
