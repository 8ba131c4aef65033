package master

import (
	"fmt"
	"slices"
)

// Restarter is a subsystem that may be lost during a call, because it runs in another process, for
// example. It then restarts itself: it restores its last kept state and repeats the calls since. It is
// used only with Caps.Restarts.
type Restarter interface {
	// Keep stores the present state for a restart. It is called at each communication point before any
	// other call, and before states are saved there. States saved earlier are not used after it.
	Keep() error
	// Restarts lists the restarts so far; the slice belongs to the subsystem.
	Restarts() []Restart
}

// Restart describes the restart of a subsystem that was lost.
type Restart struct {
	Time  float64 `json:"time"`  // s, of the communication point
	Call  string  `json:"call"`  // the call that did not return
	Cause string  `json:"cause"` // of the loss
}

// keepState stores the state of subsystem i for a restart.
func (x *Exec) keepState(i int) error {
	x.touch(i)
	if err := x.able[i].restarter.Keep(); err != nil {
		return fmt.Errorf("%s: keeping the state for a restart at t = %.12g s: %w", x.Sys.Infos[i], x.point, err)
	}
	return nil
}

// tryRestarts tests before the first step that the subsystems can be restarted, and warns if they do not
// repeat steps exactly.
func (r *Run) tryRestarts() error {
	for i := range r.x.able {
		if r.x.able[i].restarter == nil || r.sys.Infos[i].Caps.UntriedRestarts {
			continue
		}
		k, err := r.keeper(i)
		if err == nil {
			err = r.tryKeeper(i, k, "after a restart of it the run equals the undisturbed one")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restarts returns the restarts of subsystem i, including those before the resumed checkpoint.
func (r *Run) restarts(i int) (all []Restart) {
	if r.keep.past != nil {
		all = r.keep.past[i].restarts
	}
	if restarter := r.x.able[i].restarter; restarter != nil {
		all = append(slices.Clone(all), restarter.Restarts()...)
	}
	return all
}
