package fmi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// build compiles sources of testdata to a library.
func build(tb testing.TB, out string, sources []string, flags ...string) {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(out), 0o755))
	cc, err := csrc.Compiler()
	must(tb, err)
	args := append(cc[1:], "-shared", "-fPIC", "-O1", "-fno-builtin", "-w", "-Icsrc", "-DEXPORT=FMI2_EXPORT", "-o", out)
	for _, s := range sources {
		args = append(args, filepath.Join("testdata", s))
	}
	args = append(args, flags...)
	if text, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", args, err, text)
	}
}

// tempDir is for libraries, which stay loaded after a test.
var tempDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "macrostep-fmi-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tempDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// described returns the description of the probe, everything declared.
func described() *description.ModelDescription {
	return &description.ModelDescription{
		FMIVersion: "2.0", ModelName: "probe", GUID: "{probe}",
		CoSimulation: &description.CoSimulation{
			ModelIdentifier: "probe", CanHandleVariableCommunicationStepSize: true, CanInterpolateInputs: true,
			MaxOutputDerivativeOrder: 2, CanRunAsynchronously: true, CanGetAndSetFMUState: true,
			CanSerializeFMUState: true, ProvidesDirectionalDerivative: true,
		},
		LogCategories: []description.LogCategory{{Name: "a"}, {Name: "b"}},
		Variables: []description.ScalarVariable{
			{Name: "u", Type: description.Real, ValueReference: 0}, {Name: "time", Type: description.Real, ValueReference: 3},
			{Name: "count", Type: description.Integer, ValueReference: 5}, {Name: "flag", Type: description.Boolean, ValueReference: 7},
			{Name: "text", Type: description.String, ValueReference: 0},
		},
	}
}

var fmuCount int

// place makes the folder of an unpacked FMU and returns the FMU and the path at
// which its library belongs.
func place(testing.TB) (*FMU, string) {
	fmuCount++
	dir := filepath.Join(tempDir, fmt.Sprint("fmu", fmuCount))
	f := &FMU{Description: described(), Path: filepath.Join(tempDir, fmt.Sprint("archive", fmuCount, ".fmu")), Dir: dir}
	lib := filepath.Join(dir, "binaries", platforms(runtime.GOOS, runtime.GOARCH)[0], "probe"+native.LibrarySuffix)
	return f, lib
}

// probeFMU builds the probe with macros and more sources.
func probeFMU(tb testing.TB, flags ...string) *FMU {
	tb.Helper()
	f, lib := place(tb)
	build(tb, lib, []string{"probe.c", "log.c"}, append(flags, "-lpthread", "-lm")...)
	return f
}

// placed returns a new FMU whose library holds some bytes.
func placed(tb testing.TB, library []byte) *FMU {
	tb.Helper()
	f, lib := place(tb)
	must(tb, os.MkdirAll(filepath.Dir(lib), 0o755))
	must(tb, os.WriteFile(lib, library, 0o755))
	return f
}

// copied returns a new FMU with a copy of a library.
func copied(tb testing.TB, library string) *FMU {
	tb.Helper()
	data, err := os.ReadFile(library)
	must(tb, err)
	return placed(tb, data)
}

// plainOnce guards the building of the plain probe.
var plainOnce sync.Once

// plainFMU returns a new FMU with a copy of the plain probe.
func plainFMU(tb testing.TB) *FMU {
	tb.Helper()
	src := filepath.Join(tempDir, "plain", "probe"+native.LibrarySuffix)
	plainOnce.Do(func() { build(tb, src, []string{"probe.c", "log.c"}, "-lpthread", "-lm") })
	return copied(tb, src)
}

// collector gathers log messages.
type collector struct {
	mu  sync.Mutex
	all []LogMessage
}

func (c *collector) log(m LogMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, m)
}

func (c *collector) texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, m := range c.all {
		out = append(out, m.Text)
	}
	return out
}

func (c *collector) has(part string) bool {
	return strings.Contains(strings.Join(c.texts(), "\n"), part)
}

// instance makes an instance that is freed at the end of the test.
func instance(tb testing.TB, f *FMU, name string, o InstanceOptions) *Instance {
	tb.Helper()
	in, err := f.Instantiate(name, o)
	must(tb, err)
	tb.Cleanup(func() {
		if in.State() == StateStepInProgress {
			in.state = StateStepComplete
		}
		must(tb, in.Free())
	})
	return in
}

// must fails the test if an error is not nil.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// start brings an instance to stepComplete.
func start(tb testing.TB, in *Instance) {
	tb.Helper()
	must(tb, in.SetupExperiment(Experiment{}))
	must(tb, in.EnterInitializationMode())
	must(tb, in.ExitInitializationMode())
}

// running returns an instance of a plain probe in stepComplete.
func running(tb testing.TB, f *FMU, name string) *Instance {
	tb.Helper()
	in := instance(tb, f, name, InstanceOptions{})
	start(tb, in)
	return in
}

// fail makes the next n calls of a function return a status, 0 all.
func fail(tb testing.TB, in *Instance, f capi.Function, s Status, n int32) {
	tb.Helper()
	must(tb, in.SetInteger([]description.ValueReference{100, 101, 102}, []int64{int64(f), int64(s), int64(n)}))
}

// export calls an exported helper of the probe.
func export(tb testing.TB, in *Instance, name string, args ...uintptr) uintptr {
	tb.Helper()
	h, _, err := native.OpenLibrary(in.fmu.Library(), 0)
	must(tb, err)
	p := native.Symbol(h, name)
	if p == 0 {
		tb.Fatalf("the probe does not export %s", name)
	}
	return native.CallInts(p, args...)
}

func probeText(tb testing.TB, in *Instance, k uintptr) string {
	tb.Helper()
	return native.String(export(tb, in, "probe_text", in.comp, k), 4096)
}
