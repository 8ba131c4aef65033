//go:build !linux

package native

// What only Linux has does nothing here.

func SetThreadStack(uintptr) {}

func watchForks() {}

func leaveFork() {}

// signalTable is empty, because reading the handlers would need the C library.
type signalTable struct{}

func (*signalTable) read() {}

func (*signalTable) restore() (string, []uintptr) { return "", nil }

func LibraryOf(uintptr) string { return "" }
