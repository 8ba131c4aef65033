package master

// Status is the outcome of a run.
type Status string

// The statuses. A run that was never finished is incomplete.
const (
	Complete   Status = "complete"
	Terminated Status = "terminated" // a subsystem ended the simulation, which is a regular end
	Incomplete Status = "incomplete"
	Failed     Status = "failed"
)

// Result is what a run gives, also when it fails.
type Result struct {
	Status   Status
	Reason   string  // why it is not complete, or how a hook or a subsystem ended it
	Time     float64 // of the last accepted communication point
	Accepted int     // macro steps
	Rejected int
	// By subsystem: calls of Step (substeps counted), and time inside.
	SubsystemSteps    []int
	SubsystemSeconds  []float64
	SubsystemSaves    []int
	SubsystemRestores []int
	Workers           int                   // threads that called the subsystems
	WallSeconds       float64               // of the stepping; in real time with what the run waited for the clock
	MasterSeconds     float64               // of these, without that wait and the time inside the subsystems of the busiest worker
	Orders            []int                 // accepted macro steps by extrapolation order
	Iterations        int                   // of correctors, over all attempts
	Jacobians         int                   // evaluations of the interface Jacobian
	Monitored         []string              // by which variables errors were estimated
	Bonds             map[string]BondEnergy // by name; nil = energy was not followed
	Models            map[string]ModelUse   // by subsystem; nil = the algorithm has none
	Warnings          []string
	Notes             []string             // about the workers; harmless
	Restarts          map[string][]Restart // by subsystem: those that were lost and began anew; nil = none
	// Replay holds, by the name of the subsystem, what the test of the rollback
	// gave; it has entries only if the run relies on rollback.
	Replay map[string]Replay
	// Slopes holds, by the name of the subsystem, what the test of the directional
	// derivatives gave; it has entries only if the algorithm relies on them.
	Slopes map[string]SlopeTest
	Loops  []Loop
	// Manipulated names the variables that were set or overridden while the run went
	// on (Variable), in the order of the first time.
	Manipulated []string
	Realtime    *Timing // nil = it was not in real time
	// Unstable names what has grown as values of an unstable system do; "" = nothing has.
	Unstable string
	// Growing names an output that grows steadily without being far beyond its bounds, as
	// where the coupling is unstable, or the system itself; nil = none does. Package analyze
	// finds out which.
	Growing *Growth
	// Expectations are those of the hooks (Expecter).
	Expectations Expectations
}

// Loop is an algebraic loop that the run broke by extrapolated inputs, or that
// the initialisation solved.
type Loop struct {
	Initialization bool     `json:"initialization"`
	Variables      []string `json:"variables"` // along the loop, "component.variable"
	Assumed        bool     `json:"assumed"`   // closed only by dependencies that are not declared
	Treatment      string   `json:"treatment"` // "extrapolated", "solved: 3 Newton iterations, residual 1e-14" …
}

// BondEnergy measures how well a power bond keeps energy over a run: totals of the
// power that the coupling lets appear. Means are over time.
type BondEnergy struct {
	ResidualEnergy       float64 `json:"residual_energy"`         // J
	HeldResidualEnergy   float64 `json:"held_residual_energy"`    // J; as if all inputs had been held over their steps
	MeanAbsResidualPower float64 `json:"mean_abs_residual_power"` // W
	MeanPower            float64 `json:"mean_power"`              // W, from the giver of the effort to the giver of the flow
	PeakResidualPower    float64 `json:"peak_residual_power"`     // W

	// Of an energy correction: the share μ that it took for spurious; whether it "helps", "harms", or "unknown: " and why
	// that cannot be told; what it took out; what the coupling added where that is
	// known. "" and nil: nothing was to be corrected.
	Mu              *float64 `json:"mu,omitempty"`
	Correction      string   `json:"correction,omitempty"`
	CorrectedEnergy *float64 `json:"corrected_energy,omitempty"` // J
	AddedEnergy     *float64 `json:"added_energy,omitempty"`     // J
}

// ModelUse records how an algorithm used the model of a subsystem.
type ModelUse struct {
	Source      string `json:"source"`      // "directional", "rollback", "identify", "none"
	Reason      string `json:"reason"`      // why there is none, or was none at times
	Evaluations int    `json:"evaluations"` // how often it was made
	Uncorrected int    `json:"uncorrected"` // macro steps without it
	// PredictionError is the largest relative error of a prediction of a step by
	// the model as it was kept; nil = none was made.
	PredictionError *float64 `json:"prediction_error,omitempty"`
	// Order is that of an identified model: the macro steps that it looks back by least
	// squares, its states by subspaces, where the singular values (of scaled
	// outputs) are those that tell it.
	Order          *int      `json:"order,omitempty"`
	SingularValues []float64 `json:"singular_values,omitempty"`
}
