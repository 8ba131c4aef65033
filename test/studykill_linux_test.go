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
