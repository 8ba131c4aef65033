package native

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Record is a call of a C function. The assembly routines depend on its layout. Records,
// and all memory that they refer to, are memory of the C library.
type Record struct {
	Fn    uintptr     // 0 = no call; Ret becomes a time stamp
	Ret   uintptr     // result; a Status is its low 32 bits
	Sig   uintptr     // order of integer and floating-point arguments, see below
	Tag   Tag         // of the call, for the parent process
	Float [3]float64  // floating-point arguments in order
	Int   [12]uintptr // integer and pointer arguments in order; fmi3InstantiateCoSimulation has twelve
}

// The FMI functions have few orders of integer and floating-point arguments. Only Win64 and
// the portable path distinguish SigIFFI and SigIIFFIF; other ABIs count registers of both
// kinds separately. A function may have fewer arguments than its order passes.
//
// Each argument takes eight bytes on the stack, also on Apple arm64, which packs narrower ones:
// no function of FMI 3.0 has one after the eighth integer, so its Booleans are in registers there.
const (
	SigInts   = iota // at most seven integers
	SigIFFI          // int double double and at most five integers: fmi2DoStep, fmi3DoStep
	SigIIFFIF        // int int double double int double
	SigLong          // more than seven integers
)

// SigModes is set in Sig if the call, or an earlier call of the instance in the crossing,
// changed the floating-point modes. They are restored.
const SigModes = 1 << 8

// Status returns the result as the status that functions of FMUs return.
func (r *Record) Status() int32 { return int32(uint32(r.Ret)) }

// Stops reports whether a status ends a batch: anything but OK and Warning.
func Stops(status int32) bool { return uint32(status) > 1 }

// Batch is a list of records that are called in one crossing. It stops after the first
// call with a status other than OK or Warning, including undefined ones. It is memory of
// the C library or shared memory.
type Batch struct {
	N     uintptr
	Recs  uintptr // address of the first record
	Done  uintptr // number of records called
	Start uint64  // time stamps before the first record and after the last one, unless Untimed
	End   uint64
	Modes uintptr // not 0: a record of this crossing has SigModes

	tag        Tag     // of the active call; 0 = none
	Time, Step float64 // time of the instances and size of the step, s; NaN = unknown
	Worst      uintptr // bitwise or of all statuses: 0 = all calls returned OK
	Untimed    uintptr // not 0: take no time stamps
	crossings  uint64
}

const BatchSize = unsafe.Sizeof(Batch{})

func (b *Batch) Records() []Record {
	return unsafe.Slice((*Record)(Pointer(b.Recs)), b.N)
}

// Begin starts a crossing without the trampoline.
func (b *Batch) Begin() {
	b.Done, b.Modes, b.Worst = 0, 0, 0
	atomic.AddUint64(&b.crossings, 1)
}

// mark sets the tag of the active call without the trampoline; 0 = none.
func (b *Batch) mark(t Tag) { atomic.StoreUint64((*uint64)(&b.tag), uint64(t)) }

// keepModes restores the floating-point modes after a call without the trampoline, and
// marks the call if it changed them. It must follow the call on the same thread.
func (b *Batch) keepModes(r *Record, before uint64) {
	if modes() != before {
		setModes(before)
		r.Sig |= SigModes
		b.Modes = 1
	}
}

// Pointer converts an address in C memory to a pointer. The indirection avoids the rule
// of vet for Go addresses.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Span returns the ticks between two time stamps; 0 if the counter of another processor is
// behind.
func Span(start, end uint64) uint64 {
	if end < start {
		return 0
	}
	return end - start
}

// ticker relates ticks to the monotonic clock of Go, from StartTicker on.
var ticker struct {
	once  sync.Once
	b     *Batch
	mu    sync.Mutex
	ticks uint64
	time  time.Time
}

// now reads time stamp and clock within two microseconds, unless it is interrupted ten
// times. An empty batch only takes time stamps.
func now() (uint64, time.Time) {
	for try := 0; ; try++ {
		t := time.Now()
		Run(ticker.b)
		if try == 9 || time.Since(t) < 2*time.Microsecond {
			return ticker.b.End, t
		}
	}
}

// StartTicker starts the calibration. It is called before the first library is loaded.
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

// TickRate returns the ticks per second, 0 before StartTicker. It waits until 20 ms after
// StartTicker; the accuracy grows with time.
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
