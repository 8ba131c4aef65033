//go:build !macrostep_portable && (amd64 || arm64)

package fmi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// crashHandler is the address of onCrash, a handler of signals as C has them.
var crashHandler uintptr

// crashState is what onCrash knows; it has its layout.
type crashState struct {
	armed     uint64 // 0: all that comes is for Go's handler
	pid       uint64
	low, high uint64 // Go's code
	gos       uintptr
	slots     uintptr // addresses of batches, or 0
	used      uint64  // slots that may hold one
	event     uint64  // file that is written to when a thread of an FMU's own has crashed
	//lint:ignore U1000 it is for onCrash
	taken    uint64 // 1: one has, and this is what is known of it
	signal   uint64
	code     uint64
	fault    uint64
	at       uint64
	patience uint64 // s, until the signal ends the program
	sp       uint64
}

// crashes is written before it is armed; after that only slots and used change.
var crashes crashState

// crashSignals are those by which code ends that goes wrong.
var crashSignals = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGABRT, syscall.SIGTRAP}

// catching holds what stays of CatchCrashes for as long as the process.
var catching struct {
	once sync.Once
	err  error
	lost atomic.Pointer[func(*CrashError)]
}

// crashPatience is how long a program has to end after a crash.
const crashPatience = 20 * time.Second

// CatchCrashes makes crashes of FMUs in this process errors from now on: the call in
// which one crashes (by an invalid access, a stack overflow, abort, an exception that
// nothing catches, an illegal instruction, a trapped floating-point exception) gives
// a *CrashError. Without, Go ends the program there and then, and says nothing of the
// FMU. What goes wrong in Go code is as ever.
//
// A thread of an FMU's own that crashes is in no call: it is stopped, and lost is
// called in a goroutine, to keep the results and end the program by os.Exit. lost is
// called too if the program has not ended 20 s after a crash in a call: some lock
// that the FMU held may stop it. There is one lost, the last one; nil gives crashes
// back to Go.
//
// It takes Go's handlers of the signals SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and
// SIGTRAP and passes on to them what is not C code's. Handlers that others have put in
// their place stay. It has an effect on Linux on amd64 and arm64, but not in builds
// with the tag macrostep_portable; elsewhere it does nothing. The error says that
// the system does not allow it.
func CatchCrashes(lost func(*CrashError)) error {
	if lost == nil {
		atomic.StoreUint64(&crashes.armed, 0)
		catching.lost.Store(nil)
		return nil
	}
	catching.lost.Store(&lost)
	catching.once.Do(func() {
		if catching.err = installCrashHandler(); catching.err != nil {
			catching.err = fmt.Errorf("crashes of FMUs cannot be caught: %w", catching.err)
		}
	})
	if catching.err == nil {
		atomic.StoreUint64(&crashes.armed, 1)
	}
	return catching.err
}

func installCrashHandler() error {
	// The runtime always holds SIGURG, for preemption.
	var gos sigaction
	if !rtSigaction(int(syscall.SIGURG), nil, &gos) {
		return fmt.Errorf("the handlers of signals cannot be read")
	}
	low, high, err := goCode()
	if err != nil {
		return err
	}
	if err := batches.make(); err != nil {
		return err
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	c := &crashes
	c.pid, c.low, c.high, c.gos = uint64(os.Getpid()), low, high, gos.handler
	c.event, c.patience = uint64(fd), uint64(crashPatience/time.Second)
	go awaitCrash(os.NewFile(uintptr(fd), "crashes"))
	for _, s := range crashSignals {
		var a sigaction
		if rtSigaction(int(s), nil, &a) && a.handler == gos.handler {
			a.handler = crashHandler
			rtSigaction(int(s), &a, nil)
		}
	}
	return nil
}

// goCode gives the bounds of the mapping that holds the program's own code.
func goCode() (low, high uint64, err error) {
	own := uint64(reflect.ValueOf(goCode).Pointer())
	err = eachMapping(func(from, to uint64, _ string) bool {
		if from <= own && own < to {
			low, high = from, to
		}
		return high == 0
	})
	if err == nil && high == 0 {
		err = fmt.Errorf("/proc/self/maps does not tell where the program is")
	}
	return low, high, err
}

// eachMapping calls f for the mappings of the process, with the file that each is of,
// while it gives true.
func eachMapping(f func(from, to uint64, file string) bool) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range bytes.Lines(maps) {
		var from, to uint64
		if _, err := fmt.Sscanf(string(line), "%x-%x ", &from, &to); err != nil {
			return fmt.Errorf("/proc/self/maps: %w", err)
		}
		_, file, _ := strings.Cut(strings.TrimSpace(string(line)), "/")
		if !f(from, to, "/"+file) {
			break
		}
	}
	return nil
}

// batches holds the addresses of the batches, for onCrash.
var batches slotTable

type slotTable struct {
	mu    sync.Mutex
	table []uintptr
	free  []int
}

// make maps the table.
func (t *slotTable) make() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table != nil {
		return nil
	}
	const most = 1 << 16 // batches at the same time; others are not caught
	memory, err := unix.Mmap(-1, 0, most*int(unsafe.Sizeof(uintptr(0))), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	t.table = unsafe.Slice((*uintptr)(unsafe.Pointer(&memory[0])), most)
	crashes.slots = address(t.table)
	return nil
}

