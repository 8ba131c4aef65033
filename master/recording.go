package master

import (
	"fmt"
	"slices"
)

// recording holds the present communication point as recorders and hooks see it.
type recording struct {
	point    Point
	begun    int    // recorders that have begun
	watched  []int  // subsystems with watched variables
	watchBad []bool // by subsystem: a warning about a watched value that is not finite was given
	watchAll *Phase // reads them
	underWay bool   // hooks and recorders are being called
}

// prepareRecording allocates the point.
func (r *Run) prepareRecording() error {
	rec := &r.record
	rec.watchBad = make([]bool, len(r.sys.Subsystems))
	for i, info := range r.sys.Infos {
		rec.point.Watch = append(rec.point.Watch, NewValues(info.Watch))
		if len(info.Watch) > 0 {
			rec.watched = append(rec.watched, i)
		}
	}
	rec.point.Measured = make([]float64, len(r.plan.Quantities))
	rec.watchAll = r.x.NewPhase(rec.watched, r.readWatched)
	rec.point.DiscreteIn, rec.point.DiscreteOut = r.x.discreteIn, r.x.discreteOut
	rec.point.U, rec.point.Y = r.x.W, r.x.Y
	if r.x.steering != nil {
		rec.point.U = slices.Clone(r.x.W)
	}
	return nil
}

// recordPoint completes the present communication point and calls the hooks and recorders.
func (r *Run) recordPoint() error {
	r.record.underWay = true
	err := r.showPoint()
	r.record.underWay = false
	if err != nil {
		return r.fail(err)
	}
	return nil
}

func (r *Run) showPoint() error {
	if err := r.record.watchAll.Run(); err != nil {
		return err
	}
	for _, i := range r.record.watched {
		r.checkWatched(i)
	}
	for _, i := range r.x.listening {
		r.x.coupleDiscrete(i, r.t)
	}
	if len(r.record.point.Measured) > 0 {
		r.can.measuring.Measured(r.record.point.Measured)
	}
	r.x.current = outside
	r.record.point.T, r.record.point.Step = r.t, r.accepted
	if err := r.act(); err != nil {
		return err
	}
	for _, rec := range r.opt.Recorders {
		if err := rec.Record(&r.record.point); err != nil {
			return err
		}
	}
	return nil
}

// readWatched reads the watched variables of subsystem i.
func (r *Run) readWatched(i int) error {
	r.x.touch(i)
	if err := r.x.able[i].watcher.Watched(&r.record.point.Watch[i]); err != nil {
		return fmt.Errorf("%s: reading recorded variables at t = %.12g s: %w", r.sys.Infos[i], r.t, err)
	}
	return nil
}

// checkWatched warns once per subsystem of watched variables that are not finite. They feed no input, so
// the run continues (unlike fmi2 72).
func (r *Run) checkWatched(i int) {
	if r.record.watchBad[i] {
		return
	}
	for k, v := range r.record.point.Watch[i].Real {
		if v-v != 0 {
			r.record.watchBad[i] = true
			r.warn(fmt.Sprintf("%s: the variable %s is %s from t = %.12g s on; it feeds no input, so the run goes on; check the model of this component",
				r.sys.Infos[i], r.realWatch(i, k), notFinite(v), r.t))
			return
		}
	}
}

// realWatch returns the name of watched Real k of subsystem i.
func (r *Run) realWatch(i, k int) string {
	for _, p := range r.sys.Infos[i].Watch {
		if p.Kind != Real {
			continue
		}
		if k == 0 {
			return r.sys.Infos[i].Name + "." + p.Name
		}
		k--
	}
	return ""
}
