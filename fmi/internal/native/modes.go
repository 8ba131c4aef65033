//go:build amd64 || arm64

package native

// modes returns the floating-point modes of this thread: rounding, traps, flush to
// zero, denormals are zero; the precision of the x87 unit.
func modes() uint64

// setModes puts them back. Calls into C leave the thread with those that C left,
// so both are used between a call and the next and on a locked thread.
func setModes(m uint64)
