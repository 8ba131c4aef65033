package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var killedVariants = flag.Int("killed-variants", 60, "variants of the studies whose processes are killed")

// Engines and the coordinator of a study are killed at any time. The study that is continued has every variant once, with
// the values of an undisturbed one.
func TestStudyKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plan.yaml"), fmt.Sprintf(`
system: %s
run: {stop-time: 4, step-size: 1e-4}
vary: {coupling.c_c: "uniform(300, 500)", coupling.d_c: "uniform(1, 5)"}
samples: %d
collect: {last: final(mass1.x), top: maximum(mass2.x), force: rms(coupling.F)}
`, system(t, "two-mass-ff"), *killedVariants))
	study := func(args ...string) *process {
		cmd := exec.Command(program, append([]string{"study"}, args...)...)
		cmd.Dir = dir
		return started(t, cmd)
	}
	if p := study("plan.yaml", "-o", "calm"); p.end() != 0 {
		t.Fatal(p.out.String())
	}
	random := rand.New(rand.NewPCG(1, 2))
	p := study("plan.yaml", "-o", "killed")
	rows := func() int {
		return strings.Count(string(read(t, filepath.Join(dir, "killed", "results.csv"))), "\n") - 1
	}
	until(t, "there are rows", func() bool { _, err := os.Stat(filepath.Join(dir, "killed", "results.csv")); return err == nil })
	const kills = 13
	coordinators := 0
	for i := range kills {
		target := (i + 1) * *killedVariants / (kills + 2)
		ended := false
		until(t, "the study is so far", func() bool { ended = rows() >= *killedVariants; return ended || rows() >= target })
		if ended {
			break
		}
		if i%4 == 3 {
			coordinators++
			p.signal(t, syscall.SIGKILL)
			p.end()
			p = study("--resume", "killed")
			continue
		}
		if engines := children(t, p.Process.Pid, ""); len(engines) > 0 {
			_ = syscall.Kill(engines[random.IntN(len(engines))], syscall.SIGKILL) // it may have ended
		}
	}
	if p.end() != 0 || coordinators < 2 {
		t.Errorf("%d coordinators were killed: %s", coordinators, p.out.String())
	}
	calm, killed := rowsOfStudy(t, filepath.Join(dir, "calm")), rowsOfStudy(t, filepath.Join(dir, "killed"))
	for _, column := range []string{"run", "coupling.c_c", "coupling.d_c", "last", "top", "force", "status", "reason", "steps"} {
		if len(calm[column]) != *killedVariants || !slices.Equal(calm[column], killed[column]) {
			t.Errorf("%s: %d and %d rows, which differ", column, len(calm[column]), len(killed[column]))
		}
	}
	t.Logf("the longest run took %v", time.Duration(slices.Max(calm.numbers(t, "seconds"))*1e9))
}

// A study that is stopped, as with Ctrl-Z, goes on with its engines.
func TestStudyStopped(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "study", system(t, "two-mass-ff"), "--vary", "coupling.c_c=linear(300, 500, 40)", "--collect", "final(mass1.x)",
		"--run", "stop-time=1", "--run", "step-size=1e-4", "--engines", "2", "--output", "study")
	cmd.Dir = t.TempDir()
	p := started(t, cmd)
	var engines []int
	until(t, "there are engines", func() bool { engines = children(t, p.Process.Pid, "engine"); return len(engines) == 2 })
	p.signal(t, syscall.SIGSTOP)
	for _, pid := range engines {
		until(t, "the engine is stopped", func() bool {
			_, state, _ := strings.Cut(string(read(t, fmt.Sprintf("/proc/%d/stat", pid))), ") ")
			return strings.HasPrefix(state, "T")
		})
	}
	p.signal(t, syscall.SIGCONT)
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "40 runs: 40 ok") {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
}

// Errors are measured of a study that is complete: its rows stay, whether that is interrupted, or a check ends its engine.
func TestStudyCheckInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	warned, crashed := filepath.Join(dir, "warned"), filepath.Join(dir, "crashed")
	const most = 100 // faults, of which all have happened while the marker is there
	write(t, warned, "x")
	write(t, crashed, strings.Repeat("x", most))
	write(t, filepath.Join(dir, "rows.csv"), fmt.Sprintf("bad.fault,bad.times,bad.marker\nWarning,1,%s\nSegfault,%d,%s\n", warned, most, crashed))
	write(t, filepath.Join(dir, "plan.yaml"), fmt.Sprintf(`
system: %s
run: {stop-time: 100, step-size: 0.01, set: {bad.during: DoStep}}
table: rows.csv
collect: {x: final(good.x)}
`, badPair(t, "misbehave")))
	begin := func(args ...string) *process {
		cmd := exec.Command(program, append([]string{"study"}, args...)...)
		cmd.Dir = dir
		return started(t, cmd)
	}
	is := func(p *process, code int, parts ...string) {
		t.Helper()
		(&outcome{args: p.Args, code: p.end(), output: p.out.String()}).is(t, code, parts...)
	}
	is(begin("plan.yaml", "-o", "study"), 0, "2 runs: 2 ok")
	rows := string(read(t, filepath.Join(dir, "study", "results.csv")))
	for _, marker := range []string{warned, crashed} {
		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
	}
	p := begin("--resume", "study", "--check", "2")
	until(t, "the run of a check", func() bool { _, err := os.Stat(warned); return err == nil })
	p.signal(t, os.Interrupt)
	is(p, 1, "2 runs: 2 ok", "coupling error  unknown", "it was not measured: interrupted", "macrostep study --resume study --check 2")
	is(begin("--resume", "study", "--check", "2"), 0, "2 runs: 2 ok", "measured in 1 of 2 runs",
		"warning: run 1: the coupling error is unknown: ", "SIGSEGV")
	if now := string(read(t, filepath.Join(dir, "study", "results.csv"))); now != rows {
		t.Errorf("the rows were\n%s\nand are\n%s", rows, now)
	}
	if checks := checksOf(t, filepath.Join(dir, "study")); len(checks) != 2 || checks[0].Run+checks[1].Run != 1 {
		t.Errorf("%+v", checks)
	}
}
