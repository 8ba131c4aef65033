package fmi

import "github.com/macrostep/macrostep/fmi/internal/native"

// CallPath names how FMUs are called: "trampoline" (one crossing into C for a
// whole step, no allocation), "syscall" (Windows: a crossing per call, no
// allocation) or "portable" (purego's reflected calls).
const CallPath = native.CallPath

// TickRate returns the ticks per second of Stepper.Ticks and Instance.Ticks,
// measured against the monotonic clock since the first library was loaded. The
// longer ago that is, the better; the first 20 ms are waited for, which bounds
// the error to about 1e-4. Before a library is loaded it is 0.
func TickRate() float64 { return native.TickRate() }
