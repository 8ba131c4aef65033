//go:build amd64 || arm64

package native

// modes returns the floating-point modes of this thread: rounding, traps, flush to zero,
// denormals are zero, precision of the x87 unit.
func modes() uint64

// setModes sets the modes. A call into C may change the modes of the thread, so the
// goroutine must be locked to it.
func setModes(m uint64)
