package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run that was stopped (Ctrl-Z) goes on: the time is not that of its FMUs, also
// with --step-timeout. Here they do step, or wait, while only the master stands.
func TestStepTimeoutOfStoppedRun(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--isolate", "always", "--step-timeout", "0.2",
		"--step-size", "1e-5", "--stop-time", "1000", "--output", filepath.Join(dir, "r.csv"))
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
	time.Sleep(time.Second)
	for range 8 {
		signal(syscall.SIGSTOP)
		time.Sleep(400 * time.Millisecond)
		signal(syscall.SIGCONT)
		time.Sleep(50 * time.Millisecond)
	}
	signal(syscall.SIGINT)
	_ = cmd.Wait()
	if text := out.String(); strings.Contains(text, "did not return") || !strings.Contains(text, "incomplete at t = ") {
		t.Errorf("%v\n%s", cmd.ProcessState, text)
	}
}
