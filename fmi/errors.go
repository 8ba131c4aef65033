package fmi

import "fmt"

// StatusError is the error of a call that returned Discard, Error, Fatal or an
// undefined status. The state of the instance determines which calls are then legal.
type StatusError struct {
	Instance string
	Func     string // for example "fmi2DoStep"
	Status   Status
	Msg      string // last log lines of the FMU at Warning or above, or ""
}

// Error names instance, call and status, and quotes messages of the FMU.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s: %s returned %s", e.Instance, e.Func, e.Status)
	if e.Status > StatusPending || e.Status < StatusOK {
		s += ", which FMI 2.0 does not define (taken as Error)"
	}
	if e.Msg != "" {
		s += "; it says: " + e.Msg
	}
	return s
}

// CapabilityError is the error of a call that this FMU does not support: the description
// does not declare the capability, or the library does not export the function.
type CapabilityError struct {
	Instance string
	Func     string
	Flag     string // missing attribute of CoSimulation, or ""
	Library  string // path of the library that does not export Func, or ""
}

// Error names the call and the missing capability.
func (e *CapabilityError) Error() string {
	if e.Library != "" {
		return fmt.Sprintf("%s: %s: the library %s does not export this function; "+
			"export the FMU again with the function, or do without it", e.Instance, e.Func, e.Library)
	}
	return fmt.Sprintf("%s: %s: modelDescription.xml does not declare %s, so the function may not be called",
		e.Instance, e.Func, e.Flag)
}

// ArgumentError is the error of a call with invalid arguments. The FMU was not
// called.
type ArgumentError struct {
	Instance, Func, Msg string
}

// Error names the call and the argument.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Instance, e.Func, e.Msg)
}
