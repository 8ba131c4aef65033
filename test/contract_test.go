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

// Two runs give the same bytes.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{system(t, "quarter-car-a")},
		{system(t, "two-mass-fd"), "--algorithm", "gauss-seidel", "--param", "order=2"},
	} {
		read := func() []byte {
			data, err := os.ReadFile(complete(t, args...).results)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		if !bytes.Equal(read(), read()) {
			t.Errorf("%v: two runs differ", args)
		}
	}
}

// A million fixed steps end exactly where t0 + n·H says.
func TestMillionSteps(t *testing.T) {
	const H, n = 1e-4, 1_000_000
	o := complete(t, system(t, "two-mass-dd"), "--step-size", "1e-4", "--start-time", "0", "--stop-time", "100", "--output-interval", "50")
	times := o.column(t, "time")
	if last, want := times[len(times)-1], float64(float64(n)*H); last != want {
		t.Errorf("the last point is %.17g, want %.17g", last, want)
	}
	if o.manifest.Steps.Accepted != n {
		t.Errorf("%d steps, want %d", o.manifest.Steps.Accepted, n)
	}
}

// An interrupted run keeps its results, says so, and leaves no folder behind.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(dir, "r.csv")
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--stop-time", "1e9", "--output-interval", "1", "--output", results)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written(t, results, 1000)
	if entries, _ := os.ReadDir(temp); len(entries) == 0 {
		t.Error("the run unpacks nowhere in the folder for temporary files: the test sees nothing")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, &output)
	}
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil || m.Status != "incomplete" || m.Steps.Accepted == 0 {
		t.Errorf("manifest: %v, status %q, %d steps", err, m.Status, m.Steps.Accepted)
	}
	table, err := os.ReadFile(results)
	if err != nil || !bytes.HasSuffix(table, []byte("\n")) {
		t.Errorf("the results do not end with a whole line: %v", err)
	}
	if entries, _ := os.ReadDir(temp); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// A run that was killed leaves readable results, a manifest that says
// incomplete, and a folder that the next run sweeps.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	results := filepath.Join(dir, "r.csv")
	cmd := exec.Command(program, "run", "--quiet", system(t, "quarter-car-a"), "--stop-time", "1e9", "--output-interval", "1", "--output", results)
	cmd.Env = environment
	ownCache(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written(t, results, 1000)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	table, err := os.ReadFile(results)
	if err != nil || len(table) < 1000 || !bytes.HasSuffix(table, []byte("\n")) {
		t.Errorf("the results (%d bytes) do not end with a whole line: %v", len(table), err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	var m manifest
	if err != nil || json.Unmarshal(data, &m) != nil || m.Status != "incomplete" {
		t.Errorf("manifest: %v, status %q", err, m.Status)
	}
	if entries, _ := os.ReadDir(temp); len(entries) == 0 {
		t.Fatal("a killed run leaves no folder: the test sees nothing")
	}
	next := exec.Command(program, "run", "--quiet", system(t, "quarter-car-a"), "--stop-time", "0.1", "--output", filepath.Join(dir, "next.csv"))
	next.Env = environment
	if out, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if entries, _ := os.ReadDir(temp); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// Exit codes: 2 for what is found before the first FMU is instantiated, with
// an error that names the culprit.
func testFoundBefore(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.fmu")
	if err := os.WriteFile(broken, []byte("PK\x03\x04 no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	car := system(t, "quarter-car-a")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"missing.ssp"}, "missing.ssp"},
		{[]string{broken}, "broken.fmu"},
		{[]string{car, "--step-size", "-1"}, "step-size"},
		{[]string{car, "--step-size", "0"}, "step-size"},
		{[]string{car, "--stop-time", "nan"}, "stop-time"},
		{[]string{car, "--algorithm", "magic"}, "explicit"},
		{[]string{car, "--param", "order=9"}, "order"},
		{[]string{car, "--param", "colour=red"}, "colour"},
		{[]string{car, "--set", "wheel.nothing=1"}, "wheel"},
		{[]string{car, "--set", "nobody.x=1"}, "nobody"},
		{[]string{car, "--set", "wheel.m_w=heavy"}, "m_w"},
		{[]string{car, "--stateless", "nobody"}, "nobody"},
		{[]string{car, "--record", "wheel.nothing"}, "wheel.nothing"},
		{[]string{car, "--no-such-flag"}, "no-such-flag"},
		{[]string{car, "second.ssp"}, "second.ssp"},
		{[]string{car, "--input", "none.csv"}, "none.csv"},
		{[]string{car, "--output", filepath.Join("no", "folder", "r.csv")}, "folder"},
	} {
		code, output := macrostep(t, append([]string{"run"}, c.args...)...)
		if code != 2 || !strings.Contains(output, c.want) || strings.Contains(output, "goroutine") {
			t.Errorf("%v: exit code %d, want 2 and %q in\n%s", c.args, code, c.want, output)
		}
	}
}

// The last step is shortened where the FMUs allow it.
func TestStopOffGrid(t *testing.T) {
	o := complete(t, system(t, "quarter-car-a"), "--step-size", "0.3", "--stop-time", "1")
	if got, want := fmt.Sprint(o.column(t, "time")), "[0 0.3 0.6 0.8999999999999999 1]"; got != want {
		t.Errorf("points %s, want %s", got, want)
	}
}
