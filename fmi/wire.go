package fmi

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Between the process of a run and that of an isolated instance go records, as
// a trampoline would carry them out: function, arguments, what the arguments
// point to. Both are the same program on the same machine, so numbers have the
// machine's layout. Everything is a row of words of eight bytes; arrays and
// texts are filled up with zeros to whole words.

// wireVersion is that of the messages. The processes run the same binary, unless
// it is replaced while a run goes on.
const wireVersion = 2

// Requests.
const (
	askLoad   uint64 = iota + 1
	askDefine        // records to be kept, as in askRun up to what is fixed in them
	askRun
)

// wireNull stands for the length of a string that is a null pointer.
const wireNull = ^uint64(0)

// errWire is a message that cannot be read.
var errWire = errors.New("a message between the processes is damaged, as it is when the FMU has written over memory that is not its own")

// wireWriter is a message that is being written.
type wireWriter []byte

func (w *wireWriter) word(v uint64) { *w = binary.NativeEndian.AppendUint64(*w, v) }

// raw writes bytes that the reader knows the number of.
func (w *wireWriter) raw(b []byte) {
	*w = append(*w, b...)
	if odd := len(b) & 7; odd != 0 {
		*w = append(*w, make([]byte, 8-odd)...)
	}
}

func (w *wireWriter) text(s string) {
	w.word(uint64(len(s)))
	w.raw(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// memory writes n bytes of C memory.
func (w *wireWriter) memory(p, n uintptr) {
	if n > 0 {
		w.raw(unsafe.Slice((*byte)(native.Pointer(p)), n))
	}
}

// wireReader is a message that is being read. What it gives belongs to the
// message. Once something is missing it gives zeros.
type wireReader struct {
	rest []byte
	bad  bool
}

func (r *wireReader) word() uint64 {
	if len(r.rest) < 8 {
		r.rest, r.bad = nil, true
		return 0
	}
	v := binary.NativeEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return v
}

func (r *wireReader) raw(n uint64) []byte {
	if n > uint64(len(r.rest)) || (n+7)&^7 > uint64(len(r.rest)) {
		r.rest, r.bad = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[(n+7)&^7:]
	return b
}

func (r *wireReader) text() string { return string(r.raw(r.word())) }

// memory fills n bytes of C memory.
func (r *wireReader) memory(p, n uintptr) {
	if b := r.raw(uint64(n)); b != nil {
		copy(unsafe.Slice((*byte)(native.Pointer(p)), n), b)
	}
}

// argKind tells how an argument gets to the other process.
type argKind uint8

const (
	argComponent argKind = iota // the host's own
	argInt                      // a number or a handle
	argCount                    // number of elements of others; fixed
	argFixed                    // array that a defined record keeps
	argIn                       // array that is given with every call
	argOut                      // array that comes back
	argInOut                    // one that is given and comes back
	argText                     // C string that is given, for as long as the instance
	argTexts                    // array of C strings that is given
	argTextsOut                 // array of C strings that comes back
	argState                    // saved state; what goes over is its number, by which the host finds the FMU's own handle
	argStateSlot                // place for a saved state, likewise
	argLocal                    // the callbacks, which are the host's
)

// argument is one integer or pointer argument of a function.
type argument struct {
	kind  argKind
	size  uint8 // bytes of an element
	count int8  // index of the argument with the number of elements, or one
}

const one int8 = -1

// shapes are the arguments of all functions that an instance has.
var shapes = func() (s [numFunctions][]argument) {
	component := argument{kind: argComponent}
	number, count := argument{kind: argInt}, argument{kind: argCount}
	array := func(kind argKind, size uint8, count int8) argument { return argument{kind, size, count} }
	vr := array(argFixed, 4, 2)
	for f := range s {
		s[f] = []argument{component}
	}
	access := func(kind argKind, size uint8, fns ...function) {
		for _, f := range fns {
			s[f] = []argument{component, vr, count, array(kind, size, 2)}
		}
	}
	access(argIn, 8, fnSetReal)
	access(argIn, 4, fnSetInteger, fnSetBoolean)
	access(argTexts, 0, fnSetString)
	access(argOut, 8, fnGetReal)
	access(argOut, 4, fnGetInteger, fnGetBoolean)
	access(argTextsOut, 0, fnGetString)
	s[fnSetRealInputDerivatives] = []argument{component, vr, count, array(argFixed, 4, 2), array(argIn, 8, 2)}
	s[fnGetRealOutputDerivatives] = []argument{component, vr, count, array(argFixed, 4, 2), array(argOut, 8, 2)}
	s[fnGetDirectionalDerivative] = []argument{component, vr, count, array(argFixed, 4, 4), count, array(argIn, 8, 4), array(argOut, 8, 2)}
	text := argument{kind: argText}
	s[fnInstantiate] = []argument{text, number, text, text, {kind: argLocal}, number, number}
	s[fnSetDebugLogging] = []argument{component, number, count, array(argTexts, 0, 2)}
	s[fnSetupExperiment] = []argument{component, number, number}
	s[fnDoStep] = []argument{component, number}
	state, slot, word := argument{kind: argState}, array(argStateSlot, 8, one), array(argInOut, 8, one)
	s[fnGetFMUState] = []argument{component, slot}
	s[fnFreeFMUState] = []argument{component, slot}
	s[fnSetFMUState] = []argument{component, state}
	s[fnSerializedFMUStateSize] = []argument{component, state, word}
	s[fnSerializeFMUState] = []argument{component, state, array(argOut, 1, 3), count}
	s[fnDeSerializeFMUState] = []argument{component, array(argIn, 1, 2), count, slot}
	for _, f := range []function{fnGetStatus, fnGetRealStatus, fnGetIntegerStatus, fnGetBooleanStatus} {
		s[f] = []argument{component, number, word}
	}
	s[fnGetStringStatus] = []argument{component, number, array(argTextsOut, 0, one)}
	return s
}()

// elements gives the number of elements of an argument.
func (a argument) elements(r *native.Record) uintptr {
	if a.count == one {
		return 1
	}
	return r.Int[a.count]
}

func (a argument) bytes(r *native.Record) uintptr { return uintptr(a.size) * a.elements(r) }

// floats gives the floating-point arguments of a function.
func floats(f function) int {
	switch f {
	case fnDoStep:
		return 2
	case fnSetupExperiment:
		return 3
	}
	return 0
}

// signature gives how a function mixes its arguments.
func signature(f function) uintptr {
	switch f {
	case fnDoStep:
		return native.SigIFFI
	case fnSetupExperiment:
		return native.SigIIFFIF
	}
	return native.SigInts
}

// A record of a message begins with a word: the function in the lowest byte,
// then the number under which the host keeps it, 0 = not at all, and whether
// what is fixed follows because the host does not have it yet.
const (
	wireKept    = 8
	wireDefines = 1 << 40
	maxKept     = 1 << 20
)

// An answer to askRun begins with the number of records that were carried out,
// and whether the last of them gave a status that stops.
const wireStopped = 1 << 40
