package fmi

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

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
		return errors.Join(in.remote.lost(in.is(capi.DoStep).String(), &Ended{Reason: cause}), in.remote.Disconnect())
	}
	late := fmt.Sprintf("%s: fmi2DoStep of %s at t = %.12g s: the step was still pending after %v",
		in.name, filepath.Base(in.fmu.Path), in.from, in.pending.Limit)
	err := in.CancelStep()
	if err == nil {
		return fmt.Errorf("%s and was cancelled; %s", late, moreTime)
	}
	err = fmt.Errorf("%s and cannot be cancelled (%w); %s", late, err, moreTime)
	if in.state == StateStepInProgress { // no call is legal
		in.state, in.gone = StateFatal, err
	}
	return err
}
