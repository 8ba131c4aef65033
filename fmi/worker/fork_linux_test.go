package worker_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
)

// A forked process that returns from a call of the FMU ends without an answer or messages. The results are those
// without a fork, in this process and in workers.
func TestForks(t *testing.T) {
	if fmi.CallPath != "trampoline" {
		t.Skip("in a forked process Go may wait for ever, and only the trampoline ends it before; run without -tags macrostep_portable")
	}
	temp := t.TempDir()
	want, err := live(killer(t), fmi.InstanceOptions{})
	must(t, err)
	launchers := map[string]fmi.Launcher{
		"here": nil, "shared": &worker.Launcher{TempDir: temp}, "pipes": &worker.Launcher{TempDir: temp, Pipes: true},
	}
	faults := map[string][]string{
		"here": {"forkreturn", "forklog"}, "shared": {"forkreturn", "forklog", "forkexec"}, "pipes": {"forkexec"},
	}
	for how, l := range launchers {
		for _, place := range places {
			for _, fault := range faults[how] {
				everywhere := how == "shared" && fault == "forkreturn"
				if !everywhere && place != "fmi2Instantiate" && place != "fmi2DoStep" && place != "fmi2GetReal" {
					continue
				}
				t.Setenv("KILL", fault+"@"+place+"@0")
				f := killer(t)
				if how == "here" { // in this process a library forks once
					f = killerCopy(t, fault+place)
				}
				var logged []string
				got, err := live(f, fmi.InstanceOptions{Launcher: l, Log: func(m fmi.LogMessage) {
					if m.Category == "fork" {
						logged = append(logged, m.Text)
					}
				}})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, %s in %s: %v, %v, want %v", how, fault, place, got, err, want)
				}
				if fault == "forkexec" || place == "fmi2FreeInstance" { // whose messages come too late
					continue
				}
				if text := strings.Join(logged, "; "); text != "the child ended by 0 with 127" {
					t.Errorf("%s, %s in %s: logged %q", how, fault, place, text)
				}
			}
		}
	}
	remains(t, temp)
}

// killerCopy returns the FMU of testdata/kill.c with a separate library.
func killerCopy(t *testing.T, name string) *fmi.FMU {
	t.Helper()
	f := killer(t)
	dir := filepath.Join(work, name)
	must(t, os.CopyFS(dir, os.DirFS(f.Dir)))
	f.Path, f.Dir = dir, dir
	return f
}
