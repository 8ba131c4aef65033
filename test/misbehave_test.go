package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/probe"
)

// badPair returns the folder of a system of a healthy FMU and a misbehaving one, called bad. The name of the FMU may
// be followed by "+ name" for a third, uncoupled component of it.
func badPair(t testing.TB, fmu string) string {
	t.Helper()
	name, third, _ := strings.Cut(fmu, "+")
	return once(t, "pair-"+fmu, func(dir string) error {
		return writePair(t, dir, name, third, func(resources string) error { return build(resources, name) })
	})
}

// writePair writes the system; make writes the FMU of that name to a folder.
func writePair(t testing.TB, dir, name, third string, make func(resources string) error) error {
	t.Helper()
	members := []member{{"good", "mass_force", "F", "x"}, {"bad", name, "u", "x"}}
	if third != "" {
		members = append(members, member{third, name, "", ""})
	}
	coupled(t, dir, "1", members, "good.x → bad.u\nbad.x → good.F")
	copyFMUs(t, filepath.Join(dir, "resources"), "mass_force")
	return make(filepath.Join(dir, "resources"))
}

// aftermath is the outcome of a run of a pair, with its calls.
type aftermath struct {
	*outcome
	dir   string              // that it ran in
	lines []string            // of the results; nil = there is no file
	calls map[string][]string // by component: "DoStep Error" and so on, in order
}

// systemCommand returns the command that runs a system with settings of its component bad, in a folder and with a
// cache of its own: crashes of FMUs are recorded there.
func systemCommand(t testing.TB, system, set string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	temp, cache := filepath.Join(dir, "tmp"), filepath.Join(dir, "cache")
	mkdir(t, temp)
	// All files by relative names: an FMU may change the directory.
	all := []string{"run", "--output", "results.csv", "--debug", "calls=calls.txt"}
	if !slices.Contains(args, "--step-size") {
		args = append([]string{"--step-size", "0.1"}, args...)
	}
	for _, s := range strings.Fields(set) {
		all = append(all, "--set", "bad."+s)
	}
	cmd := exec.Command(program, append(append(all, args...), system)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp, "XDG_CACHE_HOME="+cache, "LocalAppData="+cache)
	return cmd
}

// observe waits for the end of a run and reads what it has left: whole lines, and no temporary files.
func observe(t testing.TB, p *process) *aftermath {
	t.Helper()
	code := p.end()
	a := &aftermath{dir: p.Dir, outcome: &outcome{args: p.Args, code: code, output: p.out.String(), results: p.path("results.csv")}}
	if left := listed(t, p.path("tmp")); len(left) > 0 && code >= 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if text, err := os.ReadFile(p.path("results.json")); err == nil {
		if err := json.Unmarshal(text, &a.manifest); err != nil {
			t.Errorf("manifest: %v\n%s", err, text)
		}
	}
	if text, err := os.ReadFile(a.results); err == nil {
		a.lines = append([]string{}, slices.Collect(strings.Lines(string(text)))...)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			t.Error("the results do not end with a whole line")
		}
	}
	return a
}

// examine is observe for a run that is to leave a manifest, results and calls, unless nothing was run. It reads them.
func examine(t testing.TB, p *process) *aftermath {
	t.Helper()
	a := observe(t, p)
	a.calls = map[string][]string{}
	if strings.Contains(a.output, "goroutine ") || strings.Contains(a.output, "panic") {
		t.Errorf("the program crashed:\n%s", a.output)
	}
	if a.manifest.Status == "" && a.code != 2 {
		t.Error("there is no manifest")
	}
	if a.lines != nil {
		a.read(t)
	}
	trace, err := os.ReadFile(p.path("calls.txt"))
	if err != nil && a.code != 2 && slices.Contains(p.Args, "--debug") {
		t.Errorf("calls: %v", err)
	}
	for line := range strings.Lines(string(trace)) {
		// "0.001 bad fmi2DoStep t=0 … -> OK 0.1µs"
		call, result, _ := strings.Cut(line, " -> ")
		w, r := strings.Fields(call), strings.Fields(result)
		if len(w) < 3 || len(r) < 1 {
			t.Fatalf("not understood in the log of calls: %q", line)
		}
		a.calls[w[1]] = append(a.calls[w[1]], strings.TrimPrefix(w[2], "fmi2")+" "+r[0])
	}
	return a
}

