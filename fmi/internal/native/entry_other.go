//go:build macrostep_portable || !linux || !(amd64 || arm64)

package native

// logEntry returns what C calls to log.
func logEntry(callback uintptr) uintptr { return callback }
