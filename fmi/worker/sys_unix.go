//go:build unix

package worker

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// hand gives the worker files, and their numbers there.
func hand(cmd *exec.Cmd, files []*os.File) []uintptr {
	const first = 3 // behind stdin, stdout and stderr
	cmd.ExtraFiles = files
	var numbers []uintptr
	for k := range files {
		numbers = append(numbers, uintptr(first+k))
	}
	return numbers
}

// own gives the worker a process group, so that signals of the terminal do not
// reach it and what it starts can be ended with it.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// endGroup ends what is left of a process group.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// blocking takes the runtime's poller out of the way to files.
func blocking(files ...*os.File) {
	for _, f := range files {
		_ = unix.SetNonblock(int(f.Fd()), false)
	}
}

// settle makes the process fit for an FMU. The FMU reads nothing from stdin, by
// which the worker learns that its master has ended.
func settle(c *config) (life *os.File, err error) {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := unix.Dup2(int(null.Fd()), 0); err != nil {
		return nil, err
	}
	for _, f := range []uintptr{c.Requests, c.Answers, c.Shared} {
		if f != 0 {
			unix.CloseOnExec(int(f))
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "life"), prepare()
}

// signalled says by which signal a process ended, "" if by none, and whether it
// came from outside, as far as that can be told.
func signalled(s *os.ProcessState) (text string, outside bool) {
	w, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return "", false
	}
	n := w.Signal()
	text = fmt.Sprintf("killed by signal %s (%v)", unix.SignalName(n), n)
	switch n {
	case syscall.SIGXCPU:
		return text + ", by the limit on processor time (ulimit -t)", true
	case syscall.SIGKILL:
		var cpu unix.Rlimit // that of the worker is the same
		if unix.Getrlimit(unix.RLIMIT_CPU, &cpu) == nil && uint64((s.UserTime()+s.SystemTime()).Milliseconds()+spareTime)/1000 >= uint64(cpu.Max) {
			return text + fmt.Sprintf(", by the limit on processor time (ulimit -t %d)", cpu.Max), true
		}
		return text + ", from outside or because the system is short of memory", true
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		return text + ", from outside", true
	}
	return text, false
}

// spareTime is by how much the time that is accounted for may lag behind a limit, ms.
const spareTime = 100

// peak gives the most memory that a process had in use, in bytes.
func peak(s *os.ProcessState) uint64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return uint64(u.Maxrss) * rssUnit
}
