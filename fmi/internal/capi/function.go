package capi

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Function is an FMI function: its number, the index into the symbol table of a library, with V3 for that of FMI 3.0.
// Functions with the same meaning have the same number: GetReal is fmi2GetReal, with V3 fmi3GetFloat64.
type Function uint8

// V3 is set for functions of FMI 3.0.
const V3 Function = 0x80

// Number returns the function of FMI 2.0, or what would be that, for one of either version.
func (f Function) Number() Function { return f &^ V3 }

// Version returns V3 or 0.
func (f Function) Version() Function { return f & V3 }

const (
	GetTypesPlatform Function = iota
	GetVersion
	SetDebugLogging
	Instantiate
	FreeInstance
	SetupExperiment
	EnterInitializationMode
	ExitInitializationMode
	Terminate
	Reset
	GetReal
	GetInteger
	GetBoolean
	GetString
	SetReal
	SetInteger
	SetBoolean
	SetString
	GetFMUState
	SetFMUState
	FreeFMUState
	SerializedFMUStateSize
	SerializeFMUState
	DeSerializeFMUState
	GetDirectionalDerivative
	SetRealInputDerivatives
	GetRealOutputDerivatives
	DoStep
	CancelStep
	GetStatus
	GetRealStatus
	GetIntegerStatus
	GetBooleanStatus
	GetStringStatus
	// Of FMI 3.0 only.
	GetFloat32
	GetInt8
	GetUInt8
	GetInt16
	GetUInt16
	GetUInt32
	GetInt64
	GetUInt64
	GetBinary
	SetFloat32
	SetInt8
	SetUInt8
	SetInt16
	SetUInt16
	SetUInt32
	SetInt64
	SetUInt64
	SetBinary
	EnterEventMode
	UpdateDiscreteStates
	SetClock
	GetClock
	GetIntervalDecimal
	GetShiftDecimal
	EnterStepMode
	EnterConfigurationMode
	ExitConfigurationMode
	NumFunctions
)

// States of an instance, in the order of fmi.State, as a set.
const (
	r = 1 << iota // instantiated
	i             // initialization
	c             // step complete
	p             // in progress
	f             // failed
	x             // canceled
	t             // terminated
	e             // error
	v             // event mode

	set, get = r | i | v | c, i | v | c | f | x | t | e
	query    = c | p | f | t
	handle   = r | get
	tick     = i | v
)

// Arguments that functions share.
const (
	experiment = ":component toleranceDefined:int tolerance:real start:real stopDefined:int stop:real"
	slopes     = ":component unknown:ref[2] :count known:ref[4] :count "
	vector     = ":component vr:ref[2] :count v:"
	orders     = ":component vr:ref[2] :count order:int[2] v:"
)

