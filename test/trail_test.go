package test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/test/long"
)

// ending is a way to run FMUs.
type ending struct {
	name string
	args []string // of macrostep run; nil = of a study
}

func endings(t *testing.T) []ending {
	return []ending{
		{"here", []string{"--isolate", "never"}},
		{"isolated", []string{"--isolate", "always"}},
		{"host", []string{hostFlag(t)}},
		{"study", nil},
	}
}

// run runs the pair of a healthy FMU and a misbehaving one, or a study of three runs of it, with settings of the latter, and
// returns what is printed.
func (e *ending) run(t *testing.T, dir string, settings ...string) string {
	t.Helper()
	system := badPair(t, "misbehave")
	args := append([]string{"run", system, "--step-size", "0.01", "--output", "r.csv", "--strict", "-vv"}, e.args...)
	flag, value := "--set", "bad."
	if e.args == nil {
		args = []string{"study", system, "--run", "step-size=0.01", "--run", "isolate=never", "--vary", "bad.x0=1,2,3", "--collect", "final(bad.x)",
			"--output", "study", "--engines", "1", "--strict"}
		flag, value = "--run", "set=bad."
	}
	for _, s := range settings {
		args = append(args, flag, value+s)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	ownCache(t, cmd)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%s", args, err, output)
	}
	return string(output)
}

// What an FMU prints or writes is there after the run, and its exit handler and destructor have been called.
func TestTrail(t *testing.T) {
	t.Parallel()
	type way struct {
		ending
		settings []string // of the FMU
	}
	ways := []way{
		{ending{"beside a held stream", []string{"--isolate", "never"}}, []string{"fault=HoldStream"}},
		{ending{"restarted", []string{"--isolate", "always", "--on-crash", "restart"}}, []string{"fault=Abort", "at=0.4", "times=1", "marker=DIR/marker"}},
	}
	for _, e := range endings(t) {
		ways = append(ways, way{e, nil})
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var settings []string
			for _, s := range append(w.settings, "trail=DIR/trail") { // a worker may have a folder of its own
				settings = append(settings, strings.Replace(s, "DIR", dir, 1))
			}
			output := w.run(t, dir, settings...)
			steps := 100
			if w.args == nil {
				steps *= 3
			}
			for _, kind := range []string{"log", "buffered"} {
				text := string(read(t, filepath.Join(dir, "trail."+kind)))
				if n := strings.Count(text, "\n"); n < steps || !strings.HasSuffix(text, "step 0.99\n") {
					t.Errorf("%d lines in the %s file", n, kind)
				}
			}
			for _, kind := range []string{"handler", "destructor"} {
				if text := string(read(t, filepath.Join(dir, "trail."+kind))); text == "" || strings.ReplaceAll(text, "run\n", "") != "" {
					t.Errorf("the %s has written %q", kind, text)
				}
			}
			for _, line := range []string{"trail: step 0.99", "trail: handler", "trail: destructor"} {
				if !strings.Contains(output, line) {
					t.Errorf("%q is not printed\n%s", line, output)
				}
			}
		})
	}
}

// Whatever an FMU does after the last row is a warning that names it and its function: the run is complete, also a strict
// one, and a study keeps the row.
func TestAfterLastRow(t *testing.T) {
	t.Parallel()
	take := long.Sample(3)
	for _, e := range append(endings(t), ending{"restarted", []string{"--isolate", "always", "--on-crash", "restart"}}) {
		for _, c := range []struct{ fault, during, says string }{
			{"Error", "Terminate", "fmi2Terminate returned Error"},
			{"Abort", "FreeInstance", "in fmi2FreeInstance at t = 1 s: killed by signal SIGABRT"},
			{"Fatal", "Terminate", "fmi2Terminate returned Fatal"}, // a study needs another engine then
			{"Exit0", "Terminate", "in fmi2Terminate at t = 1 s: it exited with code 0"},
		} {
			if !take() {
				continue
			}
			t.Run(e.name+"/"+c.fault, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				output := e.run(t, dir, "fault="+c.fault, "during="+c.during)
				var warned string
				if e.args == nil {
					rows := rowsOfStudy(t, filepath.Join(dir, "study"))
					if got := strings.Join(rows["status"], " "); got != "ok ok ok" {
						t.Errorf("the rows are %s", got)
					}
					warned = rows["reason"][2]
				} else {
					var m record.Manifest
					if err := json.Unmarshal(read(t, filepath.Join(dir, "r.json")), &m); err != nil || m.Status != "complete" {
						t.Errorf("%v, status %s", err, m.Status)
					}
					warned = strings.Join(m.Warnings, "\n")
				}
				if !strings.Contains(warned, "misbehave.fmu") || !strings.Contains(warned, c.says) {
					t.Errorf("the warning is %q\n%s", warned, output)
				}
			})
		}
	}
}
