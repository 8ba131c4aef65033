package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// What ends or hangs the process of an FMU ends neither the run's nor the others',
// at whatever place it happens: the run fails with all that is known, the results
// are those before it, and nothing is left.
func TestKillingFMUs(t *testing.T) {
	take := long.Sample(24)
	places := []struct {
		name string
		at   string
		args []string
		end  float64 // time of the last row; -1: no row
		says string
	}{
		{name: "Instantiate", end: -1, says: "initialisation at t = 0 s"},
		{name: "EnterInitializationMode", at: "0", end: -1, says: "initialisation at t = 0 s"},
		{name: "DoStep", at: "0.35", end: 0.4, says: "step from t = 0.4 s by 0.1 s"},
		{name: "GetReal", at: "0.35", end: 0.3, says: "step from t = 0.3 s by 0.1 s"},
		// The rollback is tested over the first 16 steps, on an instance of its own.
		{name: "SetFMUstate", at: "0.35", args: []string{"--param", "discard=shorten", "--step-size", "0.02"}, end: 0.36, says: "going back to t = 0.36 s"},
		{name: "Terminate", at: "0", end: 1, says: "ending"},
		{name: "LogCallback", at: "0.35", end: 0.4, says: "step from t = 0.4 s by 0.1 s"},
	}
	for _, kill := range append(fmus.Kills(), killFromOutside) {
		for _, place := range places {
			if !take() {
				continue
			}
			t.Run(kill.Fault+"/"+place.name, func(t *testing.T) {
				t.Parallel()
				killing(t, kill, place.name, place.at, place.args, place.end, place.says)
			})
		}
	}
	// In the process of the run too, as far as the system lets it.
	for _, kill := range fmus.Kills() {
		if kill.Ending != fmus.Signalled {
			continue
		}
		for _, place := range places {
			if !take() {
				continue
			}
			t.Run("InProcess/"+kill.Fault+"/"+place.name, func(t *testing.T) {
				t.Parallel()
				crashingHere(t, kill, place.name, place.at, place.args, place.end)
			})
		}
	}
	// What does not end a process does no harm in that of the run either.
	for _, place := range places {
		if !take() {
			continue
		}
		t.Run("InProcess/"+place.name, func(t *testing.T) {
			t.Parallel()
			system, set, _ := killer(t, "MemoryHog", place.name, place.at, "16")
			a := runSystem(t, system, set, place.args...)
			if a.code != 0 || a.manifest.Status != "complete" || !strings.Contains(a.output, "16 MiB of memory are taken for ever") || !a.clean("good") {
				t.Errorf("exit code %d, %s; good ends with %v\n%s", a.code, a.manifest.Status, a.calls["good"], a.output)
			}
		})
	}
}

// killFromOutside stands for somebody who ends the process while the FMU is in a call.
var killFromOutside = fmus.Kill{Fault: "KillFromOutside", Ending: fmus.Signalled}

// killer gives a system with an FMU that a fault befalls, how it is set, and the file
// of the FMU.
func killer(t *testing.T, fault, place, at, megabytes string) (system, set, fmu string) {
	if place != "Instantiate" {
		return badPair(t, "misbehave"), fmt.Sprintf("fault=%s during=%s at=%s megabytes=%s", fault, place, at, megabytes), "misbehave.fmu"
	}
	// Nothing can be set before.
	name := "kill_" + fault
	made, _ := killers.LoadOrStore(fault+megabytes, sync.OnceValue(func() string {
		dir := filepath.Join(work, name+megabytes)
		writePair(t, dir, name, "", func(resources string) error {
			_, err := fmus.BuildMisbehaving(resources, name, "misbehave", map[string]string{"fault": fault, "during": place, "megabytes": megabytes})
			return err
		})
		return dir
	}))
	return made.(func() string)(), "", name + ".fmu"
}

// killers are the systems with FMUs that kill in fmi2Instantiate, each made once.
var killers sync.Map

func killing(t *testing.T, kill fmus.Kill, place, at string, args []string, end float64, says string) {
	fault, run := kill.Fault, runApart
	if kill == killFromOutside {
		fault, run = "EndlessSleep", runAndKill
	}
	system, set, fmu := killer(t, fault, place, at, "8192")
	args = append(slices.Clone(args), "--isolate", "always")
	function := "fmi2" + place
	if place == "LogCallback" {
		function = "fmi2DoStep"
	}
	want := []string{"bad (" + fmu + ")", says, "bad: "}
	ended := "the process of " + fmu + " ended in " + function
	switch kill.Ending {
	case fmus.Signalled:
		want = append(want, ended, "killed by signal "+signalNames[kill.Fault])
	case fmus.Exits:
		want = append(want, ended, fmt.Sprintf("it exited with code %d", kill.Code))
	case fmus.Hangs:
		args = append(args, "--step-timeout", "2")
		want = append(want, ended, "it did not return within 2s and was ended")
	case fmus.Exhausts:
		args = append(args, "--memory-limit", "64")
		want = append(want, "memory is refused")
	}
	if end >= 0 && place != "Terminate" {
		want = append(want, "t = 0.")
	}
	a := run(t, system, set, args...)
	if a.code != 1 || a.manifest.Status != "failed" {
		t.Errorf("exit code %d, status %s", a.code, a.manifest.Status)
	}
	for _, part := range want {
		if !strings.Contains(a.manifest.Reason, part) || !strings.Contains(a.output, part) {
			t.Errorf("%q is not said", part)
		}
	}
	last := -1.0
	if a.rows > 0 {
		times := a.column(t, "time")
		last = times[len(times)-1]
	}
	if d := last - end; d > 1e-9 || d < -1e-9 {
		t.Errorf("the last row is at %g, want %g", last, end)
	}
	if end >= 0 && !a.clean("good") {
		t.Errorf("good ends with %v", a.calls["good"])
	}
	if left := workersWith(t, a.dir); len(left) > 0 {
		t.Errorf("workers left: %v", left)
	}
	if t.Failed() {
		t.Logf("reason %q\n%s", a.manifest.Reason, a.output)
	}
}

