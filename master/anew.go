package master

import (
	"fmt"
	"math"
	"time"
)

// MoreWorkersError ends a run with Options.BeginAnew early: begun again with these
// Options.Workers and Costs, it is done sooner than this one would be.
type MoreWorkersError struct {
	Workers int
	Costs   []float64
	Serial  float64 // s, that a macro step takes as it is
	Side    float64 // s, that it takes side by side
}

func (e *MoreWorkersError) Error() string {
	return fmt.Sprintf("a macro step takes %.2g ms, with %d workers %.2g ms", e.Serial*1e3, e.Workers, e.Side*1e3)
}

// trialTime is how long a run looks whether it should begin anew.
const trialTime = 2 * time.Second

// moreWorkers tells, from how the run has gone up to now, whether it pays to begin it
// anew with more workers: a subsystem keeps its thread for life (fmi2 38), so that they
// cannot be spread while it lasts.
func (r *Run) moreWorkers(now time.Time) *MoreWorkersError {
	c, spent := r.x.crew, now.Sub(r.startWall)
	if !r.opt.BeginAnew || !c.guessed || r.accepted < enoughSteps || spent > trialTime {
		return nil
	}
	costs := make([]float64, len(r.sys.Subsystems))
	for _, sub := range r.sys.Subsystems {
		if u, ok := As[Unique](sub); ok && u.Unique() {
			return nil
		}
	}
	for _, i := range r.sys.Stepped {
		if r.x.steps[i] < enoughSteps {
			return nil
		}
		costs[i] = r.subsystemSeconds(i) / float64(r.accepted)
		if known := c.costs[i]; !math.IsNaN(known) { // of one apart, it is not what the run waits for
			costs[i] = known * float64(r.x.steps[i]) / float64(r.accepted)
		}
	}
	workers, side, alone := bestCrew(r.sys.Stepped, costs)
	if workers < 2 {
		return nil
	}
	serial := spent.Seconds() / float64(r.accepted)
	e := &MoreWorkersError{workers, costs, serial, serial - alone + side}
	all := float64(r.accepted) * (r.opt.Stop - r.opt.Start) / (r.t - r.opt.Start) // macro steps
	// Starting takes time once more, and so does unpacking before it: about as much again.
	const start = 2
	if all*e.Side+start*now.Sub(r.beginWall).Seconds() > worthwhile*(all*e.Serial-spent.Seconds()) {
		return nil
	}
	return e
}
