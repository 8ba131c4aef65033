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
	"github.com/macrostep/macrostep/master/fmuprobe"
)

// Value is a typed start value of a variable, in the FMU's unit.
type Value struct {
	Variable string
	Real     float64
	Integer  int64 // also of an Enumeration
	Boolean  bool
	String   string
}

// Config describes an FMU as a subsystem.
type Config struct {
	Name     string // of the component
	FMU      *fmi.FMU
	Inputs   []string // variables that the master drives
	Outputs  []string // outputs and calculated parameters that are coupled or recorded
	Integral []string // those of Inputs that are Reals and take an Integer
	Watch    []string // further variables that are recorded
	Params   []string // parameters that outputs of other subsystems set during the initialisation
	// Monitor lists further Reals that are read with the outputs at each step, after the initialisation.
	// Those not in Outputs become internal ports after the outputs.
	Monitor   []Monitored
	Starts    []Value // given parameters and start values; all others are left to the FMU, except those of inputs
	Stateless bool    // outputs are a function of the inputs at the same time
	Options   fmi.InstanceOptions
	// Restarts is how often the process of the instance may be replaced (fmi.InstanceOptions.Restarts); it
	// requires Options.Launcher. 0 = never.
	Restarts int
	// Cache is for measurements of the FMU, with the folder CacheDir for instance; nil = measure each time.
	Cache  *fmuprobe.Cache
	Quirks Quirk

	Aside bool // it is not the instance of the run: given values are not read back
	// Sandbox is for instances that the subsystem makes for tests, and with Sandboxed for its own, unless the FMU is known
	// to leave the working folder as it is; nil = they run like that of the subsystem.
	Sandbox   *Sandbox
	Sandboxed bool

	bare string // why the folder of the sandbox is empty; "" = it is a copy
}

// once reports whether no second instance can be made in addition to that of the run. In processes of their
// own several can.
func (c *Config) once() bool {
	return c.Options.Launcher == nil && c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess
}

// load finds the exports of the library.
func (c *Config) load(ctx context.Context) (err error) {
	if c.Options.Launcher == nil {
		_, err = c.FMU.Load(ctx, c.Name)
	} else if !c.FMU.Loaded() {
		_, err = c.FMU.LoadIn(ctx, c.Options.Launcher)
	}
	return err
}

// Monitored is a variable that is read with the outputs for the algorithm.
type Monitored struct {
	Variable string
	Level    master.Level // NoLevel = that of the description
}

// Slave is an FMU as a subsystem.
type Slave struct {
	config  Config
	info    master.Info
	in, out []signal // Reals; out holds the outputs, then variables that are only monitored
	coupled int      // number of outputs in out
	watch   []signal
	params  []signal
	// Variables that may be set between steps.
	tunables     []signal
	tunablePorts []master.Port

	starts startValues // set before the first step

	discreteIn, discreteOut []signal

	// Exchanged variables: initPlan in initialisation mode, where only outputs may be read (fmi2 39), and
	// stepPlan after it, with the watched variables after the outputs. Strings need calls of their own.
	initPlan, stepPlan fmi.StepPlan
	initUnknowns       unknowns      // of directional derivatives in initialisation mode
	linear             linearization // after initialisation mode
	stringInVR         []description.ValueReference
	stringOutVR        []description.ValueReference // outputs first, then watched variables
	outStrings         int                          // number of outputs in stringOutVR

	instance   *fmi.Instance
	live       atomic.Pointer[fmi.Instance] // the same, for other goroutines
	experiment master.Experiment            // of the instance
	stepper    *fmi.Stepper
	own        master.Batch // of the slave alone; nil = not used yet
	before     uint64       // ticks of the instance before its first step
	// stringOut has the watched variables only after initialisation mode.
	stringOut   []string
	stale       bool          // a state was restored, and the outputs are not read yet
	derivatives int           // highest accepted order of input derivatives
	given       []expectation // of given values
	documented  []expectation // of documented values that were not given
	notes       []string      // about the initialisation
	revived     int           // new instances after refused getters
	refused     error         // the last refusal
	asking      atomic.Bool   // reading variables that the FMU may refuse
	clock       clock
	slaveState
}

