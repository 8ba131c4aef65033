//go:build unix

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk is reported as an error: earlier rows are whole and right, the manifest has the reason, and the run can
// be resumed from its last checkpoint.
func testResumeAfterFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"run", "--quiet", "--checkpoint", "0.01", "run.checkpoint", "--step-size", "1e-5",
		"--stop-time", "0.1", system(t, "quarter-car-a")}
	whole := t.TempDir()
	if code, out := macrostepIn(t, whole, args...); code != 0 {
		t.Fatal(out)
	}
	right := read(t, filepath.Join(whole, "results.csv"))
	// Files may have half of that, in units of 512 or 1024 bytes.
	script := []string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, len(right)/2048), "sh", program}
	cmd := exec.Command("sh", append(script, args...)...)
	cmd.Dir = dir
	bytesOut, _ := cmd.CombinedOutput()
	out := string(bytesOut)
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, syscall.EFBIG.Error()) || !strings.Contains(out, "writing results") {
		t.Fatalf("exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
	got := read(t, path("results.csv"))
	if len(got) == 0 || got[len(got)-1] != '\n' || !bytes.HasPrefix(right, got) {
		t.Errorf("the %d bytes of results are not whole rows of the right ones", len(got))
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	last, _, _ := strings.Cut(lines[len(lines)-1], ",")
	if says := "the rows up to t = " + last + " s are kept"; !strings.Contains(out, says) {
		t.Errorf("%q is missing in\n%s", says, out)
	}
	var m struct{ Status, Reason string }
	if err := json.Unmarshal(read(t, path("results.json")), &m); err != nil || m.Status != "failed" ||
		!strings.Contains(m.Reason, "free space") {
		t.Errorf("%v: the manifest says %+v", err, m)
	}
	if code, out := macrostepIn(t, dir, "run", "--resume", "run.checkpoint"); code != 0 ||
		!bytes.Equal(right, read(t, path("results.csv"))) {
		t.Errorf("going on when there is room: exit code %d\n%s", code, out)
	}

	// A device without room.
	if _, err := os.Stat("/dev/full"); err == nil {
		code, out := macrostep(t, "run", "--quiet", system(t, "quarter-car-a"), "--output", "/dev/full", "--manifest", path("m.json"))
		if code == 0 || !strings.Contains(out, syscall.ENOSPC.Error()) {
			t.Errorf("/dev/full: exit code %d\n%s", code, out)
		}
		for _, args := range []string{"info SYSTEM", "info SYSTEM --json", "run SYSTEM --stop-time 0.1", "completion bash"} {
			call := append([]string{"-c", `"$@" >/dev/full`, "sh", program}, strings.Fields(strings.Replace(args, "SYSTEM", system(t, "quarter-car-a"), 1))...)
			cmd := exec.Command("sh", call...)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "standard output is incomplete: ") {
				t.Errorf("%s to /dev/full: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), out)
			}
		}
	}
	// Checkpoints that cannot be written do not end the run, and cause one warning: here there is no room for the
	// name of the temporary file.
	code, out2 := macrostep(t, "run", "--checkpoint", "0.01", path(strings.Repeat("x", 250)), system(t, "quarter-car-a"))
	if code != 0 || strings.Count(out2, "could not be written") != 1 || !strings.Contains(out2, "the run goes on") {
		t.Errorf("checkpoints that cannot be written: exit code %d\n%s", code, out2)
	}
}
