package fmuprobe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// The test of the rollback takes replaySteps steps again and again from one
// state, saved warmSteps steps behind the start, where solvers have a history to
// lose; in between it strays straySteps steps, with inputs that are off
// by strayKick of their magnitude, so that a state which the FMU forgets to
// restore shows even if it starts at rest. What lies before the last origin is restored
// in the end, so that only the first step from the start carries the promise that none
// before it will be (master.RestoreAware).
//
// An FMU that computes something else without the promise is tested over one step at a
// time, from points that lie further and further on: each step carries the promise then.
const (
	warmSteps    = 5
	replaySteps  = 3
	straySteps   = 8
	fartherSteps = 100
	strayKick    = 0.1
	// A first attempt and its replay, or two replays, that differ by more than
	// this are no repetition. The worst of 60 FMUs of twelve tools that do go
	// back differs by 7e-4.
	maxNoise = 1e-2
	// After straying a replay may differ by what solvers leave open, and by
	// noiseFactor times what replays without straying differ.
	maxDrift    = 1e-4
	noiseFactor = 30
	// How often the step is halved until the FMU takes it.
	maxHalvings = 20
)

// Rollback tests whether subjects that fresh makes, at the start of the steps, with inputs u
// staged, go back to a saved state, and measures how well they repeat a step. Its errors wrap
// master.ErrCapability if they do not go back.
func Rollback(ctx context.Context, e master.Experiment, H float64, u Inputs, fresh Fresh) (replay master.Replay, err error) {
	unpromised, H, err := testPromise(ctx, e, H, u, fresh)
	if err != nil {
		return replay, err
	}
	twin, err := fresh("test of rollback")
	if err != nil {
		return replay, err
	}
	defer func() { err = errors.Join(err, twin.Terminate(), twin.Close()) }()
	r := rollbackTest{Comparison: Comparison{Of: twin}, u: u, t: e.Start, H: H}
	if unpromised != "" {
		replay, err = r.runSingly(ctx, e)
	} else {
		replay, err = r.run(ctx, e)
	}
	replay.Unpromised = unpromised
	return replay, err
}

// RollbackInPlace is Rollback for a subject of which there is no second one. It takes it back
// to the start.
func RollbackInPlace(ctx context.Context, s Subject, e master.Experiment, H float64, u Inputs) (master.Replay, error) {
	r := rollbackTest{Comparison: Comparison{Of: s}, u: u, t: e.Start, H: H}
	replay, err := r.run(ctx, e)
	replay.Unpromised = PromiseUntested
	return replay, err
}

// PromiseUntested stands for a difference that cannot be looked for: both courses take
// an instance of their own.
const PromiseUntested = "or at least that could not be ruled out, because the FMU can be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess); in a process of its own (--isolate) it can"

