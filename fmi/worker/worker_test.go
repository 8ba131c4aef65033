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
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/cc"
)

var work string

func TestMain(m *testing.M) {
	cc.Cache()
	worker.Main()
	os.Exit(setUp(m))
}

func setUp(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "worker-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	return m.Run()
}

// must fails the test if an error is not nil.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// open builds one of our FMUs and opens it.
func open(t testing.TB, name string) *fmi.FMU {
	t.Helper()
	path := filepath.Join(work, name+".fmu")
	if _, err := os.Stat(path); err != nil {
		path, err = fmus.Build(work, name)
		must(t, err)
	}
	f, _, err := fmi.Open(path, fmi.OpenOptions{TempDir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// trail uses an instance like a master and returns the log of its calls.
func trail(t testing.TB, f *fmi.FMU, l fmi.Launcher) string {
	var b strings.Builder
	in, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: l, Trace: fmi.NewTrace(&b), Log: func(m fmi.LogMessage) {
		fmt.Fprintf(&b, "log %s %s %s %s\n", m.Instance, m.Status, m.Category, m.Text)
	}})
	must(t, err)
	s, err := begin(in, fmi.StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{0}})
	must(t, err)
	for i := range 5 {
		s.RealIn[0] = float64(i)
		_, err := s.Step(float64(i)*0.1, 0.1, true)
		must(t, err)
	}
	must(t, errors.Join(in.Terminate(), in.Free()))
	return b.String()
}

// A step that has begun is completed before the next call, also without Step.
func TestStepLeftAlone(t *testing.T) {
	f := open(t, "mass_force")
	outputs := func(alone bool) []float64 {
		in, err := f.Instantiate("c", fmi.InstanceOptions{Launcher: &worker.Launcher{TempDir: t.TempDir()}})
		must(t, err)
		s, err := begin(in, fmi.StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{0}})
		must(t, err)
		s.RealIn[0] = 1
		batch, err := fmi.NewBatch([]*fmi.Stepper{s})
		must(t, err)
		if !batch.Begin(1, 0, 0.1, true) {
			t.Error("the step has not begun")
		}
		if !alone {
			_, _, err := batch.Step(0, 0, 0.1, true)
			must(t, err)
		}
		y := make([]float64, 1)
		must(t, in.GetReal([]description.ValueReference{0}, y))
		must(t, errors.Join(in.Terminate(), in.Free()))
		return y
	}
	if got, want := outputs(true), outputs(false); !slices.Equal(got, want) {
		t.Errorf("the outputs are %v, and %v if the step is waited for", got, want)
	}
}

// In a worker, calls have the same arguments and results, by shared memory and by pipes.
func TestWorkerIsTheSame(t *testing.T) {
	f := open(t, "mass_force")
	timeless := func(trail string) string {
		var b strings.Builder
		for line := range strings.Lines(trail) {
			w := strings.Fields(line) // "0.001273 c fmi2DoStep … -> OK 0.4µs"
			b.WriteString(strings.Join(w[1:len(w)-1], " ") + "\n")
		}
		return b.String()
	}
	here := timeless(trail(t, f, nil))
	if strings.Count(here, "fmi2DoStep") != 5 {
		t.Fatal(here)
	}
	for _, pipes := range []bool{false, true} {
		temp := t.TempDir()
		if there := timeless(trail(t, f, &worker.Launcher{TempDir: temp, Pipes: pipes})); there != here {
			t.Errorf("in this process\n%s\nin a worker, pipes %v\n%s", here, pipes, there)
		}
		remains(t, temp)
	}
}
