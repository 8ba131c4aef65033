package master

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// StateSerializer is a StateSaver whose states can be stored as bytes, beyond the life of the process. It
// is used only with Caps.SerializeState.
type StateSerializer interface {
	// SerializeState returns the bytes of a saved state.
	SerializeState(State) ([]byte, error)
	// DeserializeState returns a saved state from such bytes, which may come from another instance of
	// the same subsystem. It is freed like a state of SaveState.
	DeserializeState([]byte) (State, error)
}

// StopUser is a subsystem that may depend on the stop time (Experiment.StopKnown).
type StopUser interface{ UsesStop() bool }

// RecorderArchiver is a recorder that can continue its record in a resumed run.
//
// Archive is called when a checkpoint is made; everything recorded so far must then survive a crash of
// the process and, if possible, of the machine. In a resumed run Archive is called before Begin, which
// continues the record.
type RecorderArchiver interface {
	Recorder
	Archiver
	// ArchiveName identifies the recorder among those of the run.
	ArchiveName() string
}

// Checkpoints configures when checkpoints are made, and where they are written.
//
// A checkpoint contains the serialised states of all subsystems and the states of run, algorithm and
// hooks. With Options.Resume another run continues from it: it is initialised as usual, and then all
// states are restored. Its stop time may differ, but must be after the checkpoint.
//
// A subsystem of Go code takes part, with Caps.SerializeState, either as a StateSerializer, or as an
// Archiver whose method Archive carries all of its state.
//
// Run.Checkpoint makes a checkpoint on demand. If Every is 0 and OnInterrupt is not set there are no
// others, and Write is not needed.
//
// At each checkpoint the states of the subsystems are also restored in the run that makes it. So both
// runs continue from the same states, and give the same results, to the last bit if the subsystems
// repeat their steps exactly (Replay). A checkpoint costs one serialisation and one restore per
// subsystem.
type Checkpoints struct {
	// Every is the time between checkpoints in s, from the start of the run: a checkpoint is made at the
	// first communication point at or after each multiple; 0 = none.
	Every float64
	// OnInterrupt makes a checkpoint when the context of the run is cancelled.
	OnInterrupt bool
	// Write stores a checkpoint. An error is a warning of the run and does not end it; the previous
	// checkpoint stays valid.
	Write func(Checkpoint) error
}

// Checkpoint is the state of a run at one of its communication points.
type Checkpoint struct {
	T     float64 // s
	Steps int     // accepted so far
	State []byte  // for Options.Resume; it belongs to the receiver
}

// stateKeeper is a subsystem that serialises its state.
type stateKeeper struct {
	StateSaver
	StateSerializer
}

// checkpointing is the state of a run that concerns its checkpoints, and the one that it resumed.
type checkpointing struct {
	keepers []stateKeeper   // by subsystem; nil = no checkpoints are made
	due     int             // the multiple of the interval at which the next one is made
	failed  bool            // the last one was not written
	past    []subsystemPast // by subsystem: before the resumed checkpoint; nil = none
}

// prepareCheckpoints returns an error if checkpoints are wanted and impossible.
func (r *Run) prepareCheckpoints() error {
	c := r.opt.Checkpoints
	if c == nil && r.opt.Resume == nil {
		return nil
	}
	if c != nil && (!(c.Every >= 0) || math.IsInf(c.Every, 0)) {
		return fmt.Errorf("the time between checkpoints is %g s; it must not be negative", c.Every)
	}
	if c != nil && c.Write == nil && (c.Every > 0 || c.OnInterrupt) {
		return errors.New("checkpoints need a destination")
	}
	return r.prepareKeepers()
}

