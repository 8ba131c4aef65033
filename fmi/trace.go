package fmi

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Trace writes every call of the instances that it is given to, one line each:
//
//	0.001273 engine fmi2SetReal vr=[0 3] v=[1 2.5] -> OK 0.4µs
//
// that is seconds since NewTrace, instance, function, arguments (of lists the
// first 16), status and duration. A line is one Write. The steppers and groups
// of a traced instance go call by call, with the same outcome. Several instances
// may share a trace, also from several goroutines.
type Trace struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
	err   error
}

// NewTrace makes a trace that writes to w.
func NewTrace(w io.Writer) *Trace { return &Trace{w: w, start: time.Now()} }

// Err gives the first error of the writer; after it nothing more is written.
func (t *Trace) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// add writes the line for a record that has been carried out.
func (t *Trace) add(in *Instance, f function, r *record) {
	var b strings.Builder
	name := in.name
	if strings.ContainsAny(name, " \t\r\n") {
		name = strconv.Quote(name)
	}
	fmt.Fprintf(&b, "%.6f %s %s", (time.Since(t.start) - in.took).Seconds(), name, f)
	describe(&b, in, f, r)
	switch f {
	case fnInstantiate:
		if r.ret == 0 {
			b.WriteString(" -> null")
		} else {
			b.WriteString(" -> component")
		}
	case fnFreeInstance:
		b.WriteString(" -> void")
	default:
		fmt.Fprintf(&b, " -> %s", r.status())
	}
	fmt.Fprintf(&b, " %.1fµs\n", float64(in.took.Nanoseconds())/1e3)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = io.WriteString(t.w, b.String())
	}
}

const (
	traceItems = 16
	traceText  = 200
)

// describe writes the arguments of a call, and what it gave back.
func describe(b *strings.Builder, in *Instance, f function, r *record) {
	a := &r.i
	switch f {
	case fnInstantiate:
		fmt.Fprintf(b, " name=%s type=CoSimulation guid=%s resources=%s visible=%d loggingOn=%d",
			text(a[0]), text(a[2]), text(a[3]), a[5], a[6])
	case fnSetDebugLogging:
		fmt.Fprintf(b, " on=%d categories=%s", a[1], texts(a[3], a[2]))
	case fnSetupExperiment:
		fmt.Fprintf(b, " toleranceDefined=%d tolerance=%v start=%v stopDefined=%d stop=%v", a[1], r.f[0], r.f[1], a[2], r.f[2])
	case fnGetReal, fnSetReal:
		fmt.Fprintf(b, " vr=%s v=%s", list[uint32](a[1], a[2]), list[float64](a[3], a[2]))
	case fnGetInteger, fnSetInteger, fnGetBoolean, fnSetBoolean:
		fmt.Fprintf(b, " vr=%s v=%s", list[uint32](a[1], a[2]), list[int32](a[3], a[2]))
	case fnSetString:
		fmt.Fprintf(b, " vr=%s v=%s", list[uint32](a[1], a[2]), texts(a[3], a[2]))
	case fnGetString:
		fmt.Fprintf(b, " vr=%s", list[uint32](a[1], a[2]))
		if !stops(r.status()) {
			fmt.Fprintf(b, " v=%s", texts(a[3], a[2]))
		}
	case fnGetFMUState, fnFreeFMUState:
		fmt.Fprintf(b, " state=%#x", *in.handle)
	case fnSetFMUState:
		fmt.Fprintf(b, " state=%#x", a[1])
	case fnSerializedFMUStateSize:
		fmt.Fprintf(b, " state=%#x size=%d", a[1], *in.size)
	case fnSerializeFMUState:
		fmt.Fprintf(b, " state=%#x size=%d", a[1], a[3])
	case fnDeSerializeFMUState:
		fmt.Fprintf(b, " size=%d state=%#x", a[2], *in.handle)
	case fnGetDirectionalDerivative:
		fmt.Fprintf(b, " unknown=%s known=%s dvKnown=%s dvUnknown=%s", list[uint32](a[1], a[2]), list[uint32](a[3], a[4]),
			list[float64](a[5], a[4]), list[float64](a[6], a[2]))
	case fnSetRealInputDerivatives, fnGetRealOutputDerivatives:
		fmt.Fprintf(b, " vr=%s order=%s v=%s", list[uint32](a[1], a[2]), list[int32](a[3], a[2]), list[float64](a[4], a[2]))
	case fnDoStep:
		fmt.Fprintf(b, " t=%v h=%v noRestoreBefore=%d", r.f[0], r.f[1], a[1])
	case fnGetStatus:
		fmt.Fprintf(b, " kind=%s value=%s", StatusKind(a[1]), Status(*(*int32)(cptr(a[2]))))
	case fnGetRealStatus:
		fmt.Fprintf(b, " kind=%s value=%v", StatusKind(a[1]), *(*float64)(cptr(a[2])))
	case fnGetIntegerStatus, fnGetBooleanStatus:
		fmt.Fprintf(b, " kind=%s value=%d", StatusKind(a[1]), *(*int32)(cptr(a[2])))
	case fnGetStringStatus:
		fmt.Fprintf(b, " kind=%s", StatusKind(a[1]))
		if !stops(r.status()) {
			fmt.Fprintf(b, " value=%s", text(*(*uintptr)(cptr(a[2]))))
		}
	}
}

// text quotes a C string, bounded.
func text(p uintptr) string {
	if p == 0 {
		return "null"
	}
	return strconv.Quote(cstring(p, traceText))
}

// list writes an array in C memory, bounded.
func list[T any](p, n uintptr) string {
	s := fmt.Sprint(unsafe.Slice((*T)(cptr(p)), min(n, traceItems)))
	if n > traceItems {
		s = fmt.Sprintf("%s…%d]", s[:len(s)-1], n)
	}
	return s
}

// texts writes an array of C strings, bounded.
func texts(p, n uintptr) string {
	var out []string
	if n > 0 {
		for _, q := range unsafe.Slice((*uintptr)(cptr(p)), min(n, traceItems)) {
			out = append(out, text(q))
		}
	}
	s := strings.Join(out, " ")
	if n > traceItems {
		s += fmt.Sprintf("…%d", n)
	}
	return "[" + s + "]"
}
