package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/test/long"
)

// A run that was stopped (Ctrl-Z) goes on: the time is not that of its FMUs, also
// with --step-timeout. Here they do step, or wait, while only the master stands.
func TestStepTimeoutOfStoppedRun(t *testing.T) {
	t.Parallel() // it waits
	results := filepath.Join(t.TempDir(), "r.csv")
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--isolate", "always", "--step-timeout", "2",
		"--step-size", "1e-5", "--stop-time", "1000", "--output", results)
	var out listener
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}
	written(t, results, 1000)
	stops := 1
	if long.On {
		stops = 2
	}
	for range stops {
		signal(syscall.SIGSTOP)
		time.Sleep(2500 * time.Millisecond)
		info, err := os.Stat(results)
		if err != nil {
			t.Fatal(err)
		}
		signal(syscall.SIGCONT)
		written(t, results, info.Size())
	}
	signal(syscall.SIGINT)
	_ = cmd.Wait()
	if text := out.String(); strings.Contains(text, "did not return") || !strings.Contains(text, "interrupted at t = ") {
		t.Errorf("%v\n%s", cmd.ProcessState, text)
	}
}
