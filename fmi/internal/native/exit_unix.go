//go:build linux || darwin || freebsd || netbsd

package native

import (
	"os"
	"runtime"
)

// flushStreams flushes the streams of the C library.
func flushStreams() {
	if flushed := flushFree(); flushed {
		return
	}
	if flush, err := libcSymbol("fflush"); err == nil {
		CallInts(flush, 0)
	}
}

// exit calls exit of the C library.
func exit(code int) {
	runtime.LockOSThread()
	runDestructors()
	if exit, err := libcSymbol("exit"); err == nil {
		CallInts(exit, uintptr(code))
	}
}

// leave ends the process without exit handlers.
func leave(code int) {
	if runtime.GOOS != "linux" { // Go calls exit of the C library elsewhere
		if exit, err := libcSymbol("_exit"); err == nil {
			CallInts(exit, uintptr(code))
		}
	}
	os.Exit(code)
}