// prepareKeepers finds how the states of the subsystems are stored. It returns an error if the state of
// the algorithm, a hook or a subsystem cannot be.
func (r *Run) prepareKeepers() error {
	if r.can.archiver == nil {
		return fmt.Errorf("%w: the algorithm cannot put its state into a checkpoint: %T has no method Archive (master.Archiver); "+
			"run without checkpoints, or add the method", ErrCapability, r.alg)
	}
	for _, h := range r.opt.Hooks {
		if _, ok := h.(Archiver); !ok {
			return fmt.Errorf("%w: the hook %T cannot put its state into a checkpoint: it has no method Archive (master.Archiver); "+
				"run without checkpoints, or without the hook", ErrCapability, h)
		}
	}
	keepers := make([]stateKeeper, len(r.sys.Subsystems))
	var fmus, own []string
	for i := range r.sys.Subsystems {
		var err error
		if keepers[i], err = r.keeper(i); err == nil {
			continue
		}
		if r.x.able[i].serializer != nil {
			fmus = append(fmus, r.sys.Infos[i].String())
		} else {
			own = append(own, r.sys.Infos[i].String())
		}
	}
	if len(fmus)+len(own) > 0 {
		var why []string
		if len(fmus) > 0 {
			why = append(why, strings.Join(fmus, ", ")+" cannot serialise its state (canSerializeFMUstate): "+
				"run without checkpoints, or use another export of the FMU")
		}
		if len(own) > 0 {
			why = append(why, strings.Join(own, ", ")+" does not offer its state: "+
				"a subsystem of Go code needs a method Archive (master.Archiver) that carries all of it, and "+
				"Info.Caps.SerializeState; a native.Model has the field Archive")
		}
		return fmt.Errorf("%w: a checkpoint holds the states of all components, and %s", ErrCapability, strings.Join(why, "; "))
	}
	r.keep.keepers = keepers
	return nil
}

// keeper returns the serializer of subsystem i; an empty one if its method Archive carries the state.
func (r *Run) keeper(i int) (stateKeeper, error) {
	able, claims := &r.x.able[i], r.sys.Infos[i].Caps.SerializeState
	switch {
	case able.saver != nil && able.serializer != nil && claims:
		return stateKeeper{able.saver, able.serializer}, nil
	case able.archiver != nil && able.serializer == nil && claims:
		return stateKeeper{}, nil
	}
	return stateKeeper{}, fmt.Errorf("%s: %w: it cannot serialise its state", r.sys.Infos[i], ErrCapability)
}

// tryCheckpoints tests before the first step that the subsystems can serialise their states, and warns
// if they do not repeat steps exactly.
func (r *Run) tryCheckpoints() error {
	for i, k := range r.keep.keepers {
		if err := r.tryKeeper(i, k, "a run that is resumed from a checkpoint equals the unbroken one"); err != nil {
			return err
		}
	}
	return nil
}

// tryKeeper tests the serialisation of subsystem i, and warns unless the subsystem repeats its steps to
// the last bit; equals is the statement that then holds only approximately.
func (r *Run) tryKeeper(i int, k stateKeeper, equals string) error {
	r.x.touch(i)
	if err := r.x.crew.on(i, func() error { return r.trySerialize(k, i) }); err != nil {
		return err
	}
	replay := r.x.replay[i]
	if noise := max(replay.FirstTry, replay.Replays); noise > 0 {
		r.warn(fmt.Sprintf("%s repeats a step to %.2g only: %s within that, not to the last bit", r.sys.Infos[i], noise, equals))
	}
	return nil
}

// trySerialize serialises and deserialises the present state of subsystem i.
func (r *Run) trySerialize(k stateKeeper, i int) error {
	if k.StateSaver == nil {
		return r.tryArchive(i)
	}
	data, err := r.serialize(k, i)
	if err != nil {
		return err
	}
	state, err := k.DeserializeState(data)
	if err == nil {
		err = k.FreeState(state)
	}
	if err != nil {
		return r.notKept(i, "reading a serialised state", err)
	}
	return nil
}

// tryArchive writes the present state of subsystem i by its method Archive and reads it again: both
// directions must name the same values.
func (r *Run) tryArchive(i int) error {
	part := r.x.able[i].archiver
	to := NewArchive()
	part.Archive(to)
	err := to.Err()
	if err == nil {
		from := ReadArchive(to.Data())
		part.Archive(from)
		err = from.Finish()
	}
	if err != nil {
		return fmt.Errorf("%s: its method Archive cannot read back what it wrote: %w", r.sys.Infos[i], err)
	}
	return nil
}

