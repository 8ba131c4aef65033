package fmuslave

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
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
	// Magnitudes below this part of the nominal value count as this.
	magnitudeFloor = 1e-6
	// How often the step is halved until the FMU takes it.
	maxHalvings = 20
)

var (
	_ master.RollbackVerifier = (*Slave)(nil)
	_ master.Duplicator       = (*Slave)(nil)
)

// VerifyRollback tests that the FMU goes back to a saved state (fmi2 59), with
// the inputs as staged now, and measures how well it repeats a step. The test
// runs on an instance of its own; an FMU that lives once per process is tested
// in the instance of the run, which is back where it was afterwards. What was
// measured is kept with the hash of the FMU and of its settings (see Config.Cache) and not measured
// again.
//
// The error names the output and both values; it wraps master.ErrCapability if
// the FMU does not go back.
func (s *Slave) VerifyRollback(ctx context.Context, e master.Experiment, H float64) (master.Replay, error) {
	store := s.store()
	replay, known := store.find(H)
	if known && (replay.Unpromised != promiseUntested || s.config.once()) {
		s.unpromised = replay.Unpromised
		return replay, nil
	}
	var err error
	if s.config.once() {
		r := rollbackTest{s: s, u: s.staged(), t: e.Start, H: H}
		replay, err = r.run(ctx, e)
		replay.Unpromised = promiseUntested
	} else {
		replay, err = s.testTwin(ctx, e, H)
	}
	if err != nil {
		return replay, err
	}
	s.unpromised = replay.Unpromised
	store.keep(s.config.FMU.Description.ModelName, H, replay)
	return replay, nil
}

// promiseUntested stands for a difference that cannot be looked for: both courses take
// an instance of their own.
const promiseUntested = "or at least that could not be ruled out, because the FMU can be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess); in a process of its own (--isolate) it can"

// stagedInputs are the inputs of a slave.
type stagedInputs struct {
	real     []float64
	discrete master.Values
}

// staged copies the inputs that are staged now.
func (s *Slave) staged() stagedInputs {
	u := stagedInputs{real: slices.Clone(s.stepper.RealIn[:len(s.in)])}
	u.discrete.Integer = slices.Clone(s.stepper.IntegerIn)
	for _, b := range s.stepper.BooleanIn {
		u.discrete.Boolean = append(u.discrete.Boolean, b != 0)
	}
	u.discrete.String = slices.Clone(s.stringIn)
	return u
}

func (s *Slave) stageInputs(u stagedInputs) error {
	if err := s.SetInputs(u.real); err != nil {
		return err
	}
	return s.SetDiscrete(&u.discrete)
}

// testTwin tests the rollback on an instance that nothing else uses.
func (s *Slave) testTwin(ctx context.Context, e master.Experiment, H float64) (replay master.Replay, err error) {
	c := s.config
	c.Outputs, c.Watch, c.Monitor, c.Restarts = nil, nil, nil, 0
	c.Options.Log, c.aside = quiet(c.Options.Log), true
	d := c.FMU.Description
	for i := range d.Variables {
		switch v := &d.Variables[i]; {
		case v.Causality == description.Output:
			c.Outputs = append(c.Outputs, v.Name)
		case v.Derivative > 0 && v.Causality == description.Local: // and with it what it is the derivative of
			if x := &d.Variables[v.Derivative-1]; x.Causality == description.Local && !slices.Contains(c.Watch, x.Name) {
				c.Watch = append(c.Watch, x.Name)
			}
		}
	}
	u := s.staged()
	unpromised, H, err := testPromise(ctx, e, c, u, H)
	if err != nil {
		return replay, err
	}
	c.Name += " (test of rollback)"
	twin, err := newTwin(ctx, e, c, u)
	if err != nil {
		return replay, err
	}
	defer func() { err = errors.Join(err, twin.Terminate(), twin.Close()) }()
	r := rollbackTest{s: twin, u: u, t: e.Start, H: H}
	if unpromised != "" {
		replay, err = r.runSingly(ctx, e)
	} else {
		replay, err = r.run(ctx, e)
	}
	replay.Unpromised = unpromised
	return replay, err
}

// newTwin gives an instance of its own at the start of the steps.
func newTwin(ctx context.Context, e master.Experiment, c Config, u stagedInputs) (*Slave, error) {
	twin, err := New(c)
	if err != nil {
		return nil, err
	}
	if err = twin.begin(ctx, e, u); err == nil {
		err = twin.ExitInit()
	}
	if err != nil {
		return nil, errors.Join(err, twin.Terminate(), twin.Close())
	}
	return twin, nil
}

