//go:build unix

package csrc

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group, so that what it starts can be ended with
// it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
