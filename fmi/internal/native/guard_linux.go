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

// read takes down the handlers now in force.
func (t *signalTable) read() {
	for s := 1; s <= 64; s++ {
		rtSigaction(s, nil, &t[s])
	}
}

// restore puts back the handlers that were replaced since read, and names the
// signals. An FMU that takes Go's handlers away breaks the program: a nil
// pointer in Go then spins for ever, a profile signal kills the process.
//
// A handler of Go's own that is new stays: the program may ask for a signal in
// another goroutine at the same time. SIGURG tells which handler is Go's, since
// the runtime always holds it for preemption.
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

// LibraryOf returns the path of the library that holds a C function; "" if it cannot
// be told.
func LibraryOf(fn uintptr) string {
	f, err := libcSymbol("dladdr")
	if err != nil {
		return ""
	}
	var mem Memory
	defer mem.Release()
	info, err := Slice[uintptr](&mem, 4) // file name, its base; symbol, its address
	if err != nil || CallInts(f, fn, Address(info)) == 0 {
		return ""
	}
	return String(info[0], maxLocale)
}
