package test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/probe"
)

// realTests are the tests on third-party FMUs and systems. TestMain runs them with -real DIR; without the flag they
// do not exist.
var realTests = []testing.InternalTest{
	{Name: "TestRealSystems", F: testRealSystems},
	{Name: "TestRealPair", F: testRealPair},
	{Name: "TestRealStudies", F: testRealStudies},
	{Name: "TestRealTutorial", F: testRealTutorial},
	{Name: "TestRealAnalyze", F: testRealAnalyze},
	{Name: "TestRealGrowth", F: testRealGrowth},
	{Name: "TestRealImplicit", F: testRealImplicit},
	{Name: "TestRealConformance", F: testRealConformance},
	{Name: "TestRealDocuments", F: testRealDocuments},
	{Name: "TestRealDocuments3", F: testRealDocuments3},
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
	{Name: "TestRealReference3", F: testRealReference3},
	{Name: "TestRealArray3", F: testRealArray3},
	{Name: "TestRealSizes3", F: testRealSizes3},
	{Name: "TestRealTypes3", F: testRealTypes3},
	{Name: "TestRealInput", F: testRealInput},
}

// realFMUs returns the FMUs below fmus/.
func realFMUs(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*realDir, "fmus", "*", "*.fmu"))
	if err != nil || len(found) == 0 {
		t.Fatalf("-real %s: no FMUs in fmus/*/: %v", *realDir, err)
	}
	return ofFMI2(t, found)
}

// ofFMI2 returns the FMUs of FMI 2.0.
func ofFMI2(t testing.TB, paths []string) []string {
	t.Helper()
	return slices.DeleteFunc(paths, func(path string) bool {
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		f, err := z.Open("modelDescription.xml")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return !bytes.Contains(text, []byte(`fmiVersion="2.0"`))
	})
}

// Third-party systems complete, with --strict too, and a folder gives the results of its archive.
func testRealSystems(t *testing.T) {
	for path, column := range map[string]string{"omsimulator/dcmotor": "SuT.edrive_mass.wB", "omsimulator/embrace": "ECS_HW.LHexTout"} {
		path := filepath.Join(*realDir, "systems", filepath.FromSlash(path))
		folder, archive := complete(t, path, "--stop-time", "1", "--strict"), complete(t, zipped(t, path), "--stop-time", "1")
		if v := folder.column(t, column); slices.Min(v) == slices.Max(v) || folder.table(t) != archive.table(t) {
			t.Errorf("%s: %s never changes, or folder and archive give different results", path, column)
		}
	}
}

// Each line of expected.csv and expected-fmi3.csv, by the command line: the final value has the digits given, up to one in the last.
func testRealExpected(t *testing.T) {
	lines := append(readCSV(t, filepath.Join(*realDir, "expected.csv"))[1:], readCSV(t, filepath.Join(*realDir, "expected-fmi3.csv"))[1:]...)
	for _, line := range lines {
		file, stop, step, variable, want := line[0], line[1], line[2], line[3], line[4]
		t.Run(file, func(t *testing.T) {
			args := []string{filepath.Join(*realDir, filepath.FromSlash(file)), "--stop-time", stop}
			if !strings.HasSuffix(file, ".xml") {
				args = append(args, "--step-size", step, "--start-time", "0", "--record", "*")
				variable = strings.TrimSuffix(filepath.Base(file), ".fmu") + "." + variable
			}
			o := run(t, args...)
			if o.code != 0 {
				t.Fatalf("exit code %d\n%s", o.code, o.output)
			}
			values := o.column(t, variable)
			if file == "fmus/testfmus/Stair.fmu" {
				// The library for linux64 does not end the simulation: it counts on, one a second, and the value
				// in the file is that of 9 s.
				values = values[:1+slices.Index(o.column(t, "time"), 9)]
			}
			got, expected := values[len(values)-1], number(want)
			unit := 1.5 * lastDigit(want)
			if strings.HasSuffix(file, "/Wheel.fmu") {
				// Its acceleration is what is left of two forces of 1364 N that cancel but for 0.05 N, so the
				// rounding of the communication points shows in the eleventh digit. A loop in C gives the digits
				// of the file with points at k/1000, or steps of (k+1)·H − k·H; it gives those of macrostep,
				// exactly, with points at k·H and steps of H, and others where t accumulates. Stop time and
				// tolerance make no difference.
				unit = 1e-10 * math.Abs(expected)
			}
			if !(math.Abs(got-expected) <= unit) {
				t.Errorf("%s is %.15g, want %s", variable, got, want)
			}
		})
	}
}

