package fmi

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
)

// baseXML keeps every rule, and offers both kinds of FMU.
const baseXML = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="base" guid="{1}">
  <ModelExchange modelIdentifier="base_me"/>
  <CoSimulation modelIdentifier="base"/>
  <UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
  <ModelVariables>
    <ScalarVariable name="p" valueReference="7" causality="parameter" variability="tunable"><Real unit="m" start="2" nominal="1"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="4" causality="output" initial="calculated"><Real unit="m"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="2" dependencies=""/></Outputs>
    <InitialUnknowns><Unknown index="2"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
`

// packed writes an archive with pairs of names and texts.
func packed(t *testing.T, pairs ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fmu")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	z := zip.NewWriter(f)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		w, err := z.Create(pairs[0])
		must(t, err)
		must(t, second(w.Write([]byte(pairs[1]))))
	}
	must(t, z.Close())
	return path
}

// empty reports whether nothing is in a folder.
func empty(t *testing.T, dir string) bool {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	return len(list) == 0
}

// documents are the recommended documents of an FMU that needs a tool.
var documents = []string{"documentation/externalDependencies.txt", "a tool", "documentation/index.html", "<html/>", "documentation/licenses/license.txt", "free"}

// Missing documents are reported (fmi2 9, 11).
func TestDocuments(t *testing.T) {
	tool := strings.Replace(baseXML, `<CoSimulation `, `<CoSimulation needsExecutionTool="true" `, 1)
	named := strings.Replace(tool, `modelName="base"`, `modelName="base" generationTool="Hammer 3" license="none"`, 1)
	for _, c := range []struct {
		name    string
		entries []string
		want    string // of the findings "id message", joined
	}{
		{"all", append([]string{"modelDescription.xml", baseXML}, documents...), ""},
		{"none", []string{"modelDescription.xml", baseXML}, "FA12 the FMU has no documentation/index.html and no licence"},
		{"no licence", []string{"modelDescription.xml", baseXML, "documentation/index.html", ""}, "FA12 the FMU has no licence"},
		{"licence in the description", []string{"modelDescription.xml", strings.Replace(baseXML, `modelName="base"`, `modelName="base" license="free"`, 1), "documentation/index.html", ""}, ""},
		{"tool in HTML", []string{"modelDescription.xml", named, "documentation/externalDependencies.html", "", "documentation/index.html", ""},
			"FA11 the FMU needs Hammer 3 to run; see documentation/externalDependencies.html in it for further requirements"},
		{"tool that says nothing", []string{"modelDescription.xml", named, "documentation/index.html", ""},
			"FA11 the FMU needs Hammer 3 to run; FA11D the FMU has neither documentation/externalDependencies.txt nor .html"},
	} {
		t.Run(c.name, func(t *testing.T) {
			archived := packed(t, c.entries...)
			folder := t.TempDir()
			must(t, archive.Unpack(archived, folder, nil, archive.Limits{}))
			for _, path := range []string{archived, folder} {
				f, l, err := Open(path, OpenOptions{TempDir: t.TempDir(), Strict: true})
				must(t, err)
				f.Close()
				var got []string
				for _, x := range l.Findings {
					got = append(got, x.ID+" "+x.Message)
				}
				if all := strings.Join(got, "; "); all != c.want {
					t.Errorf("%s: %s, want %s", path, all, c.want)
				}
			}
		})
	}
}

// Files without meaning in the standard are ignored (fmi2 11).
func TestForeignContent(t *testing.T) {
	path := packed(t, append(documents, "modelDescription.xml", baseXML,
		"extra/org.example/settings.xml", "<not XML", "extra/binaries/linux64/base.so", "", "terminalsAndIcons/terminalsAndIcons.xml", "<fmiTerminalsAndIcons",
		"terminalsAndIcons/icon.png", "no picture", "model.png", "no picture", "documentation/diagram.svg", "<svg", "unheard/of", "x", "read.me", "x")...)
	f, l, err := Open(path, OpenOptions{TempDir: t.TempDir(), Strict: true})
	if err != nil || len(l.Findings) > 0 {
		t.Fatal(err, l.Findings)
	}
	defer f.Close()
	for _, name := range []string{"extra/org.example/settings.xml", "unheard/of"} { // the FMU finds its whole tree
		if _, err := os.Stat(filepath.Join(f.Dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

func TestOpen(t *testing.T) {
	path, temp := packed(t, append(documents, "modelDescription.xml", strings.Replace(baseXML, `<CoSimulation `, `<CoSimulation needsExecutionTool="1" `, 1), "binaries/linux64/base.so", "elf")...), t.TempDir()
	f, l, err := Open(path, OpenOptions{TempDir: temp})
	must(t, err)
	if f.Description.ModelName != "base" || f.Path != path || filepath.Dir(f.Dir) != temp || !strings.HasPrefix(filepath.Base(f.Dir), archive.Prefix) {
		t.Errorf("%+v", f)
	}
	if !strings.HasPrefix(f.Hash, "sha256:") || len(f.Hash) != 7+64 {
		t.Errorf("hash %s", f.Hash)
	}
	if len(l.Findings) != 1 || l.Findings[0].ID != "FA11" || l.Findings[0].Level != diag.Info || !strings.Contains(l.Findings[0].Message, "documentation/externalDependencies.txt") {
		t.Errorf("findings %v", l.Findings)
	}
	if data, err := os.ReadFile(filepath.Join(f.Dir, "binaries", "linux64", "base.so")); err != nil || string(data) != "elf" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(f.Dir, "resources")); err != nil || !info.IsDir() {
		t.Error("there is no folder resources")
	}
	for range 2 {
		must(t, f.Close())
	}
	if !empty(t, temp) {
		t.Error("the temporary folder stands")
	}
}

func TestOpenFolder(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("modelDescription.xml", baseXML)
	hash := func() string {
		t.Helper()
		f, _, err := Open(dir, OpenOptions{TempDir: temp})
		must(t, err)
		if f.Dir != dir || !empty(t, temp) {
			t.Errorf("opened in %s", f.Dir)
		}
		must(t, f.Close())
		return f.Hash
	}
	first := hash()
	write("extra/org.x/a", "a")
	if hash() != first {
		t.Error("extra/ counts")
	}
	write("resources/a", "a")
	second := hash()
	write("resources/a", "b")
	if second == first || hash() == second {
		t.Error("the content does not count")
	}
	if empty(t, dir) {
		t.Error("Close removed the folder of the user")
	}
}

func TestOpenFails(t *testing.T) {
	onlyModelExchange := baseXML[:strings.Index(baseXML, "  <CoSimulation")] + baseXML[strings.Index(baseXML, "  <UnitDefinitions"):]
	temp := t.TempDir()
	for _, c := range []struct{ name, path, id, text string }{
		{"in a folder", packed(t, "model/modelDescription.xml", baseXML), "FA3", "but model/modelDescription.xml"},
		{"in capitals", packed(t, "ModelDescription.XML", baseXML), "FA3", "but ModelDescription.XML"},
		{"nothing", packed(t, "a", ""), "FA3", "no modelDescription.xml at its root ["},
		{"empty folder", t.TempDir(), "FA3", "not an unpacked FMU"},
		{"version", packed(t, "modelDescription.xml", strings.Replace(baseXML, `fmiVersion="2.0"`, `fmiVersion="4.0"`, 1)), "FA4", "model.fmu!modelDescription.xml:2"},
		{"Model Exchange", packed(t, "modelDescription.xml", onlyModelExchange), "MD3", "offers Model Exchange only"},
		{"schema", packed(t, "modelDescription.xml", `<a/>`), "MD1", "root element"},
		{"slip", packed(t, "modelDescription.xml", baseXML, "../x", ""), "FA2", ".."},
	} {
		f, l, err := Open(c.path, OpenOptions{TempDir: temp})
		if f != nil || !diag.Has(err, c.id) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if l == nil || len(l.At(diag.Error)) == 0 {
			t.Errorf("%s: findings %v", c.name, l)
		}
	}
	if _, l, err := Open(filepath.Join(temp, "none.fmu"), OpenOptions{}); !errors.Is(err, fs.ErrNotExist) || l == nil {
		t.Errorf("missing file: %v", err)
	}
	path := packed(t, "modelDescription.xml", baseXML)
	if _, _, err := Open(path, OpenOptions{TempDir: filepath.Join(temp, "none")}); err == nil {
		t.Error("unpacked into a folder that there is not")
	}
	clash := packed(t, "modelDescription.xml", baseXML, "a", "1", "a/b", "2")
	if _, _, err := Open(clash, OpenOptions{TempDir: temp}); err == nil {
		t.Error("a file was used as a folder")
	}
	if _, _, err := Open(path, OpenOptions{TempDir: temp, Limits: archive.Limits{Bytes: 10}}); !diag.Has(err, "FA2S") {
		t.Errorf("limits: %v", err)
	}
	unusual := packed(t, "modelDescription.xml", strings.Replace(baseXML, `nominal="1"/>`, `nominal="0"/>`, 1))
	if _, _, err := Open(unusual, OpenOptions{Strict: true}); !diag.Has(err, "MD15") {
		t.Errorf("strict: %v", err)
	}
	if !empty(t, temp) {
		t.Error("something is left of a failed Open")
	}
}
