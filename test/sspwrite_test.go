package test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

var schemaDir = flag.String("schemas", "", "folder with the schemas of SSP (ssp1/, ssp2/); without it what is written is not validated")

// validate checks a document with xmllint, if the schemas are there.
func validate(t testing.TB, path string) error {
	t.Helper()
	if *schemaDir == "" {
		return nil
	}
	dir, err := fromRoot(*schemaDir)
	if err != nil {
		t.Fatal(err)
	}
	data := read(t, path)
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(data); err != nil {
		return err
	}
	schemas := map[string]string{"SystemStructureDescription": "Description", "ParameterSet": "ParameterValues",
		"ParameterMapping": "ParameterMapping"}
	set := "ssp1"
	if strings.HasPrefix(doc.Root().SelectAttrValue("version", ""), "2.") {
		set = "ssp2"
	}
	schema := filepath.Join(dir, set, "SystemStructure"+schemas[doc.Root().Tag]+".xsd")
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Fatalf("%v: install it, for example with: apt-get install libxml2-utils", err)
	}
	if out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", schema, path).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	// Inline content is hidden from the schema of version 1.0 of XML Schema (ssp 50).
	for i, inline := range append(doc.FindElements("//ParameterValues/ParameterSet"),
		doc.FindElements("//ParameterMapping/ParameterMapping")...) {
		one := etree.NewDocument()
		root := inline.Copy()
		for at := inline.Parent(); at != nil; at = at.Parent() {
			for _, a := range at.Attr {
				if a.Space == "xmlns" && root.SelectAttr("xmlns:"+a.Key) == nil {
					root.CreateAttr("xmlns:"+a.Key, a.Value)
				}
			}
		}
		one.SetRoot(root)
		part := filepath.Join(t.TempDir(), fmt.Sprintf("inline%d.xml", i))
		if err := one.WriteToFile(part); err != nil {
			t.Fatal(err)
		}
		if err := validate(t, part); err != nil {
			return err
		}
	}
	return nil
}

