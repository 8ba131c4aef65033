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
	// Discrete marks a Real that changes only at communication points (variability discrete or lower). It
	// is held, never extrapolated.
	Discrete bool
	// Low and High are the range of an Integer; both 0 = that of int64.
	Low, High int64
	// Single marks a Real of 32 bits.
	Single bool
	// Binary marks a String that holds bytes. Files have two hexadecimal digits for each.
	Binary bool
	// Nominal is the typical magnitude of a Real; 0 counts as 1.
	Nominal float64
	// Level is the level of a Real output between the inputs and the positions.
	Level Level
	// Internal marks a Real at the end of Info.Out that is no output but is read with them. It cannot be
	// connected, has no value until the initialisation is over, and is recorded only if Info.Watch lists
	// it.
	Internal bool
}

// Values describes the values that Fits accepts: "a whole number from -128 to 127".
func (p Port) Values() string {
	switch {
	case p.Kind == Integer && p.Low == p.High:
		p.Low, p.High = math.MinInt64, math.MaxInt64
		fallthrough
	case p.Kind == Integer:
		return fmt.Sprintf("a whole number from %d to %d", p.Low, p.High)
	case p.Kind == Boolean:
		return "true or false"
	case p.Kind == String && !p.Binary:
		return "a text"
	case p.Kind == String:
		return "a list of bytes, each of two hexadecimal digits"
	case p.Single:
		return "a finite number of 32 bits"
	}
	return "a finite number"
}

// Fits reports whether a number is in the range of the type.
func (p Port) Fits(v Scalar) bool {
	switch p.Kind {
	case Real:
		return v.Real-v.Real == 0 && !(p.Single && math.IsInf(float64(float32(v.Real)), 0))
	case Integer:
		return p.Low == p.High || p.Low <= v.Integer && v.Integer <= p.High
	}
	return true
}

// Magnitude returns |Nominal|, or 1 if Nominal is 0.
func (p Port) Magnitude() float64 {
	if p.Nominal == 0 {
		return 1
	}
	return math.Abs(p.Nominal)
}

// Level is the number of integrations between the inputs and an output, in the sense of meyer (2): inputs
// drive accelerations, which integrate to velocities, and these to positions. Extrapolating the inputs
// with order k causes a local error of order H^(k+2) in a velocity and H^(k+3) in a position.
//
// If a description declares derivatives, like that of an FMU (fmi2 22), the level follows from them. Let d
// be a derivative of x, each by any of its names.
//   - If d is itself differentiated, x is one integration above d.
//   - If not, and d is declared to depend on no input, it depends on states only and counts as one
//     integration: d is a Velocity, x a Position.
//   - Otherwise the inputs affect the rate of x directly, or may do so if nothing is declared: x is a
//     Velocity, d has no level.
//
// Of several derivatives of one variable, the one with the most integrations counts for all of them. One
// integration is a Velocity, more are a Position. A variable that neither has nor is a derivative has no
// level.
type Level uint8

// The levels.
const (
	NoLevel Level = iota
	Position
	Velocity
)

// String returns the name of the level.
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
	Integer []int64
	Boolean []bool
	String  []string
}

// Caps are the declared capabilities of a subsystem. A capability also requires the methods (see As).
type Caps struct {
	VariableStep          bool // the macro step may change from step to step
	InputDerivatives      bool // interpolates its inputs (InputDerivativeSetter)
	OutputDerivatives     int  // highest order of output derivatives; 0 = none
	SaveState             bool // rollback (StateSaver)
	SerializeState        bool
	Restarts              bool // restarts when it is lost (Restarter); requires SaveState and SerializeState
	UntriedRestarts       bool // with Restarts: nobody has asked for them, so they are not tested before the run
	DirectionalDerivative bool // DirectionalDeriver, and Linearizer if it has it
}

// Feedthrough lists the inputs on which each output depends directly. Outputs are
// numbered over Info.Out and then Info.DiscreteOut, inputs over Info.In and
// then Info.DiscreteIn. The zero value is no direct dependency.
type Feedthrough struct {
	On [][]int // by output: the inputs that it depends on, ascending; nil = none
	// Assumed marks the outputs without declared dependencies, for which On lists all inputs (fmi2 27);
	// nil = none.
	Assumed []bool
}

// denies reports whether output o is declared not to depend on input k.
func (f *Feedthrough) denies(o, k int) bool {
	if o >= len(f.On) {
		return f.On == nil
	}
	return (f.Assumed == nil || !f.Assumed[o]) && !slices.Contains(f.On[o], k)
}

