package master

// System is the frozen graph of coupled subsystems: u = L y + b over all Real
// inputs and outputs, and copies of the discrete signals.
type System struct {
	Subsystems []Subsystem
	Infos      []*Info
	InAt       []int // first index in u of each subsystem; len(Subsystems)+1 entries
	OutAt      []int // first index in y of each subsystem; len(Subsystems)+1 entries
}
