package test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// runApart is runSystem with a cache of its own: an FMU that has crashed is on
// record there.
func runApart(t testing.TB, system, set string, args ...string) *aftermath {
	t.Helper()
	cmd, dir := systemCommand(t, system, set, args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return examine(t, dir, cmd, string(out))
}

// An FMU that crashes in the engine is isolated the next time.
func TestCrashIsRemembered(t *testing.T) {
	t.Parallel()
	cache := "XDG_CACHE_HOME=" + t.TempDir()
	do := func(set string, args ...string) (*exec.Cmd, string, string) {
		cmd, dir := systemCommand(t, badPair(t, "misbehave"), set, args...)
		cmd.Env = append(cmd.Env, cache)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd, dir, string(out)
	}
	reasons := func(dir string) map[string]string {
		return isolated(t, &outcome{results: filepath.Join(dir, "results.csv")})
	}
	cmd, dir, text := do("fault=Segfault at=0.35")
	if why := reasons(dir); cmd.ProcessState.ExitCode() != 1 || len(why) != 0 || !strings.Contains(text, "bad (misbehave.fmu) in fmi2DoStep at t = 0.4 s: killed by signal SIGSEGV") {
		t.Errorf("first run: %v, isolated %v\n%s", cmd.ProcessState, why, text)
	}
	cmd, dir, text = do("")
	if why := reasons(dir); cmd.ProcessState.ExitCode() != 0 || len(why) != 1 || !strings.Contains(why["bad"], "on record: killed by signal SIGSEGV") {
		t.Errorf("second run: %v, isolated %v\n%s", cmd.ProcessState, why, text)
	}
	_, dir, _ = do("", "--isolate", "never")
	if why := reasons(dir); len(why) != 0 {
		t.Errorf("with --isolate never: isolated %v", why)
	}
	for _, fault := range []string{"fault=Segfault at=0.35", "fault=SegfaultThread at=0.35"} {
		cache = "XDG_CACHE_HOME=" + t.TempDir()
		do(fault)
		cmd, dir, text = do("")
		if why := reasons(dir); cmd.ProcessState.ExitCode() != 0 || len(why) != 1 || !strings.Contains(why["bad"], "on record: killed by signal SIGSEGV") {
			t.Errorf("%s: the next run: %v, isolated %v\n%s", fault, cmd.ProcessState, why, text)
		}
	}
}

// The page of a run that an FMU ends by crashing is there, with the results so far, where the
// FMU is in the process of the run and where it is not.
func TestReportOfCrash(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where the FMU goes on record
	for _, isolate := range []string{"never", "always"} {
		o := runPair(t, "misbehave", "fault=Segfault at=0.35", "--isolate", isolate, "--report", "crash.html")
		page := string(read(t, filepath.Join(o.dir, "crash.html")))
		for _, want := range []string{">failed<", "segmentation fault", `data-name="good.x"`, `data-to="0.4"`} {
			if o.code != 1 || !strings.Contains(page, want) {
				t.Errorf("isolate %s: exit code %d, and the page has no %s\n%s", isolate, o.code, want, o.output)
			}
		}
	}
}

// The engine of a run, or a process of its FMUs, is killed at random moments (SIGKILL):
// all rows up to the end time of the manifest are there and right, the manifest is that of
// a failed run, and no process stays. With the supervisor it is as with the whole program
// (testKilledAnywhere), and the engine ends by itself.
func testKilledParts(t *testing.T) {
	t.Parallel()
	kills := 8
	if long.On {
		kills = 200
	}
	right := t.TempDir()
	args := []string{"run", "--quiet", "--step-size", "1e-4", "--stop-time", "40", system(t, "quarter-car-a")}
	if code, out := macrostepIn(t, right, args...); code != 0 {
		t.Fatal(out)
	}
	want := string(mustRead(t, filepath.Join(right, "results.csv")))
	for _, part := range []string{"engine", "worker", "supervisor"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(2, uint64(len(part))))
			for k := range kills {
				killPart(t, part, args, rng, want)
				if t.Failed() {
					t.Fatalf("after %d kills", k)
				}
			}
		})
	}
}

// killPart makes a run and kills a part of it.
func killPart(t *testing.T, part string, args []string, rng *rand.Rand, want string) {
	dir := t.TempDir()
	if part == "worker" {
		args = append(slices.Clone(args), "--isolate", "always")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	ownCache(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var engine string
	until(t, "there is an engine", func() bool {
		engine = strings.Join(children(t, cmd.Process.Pid, "\x00engine\x00"), "")
		return engine != ""
	})
	results := filepath.Join(dir, "results.csv")
	many := rng.Int64N(200_000)
	until(t, "the run writes results", func() bool {
		info, err := os.Stat(results)
		return err == nil && info.Size() > many
	})
	victim, workers := engine, offspring(t, cmd.Process.Pid)
	switch {
	case part == "supervisor":
		victim = strconv.Itoa(cmd.Process.Pid)
	case part == "worker":
		victim = workers[rng.IntN(len(workers))]
	}
	pid, err := strconv.Atoi(victim)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	for _, p := range append(workers, engine) {
		until(t, "process "+p+" ends", func() bool { return !alive(p) })
	}
	got := string(mustRead(t, results))
	var m struct {
		Status  string
		EndTime float64 `json:"end_time"`
	}
	if err := json.Unmarshal(mustRead(t, filepath.Join(dir, "results.json")), &m); err != nil {
		t.Fatalf("the manifest is not whole: %v", err)
	}
	last := strings.TrimRight(got, "\n")
	last, _, _ = strings.Cut(last[strings.LastIndexByte(last, '\n')+1:], ",")
	if last == "time" { // the header: no row has come before
		last = "0"
	}
	end, err := strconv.ParseFloat(last, 64)
	switch {
	case !strings.HasSuffix(got, "\n") || !strings.HasPrefix(want, got):
		t.Errorf("%d bytes are left, and they are not whole rows of the right ones", len(got))
	case part == "supervisor" && m.Status != "incomplete":
		t.Errorf("the manifest says %s", m.Status)
	case part != "supervisor" && (m.Status != "failed" || cmd.ProcessState.ExitCode() != 1):
		t.Errorf("exit code %d, the manifest says %s", cmd.ProcessState.ExitCode(), m.Status)
	case err != nil || math.Abs(end-m.EndTime) > 1e-9:
		t.Errorf("the last row is at %s, the manifest ends at %g", last, m.EndTime)
	}
}