// The FMUs of FMI 3.0 give the values of their publishers at the times of these, in this process and in one of their own.
func testRealReference3(t *testing.T) {
	for _, name := range []string{"BouncingBall", "Dahlquist", "VanDerPol", "Stair", "Resource", "StateSpace"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(*realDir, "fmus", "reference3", name)
			want := readCSV(t, path+"_out.csv")
			o := run(t, path+".fmu")
			apart := run(t, path+".fmu", "--isolate", name)
			if name != "Dahlquist" && name != "VanDerPol" && name != "Resource" {
				if events := run(t, path+".fmu", "--quirk", name+"=eventMode"); events.table(t) != o.table(t) {
					t.Error("in event mode: other bytes") // fmi3 21
				}
			}
			if o.code != 0 || apart.code != 0 || o.table(t) != apart.table(t) {
				t.Fatalf("exit code %d, isolated %d, or other bytes\n%s%s", o.code, apart.code, o.output, apart.output)
			}
			times := o.column(t, "time")
			for k, variable := range want[0][1:] {
				for at := range strings.Fields(want[1][k+1]) {
					column := name + "." + variable
					if len(strings.Fields(want[1][k+1])) > 1 {
						column += fmt.Sprintf("[%d]", at+1)
					}
					got := o.column(t, column)
					var most, worst float64
					for _, row := range want[1:] {
						i, _ := slices.BinarySearch(times, number(row[0])-1e-9)
						if i == len(times) || math.Abs(times[i]-number(row[0])) > 1e-9 {
							t.Fatalf("there is no row at t = %s", row[0])
						}
						x := number(strings.Fields(row[k+1])[at])
						most, worst = max(most, math.Abs(x)), max(worst, math.Abs(got[i]-x))
					}
					if worst > 1e-9*most {
						t.Errorf("%s differs by up to %g of %g", column, worst, most)
					}
				}
			}
		})
	}
}

// An array of which one element is set keeps the start values of the others.
func testRealArray3(t *testing.T) {
	args := []string{filepath.Join(*realDir, "fmus", "reference3", "StateSpace.fmu"), "--set", "StateSpace.A[1,2]=0.5"}
	some := complete(t, args...)
	all := slices.Clone(args)
	for k, v := range map[string]string{"1,1": "1", "1,3": "0", "2,1": "0", "2,2": "1", "2,3": "0", "3,1": "0", "3,2": "0", "3,3": "1"} {
		all = append(all, "--set", "StateSpace.A["+k+"]="+v)
	}
	if some.table(t) != complete(t, all...).table(t) || some.table(t) == complete(t, args[0]).table(t) {
		t.Error("one element of A has no effect, or others do not keep their start values")
	}
}

