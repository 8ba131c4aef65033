package fmi

import "fmt"

// Status is the result of an FMI function (checklist fmi2 51–55).
type Status int32

// The statuses. StatusErr is fmi2Error; StatusError is the Go error for a status.
const (
	StatusOK Status = iota
	StatusWarning
	StatusDiscard
	StatusErr
	StatusFatal
	StatusPending
)

// String returns the name of the standard without its prefix fmi2.
func (s Status) String() string {
	return nameOf([]string{"OK", "Warning", "Discard", "Error", "Fatal", "Pending"}, s, "status")
}

// nameOf returns the name of a value, or, if it has none, the value after what it is.
func nameOf[T ~int32 | ~uint8](names []string, k T, what string) string {
	if k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("%s(%d)", what, int(k))
}

// StatusKind selects what GetStatus, GetRealStatus and so on return.
type StatusKind int32

// The kinds, each with the function that returns it.
const (
	DoStepStatus       StatusKind = iota // GetStatus: status of the Pending step
	PendingStatus                        // GetStringStatus: why the step is still Pending
	LastSuccessfulTime                   // GetRealStatus: time up to which a discarded step succeeded, s
	Terminated                           // GetBooleanStatus: whether the FMU wants to end
)

// String returns the name of the standard without its prefix fmi2.
func (k StatusKind) String() string {
	return nameOf([]string{"DoStepStatus", "PendingStatus", "LastSuccessfulTime", "Terminated"}, k, "status kind")
}
