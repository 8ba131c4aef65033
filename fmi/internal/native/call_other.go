//go:build macrostep_portable || !((amd64 && (linux || darwin || freebsd || netbsd || windows)) || (arm64 && (linux || darwin || freebsd || netbsd)))

package native

// CallPath names how batches are carried out.
const CallPath = "portable"

// Run carries out a batch; here by the portable path.
func Run(b *Batch) { RunPortable(b) }
