package fmuslave_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
	"github.com/macrostep/macrostep/test/probe"
)

// threadedFMU returns an FMU that keeps something by thread, as OpenMP, COM and many solvers do: a call from another
// thread than that of fmi2Instantiate is fatal.
func threadedFMU(t *testing.T) *fmi.FMU {
	t.Helper()
	const check = "\tif (((Life *)c)->thread != &here) {\n" +
		"\t\tLife *m = c;\n\t\tm->callbacks.logger(m->callbacks.componentEnvironment, \"life\", fmi2Fatal, NULL, \"called by another thread\");\n\t\t"
	source := slavetest.Changed(t, probe.LifeSource(), "static int instances;", "static _Thread_local char here;\nstatic int instances;",
		"typedef struct {\n", "typedef struct {\n\tchar *thread;\n", "\tinstances++;\n", "\tinstances++;\n\tm->thread = &here;\n",
		"m->restored = keep.restored + 1;", "m->thread = keep.thread;\n\tm->restored = keep.restored + 1;",
		"void fmi2FreeInstance(fmi2Component c) { free(c); }", "void fmi2FreeInstance(fmi2Component c) {\n"+check+"return;\n\t}\n\tfree(c);\n}")
	source = regexp.MustCompile(`(?m)^fmi2Status fmi2\w+\(fmi2Component c[^{]*\{\n`).ReplaceAllStringFunc(source, func(head string) string {
		return head + check + "return fmi2Fatal;\n\t}\n"
	})
	if n := strings.Count(source, check); n < 25 {
		t.Fatalf("%d functions check their thread", n)
	}
	path, err := probe.Zip(filepath.Join(t.TempDir(), "life.fmu"), "modelDescription.xml",
		probe.LifeDescription(probe.LifeCapabilities+` canSerializeFMUstate="true"`, ""), "sources/life.c", source)
	must(t, err)
	f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// What an FMU keeps by thread is there in every call, from its instantiation to its end: in one thread or several, as
// asked for or by the costs of earlier runs, whether they pay or not.
func TestThreadLocalState(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	f := threadedFMU(t)
	const H = 1e-4
	for _, preset := range []string{"explicit", "implicit", "model-based-corrector"} {
		for _, workers := range []int{0, 1, 2} {
			var state []byte
			for range 2 { // from the start, and resumed
				var said []string
				var subs []master.Subsystem
				for _, name := range []string{"one", "two"} {
					s, err := fmuslave.New(fmuslave.Config{Name: name, FMU: f, Inputs: []string{"u"}, Outputs: []string{"y"}, Watch: []string{"instances"},
						Cache: &fmuprobe.Cache{Dir: t.TempDir()}, Options: fmi.InstanceOptions{Log: func(m fmi.LogMessage) { said = append(said, m.Text) }}})
					must(t, err)
					s.KeepStepCost(H, 1) // so that threads seem to pay
					subs = append(subs, s)
				}
				sys, err := master.NewSystem(subs, []master.Connection{master.Connect("one.y", "two.u"), master.Connect("two.y", "one.u")})
				must(t, err)
				r, err := master.NewRun(sys, algorithm(t, preset), master.Options{Stop: 0.05, Step: H, Workers: workers, Resume: state,
					Checkpoints: &master.Checkpoints{Every: 0.03, Write: func(c master.Checkpoint) error { state = c.State; return nil }}})
				must(t, err)
				result, err := r.Run(t.Context())
				if want := []int{2, 1, 2}[workers]; err != nil || result.Workers != want || strings.Contains(fmt.Sprint(said), "thread") {
					t.Errorf("%s, %d workers: %v, %d were used, %q", preset, workers, err, result.Workers, said)
				}
			}
		}
	}
}
