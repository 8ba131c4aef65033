package fmus

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/test/long"
)

// Each kill happens in a process of its own: the test binary again, told by an
// environment variable what to do. It gives up the handlers of the Go runtime, so
// that it dies as a program in C does.

const victimVariable = "MACROSTEP_FMUS_VICTIM"

// errand is what a victim is to do.
type errand struct {
	Dir    string // its own, with the FMU in it
	Name   string
	Loud   string // library with a logger that writes to stderr
	Set    map[string]float64
	Marker string
	State  string // file of the state after the last step; if it is there, the run goes on from it
	CPU    uint64 // seconds of processor time before SIGXCPU; 0: no limit
	Data   uint64 // bytes of memory; 0: no limit
}

// How a victim ends that lives.
const (
	survived = 42
	refused  = 43 // a function returned something other than OK and Warning
)

func init() {
	text := os.Getenv(victimVariable)
	if text == "" {
		return
	}
	victim = func() {
		var e errand
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			panic(err)
		}
		e.run()
		exit(survived)
	}
}

// exit ends the process as C does, so that libraries are unloaded.
func exit(code uintptr) {
	f, err := purego.Dlsym(purego.RTLD_DEFAULT, "exit")
	if err != nil {
		panic(err)
	}
	purego.SyscallN(f, code)
}

// stand is as much of a testing.TB as the harness needs in a victim.
type stand struct{ testing.TB }

func (stand) Helper() {}
func (stand) Fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(refused)
}
func (s stand) Fatalf(format string, a ...any) { s.Fatal(fmt.Sprintf(format, a...)) }

func (e errand) run() {
	t := stand{}
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	work = e.Dir
	loud, err := purego.Dlopen(e.Loud, purego.RTLD_NOW|purego.RTLD_LOCAL)
	check(err)
	logger, err := purego.Dlsym(loud, "loud")
	check(err)
	address, err := purego.Dlsym(purego.RTLD_DEFAULT, "signal")
	check(err)
	var signal func(int32, uintptr) uintptr
	purego.RegisterFunc(&signal, address)
	for s := syscall.Signal(1); s < 32; s++ {
		if s != syscall.SIGURG { // which Go sends itself
			signal(int32(s), 0) // SIG_DFL
		}
	}
	check(syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}))
	if e.CPU > 0 {
		check(syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: e.CPU, Max: e.CPU + 1}))
	}
	if e.Data > 0 {
		check(syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: e.Data, Max: e.Data}))
	}

	l := load(t, e.Name)
	callbacks := [5]uintptr{logger}
	c := l.Instantiate("victim", 1, l.guid, "file:///", unsafe.Pointer(&callbacks), 0, 0)
	if c == 0 {
		t.Fatal("fmi2Instantiate gives null")
	}
	i := &instance{l, t, c}
	must := func(status int32) {
		if status > 1 {
			t.Fatal("status", status)
		}
	}
	var state uintptr
	step := 0
	if data, err := os.ReadFile(e.State); err == nil {
		must(i.Deserialize(c, &data[0], uintptr(len(data)), &state))
		must(i.SetState(c, state))
		step = int(i.get("time")*10 + 0.5)
	} else {
		for name, v := range e.Set {
			if name != "fault" {
				i.set(name, v)
			}
		}
		if e.Marker != "" {
			i.setText("marker", e.Marker)
		}
		if v, there := e.Set["fault"]; there {
			i.set("fault", v) // the last one: fmi2SetReal may be where it happens
		}
		must(i.Setup(c, 0, 0, 0, 0, 0))
		must(i.Enter(c))
		must(i.Exit(c))
	}
	u, v, order := i.vr("u"), 0.0, int32(1)
	x, d, seed := i.vr("der(x)"), 0.0, 1.0
	for ; step < 10; step++ {
		at := float64(step) / 10
		v = at * at
		must(i.SetReal(c, &u, 1, &v))
		must(i.SetDerivatives(c, &u, 1, &order, &v))
		must(i.GetState(c, &state))
		must(i.SetState(c, state))
		must(i.DoStep(c, at, 0.1, 1))
		must(i.GetReal(c, &x, 1, &d))
		must(i.Directional(c, &x, 1, &u, 1, &seed, &d))
		must(i.GetState(c, &state))
		var size uintptr
		must(i.StateSize(c, state, &size))
		data := make([]byte, size)
		must(i.Serialize(c, state, &data[0], size))
		var other uintptr
		must(i.Deserialize(c, &data[0], size, &other))
		must(i.FreeState(c, &other))
		if e.State != "" {
			check(os.WriteFile(e.State, data, 0o600))
		}
	}
	fmt.Printf("%x %x\n", i.get("x"), i.get("z"))
	must(i.FreeState(c, &state))
	must(i.Terminate(c))
	i.Free(c)
}

