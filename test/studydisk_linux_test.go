package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A study whose disk is full ends with the file, the reason and how to go on. The runs that could not write have no row, and are made
// when there is room.
func TestStudyFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const runs = 6
	plan := fmt.Sprintf(`
system: %s
run: {step-size: 1e-3}
vary: {coupling.c_c: "linear(300, 500, 2)", run.stop-time: [0.1, 10, 0.2]}
collect: {last: final(mass1.x), top: maximum(mass2.x)}
keep: all
`, system(t, "two-mass-ff"))
	for _, name := range []string{"calm", "full"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "plan.yaml"), plan)
	}
	study := func(limit, name string, args ...string) *outcome {
		cmd := exec.Command("sh", append([]string{"-c", limit + `exec "$@"`, "sh", program, "study"}, args...)...)
		cmd.Dir = filepath.Join(dir, name) // which is copied for FMUs that write files
		ownCache(t, cmd)
		output, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return &outcome{args: cmd.Args[1:], code: cmd.ProcessState.ExitCode(), output: string(output)}
	}
	study("", "calm", "plan.yaml", "-o", "study").is(t, 0, "6 runs: 6 ok")
	study("ulimit -f 400; ", "full", "plan.yaml", "-o", "study", "--engines", "1"). // 200 or 400 kB
											is(t, 1, filepath.Join("runs", "1.csv")+" cannot be written: file too large", "raise the limit", "macrostep study --resume study")
	full := rowsOfStudy(t, filepath.Join(dir, "full", "study"))
	if len(full["run"]) >= runs || slices.ContainsFunc(full["status"], func(s string) bool { return s != "ok" }) || slices.Contains(full["run"], "1") {
		t.Errorf("the rows on the full disk: %q, %q", full["status"], full["reason"])
	}
	study("", "full", "--resume", "study").is(t, 0, "6 runs: 6 ok")
	calm, full := rowsOfStudy(t, filepath.Join(dir, "calm", "study")), rowsOfStudy(t, filepath.Join(dir, "full", "study"))
	for _, column := range []string{"run", "coupling.c_c", "run.stop-time", "last", "top", "status", "reason", "steps"} {
		if len(calm[column]) != runs || !slices.Equal(calm[column], full[column]) {
			t.Errorf("%s: %q, and after a full disk %q", column, calm[column], full[column])
		}
	}
	for k := range runs {
		name := filepath.Join("runs", fmt.Sprint(k, ".csv"))
		if string(read(t, filepath.Join(dir, "calm", "study", name))) != string(read(t, filepath.Join(dir, "full", "study", name))) {
			t.Errorf("%s is not that of an undisturbed study", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "full", "study", "runs"))
	if err != nil || len(entries) != 2*runs {
		t.Errorf("%v, %v", err, entries)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "partial") {
			t.Errorf("left: %s", e.Name())
		}
	}
}

// The same holds if an FMU ends the process after the run that could not write.
func TestStudyFullDiskAndCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rows.csv"), "bad.fault,run.stop-time\nNone,1\nSegfault,1\nSegfault,40\n")
	write(t, filepath.Join(dir, "plan.yaml"), fmt.Sprintf(`
system: %s
run: {step-size: 0.01, set: {bad.during: Terminate}}
table: rows.csv
collect: {x: final(good.x)}
keep: all
`, badPair(t, "misbehave")))
	cmd := exec.Command("sh", "-c", `ulimit -f 240; exec "$@"`, "sh", program, "study", "plan.yaml", "-o", "study", "--engines", "1")
	cmd.Dir = dir
	p := started(t, cmd)
	(&outcome{args: p.Args, code: p.end(), output: p.out.String()}).is(t, 1, "2 runs: 2 ok", filepath.Join("runs", "2.csv")+" cannot be written: file too large",
		"macrostep study --resume study")
	cmd = exec.Command(program, "study", "--resume", "study")
	cmd.Dir = dir
	p = started(t, cmd)
	(&outcome{args: p.Args, code: p.end(), output: p.out.String()}).is(t, 0, "3 runs: 3 ok")
}
