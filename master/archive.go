package master

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Archiver is a part of a run whose state goes into checkpoints: an algorithm,
// a subsystem that keeps values beside its State, a recorder.
type Archiver interface {
	// Archive names each part of the state once, for both directions.
	Archive(a *Archive)
}

// Archive carries the state of a run into a checkpoint or back, in the order in
// which the parts name it. Each method takes a place in memory: it is written
// out, or read in. So one list serves both directions, and they cannot diverge.
//
// What is read must fit: the kind of each value, the lengths of slices, the
// names of sections. The first thing that does not is the error, and everything
// after it is left as it is.
type Archive struct {
	data    []byte
	at      int // of the next value to be read
	reading bool
	section string
	err     error
}

// NewArchive returns an empty archive to be written.
func NewArchive() *Archive { return &Archive{} }

// ReadArchive returns an archive to be read from data, which it keeps.
func ReadArchive(data []byte) *Archive { return &Archive{data: data, reading: true} }

// Reading tells the direction: state is read in.
func (a *Archive) Reading() bool { return a.reading }

// Data returns what was written.
func (a *Archive) Data() []byte { return a.data }

// Err returns the first error.
func (a *Archive) Err() error { return a.err }

// Fail makes err the error of the archive, unless it has one.
func (a *Archive) Fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

var errArchive = errors.New("the saved state does not fit this run")

// misfit is the error of a value that is not what it should be.
func (a *Archive) misfit(format string, args ...any) {
	where := ""
	if a.section != "" {
		where = " (" + a.section + ")"
	}
	a.Fail(fmt.Errorf("%w%s: %s", errArchive, where, fmt.Sprintf(format, args...)))
}

// The kinds of values; each stands before its value.
const (
	kindSection byte = iota + 1
	kindFloat
	kindInt
	kindBool
	kindString
	kindFloats
	kindInts
	kindBools
	kindBytes
)

// begin writes a kind and n, or reads the kind and gives the n that was written.
func (a *Archive) begin(kind byte, n uint64) (uint64, bool) {
	if a.err != nil {
		return 0, false
	}
	if !a.reading {
		a.data = append(a.data, kind)
		a.data = binary.LittleEndian.AppendUint64(a.data, n)
		return n, true
	}
	left := a.data[a.at:]
	switch {
	case len(left) < 9:
		a.misfit("it ends too early")
		return 0, false
	case left[0] != kind:
		a.misfit("a value is of another kind (%d, not %d)", left[0], kind)
		return 0, false
	}
	a.at += 9
	return binary.LittleEndian.Uint64(left[1:]), true
}

// room returns the place of n values of a size, behind the length that begin wrote
// or read.
func (a *Archive) room(n uint64, size int) []byte {
	if !a.reading {
		at := len(a.data)
		a.data = append(a.data, make([]byte, int(n)*size)...)
		return a.data[at:]
	}
	if n > uint64((len(a.data)-a.at)/size) {
		a.misfit("it ends too early")
		return nil
	}
	at := a.at
	a.at += int(n) * size
	return a.data[at:a.at]
}

// slice begins a slice of n values; what is read must have as many.
func (a *Archive) slice(kind byte, n, size int) []byte {
	was, ok := a.begin(kind, uint64(n))
	if ok && was != uint64(n) {
		a.misfit("there are %d values where this run has %d", was, n)
		ok = false
	}
	if !ok {
		return nil
	}
	return a.room(was, size)
}

// Section names what follows, for messages; it must be there in reading too.
func (a *Archive) Section(name string) {
	got := name
	n, ok := a.begin(kindSection, uint64(len(name)))
	if !ok {
		return
	}
	b := a.room(n, 1)
	if a.reading && a.err == nil {
		got = string(b)
	} else {
		copy(b, name)
	}
	if got != name {
		a.misfit("here stands %q, not %q", got, name)
	}
	a.section = name
}

// Float carries one number, every bit of it.
func (a *Archive) Float(v *float64) {
	n, ok := a.begin(kindFloat, math.Float64bits(*v))
	if ok && a.reading {
		*v = math.Float64frombits(n)
	}
}

// Int carries one whole number.
func (a *Archive) Int(v *int) {
	n, ok := a.begin(kindInt, uint64(*v))
	if ok && a.reading {
		*v = int(n)
	}
}

// Word carries 64 bits.
func (a *Archive) Word(v *uint64) {
	n, ok := a.begin(kindInt, *v)
	if ok && a.reading {
		*v = n
	}
}

// Index carries a whole number that must lie between lowest and highest.
func (a *Archive) Index(v *int, lowest, highest int) {
	n := *v
	a.Int(&n)
	switch {
	case a.err != nil:
	case n < lowest || n > highest:
		a.misfit("a number is %d; it lies between %d and %d", n, lowest, highest)
	default:
		*v = n
	}
}