// StateSpace refuses every size: its setter counts a value before it asks whether there is one left. Without this error,
// and with m instead of r in the product B u and in the getter of B, it has the values of the Euler method with its step of
// 1 ms. Its states begin at 0, whatever x0 is.
func testRealSizes3(t *testing.T) {
	path := filepath.Join(*realDir, "fmus", "reference3", "StateSpace.fmu")
	s := newMatrices(2, 4, 3)
	args := append(s.set("StateSpace"), "--stop-time=2", "--step-size=0.1", "--compile")
	run(t, append(slices.Clone(args), path)...).is(t, 1, "fmi3SetUInt64 returned Error", "does not take m = 2, n = 4")

	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var entries []string
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil || strings.HasPrefix(f.Name, "binaries/") {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, f.Name, strings.NewReplacer("\r", "", "LinearTransform", "StateSpace",
			"v = values[(*index)++];", "v = values[(*index)++]; nValues++;",
			"M(r); j++) {\n            M(der_x)[i] += M(B)", "M(m); j++) {\n            M(der_x)[i] += M(B)",
			"i < M(m); i++) {\n                for (size_t j = 0; j < M(n); j++) {\n                    values[(*index)++] = M(B)",
			"i < M(n); i++) {\n                for (size_t j = 0; j < M(m); j++) {\n                    values[(*index)++] = M(B)",
		).Replace(string(data)))
	}
	for _, h := range []string{"fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h"} {
		entries = append(entries, "sources/"+h, string(read(t, filepath.Join(*realDir, "..", "standards", "fmi3", "headers", h))))
	}
	path, err = probe.Zip(filepath.Join(t.TempDir(), "StateSpace.fmu"), entries...)
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, path)
	o := complete(t, args...)
	s.check(t, o, "StateSpace", s.outputs(make([]float64, s.n), 2, 1e-3))
	if complete(t, append(args, "--isolate=StateSpace")...).table(t) != o.table(t) {
		t.Error("isolated: other bytes")
	}
}

