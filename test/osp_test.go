package test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/truck"
)

// structure writes a system structure of OSP beside the FMUs of the quarter truck, in a folder of its own.
func structure(t testing.TB, document string, more ...string) string {
	t.Helper()
	from := once(t, "truck", func(dir string) error { return errors.Join(os.MkdirAll(dir, 0o755), truck.Build(dir)) })
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(more); i += 2 {
		write(t, filepath.Join(dir, more[i]), []byte(more[i+1]))
	}
	write(t, filepath.Join(dir, "OspSystemStructure.xml"), document)
	return dir
}

const (
	truckHead = `<?xml version="1.0" encoding="UTF-8"?>
<OspSystemStructure xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure" version="0.1">
`
	truckValues = `<InitialValue variable="solverType"><String value="Euler"/></InitialValue><InitialValue variable="timeStep"><Real value="1e-4"/></InitialValue>`
	truckParts  = `<Simulators>
  <Simulator name="chassis" source="Chassis.fmu"><InitialValues><InitialValue variable="mass"><Real value="400"/></InitialValue>` + truckValues + `</InitialValues></Simulator>
  <Simulator name="wheel" source="Wheel.fmu"><InitialValues><InitialValue variable="mass"><Real value="40"/></InitialValue>` + truckValues + `</InitialValues></Simulator>
</Simulators>
`
	truckConnections = `<Connections>
  <VariableConnection powerBond="axle">
    <Variable simulator="chassis" name="velocity" causality="input"/><Variable simulator="wheel" name="in_vel" causality="output"/>
  </VariableConnection>
  <VariableConnection powerBond="axle">
    <Variable simulator="wheel" name="out_spring_damper_f" causality="input"/><Variable simulator="chassis" name="force" causality="output"/>
  </VariableConnection>
</Connections>
`
	truckEcco = `<EccoConfiguration>
  <SafetyFactor>0.99</SafetyFactor><StepSize>0.0001</StepSize>
  <MinimumStepSize>0.00001</MinimumStepSize><MaximumStepSize>0.01</MaximumStepSize>
  <MinimumChangeRate>0.2</MinimumChangeRate><MaximumChangeRate>1.5</MaximumChangeRate>
  <ProportionalGain>0.2</ProportionalGain><IntegralGain>0.15</IntegralGain>
  <RelativeTolerance>1e-4</RelativeTolerance><AbsoluteTolerance>1e-4</AbsoluteTolerance>
</EccoConfiguration>
`
	truckTail = "</OspSystemStructure>\n"
)

// The structure of the quarter truck runs as a folder and as a file: bond and settings of ECCO arrive, and the result
// is that of the same system in fine steps.
func TestOSP(t *testing.T) {
	t.Parallel()
	dir := structure(t, truckHead+"<BaseStepSize>0.0001</BaseStepSize><Algorithm>ecco</Algorithm>"+truckParts+truckConnections+truckEcco+truckTail)
	o := complete(t, dir, "--stop-time", "2")
	m := o.manifest
	if m.Algorithm != "ecco" || m.StepSize.Value != 1e-4 || m.StepSize.Source != "OspSystemStructure BaseStepSize" {
		t.Errorf("algorithm %s, step %+v", m.Algorithm, m.StepSize)
	}
	for key, want := range map[string]string{
		"control.safety": "0.99", "control.h0": "0.0001", "control.h-min": "1e-05", "control.h-max": "0.01", "control.ratio-min": "0.2", "control.ratio-max": "1.5",
		"control.p-gain": "0.2", "control.i-gain": "0.15", "ecco.tolerance": "0.0001", "ecco.energy-scale": "1",
	} {
		if m.Parameters[key] != want {
			t.Errorf("%s=%s, want %s", key, m.Parameters[key], want)
		}
	}
	if _, ok := m.Bonds["axle"]; !ok || len(m.Bonds) != 1 {
		t.Errorf("bonds %v", m.Bonds)
	}
	// The control works: the largest step is many times the smallest.
	times := o.column(t, "time")
	least, most := math.Inf(1), 0.0
	for i := 1; i < len(times)-1; i++ {
		least, most = min(least, times[i]-times[i-1]), max(most, times[i]-times[i-1])
	}
	if times[1]-times[0] < 0.99e-4 || times[1]-times[0] > 1.01e-4 || most < 10*least || least < 0.99e-5 || most > 1.01e-2 {
		t.Errorf("steps from %g to %g, the first %g", least, most, times[1]-times[0])
	}
	fine := complete(t, filepath.Join(dir, "OspSystemStructure.xml"), "--stop-time", "2", "--algorithm", "explicit", "--step-size", "1e-4")
	a, b := last(o.column(t, "chassis.position")), last(fine.column(t, "chassis.position"))
	if math.Abs(a-b) > 2e-3 || math.Abs(b-0.1) > 0.05 {
		t.Errorf("the chassis ends at %g, in fine steps at %g", a, b)
	}
	if !strings.Contains(fine.notes(), "parameters of the system for algorithm ecco are left out") {
		t.Errorf("notes %q", fine.manifest.Notes)
	}
}

// A setting that is out of range is refused with its place in the document.
func TestOSPRefused(t *testing.T) {
	dir := structure(t, truckHead+"<BaseStepSize>0.0001</BaseStepSize><Algorithm>ecco</Algorithm>"+truckParts+truckConnections+strings.Replace(truckEcco, "0.99", "1.5", 1)+truckTail)
	o := run(t, dir)
	o.is(t, 2, "OspSystemStructure.xml:16 (OspSystemStructure EccoConfiguration SafetyFactor): parameter control.safety=1.5: must be greater than 0 and at most 1")
}