// Bool carries one truth value.
func (a *Archive) Bool(v *bool) {
	var b uint64
	if *v {
		b = 1
	}
	n, ok := a.begin(kindBool, b)
	if ok && a.reading {
		*v = n != 0
	}
}

// String carries a text.
func (a *Archive) String(v *string) {
	n, ok := a.begin(kindString, uint64(len(*v)))
	if !ok {
		return
	}
	b := a.room(n, 1)
	if !a.reading {
		copy(b, *v)
	} else if a.err == nil {
		*v = string(b)
	}
}

// Bytes carries bytes of any number. What is read is a part of the archive's data.
func (a *Archive) Bytes(v *[]byte) {
	n, ok := a.begin(kindBytes, uint64(len(*v)))
	if !ok {
		return
	}
	b := a.room(n, 1)
	if !a.reading {
		copy(b, *v)
	} else if a.err == nil {
		*v = b
	}
}

// Floats carries numbers; there must be as many in reading.
func (a *Archive) Floats(v []float64) { a.floats(v, a.slice(kindFloats, len(v), 8)) }

func (a *Archive) floats(v []float64, b []byte) {
	if a.err != nil {
		return
	}
	for i := range v {
		if a.reading {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v[i]))
		}
	}
}

// FloatList carries numbers of any number; the slice is made as long as what is read.
func (a *Archive) FloatList(v *[]float64) {
	n, ok := a.begin(kindFloats, uint64(len(*v)))
	if !ok {
		return
	}
	b := a.room(n, 8)
	if a.err != nil {
		return
	}
	*v = resized(*v, int(n))
	a.floats(*v, b)
}

// Ints carries whole numbers; there must be as many in reading.
func (a *Archive) Ints(v []int) { a.ints(v, a.slice(kindInts, len(v), 8)) }

func (a *Archive) ints(v []int, b []byte) {
	if a.err != nil {
		return
	}
	for i := range v {
		if a.reading {
			v[i] = int(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v[i]))
		}
	}
}

// IntList carries whole numbers of any number.
func (a *Archive) IntList(v *[]int) {
	n, ok := a.begin(kindInts, uint64(len(*v)))
	if !ok {
		return
	}
	b := a.room(n, 8)
	if a.err != nil {
		return
	}
	*v = resized(*v, int(n))
	a.ints(*v, b)
}

func resized[T any](v []T, n int) []T {
	if n <= cap(v) {
		return v[:n]
	}
	return make([]T, n)
}

// Bools carries truth values; there must be as many in reading.
func (a *Archive) Bools(v []bool) {
	b := a.slice(kindBools, len(v), 1)
	if a.err != nil {
		return
	}
	for i := range v {
		switch {
		case a.reading:
			v[i] = b[i] != 0
		case v[i]:
			b[i] = 1
		}
	}
}

// Integers carries numbers of 32 bits; there must be as many in reading.
func (a *Archive) Integers(v []int32) {
	b := a.slice(kindInts, len(v), 4)
	if a.err != nil {
		return
	}
	for i := range v {
		if a.reading {
			v[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		} else {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(v[i]))
		}
	}
}

// Strings carries texts; there must be as many in reading.
func (a *Archive) Strings(v []string) {
	a.Count(len(v), "texts")
	for i := range v {
		a.String(&v[i])
	}
}

// Values carries signals by kind.
func (a *Archive) Values(v *Values) {
	a.Floats(v.Real)
	a.Integers(v.Integer)
	a.Bools(v.Boolean)
	a.Strings(v.String)
}

// Scalar carries the value of a variable.
func (a *Archive) Scalar(v *Scalar) {
	kind := int(v.Kind)
	a.Index(&kind, int(Real), int(String))
	v.Kind = Kind(kind)
	a.Float(&v.Real)
	number := int(v.Integer)
	a.Index(&number, math.MinInt32, math.MaxInt32)
	v.Integer = int32(number)
	a.Bool(&v.Boolean)
	a.String(&v.Text)
}

// Count carries a number that must be the same in reading; what tells of what.
func (a *Archive) Count(n int, what string) {
	was := n
	a.Int(&was)
	if a.err == nil && was != n {
		a.misfit("there were %d %s, and this run has %d", was, what, n)
	}
}

// Same carries a text that must be the same in reading; what tells of what.
func (a *Archive) Same(text, what string) {
	was := text
	a.String(&was)
	if a.err == nil && was != text {
		a.misfit("%s was %s, and is %s in this run", what, was, text)
	}
}

// Finish tells that everything was read.
func (a *Archive) Finish() error {
	if a.err == nil && a.reading && a.at != len(a.data) {
		a.misfit("%d bytes are left over", len(a.data)-a.at)
	}
	return a.err
}
