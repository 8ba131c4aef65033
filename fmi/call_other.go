//go:build macrostep_portable || !((amd64 && (linux || darwin || freebsd || netbsd || windows)) || (arm64 && (linux || darwin || freebsd || netbsd)))

package fmi

// CallPath names how FMUs are called: "trampoline" (one crossing into C for a
// whole step, no allocation), "syscall" (Windows: a crossing per call, no
// allocation) or "portable" (purego's reflected calls).
const CallPath = "portable"

// run carries out a batch; here by the portable path.
func run(b *batch) { runPortable(b) }
