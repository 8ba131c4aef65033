package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an FMU prints or writes is there after the run, and its exit handler and destructor have been called: in any kind of process, and as
// often as there were processes.
func TestTrail(t *testing.T) {
	t.Parallel()
	system := badPair(t, "misbehave")
	for _, way := range []struct {
		name    string
		args    []string // of a run; nil = of a study
		runs    int
		printed bool // the lines printed are in the output
	}{
		{name: "here", args: []string{"--isolate", "never"}, runs: 1, printed: true},
		{name: "isolated", args: []string{"--isolate", "always", "--log-level", "debug"}, runs: 1, printed: true},
		{name: "restarted", args: []string{"--isolate", "always", "--on-crash", "restart", "--log-level", "debug", "--set", "bad.fault=Abort",
			"--set", "bad.at=0.4", "--set", "bad.times=1", "--set", "bad.marker=marker"}, runs: 1, printed: true},
		{name: "host", args: []string{hostFlag(t), "--log-level", "debug"}, runs: 1, printed: true},
		{name: "study", runs: 3, printed: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			dir := t.TempDir()
			trail := filepath.Join(dir, "trail")
			for i, arg := range way.args { // a worker has a folder of its own
				way.args[i] = strings.Replace(arg, "=marker", "="+filepath.Join(dir, "marker"), 1)
			}
			args := append([]string{"run", system, "--step-size", "0.01", "--output", "r.csv", "--set", "bad.trail=" + trail}, way.args...)
			if way.args == nil {
				args = []string{"study", system, "--run", "step-size=0.01", "--vary", "bad.x0=1,2,3", "--collect", "final(bad.x)",
					"--engines", "1", "--run", "set=bad.trail=" + trail}
			}
			cmd := exec.Command(program, args...)
			cmd.Dir = dir
			ownCache(t, cmd)
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			steps := func(kind string) (n int) {
				for line := range strings.Lines(string(read(t, trail+"."+kind))) {
					if strings.HasPrefix(line, "step ") && strings.HasSuffix(line, "\n") {
						n++
					}
				}
				return n
			}
			for _, kind := range []string{"log", "buffered"} {
				if n := steps(kind); n < 100*way.runs {
					t.Errorf("%d lines in the %s file", n, kind)
				}
			}
			for _, kind := range []string{"handler", "destructor"} {
				if text := string(read(t, trail+"."+kind)); text == "" || strings.ReplaceAll(text, "run\n", "") != "" {
					t.Errorf("the %s has written %q", kind, text)
				}
			}
			if !way.printed {
				return
			}
			for _, line := range []string{"trail: step 0.99", "trail: handler", "trail: destructor"} {
				if !strings.Contains(string(output), line) {
					t.Errorf("%q is not in the output", line)
				}
			}
			if t.Failed() {
				t.Logf("%s", output)
			}
		})
	}
}
