package app

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

// described writes an FMU that is its description only: documents ask for no more.
func described(t testing.TB, path, description string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("modelDescription.xml")
	if err == nil {
		_, err = w.Write([]byte(description))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// model makes the description of an FMU from its variables, "causality type name
// unit start" each.
func model(name string, variables ...string) string {
	var vars, outputs strings.Builder
	for i, v := range variables {
		f := append(strings.Fields(v), "", "", "")
		attr := ""
		if f[3] != "" && f[3] != "-" {
			attr += ` unit="` + f[3] + `"`
		}
		if f[1] == "Enumeration" {
			attr += ` declaredType="mode"`
		}
		more, variability := "", ""
		switch {
		case f[0] == "parameter":
			variability = ` variability="fixed"`
			attr += ` start="` + f[4] + `"`
		case f[0] == "input":
			attr += ` start="0"`
		}
		if f[1] != "Real" && f[0] != "parameter" {
			variability = ` variability="discrete"`
		}
		if f[0] == "output" {
			outputs.WriteString(`<Unknown index="` + string('1'+rune(i)) + `"/>`)
		}
		vars.WriteString(`<ScalarVariable name="` + f[2] + `" valueReference="` + string('1'+rune(i)) + `" causality="` + f[0] + `"` + variability + more + `><` + f[1] + attr + `/></ScalarVariable>`)
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="` + name + `" guid="{` + name + `}"><CoSimulation modelIdentifier="` + name + `"/>
<UnitDefinitions><Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit><Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit><Unit name="km/h"><BaseUnit m="1" s="-1" factor="0.2777777777777778"/></Unit><Unit name="odd"/></UnitDefinitions>
<TypeDefinitions><SimpleType name="mode"><Enumeration><Item name="off" value="1"/><Item name="` + name + `" value="2"/></Enumeration></SimpleType></TypeDefinitions>
<DefaultExperiment startTime="0" stopTime="5" stepSize="0.01"/>
<ModelVariables>` + vars.String() + `</ModelVariables><ModelStructure><Outputs>` + outputs.String() + `</Outputs><InitialUnknowns>` + outputs.String() + `</InitialUnknowns></ModelStructure></fmiModelDescription>`
}

// workshop is a folder with FMUs.
func workshop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"quarter_chassis_a", "quarter_wheel_a"} {
		d, err := fmus.Description(name)
		if err != nil {
			t.Fatal(err)
		}
		described(t, filepath.Join(dir, name+".fmu"), string(d))
	}
	described(t, filepath.Join(dir, "a.fmu"), model("a", "output Real v m/s", "output Real w km/h", "output Integer n", "output Enumeration e", "output Real odd odd", "parameter Real k N 2"))
	described(t, filepath.Join(dir, "b.fmu"), model("b", "input Real v m/s", "input Real a_w m/s", "input Real n", "input Enumeration e", "input Real odd N", "output Real F N", "parameter Real k N 3"))
	described(t, filepath.Join(dir, "1 c.d.fmu"), model("c", "input Real F N", "output Real v m/s", "input Real alone"))
	return dir
}

// in calls the program in a folder.
func in(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs, documents{})
	return code, out.String(), errs.String()
}

// done is in for a call that must succeed.
func done(t *testing.T, dir string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := in(t, dir, args...)
	if code != exitDone || stderr != "" {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

// content lists the files of a folder.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	visible, hidden, err := edit.FolderFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(visible, hidden...) {
		out[f.Name] = read(t, f.Path)
	}
	return out
}

// unchanged calls the program, which must refuse, and sees to it that no file is
// touched, made or left behind.
func unchanged(t *testing.T, dir string, args []string, want ...string) {
	t.Helper()
	before := content(t, dir)
	code, stdout, stderr := in(t, dir, args...)
	if code != exitUsage || strings.Contains(stdout, "wrote") {
		t.Errorf("%v: exit code %d, output %s", args, code, stdout)
	}
	contains(t, strings.Join(args, " "), stderr, append([]string{"macrostep: "}, want...)...)
	after := content(t, dir)
	for name, data := range after {
		if before[name] != data {
			t.Errorf("%v: %s is new or changed", args, name)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%v: %d files became %d", args, len(before), len(after))
	}
}

// assembled opens a system for the time of a test.
func assembled(t *testing.T, path string) *assemble.Assembly {
	t.Helper()
	a, err := assemble.Open(path, assemble.Options{})
	t.Cleanup(func() { a.Close() })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// connections lists those of a system.
func connections(t *testing.T, path string) (list []string) {
	t.Helper()
	for _, c := range assembled(t, path).Connections() {
		list = append(list, c.From+" "+c.To)
	}
	slices.Sort(list)
	return list
}

func TestSSPNew(t *testing.T) {
	dir := workshop(t)
	out := done(t, dir, "ssp", "new", "chassis=quarter_chassis_a.fmu", "wheel=quarter_wheel_a.fmu", "--connect-by-name", "-o", "car.ssp")
	if want := `Components
  chassis  quarter_chassis_a.fmu  1 input, 2 outputs
  wheel    quarter_wheel_a.fmu    1 input, 3 outputs

Connections
  wheel.F_c    → chassis.F_c
  chassis.v_c  → wheel.v_c

wrote car.ssp
`; out != want {
		t.Errorf("%s", out)
	}
	car := filepath.Join(dir, "car.ssp")
	if got := connections(t, car); !slices.Equal(got, []string{"chassis.v_c wheel.v_c", "wheel.F_c chassis.F_c"}) {
		t.Errorf("connections %v", got)
	}
	first := read(t, car)
	unchanged(t, dir, []string{"ssp", "new", "a.fmu", "-o", "car.ssp"}, "car.ssp exists already; choose another name, or give --force")
	done(t, dir, "ssp", "new", "--force", "-o=car.ssp", "chassis=quarter_chassis_a.fmu", "--connect-by-name", "wheel=quarter_wheel_a.fmu")
	if read(t, car) != first {
		t.Error("the same call gives other bytes")
	}
	// A document that refers to FMUs where they are.
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := in(t, dir, "ssp", "new", "1 c.d.fmu", "-o", "sub/one.ssd")
	contains(t, "a file outside", stderr, "warning", "lies outside the folder of the document")
	contains(t, "the document", read(t, filepath.Join(dir, "sub", "one.ssd")), `name="1_c_d" source="../1%20c.d.fmu"`, `startTime="0" stopTime="5"`)
}

// What is called alike is connected, what is not is told.
func TestSSPNewByName(t *testing.T) {
	dir := workshop(t)
	out := done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "1 c.d.fmu", "second=1 c.d.fmu", "--connect-by-name", "-o", "s.ssp")
	if want := `Components
  a       a.fmu      0 inputs, 5 outputs
  b       b.fmu      5 inputs, 1 output
  1_c_d   1 c.d.fmu  2 inputs, 1 output
  second  1 c.d.fmu  2 inputs, 1 output

Connections
  a.w    → b.a_w
  a.odd  → b.odd
  b.F    → 1_c_d.F
  b.F    → second.F

Inputs left open
  b.v           3 outputs have this name: a.v, 1_c_d.v, second.v; choose with --connect a.v:b.v
  b.n           a.n: it is of type Integer, but the input of type Real
  b.e           a.e: its items differ from those of the input
  1_c_d.alone   no output has this name
  second.alone  no output has this name
Connect them with --connect COMPONENT.OUTPUT:COMPONENT.INPUT. An open input keeps its start value, or follows a column of run --input.

Notes
  the unit odd of a is omitted: the FMU does not define it in base units

wrote s.ssp
`; out != want {
		t.Errorf("%s", out)
	}
	list := connections(t, filepath.Join(dir, "s.ssp"))
	want := []string{"a.odd b.odd", "a.w b.a_w", "b.F 1_c_d.F", "b.F second.F"}
	if !slices.Equal(list, want) {
		t.Errorf("connections %v", list)
	}
	pkg, err := ssp.Open(filepath.Join(dir, "s.ssp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pkg.Close()
	var names []string
	for _, e := range pkg.Root.Enumerations {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"mode", "b.mode"}) { // other items under the same name
		t.Errorf("enumerations %v", names)
	}
	needed, err := edit.Needed(pkg)
	if err != nil || len(needed) != 4 { // the FMU that stands twice once
		t.Errorf("%v, %v", needed, err)
	}
	out = done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "c=1 c.d.fmu", "--connect-by-name", "--connect", "a.v:b.v", "--dry-run", "--parameters")
	contains(t, "a choice", out, "  a.v    → b.v", "Nothing is written.")
	for args, want := range map[string]string{
		"--connect|a.v":               `"a.v" is not COMPONENT.OUTPUT:COMPONENT.INPUT`,
		"--connect|a.V:b.v":           `component a has no output "V"; did you mean "v"?`,
		"--connect|a.k:b.v":           "a.k is not an output: its causality is parameter",
		"--connect|x.v:b.v":           `"x.v" names no component; there are a, b`,
		"--connect|a.v:b.odd":         "a.v cannot feed b.odd: its unit m/s cannot be converted into N",
		"--connect|a.n:b.v":           "it is of type Integer",
		"--step-size|0":               "--step-size: 0 is not greater than 0",
		"--stop-time|-1":              "the stop time -1 is not after the start time 0",
		"--algorithm|magic":           `no algorithm is called "magic"`,
		"--for|modelica":              `--for: "modelica" is none of omsimulator, osp`,
		"--connect|a.v:b.v|a=b.fmu":   "two components are called a",
		"no.fmu":                      "no.fmu: there is no such FMU",
		".":                           ". is a folder",
		"x.y=a.fmu":                   "the name of a component must not be empty or contain",
		"--connect|a.v:b.v|--dry-run": "", // fine
	} {
		call := append([]string{"ssp", "new", "a=a.fmu", "b.fmu", "-o", "new.ssp"}, strings.Split(args, "|")...)
		if want == "" {
			done(t, dir, call...)
			continue
		}
		unchanged(t, dir, call, want)
	}
	unchanged(t, dir, []string{"ssp", "new", "a.fmu"}, "--output FILE is missing")
	unchanged(t, dir, []string{"ssp", "new", "a.fmu", "-o", "x.zip"}, "must end in .ssp or .ssd")
	unchanged(t, dir, []string{"ssp", "new", "a.fmu", "-o", "no/where.ssp"}, "no/where.ssp cannot be written")
}

// Other tools get what they need, and it is told what they cannot take.
func TestSSPNewFor(t *testing.T) {
	dir := workshop(t)
	code, out, stderr := in(t, dir, "ssp", "new", "a.fmu", "b.fmu", "1 c.d.fmu", "--connect-by-name", "--connect", "a.e:b.e", "--for", "omsimulator,osp", "--tolerance=1e-5", "-o", "my system.ssp")
	if code != exitDone || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	contains(t, "the warning", stderr, `warning: my system.ssp/SystemStructure.ssd:`, `the enumerations of "a.e" and "b.e" differ`)
	contains(t, "the notes", out, "OSP fails at connectors of type Enumeration: a.e", "OSP does not convert units, and so couples km/h with m/s: a.w to b.a_w", "c1_c_d")
	pkg, err := ssp.Open(filepath.Join(dir, "my system.ssp"), &diag.List{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer pkg.Close()
	data, err := edit.Encode(pkg.Root)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the document", string(data), `name="my_system"`, `<oms:FixedStepMaster description="oms-ma" stepSize="0.01" relativeTolerance="1e-05"/>`,
		`<osp:FixedStepAlgorithm baseStepSize="0.01"/>`, `<ms:Settings xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" version="1" stepSize="0.01" tolerance="1e-05"/>`)
	// Without a tolerance it is the finest that an FMU suggests.
	fine := strings.Replace(model("fine", "output Real v m/s"), `stepSize="0.01"`, `stepSize="0.01" tolerance="2e-7"`, 1)
	described(t, filepath.Join(dir, "fine.fmu"), fine)
	done(t, dir, "ssp", "new", "a.fmu", "fine.fmu", "--for", "omsimulator", "--step-size=0.1", "-o", "fine.ssd")
	contains(t, "the tolerance", read(t, filepath.Join(dir, "fine.ssd")), `relativeTolerance="2e-07"`)
	out = done(t, dir, "ssp", "new", "a.fmu", "--for", "osp", "--dry-run")
	contains(t, "enumerations", out, "a.e gets no connector: OSP fails at enumerations")
}

func TestSSPPack(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "-o", "s.ssp")
	done(t, dir, "ssp", "unpack", "s.ssp")
	write(t, filepath.Join(dir, "s", ".gitignore"), "*.csv")
	write(t, filepath.Join(dir, "s", "notes.txt"), "kept")
	code, out, stderr := in(t, dir, "ssp", "pack", "s", "-o", "again.ssp")
	if code != exitDone || out != "wrote again.ssp: 4 files\n" || stderr != "left out: .gitignore\n" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if err := os.Remove(filepath.Join(dir, "s", "notes.txt")); err != nil {
		t.Fatal(err)
	}
	in(t, dir, "ssp", "pack", "s", "--output", "again.ssp", "--force")
	if read(t, filepath.Join(dir, "s.ssp")) != read(t, filepath.Join(dir, "again.ssp")) {
		t.Error("unpacked and packed, the package has other bytes")
	}
	unchanged(t, dir, []string{"ssp", "pack", "s"}, "s.ssp exists already")
	unchanged(t, dir, []string{"ssp", "unpack", "s.ssp"}, "s exists already")
	unchanged(t, dir, []string{"ssp", "pack", "s.ssp", "-o", "t.ssp"}, "s.ssp is a package already")
	unchanged(t, dir, []string{"ssp", "unpack", "a.fmu", "-o", "no/where"}, "no")
	unchanged(t, dir, []string{"ssp", "unpack", "nothing.ssp"}, "nothing.ssp")
	unchanged(t, dir, []string{"ssp", "pack", "."}, "has no SystemStructure.ssd")
	unchanged(t, dir, []string{"ssp", "pack", "nothing"}, "nothing")

	// Files that were unpacked are replaced on request, others stay.
	write(t, filepath.Join(dir, "s", "SystemStructure.ssd"), "mine")
	write(t, filepath.Join(dir, "s", "notes.txt"), "kept")
	fmu, away := filepath.Join(dir, "s", "resources", "b.fmu"), filepath.Join(dir, "s", "resources", "away")
	if err := errors.Join(os.Rename(fmu, away), os.Mkdir(fmu, 0o777)); err != nil {
		t.Fatal(err)
	}
	unchanged(t, dir, []string{"ssp", "unpack", "s.ssp", "--force"}, "is not an ordinary file and is not replaced")
	if err := errors.Join(os.Remove(fmu), os.Rename(away, fmu)); err != nil {
		t.Fatal(err)
	}
	done(t, dir, "ssp", "unpack", "s.ssp", "--force")
	if files := content(t, filepath.Join(dir, "s")); files["notes.txt"] != "kept" || !strings.Contains(files["SystemStructure.ssd"], "System name") || len(files) != 5 {
		t.Errorf("%d files", len(files))
	}
	// A document alone takes what it refers to, and nothing from outside.
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "-o", "alone.ssd")
	if out := done(t, dir, "ssp", "pack", "alone.ssd"); out != "wrote alone.ssp: 3 files\n" {
		t.Error(out)
	}
	in(t, dir, "ssp", "new", "a.fmu", "-o", "s/out.ssd")
	unchanged(t, dir, []string{"ssp", "pack", "s/out.ssd"}, "a.fmu lies outside of the folder of the document")
	if err := os.Symlink(filepath.Join(dir, "a.fmu"), filepath.Join(dir, "s", "link.txt")); err == nil {
		code, _, stderr := in(t, dir, "ssp", "pack", "s", "-o", "linked.ssp")
		if code != exitUsage {
			t.Errorf("a link is packed: exit code %d", code)
		}
		contains(t, "a link", stderr, "is not a regular file; a package can contain only regular files")
	}
}

func TestSSPSet(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "--connect", "a.v:b.v", "-o", "s.ssp")
	original := read(t, filepath.Join(dir, "s.ssp"))
	out := done(t, dir, "ssp", "set", "s.ssp", "a.k=5", "b.k=7", "-o", "t.ssp")
	if want := "a.k  2 → 5\nb.k  3 → 7\nwrote t.ssp (resources/parameters.ssv)\n"; out != want {
		t.Error(out)
	}
	if read(t, filepath.Join(dir, "s.ssp")) != original {
		t.Error("s.ssp is changed")
	}
	values := func(path string) string {
		t.Helper()
		var all []string
		for _, s := range assembled(t, filepath.Join(dir, path)).Settings() {
			all = append(all, s.Name+"="+s.Value)
		}
		return strings.Join(all, " ")
	}
	if got := values("t.ssp"); got != "a.k=5 b.k=7" {
		t.Errorf("values %s", got)
	}
	// A set that is there is changed, and nothing else is.
	out = done(t, dir, "ssp", "set", "t.ssp", "a.k=6", "--force")
	contains(t, "the change", out, "a.k  5 → 6")
	if got := values("t.ssp"); got != "a.k=6 b.k=7" {
		t.Errorf("values %s", got)
	}
	for _, tt := range []struct{ args, want string }{
		{"s.ssp|a.k=1", "s.ssp would be changed; name another file with --output, or give --force"},
		{"s.ssp|a.k=1|-o|s.ssp", "s.ssp exists already"},
		{"s.ssp|a.k=1|-o|s.ssd", "must end in .ssp"},
		{"s.ssp|a.k=x|--force", "a.k=x: the variable is a Real; give a finite number"},
		{"s.ssp|a.kk=1|--force", `component a has no variable "kk"`},
		{"s.ssp|c.k=1|--force", `"c.k" names no component`},
		{"s.ssp|a.v=1|--force", "it cannot be set: its causality is output"},
		{"s.ssp|a.k=1|a.k=2|--force", "a.k is given twice"},
		{"s.ssp|a.k|--force", `"a.k" is not COMPONENT.VARIABLE=VALUE`},
		{"s.ssp", "SYSTEM COMPONENT.VARIABLE=VALUE is missing"},
		{"a.fmu|a.k=1|--force", "an FMU alone has no parameter sets"},
		{"no.ssp|a.k=1|--force", "no.ssp"},
	} {
		unchanged(t, dir, append([]string{"ssp", "set"}, strings.Split(tt.args, "|")...), tt.want)
	}
}

