//go:build unix

package host_test

import (
	"fmt"
	"os"
	"syscall"
)

// freeze stops a child process, and waits until it has stopped.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var s syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid, &s, syscall.WUNTRACED, nil); err != nil || !s.Stopped() {
		return fmt.Errorf("the process has not stopped: %w, status %v", err, s)
	}
	return nil
}
