package remote

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// The process of a run and that of an instance elsewhere exchange records: function, arguments,
// and the memory of the arguments. Numbers are little-endian, as on all machines for which
// package native makes calls. A message consists of words of eight bytes; arrays and texts are
// padded with zeros to whole words.

// Version is the version of the messages. The versions of the processes on one machine differ
// only if the program is replaced during a run.
const Version = 10

// Requests.
const (
	askLoad   uint64 = iota + 1
	askDefine        // constant arguments of records to be kept, as in askRun
	askRun
	askPlace // where the library is, for askLoad without a path
	askGroup // requests for several instances
	askPlay  // several of askRun, of which only the outcomes matter
)

// wireNull is the length of a string that is a null pointer.
const wireNull = ^uint64(0)

// ErrWire is the error for an invalid message.
var ErrWire = errors.New("a message between the processes is damaged; the FMU has probably written over memory that is not its own")

// wireWriter builds a message.
type wireWriter []byte

func (w *wireWriter) word(v uint64) { *w = binary.LittleEndian.AppendUint64(*w, v) }

func (w *wireWriter) flag(v bool) {
	if v {
		w.word(1)
	} else {
		w.word(0)
	}
}

// raw writes bytes without their number.
func (w *wireWriter) raw(b []byte) {
	*w = append(*w, b...)
	if odd := len(b) & 7; odd != 0 {
		*w = append(*w, make([]byte, 8-odd)...)
	}
}

func (w *wireWriter) text(s string) { w.bytes(unsafe.Slice(unsafe.StringData(s), len(s))) }

func (w *wireWriter) bytes(b []byte) {
	w.word(uint64(len(b)))
	w.raw(b)
}

// file writes where a library is.
func (w *wireWriter) file(f capi.File) {
	for _, s := range []string{f.Path, f.Prefix, f.ID} {
		w.text(s)
	}
	w.flag(f.Chdir)
	w.word(uint64(f.API))
	w.word(uint64(len(f.Preload)))
	for _, s := range f.Preload {
		w.text(s)
	}
}

// memory writes n bytes of C memory.
func (w *wireWriter) memory(p, n uintptr) {
	if n > 0 {
		w.raw(unsafe.Slice((*byte)(native.Pointer(p)), n))
	}
}

// wireReader reads a message. Slices that it returns are parts of the message. If the message
// is too short, it returns zeros and sets bad.
type wireReader struct {
	rest []byte
	bad  bool
}

func (r *wireReader) word() uint64 {
	if len(r.rest) < 8 {
		r.rest, r.bad = nil, true
		return 0
	}
	v := binary.LittleEndian.Uint64(r.rest)
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

func (r *wireReader) file() capi.File {
	f := capi.File{Path: r.text(), Prefix: r.text(), ID: r.text(), Chdir: r.word() != 0,
		API: capi.Function(r.word()).Version()}
	for n := r.word(); n > 0 && !r.bad; n-- {
		f.Preload = append(f.Preload, r.text())
	}
	return f
}

// memory fills n bytes of C memory.
func (r *wireReader) memory(p, n uintptr) {
	if b := r.raw(uint64(n)); b != nil {
		copy(unsafe.Slice((*byte)(native.Pointer(p)), n), b)
	}
}

// A record begins with a word: the function in the lowest byte, the number under which the host
// keeps the record (0 = not kept), and whether its constant arguments follow.
const (
	wireKept    = 8
	wireDefines = 1 << 40
	maxKept     = 1 << 20
)

// An answer to askRun begins with the number of records called; wireStopped is set if the last
// one stopped the batch.
const wireStopped = 1 << 40
