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

// The test of the rollback repeats replaySteps steps from one state, saved warmSteps steps after the start,
// where solvers have a history to lose. In between it takes straySteps other steps, with inputs that are off
// by strayKick of their magnitude, so that a state that the FMU does not restore shows even if the system
// starts at rest. All steps are those of a run that restores states (master.Experiment.Reverts).
const (
	warmSteps    = 5
	replaySteps  = 3
	straySteps   = 8
	fartherSteps = 100
	strayKick    = 0.1
	// A first attempt and its replay, or two replays, may not differ by more than this. The largest
	// difference among 60 FMUs of twelve tools with a working rollback is 7e-4.
	maxNoise = 1e-2
	// After straying a replay may differ by this, for tolerances of solvers, or by noiseFactor times the
	// difference between replays without straying.
	maxDrift    = 1e-4
	noiseFactor = 30
	// How often the step is halved until the FMU takes it.
	maxHalvings = 20
)

// Rollback tests whether subjects made by fresh, with inputs u, restore a saved state, and measures how
// exactly they repeat a step. Errors wrap master.ErrCapability if they do not.
func Rollback(ctx context.Context, e master.Experiment, H float64, u Inputs, fresh Fresh) (master.Replay, error) {
	// The result is stored and holds for runs of any length.
	e.Stop = max(e.Stop, e.Start+(warmSteps+replaySteps+1)*H)
	r := rollbackTest{u: u, H: H}
	differs, err := r.unpromised(ctx, e, fresh)
	if err != nil {
		return master.Replay{}, err
	}
	if differs != "" {
		return master.Replay{Step: r.H, Unpromised: differs, Untested: "its steps differ if they may be undone: " + differs}, nil
	}
	twin, err := fresh("test of rollback", true)
	if err != nil {
		return master.Replay{}, err
	}
	defer func() { _, _ = twin.Terminate(), twin.Close() }() // the run reports how its own instance ends
	r = rollbackTest{Comparison: Comparison{Of: twin}, u: u, t: e.Start, H: r.H}
	return r.run(ctx, e)
}

// RollbackInPlace is Rollback for a subject that is the only one possible, and has master.Experiment.Reverts.
// It restores the start.
func RollbackInPlace(ctx context.Context, s Subject, e master.Experiment, H float64, u Inputs) (master.Replay, error) {
	r := rollbackTest{Comparison: Comparison{Of: s}, u: u, t: e.Start, H: H}
	replay, err := r.run(ctx, e)
	replay.Untested = "whether its steps differ if they may be undone (noSetFMUStatePriorToCurrentPoint = false) is unknown, because " +
		"the FMU can be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess); in a process of its own " +
		"(--isolate) that is tested"
	return replay, err
}

// unpromised describes how steps that may be undone differ from those that carry the promise that no later
// restore goes back to before them, by more than two courses of the latter; "" = they do not. It halves the
// step until the FMU takes it.
func (r *rollbackTest) unpromised(ctx context.Context, e master.Experiment, fresh Fresh) (string, error) {
	with, err := r.course(ctx, e, fresh, false)
	if err != nil {
		return "", err
	}
	without, err := r.course(ctx, e, fresh, true)
	if err != nil && (ended(err) || ctx.Err() != nil) {
		return "", err
	}
	if len(with) != len(without) {
		return fmt.Sprintf("it takes %d steps of %g s with true and %d with false", len(with), r.H, len(without)), nil
	}
	if r.Compare(with, without, "").Relative <= maxDrift {
		return "", nil
	}
	again, err := r.course(ctx, e, fresh, false) // instances may differ for other reasons
	if err != nil {
		return "", err
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
		return "", nil
	}
	return fmt.Sprintf("%s after step %d of %g s is %s with true and %s with false", worst.Name, worst.Step, r.H, worst.First, worst.Then), nil
}

// course takes steps on a new instance, the later ones with other inputs, and returns the readings after
// each, as far as the FMU goes. The first course determines the step size.
func (r *rollbackTest) course(ctx context.Context, e master.Experiment, fresh Fresh, reverts bool) (got []Reading, err error) {
	twin, err := fresh("test of promises", reverts)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = twin.Terminate(), twin.Close() }() // the run reports how its own instance ends
	r.Of, r.t = twin, e.Start
	if r.origin, err = twin.SaveState(nil); err != nil { // as a run would
		return nil, refused("give a state", err)
	}
	defer func() { err = errors.Join(err, twin.FreeState(r.origin)) }()
	if r.steps > 0 {
		got, err = r.attempt(ctx, r.steps)
	} else if err = r.measure(); err == nil {
		got, err = r.firstTry(ctx, e.Stop)
	}
	if len(got) == replaySteps {
		u := r.u
		r.t, r.u = r.t+float64(replaySteps*r.H), r.kicked()
		var more []Reading
		more, err = r.attempt(ctx, straySteps)
		got, r.u = append(got, more...), u
	}
	if len(got) > 0 && !ended(err) {
		err = context.Cause(ctx)
	}
	return got, err
}

