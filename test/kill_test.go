//go:build unix

package test

import (
	"bytes"
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
	args := []string{"run", "--quiet", "--checkpoint", "0.01", "run.checkpoint", "--step-size", "1e-5",
		"--stop-time", "0.1", system(t, "quarter-car-a")}
	whole := t.TempDir()
	if code, out := macrostepIn(t, whole, args...); code != 0 {
		t.Fatal(out)
	}
	right := read(t, filepath.Join(whole, "results.csv"))
	// Files may have half of that, in units of 512 or 1024 bytes.
	p := scripted(t, fmt.Sprintf(`ulimit -f %d; exec "$@"`, len(right)/2048), args...)
	if code, out := p.end(), p.out.String(); code != 1 || !strings.Contains(out, syscall.EFBIG.Error()) ||
		!strings.Contains(out, "writing results") || !strings.Contains(out, "the rows up to t = ") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	got := read(t, p.path("results.csv"))
	if len(got) == 0 || got[len(got)-1] != '\n' || !bytes.HasPrefix(right, got) {
		t.Errorf("the %d bytes of results are not whole rows of the right ones", len(got))
	}
	if m := p.manifest(t); m.Status != "failed" || !strings.Contains(m.Reason, "free space") {
		t.Errorf("the manifest says %s: %s", m.Status, m.Reason)
	}
	if code, out := macrostepIn(t, p.Dir, "run", "--resume", "run.checkpoint"); code != 0 ||
		!bytes.Equal(right, read(t, p.path("results.csv"))) {
		t.Errorf("going on when there is room: exit code %d\n%s", code, out)
	}

	// A device without room.
	if _, err := os.Stat("/dev/full"); err == nil {
		code, out := macrostep(t, "run", "--quiet", system(t, "quarter-car-a"), "--output", "/dev/full", "--manifest", p.path("m.json"))
		if code == 0 || !strings.Contains(out, syscall.ENOSPC.Error()) {
			t.Errorf("/dev/full: exit code %d\n%s", code, out)
		}
		for _, args := range []string{"info SYSTEM", "info SYSTEM --json", "run SYSTEM --stop-time 0.1", "completion bash"} {
			p := scripted(t, `"$@" >/dev/full`, strings.Fields(strings.Replace(args, "SYSTEM", system(t, "quarter-car-a"), 1))...)
			if code, out := p.end(), p.out.String(); code != 1 || !strings.Contains(out, "standard output is incomplete: ") {
				t.Errorf("%s to /dev/full: exit code %d\n%s", args, code, out)
			}
		}
	}
}

// scripted starts a call of the program, as "$@", by a script.
func scripted(t *testing.T, script string, args ...string) *process {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", program}, args...)...)
	cmd.Dir = t.TempDir()
	return started(t, cmd)
}