func runPair(t testing.TB, fmu, set string, args ...string) *aftermath {
	t.Helper()
	return runSystem(t, badPair(t, fmu), set, args...)
}

func runSystem(t testing.TB, system, set string, args ...string) *aftermath {
	t.Helper()
	return examine(t, started(t, systemCommand(t, system, set, args...)))
}

// runUntraced is runSystem without a log of calls, with which each call is made by itself.
func runUntraced(t testing.TB, system, set string, args ...string) *aftermath {
	t.Helper()
	cmd := systemCommand(t, system, set, args...)
	at := slices.Index(cmd.Args, "--debug")
	cmd.Args = slices.Delete(cmd.Args, at, at+2)
	return examine(t, started(t, cmd))
}

// ends reports whether the calls of a component end with these.
func (a *aftermath) ends(component string, calls ...string) bool {
	c := a.calls[component]
	return len(c) >= len(calls) && slices.Equal(c[len(c)-len(calls):], calls)
}

// clean reports whether a component was ended by Terminate and FreeInstance, once each, in this order, as its last
// calls.
func (a *aftermath) clean(component string) bool {
	n := 0
	for _, c := range a.calls[component] {
		if strings.HasPrefix(c, "Terminate ") || strings.HasPrefix(c, "FreeInstance ") {
			n++
		}
	}
	return n == 2 && a.ends(component, "Terminate OK", "FreeInstance void")
}

