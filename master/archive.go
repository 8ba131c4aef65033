package master

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// Archiver is a part of a run whose state is part of checkpoints: an algorithm, a recorder, a
// hook, or a subsystem that keeps values outside its State.
type Archiver interface {
	// Archive names each value of the state, for writing and reading.
	Archive(a *Archive)
}

// Archive writes the state of a run into a checkpoint, or reads it. Each method takes the address
// of a value and writes the value or reads it, so that one list of values serves both directions.
//
// When reading, the kind of each value, the lengths of slices and the names of sections must be
// those that were written. After the first mismatch, which is the error, nothing more is read.
type Archive struct {
	data    []byte
	at      int // of the next value to read
	reading bool
	section string
	err     error
}

// NewArchive returns an empty archive for writing.
func NewArchive() *Archive { return &Archive{} }

// ReadArchive returns an archive for reading data, which it keeps.
func ReadArchive(data []byte) *Archive { return &Archive{data: data, reading: true} }

// Reading reports whether the archive is read, not written.
func (a *Archive) Reading() bool { return a.reading }

// Data returns the bytes written so far.
func (a *Archive) Data() []byte { return a.data }

// Err returns the first error.
func (a *Archive) Err() error { return a.err }

// Fail sets the error of the archive, unless it has one.
func (a *Archive) Fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

var errArchive = errors.New("the saved state does not fit this run")

// misfit fails because of an unexpected value.
func (a *Archive) misfit(format string, args ...any) {
	where := ""
	if a.section != "" {
		where = " (" + a.section + ")"
	}
	a.Fail(fmt.Errorf("%w%s: %s", errArchive, where, fmt.Sprintf(format, args...)))
}

// Each value is encoded as its kind (one byte) and 64 bits: the value itself, or the number of
// bytes that follow.
const (
	kindSection byte = iota + 1
	kindFloat
	kindInt
	kindBool
	kindString
	kindBytes

	valueSize = 9 // bytes
)

// value writes a value, or returns the one read.
func (a *Archive) value(kind byte, bits uint64) (_ uint64, ok bool) {
	if a.err != nil {
		return 0, false
	}
	if !a.reading {
		a.data = append(a.data, kind)
		a.data = binary.LittleEndian.AppendUint64(a.data, bits)
		return bits, true
	}
	left := a.data[a.at:]
	switch {
	case len(left) < valueSize:
		a.misfit("it ends too early")
		return 0, false
	case left[0] != kind:
		a.misfit("a value is of another kind (%d, not %d)", left[0], kind)
		return 0, false
	}
	a.at += valueSize
	return binary.LittleEndian.Uint64(left[1:]), true
}

// bytes writes bytes, or returns those read.
func (a *Archive) bytes(kind byte, v []byte) (_ []byte, ok bool) {
	n, ok := a.value(kind, uint64(len(v)))
	if !ok {
		return nil, false
	}
	if !a.reading {
		a.data = append(a.data, v...)
		return v, true
	}
	if n > uint64(len(a.data)-a.at) {
		a.misfit("it ends too early")
		return nil, false
	}
	from := a.at
	a.at += int(n)
	return a.data[from:a.at], true
}

// Section names the values that follow, for messages. The name must be the same when reading.
func (a *Archive) Section(name string) {
	got, ok := a.bytes(kindSection, []byte(name))
	if ok && string(got) != name {
		a.misfit("it continues with %q, not %q", got, name)
	}
	if ok {
		a.section = name
	}
}

// Float carries a number, bit by bit.
func (a *Archive) Float(v *float64) {
	if n, ok := a.value(kindFloat, math.Float64bits(*v)); ok && a.reading {
		*v = math.Float64frombits(n)
	}
}

// Int carries an integer.
func (a *Archive) Int(v *int) {
	if n, ok := a.value(kindInt, uint64(*v)); ok && a.reading {
		*v = int(n)
	}
}

// Word carries 64 bits.
func (a *Archive) Word(v *uint64) {
	if n, ok := a.value(kindInt, *v); ok && a.reading {
		*v = n
	}
}

