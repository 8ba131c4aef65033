//go:build !macrostep_portable && (amd64 || arm64)

package native

// enterLogABI0 is the address of the assembly routine by which C enters Go to log. A
// process that was forked off ends there: Go would wait for threads that it does not have.
var enterLogABI0 uintptr

// logTarget is where enterLog goes on.
//
//lint:ignore U1000 it is read in assembly
var logTarget uintptr

// logEntry returns what C calls instead of a callback.
func logEntry(callback uintptr) uintptr {
	logTarget = callback
	return enterLogABI0
}
