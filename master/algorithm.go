package master

import "context"

// Verdict is the judgement of an algorithm on its attempt.
type Verdict uint8

// The verdicts.
const (
	Accept Verdict = iota
	Retry          // with another step size, after a rollback
)

// Trial is the outcome of one attempt at a macro step.
type Trial struct {
	Verdict   Verdict
	Est       float64 // error estimate in units of the tolerance, which decides on acceptance; NaN = none
	Indicator float64 // indicator of quality, used only by the step control; NaN = none
	Order     int     // extrapolation order in force
	Iters     int     // corrector iterations
	Jacobians int     // evaluations of the interface Jacobian
	// Next is the next step size in s: of the repetition after Retry (0 = half of this one), of the
	// next macro step after Accept (0 = the same).
	Next float64
	// Why is the reason, in a few words, for repeating the attempt.
	Why string
}

// Algorithm is a coupling algorithm: it takes one macro step at a time. It uses no clock, file, goroutine
// or log.
type Algorithm interface {
	// Check returns an error if the algorithm cannot run on this system. It is called before any
	// subsystem is.
	Check(*System) error
	// Init prepares at the start t0; all scratch is allocated here. x.W and
	// x.Past hold the coupling inputs at and before t0.
	Init(x *Exec, t0 float64) error
	// Attempt steps every subsystem from t to t+H and fills in the outcome. On entry, trial describes
	// an accepted step without estimates (Est and Indicator are NaN). An error ends the run, except
	// ErrDiscard if the step can be repeated.
	Attempt(ctx context.Context, x *Exec, t, H float64, trial *Trial) error
	// Accept confirms the attempt: t is the new communication point, and x.W is L y + b there.
	Accept(x *Exec, t float64)
	// Reject discards the attempt from t by H, because its verdict was Retry or a subsystem discarded
	// the step. The run restores the states of t.
	Reject(t, H float64)
}

// Planner is an algorithm that needs more than steps.
type Planner interface {
	// Plan is called after Check. H is the step size of the options, in s.
	Plan(s *System, H float64) Plan
}

// Plan is what an algorithm needs, and how it steps. Subsystems are given by their indices.
type Plan struct {
	// Rollback lists the subsystems whose states are restored: within an attempt (Exec.Restore), or for
	// repetitions. Attempts can be repeated only if it lists all.
	Rollback []int
	// Derivatives lists the subsystems whose directional derivatives are used (DirectionalDeriver, Linearizer).
	// They are verified before Init if the subsystem can do that; a wrong one ends the run.
	Derivatives      []int
	InputDerivatives int // highest order that is sent to subsystems that accept it
	// FirstStep is the size of the first step, in s, of an algorithm that chooses step sizes (Trial.Next); 0 =
	// all steps have the size of the options.
	FirstStep  float64
	Sequential bool // subsystems are stepped one after another, so that several workers gain nothing
	// Unbounded is why the work in a macro step may have no known bound, in a few words; "" = it has one.
	Unbounded  string
	Quantities []Port // that the algorithm measures (Measuring)
}

// PlanOf returns the plan of an algorithm; the zero Plan if it is no Planner.
func PlanOf(alg Algorithm, s *System, H float64) Plan {
	if p, ok := alg.(Planner); ok {
		return p.Plan(s, H)
	}
	return Plan{}
}

// Disturbed is an algorithm that uses the history of inputs.
type Disturbed interface {
	// Disturb is called between two attempts if a variable was set at this communication point. Inputs
	// jump here, and signals that depend on them directly jump in the next steps. Error estimates of
	// these steps must not affect the step size, and history before the jump is invalid. next is the
	// size of the next step if the algorithm chooses it; 0 = any.
	Disturb() (next float64)
}

// Waiver is an algorithm that can do without rollback or directional derivatives of a subsystem.
type Waiver interface {
	// DoesWithout is called before Init, with the reason, for a subsystem whose rollback or directional
	// derivatives have failed verification. true: the run goes on with a warning; false: it ends.
	DoesWithout(subsystem int, why error) bool
}

// Measuring is an algorithm with quantities of its own to record (Plan.Quantities).
type Measuring interface {
	// Measured puts their values at the last accepted communication point into dst [len(Quantities)].
	Measured(dst []float64)
}

// Reporter is an algorithm that reports on a run.
type Reporter interface {
	// Report is called after Init and at the end.
	Report() Report
}

// Report is the report of an algorithm on its run.
type Report struct {
	Monitored []string              // by which variables errors are estimated, and how
	Bonds     map[string]BondEnergy // by name; nil = energy is not monitored
	Models    map[string]ModelUse   // by subsystem; nil = there are none
	Loops     string                // how algebraic loops of a macro step are solved or broken
	Delivery  []Delivery            // of the inputs
	Warnings  []string
	Notes     []string
}

// AttemptRecorder records every attempt at a macro step, including rejected ones. failure is not nil if
// a subsystem discarded the step.
type AttemptRecorder interface {
	RecordAttempt(t, H float64, trial Trial, accepted bool, failure error) error
}

// Delivery is the way in which the approximation of one input reaches its subsystem.
type Delivery struct {
	Input string `json:"input"` // "subsystem.port"
	How   string `json:"how"`   // "derivatives", "substeps=10", "held", "late"
	Order int    `json:"order"` // of the polynomial
}

// Signals are inputs given from outside.
type Signals interface {
	// Inputs returns the entries of u that the signals drive.
	Inputs() []int
	// Real returns the value of entry i of u at time t; at a jump, the value after it.
	Real(i int, t float64) float64
	// Over returns the course of entry i of u over a step from t to t+H: its value at the start, its value at
	// the end, before a jump there, and its mean. A jump within the step acts at its end.
	Over(i int, t, H float64) (start, end, mean float64)
	// Discrete puts the values at time t of the driven discrete inputs of subsystem sub into v.
	Discrete(sub int, t float64, v *Values)
}
