package test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// fate is the effect of a fault on a process of this program.
type fate uint8

const (
	dies   fate = iota // the process ends, in the call
	hangs              // the call does not return
	errs               // the call returns an error, if memory is limited
	passes             // nothing: the results are those of a run without the fault
	may                // the process may end, then or later
	fails              // the results are lost, and the run says so
)

// fault is a fault of our FMU that affects its process: the engine, or the worker of an isolated FMU.
type fault struct {
	name  string
	item  string  // of the parameter fault
	fates [2]fate // of the engine, of a worker
	cause string  // of the end, as it is reported
}

// modes are the two values of --isolate.
var modes = []string{"never", "always"}

func (f *fault) fate(mode string) fate { return f.fates[slices.Index(modes, mode)] }

// handled are the kills whose signals Go ignores: they end a process in C only.
var handled = []string{"RaiseXCPU", "RaisePipe", "Alarm", "ProfileTimer", "VirtualTimer"}

// signalCauses are the texts for ends by a signal.
var signalCauses = map[syscall.Signal]string{
	syscall.SIGSEGV: "SIGSEGV (segmentation fault)", syscall.SIGABRT: "SIGABRT (aborted)", syscall.SIGILL: "SIGILL (illegal instruction)",
	syscall.SIGBUS: "SIGBUS (bus error)", syscall.SIGFPE: "SIGFPE (floating point exception)", syscall.SIGTRAP: "SIGTRAP (trace/breakpoint trap)",
	syscall.SIGSTKFLT: "SIGSTKFLT (stack fault)",
	syscall.SIGSYS:    "SIGSYS (bad system call)", syscall.SIGQUIT: "SIGQUIT (quit), from outside or raised by the FMU", syscall.SIGTERM: "SIGTERM (terminated), from outside or raised by the FMU",
	syscall.SIGINT: "SIGINT (interrupt), from outside or raised by the FMU", syscall.SIGHUP: "SIGHUP (hangup), from outside or raised by the FMU",
	syscall.SIGKILL: "SIGKILL (killed), from outside or because the system is short of memory",
}

// killCause returns the text for the end of a process by a kill.
func killCause(k fmus.Kill) string {
	switch k.Ending {
	case fmus.Exits:
		return fmt.Sprintf("it exited with code %d", k.Code)
	case fmus.Hangs:
		return "it did not return within 2s and was ended"
	case fmus.Signalled:
		return "killed by signal " + signalCauses[k.Signal]
	}
	return ""
}

// Faults that the FMU has under another name: somebody ends the process while the FMU is in a call, and the file that
// it removes is the manifest.
const (
	killFromOutside = "KillFromOutside"
	removeManifest  = "RemoveManifest"
)

// harms are the fates of an engine and of a worker whose FMU harms its process, where they are not to go on as before.
var harms = map[string][2]fate{
	"FreedName": {dies, dies}, "DropSignalStack": {may, may}, "StopAndReturn": {may, may}, "JumpOutOfLogger": {may, may},
	"LimitAddressSpace": {may, may}, "LimitProcesses": {may, may}, "ProtectHeap": {may, may}, "Seccomp": {may, may},
	"CloseFiles": {may, may}, "KillParent": {may, may}, "LimitFileSize": {may, passes},
	"RemoveFile": {fails, fails}, "ScribbleFiles": {fails, passes}, "TruncateFiles": {fails, passes},
}

// forked is how the child of an FMU ends, as the FMU logs it, by fault.
var forked = map[string]string{
	"ForkReturn": "the child ended by 0 with 127", "ForkExec": "the child ended by 0 with 1",
	"ForkCrash": "the child ended by 11 with 0", "ForkDaemon": "the child ended by 0 with 0",
}

