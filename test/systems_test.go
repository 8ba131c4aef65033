package test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// made holds what tests make at its first use, by name.
var made sync.Map

// once returns work/name, which is made at its first use.
func once(t testing.TB, name string, make func(path string) error) string {
	t.Helper()
	path := filepath.Join(work, name)
	f, _ := made.LoadOrStore(name, sync.OnceValue(func() error { return make(path) }))
	if err := f.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return path
}

// system returns the path of one of our example systems.
func system(t testing.TB, name string) string {
	t.Helper()
	return once(t, name+".ssp", func(string) error { _, err := fmus.WriteSystem(work, name); return err })
}

// fmu returns one of our FMUs.
func fmu(t testing.TB, name string) string {
	t.Helper()
	return once(t, name+".fmu", func(string) error { return build(work, name) })
}

// build builds some of our FMUs in a folder.
func build(dir string, names ...string) error {
	for _, name := range names {
		if _, err := fmus.Build(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// changed unpacks an example system into a folder with one change of its document.
func changed(t testing.TB, name, old, new string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := unzip(system(t, name), folder); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "SystemStructure.ssd")
	document := string(read(t, path))
	if strings.Count(document, old) != 1 {
		t.Fatalf("the document has no %s", old)
	}
	write(t, path, strings.Replace(document, old, new, 1))
	return folder
}

// member is a component of a system made for a test: its FMU, and its inputs and outputs.
type member struct{ name, fmu, in, out string }

// component writes a member whose FMU lies in a folder.
func (m member) component(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<ssd:Component name=%q source="%s%s.fmu"><ssd:Connectors>`, m.name, folder, m.fmu)
	for kind, names := range map[string]string{"input": m.in, "output": m.out} {
		for name := range strings.FieldsSeq(names) {
			fmt.Fprintf(&b, `<ssd:Connector name=%q kind=%q><ssc:Real/></ssd:Connector>`, name, kind)
		}
	}
	b.WriteString("</ssd:Connectors></ssd:Component>")
	return b.String()
}

// wires writes connections "a.y → b.u", one a line; an end without a dot is a connector of the system itself.
func wires(lines string) string {
	var b strings.Builder
	end := func(side, name string) {
		if element, connector, ok := strings.Cut(name, "."); ok {
			fmt.Fprintf(&b, ` %sElement=%q %sConnector=%q`, side, element, side, connector)
		} else {
			fmt.Fprintf(&b, ` %sConnector=%q`, side, name)
		}
	}
	for line := range strings.Lines(lines) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if !ok {
			continue
		}
		b.WriteString("<ssd:Connection")
		end("start", from)
		end("end", to)
		b.WriteString("/>")
	}
	return b.String()
}

// document writes a system of elements and connections up to a stop time.
func document(stop, elements, lines string) string {
	if lines != "" {
		lines = "<ssd:Connections>" + wires(lines) + "</ssd:Connections>"
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription name="made" version="1.0" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
  <ssd:System name="made"><ssd:Elements>` + elements + "</ssd:Elements>" + lines + `</ssd:System>
  <ssd:Units><ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit></ssd:Units>
  <ssd:DefaultExperiment startTime="0" stopTime="` + stop + `"/>
</ssd:SystemStructureDescription>
`
}

// coupled writes a document of members in dir, whose FMUs lie in the folder resources, after further elements.
func coupled(t testing.TB, dir, stop string, members []member, lines string, elements ...string) (path string) {
	t.Helper()
	for _, m := range members {
		elements = append(elements, m.component("resources/"))
	}
	path = filepath.Join(dir, "SystemStructure.ssd")
	write(t, path, document(stop, strings.Join(elements, ""), lines))
	return path
}

// ours is coupled with FMUs of ours, and returns the folder.
func ours(t testing.TB, members []member, lines string) string {
	t.Helper()
	dir := t.TempDir()
	coupled(t, dir, "1", members, lines)
	for _, m := range members {
		copyFMUs(t, filepath.Join(dir, "resources"), m.fmu)
	}
	return dir
}

// systemOf writes a system of uncoupled components, by name and FMU.
func systemOf(t testing.TB, dir string, components map[string]string) string {
	t.Helper()
	elements := ""
	for name, fmu := range components {
		elements += member{name: name, fmu: fmu}.component("")
	}
	path := filepath.Join(dir, "SystemStructure.ssd")
	write(t, path, document("1", elements, ""))
	return path
}

// part is an entry of an archive made for a test.
type part struct {
	zip.FileHeader
	data []byte
}

// file is an entry with a content.
func file[T string | []byte](name string, content T) part {
	return part{zip.FileHeader{Name: name, Method: zip.Deflate}, []byte(content)}
}

// entries returns those of an archive.
func entries(t testing.TB, path string) (all []part) {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range r.File {
		data, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file(f.Name, data))
	}
	return all
}

// pack writes an archive.
func pack(t testing.TB, path string, all ...part) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range all {
		h := all[i].FileHeader
		w, err := z.CreateHeader(&h)
		if err == nil {
			_, err = w.Write(all[i].data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.Bytes())
}

// unzip unpacks an archive of our own making or of the folder of tests.
func unzip(path, dir string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	return os.CopyFS(dir, z)
}

// copyFMUs puts some of our FMUs into a folder.
func copyFMUs(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		write(t, filepath.Join(dir, name+".fmu"), read(t, fmu(t, name)))
	}
}
