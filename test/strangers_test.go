package test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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