// testPromise compares steps with and, but for the first, without the promise that no
// restore will go to before their start, each on an instance of its own, and gives how they
// differ, "" if they do not. The step is halved until the FMU takes it.
func testPromise(ctx context.Context, e master.Experiment, c Config, u stagedInputs, H float64) (differs string, _ float64, err error) {
	var r rollbackTest // for the magnitudes of all
	name, n := c.Name, 0
	course := func(promised bool) (got []reading, err error) {
		n++
		c.Name = fmt.Sprintf("%s (test of promises %d)", name, n)
		twin, err := newTwin(ctx, e, c, u)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, twin.Terminate(), twin.Close()) }()
		state, err := twin.SaveState(nil) // to which a run would go back
		if err != nil {
			return nil, refused("give a state", err)
		}
		defer func() { err = errors.Join(err, twin.FreeState(state)) }()
		r.s, r.u, r.t, r.H, r.promised, r.moved = twin, u, e.Start, H, promised, false
		if r.scale == nil {
			if err := r.measure(); err != nil {
				return nil, err
			}
		}
		got, err = r.attempt(ctx, replaySteps)
		if len(got) == replaySteps {
			r.t, r.u, r.moved = r.t+float64(replaySteps*H), r.kicked(), true
			var more []reading
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
		if !errors.Is(err, master.ErrDiscard) || !c.varies() {
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
	if r.compare(with, without, "").relative <= maxDrift {
		return "", H, nil
	}
	// Instances may differ for other reasons.
	again, err := course(true)
	if err != nil {
		return "", H, err
	}
	both := min(len(with), len(again))
	noise := map[string]float64{}
	r.differences(with[:both], again[:both], func(d difference) { noise[d.name] = max(noise[d.name], d.relative) })
	var worst difference
	r.differences(with, without, func(d difference) {
		if d.relative > max(worst.relative, maxDrift, noiseFactor*noise[d.name]) {
			worst = d
		}
	})
	if worst.name == "" {
		return "", H, nil
	}
	return fmt.Sprintf("%s after step %d of %g s is %s with true and %s with false", worst.name, worst.step, H, worst.first, worst.then), H, nil
}

// varies reports whether the FMU takes steps of several sizes.
func (c *Config) varies() bool {
	return c.FMU.Description.CoSimulation.CanHandleVariableCommunicationStepSize && !c.Quirks.Has(ConstantH)
}

// Duplicate instantiates the FMU again.
func (s *Slave) Duplicate(ctx context.Context, order int) (_ master.Subsystem, err error) {
	if s.config.once() {
		return nil, fmt.Errorf("%w: the FMU can be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess)", master.ErrCapability)
	}
	c := s.config
	c.Name += " (another)"
	c.Options.Log, c.aside = quiet(c.Options.Log), true
	another, err := New(c)
	if err != nil {
		return nil, err
	}
	end := func(err error) error { return errors.Join(err, another.Terminate(), another.Close()) }
	e := s.experiment
	e.InputDerivatives = order
	if err := another.EnterInit(ctx, e); err != nil {
		return nil, end(err)
	}
	if err := errors.Join(another.stageInputs(s.staged()), another.EvalInit()); err != nil {
		return nil, end(err)
	}
	if err := another.ExitInit(); err != nil {
		return nil, end(err)
	}
	if order > 0 {
		if err := another.PrepareInputDerivatives(order); err != nil {
			return nil, end(err)
		}
	}
	return another, nil
}

// begin takes a twin into its initialisation, with inputs.
func (s *Slave) begin(ctx context.Context, e master.Experiment, u stagedInputs) error {
	e.InputDerivatives = 0
	if err := s.EnterInit(ctx, e); err != nil {
		return err
	}
	if err := s.stageInputs(u); err != nil {
		return err
	}
	return s.EvalInit()
}

// quiet makes what an FMU says on an instance that is led astray a matter of
// debugging.
func quiet(log func(fmi.LogMessage)) func(fmi.LogMessage) {
	if log == nil {
		return nil
	}
	return func(m fmi.LogMessage) {
		if m.Category != fmi.OwnCategory {
			m.Status = fmi.StatusOK
			log(m)
		}
	}
}

// rollbackTest is the test of one slave.
type rollbackTest struct {
	s      *Slave
	u      stagedInputs
	origin master.State // from where steps are repeated
	t, H   float64      // of the origin; of the steps
	steps  int
	scale  []float64 // magnitude of each Real that is compared

	moved    bool // the origin is not the start any more
	promised bool // all steps carry the promise, else only the first one from the start
}

// run tests the rollback of the instance that s has, from the state it is in, and
// takes it back there.
func (r *rollbackTest) run(ctx context.Context, e master.Experiment) (replay master.Replay, err error) {
	s := r.s
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
			err = s.read() // what was read before the test
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
	tries := r.compare(first, second, "a first attempt")
	atStart := r.compare(fromStart, afterBack, "")
	if worst := max(tries.relative, atStart.relative); worst > maxNoise && !math.IsInf(worst, 1) {
		// In short steps near rest, what a solver leaves open at its start may be all
		// that there is to see: it is measured by where the outputs get to.
		if err := r.farther(ctx); err != nil {
			return replay, err
		}
		tries = r.compare(first, second, "a first attempt")
		atStart = r.compare(fromStart, afterBack, "")
	}
	if err := judge(tries, again, drift); err != nil {
		return replay, err
	}
	replay = master.Replay{Step: r.H, FirstTry: tries.relative, Replays: max(again.relative, drift.relative)}
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
			err = errors.Join(err, r.s.FreeState(state))
		}
	}()
	for k := range warmSteps + 1 {
		if state, err = r.s.SaveState(state); err != nil {
			return replay, refused("give a state", err)
		}
		r.origin = state
		var first []reading
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
		tries := r.compare(first, second, "a first attempt")
		if k == 0 {
			replay.Step, replay.AtStart = r.H, r.atStart(tries)
			if replay.AtStart != "" {
				tries = difference{}
			}
		}
		if err := judge(tries, again, drift); err != nil {
			return replay, err
		}
		replay.FirstTry = max(replay.FirstTry, tries.relative)
		replay.Replays = max(replay.Replays, again.relative, drift.relative)
		r.t += r.H
	}
	return replay, nil
}

