package test

import (
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/cloop"
	"github.com/macrostep/macrostep/test/long"
)

// loopRow is a system that macrostep and a loop in C compute alike, to the last bit.
type loopRow struct {
	name  string
	path  string // what macrostep runs
	parts []loopPart
	wires []cloop.Wire
	// inputs is the reason why the loop computes something else when it sets the inputs that nothing drives to their
	// documented starts; "" = it does not.
	inputs string
}

type loopPart struct {
	name, fmu string
	set       map[string]string
}

// loop is the compiled loop of the tests.
var loop = sync.OnceValues(func() (cloop.Program, error) { return cloop.Build(work) })

const (
	loopStep  = 1e-3 // s, which floating-point numbers do not hold exactly
	loopSteps = 200
)

// compare runs a row both ways.
func (r *loopRow) compare(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the loop in C loads libraries for linux64; run this test on linux/amd64, as .ci/run does")
	}
	program, err := loop()
	if err != nil {
		t.Fatal(err)
	}
	var parts []cloop.Part
	for _, p := range r.parts {
		u, err := cloop.Unpack(p.fmu, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, cloop.Part{Name: p.name, FMU: u, Set: p.set})
	}
	want, err := program.Run(parts, r.wires, false, loopStep, loopSteps)
	if err != nil {
		t.Fatal(err)
	}
	step, stop := strconv.FormatFloat(loopStep, 'g', -1, 64), strconv.FormatFloat(loopStep*loopSteps, 'g', -1, 64)
	record := slices.Sorted(maps.Keys(want))
	for k, name := range record {
		record[k] = "--record=" + name
	}
	o := run(t, slices.Concat([]string{r.path, "--step-size", step, "--stop-time", stop, "--algorithm", "explicit",
		"--param", "order=0"}, record)...)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		y, got := want[name], o.columns[name]
		if len(got) != len(y) {
			t.Errorf("%s: %d points, the loop has %d\n%s", name, len(got), len(y), o.output)
			continue
		}
		for k := range y {
			if math.Float64bits(got[k]) != math.Float64bits(y[k]) {
				t.Errorf("%s at point %d: %v (%x), the loop gives %v (%x)", name, k, got[k], got[k], y[k], y[k])
				break
			}
		}
	}
	if len(want) == 0 {
		t.Error("the loop has no outputs")
	}
	set, err := program.Run(parts, r.wires, true, loopStep, loopSteps)
	if err != nil {
		t.Fatal(err)
	}
	if same := maps.EqualFunc(want, set, slices.Equal); same != (r.inputs == "") {
		t.Errorf("with all inputs set to their documented starts the loop computes the same: %v; the table says %q", same, r.inputs)
	}
}

// Our FMUs and a coupled system of them compute in macrostep what they compute in a loop in C, to the last bit.
func TestLoop(t *testing.T) {
	t.Parallel()
	var rows []loopRow
	take := long.Sample(3)
	for _, name := range fmus.Names() {
		if strings.HasPrefix(name, "misbehave") || !take() {
			continue // what they do on purpose is in TestMisbehaviour
		}
		path := fmu(t, name)
		rows = append(rows, loopRow{name: name, path: path, parts: []loopPart{{name: name, fmu: path}}})
	}
	car := system(t, "quarter-car-a")
	rows = append(rows, loopRow{name: "quarter-car-a", path: car,
		parts: []loopPart{{name: "chassis", fmu: fmu(t, "quarter_chassis_a")}, {name: "wheel", fmu: fmu(t, "quarter_wheel_a")}},
		wires: []cloop.Wire{{From: "wheel.F_c", To: "chassis.F_c"}, {From: "chassis.v_c", To: "wheel.v_c"}}})
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.compare(t)
		})
	}
}

// realRows explains third-party FMUs, by their paths below -real, that differ when their inputs are set.
var realRows = map[string]loopRow{
	"fmus/ibk/Prey.fmu":     {inputs: "its input y is 0 until it is set, and documented as 10"},
	"fmus/ibk/Predator.fmu": {inputs: "its input x is 0 until it is set, and documented as 10"},
}

