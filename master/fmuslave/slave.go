package fmuslave

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macrostep/macrostep/fmi"
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
	Name      string // of the component
	FMU       *fmi.FMU
	Inputs    []string // variables that the master drives
	Outputs   []string // variables that are coupled or recorded
	Watch     []string // further variables that are recorded
	Starts    []Value  // parameters and start values that override the document's
	Stateless bool     // outputs are a function of the inputs of the same instant
	Options   fmi.InstanceOptions
	// Cache is the folder for what is measured about the FMU, see CacheDir;
	// "" measures each time.
	Cache string
}

// Slave is an FMU as a subsystem.
type Slave struct {
	config  Config
	info    master.Info
	in, out []signal // Reals
	watch   []signal
	starts  startValues

	discreteIn, discreteOut []signal

	instance *fmi.Instance
	plan     fmi.StepPlan
	stepper  *fmi.Stepper
	// Strings do not fit into the crossing of the step.
	stringIn     []string
	stringInVR   []fmi.ValueReference
	stringOut    []string
	stringOutVR  []fmi.ValueReference
	stringsDirty bool
	// Where discrete outputs and watched variables stand in the stepper's
	// slices: outputs first, then watched variables.
	outInteger, outBoolean, outString int
	knownVR, unknownVR                []fmi.ValueReference
	initialised                       bool
	derivatives                       int // highest order of input derivatives that it takes
}

var (
	_ master.Subsystem             = (*Slave)(nil)
	_ master.Initializer           = (*Slave)(nil)
	_ master.DiscreteIO            = (*Slave)(nil)
	_ master.InputDerivativeSetter = (*Slave)(nil)
	_ master.Substepper            = (*Slave)(nil)
	_ master.StateSaver            = (*Slave)(nil)
	_ master.DirectionalDeriver    = (*Slave)(nil)
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
	return s, nil
}

// Info describes the FMU.
func (s *Slave) Info() *master.Info { return &s.info }

// planStep lists what one crossing sets and gets.
func (s *Slave) planStep() {
	p := &s.plan
	for _, g := range s.in {
		p.RealIn = append(p.RealIn, g.variable.ValueReference)
	}
	for _, g := range s.discreteIn {
		vr := g.variable.ValueReference
		switch g.kind {
		case master.Integer:
			p.IntegerIn = append(p.IntegerIn, vr)
		case master.Boolean:
			p.BooleanIn = append(p.BooleanIn, vr)
		case master.String:
			s.stringInVR = append(s.stringInVR, vr)
		}
	}
	s.get(s.out)
	s.knownVR, s.unknownVR = p.RealIn, p.RealOut[:len(p.RealOut):len(p.RealOut)]
	s.get(s.discreteOut)
	s.outInteger, s.outBoolean, s.outString = len(p.IntegerOut), len(p.BooleanOut), len(s.stringOutVR)
	s.get(s.watch)
	s.stringIn, s.stringOut = make([]string, len(s.stringInVR)), make([]string, len(s.stringOutVR))
}

func (s *Slave) get(list []signal) {
	p := &s.plan
	for _, g := range list {
		vr := g.variable.ValueReference
		switch g.kind {
		case master.Real:
			p.RealOut = append(p.RealOut, vr)
		case master.Integer:
			p.IntegerOut = append(p.IntegerOut, vr)
		case master.Boolean:
			p.BooleanOut = append(p.BooleanOut, vr)
		case master.String:
			s.stringOutVR = append(s.stringOutVR, vr)
		}
	}
}

// EnterInit instantiates the FMU, sets parameters and start values and enters
// initialisation mode (fmi2 40–42).
func (s *Slave) EnterInit(_ context.Context, e master.Experiment) error {
	if err := s.probeInputDerivatives(e); err != nil {
		return err
	}
	var err error
	if s.instance, err = s.config.FMU.Instantiate(s.config.Name, s.config.Options); err != nil {
		return err
	}
	if err := s.setUp(s.instance, e); err != nil {
		return err
	}
	if err := s.instance.EnterInitializationMode(); err != nil {
		return err
	}
	if err := s.starts.inside.set(s.instance); err != nil {
		return err
	}
	return s.newStepper()
}

// setUp tells an instance the experiment, and parameters and start values.
func (s *Slave) setUp(in *fmi.Instance, e master.Experiment) error {
	x := fmi.Experiment{Start: e.Start}
	if e.HasTol {
		x.Tolerance = &e.Tolerance
	}
	if e.StopKnown {
		x.Stop = &e.Stop
	}
	if err := in.SetupExperiment(x); err != nil {
		return err
	}
	return s.starts.before.set(in)
}

func (s *Slave) newStepper() (err error) {
	u := make([]float64, len(s.in))
	var d []int32
	var b []int32
	if s.stepper != nil { // staged values survive a change of the plan
		copy(u, s.stepper.RealIn)
		d, b = append(d, s.stepper.IntegerIn...), append(b, s.stepper.BooleanIn...)
	}
	if s.stepper, err = s.instance.NewStepper(s.plan); err != nil {
		return err
	}
	copy(s.stepper.RealIn, u)
	copy(s.stepper.IntegerIn, d)
	copy(s.stepper.BooleanIn, b)
	return nil
}

// EvalInit sets the staged inputs and gets the outputs, in initialisation mode.
func (s *Slave) EvalInit() error {
	if err := s.stepper.Write(); err != nil {
		return err
	}
	if err := s.writeStrings(); err != nil {
		return err
	}
	return s.read()
}

// ExitInit leaves initialisation mode and gets the outputs at the start.
func (s *Slave) ExitInit() error {
	if err := s.instance.ExitInitializationMode(); err != nil {
		return err
	}
	s.initialised = true
	return s.read()
}

