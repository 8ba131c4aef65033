package worker_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/process"
)

const deepHere = "MACROSTEP_TEST_DEEP_HERE"

// A process that was started with large stacks has them on each thread, and FMUs in it may
// log from the bottom.
func TestDeepStackHere(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil || limit.Max < fmi.LargeStack {
		t.Skip("the limit on stacks cannot be raised here (ulimit -H -s)")
	}
	killer(t)
	outR, outW, err := os.Pipe()
	must(t, err)
	defer outR.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeepStackThere$", "-test.v")
	cmd.Env = append(os.Environ(), deepHere+"=1", "KILL=deep@fmi2DoStep@0.5", "TMPDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = outW, outW
	c, err := process.Start(cmd, process.Options{Group: true, Stack: fmi.LargeStack})
	_ = outW.Close()
	must(t, err)
	var out strings.Builder
	_, _ = outR.WriteTo(&out)
	<-c.Done()
	if text, _ := process.Reason(c.State()); text != "it exited with code 0" || !strings.Contains(out.String(), "--- PASS: TestDeepStackThere") {
		t.Errorf("%s\n%s", text, out.String())
	}
}

// TestDeepStackThere is that process; otherwise it does nothing.
func TestDeepStackThere(t *testing.T) {
	if os.Getenv(deepHere) == "" {
		return
	}
	var all sync.WaitGroup
	var one sync.Mutex
	for range 4 {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			one.Lock() // the FMU keeps the last instance in a variable
			defer one.Unlock()
			deep(t, nil)
		})
	}
	all.Wait()
}