// enter makes a batch known and gives its slot, -1 if there is none.
func (t *slotTable) enter(b *batch) int {
	if t.make() != nil {
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := int(crashes.used)
	if n := len(t.free); n > 0 {
		k, t.free = t.free[n-1], t.free[:n-1]
	} else if k == len(t.table) {
		return -1
	}
	atomic.StoreUintptr(&t.table[k], uintptr(unsafe.Pointer(b)))
	atomic.StoreUint64(&crashes.used, max(crashes.used, uint64(k+1)))
	return k
}

func (t *slotTable) leave(k int) {
	if k < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	atomic.StoreUintptr(&t.table[k], 0)
	t.free = append(t.free, k)
}

// awaitCrash waits for the end of a thread of an FMU's own.
func awaitCrash(event *os.File) {
	var word [8]byte
	if _, err := io.ReadFull(event, word[:]); err != nil || binary.NativeEndian.Uint64(word[:]) == 0 {
		return
	}
	c := &crashes
	e := &CrashError{Reason: signalReason(syscall.Signal(c.signal), int32(c.code), c.fault)}
	if img := imageOn(c.at, c.sp); img != nil {
		e.FMU, e.Hash, e.Model = img.fmu, img.hash, img.model
	}
	firstCrash.CompareAndSwap(nil, e)
	loseProgram(e)
}

// boundEnding bounds the time that the program has to end after a crash in a call.
func boundEnding() {
	time.AfterFunc(crashPatience, func() { loseProgram(Crashed()) })
}

// loseProgram has the program ended.
func loseProgram(e *CrashError) {
	if lost := catching.lost.Load(); lost != nil {
		(*lost)(e)
	}
}

// imageOn tells of which FMU the code at an address is, or that which has called it,
// as far as the top of the stack tells; nil if of none that is known.
func imageOn(at, sp uint64) *image {
	if !loading.TryLock() { // it is held for ever if the FMU has crashed in loading
		return nil
	}
	defer loading.Unlock()
	type code struct {
		from, to uint64
		of       *image
	}
	var codes []code
	stackEnd := uint64(0)
	err := eachMapping(func(from, to uint64, file string) bool {
		for _, img := range images {
			if filepath.Dir(img.library) == filepath.Dir(file) {
				codes = append(codes, code{from, to, img})
			}
		}
		if from <= sp && sp < to {
			stackEnd = to
		}
		return true
	})
	if err != nil {
		return nil
	}
	find := func(address uint64) *image {
		k := slices.IndexFunc(codes, func(c code) bool { return c.from <= address && address < c.to })
		if k < 0 {
			return nil
		}
		return codes[k].of
	}
	if img := find(at); img != nil {
		return img
	}
	const looked = 1 << 16
	for p := sp &^ 7; p+8 <= min(stackEnd, sp+looked); p += 8 {
		if img := find(*(*uint64)(cptr(uintptr(p)))); img != nil {
			return img
		}
	}
	return nil
}

// mapMemory gives zeroed memory that is not the C library's, with pages before and
// behind it that nobody can write, nil if there is none. It stays.
func mapMemory(size uintptr) unsafe.Pointer {
	page := uintptr(os.Getpagesize())
	size = (max(size, 1) + page - 1) &^ (page - 1)
	memory, err := unix.Mmap(-1, 0, int(size+2*page), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil || unix.Mprotect(memory[page:page+size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		return nil
	}
	return unsafe.Pointer(&memory[page])
}

// crashReason says what ended a crossing.
func crashReason(b *batch) string {
	s := syscall.Signal(b.signal)
	const nowhere = 1 << 16 // no stack is there
	if size := overflown(uint64(b.stack), uint64(b.fault)); s == syscall.SIGSEGV && b.fault >= nowhere && size > 0 {
		return fmt.Sprintf("signal %s (%v) by a stack overflow: its stack has %d MiB", unix.SignalName(s), s, size>>20)
	}
	return signalReason(s, int32(b.code), uint64(b.fault))
}

// overflown gives the size of the stack that a stack pointer and an access to an
// address belong to, if that is just below the stack, else 0.
func overflown(sp, address uint64) (size uint64) {
	const near = 1 << 20
	err := eachMapping(func(from, to uint64, _ string) bool {
		if below := from - address; below > 0 && below <= near && sp-(from-near) <= 2*near && to-from > near {
			size = to - from
		}
		return size == 0
	})
	if err != nil {
		return 0
	}
	return size
}

// signalReason says what a signal means. The code is the system's si_code.
func signalReason(s syscall.Signal, code int32, fault uint64) string {
	text := fmt.Sprintf("signal %s (%v)", unix.SignalName(s), s)
	if (s == syscall.SIGSEGV || s == syscall.SIGBUS) && code > 0 {
		const general = 0x80 // SI_KERNEL: the system does not tell the address
		if code == general {
			return text + " at an address that is none"
		}
		return fmt.Sprintf("%s at address %#x", text, fault)
	}
	return text
}
