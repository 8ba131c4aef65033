package test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
	"github.com/macrostep/macrostep/test/store"
	"github.com/macrostep/macrostep/test/truck"
)

// Every third-party document is read: every SSD, inside packages too, with all that it refers to but FMUs.
func testRealSSDs(t *testing.T) {
	root := unpackedSystems(t)
	count := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".ssd") && e.Name() != "OspSystemStructure.xml" {
			return err
		}
		count++
		l := &diag.List{}
		p, err := ssp.Open(path, l, dialect.All()...)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		for _, f := range l.At(diag.Warning) {
			// Units "[m]" that nobody defines, and a prefix that nobody declares.
			if f.ID != "SD13" && f.ID != "SD1T" {
				t.Errorf("finding %s", f)
			}
		}
		return p.Close()
	})
	if err != nil || count < 14 {
		t.Errorf("%d documents, error %v", count, err)
	}
}

// unpackedSystems copies systems/ and unpacks the packages in it, so that FMUs can be put where documents look for
// them.
func unpackedSystems(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "deep", "er", "systems")
	if err := os.CopyFS(root, os.DirFS(filepath.Join(*realDir, "systems"))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".ssp") {
			return err
		}
		return unzip(path, strings.TrimSuffix(path, ".ssp"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// realValues are the values after initialisation in third-party documents, worked out by hand: the outer level beats
// the inner, at one level the later binding wins (ssp 36), and a connection beats both (ssp 37). FMUs that a document
// names but that are missing are replaced by ones that keep their values, with the same variables.
var realValues = []struct {
	path   string
	fmus   func(dir string) error // puts FMUs where the document, in dir, looks for them
	values map[string]float64
	why    string
}{
	{"omsimulator/dcmotor", nil, map[string]float64{
		"SuT.edrive_mass.inertia.J": 0.002, "SuT.edrive_mass.damper.d": 0.001,
		"SuT.emachine_model.resistor.T_ref": 300.15, "SuT.emachine_model.resistor.T": 300.15, "SuT.emachine_model.resistor.alpha": 0,
		"SuT.emachine_model.inductor.L": 0.001, "SuT.emachine_model.emf.k": 0.1, "SuT.emachine_model.resistor.R": 0.5,
		"stimuli_model.Voltage_step.offset": 0, "stimuli_model.Voltage_step.startTime": 0, "stimuli_model.Voltage_step.height": 12, "stimuli_model.MLoad.k": -0.5,
	}, "sets in the document at each component; units as those of the FMUs"},
	{"omsimulator/embrace", nil, map[string]float64{"ECS_HW.pipeB.L": 0.976535328081166, "ECS_HW.pipeA.L": 0.976535328081166},
		"one parameter for two targets of the mapping; all its other entries have no source"},
	{"libcosim/demo/demo.ssp", nil, map[string]float64{"KnuckleBoomCrane.Spring_Joint.k": 0.005, "KnuckleBoomCrane.mt0_init": 69},
		"set in the document at the component"},
	{"libcosim/demo", cranes("../../fmi2"), map[string]float64{"KnuckleBoomCrane.Spring_Joint.k": 0.005, "KnuckleBoomCrane.mt0_init": 69},
		"as demo.ssp; the FMUs lie outside"},
	{"libcosim/demo/no_algorithm_element", cranes("../../../fmi2"),
		map[string]float64{"KnuckleBoomCrane.Spring_Joint.k": 0.005, "KnuckleBoomCrane.mt0_init": 69}, "as demo.ssp"},
	{"libcosim/demo/proxy", cranes("../../../fmi2"), map[string]float64{"KnuckleBoomCrane.Spring_Joint.k": 0.005,
		"KnuckleBoomCrane.mt0_init": 69}, "as demo.ssp, in processes of their own"},
	{"libcosim/demo/demo/SystemStructure2.ssd", nil, nil, "a variant in a package"},
	{"libcosim/linear_transformation", keepers("../../fmi1", keeper{"identity", "r[1] = r[0]", []store.Variable{
		{Name: "realIn", Causality: "input"}, {Name: "realOut", Causality: "output", On: []int{0}}}}),
		map[string]float64{"identity1.realIn": 4, "identity1.realOut": 4, "identity2.realIn": 1.3*4 + 50},
		"the second set beats the first; realOut leads on"},
	{"libcosim/quarter_truck", truck.Build, map[string]float64{"chassis.mass": 400, "chassis.timeStep": 1e-5,
		"wheel.mass": 40, "wheel.timeStep": 1e-5}, "initial values of OSP"},
	{"omsimulator/LinearTransformation", keepers("resources",
		keeper{"Add", "r[2] = r[3]*r[0] + r[4]*r[1]", adder("u1", "u2", "y", "k1", "k2")}, keeper{"Gain", "r[1] = r[2]*(r[0] + 5)", gain}),
		map[string]float64{"Add1.u1": 2*5 + 3, "Add1.y": 2*5 + 3, "Gain1.k": 1}, "2 y + 3"},
	{"omsimulator/toplevelparameter1", keepers("resources", keeper{"0001_addP", "r[2] = r[3]*r[0] + r[4]*r[1]",
		adder("u1", "u2", "y", "k1", "k2")}),
		map[string]float64{"addP.k1": -200, "addP.k2": -300,
			"addP.u1": 0}, "the set of the system beats that of the component (10, 20); Input_cref leads nowhere"},
	{"omsimulator/import_export_parameters1", keepers("resources",
		keeper{"0001_addP", "r[2] = r[3]*r[0] + r[4]*r[1]", adder("u1", "u2", "y", "k1", "k2")},
		keeper{"0002_P", "r[1] = r[2]*r[0]", gain},
		keeper{"0003_addI", "r[3] = r[0] + r[1] + r[2]", []store.Variable{{Name: "u1", Causality: "input"},
			{Name: "u2", Causality: "input"}, {Name: "u3", Causality: "input"},
			{Name: "y", Causality: "output", On: []int{0, 1, 2}}, {Name: "k1", Causality: "parameter",
				Start: 1}, {Name: "k2", Causality: "parameter", Start: 1}, {Name: "k3", Causality: "parameter", Start: 1}}}),
		map[string]float64{"addP.k1": 30, "addP.k2": -1, "addP.u1": -20, "addP.y": -600, "addI.k1": 1, "addI.k2": 20,
			"addI.k3": 1, "P.k": 1},
		"k_cref = 30 comes over its connection and beats addP.k1 = 10, T_cref = 20 beats addI.k2 = 2; Input_cref = -20; y = 30 · -20 - 1 · 0"},
}

var gain = []store.Variable{{Name: "u", Causality: "input"}, {Name: "y", Causality: "output", On: []int{0}},
	{Name: "k", Causality: "parameter", Start: 1}}

// adder names two inputs, an output and two factors.
func adder(names ...string) []store.Variable {
	causality := []string{"input", "input", "output", "parameter", "parameter"}
	v := make([]store.Variable, len(names))
	for i, name := range names {
		v[i] = store.Variable{Name: name, Causality: causality[i]}
		if causality[i] == "parameter" {
			v[i].Start = 1
		}
	}
	v[2].On = []int{0, 1}
	return v
}

type keeper struct {
	name, evaluate string
	variables      []store.Variable
}

// keepers builds FMUs in a folder seen from the document. Their names, which begin with digits here, are no
// identifiers.
func keepers(folder string, list ...keeper) func(string) error {
	return func(dir string) error {
		to := filepath.Join(dir, filepath.FromSlash(folder))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, k := range list {
			path, err := store.Pack(to, "k"+k.name, k.evaluate, k.variables...)
			if err != nil {
				return err
			}
			if err := os.Rename(path, filepath.Join(to, k.name+".fmu")); err != nil {
				return err
			}
		}
		return nil
	}
}

// cranes copies the FMUs of the demo to a folder seen from the document.
func cranes(folder string) func(string) error {
	return func(dir string) error {
		to := filepath.Join(dir, filepath.FromSlash(folder)) // which several documents share
		return errors.Join(os.RemoveAll(to), unzip(filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"), to))
	}
}

// The systems run, and after the initialisation each parameter has the value that the documents give it.
func testRealValues(t *testing.T) {
	root := unpackedSystems(t)
	for _, c := range realValues {
		t.Run(c.path, func(t *testing.T) {
			path := filepath.Join(root, filepath.FromSlash(c.path))
			if c.fmus != nil {
				if err := c.fmus(path); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{path, "--start-time", "0", "--stop-time", "0.001", "--step-size", "1e-4"}
			for name := range c.values {
				args = append(args, "--record", name)
			}
			if c.values == nil {
				args = args[:5]
			}
			o := complete(t, args...)
			for name, want := range c.values {
				if got := o.column(t, name); math.Abs(got[0]-want) > 1e-12*math.Abs(want) {
					t.Errorf("%s is %v, want %v (%s)", name, got[0], want, c.why)
				}
			}
		})
	}
	// Two systems without any FMU: their sets reach connectors only, each of which is named; nothing else is wrong
	// with them.
	for name, connectors := range map[string][]string{
		"importStartValues": {`"C1"`, `"System1.C1"`, `"System1.C2"`},
		"importParameterMapping": {`"Input_1"`, `"Input_2"`, `"System1.Input_1"`, `"System1.Input_2"`,
			`"System1.parameter_1"`, `"System2.Input_1"`, `"System2.Input_2"`, `"System2.parameter_1"`, `"parameter_1"`},
	} {
		l := &diag.List{}
		p, err := ssp.Open(filepath.Join(root, "omsimulator", name), l, dialect.All()...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.Flatten(nil, l)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range l.Findings {
			if f.ID == "SD14C" {
				got = append(got, strings.Fields(strings.TrimPrefix(f.Message, "the value of the connector "))[0])
			}
		}
		slices.Sort(got)
		if len(n.Components) != 0 || !slices.Equal(got, connectors) {
			t.Errorf("%s: %d components, values at %v, want %v", name, len(n.Components), got, connectors)
		}
	}
}
