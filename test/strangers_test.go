package test

import (
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// ofFMU is a document of a system with one component, from a source.
func ofFMU(source string) string {
	return document("0.01", `<ssd:Component name="m" source="`+source+`"/>`, "")
}

// A pointer of Git LFS in the place of any file that a command reads is called so, with the remedy.
func TestPointersOfLFS(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	dir := t.TempDir()
	for _, name := range []string{"a.fmu", "a.ssp", "a.ssd", "a.ssv", "a.csv", "a.yaml", "a.parquet", "a.xml", "described/modelDescription.xml",
		"sys/SystemStructure.ssd", "bound/set.ssv", "inside/mass_force.fmu"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		mkdir(t, filepath.Dir(path))
		write(t, path, pointer)
	}
	write(t, filepath.Join(dir, "inside", "SystemStructure.ssd"), ofFMU("mass_force.fmu"))
	copyFMUs(t, filepath.Join(dir, "bound"), "mass_force")
	write(t, filepath.Join(dir, "bound", "SystemStructure.ssd"), strings.Replace(ofFMU("mass_force.fmu"), `source="mass_force.fmu"/>`,
		`source="mass_force.fmu"><ssd:ParameterBindings><ssd:ParameterBinding source="set.ssv"/></ssd:ParameterBindings></ssd:Component>`, 1))
	mkdir(t, filepath.Join(dir, "library"))
	if err := unzip(fmu(t, "mass_force"), filepath.Join(dir, "library")); err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob(filepath.Join(dir, "library", "binaries", "*", "mass_force.*"))
	if err != nil || len(libraries) == 0 {
		t.Fatalf("libraries %v, %v", libraries, err)
	}
	for _, path := range libraries {
		write(t, path, pointer)
	}
	good := fmu(t, "mass_force")
	for _, args := range []string{"run a.fmu", "run a.ssp", "run a.ssd", "run a.xml", "run described", "run sys", "run bound", "run inside", "run library",
		"validate a.fmu", "validate a.ssv", "validate library", "info a.fmu", "ssp new a.fmu -o b.ssd", "ssp pack sys -o b.ssp", "run " + good + " --input a.csv",
		"run " + good + " --scenario a.yaml", "compare a.csv a.parquet", "plot a.parquet", "study a.yaml"} {
		code, output := macrostepIn(t, dir, strings.Fields(args)...)
		output = strings.Join(strings.Fields(output), " ")
		if code == 0 || !strings.Contains(output, "a pointer of Git LFS in the place of the real file of 12345 bytes") || !strings.Contains(output, "git lfs pull") {
			t.Errorf("%s: exit code %d\n%s", args, code, output)
		}
	}
}

// No command waits at a named pipe that nothing writes to; what a program writes to standard input is read.
func TestPipesWithoutWriter(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no pipes in folders
	}
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "sys"))
	for _, name := range []string{"pipe", "a.fmu", "a.ssp", "a.ssd", "a.csv", "a.yaml", "a.json", "sys/m.fmu"} {
		if out, err := exec.Command("mkfifo", filepath.Join(dir, filepath.FromSlash(name))).CombinedOutput(); err != nil {
			t.Fatalf("mkfifo: %v: %s", err, out)
		}
	}
	write(t, filepath.Join(dir, "sys", "SystemStructure.ssd"), ofFMU("m.fmu"))
	good := fmu(t, "mass_force")
	table := filepath.Join(dir, "good.csv")
	write(t, table, "time,F\n0,1\n1,1\n")
	for _, args := range []string{"run pipe", "run a.fmu", "run a.ssp", "run a.ssd", "info pipe", "info a.csv", "validate pipe", "validate a.yaml", "validate sys",
		"ssp set pipe m.x0=1 -o b.ssp", "ssp set sys m.x0=1 -o b.ssp", "ssp pack pipe", "ssp pack sys -o b.ssp", "ssp pack sys/SystemStructure.ssd -o b.ssp", "ssp unpack a.ssp",
		"ssp graph a.ssd", "ssp new a.fmu -o b.ssd", "compare a.csv good.csv", "compare good.csv a.csv", "plot a.csv", "report a.csv",
		"report good.csv --manifest a.json", "run " + good + " --input a.csv", "run " + good + " --scenario a.yaml", "study a.yaml", "analyze pipe"} {
		code, output := macrostepIn(t, dir, strings.Fields(args)...)
		if plain := strings.Join(strings.Fields(output), " "); code == 0 || !strings.Contains(plain, "named pipe") &&
			!strings.Contains(plain, "neither a file nor a folder") && !strings.Contains(plain, "not a regular file") {
			t.Errorf("%s: exit code %d\n%s", args, code, output)
		}
	}
	for _, args := range []string{"run " + good + " --stop-time 0.01 --quiet --input /dev/stdin", "compare /dev/stdin good.csv"} {
		cmd := exec.Command(program, strings.Fields(args)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(read(t, table)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// A source proxyfmu: of OSP is packed and changed like the file that it names.
func TestPackProxied(t *testing.T) {
	dir := t.TempDir()
	copyFMUs(t, filepath.Join(dir, "sys"), "mass_force")
	write(t, filepath.Join(dir, "sys", "SystemStructure.ssd"), ofFMU("proxyfmu://localhost?file=mass_force.fmu"))
	for _, args := range []string{"ssp pack sys", "ssp pack sys/SystemStructure.ssd -o one.ssp", "ssp set one.ssp m.x0=3 --force", "ssp set sys/SystemStructure.ssd m.x0=4 -o two.ssp"} {
		if code, output := macrostepIn(t, dir, strings.Fields(args)...); code != 0 {
			t.Errorf("%s: exit code %d\n%s", args, code, output)
		}
	}
	for name, want := range map[string]float64{"sys": 0, "one": 3, "two": 4} {
		o := complete(t, filepath.Join(dir, name+".ssp"), "--record", "m.x")
		if x := o.column(t, "m.x"); x[0] != want {
			t.Errorf("%s: x begins at %g, want %g", name, x[0], want)
		}
	}
	write(t, filepath.Join(dir, "sys", "SystemStructure.ssd"), ofFMU("proxyfmu://localhost?file=../mass_force.fmu"))
	copyFMUs(t, dir, "mass_force")
	if code, output := macrostepIn(t, dir, "ssp", "pack", "sys", "-o", "three.ssp"); code != 2 || !strings.Contains(output, "lies outside") {
		t.Errorf("exit code %d\n%s", code, output)
	}
}

// A table may have the units of its inputs, in the header or in a row of their own. They are converted into those of the FMU; what
// cannot be converted is refused.
func TestInputUnits(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "in.csv")
	mass := fmu(t, "mass_force")
	for _, c := range []struct {
		table string
		want  float64 // F at the end in N; 0 = refused
		says  string
	}{
		{"t [ms],F [N]\n0,1\n10,3\n", 3, ""},
		{"time,F / kN\n0,1\n0.01,3\n", 3000, ""},
		{"time,mass_force.F (mN)\n0,1\n0.01,3\n", 0.003, ""},
		{"time,F\ns,kN\n0,1\n0.01,3\n", 3000, ""},
		{"time,F [kg.m/s2]\n0,1\n0.01,3\n", 3, ""},
		{"time,F [m]\n0,1\n0.01,3\n", 0, `F is in "m" in the table and in "N" in the FMU: the dimensions differ`},
		{"time,F [furlong]\n0,1\n0.01,3\n", 0, `and macrostep cannot convert one into the other; give it in "N"`},
		{"time,G [N]\n0,1\n0.01,3\n", 0, `component mass_force has no variable "G"`},
		{"time,x0 [m]\n0,1\n0.01,3\n", 0, "x0 [m] is not an input: its causality is parameter"},
	} {
		write(t, table, c.table)
		args := []string{mass, "--stop-time", "0.01", "--step-size", "0.001", "--input", table, "--record", "*"}
		if c.want == 0 {
			call(t, append([]string{"run"}, args...)...).is(t, 2, c.says)
			continue
		}
		f := complete(t, args...).column(t, "mass_force.F")
		if last := f[len(f)-1]; math.Abs(last-c.want) > 1e-12*c.want {
			t.Errorf("%q: F is %g at the end, want %g N", c.table, last, c.want)
		}
	}
	// Also at an input of a system, whose connector has a unit of its own.
	write(t, filepath.Join(dir, "SystemStructure.ssd"), strings.NewReplacer(`<ssd:System name="made">`, `<ssd:System name="made"><ssd:Connectors>
<ssd:Connector name="push" kind="input"><ssc:Real unit="kN"/></ssd:Connector></ssd:Connectors>`, `<ssc:Unit name="K">`,
		`<ssc:Unit name="kN"><ssc:BaseUnit kg="1" m="1" s="-2" factor="1000"/></ssc:Unit><ssc:Unit name="K">`).Replace(
		document("0.01", member{name: "m", fmu: "mass_force", in: "F"}.component(""), "push → m.F")))
	copyFMUs(t, dir, "mass_force")
	write(t, table, "time,push [N]\n0,1\n0.01,3000\n")
	f := complete(t, filepath.Join(dir, "SystemStructure.ssd"), "--step-size", "0.001", "--input", table).column(t, "m.F")
	if last := f[len(f)-1]; math.Abs(last-3000) > 1e-9 {
		t.Errorf("F is %g N at the end, want 3000", last)
	}
}

// A tunable parameter in a table of inputs is refused with the way that works.
func TestTunableInTable(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "in.csv")
	write(t, table, "time,p\n0,1\n")
	path, err := probe.Pack(dir, "tunable", strings.Replace(probe.Description("tunable", "", ""), `name="p" valueReference="6" causality="parameter" variability="fixed"`,
		`name="p" valueReference="6" causality="parameter" variability="tunable"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	call(t, "run", path, "--stop-time", "1", "--input", table).is(t, 2, "p is a tunable parameter, and a table drives inputs only; a scenario changes it during the run (--scenario, macrostep help scenarios)")
}

// What lies beside a system or FMU, or a folder without one, is refused with what to give instead.
func TestNotASystem(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "empty"))
	mkdir(t, filepath.Join(dir, "unpacked"))
	if err := unzip(fmu(t, "mass_force"), filepath.Join(dir, "unpacked")); err != nil {
		t.Fatal(err)
	}
	copyFMUs(t, filepath.Join(dir, "fmus"), "mass_force", "coupling")
	description := filepath.Join("unpacked", "modelDescription.xml")
	for args, says := range map[string]string{
		"run " + description:                   "is the description of an FMU, not a system; give the folder of the unpacked FMU, unpacked, or the .fmu",
		"ssp new " + description + " -o b.ssd": "is the description of an FMU, not the FMU; give the folder of the unpacked FMU, unpacked, or the .fmu",
		"run empty":                            "empty: the folder is empty [SD2]; give the folder of a system or of an unpacked FMU",
		"ssp graph empty":                      "empty: the folder is empty",
		"info fmus":                            "neither SystemStructure.ssd nor modelDescription.xml, but coupling.fmu, mass_force.fmu; macrostep ssp new makes a system of FMUs",
	} {
		if code, output := macrostepIn(t, dir, strings.Fields(args)...); code != 2 || !strings.Contains(output, says) {
			t.Errorf("%s: exit code %d, want 2 and %q\n%s", args, code, says, output)
		}
	}
}

// A system in which nothing is connected is reported when it is made and when it is run.
func TestNothingConnected(t *testing.T) {
	dir := t.TempDir()
	copyFMUs(t, dir, "mass_force")
	code, output := macrostepIn(t, dir, "ssp", "new", "a=mass_force.fmu", "b=mass_force.fmu", "--connect-by-name", "--stop-time", "0.01", "-o", "s.ssd")
	if code != 0 || !strings.Contains(output, "warning: --connect-by-name connects nothing") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	if o := complete(t, filepath.Join(dir, "s.ssd")); !strings.Contains(o.warnings(), "nothing is connected: the 2 components run side by side") {
		t.Errorf("warnings %s", o.warnings())
	}
}

// Without a C compiler, demo says so once, not for each example.
func TestDemoWithoutCompiler(t *testing.T) {
	cmd := exec.Command(program, "demo", "--all", "--output", filepath.Join(t.TempDir(), "demo"))
	cmd.Env = append(cmd.Environ(), "PATH=", "CC=")
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Count(string(out), "there is no C compiler") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}
