package master

import "context"

// Verdict is what an algorithm thinks of its attempt.
type Verdict uint8

// The verdicts.
const (
	Accept Verdict = iota
	Retry          // with another step size, after a rollback
)

// Trial is the outcome of one attempt at a macro step.
type Trial struct {
	Verdict   Verdict
	Est       float64 // error estimate in units of the tolerance; NaN = none. It judges.
	Indicator float64 // indicator of quality that only informs the step control; NaN = none
	Order     int     // extrapolation order in force
	Iters     int     // corrector iterations
	Jacobians int     // evaluations of the interface Jacobian
	// Next is the step size in s that is wanted next: for the repetition after
	// Retry, for the next macro step after Accept; 0 = half of this one, and
	// the same again.
	Next float64
	// Why is the reason, in a few words, for repeating the attempt.
	Why string
}

// Algorithm is a coupling algorithm: what happens within one macro step. It has
// no clock, file, goroutine or log of its own.
type Algorithm interface {
	// Check says what stands in the way of running on this system, before any
	// subsystem is touched.
	Check(*System) error
	// Init prepares at the start t0; all scratch is allocated here. x.W and
	// x.Past hold the coupling inputs at and before t0.
	Init(x *Exec, t0 float64) error
	// Attempt steps every subsystem from t to t+H, and fills in the outcome, which is that of
	// an accepted step without estimates before (Est and Indicator NaN). Its error ends the
	// run, but for ErrDiscard where the step can be repeated.
	Attempt(ctx context.Context, x *Exec, t, H float64, trial *Trial) error
	// Accept confirms the attempt: t is the new communication point,
	// and x.W holds L y + b there.
	Accept(x *Exec, t float64)
	// Reject discards the attempt from t by H, because its verdict was Retry or a
	// subsystem discarded the step. The states go back to t.
	Reject(t, H float64)
}

// RollbackUser is an algorithm that takes subsystems back: within an attempt
// (Exec.Restore), or by asking for repetitions.
type RollbackUser interface {
	// NeedsRollback returns the subsystems that are taken back. It is asked after
	// Check. Only if it gives all of them may an attempt be repeated.
	NeedsRollback(*System) []int
}

// Sequential is an algorithm that may step one subsystem after another only: it gains
// nothing from several workers.
type Sequential interface{ Sequential() bool }

// Disturbed is an algorithm that learns from the past.
type Disturbed interface {
	// Disturb is called between two attempts when something was set at this communication
	// point. Inputs jump here, and whatever depends directly on them follows in the next steps.
	// Errors of these steps are no measure of the step size, and history before the jump is
	// invalid. next is the size wanted for the next step by an algorithm that chooses it; 0 = any.
	Disturb() (next float64)
}

// DerivativeUser is an algorithm that relies on directional derivatives
// (DirectionalDeriver, Linearizer). They are verified before its Init, where the
// subsystem can do that (DerivativeVerifier); a wrong one ends the run.
type DerivativeUser interface {
	// NeedsDerivatives returns the subsystems whose derivatives are used. It is
	// asked after Check.
	NeedsDerivatives(*System) []int
}

// Waiver is an algorithm that may do without what it asked for.
type Waiver interface {
	// DoesWithout is called before Init for a subsystem that has not proved its rollback or its
	// directional derivatives, with the reason. true: the run goes on with a warning; false: it ends.
	DoesWithout(subsystem int, why error) bool
}

// StepSizer is an algorithm that chooses the sizes of the macro steps, by
// Trial.Next.
type StepSizer interface {
	// StepSizes returns the first size in s, from the one of the options; 0 = all
	// steps have that of the options.
	StepSizes(H float64) (first float64)
}

// LoopSolver is an algorithm that does more with the algebraic loops of a macro
// step than to break them by extrapolated inputs.
type LoopSolver interface{ LoopTreatment() string }

// Monitoring is an algorithm that estimates errors.
type Monitoring interface {
	// Monitored returns the variables by which errors are estimated, and how, once it is initialised.
	Monitored() []string
}

// Measuring is an algorithm with quantities of its own to record.
type Measuring interface {
	// Quantities names them; it is asked after Check.
	Quantities() []Port
	// Measured puts their values at the last accepted communication point into
	// dst [len(Quantities)].
	Measured(dst []float64)
}

// BondReporter is an algorithm that follows the energy at power bonds.
type BondReporter interface{ BondEnergies() map[string]BondEnergy }

// ModelReporter is an algorithm with models of subsystems.
type ModelReporter interface{ Models() map[string]ModelUse }

// Reviewer is an algorithm that has something to say at the end of a run; the
// sentences go to its warnings.
type Reviewer interface{ Review() []string }

// AttemptRecorder sees every attempt at a macro step, also those that do not
// stand. failure is not nil if a subsystem discarded the step.
type AttemptRecorder interface {
	RecordAttempt(t, H float64, trial Trial, accepted bool, failure error) error
}

// InputDerivativeUser is an algorithm that sends input derivatives, where a
// subsystem takes them, up to an order.
type InputDerivativeUser interface{ InputDerivativeOrder() int }

// Delivery is the way in which the approximation of one input reaches its subsystem.
type Delivery struct {
	Input string `json:"input"` // "subsystem.port"
	How   string `json:"how"`   // "derivatives", "substeps=10", "held", "late"
	Order int    `json:"order"` // of the polynomial
}

// DeliveryReporter is an algorithm that reports its deliveries, once it is initialised.
type DeliveryReporter interface{ Deliveries() []Delivery }

// Signals are inputs given from outside.
type Signals interface {
	// Inputs returns the entries of u that the signals drive.
	Inputs() []int
	// Real returns the value of entry i of u at time t.
	Real(i int, t float64) float64
	// Discrete puts the values at time t of the discrete inputs of subsystem
	// sub that the signals drive into v.
	Discrete(sub int, t float64, v *Values)
}
