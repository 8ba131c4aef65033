package dialect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files of other tools are recognised by their names and content, and the error names a way to convert them. Others are left to
// the reader of systems.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"a.msim", "simulator 0 0 A #fff \"A.fmu\"\n", "a project of MasterSim, which macrostep does not read; make a system of the same FMUs: macrostep ssp new"},
		{"a.lua", `oms_newModel("m")`, `oms_export("model", "model.ssp")`},
		{"b.lua", `print("x")`, ""},
		{"a.py", "from OMSimulator import SSP", "OMSimulator"},
		{"b.py", "import os", ""},
		{"a.DNG", "", "DACCOSIM"},
		{"a.mabl", "", "Maestro"},
		{"mm.json", `{"fmus": {"{a}": "a.fmu"}, "connections": {}}`, "multi-model of Maestro"},
		{"b.json", `{"fmus": []}`, ""},
		{"a.xml", `<?xml version="1.0"?><entity name="m" class="ptolemy.actor.TypedCompositeActor"/>`, "FIDE"},
		{"b.xml", `<ecos:Scenario xmlns:ecos="http://x"/>`, "Ecos"},
		{"c.xml", `<OspModelDescription/>`, "OspSystemStructure.xml"},
		{"d.xml", `<!-- x --><fmiModelDescription/>`, "give the .fmu"},
		{"e.xml", `<OspSystemStructure/>`, ""},
		{"f.xml", `no XML`, ""},
		{"a.mo", "", "Modelica"},
		{"a.slx", "", "Simulink"},
		{"a.ssd", "", ""},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		err := Foreign(path)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"missing.msim", "folder.json"} {
		if err := Foreign(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
