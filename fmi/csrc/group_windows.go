package csrc

import (
	"os/exec"
	"strconv"
)

func ownGroup(*exec.Cmd) {}

// endGroup ends a command and what it started, where it still runs.
func endGroup(cmd *exec.Cmd) error {
	if cmd.ProcessState != nil {
		return nil // its number may be another's
	}
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() // else it is ended alone
	return cmd.Process.Kill()
}