// The values win over those of every level, and over later ones (ssp 36). The rest
// of the document stays as it is.
func TestSSPSetWins(t *testing.T) {
	const document = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
  <ssd:System name="s">
    <ssd:ParameterBindings>
      BINDINGS
    </ssd:ParameterBindings>
    <ssd:Elements>
      <ssd:Component name="a" source="a.fmu">
        <ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/>
        <ssd:ParameterBindings>
          <ssd:ParameterBinding source="own.ssv"/>
        </ssd:ParameterBindings>
      </ssd:Component>
    </ssd:Elements>
  </ssd:System>
</ssd:SystemStructureDescription>
`
	set := func(name string) string {
		return `<ssv:ParameterSet version="1.0" name="p" author="me" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"><ssv:Parameters><ssv:Parameter name="` + name + `" description="kept"><ssv:Real value="1"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>`
	}
	for name, tt := range map[string]struct{ bindings, file string }{
		"a set of its own": {`<ssd:ParameterBinding source="top.ssv"/>`, "top.ssv"},
		"inline":           {`<ssd:ParameterBinding><ssd:ParameterValues>` + set("a.k") + `</ssd:ParameterValues></ssd:ParameterBinding>`, "SystemStructure2.ssv"},
		"a prefix":         {`<ssd:ParameterBinding source="own.ssv" prefix="a."/>`, "SystemStructure2.ssv"},
		"shared":           {`<ssd:ParameterBinding source="top.ssv"/><ssd:ParameterBinding source="top.ssv"/>`, "SystemStructure2.ssv"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workshop(t)
			write(t, filepath.Join(dir, "top.ssv"), set("a.k"))
			write(t, filepath.Join(dir, "own.ssv"), set("k"))
			write(t, filepath.Join(dir, "SystemStructure.ssv"), "not ours")
			path := write(t, filepath.Join(dir, "s.ssd"), strings.Replace(document, "BINDINGS", tt.bindings, 1))
			out := done(t, dir, "ssp", "set", path, "a.k=9", "--force")
			file := strings.Replace(tt.file, "SystemStructure2", "s", 1)
			contains(t, "the change", out, "a.k  1 → 9", "("+file+")")
			files := content(t, dir)
			contains(t, file, files[file], `<ssv:Real value="9" unit="N"/>`)
			if file == "top.ssv" {
				contains(t, file, files[file], `author="me"`, `description="kept"`)
			}
			contains(t, "the document", files["s.ssd"], `<ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/>`)
			if s := assembled(t, path).Settings(); len(s) != 1 || s[0].Value != "9" {
				t.Errorf("values %v", s)
			}
		})
	}
}

