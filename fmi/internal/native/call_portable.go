package native

import (
	"runtime"
	"sync"
	"time"

	"github.com/ebitengine/purego"
)

// portable caches the functions of purego, which are expensive to make.
var portable struct {
	ints, long, doStep, experiment sync.Map // address -> function
	origin                         time.Time
	once                           sync.Once
}

type (
	intsFunc       = func(a, b, c, d, e, f, g uintptr) uintptr
	longFunc       = func(a, b, c, d, e, f, g, h, i, j, k, l uintptr) uintptr
	doStepFunc     = func(c uintptr, t, h float64, b, d, e, f, g uintptr) uintptr
	experimentFunc = func(c, tolDefined uintptr, tol, start float64, stopDefined uintptr, stop float64) uintptr
)

// bound returns the Go function for a C function at an address.
func bound[F any](m *sync.Map, addr uintptr) F {
	if f, ok := m.Load(addr); ok {
		return f.(F)
	}
	var f F
	purego.RegisterFunc(&f, addr)
	m.Store(addr, f)
	return f
}

// RunPortable calls a batch one by one through functions of purego. Its results are those
// of the trampolines, at ten times the cost. Ticks are nanoseconds.
func RunPortable(b *Batch) {
	portable.once.Do(func() { portable.origin = time.Now() })
	b.Begin()
	b.Start = uint64(time.Since(portable.origin))
	if b.N > 0 {
		runtime.LockOSThread() // floating-point modes belong to the thread
		callPortable(b)
		runtime.UnlockOSThread()
	}
	b.mark(0)
	b.End = uint64(time.Since(portable.origin))
}

func callPortable(b *Batch) {
	recs, before := b.Records(), modes()
	for k := range recs {
		r := &recs[k]
		i := &r.Int
		b.Done++
		b.mark(r.Tag)
		switch {
		case r.Fn == 0:
			r.Ret = uintptr(time.Since(portable.origin))
			continue
		case r.Sig == SigIFFI:
			r.Ret = bound[doStepFunc](&portable.doStep, r.Fn)(i[0], r.Float[0], r.Float[1], i[1], i[2], i[3], i[4], i[5])
		case r.Sig == SigIIFFIF:
			call := bound[experimentFunc](&portable.experiment, r.Fn)
			r.Ret = call(i[0], i[1], r.Float[0], r.Float[1], i[2], r.Float[2])
		case r.Sig == SigLong:
			call := bound[longFunc](&portable.long, r.Fn)
			r.Ret = call(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11])
		default:
			call := bound[intsFunc](&portable.ints, r.Fn)
			r.Ret = call(i[0], i[1], i[2], i[3], i[4], i[5], i[6])
		}
		leaveFork()
		b.keepModes(r, before)
		b.Worst |= uintptr(uint32(r.Ret))
		if Stops(r.Status()) {
			return
		}
	}
}