// Each fault has the outcome of the checklist (fmi2 30, 51–56, 62, 69, 72).
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	take := long.Sample(5)
	const shorten = "--param=discard=shorten"
	// The rollback is tested over the first 16 steps, on an instance of its own; faults of saving and restoring that
	// are to show in the run come later.
	free := "FreeInstance void"
	for _, c := range []struct {
		name, fmu, set string
		args           []string
		status         master.Status
		end            float64  // time of the last row; -1: no row
		says           []string // in the reason; of a complete run in a warning
		ends           []string // last calls of bad; nil: ended cleanly
		freed          bool     // good is freed without Terminate: it was not initialised
	}{
		{name: "nothing", status: "complete", end: 1},
		{name: "discard", set: "fault=Discard at=0.35", status: "failed", end: 0.3,
			says: []string{"bad (misbehave.fmu)", "step from t = 0.3 s", "fmi2DoStep returned Discard", "t = 0.35 s", "discard=shorten"}},
		{name: "discard, shortened", set: "fault=Discard at=0.35", args: []string{shorten}, status: "complete", end: 1},
		{name: "too long every step", set: "fault=TooLong at=0.35", args: []string{shorten}, status: "failed", end: 0.4,
			says: []string{"rejected down to", "bad (misbehave.fmu)", "fmi2DoStep returned Discard", "t = 0.4 s"}},
		{name: "discard and end, with rollback", set: "fault=DiscardAndEnd at=0.35", args: []string{shorten},
			status: "terminated", end: 0.35,
			says: []string{"bad (misbehave.fmu)", "asked to end", "t = 0.35 s"}},

		{name: "discard and end, implicit", set: "fault=DiscardAndEnd at=0.35",
			args: []string{"--algorithm", "implicit"}, status: "terminated", end: 0.3,
			says: []string{"bad (misbehave.fmu)", "asked to end", "t = 0.35 s", "last common point, t = 0.3 s"}},

		{name: "error in doStep", set: "fault=Error at=0.35", status: "failed", end: 0.4,
			says: []string{"bad (misbehave.fmu)", "step from t = 0.4 s", "fmi2DoStep returned Error",
				"on purpose"}, ends: []string{"DoStep Error", free}},
		{name: "fatal in doStep", set: "fault=Fatal at=0.35", status: "failed", end: 0.4,
			says: []string{"bad (misbehave.fmu)", "step from t = 0.4 s", "fmi2DoStep returned Fatal",
				"on purpose"}, ends: []string{"DoStep Fatal"}},
		{name: "pending", set: "fault=Pending at=0.35 polls=3", status: "complete", end: 1},
		{name: "NaN", set: "fault=NaN at=0.35", status: "failed", end: 0.4,
			says: []string{"bad (misbehave.fmu)", "bad.x, which feeds good.F, is NaN at t = 0.5 s"}},
		{name: "NaN at the start", set: "fault=NaN during=GetReal", status: "failed", end: -1, says: []string{"bad", "NaN"}},
		{name: "NaN that is only recorded", set: "fault=NaN during=GetReal at=0.35 variable=3",
			args: []string{"--record", "bad.*"}, status: "complete", end: 1,
			says: []string{"bad (misbehave.fmu)", "bad.der(x) is NaN at t = 0.4 s"}},

		{name: "error in get", set: "fault=Error during=GetReal at=0.35", status: "failed", end: 0.3,
			says: []string{"bad (misbehave.fmu)", "step from t = 0.3 s",
				"fmi2GetReal returned Error"}, ends: []string{"GetReal Error", free}},
		{name: "error in saving", set: "fault=Error during=GetFMUstate at=0.35",
			args: []string{shorten, "--step-size", "0.02"}, status: "failed", end: 0.36,
			says: []string{"bad (misbehave.fmu)", "saving the state at t = 0.36 s",
				"fmi2GetFMUstate returned Error"}, ends: []string{"GetFMUstate Error", "FreeFMUstate OK", free}},
		{name: "fatal in restoring", set: "fault=Fatal during=SetFMUstate at=0.35",
			args: []string{shorten, "--step-size", "0.02"}, status: "failed", end: 0.36,
			says: []string{"bad (misbehave.fmu)", "going back to t = 0.36 s",
				"fmi2SetFMUstate returned Fatal"}, ends: []string{"SetFMUstate Fatal"}},

		{name: "error before initialisation", set: "fault=Error during=EnterInitializationMode", status: "failed", end: -1, freed: true,
			says: []string{"bad (misbehave.fmu)", "initialisation at t = 0 s",
				"fmi2EnterInitializationMode returned Error"}, ends: []string{"EnterInitializationMode Error", free}},
		{name: "error at the end", set: "fault=Error during=Terminate", args: []string{"--strict"}, status: "complete", end: 1,
			says: []string{"bad (misbehave.fmu)", "ending", "fmi2Terminate returned Error", "on purpose"}, ends: []string{"Terminate Error", free}},
		{name: "discard at the end", set: "fault=Discard during=Terminate", status: "complete", end: 1,
			says: []string{"bad (misbehave.fmu)", "fmi2Terminate returned Discard"}, ends: []string{"Terminate Discard", free}},
		{name: "refuses to be", fmu: "misbehave_refuse", status: "failed", end: -1, freed: true,
			says: []string{"bad (misbehave_refuse.fmu)", "fmi2Instantiate", "no licence"}, ends: []string{"Instantiate null"}},
		{name: "stops short", set: "fault=StopShort at=0.35 fraction=0.5", status: "complete", end: 1,
			says: []string{"misbehave.fmu", "step from t = 0.4 s by 0.1 s", "variable time", "0.45 s"}},
		{name: "refuses orders above 1", set: "fault=RefuseOrders", args: []string{"--param", "order=2"}, status: "complete", end: 1,
			says: []string{"bad", "up to order 1, not 2", "substeps"}},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if c.fmu == "" {
				c.fmu = "misbehave"
			}
			a := runPair(t, c.fmu, c.set, c.args...)
			code, said := 0, a.manifest.Reason
			switch c.status {
			case master.Complete:
				said = a.warnings()
			case master.Failed:
				code = 1
			}
			if a.code != code || a.manifest.Status != c.status {
				t.Errorf("exit code %d, status %s, want %d, %s", a.code, a.manifest.Status, code, c.status)
			}
			for _, s := range c.says {
				if !strings.Contains(said, s) || !strings.Contains(a.output, s) {
					t.Errorf("%q is not said", s)
				}
			}
			end := -1.0
			if a.rows > 0 {
				end = last(a.column(t, "time"))
			}
			if math.Abs(end-c.end) > 1e-9 {
				t.Errorf("the last row is at %g, want %g", end, c.end)
			}
			if c.ends == nil && !a.clean("bad") || !a.ends("bad", c.ends...) {
				t.Errorf("bad ends with %v, want %v", a.calls["bad"], c.ends)
			}
			if c.freed && (!a.ends("good", free) || a.clean("good")) || !c.freed && !a.clean("good") {
				t.Errorf("good ends with %v", a.calls["good"])
			}
			if t.Failed() {
				t.Logf("reason %q\nwarnings %q\n%s", a.manifest.Reason, a.manifest.Warnings, a.output)
			}
		})
	}
}