// Where a value cannot win, nothing is changed: what was written is put back.
func TestSSPSetPutsBack(t *testing.T) {
	const document = `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
<ssd:System name="s"><ssd:Connectors><ssd:Connector name="stiffness" kind="parameter"><ssc:Real/></ssd:Connector></ssd:Connectors>
<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters><ssv:Parameter name="stiffness"><ssv:Real value="4"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
<ssd:Elements><ssd:Component name="a" source="a.fmu"><ssd:Connectors><ssd:Connector name="k" kind="parameter"><ssc:Real/></ssd:Connector></ssd:Connectors></ssd:Component></ssd:Elements>
<ssd:Connections><ssd:Connection startConnector="stiffness" endElement="a" endConnector="k"/></ssd:Connections></ssd:System></ssd:SystemStructureDescription>`
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), document)
	unchanged(t, dir, []string{"ssp", "set", "s.ssd", "a.k=9", "--force"}, "a.k would keep the value 4", "over a connection of the system")
	unchanged(t, dir, []string{"ssp", "set", "s.ssd", "a.k=9", "-o", "s.ssp"}, "a.k would keep the value 4", "stiffness=VALUE")
	unchanged(t, dir, []string{"ssp", "set", "s.ssd", "stiffness=soft", "-o", "s.ssp"}, "stiffness=soft", "give a finite number")
	// The connector itself takes one.
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "stiffness=9.5", "--force"), "stiffness  4 → 9.5")
	if s := assembled(t, filepath.Join(dir, "s.ssd")).Settings(); len(s) != 1 || s[0].Value != "9.5" || s[0].At != "stiffness" {
		t.Errorf("values %v", s)
	}
	write(t, filepath.Join(dir, "idle.ssd"), strings.Replace(document, `<ssd:Connection startConnector="stiffness" endElement="a" endConnector="k"/>`, "", 1))
	unchanged(t, dir, []string{"ssp", "set", "idle.ssd", "stiffness=9", "--force"}, "stiffness would reach no FMU")
}