// replays repeats the steps from the origin twice, and once more after straying. It
// gives the first of these repetitions, and how far the others are off it.
func (r *rollbackTest) replays(ctx context.Context, strays int) (second []reading, again, drift difference, err error) {
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
	return second, r.compare(second, third, "a step"), r.compare(second, fourth, "a step"), nil
}

// judge fails if a repetition is none.
func judge(tries, again, drift difference) error {
	for _, c := range []struct {
		difference
		bound float64
	}{{tries, maxNoise}, {again, maxNoise}, {drift, max(maxDrift, noiseFactor*again.relative)}} {
		if c.relative > c.bound {
			return c.lie()
		}
	}
	return nil
}

// atStart describes how steps from the start depend on going back to it, "" if they do not.
func (r *rollbackTest) atStart(d difference) string {
	if d.relative <= maxNoise {
		return ""
	}
	return fmt.Sprintf("%s after step %d of %g s from the start is %s without and %s after it went back to the start", d.name, d.step, r.H, d.first, d.then)
}

// back goes to the origin.
func (r *rollbackTest) back() error {
	if err := r.s.RestoreState(r.origin); err != nil {
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

// ended tells that an FMU has ended its process: that is no matter of what it declares.
func ended(err error) bool {
	var lost *fmi.ProcessError
	return errors.As(err, &lost)
}

// reading is what the slave shows after a step: outputs, then what is watched.
type reading struct {
	real     []float64
	discrete [2]master.Values // outputs, watched variables
}

func (r *rollbackTest) read() (reading, error) {
	info := &r.s.info
	g := reading{real: make([]float64, len(info.Out)), discrete: [2]master.Values{master.NewValues(info.DiscreteOut), master.NewValues(info.Watch)}}
	err := errors.Join(r.s.Outputs(g.real), r.s.Discrete(&g.discrete[0]), r.s.Watched(&g.discrete[1]))
	g.real = append(g.real, g.discrete[1].Real...)
	for k, v := range g.real {
		r.scale[k] = max(r.scale[k], math.Abs(v))
	}
	return g, err
}

// measure begins the magnitudes with the floor of each variable and its value at
// the start.
func (r *rollbackTest) measure() error {
	for _, p := range r.reals() {
		nominal := p.Nominal
		if nominal == 0 {
			nominal = 1
		}
		r.scale = append(r.scale, magnitudeFloor*math.Abs(nominal))
	}
	_, err := r.read()
	return err
}

// reals lists the Reals of a reading.
func (r *rollbackTest) reals() []master.Port {
	return slices.Concat(r.s.info.Out, ofKind(r.s.info.Watch, master.Real))
}

func ofKind(ports []master.Port, k master.Kind) []master.Port {
	var out []master.Port
	for _, p := range ports {
		if p.Kind == k {
			out = append(out, p)
		}
	}
	return out
}

// firstTry steps without going back first. It settles the step size, halved
// until the FMU takes it, and the number of steps, at most as many as given.
func (r *rollbackTest) firstTry(ctx context.Context, stop float64, most int) ([]reading, error) {
	for range maxHalvings {
		got, err := r.attempt(ctx, min(most, max(1, int((stop-r.t)/r.H))))
		if r.steps = len(got); r.steps > 0 {
			return got, nil
		}
		if !errors.Is(err, master.ErrDiscard) && !errors.Is(err, master.ErrTerminated) {
			return nil, err
		}
		if !r.s.config.varies() {
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
func (r *rollbackTest) warmUp(ctx context.Context, stop float64) ([]reading, error) {
	if err := r.back(); err != nil {
		return nil, err
	}
	steps := min(warmSteps, int((stop-r.t)/r.H)-replaySteps)
	if got, err := r.attempt(ctx, steps); steps < 1 || err != nil || len(got) < steps {
		return nil, context.Cause(ctx)
	}
	origin, err := r.s.SaveState(nil)
	if err != nil {
		return nil, err
	}
	at := r.t
	r.t += float64(float64(steps) * r.H)
	r.moved = true
	got, _ := r.attempt(ctx, replaySteps) // as far as it goes
	if len(got) == 0 {
		r.t, r.moved = at, false
		return nil, errors.Join(context.Cause(ctx), r.s.FreeState(origin))
	}
	r.origin, r.steps = origin, len(got)
	return got, nil
}

// attempt takes steps until one fails and gives what was read after each.
func (r *rollbackTest) attempt(ctx context.Context, steps int) (got []reading, err error) {
	for k := range steps {
		if err := r.s.stageInputs(r.u); err != nil {
			return got, err
		}
		r.s.NoRestoreBefore(r.promised || k == 0 && !r.moved)
		if _, err := r.s.Step(ctx, r.t+float64(float64(k)*r.H), r.H); err != nil {
			return got, err
		}
		g, err := r.read()
		if err != nil {
			return got, err
		}
		got = append(got, g)
	}
	return got, nil
}

// repeat goes back and takes the steps of the first try again.
func (r *rollbackTest) repeat(ctx context.Context) ([]reading, error) {
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
	u, scale := r.u, slices.Clone(r.scale)
	r.u = r.kicked()
	_, err := r.attempt(ctx, steps)
	r.u, r.scale = u, scale // far off, outputs may be larger than where they are compared
	if r.s.instance.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx) // anything else only shortens the way
}

// kicked gives the inputs, moved so far that the FMU goes elsewhere.
func (r *rollbackTest) kicked() stagedInputs {
	u := r.u
	u.real = slices.Clone(u.real)
	for k, p := range r.s.info.In {
		u.real[k] += strayKick * max(math.Abs(u.real[k]), p.Magnitude())
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
	if r.s.instance.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx)
}

// difference is the largest one between two attempts.
type difference struct {
	relative    float64
	what        string // of the attempts
	name        string // of the variable
	step        int
	first, then string
}

func (d difference) lie() error {
	return fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but %s and its replay after going back differ: %s is %s after step %d and then %s (relative difference %.2g); "+
		withoutRollback,
		master.ErrCapability, d.what, d.name, d.first, d.step, d.then, d.relative)
}

// compare finds the largest difference.
func (r *rollbackTest) compare(a, b []reading, what string) difference {
	worst := difference{}
	r.differences(a, b, func(d difference) {
		if d.relative > worst.relative {
			worst = d
		}
	})
	worst.what = what
	return worst
}

// differences finds all. Anything but Reals must be equal.
func (r *rollbackTest) differences(a, b []reading, found func(difference)) {
	reals := r.reals()
	for step := range a {
		note := func(relative float64, name string, first, then any) {
			found(difference{relative: relative, name: name, step: step + 1, first: shown(first), then: shown(then)})
		}
		p, q := a[step], b[step]
		for k := range p.real {
			switch d := math.Abs(p.real[k] - q.real[k]); {
			case d > 0: // false for NaN
				note(d/r.scale[k], reals[k].Name, p.real[k], q.real[k])
			case math.IsNaN(p.real[k]) != math.IsNaN(q.real[k]):
				note(math.Inf(1), reals[k].Name, p.real[k], q.real[k])
			}
		}
		for i, ports := range [][]master.Port{r.s.info.DiscreteOut, r.s.info.Watch} {
			v, w := &p.discrete[i], &q.discrete[i]
			exact(v.Integer, w.Integer, ofKind(ports, master.Integer), note)
			exact(v.Boolean, w.Boolean, ofKind(ports, master.Boolean), note)
			exact(v.String, w.String, ofKind(ports, master.String), note)
		}
	}
}

// shown gives a value in the digits that matter in a message.
func shown(v any) string {
	if x, ok := v.(float64); ok {
		return fmt.Sprintf("%.9g", x)
	}
	return fmt.Sprint(v)
}

func exact[T comparable](p, q []T, ports []master.Port, note func(float64, string, any, any)) {
	for k := range p {
		if p[k] != q[k] {
			note(math.Inf(1), ports[k].Name, p[k], q[k])
		}
	}
}
