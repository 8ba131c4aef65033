//go:build !linux

package native

// signalTable is empty where the handlers cannot be read without the C library.
type signalTable struct{}

func (*signalTable) read() {}

func (*signalTable) restore() (string, []uintptr) { return "", nil }

func LibraryOf(uintptr) string { return "" }