// Index carries an integer that must lie between lowest and highest.
func (a *Archive) Index(v *int, lowest, highest int) {
	n := *v
	a.Int(&n)
	switch {
	case a.err != nil:
	case n < lowest || n > highest:
		a.misfit("a number is %d; it must lie between %d and %d", n, lowest, highest)
	default:
		*v = n
	}
}

// Bool carries a truth value.
func (a *Archive) Bool(v *bool) {
	var b uint64
	if *v {
		b = 1
	}
	if n, ok := a.value(kindBool, b); ok && a.reading {
		*v = n != 0
	}
}

// String carries a text.
func (a *Archive) String(v *string) {
	if b, ok := a.bytes(kindString, []byte(*v)); ok {
		*v = string(b)
	}
}

// Bytes carries any number of bytes. When reading, they share memory with the archive's data.
func (a *Archive) Bytes(v *[]byte) {
	if b, ok := a.bytes(kindBytes, *v); ok && a.reading {
		*v = b
	}
}

// Floats carries numbers. When reading, there must be as many as were written; likewise for Ints
// and Bools.
func (a *Archive) Floats(v []float64) { each(a, v, a.Float) }

// Ints carries integers.
func (a *Archive) Ints(v []int) { each(a, v, a.Int) }

// Bools carries truth values.
func (a *Archive) Bools(v []bool) { each(a, v, a.Bool) }

func each[T any](a *Archive, v []T, carry func(*T)) {
	a.Count(len(v), "values")
	for i := 0; i < len(v) && a.err == nil; i++ {
		carry(&v[i])
	}
}

// FloatList carries any number of numbers. When reading, the slice gets their length.
func (a *Archive) FloatList(v *[]float64) { list(a, v, a.Float) }

// IntList carries any number of integers.
func (a *Archive) IntList(v *[]int) { list(a, v, a.Int) }

// list carries any number of values, each of which takes at least valueSize bytes.
func list[T any](a *Archive, v *[]T, carry func(*T)) {
	n := len(*v)
	if a.Int(&n); a.reading {
		if n < 0 || n > (len(a.data)-a.at)/valueSize {
			a.misfit("it ends too early")
		}
		if *v = (*v)[:0]; a.err != nil {
			return
		}
	}
	for i := 0; i < n && a.err == nil; i++ {
		if a.reading {
			var empty T
			*v = append(*v, empty)
		}
		carry(&(*v)[i])
	}
}

// All carries values by their addresses, in this order: numbers, truth values, texts, Scalars, and
// arrays, slices and structs of these. A slice may be passed by itself; when reading, it must have
// as many values as were written.
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
		case *Scalar:
			a.scalar(p)
		case []float64:
			a.Floats(p)
		default:
			v := reflect.ValueOf(place)
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			a.reflected(v)
		}
	}
}

// reflected carries a value of a type that All has no case for.
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
	case k == reflect.Array, k == reflect.Slice:
		a.Count(v.Len(), "values")
		for i := 0; i < v.Len() && a.err == nil; i++ {
			a.All(v.Index(i).Addr().Interface())
		}
	case k == reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			// Only an unsafe pointer gives access to unexported fields.
			a.All(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Interface())
		}
	default:
		a.Fail(fmt.Errorf("an archive cannot carry a %s", v.Type()))
	}
}

// scalar carries the value of a variable.
func (a *Archive) scalar(v *Scalar) {
	kind := int(v.Kind)
	a.Index(&kind, int(Real), int(String))
	v.Kind = Kind(kind)
	a.All(&v.Real, &v.Integer, &v.Boolean, &v.Text)
}

// Count carries a number that must be the same when reading; what describes it in messages.
func (a *Archive) Count(n int, what string) {
	was := n
	a.Int(&was)
	if a.err == nil && was != n {
		a.misfit("there were %d %s, and this run has %d", was, what, n)
	}
}

// Same carries a text that must be the same when reading; what describes it in messages.
func (a *Archive) Same(text, what string) {
	was := text
	a.String(&was)
	if a.err == nil && was != text {
		a.misfit("%s was %s, but is %s in this run", what, was, text)
	}
}

// Finish fails unless everything was read.
func (a *Archive) Finish() error {
	if a.err == nil && a.reading && a.at != len(a.data) {
		a.misfit("%d bytes are left over", len(a.data)-a.at)
	}
	return a.err
}
