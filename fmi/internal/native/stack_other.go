//go:build !linux

package native

func SetThreadStack(uintptr) {}
