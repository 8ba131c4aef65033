package worker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const rssUnit = 1024

// runningImage leads to what a process runs, also in the child that has not
// started anything else yet, and if the file has no name any more.
const runningImage = "/proc/self/exe"

// dieWithParent ends the worker with its master, however that ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// raiseStack gives processes that are started from now on a stack of at least so
// many bytes; restore takes that back. The size has to be there when a process
// starts: Go keeps the bounds of the main stack that it finds then, and a callback
// from below them ends the process.
func raiseStack(bytes uint64) (restore func()) {
	var old unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &old) != nil || old.Cur >= bytes && old.Cur != unix.RLIM_INFINITY {
		return func() {}
	}
	raised := unix.Rlimit{Cur: min(bytes, old.Max), Max: old.Max}
	if unix.Setrlimit(unix.RLIMIT_STACK, &raised) != nil {
		return func() {}
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_STACK, &old) } // it was allowed before
}

// threadStack is the size of the stacks that threads get in this process, which is
// that of the main stack at its start.
func threadStack() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return usualStack
	}
	return limit.Cur
}

const usualStack = 8 << 20

// prepare gives crashes back to the system: a worker that crashes ends at once, by
// the signal itself.
func prepare() error {
	for _, s := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS} {
		var byDefault [4]uint64 // the kernel's struct sigaction
		if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0); e != 0 {
			return e
		}
	}
	return nil
}

// limitMemory bounds what can be allocated from now on.
func limitMemory(bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, text2, ok := strings.Cut(string(text), "VmData:")
	fields := strings.Fields(text2)
	if !ok || len(fields) == 0 {
		return errors.New("/proc/self/status does not tell how much memory is in use")
	}
	have, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return fmt.Errorf("/proc/self/status: %w", err)
	}
	all := have*1024 + bytes
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: all, Max: all})
}
