package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An interrupted run keeps its results, reports the interrupt and leaves no folder behind.
func TestInterrupt(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := start(t, "run", system(t, "quarter-car-a"), "--stop-time", "1e9", "--output-interval", "1")
	written(t, p.path("results.csv"), 1000)
	if len(listed(t, os.TempDir())) == 0 {
		t.Error("the run unpacks nowhere in the folder for temporary files: the test sees nothing")
	}
	p.signal(t, syscall.SIGINT)
	if code := p.end(); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, p.out.String())
	}
	if m := p.manifest(t); m.Status != "incomplete" || m.Steps.Accepted == 0 {
		t.Errorf("status %q, %d steps", m.Status, m.Steps.Accepted)
	}
	if !bytes.HasSuffix(read(t, p.path("results.csv")), []byte("\n")) {
		t.Error("the results do not end with a whole line")
	}
	emptied(t, os.TempDir())
}

// After an interrupt while an FMU does not return, the message names the FMU and the call; after a second interrupt
// results and manifest show how far the run came.
func TestInterruptWhileHanging(t *testing.T) {
	t.Parallel()
	for isolate, says := range map[string]string{"always": "waiting for bad (misbehave.fmu) in fmi2DoStep", "never": "--step-timeout"} {
		run := started(t, systemCommand(t, badPair(t, "misbehave"), "fault=EndlessSleep during=DoStep at=0.35", "--isolate", isolate))
		run.out.until(t, "EndlessSleep on purpose")
		run.signal(t, syscall.SIGINT)
		run.out.until(t, says)
		run.signal(t, syscall.SIGINT)
		code := run.end()
		if m := run.manifest(t); code != 1 || m.Status != "incomplete" ||
			!strings.Contains(m.Reason, "interrupted") || math.Abs(m.EndTime-0.4) > 0.01 {
			t.Errorf("%s: exit code %d, %s at %g: %s\n%s", isolate, code, m.Status, m.EndTime, m.Reason, run.out.String())
		}
	}
}

// An interrupted analysis prints what is known, if anything is.
func TestInterruptAnalysis(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := start(t, "analyze", system(t, "energy-star-5"), "--stop-time", "1000", "--budget", "600")
	until(t, "the analysis unpacks the system", func() bool { return len(listed(t, os.TempDir())) > 0 })
	p.signal(t, syscall.SIGINT)
	code, text := p.end(), p.out.String()
	if code != 1 || !strings.Contains(text, "nothing is known") && !strings.Contains(text, "Not all was tried: interrupted") || len(listed(t, p.Dir)) > 0 {
		t.Errorf("exit code %d, %v\n%s", code, listed(t, p.Dir), text)
	}
}

// A run under nohup does not end with its terminal.
func TestHangUp(t *testing.T) {
	// What handles a signal leaves its children the default, also where the tests themselves are under nohup.
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	for _, first := range []string{"trap '' HUP; ", ""} {
		p := scripted(t, first+`exec "$@"`, "run", system(t, "quarter-car-a"), "--stop-time", "1e9", "--output-interval", "1")
		written(t, p.path("results.csv"), 0)
		p.signal(t, syscall.SIGHUP)
		if first != "" { // it goes on and writes more
			written(t, p.path("results.csv"), int64(len(read(t, p.path("results.csv"))))+10_000)
			_ = p.Process.Kill()
		}
		p.end() // returns, where the signal ends the run
	}
}

// With --step-timeout, the time during which a run is stopped (Ctrl-Z) does not count as time of its FMUs.
func TestStepTimeoutOfStoppedRun(t *testing.T) {
	t.Parallel() // it waits
	p := start(t, "run", system(t, "quarter-car-a"), "--isolate", "always", "--step-timeout", "2",
		"--step-size", "1e-5", "--stop-time", "1000")
	written(t, p.path("results.csv"), 1000)
	p.signal(t, syscall.SIGSTOP)
	time.Sleep(2500 * time.Millisecond)
	size := int64(len(read(t, p.path("results.csv"))))
	p.signal(t, syscall.SIGCONT)
	written(t, p.path("results.csv"), size)
	p.signal(t, syscall.SIGINT)
	p.end()
	if text := p.out.String(); strings.Contains(text, "did not return") || !strings.Contains(text, "ended early at t = ") {
		t.Errorf("%v\n%s", p.ProcessState, text)
	}
}

// An update that removes or replaces the program does not disturb a run, even if a worker is restarted afterwards.
func testProgramReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/bin/true", path)) },
	} {
		own := filepath.Join(t.TempDir(), "own")
		write(t, own, read(t, program))
		if err := os.Chmod(own, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(own, "run", system(t, "quarter-car-a"), "--isolate", "always", "--on-crash", "restart",
			"--step-size", "1e-4", "--stop-time", "1")
		cmd.Dir = t.TempDir()
		p := started(t, cmd)
		until(t, "two workers", func() bool { return len(offspring(t, p.Process.Pid)) == 2 })
		written(t, p.path("results.csv"), 1000)
		if err := replace(own); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(offspring(t, p.Process.Pid)[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "continues in a new process") {
			t.Errorf("%s: exit code %d\n%s", name, code, p.out.String())
		}
	}
}

// A short soak finds nothing; CONTRIBUTING.md describes the long one.
func testSoak(t *testing.T) {
	t.Parallel()
	soak := filepath.Join(t.TempDir(), "soak")
	if out, err := exec.Command("go", "build", "-o", soak, "./soak").CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	const cases = "4"
	out, err := exec.Command(soak, "--seed", "4", "--duration", "0", "--cases", cases, "--program", program,
		"--work", filepath.Join(work, "soak")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n"+cases+" cases in ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Rows that go to a terminal are complete, with control characters in names of FMUs escaped.
func TestResultsToTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmu := filepath.Join(t.TempDir(), "li\u009b31m\u202efe.fmu")
	if err := os.Rename(life(t, "", "PRINT"), fmu); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--compile", "--step-size", "0.01", "--stop-time", "0.02", "--output", "/dev/stdout", fmu)
	cmd.Dir = t.TempDir()
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = terminal, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	shown, _ := io.ReadAll(master) // an error when nobody has the terminal any more
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	lines := strings.Split(strings.ReplaceAll(string(shown), "\r", ""), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], `time,li\u009b31m\u202efe.`) || !strings.HasPrefix(lines[3], "0.02,") {
		t.Errorf("%q", lines)
	}
	if text := errs.String(); !strings.Contains(text, "printed by the FMU") || !strings.Contains(text, "complete at") {
		t.Error(text)
	}
}

// Where the address space is limited a run ends well, or its message names the limit.
func testLimitedAddressSpace(t *testing.T) {
	t.Parallel()
	// Which thread finds no room is a matter of chance, hence several tries.
	limited := func(kib int, code int, says string) {
		var p *process
		for range 6 {
			p = scripted(t, fmt.Sprintf(`ulimit -v %d && exec "$@"`, kib), "run", system(t, "quarter-car-a"), "--quiet")
			if p.end() == code && strings.Contains(p.out.String(), says) || raced { // the race detector wants more
				return
			}
		}
		t.Errorf("with %d KiB of address space: %v\n%.2000s", kib, p.ProcessState, p.out.String())
	}
	limited(3_000_000, 0, "")
	limited(1_900_000, 2, "the address space is limited to 1855 MiB (ulimit -v)")
}