// What an FMU changes in the process, in a call, while it is loaded or instantiated, is restored and reported once with
// its name; results and files are those of an FMU that changes nothing (fmi2 73).
func TestProcessIsPutBack(t *testing.T) {
	t.Parallel()
	want := runPair(t, "misbehave", "").lines
	const (
		modes     = "misbehave.fmu: the FMU changes the floating-point modes (rounding, flush to zero or exceptions) in fmi2"
		signals   = "replaced the handlers of signals 2 (interrupt), 8 (floating point exception), 11 (segmentation fault)"
		inStep    = "in a step one of the FMUs mass_force.fmu, misbehave.fmu changed the "
		directory = `changed the working directory to "/"`
		locale    = "changed the locale"
	)
	var loading []string
	for _, change := range []string{directory, "changes the floating-point modes", "replaced the handlers", locale} {
		loading = append(loading, "while loading: the FMU "+change, "misbehave_load.fmu: the FMU "+change)
	}
	take := long.Sample(4)
	for _, c := range []struct {
		fmu, fault, during string
		says               []string
	}{
		{"misbehave_load", "None", "", loading},
		{"misbehave", "Rounding", "DoStep", []string{modes + "DoStep"}},
		{"misbehave", "Exceptions", "DoStep", []string{modes + "DoStep"}},
		{"misbehave", "Rounding", "GetReal", []string{modes + "GetReal"}},
		{"misbehave", "FlushToZero", "EnterInitializationMode", []string{modes + "EnterInitializationMode"}},
		{"misbehave", "Directory", "EnterInitializationMode", []string{directory}},
		{"misbehave", "Directory", "DoStep", []string{inStep + `working directory to "/"; it is restored`}},
		{"misbehave", "Locale", "ExitInitializationMode", []string{locale + " of the C library"}},
		{"misbehave", "Locale", "DoStep", []string{inStep + "locale of the C library"}},
		{"misbehave", "Signals", "DoStep", []string{"misbehave.fmu: in a step the FMU " + signals}},
		{"misbehave", "Signals", "Terminate", []string{"replaced the handlers of signals"}},
	} {
		if !take() {
			continue
		}
		t.Run(c.fault+" in "+c.during, func(t *testing.T) {
			set := "fault=" + c.fault
			if c.during != "" {
				set += " during=" + c.during
			}
			a := runPair(t, c.fmu, set)
			if a.code != 0 || !a.clean("bad") || !a.clean("good") || !slices.Equal(a.lines, want) {
				t.Errorf("exit code %d, %s, or other results\n%s", a.code, a.manifest.Reason, a.output)
			}
			for _, says := range c.says {
				seen := runtime.GOOS == "linux" || !strings.Contains(says, "handlers") && !strings.Contains(says, "locale") // elsewhere the program cannot
				if seen && strings.Count(a.notes(), says) != 1 {
					t.Errorf("notes %q, want %q once\n%s", a.notes(), says, a.output)
				}
			}
		})
	}
}

