package master

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// Archiver is a part of a run whose state is part of checkpoints: an algorithm, a recorder, a
// hook, or a subsystem that keeps values outside its State.
type Archiver interface {
	// Archive passes the whole state to a, for writing and reading.
	Archive(a *Archive)
}

// Archive writes the state of a run into a checkpoint, or reads it. A part keeps its state in a struct of
// plain data, apart from configuration and scratch, and passes the address of the struct to All, so that
// one line serves both directions and no field is forgotten.
//
// When reading, the types must be those that were written. After the first error nothing more is read.
type Archive struct {
	data    []byte // without mark and checksum
	at      int    // of the next value to read
	reading bool
	section string
	err     error
}

// archiveMark begins the bytes of an archive. Its number changes with their meaning.
const archiveMark = "macrostep state 3\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewArchive returns an empty archive for writing.
func NewArchive() *Archive { return &Archive{} }

// ReadArchive returns an archive for reading data, which it keeps.
func ReadArchive(data []byte) *Archive {
	a := &Archive{reading: true}
	body, ours := bytes.CutPrefix(data, []byte(archiveMark))
	end := len(body) - crc32.Size
	switch {
	case !ours:
		a.Fail(errors.New("the saved state has another format: resume it with the version of macrostep that wrote it"))
	case end < 0 || binary.LittleEndian.Uint32(body[end:]) != crc32.Checksum(body[:end], castagnoli):
		a.Fail(errors.New("the saved state is damaged: its checksum is wrong"))
	default:
		a.data = body[:end:end]
	}
	return a
}

// Reading reports whether the archive is read, not written.
func (a *Archive) Reading() bool { return a.reading }

// Data returns the bytes written so far.
func (a *Archive) Data() []byte {
	data := append(append(make([]byte, 0, len(archiveMark)+len(a.data)+crc32.Size), archiveMark...), a.data...)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(a.data, castagnoli))
}

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

// Section names the values that follow, for messages. The name must be the same when reading.
func (a *Archive) Section(name string) {
	a.Same(name, "the next part")
	a.section = name
}

// Same carries a value that must print the same when reading; what describes it in messages.
func (a *Archive) Same(value any, what string) {
	is := fmt.Sprint(value)
	was := is
	if a.All(&was); a.err == nil && was != is {
		a.misfit("%s was %s, but is %s in this run", what, was, is)
	}
}

// All carries values by their addresses, in this order: numbers, truth values, texts, and arrays, slices
// and structs of these. A slice may also be passed by itself.
//
// When reading, a slice that is passed by its address, or is empty, gets the values that were written; any
// other must have as many. Slices of bytes then share memory with the archive's data.
func (a *Archive) All(places ...any) {
	types := fnv.New64a()
	for _, place := range places {
		describe(types, reflect.TypeOf(place), nil)
	}
	if a.word(types.Sum64()) != types.Sum64() {
		a.misfit("its values have other types")
	}
	for _, place := range places {
		v := reflect.ValueOf(place)
		if v.Kind() == reflect.Pointer {
			if v = v.Elem(); a.reading && a.err == nil && v.Kind() == reflect.Slice {
				v.SetZero()
			}
		}
		a.carry(v)
	}
}

// describe writes what a type consists of. It stops at a struct within itself.
func describe(to io.Writer, t reflect.Type, within []reflect.Type) {
	_, _ = io.WriteString(to, t.Kind().String())
	switch k := t.Kind(); {
	case slices.Contains(within, t):
	case k == reflect.Struct:
		for i := range t.NumField() {
			_, _ = io.WriteString(to, "."+t.Field(i).Name+" ")
			describe(to, t.Field(i).Type, append(within, t))
		}
	case k == reflect.Array, k == reflect.Pointer, k == reflect.Slice:
		describe(to, t.Elem(), append(within, t))
	}
}

// carry writes a value, or reads it.
func (a *Archive) carry(v reflect.Value) {
	bits := func(is uint64, set func(uint64)) {
		if is = a.word(is); a.reading && a.err == nil {
			set(is)
		}
	}
	switch k := v.Kind(); {
	case a.err != nil:
	case v.CanInt():
		bits(uint64(v.Int()), func(is uint64) { v.SetInt(int64(is)) })
	case v.CanUint():
		bits(v.Uint(), v.SetUint)
	case v.CanFloat():
		bits(math.Float64bits(v.Float()), func(is uint64) { v.SetFloat(math.Float64frombits(is)) })
	case v.CanComplex():
		re, im := real(v.Complex()), imag(v.Complex())
		a.carry(reflect.ValueOf(&re).Elem())
		a.carry(reflect.ValueOf(&im).Elem())
		v.SetComplex(complex(re, im))
	case k == reflect.Bool:
		is := uint64(0)
		if v.Bool() {
			is = 1
		}
		bits(is, func(is uint64) { v.SetBool(is != 0) })
	case k == reflect.String:
		v.SetString(string(a.bytes([]byte(v.String()), a.length(v.Len()))))
	case k == reflect.Slice:
		a.slice(v)
	case k == reflect.Array:
		for i := range v.Len() {
			a.carry(v.Index(i))
		}
	case k == reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i) // only an unsafe pointer gives access to unexported fields
			a.carry(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem())
		}
	default:
		a.Fail(fmt.Errorf("an archive cannot carry a %s", v.Type()))
	}
}

// slice carries the length and the values of a slice. Memory is allocated only as values are read.
func (a *Archive) slice(v reflect.Value) {
	n := a.length(v.Len())
	if n != v.Len() && (v.Len() > 0 || !v.CanSet()) {
		a.misfit("there were %d values, and this run has %d", n, v.Len())
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if b := a.bytes(v.Bytes(), n); v.CanSet() && v.Len() == 0 {
			v.SetBytes(b)
		} else {
			copy(v.Bytes(), b)
		}
		return
	}
	for i := 0; i < n && a.err == nil; i++ {
		if i == v.Len() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		a.carry(v.Index(i))
	}
}

// word writes 64 bits, or returns those read.
func (a *Archive) word(bits uint64) uint64 {
	switch {
	case a.err != nil:
	case !a.reading:
		a.data = binary.LittleEndian.AppendUint64(a.data, bits)
	case len(a.data)-a.at < 8:
		a.misfit("it ends too early")
	default:
		bits = binary.LittleEndian.Uint64(a.data[a.at:])
		a.at += 8
	}
	return bits
}

// length writes a number of values of at least a byte each, or returns the one read.
func (a *Archive) length(is int) int {
	n := a.word(uint64(is))
	if a.reading && a.err == nil && n > uint64(len(a.data)-a.at) {
		a.misfit("it ends too early")
	}
	return int(n)
}

// bytes writes bytes, or returns the n bytes read.
func (a *Archive) bytes(b []byte, n int) []byte {
	switch {
	case a.err != nil:
	case !a.reading:
		a.data = append(a.data, b...)
	default:
		b = a.data[a.at : a.at+n : a.at+n]
		a.at += n
	}
	return b
}

// Finish fails unless everything was read.
func (a *Archive) Finish() error {
	if a.err == nil && a.reading && a.at != len(a.data) {
		a.misfit("%d bytes are left over", len(a.data)-a.at)
	}
	return a.err
}
