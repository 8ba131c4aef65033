//go:build !amd64 && !arm64

package native

// modes knows nothing of the floating-point modes of this processor.
func modes() uint64 { return 0 }

func setModes(uint64) {}
