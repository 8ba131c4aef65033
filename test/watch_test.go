package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watched starts a run, waits until it has said something, does what is to be
// done then, and interrupts it.
func watched(t *testing.T, cmd *exec.Cmd, dir, says string, then func()) *aftermath {
	t.Helper()
	var out listener
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit code is what counts
		close(ended)
	}()
	for !strings.Contains(out.String(), says) {
		select {
		case <-ended:
			t.Fatalf("it ended without %q:\n%s", says, out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	then()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	<-ended
	return examine(t, dir, cmd, out.String())
}

// What an FMU changes in a step is put back while the run goes on, and told once
// however often it does so (fmi2 73).
func testProcessIsPutBackOnTheWay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("the directory of another process can be looked at on Linux only")
		return
	}
	for _, times := range []string{"1", "0"} { // once, in every step
		dir := t.TempDir()
		mkdir(t, filepath.Join(dir, "tmp"))
		cmd := exec.Command(program, "run", fmu(t, "misbehave"), "--set", "misbehave.fault=Directory", "--set", "misbehave.times="+times,
			"--step-size", "0.1", "--stop-time", "1e9", "--output-interval", "1e6", "--output", "results.csv", "--log-fmi-calls", "calls.txt")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"))
		const says = `misbehave.fmu: in a step the FMU changed the working directory to "/"; it is restored`
		a := watched(t, cmd, dir, says, func() {
			if times != "1" {
				return
			}
			here, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "cwd"))
			if want, _ := filepath.EvalSymlinks(dir); err != nil || here != want {
				t.Errorf("the directory is %q while it runs, want %q (%v)", here, want, err)
			}
			time.Sleep(600 * time.Millisecond) // two more looks
		})
		if n := strings.Count(a.output, says); n != 1 || a.manifest.Status != "incomplete" || a.code != 1 {
			t.Errorf("times=%s: said %d times, %s, exit code %d\n%s", times, n, a.manifest.Status, a.code, a.output)
		}
	}
}

// A step that stays pending is told after five seconds, once, with FMU and time;
// it can still be cancelled (fmi2 53).
func testPendingIsTold(t *testing.T) {
	t.Parallel() // it waits for the five seconds
	if runtime.GOOS == "windows" {
		t.Log("a process cannot be sent an interrupt there")
		return
	}
	cmd, dir := systemCommand(t, badPair(t, "misbehave"), "fault=Pending at=0.35 polls=-1")
	const says = "bad: misbehave.fmu: the step from t = 0.4 s by 0.1 s is pending for more than 5s"
	a := watched(t, cmd, dir, says, func() { time.Sleep(200 * time.Millisecond) })
	if n := strings.Count(a.warnings(), says); n != 1 || strings.Count(a.output, says) != 1 {
		t.Errorf("said %d times in %q\n%s", n, a.manifest.Warnings, a.output)
	}
	if a.code != 1 || a.manifest.Status != "incomplete" || !a.ends("bad", "CancelStep OK", "FreeInstance void") || !a.clean("good") {
		t.Errorf("exit code %d, %s, bad %v, good %v", a.code, a.manifest.Status, a.calls["bad"], a.calls["good"])
	}
}
