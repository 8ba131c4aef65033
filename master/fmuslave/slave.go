package fmuslave

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// Value is a typed start value of a variable, in the FMU's unit.
type Value struct {
	Variable string
	Real     float64
	Integer  int32 // also of an Enumeration
	Boolean  bool
	String   string
}

// Config says which FMU becomes which subsystem.
type Config struct {
	Name    string // of the component
	FMU     *fmi.FMU
	Inputs  []string // variables that the master drives
	Outputs []string // variables that are coupled or recorded: outputs, calculated parameters
	Watch   []string // further variables that are recorded
	Params  []string // parameters that outputs of others give during the initialisation
	// Monitor lists further Reals that are read with the outputs at each step,
	// after the initialisation: of those that are no outputs here an internal
	// port is made, behind the outputs.
	Monitor   []Monitored
	Starts    []Value // parameters and start values that are given; all others are left to the FMU, but for inputs
	Stateless bool    // outputs are a function of the inputs of the same instant
	Options   fmi.InstanceOptions
	// Restarts is how often the process of the instance of the run may be replaced
	// (fmi.InstanceOptions.Restarts); it takes Options.Launcher. 0 = never.
	Restarts int
	// Cache is the folder for what is measured about the FMU, see CacheDir;
	// "" measures each time.
	Cache  string
	Quirks Quirk

	Aside bool // it is beside the instance of the run: what it was given is not read back
}

// once reports whether no second instance can be made beside the one of the run.
// One in a process of its own can.
func (c *Config) once() bool {
	return c.Options.Launcher == nil && c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess
}

// load makes known what the library exports.
func (c *Config) load() (err error) {
	if c.Options.Launcher == nil {
		_, err = c.FMU.Load(c.Name)
	} else if !c.FMU.Loaded() {
		_, err = c.FMU.LoadIn(c.Options.Launcher)
	}
	return err
}

// Monitored is a variable that an algorithm wants to see.
type Monitored struct {
	Variable string
	Level    master.Level // NoLevel = as the description tells
}

// Slave is an FMU as a subsystem.
type Slave struct {
	config  Config
	info    master.Info
	in, out []signal // Reals; out holds the outputs, then what is only monitored
	coupled int      // those of out that are outputs
	watch   []signal
	params  []signal
	// What may be set between steps, beside the inputs.
	tunables     []signal
	tunablePorts []master.Port

	starts startValues // what is set before the first step

	discreteIn, discreteOut []signal

	// What is exchanged: initPlan in initialisation mode, where only outputs may
	// be read (fmi2 39), stepPlan after it, which has the watched variables
	// behind the outputs. Strings do not fit into the crossing of the step.
	initPlan, stepPlan fmi.StepPlan
	initUnknowns       unknowns      // of directional derivatives in initialisation mode
	initTrial          trial         // of asking for them
	linear             linearization // after it
	stringInVR         []description.ValueReference
	stringOutVR        []description.ValueReference // outputs first, then watched variables
	outStrings         int                          // those that are outputs

	instance   *fmi.Instance
	live       atomic.Pointer[fmi.Instance] // the same, for other goroutines
	experiment master.Experiment            // that the instance was told
	stepper    *fmi.Stepper
	before     uint64 // ticks that the instance took before its first step
	stringIn   []string
	// stringOut is as long as what is read now: without the watched variables
	// in initialisation mode.
	stringOut    []string
	stringsDirty bool          // stringIn differs from what the FMU has
	stale        bool          // the FMU went back to a saved state; its outputs are not read yet
	undoable     bool          // the next steps may be followed by a restore to before their start
	unpromised   string        // what such steps do otherwise, see master.Replay
	derivatives  int           // highest order of input derivatives that it takes
	given        []expectation // of what was given
	documented   []expectation // of parameters that were not
	notes        []string      // about the initialisation
	revived      int           // times that the instance was made anew after it was asked
	refused      error         // what it answered
	asking       atomic.Bool   // for what it may refuse
	clock        clock
	waited       bool // a long wait for a pending step was told
}