// serialize returns the bytes of the state of subsystem i.
func (r *Run) serialize(k stateKeeper, i int) ([]byte, error) {
	state, err := k.SaveState(nil)
	if err != nil {
		return nil, r.notKept(i, "saving the state", err)
	}
	data, err := k.SerializeState(state)
	if err = errors.Join(err, k.FreeState(state)); err != nil {
		return nil, r.notKept(i, "serialising the state", err)
	}
	return data, nil
}

// putBack restores a serialised state of subsystem i.
func (r *Run) putBack(i int, data []byte) error {
	k := r.keep.keepers[i]
	state, err := k.DeserializeState(data)
	if err != nil {
		return r.notKept(i, "reading a serialised state", err)
	}
	if err = errors.Join(k.RestoreState(state), k.FreeState(state)); err != nil {
		return r.notKept(i, "going back to a serialised state", err)
	}
	return nil
}

func (r *Run) notKept(i int, what string, err error) error {
	return fmt.Errorf("%s: %s at t = %.12g s: %w; it declares that it can (canSerializeFMUstate): run without checkpoints and restarts, "+
		"and tell the exporter", r.sys.Infos[i], what, r.t, err)
}

// nextCheckpoint returns the multiple of the interval at which the next one is made.
func (r *Run) nextCheckpoint() int {
	return int(math.Floor((r.t+gridTolerance*r.opt.Step-r.opt.Start)/r.opt.Checkpoints.Every)) + 1
}

// checkpointIfDue makes a checkpoint at the present communication point if one is due.
func (r *Run) checkpointIfDue(c *Checkpoints) error {
	if r.t+gridTolerance*r.opt.Step < r.opt.Start+float64(float64(r.keep.due)*c.Every) {
		return nil
	}
	r.keep.due = r.nextCheckpoint()
	return r.checkpoint()
}

// checkpointOnInterrupt makes a checkpoint of a cancelled run if it should have one.
func (r *Run) checkpointOnInterrupt() error {
	if c := r.opt.Checkpoints; c == nil || !c.OnInterrupt {
		return nil
	}
	return r.checkpoint()
}

// Checkpoint makes a checkpoint at the last accepted communication point. It may be called between
// Start, the calls of Step, and Close, or from Options.Admit or Options.Observe; also after the last
// step, to continue to a later stop time. Like every checkpoint it restores the subsystems to the
// serialised state.
//
// FMUs take part only if Options.Checkpoints is set, if only to &Checkpoints{}, because Start then tests
// their rollback. After ErrCapability, and after a call at the wrong time, the run can continue; any other
// error has ended it.
func (r *Run) Checkpoint() (c Checkpoint, err error) {
	switch {
	case r.phase != running && r.phase != finished || !r.ready:
		return c, errors.New("a checkpoint can be made only between the start of a run and its close")
	case r.err != nil:
		return c, fmt.Errorf("the run has failed and cannot be continued: %w", r.err)
	case r.record.underWay:
		return c, errors.New("a checkpoint can be made only between two steps, not by a hook or a recorder")
	case r.stopped != "" || r.ended != "":
		return c, fmt.Errorf("the run has ended at t = %.12g s (%s), so there is nothing to continue", r.t, cmp.Or(r.stopped, r.ended))
	}
	defer r.contain(&err)
	if r.keep.keepers == nil {
		if err := r.lateKeepers(); err != nil {
			return c, err
		}
	}
	if c, err = r.makeCheckpoint(); err != nil {
		return c, r.fail(err)
	}
	return c, nil
}

