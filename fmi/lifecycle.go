package fmi

import (
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/capi"
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
	StateEventMode // of FMI 3.0
	StateFatal     // no call is legal, not even FreeInstance
	StateFreed
)

// String returns the name of the standard.
func (s State) String() string {
	return nameOf([]string{"instantiated", "initializationMode", "stepComplete", "stepInProgress", "stepFailed", "stepCanceled",
		"terminated", "error", "eventMode", "fatal", "freed"}, s, "state")
}

// legal reports whether a function may be called in a state. It does not restrict which variables may be set or got
// in a state; that is up to the caller.
func (in *Instance) legal(f capi.Function, s State) bool { return in.is(f).When()>>s&1 != 0 }

// orderError returns the error of a call of f in state s, which names the states in which it is legal.
func orderError(instance string, f capi.Function, s State) error {
	hint := ""
	switch s {
	case StateFatal:
		return usage(instance, "%s refused: an instance of this FMU returned Fatal, after which no function of the FMU may be called; "+
			"start it in a new process", f)
	case StateFreed:
		return usage(instance, "%s refused: the instance has been freed; instantiate a new one", f)
	case StateError, StateStepCanceled:
		hint = "; SetFMUState, Reset or Free lead out of this state"
	case StateStepInProgress:
		hint = "; ask GetStatus until the step is done, or CancelStep"
	}
	var names []string
	for st := StateInstantiated; st < StateFatal; st++ {
		if f.When()>>st&1 != 0 && (st != StateEventMode || f.Version() == capi.V3) {
			names = append(names, st.String())
		}
	}
	return usage(instance, "%s is not legal in state %s, only in %s%s", f, s, strings.Join(names, ", "), hint)
}