// testRealLoop compares every FMU below -real, and coupled systems of them, with the loop.
func testRealLoop(t *testing.T) {
	var rows []loopRow
	known := maps.Clone(realRows)
	for _, pattern := range []string{"fmus/*/*.fmu", "systems/*/*/*.fmu", "systems/*/*/resources/*.fmu"} {
		found, err := filepath.Glob(filepath.Join(*realDir, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s below %s", pattern, *realDir)
		}
		for _, path := range ofFMI2(t, found) {
			name, err := filepath.Rel(*realDir, path)
			if err != nil {
				t.Fatal(err)
			}
			name = filepath.ToSlash(name)
			r := known[name]
			delete(known, name)
			component := strings.TrimSuffix(filepath.Base(path), ".fmu")
			r.name, r.path, r.parts = name, path, []loopPart{{name: component, fmu: path}}
			rows = append(rows, r)
		}
	}
	for name := range known {
		t.Errorf("the table explains %s, which is not there", name)
	}
	rows = append(rows, realSystems()...)
	for _, r := range rows {
		t.Run(r.name, r.compare)
	}
}

// realSystems are the coupled systems, with their connections written independently of their documents.
func realSystems() []loopRow {
	at := func(path ...string) string {
		return filepath.Join(append([]string{*realDir, "systems"}, path...)...)
	}
	truck := map[string]string{"solverType": "Euler", "timeStep": "1e-5"}
	with := func(set map[string]string, name, value string) map[string]string {
		set = maps.Clone(set)
		set[name] = value
		return set
	}
	dc := at("omsimulator", "dcmotor", "resources")
	var axes []cloop.Wire
	for _, axis := range []string{"[1]", "[2]", "[3]"} {
		axes = append(axes, cloop.Wire{From: "CraneController.p_Crane.e" + axis, To: "KnuckleBoomCrane.p_Crane.e" + axis},
			cloop.Wire{From: "KnuckleBoomCrane.p_Crane.f" + axis, To: "CraneController.p_Crane.f" + axis},
			cloop.Wire{From: "KnuckleBoomCrane.Act_Limits" + axis, To: "CraneController.Act_Limits" + axis})
	}
	return []loopRow{
		{name: "quarter_truck", path: at("libcosim", "quarter_truck", "OspSystemStructure.xml"),
			parts: []loopPart{{"chassis", at("libcosim", "quarter_truck", "Chassis.fmu"), with(truck, "mass", "400")},
				{"wheel", at("libcosim", "quarter_truck", "Wheel.fmu"), with(truck, "mass", "40")}},
			wires: []cloop.Wire{{From: "chassis.velocity", To: "wheel.in_vel"}, {From: "wheel.out_spring_damper_f", To: "chassis.force"}}},
		{name: "crane", path: at("libcosim", "demo", "demo.ssp"),
			parts: []loopPart{{"CraneController", filepath.Join(*realDir, "fmus", "20sim", "CraneController.fmu"), nil},
				{"KnuckleBoomCrane", filepath.Join(*realDir, "fmus", "20sim", "KnuckleBoomCrane.fmu"),
					map[string]string{"Spring_Joint.k": "0.005", "mt0_init": "69"}}},
			wires: axes},
		{name: "dcmotor", path: at("omsimulator", "dcmotor"),
			parts: []loopPart{{"SuT.edrive_mass", filepath.Join(dc, "edrive_mass.fmu"),
				map[string]string{"inertia.J": "0.002", "damper.d": "0.001"}},
				{"SuT.emachine_model", filepath.Join(dc, "emachine_model.fmu"),
					map[string]string{"resistor.T_ref": "300.15", "resistor.T": "300.15", "resistor.alpha": "0.0",
						"inductor.L": "0.001", "emf.k": "0.1", "resistor.R": "0.5"}},
				{"stimuli_model", filepath.Join(dc, "stimuli_model.fmu"),
					map[string]string{"Voltage_step.offset": "0.0", "Voltage_step.startTime": "0.0",
						"Voltage_step.height": "12.0", "MLoad.k": "-0.5"}}},
			wires: []cloop.Wire{{From: "SuT.emachine_model.M", To: "SuT.edrive_mass.M_A"},
				{From: "SuT.edrive_mass.wA", To: "SuT.emachine_model.w"}, {From: "SuT.edrive_mass.phiA",
					To: "SuT.emachine_model.phi"},
				{From: "stimuli_model.M_load", To: "SuT.edrive_mass.M_B"}, {From: "stimuli_model.U", To: "SuT.emachine_model.U"}}},
	}
}
