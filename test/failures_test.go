package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run that comes to its end and its values nowhere is warned about.
func TestGrowthIsTold(t *testing.T) {
	page := filepath.Join(t.TempDir(), "run.html")
	args := []string{system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1", "--report", page}
	o := complete(t, args...)
	if text := string(read(t, page)); !strings.Contains(text, ">complete, unstable<") || !strings.Contains(text, "\n    &#34;stability&#34;: &#34;unstable&#34;,\n") {
		t.Errorf("the page does not say that the run is unstable\n%s", o.output)
	}
	if strict := run(t, append(args, "--strict")...); strict.code != 1 || strict.manifest.Status != "complete" {
		t.Errorf("strictly: exit code %d, %s", strict.code, strict.manifest.Status)
	}
	if !slices.ContainsFunc(o.manifest.Warnings, func(w string) bool { return strings.Contains(w, "has grown to") }) {
		t.Errorf("%q", o.manifest.Warnings)
	}
}

// What the documents show to be wrong ends a run before an FMU is called.
func TestFoundBeforeTheFMUs(t *testing.T) {
	for _, args := range [][]string{
		{"--algorithm", "im-milne", "--param", "control.atol=nope.x:1"},
		{"--bond", "x=chassis.F:wheel.v"},
		{"--algorithm", "gauss-seidel", "--param", "sequence=chassis"},
		{"--rate", "nope=2"},
	} {
		calls := filepath.Join(t.TempDir(), "calls.txt")
		o := run(t, append([]string{system(t, "quarter-car-a"), "--log-fmi-calls", calls}, args...)...)
		data, _ := os.ReadFile(calls)
		if o.code != 2 || len(data) > 0 {
			t.Errorf("%v: exit code %d, %d bytes of calls\n%s", args, o.code, len(data), o.output)
		}
	}
}

// A run goes on when nobody reads any longer what it prints.
func TestNobodyReads(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	// It has something to say before it begins, while it runs and at its end.
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1", "--log-level", "debug", "--isolate-component", "wheel")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
	if err := cmd.Run(); err != nil {
		t.Errorf("the run ended: %v", err)
	}
	if m := string(read(t, filepath.Join(dir, "results.json"))); !strings.Contains(m, `"status": "complete"`) {
		t.Errorf("manifest %s", m)
	}
}
