package worker

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// hand gives the worker files, and their numbers there, which are the same.
func hand(cmd *exec.Cmd, files []*os.File) []uintptr {
	a := &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	var numbers []uintptr
	for _, f := range files {
		h := syscall.Handle(f.Fd())
		_ = windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT)
		a.AdditionalInheritedHandles = append(a.AdditionalInheritedHandles, h)
		numbers = append(numbers, uintptr(h))
	}
	cmd.SysProcAttr = a
	return numbers
}

func own(*exec.Cmd) {}

func endGroup(int) {}

func blocking(...*os.File) {}

// settle keeps what the FMU prints and reads away from the master.
func settle(*config) (life *os.File, err error) {
	life = os.Stdin
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return life, windows.SetStdHandle(windows.STD_INPUT_HANDLE, windows.Handle(null.Fd()))
}

func limitMemory(uint64) error { return nil }

const runningImage = "" // there is no such path

func raiseStack(uint64) (restore func()) { return func() {} }

func threadStack() uint64 { return 0 }

// signalled names the exception that a process ended by, "" if by none.
func signalled(s *os.ProcessState) (text string, outside bool) {
	code := uint32(s.ExitCode())
	if code < 0xC0000000 {
		return "", false
	}
	return fmt.Sprintf("ended by exception 0x%08X (%s)", code, exception(code)), false
}

func exception(code uint32) string {
	switch code {
	case 0xC0000005:
		return "access violation"
	case 0xC000001D:
		return "illegal instruction"
	case 0xC0000094:
		return "integer division by zero"
	case 0xC00000FD:
		return "stack overflow"
	case 0xC0000409:
		return "abort"
	}
	return "see the list of NTSTATUS codes"
}

func peak(*os.ProcessState) uint64 { return 0 }
