package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	"github.com/macrostep/macrostep/test/probe"
)

// described writes an FMU that holds only its description: the commands need no more.
func described(t testing.TB, path, description string) {
	t.Helper()
	if _, err := probe.Zip(path, "modelDescription.xml", description); err != nil {
		t.Fatal(err)
	}
}

// model returns the description of an FMU with variables given as "causality type name unit start".
func model(name string, variables ...string) string {
	var list, outputs strings.Builder
	for i, v := range variables {
		f := append(strings.Fields(v), "", "", "")
		causality, kind, variable, unit, start := f[0], f[1], f[2], f[3], f[4]
		variability, attributes := "", ""
		if unit != "" {
			attributes += ` unit="` + unit + `"`
		}
		if kind == "Enumeration" {
			attributes += ` declaredType="mode"`
		}
		if kind != "Real" {
			variability = ` variability="discrete"`
		}
		switch causality {
		case "parameter":
			variability = ` variability="fixed"`
			attributes += ` start="` + start + `"`
		case "calculatedParameter":
			variability = ` variability="fixed"`
		case "input":
			attributes += ` start="0"`
		case "output":
			fmt.Fprintf(&outputs, `<Unknown index="%d"/>`, i+1)
		}
		fmt.Fprintf(&list, `<ScalarVariable name="%s" valueReference="%d" causality="%s"%s><%s%s/></ScalarVariable>`,
			variable, i+1, causality, variability, kind, attributes)
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="` + name + `" guid="{` + name + `}"><CoSimulation modelIdentifier="` + name + `"/>
<UnitDefinitions><Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit><Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>` +
		`<Unit name="km/h"><BaseUnit m="1" s="-1" factor="0.2777777777777778"/></Unit><Unit name="odd"/></UnitDefinitions>
<TypeDefinitions><SimpleType name="mode"><Enumeration><Item name="off" value="1"/><Item name="` + name + `" value="2"/></Enumeration></SimpleType></TypeDefinitions>
<DefaultExperiment startTime="0" stopTime="5" stepSize="0.01"/>
<ModelVariables>` + list.String() + `</ModelVariables><ModelStructure><Outputs>` + outputs.String() + `</Outputs><InitialUnknowns>` +
		outputs.String() + `</InitialUnknowns></ModelStructure></fmiModelDescription>`
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
	described(t, filepath.Join(dir, "a.fmu"), model("a", "output Real v m/s", "output Real w km/h", "output Integer n", "output Enumeration e",
		"output Real odd odd", "parameter Real k N 2"))
	described(t, filepath.Join(dir, "b.fmu"), model("b", "input Real v m/s", "input Real a_w m/s", "input Real n", "input Enumeration e",
		"input Real odd N", "output Real F N", "parameter Real k N 3"))
	described(t, filepath.Join(dir, "1 c.d.fmu"), model("c", "input Real F N", "output Real v m/s", "input Real alone"))
	return dir
}

// Parts of documents.

const (
	namespaces = ` xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"` +
		` xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"`
	newtons = `<ssd:Units><ssc:Unit name="N"><ssc:BaseUnit kg="1" m="1" s="-2"/></ssc:Unit>` +
		`<ssc:Unit name="kN"><ssc:BaseUnit kg="1" m="1" s="-2" factor="1000"/></ssc:Unit></ssd:Units>`
)

// ssd is a document with the content of its system and what follows it.
func ssd(system, after string) string {
	return `<ssd:SystemStructureDescription version="1.0" name="s"` + namespaces + `><ssd:System name="s">` + system + `</ssd:System>` + after +
		`</ssd:SystemStructureDescription>`
}

func elements(list ...string) string {
	return "<ssd:Elements>" + strings.Join(list, "") + "</ssd:Elements>"
}

func component(name, source string, content ...string) string {
	return `<ssd:Component name="` + name + `" source="` + source + `">` + strings.Join(content, "") + `</ssd:Component>`
}

// connector is one of an element; content is its type.
func connector(name, kind, content string) string {
	return `<ssd:Connectors><ssd:Connector name="` + name + `" kind="` + kind + `">` + content + `</ssd:Connector></ssd:Connectors>`
}

// connection connects ELEMENT.CONNECTOR, or the CONNECTOR of the system itself.
func connection(from, to, transformation string) string {
	end := func(side, name string) string {
		element, variable, ok := strings.Cut(name, ".")
		if !ok {
			return ` ` + side + `Connector="` + name + `"`
		}
		return ` ` + side + `Element="` + element + `" ` + side + `Connector="` + variable + `"`
	}
	return `<ssd:Connections><ssd:Connection` + end("start", from) + end("end", to) + `>` + transformation + `</ssd:Connection></ssd:Connections>`
}

// parameters is a set of one parameter.
func parameters(name, value string) string {
	return `<ssv:ParameterSet version="1.0" name="p" author="me"` + namespaces + `><ssv:Parameters><ssv:Parameter name="` + name + `" description="kept">` +
		value + `</ssv:Parameter></ssv:Parameters></ssv:ParameterSet>`
}

// binding binds sets: files by name, else a set that is written there.
func binding(sets ...string) string {
	text := ""
	for _, s := range sets {
		if strings.HasPrefix(s, "<") {
			text += `<ssd:ParameterBinding><ssd:ParameterValues>` + s + `</ssd:ParameterValues></ssd:ParameterBinding>`
		} else {
			text += `<ssd:ParameterBinding source="` + s + `"/>`
		}
	}
	return `<ssd:ParameterBindings>` + text + `</ssd:ParameterBindings>`
}

// in calls the program in a folder.
func in(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callIn(t.Context(), t, dir, nil, args...)
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

// content returns the files of a folder.
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

// unchanged checks that the program refuses command lines, words separated by |, with messages whose
// parts are separated by …, and that no file is changed, made or left.
func unchanged(t *testing.T, dir string, messages map[string]string) {
	t.Helper()
	before := content(t, dir)
	for args, want := range messages {
		code, stdout, stderr := in(t, dir, strings.Split(args, "|")...)
		if code != exitUsage || strings.Contains(stdout, "wrote") {
			t.Errorf("%s: exit code %d, output %s", args, code, stdout)
		}
		contains(t, args, stderr, append(strings.Split(want, "…"), "macrostep: ")...)
		if after := content(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: the files %v became %v", args, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		}
	}
}

// assembled opens a system until the end of the test.
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

// values lists the settings of a system.
func values(t *testing.T, path string) string {
	t.Helper()
	var list []string
	for _, s := range assembled(t, path).Settings() {
		list = append(list, s.Name+"="+s.Value)
	}
	return strings.Join(list, " ")
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
	unchanged(t, dir, map[string]string{"ssp|new|a.fmu|-o|car.ssp": "car.ssp exists already; choose another name, or give --force"})
	done(t, dir, "ssp", "new", "--force", "-o=car.ssp", "chassis=quarter_chassis_a.fmu", "--connect-by-name", "wheel=quarter_wheel_a.fmu")
	if read(t, car) != first {
		t.Error("the same call gives other bytes")
	}
	// A document refers to FMUs where they are.
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := in(t, dir, "ssp", "new", "1 c.d.fmu", "-o", "sub/one.ssd")
	contains(t, "a file outside", stderr, "note: ", "lies outside the folder of the document")
	contains(t, "the document", read(t, filepath.Join(dir, "sub", "one.ssd")), `name="1_c_d" source="../1%20c.d.fmu"`, `startTime="0" stopTime="5"`)
}

// Variables of the same name are connected; inputs left open are listed with the reason.
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
	path := filepath.Join(dir, "s.ssp")
	if list := connections(t, path); !slices.Equal(list, []string{"a.odd b.odd", "a.w b.a_w", "b.F 1_c_d.F", "b.F second.F"}) {
		t.Errorf("connections %v", list)
	}
	pkg, err := ssp.Open(path, nil)
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
	if needed, err := edit.Needed(pkg); err != nil || len(needed) != 4 { // an FMU used twice is there once
		t.Errorf("%v, %v", needed, err)
	}
	out = done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "c=1 c.d.fmu", "--connect-by-name", "--connect", "a.v:b.v", "--dry-run", "--parameters")
	contains(t, "a choice", out, "  a.v    → b.v", "Nothing is written.")
	messages := map[string]string{
		"ssp|new|a.fmu":                    "--output FILE is missing",
		"ssp|new|a.fmu|-o|x.zip":           "must end in .ssp or .ssd",
		"ssp|new|a.fmu|-o|no/where.ssp":    "no/where.ssp cannot be written",
		"ssp|new|a=a.fmu|-o|n.ssp|a=b.fmu": "two components are called a",
	}
	for args, want := range map[string]string{
		"--connect|a.v":       `"a.v" is not COMPONENT.OUTPUT:COMPONENT.INPUT`,
		"--connect|a.V:b.v":   `component a has no output "V"; did you mean "v"?`,
		"--connect|a.k:b.v":   "a.k is not an output: its causality is parameter",
		"--connect|a.xyz:b.v": `component a has no output "xyz"; it has `,
		"--connect|x.v:b.v":   `"x.v" names no component; the components are a, b`,
		"--connect|a.v:b.odd": "a.v cannot feed b.odd: its unit m/s cannot be converted into N",
		"--connect|a.n:b.v":   "it is of type Integer",
		"--step-size|0":       "--step-size: 0 is not greater than 0",
		"--stop-time|-1":      "the stop time -1 is not after the start time 0",
		"--algorithm|magic":   `no algorithm is called "magic"`,
		"--for|modelica":      `--for: "modelica" is not one of omsimulator, osp`,
		"no.fmu":              "no.fmu: there is no such FMU",
		".":                   ". is a folder",
		"x.y=a.fmu":           "the name of a component must not be empty or contain",
	} {
		messages["ssp|new|a=a.fmu|b.fmu|-o|new.ssp|"+args] = want
	}
	unchanged(t, dir, messages)
}

// --for adds what other tools need, and reports what they cannot handle.
func TestSSPNewFor(t *testing.T) {
	dir := workshop(t)
	code, out, stderr := in(t, dir, "ssp", "new", "a.fmu", "b.fmu", "1 c.d.fmu", "--connect-by-name", "--connect", "a.e:b.e",
		"--for", "omsimulator,osp", "--tolerance=1e-5", "-o", "my system.ssp")
	if code != exitDone || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	contains(t, "the warning", stderr, `warning: my system.ssp/SystemStructure.ssd:`, `the enumerations of "a.e" and "b.e" differ`)
	contains(t, "the notes", out, "OSP fails with connectors of type Enumeration: a.e", "OSP does not convert units, and so couples km/h with m/s: a.w to b.a_w", "c1_c_d")
	pkg, err := ssp.Open(filepath.Join(dir, "my system.ssp"), &diag.List{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer pkg.Close()
	contains(t, "the document", read(t, filepath.Join(pkg.Dir, pkg.Document())), `name="my_system"`, `<oms:FixedStepMaster description="oms-ma" stepSize="0.01" relativeTolerance="1e-05"/>`,
		`<osp:FixedStepAlgorithm baseStepSize="0.01"/>`, `<ms:Settings xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" version="1" stepSize="0.01" tolerance="1e-05"/>`)
	// The default tolerance is the smallest that an FMU suggests.
	fine := strings.Replace(model("fine", "output Real v m/s"), `stepSize="0.01"`, `stepSize="0.01" tolerance="2e-7"`, 1)
	described(t, filepath.Join(dir, "fine.fmu"), fine)
	done(t, dir, "ssp", "new", "a.fmu", "fine.fmu", "--for", "omsimulator", "--step-size=0.1", "-o", "fine.ssd")
	contains(t, "the tolerance", read(t, filepath.Join(dir, "fine.ssd")), `relativeTolerance="2e-07"`)
	out = done(t, dir, "ssp", "new", "a.fmu", "--for", "osp", "--dry-run")
	contains(t, "enumerations", out, "a.e gets no connector: OSP fails with enumerations")
}

// Enumerations that number their items differently are connected by the names of the items. A
// connection is refused, as in a run, if an item has no counterpart.
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
	unchanged(t, dir, map[string]string{"ssp|new|p.fmu|q.fmu|--connect|q.e:p.i|-o|r.ssd": "q.e cannot feed p.i…no item idle to map to"})
}

// An FMU that can be instantiated once per process may be used twice: a run isolates it. Without
// isolation, the error names the file that the user knows.
func TestSSPNewOnce(t *testing.T) {
	dir := workshop(t)
	described(t, filepath.Join(dir, "o.fmu"), strings.Replace(model("o", "output Real y", "input Real u"),
		`<CoSimulation `, `<CoSimulation canBeInstantiatedOnlyOncePerProcess="true" `, 1))
	done(t, dir, "ssp", "new", "a=o.fmu", "b=o.fmu", "--connect", "a.y:b.u", "-o", "s.ssp")
	contains(t, "the system", done(t, dir, "info", "s.ssp"), "a.y  → b.u")
	_, err := assemble.Open(filepath.Join(dir, "s.ssp"), assemble.Options{})
	if !diag.Has(err, "CC36") || !strings.Contains(err.Error(), filepath.Join("s.ssp", "resources", "o.fmu")) {
		t.Errorf("error %v", err)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestSSPPack(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "-o", "s.ssp")
	done(t, dir, "ssp", "unpack", "s.ssp")
	write(t, filepath.Join(dir, "s", ".gitignore"), "*.csv")
	notes := write(t, filepath.Join(dir, "s", "notes.txt"), "kept")
	if mine, theirs := mode(t, notes), mode(t, filepath.Join(dir, "s", "SystemStructure.ssd")); mine != theirs {
		t.Errorf("an unpacked file has mode %v, a new one %v", theirs, mine)
	}
	code, out, stderr := in(t, dir, "ssp", "pack", "s", "-o", "again.ssp")
	if code != exitDone || out != "wrote again.ssp: 4 files\n" || stderr != "left out: .gitignore\n" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if err := os.Remove(notes); err != nil {
		t.Fatal(err)
	}
	in(t, dir, "ssp", "pack", "s", "--output", "again.ssp", "--force")
	if read(t, filepath.Join(dir, "s.ssp")) != read(t, filepath.Join(dir, "again.ssp")) {
		t.Error("unpacked and packed, the package has other bytes")
	}
	// With --force, files of the package are replaced and others stay.
	write(t, filepath.Join(dir, "s", "SystemStructure.ssd"), "mine")
	write(t, notes, "kept")
	fmu, away := filepath.Join(dir, "s", "resources", "b.fmu"), filepath.Join(dir, "s", "resources", "away")
	if err := errors.Join(os.Rename(fmu, away), os.Mkdir(fmu, 0o777)); err != nil {
		t.Fatal(err)
	}
	unchanged(t, dir, map[string]string{
		"ssp|pack|s":                   "s.ssp exists already",
		"ssp|pack|s.ssp|-o|t.ssp":      "s.ssp is a package already",
		"ssp|pack|.":                   "has no SystemStructure.ssd",
		"ssp|pack|nothing":             "nothing",
		"ssp|unpack|s.ssp":             "s exists already",
		"ssp|unpack|a.fmu|-o|no/where": "no",
		"ssp|unpack|nothing.ssp":       "nothing.ssp",
		"ssp|unpack|s.ssp|--force":     "is not an ordinary file and is not replaced",
	})
	if err := errors.Join(os.Remove(fmu), os.Rename(away, fmu)); err != nil {
		t.Fatal(err)
	}
	done(t, dir, "ssp", "unpack", "s.ssp", "--force")
	if files := content(t, filepath.Join(dir, "s")); files["notes.txt"] != "kept" || !strings.Contains(files["SystemStructure.ssd"], "System name") || len(files) != 5 {
		t.Errorf("%d files", len(files))
	}
	// A package of a document holds the files that it refers to, and none from outside its folder.
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "-o", "alone.ssd")
	if out := done(t, dir, "ssp", "pack", "alone.ssd"); out != "wrote alone.ssp: 3 files\n" {
		t.Error(out)
	}
	in(t, dir, "ssp", "new", "a.fmu", "-o", "s/out.ssd")
	unchanged(t, dir, map[string]string{"ssp|pack|s/out.ssd": "a.fmu lies outside of the folder of the document"})
	if err := os.Symlink(filepath.Join(dir, "a.fmu"), filepath.Join(dir, "s", "link.txt")); err == nil {
		refuses(t, dir, nil, map[string]string{"ssp|pack|s|-o|linked.ssp": "is not a regular file; a package can contain only regular files"})
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
	path := filepath.Join(dir, "t.ssp")
	if read(t, filepath.Join(dir, "s.ssp")) != original || values(t, path) != "a.k=5 b.k=7" {
		t.Errorf("values %s, or s.ssp is changed", values(t, path))
	}
	// An existing set is changed, and nothing else.
	contains(t, "the change", done(t, dir, "ssp", "set", "t.ssp", "a.k=6", "--force"), "a.k  5 → 6")
	if got := values(t, path); got != "a.k=6 b.k=7" {
		t.Errorf("values %s", got)
	}
	unchanged(t, dir, map[string]string{
		"ssp|set|s.ssp|a.k=1":               "s.ssp would be changed; name another file with --output, or give --force",
		"ssp|set|s.ssp|a.k=1|-o|s.ssp":      "s.ssp exists already",
		"ssp|set|s.ssp|a.k=1|-o|s.ssd":      "must end in .ssp",
		"ssp|set|s.ssp|a.k=x|--force":       "a.k=x: the variable is a Real; give a finite number",
		"ssp|set|s.ssp|a.kk=1|--force":      `component a has no variable "kk"`,
		"ssp|set|s.ssp|c.k=1|--force":       `"c.k" names no component`,
		"ssp|set|s.ssp|a.v=1|--force":       "it cannot be set: its causality is output",
		"ssp|set|s.ssp|a.k=1|a.k=2|--force": "a.k is given twice",
		"ssp|set|s.ssp|a.k|--force":         `"a.k" is not COMPONENT.VARIABLE=VALUE`,
		"ssp|set|s.ssp":                     "COMPONENT.VARIABLE=VALUE is missing, or a setting",
		"ssp|set|a.fmu|a.k=1|--force":       "an FMU alone has no parameter sets",
		"ssp|set|no.ssp|a.k=1|--force":      "no.ssp",
	})
}

// The values override those of every level, and those bound later (ssp 36). The rest of the document
// stays as it is.
func TestSSPSetWins(t *testing.T) {
	const geometry = `<ssd:ElementGeometry x1="0" y1="0" x2="1" y2="1"/>`
	k := parameters("a.k", `<ssv:Real value="1"/>`)
	for name, tt := range map[string]struct{ bindings, file string }{
		"a set of its own": {binding("top.ssv"), "top.ssv"},
		"inline":           {binding(k), "s.ssv"},
		"a prefix":         {`<ssd:ParameterBindings><ssd:ParameterBinding source="own.ssv" prefix="a."/></ssd:ParameterBindings>`, "s.ssv"},
		"shared":           {binding("top.ssv", "top.ssv"), "s.ssv"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workshop(t)
			write(t, filepath.Join(dir, "top.ssv"), k)
			write(t, filepath.Join(dir, "own.ssv"), parameters("k", `<ssv:Real value="1"/>`))
			path := write(t, filepath.Join(dir, "s.ssd"), ssd(tt.bindings+elements(component("a", "a.fmu", geometry, binding("own.ssv"))), ""))
			out := done(t, dir, "ssp", "set", path, "a.k=9", "--force")
			contains(t, "the change", out, "a.k  1 → 9", "("+tt.file+")")
			files := content(t, dir)
			contains(t, tt.file, files[tt.file], `<ssv:Real value="9" unit="N"/>`)
			if tt.file == "top.ssv" {
				contains(t, tt.file, files[tt.file], `author="me"`, `description="kept"`)
			}
			contains(t, "the document", files["s.ssd"], geometry)
			if got := values(t, path); got != "a.k=9" {
				t.Errorf("values %s", got)
			}
		})
	}
}

// asked lists the settings of the documents of a system, without their places.
func asked(t *testing.T, path string) string {
	t.Helper()
	var list []string
	a, err := assemble.Open(path, looking(simulate.Dialects(nil)))
	t.Cleanup(func() { a.Close() })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Asked {
		list = append(list, s.Name+" "+s.Text)
	}
	return strings.Join(list, ", ")
}

// Settings are written into the annotation of macrostep, alone and with values, wherever the system is.
func TestSSPSetSettings(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "--connect", "a.v:b.v", "-o", "s.ssp")
	out := done(t, dir, "ssp", "set", "s.ssp", "a.k=5", "--step-size", "5ms", "--algorithm", "implicit", "--param", "order=1", "-o", "t.ssp")
	if want := `a.k          2 → 5
step-size    0.01 → 0.005
algorithm    explicit → implicit
param order  none → 1
wrote t.ssp (resources/parameters.ssv)
`; out != want {
		t.Error(out)
	}
	path := filepath.Join(dir, "t.ssp")
	if got := asked(t, path) + ", " + values(t, path); got != "step-size 0.005, algorithm implicit, param order=1, a.k=5" {
		t.Error(got)
	}
	contains(t, "info", done(t, dir, "info", "t.ssp"), "Step       0.005 s (annotation of macrostep)", "Algorithm  implicit order=1")
	before := content(t, dir)["t.ssp"]
	done(t, dir, "ssp", "set", "t.ssp", "--param", "order=1", "--algorithm", "implicit", "--force")
	if content(t, dir)["t.ssp"] != before {
		t.Error("the same settings once more give other bytes")
	}
	contains(t, "a parameter more", done(t, dir, "ssp", "set", "t.ssp", "--param", "substeps=3", "--force"), "param substeps  none → 3")
	unchanged(t, dir, map[string]string{
		"ssp|set|t.ssp|--algorithm|xplicit|-o|u.ssp":             `no algorithm is called "xplicit"; did you mean "explicit"?`,
		"ssp|set|t.ssp|--algorithm|explicit|--param|x=1|--force": `algorithm explicit has no parameter "x"`,
		"ssp|set|t.ssp|--param|order=9|--force":                  "parameter order=9: must be",
		"ssp|set|t.ssp|--param|order|--force":                    `--param: "order" is not KEY=VALUE`,
		"ssp|set|t.ssp|--param|order=1|--param|order=2|--force":  "order is given twice",
		"ssp|set|t.ssp|--step-size|0|--force":                    "0 is not greater than 0",
		"ssp|set|t.ssp|--step-size|1|a.k=x|--force":              "a.k=x: the variable is a Real",
		"ssp|set|t.ssp|--step-size|1":                            "t.ssp would be changed",
		"ssp|set|a.fmu|--step-size|1|--force":                    "an FMU alone has no parameter sets and no annotation of macrostep",
	})
	out = done(t, dir, "ssp", "set", "t.ssp", "--algorithm", "explicit", "--force")
	contains(t, "the change", out, "algorithm       implicit → explicit\nparam order     1 → none\nparam substeps  3 → none\n", "(SystemStructure.ssd)")
	if got := asked(t, path); got != "step-size 0.005, algorithm explicit" {
		t.Error(got)
	}
	// A variant, a folder, a document, and one that becomes a package.
	system := elements(component("a", "a.fmu"))
	done(t, dir, "ssp", "unpack", "s.ssp", "-o", "folder")
	write(t, filepath.Join(dir, "folder", "v.ssd"), ssd(elements(component("a", "resources/a.fmu")), ""))
	write(t, filepath.Join(dir, "alone.ssd"), ssd(system, ""))
	for _, tt := range [][2]string{{"folder#v.ssd", ""}, {"folder", ""}, {"alone.ssd", "packed.ssp"}, {"alone.ssd", ""}} {
		args := []string{"ssp", "set", tt[0], "--step-size", "0.002", "--force"}
		if tt[1] != "" {
			args = append(args, "-o", tt[1])
		}
		done(t, dir, args...)
		if got := asked(t, filepath.Join(dir, cmp.Or(tt[1], tt[0]))); got != "step-size 0.002" {
			t.Errorf("%v: %s", tt, got)
		}
	}
}

// Settings of macrostep override those of other tools, which stay. A step size also overrides the first step that they give.
func TestSSPSetOverridesTools(t *testing.T) {
	dir := workshop(t)
	tools := `<ssd:Annotations><ssc:Annotation type="org.openmodelica"><oms:Annotations ` +
		`xmlns:oms="https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"><oms:SimulationInformation name="s">` +
		`<oms:VariableStepMaster description="oms-mav" initialStepSize="1e-6" relativeTolerance="1e-3"/>` +
		`</oms:SimulationInformation></oms:Annotations></ssc:Annotation></ssd:Annotations>`
	path := write(t, filepath.Join(dir, "s.ssd"), ssd(elements(component("a", "a.fmu"))+tools, ""))
	_, out, _ := in(t, dir, "ssp", "set", "s.ssd", "--step-size", "0.01", "--force")
	contains(t, "the step", out, "step-size         1e-06 → 0.01", "param control.h0  1e-06 → auto")
	contains(t, "all settings", asked(t, path), "step-size 0.01, param control.h0=auto, ", "algorithm richardson, ", "param control.rtol=0.001")
	_, out, _ = in(t, dir, "ssp", "set", "s.ssd", "--algorithm", "explicit", "--force")
	contains(t, "the algorithm", out, "algorithm           richardson → explicit", "param control.h0    auto → none", "param control.rtol  0.001 → none")
	if got := asked(t, path); strings.Contains(got, "param") || !strings.Contains(got, "step-size 0.01, algorithm explicit") {
		t.Error(got)
	}
	contains(t, "the document", read(t, path), "VariableStepMaster")
	write(t, filepath.Join(dir, "OspSystemStructure.xml"), `<OspSystemStructure version="0.1" `+
		`xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure"><Simulators><Simulator name="a" source="a.fmu"/></Simulators></OspSystemStructure>`)
	unchanged(t, dir, map[string]string{
		"ssp|set|OspSystemStructure.xml|--step-size|1|--force": "is not an .ssd and has no parameter sets and no annotation of macrostep"})
}

// If a value would have no effect, nothing is changed: files already written are put back.
func TestSSPSetPutsBack(t *testing.T) {
	dir := workshop(t)
	document := func(connections string) string {
		return ssd(connector("stiffness", "parameter", "<ssc:Real/>")+binding(parameters("stiffness", `<ssv:Real value="4"/>`))+
			elements(component("a", "a.fmu", connector("k", "parameter", "<ssc:Real/>")))+connections, "")
	}
	path := write(t, filepath.Join(dir, "s.ssd"), document(connection("stiffness", "a.k", "")))
	write(t, filepath.Join(dir, "idle.ssd"), document(""))
	unchanged(t, dir, map[string]string{
		"ssp|set|s.ssd|a.k=9|--force":           "a.k would keep the value 4…over a connection of the system",
		"ssp|set|s.ssd|a.k=9|-o|s.ssp":          "a.k would keep the value 4…stiffness=VALUE",
		"ssp|set|s.ssd|stiffness=soft|-o|s.ssp": "stiffness=soft…give a finite number",
		"ssp|set|idle.ssd|stiffness=9|--force":  "stiffness would reach no FMU",
	})
	// The connector itself takes a value.
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "stiffness=9.5", "--force"), "stiffness  4 → 9.5")
	if s := assembled(t, path).Settings(); len(s) != 1 || s[0].Value != "9.5" || s[0].At != "stiffness" {
		t.Errorf("values %v", s)
	}
	// An error about a new value names the value: its file is never written.
	write(t, filepath.Join(dir, "mapped.ssd"), ssd(connector("k", "parameter", "")+elements(component("b", "b.fmu"))+
		connection("k", "b.e", `<ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="2"/></ssc:IntegerMappingTransformation>`), ""))
	for _, args := range []string{"--force", "-o|t.ssp"} {
		args = "ssp|set|mapped.ssd|k=7|" + args
		unchanged(t, dir, map[string]string{args: "the values given: …Parameter[@name='k']…is not an item of the enumeration"})
		if _, _, stderr := in(t, dir, strings.Split(args, "|")...); strings.Contains(stderr, ".ssv") {
			t.Error(stderr)
		}
	}
}

