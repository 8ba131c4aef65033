//go:build unix

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Where results go to standard output, under any of its names, everything else goes to standard error, and a file
// that standard output is redirected to keeps its content.
func TestResultsApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/stdout", link); err != nil {
		t.Fatal(err)
	}
	names := []string{"/dev/stdout", link}
	prints := life(t, "", "PRINT")
	do := func(script string, args ...string) (stdout, stderr string) {
		args = append([]string{"-c", script, "sh", program, "run", "--compile", "--step-size", "0.01",
			"--stop-time", "0.02", "--check", prints}, args...)
		cmd := exec.Command("sh", args...)
		cmd.Dir = t.TempDir()
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // what is printed tells
		return out.String(), errs.String()
	}
	for _, name := range names {
		for _, script := range []string{`"$@" | cat`, `"$@" > file; cat file`} {
			stdout, stderr := do(script, "--output", name)
			if lines := strings.Split(stdout, "\n"); len(lines) != 5 || !strings.HasPrefix(stdout, "time,") ||
				!strings.HasPrefix(lines[3], "0.02,") {
				t.Errorf("%s %s: standard output\n%s", name, script, stdout)
			}
			for _, part := range []string{"printed by the FMU", "coupling error", "complete at"} {
				if !strings.Contains(stderr, part) {
					t.Errorf("%s %s: %q is not in standard error\n%s", name, script, part, stderr)
				}
			}
		}
		if stdout, stderr := do(`"$@"`, "--output", name, "--trace", name); stdout != "" ||
			!strings.Contains(stderr, "--output and --trace ") {
			t.Errorf("%s twice: %s\n%s", name, stdout, stderr)
		}
		if stdout, stderr := do(`echo before > file; "$@" >> file; cat file`, "--output", name); stdout != "before\n" ||
			!strings.Contains(stderr, "would replace what standard output already holds") {
			t.Errorf("%s to a file with content: %s\n%s", name, stdout, stderr)
		}
	}
	if stdout, stderr := do(`"$@" | cat`, "--output", "-"); !strings.HasPrefix(stdout, "time,") || !strings.Contains(stderr, "complete at") {
		t.Errorf("-: %s\n%s", stdout, stderr)
	}
	if stdout, stderr := do(`"$@"; ls`, "--output", "/dev/null"); strings.Contains(stdout, "results.") ||
		!strings.Contains(stdout, "complete at") {
		t.Errorf("/dev/null: %s\n%s", stdout, stderr)
	}
	for _, flag := range []string{"--trace", "--debug=calls"} {
		if stdout, stderr := do(`"$@"`, flag+"=/dev/stdout"); strings.Contains(stdout, "complete at") ||
			stdout == "" || !strings.Contains(stderr, "complete at") {
			t.Errorf("%s: standard output\n%s\nstandard error\n%s", flag, stdout, stderr)
		}
	}
	for _, left := range []string{"/dev/stdout.json", "/dev/fd/1.json", "/dev/null.json"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s was made", left)
			_ = os.Remove(left)
		}
	}
}

// A run does not write over the manifest of another one that is under way, nor over results that exist.
func TestManifestOfAnotherRun(t *testing.T) {
	t.Parallel()
	model := system(t, "quarter-car-a")
	p := start(t, "run", model, "--stop-time", "1e6", "--quiet", "--output", "first.csv", "--manifest", "m.json")
	written(t, p.path("first.csv"), 10_000)
	second := []string{"run", model, "--stop-time", "0.01", "--output", "second.csv", "--manifest", "m.json"}
	write(t, p.path("second.csv"), "old")
	code, out := macrostepIn(t, p.Dir, second...)
	if code == 0 || !strings.Contains(out,
		"m.json: another run is writing to it; wait until that run has ended, or choose another --output") ||
		string(read(t, p.path("second.csv"))) != "old" {
		t.Errorf("exit code %d\n%s", code, out)
	}
	p.signal(t, os.Kill)
	p.end()
	if code, out := macrostepIn(t, p.Dir, second...); code != 0 {
		t.Errorf("after the end of the first run: exit code %d\n%s", code, out)
	}
}

// A full disk under the log of calls or of attempts is one error with a remedy; the run does not count as complete.
func TestLogsWithoutRoom(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		return // a device of Linux and FreeBSD
	}
	for _, c := range []struct {
		flag, says string
		code       int
	}{
		{"--debug=calls", "--debug calls: the log ends early", 1},
		{"--trace", "writing the table of attempts", 2}, // its header is written before any FMU is instantiated
	} {
		dir := t.TempDir()
		code, out := macrostepIn(t, dir, "run", system(t, "quarter-car-a"), "--step-size", "1e-4",
			"--stop-time", "0.2", "--output", "r.csv", c.flag+"=/dev/full")
		if n := strings.Count(out, "macrostep: "); code != c.code || n != 1 || strings.Count(out, c.says) != 1 ||
			!strings.Contains(out, "free space") {
			t.Errorf("%s: exit code %d, %d messages\n%s", c.flag, code, n, out)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "r.json")); bytes.Contains(text, []byte(`"complete"`)) {
			t.Errorf("%s: the manifest says\n%s", c.flag, text)
		}
	}
}

// What FMUs print does not mix with a report for programs.
func TestAnalysisApart(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "analyze", "--compile", "--json", life(t, "", "PRINT"))
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil || !json.Valid(out) {
		t.Errorf("%v: standard output\n%s", err, out)
	}
}
