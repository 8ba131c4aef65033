package test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/test/long"
)

// deepFMU fills as much of the stack as it says in doStep, and logs from down there.
const deepFMU = `#include <stddef.h>
#include "fmi2.h"
#include <alloca.h>
static fmi2CallbackFunctions callbacks;
const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }
fmi2Component fmi2Instantiate(fmi2String n, fmi2Type t, fmi2String g, fmi2String r, const fmi2CallbackFunctions *c, fmi2Boolean v, fmi2Boolean l) { callbacks = *c; return &callbacks; }
void fmi2FreeInstance(fmi2Component c) {}
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real d, fmi2Boolean e, fmi2Real f) { return fmi2OK; }
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[]) { for (size_t k = 0; k < n; k++) v[k] = 1; return fmi2OK; }
#define SET(T) fmi2Status fmi2Set##T(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2##T v[]) { return fmi2OK; }
SET(Real) SET(Integer) SET(Boolean) SET(String)
static fmi2Status down(size_t mib) {
	volatile char *stack = alloca(mib << 20);
	for (size_t k = mib << 20; k > 0; k -= 1024) stack[k - 1] = 1;
	callbacks.logger(callbacks.componentEnvironment, "deep", fmi2Warning, "logEvents", "%d MiB deep", (int)mib);
	return stack[1023] == 1 ? fmi2OK : fmi2Error;
}
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean b) { return down(60); }
`

// platformFolder is that of an FMU's library on this machine.
var platformFolder = map[string]string{"amd64": "binaries/linux64/", "arm64": "binaries/aarch64-linux/"}[runtime.GOARCH]

// writeFMU writes an archive.
func writeFMU(t testing.TB, path string, files map[string][]byte) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for file, data := range files {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// deepSystem writes a system of two FMUs that use 60 MiB of stack in each step.
func deepSystem(t testing.TB) string {
	t.Helper()
	cc, err := csrc.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"deep", "deeper"} { // of other content, so that they share no library
		src := t.TempDir()
		for file, text := range map[string]string{"fmu.c": "static const char name[] __attribute__((used)) = \"" + name + "\";\n" + deepFMU, "fmi2.h": string(csrc.Header)} {
			if err := os.WriteFile(filepath.Join(src, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		library := filepath.Join(src, name+".so")
		if err := csrc.Library(t.Context(), cc, src, library, "-fPIC", "-w", "fmu.c"); err != nil {
			t.Fatal(err)
		}
		writeFMU(t, filepath.Join(dir, name+".fmu"), map[string][]byte{"modelDescription.xml": fmt.Appendf(nil, answerDescription, name), platformFolder + name + ".so": mustRead(t, library)})
	}
	return systemOf(t, dir, map[string]string{"a": "deep.fmu", "b": "deeper.fmu"})
}

// FMUs have 64 MiB of stack, in the process of the run too, whatever the limit is
// there, and on each thread that calls some.
func testLargeStack(t *testing.T) {
	t.Parallel()
	path := deepSystem(t)
	for _, limit := range []string{"8192", "1024", "unlimited"} {
		if limit != "1024" && !long.On {
			continue
		}
		for name, args := range map[string]string{"one thread": "--isolate never", "two threads": "--isolate never --workers 2", "own processes": "--isolate always"} {
			out, err := exec.Command("sh", "-c", fmt.Sprintf("ulimit -S -s %s && exec '%s' run '%s' %s --output '%s'", limit, program, path, args, filepath.Join(t.TempDir(), "r.csv"))).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "60 MiB deep") {
				t.Errorf("stack limit %s, %s: %v\n%.2000s", limit, name, err, out)
			}
		}
	}
	// How many threads there are, and which of them finds no more room, is a matter of chance, and where it is one of
	// the language, nobody is asked: several times.
	const tries = 6
	limited := func(kib int) ([]byte, error) {
		return exec.Command("sh", "-c", fmt.Sprintf("ulimit -v %d && exec '%s' run '%s' --quiet --output '%s'", kib, program, system(t, "quarter-car-a"), filepath.Join(t.TempDir(), "r.csv"))).CombinedOutput()
	}
	var out []byte
	var err error
	for range tries {
		if out, err = limited(3_000_000); err == nil {
			break
		}
	}
	if err != nil && !raced { // the race detector wants more
		t.Errorf("with little address space: %v\n%.2000s", err, out)
	}
	told := false
	for range tries {
		out, err = limited(1_000_000)
		told = told || strings.Contains(string(out), "the address space is limited to 976 MiB (ulimit -v)")
		if err == nil || told {
			break
		}
	}
	if (err == nil || !told) && !raced {
		t.Errorf("with less address space: %v\n%.2000s", err, out)
	}
}
