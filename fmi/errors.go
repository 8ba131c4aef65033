package fmi

import (
	"fmt"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
)

// StatusError is the error of a call that returned Discard, Error, Fatal or an
// undefined status. The state of the instance determines which calls are then legal.
type StatusError struct {
	Instance string
	Func     string // for example "fmi2DoStep"
	Status   Status
	With     string // result of fmi3DoStep because of which OK counts as Discard; "" = none
	Msg      string // last log lines of the FMU at Warning or above, or ""

	call capi.Function // without the version
}

// Error names instance, call and status, and quotes messages of the FMU.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s: %s returned %s", e.Instance, e.Func, e.Status)
	if e.With != "" {
		s = fmt.Sprintf("%s: %s returned with %s", e.Instance, e.Func, e.With)
	}
	if e.Status > StatusPending || e.Status < StatusOK {
		s += ", which FMI does not define (taken as Error)"
	}
	if e.Msg != "" {
		s += "; it says: " + e.Msg
	}
	return s
}

// Steps reports whether the call was a step.
func (e *StatusError) Steps() bool { return e.call == capi.DoStep }

// Sets returns the kind of variables that the call set, if it was a setter.
func (e *StatusError) Sets() (kind description.BaseType, ok bool) {
	switch e.call {
	case capi.SetReal, capi.SetFloat32:
		return description.Real, true
	case capi.SetInteger, capi.SetInt8, capi.SetUInt8, capi.SetInt16, capi.SetUInt16, capi.SetUInt32,
		capi.SetInt64, capi.SetUInt64:
		return description.Integer, true
	case capi.SetBoolean:
		return description.Boolean, true
	case capi.SetString, capi.SetBinary:
		return description.String, true
	}
	return 0, false
}

// UsageError is the error of a call that was not made: the state machine forbids it (checklist fmi2 39), the FMU does
// not support it, or its arguments are invalid.
type UsageError struct {
	Instance string
	Msg      string // names the function, the reason and, if there is one, the remedy
}

// Error names the instance and the call.
func (e *UsageError) Error() string { return e.Instance + ": " + e.Msg }

func usage(instance, format string, args ...any) error {
	return &UsageError{instance, fmt.Sprintf(format, args...)}
}
