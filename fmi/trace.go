package fmi

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Trace logs every call of its instances as a line:
//
//	0.001273 engine fmi2SetReal vr=[0 3] v=[1 2.5] -> OK 0.4µs
//
// with seconds since NewTrace, instance, function, arguments (the first 16 items of
// lists), status and duration. Each line is one Write. Steppers and groups with a
// traced instance enter C separately for each call, with the same results. Several
// instances and goroutines may share a trace.
type Trace struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
	err   error
}

// NewTrace makes a trace that writes to w.
func NewTrace(w io.Writer) *Trace { return &Trace{w: w, start: time.Now()} }

// Err returns the first error of the writer, after which nothing is written.
func (t *Trace) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// line is a line of a trace.
type line []byte

// add writes the line of a completed call.
func (t *Trace) add(in *Instance, f fmi2.Function, r *native.Record) {
	b := &in.line
	*b = (*b)[:0]
	b.decimal(max(time.Since(t.start)-in.took, 0).Round(time.Microsecond), time.Second, 6)
	b.call(in.name, f.String())
	b.describe(in, f, r)
	b.text(" -> ")
	switch f {
	case fmi2.Instantiate:
		if r.Ret == 0 {
			b.text("null")
		} else {
			b.text("component")
		}
	case fmi2.FreeInstance:
		b.text("void")
	default:
		b.text(Status(r.Status()).String())
	}
	b.text(" ")
	b.decimal(in.took.Round(100), time.Microsecond, 1)
	b.text("µs\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.w.Write(*b)
	}
}

// Line returns the line of a trace for a call that has not returned.
func (c Call) Line() string {
	b := line("-")
	b.call(c.Component, c.Function)
	if c.Timed {
		b.real(" t=", c.Time)
	}
	b.text(" -> unfinished\n")
	return string(b)
}

const (
	traceItems = 16
	traceText  = 200
)

func (b *line) text(s string) { *b = append(*b, s...) }

// call appends instance and function.
func (b *line) call(instance, f string) {
	b.text(" ")
	if strings.ContainsAny(instance, " \t\r\n") {
		*b = strconv.AppendQuote(*b, instance)
	} else {
		b.text(instance)
	}
	b.text(" ")
	b.text(f)
}

// decimal appends d ≥ 0 in a unit, with a number of decimal digits.
func (b *line) decimal(d, unit time.Duration, digits int) {
	*b = strconv.AppendInt(*b, int64(d/unit), 10)
	*b = append(*b, '.')
	for d %= unit; digits > 0; digits-- {
		d *= 10
		*b = append(*b, byte('0'+d/unit))
		d %= unit
	}
}

// int, real, hex and quote append a name and a value.
func (b *line) int(name string, v int64) {
	b.text(name)
	*b = strconv.AppendInt(*b, v, 10)
}

func (b *line) real(name string, v float64) {
	b.text(name)
	*b = strconv.AppendFloat(*b, v, 'g', -1, 64)
}

func (b *line) hex(name string, v uintptr) {
	b.text(name)
	b.text("0x")
	*b = strconv.AppendUint(*b, uint64(v), 16)
}

// quote appends the first 200 bytes of a C string.
func (b *line) quote(name string, p uintptr) {
	b.text(name)
	if p == 0 {
		b.text("null")
		return
	}
	s := native.Bytes(p, traceText)
	*b = strconv.AppendQuote(*b, unsafe.String(unsafe.SliceData(s), len(s)))
}

// list appends the first 16 of n values in C memory.
func list[T any](b *line, name string, p, n uintptr, item func(b *line, separator string, v T)) {
	b.text(name)
	b.text("[")
	separator := ""
	if n > 0 {
		for _, v := range unsafe.Slice((*T)(native.Pointer(p)), min(n, traceItems)) {
			item(b, separator, v)
			separator = " "
		}
	}
	if n > traceItems {
		b.int("…", int64(n))
	}
	b.text("]")
}

func (b *line) references(name string, p, n uintptr) {
	list(b, name, p, n, func(b *line, s string, v uint32) { b.int(s, int64(v)) })
}