// Connectors of nested systems are named by their path; values are in their unit, and
// without a type the form of the value tells it.
func TestSSPSetConnector(t *testing.T) {
	document := func(content string) string {
		return `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssd:System name="s"><ssd:Elements><ssd:System name="mid.dle"><ssd:Connectors><ssd:Connector name="k" kind="parameter">` + content + `</ssd:Connector></ssd:Connectors>
<ssd:Elements><ssd:Component name="a" source="a.fmu"/></ssd:Elements>
<ssd:Connections><ssd:Connection startConnector="k" endElement="a" endConnector="k"/></ssd:Connections></ssd:System></ssd:Elements></ssd:System>
<ssd:Units><ssc:Unit name="kN"><ssc:BaseUnit kg="1" m="1" s="-2" factor="1000"/></ssc:Unit></ssd:Units></ssd:SystemStructureDescription>`
	}
	for _, tt := range []struct{ content, value, want, element string }{
		{`<ssc:Real unit="kN"/>`, "3", "3000", `<ssv:Real value="3" unit="kN"/>`},
		{`<ssc:Real/>`, "3", "3", `<ssv:Real value="3"/>`},
		{``, "3.5", "3.5", `<ssv:Real value="3.5"/>`},
		{``, "3", "3", `<ssv:Real value="3"/>`}, // the type of the variable behind it
	} {
		dir := workshop(t)
		write(t, filepath.Join(dir, "s.ssd"), document(tt.content))
		done(t, dir, "ssp", "set", "s.ssd", "mid.dle.k="+tt.value, "--force")
		contains(t, "the set", content(t, dir)["s.ssv"], tt.element)
		unchanged(t, dir, []string{"info", "s.ssd", "--explain", "mid.dle.k"}, `"mid.dle.k" is a connector of a system; it gives mid.dle.a.k a value`)
		if s := assembled(t, filepath.Join(dir, "s.ssd")).Settings(); len(s) != 1 || s[0].Value != tt.want || s[0].Name != "mid.dle.a.k" {
			t.Errorf("%s: values %v", tt.content, s)
		}
	}
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), document(""))
	unchanged(t, dir, []string{"ssp", "set", "s.ssd", "mid.dle.k=soft", "--force"}, "Real; give a finite number")
	unchanged(t, dir, []string{"ssp", "set", "s.ssd", "mid.dle.q=1", "--force"}, `"mid.dle.q" names no component`)
}

