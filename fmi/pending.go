package fmi

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// PendingError is the error of a step that was Pending for longer than
// InstanceOptions.StepTimeout, of an instance in this process.
type PendingError struct {
	Instance string
	FMU      string        // name of the file
	Time     float64       // s, where the step began
	Limit    time.Duration // the StepTimeout
	Err      error         // of fmi2CancelStep; nil = the step was cancelled
}

// Error names instance, FMU, call, time and remedy.
func (e *PendingError) Error() string {
	end := "and was cancelled"
	if e.Err != nil {
		end = fmt.Sprintf("and cannot be cancelled (%v)", e.Err)
	}
	return fmt.Sprintf("%s: fmi2DoStep of %s at t = %.12g s: the step was still pending after %v %s; %s",
		e.Instance, e.FMU, e.Time, e.Limit, end, moreTime)
}

// Unwrap returns the error of fmi2CancelStep.
func (e *PendingError) Unwrap() error { return e.Err }

const moreTime = "if the FMU needs longer steps, give them more time (--step-timeout)"

// pend begins to measure how long a step is Pending.
func (in *Instance) pend() {
	used := time.Duration(0)
	if rate := native.TickRate(); rate > 0 { // fmi2DoStep took this time
		used = time.Duration(min(float64(in.spent)/rate, in.pending.Limit.Seconds()) * float64(time.Second))
	}
	in.pending.Begin(used)
}

// giveUp cancels a step that is pending for too long, or ends its process, and returns the error.
func (in *Instance) giveUp() error {
	if in.remote != nil {
		cause := fmt.Sprintf("the step was still pending after %v, so the process was ended; %s", in.pending.Limit, moreTime)
		in.state = StateFatal
		return errors.Join(in.remote.lost(fmi2.DoStep.String(), &Ended{Reason: cause}), in.remote.Disconnect())
	}
	e := &PendingError{Instance: in.name, FMU: filepath.Base(in.fmu.Path), Time: in.from, Limit: in.pending.Limit}
	e.Err = in.CancelStep()
	if in.state == StateStepInProgress { // not cancelled: no call is legal
		in.state, in.gone = StateFatal, e
	}
	return e
}
