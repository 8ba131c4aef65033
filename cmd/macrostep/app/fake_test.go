package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// fake opens the oscillator of mastertest in place of any system, with a third subsystem
// with a free input beside it. It keeps what it was asked.
type fake struct {
	asked     simulate.OpenOptions
	path      string
	algorithm string
	params    map[string]string
	findings  []diag.Finding
	warnings  []string
	fault     *mastertest.Faulty // stands before the first subsystem
	openErr   error
	beginStep func() // called at every step of the first subsystem
	closed    int
}

// hooked calls a function at every step.
type hooked struct {
	master.Subsystem
	f func()
}

func (h *hooked) Unwrap() master.Subsystem { return h.Subsystem }

func (h *hooked) Step(ctx context.Context, t, step float64) (float64, error) {
	h.f()
	return h.Subsystem.Step(ctx, t, step)
}

func (f *fake) open(_ context.Context, path string, o simulate.OpenOptions) (*simulate.System, error) {
	f.asked, f.path = o, path
	if f.openErr != nil {
		return nil, f.openErr
	}
	subs := mastertest.Oscillator()
	var first master.Subsystem = subs[0]
	if f.fault != nil {
		f.fault.Subsystem = first
		first = f.fault
	}
	if f.beginStep != nil {
		first = &hooked{first, f.beginStep}
	}
	free := mastertest.NewLinear("free", mastertest.Matrices{A: [][]float64{{0}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{0})
	sys, err := master.NewSystem([]master.Subsystem{first, subs[1], free}, mastertest.OscillatorConnections())
	if err != nil {
		return nil, err
	}
	out := &simulate.System{
		System: sys, Algorithm: f.algorithm, Params: f.params, Findings: f.findings, Warnings: f.warnings,
		FMUs:  []record.FMU{{Component: "first", Path: "first.fmu", Hash: "sha256:1", Tool: "tool"}},
		Start: simulate.Setting{Value: 0, Source: "default"}, Stop: simulate.Setting{Value: 1, Source: "DefaultExperiment of first"}, Step: simulate.Setting{Value: 0.01, Source: "DefaultExperiment of first"},
		Tolerance: o.Tolerance,
		Close:     func() error { f.closed++; return nil },
	}
	for _, s := range []struct {
		to   *simulate.Setting
		from *simulate.Setting
	}{{&out.Start, o.Start}, {&out.Stop, o.Stop}, {&out.Step, o.Step}} {
		if s.from != nil {
			*s.to = *s.from
		}
	}
	return out, nil
}

func number64(v float64) *float64 { return &v }

func testFMU() *fileDescription {
	return &fileDescription{
		FMU: &fmuDescription{Path: "m.fmu", Hash: "sha256:2", Platforms: []string{"linux64", "win64"}, Description: &description.ModelDescription{
			FMIVersion: "2.0", ModelName: "Mass", GUID: "{1}", Description: "a mass\n  on a spring", GenerationTool: "Tool 7",
			CoSimulation: &description.CoSimulation{ModelIdentifier: "mass", CanHandleVariableCommunicationStepSize: true,
				CanGetAndSetFMUState: true, MaxOutputDerivativeOrder: 2},
			DefaultExperiment: &description.DefaultExperiment{StartTime: number64(0), StepSize: number64(1e-3)},
			Variables: []description.ScalarVariable{
				{Name: "F", ValueReference: 1, Causality: description.Input, Real: description.RealAttributes{Unit: "N"}, HasStart: true, Description: "force"},
				{Name: "x", ValueReference: 2, Causality: description.Output, Initial: description.Calculated, Real: description.RealAttributes{Unit: "m"}},
				{Name: "n", ValueReference: 2, Causality: description.Output, Variability: description.Discrete, Type: description.Integer},
				{Name: "m", ValueReference: 3, Causality: description.Parameter, Variability: description.Fixed, HasStart: true, StartReal: 1.5, Real: description.RealAttributes{Unit: "kg"}},
				{Name: "name", Causality: description.Parameter, Variability: description.Fixed, Type: description.String, HasStart: true, StartString: `a "b"`},
				{Name: "mode", Causality: description.Local, Variability: description.Discrete, Type: description.Enumeration, DeclaredType: "Mode", HasStart: true, StartInteger: 2},
				{Name: "on", Causality: description.Local, Variability: description.Discrete, Type: description.Boolean, HasStart: true, StartBoolean: true},
			},
			Outputs: []description.Unknown{{Index: 2, Declared: true, Dependencies: []int{1}}, {Index: 3}},
		}},
		Findings: []diag.Finding{{ID: "MD1", Level: diag.Warning, File: "m.fmu", Path: "/x", Line: 7, Message: "odd", Remedy: "mend it"}},
	}
}

func testSystemDescription() *fileDescription {
	return &fileDescription{System: &systemDescription{
		Path: "s.ssp", Name: "car", StartTime: simulate.Setting{Value: 0, Source: "default"}, StopTime: simulate.Setting{Value: 4, Source: "DefaultExperiment of the system"},
		StepSize: simulate.Setting{Value: 1e-3, Source: "annotation"}, Algorithm: "explicit", Params: map[string]string{"order": "1"}, Stateless: []string{"road"},
		Components: []componentInfo{{"wheel", "resources/wheel.fmu", "Wheel", "Tool 7", 1, 2, false}, {"road", "resources/road.fmu", "", "", 0, 1, false}},
		Connections: []assemble.ConnectionInfo{{From: "road.z", FromUnit: "cm", To: "wheel.z", ToUnit: "m", Gain: 0.01}, {From: "wheel.v", To: "road.v", Gain: 1, Via: "suspension.v"}, {From: "wheel.T", To: "road.T", Gain: 1, Offset: -273.15},
			{From: "road.gear", To: "wheel.gear", Gain: 1, Map: "1 → 2"}},
		Settings: []settingInfo{{"wheel.m", "60", "s.ssd:12", 0, "", nil}, {"wheel.k", "5", "s.ssd:13", 2, "stiffness", nil}},
		Sources:  map[string]string{"algorithm": "annotation of macrostep (s.ssd:40)", "param order": "annotation of macrostep (s.ssd:41)"},
		Loops:    []master.Loop{{Variables: []string{"wheel.v", "road.v"}, Assumed: true, Treatment: "broken"}},
	}}
}

// call runs the program in an empty folder.
func call(t *testing.T, f *fake, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callIn(t.Context(), t, t.TempDir(), f, args...)
}

// callIn runs the program in a folder. Without a fake it opens real systems.
func callIn(ctx context.Context, t *testing.T, dir string, f *fake, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &errs, f)
	return code, out.String(), errs.String()
}

// refuses checks that each of the command lines, words separated by |, ends in a folder with exit
// code 2 and the message, and prints nothing else.
func refuses(t *testing.T, dir string, f *fake, messages map[string]string) {
	t.Helper()
	for args, want := range messages {
		code, stdout, stderr := callIn(t.Context(), t, dir, f, strings.Split(args, "|")...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d: %s", args, code, stdout)
		}
		contains(t, args, stderr, "macrostep: ", want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

var errBroken = errors.New("broken")

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// run runs the program in this process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, f *fake) int {
	p := newProgram(args, stdin, stdout, stderr)
	if f != nil {
		p.openSystem = f.open
	}
	return p.run(ctx)
}
