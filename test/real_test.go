package test

import (
	"archive/zip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/mastertest"
)

// realTests are the tests on FMUs and systems made by others. TestMain runs
// them with -real DIR; without the flag they do not exist.
var realTests = []testing.InternalTest{
	{Name: "TestRealSystems", F: testRealSystems},
	{Name: "TestRealPair", F: testRealPair},
	{Name: "TestRealAnalyze", F: testRealAnalyze},
	{Name: "TestRealAnalyzeRates", F: testRealAnalyzeRates},
	{Name: "TestRealRuns", F: testRealRuns},
	{Name: "TestRealImplicit", F: testRealImplicit},
	{Name: "TestRealConformance", F: testRealConformance},
	{Name: "TestRealDocuments", F: testRealDocuments},
	{Name: "TestRealTerminals", F: testRealTerminals},
	{Name: "TestRealChecklist", F: testRealChecklist},
	{Name: "TestRealCalls", F: testRealCalls},
	{Name: "TestRealEnergy", F: testRealEnergy},
	{Name: "TestRealOSP", F: testRealOSP},
	{Name: "TestRealCorrector", F: testRealCorrector},
	{Name: "TestRealSSDs", F: testRealSSDs},
	{Name: "TestRealValues", F: testRealValues},
	{Name: "TestRealWrite", F: testRealWrite},
	{Name: "TestRealValidate", F: testRealValidate},
	{Name: "TestRealLoop", F: testRealLoop},
	{Name: "TestRealExpected", F: testRealExpected},
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
				data := read(t, o.results)
				results = append(results, string(data))
			})
		}
		if len(results) == 2 && results[0] != results[1] {
			t.Errorf("%s: folder and archive give different results", c.path)
		}
	}
}