// testPromise compares steps with and, but for the first, without the promise that no
// restore will go to before their start, each on an instance of its own, and gives how they
// differ, "" if they do not. The step is halved until the FMU takes it.
func testPromise(ctx context.Context, e master.Experiment, H float64, u Inputs, fresh Fresh) (differs string, _ float64, err error) {
	var r rollbackTest // for the magnitudes of all
	n := 0
	course := func(promised bool) (got []Reading, err error) {
		n++
		twin, err := fresh(fmt.Sprintf("test of promises %d", n))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, twin.Terminate(), twin.Close()) }()
		state, err := twin.SaveState(nil) // to which a run would go back
		if err != nil {
			return nil, refused("give a state", err)
		}
		defer func() { err = errors.Join(err, twin.FreeState(state)) }()
		r.Of, r.u, r.t, r.H, r.promised, r.moved = twin, u, e.Start, H, promised, false
		if r.Scale == nil {
			if err := r.measure(); err != nil {
				return nil, err
			}
		}
		got, err = r.attempt(ctx, replaySteps)
		if len(got) == replaySteps {
			r.t, r.u, r.moved = r.t+float64(replaySteps*H), r.kicked(), true
			var more []Reading
			more, err = r.attempt(ctx, straySteps)
			got = append(got, more...)
		}
		if len(got) > 0 && !ended(err) {
			err = context.Cause(ctx) // it goes as far as the FMU takes part
		}
		return got, err
	}
	with, err := course(true)
	for range maxHalvings {
		if !errors.Is(err, master.ErrDiscard) || !r.Of.Info().Caps.VariableStep {
			break
		}
		H /= 2
		with, err = course(true)
	}
	if errors.Is(err, master.ErrDiscard) {
		return "", H, fmt.Errorf("%w: no step can be repeated, because the FMU takes none, down to %g s", master.ErrCapability, H)
	}
	if err != nil {
		return "", H, err
	}
	without, err := course(false)
	if err != nil && (ended(err) || ctx.Err() != nil) {
		return "", H, err
	}
	if len(with) != len(without) {
		return fmt.Sprintf("it takes %d steps of %g s with true and %d with false", len(with), H, len(without)), H, nil
	}
	if r.Compare(with, without, "").Relative <= maxDrift {
		return "", H, nil
	}
	// Instances may differ for other reasons.
	again, err := course(true)
	if err != nil {
		return "", H, err
	}
	both := min(len(with), len(again))
	noise := map[string]float64{}
	r.differences(with[:both], again[:both], func(d Difference) { noise[d.Name] = max(noise[d.Name], d.Relative) })
	var worst Difference
	r.differences(with, without, func(d Difference) {
		if d.Relative > max(worst.Relative, maxDrift, noiseFactor*noise[d.Name]) {
			worst = d
		}
	})
	if worst.Name == "" {
		return "", H, nil
	}
	return fmt.Sprintf("%s after step %d of %g s is %s with true and %s with false", worst.Name, worst.Step, H, worst.First, worst.Then), H, nil
}

// ended reports whether an FMU has ended its process: that is no matter of what it declares.
func ended(err error) bool {
	var lost *fmi.ProcessError
	return errors.As(err, &lost)
}

// rollbackTest is the test of one slave.
type rollbackTest struct {
	Comparison
	u        Inputs
	origin   master.State // from where steps are repeated
	t, H     float64      // of the origin; of the steps
	steps    int
	moved    bool // the origin is not the start any more
	promised bool // all steps carry the promise, else only the first one from the start
}

// run tests the rollback of the subject, from the state it is in, and
// takes it back there.
func (r *rollbackTest) run(ctx context.Context, e master.Experiment) (replay master.Replay, err error) {
	s := r.Of
	start, err := s.SaveState(nil)
	if err != nil {
		return replay, refused("give a state", err)
	}
	r.origin = start
	defer func() {
		err = errors.Join(err, s.RestoreState(start), s.FreeState(start))
		if r.origin != start {
			err = errors.Join(err, s.FreeState(r.origin))
		}
		if err == nil {
			_, err = r.Read() // what was read before the test
		}
		s.NoRestoreBefore(true) // the run has not withdrawn it yet
	}()
	if err := r.measure(); err != nil {
		return replay, err
	}
	first, err := r.firstTry(ctx, e.Stop, replaySteps)
	if err != nil {
		return replay, err
	}
	fromStart := first
	afterBack, err := r.repeat(ctx)
	if err != nil {
		return replay, err
	}
	if later, err := r.warmUp(ctx, e.Stop); err != nil {
		return replay, err
	} else if later != nil {
		first = later
	}
	second, again, drift, err := r.replays(ctx, straySteps)
	if err != nil {
		return replay, err
	}
	tries := r.Compare(first, second, "a first attempt")
	atStart := r.Compare(fromStart, afterBack, "")
	if worst := max(tries.Relative, atStart.Relative); worst > maxNoise && !math.IsInf(worst, 1) {
		// In short steps near rest, what a solver leaves open at its start may be all
		// that there is to see: it is measured by where the outputs get to.
		if err := r.farther(ctx); err != nil {
			return replay, err
		}
		tries = r.Compare(first, second, "a first attempt")
		atStart = r.Compare(fromStart, afterBack, "")
	}
	if err := judge(tries, again, drift); err != nil {
		return replay, err
	}
	replay = master.Replay{Step: r.H, FirstTry: tries.Relative, Replays: max(again.Relative, drift.Relative)}
	replay.AtStart = r.atStart(atStart)
	return replay, nil
}