// crashingHere is killing for an FMU in the process of the run: it ends as with one
// in a process of its own, and the other FMUs are not called any more.
func crashingHere(t *testing.T, kill fmus.Kill, place, at string, args []string, end float64) {
	system, set, fmu := killer(t, kill.Fault, place, at, "8192")
	function := "fmi2" + place
	if place == "LogCallback" {
		function = "fmi2DoStep"
	}
	a := runApart(t, system, set, append(slices.Clone(args), "--isolate", "never")...)
	want := []string{"bad (" + fmu + ")", "in " + function, "killed by signal " + strings.TrimSuffix(signalNames[kill.Fault], " by a stack overflow")}
	if place == "LogCallback" && kill.Fault == "Segfault" { // by a string, which is only read
		if a.code != 0 || a.manifest.Status != "complete" || !strings.Contains(a.output, "logs a text that cannot be read") || !a.clean("good") {
			t.Errorf("exit code %d, status %s\n%s", a.code, a.manifest.Status, a.output)
		}
		return
	}
	if end >= 0 {
		want = append(want, kill.Fault+" on purpose at t = ")
	}
	const status = "failed"
	if a.code != 1 || a.manifest.Status != status {
		t.Errorf("exit code %d, status %s", a.code, a.manifest.Status)
	}
	for _, part := range want {
		if !strings.Contains(a.manifest.Reason, part) || !strings.Contains(a.output, part) {
			t.Errorf("%q is not said", part)
		}
	}
	if kill.Fault != "KillItself" && !strings.Contains(a.output, "on record now") { // somebody else may have done that
		t.Error("it is not said what helps")
	}
	last := -1.0
	if a.rows > 0 {
		times := a.column(t, "time")
		last = times[len(times)-1]
	}
	if d := last - end; d > 1e-9 || d < -1e-9 {
		t.Errorf("the last row is at %g, want %g", last, end)
	}
	if calls := a.calls["good"]; place != "Terminate" && len(calls) > 0 && strings.HasPrefix(calls[len(calls)-1], "FreeInstance") {
		t.Error("good is called after the crash")
	}
	if t.Failed() {
		t.Logf("reason %q\n%s", a.manifest.Reason, a.output)
	}
}

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

// runAndKill is runApart with a process that is killed as soon as its FMU says that
// it is going to sleep.
func runAndKill(t testing.TB, system, set string, args ...string) *aftermath {
	t.Helper()
	cmd, dir := systemCommand(t, system, set, args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	var out listener
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.until(t, "EndlessSleep on purpose")
	for _, pid := range offspring(t, cmd.Process.Pid) {
		if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.HasSuffix(string(line), "\x00bad\x00") {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			_ = syscall.Kill(n, syscall.SIGKILL) // what comes of it shows
		}
	}
	_ = cmd.Wait() // examine judges how it ended
	return examine(t, dir, cmd, out.String())
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

// signalNames are what the faults that end by a signal are reported as.
var signalNames = map[string]string{
	"Segfault": "SIGSEGV (segmentation fault)", "SegfaultThread": "SIGSEGV (segmentation fault)", "StackOverflow": "SIGSEGV (segmentation fault)",
	"Abort": "SIGABRT (abort", "Throw": "SIGABRT (abort", "IllegalInstruction": "SIGILL (illegal instruction)", "KillItself": "SIGKILL (killed), from outside",
	"KillFromOutside": "SIGKILL (killed), from outside",
}

// workersWith lists the processes that were started with a folder in their
// environment.
func workersWith(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range paths {
		text, _ := os.ReadFile(p) // it may have gone, or be another user's
		if strings.Contains(string(text), folder) {
			out = append(out, p)
		}
	}
	return out
}

// An FMU in the engine that calls exit does not make the run look like a success: the
// rows before are kept, nothing is left, and the next run isolates.
func TestExitInTheProcess(t *testing.T) {
	t.Parallel()
	take := long.Sample(2)
	for _, place := range []string{"DoStep", "LogCallback", "Terminate"} { // in LogCallback in a thread of the FMU's own
		for _, fault := range []string{"Exit0", "Exit7"} {
			if !take() {
				continue
			}
			cache := "XDG_CACHE_HOME=" + t.TempDir()
			do := func() (*exec.Cmd, string, string) {
				cmd, dir := systemCommand(t, badPair(t, "misbehave"), fmt.Sprintf("fault=%s during=%s at=0.35", fault, place))
				cmd.Env = append(cmd.Env, cache)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				return cmd, dir, string(out)
			}
			cmd, dir, text := do()
			a := examine(t, dir, cmd, text)
			if a.code != 1 || a.manifest.Status != "failed" || !strings.Contains(text, "it exited with code "+strings.TrimPrefix(fault, "Exit")) || a.rows < 5 {
				t.Errorf("%s in %s: exit code %d, status %s, %d rows\n%s", fault, place, a.code, a.manifest.Status, a.rows, text)
			}
			cmd, dir, text = do()
			a = examine(t, dir, cmd, text)
			if a.code != 1 || a.manifest.Status != "failed" || !strings.Contains(text, "it exited with code "+strings.TrimPrefix(fault, "Exit")) {
				t.Errorf("%s in %s, again: exit code %d, status %s\n%s", fault, place, a.code, a.manifest.Status, text)
			}
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
