package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// answerFMU is the source of an FMU whose output is the answer of a library in its archive.
const (
	answerFMU = `#include <stddef.h>
#include "fmi2.h"
int answer(void);
static int it;
const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }
fmi2Component fmi2Instantiate(fmi2String n, fmi2Type t, fmi2String g, fmi2String r, const fmi2CallbackFunctions *c, fmi2Boolean v, fmi2Boolean l) { return &it; }
void fmi2FreeInstance(fmi2Component c) {}
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real d, fmi2Boolean e, fmi2Real f) { return fmi2OK; }
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[]) { for (size_t k = 0; k < n; k++) v[k] = answer(); return fmi2OK; }
#define SET(T) fmi2Status fmi2Set##T(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2##T v[]) { return fmi2OK; }
SET(Real) SET(Integer) SET(Boolean) SET(String)
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean b) { return fmi2OK; }
`
	answerDescription = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="%[1]s" guid="{%[1]s}">
  <CoSimulation modelIdentifier="%[1]s" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables><ScalarVariable name="y" valueReference="0" causality="output"><Real/></ScalarVariable></ModelVariables>
  <ModelStructure><Outputs><Unknown index="1"/></Outputs></ModelStructure>
</fmiModelDescription>
`
)

// platformFolder is the folder of libraries in an FMU for this machine.
var platformFolder = map[string]string{"amd64": "binaries/linux64/", "arm64": "binaries/aarch64-linux/"}[runtime.GOARCH]

// compiledFMU writes dir/name.fmu with libraries. Each is compiled from the sources by the arguments after its name.
func compiledFMU(t testing.TB, dir, name string, sources map[string]string, libraries ...[]string) {
	t.Helper()
	cc, err := csrc.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	src := t.TempDir()
	write(t, filepath.Join(src, "fmi2.h"), csrc.Header)
	for file, text := range sources {
		write(t, filepath.Join(src, file), text)
	}
	all := []part{file("modelDescription.xml", fmt.Sprintf(answerDescription, name))}
	for _, args := range libraries {
		library := filepath.Join(src, args[0])
		if err := csrc.Library(t.Context(), cc, src, library, args[1:]...); err != nil {
			t.Fatal(err)
		}
		all = append(all, file(platformFolder+args[0], read(t, library)))
	}
	pack(t, filepath.Join(dir, name+".fmu"), all...)
}

// answering builds the FMU whose library answers n.
func answering(t testing.TB, dir, name string, n int) {
	t.Helper()
	compiledFMU(t, dir, name, map[string]string{"fmu.c": answerFMU, "answer.c": fmt.Sprintf("int answer(void) { return %d; }\n", n)},
		[]string{"libanswer.so", "-fPIC", "-Wl,-soname,libanswer.so", "answer.c"},
		[]string{name + ".so", "-fPIC", "-w", "fmu.c", "-L.", "-lanswer", "-Wl,-rpath,$ORIGIN"})
}

// Of two FMUs with different libraries of equal name each uses its own.
func TestClashingLibraries(t *testing.T) {
	dir := t.TempDir()
	answering(t, dir, "one", 1)
	answering(t, dir, "two", 2)
	system := systemOf(t, dir, map[string]string{"first": "one", "second": "two"})
	o := complete(t, system, "--step-size", "0.5")
	if a, b := o.column(t, "first.y"), o.column(t, "second.y"); a[0] != 1 || a[2] != 1 || b[0] != 2 || b[2] != 2 {
		t.Errorf("the answers are %v and %v", a, b)
	}
	why := o.isolated()
	if len(why) != 1 || !strings.Contains(why["first"]+why["second"], "libanswer.so") {
		t.Errorf("isolated: %v", why)
	}
	// Without, the second gets the library of the first: that is what it is for.
	o = complete(t, system, "--step-size", "0.5", "--isolate", "never")
	if a, b := o.column(t, "first.y"), o.column(t, "second.y"); a[0] != b[0] {
		t.Errorf("in one process the answers are %v and %v", a, b)
	}
	said := string(read(t, strings.TrimSuffix(o.results, ".csv")+".json"))
	if want := "have different versions of library libanswer.so"; strings.Count(said, want) != 1 ||
		!strings.Contains(said, "first and second "+want) && !strings.Contains(said, "second and first "+want) {
		t.Errorf("there is no warning\n%s", said)
	}
}

// offspring lists the workers of a program.
func offspring(t testing.TB, pid int) (workers []int) {
	t.Helper()
	for _, engine := range children(t, pid, "\x00engine\x00") {
		workers = append(workers, children(t, engine, "\x00worker\x00")...)
	}
	return workers
}

// children lists the processes that a process has started with an argument.
func children(t testing.TB, pid int, argument string) (out []int) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, _ := os.ReadFile(path) // a thread may have gone
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil && commandHas(child, argument) {
				out = append(out, child)
			}
		}
	}
	return out
}

// commandHas reports whether the command line of a process holds an argument.
func commandHas(pid int, argument string) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have gone
	return bytes.Contains(line, []byte(argument))
}

// An FMU that crashes in the engine is isolated the next time, until the file that the messages name is deleted.
func TestCrashIsRemembered(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"Segfault", "SegfaultThread"} {
		cache := t.TempDir()
		run := func(set string, args ...string) *aftermath {
			cmd := systemCommand(t, badPair(t, "misbehave"), set, args...)
			cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache)
			return examine(t, started(t, cmd))
		}
		if a := run("fault=" + fault + " at=0.35"); a.code != 1 || len(a.isolated()) != 0 ||
			!strings.Contains(a.output, "killed by signal SIGSEGV") || !strings.Contains(a.output, "unless you delete "+cache) {
			t.Errorf("%s, first run: exit code %d, isolated %v\n%s", fault, a.code, a.isolated(), a.output)
		}
		if a := run(""); a.code != 0 || len(a.isolated()) != 1 ||
			!strings.Contains(a.isolated()["bad"], "ended a process before: killed by signal SIGSEGV") {
			t.Errorf("%s, second run: exit code %d, isolated %v\n%s", fault, a.code, a.isolated(), a.output)
		}
		if a := run("", "--isolate", "never"); len(a.isolated()) != 0 {
			t.Errorf("with --isolate never: isolated %v", a.isolated())
		}
		files, err := filepath.Glob(filepath.Join(cache, "macrostep", "crashed", "*.json"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if o := run(""); !strings.Contains(o.output, "isolated  bad: ") || !strings.Contains(o.output, "delete "+files[0]) {
			t.Errorf("%s, the run says\n%s", fault, o.output)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if a := run(""); a.code != 0 || len(a.isolated()) != 0 {
			t.Errorf("%s, forgotten: exit code %d, isolated %v", fault, a.code, a.isolated())
		}
	}
}

// The page of a run that ends because an FMU crashes shows the results so far, with the FMU in the process of the run
// and in one of its own.
func TestReportOfCrash(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	calls := func(at string) (out []string) {
		a := runPair(t, "misbehave", "fault=Segfault at="+at, "--isolate", "never", "--step-size", "1e-4", "--workers", "1")
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
	if want, _, _ := strings.Cut(whole[last], " h="); !strings.HasPrefix(want, "bad fmi2DoStep t=0.35") ||
		crashed[last] != want+" -> unfinished" {
		t.Errorf("the log ends with %q; the next call is %q", crashed[last], whole[last])
	}
}