// runSingly tests over one step at a time, each from a point that the test does not go
// back behind.
func (r *rollbackTest) runSingly(ctx context.Context, e master.Experiment) (replay master.Replay, err error) {
	r.promised = true
	if err := r.measure(); err != nil {
		return replay, err
	}
	var state master.State
	defer func() {
		if state != nil {
			err = errors.Join(err, r.Of.FreeState(state))
		}
	}()
	for k := range warmSteps + 1 {
		if state, err = r.Of.SaveState(state); err != nil {
			return replay, refused("give a state", err)
		}
		r.origin = state
		var first []Reading
		if k == 0 {
			first, err = r.firstTry(ctx, e.Stop, 1)
		} else if r.t+2*r.H > e.Stop {
			break
		} else if first, err = r.attempt(ctx, 1); err != nil && !ended(err) {
			return replay, context.Cause(ctx) // as far as it goes
		}
		if err != nil {
			return replay, err
		}
		second, again, drift, err := r.replays(ctx, 1)
		if err != nil {
			return replay, err
		}
		tries := r.Compare(first, second, "a first attempt")
		if k == 0 {
			replay.Step, replay.AtStart = r.H, r.atStart(tries)
			if replay.AtStart != "" {
				tries = Difference{}
			}
		}
		if err := judge(tries, again, drift); err != nil {
			return replay, err
		}
		replay.FirstTry = max(replay.FirstTry, tries.Relative)
		replay.Replays = max(replay.Replays, again.Relative, drift.Relative)
		r.t += r.H
	}
	return replay, nil
}

// replays repeats the steps from the origin twice, and once more after straying. It
// gives the first of these repetitions, and how far the others are off it.
func (r *rollbackTest) replays(ctx context.Context, strays int) (second []Reading, again, drift Difference, err error) {
	if second, err = r.repeat(ctx); err != nil {
		return nil, again, drift, err
	}
	third, err := r.repeat(ctx)
	if err != nil {
		return nil, again, drift, err
	}
	if err := r.stray(ctx, strays); err != nil {
		return nil, again, drift, err
	}
	fourth, err := r.repeat(ctx)
	if err != nil {
		return nil, again, drift, err
	}
	return second, r.Compare(second, third, "a step"), r.Compare(second, fourth, "a step"), nil
}

// judge fails if a repetition is none.
func judge(tries, again, drift Difference) error {
	for _, c := range []struct {
		Difference
		bound float64
	}{{tries, maxNoise}, {again, maxNoise}, {drift, max(maxDrift, noiseFactor*again.Relative)}} {
		if c.Relative > c.bound {
			return c.lie()
		}
	}
	return nil
}

// atStart describes how steps from the start depend on going back to it, "" if they do not.
func (r *rollbackTest) atStart(d Difference) string {
	if d.Relative <= maxNoise {
		return ""
	}
	return fmt.Sprintf("%s after step %d of %g s from the start is %s without and %s after it went back to the start", d.Name, d.Step, r.H, d.First, d.Then)
}

// back goes to the origin.
func (r *rollbackTest) back() error {
	if err := r.Of.RestoreState(r.origin); err != nil {
		return refused("go back to one", err)
	}
	return nil
}

// withoutRollback is what to do about an FMU that does not go back.
const withoutRollback = "run without what relies on rollback, and tell the exporter"

// refused tells that the FMU does not do what it declares.
func refused(what string, err error) error {
	if ended(err) {
		return err
	}
	return fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but does not %s: %w; %s", master.ErrCapability, what, err, withoutRollback)
}