// Values of every type reach an FMU of FMI 3.0 by tables, scenarios and parameter sets, and return, to the last bit;
// those that the type does not hold are errors before the run (fmi3 7, 15).
func testRealTypes3(t *testing.T) {
	dir := t.TempDir()
	from, fmu := filepath.Join(*realDir, "fmus", "reference3"), filepath.Join(dir, "resources", "Feedthrough.fmu")
	write(t, fmu, read(t, filepath.Join(from, "Feedthrough.fmu")))
	// file writes a file and returns its path.
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if o := run(t, args...); o.code == 0 || !strings.Contains(o.output, want) || o.manifest.Status != "" {
			t.Errorf("%v: exit code %d, status %q\n%s\nwant %s", args, o.code, o.manifest.Status, o.output, want)
		}
	}
	// gives checks the outputs of the last point, by the names of their inputs.
	gives := func(want map[string]string, args ...string) {
		t.Helper()
		rows := readCSV(t, complete(t, args...).results)
		for input, value := range want {
			k := slices.Index(rows[0], "Feedthrough."+strings.TrimSuffix(input, "_input")+"_output")
			if got := rows[len(rows)-1][k]; got != value {
				t.Errorf("%v: the output of %s is %s, want %s", args, input, got, value)
			}
		}
	}
	large := string(read(t, filepath.Join(from, "Feedthrough_in.csv")))
	refused(`Feedthrough.UInt64_input: "18446744073709551615" is not a whole number from 0 to 9223372036854775807`,
		fmu, "--input", file("large.csv", large))
	fitting := file("fitting.csv", strings.Replace(large, "18446744073709551615", "9223372036854775807", 1))
	table := readCSV(t, fitting)
	for row, stop := range []string{"0.5", "1.5"} {
		want := map[string]string{}
		for k, name := range table[0][1:] {
			want[name] = table[row+1][k+1]
		}
		gives(want, fmu, "--input", fitting, "--stop-time", stop)
	}
	gives(map[string]string{"Float32_continuous_input": "0.25", "Float32_discrete_input": "-0.25", "Float64_continuous_input": "0.1", "Float64_discrete_input": "1e-300",
		"Boolean_input": "1", "String_input": `a, "b" ü`, "Binary_input": "00ff2c0a", "Enumeration_input": "2", "Int64_input": "-9007199254740993"},
		fmu, "--stop-time", "1", "--input", file("all.csv", "time,Float32_continuous_input,Float32_discrete_input,Float64_continuous_input,"+
			"Float64_discrete_input,Boolean_input,String_input,Binary_input,Enumeration_input,Int64_input\n"+
			"0,0.25,-0.25,0.1,1e-300,true,\"a, \"\"b\"\" ü\",00fF2c0A,Option 2,-9007199254740993\n2,0.25,7,0.1,7,false,x,,1,7\n"))
	refused("the variable is a Float32; give a number of at most 3.4e38", fmu, "--set", "Float32_discrete_input=1e39")
	narrow := file("narrow.csv", "time,Int8_input\n0,1\n1,200\n")
	refused(`"1e39" is not a finite number of 32 bits`, fmu, "--input", file("large32.csv", "time,Float32_discrete_input\n0,1e39\n"))
	refused(`narrow.csv:3: Feedthrough.Int8_input: "200" is not a whole number from -128 to 127`, fmu, "--input", narrow)

	refused(`x.yaml:1: Feedthrough.Int8_input: "200" is not a whole number from -128 to 127`,
		fmu, "--scenario", file("x.yaml", "events: [{at: 1, set: {Int8_input: 200}}]"))
	gives(map[string]string{"Int64_input": "9007199254740993", "UInt64_input": "9223372036854775807", "Binary_input": "0aff"},
		fmu, "--scenario", file("y.yaml", "events: [{at: 1, set: {Int64_input: 9007199254740993, UInt64_input: 9223372036854775807, Binary_input: 0aff}}]"))
	gives(map[string]string{"Int64_input": "-9223372036854775808", "Binary_input": "00"}, fmu, "--set", "Int64_input=-9223372036854775808", "--set", "Binary_input=00")

	system := filepath.Join(dir, "SystemStructure.ssd")
	// document writes the system with parameters, as lists of type, variable and value.
	document := func(values ...string) {
		text := `<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
 version="2.0" name="s"><ssd:System name="s"><ssd:Elements><ssd:Component name="Feedthrough" source="resources/Feedthrough.fmu"><ssd:ParameterBindings>
 <ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="2.0" name="p"><ssv:Parameters>`
		for v := range slices.Chunk(values, 3) {
			text += fmt.Sprintf(`<ssv:Parameter name=%q><ssv:%s value=%q/></ssv:Parameter>`, v[1], v[0], v[2])
		}
		write(t, system, text+"</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings></ssd:Component></ssd:Elements></ssd:System></ssd:SystemStructureDescription>")
	}
	document("Int64", "Int64_input", "-9007199254740993", "UInt64", "UInt64_input", "9223372036854775807", "Binary", "Binary_input", "00FF")
	gives(map[string]string{"Int64_input": "-9007199254740993", "UInt64_input": "9223372036854775807", "Binary_input": "00ff"}, system)
	document("Int64", "Int32_input", "3000000000")
	refused(`3000000000 is not in the range of "Feedthrough.Int32_input", -2147483648 to 2147483647`, system)
	document("Int64", "UInt64_input", "-1")
	refused(`-1 is not in the range of "Feedthrough.UInt64_input", 0 to 9223372036854775807`, system)

	made := filepath.Join(dir, "made.ssp")
	changed := file("Wide.fmu", string(rezipped(t, fmu, "modelDescription.xml", `name="Option 2" value="2"`, `name="Option 2" value="3000000000"`)))
	for _, args := range [][]string{{"ssp", "new", changed, "-o", made}, {"ssp", "set", made, "Wide.Enumeration_input=Option 1", "Wide.Int64_input=9007199254740993",
		"Wide.Binary_input=00ff", "--force"}} {
		if code, output := macrostep(t, args...); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, code, output)
		}
	}
	o := complete(t, made)
	rows := readCSV(t, o.results)
	for name, want := range map[string]string{"Enumeration": "1", "Int64": "9007199254740993", "Binary": "00ff"} {
		if got := rows[1][slices.Index(rows[0], "Wide."+name+"_output")]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// rezipped returns a zip with a text replaced in one of its files.
func rezipped(t testing.TB, path, name, old, to string) []byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range z.File {
		if f.Name != name {
			err = errors.Join(err, w.Copy(f))
			continue
		}
		text, failed := fs.ReadFile(z, name)
		into, none := w.Create(name)
		_, unwritten := into.Write(bytes.Replace(text, []byte(old), []byte(to), 1))
		err = errors.Join(err, failed, none, unwritten)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lastDigit returns what one more in the last digit of a number is worth.
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
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := errors.Join(z.AddFS(os.DirFS(dir)), z.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.Bytes())
	return path
}

// pair couples Controller and Drivetrain: a speed control loop.
func pair(t testing.TB) string {
	t.Helper()
	return besideFMUs(t, "dymola", []member{{"controller", "Controller", "u_m", "y"}, {"drivetrain", "Drivetrain", "tau", "w"}},
		"controller.y → drivetrain.tau\ndrivetrain.w → controller.u_m")
}

// dampers couples the two mass-spring-dampers of 20-sim, which integrate in steps of 10 ms whatever the macro step.
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

// Controller and Drivetrain, coupled, come to the same speed with every scheme, and the coarse runs tend to the fine
// one.
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

// A ramp in a table drives the pendulum of Dymola as exactly as its solver allows: with input derivatives, and as the mean
// over each step without. The velocity is compared with the exact solution of ẍ = F(t) − 10 (x − 1.1) with x = 0.5 and ẋ = 0 at
// the start, where F rises by 8 N/s.
func testRealInput(t *testing.T) {
	ramp := filepath.Join(t.TempDir(), "ramp.csv")
	write(t, ramp, []byte("time,extForce\n0,0\n1,8\n"))
	exact := func(t float64) float64 { // of the velocity
		w := math.Sqrt(10)
		return 0.6*w*math.Sin(w*t) + 8/(w*w)*(1-math.Cos(w*t))
	}
	pendulum := filepath.Join(*realDir, "fmus", "dymola", "SpringPendulumExtForce1D.fmu")
	for _, without := range []bool{false, true} {
		args := []string{pendulum, "--input", ramp, "--stop-time", "1", "--step-size", "0.01", "--tolerance", "1e-9"}
		if without {
			args = append(args, "--quirk", "SpringPendulumExtForce1D=noInputDerivatives")
		}
		o := complete(t, args...)
		off, v := 0.0, o.column(t, "SpringPendulumExtForce1D.v")
		for n, now := range o.column(t, "time") {
			off = max(off, math.Abs(v[n]-exact(now)))
		}
		if off > 5e-4 { // held at the start of each step: 0.016
			t.Errorf("without derivatives %v: the velocity is off by %.2g m/s", without, off)
		}
	}
}

// worst returns the largest distance of a column between two runs at common times.
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

// With implicit coupling of third-party FMUs every solver comes to the same solution. An FMU that lacks what a solver
// needs is refused with the reason.
func testRealImplicit(t *testing.T) {
	for _, c := range []struct {
		column, order string
		path          string
		args          []string
		solvers       []string
		within        float64
	}{
		{"drivetrain.w", "1", pair(t), []string{"--set", "controller.u_s=10", "--tolerance", "1e-9", "--stop-time", "1"},
			[]string{"newton-los", "broyden", "iqn"}, 1e-3},
		{"one.x1", "0", dampers(t), nil, []string{"broyden", "iqn"}, 1e-6},
	} {
		for _, H := range []string{"1e-2", "2e-2"} {
			args := slices.Concat([]string{c.path, "--step-size", H, "--algorithm", "implicit", "--param", "order=" + c.order}, c.args)
			first := complete(t, args...)
			for _, kind := range c.solvers {
				other := complete(t, append(slices.Clip(args), "--param", "solver.kind="+kind)...)
				if d := worst(t, first, other, c.column); d > c.within {
					t.Errorf("%s, H = %s s: %s differs from newton-fd by %g", c.column, H, kind, d)
				}
			}
		}
	}
	o := run(t, dampers(t), "--step-size", "1e-2", "--algorithm", "implicit", "--param", "solver.kind=newton-los")
	o.is(t, 2, "MassSpringDamper1.fmu", "providesDirectionalDerivative")
}

// The FMUs keep the contract of a subsystem, rollback included where claimed. Those that live only once in a process
// cannot be run twice in it.
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

// The model-based corrector reduces the error of third-party FMUs against a fine run.
func testRealCorrector(t *testing.T) {
	// Both FMUs take another way after they have gone back to their start, and the run warns of it: all these runs
	// do so.
	args := []string{pair(t), "--set", "controller.u_s=10", "--set", "controller.PI.yMax=1e4", "--tolerance", "1e-9", "--stop-time", "1"}
	with := func(more ...string) *outcome { return complete(t, append(slices.Clip(args), more...)...) }
	fine := with("--step-size", "1e-4", "--algorithm", "implicit")
	if w := fine.warnings(); strings.Count(w, "it goes another way once it has gone back to its start") != 2 {
		t.Errorf("warnings: %s", w)
	}
	for H, gain := range map[string]float64{"2.5e-3": 5, "5e-3": 3, "1e-2": 2, "2e-2": 2} {
		e := between(t, fine, with("--step-size", H, "--param", "discard=shorten"), "drivetrain.w")
		better := between(t, fine, with("--step-size", H, "--algorithm", "model-based-corrector"),
			"drivetrain.w")
		if !(better*gain <= e) {
			t.Errorf("H = %s s: error %g corrected, %g not", H, better, e)
		}
	}
}

// energyCase is a third-party system with a bond. The FMUs of 20-sim have no units to derive the bond from.
type energyCase struct {
	name, path, bond string
	args             []string
	column           string   // whose mean distance from the fine run is the error
	fine             string   // step of that, s
	steps            []string // constant ones, s
	tolerances       []string // of ECCO
	hMin, hMax       string   // its bounds, s
	correction       string   // how what the run says of the energy correction begins
	// ECCO over constant steps at equal cost, at most: mean absolute residual power, and error; 0 = it is no better.
	residual, error float64
}

func energyCases(t testing.TB) []energyCase {
	t.Helper()
	return []energyCase{
		// A stiff speed control: all happens in the first 0.1 s.
		{"drivetrain", pair(t), "shaft=controller.y:drivetrain.w",
			[]string{"--set", "controller.u_s=10", "--set", "controller.PI.yMax=1e4", "--tolerance", "1e-9",
				"--stop-time", "1"}, "drivetrain.w",
			"2e-5", []string{"1e-3", "2e-3"}, []string{"1e-4", "1e-3", "1e-2"}, "1e-4", "2e-2", "harms", 0.1, 0.2},
		// They integrate in steps of 10 ms: the finest run has those.
		{"dampers", dampers(t), "spring=two.fk:one.v1",
			[]string{"--set", "two.dc=1", "--stop-time", "10"}, "one.x1",
			"1e-2", []string{"2e-2", "5e-2"}, []string{"1e-3", "1e-2", "1e-1"}, "1e-2", "0.5", "unknown: two", 0.5, 1},
		// The boom swings all the time in the fastest way that it can.
		{"crane", filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"),
			"boom=CraneController.p_Crane.e[1]:KnuckleBoomCrane.p_Crane.f[1],CraneController.p_Crane.e[2]:KnuckleBoomCrane.p_Crane.f[2],CraneController.p_Crane.e[3]:KnuckleBoomCrane.p_Crane.f[3]",
			[]string{"--stop-time", "1"}, "KnuckleBoomCrane.p_Crane.f[2]",
			"1e-5", []string{"1e-4", "2e-4"}, []string{"1e-3", "4e-3"}, "2e-5", "5e-4", "unknown: KnuckleBoomCrane", 1, 0},
	}
}

// At bonds of third-party systems the residual energy grows with the step and is smaller by Gauss-Seidel; ECCO does
// better than constant steps at equal cost where there are quiet times, and no better where there are none.
func testRealEnergy(t *testing.T) {
	for _, c := range energyCases(t) {
		t.Run(c.name, func(t *testing.T) {
			name, _, _ := strings.Cut(c.bond, "=")
			args := append([]string{c.path, "--bond", c.bond}, c.args...)
			with := func(H string, more ...string) (o *outcome, residual float64) {
				o = complete(t, slices.Concat(args, []string{"--step-size", H}, more)...)
				return o, o.manifest.Bonds[name].MeanAbsResidualPower
			}
			fine, last := with(c.fine)
			for _, H := range c.steps {
				_, residual := with(H)
				if !(residual > 1.2*last) {
					t.Errorf("the mean residual power is %g W at %s s and %g W at the step before", residual, H, last)
				}
				last = residual
				if _, turns := with(H, "--algorithm", "gauss-seidel"); !(turns < residual) {
					t.Errorf("at %s s the mean residual power is %g W by Gauss–Seidel and %g W by Jacobi", H, turns, residual)
				}
				o, _ := with(H, "--algorithm", "energy-correction")
				if got := o.manifest.Bonds[name].Correction; !strings.HasPrefix(got, c.correction) {
					t.Errorf("the correction is %q, not %q", got, c.correction)
				}
			}
			for _, tolerance := range c.tolerances {
				o, residual := with(c.steps[0], "--algorithm", "ecco", "--param", "ecco.tolerance="+tolerance,
					"--param", "control.h-min="+c.hMin, "--param", "control.h-max="+c.hMax)
				plain, constant := with(fmt.Sprint(o.manifest.Steps.Mean))
				if !(residual <= c.residual*constant) {
					t.Errorf("at %s the mean residual power is %g W, and %g W with as many constant steps", tolerance, residual, constant)
				}
				e, off := between(t, fine, o, c.column), between(t, fine, plain, c.column)
				if c.error > 0 && !(e <= c.error*off) {
					t.Errorf("at %s the error is %g, and %g with as many constant steps", tolerance, e, off)
				}
			}
		})
	}
}

// between returns the mean distance over time of a column from that of a fine run, linear between the points of the
// latter.
func between(t testing.TB, fine, o *outcome, name string) float64 {
	t.Helper()
	ft, fv := fine.column(t, "time"), fine.column(t, name)
	v := o.column(t, name)
	k, sum, last := 0, 0.0, 0.0
	for i, at := range o.column(t, "time") {
		for k < len(ft)-2 && ft[k+1] < at {
			k++
		}
		w := (at - ft[k]) / (ft[k+1] - ft[k])
		sum += math.Abs(v[i]-(fv[k]+w*(fv[k+1]-fv[k]))) * (at - last)
		last = at
	}
	return sum / last
}

// named has, by file or folder below xml/, the rule that the name announces as broken. With an exclamation mark the
// tolerant reading refuses the document, else it repairs it or accepts it. A document without a rule is right, or its flaw changes nothing for a run. Names
// are judged by the grammar of the standard (fmi2 25), which has no blanks in indices.
var named = map[string]string{
	"vdm/minimal.xml":                         "",
	"vdm/2.2.1_noModelType.xml":               "MD3!",
	"vdm/2.2.1_wrongFMIVersion.xml":           "FA4!",
	"vdm/2.2.1_initialUnknowns2.xml":          "MD32",
	"vdm/2.2.1_invalidOutputs1.xml":           "MD30",
	"vdm/2.2.1_invalidDerivatives1.xml":       "MD31",
	"vdm/2.2.1_invalidDerivatives3.xml":       "",
	"vdm/2.2.3_invalidTypeName.xml":           "",
	"vdm/2.2.4_duplicateCategories.xml":       "",
	"vdm/2.2.6_duplicateVendorNames.xml":      "",
	"vdm/2.2.7_duplicateVarNames.xml":         "MD17!",
	"vdm/2.2.8_invalidUnknowns.xml":           "MD34",
	"vdm/3.3.1_duplicateSourceFiles.xml":      "",
	"fmil/default_experiment/mixed":           "",
	"fmil/env/locale":                         "",
	"fmil/model_structure/valid":              "",
	"fmil/type_definitions":                   "MD1!", // of FMI 3, with a guid and types of FMI 2
	"fmil/variable_test":                      "",
	"fmil/variable_bad_variability_causality": "MD19",
}

// besides are further rules that many of the documents break: they are made for one purpose and bare in everything
// else.
var besides = []string{"MD1L", "MD21", "MD23", "MD30", "MD32", "MD42"}

// Each document is judged as its name announces.
func testRealDocuments(t *testing.T) {
	left := maps.Clone(named)
	root := filepath.Join(*realDir, "xml")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "terminals") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), "/modelDescription.xml")
		want, ok := left[name]
		if !ok && !strings.HasPrefix(name, "fmil/naming_conventions_xmls/") { // these differ in names only, which are plain text
			t.Errorf("%s: nothing is said about this document", name)
			return nil
		}
		delete(left, name)
		t.Run(name, func(t *testing.T) { judge(t, path, want) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range left {
		t.Errorf("%s is not there", name)
	}
}

// judge reads a document tolerantly and strictly.
func judge(t *testing.T, path, want string) {
	rule, refused := strings.CutSuffix(want, "!")
	for _, strict := range []bool{false, true} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l := &diag.List{Strict: strict}
		d, err := description.Read(f, path, l)
		f.Close()
		if (d == nil) == (err == nil) {
			t.Fatalf("description %v, error %v", d, err)
		}
		if !strict && (err != nil) != refused {
			t.Errorf("tolerant reading: error %v, want refused: %t", err, refused)
		}
		var ids []string
		for _, x := range l.Findings {
			ids = append(ids, x.ID)
			if x.File != path || x.Message == "" || x.Level > diag.Info && x.Remedy == "" || x.Line == 0 && x.Path == "" {
				t.Errorf("finding without place or remedy: %s", x)
			}
		}
		if rule != "" && !slices.Contains(ids, rule) {
			t.Errorf("strict=%t: findings %v, want %s", strict, ids, rule)
		}
		for _, id := range ids {
			if rule == "" && !slices.Contains(besides, id) {
				t.Errorf("strict=%t: the document is right, and %s is found: %v", strict, id, l.Findings)
			}
		}
	}
}

