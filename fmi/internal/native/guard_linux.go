package native

import (
	"fmt"
	"strings"
	"syscall"
	"unsafe"
)

// sigaction is the kernel's struct of that name on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// signalTable holds the handlers of signals 1…64.
type signalTable [65]sigaction

func rtSigaction(sig int, set, get *sigaction) bool {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 8, 0, 0)
	return e == 0
}

// read stores the present handlers.
func (t *signalTable) read() {
	for s := 1; s <= 64; s++ {
		rtSigaction(s, nil, &t[s])
	}
}

// restore restores the handlers that were replaced since read, and returns the names of
// their signals. Without the handlers of Go, a nil pointer in Go would loop forever and a
// profile signal would kill the process.
//
// New handlers of Go remain, since another goroutine may have requested a signal. The
// handler of SIGURG is always that of Go, which needs it for preemption.
func (t *signalTable) restore() (signals string, handlers []uintptr) {
	gos := t[syscall.SIGURG].handler
	var names []string
	for s := 1; s <= 64; s++ {
		var cur sigaction
		if !rtSigaction(s, nil, &cur) || cur.handler == t[s].handler || cur.handler == gos {
			continue
		}
		if rtSigaction(s, &t[s], nil) {
			handlers = append(handlers, cur.handler)
			names = append(names, fmt.Sprintf("%d (%s)", s, syscall.Signal(s)))
		}
	}
	return strings.Join(names, ", "), handlers
}

// LibraryOf returns the path of the library with a C function, "" if unknown.
func LibraryOf(fn uintptr) string {
	var mem Memory
	defer mem.Release()
	info, err := Slice[uintptr](&mem, 4) // file name, its base; symbol, its address
	if err != nil || callLibc("dladdr", fn, Address(info)) == 0 {
		return ""
	}
	return String(info[0], maxLocale)
}
