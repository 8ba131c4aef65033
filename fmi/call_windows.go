//go:build !macrostep_portable && windows && amd64

package fmi

import (
	"math"
	"runtime"
	"syscall"
	"time"
)

var clock = time.Now()

// CallPath names how FMUs are called: "trampoline" (one crossing into C for a
// whole step, no allocation), "syscall" (Windows: a crossing per call, no
// allocation) or "portable" (purego's reflected calls).
const CallPath = "syscall"

// run carries out a batch call by call. Win64 takes arguments by position
// whatever their kind, and the runtime loads integer and floating-point
// registers from the same slots, so that SyscallN serves every signature
// without allocation. Ticks are nanoseconds.
func run(b *batch) {
	runtime.LockOSThread() // the floating-point modes are the thread's
	defer runtime.UnlockOSThread()
	b.begin()
	b.start = uint64(time.Since(clock))
	recs, before := b.records(), modes()
	for k := range recs {
		r := &recs[k]
		b.done++
		b.mark(r.tag)
		if r.fn == 0 {
			r.ret = uintptr(time.Since(clock))
			continue
		}
		switch r.sig {
		case sigDoStep:
			r.ret, _, _ = syscall.SyscallN(r.fn, r.i[0], bits(r.f[0]), bits(r.f[1]), r.i[1])
		case sigExperiment:
			r.ret, _, _ = syscall.SyscallN(r.fn, r.i[0], r.i[1], bits(r.f[0]), bits(r.f[1]), r.i[2], bits(r.f[2]))
		default:
			r.ret, _, _ = syscall.SyscallN(r.fn, r.i[0], r.i[1], r.i[2], r.i[3], r.i[4], r.i[5], r.i[6])
		}
		b.keepModes(r, before)
		b.worst |= uintptr(uint32(r.ret))
		if uint32(r.ret) > uint32(StatusWarning) {
			break
		}
	}
	b.mark(0)
	b.end = uint64(time.Since(clock))
}

func bits(f float64) uintptr { return uintptr(math.Float64bits(f)) }
