//go:build unix

package host_test

import (
	"os"
	"syscall"
)

// freeze stops a process, which keeps its connections.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
