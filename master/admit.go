package master

import (
	"context"
	"math"
	"time"
)

// Admission is asked by Run.Run, after the start and whenever what it has admitted is
// used up, how many macro steps may be taken; it may wait, so that a run can be paused.
// Fewer than one are one; many are taken as fast as without. The time it takes is no time
// of the run. An error ends the run like a context that has ended.
type Admission func(ctx context.Context) (steps int, err error)

// admit asks for macro steps if there are none left.
func (r *Run) admit(ctx context.Context) error {
	switch {
	case r.opt.Admit == nil:
		r.admitted = math.MaxInt
	case r.admitted <= r.accepted:
		begin := time.Now()
		steps, err := r.opt.Admit(ctx)
		waited := time.Since(begin)
		r.startWall = r.startWall.Add(waited)
		if p := r.pacer; p != nil { // its deadlines wait, too
			p.moved, p.awake = p.moved+waited, p.awake+waited
			p.timing.Paused += waited.Seconds()
		}
		if err != nil {
			return r.fail(err)
		}
		r.admitted = r.accepted + min(max(steps, 1), math.MaxInt-r.accepted)
	}
	return nil
}
