package master

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
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

// Reading reports whether state is read in, not written out.
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

// holds fails unless n values of a size can be left to read.
func (a *Archive) holds(n uint64, size int) bool {
	if a.reading && n > uint64((len(a.data)-a.at)/size) {
		a.misfit("it ends too early")
		return false
	}
	return true
}

// room returns the place of n values of a size, after the length that begin wrote
// or read.
func (a *Archive) room(n uint64, size int) []byte {
	if !a.reading {
		at := len(a.data)
		a.data = append(a.data, make([]byte, int(n)*size)...)
		return a.data[at:]
	}
	if !a.holds(n, size) {
		return nil
	}
	at := a.at
	a.at += int(n) * size
	return a.data[at:a.at]
}

// bytes carries bytes of any number, and returns those that were written or read.
func (a *Archive) bytes(kind byte, v []byte) ([]byte, bool) {
	n, ok := a.begin(kind, uint64(len(v)))
	if !ok {
		return nil, false
	}
	b := a.room(n, 1)
	if !a.reading {
		copy(b, v)
	}
	return b, a.err == nil
}

// numbers carries a slice of n values of a size that package binary knows; what is read must
// have as many.
func (a *Archive) numbers(kind byte, n, size int, v any) {
	was, ok := a.begin(kind, uint64(n))
	if ok && was != uint64(n) {
		a.misfit("there are %d values where this run has %d", was, n)
		ok = false
	}
	if ok {
		a.elements(was, size, v)
	}
}

// elements carries the n values of a slice after its length.
func (a *Archive) elements(n uint64, size int, v any) {
	b := a.room(n, size)
	if a.err != nil {
		return
	}
	var err error
	if a.reading {
		_, err = binary.Decode(b, binary.LittleEndian, v)
	} else {
		_, err = binary.Encode(b, binary.LittleEndian, v)
	}
	a.Fail(err)
}

// Section names what follows, for messages; it must be there in reading too.
func (a *Archive) Section(name string) {
	got, ok := a.bytes(kindSection, []byte(name))
	if ok && string(got) != name {
		a.misfit("here stands %q, not %q", got, name)
	}
	if ok {
		a.section = name
	}
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
	if b, ok := a.bytes(kindString, []byte(*v)); ok {
		*v = string(b)
	}
}

// Bytes carries bytes of any number. What is read is a part of the archive's data.
func (a *Archive) Bytes(v *[]byte) {
	if b, ok := a.bytes(kindBytes, *v); ok && a.reading {
		*v = b
	}
}

// Floats carries numbers; there must be as many in reading.
func (a *Archive) Floats(v []float64) { a.numbers(kindFloats, len(v), 8, v) }

// FloatList carries numbers of any number; the slice is made as long as what is read.
func (a *Archive) FloatList(v *[]float64) {
	if n, ok := a.begin(kindFloats, uint64(len(*v))); ok && a.holds(n, 8) {
		*v = resized(*v, int(n))
		a.elements(n, 8, *v)
	}
}

// Ints writes or reads integers; as many must be read as were written.
func (a *Archive) Ints(v []int) {
	words := toWords(v)
	a.numbers(kindInts, len(v), 8, words)
	fromWords(v, words)
}

func toWords(v []int) []int64 {
	words := make([]int64, len(v))
	for i := range v {
		words[i] = int64(v[i])
	}
	return words
}

func fromWords(v []int, words []int64) {
	for i := range v {
		v[i] = int(words[i])
	}
}

// IntList carries whole numbers of any number.
func (a *Archive) IntList(v *[]int) {
	if n, ok := a.begin(kindInts, uint64(len(*v))); ok && a.holds(n, 8) {
		*v = resized(*v, int(n))
		words := toWords(*v)
		a.elements(n, 8, words)
		fromWords(*v, words)
	}
}

func resized[T any](v []T, n int) []T {
	if n <= cap(v) {
		return v[:n]
	}
	return make([]T, n)
}

// Bools carries truth values; there must be as many in reading.
func (a *Archive) Bools(v []bool) { a.numbers(kindBools, len(v), 1, v) }

// Integers carries numbers of 32 bits; there must be as many in reading.
func (a *Archive) Integers(v []int32) { a.numbers(kindInts, len(v), 4, v) }

// Strings carries texts; there must be as many in reading.
func (a *Archive) Strings(v []string) {
	a.Count(len(v), "texts")
	for i := range v {
		a.String(&v[i])
	}
}

// All carries the values that places point to, in their order: numbers, truth values, texts,
// Values and Scalars, and arrays and structs of these, field by field. A slice is itself a place,
// of as many values in reading.
func (a *Archive) All(places ...any) {
	for _, place := range places {
		switch p := place.(type) {
		case *float64:
			a.Float(p)
		case *int:
			a.Int(p)
		case *uint64:
			a.Word(p)
		case *bool:
			a.Bool(p)
		case *string:
			a.String(p)
		case *Values:
			a.Values(p)
		case *Scalar:
			a.Scalar(p)
		case []float64:
			a.Floats(p)
		case []int:
			a.Ints(p)
		case []bool:
			a.Bools(p)
		default:
			a.reflected(reflect.ValueOf(place).Elem())
		}
	}
}

// reflected carries a value of a type that All has no method for.
func (a *Archive) reflected(v reflect.Value) {
	bits := func(is uint64, set func(uint64)) {
		a.Word(&is)
		set(is)
	}
	switch k := v.Kind(); {
	case v.CanInt():
		bits(uint64(v.Int()), func(is uint64) { v.SetInt(int64(is)) })
	case v.CanUint():
		bits(v.Uint(), v.SetUint)
	case v.CanFloat():
		bits(math.Float64bits(v.Float()), func(is uint64) { v.SetFloat(math.Float64frombits(is)) })
	case v.CanComplex():
		re, im := real(v.Complex()), imag(v.Complex())
		a.All(&re, &im)
		v.SetComplex(complex(re, im))
	case k == reflect.Bool:
		is := v.Bool()
		a.Bool(&is)
		v.SetBool(is)
	case k == reflect.String:
		is := v.String()
		a.String(&is)
		v.SetString(is)
	case k == reflect.Array:
		for i := range v.Len() {
			a.All(v.Index(i).Addr().Interface())
		}
	case k == reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			// Unexported fields cannot be set otherwise.
			a.All(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Interface())
		}
	default:
		a.Fail(fmt.Errorf("an archive carries no %s", v.Type()))
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

// Count carries a number that must be the same in reading; what names it in messages.
func (a *Archive) Count(n int, what string) {
	was := n
	a.Int(&was)
	if a.err == nil && was != n {
		a.misfit("there were %d %s, and this run has %d", was, what, n)
	}
}

// Same carries a text that must be the same in reading; what names it in messages.
func (a *Archive) Same(text, what string) {
	was := text
	a.String(&was)
	if a.err == nil && was != text {
		a.misfit("%s was %s, and is %s in this run", what, was, text)
	}
}

// Finish fails unless everything was read.
func (a *Archive) Finish() error {
	if a.err == nil && a.reading && a.at != len(a.data) {
		a.misfit("%d bytes are left over", len(a.data)-a.at)
	}
	return a.err
}
