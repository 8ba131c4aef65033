package master

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	// Level is the level of a Real output between the inputs and the positions.
	Level Level
	// Internal marks a Real among Info.Out that is read with the outputs and is
	// none: it stands behind them, cannot be connected, has no value before the
	// initialisation is over, and is recorded only as one of Info.Watch.
	Internal bool
}

// Magnitude is |Nominal|, or 1.
func (p Port) Magnitude() float64 {
	if p.Nominal == 0 {
		return 1
	}
	return math.Abs(p.Nominal)
}

// Level is how an output follows from the inputs, in the sense of
// meyer (2): inputs drive accelerations, these integrate to velocities and these
// to positions. An extrapolation of order k of the inputs makes a local error
// that begins with H^(k+2) in a velocity and with H^(k+3) in a position.
//
// Where a description names derivatives, as that of an FMU does (fmi2 22), the
// rule counts integrations from the inputs. Let d be a derivative of x, each by
// any of its names.
//   - If d is itself differentiated, x is one integration above d.
//   - If not, and d is declared to depend on no input, it follows from states
//     only and counts as one integration: d is a Velocity, x a Position.
//   - Else the rate of x feels the inputs at once, or may do so where nothing is
//     declared: x is a Velocity, d has no level.
//
// Of several derivatives of one variable the one farthest from the inputs
// counts, for all of them. One integration is a Velocity, more are a Position.
// What is neither differentiated nor a derivative has no level.
type Level uint8

// The levels.
const (
	NoLevel Level = iota
	Position
	Velocity
)

// String returns the word for the level.
func (l Level) String() string {
	switch l {
	case NoLevel:
		return "none"
	case Position:
		return "position"
	case Velocity:
		return "velocity"
	}
	return fmt.Sprintf("%d?", uint8(l))
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
	Restarts              bool // begins anew when it is lost (Restarter); takes SaveState and SerializeState
	DirectionalDerivative bool // DirectionalDeriver, and Linearizer if it has it
}

// Feedthrough lists the inputs on which each output depends directly. Outputs are
// numbered over Info.Out and then Info.DiscreteOut, inputs over Info.In and
// then Info.DiscreteIn. The zero value is no direct dependency.
type Feedthrough struct {
	On [][]int // for each output the inputs it depends on, ascending; nil = none
	// Assumed marks the outputs whose dependencies are not declared, so that
	// On holds all inputs (fmi2 27); nil = all are declared.
	Assumed []bool
}

// denies reports whether output o is declared not to depend on input k.
func (f *Feedthrough) denies(o, k int) bool {
	if o >= len(f.On) {
		return f.On == nil
	}
	return (f.Assumed == nil || !f.Assumed[o]) && !slices.Contains(f.On[o], k)
}

// Info describes a subsystem. It does not change once a system is built on it.
type Info struct {
	Name        string // hierarchical, unique in the system
	Source      string // what it is made of, for messages: the file of an FMU; "" = nothing to name
	In, Out     []Port // Real: the vectors u and y; internal ones at the end of Out
	DiscreteIn  []Port // Integer, Boolean and String
	DiscreteOut []Port
	Watch       []Port // further variables, only recorded
	Params      []Port // parameters that outputs of others may give (ParameterSetter)
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
	// ErrTerminated: it wants the simulation to end at reached, within the step, and
	// its outputs are those of that time; NaN = it does not say when.
	Step(ctx context.Context, t, H float64) (reached float64, err error)
	// Outputs copies the outputs at the last communication point to y [len(Info.Out)].
	Outputs(y []float64) error
}

// Experiment is what a subsystem gets to know before it is initialised.
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