// faults lists all faults.
func faults() []fault {
	var all []fault
	for _, k := range fmus.Kills() {
		f := fault{name: k.Fault, item: k.Fault, cause: killCause(k)}
		switch {
		case k.Fault == "PthreadExit": // what the C library makes of it on the main thread
			f.fates = [2]fate{may, may}
		case slices.Contains(handled, k.Fault), k.Ending == fmus.Signalled && signal.Ignored(k.Signal): // as nohup starts these tests
			f.fates = [2]fate{passes, passes}
		case k.Ending == fmus.Hangs, k.Ending == fmus.Leaves: // the thread's end is seen, or it is late
			f.fates = [2]fate{hangs, hangs}
		case k.Ending == fmus.Exhausts: // the engine is ended when it is seen to have more, the FMU of a worker is refused more
			f.fates = [2]fate{may, errs}
		}
		all = append(all, f)
	}
	all = append(all,
		fault{name: killFromOutside, item: "EndlessSleep", cause: "killed by signal " + signalCauses[syscall.SIGKILL]},
		fault{name: removeManifest, item: "RemoveFile", fates: [2]fate{passes, passes}},
		fault{name: "Pending", item: "Pending", fates: [2]fate{hangs, hangs}, cause: "the step was still pending after 2s"})
	for _, name := range fmus.Harms() {
		if name == "TraceMe" { // the supervisor would have to let go of the traced thread
			continue
		}
		f := fault{name: name, item: name, fates: [2]fate{passes, passes}, cause: "killed by signal " + signalCauses[syscall.SIGSEGV]}
		if fates, ok := harms[name]; ok {
			f.fates = fates
		}
		all = append(all, f)
	}
	return all
}

// place is where a fault happens: in a function of FMI, while the library is loaded or unloaded, or while the FMU
// logs.
type place struct {
	name     string
	at       float64 // s, from when on
	args     []string
	end      float64 // s, time of the last row before the fault; -1 = there is none
	function string  // as it is reported; "" = fmi2 and the name
	time     float64 // s, as it is reported; -1 = none is
	silent   bool    // nothing is logged
	after    bool    // the run has ended, and is complete whatever happens
	// started: the fault is set by start values, since it comes before anything can be set.
	started bool
}

var faultPlaces = []place{
	{name: "Load", end: -1, function: "loading", time: -1, silent: true, started: true},
	{name: "Instantiate", end: -1, time: -1, started: true},
	{name: "EnterInitializationMode", end: -1},
	{name: "SetReal", at: 0.35, end: 0.4, time: 0.4},
	{name: "GetReal", at: 0.35, end: 0.3, time: 0.4},
	{name: "DoStep", at: 0.35, end: 0.4, time: 0.4},
	// The rollback is tested over the first 16 steps, on an instance of its own.
	{name: "SetFMUstate", at: 0.35, args: []string{"--param", "discard=shorten", "--step-size", "0.02"}, end: 0.36, time: 0.36},
	{name: "Terminate", end: 1, time: 1, after: true},
	{name: "FreeInstance", end: 1, time: 1, after: true},
	{name: "LogCallback", at: 0.35, end: 0.4, function: "fmi2DoStep", time: 0.4},
	{name: "Unload", end: 1, function: fmi.Ends, time: -1, silent: true, started: true, after: true},
	{name: "Exit", end: 1, function: fmi.Ends, time: -1, silent: true, started: true, after: true},
}

// everywhere lists the faults that happen in all places; the others happen in steps.
var everywhere = []string{"Segfault", "SegfaultThread", "Abort", "Throw", "StackOverflow", "Exit0", "ExitNow0",
	"ExitGroup0", "EndlessSleep", "EndlessLoop", "StopItself", "KillItself",
	killFromOutside, "MemoryHog", "FreedArgument", "SegfaultWithoutStack", "RaiseSys", "LeaveThread", "LimitFiles", "CloseFiles", "ForkReturn", "ForkExec", "ForkDaemon"}

// Whatever an FMU does to its process, wherever, isolated or not, the run ends: with exit code 0 if the results are
// whole and right, else with 1; all rows before the fault are there and right, the manifest and the message name
// component, FMU, function, time and cause, and no file or process is left. After the last row they are a warning.
func TestFaults(t *testing.T) {
	take := long.Sample(31)
	for _, p := range faultPlaces {
		for _, f := range faults() {
			if p.name != "DoStep" && !slices.Contains(everywhere, f.name) || p.silent && f.name == killFromOutside {
				continue
			}
			for _, mode := range modes {
				if !take() {
					continue
				}
				t.Run(f.name+"/"+p.name+"/"+mode, func(t *testing.T) {
					t.Parallel()
					f.befall(t, &p, mode)
				})
			}
		}
	}
}