// A connector of a nested system is named by its path, and its value is in its unit. Without a type,
// the form of the value decides.
func TestSSPSetConnector(t *testing.T) {
	document := func(content string) string {
		return ssd(elements(`<ssd:System name="mid.dle">`+connector("k", "parameter", content)+elements(component("a", "a.fmu"))+
			connection("k", "a.k", "")+`</ssd:System>`), newtons)
	}
	for _, tt := range []struct{ content, value, want, element string }{
		{`<ssc:Real unit="kN"/>`, "3", "3000", `<ssv:Real value="3" unit="kN"/>`},
		{`<ssc:Real/>`, "3", "3", `<ssv:Real value="3"/>`},
		{``, "3.5", "3.5", `<ssv:Real value="3.5"/>`},
		{``, "3", "3", `<ssv:Real value="3"/>`}, // the type of the variable behind it
	} {
		dir := workshop(t)
		path := write(t, filepath.Join(dir, "s.ssd"), document(tt.content))
		done(t, dir, "ssp", "set", "s.ssd", "mid.dle.k="+tt.value, "--force")
		contains(t, "the set", content(t, dir)["s.ssv"], tt.element)
		if got := values(t, path); got != "mid.dle.a.k="+tt.want {
			t.Errorf("%s: values %s", tt.content, got)
		}
		unchanged(t, dir, map[string]string{
			"info|s.ssd|--explain|mid.dle.k":       `"mid.dle.k" is a connector of a system; it gives mid.dle.a.k a value`,
			"ssp|set|s.ssd|mid.dle.k=soft|--force": "Real; give a finite number",
			"ssp|set|s.ssd|mid.dle.q=1|--force":    `"mid.dle.q" names no component`,
		})
	}
}

