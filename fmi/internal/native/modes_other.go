//go:build !amd64 && !arm64

package native

// modes returns 0: the modes of this processor are not supported.
func modes() uint64 { return 0 }

func setModes(uint64) {}