// ParameterSetter is a subsystem with parameters that outputs of others may give: of
// such, that stay as they are once the initialisation is over (fmi2 19, 39; ssp 28).
type ParameterSetter interface {
	// SetParameter sets entry k of Info.Params to the only value of v. It is called
	// between EnterInit and ExitInit, where outputs that depend on it have not been used.
	SetParameter(k int, v Values) error
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

// RestoreAware is a subsystem that wants to know how far back it may be taken.
type RestoreAware interface {
	// NoRestoreBefore announces whether the following steps carry the promise that no
	// later RestoreState goes to a time before the start of the step (fmi2 50). Until the
	// first call they do. It is called before a step for which that changes.
	NoRestoreBefore(promised bool)
}

// Replay is how well a subsystem repeats a step after it went back to a saved
// state. Differences of outputs are relative to their magnitude over the test.
type Replay struct {
	Step float64 `json:"step"` // s; of the steps that were compared
	// FirstTry is the largest difference between a step taken without going
	// back first and its replay: solvers that restart where a state is set.
	FirstTry float64 `json:"first_try"`
	// Replays is the largest difference between replays. What is found by
	// differences of outputs, such as a Jacobian, must stand above it.
	Replays float64 `json:"replays"`
	// AtStart returns how the first steps from the start differ from those after going
	// back to it: "" = they do not.
	AtStart string `json:"at_start,omitempty"`
	// Unpromised is how steps without the promise of RestoreAware differ from the same
	// steps with it; "" = they do not. A run never takes such steps.
	Unpromised string `json:"unpromised,omitempty"`
	Known      bool   `json:"known"` // from an earlier run with the same subsystem
}

// RollbackVerifier is a StateSaver that can prove that it goes back: claims are
// often wrong (fmi2 59).
type RollbackVerifier interface {
	// VerifyRollback is called after the initialisation, with the inputs staged,
	// and leaves the subsystem as it was. H is the macro step. An error says that
	// nothing may rely on the rollback.
	VerifyRollback(ctx context.Context, e Experiment, H float64) (Replay, error)
}

// Leak is an output that depends directly on an input, within a step, although
// Info says that it does not.
type Leak struct {
	Out, In int     // among Info.Out and Info.In
	Slope   float64 // ∂y/∂u as it was seen
}

// FeedthroughVerifier is a StateSaver that can look for direct dependencies which
// its Info denies: claims are often wrong.
type FeedthroughVerifier interface {
	// VerifyFeedthrough is called after the initialisation and VerifyRollback,
	// with the inputs staged, and leaves the subsystem as it was. H is the macro
	// step, ins are the inputs that are driven, ascending. What cannot be tested
	// counts as true: an error is only the cause that ended ctx.
	VerifyFeedthrough(ctx context.Context, e Experiment, H float64, ins []int) ([]Leak, error)
}

// SlopeTest is how well directional derivatives agree with what a subsystem
// does.
type SlopeTest struct {
	// Difference is the largest one between a derivative and a difference of
	// outputs, relative to the larger of the two.
	Difference float64 `json:"difference"`
	Step       float64 `json:"step"`  // s; smallest step of which the responses were compared; 0 = only in the initialisation
	Known      bool    `json:"known"` // from an earlier run with the same subsystem
	// Untested says why nothing could be compared; "" = it was.
	Untested string `json:"untested"`
}

// DerivativeVerifier is a DirectionalDeriver that can compare its derivatives
// with what it does: claims are often wrong.
type DerivativeVerifier interface {
	// VerifyDerivatives is called after the initialisation, with the inputs
	// staged, and leaves the subsystem as it was. H is the macro step, 0 if the
	// run does not take the subsystem back: its rollback is not used then. An
	// error says that nothing may rely on the derivatives; it names output, input and
	// both values and wraps ErrCapability.
	VerifyDerivatives(ctx context.Context, e Experiment, H float64) (SlopeTest, error)
}

// Noter returns warnings after initialisation. It is called once; the sentences go to
// the warnings of the run.
type Noter interface {
	Notes() []string
}

// DirectionalDeriver gives dy = ∂y/∂u · du at the last communication point;
// du [len(Info.In)], dy [len(Info.Out)]. During the initialisation it gives that
// of the initialisation equations. Of internal outputs, which the subsystem need
// not be able to differentiate, an entry may be NaN.
type DirectionalDeriver interface {
	DirectionalDerivative(du, dy []float64) error
}

// StateInfo is one continuous state of a subsystem.
type StateInfo struct {
	Name       string
	Derivative string  // name of its derivative by time
	Nominal    float64 // typical magnitude; 0 counts as 1
}

// Linearizer gives more than a DirectionalDeriver: with x' = f(x, u, t) and
// y = g(x, u, t) the derivatives by its continuous states too (fmi2 60). Like
// that one it counts only with Caps.DirectionalDerivative.
type Linearizer interface {
	// States lists the continuous states in the order of x. It does not change
	// and belongs to the subsystem. Without any, the subsystem has none or does
	// not show them; Info.Stateless tells which.
	States() []StateInfo
	// Linearize returns dxdot = ∂f/∂x·dx + ∂f/∂u·du and dy = ∂g/∂x·dx + ∂g/∂u·du
	// at the last communication point, after the initialisation, with the inputs
	// that the subsystem holds there. dx [len(States)] and du [len(Info.In)] are
	// zero if nil; dxdot [len(States)] and dy [len(Info.Out)] are not wanted if
	// nil. The slices stay the caller's; staged inputs and outputs stay as they
	// are, and so does the course of the simulation, but for a solver that starts
	// anew after it. Many take differences along the seed: at a kink they are not
	// linear in it. Of internal outputs an entry may be NaN.
	// ErrCapability: the subsystem cannot; it may still do so without dx and dxdot.
	Linearize(dx, du, dxdot, dy []float64) error
}

// JacobianPattern is a Linearizer that knows which derivatives are zero.
type JacobianPattern interface {
	// Dependencies gives, for the derivative of each state and for each output, the
	// columns that it depends on, ascending: state k is k, input k is
	// len(States)+k. nil = on all. They belong to the subsystem.
	Dependencies() (rates, outputs [][]int)
}

// StateReader is a Linearizer that shows the values of its states.
type StateReader interface {
	// ReadStates puts the states and their derivatives by time at the last
	// communication point, after the initialisation, into x and xdot, each
	// [len(States)].
	ReadStates(x, xdot []float64) error
}

// Duplicator can give another subsystem like itself.
type Duplicator interface {
	// Duplicate returns another one at the start of the experiment, initialised with the
	// inputs as staged now, which takes input derivatives up to an order. The caller ends
	// it: Terminate and Close, where it has them. The error wraps ErrCapability if there
	// can be no other.
	Duplicate(ctx context.Context, order int) (Subsystem, error)
}

// Watcher reads the variables of Info.Watch at the last communication point.
type Watcher interface {
	Watched(v *Values) error
}

// GroupStepper is a subsystem that can be stepped together with others.
type GroupStepper interface {
	// GroupKey is equal for those that can be stepped together; nil = it is stepped by itself.
	GroupKey() any
	// NewGroup makes a group of members, all of which share this GroupKey, and what each of
	// them exchanges.
	NewGroup(members []Subsystem, exchange []Exchange) (Group, error)
}

// Exchange is what a member of a group gets and gives at each step. The slices are those of
// the run, and stay the same.
type Exchange struct {
	In     []float64   // as for SetInputs
	Slopes [][]float64 // as for SetInputDerivatives, by order from 1; nil = none are sent
	Out    []float64   // as for Outputs
}

// Group hands each member its inputs, steps it as Step would, one after the other, and
// takes its outputs, if read is set. It stops at the
// first that does not get to t+H, with an error. ran counts the members up to that one,
// and reached is its. Where members step at the same time, those after it have been
// stepped too; likewise if it ends the simulation at t+H, by ErrTerminated.
type Group interface {
	Step(ctx context.Context, t, H float64, read bool) (ran int, reached float64, err error)
}

// Beginner is a Group whose members step by themselves, such as in processes of their own.
// Begin hands them their inputs and sends them off; Step with the same t and H, which is due
// then in any case, waits for them.
type Beginner interface {
	Group
	Begin(t, H float64)
}

// StateGrouper is a GroupStepper with states that can be saved and restored together.
type StateGrouper interface {
	// NewStateGroup makes a group of members, all of which share their GroupKey; nil = they are
	// saved and restored one by one.
	NewStateGroup(members []Subsystem) (StateGroup, error)
}

// StateGroup does what StateSaver does for one member after the other. failed is the member
// with the error.
type StateGroup interface {
	Save(states []State) (failed int, err error) // puts them in place of those that may be used again
	Restore(states []State) (failed int, err error)
}

// Meter measures the time spent inside a subsystem.
type Meter interface {
	Seconds() float64
}

// Priced is a subsystem that knows the cost of its steps from earlier runs.
type Priced interface {
	// StepCost returns the time (s) of a step in runs with the macro step H.
	StepCost(H float64) (seconds float64, known bool)
	// KeepStepCost keeps it for later runs.
	KeepStepCost(H, seconds float64)
}

// Terminator is a subsystem that needs a call at the end (fmi2 62). It is called
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

// Unwrap returns the cause.
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