// table has the functions of FMI 2.0 and 3.0 for Co-Simulation: name, the states in which each may be called
// (checklist fmi2 39; FMI 3.0 4.2), and the arguments in the order of C: name:type, with [k] for an array whose
// length is argument k (* = one element), with < for an input array and > for an output array. Other arrays are
// constant. The sizes of a blob are in the argument before it. What a version does not have is empty.
var table = [2][NumFunctions]entry{{
	GetTypesPlatform: {"fmi2GetTypesPlatform", handle | p, ""},
	GetVersion:       {"fmi2GetVersion", handle | p, ""},
	SetDebugLogging:  {"fmi2SetDebugLogging", handle | p, ":component on:int :count categories:<text[2]"},
	Instantiate: {"fmi2Instantiate", 0, "name:text type:interface guid:text resources:text :callbacks visible:int " +
		"loggingOn:int"},
	FreeInstance:             {"fmi2FreeInstance", handle, ":component"},
	SetupExperiment:          {"fmi2SetupExperiment", r, experiment},
	EnterInitializationMode:  {"fmi2EnterInitializationMode", r, ":component"},
	ExitInitializationMode:   {"fmi2ExitInitializationMode", i, ":component"},
	Terminate:                {"fmi2Terminate", c | f, ":component"},
	Reset:                    {"fmi2Reset", handle, ":component"},
	GetReal:                  {"fmi2GetReal", get, vector + ">real[2]"},
	GetInteger:               {"fmi2GetInteger", get, vector + ">int[2]"},
	GetBoolean:               {"fmi2GetBoolean", get, vector + ">int[2]"},
	GetString:                {"fmi2GetString", get, vector + ">text[2]"},
	SetReal:                  {"fmi2SetReal", set, vector + "<real[2]"},
	SetInteger:               {"fmi2SetInteger", set, vector + "<int[2]"},
	SetBoolean:               {"fmi2SetBoolean", set, vector + "<int[2]"},
	SetString:                {"fmi2SetString", set, vector + "<text[2]"},
	GetFMUState:              {"fmi2GetFMUstate", handle, ":component state:slot[*]"},
	SetFMUState:              {"fmi2SetFMUstate", handle, ":component state:state"},
	FreeFMUState:             {"fmi2FreeFMUstate", handle, ":component state:slot[*]"},
	SerializedFMUStateSize:   {"fmi2SerializedFMUstateSize", handle, ":component state:state size:<>word[*]"},
	SerializeFMUState:        {"fmi2SerializeFMUstate", handle, ":component state:state :>byte[3] size:count"},
	DeSerializeFMUState:      {"fmi2DeSerializeFMUstate", handle, ":component :<byte[2] size:count state:slot[*]"},
	GetDirectionalDerivative: {"fmi2GetDirectionalDerivative", get, slopes + "dvKnown:<real[4] dvUnknown:>real[2]"},
	SetRealInputDerivatives:  {"fmi2SetRealInputDerivatives", set, orders + "<real[2]"},
	GetRealOutputDerivatives: {"fmi2GetRealOutputDerivatives", get &^ i, orders + ">real[2]"},
	DoStep:                   {"fmi2DoStep", c, ":component t:real h:real noRestoreBefore:int"},
	CancelStep:               {"fmi2CancelStep", p, ":component"},
	GetStatus:                {"fmi2GetStatus", query, ":component kind:kind value:<>status[*]"},
	GetRealStatus:            {"fmi2GetRealStatus", query, ":component kind:kind value:<>real[*]"},
	GetIntegerStatus:         {"fmi2GetIntegerStatus", query, ":component kind:kind value:<>int[*]"},
	GetBooleanStatus:         {"fmi2GetBooleanStatus", query, ":component kind:kind value:<>int[*]"},
	GetStringStatus:          {"fmi2GetStringStatus", query, ":component kind:kind value:>text[*]"},
}, {
	GetVersion:      {"fmi3GetVersion", handle, ""},
	SetDebugLogging: {"fmi3SetDebugLogging", handle, ":component on:int :count categories:<text[2]"},
	Instantiate: {"fmi3InstantiateCoSimulation", 0, "name:text token:text resources:text visible:int loggingOn:int " +
		"eventModeUsed:int earlyReturnAllowed:int :int :int :environment :logger :int"},
	FreeInstance:             {"fmi3FreeInstance", handle, ":component"},
	EnterInitializationMode:  {"fmi3EnterInitializationMode", r, experiment},
	ExitInitializationMode:   {"fmi3ExitInitializationMode", i, ":component"},
	Terminate:                {"fmi3Terminate", v | c | f, ":component"},
	Reset:                    {"fmi3Reset", handle, ":component"},
	GetReal:                  {"fmi3GetFloat64", get, vector + ">real[4] :count"},
	GetFloat32:               {"fmi3GetFloat32", get, vector + ">float32[4] :count"},
	GetInt8:                  {"fmi3GetInt8", get, vector + ">int8[4] :count"},
	GetUInt8:                 {"fmi3GetUInt8", get, vector + ">uint8[4] :count"},
	GetInt16:                 {"fmi3GetInt16", get, vector + ">int16[4] :count"},
	GetUInt16:                {"fmi3GetUInt16", get, vector + ">uint16[4] :count"},
	GetInteger:               {"fmi3GetInt32", get, vector + ">int[4] :count"},
	GetUInt32:                {"fmi3GetUInt32", get, vector + ">uint32[4] :count"},
	GetInt64:                 {"fmi3GetInt64", get, vector + ">int64[4] :count"},
	GetUInt64:                {"fmi3GetUInt64", get, vector + ">uint64[4] :count"},
	GetBoolean:               {"fmi3GetBoolean", get, vector + ">bool[4] :count"},
	GetString:                {"fmi3GetString", get, vector + ">text[4] :count"},
	GetBinary:                {"fmi3GetBinary", get, ":component vr:ref[2] :count sizes:>word[5] v:>blob[5] :count"},
	SetReal:                  {"fmi3SetFloat64", set, vector + "<real[4] :count"},
	SetFloat32:               {"fmi3SetFloat32", set, vector + "<float32[4] :count"},
	SetInt8:                  {"fmi3SetInt8", set, vector + "<int8[4] :count"},
	SetUInt8:                 {"fmi3SetUInt8", set, vector + "<uint8[4] :count"},
	SetInt16:                 {"fmi3SetInt16", set, vector + "<int16[4] :count"},
	SetUInt16:                {"fmi3SetUInt16", set, vector + "<uint16[4] :count"},
	SetInteger:               {"fmi3SetInt32", set, vector + "<int[4] :count"},
	SetUInt32:                {"fmi3SetUInt32", set, vector + "<uint32[4] :count"},
	SetInt64:                 {"fmi3SetInt64", set, vector + "<int64[4] :count"},
	SetUInt64:                {"fmi3SetUInt64", set, vector + "<uint64[4] :count"},
	SetBoolean:               {"fmi3SetBoolean", set, vector + "<bool[4] :count"},
	SetString:                {"fmi3SetString", set, vector + "<text[4] :count"},
	EnterConfigurationMode:   {"fmi3EnterConfigurationMode", r, ":component"},
	ExitConfigurationMode:    {"fmi3ExitConfigurationMode", r, ":component"},
	SetBinary:                {"fmi3SetBinary", set, ":component vr:ref[2] :count sizes:<word[5] v:<blob[5] :count"},
	GetFMUState:              {"fmi3GetFMUState", handle, ":component state:slot[*]"},
	SetFMUState:              {"fmi3SetFMUState", handle, ":component state:state"},
	FreeFMUState:             {"fmi3FreeFMUState", handle, ":component state:slot[*]"},
	SerializedFMUStateSize:   {"fmi3SerializedFMUStateSize", handle, ":component state:state size:<>word[*]"},
	SerializeFMUState:        {"fmi3SerializeFMUState", handle, ":component state:state :>byte[3] size:count"},
	DeSerializeFMUState:      {"fmi3DeserializeFMUState", handle, ":component :<byte[2] size:count state:slot[*]"},
	GetDirectionalDerivative: {"fmi3GetDirectionalDerivative", get, slopes + "seed:<real[6] :count sensitivity:>real[8] :count"},
	GetRealOutputDerivatives: {"fmi3GetOutputDerivatives", get &^ i, orders + ">real[5] :count"},
	DoStep: {"fmi3DoStep", c, ":component t:real h:real noRestoreBefore:int " +
		"eventHandlingNeeded:<>bool[*] terminateSimulation:<>bool[*] earlyReturn:<>bool[*] lastSuccessfulTime:<>real[*]"},
	EnterEventMode: {"fmi3EnterEventMode", c, ":component"},
	UpdateDiscreteStates: {"fmi3UpdateDiscreteStates", v, ":component discreteStatesNeedUpdate:<>bool[*] " +
		"terminateSimulation:<>bool[*] :<>bool[*] :<>bool[*] nextEventTimeDefined:<>bool[*] nextEventTime:<>real[*]"},
	SetClock: {"fmi3SetClock", v, vector + "<bool[2]"},
	GetClock: {"fmi3GetClock", v, vector + ">bool[2]"},
	GetIntervalDecimal: {"fmi3GetIntervalDecimal", tick,
		":component vr:ref[2] :count intervals:>real[2] qualifiers:>int[2]"},
	GetShiftDecimal: {"fmi3GetShiftDecimal", tick, ":component vr:ref[2] :count shifts:>real[2]"},
	EnterStepMode:   {"fmi3EnterStepMode", v, ":component"},
}}