// rewritten copies the folder of a document, without FMUs, and writes the document, its sets and its mappings anew.
func rewritten(t testing.TB, path string) string {
	t.Helper()
	from := filepath.Dir(path)
	to := t.TempDir()
	files, _, err := edit.FolderFiles(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data := read(t, f.Path)
		if filepath.Ext(f.Name) == ".fmu" {
			data = nil
		}
		target := filepath.Join(to, filepath.FromSlash(f.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p := opened(t, path)
	copied := filepath.Join(to, filepath.Base(path))
	write := func(path string, data []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := edit.Encode(p.Root)
	write(copied, data, err)
	for _, b := range boundIn(p.Root.System) {
		if b.Source != "" {
			rel, err := filepath.Rel(from, b.Set.File)
			if err != nil {
				t.Fatal(err)
			}
			data, err := edit.EncodeSet(b.Set)
			write(filepath.Join(to, rel), data, err)
		}
		if b.Mapping != nil && b.Mapping.File != p.Root.File {
			rel, err := filepath.Rel(from, b.Mapping.File)
			if err != nil {
				t.Fatal(err)
			}
			data, err := edit.EncodeMapping(b.Mapping)
			write(filepath.Join(to, rel), data, err)
		}
	}
	return copied
}

func opened(t testing.TB, path string) *ssp.Package {
	t.Helper()
	p, err := ssp.Open(path, &diag.List{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// boundIn lists the parameter bindings of an element and of all in it.
func boundIn(e ssp.Element) []ssp.Binding {
	list := slices.Clone(e.Base().Bindings)
	if s, ok := e.(*ssp.System); ok {
		for _, k := range s.Elements {
			list = append(list, boundIn(k)...)
		}
	}
	return list
}

// roundTrip writes a document and reads it again: it contains the same, writing once more gives the same bytes, and
// what was valid still is.
func roundTrip(t *testing.T, path string) {
	t.Helper()
	copied := rewritten(t, path)
	a, b := opened(t, path).Files()[1:], opened(t, copied).Files()[1:]
	for i := range a {
		if want, got := facts(t, a[i]), facts(t, b[i]); !slices.Equal(want, got) {
			t.Errorf("%s: written again it contains\n%s\nand not\n%s", filepath.Base(a[i]), strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
		if err := validate(t, b[i]); err != nil && validate(t, a[i]) == nil {
			t.Errorf("%s: what was valid is no longer: %v", filepath.Base(a[i]), err)
		}
	}
	if !bytes.Equal(read(t, copied), read(t, rewritten(t, copied))) {
		t.Error("written again, the document has other bytes")
	}
}

// facts lists the content of a document: for each element its full name, those of the elements around it, attributes
// and text, but neither layout nor order.
func facts(t testing.TB, path string) []string {
	t.Helper()
	data := read(t, path)
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(data); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(at string, el *etree.Element)
	walk = func(at string, el *etree.Element) {
		uri := el.NamespaceURI()
		if el.Tag == "Annotation" && strings.HasSuffix(uri, "SystemStructureDescription") { // an old form, put right
			uri = strings.Replace(uri, "SystemStructureDescription", "SystemStructureCommon", 1)
		}
		if uri == "" && el.Space == "osp" { // a known prefix that is not declared, put right
			uri = "http://opensimulationplatform.com/SSP/OSPAnnotations"
		}
		at += "/{" + uri[strings.LastIndexByte(uri, '/')+1:] + "}" + el.Tag
		var attrs []string
		for i := range el.Attr {
			if a := &el.Attr[i]; a.Space != "xmlns" && a.Key != "xmlns" {
				attrs = append(attrs, fmt.Sprintf("{%s}%s=%q", a.NamespaceURI(), a.Key, a.Value))
			}
		}
		slices.Sort(attrs)
		text := ""
		for _, c := range el.Child {
			switch c := c.(type) {
			case *etree.CharData:
				text += strings.TrimSpace(c.Data)
			case *etree.Comment:
				out = append(out, at+" <!--"+c.Data)
			}
		}
		if kids := el.ChildElements(); len(kids) > 0 || len(attrs) > 0 || text != "" {
			out = append(out, at+" "+strings.Join(attrs, " ")+" "+text)
		}
		for _, k := range el.ChildElements() {
			walk(at, k)
		}
	}
	walk("", doc.Root())
	slices.Sort(out)
	return out
}

// TestWriteSystems: our own documents make the round trip, and validate.
func TestWriteSystems(t *testing.T) {
	for _, name := range fmus.Systems() {
		t.Run(name, func(t *testing.T) {
			data, err := fmus.SystemDocument(name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "SystemStructure.ssd")
			write(t, path, data)
			roundTrip(t, path)
			if err := validate(t, rewritten(t, path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Documents with all elements of the standard validate as they are and as written, so that the tests of package ssp
// use valid documents.
func TestWriteEverything(t *testing.T) {
	for _, name := range []string{"everything.ssd", "made.ssd"} {
		if err := validate(t, filepath.Join("..", "ssp", "edit", "testdata", name)); err != nil {
			t.Error(err)
		}
	}
	roundTrip(t, filepath.Join("..", "ssp", "edit", "testdata", "everything.ssd"))
}

// Documents of other tools make the round trip.
func testRealWrite(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join(*realDir, "systems"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ssd" {
			return err
		}
		n++
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) { roundTrip(t, path) })
		return nil
	})
	if err != nil || n < 8 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// documentsOf unpacks a package and gives its documents.
func documentsOf(t *testing.T, path string) (list []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "unpacked")
	if code, out := macrostep(t, "ssp", "unpack", path, "-o", dir); code != 0 {
		t.Fatal(out)
	}
	files, _, err := edit.FolderFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name); ext == ".ssd" || ext == ".ssv" || ext == ".ssm" {
			list = append(list, f.Path)
		}
	}
	return list
}

// A system made of the FMUs of one of ours, with its parameters, gives the same results to the last bit. The
// documents written on the way validate, have the same bytes each time and make the round trip.
func TestMakeSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours := system(t, "quarter-car-a")
	step := func(args ...string) string {
		t.Helper()
		code, out := macrostepIn(t, dir, args...)
		if code != 0 {
			t.Fatalf("macrostep %v: exit code %d\n%s", args, code, out)
		}
		return out
	}
	step("ssp", "unpack", ours, "-o", "ours")
	made := []string{"ssp", "new", "chassis=ours/resources/quarter_chassis_a.fmu",
		"wheel=ours/resources/quarter_wheel_a.fmu", "--connect-by-name", "--for", "omsimulator,osp"}
	step(append(made, "-o", "bare.ssp")...)
	step(append(made, "-o", "again.ssp")...)
	same := func(a, b string) {
		t.Helper()
		if !bytes.Equal(read(t, filepath.Join(dir, a)), read(t, filepath.Join(dir, b))) {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	documents := func(path string) string { // the name of the system is that of the file
		data := read(t, documentsOf(t, filepath.Join(dir, path))[0])
		return strings.NewReplacer("bare", "", "again", "").Replace(string(data))
	}
	if documents("bare.ssp") != documents("again.ssp") {
		t.Error("the same call gives other bytes")
	}
	set := []string{"ssp", "set", "bare.ssp", "wheel.k_w=2e5", "chassis.m_c=350", "-o"}
	step(append(set, "stiff.ssp")...)
	step(append(set, "stiff2.ssp")...)
	same("stiff.ssp", "stiff2.ssp")
	step("ssp", "unpack", "stiff.ssp")
	step("ssp", "pack", "stiff", "-o", "stiff3.ssp")
	same("stiff.ssp", "stiff3.ssp")
	for _, document := range documentsOf(t, filepath.Join(dir, "stiff.ssp")) {
		if err := validate(t, document); err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if filepath.Ext(document) == ".ssd" {
			roundTrip(t, document)
		}
	}
	args := []string{"--step-size", "1e-3", "--stop-time", "2", "--param", "order=1"}
	values := []string{"--set", "wheel.k_w=2e5", "--set", "chassis.m_c=350"}
	reference := complete(t, append(append([]string{ours}, args...), values...)...)
	again := complete(t, append([]string{filepath.Join(dir, "stiff.ssp")}, args...)...)
	if reference.rows < 1000 || !maps.EqualFunc(reference.columns, again.columns, slices.Equal) {
		t.Errorf("%d and %d rows, or other values", reference.rows, again.rows)
	}
	if plain := complete(t, append([]string{ours}, args...)...); slices.Equal(plain.column(t, "wheel.F_c"),
		reference.column(t, "wheel.F_c")) {
		t.Error("the parameters change nothing, so that the comparison says nothing")
	}
	out := step("ssp", "graph", "stiff.ssp")
	if data, err := os.ReadFile(filepath.Join(dir, "stiff.svg")); err != nil ||
		!strings.Contains(string(data), "power bond by its units") || !strings.Contains(out,
		"2 components, 2 connections") {
		t.Errorf("the picture: %v\n%s", err, out)
	}
}

// The next run removes what a program that was killed while writing has left; one that is stopped or cannot write
// leaves nothing.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "car"), os.DirFS(badPair(t, "misbehave"))); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it gives no error
	write(t, filepath.Join(dir, "car", "extra", "noise"), noise)
	expect := func(when string, want ...string) {
		t.Helper()
		if got := listed(t, dir); !slices.Equal(got, want) {
			t.Errorf("%s: there are %v, want %v", when, got, want)
		}
	}
	// ended sends a signal once there is a temporary file, and waits.
	ended := func(signal os.Signal, args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		p := started(t, cmd)
		done := make(chan int, 1)
		go func() { done <- p.end() }()
		until(t, "it writes or ends", func() bool {
			return len(done) > 0 || slices.ContainsFunc(listed(t, dir), func(name string) bool {
				return strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".lock")
			})
		})
		_ = p.Process.Signal(signal) // it may have ended
		<-done
	}
	works := func(args ...string) {
		t.Helper()
		if code, out := macrostepIn(t, dir, args...); code != 0 {
			t.Fatalf("%v: %s", args, out)
		}
	}
	ended(os.Kill, "ssp", "pack", "car")
	works("ssp", "pack", "car", "--force")
	expect("pack", "car", "car.ssp")
	ended(os.Kill, "ssp", "unpack", "car.ssp", "-o", "new")
	_ = os.RemoveAll(filepath.Join(dir, "new"))
	works("ssp", "unpack", "car.ssp", "-o", "new")
	ended(os.Kill, "ssp", "set", "--force", "car.ssp", "bad.x0=1")
	works("ssp", "set", "--force", "car.ssp", "bad.x0=2")
	expect("unpack and set", "car", "car.ssp", "new")
	if runtime.GOOS == "windows" {
		return
	}
	ended(syscall.SIGTERM, "ssp", "pack", "car", "--force")
	ended(syscall.SIGTERM, "ssp", "unpack", "car.ssp", "-o", "stopped")
	if noise, err := os.ReadFile(filepath.Join(dir, "stopped", "extra", "noise")); err == nil && len(noise) != 8<<20 {
		t.Error("a part is unpacked")
	}
	_ = os.RemoveAll(filepath.Join(dir, "stopped"))
	expect("SIGTERM", "car", "car.ssp", "new")
	packed := read(t, filepath.Join(dir, "car.ssp"))
	for _, args := range [][]string{{"ssp", "pack", "car", "--force"},
		{"ssp", "set", "--force", "car.ssp", "bad.x0=3"}, {"ssp", "unpack", "car.ssp", "-o", "more"}, {"ssp",
			"unpack", "car.ssp", "-o", "new", "--force"}} {
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -f 8000; exec "$@"`, "sh", program}, args...)...) // 4 or 8 MB
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "too large") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		expect(strings.Join(args, " "), "car", "car.ssp", "new")
		if !bytes.Equal(packed, read(t, filepath.Join(dir, "car.ssp"))) {
			t.Errorf("%v changes car.ssp", args)
		}
	}
}

// What is harmless in the FMUs of a new system is one line, with the command that shows it.
func TestNewSystemNotes(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"quarter_chassis_a", "quarter_wheel_a"} {
		paths = append(paths, filepath.Join(dir, name+".fmu"))
		pack(t, paths[len(paths)-1], edited("modelDescription.xml", func(p *part) {
			p.data = bytes.Replace(p.data, []byte(`encoding="UTF-8"`), []byte(`encoding="ISO-8859-1"`), 1)
		})(entries(t, fmu(t, name)))...)
	}
	o := call(t, append([]string{"ssp", "new", "--connect-by-name", "-o", filepath.Join(dir, "a.ssp")}, paths...)...)
	o.is(t, 0, "note: deviations from the standard that change no result: macrostep validate "+strings.Join(paths, " ")+"\n")
	if n := strings.Count(o.output, "note: "); n != 1 {
		t.Errorf("%d notes\n%s", n, o.output)
	}
	call(t, append([]string{"validate"}, paths...)...).is(t, 0, "ISO-8859-1", "MD2")
}
