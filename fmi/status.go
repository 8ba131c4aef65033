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
	}
	return fmt.Sprintf("status(%d)", int32(s))
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
