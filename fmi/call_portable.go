package fmi

import (
	"runtime"
	"sync"
	"time"

	"github.com/ebitengine/purego"
)

// portable caches the functions that purego makes: they cost a reflected type
// each, and a symbol is called many times.
var portable struct {
	ints, doStep, experiment sync.Map // address -> function
	origin                   time.Time
	once                     sync.Once
}

type (
	intsFunc       = func(a, b, c, d, e, f, g uintptr) uintptr
	doStepFunc     = func(c uintptr, t, h float64, b uintptr) uintptr
	experimentFunc = func(c, tolDefined uintptr, tol, start float64, stopDefined uintptr, stop float64) uintptr
)

// bound gives the Go function for a C function at an address.
func bound[F any](m *sync.Map, addr uintptr) F {
	if f, ok := m.Load(addr); ok {
		return f.(F)
	}
	var f F
	purego.RegisterFunc(&f, addr)
	m.Store(addr, f)
	return f
}

// runPortable carries out a batch call by call through purego's ordinary
// functions. It has the same outcome as the trampolines at ten times the cost;
// ticks are nanoseconds.
func runPortable(b *batch) {
	portable.once.Do(func() { portable.origin = time.Now() })
	b.begin()
	b.start = uint64(time.Since(portable.origin))
	if b.n > 0 {
		runtime.LockOSThread() // the modes are the thread's
		callPortable(b)
		runtime.UnlockOSThread()
	}
	b.mark(0)
	b.end = uint64(time.Since(portable.origin))
}

func callPortable(b *batch) {
	recs, before := b.records(), modes()
	for k := range recs {
		r := &recs[k]
		b.done++
		b.mark(r.tag)
		switch {
		case r.fn == 0:
			r.ret = uintptr(time.Since(portable.origin))
			continue
		case r.sig == sigDoStep:
			r.ret = bound[doStepFunc](&portable.doStep, r.fn)(r.i[0], r.f[0], r.f[1], r.i[1])
		case r.sig == sigExperiment:
			r.ret = bound[experimentFunc](&portable.experiment, r.fn)(r.i[0], r.i[1], r.f[0], r.f[1], r.i[2], r.f[2])
		default:
			r.ret = bound[intsFunc](&portable.ints, r.fn)(r.i[0], r.i[1], r.i[2], r.i[3], r.i[4], r.i[5], r.i[6])
		}
		leaveFork()
		b.keepModes(r, before)
		b.worst |= uintptr(uint32(r.ret))
		if uint32(r.ret) > uint32(StatusWarning) {
			return
		}
	}
}