// Each line of expected.csv, by the command line: the final value has the digits given,
// up to one in the last.
func testRealExpected(t *testing.T) {
	f, err := os.Open(filepath.Join(*realDir, "expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		file, stop, step, variable, want := line[0], line[1], line[2], line[3], line[4]
		t.Run(file, func(t *testing.T) {
			args := []string{filepath.Join(*realDir, filepath.FromSlash(file)), "--stop-time", stop}
			if !strings.HasSuffix(file, ".xml") {
				args = append(args, "--step-size", step)
				variable = strings.TrimSuffix(filepath.Base(file), ".fmu") + "." + variable
			}
			o := run(t, args...)
			if o.code != 0 {
				t.Fatalf("exit code %d\n%s", o.code, o.output)
			}
			values := o.column(t, variable)
			if file == "fmus/testfmus/Stair.fmu" {
				// The library for linux64 does not end the simulation: it counts on, one a
				// second, and the value in the file is that of 9 s.
				values = values[:1+slices.Index(o.column(t, "time"), 9)]
			}
			got, expected := values[len(values)-1], number(want)
			unit := 1.5 * lastDigit(want)
			if strings.HasSuffix(file, "/Wheel.fmu") {
				// Its acceleration is what is left of two forces of 1364 N that cancel but for 0.05 N, so
				// the rounding of the communication points shows in the eleventh digit. A loop in C
				// gives the digits of the file with points at k/1000, or steps of (k+1)·H − k·H; it
				// gives those of macrostep, exactly, with points at k·H and steps of H, and others
				// where t accumulates. Stop time and tolerance make no difference.
				unit = 1e-10 * math.Abs(expected)
			}
			if !(math.Abs(got-expected) <= unit) {
				t.Errorf("%s is %.15g, want %s", variable, got, want)
			}
		})
	}
}

// lastDigit gives what one more in the last digit of a number is worth.
func lastDigit(number string) float64 {
	mantissa, exponent, _ := strings.Cut(number, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent)
	return math.Pow(10, float64(e-len(decimals)))
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

// pair couples Controller and Drivetrain: a speed control loop.
func pair(t testing.TB) string {
	t.Helper()
	return besideFMUs(t, "dymola", []member{{"controller", "Controller", "u_m", "y"}, {"drivetrain", "Drivetrain", "tau", "w"}},
		"controller.y → drivetrain.tau\ndrivetrain.w → controller.u_m")
}

// dampers couples the two mass-spring-dampers of 20-sim. They integrate in steps of
// 10 ms whatever they are asked.
func dampers(t testing.TB) string {
	t.Helper()
	return besideFMUs(t, "20sim", []member{{"one", "MassSpringDamper1", "fk", "x1 v1"}, {"two", "MassSpringDamper2", "x1 v1", "fk"}},
		"one.x1 → two.x1\none.v1 → two.v1\ntwo.fk → one.fk")
}

// besideFMUs couples FMUs of a tool.
func besideFMUs(t testing.TB, tool string, members []member, lines string) string {
	t.Helper()
	dir := t.TempDir()
	for _, m := range members {
		name := m.fmu + ".fmu"
		write(t, filepath.Join(dir, "resources", name), read(t, filepath.Join(*realDir, "fmus", tool, name)))
	}
	return coupled(t, dir, "2", members, lines)
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

// worst gives the largest distance of a column between two runs at common times.
func worst(t testing.TB, a, b *outcome, name string) float64 {
	t.Helper()
	at := map[int64]float64{}
	values := a.column(t, name)
	for i, time := range a.column(t, "time") {
		at[int64(math.Round(time*1e9))] = values[i]
	}
	d, common := 0.0, 0
	values = b.column(t, name)
	for i, time := range b.column(t, "time") {
		if v, ok := at[int64(math.Round(time*1e9))]; ok {
			d = max(d, math.Abs(v-values[i]))
			common++
		}
	}
	if common < 10 {
		t.Fatalf("the runs have %d points in common", common)
	}
	return d
}

// Implicit coupling of FMUs made by others: every solver comes to the same
// solution; errors against a fine explicit run at equal and at unequal cost are
// logged. Who cannot is refused with the reason.
func testRealImplicit(t *testing.T) {
	type result struct {
		*outcome
		error float64
	}
	measure := func(t *testing.T, fine *outcome, name string, args ...string) result {
		o := complete(t, args...)
		r := result{o, worst(t, fine, o, name)}
		steps := 0
		for _, n := range o.manifest.FMUSteps {
			steps += n
		}
		t.Logf("%-60s %6d steps of FMUs, %5d correctors, %4d Jacobians, error %.3g", strings.Join(args[3:], " "), steps, o.manifest.Iterations, o.manifest.Jacobians, r.error)
		return r
	}
	t.Run("drivetrain", func(t *testing.T) {
		const name = "drivetrain.w"
		path := pair(t)
		args := []string{path, "--set", "controller.u_s=10", "--tolerance", "1e-9", "--stop-time", "1"}
		with := func(more ...string) []string { return append(slices.Clip(args), more...) }
		fine := complete(t, with("--step-size", "1e-4", "--param", "order=1")...)
		for _, H := range []string{"2e-2", "1e-2"} {
			measure(t, fine, name, with("--step-size", H, "--param", "order=1")...)
			first := measure(t, fine, name, with("--step-size", H, "--algorithm", "implicit", "--param", "order=1")...)
			for _, kind := range []string{"newton-los", "broyden", "iqn"} {
				other := measure(t, fine, name, with("--step-size", H, "--algorithm", "implicit", "--param", "order=1", "--param", "solver.kind="+kind)...)
				if d := worst(t, first.outcome, other.outcome, name); d > 1e-3 {
					t.Errorf("H = %s s: %s differs from newton-fd by %g", H, kind, d)
				}
			}
		}
		measure(t, fine, name, with("--step-size", "2.5e-3", "--param", "order=1")...)
	})
	t.Run("dampers", func(t *testing.T) {
		const name = "one.x1"
		path := dampers(t)
		fine := complete(t, path, "--step-size", "1e-2")
		for _, H := range []string{"1e-2", "2e-2"} {
			measure(t, fine, name, path, "--step-size", H, "--param", "order=0")
			first := measure(t, fine, name, path, "--step-size", H, "--algorithm", "implicit", "--param", "order=0")
			for _, kind := range []string{"broyden", "iqn"} {
				other := measure(t, fine, name, path, "--step-size", H, "--algorithm", "implicit", "--param", "order=0", "--param", "solver.kind="+kind)
				if d := worst(t, first.outcome, other.outcome, name); d > 1e-6 {
					t.Errorf("H = %s s: %s differs from newton-fd by %g", H, kind, d)
				}
			}
		}
		o := run(t, path, "--step-size", "1e-2", "--algorithm", "implicit", "--param", "solver.kind=newton-los")
		if o.code != 2 || !strings.Contains(o.output, "MassSpringDamper1.fmu") || !strings.Contains(o.output, "providesDirectionalDerivative") {
			t.Errorf("exit code %d\n%s", o.code, o.output)
		}
	})
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
				if v := &f.Description.Variables[i]; v.Causality == description.Output {
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
