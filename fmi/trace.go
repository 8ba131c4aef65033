package fmi

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Trace logs every call of its instances as a line:
//
//	0.001273 engine fmi2SetReal vr=[0 3] v=[1 2.5] -> OK 0.4µs
//
// with seconds since NewTrace, instance, function, arguments (the first 16 items of
// lists), status and duration. Each line is one Write. Steppers and batches with a
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
func (t *Trace) add(in *Instance, f capi.Function, r *native.Record) {
	b := &in.line
	*b = (*b)[:0]
	b.decimal(max(time.Since(t.start)-in.took, 0).Round(time.Microsecond).Seconds(), 6)
	b.call(in.name, f.String())
	b.describe(f, r)
	b.text(" -> ")
	switch f {
	case capi.Instantiate:
		if r.Ret == 0 {
			b.text("null")
		} else {
			b.text("component")
		}
	case capi.FreeInstance:
		b.text("void")
	default:
		b.text(Status(r.Status()).String())
	}
	b.text(" ")
	b.decimal(float64(in.took.Round(100))/1e3, 1)
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
		b.text(" t=")
		b.real(c.Time)
	}
	b.text(" -> unfinished\n")
	return string(b)
}

const (
	traceItems = 16
	traceText  = 200 // first bytes of a C string
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

// decimal appends a number with some decimal digits.
func (b *line) decimal(v float64, digits int) { *b = strconv.AppendFloat(*b, v, 'f', digits, 64) }

func (b *line) real(v float64) { *b = strconv.AppendFloat(*b, v, 'g', -1, 64) }

// describe appends the arguments and results of a call.
func (b *line) describe(f capi.Function, r *native.Record) {
	shape := f.Shape()
	for k := range shape {
		a := &shape[k]
		if a.Name == "" {
			continue
		}
		b.text(" ")
		b.text(a.Name)
		b.text("=")
		switch {
		case a.Float():
			b.real(r.Float[a.At])
		case !a.Array:
			b.value(a.Type, unsafe.Pointer(&r.Int[a.At]))
		case a.Type == "text" && a.Out && native.Stops(r.Status()):
			b.text("?")
		case a.Elements(r) == 1 && a.One():
			b.value(a.Type, native.Pointer(r.Int[a.At]))
		default:
			b.list(a, r)
		}
	}
}

// list appends the first 16 elements of an array.
func (b *line) list(a *capi.Argument, r *native.Record) {
	b.text("[")
	n := a.Elements(r)
	for k := range min(n, traceItems) {
		if k > 0 {
			b.text(" ")
		}
		b.value(a.Type, native.Pointer(r.Int[a.At]+k*a.Size()))
	}
	if n > traceItems {
		b.text("…")
		*b = strconv.AppendUint(*b, uint64(n), 10)
	}
	b.text("]")
}

// value appends a value of a type of package fmi2.
func (b *line) value(kind string, p unsafe.Pointer) {
	switch kind {
	case "ref":
		*b = strconv.AppendUint(*b, uint64(*(*uint32)(p)), 10)
	case "real":
		b.real(*(*float64)(p))
	case "text":
		if *(*uintptr)(p) == 0 {
			b.text("null")
			break
		}
		s := native.Bytes(*(*uintptr)(p), traceText)
		*b = strconv.AppendQuote(*b, unsafe.String(unsafe.SliceData(s), len(s)))
	case "state", "slot":
		b.text("0x")
		*b = strconv.AppendUint(*b, *(*uint64)(p), 16)
	case "kind":
		b.text(StatusKind(*(*int32)(p)).String())
	case "status":
		b.text(Status(*(*int32)(p)).String())
	case "interface":
		b.text("CoSimulation")
	case "count", "word":
		*b = strconv.AppendInt(*b, *(*int64)(p), 10)
	default:
		*b = strconv.AppendInt(*b, int64(*(*int32)(p)), 10)
	}
}