// ended reports whether the process of an FMU has ended, which proves nothing about its declarations.
func ended(err error) bool {
	var lost *fmi.ProcessError
	return errors.As(err, &lost)
}

// rollbackTest is the test of one subject.
type rollbackTest struct {
	Comparison
	u      Inputs
	origin master.State // from which steps are repeated
	t, H   float64      // s: time of the origin, size of the steps
	steps  int
}

// run tests the rollback of the subject from its present state, and restores that.
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
			_, err = r.Read() // as before the test
		}
	}()
	if err := r.measure(); err != nil {
		return replay, err
	}
	first, err := r.firstTry(ctx, e.Stop)
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
	second, again, drift, err := r.replays(ctx)
	if err != nil {
		return replay, err
	}
	tries := r.Compare(first, second, "a first attempt")
	atStart := r.Compare(fromStart, afterBack, "")
	if worst := max(tries.Relative, atStart.Relative); worst > maxNoise && !math.IsInf(worst, 1) {
		// In short steps near rest, errors of a solver at its start may exceed the movement of the
		// outputs. They are compared with the magnitudes that the outputs reach later.
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

// replays repeats the steps from the origin twice, and once more after straying. It returns the first
// repetition, and the differences of the others from it.
func (r *rollbackTest) replays(ctx context.Context) (second []Reading, again, drift Difference, err error) {
	if second, err = r.repeat(ctx); err != nil {
		return nil, again, drift, err
	}
	third, err := r.repeat(ctx)
	if err != nil {
		return nil, again, drift, err
	}
	if err := r.stray(ctx); err != nil {
		return nil, again, drift, err
	}
	fourth, err := r.repeat(ctx)
	if err != nil {
		return nil, again, drift, err
	}
	return second, r.Compare(second, third, "a step"), r.Compare(second, fourth, "a step"), nil
}

// judge fails if a difference is too large.
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

// atStart describes how steps from the start change after restoring it, "" if they do not.
func (r *rollbackTest) atStart(d Difference) string {
	if d.Relative <= maxNoise {
		return ""
	}
	return fmt.Sprintf("%s after step %d of %g s from the start is %s without and %s after it went back to the start", d.Name, d.Step, r.H, d.First, d.Then)
}

// back returns to the origin.
func (r *rollbackTest) back() error {
	if err := r.Of.RestoreState(r.origin); err != nil {
		return refused("go back to one", err)
	}
	return nil
}

// withoutRollback is the remedy for an FMU without a working rollback.
const withoutRollback = "run without what relies on rollback, and tell the exporter"

// refused returns the error of an FMU whose declaration is false.
func refused(what string, err error) error {
	if ended(err) {
		return err
	}
	return fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but does not %s: %w; %s", master.ErrCapability,
		what, err, withoutRollback)
}

// firstTry steps without a restore. It determines the step size, halved until the FMU takes it, and the
// number of steps, up to replaySteps.
func (r *rollbackTest) firstTry(ctx context.Context, stop float64) ([]Reading, error) {
	for range maxHalvings {
		got, err := r.attempt(ctx, min(replaySteps, max(1, int((stop-r.t)/r.H))))
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

// warmUp moves the origin some steps on and returns the readings of the first steps from there; nil if the
// stop time is too close or the FMU does not take the steps.
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
	got, _ := r.attempt(ctx, replaySteps) // as far as it goes
	if len(got) == 0 {
		r.t = at
		return nil, errors.Join(context.Cause(ctx), r.Of.FreeState(origin))
	}
	r.origin, r.steps = origin, len(got)
	return got, nil
}

// attempt takes steps until one fails and returns the reading after each.
func (r *rollbackTest) attempt(ctx context.Context, steps int) (got []Reading, err error) {
	for k := range steps {
		if err := r.u.Stage(r.Of); err != nil {
			return got, err
		}
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

// repeat goes back to the origin and repeats the steps of the first try.
func (r *rollbackTest) repeat(ctx context.Context) ([]Reading, error) {
	if err := r.back(); err != nil {
		return nil, err
	}
	got, err := r.attempt(ctx, r.steps)
	if err != nil && ended(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but does not repeat its steps after "+
			"a rollback: %w", master.ErrCapability, err)
	}
	return got, nil
}

// stray takes other steps, as far as the FMU goes.
func (r *rollbackTest) stray(ctx context.Context) error {
	if err := r.back(); err != nil {
		return err
	}
	u, scale := r.u, slices.Clone(r.Scale)
	r.u = r.kicked()
	_, err := r.attempt(ctx, straySteps)
	r.u, r.Scale = u, scale // magnitudes of these steps do not count
	if r.Of.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx) // other errors do not matter
}

// kicked returns moved inputs, with which the FMU takes another course.
func (r *rollbackTest) kicked() Inputs {
	u := r.u
	u.Real = slices.Clone(u.Real)
	for k, p := range r.Of.Info().In {
		u.Real[k] += strayKick * max(math.Abs(u.Real[k]), p.Magnitude())
	}
	return u
}

// farther takes many steps from the origin to find the magnitudes that the outputs reach, as far as the FMU
// goes.
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
