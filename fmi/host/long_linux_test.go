package host_test

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/host"
)

// A host is not lost because a step takes longer than it may be silent.
func TestLongStep(t *testing.T) {
	f := stateless(t)
	s := serve(t, host.ServerOptions{Folders: []string{work}})
	c := s.client(t, host.ClientOptions{Timeout: 4 * time.Second})
	before := strings.Fields(children(t))
	stepper := begun(t, f, "c", fmi.InstanceOptions{Launcher: c.Launcher(host.Place{})}, 1)
	added := slices.DeleteFunc(strings.Fields(children(t)), func(pid string) bool { return slices.Contains(before, pid) })
	if len(added) != 1 {
		t.Fatalf("new processes: %v", added)
	}
	worker, err := strconv.Atoi(added[0])
	must(t, err)
	must(t, syscall.Kill(worker, syscall.SIGSTOP))
	time.AfterFunc(6*time.Second, func() { _ = syscall.Kill(worker, syscall.SIGCONT) }) // it may have been given up
	outputs(t, []*fmi.Stepper{stepper}, 1, nil)
	if len(stepper.Instance().Restarts()) > 0 {
		t.Error("the host was lost")
	}
}