func last[T any](v []T) T { return v[len(v)-1] }

// Functions of a structure: a force that two transformations halve and a sum puts together again is the force.
func TestOSPFunctions(t *testing.T) {
	signal := func(simulator, variable, function, signal string) string {
		return `<SignalConnection><Variable simulator="` + simulator + `" name="` + variable +
			`"/><Signal function="` + function + `" name="` + signal + `"/></SignalConnection>`
	}
	direct := complete(t, structure(t, truckHead+"<EndTime>0.5</EndTime><BaseStepSize>0.001</BaseStepSize><Algorithm>fixedStep</Algorithm>"+truckParts+truckConnections+truckTail))
	for _, c := range []struct{ name, functions, connections string }{
		{"sum", `<Sum name="total" inputCount="2"/>`, signal("wheel", "out_spring_damper_f", "total", "in[0]") +
			signal("wheel", "position", "total", "in[1]") + signal("chassis", "force", "total", "out")},
		{"linear", `<LinearTransformation name="half" factor="0.5" offset="0"/>`,
			signal("wheel", "out_spring_damper_f", "half", "in") + signal("chassis", "force", "half", "out")},
	} {
		document := truckHead + "<EndTime>0.5</EndTime><BaseStepSize>0.001</BaseStepSize><Algorithm>fixedStep</Algorithm>" + truckParts +
			"<Functions>" + c.functions + "</Functions>" +
			`<Connections><VariableConnection><Variable simulator="wheel" name="in_vel"/><Variable simulator="chassis" name="velocity"/></VariableConnection>` + c.connections + "</Connections>" + truckTail
		dir := structure(t, document)
		if _, out := macrostep(t, "info", dir); c.name == "sum" && (!strings.Contains(out, "total  out = in[0] + in[1]") ||
			!strings.Contains(out, "→ total.in[0]")) {
			t.Errorf("info\n%s", out)
		}
		o := complete(t, dir)
		force, f, z := o.column(t, "chassis.force"), o.column(t, "wheel.out_spring_damper_f"), o.column(t, "wheel.position")
		for i := range force {
			want := 0.5 * f[i]
			if c.name == "sum" {
				want = f[i] + z[i]
				if out := o.column(t, "total.out")[i]; out != want {
					t.Fatalf("row %d: total.out is %g, want %g", i, out, want)
				}
			}
			if math.Abs(force[i]-want) > 1e-9*math.Abs(want) {
				t.Fatalf("%s, row %d: the force is %g, want %g", c.name, i, force[i], want)
			}
		}
		// The function adds no delay: nearly the same force gives nearly the same run.
		if a, b := last(o.column(t, "chassis.position")), last(direct.column(t, "chassis.position")); c.name == "sum" &&
			math.Abs(a-b) > 1e-4 {
			t.Errorf("%s: the chassis ends at %g, without the function at %g", c.name, a, b)
		}
	}
}

// Simulators step every ⌊stepSize/BaseStepSize⌋ base steps; the run warns of a hint that this does not meet.
func TestOSPStepSizes(t *testing.T) {
	document := truckHead + "<EndTime>0.1</EndTime><BaseStepSize>0.001</BaseStepSize>" +
		strings.NewReplacer(`source="Chassis.fmu"`, `source="Chassis.fmu" stepSize="0.0035"`, `source="Wheel.fmu"`,
			`source="Wheel.fmu" stepSize="0.002"`).Replace(truckParts) + truckConnections + truckTail
	o := complete(t, structure(t, document))
	if s := o.manifest.FMUSteps; s["chassis"] != 33 || s["wheel"] != 50 {
		t.Errorf("steps %v", s)
	}
	if w := o.warnings(); !strings.Contains(w, "chassis takes steps of 0.003 s instead of 0.0035 s") ||
		strings.Contains(w, "wheel takes steps") {
		t.Errorf("warnings %s", w)
	}
}

// The quarter truck of libcosim, with FMUs of ours in place of the missing ones: its bond and its settings of ECCO
// take effect.
func testRealOSP(t *testing.T) {
	from := filepath.Join(*realDir, "systems", "libcosim", "quarter_truck")
	data := read(t, filepath.Join(from, "OspSystemStructure.xml"))
	var more []string
	for _, name := range []string{"chassis_OspModelDescription.xml", "wheel_OspModelDescription.xml"} {
		text := read(t, filepath.Join(from, name))
		more = append(more, name, string(text))
	}
	o := complete(t, structure(t, string(data), more...), "--stop-time", "1")
	if _, ok := o.manifest.Bonds["wheelchassis"]; !ok || o.manifest.Algorithm != "ecco" {
		t.Errorf("%s, bonds %v", o.manifest.Algorithm, o.manifest.Bonds)
	}
	for _, key := range []string{"control.safety", "control.h0", "control.h-min", "control.h-max",
		"control.ratio-min", "control.ratio-max", "control.p-gain", "control.i-gain", "ecco.tolerance", "ecco.energy-scale"} {
		if s := o.manifest.Sources["param "+key]; !strings.HasPrefix(s, "OspSystemStructure EccoConfiguration ") {
			t.Errorf("%s comes from %q", key, s)
		}
	}
}