// Info describes a subsystem. It does not change once the subsystem is part of a system.
type Info struct {
	Name        string // hierarchical, unique in the system
	Source      string // for messages: the file of an FMU; "" = none
	In, Out     []Port // Real: the vectors u and y; internal ones at the end of Out
	DiscreteIn  []Port // Integer, Boolean and String, and Reals that take an Integer
	DiscreteOut []Port
	Watch       []Port // further variables, only recorded
	Params      []Port // parameters that outputs of other subsystems may set (ParameterSetter)
	Step, Init  Feedthrough
	Stateless   bool // outputs are a function of the inputs at the same time
	Caps        Caps
	// StartIn [len(In)] and StartDiscreteIn (over DiscreteIn) hold the initial values of the inputs; nil =
	// zero values.
	StartIn         []float64
	StartDiscreteIn *Values
}

// String returns the name for messages: "wheel (quarter_wheel.fmu)".
func (i *Info) String() string {
	if i.Source == "" {
		return i.Name
	}
	return i.Name + " (" + i.Source + ")"
}

// Subsystem is anything that can be stepped: an FMU, a Go function, hardware. It has one caller at a time.
//
// Optional capabilities are the small interfaces below, looked up by As.
type Subsystem interface {
	Info() *Info
	// SetInputs stages u [len(Info.In)] for the next Step.
	SetInputs(u []float64) error
	// Step advances from t by H with the staged inputs and returns the time reached: t+H without an
	// error. ErrDiscard: it stopped at reached < t+H. ErrTerminated: it ends the simulation at reached,
	// within the step, and its outputs are those of that time; NaN = the time is unknown.
	Step(ctx context.Context, t, H float64) (reached float64, err error)
	// Outputs copies the outputs at the last communication point to y [len(Info.Out)]. Those that feed an input
	// must be finite; others are recorded as they are.
	Outputs(y []float64) error
}

// Experiment holds the settings that a subsystem gets before its initialisation.
type Experiment struct {
	Start     float64
	Stop      float64
	StopKnown bool // no step goes beyond Stop (fmi2 40)
	Tolerance float64
	HasTol    bool
	// InputDerivatives is the highest order of input derivatives that the algorithm wants to send; 0 =
	// none.
	InputDerivatives int
	// Reverts: the run may restore earlier states of the subsystem, so that no step carries the promise that
	// it does not (fmi2 50).
	Reverts bool
}

// Initializer is a subsystem with an initialisation mode (fmi2 39–43).
type Initializer interface {
	// EnterInit creates the subsystem, sets parameters and start values, and
	// enters initialisation mode.
	EnterInit(ctx context.Context, e Experiment) error
	// EvalInit applies the staged inputs; Outputs and Discrete then return the outputs of the
	// initialisation equations.
	EvalInit() error
	// ExitInit leaves initialisation mode; Outputs and Discrete then return the outputs at the start.
	ExitInit() error
}

// ParameterSetter is a subsystem with parameters that outputs of other subsystems may set during the
// initialisation (fmi2 19, 39; ssp 28).
type ParameterSetter interface {
	// SetParameter sets entry k of Info.Params to the only value of v. It is called between EnterInit and
	// ExitInit, before any output that depends on it is used.
	SetParameter(k int, v Values) error
}

// DiscreteIO is a subsystem with Integer, Boolean or String signals.
type DiscreteIO interface {
	SetDiscrete(v *Values) error // stages, like SetInputs
	Discrete(v *Values) error    // copies, like Outputs
}

// InputDerivativeSetter is a subsystem that interpolates its inputs.
type InputDerivativeSetter interface {
	// PrepareInputDerivatives announces, before the first step, the highest order that will be set.
	// ErrCapability: the subsystem does not support it.
	PrepareInputDerivatives(order int) error
	// SetInputDerivatives stages the derivatives of one order (1, 2, …) of all inputs at the start of the
	// next step, du [len(Info.In)].
	SetInputDerivatives(order int, du []float64) error
}

// State is a saved state, opaque to all but its subsystem.
type State any

// StateSaver is a subsystem that can save and restore its state (rollback).
type StateSaver interface {
	SaveState(reuse State) (State, error)
	RestoreState(State) error
	FreeState(State) error
}

