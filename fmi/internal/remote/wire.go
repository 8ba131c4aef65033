package remote

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
