package test

import (
	"os/exec"
	"strings"
	"testing"
)

// Without /proc a run and a host end at once, and say what is missing.
func TestWithoutProc(t *testing.T) {
	path := fmu(t, "mass_force")
	hidden := func(words ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none /proc && exec "$@"`, "sh"}, words...)...)
	}
	if out, err := hidden("true").CombinedOutput(); err != nil {
		t.Skipf("needs the right to make name spaces: %v, %s", err, out)
	}
	for _, args := range [][]string{{"run", path, "--output", "/dev/null"}, {"host", "--accept", "--listen", "127.0.0.1:0"}} {
		cmd := hidden(append([]string{program}, args...)...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "macrostep needs /proc (mount -t proc proc /proc)") || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
