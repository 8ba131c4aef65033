package fmi2

import "github.com/macrostep/macrostep/fmi/internal/native"

// argKind tells how an argument gets to the other process.
type argKind uint8

const (
	ArgComponent argKind = iota // the host's own
	ArgInt                      // a number or a handle
	ArgCount                    // number of elements of others; fixed
	ArgFixed                    // array that a defined record keeps
	ArgIn                       // array that is given with every call
	ArgOut                      // array that comes back
	ArgInOut                    // one that is given and comes back
	ArgText                     // C string that is given, for as long as the instance
	ArgTexts                    // array of C strings that is given
	ArgTextsOut                 // array of C strings that comes back
	ArgState                    // saved state; what goes over is its number, by which the host finds the FMU's own handle
	ArgStateSlot                // place for a saved state, likewise
	ArgLocal                    // the callbacks, which are the host's
)

// Argument is one integer or pointer argument of a function.
type Argument struct {
	Kind  argKind
	size  uint8 // bytes of an element
	count int8  // index of the argument with the number of elements, or one
}

const one int8 = -1

// Shapes are the arguments of all functions that an instance has.
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
	s[GetDirectionalDerivative] = []Argument{component, vr, count, array(ArgFixed, 4, 4), count, array(ArgIn, 8, 4), array(ArgOut, 8, 2)}
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

// Floats returns the floating-point arguments of a function.
func Floats(f Function) int {
	switch f {
	case DoStep:
		return 2
	case SetupExperiment:
		return 3
	}
	return 0
}

// Signature returns how a function mixes its arguments.
func Signature(f Function) uintptr {
	switch f {
	case DoStep:
		return native.SigIFFI
	case SetupExperiment:
		return native.SigIIFFIF
	}
	return native.SigInts
}