// Where a system stands for a component, the value of a connector is in the unit that the
// connector has there, also the one that it had; the system inside may have another.
func TestSSPSetConnectorUnits(t *testing.T) {
	const names = ` version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">`
	const units = `<ssd:Units><ssc:Unit name="N"><ssc:BaseUnit kg="1" m="1" s="-2"/></ssc:Unit><ssc:Unit name="kN"><ssc:BaseUnit kg="1" m="1" s="-2" factor="1000"/></ssc:Unit></ssd:Units></ssd:SystemStructureDescription>`
	connector := func(unit string) string {
		return `<ssd:Connectors><ssd:Connector name="k" kind="parameter"><ssc:Real unit="` + unit + `"/></ssd:Connector></ssd:Connectors>`
	}
	dir := workshop(t)
	write(t, filepath.Join(dir, "in.ssd"), `<ssd:SystemStructureDescription`+names+`<ssd:System name="in">`+connector("N")+
		`<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters><ssv:Parameter name="k"><ssv:Real value="4000"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>`+
		`<ssd:Elements><ssd:Component name="a" source="a.fmu"/></ssd:Elements><ssd:Connections><ssd:Connection startConnector="k" endElement="a" endConnector="k"/></ssd:Connections></ssd:System>`+units)
	write(t, filepath.Join(dir, "s.ssd"), `<ssd:SystemStructureDescription`+names+`<ssd:System name="s"><ssd:Elements><ssd:Component name="i" type="application/x-ssp-definition" source="in.ssd">`+connector("kN")+`</ssd:Component></ssd:Elements></ssd:System>`+units)
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "i.k=0.3", "--force"), "i.k  4 → 0.3")
	if s := assembled(t, filepath.Join(dir, "s.ssd")).Settings(); len(s) != 1 || s[0].Value != "300" {
		t.Errorf("values %v", s)
	}
	contains(t, "the change back", done(t, dir, "ssp", "set", "s.ssd", "i.k=4", "--force"), "i.k  0.3 → 4")
}

