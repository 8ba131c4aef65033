package fmi

import "fmt"

// Status is what an FMI function returns (checklist fmi2 51–55).
type Status int32

// The statuses. The one that the standard calls fmi2Error is StatusErr,
// because StatusError is the Go error that carries a status.
const (
	StatusOK Status = iota
	StatusWarning
	StatusDiscard
	StatusErr
	StatusFatal
	StatusPending

	// StatusNotRun is no status of the standard: a member of a Group that was
	// not called because an earlier one stopped the group.
	StatusNotRun Status = -1
)

// String returns the name of the standard without its prefix fmi2.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "OK"
	case StatusWarning:
		return "Warning"
	case StatusDiscard:
		return "Discard"
	case StatusErr:
		return "Error"
	case StatusFatal:
		return "Fatal"
	case StatusPending:
		return "Pending"
	case StatusNotRun:
		return "not run"
	}
	return fmt.Sprintf("status(%d)", int32(s))
}

// StatusKind names what GetStatus and its relatives ask for.
type StatusKind int32

// The kinds, with the function that answers each.
const (
	DoStepStatus       StatusKind = iota // GetStatus: the step that was Pending
	PendingStatus                        // GetStringStatus: why it still is
	LastSuccessfulTime                   // GetRealStatus: where a discarded step got to
	Terminated                           // GetBooleanStatus: whether the FMU wants to end
)

// String returns the name of the standard without its prefix fmi2.
func (k StatusKind) String() string {
	switch k {
	case DoStepStatus:
		return "DoStepStatus"
	case PendingStatus:
		return "PendingStatus"
	case LastSuccessfulTime:
		return "LastSuccessfulTime"
	case Terminated:
		return "Terminated"
	}
	return fmt.Sprintf("status kind(%d)", int32(k))
}