// entry describes a function.
type entry struct {
	name string
	when uint16
	args string
}

// call is what the arguments of a function say.
type call struct {
	shape     []Argument
	signature uintptr
}

func (f Function) String() string { return table[f>>7][f.Number()].name }

// When returns the states in which a function may be called.
func (f Function) When() uint16 { return table[f>>7][f.Number()].when }

// Shape returns the arguments of a function.
func (f Function) Shape() []Argument { return calls[f>>7][f.Number()].shape }

// Signature returns the order of its integers and floating-point numbers.
func (f Function) Signature() uintptr { return calls[f>>7][f.Number()].signature }

// Argument is an argument of a function.
type Argument struct {
	Name    string // "" = not in a trace
	Type    string
	At      int8 // index into the integers of a record, or for a number of type real into its floating-point numbers
	In, Out bool // contents of an array
	Array   bool
	count   int8 // index of the argument with the number of elements; one = one element
}

const one int8 = -1

var calls [2][NumFunctions]call

func init() {
	for version := range table {
		for f, e := range table[version] {
			calls[version][f] = e.parse()
		}
	}
}

// parse reads the arguments.
func (e *entry) parse() (c call) {
	order := ""
	for word := range strings.FieldsSeq(e.args) {
		var a Argument
		a.Name, a.Type, _ = strings.Cut(word, ":")
		var n string
		a.Type, n, a.Array = strings.Cut(strings.TrimSuffix(a.Type, "]"), "[")
		a.In, a.Out = strings.Contains(a.Type, "<"), strings.Contains(a.Type, ">")
		a.Type = strings.TrimLeft(a.Type, "<>")
		if a.count = one; a.Array && n != "*" {
			k, _ := strconv.Atoi(n)
			a.count = int8(k)
		}
		kind := "I"
		if a.Float() {
			kind = "F"
		}
		a.At = int8(strings.Count(order, kind))
		order += kind
		c.shape = append(c.shape, a)
	}
	switch {
	case strings.HasPrefix(order, "IFFI"):
		c.signature = native.SigIFFI
	case order == "IIFFIF":
		c.signature = native.SigIIFFIF
	case len(order) > 7:
		c.signature = native.SigLong
	}
	return c
}

