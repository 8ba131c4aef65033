package test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
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

// bindOne binds a value in a document and checks that the changed files differ from the old ones by one part more, and
// are valid if those are. It also checks that the document with new settings is valid.
func bindOne(t *testing.T, path string) {
	t.Helper()
	p := opened(t, path)
	files, err := edit.Bind(p, []ssp.ParameterValue{{Name: "new.value", Value: ssp.Value{Type: ssp.Real, Real: 1}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	settled, err := edit.Bind(p, nil, nil, ssp.Asked{Name: ssp.Algorithm, Text: "implicit"}, ssp.AskParam("order", "2", "", ssp.Place{}))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range append(files, settled...) {
		old, changed := filepath.Join(p.Dir, f.Name), filepath.Join(t.TempDir(), filepath.Base(f.Name))
		write(t, changed, f.Data)
		_, err := os.Stat(old)
		fresh := errors.Is(err, fs.ErrNotExist)
		if err := validate(t, changed); err != nil && (fresh || validate(t, old) == nil) {
			t.Errorf("%s is not valid: %v", f.Name, err)
		}
		if fresh || i == len(files) { // settings change attributes, too
			continue
		}
		a, b := tokens(t, old), tokens(t, changed)
		same := 0
		for same < len(a) && same < len(b) && a[same] == b[same] {
			same++
		}
		if len(a) >= len(b) || !slices.Equal(a[same:], b[len(b)-len(a)+same:]) {
			t.Errorf("%s changes after %s", f.Name, strings.Join(b[max(0, same-3):same], ""))
		}
	}
}

// tokens lists the tags, comments and texts of a document, without its encoding and declarations of prefixes.
func tokens(t *testing.T, path string) (list []string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(read(t, path)))
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		token, err := dec.RawToken()
		if err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		switch k := token.(type) {
		case xml.StartElement:
			k.Attr = slices.DeleteFunc(k.Attr, func(a xml.Attr) bool { return a.Name.Space == "xmlns" })
			token = k
		case xml.ProcInst:
			if k.Target == "xml" {
				continue
			}
		case xml.CharData:
			token = string(k)
		}
		list = append(list, fmt.Sprintf("%T %[1]q", token))
	}
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

// Values can be bound in our own documents, which validate.
func TestWriteSystems(t *testing.T) {
	for _, name := range fmus.Systems() {
		t.Run(name, func(t *testing.T) {
			data, err := fmus.SystemDocument(name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "SystemStructure.ssd")
			write(t, path, data)
			if err := validate(t, path); err != nil {
				t.Error(err)
			}
			bindOne(t, path)
		})
	}
}

// Documents with all elements of the standard validate, so that the tests of package ssp use valid documents.
func TestWriteEverything(t *testing.T) {
	for _, name := range []string{"everything.ssd", "made.ssd"} {
		if err := validate(t, filepath.Join("..", "ssp", "edit", "testdata", name)); err != nil {
			t.Error(err)
		}
	}
	bindOne(t, filepath.Join("..", "ssp", "edit", "testdata", "everything.ssd"))
}

// Values can be bound in documents of other tools.
func testRealWrite(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join(*realDir, "systems"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ssd" {
			return err
		}
		n++
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) { bindOne(t, path) })
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
// documents written on the way validate and have the same bytes each time.
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
	// With the settings in the system, too, a run needs no flags for them.
	step("ssp", "set", "stiff.ssp", "--step-size", "1e-3", "--algorithm", "implicit", "--param", "order=2", "-o", "tuned.ssp")
	flags := complete(t, filepath.Join(dir, "stiff.ssp"), "--stop-time", "2", "--step-size", "1e-3", "--algorithm", "implicit", "--param", "order=2")
	tuned := complete(t, filepath.Join(dir, "tuned.ssp"), "--stop-time", "2")
	if !maps.EqualFunc(flags.columns, tuned.columns, slices.Equal) || maps.EqualFunc(again.columns, tuned.columns, slices.Equal) {
		t.Error("the settings in the system give other values than flags, or those of another algorithm")
	}
	for _, document := range documentsOf(t, filepath.Join(dir, "tuned.ssp")) {
		if err := validate(t, document); err != nil {
			t.Errorf("%s: %v", document, err)
		}
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