// Replay is how exactly a subsystem repeats a step after restoring a state. Differences of outputs are
// relative to their magnitude over the test.
type Replay struct {
	Step float64 `json:"step"` // s; of the steps that were compared
	// FirstTry is the largest difference between a step taken without a restore and its repetition after
	// one. It is not zero if solvers restart when a state is set.
	FirstTry float64 `json:"first_try"`
	// Replays is the largest difference between repetitions. Differences of outputs that are used to
	// compute something, such as a Jacobian, must be larger.
	Replays float64 `json:"replays"`
	// AtStart describes how the first steps from the start differ from those after restoring the start;
	// "" = they do not.
	AtStart string `json:"at_start,omitempty"`
	// Unpromised describes how steps with Experiment.Reverts differ from the same steps without it; "" = they
	// do not. If they do, nothing else is measured, and a run that would restore states is refused.
	Unpromised string `json:"unpromised,omitempty"`
	Known      bool   `json:"known"` // from an earlier run with the same subsystem
	// Untested is the reason why something was not tested, "" if all was.
	Untested string `json:"untested,omitempty"`
}

// RollbackVerifier is a StateSaver that can verify its rollback, because declarations are often wrong
// (fmi2 59).
type RollbackVerifier interface {
	// VerifyRollback is called after the initialisation, with the inputs staged, and leaves the subsystem
	// as it was. H is the macro step. After an error nothing may rely on the rollback.
	VerifyRollback(ctx context.Context, e Experiment, H float64) (Replay, error)
}

// Leak is an output that depends directly on an input within a step, although Info denies it.
type Leak struct {
	Out, In int     // among Info.Out and Info.In
	Slope   float64 // measured ∂y/∂u
}

// FeedthroughVerifier is a StateSaver that can find direct dependencies that its Info denies.
type FeedthroughVerifier interface {
	// VerifyFeedthrough is called after the initialisation and VerifyRollback, with the inputs staged,
	// and leaves the subsystem as it was. H is the macro step; ins are the driven inputs, ascending.
	// Declarations that cannot be tested count as true. An error is only returned if ctx ends.
	VerifyFeedthrough(ctx context.Context, e Experiment, H float64, ins []int) ([]Leak, error)
}

// SlopeTest is how well directional derivatives agree with differences of outputs.
type SlopeTest struct {
	// Difference is the largest deviation of a derivative from a difference of outputs, relative to the
	// larger of the two.
	Difference float64 `json:"difference"`
	Step       float64 `json:"step"`  // s; smallest step whose responses were compared; 0 = compared only in the initialisation
	Known      bool    `json:"known"` // from an earlier run with the same subsystem
	// Untested is why nothing could be compared; "" = something was.
	Untested string `json:"untested"`
}

// DerivativeVerifier is a DirectionalDeriver that can compare its derivatives with differences of outputs.
type DerivativeVerifier interface {
	// VerifyDerivatives is called after the initialisation, with the inputs staged, and leaves the
	// subsystem as it was. H is the macro step; 0: the run does not use the rollback of the subsystem,
	// nor may the test. After an error nothing may rely on the derivatives; it names output, input and
	// both values, and wraps ErrCapability.
	VerifyDerivatives(ctx context.Context, e Experiment, H float64) (SlopeTest, error)
}

// Noter returns warnings after initialisation. It is called once.
type Noter interface {
	Notes() []string
}

// DirectionalDeriver computes dy = ∂y/∂u · du at the last communication point; du [len(Info.In)],
// dy [len(Info.Out)], after the initialisation. Entries of internal outputs may be NaN.
type DirectionalDeriver interface {
	DirectionalDerivative(du, dy []float64) error
}

// StateInfo is one continuous state of a subsystem.
type StateInfo struct {
	Name       string
	Derivative string  // name of its derivative by time
	Nominal    float64 // typical magnitude; 0 counts as 1
}

// Linearizer also computes derivatives by continuous states, with x' = f(x, u, t) and y = g(x, u, t)
// (fmi2 60). Like DirectionalDeriver it is used only with Caps.DirectionalDerivative.
type Linearizer interface {
	// States lists the continuous states in the order of x. The list does not change and belongs to the
	// subsystem. If it is empty, the subsystem has no states (Info.Stateless) or hides them.
	States() []StateInfo
	// Linearize computes dxdot = ∂f/∂x·dx + ∂f/∂u·du and dy = ∂g/∂x·dx + ∂g/∂u·du at the last
	// communication point, after the initialisation, with the inputs of the subsystem there. dx
	// [len(States)] and du [len(Info.In)] are zero if nil; dxdot [len(States)] and dy [len(Info.Out)] are
	// not computed if nil. The slices belong to the caller. Staged inputs, outputs and the further
	// simulation do not change, except that a solver may restart. Many subsystems compute differences
	// along the seed, which are not linear in it at a kink. Entries of internal outputs may be NaN.
	// ErrCapability: the subsystem cannot; it may still be able to without dx and dxdot.
	Linearize(dx, du, dxdot, dy []float64) error
}

