//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hand passes open files to a command before its start, and returns their numbers in the process. It
// may be called once for a command.
func Hand(cmd *exec.Cmd, files ...*os.File) []uintptr {
	const first = 3 // after stdin, stdout and stderr
	cmd.ExtraFiles = files
	var numbers []uintptr
	for k := range files {
		numbers = append(numbers, uintptr(first+k))
	}
	return numbers
}

func setGroup(a *syscall.SysProcAttr) { a.Setpgid = true }

// endGroup kills a process group.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// signalGroup sends a signal to the group of a process.
func signalGroup(p *os.Process, s os.Signal) error {
	n, ok := s.(syscall.Signal)
	if !ok {
		return fmt.Errorf("%v is not a signal of this system", s)
	}
	return syscall.Kill(-p.Pid, n)
}

// Blocking makes files blocking, so that the runtime does not poll them.
func Blocking(files ...*os.File) {
	for _, f := range files {
		_ = unix.SetNonblock(int(f.Fd()), false)
	}
}

// CloseOnExec prevents that programs inherit the files with these numbers.
func CloseOnExec(files ...uintptr) {
	for _, f := range files {
		unix.CloseOnExec(int(f))
	}
}

// EmptyStdin replaces standard input with the null device, so that foreign code cannot read it.
func EmptyStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	return unix.Dup2(int(null.Fd()), 0)
}

// TakeStdin is EmptyStdin, and returns the former file.
func TakeStdin() (*os.File, error) {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := EmptyStdin(); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "stdin"), nil
}

// threadEnded is the exit code of EndWithThread.
const threadEnded = 121

// Reason returns how a process ended. outside reports whether a limit or another process may have ended
// it.
func Reason(s *os.ProcessState) (text string, outside bool) {
	w, ok := s.Sys().(syscall.WaitStatus)
	if ok && w.Exited() && w.ExitStatus() == threadEnded {
		return "it ended the thread in which it was called", false
	}
	if !ok || !w.Signaled() {
		return fmt.Sprintf("it exited with code %d", s.ExitCode()), false
	}
	n := w.Signal()
	text = fmt.Sprintf("killed by %v", n) // a real-time signal
	if name := unix.SignalName(n); name != "" {
		text = fmt.Sprintf("killed by signal %s (%v)", name, n)
	}
	switch n {
	case syscall.SIGXCPU:
		return text + ", by the limit on processor time (ulimit -t)", true
	case syscall.SIGKILL:
		var cpu unix.Rlimit // the same as in the process
		used := uint64((s.UserTime()+s.SystemTime()).Milliseconds()+spareTime) / 1000
		if unix.Getrlimit(unix.RLIMIT_CPU, &cpu) == nil && used >= uint64(cpu.Max) {
			return text + fmt.Sprintf(", by the limit on processor time (ulimit -t %d)", cpu.Max), true
		}
		return text + ", from outside or because the system is short of memory", true
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		return text + ", from outside or raised by the FMU", true
	}
	return text, false
}

// spareTime is the largest error of the measured processor time, ms.
const spareTime = 100

// Peak returns the peak memory use of a process in bytes; 0 = unknown.
func Peak(s *os.ProcessState) uint64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	unit := uint64(1024)
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return uint64(u.Maxrss) * unit
}