// After Fatal no function of any instance of that FMU is called, the healthy sister's neither (fmi2 55).
func TestFatalEndsAllInstances(t *testing.T) {
	a := runPair(t, "misbehave+sister", "fault=Fatal at=0.35")
	if a.code != 1 || !a.ends("bad", "DoStep Fatal") || !a.clean("good") {
		t.Errorf("exit code %d, bad %v, good %v\n%s", a.code, a.calls["bad"], a.calls["good"], a.output)
	}
	if s := a.calls["sister"]; len(s) == 0 || strings.HasPrefix(s[len(s)-1], "FreeInstance") || slices.Contains(s, "Terminate OK") {
		t.Errorf("the sister's calls: %v", s)
	}
	if strings.Contains(a.output, "refused") {
		t.Errorf("the end is told as a failure of its own:\n%s", a.output)
	}
}

// A second instance of an FMU that lives once in a process gets one of its own, or is refused, and never tried (fmi2
// 37).
func TestOncePerProcess(t *testing.T) {
	t.Parallel()
	runPair(t, "misbehave_once", "").is(t, 0)
	if a := runPair(t, "misbehave_once", "", "--check"); a.code != 0 || strings.Contains(a.output, "unknown: ") {
		t.Errorf("with a check: exit code %d\n%s", a.code, a.output)
	}
	if a := runPair(t, "misbehave_once+sister", ""); a.code != 0 || !a.clean("sister") {
		t.Errorf("with a sister: exit code %d\n%s", a.code, a.output)
	}
	a := runPair(t, "misbehave_once+sister", "", "--isolate", "never")
	if a.code != 2 || len(a.calls) != 0 {
		t.Errorf("exit code %d, calls %v", a.code, a.calls)
	}
	for _, s := range []string{"misbehave_once.fmu", "only once per process", "bad, sister"} {
		if !strings.Contains(a.output, s) {
			t.Errorf("%q is not in\n%s", s, a.output)
		}
	}
}

// A step that an FMU shortens is taken to where it got to, and one in which it ends the run is not taken (fmi2 52): the
// values are those of a run whose grid holds the last time.
func TestShortenedStepsAreRight(t *testing.T) {
	args := []string{fmu(t, "misbehave"), "--set", "misbehave.at=0.35", "--param", "discard=shorten", "--step-size", "0.1"}
	H := 0.1
	before, after := []float64{0, H, 2 * H, 3 * H}, []float64{0.35, 4 * H, 5 * H, 6 * H, 7 * H, 8 * H, 9 * H, 1}
	for fault, want := range map[string][]float64{"DiscardAndEnd": before, "Discard": append(slices.Clip(before), after...)} {
		o := run(t, append(args, "--set", "misbehave.fault="+fault)...)
		if times := o.column(t, "time"); o.code != 0 || !slices.Equal(times, want) {
			t.Fatalf("%s: exit code %d, points %v, want %v\n%s", fault, o.code, times, want, o.output)
		}
		fine := complete(t, args[0], "--step-size", "0.05", "--stop-time", fmt.Sprint(last(want)))
		if got, want := last(o.column(t, "misbehave.x")), last(fine.column(t, "misbehave.x")); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: x ends with %.17g, want %.17g", fault, got, want)
		}
	}
}

