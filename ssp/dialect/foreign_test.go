package dialect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that are not systems are recognised by their names and content. The error names the command for them, or a way
// to convert those of other tools. What may be a system is left to its reader.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"a.msim", "simulator 0 0 A #fff \"A.fmu\"\n", "a project of MasterSim, which macrostep does not read; make a system of the same FMUs: macrostep ssp new"},
		{"a.lua", `oms_newModel("m")`, `oms_export("model", "model.ssp")`},
		{"b.lua", `print("x")`, "neither XML nor an archive; give an .ssp"},
		{"a.py", "from OMSimulator import SSP", "OMSimulator"},
		{"b.py", "import os", "neither XML nor an archive"},
		{"a.DNG", "", "DACCOSIM"},
		{"a.mabl", "", "Maestro"},
		{"mm.json", `{"fmus": {"{a}": "a.fmu"}, "connections": {}}`, "multi-model of Maestro"},
		{"b.json", `{"fmus": []}`, "neither XML nor an archive"},
		{"a.xml", `<?xml version="1.0"?><entity name="m" class="ptolemy.actor.TypedCompositeActor"/>`, "FIDE"},
		{"b.xml", `<ecos:Scenario xmlns:ecos="http://x"/>`, "Ecos"},
		{"c.xml", `<OspModelDescription/>`, "OspSystemStructure.xml"},
		{"d.xml", `<!-- x --><fmiModelDescription/>`, "or the .fmu"},
		{"e.xml", `<OspSystemStructure/>`, ""},
		{"f.xml", `no XML`, "neither XML nor an archive"},
		{"g.xml", "\ufeff<a/>", ""},
		{"h.xml", "", ""},
		{"a.zip", "PK\x03\x04", ""},
		{"a.mo", "", "Modelica"},
		{"a.slx", "", "Simulink"},
		{"a.ssd", "no XML", ""},
		{"r.csv", "time,a.y\n", "a table, not a system; to look at it: macrostep plot DIR/r.csv; to take inputs from it: macrostep run SYSTEM --input DIR/r.csv"},
		{"r.PARQUET", "PAR1", "macrostep plot DIR/r.PARQUET"},
		{"r.mat", "\x00", "macrostep plot DIR/r.mat"},
		{"r.html", "<!DOCTYPE html>", "a web page, not a system; open it in a browser"},
		{"r.json", `{"versions": {"macrostep": "1"}, "system": "a.ssp", "results": "r.csv"}`, "the manifest of a run, not a system"},
		{"r.checkpoint", "\x89MSCKP\r\n", "to continue its run: macrostep run --resume DIR/r.checkpoint"},
		{"s.yaml", "system: a.ssp\ncollect: [final(a.y)]\n", "a study, not a system; to run it: macrostep study DIR/s.yaml"},
		{"s.json", `{"system": "a.ssp", "collect": []}`, "macrostep study DIR/s.json"},
		{"t.yml", "events: []\n", "a scenario, not a system; to play it: macrostep run SYSTEM --scenario DIR/t.yml"},
		{"t.toml", "[study]\n", "neither XML nor an archive"},
		{"a.ssv", "<ssv:ParameterSet/>", "the .ssp or .ssd that binds it"},
		{"a.ssm", "<ssm:ParameterMapping/>", "the .ssp or .ssd that uses it"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		err := Foreign(path)
		want := strings.ReplaceAll(c.want, "DIR/", dir+string(filepath.Separator))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), want) {
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
