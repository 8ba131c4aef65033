//go:build macrostep_portable || !((amd64 && (linux || darwin || freebsd || netbsd || windows)) || (arm64 && (linux || darwin || freebsd || netbsd)))

package native

// CallPath is the method of calling batches.
const CallPath = "portable"

// Run calls a batch by the portable path.
func Run(b *Batch) { RunPortable(b) }