// InputSender sends the staged inputs at the last communication point, and derivatives are then those with them
// (fmi2 60). Without it, derivatives use staged inputs at once.
type InputSender interface {
	SendInputs() error
}

// JacobianPattern is a Linearizer that knows which derivatives are zero.
type JacobianPattern interface {
	// Dependencies returns, for the derivative of each state and for each output, the columns that it
	// depends on, ascending: state k is column k, input k is column len(States)+k; nil = all. The slices
	// belong to the subsystem.
	Dependencies() (rates, outputs [][]int)
}

// StateReader is a Linearizer with readable states.
type StateReader interface {
	// ReadStates puts the states and their time derivatives at the last communication point, after the
	// initialisation, into x and xdot, each [len(States)].
	ReadStates(x, xdot []float64) error
}

// Duplicator can make another subsystem like itself.
type Duplicator interface {
	// Duplicate returns another one at the start of the experiment, initialised with the inputs staged now,
	// that accepts input derivatives up to an order. The caller ends it by Terminate and Close, if it has
	// these methods. The error wraps ErrCapability if no other can be made.
	Duplicate(ctx context.Context, order int) (Subsystem, error)
}

// Watcher reads the variables of Info.Watch at the last communication point.
type Watcher interface {
	Watched(v *Values) error
}

// Batcher is a subsystem that can be called together with others.
type Batcher interface {
	// BatchKey is equal for subsystems that can be in one batch; nil = none, not even alone.
	BatchKey() any
	// NewBatch makes a batch of members, all of which have this key, with their data.
	NewBatch(members []Subsystem, exchange []Exchange) (Batch, error)
}

// Exchange holds the data that a member of a batch exchanges at each step. The slices belong to the run
// and do not change.
type Exchange struct {
	In     []float64   // as for SetInputs
	Slopes [][]float64 // as for SetInputDerivatives, by order from 1; nil = none are sent
	Out    []float64   // as for Outputs
}

// Batch calls its members together.
type Batch interface {
	// Begin passes the members their inputs, starts a step and reports that it has, if they step in the background, in
	// processes of their own, for example. Step with the same t and h, and read set, follows.
	Begin(t, h float64) bool
	// Step passes each member its inputs, steps it like Subsystem.Step, one after the other, and reads its outputs if
	// read is set. It stops with an error at the first member that does not reach t+h: ran counts the members
	// up to that one, and reached is its time. The members after it are stepped too if they step in the background,
	// or if it ends the simulation at t+h by ErrTerminated.
	Step(ctx context.Context, t, h float64, read bool) (ran int, reached float64, err error)
	// Save and Restore are SaveState, which replaces states, and RestoreState of the members, one after the other.
	// failed is the index of the member with the error. They are called only if all members have rollback.
	Save(states []State) (failed int, err error)
	Restore(states []State) (failed int, err error)
}

// Priced is a subsystem that measures, and stores the cost of its steps for later runs.
type Priced interface {
	// StepCost returns the mean time (s) of a step in a run with the macro step H.
	StepCost(H float64) (seconds float64, known bool)
	// Seconds returns the time spent inside the subsystem in this run.
	Seconds() float64
	// KeepStepCost stores the mean time of a step in this run.
	KeepStepCost(H, seconds float64)
}

// Terminator is a subsystem that needs a call at the end (fmi2 62). Terminate is called once, before Close,
// however the run ended, even if the subsystem was not initialised or has failed.
type Terminator interface {
	Terminate() error
}

// Errors of a step.
var (
	ErrDiscard    = errors.New("step discarded")
	ErrTerminated = errors.New("subsystem asked to end the simulation")
	ErrCapability = errors.New("capability missing")
	// ErrInterrupted is the cause of a context that is cancelled because the user interrupts the run.
	ErrInterrupted = errors.New("interrupted")
)

// StepError is a failed step of a subsystem.
type StepError struct {
	Subsystem  string
	Source     string // Info.Source of it
	T, H       float64
	Reached    float64
	Err        error
	Initialize bool // it failed in the initialisation at T
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

// As returns an interface of s, or of a subsystem that it decorates (Unwrap() Subsystem).
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
