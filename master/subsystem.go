package master

import (
	"context"
	"errors"
	"fmt"
)

// Kind is the type of a signal. An enumeration travels as Integer.
type Kind uint8

// The kinds.
const (
	Real Kind = iota
	Integer
	Boolean
	String
)

// Port is one input, output or watched variable of a subsystem.
type Port struct {
	Name string
	Unit string // "" = none
	Kind Kind
	// Discrete marks a Real that changes only at communication points
	// (variability below continuous). It is held, never extrapolated.
	Discrete bool
	// Nominal is the typical magnitude of a Real; 0 counts as 1.
	Nominal float64
}

// Values holds signals by kind. Within a kind the order is that of the ports.
type Values struct {
	Real    []float64
	Integer []int32
	Boolean []bool
	String  []string
}

// Caps are the capabilities that the description of a subsystem promises. A
// capability holds only if the method is there too (see As).
type Caps struct {
	VariableStep          bool // the macro step may change from step to step
	InputDerivatives      bool // interpolates its inputs (InputDerivativeSetter)
	OutputDerivatives     int  // highest order of output derivatives; 0 = none
	SaveState             bool // rollback (StateSaver)
	SerializeState        bool
	DirectionalDerivative bool // DirectionalDeriver
}

// Feedthrough tells on which inputs each output depends directly. Outputs are
// numbered over Info.Out and then Info.DiscreteOut, inputs over Info.In and
// then Info.DiscreteIn. The zero value is no direct dependency.
type Feedthrough struct {
	On [][]int // for each output the inputs it depends on, ascending; nil = none
	// Assumed marks the outputs whose dependencies are not declared, so that
	// On holds all inputs (fmi2 27); nil = all are declared.
	Assumed []bool
}

// Info describes a subsystem. It does not change once a system is built on it.
type Info struct {
	Name        string // hierarchical, unique in the system
	Source      string // what it is made of, for messages: the file of an FMU; "" = nothing to name
	In, Out     []Port // Real: the vectors u and y
	DiscreteIn  []Port // Integer, Boolean and String
	DiscreteOut []Port
	Watch       []Port // further variables, only recorded
	Step, Init  Feedthrough
	Stateless   bool // outputs are a function of the inputs of the same instant
	Caps        Caps
	// StartIn [len(In)] and StartDiscreteIn (over DiscreteIn) hold the value of
	// each input before anything is set; nil = zero values.
	StartIn         []float64
	StartDiscreteIn *Values
}

// String names the subsystem in messages: "wheel (quarter_wheel.fmu)".
func (i *Info) String() string {
	if i.Source == "" {
		return i.Name
	}
	return i.Name + " (" + i.Source + ")"
}

// Subsystem is anything that can be stepped: an FMU, a Go function, hardware.
// It has one caller at a time.
//
// Further capabilities are the small interfaces below, found by As.
type Subsystem interface {
	Info() *Info
	// SetInputs stages u [len(Info.In)] for the next Step.
	SetInputs(u []float64) error
	// Step advances from t by H with the staged inputs and says where it got
	// to, t+H without an error. ErrDiscard: it stopped at reached < t+H.
	// ErrTerminated: it wants the simulation to end at reached, and its outputs
	// are those of that time.
	Step(ctx context.Context, t, H float64) (reached float64, err error)
	// Outputs copies the outputs at the last communication point to y [len(Info.Out)].
	Outputs(y []float64) error
}

// Experiment is what a subsystem is told before it is initialised.
type Experiment struct {
	Start     float64
	Stop      float64
	StopKnown bool // Stop is a bound that no step passes (fmi2 40)
	Tolerance float64
	HasTol    bool
	// InputDerivatives is the highest order of input derivatives that the
	// algorithm would like to send; 0 = none.
	InputDerivatives int
}

// Initializer is a subsystem with an initialisation mode (fmi2 39–43).
type Initializer interface {
	// EnterInit creates the subsystem, sets parameters and start values, and
	// enters initialisation mode.
	EnterInit(ctx context.Context, e Experiment) error
	// EvalInit applies the staged inputs; Outputs and Discrete then give the
	// outputs of the initialisation equations.
	EvalInit() error
	// ExitInit leaves initialisation mode; Outputs and Discrete then give the
	// outputs at the start.
	ExitInit() error
}

// DiscreteIO is a subsystem with Integer, Boolean or String signals.
type DiscreteIO interface {
	SetDiscrete(v *Values) error // stages, like SetInputs
	Discrete(v *Values) error    // copies, like Outputs
}