// If a component is itself a system, the value of its connector is in the unit that the connector has
// on the component; the system inside may use another.
func TestSSPSetConnectorUnits(t *testing.T) {
	dir := workshop(t)
	write(t, filepath.Join(dir, "in.ssd"), ssd(connector("k", "parameter", `<ssc:Real unit="N"/>`)+binding(parameters("k", `<ssv:Real value="4000"/>`))+
		elements(component("a", "a.fmu"))+connection("k", "a.k", ""), newtons))
	nested := strings.Replace(component("i", "in.ssd", connector("k", "parameter", `<ssc:Real unit="kN"/>`)), "source=", `type="application/x-ssp-definition" source=`, 1)
	path := write(t, filepath.Join(dir, "s.ssd"), ssd(elements(nested), newtons))
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "i.k=0.3", "--force"), "i.k  4 → 0.3")
	if got := values(t, path); got != "i.a.k=300" {
		t.Errorf("values %s", got)
	}
	contains(t, "the change back", done(t, dir, "ssp", "set", "s.ssd", "i.k=4", "--force"), "i.k  0.3 → 4")
}

// If a connection overrides a value, the message names the connection: an input keeps the value until
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
	described(t, filepath.Join(dir, "c.fmu"), model("c", "parameter Real k N 2", "calculatedParameter Real q N"))
	write(t, filepath.Join(dir, "p.ssd"), ssd(elements(component("a", "a.fmu"), component("c", "c.fmu"))+connection("c.q", "a.k", ""), ""))
	unchanged(t, dir, map[string]string{
		"ssp|set|p.ssd|a.k=7|--force":  "the value of a.k would have no effect…takes the value of c.q → a.k (p.ssd:",
		"ssp|set|p.ssd|a.k=7|-o|u.ssp": "u.ssp is not written: …takes the value of c.q → a.k (p.ssd:",
	})
}

