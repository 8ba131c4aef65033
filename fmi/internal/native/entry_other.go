//go:build macrostep_portable || !linux || !(amd64 || arm64)

package native

// logEntry returns the callback.
func logEntry(_ int, callback uintptr) uintptr { return callback }
