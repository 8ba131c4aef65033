//go:build linux || darwin || freebsd || netbsd

package native

import (
	"os"
	"runtime"
)

// flushStreams flushes the streams of the C library.
func flushStreams() {
	if flushed := flushFree(); !flushed {
		callLibc("fflush", 0)
	}
}

// exit calls exit of the C library.
func exit(code int) {
	runtime.LockOSThread()
	runDestructors()
	callLibc("exit", uintptr(code))
}

// leave ends the process without exit handlers.
func leave(code int) {
	if runtime.GOOS != "linux" { // Go calls exit of the C library elsewhere
		callLibc("_exit", uintptr(code))
	}
	os.Exit(code)
}
