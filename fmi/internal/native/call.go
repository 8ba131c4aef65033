package native

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Record is one call of a C function, with the layout that the assembly
// trampolines know. Records stand in libc memory: the addresses in them mean
// nothing to Go's collector, and all they point to is libc memory too.
type Record struct {
	Fn    uintptr    // 0: no call, the time stamp goes to ret
	Int   [7]uintptr // integer and pointer arguments in order; fmi2Instantiate has seven
	Float [3]float64 // floating-point arguments in order
	Ret   uintptr    // result; a Status is its low 32 bits
	Sig   uintptr    // how integer and floating-point arguments mix, see below
	Tag   Tag        // what is called, for who looks at the batch meanwhile
}

// The FMI functions mix integer and floating-point arguments in three ways.
// Register-based ABIs number both kinds apart and ignore this; Win64 and the
// portable path need it.
const (
	SigInts   = iota // integers only
	SigIFFI          // int double double int
	SigIIFFIF        // int int double double int double
)

// SigModes is set in sig when the call, or one of the same instance before it in the crossing,
// left other floating-point modes than there were on entry. They are put back.
const SigModes = 1 << 8

// Status returns the result as the status that functions of FMUs return.
func (r *Record) Status() int32 { return int32(uint32(r.Ret)) }

// Stops reports whether a status ends a batch: anything but OK and Warning.
func Stops(status int32) bool { return uint32(status) > 1 }

// Batch is a row of records that are called in one crossing. It stops after
// the first call whose status is not OK or Warning (compared unsigned, so that
// undefined statuses stop it too). It stands in libc memory.
type Batch struct {
	N     uintptr
	Recs  uintptr // address of the first record
	Done  uintptr // records carried out; the last of them has the status that stopped the batch
	Start uint64  // time stamps before the first record and after the last one, if it is timed
	End   uint64
	Modes uintptr // not 0: a record of this crossing has sigModes

	tag        Tag     // of the call under way; 0 = the crossing is over
	Time, Step float64 // s, where the instances are or the step begins, and its size; NaN = not known
	Worst      uintptr // all statuses, or'ed: 0 = all calls returned OK
	Untimed    uintptr // not 0: no time stamps are taken
	crossings  uint64
}

const BatchSize = unsafe.Sizeof(Batch{})

func (b *Batch) Records() []Record {
	return unsafe.Slice((*Record)(Pointer(b.Recs)), b.N)
}

// Begin begins a crossing, where the trampoline does not do it.
func (b *Batch) Begin() {
	b.Done, b.Modes, b.Worst = 0, 0, 0
	atomic.AddUint64(&b.crossings, 1)
}

// mark notes what is called, where the trampoline does not do it; 0 = nothing any more.
func (b *Batch) mark(t Tag) { atomic.StoreUint64((*uint64)(&b.tag), uint64(t)) }

// keepModes puts the floating-point modes back that a call has changed, and marks
// the call, where the trampoline does not do it. It is called on the same thread
// right after the call.
func (b *Batch) keepModes(r *Record, before uint64) {
	if modes() != before {
		setModes(before)
		r.Sig |= SigModes
		b.Modes = 1
	}
}

// Pointer makes a pointer of an address in C memory. The detour keeps vet's rule
// on Go addresses out of it.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Span returns the ticks between two stamps. It is not negative even if the thread has moved to a processor with
// another counter.
func Span(start, end uint64) uint64 {
	if end < start {
		return 0
	}
	return end - start
}

// ticker relates time-stamp ticks to Go's monotonic clock from the first use on.
var ticker struct {
	once  sync.Once
	b     *Batch
	mu    sync.Mutex
	ticks uint64
	time  time.Time
}

// now reads the time stamp and the clock within two microseconds, if it is not interrupted
// again and again: an empty batch does nothing else.
func now() (uint64, time.Time) {
	for try := 0; ; try++ {
		t := time.Now()
		Run(ticker.b)
		if try == 9 || time.Since(t) < 2*time.Microsecond {
			return ticker.b.End, t
		}
	}
}

// StartTicker begins the calibration; it is called when the first library is loaded.
func StartTicker() {
	ticker.once.Do(func() {
		p, err := Alloc(BatchSize)
		if err != nil {
			return
		}
		ticker.b = (*Batch)(p)
		ticker.ticks, ticker.time = now()
	})
}

// TickRate returns the ticks per second of the time stamps. The longer ago StartTicker was
// called, the better; the first 20 ms are waited for. It is 0 before StartTicker.
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