// If the existing set gives the unit's name another meaning, the value is written without a unit, which
// means that of the variable (ssp 39); all else stays.
func TestSSPSetUnitOfOther(t *testing.T) {
	dir := workshop(t)
	path := write(t, filepath.Join(dir, "s.ssd"), ssd(binding("s.ssv")+elements(component("a", "a.fmu"), component("b", "b.fmu")), ""))
	const set = `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"><ssv:Parameters><ssv:Parameter name="a.k"><ssv:Real value="7"UNIT/></ssv:Parameter></ssv:Parameters>
<ssv:Units><ssc:Unit name="N"><ssc:BaseUnit kg="1" m="1" s="-2" factor="10"/></ssc:Unit></ssv:Units></ssv:ParameterSet>`
	write(t, filepath.Join(dir, "s.ssv"), strings.Replace(set, "UNIT", ` unit="N"`, 1))
	contains(t, "the change", done(t, dir, "ssp", "set", "s.ssd", "a.k=9", "--force"), "a.k  70 → 9")
	_, got, _ := strings.Cut(read(t, filepath.Join(dir, "s.ssv")), "?>")
	got = strings.TrimSpace(regexp.MustCompile(`>\s+<`).ReplaceAllString(got, "><")) // without layout
	if want := strings.NewReplacer("UNIT", "", `"7"`, `"9"`, "\n", "").Replace(set); got != want {
		t.Errorf("the set is\n%s\nnot\n%s", got, want)
	}
	done(t, dir, "ssp", "set", "s.ssd", "b.k=8", "--force")
	if got := values(t, path); got != "a.k=9 b.k=8" {
		t.Errorf("values %s", got)
	}
}

