package fmuslave

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
// restore shows even if it starts at rest.
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
	if known, ok := store.find(H); ok {
		return known, nil
	}
	var replay master.Replay
	var err error
	if s.config.once() {
		r := rollbackTest{s: s, u: s.staged(), t: e.Start, H: H}
		replay, err = r.run(ctx, e)
	} else {
		replay, err = s.testTwin(ctx, e, H)
	}
	if err != nil {
		return replay, err
	}
	store.keep(s.config.FMU.Description.ModelName, H, replay)
	return replay, nil
}

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
	c.Name += " (test of rollback)"
	c.Outputs, c.Watch, c.Monitor, c.Restarts = nil, nil, nil, 0
	c.Options.Log = quiet(c.Options.Log)
	d := c.FMU.Description
	for i := range d.Variables {
		switch v := &d.Variables[i]; {
		case v.Causality == fmi.Output:
			c.Outputs = append(c.Outputs, v.Name)
		case v.Derivative > 0 && v.Causality == fmi.Local: // and with it what it is the derivative of
			if x := &d.Variables[v.Derivative-1]; x.Causality == fmi.Local && !slices.Contains(c.Watch, x.Name) {
				c.Watch = append(c.Watch, x.Name)
			}
		}
	}
	twin, err := New(c)
	if err != nil {
		return replay, err
	}
	defer func() { err = errors.Join(err, twin.Terminate(), twin.Close()) }()
	u := s.staged()
	if err := twin.begin(ctx, e, u); err != nil {
		return replay, err
	}
	if err := twin.ExitInit(); err != nil {
		return replay, err
	}
	r := rollbackTest{s: twin, u: u, t: e.Start, H: H}
	return r.run(ctx, e)
}

// Duplicate instantiates the FMU again.
func (s *Slave) Duplicate(ctx context.Context, order int) (_ master.Subsystem, err error) {
	if s.config.once() {
		return nil, fmt.Errorf("%w: the FMU can be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess)", master.ErrCapability)
	}
	c := s.config
	c.Name += " (another)"
	c.Options.Log = quiet(c.Options.Log)
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
	second, err := r.repeat(ctx)
	if err != nil {
		return replay, err
	}
	third, err := r.repeat(ctx)
	if err != nil {
		return replay, err
	}
	if err := r.stray(ctx); err != nil {
		return replay, err
	}
	fourth, err := r.repeat(ctx)
	if err != nil {
		return replay, err
	}
	again := r.compare(second, third, "a step")
	drift := r.compare(second, fourth, "a step")
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
	for _, c := range []struct {
		difference
		bound float64
	}{{tries, maxNoise}, {again, maxNoise}, {drift, max(maxDrift, noiseFactor*again.relative)}} {
		if c.relative > c.bound {
			return replay, c.lie()
		}
	}
	replay = master.Replay{Step: r.H, FirstTry: tries.relative, Replays: max(again.relative, drift.relative)}
	if atStart.relative > maxNoise {
		replay.AtStart = fmt.Sprintf("%s after step %d of %g s from the start is %s without and %s after it went back to the start", atStart.name, atStart.step, r.H, atStart.first, atStart.then)
	}
	return replay, nil
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

// ended tells that an FMU has ended its process, or would have: that is no matter of
// what it declares.
func ended(err error) bool {
	var crash *fmi.CrashError
	var lost *fmi.ProcessError
	return errors.As(err, &crash) || errors.As(err, &lost)
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
// until the FMU takes it, and the number of steps.
func (r *rollbackTest) firstTry(ctx context.Context, stop float64) ([]reading, error) {
	for range maxHalvings {
		got, err := r.attempt(ctx, min(replaySteps, max(1, int((stop-r.t)/r.H))))
		if r.steps = len(got); r.steps > 0 {
			return got, nil
		}
		if !errors.Is(err, master.ErrDiscard) {
			return nil, err
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
	got, _ := r.attempt(ctx, replaySteps) // as far as it goes
	if len(got) == 0 {
		r.t = at
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
func (r *rollbackTest) stray(ctx context.Context) error {
	if err := r.back(); err != nil {
		return err
	}
	u, scale := r.u, slices.Clone(r.scale)
	r.u.real = slices.Clone(u.real)
	for k, p := range r.s.info.In {
		nominal := p.Nominal
		if nominal == 0 {
			nominal = 1
		}
		r.u.real[k] += strayKick * max(math.Abs(u.real[k]), math.Abs(nominal))
	}
	_, err := r.attempt(ctx, straySteps)
	r.u, r.scale = u, scale // far off, outputs may be larger than where they are compared
	if r.s.instance.State() == fmi.StateFatal {
		return err
	}
	return context.Cause(ctx) // anything else only shortens the way
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

// compare finds the largest difference. Anything but Reals must be equal.
func (r *rollbackTest) compare(a, b []reading, what string) difference {
	worst := difference{what: what}
	reals := r.reals()
	for step := range a {
		note := func(relative float64, name string, first, then any) {
			if relative > worst.relative {
				worst = difference{relative, what, name, step + 1, fmt.Sprint(first), fmt.Sprint(then)}
			}
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
	return worst
}

func exact[T comparable](p, q []T, ports []master.Port, note func(float64, string, any, any)) {
	for k := range p {
		if p[k] != q[k] {
			note(math.Inf(1), ports[k].Name, p[k], q[k])
		}
	}
}