// The descriptions of FMUs of FMI 3.0 are read: variables with the elements of arrays, outputs, states and initial
// unknowns. One for Scheduled Execution only is refused.
func testRealDocuments3(t *testing.T) {
	counts := map[string][4]int{
		"BouncingBall": {9, 3, 2, 2}, "Dahlquist": {4, 1, 1, 1}, "Feedthrough": {35, 16, 0, 16}, "Resource": {2, 1, 0, 1}, "Roberts": {11, 3, 2, 3},
		"Stair": {2, 1, 0, 0}, "StateSpace": {55, 3, 3, 9}, "VanDerPol": {6, 2, 2, 2}, "IO": {16, 3, 0, 3},
		"SpringFrictionPendulum1D": {83, 0, 2, 7}, "SpringPendulumExtForce1D": {41, 6, 2, 10}, "Clocks": {},
	}
	paths, err := filepath.Glob(filepath.Join(*realDir, "fmus", "*3", "*.fmu"))
	if err != nil || len(paths) < len(counts) {
		t.Fatalf("-real %s: %d FMUs of FMI 3.0: %v", *realDir, len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".fmu")
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := z.Open("modelDescription.xml")
		if err != nil {
			t.Fatal(err)
		}
		l := &diag.List{Strict: true}
		d, err := description.Read(f, name, l)
		if err := z.Close(); err != nil {
			t.Error(err)
		}
		if name == "Clocks" {
			if !diag.Has(err, description.RuleCoSimulation.ID) || !strings.Contains(err.Error(), "Scheduled Execution only") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := [4]int{len(d.Variables), len(d.Outputs), len(d.Derivatives), len(d.InitialUnknowns)}; got != counts[name] {
			t.Errorf("%s: %v, want %v", path, got, counts[name])
		}
		for _, finding := range l.Findings {
			if finding.Level > diag.Info {
				t.Errorf("%s: %s", path, finding)
			}
		}
	}
}

// The content of terminalsAndIcons/ is ignored, right or wrong (fmi2 11).
func testRealTerminals(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(*realDir, "xml", "fmil", "terminals_and_icons", "*", "*",
		"terminalsAndIcons", "terminalsAndIcons.xml"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v: want two documents", found, err)
	}
	for _, path := range found {
		data := read(t, path)
		with := filepath.Join(t.TempDir(), "model.fmu")
		pack(t, with, append(entries(t, fmu(t, victim)), file("terminalsAndIcons/terminalsAndIcons.xml", data))...)
		if o := complete(t, with, "--stop-time", "0.01", "--strict"); len(o.manifest.Warnings) > 0 {
			t.Errorf("warnings %q", o.manifest.Warnings)
		}
	}
}