// A step that never ends is cancelled on Ctrl-C; the run ends like any other that was interrupted. After five seconds a
// pending step is reported, once (fmi2 53).
func TestInterruptPending(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Log("a process cannot be sent an interrupt there")
		return
	}
	const late = "bad: misbehave.fmu: the step from t = 0.4 s by 0.1 s is pending for more than 5s"
	for _, c := range []struct{ ending, says, cancelled string }{
		{"OK", "", "OK"},
		{"Uncancellable", "", "Error"},
		{"OK", late, "OK"},
	} {
		t.Run(c.ending+c.says, func(t *testing.T) {
			t.Parallel()
			p := started(t, systemCommand(t, badPair(t, "misbehave"), "fault=Pending at=0.35 polls=-1 ending="+c.ending))
			until(t, "it is polled", func() bool {
				trace, _ := os.ReadFile(p.path("calls.txt"))
				return bytes.Contains(trace, []byte("value=Pending"))
			})
			p.out.until(t, c.says)
			p.signal(t, syscall.SIGINT)
			a := examine(t, p)
			if a.code != 1 || a.manifest.Status != "incomplete" || !strings.Contains(a.manifest.Reason, "interrupted") ||
				!strings.Contains(a.manifest.Reason, "bad (misbehave.fmu): step from t = 0.4 s") {
				t.Errorf("exit code %d, %s, %q\n%s", a.code, a.manifest.Status, a.manifest.Reason, a.output)
			}
			if !a.ends("bad", "CancelStep "+c.cancelled, "FreeInstance void") || !a.clean("good") || last(a.column(t, "time")) != 0.4 {
				t.Errorf("rows at %v, bad %v, good %v", a.columns["time"], a.calls["bad"], a.calls["good"])
			}
			if c.says != "" && (strings.Count(a.warnings(), late) != 1 || strings.Count(a.output, late) != 1) {
				t.Errorf("warnings %q\n%s", a.manifest.Warnings, a.output)
			}
		})
	}
}

// A step that is pending for ever ends with --step-timeout, in the process of the run and in one of its own; the rows
// before it stay.
func TestPendingTooLong(t *testing.T) {
	t.Parallel()
	limited := ours(t, []member{{"good", "mass_force", "F", "x"}, {"bad", "misbehave", "u", "x"}},
		"good.x → bad.u\nbad.x → good.F") // by the document
	ssd := filepath.Join(limited, "SystemStructure.ssd")
	write(t, ssd, annotated(string(read(t, ssd)), `<ms:Settings version="1" stepTimeout="2"/>`))
	for _, c := range []struct {
		name, system, ending string
		args                 []string
		says                 string
		ends                 []string
	}{
		{"here", badPair(t, "misbehave"), "OK", []string{"--isolate", "good", "--step-timeout", "2"},
			"fmi2DoStep of misbehave.fmu at t = 0.4 s: the step was still pending after 2s and was cancelled", []string{"CancelStep OK",
				"FreeInstance void"}},
		{"isolated", badPair(t, "misbehave"), "Uncancellable", []string{"--isolate", "bad", "--step-timeout", "2"},
			"the process of misbehave.fmu ended in fmi2DoStep at t = 0.4 s: the step was still pending after 2s", []string{"GetStatus OK"}},
		{"not logged", limited, "OK", []string{"--isolate", "never"},
			"fmi2DoStep of misbehave.fmu at t = 0.4 s: the step was still pending after 2s and was cancelled", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := runSystem
			if c.ends == nil { // many calls in one crossing
				run = runUntraced
			}
			a := run(t, c.system, "fault=Pending at=0.35 polls=-1 ending="+c.ending, c.args...)
			if a.code != 1 || a.manifest.Status != "failed" || !strings.Contains(a.manifest.Reason, "bad: "+c.says) ||
				!strings.Contains(a.output, c.says) || !strings.Contains(a.output, "(--step-timeout)") {
				t.Errorf("exit code %d, %s, %q\n%s", a.code, a.manifest.Status, a.manifest.Reason, a.output)
			}
			if c.ends != nil && (!a.ends("bad", c.ends...) || !a.clean("good")) {
				t.Errorf("bad %v, good %v", a.calls["bad"], a.calls["good"])
			}
			if at := last(a.column(t, "time")); at != 0.4 {
				t.Errorf("the last row is at %g", at)
			}
		})
	}
}