var (
	_ master.Subsystem             = (*Slave)(nil)
	_ master.Initializer           = (*Slave)(nil)
	_ master.DiscreteIO            = (*Slave)(nil)
	_ master.ParameterSetter       = (*Slave)(nil)
	_ master.InputDerivativeSetter = (*Slave)(nil)
	_ master.Substepper            = (*Slave)(nil)
	_ master.StateSaver            = (*Slave)(nil)
	_ master.RestoreAware          = (*Slave)(nil)
	_ master.DirectionalDeriver    = (*Slave)(nil)
	_ master.Linearizer            = (*Slave)(nil)
	_ master.Watcher               = (*Slave)(nil)
	_ master.GroupStepper          = (*Slave)(nil)
	_ master.Meter                 = (*Slave)(nil)
	_ master.Terminator            = (*Slave)(nil)
)

// New describes the subsystem; the FMU is not touched. Variables that do not
// exist, have another causality, or cannot be set are errors.
func New(c Config) (*Slave, error) {
	s := &Slave{config: c}
	if err := s.describe(&c); err != nil {
		return nil, err
	}
	if err := s.planStarts(); err != nil {
		return nil, err
	}
	s.planStep()
	s.planLinearization()
	s.planTunables()
	return s, nil
}

// Info describes the FMU.
func (s *Slave) Info() *master.Info { return &s.info }

// planStep lists what one crossing sets and gets.
func (s *Slave) planStep() {
	p := &s.initPlan
	p.RealIn = references(s.in, master.Real)
	p.IntegerIn = references(s.discreteIn, master.Integer)
	p.BooleanIn = references(s.discreteIn, master.Boolean)
	p.RealOut = references(s.out[:s.coupled], master.Real)
	p.IntegerOut = references(s.discreteOut, master.Integer)
	p.BooleanOut = references(s.discreteOut, master.Boolean)
	s.stringInVR = references(s.discreteIn, master.String)
	s.stringOutVR = references(s.discreteOut, master.String)
	s.outStrings = len(s.stringOutVR)

	s.stepPlan = *p
	s.stepPlan.RealOut = slices.Concat(references(s.out, master.Real), references(s.watch, master.Real))
	s.stepPlan.IntegerOut = slices.Concat(p.IntegerOut, references(s.watch, master.Integer))
	s.stepPlan.BooleanOut = slices.Concat(p.BooleanOut, references(s.watch, master.Boolean))
	s.stringOutVR = slices.Concat(s.stringOutVR, references(s.watch, master.String))
	s.planClock()

	for o, g := range s.out[:s.coupled] {
		if g.variable.Initial != description.Exact {
			s.initUnknowns.add(o, g.variable.ValueReference)
		}
	}
}

// references lists the value references of the signals of one kind.
func references(list []signal, kind master.Kind) []description.ValueReference {
	var out []description.ValueReference
	for _, g := range list {
		if g.kind == kind {
			out = append(out, g.variable.ValueReference)
		}
	}
	return out
}

// EnterInit instantiates the FMU, sets parameters and start values and enters
// initialisation mode (fmi2 40–42).
func (s *Slave) EnterInit(_ context.Context, e master.Experiment) error {
	s.stale, s.before, s.experiment = false, 0, e
	s.linear.before, s.linear.displaced = nil, false
	s.stepPlan.DerivativeOrders = 0
	if err := s.probeInputDerivatives(e); err != nil {
		return err
	}
	s.clock.start = e.Start
	if err := s.instantiate(); err != nil {
		return err
	}
	return s.enter(e)
}

// instantiate makes the instance. While it is only asked what it has, what it
// logs about that is a matter of debugging.
func (s *Slave) instantiate() (err error) {
	o := s.config.Options
	o.Restarts = s.config.Restarts
	if log := o.Log; log != nil {
		o.Log = func(m fmi.LogMessage) {
			if s.asking.Load() {
				m.Status = fmi.StatusOK
			}
			log(m)
		}
	}
	s.stepper = nil
	if s.instance, err = s.config.FMU.Instantiate(s.config.Name, o); err == nil {
		s.live.Store(s.instance)
	}
	return err
}

