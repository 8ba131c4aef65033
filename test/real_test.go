package test

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/mastertest"
)

// realTests are the tests on FMUs and systems made by others. TestMain runs
// them with -real DIR; without the flag they do not exist.
var realTests = []testing.InternalTest{
	{Name: "TestRealFMUs", F: testRealFMUs},
	{Name: "TestRealSystems", F: testRealSystems},
	{Name: "TestRealMapping", F: testRealMapping},
	{Name: "TestRealPair", F: testRealPair},
	{Name: "TestRealConformance", F: testRealConformance},
	{Name: "TestRealAllocations", F: testRealAllocations},
	{Name: "TestRealDocuments", F: testRealDocuments},
	{Name: "TestRealTerminals", F: testRealTerminals},
	{Name: "TestRealTolerant", F: testRealTolerant},
	{Name: "TestRealChecklist", F: testRealChecklist},
	{Name: "TestRealCalls", F: testRealCalls},
}

// realFMUs gives the FMUs below fmus/.
func realFMUs(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*realDir, "fmus", "*", "*.fmu"))
	if err != nil || len(found) == 0 {
		t.Fatalf("-real %s: no FMUs in fmus/*/: %v", *realDir, err)
	}
	return found
}

// Each FMU runs alone to its end.
func testRealFMUs(t *testing.T) {
	for _, path := range realFMUs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			o := complete(t, path, "--stop-time", "1")
			if o.rows < 2 || len(o.columns) < 2 {
				t.Errorf("%d rows, %d columns", o.rows, len(o.columns))
			}
		})
	}
}

// The systems run to their end, as folders and zipped.
func testRealSystems(t *testing.T) {
	for _, c := range []struct{ path, column string }{
		{"libcosim/demo/demo.ssp", "KnuckleBoomCrane.p_Crane.f[1]"},
		{"omsimulator/dcmotor", "SuT.edrive_mass.wB"},
		{"omsimulator/embrace", "ECS_HW.LHexTout"},
	} {
		path := filepath.Join(*realDir, "systems", filepath.FromSlash(c.path))
		forms := []string{path}
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			forms = append(forms, zipped(t, path))
		}
		var results []string
		for _, form := range forms {
			t.Run(filepath.Base(form), func(t *testing.T) {
				o := complete(t, form, "--stop-time", "1")
				moved := false
				for _, v := range o.column(t, c.column) {
					moved = moved || v != o.columns[c.column][0]
				}
				if !moved {
					t.Errorf("%s never changes", c.column)
				}
				data, err := os.ReadFile(o.results)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, string(data))
			})
		}
		if len(results) == 2 && results[0] != results[1] {
			t.Errorf("%s: folder and archive give different results", c.path)
		}
	}
}

// zipped packs a folder.
func zipped(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(dir)+".ssp")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	if err := z.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The parameter mapping of embrace arrives in the FMU.
func testRealMapping(t *testing.T) {
	o := complete(t, filepath.Join(*realDir, "systems", "omsimulator", "embrace"), "--stop-time", "0.01", "--record", "ECS_HW.pipeB.L")
	for _, v := range o.column(t, "ECS_HW.pipeB.L") {
		if v != 0.976535328081166 {
			t.Fatalf("ECS_HW.pipeB.L is %v", v)
		}
	}
}

