package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
)

// sameNumbers runs an FMU that forks at a place and lets the child return.
func sameNumbers(t *testing.T, f *fmi.FMU, fault, place string, l fmi.Launcher, want []float64) {
	t.Helper()
	t.Setenv("KILL", fault+"@"+place+"@0")
	var logged []string // about forks
	got, err := live(f, fmi.InstanceOptions{Launcher: l, Log: func(m fmi.LogMessage) {
		if m.Category == "fork" {
			logged = append(logged, m.Text)
		}
	}})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s in %s: %v, %v, want %v", fault, place, got, err, want)
	}
	if fault == "forkexec" || place == "fmi2FreeInstance" { // whose messages come too late
		return
	}
	if text := strings.Join(logged, "; "); text != "the child ended by 0 with 127" {
		t.Errorf("%s in %s: logged %q", fault, place, text)
	}
}

// A process that an FMU has forked off and that returns from the call answers nothing and
// logs nothing: it ends.
func TestForks(t *testing.T) {
	if fmi.CallPath != "trampoline" {
		t.Skip("in a forked process Go may wait for ever, and only the trampoline ends it before; run without -tags macrostep_portable")
	}
	temp := t.TempDir()
	shared, pipes := &worker.Launcher{TempDir: temp}, &worker.Launcher{TempDir: temp, Pipes: true}
	want, err := live(killer(t), fmi.InstanceOptions{Launcher: shared})
	must(t, err)
	for _, place := range places {
		sameNumbers(t, killer(t), "forkreturn", place, shared, want)
	}
	for _, place := range []string{"fmi2Instantiate", "fmi2DoStep", "fmi2GetReal"} {
		sameNumbers(t, killer(t), "forklog", place, shared, want)
		sameNumbers(t, killer(t), "forkexec", place, shared, want)
		sameNumbers(t, killer(t), "forkexec", place, pipes, want)
	}
	remains(t, temp)
}

// The same in this process, where each FMU forks once.
func TestForksHere(t *testing.T) {
	if fmi.CallPath != "trampoline" {
		t.Skip("in a forked process Go may wait for ever, and only the trampoline ends it before; run without -tags macrostep_portable")
	}
	want, err := live(killerCopy(t, "healthy"), fmi.InstanceOptions{})
	must(t, err)
	for k, place := range []string{"fmi2Instantiate", "fmi2DoStep", "fmi2GetReal", "fmi2SetReal"} {
		for _, fault := range []string{"forkreturn", "forklog"} {
			sameNumbers(t, killerCopy(t, fmt.Sprint(fault, k)), fault, place, nil, want)
		}
	}
}

// killerCopy returns the FMU of testdata/kill.c with a library of its own.
func killerCopy(t *testing.T, name string) *fmi.FMU {
	t.Helper()
	f := killer(t)
	dir := filepath.Join(work, name)
	must(t, os.CopyFS(dir, os.DirFS(f.Dir)))
	f.Path, f.Dir = dir, dir
	return f
}
