package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// An interrupted run keeps its results, says so, and leaves no folder behind.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, "tmp")
	mkdir(t, temp)
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
	data := read(t, filepath.Join(dir, "r.json"))
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
	mkdir(t, temp)
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
