//go:build !macrostep_portable && windows && amd64

package native

import (
	"math"
	"runtime"
	"syscall"
	"time"
)

var clock = time.Now()

// CallPath is the method of calling batches.
const CallPath = "syscall"

// Run calls a batch one by one. Win64 passes arguments by position for both kinds, and the
// runtime loads integer and floating-point registers from the same slots, so SyscallN is
// suitable for every signature, without allocation. Ticks are nanoseconds.
func Run(b *Batch) {
	runtime.LockOSThread() // floating-point modes belong to the thread
	defer runtime.UnlockOSThread()
	b.Begin()
	b.Start = uint64(time.Since(clock))
	recs, before := b.Records(), modes()
	for k := range recs {
		r := &recs[k]
		b.Done++
		b.mark(r.Tag)
		if r.Fn == 0 {
			r.Ret = uintptr(time.Since(clock))
			continue
		}
		switch r.Sig {
		case SigIFFI:
			r.Ret, _, _ = syscall.SyscallN(r.Fn, r.Int[0], bits(r.Float[0]), bits(r.Float[1]),
				r.Int[1], r.Int[2], r.Int[3], r.Int[4], r.Int[5])
		case SigIIFFIF:
			r.Ret, _, _ = syscall.SyscallN(r.Fn, r.Int[0], r.Int[1], bits(r.Float[0]), bits(r.Float[1]), r.Int[2], bits(r.Float[2]))
		case SigLong:
			r.Ret, _, _ = syscall.SyscallN(r.Fn, r.Int[:]...)
		default:
			r.Ret, _, _ = syscall.SyscallN(r.Fn, r.Int[:7]...)
		}
		b.keepModes(r, before)
		b.Worst |= uintptr(uint32(r.Ret))
		if Stops(r.Status()) {
			break
		}
	}
	b.mark(0)
	b.End = uint64(time.Since(clock))
}

func bits(f float64) uintptr { return uintptr(math.Float64bits(f)) }