func (s *Slave) writeStrings() error {
	if !s.stringsDirty {
		return nil
	}
	s.stringsDirty = false
	return s.instance.SetString(s.stringInVR, s.stringIn)
}

// read gets everything at a communication point.
func (s *Slave) read() error {
	if err := s.stepper.Read(); err != nil {
		return err
	}
	return s.readStrings()
}

func (s *Slave) readStrings() error {
	if len(s.stringOutVR) == 0 {
		return nil
	}
	return s.instance.GetString(s.stringOutVR, s.stringOut)
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

// PrepareInputDerivatives makes the step send derivatives up to order.
func (s *Slave) PrepareInputDerivatives(order int) error {
	if order > s.derivatives {
		return fmt.Errorf("%w: the FMU takes input derivatives up to order %d, not %d", master.ErrCapability, s.derivatives, order)
	}
	if s.plan.DerivativeOrders == order {
		return nil
	}
	s.plan.DerivativeOrders = order
	if err := s.newStepper(); err != nil {
		return err
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
	if err := s.writeStrings(); err != nil {
		return t, err
	}
	status, err := s.stepper.Step(t, H, true)
	return s.after(ctx, t, H, status, err)
}

// Substep is Step without getting the outputs.
func (s *Slave) Substep(ctx context.Context, t, h float64) (float64, error) {
	if err := s.writeStrings(); err != nil {
		return t, err
	}
	status, err := s.stepper.Step(t, h, false)
	if status == fmi.StatusOK && err == nil {
		return t + h, nil
	}
	return s.after(ctx, t, h, status, err)
}

// after judges the status of a step (fmi2 51–55).
func (s *Slave) after(ctx context.Context, t, H float64, status fmi.Status, err error) (float64, error) {
	switch status {
	case fmi.StatusPending:
		if status, err = s.await(ctx); err != nil {
			return t, err
		}
		if status == fmi.StatusDiscard {
			return s.discarded(t)
		}
		return t + H, s.read()
	case fmi.StatusDiscard:
		return s.discarded(t)
	}
	if err != nil {
		return t, err
	}
	return t + H, s.readStrings()
}

// discarded asks how far the FMU got, and whether it wants the end (fmi2 52, 69).
func (s *Slave) discarded(t float64) (float64, error) {
	reached := t
	if last, err := s.instance.GetRealStatus(fmi.LastSuccessfulTime); err == nil && last > t {
		reached = last
	}
	if end, err := s.instance.GetBooleanStatus(fmi.Terminated); err == nil && end {
		return reached, fmt.Errorf("%w at t = %g s", master.ErrTerminated, reached)
	}
	return reached, fmt.Errorf("%w by the FMU: it got to t = %g s", master.ErrDiscard, reached)
}

// await polls an asynchronous step to its end (fmi2 53).
func (s *Slave) await(ctx context.Context) (fmi.Status, error) {
	const shortest, longest = 50 * time.Microsecond, 5 * time.Millisecond
	pause := shortest
	for {
		status, err := s.instance.GetStatus(fmi.DoStepStatus)
		if err != nil {
			return status, err
		}
		if status != fmi.StatusPending {
			return status, nil
		}
		if ctx.Err() != nil {
			return status, errors.Join(context.Cause(ctx), s.instance.CancelStep())
		}
		time.Sleep(pause)
		pause = min(2*pause, longest)
	}
}

// Outputs copies what the last crossing got.
func (s *Slave) Outputs(y []float64) error {
	copy(y, s.stepper.RealOut)
	return nil
}

// Discrete copies what the last crossing got.
func (s *Slave) Discrete(v *master.Values) error {
	copy(v.Integer, s.stepper.IntegerOut)
	for i := range v.Boolean {
		v.Boolean[i] = s.stepper.BooleanOut[i] != 0
	}
	copy(v.String, s.stringOut)
	return nil
}

// Watched copies what the last crossing got.
func (s *Slave) Watched(v *master.Values) error {
	copy(v.Real, s.stepper.RealOut[len(s.out):])
	copy(v.Integer, s.stepper.IntegerOut[s.outInteger:])
	for i, b := range s.stepper.BooleanOut[s.outBoolean:] {
		v.Boolean[i] = b != 0
	}
	copy(v.String, s.stringOut[s.outString:])
	return nil
}

// SaveState keeps the state of the FMU; a state given is reused.
func (s *Slave) SaveState(reuse master.State) (master.State, error) {
	handle, _ := reuse.(*fmi.FMUState)
	return s.instance.GetFMUState(handle)
}

// RestoreState goes back to a state.
func (s *Slave) RestoreState(state master.State) error {
	return s.instance.SetFMUState(state.(*fmi.FMUState))
}

// FreeState gives the memory of a state back.
func (s *Slave) FreeState(state master.State) error {
	return s.instance.FreeFMUState(state.(*fmi.FMUState))
}

// DirectionalDerivative gives dy = ∂y/∂u · du.
func (s *Slave) DirectionalDerivative(du, dy []float64) error {
	return s.instance.GetDirectionalDerivative(s.unknownVR, s.knownVR, du, dy)
}

// Seconds is the time spent inside the FMU while stepping.
func (s *Slave) Seconds() float64 {
	if s.stepper == nil {
		return 0
	}
	return float64(s.stepper.Ticks()) / fmi.TickRate()
}

// Terminate ends the FMU regularly, if the state it is in allows that (fmi2 62).
func (s *Slave) Terminate() error {
	if s.instance == nil || !s.initialised {
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
