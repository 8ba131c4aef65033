package fmi

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// record is one call of a C function, with the layout that the assembly
// trampolines know. Records stand in libc memory: the addresses in them mean
// nothing to Go's collector, and all they point to is libc memory too.
type record struct {
	fn  uintptr    // 0: no call, the time stamp goes to ret
	i   [7]uintptr // integer and pointer arguments in order; fmi2Instantiate has seven
	f   [3]float64 // floating-point arguments in order
	ret uintptr    // result; a Status is its low 32 bits
	sig uintptr    // how integer and floating-point arguments mix, see below
	tag tag        // what is called, for who looks at the batch meanwhile
}

// The FMI functions mix integer and floating-point arguments in three ways.
// Register-based ABIs number both kinds apart and ignore this; Win64 and the
// portable path need it.
const (
	sigInts       = iota // integers only
	sigDoStep            // int double double int
	sigExperiment        // int int double double int double
)

// sigModes is set in sig when the call, or one of the same instance before it in the crossing,
// left other floating-point modes than there were on entry. They are put back.
const sigModes = 1 << 8

func (r *record) status() Status { return Status(int32(uint32(r.ret))) }

// batch is a row of records that are called in one crossing. It stops after
// the first call whose status is not OK or Warning (compared unsigned, so that
// undefined statuses stop it too). It stands in libc memory.
type batch struct {
	n     uintptr
	recs  uintptr // address of the first record
	done  uintptr // records carried out; the last of them has the status that stopped the batch
	start uint64  // time stamps before the first record and after the last one, if it is timed
	end   uint64
	modes uintptr // not 0: a record of this crossing has sigModes

	tag        tag     // of the call under way; 0 = the crossing is over
	time, step float64 // s, where the instances are or the step begins, and its size; NaN = not known
	worst      uintptr // all statuses, or'ed: 0 = all calls returned OK
	untimed    uintptr // not 0: no time stamps are taken
	crossings  uint64
}

const batchSize = unsafe.Sizeof(batch{})

func (b *batch) records() []record {
	return unsafe.Slice((*record)(cptr(b.recs)), b.n)
}

// begin begins a crossing, where the trampoline does not do it.
func (b *batch) begin() {
	b.done, b.modes, b.worst = 0, 0, 0
	atomic.AddUint64(&b.crossings, 1)
}

// mark notes what is called, where the trampoline does not do it; 0 = nothing any more.
func (b *batch) mark(t tag) { atomic.StoreUint64((*uint64)(&b.tag), uint64(t)) }

// keepModes puts the floating-point modes back that a call has changed, and marks
// the call, where the trampoline does not do it. It is called on the same thread
// right after the call.
func (b *batch) keepModes(r *record, before uint64) {
	if modes() != before {
		setModes(before)
		r.sig |= sigModes
		b.modes = 1
	}
}

// cptr makes a pointer of an address in C memory. The detour keeps vet's rule
// on Go addresses out of it.
func cptr(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// span gives the ticks between two stamps. A thread that moves between
// processors whose counters differ must not make it negative.
func span(start, end uint64) uint64 {
	if end < start {
		return 0
	}
	return end - start
}

// ticker relates time-stamp ticks to Go's monotonic clock from the first use on.
var ticker struct {
	once  sync.Once
	b     *batch
	mu    sync.Mutex
	ticks uint64
	time  time.Time
}

// now reads the time stamp and the clock within two microseconds, if it is not interrupted
// again and again: an empty batch does nothing else.
func now() (uint64, time.Time) {
	for try := 0; ; try++ {
		t := time.Now()
		run(ticker.b)
		if try == 9 || time.Since(t) < 2*time.Microsecond {
			return ticker.b.end, t
		}
	}
}

// startTicker begins the calibration; it is called when the first library is loaded.
func startTicker() {
	ticker.once.Do(func() {
		p := calloc(batchSize)
		if p == nil {
			return
		}
		ticker.b = (*batch)(p)
		ticker.ticks, ticker.time = now()
	})
}

// TickRate gives the ticks per second of Stepper.Ticks and Instance.Ticks,
// measured against the monotonic clock since the first library was loaded. The
// longer ago that is, the better; the first 20 ms are waited for, which bounds
// the error to about 1e-4. Before a library is loaded it is 0.
func TickRate() float64 {
	if ticker.b == nil {
		return 0
	}
	ticker.mu.Lock()
	defer ticker.mu.Unlock()
	if d := 20*time.Millisecond - time.Since(ticker.time); d > 0 {
		time.Sleep(d)
	}
	k, t := now()
	return float64(k-ticker.ticks) / t.Sub(ticker.time).Seconds()
}