// What the documents tell is shown also where FMUs are missing; the error stands.
func TestInfoWithoutFMUs(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s.ssd"), `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
<ssd:System name="s"><ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>
<ssv:Parameter name="m.b.mode"><ssv:String value="slow"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
<ssd:Elements><ssd:Component name="a" source="gone/a.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"/></ssd:Connectors></ssd:Component>
<ssd:System name="m"><ssd:Connectors><ssd:Connector name="i" kind="input"/></ssd:Connectors><ssd:Elements>
<ssd:Component name="b" source="gone/b.fmu"><ssd:Connectors>CONNECTOR</ssd:Connectors></ssd:Component></ssd:Elements>
<ssd:Connections><ssd:Connection startConnector="i" endElement="b" endConnector="u"><ssc:LinearTransformation factor="3"/></ssd:Connection></ssd:Connections></ssd:System></ssd:Elements>
<ssd:Connections><ssd:Connection startElement="a" startConnector="y" endElement="m" endConnector="i"><ssc:LinearTransformation factor="2"/></ssd:Connection></ssd:Connections></ssd:System>
<ssd:DefaultExperiment startTime="0" stopTime="7"/></ssd:SystemStructureDescription>`)
	document := read(t, filepath.Join(dir, "s.ssd"))
	for connector, want := range map[string][]string{
		`<ssd:Connector name="u" kind="input"/>`: {"a.y  → m.b.u  × 6  via m.i", "m.b.mode  = slow", "gone/b.fmu  1 input, 0 outputs  missing"},
		`<ssd:Connector name="v" kind="input"/>`: {"a.y  → m.i    × 2", "m.i  → m.b.u  × 3"}, // as written
	} {
		write(t, filepath.Join(dir, "s.ssd"), strings.Replace(document, "CONNECTOR", connector, 1))
		code, stdout, stderr := in(t, dir, "info", "s.ssd")
		if code != exitUsage {
			t.Errorf("exit code %d", code)
		}
		contains(t, "what is known", stdout, append(want, "of the documents alone", "7 s (DefaultExperiment", "a    gone/a.fmu  0 inputs, 1 output")...)
		contains(t, "the error", stderr, `"gone/a.fmu" of component "a" cannot be read`, `"gone/b.fmu"`)
	}
	code, stdout, _ := in(t, dir, "info", "s.ssd", "--json")
	var got struct {
		Partial    bool
		Components []struct{ Missing bool }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitUsage || !got.Partial || len(got.Components) != 2 || !got.Components[1].Missing {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
}

// --explain may stand several times, and --set shows what a run with it would have.
func TestInfoExplainSet(t *testing.T) {
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
<ssd:System name="s"><ssd:Elements><ssd:Component name="a" source="a.fmu"/><ssd:Component name="b" source="b.fmu"/></ssd:Elements></ssd:System></ssd:SystemStructureDescription>`)
	out := done(t, dir, "info", "s.ssd", "--explain", "a.k", "--explain", "b.k", "--set", "b.k=7")
	contains(t, "the explanations", out, "a.k: parameter", "= 2  in force", "b.k: parameter", "= 3  overridden", "given by the user", "= 7  in force")
	contains(t, "the table", done(t, dir, "info", "s.ssd", "--set", "b.k=7"), "b.k  = 7  --set")
	var list []assemble.Explanation
	if err := json.Unmarshal([]byte(done(t, dir, "info", "s.ssd", "--json", "--explain", "a.k", "--explain", "b.k")), &list); err != nil || len(list) != 2 || list[1].Name != "b.k" {
		t.Errorf("%v: %v", err, list)
	}
	unchanged(t, dir, []string{"info", "s.ssd", "--explain", "a.k", "--explain", "b.q"}, `no variable "q"`)
	// A name that means nothing is told behind the others.
	code, stdout, stderr := in(t, dir, "info", "s.ssd", "--explain", "b.q", "--explain", "a.k", "--explain", "c.k")
	if code != exitUsage || strings.Contains(stdout, "b.k:") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	contains(t, "the explanation", stdout, "a.k: parameter", "= 2  in force")
	contains(t, "the errors", stderr, `no variable "q"`, `"c.k" names no component`)
	_, stdout, _ = in(t, dir, "info", "s.ssd", "--json", "--explain", "b.q", "--explain", "a.k")
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list) != 1 || list[0].Name != "a.k" {
		t.Errorf("%v: %s", err, stdout)
	}
	unchanged(t, dir, []string{"info", "s.ssd", "--set", "b.k"}, "not NAME=VALUE")
	unchanged(t, dir, []string{"info", "a.fmu", "--set", "b.k=1"}, "the flag is for systems")
}

func TestSSPGraph(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "1 c.d.fmu", "--connect-by-name", "--connect", "a.v:b.v", "-o", "s.ssd")
	out := done(t, dir, "ssp", "graph", "s.ssd")
	if out != "wrote s.svg: 3 components, 4 connections\n" {
		t.Error(out)
	}
	svg := read(t, filepath.Join(dir, "s.svg"))
	contains(t, "the picture", svg, ">a<", ">b<", ">1_c_d<", "a.w → b.a_w  ×0.277778")
	if done(t, dir, "ssp", "graph", "s.ssd", "-o", "-") != svg {
		t.Error("the standard output gets another picture")
	}
	unchanged(t, dir, []string{"ssp", "graph", "s.ssd"}, "s.svg exists already")
	unchanged(t, dir, []string{"ssp", "graph", "no.ssp"}, "no.ssp")
	if err := os.Remove(filepath.Join(dir, "b.fmu")); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := in(t, dir, "ssp", "graph", "s.ssd", "--force")
	if code != exitDone || !strings.Contains(out, "3 components, 4 connections") {
		t.Errorf("exit code %d: %s", code, out)
	}
	contains(t, "the warning", stderr, "warning: the picture is made of the document alone", "b.fmu")
}

