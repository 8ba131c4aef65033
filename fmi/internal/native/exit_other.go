//go:build !linux && !windows

package native

// runDestructors does nothing: exit calls destructors.
func runDestructors() {}

func beforeOpening() {}

// flushFree does nothing: fflush does not keep others from opening and closing streams.
func flushFree() bool { return false }
