package master

// Status is the outcome of a run.
type Status string

// The statuses of a run.
const (
	Complete   Status = "complete"
	Terminated Status = "terminated" // a subsystem ended the simulation, which is a regular end
	Incomplete Status = "incomplete"
	Failed     Status = "failed"
)

// Result is the result of a run, also of one that failed.
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
	WallSeconds       float64               // of the stepping, including waiting in real time
	MasterSeconds     float64               // WallSeconds without waiting and without the time inside the subsystems of the busiest worker
	RecordSeconds     float64               // of MasterSeconds, in recorders, by a sample of the points
	StartSeconds      float64               // before the stepping: initialisation and tests of the subsystems
	Orders            []int                 // accepted macro steps by extrapolation order
	Iterations        int                   // of correctors, over all attempts
	Jacobians         int                   // evaluations of the interface Jacobian
	Monitored         []string              // how errors were estimated (Monitoring)
	Bonds             map[string]BondEnergy // by name; nil = energy was not monitored
	Models            map[string]ModelUse   // by subsystem; nil = the algorithm has none
	Warnings          []string
	Notes             []string             // harmless
	Restarts          map[string][]Restart // by subsystem; nil = none
	// Replay holds the results of the rollback tests by subsystem, if the run relies on rollback.
	Replay map[string]Replay
	// Slopes holds the results of the tests of directional derivatives by subsystem, if the algorithm
	// relies on them.
	Slopes map[string]SlopeTest
	Loops  []Loop
	// Manipulated names the variables that were set or overridden during the run (Variable), in the order
	// of their first change.
	Manipulated []string
	Realtime    *Timing // nil = the run was not in real time
	// Growing describes an output that grows because the coupling or the system itself is unstable; nil = none does.
	Growing *Growth
	// OwnSteps holds the steps of subsystems that compute at steps of their own which are longer than the macro steps, in s; nil = none does.
	OwnSteps map[string]float64
	// Diverged: the run failed as an unstable coupling does (DivergedError).
	Diverged bool
	// Expectations counts those of the hooks (Expecter).
	Expectations Expectations
}

// Loop is an algebraic loop of the macro steps or of the initialisation.
type Loop struct {
	Initialization bool     `json:"initialization"`
	Variables      []string `json:"variables"` // along the loop, "component.variable"
	Assumed        bool     `json:"assumed"`   // closed only by assumed dependencies
	Treatment      string   `json:"treatment"` // "extrapolated", "solved: 3 Newton iterations, residual 1e-14" …
}

// BondEnergy measures how well the coupling conserves energy at a power bond over a run. Means are over
// time.
type BondEnergy struct {
	ResidualEnergy       float64 `json:"residual_energy"`         // J
	HeldResidualEnergy   float64 `json:"held_residual_energy"`    // J, if all inputs had been held over their steps
	MeanAbsResidualPower float64 `json:"mean_abs_residual_power"` // W
	MeanPower            float64 `json:"mean_power"`              // W, from the source of the effort to the source of the flow
	MeanAbsPower         float64 `json:"mean_abs_power"`          // W
	PeakResidualPower    float64 `json:"peak_residual_power"`     // W

	// Of an energy correction: the share μ that it regarded as spurious; its effect: "helps", "harms", or
	// "unknown: " with the reason; the energy that it removed; the energy that the coupling added, if
	// known. "" and nil: there was no correction.
	Mu              *float64 `json:"mu,omitempty"`
	Correction      string   `json:"correction,omitempty"`
	CorrectedEnergy *float64 `json:"corrected_energy,omitempty"` // J
	AddedEnergy     *float64 `json:"added_energy,omitempty"`     // J
}

// ModelUse records how an algorithm used its model of a subsystem.
type ModelUse struct {
	Source      string `json:"source"`      // "directional", "identify", "none"
	Reason      string `json:"reason"`      // why there was no model, or none in some steps
	Evaluations int    `json:"evaluations"` // number of times that it was computed
	Uncorrected int    `json:"uncorrected"` // macro steps without a model
	// Mispredicted counts the macro steps that stayed uncorrected because an identified model missed them by more
	// than it would have corrected.
	Mispredicted int `json:"mispredicted"`
	// PredictionError is the largest relative error of a prediction by a model from an earlier step; nil =
	// there was none.
	PredictionError *float64 `json:"prediction_error,omitempty"`
	// Order is the order of an identified model: the number of past macro steps that it uses (least
	// squares), or its number of states (subspaces), as determined by the singular values of scaled
	// outputs.
	Order          *int      `json:"order,omitempty"`
	SingularValues []float64 `json:"singular_values,omitempty"`
}
