//go:build !macrostep_portable && (amd64 || arm64)

package native

// enterLogABI0 is the address of the assembly routine by which C enters Go to log. It ends a
// forked process, where Go would wait for its lost threads.
var enterLogABI0 uintptr

// logTarget is the callback that enterLog calls.
//
//lint:ignore U1000 it is read in assembly
var logTarget uintptr

// logEntry returns the address that C calls instead of the callback.
func logEntry(callback uintptr) uintptr {
	logTarget = callback
	return enterLogABI0
}
