package fmi

import (
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
)

// State is the state of an instance in the state machine of FMI 2.0 for
// Co-Simulation (checklist fmi2 39).
type State uint8

// The states.
const (
	StateInstantiated State = iota
	StateInitialization
	StateStepComplete
	StateStepInProgress
	StateStepFailed
	StateStepCanceled
	StateTerminated
	StateError
	StateFatal // no call is legal, not even FreeInstance
	StateFreed
)

var stateNames = [...]string{
	StateInstantiated:   "instantiated",
	StateInitialization: "initializationMode",
	StateStepComplete:   "stepComplete",
	StateStepInProgress: "stepInProgress",
	StateStepFailed:     "stepFailed",
	StateStepCanceled:   "stepCanceled",
	StateTerminated:     "terminated",
	StateError:          "error",
	StateFatal:          "fatal",
	StateFreed:          "freed",
}

// String returns the name of the standard.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// stateSet is a set of states, one bit each.
type stateSet uint16

func (s stateSet) has(st State) bool { return s>>st&1 != 0 }

// legal returns the states in which a function may be called. It does not restrict which variables may be set or got in a
// state; that is up to the caller.
func legal(f fmi2.Function) stateSet { return stateSet(fmi2.Table[f].When) }

// CallOrderError is the error of a call that the state machine forbids (checklist
// fmi2 39). The FMU was not called.
type CallOrderError struct {
	Instance string
	Func     string  // for example "fmi2DoStep"
	State    State   // of the instance
	Legal    []State // in which the call is legal; nil after Fatal and Free
	Reason   string  // another reason, or ""
}

// Error names instance, call and state, and the states in which the call is legal.
func (e *CallOrderError) Error() string {
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s: %s in state %s: %s", e.Instance, e.Func, e.State, e.Reason)
	case e.State == StateFatal:
		return fmt.Sprintf("%s: %s refused: an instance of this FMU returned Fatal, after which no function of the FMU may be called; "+
			"start it in a new process", e.Instance, e.Func)
	case e.State == StateFreed:
		return fmt.Sprintf("%s: %s refused: the instance has been freed; instantiate a new one", e.Instance, e.Func)
	}
	names := make([]string, len(e.Legal))
	for i, s := range e.Legal {
		names[i] = s.String()
	}
	hint := ""
	switch e.State {
	case StateError, StateStepCanceled:
		hint = "; SetFMUState, Reset or Free lead out of this state"
	case StateStepInProgress:
		hint = "; ask GetStatus until the step is done, or CancelStep"
	}
	return fmt.Sprintf("%s: %s is not legal in state %s, only in %s%s",
		e.Instance, e.Func, e.State, strings.Join(names, ", "), hint)
}

// orderError returns the error of a call of f in state s.
func orderError(instance string, f fmi2.Function, s State) error {
	e := &CallOrderError{Instance: instance, Func: f.String(), State: s}
	if s == StateFatal || s == StateFreed {
		return e
	}
	for st := StateInstantiated; st <= StateError; st++ {
		if legal(f).has(st) {
			e.Legal = append(e.Legal, st)
		}
	}
	return e
}