// lateKeepers prepares a checkpoint that was not announced.
func (r *Run) lateKeepers() error {
	for i := range r.x.able {
		if able := &r.x.able[i]; able.rollbackTest != nil && r.x.saver[i] == nil && able.restarter == nil {
			return fmt.Errorf("%s: %w: its rollback was not tested at the start of the run: set "+
				"Options.Checkpoints, if only to &master.Checkpoints{}",
				r.sys.Infos[i], ErrCapability)
		}
	}
	if err := r.prepareKeepers(); err != nil {
		return err
	}
	if err := r.tryCheckpoints(); err != nil {
		r.keep.keepers = nil
		return err
	}
	return nil
}

// makeCheckpoint returns one of the last accepted communication point, and restores the subsystems to it.
func (r *Run) makeCheckpoint() (Checkpoint, error) {
	a := NewArchive()
	r.archiveRecorders(a)
	r.archive(a)
	return Checkpoint{T: r.t, Steps: r.accepted, State: a.Data()}, a.Err()
}

// checkpoint makes one and writes it.
func (r *Run) checkpoint() error {
	c, err := r.makeCheckpoint()
	if err != nil {
		return err
	}
	err = r.opt.Checkpoints.Write(c)
	if err != nil && !r.keep.failed {
		r.warn(fmt.Sprintf("the checkpoint at t = %.12g s could not be written: %v; the run goes on", r.t, err))
	}
	r.keep.failed = err != nil
	return nil
}

// archiveRecorders carries the positions of the recorders, except those that only one of the two runs
// has.
func (r *Run) archiveRecorders(a *Archive) {
	a.Section("recorders")
	own := map[string]RecorderArchiver{}
	var names []string
	var states [][]byte
	for _, rec := range r.opt.Recorders {
		rec, ok := rec.(RecorderArchiver)
		if !ok {
			continue
		}
		if own[rec.ArchiveName()] = rec; !a.Reading() {
			part := NewArchive()
			rec.Archive(part)
			a.Fail(part.err)
			names, states = append(names, rec.ArchiveName()), append(states, part.Data())
		}
	}
	a.All(&names, &states)
	for k, name := range names {
		if rec, ok := own[name]; ok && a.Reading() && a.err == nil {
			part := ReadArchive(states[k])
			rec.Archive(part)
			a.Fail(part.Finish())
		}
	}
}

// archive carries everything but the recorders.
func (r *Run) archive(a *Archive) {
	a.Section("run")
	a.Same(r.opt.Start, "the start time")
	a.Same(r.opt.Step, "the step size")
	stop, pace := r.opt.Stop, &paced{}
	if r.pacer != nil {
		pace = &r.pacer.paced
	}
	r.tellNotes()
	r.clipped = r.clipped || r.want == 0 && r.onGrid > r.grid.whole
	r.earlier, r.startWall = r.stepping(), time.Now()
	a.All(&stop, &r.moment, &r.runState, pace, &r.growth.growthState, r.own.of, r.own.changed, r.own.earlier, r.record.odd, r.record.point.Measured, r.record.point.Watch)
	if a.Reading() && a.err == nil && (r.opt.Stop <= r.t || r.onGrid > r.grid.points()) {
		a.Fail(r.nothingLeft())
	}
	if a.Reading() && r.want == 0 && r.t == stop && r.onGrid <= r.grid.whole {
		if at := r.grid.at(r.onGrid); math.Abs(at-r.t) <= r.grid.rounding() {
			r.t = at // the end of a run that goes on lies on the grid
		}
	}
	past := make([]subsystemPast, len(r.sys.Subsystems))
	for i := 0; i < len(past) && !a.Reading(); i++ {
		user := r.x.able[i].stop
		past[i] = subsystemPast{r.subsystemSeconds(i), r.restarts(i), r.stopKnown && user != nil && user.UsesStop()}
	}
	a.Section("inputs and outputs")
	r.x.archive(a)
	a.All(past)
	for i := range r.sys.Subsystems {
		a.Section(r.sys.Infos[i].Name)
		if a.err != nil {
			return
		}
		r.x.touch(i)
		a.Fail(r.x.crew.on(i, func() error {
			err := r.archiveState(a, i)
			if part := r.x.able[i].archiver; part != nil && err == nil {
				part.Archive(a)
			}
			return err
		}))
	}
	r.x.current = outside
	a.Section("algorithm")
	r.can.archiver.Archive(a)
	if s := r.x.steering; s != nil {
		a.Section("what was set")
		if a.All(&s.steeringState); a.Reading() && a.err == nil {
			r.steer()
		}
	}
	for k, h := range r.opt.Hooks {
		a.Section(fmt.Sprintf("hook %d", k+1))
		if own, ok := h.(Archiver); ok {
			own.Archive(a)
		}
	}
	if a.Reading() && a.Finish() == nil {
		r.keep.past = past
		r.record.point.T, r.record.point.Step, r.record.point.Y = r.t, r.accepted, r.x.shown()
		a.Fail(r.otherStop(stop))
	}
}

