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

// packed writes an archive with pairs of names and texts.
func packed(t *testing.T, pairs ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fmu")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		w, err := z.Create(pairs[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(pairs[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// empty tells whether nothing is in a folder.
func empty(t *testing.T, dir string) bool {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list) == 0
}

func TestOpen(t *testing.T) {
	path, temp := packed(t, "modelDescription.xml", strings.Replace(baseXML, `<CoSimulation `, `<CoSimulation needsExecutionTool="1" `, 1), "binaries/linux64/base.so", "elf"), t.TempDir()
	f, l, err := Open(path, OpenOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	if f.Description.ModelName != "base" || f.Path != path || filepath.Dir(f.Dir) != temp || !strings.HasPrefix(filepath.Base(f.Dir), archive.Prefix) {
		t.Errorf("%+v", f)
	}
	if !strings.HasPrefix(f.Hash, "sha256:") || len(f.Hash) != 7+64 {
		t.Errorf("hash %s", f.Hash)
	}
	if len(l.Findings) != 1 || l.Findings[0].ID != "FA11" || l.Findings[0].Level != diag.Info {
		t.Errorf("findings %v", l.Findings)
	}
	if data, err := os.ReadFile(filepath.Join(f.Dir, "binaries", "linux64", "base.so")); err != nil || string(data) != "elf" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(f.Dir, "resources")); err != nil || !info.IsDir() {
		t.Error("there is no folder resources")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !empty(t, temp) {
		t.Error("the temporary folder stands")
	}
}

func TestOpenFolder(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("modelDescription.xml", baseXML)
	hash := func() string {
		t.Helper()
		f, _, err := Open(dir, OpenOptions{TempDir: temp})
		if err != nil {
			t.Fatal(err)
		}
		if f.Dir != dir || !empty(t, temp) {
			t.Errorf("opened in %s", f.Dir)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
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
		{"empty folder", t.TempDir(), "FA3", "no unpacked FMU"},
		{"version", packed(t, "modelDescription.xml", strings.Replace(baseXML, `fmiVersion="2.0"`, `fmiVersion="3.0"`, 1)), "FA4", "model.fmu!modelDescription.xml:2"},
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
	if !empty(t, temp) {
		t.Error("something is left of a failed Open")
	}
}

func TestOpenStrict(t *testing.T) {
	path := packed(t, "modelDescription.xml", strings.Replace(baseXML, `nominal="1"/>`, `nominal="0"/>`, 1))
	f, _, err := Open(path, OpenOptions{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, _, err := Open(path, OpenOptions{Strict: true}); !diag.Has(err, "MD15") {
		t.Errorf("strict: %v", err)
	}
}
