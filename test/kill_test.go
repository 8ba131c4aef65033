//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/test/long"
)

// Runs are killed at random moments (SIGKILL), in a folder where an earlier run
// was complete: whatever the moment, every row up to the last newline is right, and
// no manifest of a complete run is beside them.
func testKilledAnywhere(t *testing.T) {
	t.Parallel()
	kills := 12
	if long.On {
		kills = 200
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	// Long enough not to end before it is killed; what is before is a run of
	// 0.2 s, whose rows are other ones.
	args := []string{"run", "--quiet", "--step-size", "1e-5", "--stop-time", "40", "--checkpoint", "0.01", "run.checkpoint", system(t, "quarter-car-a")}
	before := []string{"run", "--quiet", "--step-size", "1e-4", "--stop-time", "0.2", system(t, "quarter-car-a")}
	if code, out := macrostepIn(t, dir, before...); code != 0 {
		t.Fatal(out)
	}
	old, oldManifest := mustRead(t, path("results.csv")), mustRead(t, path("results.json"))
	// The first rows, for comparison.
	first := append([]string{}, args...)
	first[5] = "2"
	if code, out := macrostepIn(t, t.TempDir(), append(first, "--output", path("right.csv"))...); code != 0 {
		t.Fatal(out)
	}
	right := mustRead(t, path("right.csv"))

	start := func() *exec.Cmd {
		for name, data := range map[string][]byte{"results.csv": old, "results.json": oldManifest} {
			if err := os.WriteFile(path(name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		ownCache(t, cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	rng := rand.New(rand.NewPCG(1, 200))
	begun, rows := 0, 0
	for k := range kills {
		cmd := start()
		// One in four before there are results, the others after some or many rows.
		if k%4 > 0 {
			many := rng.Int64N(300_000)
			until(t, "the run writes results", func() bool {
				got, err := os.ReadFile(path("results.csv"))
				return err == nil && !bytes.HasPrefix(got, old) && int64(len(got)) > many
			})
		}
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		engines := children(t, cmd.Process.Pid, "\x00engine\x00")
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the run came to its end")
		}
		for _, engine := range engines {
			until(t, "the engine ends", func() bool { return !alive(engine) })
		}
		got := mustRead(t, path("results.csv"))
		var m struct{ Status string }
		if err := json.Unmarshal(mustRead(t, path("results.json")), &m); err != nil {
			t.Fatalf("kill %d: the manifest is not whole: %v", k, err)
		}
		if bytes.Equal(got, old) {
			continue // its manifest may be that of either
		}
		begun++
		if m.Status != "incomplete" {
			t.Errorf("kill %d: there are results of this run, and the manifest says %q", k, m.Status)
		}
		whole := got[:bytes.LastIndexByte(got, '\n')+1]
		rows = max(rows, bytes.Count(whole, []byte("\n")))
		if n := min(len(whole), len(right)); !bytes.Equal(whole[:n], right[:n]) {
			t.Fatalf("kill %d: the rows are not right", k)
		}
	}
	if begun < 3*(kills/4) || rows < 100 {
		t.Errorf("%d of %d runs had begun, with up to %d rows", begun, kills, rows)
	}
	t.Logf("%d of %d runs had begun to write; up to %d rows", begun, kills, rows)
}

// A disk that is full is an error that says so: what was written before is whole
// and right, the manifest tells, and the last checkpoint is one to go on from.
func testResumeAfterFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"run", "--quiet", "--checkpoint", "0.01", "run.checkpoint", "--step-size", "1e-5", "--stop-time", "0.1", system(t, "quarter-car-a")}
	whole := t.TempDir()
	if code, out := macrostepIn(t, whole, args...); code != 0 {
		t.Fatal(out)
	}
	right := mustRead(t, filepath.Join(whole, "results.csv"))
	// Files may have half of that, in units of 512 or 1024 bytes.
	quoted := program
	for _, a := range args {
		quoted += " '" + a + "'"
	}
	cmd := exec.Command("sh", "-c", fmt.Sprintf("ulimit -f %d && exec %s", len(right)/2048, quoted))
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), syscall.EFBIG.Error()) || !strings.Contains(string(out), "writing results") {
		t.Fatalf("exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
	got := mustRead(t, path("results.csv"))
	if len(got) == 0 || got[len(got)-1] != '\n' || !bytes.HasPrefix(right, got) {
		t.Errorf("the %d bytes of results are not whole rows of the right ones", len(got))
	}
	var m struct{ Status, Reason string }
	if err := json.Unmarshal(mustRead(t, path("results.json")), &m); err != nil || m.Status != "failed" || !strings.Contains(m.Reason, "free space") {
		t.Errorf("%v: the manifest says %+v", err, m)
	}
	if code, out := macrostepIn(t, dir, "run", "--resume", "run.checkpoint"); code != 0 || !bytes.Equal(right, mustRead(t, path("results.csv"))) {
		t.Errorf("going on when there is room: exit code %d\n%s", code, out)
	}

	// A device without room.
	if _, err := os.Stat("/dev/full"); err == nil {
		code, out := macrostep(t, "run", "--quiet", system(t, "quarter-car-a"), "--output", "/dev/full", "--manifest", path("m.json"))
		if code == 0 || !strings.Contains(out, syscall.ENOSPC.Error()) {
			t.Errorf("/dev/full: exit code %d\n%s", code, out)
		}
	}
	// Checkpoints that cannot be written do not end the run, and are told once: here
	// there is no room for the name of the temporary file.
	code, out2 := macrostep(t, "run", "--checkpoint", "0.01", path(strings.Repeat("x", 250)), system(t, "quarter-car-a"))
	if code != 0 || strings.Count(out2, "could not be written") != 1 || !strings.Contains(out2, "the run goes on") {
		t.Errorf("checkpoints that cannot be written: exit code %d\n%s", code, out2)
	}
}