func (b *line) ints(name string, p, n uintptr) {
	list(b, name, p, n, func(b *line, s string, v int32) { b.int(s, int64(v)) })
}

func (b *line) reals(name string, p, n uintptr) { list(b, name, p, n, (*line).real) }

func (b *line) quotes(name string, p, n uintptr) { list(b, name, p, n, (*line).quote) }

// describe appends the arguments and results of a call.
func (b *line) describe(in *Instance, f fmi2.Function, r *native.Record) {
	a := &r.Int
	switch f {
	case fmi2.Instantiate:
		b.quote(" name=", a[0])
		b.quote(" type=CoSimulation guid=", a[2])
		b.quote(" resources=", a[3])
		b.int(" visible=", int64(a[5]))
		b.int(" loggingOn=", int64(a[6]))
	case fmi2.SetDebugLogging:
		b.int(" on=", int64(a[1]))
		b.quotes(" categories=", a[3], a[2])
	case fmi2.SetupExperiment:
		b.int(" toleranceDefined=", int64(a[1]))
		b.real(" tolerance=", r.Float[0])
		b.real(" start=", r.Float[1])
		b.int(" stopDefined=", int64(a[2]))
		b.real(" stop=", r.Float[2])
	case fmi2.GetReal, fmi2.SetReal:
		b.references(" vr=", a[1], a[2])
		b.reals(" v=", a[3], a[2])
	case fmi2.GetInteger, fmi2.SetInteger, fmi2.GetBoolean, fmi2.SetBoolean:
		b.references(" vr=", a[1], a[2])
		b.ints(" v=", a[3], a[2])
	case fmi2.GetString, fmi2.SetString:
		b.references(" vr=", a[1], a[2])
		if f == fmi2.SetString || !native.Stops(r.Status()) {
			b.quotes(" v=", a[3], a[2])
		}
	case fmi2.GetFMUState, fmi2.FreeFMUState:
		b.hex(" state=", *in.handle)
	case fmi2.SetFMUState:
		b.hex(" state=", a[1])
	case fmi2.SerializedFMUStateSize:
		b.hex(" state=", a[1])
		b.int(" size=", int64(*in.size))
	case fmi2.SerializeFMUState:
		b.hex(" state=", a[1])
		b.int(" size=", int64(a[3]))
	case fmi2.DeSerializeFMUState:
		b.int(" size=", int64(a[2]))
		b.hex(" state=", *in.handle)
	case fmi2.GetDirectionalDerivative:
		b.references(" unknown=", a[1], a[2])
		b.references(" known=", a[3], a[4])
		b.reals(" dvKnown=", a[5], a[4])
		b.reals(" dvUnknown=", a[6], a[2])
	case fmi2.SetRealInputDerivatives, fmi2.GetRealOutputDerivatives:
		b.references(" vr=", a[1], a[2])
		b.ints(" order=", a[3], a[2])
		b.reals(" v=", a[4], a[2])
	case fmi2.DoStep:
		b.real(" t=", r.Float[0])
		b.real(" h=", r.Float[1])
		b.int(" noRestoreBefore=", int64(a[1]))
	case fmi2.GetStatus, fmi2.GetRealStatus, fmi2.GetIntegerStatus, fmi2.GetBooleanStatus, fmi2.GetStringStatus:
		b.status(f, r)
	}
}

// status appends kind and result of a status query.
func (b *line) status(f fmi2.Function, r *native.Record) {
	b.text(" kind=")
	b.text(StatusKind(r.Int[1]).String())
	switch value := native.Pointer(r.Int[2]); f {
	case fmi2.GetStatus:
		b.text(" value=")
		b.text(Status(*(*int32)(value)).String())
	case fmi2.GetRealStatus:
		b.real(" value=", *(*float64)(value))
	case fmi2.GetIntegerStatus, fmi2.GetBooleanStatus:
		b.int(" value=", int64(*(*int32)(value)))
	case fmi2.GetStringStatus:
		if !native.Stops(r.Status()) {
			b.quote(" value=", *(*uintptr)(value))
		}
	}
}
