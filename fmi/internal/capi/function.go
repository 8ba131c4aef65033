package capi

import (
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Function is the number of an FMI function, the index into the symbol table of a library.
type Function uint8

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

	set, get = r | i | c, i | c | f | x | t | e
	query    = c | p | f | t
	handle   = r | get
)

// Table has the functions of FMI 2.0 for Co-Simulation: name, the states in which each may be called (checklist fmi2 39),
// and the arguments in the order of C: name:type, with [k] for an array whose length is argument k (* = one element), with
// < for an input array and > for an output array. Other arrays are constant.
var Table = [NumFunctions]Entry{
	GetTypesPlatform:         {"fmi2GetTypesPlatform", handle | p, ""},
	GetVersion:               {"fmi2GetVersion", handle | p, ""},
	SetDebugLogging:          {"fmi2SetDebugLogging", handle | p, ":component on:int :count categories:<text[2]"},
	Instantiate:              {"fmi2Instantiate", 0, "name:text type:interface guid:text resources:text :local visible:int loggingOn:int"},
	FreeInstance:             {"fmi2FreeInstance", handle, ":component"},
	SetupExperiment:          {"fmi2SetupExperiment", r, ":component toleranceDefined:int tolerance:real start:real stopDefined:int stop:real"},
	EnterInitializationMode:  {"fmi2EnterInitializationMode", r, ":component"},
	ExitInitializationMode:   {"fmi2ExitInitializationMode", i, ":component"},
	Terminate:                {"fmi2Terminate", c | f, ":component"},
	Reset:                    {"fmi2Reset", handle, ":component"},
	GetReal:                  {"fmi2GetReal", get, ":component vr:ref[2] :count v:>real[2]"},
	GetInteger:               {"fmi2GetInteger", get, ":component vr:ref[2] :count v:>int[2]"},
	GetBoolean:               {"fmi2GetBoolean", get, ":component vr:ref[2] :count v:>int[2]"},
	GetString:                {"fmi2GetString", get, ":component vr:ref[2] :count v:>text[2]"},
	SetReal:                  {"fmi2SetReal", set, ":component vr:ref[2] :count v:<real[2]"},
	SetInteger:               {"fmi2SetInteger", set, ":component vr:ref[2] :count v:<int[2]"},
	SetBoolean:               {"fmi2SetBoolean", set, ":component vr:ref[2] :count v:<int[2]"},
	SetString:                {"fmi2SetString", set, ":component vr:ref[2] :count v:<text[2]"},
	GetFMUState:              {"fmi2GetFMUstate", handle, ":component state:slot[*]"},
	SetFMUState:              {"fmi2SetFMUstate", handle, ":component state:state"},
	FreeFMUState:             {"fmi2FreeFMUstate", handle, ":component state:slot[*]"},
	SerializedFMUStateSize:   {"fmi2SerializedFMUstateSize", handle, ":component state:state size:<>word[*]"},
	SerializeFMUState:        {"fmi2SerializeFMUstate", handle, ":component state:state :>byte[3] size:count"},
	DeSerializeFMUState:      {"fmi2DeSerializeFMUstate", handle, ":component :<byte[2] size:count state:slot[*]"},
	GetDirectionalDerivative: {"fmi2GetDirectionalDerivative", get, ":component unknown:ref[2] :count known:ref[4] :count dvKnown:<real[4] dvUnknown:>real[2]"},
	SetRealInputDerivatives:  {"fmi2SetRealInputDerivatives", set, ":component vr:ref[2] :count order:int[2] v:<real[2]"},
	GetRealOutputDerivatives: {"fmi2GetRealOutputDerivatives", get &^ i, ":component vr:ref[2] :count order:int[2] v:>real[2]"},
	DoStep:                   {"fmi2DoStep", c, ":component t:real h:real noRestoreBefore:int"},
	CancelStep:               {"fmi2CancelStep", p, ":component"},
	GetStatus:                {"fmi2GetStatus", query, ":component kind:kind value:<>status[*]"},
	GetRealStatus:            {"fmi2GetRealStatus", query, ":component kind:kind value:<>real[*]"},
	GetIntegerStatus:         {"fmi2GetIntegerStatus", query, ":component kind:kind value:<>int[*]"},
	GetBooleanStatus:         {"fmi2GetBooleanStatus", query, ":component kind:kind value:<>int[*]"},
	GetStringStatus:          {"fmi2GetStringStatus", query, ":component kind:kind value:>text[*]"},
}

// Entry describes a function.
type Entry struct {
	Name string
	When uint16
	args string
}

func (f Function) String() string { return Table[f].Name }

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

// Shapes are the arguments of all functions; Signatures the orders of integers and floating-point numbers.
var (
	Shapes     [NumFunctions][]Argument
	Signatures [NumFunctions]uintptr
)

func init() {
	orders := map[string]uintptr{"IFFI": native.SigIFFI, "IIFFIF": native.SigIIFFIF}
	for f := range Table {
		order := ""
		for word := range strings.FieldsSeq(Table[f].args) {
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
			Shapes[f] = append(Shapes[f], a)
		}
		Signatures[f] = orders[order]
	}
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

var sizes = map[string]uintptr{"ref": 4, "int": 4, "byte": 1, "real": 8, "text": 8}

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

// FunctionSet is a set of functions, one bit each.
type FunctionSet uint64

func (s FunctionSet) Has(f Function) bool { return s>>f&1 != 0 }
