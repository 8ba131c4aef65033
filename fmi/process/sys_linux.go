package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runningImage is a path to the file of the running program, also in a forked child and after the
// file was removed.
const runningImage = "/proc/self/exe"

// bind ends the process when the thread that starts it ends.
func bind(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// wake continues a suspended process when the thread that starts it ends.
func wake(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGCONT }

// awaitEnd waits for the end of a child without reaping it, so that its number is not reused. It
// returns false after an error.
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

// raiseStack raises the limit on stacks for the processes started before restore. The limit must be
// set at the start of a process: Go then determines the bounds of the main stack, and a callback
// beyond them ends the process; the C library uses it as the stack size of threads.
func raiseStack(bytes uint64) (restore func()) {
	const stacks = 16 // must fit into the address space
	nothing := func() {}
	var old, space unix.Rlimit
	if bytes == 0 || unix.Getrlimit(unix.RLIMIT_STACK, &old) != nil ||
		old.Cur >= bytes && old.Cur != unix.RLIM_INFINITY {
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

// ThreadStack returns the default stack size of threads in bytes: the value of SetThreadStack, or the
// limit on the main stack. It is 0 if unknown.
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

// DefaultSignals removes the handlers of Go for signals of crashes and SIGQUIT, which would print the
// stacks of all goroutines and exit with code 2. The signals then end the process, also after a nil
// pointer in Go code. It has no effect on systems other than Linux.
func DefaultSignals() error {
	for _, s := range []syscall.Signal{
		syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
		syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS, syscall.SIGQUIT, syscall.SIGSTKFLT,
	} {
		var byDefault [4]uint64 // struct sigaction of the kernel
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		if e != 0 {
			return e
		}
	}
	return nil
}

// LimitMemory bounds the memory that this process can still allocate, in bytes; 0 = unlimited. It has
// no effect on systems other than Linux.
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
		return errors.New("/proc/self/status has no line VmData")
	}
	have, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return fmt.Errorf("/proc/self/status: %w", err)
	}
	all := have*1024 + bytes
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: all, Max: all})
}

// EndWithThread ends this process soon after the calling thread, which the caller must have locked, has ended: an FMU that ends the
// thread in which it is called would hang the process for ever. Reason says so then. It has no effect on systems other than Linux.
func EndWithThread() {
	stat := fmt.Sprintf("/proc/self/task/%d/stat", unix.Gettid())
	go func() {
		for range time.Tick(threadPatience) {
			text, err := os.ReadFile(stat)
			_, state, _ := strings.Cut(string(text), ") ")
			if errors.Is(err, os.ErrNotExist) || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
				os.Exit(threadEnded)
			}
		}
	}()
}

const threadPatience = 250 * time.Millisecond

// Memory returns the present memory use of the process in bytes; 0 = unknown.
func (c *Child) Memory() uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.Pid()))
	var all, resident uint64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}