// InputDerivativeSetter is a subsystem that interpolates its inputs.
type InputDerivativeSetter interface {
	// PrepareInputDerivatives announces, before the first step, the highest
	// order that will be set. ErrCapability: the subsystem does not take it.
	PrepareInputDerivatives(order int) error
	// SetInputDerivatives stages the derivative of the given order (1, 2, …) of
	// all inputs at the start of the next step, du [len(Info.In)].
	SetInputDerivatives(order int, du []float64) error
}

// Substepper is a subsystem that can step without its outputs being read.
type Substepper interface {
	Substep(ctx context.Context, t, h float64) (reached float64, err error)
}

// State is a saved state; only its subsystem knows what it is.
type State any

// StateSaver is a subsystem that can go back (rollback).
type StateSaver interface {
	SaveState(reuse State) (State, error)
	RestoreState(State) error
	FreeState(State) error
}

// Replay tells how well a subsystem repeats a step after it went back to a saved
// state. Differences of outputs are relative to their magnitude over the test.
type Replay struct {
	Step float64 `json:"step"` // s; of the steps that were compared
	// FirstTry is the largest difference between a step taken without going
	// back first and its replay: solvers that restart where a state is set.
	FirstTry float64 `json:"first_try"`
	// Replays is the largest difference between replays. What is found by
	// differences of outputs, such as a Jacobian, must stand above it.
	Replays float64 `json:"replays"`
	Known   bool    `json:"known"` // from an earlier run with the same subsystem
}

// RollbackVerifier is a StateSaver that can prove that it goes back: claims are
// often wrong (fmi2 59).
type RollbackVerifier interface {
	// VerifyRollback is called after the initialisation, with the inputs staged,
	// and leaves the subsystem as it was. H is the macro step. An error says that
	// nothing may rely on the rollback.
	VerifyRollback(ctx context.Context, e Experiment, H float64) (Replay, error)
}

// Noter has something to tell about its initialisation. It is asked once, after
// it; the sentences go to the warnings of the run.
type Noter interface {
	Notes() []string
}

// DirectionalDeriver gives dy = ∂y/∂u · du at the last communication point;
// du [len(Info.In)], dy [len(Info.Out)].
type DirectionalDeriver interface {
	DirectionalDerivative(du, dy []float64) error
}

// Watcher reads the variables of Info.Watch at the last communication point.
type Watcher interface {
	Watched(v *Values) error
}

// GroupStepper is a subsystem that can be stepped together with others.
type GroupStepper interface {
	// NewGroup makes a group of members, all of which share this GroupKey.
	GroupKey() any
	NewGroup(members []Subsystem) (Group, error)
}

// Group steps its members as Step would one after the other, and stops at the
// first that does not get to t+H, with an error. ran counts the members that were called; the
// last of them has failed if err is not nil, and reached is its.
type Group interface {
	Step(ctx context.Context, t, H float64) (ran int, reached float64, err error)
}

// Meter tells the time spent inside a subsystem.
type Meter interface {
	Seconds() float64
}

// Terminator is a subsystem that wants to be told the end (fmi2 62). It is told
// once, before it is closed, however the run ended; it knows whether it was
// initialised or has failed.
type Terminator interface {
	Terminate() error
}

// Errors of a step.
var (
	ErrDiscard    = errors.New("step discarded")
	ErrTerminated = errors.New("subsystem asked to end the simulation")
	ErrCapability = errors.New("capability missing")
	// ErrInterrupted is the cause to cancel a run's context with when a user
	// asks for its end.
	ErrInterrupted = errors.New("interrupted")
)

// StepError is a failed step: which subsystem, from where, how far.
type StepError struct {
	Subsystem  string
	Source     string // Info.Source of it
	T, H       float64
	Reached    float64
	Err        error
	Initialize bool // it happened in the initialisation at T
}

// Error names subsystem, time and cause.
func (e *StepError) Error() string {
	name := (&Info{Name: e.Subsystem, Source: e.Source}).String()
	if e.Initialize {
		return fmt.Sprintf("%s: initialisation at t = %.12g s: %v", name, e.T, e.Err)
	}
	return fmt.Sprintf("%s: step from t = %.12g s by %.12g s: %v", name, e.T, e.H, e.Err)
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// As finds a capability of s, also through decorators that have a method
// Unwrap() Subsystem.
func As[T any](s Subsystem) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(interface{ Unwrap() Subsystem })
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var none T
	return none, false
}