// A run that completes with values that grow without bound warns.
func TestGrowthIsTold(t *testing.T) {
	page := filepath.Join(t.TempDir(), "run.html")
	args := []string{system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1", "--report", page}
	o := complete(t, args...)
	if text := string(read(t, page)); !strings.Contains(text, ">complete, grows<") ||
		!strings.Contains(text, "\n    &#34;stability&#34;: &#34;grows&#34;,\n") {
		t.Errorf("the page does not say that something grows\n%s", o.output)
	}
	if strict := run(t, append(args, "--strict")...); strict.code != 1 || strict.manifest.Status != "complete" {
		t.Errorf("strictly: exit code %d, %s", strict.code, strict.manifest.Status)
	}
	if !slices.ContainsFunc(o.manifest.Warnings, func(w string) bool { return strings.Contains(w, "double") }) {
		t.Errorf("%q", o.manifest.Warnings)
	}
}

// A run goes on after the reader of its output has gone.
func TestNobodyReads(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	// It prints before it begins, while it runs and at its end.
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1",
		"-vv", "--isolate", "wheel")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
	if err := cmd.Run(); err != nil {
		t.Errorf("the run ended: %v", err)
	}
	if m := string(read(t, filepath.Join(dir, "results.json"))); !strings.Contains(m, `"status": "complete"`) {
		t.Errorf("manifest %s", m)
	}
}

// variant packs the FMU of probe.Sources under a name, with one change each of its description and its source.
func variant(t *testing.T, name string, description, source func(string) string) string {
	t.Helper()
	named := swap(`modelIdentifier="life"`, `modelIdentifier="`+name+`"`)
	document := named(description(probe.LifeDescription(probe.LifeCapabilities, "")))
	path, err := fmus.Pack(t.TempDir(), name, document, swap(`"fmi2Functions.h"`, `"fmi2.h"`)(source(probe.LifeSource())))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// An unconnected input that is set is held: results show the set value, by default too, even if the FMU does not
// return it, and without a warning.
func TestSetInputsAreHeld(t *testing.T) {
	t.Parallel()
	path := variant(t, "forgetful", swap("", ""), swap("vr[i] == 0 ? m->u :", "vr[i] == 0 ? 0 :"))
	for _, more := range []string{"--isolate=never", "--record=*", "--param=discard=shorten"} {
		o := complete(t, path, "--step-size", "0.25", "--stop-time", "1", "--set", "u=3", more)
		if len(o.manifest.Warnings) > 0 {
			t.Errorf("%v: warnings %q", more, o.manifest.Warnings)
		}
		if u := o.column(t, "forgetful.u"); slices.Min(u) != 3 || slices.Max(u) != 3 {
			t.Errorf("%v: u is recorded as %g", more, u)
		}
		if y := o.column(t, "forgetful.y"); y[1] != 0.25*2*3+0.25*3 {
			t.Errorf("%v: y is %v", more, y)
		}
	}
}

// Documented start values are not set: an FMU that refuses them runs, and one warning lists the values that differ.
// Values given by the user are set (fmi2 42).
func TestStartsAreLeft(t *testing.T) {
	t.Parallel()
	path := variant(t, "locked", swap(`<Real start="2"/>`, `<Real start="5"/>`), func(s string) string { return "#define LOCKED\n" + s })
	args := []string{path, "--step-size", "0.25", "--stop-time", "1"}
	const says = "start values differ from modelDescription.xml: k is 2 (documented: 5)"
	for _, more := range []string{"--isolate=never", "--isolate=always", "--param=discard=shorten", "--set=locked.u=1"} {
		o := complete(t, append(args, more)...)
		if y := o.column(t, "locked.y"); strings.Count(o.warnings(), says) != 1 || y[1] != 0.25*2+0.25 {
			t.Errorf("%v: y is %v, warnings %q", more, y, o.manifest.Warnings)
		}
	}
	const quirk, refuses = "the quirk setStarts sets documented start values that were not given", "fmi2SetReal returned Error; the FMU refuses k = 5"
	run(t, append(args, "--quirk", "locked=setStarts")...).is(t, 1, refuses, quirk)
	o := run(t, append(args, "--set", "locked.k=5")...)
	if o.is(t, 1, refuses); strings.Contains(o.output, quirk) {
		t.Errorf("the quirk is not set\n%s", o.output)
	}
	call(t, "validate", path, "--dynamic").is(t, 0, "warning DY2: start values: k starts at 5 in the document and at 2 in the")
	call(t, "info", path, "--explain", "locked.k").is(t, 0, "documented start value of the FMU")
}
