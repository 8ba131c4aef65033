package fmi

import (
	"fmt"
	"strings"
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

// String gives the name of the standard.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// function numbers the FMI functions; it indexes the symbol table of a library.
type function uint8

const (
	fnGetTypesPlatform function = iota
	fnGetVersion
	fnSetDebugLogging
	fnInstantiate
	fnFreeInstance
	fnSetupExperiment
	fnEnterInitializationMode
	fnExitInitializationMode
	fnTerminate
	fnReset
	fnGetReal
	fnGetInteger
	fnGetBoolean
	fnGetString
	fnSetReal
	fnSetInteger
	fnSetBoolean
	fnSetString
	fnGetFMUState
	fnSetFMUState
	fnFreeFMUState
	fnSerializedFMUStateSize
	fnSerializeFMUState
	fnDeSerializeFMUState
	fnGetDirectionalDerivative
	fnSetRealInputDerivatives
	fnGetRealOutputDerivatives
	fnDoStep
	fnCancelStep
	fnGetStatus
	fnGetRealStatus
	fnGetIntegerStatus
	fnGetBooleanStatus
	fnGetStringStatus
	numFunctions
)

var functionNames = [numFunctions]string{
	fnGetTypesPlatform:         "fmi2GetTypesPlatform",
	fnGetVersion:               "fmi2GetVersion",
	fnSetDebugLogging:          "fmi2SetDebugLogging",
	fnInstantiate:              "fmi2Instantiate",
	fnFreeInstance:             "fmi2FreeInstance",
	fnSetupExperiment:          "fmi2SetupExperiment",
	fnEnterInitializationMode:  "fmi2EnterInitializationMode",
	fnExitInitializationMode:   "fmi2ExitInitializationMode",
	fnTerminate:                "fmi2Terminate",
	fnReset:                    "fmi2Reset",
	fnGetReal:                  "fmi2GetReal",
	fnGetInteger:               "fmi2GetInteger",
	fnGetBoolean:               "fmi2GetBoolean",
	fnGetString:                "fmi2GetString",
	fnSetReal:                  "fmi2SetReal",
	fnSetInteger:               "fmi2SetInteger",
	fnSetBoolean:               "fmi2SetBoolean",
	fnSetString:                "fmi2SetString",
	fnGetFMUState:              "fmi2GetFMUstate",
	fnSetFMUState:              "fmi2SetFMUstate",
	fnFreeFMUState:             "fmi2FreeFMUstate",
	fnSerializedFMUStateSize:   "fmi2SerializedFMUstateSize",
	fnSerializeFMUState:        "fmi2SerializeFMUstate",
	fnDeSerializeFMUState:      "fmi2DeSerializeFMUstate",
	fnGetDirectionalDerivative: "fmi2GetDirectionalDerivative",
	fnSetRealInputDerivatives:  "fmi2SetRealInputDerivatives",
	fnGetRealOutputDerivatives: "fmi2GetRealOutputDerivatives",
	fnDoStep:                   "fmi2DoStep",
	fnCancelStep:               "fmi2CancelStep",
	fnGetStatus:                "fmi2GetStatus",
	fnGetRealStatus:            "fmi2GetRealStatus",
	fnGetIntegerStatus:         "fmi2GetIntegerStatus",
	fnGetBooleanStatus:         "fmi2GetBooleanStatus",
	fnGetStringStatus:          "fmi2GetStringStatus",
}

func (f function) String() string { return functionNames[f] }

// stateSet is a set of states, one bit each.
type stateSet uint16

func (s stateSet) has(st State) bool { return s>>st&1 != 0 }

const (
	inR stateSet = 1 << StateInstantiated
	inI stateSet = 1 << StateInitialization
	inC stateSet = 1 << StateStepComplete
	inP stateSet = 1 << StateStepInProgress
	inF stateSet = 1 << StateStepFailed
	inX stateSet = 1 << StateStepCanceled
	inT stateSet = 1 << StateTerminated
	inE stateSet = 1 << StateError

	whenSet    = inR | inI | inC
	whenGet    = inI | inC | inF | inX | inT | inE
	whenQuery  = inC | inP | inF | inT
	whenHandle = inR | inI | inC | inF | inX | inT | inE
)

// legal is the table of the states in which each function may be called
// (checklist fmi2 39). The table also says which variables may be set or got in
// which state; that is left to the caller, who knows the variables.
var legal = [numFunctions]stateSet{
	fnGetTypesPlatform:         whenHandle | inP,
	fnGetVersion:               whenHandle | inP,
	fnSetDebugLogging:          whenHandle | inP,
	fnSetupExperiment:          inR,
	fnEnterInitializationMode:  inR,
	fnExitInitializationMode:   inI,
	fnSetReal:                  whenSet,
	fnSetInteger:               whenSet,
	fnSetBoolean:               whenSet,
	fnSetString:                whenSet,
	fnGetReal:                  whenGet,
	fnGetInteger:               whenGet,
	fnGetBoolean:               whenGet,
	fnGetString:                whenGet,
	fnDoStep:                   inC,
	fnCancelStep:               inP,
	fnGetStatus:                whenQuery,
	fnGetRealStatus:            whenQuery,
	fnGetIntegerStatus:         whenQuery,
	fnGetBooleanStatus:         whenQuery,
	fnGetStringStatus:          whenQuery,
	fnTerminate:                inC | inF,
	fnReset:                    whenHandle,
	fnFreeInstance:             whenHandle,
	fnSetFMUState:              whenHandle,
	fnFreeFMUState:             whenHandle,
	fnSerializedFMUStateSize:   whenHandle,
	fnSerializeFMUState:        whenHandle,
	fnDeSerializeFMUState:      whenHandle,
	fnGetFMUState:              whenHandle,
	fnGetDirectionalDerivative: whenGet,
	fnSetRealInputDerivatives:  whenSet,
	fnGetRealOutputDerivatives: whenGet &^ inI,
}

// CallOrderError is a call that the state machine forbids (checklist fmi2 39).
// The FMU was not entered.
type CallOrderError struct {
	Instance string
	Func     string  // for example "fmi2DoStep"
	State    State   // the instance's
	Legal    []State // where the call would be legal; none after Fatal and Free
	Reason   string  // "" or what else is missing
}

// Error names instance, call and state, and says where the call is legal.
func (e *CallOrderError) Error() string {
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s: %s in state %s: %s", e.Instance, e.Func, e.State, e.Reason)
	case e.State == StateFatal:
		return fmt.Sprintf("%s: %s refused: an instance of this FMU returned Fatal, after which no function of the FMU may be called; start it in a new process", e.Instance, e.Func)
	case e.State == StateFreed:
		return fmt.Sprintf("%s: %s refused: the instance is freed; instantiate a new one", e.Instance, e.Func)
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

// orderError builds the error for a call of f in state s.
func orderError(instance string, f function, s State) error {
	e := &CallOrderError{Instance: instance, Func: f.String(), State: s}
	if s == StateFatal || s == StateFreed {
		return e
	}
	for st := StateInstantiated; st <= StateError; st++ {
		if legal[f].has(st) {
			e.Legal = append(e.Legal, st)
		}
	}
	return e
}