// enter puts a new or reset instance into Initialization Mode.
func (s *Slave) enter(e master.Experiment) error {
	if err := s.setUp(s.instance, e); err != nil {
		return err
	}
	if s.config.Quirks.Has(InputsBeforeInit) {
		if err := s.set(s.instance, s.starts.inside); err != nil {
			return err
		}
	}
	if err := s.instance.EnterInitializationMode(); err != nil {
		return err
	}
	if err := s.set(s.instance, s.starts.inside); err != nil {
		return err
	}
	s.stringIn = make([]string, len(s.stringInVR))
	s.stringOut = make([]string, s.outStrings)
	if err := s.prepare(s.initPlan); err != nil {
		return err
	}
	// What is staged first is what the FMU has.
	copy(s.stepper.RealIn, s.info.StartIn)
	if err := s.SetDiscrete(s.info.StartDiscreteIn); err != nil {
		return err
	}
	s.stringsDirty = false
	return nil
}

// EnterAgain is EnterInit for an instance that was reset.
func (s *Slave) EnterAgain(e master.Experiment) error {
	s.stepper, s.stale, s.before = nil, false, 0
	return s.enter(e)
}

// UsesStop reports whether the FMU is told the stop time. It obliges the FMU to refuse steps
// beyond it; few use it, and some refuse a last step that ends there but for rounding (fmi2 40).
func (s *Slave) UsesStop() bool { return s.config.Quirks.Has(StopTime) }

// setUp tells an instance the experiment, and parameters and start values.
func (s *Slave) setUp(in *fmi.Instance, e master.Experiment) error {
	x := fmi.Experiment{Start: e.Start}
	if e.HasTol {
		x.Tolerance = &e.Tolerance
	}
	if e.StopKnown && s.UsesStop() {
		x.Stop = &e.Stop
	}
	if err := in.SetupExperiment(x); err != nil {
		return err
	}
	return s.set(in, s.starts.before)
}

// prepare makes the crossing of a plan; the values staged so far are kept.
func (s *Slave) prepare(plan fmi.StepPlan) error {
	next, err := s.instance.NewStepper(plan)
	if err != nil {
		return err
	}
	if s.stepper != nil {
		copy(next.RealIn, s.stepper.RealIn)
		copy(next.IntegerIn, s.stepper.IntegerIn)
		copy(next.BooleanIn, s.stepper.BooleanIn)
	}
	next.NoRestoreBefore = !s.undoable
	s.stepper = next
	return nil
}

// NoRestoreBefore returns or withdraws the promise for the following steps.
func (s *Slave) NoRestoreBefore(promised bool) {
	s.undoable = !promised
	if s.stepper != nil {
		s.stepper.NoRestoreBefore = promised
	}
}

// SetParameter sets a parameter in initialisation mode (fmi2 39: initial is exact),
// also for instances that are set up as this one is.
func (s *Slave) SetParameter(k int, v master.Values) error {
	g := s.params[k]
	var value Value
	switch g.kind {
	case master.Real:
		value.Real = v.Real[0]
	case master.Integer:
		value.Integer = v.Integer[0]
	case master.Boolean:
		value.Boolean = v.Boolean[0]
	case master.String:
		value.String = v.String[0]
	}
	s.starts.before.remove(g.variable)
	s.starts.before.add(g.variable, value)
	return s.set(s.instance, batch{{g.variable, value}})
}

// EvalInit sets the staged inputs and gets the outputs, in initialisation mode.
func (s *Slave) EvalInit() error {
	if err := s.stepper.Write(); err != nil {
		return s.refusedInput(err)
	}
	if err := s.writeStrings(); err != nil {
		return err
	}
	return s.read()
}

// ExitInit leaves initialisation mode and gets outputs and watched variables at
// the start.
func (s *Slave) ExitInit() error {
	if err := s.leave(); err != nil {
		return err
	}
	if err := s.readBack(); err != nil {
		return err
	}
	err := s.read()
	if err == nil {
		err = s.startClock()
	}
	s.before = s.instance.Ticks()
	return err
}

// leave leaves initialisation mode.
func (s *Slave) leave() error {
	if err := s.instance.ExitInitializationMode(); err != nil {
		return err
	}
	s.stringOut = make([]string, len(s.stringOutVR))
	return s.prepare(s.stepPlan)
}

