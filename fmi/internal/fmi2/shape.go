package fmi2

import "github.com/macrostep/macrostep/fmi/internal/native"

// argKind is how an argument is passed to another process.
type argKind uint8

const (
	ArgComponent argKind = iota // component, known to the host
	ArgInt                      // number or handle
	ArgCount                    // number of elements of other arguments; constant
	ArgFixed                    // constant input array
	ArgIn                       // input array
	ArgOut                      // output array
	ArgInOut                    // input and output array
	ArgText                     // C string, valid as long as the instance
	ArgTexts                    // input array of C strings
	ArgTextsOut                 // output array of C strings
	ArgState                    // saved state, passed as a number for which the host has the handle
	ArgStateSlot                // address of a saved state, passed likewise
	ArgLocal                    // callbacks, known to the host
)

// Argument is one integer or pointer argument of a function.
type Argument struct {
	Kind  argKind
	size  uint8 // bytes of an element
	count int8  // index of the argument with the number of elements; one = one element
}

const one int8 = -1

// Shapes are the integer and pointer arguments of all functions with an instance.
var Shapes = func() (s [NumFunctions][]Argument) {
	component := Argument{Kind: ArgComponent}
	number, count := Argument{Kind: ArgInt}, Argument{Kind: ArgCount}
	array := func(kind argKind, size uint8, count int8) Argument { return Argument{kind, size, count} }
	vr := array(ArgFixed, 4, 2)
	for f := range s {
		s[f] = []Argument{component}
	}
	access := func(kind argKind, size uint8, fns ...Function) {
		for _, f := range fns {
			s[f] = []Argument{component, vr, count, array(kind, size, 2)}
		}
	}
	access(ArgIn, 8, SetReal)
	access(ArgIn, 4, SetInteger, SetBoolean)
	access(ArgTexts, 0, SetString)
	access(ArgOut, 8, GetReal)
	access(ArgOut, 4, GetInteger, GetBoolean)
	access(ArgTextsOut, 0, GetString)
	s[SetRealInputDerivatives] = []Argument{component, vr, count, array(ArgFixed, 4, 2), array(ArgIn, 8, 2)}
	s[GetRealOutputDerivatives] = []Argument{component, vr, count, array(ArgFixed, 4, 2), array(ArgOut, 8, 2)}
	s[GetDirectionalDerivative] = []Argument{component, vr, count, array(ArgFixed, 4, 4), count,
		array(ArgIn, 8, 4), array(ArgOut, 8, 2)}
	text := Argument{Kind: ArgText}
	s[Instantiate] = []Argument{text, number, text, text, {Kind: ArgLocal}, number, number}
	s[SetDebugLogging] = []Argument{component, number, count, array(ArgTexts, 0, 2)}
	s[SetupExperiment] = []Argument{component, number, number}
	s[DoStep] = []Argument{component, number}
	state, slot, word := Argument{Kind: ArgState}, array(ArgStateSlot, 8, one), array(ArgInOut, 8, one)
	s[GetFMUState] = []Argument{component, slot}
	s[FreeFMUState] = []Argument{component, slot}
	s[SetFMUState] = []Argument{component, state}
	s[SerializedFMUStateSize] = []Argument{component, state, word}
	s[SerializeFMUState] = []Argument{component, state, array(ArgOut, 1, 3), count}
	s[DeSerializeFMUState] = []Argument{component, array(ArgIn, 1, 2), count, slot}
	for _, f := range []Function{GetStatus, GetRealStatus, GetIntegerStatus, GetBooleanStatus} {
		s[f] = []Argument{component, number, word}
	}
	s[GetStringStatus] = []Argument{component, number, array(ArgTextsOut, 0, one)}
	return s
}()

// Elements returns the number of elements of an argument.
func (a Argument) Elements(r *native.Record) uintptr {
	if a.count == one {
		return 1
	}
	return r.Int[a.count]
}

func (a Argument) Bytes(r *native.Record) uintptr { return uintptr(a.size) * a.Elements(r) }

// Floats returns the number of floating-point arguments of a function.
func Floats(f Function) int {
	switch f {
	case DoStep:
		return 2
	case SetupExperiment:
		return 3
	}
	return 0
}

// Signature returns the order of integer and floating-point arguments of a function.
func Signature(f Function) uintptr {
	switch f {
	case DoStep:
		return native.SigIFFI
	case SetupExperiment:
		return native.SigIIFFIF
	}
	return native.SigInts
}