// Float reports whether an argument is a floating-point number.
func (a *Argument) Float() bool { return a.Type == "real" && !a.Array }

// Fixed reports whether an argument is a constant array.
func (a *Argument) Fixed() bool { return a.Array && !a.In && !a.Out && a.Type != "slot" }

// Elements returns the number of elements of an argument.
func (a *Argument) Elements(r *native.Record) uintptr {
	if a.count == one {
		return 1
	}
	return r.Int[a.count]
}

var sizes = map[string]uintptr{"ref": 4, "int": 4, "byte": 1, "real": 8, "text": 8, "blob": 8, "word": 8, "bool": 1,
	"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "uint32": 4, "int64": 8, "uint64": 8, "float32": 4}

// Resources returns the index of the location of the resources among the integers of a function to instantiate.
func Resources(instantiate Function) int {
	shape := instantiate.Shape()
	return int(shape[slices.IndexFunc(shape, func(a Argument) bool { return a.Name == "resources" })].At)
}

// Local reports whether each process has a value of its own for an argument.
func (a *Argument) Local() bool {
	switch a.Type {
	case "component", "callbacks", "environment", "logger":
		return true
	}
	return false
}

// Texts reports whether an argument is an array of pointers to texts or blobs.
func (a *Argument) Texts() bool { return a.Array && (a.Type == "text" || a.Type == "blob") }

// Content returns element k of an array of texts or blobs; nil is a null pointer. It is not a copy.
func (a *Argument) Content(r *native.Record, k uintptr) []byte {
	p := *(*uintptr)(native.Pointer(r.Int[a.At] + 8*k))
	switch {
	case p == 0:
		return nil
	case a.Type == "text":
		return native.Bytes(p, native.MaxString)
	}
	return unsafe.Slice((*byte)(native.Pointer(p)), min(*(*uintptr)(native.Pointer(r.Int[a.At-1] + 8*k)), MaxState))
}

// Size returns the size of an element, One whether there is always one.
func (a *Argument) Size() uintptr { return sizes[a.Type] }
func (a *Argument) One() bool     { return a.count == one }

// Bytes returns the size of the memory of an array.
func (a *Argument) Bytes(r *native.Record) uintptr {
	if a.count == one {
		return 8
	}
	return sizes[a.Type] * a.Elements(r)
}

// Statuses, as functions return them.
const (
	StatusOK      = 0
	StatusWarning = 1
	StatusFatal   = 4
	StatusDiscard = 2
	StatusPending = 5
)

// MaxState bounds the size of a serialised state, in bytes.
const MaxState = 1 << 32

// FunctionSet is a set of functions of any version, one bit for each number.
type FunctionSet uint64

func (s FunctionSet) Has(f Function) bool { return s>>f.Number()&1 != 0 }