// otherStop returns an error if a resumed run cannot continue to its stop time, and warns if it may differ
// from an unbroken run. was is the stop time of the run that made the checkpoint.
func (r *Run) otherStop(was float64) error {
	stop := r.opt.Stop
	switch {
	case r.atEnd():
		return r.nothingLeft()
	case stop == was:
		return nil
	case r.clipped && r.want == 0:
		return fmt.Errorf("the checkpoint is at the stop time %.12g s of its run, which is not on the grid of %g s: "+
			"a run to %.12g s has no such communication point; resume an earlier checkpoint", was, r.opt.Step, stop)
	case r.clipped:
		r.warn(fmt.Sprintf("the last steps before the checkpoint were chosen to end at the stop time %.12g s of its run: "+
			"from there on the run differs, within its tolerance, from one that had the stop time %.12g s from the start", was, stop))
		r.clipped = false
	}
	for i, info := range r.sys.Infos {
		if r.keep.past[i].usesStop {
			r.warn(fmt.Sprintf("%s was told the stop time %.12g s when the run began (quirk stopTime), and may refuse steps beyond it: "+
				"the run goes on to %.12g s", info, was, stop))
		}
	}
	return nil
}

func (r *Run) nothingLeft() error {
	return fmt.Errorf("the checkpoint is at t = %.12g s, and the run is to stop at %.12g s: there is nothing left to do; "+
		"give a later stop time", r.t, r.opt.Stop)
}

// archiveState carries the state of subsystem i. When writing, too, it is restored, so that both runs
// continue from the same state.
func (r *Run) archiveState(a *Archive, i int) error {
	if r.keep.keepers[i].StateSaver == nil { // Archive carries all of it
		return nil
	}
	var data []byte
	var err error
	if !a.Reading() {
		if data, err = r.serialize(r.keep.keepers[i], i); err != nil {
			return err
		}
	}
	a.All(&data)
	if a.Err() != nil {
		return nil
	}
	return r.putBack(i, data)
}

// archive carries the values of the last communication point, the counters, and the measured replay, which
// algorithms use, and which another test might measure otherwise.
func (x *Exec) archive(a *Archive) {
	a.All(x.U, x.Y, x.W, &x.execState)
	x.isSaved = false
}

// stepping returns the wall time of the stepping, including that before the resumed checkpoint.
func (r *Run) stepping() time.Duration { return r.earlier + time.Since(r.startWall) }

// subsystemPast is what a checkpoint carries of a subsystem beside its state.
type subsystemPast struct {
	seconds  float64 // inside it
	restarts []Restart
	usesStop bool // it got the stop time
}

// subsystemSeconds returns the time spent inside subsystem i, including that before the resumed
// checkpoint.
func (r *Run) subsystemSeconds(i int) float64 {
	s := r.x.subsystemSeconds(i)
	if r.keep.past != nil {
		s += r.keep.past[i].seconds
	}
	return s
}

// cancelled ends a run whose context has ended, between two steps.
func (r *Run) cancelled(ctx context.Context) error {
	return r.fail(errors.Join(context.Cause(ctx), r.checkpointOnInterrupt()))
}
