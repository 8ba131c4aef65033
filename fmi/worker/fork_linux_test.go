package worker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/worker"
)

// numbers does all that a master does with an instance and returns what it reads, and what
// the FMU logs about forks. With rounds, the last ten steps are made in one crossing.
func numbers(f *fmi.FMU, l fmi.Launcher) (read []float64, logged []string, err error) {
	in, err := f.Instantiate("victim", fmi.InstanceOptions{Launcher: l, Log: func(m fmi.LogMessage) {
		if m.Category == "fork" {
			logged = append(logged, m.Text)
		}
	}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, in.Free()) }()
	if err := errors.Join(in.SetupExperiment(fmi.Experiment{Start: 0}), in.EnterInitializationMode(), in.ExitInitializationMode()); err != nil {
		return nil, nil, err
	}
	s, err := in.NewStepper(fmi.StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{0, 1}})
	if err != nil {
		return nil, nil, err
	}
	for i := range 10 {
		state, err := in.GetFMUState(nil)
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(in.SetFMUState(state), in.FreeFMUState(state)); err != nil {
			return nil, nil, err
		}
		s.RealIn[0] = float64(i)
		if _, err := s.Step(float64(i)/10, 0.1, true); err != nil {
			return nil, nil, err
		}
		read = append(read, s.RealOut...)
	}
	return read, logged, in.Terminate()
}

// sameNumbers runs an FMU that forks at a place and lets the child return.
func sameNumbers(t *testing.T, f *fmi.FMU, fault, place string, l fmi.Launcher, want []float64) {
	t.Helper()
	t.Setenv("KILL", fault+"@"+place+"@0")
	got, logged, err := numbers(f, l)
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
	want, _, err := numbers(killer(t), shared)
	if err != nil {
		t.Fatal(err)
	}
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
	want, _, err := numbers(killerCopy(t, "healthy"), nil)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.CopyFS(dir, os.DirFS(f.Dir)); err != nil {
		t.Fatal(err)
	}
	f.Path, f.Dir = dir, dir
	return f
}