// A logger as one in C is, that writes each message at once.
var loudLibrary = sync.OnceValues(func() (string, error) {
	cc, err := csrc.Compiler()
	if err != nil {
		return "", err
	}
	library, err := compile(cc, "loud", []file{{"loud.c", []byte(`
#include <stdarg.h>
#include <stdio.h>

__attribute__((visibility("default")))
void loud(void *environment, const char *instance, int status, const char *category, const char *message, ...) {
	char text[4096];
	va_list a;
	va_start(a, message);
	vsnprintf(text, sizeof text, message, a);
	va_end(a);
	fprintf(stderr, "%d %s %s\n", status, category, text);
}
`)}})
	path := filepath.Join(work, "loud"+csrc.Extension())
	return path, errors.Join(err, os.WriteFile(path, library, 0o755))
})

// start runs a victim with an FMU that is in the folder.
func (e errand) start(t *testing.T, fmu string) (cmd *exec.Cmd, stdout *strings.Builder, stderr *bufio.Reader) {
	t.Helper()
	loud, err := loudLibrary()
	if err != nil {
		t.Fatal(err)
	}
	e.Dir, e.Loud = t.TempDir(), loud
	e.Name = strings.TrimSuffix(filepath.Base(fmu), ".fmu")
	if err := os.Symlink(fmu, filepath.Join(e.Dir, e.Name+".fmu")); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	stdout = new(strings.Builder)
	cmd.Stdout = stdout
	r, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, bufio.NewReader(r)
}

// ends waits for a victim and gives how it ended and what it said.
func (e errand) ends(t *testing.T, fmu string) (state *os.ProcessState, stdout, stderr string) {
	t.Helper()
	cmd, out, r := e.start(t, fmu)
	stop := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState, out.String(), string(said)
}

func died(s *os.ProcessState) syscall.Signal {
	if w := s.Sys().(syscall.WaitStatus); w.Signaled() {
		return w.Signal()
	}
	return 0
}

// Each kill in the functions that a run depends on, and one of them in every one.
func TestKills(t *testing.T) {
	misbehaving, err := Build(work, "misbehave")
	if err != nil {
		t.Fatal(err)
	}
	often := []string{"Instantiate", "EnterInitializationMode", "DoStep", "GetReal", "SetFMUstate", "Terminate", "LogCallback", "FreeInstance"}
	take := long.Sample(5)
	for _, k := range Kills() {
		for during, place := range Places() {
			if k.Fault != "Segfault" && !slices.Contains(often, place) || place == "Load" || place == "Unload" || !take() {
				continue
			}
			t.Run(k.Fault+"/"+place, func(t *testing.T) {
				t.Parallel()
				fmu := misbehaving
				e := errand{Set: map[string]float64{"fault": fault(k.Fault), "during": float64(during)}}
				function, at := place, "0"
				switch place {
				case "Instantiate":
					var err error
					if fmu, err = BuildMisbehaving(t.TempDir(), "early", "misbehave", map[string]string{"fault": k.Fault, "during": place}); err != nil {
						t.Fatal(err)
					}
					e.Set = nil
				case "SetupExperiment", "EnterInitializationMode", "ExitInitializationMode":
				case "Terminate", "FreeInstance":
					e.Set["at"], at = 0.25, "1"
				case "LogCallback":
					e.Set["at"], at, function = 0.25, "0.3", "DoStep"
				default:
					e.Set["at"], at = 0.25, "0.3"
				}
				says := fmt.Sprintf("fmi2%s: %s on purpose at t = %s\n", function, k.Fault, at)
				k.check(t, e, fmu, place, says)
			})
		}
	}
}

