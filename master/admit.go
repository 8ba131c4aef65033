package master

import (
	"context"
	"math"
	"time"
)

// Admission returns how many macro steps may be taken; fewer than one count as one. Run.Run calls it
// after the start, and again when these steps have been taken. It may block, and reports whether it did so
// to pause the run; the time it takes does not count as time of the run. An error ends the run like a
// cancelled context.
type Admission func(ctx context.Context) (steps int, paused bool, err error)

// admit calls Options.Admit, once no admitted macro steps are left.
func (r *Run) admit(ctx context.Context) error {
	if r.admitted = math.MaxInt; r.opt.Admit != nil {
		begin := time.Now()
		steps, paused, err := r.opt.Admit(ctx)
		waited := time.Since(begin)
		r.startWall = r.startWall.Add(waited)
		if p := r.pacer; p != nil { // its deadlines move by the same time
			p.moved, p.awake = p.moved+waited, p.awake+waited
			if paused {
				p.timing.Paused += waited.Seconds()
			}
		}
		if err != nil {
			return r.fail(err)
		}
		r.admitted = r.accepted + min(max(steps, 1), math.MaxInt-r.accepted)
	}
	return nil
}
