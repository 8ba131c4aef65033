package master

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// recording holds the present communication point as recorders and hooks see it.
type recording struct {
	point    Point
	begun    int         // recorders that have begun
	watched  []int       // subsystems with watched variables
	watchAll *Phase      // reads them
	odd      [][2]oddity // by subsystem: infinite variables, NaN
	underWay bool        // hooks and recorders are being called
}

// oddity describes variables of a subsystem that are not finite and feed no input.
type oddity struct {
	text   string // the first ones; "" = there were none
	points int    // communication points with such values
	last   float64
}

// prepareRecording allocates the point.
func (r *Run) prepareRecording() error {
	rec := &r.record
	rec.odd = make([][2]oddity, len(r.sys.Subsystems))
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
	rec := &r.record
	// Outputs are shown apart from those computed with if one of them is not finite.
	if y := rec.point.Y; len(rec.watched) > 0 || len(y) > 0 && &y[0] != &r.x.Y[0] {
		if err := rec.watchAll.Run(); err != nil {
			return err
		}
		for i := range r.sys.Subsystems {
			if err := r.checkFinite(i); err != nil {
				return err
			}
		}
	}
	for _, i := range r.x.listening {
		r.x.coupleDiscrete(i, r.t)
	}
	if len(rec.point.Measured) > 0 {
		r.can.measuring.Measured(rec.point.Measured)
	}
	r.x.current = outside
	rec.point.T, rec.point.Step = r.t, r.accepted
	if r.x.steering != nil {
		if err := r.act(); err != nil {
			return err
		}
	}
	weight := r.timed()
	var began time.Time
	if weight > 0 {
		began = time.Now()
	}
	for _, to := range r.opt.Recorders {
		if err := to.Record(&rec.point); err != nil {
			return err
		}
	}
	if weight > 0 {
		r.inRecorders += weight * time.Since(began)
	}
	return nil
}

// Recording is timed at the first points, then at every timedEach-th. That is prime, so that rows that are written
// every few points are met as often as they should be.
const timedFirst, timedEach = 16, 17

// timed returns the weight of recording the present point in the time of all; 0 = it is not timed.
func (r *Run) timed() time.Duration {
	switch {
	case r.accepted < timedFirst:
		return 1
	case r.accepted%timedEach == 0:
		return timedEach
	}
	return 0
}

// readWatched reads the watched variables of subsystem i.
func (r *Run) readWatched(i int) error {
	r.x.touch(i)
	if err := r.x.able[i].watcher.Watched(&r.record.point.Watch[i]); err != nil {
		return fmt.Errorf("%s: reading recorded variables at t = %.12g s: %w", r.sys.Infos[i], r.t, err)
	}
	return nil
}

// checkFinite warns of variables of subsystem i that are not finite, once of infinite ones and once of NaN. They feed no
// input, so the run continues (unlike fmi2 72), but a strict run accepts no NaN.
func (r *Run) checkFinite(i int) error {
	var found [2]bool
	for _, k := range r.x.loose[i] {
		if v := r.x.odd[k]; v != 0 && !r.sys.Infos[i].Out[k-r.sys.OutAt[i]].Internal {
			found[nanOrInf(v)] = true
		}
	}
	for _, v := range r.record.point.Watch[i].Real {
		if v-v != 0 {
			found[nanOrInf(v)] = true
		}
	}
	for kind, is := range found {
		if !is {
			continue
		}
		o := &r.record.odd[i][kind]
		if o.text == "" {
			o.text = r.oddities(i, kind)
			if kind == isNaN && r.opt.Strict {
				return fmt.Errorf("%s at t = %.12g s: a strict run accepts no NaN; check the model of this component", o.text, r.t)
			}
			r.warn(fmt.Sprintf("%s at t = %.12g s and feeds no input, so the run continues%s", o.text, r.t,
				[2]string{isNaN: "; check the model of this component"}[kind]))
		}
		o.points++
		o.last = r.t
	}
	return nil
}

// Kinds of values that are not finite.
const (
	isInfinite = iota
	isNaN
)

func nanOrInf(v float64) int {
	if math.IsNaN(v) {
		return isNaN
	}
	return isInfinite
}

// oddities names the variables of subsystem i that are infinite or NaN at the present point.
func (r *Run) oddities(i, kind int) string {
	var names []string
	for _, k := range r.x.loose[i] {
		if v := r.x.odd[k]; v != 0 && nanOrInf(v) == kind && !r.sys.Infos[i].Out[k-r.sys.OutAt[i]].Internal {
			names = append(names, r.sys.OutName(k))
		}
	}
	for k, v := range r.record.point.Watch[i].Real {
		if v-v != 0 && nanOrInf(v) == kind {
			names = append(names, r.realWatch(i, k))
		}
	}
	text := fmt.Sprintf("%s: %s", r.sys.Infos[i], names[0])
	if more := len(names) - 1; more > 0 {
		text += fmt.Sprintf(" (with %d more)", more)
	}
	return text + [2]string{" is infinite", " is NaN"}[kind]
}

// tellOddities repeats at the end which recorded values are not finite.
func (r *Run) tellOddities() {
	for _, of := range r.record.odd {
		for _, o := range of {
			if o.points > 1 {
				r.warn(fmt.Sprintf("%s at %d of %d communication points, the last at t = %.12g s", o.text, o.points, r.accepted+1, o.last))
			}
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