func (s *Slave) writeStrings() error {
	if !s.stringsDirty {
		return nil
	}
	s.stringsDirty = false
	if err := s.instance.SetString(s.stringInVR, s.stringIn); err != nil {
		return s.refusedInput(err)
	}
	return nil
}

// read gets everything at a communication point.
func (s *Slave) read() error {
	if err := s.settle(); err != nil {
		return err
	}
	s.stale = false
	if err := s.stepper.Read(); err != nil {
		return err
	}
	return s.readStrings()
}

func (s *Slave) readStrings() error {
	if len(s.stringOut) == 0 {
		return nil
	}
	return s.instance.GetString(s.stringOutVR[:len(s.stringOut)], s.stringOut)
}

// refresh reads what is there after going back to a saved state. It waits until
// someone asks: many FMUs take longer for it than for a step.
func (s *Slave) refresh() error {
	if !s.stale {
		return nil
	}
	return s.read()
}

// SetInputs stages u for the crossing of the next step.
func (s *Slave) SetInputs(u []float64) error {
	copy(s.stepper.RealIn, u)
	return nil
}

// SetDiscrete stages discrete inputs.
func (s *Slave) SetDiscrete(v *master.Values) error {
	copy(s.stepper.IntegerIn, v.Integer)
	for i, b := range v.Boolean {
		s.stepper.BooleanIn[i] = 0
		if b {
			s.stepper.BooleanIn[i] = 1
		}
	}
	for i, text := range v.String {
		if s.stringIn[i] != text {
			s.stringIn[i], s.stringsDirty = text, true
		}
	}
	return nil
}

// PrepareInputDerivatives makes the step send derivatives up to order. Groups
// are made after it.
func (s *Slave) PrepareInputDerivatives(order int) error {
	if order > s.derivatives {
		return fmt.Errorf("%w: the FMU accepts input derivatives up to order %d, not %d; choose a lower order", master.ErrCapability, s.derivatives, order)
	}
	if s.stepPlan.DerivativeOrders == order {
		return nil
	}
	s.stepPlan.DerivativeOrders = order
	if err := s.prepare(s.stepPlan); err != nil {
		return derivativesRefused(err)
	}
	return s.read()
}

// SetInputDerivatives stages du for the crossing of the next step.
func (s *Slave) SetInputDerivatives(order int, du []float64) error {
	copy(s.stepper.Derivatives[(order-1)*len(s.in):order*len(s.in)], du)
	return nil
}

// Step sets the staged inputs, steps and gets the outputs in one crossing.
func (s *Slave) Step(ctx context.Context, t, H float64) (float64, error) {
	if err := s.post(t, H); err != nil {
		return t, err
	}
	return s.collect(ctx, t, H)
}

// post begins a step, and collect ends it (fmi.Stepper.Post).
func (s *Slave) post(t, H float64) error {
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.writeStrings(); err != nil {
		return err
	}
	s.stale = false
	return s.stepper.Post(t, H)
}

func (s *Slave) collect(ctx context.Context, t, H float64) (float64, error) {
	status, err := s.stepper.Collect()
	if status == fmi.StatusOK && err == nil {
		if err := s.checkClock(t, H); err != nil {
			return t, err
		}
		return t + H, s.readStrings()
	}
	return s.after(ctx, t, H, status, err)
}

// Substep is Step without getting the outputs.
func (s *Slave) Substep(ctx context.Context, t, h float64) (float64, error) {
	if err := s.settle(); err != nil {
		return t, err
	}
	if err := s.writeStrings(); err != nil {
		return t, err
	}
	status, err := s.stepper.Step(t, h, false)
	if status == fmi.StatusOK && err == nil {
		return t + h, nil
	}
	return s.after(ctx, t, h, status, err)
}

