//go:build !linux && !windows

package native

// runDestructors does nothing: exit calls destructors.
func runDestructors() {}

func beforeOpening() {}