// befall makes a run with a fault and checks what it leaves.
func (f *fault) befall(t *testing.T, p *place, mode string) {
	fate := f.fate(mode)
	if p.name == "Load" && (fate == errs || fate == passes && mode == "never") { // the loader does not report it
		fate = may
	}
	if p.name == "FreeInstance" && fate == errs { // which returns nothing
		fate = passes
	}
	system, file, set := f.system(t, p)
	args := append([]string{"--isolate", mode}, p.args...)
	switch {
	case fate == hangs, f.name == "PthreadExit", f.name == "JumpOutOfLogger", f.name == "Seccomp", f.name == "StopAndReturn":
		args = append(args, "--step-timeout", "2")
	case f.name == "MemoryHog":
		args = append(args, "--memory-limit", "400")
	}
	cmd := systemCommand(t, system, set, args...)
	if value := map[string]string{"RemoveFile": "victim=" + filepath.Join(cmd.Dir, "results.csv"),
		removeManifest: "victim=" + filepath.Join(cmd.Dir, "results.json"), "Pending": "polls=-1"}[f.name]; value != "" {
		cmd.Args = slices.Insert(cmd.Args, 2, "--set", "bad."+value)
	}
	run := f.run(t, cmd)
	a := observe(t, run)
	status := a.manifest.Status                       // "" = there is none
	if status != "" && fate != may && fate != fails { // a process that ends for want of something may leave what Go prints
		a = examine(t, run)
		switch good := a.calls["good"]; {
		case fate == passes || p.end < 0 || p.after:
		case (mode == "always" || f.name == "Pending") && !a.clean("good"):
			t.Errorf("good ends with %v", good)
		case mode == "never" && f.name != "Pending" && len(good) > 0 && strings.HasPrefix(good[len(good)-1], "FreeInstance"):
			t.Error("good is called after the end of the engine")
		}
	}
	good := healthy(t, p.args)
	first, last := rowsUpTo(good, p.end), len(good)-1
	switch fate {
	case passes, fails, may:
		if a.code == 0 {
			first = last
		}
	default:
		last = first
	}
	if p.after && fate != may {
		fate = passes
	}
	killedParent := f.name == "KillParent" && mode == "never" // the supervisor itself: it cannot complete anything
	switch {
	case fate == fails:
		if a.code != 1 || status != "failed" || f.name == "RemoveFile" &&
			(!strings.Contains(a.manifest.Reason, "removed or renamed") || a.lines != nil) {
			t.Errorf("exit code %d, status %s", a.code, status)
		}
	case fate == passes && a.code != 0:
		t.Errorf("exit code %d", a.code)
	case killedParent: // whose engine has a moment to end
		if a.code != -1 || status != "incomplete" && status != "complete" {
			t.Errorf("exit code %d, status %s", a.code, status)
		}
	case a.code == 0:
		if status != "complete" || fate != passes && fate != may {
			t.Errorf("exit code 0, status %s", status)
		}
	case a.code == 2 && p.silent && fate == may: // before anything was run
	case a.code != 1 || status != "failed" && !(status == "" && p.end < 0):
		t.Errorf("exit code %d, status %s", a.code, status)
	}
	if fate != fails {
		if n := len(a.lines) - 1; n > last || max(n, 0) < first || n > 0 && !slices.Equal(a.lines, good[:n+1]) {
			t.Errorf("%d rows, want %d to %d of the right ones", n, first, last)
		}
	}
	if a.code != 0 || p.after {
		f.named(t, p, mode, file, a)
	}
	if !p.silent && p.name != "LogCallback" && !strings.Contains(a.output, forked[f.name]) {
		t.Errorf("%q is not logged", forked[f.name])
	}
	if t.Failed() {
		t.Logf("reason %q\nwarnings %q\n%s", a.manifest.Reason, a.manifest.Warnings, a.output)
	}
}

// system returns a system with a faulty FMU, the file name of that FMU, and its settings.
func (f *fault) system(t *testing.T, p *place) (system, file, set string) {
	start := map[string]string{"fault": f.item, "during": p.name, "megabytes": "1024"}
	if f.fates[0] != dies { // it happens once
		start["times"] = "1"
	}
	if !p.started {
		start["at"] = fmt.Sprint(p.at)
		for _, name := range []string{"fault", "during", "megabytes", "times", "at"} {
			if start[name] != "" {
				set += " " + name + "=" + start[name]
			}
		}
		return badPair(t, "misbehave"), "misbehave.fmu", set
	}
	as := p.name + "_" + f.name
	system = once(t, as, func(dir string) error {
		return writePair(t, dir, as, "", func(resources string) error {
			_, err := fmus.BuildMisbehaving(resources, as, "misbehave", start)
			return err
		})
	})
	return system, as + ".fmu", ""
}

