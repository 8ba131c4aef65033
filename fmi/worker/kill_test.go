package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/test/long"
)

var buildKiller = sync.OnceValues(func() (string, error) {
	cc, err := csrc.Compiler()
	if err != nil {
		return "", err
	}
	source, err := filepath.Abs("testdata")
	if err != nil {
		return "", err
	}
	folder := map[string]string{"linux/amd64": "linux64", "linux/arm64": "aarch64-linux", "darwin/amd64": "darwin64", "darwin/arm64": "aarch64-darwin"}[runtime.GOOS+"/"+runtime.GOARCH]
	dir := filepath.Join(work, "kill")
	library := filepath.Join(dir, "binaries", folder)
	if err := os.MkdirAll(library, 0o700); err != nil {
		return "", err
	}
	if err := csrc.WriteHeaders(dir); err != nil {
		return "", err
	}
	return dir, csrc.Library(context.Background(), cc, source, filepath.Join(library, "kill"+csrc.Extension()), "-fPIC", "-w", "-I"+dir, "kill.c", "-lpthread")
})

// killer returns the FMU of testdata/kill.c.
func killer(t testing.TB) *fmi.FMU {
	t.Helper()
	dir, err := buildKiller()
	must(t, err)
	return &fmi.FMU{Path: dir, Dir: dir, Description: &description.ModelDescription{
		FMIVersion: "2.0", ModelName: "kill", GUID: "{kill}",
		CoSimulation: &description.CoSimulation{ModelIdentifier: "kill", CanHandleVariableCommunicationStepSize: true, CanGetAndSetFMUState: true},
		Variables:    []description.ScalarVariable{{Name: "u", Type: description.Real}, {Name: "x", Type: description.Real, ValueReference: 1}},
	}}
}

// begin initialises an instance and returns a stepper, or the first error.
func begin(in *fmi.Instance, p fmi.StepPlan) (*fmi.Stepper, error) {
	if err := in.SetupExperiment(fmi.Experiment{}); err != nil {
		return nil, err
	}
	for _, enter := range []func() error{in.EnterInitializationMode, in.ExitInitializationMode} {
		if err := enter(); err != nil {
			return nil, err
		}
	}
	return in.NewStepper(p)
}

// live uses an instance like a master until the first error, and returns the values read.
func live(f *fmi.FMU, o fmi.InstanceOptions) (read []float64, err error) {
	in, err := f.Instantiate("victim", o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Free()) }()
	s, err := begin(in, fmi.StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{0, 1}})
	if err != nil {
		return nil, err
	}
	for i := range 10 {
		state, err := in.GetFMUState(nil)
		if err == nil {
			err = in.SetFMUState(state)
		}
		if err == nil {
			err = in.FreeFMUState(state)
		}
		if err == nil {
			s.RealIn[0] = float64(i)
			_, err = s.Step(float64(i)/10, 0.1, true)
		}
		if err != nil {
			return nil, err
		}
		read = append(read, s.RealOut...)
	}
	return read, in.Terminate()
}

// remains fails the test if a worker or its folder is left.
func remains(t testing.TB, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	if n := children(t); n != "" {
		t.Errorf("processes left: %s", n)
	}
}

// children lists the processes whose parent is this one.
func children(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return ""
	}
	paths, err := filepath.Glob("/proc/self/task/*/children")
	must(t, err)
	var out []string
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err == nil {
			out = append(out, strings.Fields(string(text))...)
		}
	}
	return strings.Join(out, " ")
}

var faults = []struct{ name, says string }{
	{"segv", "SIGSEGV (segmentation fault)"}, {"abort", "SIGABRT (aborted)"}, {"ill", "SIGILL (illegal instruction)"},
	{"exit0", "exited with code 0"}, {"exit7", "exited with code 7"}, {"overflow", "SIGSEGV (segmentation fault)"}, {"raise", "SIGSEGV (segmentation fault)"},
	{"kill9", "SIGKILL (killed), from outside"}, {"thread", "SIGSEGV (segmentation fault)"},
	{"loop", "did not return within"}, {"sleep", "did not return within"},
	{"hog", "memory is limited to 64 MiB, and it used up to"}, {"fork", "SIGABRT (aborted)"},
}

var places = []string{
	"fmi2Instantiate", "fmi2SetupExperiment", "fmi2EnterInitializationMode", "fmi2ExitInitializationMode",
	"fmi2DoStep", "fmi2GetReal", "fmi2SetReal", "fmi2GetFMUstate", "fmi2SetFMUstate", "fmi2FreeFMUstate", "fmi2Terminate", "fmi2FreeInstance",
}

func TestKill(t *testing.T) {
	for k, fault := range faults {
		for n, place := range places {
			if !long.On && k > 0 && (n+k)%12 != 0 { // the first fault at all places, the others at one each
				continue
			}
			t.Run(fault.name+"/"+place, func(t *testing.T) {
				at := "0"
				switch place {
				case "fmi2DoStep", "fmi2GetReal", "fmi2SetReal", "fmi2GetFMUstate", "fmi2SetFMUstate", "fmi2FreeFMUstate":
					at = "0.5"
				}
				t.Setenv("KILL", fault.name+"@"+place+"@"+at)
				temp := t.TempDir()
				l := &worker.Launcher{TempDir: temp}
				switch fault.name {
				case "loop", "sleep":
					l.Timeout = time.Second // enough for what does not hang
				case "hog":
					l.Memory = 64 << 20
				}
				_, err := live(killer(t), fmi.InstanceOptions{Launcher: l})
				var lost *fmi.ProcessError
				if !errors.As(err, &lost) {
					t.Fatalf("error %v", err)
				}
				want := []string{"victim: the process of kill ended in ", place, fault.says, "about to " + fault.name}
				if at != "0" {
					want = append(want, "t = 0.5 s")
				}
				for _, part := range want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in: %v", part, err)
					}
				}
				if n := strings.Count(err.Error(), "\n"); n > 0 {
					t.Errorf("%d more lines: %v", n, err)
				}
				remains(t, temp)
			})
		}
	}
}
