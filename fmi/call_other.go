//go:build macrostep_portable || !((amd64 && (linux || darwin || freebsd || netbsd || windows)) || (arm64 && (linux || darwin || freebsd || netbsd)))

package fmi

// restoresModes tells that floating-point modes which an FMU changes stay
// changed here.
const restoresModes = false

// run carries out a batch; here by the portable path.
func run(b *batch) { runPortable(b) }
