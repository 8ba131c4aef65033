//go:build unix

package host_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/host"
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

// A host whose FMU takes longer than a host may be silent is not lost.
func TestLongStep(t *testing.T) {
	f := stateless(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	c := s.client(t, host.ClientOptions{Timeout: time.Second})
	before := children(t)
	stepper := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
	worker, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(children(t), before)))
	if err != nil {
		t.Skipf("the worker is not known: %v", err)
	}
	must(t, syscall.Kill(worker, syscall.SIGSTOP))
	time.AfterFunc(1500*time.Millisecond, func() { _ = syscall.Kill(worker, syscall.SIGCONT) })
	outputs(t, []*fmi.Stepper{stepper}, 1, nil)
}