// after judges the outcome of a step (fmi2 51–55). The error is that of the
// call that gave the status, whichever of the crossing it was.
func (s *Slave) after(ctx context.Context, t, H float64, status fmi.Status, err error) (float64, error) {
	if pending(status, err) {
		if err = s.await(ctx, t, H); err == nil {
			return t + H, s.read()
		}
	}
	var refused *fmi.StatusError
	switch {
	case err == nil:
		return t + H, s.readStrings()
	case !errors.As(err, &refused):
		return t, err
	case refused.Func == "fmi2DoStep" && refused.Status == fmi.StatusDiscard:
		return s.discarded(t, H, err)
	case refused.Func == "fmi2SetRealInputDerivatives":
		return t, derivativesRefused(err)
	}
	return t, s.refusedInput(err)
}

// pending reports whether a step goes on in the background. Only doStep may do so:
// for any other call the status is an error.
func pending(status fmi.Status, err error) bool {
	var refused *fmi.StatusError
	return status == fmi.StatusPending && (err == nil || errors.As(err, &refused) && refused.Func == "fmi2DoStep")
}

// derivativesRefused tells what to do about an FMU that claims to interpolate
// its inputs and does not.
func derivativesRefused(err error) error {
	return fmt.Errorf("%w; the FMU declares canInterpolateInputs and does not take input derivatives: "+
		"with delivery=substeps macrostep samples the polynomials instead", err)
}

// discarded asks whether the FMU wants the end, and how far it got (fmi2 52, 69).
func (s *Slave) discarded(t, H float64, cause error) (float64, error) {
	end, refused := s.instance.GetBooleanStatus(fmi.Terminated)
	last, unknown := s.instance.GetRealStatus(fmi.LastSuccessfulTime)
	if refused != nil || !end {
		reached := t
		if unknown == nil && last > t {
			reached = min(last, t+H)
		}
		return reached, fmt.Errorf("%w at t = %.12g s: %w", master.ErrDiscard, reached, cause)
	}
	s.stale = true // the values where it ended can be got
	const rounding = 1e-9
	if slack := rounding*H + 4*0x1p-52*max(math.Abs(t), math.Abs(t+H)); unknown == nil && !(last >= t-slack && last <= t+H+slack) {
		unknown = fmt.Errorf("fmi2LastSuccessfulTime is %.12g s, outside of the step", last)
	} else if last >= t+H-slack {
		last = t + H
	}
	if unknown != nil {
		return math.NaN(), fmt.Errorf("%w, and the time it reached could not be read (%w): %w", master.ErrTerminated, unknown, cause)
	}
	last = max(last, t)
	return last, fmt.Errorf("%w at t = %.12g s: %w", master.ErrTerminated, last, cause)
}

// await polls an asynchronous step to its end (fmi2 53); the error is as if
// doStep had returned it. When ctx ends the step is cancelled; one that cannot
// be is waited for, because an FMU in the middle of a step cannot be freed. A
// long wait is told, once.
func (s *Slave) await(ctx context.Context, t, H float64) error {
	const shortest, longest = 50 * time.Microsecond, 5 * time.Millisecond
	pause := shortest
	begin := time.Now()
	done := ctx.Done()
	for {
		status, err := s.instance.GetStatus(fmi.DoStepStatus)
		if err != nil && s.instance.State() == fmi.StateStepInProgress {
			// The FMU does not tell when its step is done.
			return errors.Join(err, s.instance.CancelStep())
		}
		if status != fmi.StatusPending {
			return err
		}
		select {
		case <-done:
			err := s.instance.CancelStep()
			if s.instance.State() != fmi.StateStepInProgress {
				return errors.Join(context.Cause(ctx), err)
			}
			done = nil
		case <-time.After(pause):
		}
		if !s.waited && time.Since(begin) > patience {
			s.waited = true
			until := "until it ends or the run is cancelled; a step timeout (--step-timeout) ends such a step"
			if limit := s.config.Options.StepTimeout; limit > 0 {
				until = fmt.Sprintf("for at most %v", limit)
			}
			s.instance.Tell(fmt.Sprintf("the step from t = %.12g s by %.12g s is pending for more than %v (fmi2DoStep returned Pending); it is waited for %s", t, H, patience, until))
		}
		pause = min(2*pause, longest)
	}
}

// patience is how long a step may be pending before that is told.
const patience = 5 * time.Second

