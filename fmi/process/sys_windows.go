package process

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Hand passes open files to a command before its start, and returns their numbers in the process. It
// may be called once for a command.
func Hand(cmd *exec.Cmd, files ...*os.File) []uintptr {
	a := attributes(cmd)
	var numbers []uintptr
	for _, f := range files {
		h := syscall.Handle(f.Fd())
		_ = windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT)
		a.AdditionalInheritedHandles = append(a.AdditionalInheritedHandles, h)
		numbers = append(numbers, uintptr(h))
	}
	return numbers
}

func setGroup(a *syscall.SysProcAttr) { a.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP }

func endGroup(int) {}

// signalGroup sends a signal to a process with a group.
func signalGroup(p *os.Process, s os.Signal) error {
	if s == os.Interrupt {
		return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid))
	}
	return p.Signal(s)
}

// Blocking does nothing here; see the variant for Unix.
func Blocking(...*os.File) {}

// CloseOnExec prevents that programs inherit the files with these numbers.
func CloseOnExec(files ...uintptr) {
	for _, f := range files {
		_ = windows.SetHandleInformation(windows.Handle(f), windows.HANDLE_FLAG_INHERIT, 0)
	}
}

// EmptyStdin replaces standard input with the null device, so that foreign code cannot read it.
func EmptyStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	os.Stdin = null // keeps it open
	return windows.SetStdHandle(windows.STD_INPUT_HANDLE, windows.Handle(null.Fd()))
}

// TakeStdin is EmptyStdin, and returns the former file.
func TakeStdin() (*os.File, error) {
	old := os.Stdin
	return old, EmptyStdin()
}

// Reason returns how a process ended. outside is always false.
func Reason(s *os.ProcessState) (text string, outside bool) {
	code := uint32(s.ExitCode())
	if code < 0xC0000000 {
		return fmt.Sprintf("it exited with code %d", s.ExitCode()), false
	}
	return fmt.Sprintf("ended by exception 0x%08X (%s)", code, exception(code)), false
}

func exception(code uint32) string {
	names := map[uint32]string{0xC0000005: "access violation", 0xC000001D: "illegal instruction", 0xC0000094: "integer division by zero",
		0xC00000FD: "stack overflow", 0xC0000409: "abort"}
	return cmp.Or(names[code], "see the list of NTSTATUS codes")
}

// Peak returns 0 for unknown; see the variant for Unix.
func Peak(*os.ProcessState) uint64 { return 0 }
