package fmi

import "github.com/macrostep/macrostep/fmi/internal/native"

// CallPath is the method of calling FMUs: "trampoline" (one crossing into C for a
// whole step, no allocation), "syscall" (Windows: a crossing per call, no
// allocation) or "portable" (reflected calls of purego).
const CallPath = native.CallPath

// TickRate returns the ticks per second of Stepper.Ticks and Instance.Ticks, or 0
// before a library is loaded. It is measured against the monotonic clock since the
// first library was loaded, for at least 20 ms, for which TickRate waits; the
// relative error is then about 1e-4 and falls with time.
func TickRate() float64 { return native.TickRate() }
