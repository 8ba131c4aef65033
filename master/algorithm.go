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
	// Attempt steps every subsystem from t to t+H.
	Attempt(ctx context.Context, x *Exec, t, H float64) (Trial, error)
	// Accept tells that the attempt stands: t is the new communication point,
	// and x.W holds L y + b there.
	Accept(x *Exec, t float64)
	// Reject tells that the states are back at t.
	Reject(t, H float64)
}

// InputDerivativeUser is an algorithm that sends input derivatives, where a
// subsystem takes them, up to an order.
type InputDerivativeUser interface{ InputDerivativeOrder() int }

// Delivery tells how the approximation of one input reaches its subsystem.
type Delivery struct {
	Input string `json:"input"` // "subsystem.port"
	How   string `json:"how"`   // "derivatives", "substeps=10", "held", "late"
	Order int    `json:"order"` // of the polynomial
}

// DeliveryReporter is an algorithm that tells its deliveries, once it is initialised.
type DeliveryReporter interface{ Deliveries() []Delivery }

// Signals are inputs given from outside.
type Signals interface {
	// Inputs tells which entries of u the signals drive.
	Inputs() []int
	// Real gives the value of entry i of u at time t.
	Real(i int, t float64) float64
	// Discrete puts the values at time t of the discrete inputs of subsystem
	// sub that the signals drive into v.
	Discrete(sub int, t float64, v *Values)
}