// While the library is loaded, too.
func TestKillsOfLibrary(t *testing.T) {
	fmu, err := BuildMisbehaving(t.TempDir(), "library", "misbehave", map[string]string{"fault": "Abort", "during": "Load"})
	if err != nil {
		t.Fatal(err)
	}
	state, stdout, stderr := errand{Set: map[string]float64{"fault": fault("None")}}.ends(t, fmu)
	if died(state) != syscall.SIGABRT || stdout != "" || stderr != "" {
		t.Errorf("%v, %q\n%s", state, stdout, stderr)
	}
}

// check runs a victim that is to die of a kill, having said why.
func (k Kill) check(t *testing.T, e errand, fmu, place, says string) {
	switch {
	case k.Ending == Hangs:
		k.checkHang(t, e, fmu, says)
		return
	case k.Fault == "MemoryHog":
		e.Data = 512 << 20
	}
	state, stdout, stderr := e.ends(t, fmu)
	if !strings.Contains(stderr, says) {
		t.Errorf("stderr does not hold %q:\n%s", says, stderr)
	}
	if strings.Count(stderr, "on purpose at t") != 1 {
		t.Errorf("it did not happen once:\n%s", stderr)
	}
	if done := stdout != ""; done != (place == "Terminate" || place == "FreeInstance") {
		t.Errorf("steps finished: %v", done)
	}
	switch k.Ending {
	case Signalled:
		if died(state) != k.Signal {
			t.Errorf("%v, want signal: %v\n%s", state, k.Signal, stderr)
		}
		if k.Fault == "Throw" && !strings.Contains(stderr, "thrown on purpose") && !strings.Contains(stderr, "throwing an exception on purpose") {
			t.Errorf("nothing is said of the exception:\n%s", stderr)
		}
	case Exits:
		if !state.Exited() || state.ExitCode() != k.Code {
			t.Errorf("%v, want exit code %d\n%s", state, k.Code, stderr)
		}
	case Exhausts:
		want := refused
		if place == "FreeInstance" {
			want = survived // the function returns nothing
		}
		if state.ExitCode() != want || !strings.Contains(stderr, "memory is refused after") {
			t.Errorf("%v, want exit code %d\n%s", state, want, stderr)
		}
	}
}