// If FMUs are missing, info shows the content of the documents before the error.
func TestInfoWithoutFMUs(t *testing.T) {
	dir := t.TempDir()
	factor := func(f string) string { return `<ssc:LinearTransformation factor="` + f + `"/>` }
	for name, want := range map[string][]string{
		"u": {"a.y  → m.b.u  × 6  via m.i", "m.b.mode  = slow", "gone/b.fmu  1 input, 0 outputs  missing"},
		"v": {"a.y  → m.i    × 2", "m.i  → m.b.u  × 3"}, // as written
	} {
		nested := `<ssd:System name="m">` + connector("i", "input", "") + elements(component("b", "gone/b.fmu", connector(name, "input", ""))) +
			connection("i", "b.u", factor("3")) + `</ssd:System>`
		write(t, filepath.Join(dir, "s.ssd"), ssd(binding(parameters("m.b.mode", `<ssv:String value="slow"/>`))+
			elements(component("a", "gone/a.fmu", connector("y", "output", "")), nested)+connection("a.y", "m.i", factor("2")),
			`<ssd:DefaultExperiment startTime="0" stopTime="7"/>`))
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

// --explain may be repeated, and --set shows the values of a run with it.
func TestInfoExplainSet(t *testing.T) {
	dir := workshop(t)
	write(t, filepath.Join(dir, "s.ssd"), ssd(elements(component("a", "a.fmu"), component("b", "b.fmu")), ""))
	out := done(t, dir, "info", "s.ssd", "--explain", "a.k", "--explain", "b.k", "--set", "b.k=7")
	contains(t, "the explanations", out, "a.k: parameter", "= 2  in force", "b.k: parameter", "= 3  overridden", "given by the user", "= 7  in force")
	contains(t, "the table", done(t, dir, "info", "s.ssd", "--set", "b.k=7"), "b.k  = 7  --set")
	// Errors about unknown names follow the explanations of the others.
	code, stdout, stderr := in(t, dir, "info", "s.ssd", "--explain", "b.q", "--explain", "a.k", "--explain", "c.k")
	if code != exitUsage || strings.Contains(stdout, "b.k:") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	contains(t, "the explanation", stdout, "a.k: parameter", "= 2  in force")
	contains(t, "the errors", stderr, `no variable "q"`, `"c.k" names no component`)
	for args, want := range map[string]string{"a.k b.k": "a.k b.k", "b.q a.k": "a.k"} {
		first, second, _ := strings.Cut(args, " ")
		_, stdout, _ = in(t, dir, "info", "s.ssd", "--json", "--explain", first, "--explain", second)
		var list []assemble.Explanation
		var names []string
		err := json.Unmarshal([]byte(stdout), &list)
		for _, e := range list {
			names = append(names, e.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%v: %s", err, stdout)
		}
	}
	unchanged(t, dir, map[string]string{
		"info|s.ssd|--explain|a.k|--explain|b.q": `no variable "q"`,
		"info|s.ssd|--set|b.k":                   "not NAME=VALUE",
		"info|a.fmu|--set|b.k=1":                 "the flag is for systems",
	})
}

func TestSSPGraph(t *testing.T) {
	dir := workshop(t)
	done(t, dir, "ssp", "new", "a.fmu", "b.fmu", "1 c.d.fmu", "--connect-by-name", "--connect", "a.v:b.v", "-o", "s.ssd")
	if out := done(t, dir, "ssp", "graph", "s.ssd"); out != "wrote s.svg: 3 components, 4 connections\n" {
		t.Error(out)
	}
	svg := read(t, filepath.Join(dir, "s.svg"))
	contains(t, "the picture", svg, ">a<", ">b<", ">1_c_d<", "a.w → b.a_w  ×0.277778")
	if done(t, dir, "ssp", "graph", "s.ssd", "-o", "-") != svg {
		t.Error("the standard output gets another picture")
	}
	unchanged(t, dir, map[string]string{"ssp|graph|s.ssd": "s.svg exists already", "ssp|graph|no.ssp": "no.ssp"})
	if err := os.Remove(filepath.Join(dir, "b.fmu")); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := in(t, dir, "ssp", "graph", "s.ssd", "--force")
	if code != exitDone || !strings.Contains(out, "3 components, 4 connections") {
		t.Errorf("exit code %d: %s", code, out)
	}
	contains(t, "the warning", stderr, "warning: the picture is made of the document alone", "b.fmu")
}

// Of a large system a part is drawn: nested systems as one box each, or the neighbours of some
// components. A picture of too many components comes with a warning.
func TestSSPGraphPart(t *testing.T) {
	dir := workshop(t)
	var list []string
	for i := range 160 {
		list = append(list, component(fmt.Sprint("c", i), "b.fmu", connector("v", "input", "")))
	}
	inner := connection("v", "c0.v", "") + connection("v", "c1.v", "") + connection("v", "c2.v", "")
	inner = strings.ReplaceAll(inner, "</ssd:Connections><ssd:Connections>", "")
	write(t, filepath.Join(dir, "s.ssd"), ssd(elements(component("first", "a.fmu", connector("v", "output", "")),
		`<ssd:System name="sub">`+connector("v", "input", "")+elements(list...)+inner+`</ssd:System>`)+connection("first.v", "sub.v", ""), ""))
	code, out, stderr := in(t, dir, "ssp", "graph", "s.ssd")
	if code != exitDone || out != "wrote s.svg: 161 components, 3 connections\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	contains(t, "the warning", stderr, "161 components is hard to read; --depth 1")
	folded := done(t, dir, "ssp", "graph", "s.ssd", "-o", "-", "--depth", "1")
	contains(t, "the picture", folded, ">first<", ">sub<", ">160 components<", "first.v → sub.c2.v")
	for args, want := range map[string]string{
		"--depth 1":                      "wrote s.svg: 2 components, 3 connections\n",
		"--around *.c1 --around sub.c7?": "wrote s.svg: 12 components, 1 connections\n",
	} {
		if out := done(t, dir, append([]string{"ssp", "graph", "s.ssd", "--force"}, strings.Fields(args)...)...); out != want {
			t.Errorf("%s: %s", args, out)
		}
	}
	unchanged(t, dir, map[string]string{
		"ssp|graph|s.ssd|--around|x|--force": "--around matches no component",
		"ssp|graph|s.ssd|--depth|-1|--force": "less than 0",
	})
}