// slaveState is the state of a slave between steps, apart from that of the FMU and the inputs in its stepper.
type slaveState struct {
	stringIn     []string
	stringsDirty bool // stringIn differs from what the FMU has
	ticking      ticking
	trials       [2]trial // of derivatives without states, with them
	waited       bool     // a long wait for a pending step was reported
}

var (
	_ master.Subsystem             = (*Slave)(nil)
	_ master.Initializer           = (*Slave)(nil)
	_ master.DiscreteIO            = (*Slave)(nil)
	_ master.ParameterSetter       = (*Slave)(nil)
	_ master.InputDerivativeSetter = (*Slave)(nil)
	_ master.StateSaver            = (*Slave)(nil)
	_ master.DirectionalDeriver    = (*Slave)(nil)
	_ master.Linearizer            = (*Slave)(nil)
	_ master.Watcher               = (*Slave)(nil)
	_ master.Batcher               = (*Slave)(nil)
	_ master.Terminator            = (*Slave)(nil)
	_ master.EventSource           = (*Slave)(nil)
)

// New describes the subsystem. It makes no call of the FMU. Variables that do not exist, have another
// causality, or cannot be set are errors.
func New(c Config) (*Slave, error) {
	if c.Sandboxed {
		if err := c.Place(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
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

// planStep lists the variables that are set and read at each step.
func (s *Slave) planStep() {
	p := &s.initPlan
	p.RealIn = slices.Concat(references(s.in, master.Real), references(s.discreteIn, master.Real))
	p.DerivativeIn = make([]int, 0, len(s.in))
	for k := range s.in {
		p.DerivativeIn = append(p.DerivativeIn, k) // an Integer has none
	}
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

// EnterInit instantiates the FMU, sets parameters and start values, and enters initialisation mode
// (fmi2 40–42).
func (s *Slave) EnterInit(ctx context.Context, e master.Experiment) error {
	s.stale, s.before, s.experiment = false, 0, e
	s.linear.before, s.linear.displaced = nil, false
	s.stepPlan.DerivativeOrders = 0
	if err := s.probeInputDerivatives(ctx, e); err != nil {
		return err
	}
	s.clock.start = e.Start
	if err := s.instantiate(ctx); err != nil {
		return err
	}
	return s.enter(e)
}

// instantiate makes the instance. Log messages about variables that it may refuse to read are only for
// debugging.
func (s *Slave) instantiate(ctx context.Context) (err error) {
	s.config.Options.Context = ctx // also of the instances beside this one
	o := s.config.Options
	o.Restarts, o.NoState = s.config.Restarts, !s.info.Caps.SaveState || !s.info.Caps.SerializeState
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
		return refusesStart(err)
	}
	if err := s.set(s.instance, s.starts.inside); err != nil {
		return err
	}
	s.stringIn = make([]string, len(s.stringInVR))
	s.stringOut = make([]string, s.outStrings)
	if err := s.prepare(s.initPlan); err != nil {
		return err
	}
	// The first staged values are those that the FMU has.
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

// UsesStop reports whether the FMU gets the stop time. An FMU with a stop time must refuse steps beyond it;
// few FMUs use it, and some refuse a last step that ends there up to rounding (fmi2 40).
func (s *Slave) UsesStop() bool { return s.config.Quirks.Has(StopTime) }

// setUp sets the experiment, parameters and start values of an instance.
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

// prepare makes the stepper of a plan and keeps the staged values.
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
	next.NoRestoreBefore = !s.experiment.Reverts
	s.stepper, s.own = next, nil
	return nil
}

// SetParameter sets a parameter in initialisation mode (fmi2 39: initial is exact), also of later instances
// made for tests.
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
	return s.set(s.instance, valueList{{g.variable, value}})
}

// EvalInit sets the staged inputs and reads the outputs, in initialisation mode.
func (s *Slave) EvalInit() error {
	if err := s.stepper.Write(); err != nil {
		return s.refusedInput(err)
	}
	if err := s.writeStrings(); err != nil {
		return err
	}
	return s.read()
}

// ExitInit leaves initialisation mode and reads outputs and watched variables at the start.
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
		return refusesStart(err)
	}
	s.stringOut = make([]string, len(s.stringOutVR))
	if err := s.prepare(s.stepPlan); err != nil {
		return err
	}
	return s.stepper.Start()
}