// firstTry steps without going back first. It settles the step size, halved
// until the FMU takes it, and the number of steps, at most as many as given.
func (r *rollbackTest) firstTry(ctx context.Context, stop float64, most int) ([]Reading, error) {
	for range maxHalvings {
		got, err := r.attempt(ctx, min(most, max(1, int((stop-r.t)/r.H))))
		if r.steps = len(got); r.steps > 0 {
			return got, nil
		}
		if !errors.Is(err, master.ErrDiscard) && !errors.Is(err, master.ErrTerminated) {
			return nil, err
		}
		if !r.Of.Info().Caps.VariableStep {
			break
		}
		if err := r.back(); err != nil {
			return nil, err
		}
		r.H /= 2
	}
	return nil, fmt.Errorf("%w: no step can be repeated, because the FMU takes none, down to %g s", master.ErrCapability, r.H)
}

// warmUp moves the origin some steps on and gives the first try from there; nil
// if there is no room for it or the FMU does not go so far.
func (r *rollbackTest) warmUp(ctx context.Context, stop float64) ([]Reading, error) {
	if err := r.back(); err != nil {
		return nil, err
	}
	steps := min(warmSteps, int((stop-r.t)/r.H)-replaySteps)
	if got, err := r.attempt(ctx, steps); steps < 1 || err != nil || len(got) < steps {
		return nil, context.Cause(ctx)
	}
	origin, err := r.Of.SaveState(nil)
	if err != nil {
		return nil, err
	}
	at := r.t
	r.t += float64(float64(steps) * r.H)
	r.moved = true
	got, _ := r.attempt(ctx, replaySteps) // as far as it goes
	if len(got) == 0 {
		r.t, r.moved = at, false
		return nil, errors.Join(context.Cause(ctx), r.Of.FreeState(origin))
	}
	r.origin, r.steps = origin, len(got)
	return got, nil
}

// attempt takes steps until one fails and gives what was read after each.
func (r *rollbackTest) attempt(ctx context.Context, steps int) (got []Reading, err error) {
	for k := range steps {
		if err := r.u.Stage(r.Of); err != nil {
			return got, err
		}
		r.Of.NoRestoreBefore(r.promised || k == 0 && !r.moved)
		if _, err := r.Of.Step(ctx, r.t+float64(float64(k)*r.H), r.H); err != nil {
			return got, err
		}
		g, err := r.Read()
		if err != nil {
			return got, err
		}
		got = append(got, g)
	}
	return got, nil
}

// repeat goes back and takes the steps of the first try again.
func (r *rollbackTest) repeat(ctx context.Context) ([]Reading, error) {
	if err := r.back(); err != nil {
		return nil, err
	}
	got, err := r.attempt(ctx, r.steps)
	if err != nil && ended(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but does not repeat after going back what it did before: %w", master.ErrCapability, err)
	}
	return got, nil
}

// stray goes elsewhere, as far as the FMU takes part.
func (r *rollbackTest) stray(ctx context.Context, steps int) error {
	if err := r.back(); err != nil {
		return err
	}
	u, scale := r.u, slices.Clone(r.Scale)
	r.u = r.kicked()
	_, err := r.attempt(ctx, steps)
	r.u, r.Scale = u, scale // far off, outputs may be larger than where they are compared
	if r.Of.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx) // anything else only shortens the way
}

// kicked returns the inputs, moved so far that the FMU goes elsewhere.
func (r *rollbackTest) kicked() Inputs {
	u := r.u
	u.Real = slices.Clone(u.Real)
	for k, p := range r.Of.Info().In {
		u.Real[k] += strayKick * max(math.Abs(u.Real[k]), p.Magnitude())
	}
	return u
}

// farther goes on from the origin for the magnitudes that the outputs reach, as
// far as the FMU takes part.
func (r *rollbackTest) farther(ctx context.Context) error {
	if err := r.back(); err != nil {
		return err
	}
	_, err := r.attempt(ctx, fartherSteps)
	if r.Of.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx)
}
