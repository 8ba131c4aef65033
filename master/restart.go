package master

import "fmt"

// Restarter is a subsystem that lives where it may be lost in the middle of a call,
// as in another process, and then begins anew by itself: from the state that it
// kept last it does again what was asked of it since. It counts only with
// Caps.Restarts.
type Restarter interface {
	// Keep is called at each communication point before anything is asked from
	// there on, also before states are saved there. States that were saved before
	// are not used after it.
	Keep() error
	// Restarts lists those so far; the slice belongs to the subsystem.
	Restarts() []Restart
}

// Restart is one of a subsystem that was lost.
type Restart struct {
	Time  float64 `json:"time"`  // s, where it was or where the step began
	Call  string  `json:"call"`  // that did not come back
	Cause string  `json:"cause"` // how it was lost
}

// keepState has subsystem i keep its state.
func (x *Exec) keepState(i int) error {
	x.touch(i)
	if err := x.able[i].restarter.Keep(); err != nil {
		return fmt.Errorf("%s: keeping the state for a restart at t = %.12g s: %w", x.Sys.Infos[i], x.point, err)
	}
	return nil
}

// tryRestarts looks, before the first step, whether the subsystems do what restarts
// need, and warns of what they leave open.
func (r *Run) tryRestarts() error {
	for i := range r.x.able {
		if r.x.able[i].restarter == nil {
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

// restarts lists those of all subsystems, by name; nil = there were none.
func (x *Exec) restarts() map[string][]Restart {
	var all map[string][]Restart
	for i := range x.able {
		restarter := x.able[i].restarter
		if restarter == nil || len(restarter.Restarts()) == 0 {
			continue
		}
		if all == nil {
			all = map[string][]Restart{}
		}
		all[x.Sys.Infos[i].Name] = restarter.Restarts()
	}
	return all
}
