package native

import (
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// flushStreams flushes the streams of all C libraries in the process: an FMU uses the one that its
// compiler chose.
func flushStreams() {
	var modules [1024]windows.Handle
	var size uint32
	if windows.EnumProcessModules(windows.CurrentProcess(), &modules[0], uint32(unsafe.Sizeof(modules)), &size) != nil {
		return
	}
	var called []uintptr
	for _, m := range modules[:min(int(size/uint32(unsafe.Sizeof(modules[0]))), len(modules))] {
		flush, err := windows.GetProcAddress(m, "fflush")
		if err == nil && !slices.Contains(called, flush) {
			called = append(called, flush)
			_, _, _ = syscall.SyscallN(flush, 0)
		}
	}
}

// exit unloads the libraries of FMUs, because the end of the process alone writes no streams of C libraries
// that are part of them, and ends the process.
func exit(code int) {
	runtime.LockOSThread()
	var mem Memory
	defer mem.Release()
	b := mem.Batch()
	for _, l := range slices.Backward(opened.list) {
		b.mark(l.tag.ending())
		_ = windows.FreeLibrary(windows.Handle(l.handle)) // the process ends
	}
	b.mark(0)
	flushStreams()
	os.Exit(code)
}

// leave ends the process without exit handlers, which os.Exit calls.
func leave(code int) { _ = windows.TerminateProcess(windows.CurrentProcess(), uint32(code)) }