// checkHang runs a victim that is to hang, and stops it.
func (k Kill) checkHang(t *testing.T, e errand, fmu, says string) {
	cmd, _, r := e.start(t, fmu)
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	said := make(chan error, 1)
	go func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil || strings.HasSuffix(line, says) {
				said <- err
				break
			}
		}
		io.Copy(io.Discard, r)
	}()
	select {
	case err := <-said:
		if err != nil {
			t.Fatalf("it ended without saying %q: %v", says, err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatalf("it did not say %q", says)
	}
	time.Sleep(200 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGKILL) // has no effect if it has ended
	cmd.Wait()
	how := died(cmd.ProcessState)
	// What the C library makes of pthread_exit on a thread that it has not made is open.
	if how != syscall.SIGKILL && !(k.Fault == "PthreadExit" && how == syscall.SIGSEGV) {
		t.Errorf("it did not hang: %v", cmd.ProcessState)
	}
}

// An endless loop takes the processor, and endless sleep does not.
func TestHangsDiffer(t *testing.T) {
	fmu, err := Build(work, "misbehave")
	if err != nil {
		t.Fatal(err)
	}
	loop := errand{Set: map[string]float64{"fault": fault("EndlessLoop")}, CPU: 1}
	if state, _, stderr := loop.ends(t, fmu); died(state) != syscall.SIGXCPU {
		t.Errorf("the loop: %v, want the end of the processor time\n%s", state, stderr)
	}
	sleep := errand{Set: map[string]float64{"fault": fault("EndlessSleep")}}
	cmd, _, r := sleep.start(t, fmu)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for sleeps := false; !sleeps; time.Sleep(10 * time.Millisecond) { // never, if it loops
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		sleeps = strings.Contains(string(state), ") S ")
	}
	cmd.Process.Signal(syscall.SIGKILL)
	if cmd.Wait(); died(cmd.ProcessState) != syscall.SIGKILL {
		t.Errorf("sleep: %v", cmd.ProcessState)
	}
}

// Memory that is given in full is not refused, and the run goes on.
func TestMemoryHogIsBounded(t *testing.T) {
	fmu, err := Build(work, "misbehave")
	if err != nil {
		t.Fatal(err)
	}
	e := errand{Set: map[string]float64{"fault": fault("MemoryHog"), "megabytes": 64, "times": 1}}
	if state, _, stderr := e.ends(t, fmu); state.ExitCode() != survived || !strings.Contains(stderr, "64 MiB of memory are taken for ever") {
		t.Errorf("%v\n%s", state, stderr)
	}
}

// Without a C++ library an exception still ends the process as one that nobody
// catches.
func TestThrowWithoutCXX(t *testing.T) {
	m, err := find("misbehave")
	if err != nil {
		t.Fatal(err)
	}
	m.name, m.defines = "c_only", []string{"KILL_WITHOUT_CXX"}
	fmu, err := m.write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := errand{Set: map[string]float64{"fault": fault("Throw")}}
	if state, _, stderr := e.ends(t, fmu); died(state) != syscall.SIGABRT || !strings.Contains(stderr, "throwing an exception on purpose") {
		t.Errorf("%v\n%s", state, stderr)
	}
}

// An FMU that ends its first three processes, each in a later step, and is gone on
// with from its serialised state comes to the result of an undisturbed run. The
// state alone suffices: no parameter is set in the later processes.
func TestKillsInFirstProcesses(t *testing.T) {
	fmu, err := Build(work, "misbehave")
	if err != nil {
		t.Fatal(err)
	}
	state, want, stderr := errand{}.ends(t, fmu)
	if state.ExitCode() != survived || want == "" {
		t.Fatalf("undisturbed: %v\n%s", state, stderr)
	}
	dir := t.TempDir()
	e := errand{Marker: filepath.Join(dir, "märker"), State: filepath.Join(dir, "state"),
		Set: map[string]float64{"fault": fault("Segfault"), "at": 0.3, "at2": 0.5, "at3": 0.8, "times": 3}}
	for i, at := range []string{"0.3", "0.5", "0.8"} {
		state, _, stderr := e.ends(t, fmu)
		if died(state) != syscall.SIGSEGV || !strings.Contains(stderr, "fmi2DoStep: Segfault on purpose at t = "+at+"\n") {
			t.Fatalf("process %d: %v, want a crash at %s\n%s", i+1, state, at, stderr)
		}
		if marker, err := os.ReadFile(e.Marker); err != nil || len(marker) != i+1 {
			t.Fatalf("the marker holds %q, want %d bytes (%v)", marker, i+1, err)
		}
	}
	state, got, stderr := e.ends(t, fmu)
	if state.ExitCode() != survived || got != want {
		t.Errorf("%v: ends with %s, want %s\n%s", state, got, want, stderr)
	}
}