// Outputs copies the outputs at the communication point that the FMU is at. In
// initialisation mode it leaves the entries of internal ports as they are.
func (s *Slave) Outputs(y []float64) error {
	if err := s.refresh(); err != nil {
		return err
	}
	copy(y, s.stepper.RealOut)
	return nil
}

// Discrete copies the discrete outputs at the communication point that the FMU is at.
func (s *Slave) Discrete(v *master.Values) error {
	if err := s.refresh(); err != nil {
		return err
	}
	copy(v.Integer, s.stepper.IntegerOut)
	for i := range v.Boolean {
		v.Boolean[i] = s.stepper.BooleanOut[i] != 0
	}
	copy(v.String, s.stringOut)
	return nil
}

// Watched copies the watched variables, after initialisation.
func (s *Slave) Watched(v *master.Values) error {
	if err := s.refresh(); err != nil {
		return err
	}
	copy(v.Real, s.stepper.RealOut[len(s.out):])
	copy(v.Integer, s.stepper.IntegerOut[len(s.initPlan.IntegerOut):])
	for i, b := range s.stepper.BooleanOut[len(s.initPlan.BooleanOut):] {
		v.Boolean[i] = b != 0
	}
	copy(v.String, s.stringOut[s.outStrings:])
	return nil
}

// SaveState keeps the state of the FMU; a state given is reused.
func (s *Slave) SaveState(reuse master.State) (master.State, error) {
	if err := s.settle(); err != nil {
		return nil, err
	}
	handle, _ := reuse.(*fmi.FMUState)
	state, err := s.instance.GetFMUState(handle)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// RestoreState goes back to a state. Staged inputs stay staged.
func (s *Slave) RestoreState(state master.State) error {
	if err := s.instance.SetFMUState(state.(*fmi.FMUState)); err != nil {
		return err
	}
	s.restored()
	return nil
}

// restored notes that the FMU went back: it has the strings of that state again.
func (s *Slave) restored() {
	s.stale, s.stringsDirty = true, len(s.stringIn) > 0
	s.linear.displaced = false
}

// FreeState returns the memory of a state back. Where the FMU may not be called
// for it, the state ends with the instance.
func (s *Slave) FreeState(state master.State) error {
	switch s.instance.State() {
	case fmi.StateFatal, fmi.StateFreed, fmi.StateStepInProgress:
		return nil
	}
	return s.instance.FreeFMUState(state.(*fmi.FMUState))
}

// Seconds is the time spent inside the FMU since its initialisation.
func (s *Slave) Seconds() float64 {
	if s.instance == nil || s.before == 0 {
		return 0
	}
	return float64(s.instance.Ticks()-s.before) / fmi.TickRate()
}

// Terminate ends the FMU regularly, if the state it is in allows that (fmi2 62).
func (s *Slave) Terminate() error {
	if s.instance == nil || s.config.Quirks.Has(NoTerminate) {
		return nil
	}
	switch s.instance.State() {
	case fmi.StateStepComplete, fmi.StateStepFailed:
		return s.instance.Terminate()
	}
	return nil
}

// Close frees the instance. The FMU stays open; it belongs to whoever opened it.
func (s *Slave) Close() error {
	if s.instance == nil {
		return nil
	}
	return s.instance.Free()
}

// Waiting tells in which call an FMU in a process of its own is, and since when; ""
// if in none. Another goroutine may ask, while the subsystem is called.
func (s *Slave) Waiting() (call string, since time.Time) {
	if in := s.live.Load(); in != nil {
		return in.Waiting()
	}
	return "", time.Time{}
}

// apartCost is what the step of an FMU in a process of its own takes from the thread
// that asks for it (s).
const apartCost = 5e-6

// StepCost returns the cost of a step of the FMU in an earlier run with the macro step H.
func (s *Slave) StepCost(H float64) (seconds float64, known bool) {
	if s.config.Options.Launcher != nil {
		return apartCost, true
	}
	return s.store().Cost(H)
}

// KeepStepCost keeps the cost of a step.
func (s *Slave) KeepStepCost(H, seconds float64) {
	if s.config.Options.Launcher == nil {
		s.store().KeepCost(H, seconds)
	}
}