// refusesStart adds the remedy to a status by which the FMU refuses to start.
func refusesStart(err error) error {
	if refused := (*fmi.StatusError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("%w; the FMU refuses to start from these values: correct its parameters and inputs (--set), or ask its exporter", err)
	}
	return err
}

func (s *Slave) writeStrings() error {
	if !s.stringsDirty {
		return nil
	}
	if err := s.instance.SetString(s.stringInVR, s.stringIn); err != nil {
		return s.refusedInput(err)
	}
	s.stringsDirty = false
	return nil
}

// read reads all outputs and watched variables.
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

// refresh reads the outputs after a restore. It is called only when they are needed, because in many FMUs
// reading then takes longer than a step.
func (s *Slave) refresh() error {
	if !s.stale {
		return nil
	}
	return s.read()
}

// SetInputs stages u for the next step.
func (s *Slave) SetInputs(u []float64) error {
	copy(s.stepper.RealIn, u)
	return nil
}

// SetDiscrete stages discrete inputs.
func (s *Slave) SetDiscrete(v *master.Values) error {
	copy(s.stepper.RealIn[len(s.in):], v.Real)
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

// PrepareInputDerivatives makes the following steps send derivatives up to order. Batches that have been
// made before do not.
func (s *Slave) PrepareInputDerivatives(order int) error {
	if order > s.derivatives {
		return fmt.Errorf("%w: the FMU accepts input derivatives up to order %d, not %d; choose a lower order",
			master.ErrCapability, s.derivatives, order)
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

// SetInputDerivatives stages du for the next step.
func (s *Slave) SetInputDerivatives(order int, du []float64) error {
	copy(s.stepper.Derivatives[(order-1)*len(s.in):order*len(s.in)], du)
	return nil
}

// Step sets the staged inputs, steps and reads the outputs, as a batch of one.
func (s *Slave) Step(ctx context.Context, t, H float64) (float64, error) {
	if s.own == nil {
		b, err := s.NewBatch([]master.Subsystem{s}, make([]master.Exchange, 1))
		if err != nil {
			return t, err
		}
		s.own = b
	}
	_, reached, err := s.own.Step(ctx, t, H, true)
	return reached, err
}

// after evaluates the outcome of a step (fmi2 51–55). err is that of the call that returned the status,
// which may be any call of the step.
func (s *Slave) after(ctx context.Context, t, H float64, status fmi.Status, err error) (float64, error) {
	if pending(status, err) {
		if err = s.await(ctx, t, H); err == nil {
			s.stale = true
			return t + H, nil
		}
	}
	var refused *fmi.StatusError
	switch {
	case !errors.As(err, &refused):
		return t, err
	case refused.Steps() && refused.Status == fmi.StatusDiscard:
		return s.discarded(t, H, err)
	case refused.Func == "fmi2SetRealInputDerivatives":
		return t, derivativesRefused(err)
	}
	return t, s.refusedInput(err)
}

// pending reports whether a step continues in the background. Only fmi2DoStep may return Pending: from any
// other function it is an error.
func pending(status fmi.Status, err error) bool {
	var refused *fmi.StatusError
	return status == fmi.StatusPending && errors.As(err, &refused) && refused.Steps()
}

// derivativesRefused adds the remedy for an FMU that declares canInterpolateInputs without doing so.
func derivativesRefused(err error) error {
	return fmt.Errorf("%w; the FMU declares canInterpolateInputs and does not take input derivatives: "+
		"with delivery=substeps macrostep samples the polynomials instead", err)
}

// discarded queries whether the FMU ends the simulation, and the time reached (fmi2 52, 69).
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
	s.stale = true // the values at the end can be read
	const rounding = 1e-9
	if slack := rounding*H + 4*0x1p-52*max(math.Abs(t), math.Abs(t+H)); unknown == nil && !(last >= t-slack && last <= t+H+slack) {
		unknown = fmt.Errorf("its last successful time is %.12g s, outside of the step", last)
	} else if last >= t+H-slack {
		last = t + H
	}
	if unknown != nil {
		return math.NaN(), fmt.Errorf("%w, and the time it reached could not be read (%w): %w", master.ErrTerminated, unknown, cause)
	}
	last = max(last, t)
	return last, fmt.Errorf("%w at t = %.12g s: %w", master.ErrTerminated, last, cause)
}

// await polls an asynchronous step until its end (fmi2 53); the error is as if fmi2DoStep had returned it.
// When ctx ends, the step is cancelled; if that fails, await waits for it, because an FMU cannot be freed
// during a step. A long wait is reported once.
func (s *Slave) await(ctx context.Context, t, H float64) error {
	const shortest, longest = 50 * time.Microsecond, 5 * time.Millisecond
	pause := shortest
	begin := time.Now()
	done := ctx.Done()
	for {
		status, err := s.instance.GetStatus(fmi.DoStepStatus)
		if err != nil && s.instance.State() == fmi.StateStepInProgress {
			// The FMU does not report the end of its step.
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
			s.instance.Tell(fmt.Sprintf("the step from t = %.12g s by %.12g s is pending for more than %v (fmi2DoStep returned Pending); "+
				"it is waited for %s", t, H, patience, until))
		}
		pause = min(2*pause, longest)
	}
}

// patience is how long a step may be pending before that is reported.
const patience = 5 * time.Second

// Outputs copies the outputs at the present time of the FMU. In initialisation mode it does not change the
// entries of internal ports.
func (s *Slave) Outputs(y []float64) error {
	if err := s.refresh(); err != nil {
		return err
	}
	copy(y, s.stepper.RealOut)
	return nil
}

// Discrete copies the discrete outputs at the present time of the FMU.
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

// SaveState saves the state of the FMU; the memory of reuse is reused.
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

// RestoreState restores a state. Staged inputs stay staged.
func (s *Slave) RestoreState(state master.State) error {
	if err := s.instance.SetFMUState(state.(*fmi.FMUState)); err != nil {
		return err
	}
	s.restored()
	return nil
}

// restored marks outputs and strings as those of a restored state.
func (s *Slave) restored() {
	s.stale, s.stringsDirty = true, len(s.stringIn) > 0
	s.linear.displaced = false
}

// FreeState frees a state. If the FMU may not be called for that, the state ends with the instance.
func (s *Slave) FreeState(state master.State) error {
	switch s.instance.State() {
	case fmi.StateFatal, fmi.StateFreed, fmi.StateStepInProgress:
		return nil
	}
	return s.instance.FreeFMUState(state.(*fmi.FMUState))
}

// Seconds returns the time spent inside the FMU since its initialisation.
func (s *Slave) Seconds() float64 {
	if s.instance == nil || s.before == 0 {
		return 0
	}
	return float64(s.instance.Ticks()-s.before) / fmi.TickRate()
}

// Terminate ends the FMU regularly, if its state allows that (fmi2 62).
func (s *Slave) Terminate() error {
	if s.instance == nil || s.config.Quirks.Has(NoTerminate) {
		return nil
	}
	switch s.instance.State() {
	case fmi.StateStepComplete, fmi.StateStepFailed, fmi.StateEventMode:
		return s.instance.Terminate()
	}
	return nil
}

// Close frees the instance. The FMU stays open.
func (s *Slave) Close() error {
	if s.instance == nil {
		return nil
	}
	return s.instance.Free()
}

// Waiting returns the present call of an FMU in a process of its own, and its start; "" = none. Another
// goroutine may call it during calls of the subsystem.
func (s *Slave) Waiting() (call string, since time.Time) {
	if in := s.live.Load(); in != nil {
		return in.Waiting()
	}
	return "", time.Time{}
}

// apartCost is the time (s) that the step of an FMU in a process of its own takes on the calling thread.
const apartCost = 5e-6

// StepCost returns the cost of a step of the FMU in an earlier run with the macro step H.
func (s *Slave) StepCost(H float64) (seconds float64, known bool) {
	if s.config.Options.Launcher != nil {
		return apartCost, true
	}
	return s.store().Cost(H)
}

// KeepStepCost stores the cost of a step.
func (s *Slave) KeepStepCost(H, seconds float64) {
	if s.config.Options.Launcher == nil {
		s.store().KeepCost(H, seconds)
	}
}
