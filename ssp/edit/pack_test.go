package edit_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Archives are as the standard wants them, and depend on nothing but what is in them.
func TestWriteArchive(t *testing.T) {
	dir := Folder(t, map[string]string{"resources/a.fmu": "FMU", "z.txt": strings.Repeat("z", 1000)})
	files := []edit.File{
		{Name: "z.txt", Path: filepath.Join(dir, "z.txt")}, {Name: "SystemStructure.ssd", Data: []byte("document")},
		{Name: "resources/a.fmu", Path: filepath.Join(dir, "resources", "a.fmu")}, {Name: "resources/ü.txt", Data: nil},
	}
	var one, two bytes.Buffer
	if err := edit.WriteArchive(&one, files); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "z.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "z.txt"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := edit.WriteArchive(&two, files); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("order, times or permissions change the bytes (%v)", err)
	}
	z, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		if f.ReaderVersion > 20 || f.Method != zip.Store && f.Method != zip.Deflate || f.Flags&1 != 0 {
			t.Errorf("%s: version %d, method %d, flags %x", f.Name, f.ReaderVersion, f.Method, f.Flags)
		}
		if ascii := !strings.Contains(f.Name, "ü"); ascii == (f.Flags&0x800 != 0) {
			t.Errorf("%s: the flag for UTF-8 is %t", f.Name, !ascii)
		}
		if !f.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: time %v", f.Name, f.Modified)
		}
	}
	if !slices.Equal(names, []string{"SystemStructure.ssd", "resources/a.fmu", "resources/ü.txt", "z.txt"}) {
		t.Errorf("entries %v", names)
	}
	for want, files := range map[string][]edit.File{
		`"../a" cannot be the name`:           {{Name: "../a"}},
		`"/a" cannot be the name`:             {{Name: "/a"}},
		`"a\\b" cannot be the name`:           {{Name: `a\b`}},
		`"C:/a" cannot be the name`:           {{Name: "C:/a"}},
		`two files "A" and "a"`:               {{Name: "a"}, {Name: "A"}},
		`"a" would be both a file and a fold`: {{Name: "a"}, {Name: "a/b"}},
		"nothing":                             {{Name: "a", Path: filepath.Join(dir, "nothing")}},
		"it is not a regular file":            {{Name: "a", Path: dir}},
	} {
		if err := edit.WriteArchive(&bytes.Buffer{}, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A document takes everything that it refers to, and once.
func TestNeeded(t *testing.T) {
	bindings := `<ssd:ParameterBindings><ssd:ParameterBinding source="sets/a%20b.ssv"><ssd:ParameterMapping source="sets/m.ssm"/></ssd:ParameterBinding></ssd:ParameterBindings>`
	mapping := `<ssm:ParameterMapping version="1.0" xmlns:ssm="` + xmltree.SSM + `"/>`
	document := Head + Sys("s", bindings, `<ssd:Component name="one" source="c.fmu"/><ssd:Component name="two" source="c.fmu"/>`) + Tail
	dir := Folder(t, map[string]string{"in/variant.ssd": document, "in/sets/a b.ssv": SetFile("", ""), "in/sets/m.ssm": mapping, "in/c.fmu": "", "in/other.fmu": ""})
	files, err := edit.Needed(Open(t, filepath.Join(dir, "in", "variant.ssd"), nil))
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"SystemStructure.ssd", "c.fmu", "sets/a b.ssv", "sets/m.ssm"}) {
		t.Errorf("%v, %v", names, err)
	}
}

func TestSourceURI(t *testing.T) {
	for in, want := range map[string]string{"resources/a b.fmu": "resources/a%20b.fmu", "ü%#?.fmu": "%C3%BC%25%23%3F.fmu", "a:b/c.fmu": "a%3Ab/c.fmu", "../x.fmu": "../x.fmu"} {
		if got := edit.SourceURI(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if back, err := (&ssp.Document{}).Locate(edit.SourceURI(in)); !strings.Contains(in, ":") && (err != nil || filepath.ToSlash(back) != in) {
			t.Errorf("%s is read as %s, %v", in, back, err)
		}
	}
}

// Names for every tool, and annotations that cannot be.
func TestAnnotations(t *testing.T) {
	for in, want := range map[string]string{"a-b c": "a_b_c", "1x": "c1x", "_x": "c_x", "ä": "c_", "": "c", "ok_1": "ok_1"} {
		if got := edit.Identifier(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if _, err := edit.NewAnnotation("x", "<a/><b/>"); err == nil {
		t.Error("two elements are taken")
	}
	if _, err := edit.NewAnnotation("x", "<a"); err == nil {
		t.Error("broken XML is taken")
	}
}
