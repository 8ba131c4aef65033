package master

import (
	"errors"
	"math"
)

// Hook acts at the communication points of a run: it reads and writes variables
// (Run.Variable), and may end the run.
//
// In a run with checkpoints, hooks must be Archivers: what they set the run keeps, what they
// have in mind goes into the checkpoint behind it. A hook of a run that is resumed is bound as at first, then
// reads its archive, and is not called at the point of the checkpoint again.
type Hook interface {
	// Bind is called by NewRun, before any subsystem is touched, to find the variables
	// that the hook works with.
	Bind(r *Run) error
	// At is called at the start, once the initialisation is over, and at each accepted
	// communication point, before it is recorded. What is written there holds from
	// that point on, and is recorded with it. ErrStop ends the run at that point,
	// as complete; another error ends it as failed.
	At(r *Run) error
}

// EventSource is a hook with times at which it wants to be called. Where the algorithm
// chooses the sizes of the steps, one ends at each of these times exactly; fixed steps
// stay, and the hook is called at the first communication point at or after it.
type EventSource interface {
	// NextEvent returns the first such time after t; +Inf = none.
	NextEvent(t float64) float64
}

// ErrStop is what a hook gives, wrapped or alone, to end the run at the present
// communication point as one that is complete; Result.Reason holds its text.
var ErrStop = errors.New("stopped")

// prepareHooks lets the hooks find their variables.
func (r *Run) prepareHooks() error {
	for _, h := range r.opt.Hooks {
		if err := h.Bind(r); err != nil {
			return err
		}
	}
	return nil
}

// act lets the hooks act at the present communication point.
func (r *Run) act() error {
	s := r.x.steering
	if s == nil {
		return nil
	}
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

// seeInputs makes the point show the inputs as the subsystems get them.
func (r *Run) seeInputs() {
	if s := r.x.steering; s != nil {
		copy(r.record.point.U, r.x.W)
		for i := range s.active {
			from, to := r.sys.InAt[i], r.sys.InAt[i+1]
			copy(r.record.point.U[from:to], s.inputs(i, r.record.point.U[from:to]))
		}
	}
}

// until returns the time that no step of a size that the algorithm chooses may pass.
func (r *Run) until() float64 {
	end := r.opt.Stop
	if r.want == 0 { // it chooses none
		return end
	}
	for _, h := range r.opt.Hooks {
		if e, ok := h.(EventSource); ok {
			// Less than a step that there can be is no distance.
			if t := e.NextEvent(r.t); t-r.t > 4*0x1p-52*math.Abs(r.t) && t < end {
				end = t
			}
		}
	}
	return end
}

// tellDisturbance has an algorithm that learns from the past know of what was set.
func (r *Run) tellDisturbance() {
	if !r.disturbed {
		return
	}
	if r.can.disturbed == nil {
		return
	}
	r.disturbed = false
	if next := r.can.disturbed.Disturb(); next > 0 && r.want > 0 {
		r.want, r.lost = min(r.want, next), 0
	}
}