// pairDocument couples Controller and Drivetrain: a speed control loop.
const pairDocument = `<?xml version="1.0" encoding="UTF-8"?>
<s:SystemStructureDescription name="pair" version="1.0" xmlns:s="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <s:System name="pair">
    <s:Elements>
      <s:Component name="controller" source="Controller.fmu"><s:Connectors>
        <s:Connector name="u_m" kind="input"><c:Real/></s:Connector><s:Connector name="y" kind="output"><c:Real/></s:Connector>
      </s:Connectors></s:Component>
      <s:Component name="drivetrain" source="Drivetrain.fmu"><s:Connectors>
        <s:Connector name="tau" kind="input"><c:Real/></s:Connector><s:Connector name="w" kind="output"><c:Real/></s:Connector>
      </s:Connectors></s:Component>
    </s:Elements>
    <s:Connections>
      <s:Connection startElement="controller" startConnector="y" endElement="drivetrain" endConnector="tau"/>
      <s:Connection startElement="drivetrain" startConnector="w" endElement="controller" endConnector="u_m"/>
    </s:Connections>
  </s:System>
  <s:DefaultExperiment startTime="0" stopTime="2"/>
</s:SystemStructureDescription>
`

// pair writes the system beside its FMUs.
func pair(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"Controller.fmu", "Drivetrain.fmu"} {
		data, err := fs.ReadFile(os.DirFS(*realDir), "fmus/dymola/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "pair.ssd")
	if err := os.WriteFile(path, []byte(pairDocument), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Controller and Drivetrain, coupled, come to the same speed with every scheme,
// and the coarse runs tend to the fine one.
func testRealPair(t *testing.T) {
	path := pair(t)
	final := func(args ...string) float64 {
		o := complete(t, append([]string{path, "--set", "controller.u_s=10", "--tolerance", "1e-9"}, args...)...)
		w := o.column(t, "drivetrain.w")
		return w[len(w)-1]
	}
	fine := final("--step-size", "1e-4", "--param", "order=1")
	if fine == 0 {
		t.Fatal("the drivetrain does not turn")
	}
	for _, args := range [][]string{
		{"--param", "order=0"}, {"--param", "order=1"}, {"--param", "order=1", "--param", "substeps=4"},
		{"--algorithm", "gauss-seidel"}, {"--algorithm", "gauss-seidel", "--param", "order=1"},
	} {
		coarse := math.Abs(final(append(args, "--step-size", "4e-3")...) - fine)
		finer := math.Abs(final(append(args, "--step-size", "1e-3")...) - fine)
		if !(finer < coarse/2) && finer > 1e-5*math.Abs(fine) {
			t.Errorf("%s: the distance to a fine run is %.3g at 4 ms and %.3g at 1 ms", strings.Join(args, " "), coarse, finer)
		}
	}
}

// The FMUs keep the contract of a subsystem, rollback included where claimed.
// Those that live only once in a process cannot be run twice in it.
func testRealConformance(t *testing.T) {
	for _, path := range realFMUs(t) {
		f, _, err := fmi.Open(path, fmi.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := fmuslave.Config{Name: "fmu", FMU: f}
			for i := range f.Description.Variables {
				if v := &f.Description.Variables[i]; v.Causality == fmi.Output {
					c.Outputs = append(c.Outputs, v.Name)
				}
			}
			fresh := func() (master.Subsystem, error) { return fmuslave.New(c) }
			if err := mastertest.TestSubsystem(fresh, nil, 0, 1e-3); err != nil {
				t.Error(err)
			}
		})
	}
}

// A whole macro step over real FMUs allocates nothing.
func testRealAllocations(t *testing.T) {
	for _, path := range []string{
		filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"),
		pair(t),
	} {
		for _, order := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/order=%d", filepath.Base(path), order), func(t *testing.T) {
				if n := stepAllocations(t, path, order); n != 0 {
					t.Errorf("%g allocations a macro step", n)
				}
			})
		}
	}
}

// stepAllocations counts the allocations of a macro step, recording to memory
// excluded.
func stepAllocations(t testing.TB, path string, order int) float64 {
	t.Helper()
	a, err := assemble.Open(path, assemble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	alg, err := algorithms.NewExplicit(algorithms.ExplicitConfig{Order: order})
	if err != nil {
		t.Fatal(err)
	}
	r, err := master.NewRun(a.System, alg, master.Options{Stop: 100, Step: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 { // the history fills
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return testing.AllocsPerRun(200, func() {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