// Of large systems a part is drawn: deep systems as one box, or what is around some
// components. A picture of too many is drawn with a warning.
func TestSSPGraphPart(t *testing.T) {
	dir := workshop(t)
	var b strings.Builder
	b.WriteString(`<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"><ssd:System name="s"><ssd:Elements>`)
	component := func(name, fmu, connector string) {
		fmt.Fprintf(&b, `<ssd:Component name="%s" source="%s.fmu"><ssd:Connectors>%s</ssd:Connectors></ssd:Component>`, name, fmu, connector)
	}
	component("first", "a", `<ssd:Connector name="v" kind="output"/>`)
	b.WriteString(`<ssd:System name="sub"><ssd:Connectors><ssd:Connector name="v" kind="input"/></ssd:Connectors><ssd:Elements>`)
	for i := range 160 {
		component(fmt.Sprint("c", i), "b", `<ssd:Connector name="v" kind="input"/>`)
	}
	b.WriteString(`</ssd:Elements><ssd:Connections>`)
	for i := range 3 {
		fmt.Fprintf(&b, `<ssd:Connection startConnector="v" endElement="c%d" endConnector="v"/>`, i)
	}
	b.WriteString(`</ssd:Connections></ssd:System></ssd:Elements><ssd:Connections><ssd:Connection startElement="first" startConnector="v" endElement="sub" endConnector="v"/></ssd:Connections></ssd:System></ssd:SystemStructureDescription>`)
	write(t, filepath.Join(dir, "s.ssd"), b.String())
	code, out, stderr := in(t, dir, "ssp", "graph", "s.ssd")
	if code != exitDone || out != "wrote s.svg: 161 components, 3 connections\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	contains(t, "the warning", stderr, "161 components is hard to read; --depth 1")
	folded := done(t, dir, "ssp", "graph", "s.ssd", "-o", "-", "--depth", "1")
	contains(t, "the picture", folded, ">first<", ">sub<", ">160 components<", "first.v → sub.c2.v")
	if out := done(t, dir, "ssp", "graph", "s.ssd", "--depth", "1", "--force"); out != "wrote s.svg: 2 components, 3 connections\n" {
		t.Error(out)
	}
	if out := done(t, dir, "ssp", "graph", "s.ssd", "--around", "*.c1", "--around", "sub.c7?", "--force"); out != "wrote s.svg: 12 components, 1 connections\n" {
		t.Error(out)
	}
	unchanged(t, dir, []string{"ssp", "graph", "s.ssd", "--around", "x", "--force"}, "--around matches no component")
	unchanged(t, dir, []string{"ssp", "graph", "s.ssd", "--depth", "-1", "--force"}, "less than 0")
}

// The parts of the command line that all commands share.
func TestSSPWords(t *testing.T) {
	for args, want := range map[string]string{
		"ssp":                      "the command is missing; there are: new, set, graph, pack, unpack",
		"ssp|draw":                 `there is no command "ssp draw"`,
		"help|ssp|draw":            `there is no command "ssp draw"`,
		"ssp|new":                  "FMU is missing",
		"ssp|pack|a|b":             `"b" is one argument too many`,
		"ssp|graph|s.ssp|--ouput=": "there is no flag --ouput; did you mean --output?",
		"ssp|unpack|plain":         "plain has no extension to leave out",
	} {
		code, stdout, stderr := call(t, &fake{}, strings.Split(args, "|")...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit code %d: %s", args, code, stdout)
		}
		contains(t, args, stderr, want, "See: macrostep help ssp")
	}
	for _, c := range []string{"new", "set", "graph", "pack", "unpack"} {
		_, one, _ := call(t, &fake{}, "help", "ssp", c)
		_, two, _ := call(t, &fake{}, "ssp", c, "--help")
		if one != two {
			t.Errorf("ssp %s: the ways to ask for help differ", c)
		}
		contains(t, c, one, "macrostep ssp "+c, "Example", "Flags")
		for line := range strings.Lines(one) {
			if len([]rune(line)) > 85 {
				t.Errorf("ssp %s: a line is too long: %s", c, line)
			}
		}
	}
	for words, want := range map[string]string{
		"ssp|": "new", "ssp|g": "graph", "help|ssp|p": "pack", "ssp|new|--c": "--connect-by-name", "ssp|new|--for|": "omsimulator", "ssp|set|--f": "--force",
	} {
		_, out, _ := call(t, &fake{}, append([]string{completeCommand}, strings.Split(words, "|")...)...)
		if first, _, _ := strings.Cut(out, "\t"); first != want {
			t.Errorf("%s: completed to %q, not %q", words, out, want)
		}
	}
}

// A value that a connection beats is told with the connection: an input keeps it until
// the first exchange, a parameter never gets it.
func TestSSPSetConnected(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "--connect", "a.v:b.v", "-o", "s.ssd")
	code, stdout, stderr := in(t, dir, "ssp", "set", "s.ssd", "b.v=7", "--force")
	if code != exitDone || !strings.Contains(stdout, "b.v  0 → 7") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	contains(t, "the warning", stderr, "warning: b.v = 7 counts until the first exchange only: a.v → b.v (s.ssd:")
	_, _, stderr = in(t, dir, "ssp", "set", "s.ssd", "b.v=7", "-o", "t.ssp")
	contains(t, "the warning", stderr, "a.v → b.v ("+filepath.Join("t.ssp", "SystemStructure.ssd")+":")
	described(t, filepath.Join(dir, "c.fmu"), strings.Replace(model("c", "parameter Real k N 2", "calculatedParameter Real q N"),
		`causality="calculatedParameter"`, `causality="calculatedParameter" variability="fixed"`, 1))
	in(t, dir, "ssp", "new", "a.fmu", "c.fmu", "-o", "p.ssd", "--parameters")
	write(t, filepath.Join(dir, "p.ssd"), strings.Replace(read(t, filepath.Join(dir, "p.ssd")), "</ssd:Elements>",
		`</ssd:Elements><ssd:Connections><ssd:Connection startElement="c" startConnector="q" endElement="a" endConnector="k"/></ssd:Connections>`, 1))
	unchanged(t, dir, []string{"ssp", "set", "p.ssd", "a.k=7", "--force"}, "the value of a.k would have no effect", "takes the value of c.q → a.k (p.ssd:")
	unchanged(t, dir, []string{"ssp", "set", "p.ssd", "a.k=7", "-o", "u.ssp"}, "u.ssp is not written: ", "takes the value of c.q → a.k (p.ssd:")
}