// run makes a run, and checks for files and processes left behind.
func (f *fault) run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := started(t, cmd)
	stop := time.AfterFunc(3*time.Minute, func() {
		t.Errorf("the run does not end\n%s", p.out.String())
		endAll(cmd.Dir)
	})
	defer stop.Stop()
	if f.name == killFromOutside {
		p.out.until(t, "EndlessSleep on purpose")
		victims := offspring(t, cmd.Process.Pid)
		if n := slices.IndexFunc(victims, func(pid int) bool { return commandHas(pid, "\x00bad\x00") }); n >= 0 {
			victims = victims[n:]
		} else if len(victims) == 0 {
			victims = children(t, cmd.Process.Pid, "\x00engine\x00")
		}
		_ = syscall.Kill(victims[0], syscall.SIGKILL) // what comes of it shows
	}
	p.end()
	until(t, "all processes of the run end", func() bool { return len(processesOf(cmd.Dir)) == 0 })
	for _, name := range listed(t, cmd.Dir) {
		if !slices.Contains([]string{"cache", "calls.txt", "results.csv", "results.json", "tmp"}, name) {
			t.Errorf("left: %s", name)
		}
	}
	return p
}

// endAll ends the processes of a folder.
func endAll(folder string) {
	for _, pid := range processesOf(folder) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processesOf returns the processes that were started with a folder in their environment.
func processesOf(folder string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range paths {
		text, _ := os.ReadFile(p) // it may have gone, or be another user's
		if !strings.Contains(string(text), folder) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// healthies are the rows of runs without a fault, by their arguments.
var healthies sync.Map

// healthy returns the rows of a run without a fault.
func healthy(t *testing.T, args []string) []string {
	t.Helper()
	made, _ := healthies.LoadOrStore(strings.Join(args, " "), sync.OnceValue(func() []string {
		a := runSystem(t, badPair(t, "misbehave"), "", args...)
		a.is(t, 0)
		return a.lines
	}))
	return made.(func() []string)()
}

// rowsUpTo counts the rows up to a time.
func rowsUpTo(lines []string, end float64) (n int) {
	for _, line := range lines[1:] {
		text, _, _ := strings.Cut(line, ",")
		if at, err := strconv.ParseFloat(text, 64); err == nil && at <= end+1e-9 {
			n++
		}
	}
	return n
}

// named checks that the manifest and the message name component, FMU, function, time and cause.
func (f *fault) named(t *testing.T, p *place, mode, file string, a *aftermath) {
	t.Helper()
	where, cause := cmp.Or(p.function, "fmi2"+p.name), f.cause
	if p.name == "Load" && mode == "always" { // loading may take longer
		cause = strings.Replace(cause, "within 2s", "within 10s", 1)
	}
	at := ""
	if p.time >= 0 {
		at = fmt.Sprintf(" at t = %g s", p.time)
	}
	said := a.manifest.Reason
	if p.after {
		said = a.warnings()
	}
	var want []string
	fate := f.fate(mode)
	switch {
	case fate == errs && !p.silent && p.name != "FreeInstance": // which returns nothing
		want = []string{"bad (" + file + ")", "memory is refused"}
	case fate != dies && fate != hangs, p.silent && strings.HasSuffix(cause, "code 0"): // the end is the usual one
	case p.silent && p.after && mode == "never":
		want = []string{file + " in " + where + ": " + cause}
	case f.name == "Pending" && mode == "never": // a pending step is no call
		want = []string{"bad (" + file + ")", "bad: fmi2DoStep of " + file + at + ": " + cause}
	case mode == "never":
		want = []string{"bad (" + file + ") in " + where + at + ": " + cause}
	default:
		want = []string{"bad", "the process of " + file + " ended in " + where + at + ": " + cause}
	}
	for _, part := range want {
		if a.manifest.Status != "" && !strings.Contains(said, part) || !strings.Contains(a.output, part) {
			t.Errorf("%q is not said", part)
		}
	}
}
