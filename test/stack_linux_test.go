package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// deepFMU fills as much of the stack as it says in doStep, and logs from down there.
var deepFMU = strings.NewReplacer("int answer(void);", `#include <alloca.h>
static int answer(void) { return 1; }
static fmi2CallbackFunctions callbacks;
static fmi2Status down(size_t mib) {
	volatile char *stack = alloca(mib << 20);
	for (size_t k = mib << 20; k > 0; k -= 1024) stack[k - 1] = 1;
	callbacks.logger(callbacks.componentEnvironment, "deep", fmi2Warning, "logEvents", "%d MiB deep", (int)mib);
	return stack[1023] == 1 ? fmi2OK : fmi2Error;
}`, "{ return &it; }", "{ callbacks = *c; return &it; }", "fmi2Boolean b) { return fmi2OK; }", "fmi2Boolean b) { return down(60); }").Replace(answerFMU)

// deepSystem writes a system of two FMUs that use 60 MiB of stack in each step.
func deepSystem(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"deep", "deeper"} { // of other content, so that they share no library
		source := "static const char name[] __attribute__((used)) = \"" + name + "\";\n" + deepFMU
		compiledFMU(t, dir, name, map[string]string{"fmu.c": source}, []string{name + ".so", "-fPIC", "-w", "fmu.c"})
	}
	return systemOf(t, dir, map[string]string{"a": "deep", "b": "deeper"})
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
			out, err := exec.Command("sh", "-c", fmt.Sprintf("ulimit -S -s %s && exec '%s' run '%s' --step-size 0.1 %s --output '%s'", limit, program, path, args, filepath.Join(t.TempDir(), "r.csv"))).CombinedOutput()
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
