//go:build !linux

package fmi

// OnExit does nothing here; on Linux f is called when C code calls exit.
func OnExit(func()) error { return nil }
