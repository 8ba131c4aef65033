package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An FMU that crashes in the engine is isolated the next time.
func TestCrashIsRemembered(t *testing.T) {
	for _, fault := range []string{"Segfault", "SegfaultThread"} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		if a := runPair(t, "misbehave", "fault="+fault+" at=0.35"); a.code != 1 || len(a.isolated()) != 0 || !strings.Contains(a.output, "killed by signal SIGSEGV") {
			t.Errorf("%s, first run: exit code %d, isolated %v\n%s", fault, a.code, a.isolated(), a.output)
		}
		if a := runPair(t, "misbehave", ""); a.code != 0 || len(a.isolated()) != 1 || !strings.Contains(a.isolated()["bad"], "on record: killed by signal SIGSEGV") {
			t.Errorf("%s, second run: exit code %d, isolated %v\n%s", fault, a.code, a.isolated(), a.output)
		}
		if a := runPair(t, "misbehave", "", "--isolate", "never"); len(a.isolated()) != 0 {
			t.Errorf("with --isolate never: isolated %v", a.isolated())
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
		for line := range strings.Lines(string(read(t, filepath.Join(a.dir, "calls.txt")))) {
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
