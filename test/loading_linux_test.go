package test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// A library that crashes while it loads, or does not come back, is named with the
// component, in the process of the run and in one of its own.
func TestLoadingThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{}
	for name, code := range map[string]string{"crashing": "static volatile int *volatile nowhere; *nowhere = 1;", "hanging": `(void)!write(1, "loading on purpose\\n", 19); for (;;) sleep(100);`} {
		source := strings.Replace(answerFMU, "int answer(void);", "int answer(void) { return 1; }\n#include <unistd.h>\n__attribute__((constructor)) static void early(void) { "+code+" }", 1)
		dirs[name] = t.TempDir()
		if _, err := fmus.Pack(dirs[name], name, fmt.Sprintf(answerDescription, name), source); err != nil {
			t.Fatal(err)
		}
	}
	crashing := systemOf(t, dirs["crashing"], map[string]string{"early": "crashing"})
	for isolate, want := range map[string][]string{
		"never":  {"early (crashing.fmu) in loading: killed by signal SIGSEGV"},
		"always": {"early: ", "the process of crashing.fmu ended in loading: killed by signal SIGSEGV"},
	} {
		cmd := exec.Command(program, "run", crashing, "--isolate", isolate)
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Environ(), "XDG_CACHE_HOME="+t.TempDir())
		out, _ := cmd.CombinedOutput()
		for _, part := range want {
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), part) || strings.Contains(string(out), "goroutine ") {
				t.Errorf("%s: %v, %q is not said:\n%s", isolate, cmd.ProcessState, part, out)
			}
		}
	}

	var out listener
	cmd := exec.Command(program, "run", systemOf(t, dirs["hanging"], map[string]string{"late": "hanging"}), "--isolate", "never")
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.until(t, "loading on purpose")
	for _, text := range []string{"waiting for late (hanging.fmu) in loading", ""} {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		out.until(t, text)
	}
	_ = cmd.Wait() // the exit code tells
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("after two interrupts: %v", cmd.ProcessState)
	}
}