// Enumerations that number their items differently are connected by the names of the
// items; where one has no counterpart the connection is refused, as a run would.
func TestSSPNewEnumerations(t *testing.T) {
	dir := workshop(t)
	items := func(name, list string) {
		text := model(name, "output Enumeration e", "input Enumeration i")
		at, end := strings.Index(text, "<Enumeration><Item"), strings.Index(text, "</SimpleType>")
		described(t, filepath.Join(dir, name+".fmu"), text[:at]+"<Enumeration>"+list+"</Enumeration>"+text[end:])
	}
	items("p", `<Item name="on" value="1"/><Item name="off" value="2"/>`)
	items("q", `<Item name="on" value="2"/><Item name="off" value="1"/><Item name="idle" value="3"/>`)
	out := done(t, dir, "ssp", "new", "p.fmu", "q.fmu", "--connect", "p.e:q.i", "-o", "s.ssd")
	contains(t, "the note", out, "p.e and q.i number their items differently: the connection gets a mapping to the items of the same name")
	contains(t, "the mapping", read(t, filepath.Join(dir, "s.ssd")), `<ssc:MapEntry source="off" target="off"/>`)
	a := assembled(t, filepath.Join(dir, "s.ssd"))
	if c := a.Connections(); len(c) != 1 || c[0].Map != "1 → 2, 2 → 1" || a.CheckErrors() != nil {
		t.Errorf("%+v: %v", c, a.CheckErrors())
	}
	unchanged(t, dir, []string{"ssp", "new", "p.fmu", "q.fmu", "--connect", "q.e:p.i", "-o", "r.ssd"}, "q.e cannot feed p.i", "no item idle to map to")
}

// An FMU that can be instantiated once per process may stand several times: a run
// isolates it. Where it cannot, the message has the name that the user knows.
func TestSSPNewOnce(t *testing.T) {
	dir := workshop(t)
	described(t, filepath.Join(dir, "o.fmu"), strings.Replace(model("o", "output Real y", "input Real u"), `<CoSimulation `, `<CoSimulation canBeInstantiatedOnlyOncePerProcess="true" `, 1))
	done(t, dir, "ssp", "new", "a=o.fmu", "b=o.fmu", "--connect", "a.y:b.u", "-o", "s.ssp")
	contains(t, "the system", done(t, dir, "info", "s.ssp"), "a.y  → b.u")
	_, err := assemble.Open(filepath.Join(dir, "s.ssp"), assemble.Options{})
	if !diag.Has(err, "CC36") || !strings.Contains(err.Error(), filepath.Join("s.ssp", "resources", "o.fmu")) {
		t.Errorf("error %v", err)
	}
}

// Where the set that is there means something else by the name of a unit, the value is
// written without a unit, which is that of the variable (ssp 39); all else stays.
func TestSSPSetUnitOfOther(t *testing.T) {
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
<ssd:System name="s"><ssd:ParameterBindings><ssd:ParameterBinding source="s.ssv"/></ssd:ParameterBindings><ssd:Elements><ssd:Component name="a" source="a.fmu"/><ssd:Component name="b" source="b.fmu"/></ssd:Elements></ssd:System></ssd:SystemStructureDescription>`)
	const set = `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"><ssv:Parameters><ssv:Parameter name="a.k"><ssv:Real value="7"UNIT/></ssv:Parameter></ssv:Parameters>
<ssv:Units><ssc:Unit name="N"><ssc:BaseUnit kg="1" m="1" s="-2" factor="10"/></ssc:Unit></ssv:Units></ssv:ParameterSet>`
	write(t, filepath.Join(dir, "s.ssv"), strings.Replace(set, "UNIT", ` unit="N"`, 1))
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "a.k=9", "--force"), "a.k  70 → 9")
	_, got, _ := strings.Cut(read(t, filepath.Join(dir, "s.ssv")), "?>")
	got = strings.TrimSpace(regexp.MustCompile(`>\s+<`).ReplaceAllString(got, "><")) // the layout is ours
	if want := strings.NewReplacer("UNIT", "", `"7"`, `"9"`, "\n", "").Replace(set); got != want {
		t.Errorf("the set is\n%s\nnot\n%s", got, want)
	}
	done(t, dir, "ssp", "set", "s.ssd", "b.k=8", "--force")
	if s := assembled(t, filepath.Join(dir, "s.ssd")).Settings(); len(s) != 2 || s[0].Value != "9" || s[1].Value != "8" {
		t.Errorf("values %v", s)
	}
}

// A value that the system cannot take is told as such: its file is never written.
func TestSSPSetUnwritten(t *testing.T) {
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), `<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssd:System name="s"><ssd:Connectors><ssd:Connector name="k" kind="parameter"/></ssd:Connectors><ssd:Elements><ssd:Component name="b" source="b.fmu"/></ssd:Elements>
<ssd:Connections><ssd:Connection startConnector="k" endElement="b" endConnector="e"><ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="2"/></ssc:IntegerMappingTransformation></ssd:Connection></ssd:Connections></ssd:System></ssd:SystemStructureDescription>`)
	for _, args := range [][]string{{"--force"}, {"-o", "t.ssp"}} {
		code, _, stderr := in(t, dir, append([]string{"ssp", "set", "s.ssd", "k=7"}, args...)...)
		if code != exitUsage || strings.Contains(stderr, ".ssv") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
		contains(t, "the error", stderr, "the values given: ", "Parameter[@name='k']", "is not an item of the enumeration")
	}
}
