package test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// The log of calls of an engine that dies holds every call, and ends with the one under way.
func TestCallsOfCrash(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where the FMU goes on record
	calls := func(at string) (out []string) {
		a := runPair(t, "misbehave", "fault=Segfault at="+at, "--isolate", "never", "--step-size", "1e-4")
		for line := range strings.Lines(string(mustRead(t, filepath.Join(a.dir, "calls.txt")))) {
			_, line, _ = strings.Cut(line, " ") // without stamp and duration
			call, result, _ := strings.Cut(line, " -> ")
			if !strings.Contains(call, " fmi2DoStep ") {
				call = strings.Join(strings.Fields(call)[:2], " ")
			}
			out = append(out, call+" -> "+strings.Fields(result)[0])
		}
		return out
	}
	whole, crashed := calls("2"), calls("0.34995")
	last := len(crashed) - 1
	if last < 10_000 || !slices.Equal(crashed[:last], whole[:last]) {
		t.Errorf("%d calls, which are not those of the run without a crash", last)
	}
	if want, _, _ := strings.Cut(whole[last], " h="); !strings.HasPrefix(want, "bad fmi2DoStep t=0.35") || crashed[last] != want+" -> unfinished" {
		t.Errorf("the log ends with %q; the next call is %q", crashed[last], whole[last])
	}
}
