package test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/test/long"
)

// Supervisor, engine or worker of runs are killed at random moments (SIGKILL), in a folder where an earlier run was
// complete. Whatever the moment: rows are whole and right and reach to the end time of the manifest, which is that of
// a complete run only if all rows are there; no process is left, and the next run removes what a killed supervisor
// could not.
func TestKilledAnywhere(t *testing.T) {
	kills := 3
	if long.On {
		kills = 200
	}
	for _, who := range []string{"supervisor", "engine", "worker"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			k := newKiller(t, who)
			for n := range kills {
				k.kill(t, n)
			}
			k.end(t, kills)
		})
	}
}

// killer kills one process of each of its runs.
type killer struct {
	who, system, dir, temp string
	step                   string // of the runs, s
	rng                    *rand.Rand
	takes                  time.Duration // a run that nobody kills
	old, manifest          []byte        // results and manifest of a complete run with other rows
	right                  []string      // lines of the runs
}

func newKiller(t *testing.T, who string) *killer {
	k := &killer{who: who, step: "1e-4", system: system(t, "quarter-car-a"), dir: t.TempDir(), temp: t.TempDir(),
		rng: rand.New(rand.NewPCG(1, uint64(len(who))))}
	if who == "worker" { // whose steps take longer
		k.step = "5e-4"
	}
	k.complete(t, "0.1", "1e-3")
	k.old, k.manifest = k.file("r.csv"), k.file("r.json")
	begin := time.Now()
	k.complete(t, "2", k.step)
	k.takes = time.Since(begin)
	k.right, _ = wholeLines(k.file("r.csv"))
	return k
}

// isolated reports whether FMUs have processes of their own. The engine does without them.
func (k *killer) isolated() bool { return k.who != "engine" }

// file returns a file of the folder; nil = there is none.
func (k *killer) file(name string) []byte {
	data, _ := os.ReadFile(filepath.Join(k.dir, name))
	return data
}

func (k *killer) command(stop, step string) *exec.Cmd {
	args := []string{"run", "--quiet", "--checkpoint", "0.2", "r.checkpoint", "--output", "r.csv", "--stop-time", stop, "--step-size", step}
	if k.isolated() {
		args = append(args, "--isolate", "always")
	}
	cmd := exec.Command(program, append(args, k.system)...)
	cmd.Dir = k.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+k.temp, "XDG_CACHE_HOME="+filepath.Join(k.dir, "cache"))
	return cmd
}

// complete makes a run that nobody kills.
func (k *killer) complete(t *testing.T, stop, step string) {
	t.Helper()
	if out, err := k.command(stop, step).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// kill makes a run, kills it and judges what is left.
func (k *killer) kill(t *testing.T, n int) {
	t.Helper()
	write(t, filepath.Join(k.dir, "r.csv"), k.old)
	write(t, filepath.Join(k.dir, "r.json"), k.manifest)
	cmd := k.command("2", k.step)
	p := started(t, cmd)
	ended := make(chan int, 1)
	go func() { ended <- p.end() }()
	over := func() bool { return len(ended) > 0 }
	if n%4 > 1 { // half of them after some rows: how long the start takes depends on what else the machine does
		until(t, "the run writes results or ends", func() bool {
			got := k.file("r.csv")
			return over() || len(got) > 0 && !bytes.Equal(got, k.old)
		})
	}
	time.Sleep(time.Duration(k.rng.Int64N(int64(k.takes))))
	until(t, "there is a "+k.who, func() bool { return over() || k.strike(t, cmd.Process) })
	code := <-ended
	until(t, "all processes of the run end", func() bool { return len(processesOf(k.temp)) == 0 })

	text := k.file("r.json")
	var m record.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("kill %d: the manifest is not whole: %v\n%s", n, err, text)
	}
	if k.who != "supervisor" {
		k.clean(t, n)
		if (code == 0) != (m.Status == master.Complete) && !bytes.Equal(text, k.manifest) {
			t.Errorf("kill %d: the exit code does not fit the manifest", n)
		}
	}
	if got := k.file("r.csv"); !bytes.Equal(got, k.old) { // else the manifest may be that of either
		k.judge(t, n, got, &m)
	}
	if t.Failed() {
		t.Fatalf("kill %d: exit code %d, status %s, reason %q\n%s", n, code, m.Status, m.Reason, p.out.String())
	}
}

// judge looks at the results of a killed run.
func (k *killer) judge(t *testing.T, n int, got []byte, m *record.Manifest) {
	t.Helper()
	lines, whole := wholeLines(got)
	last := m.EndTime
	if len(lines) > 1 && k.who != "supervisor" { // an engine without it has half a second to end
		text, _, _ := strings.Cut(lines[len(lines)-1], ",")
		last = number(text)
	}
	switch {
	case len(lines) > len(k.right) || !slices.Equal(lines, k.right[:len(lines)]):
		t.Errorf("kill %d: the rows are not right", n)
	case m.Status == master.Complete && len(lines) != len(k.right):
		t.Errorf("kill %d: the manifest says complete, and there are %d of %d lines", n, len(lines), len(k.right))
	case !whole && k.who != "supervisor":
		t.Errorf("kill %d: the results are not whole", n)
	case math.Abs(last-m.EndTime) > 1e-9:
		t.Errorf("kill %d: the last row is at %g, and the manifest ends at %g", n, last, m.EndTime)
	}
}

// strike kills the victim, or one of several, and reports whether there was one.
func (k *killer) strike(t *testing.T, supervisor *os.Process) bool {
	t.Helper()
	var victims []int
	switch k.who {
	case "supervisor":
		return supervisor.Kill() == nil
	case "engine":
		victims = children(t, supervisor.Pid, "\x00engine\x00")
	case "worker":
		victims = offspring(t, supervisor.Pid)
	}
	if len(victims) == 0 {
		return false
	}
	return syscall.Kill(victims[k.rng.IntN(len(victims))], syscall.SIGKILL) == nil
}

// clean checks that no temporary files are left.
func (k *killer) clean(t *testing.T, n int) {
	t.Helper()
	beside, _ := filepath.Glob(filepath.Join(k.dir, "*.tmp")) // the pattern is valid
	if left := append(listed(t, k.temp), beside...); len(left) > 0 {
		t.Errorf("kill %d: left: %v", n, left)
	}
}

// end makes a run that nobody kills.
func (k *killer) end(t *testing.T, kills int) {
	t.Helper()
	k.complete(t, "2", k.step)
	if lines, whole := wholeLines(k.file("r.csv")); !whole || !slices.Equal(lines, k.right) {
		t.Error("the results are not what they were before the kills")
	}
	k.clean(t, kills)
}

// wholeLines returns the lines of a table that end, and whether all do.
func wholeLines(data []byte) (lines []string, whole bool) {
	end := bytes.LastIndexByte(data, '\n') + 1
	return slices.Collect(strings.Lines(string(data[:end]))), end == len(data)
}
