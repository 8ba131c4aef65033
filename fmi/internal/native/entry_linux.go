//go:build !macrostep_portable && (amd64 || arm64)

package native

// enterLogABI0 has the addresses of the assembly routines by which C enters Go to log, with
// formats and plainly. They end a forked process, where Go would wait for its lost threads.
var enterLogABI0 [2]uintptr

// logTarget has the callbacks that they call.
//
//lint:ignore U1000 it is read in assembly
var logTarget [2]uintptr

// logEntry returns the address that C calls instead of the callback; kind is its index.
func logEntry(kind int, callback uintptr) uintptr {
	logTarget[kind] = callback
	return enterLogABI0[kind]
}
