package process

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

// runningImage leads to the file that a process runs, also in a child that has not
// started anything else yet, and if the file has no name any more.
const runningImage = "/proc/self/exe"

// bind ends the process with the thread that starts it.
func bind(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// wake continues a stopped process when the one that started it ends.
func wake(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGCONT }

// awaitEnd waits for the end of a child and leaves it as it is, so that its number does
// not become that of another process; false if that cannot be done.
func awaitEnd(pid int) bool {
	for {
		switch unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) {
		case nil:
			return true
		case unix.EINTR:
		default:
			return false
		}
	}
}

// raiseStack raises the limit on stacks for the processes that are started from now on;
// restore takes that back. The limit has to be there when a process starts: Go keeps the
// bounds of the main stack that it finds then, and a callback from below them ends the
// process; the C library takes the size of the stacks of threads from it.
func raiseStack(bytes uint64) (restore func()) {
	const stacks = 16 // that must fit into the address space
	nothing := func() {}
	var old, space unix.Rlimit
	if bytes == 0 || unix.Getrlimit(unix.RLIMIT_STACK, &old) != nil || old.Cur >= bytes && old.Cur != unix.RLIM_INFINITY {
		return nothing
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &space) == nil && space.Cur/stacks < bytes {
		return nothing
	}
	raised := unix.Rlimit{Cur: min(bytes, old.Max), Max: old.Max}
	if unix.Setrlimit(unix.RLIMIT_STACK, &raised) != nil {
		return nothing
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_STACK, &old) } // it was allowed before
}

// ThreadStack returns the usual size of the stacks of threads, which is that of the main
// stack of this process, unless SetThreadStack has set it; 0 = not known.
func ThreadStack() uint64 {
	if n := threadStack.Load(); n > 0 {
		return n
	}
	const usual = 8 << 20
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return usual
	}
	return limit.Cur
}

// DefaultSignals lets the signals that end a process that has gone wrong end this one at
// once, and by the signal itself: Go's handlers would print the stacks of all goroutines
// and exit with 2. A nil pointer in Go code ends the process, too. SIGQUIT is one of them.
// It does nothing on systems other than Linux.
func DefaultSignals() error {
	for _, s := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGQUIT} {
		var byDefault [4]uint64 // the kernel's struct sigaction
		if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0); e != 0 {
			return e
		}
	}
	return nil
}

// LimitMemory bounds the memory that can be allocated in this process from now on; 0 = no
// bound. It does nothing on systems other than Linux.
func LimitMemory(bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, data, ok := strings.Cut(string(text), "VmData:")
	fields := strings.Fields(data)
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
