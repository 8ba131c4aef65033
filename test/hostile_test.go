package test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// A hostile case is a file or an option that must be met with a clear message.
// Its build writes what it needs into a folder and gives the arguments of
// macrostep run.
type hostile struct {
	name  string
	build func(t *testing.T, dir string) []string
	// code and words are for the tolerant reading; strict and strictWords for the
	// strict one, where they differ (strict -1 means: the same).
	code        int
	words       []string
	strictCode  int
	strictWords []string
}

const same = -1

// refused is a case that both readings refuse before the first FMU is instantiated.
func refused(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name: name, build: build, code: 2, words: words, strictCode: same}
}

// failing is a case that comes out when an FMU is used.
func failing(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name: name, build: build, code: 1, words: words, strictCode: same}
}

// tolerated is a case that only the strict reading refuses.
func tolerated(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name: name, build: build, code: 0, strictCode: 2, strictWords: words}
}

// accepted is a case that looks odd but is right.
func accepted(name string, build func(t *testing.T, dir string) []string) hostile {
	return hostile{name: name, build: build, code: 0, strictCode: same}
}

// part is an entry of an archive made for a test.
type part struct {
	zip.FileHeader
	data []byte
}

// called gives the entry a name.
func (p part) called(name string) part {
	p.Name = name
	return p
}

// parts are the entries of one of our FMUs.
func parts(t testing.TB, name string) []part {
	t.Helper()
	r, err := zip.OpenReader(fmu(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []part
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part{zip.FileHeader{Name: f.Name, Method: zip.Deflate}, data})
	}
	return all
}

// fmu gives one of our FMUs, built at its first use.
func fmu(t testing.TB, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	path := filepath.Join(work, name+".fmu")
	if _, err := os.Stat(path); err != nil {
		if _, err := fmus.Build(work, name); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// pack writes an archive.
func pack(t testing.TB, path string, all []part) {
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

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const victim = "quarter_chassis_a" // the FMU that gets damaged

// withFMU gives a single FMU whose entries were changed.
func withFMU(change func(t *testing.T, all []part) []part) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "model.fmu")
		pack(t, path, change(t, parts(t, victim)))
		return []string{path}
	}
}

// withEntry gives a single FMU with one more entry.
func withEntry(h zip.FileHeader, data string) func(*testing.T, string) []string {
	return withFMU(func(_ *testing.T, all []part) []part { return append(all, part{h, []byte(data)}) })
}

// withBytes gives a single FMU whose archive was changed byte by byte.
func withBytes(change func(t *testing.T, data []byte) []byte) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "model.fmu")
		write(t, path, change(t, read(t, fmu(t, victim))))
		return []string{path}
	}
}

// withDescription gives a single FMU whose modelDescription.xml was changed.
func withDescription(change func(text string) string) func(*testing.T, string) []string {
	return withFMU(func(t *testing.T, all []part) []part {
		for i := range all {
			if all[i].Name == "modelDescription.xml" {
				before := string(all[i].data)
				all[i].data = []byte(change(before))
				if string(all[i].data) == before {
					t.Fatal("nothing was changed")
				}
			}
		}
		return all
	})
}

// swap replaces the first occurrence; a text that is not there changes nothing,
// which the callers find out.
func swap(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// whole replaces all of a text.
func whole(text string) func(string) string { return func(string) string { return text } }

// withLibrary gives a single FMU whose library was changed.
func withLibrary(change func(t *testing.T, data []byte) []byte) func(*testing.T, string) []string {
	return withFMU(func(t *testing.T, all []part) []part {
		for i := range all {
			if strings.HasPrefix(all[i].Name, "binaries/") {
				all[i].data = change(t, all[i].data)
			}
		}
		return all
	})
}

// withSystem gives the folder of the quarter car with its document changed and
// files added.
func withSystem(change func(text string) string, files map[string]string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		data, err := fmus.SystemDocument("quarter-car-a")
		if err != nil {
			t.Fatal(err)
		}
		text := change(string(data))
		if text == string(data) && len(files) == 0 {
			t.Fatal("nothing was changed")
		}
		path := filepath.Join(dir, "system")
		write(t, filepath.Join(path, "SystemStructure.ssd"), []byte(text))
		for _, name := range []string{"quarter_chassis_a", "quarter_wheel_a"} {
			write(t, filepath.Join(path, "resources", name+".fmu"), read(t, fmu(t, name)))
		}
		for name, text := range files {
			write(t, filepath.Join(path, name), []byte(text))
		}
		return []string{path}
	}
}

// option gives the quarter car with further arguments.
func option(args ...string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		return append([]string{system(t, "quarter-car-a")}, args...)
	}
}

// table gives the quarter car, or one of its FMUs, with a file behind a flag.
func table(flag, text string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "table.csv")
		write(t, path, []byte(text))
		subject := system(t, "quarter-car-a")
		if flag == "--input" {
			subject = fmu(t, "quarter_chassis_a")
		}
		return []string{subject, flag, path}
	}
}

// Insertions into the document of the quarter car.
const (
	bindings   = "<ssd:ParameterBindings>%s</ssd:ParameterBindings>"
	setHead    = `<ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" version="1.0" name="set"><ssv:Parameters>%s</ssv:Parameters></ssv:ParameterSet>`
	mapHead    = `<ssm:ParameterMapping xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping" version="1.0">%s</ssm:ParameterMapping>`
	systemHead = `<ssd:System name="quarter-car-a">`
	connection = `<ssd:Connection startElement="wheel" startConnector="F_c" endElement="chassis" endConnector="F_c"/>`
)

// withSet binds a file of values to the system, with a mapping if there is one.
func withSet(set string, mapping ...string) func(*testing.T, string) []string {
	binding := `<ssd:ParameterBinding source="resources/set.ssv"/>`
	files := map[string]string{"resources/set.ssv": set}
	if len(mapping) > 0 {
		binding = `<ssd:ParameterBinding source="resources/set.ssv"><ssd:ParameterMapping source="resources/map.ssm"/></ssd:ParameterBinding>`
		files["resources/map.ssm"] = mapping[0]
	}
	return withSystem(swap(systemHead, systemHead+fmt.Sprintf(bindings, binding)), files)
}

// values is a parameter set with one value.
func values(name, value string) string {
	return fmt.Sprintf(setHead, fmt.Sprintf(`<ssv:Parameter name=%q>%s</ssv:Parameter>`, name, value))
}

// deep is a document of 200 000 nested elements.
func deep(head string) string {
	const n = 200_000
	return head + strings.Repeat("<a>", n) + strings.Repeat("</a>", n)
}

// utf16Text encodes a text with a byte order mark.
func utf16Text(s string) string {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, utf16.Encode([]rune("\uFEFF"+s)))
	return b.String()
}

const (
	external = `<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/hostname">]>`
	laughs   = `<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>`
)

// afterProlog puts a text behind the XML declaration.
func afterProlog(text string) func(string) string { return swap("?>", "?>"+text) }

// chain applies changes one after the other.
func chain(changes ...func(string) string) func(string) string {
	return func(s string) string {
		for _, c := range changes {
			s = c(s)
		}
		return s
	}
}

func hostileArchives() []hostile {
	link := zip.FileHeader{Name: "resources/link"}
	link.SetMode(fs.ModeSymlink | 0o777)
	device := zip.FileHeader{Name: "resources/device"}
	device.SetMode(fs.ModeDevice | 0o666)
	cases := []hostile{
		refused("slip", withEntry(zip.FileHeader{Name: "../slipped.txt"}, "x"), "../slipped.txt", `".."`, "FA2"),
		refused("slip inside", withEntry(zip.FileHeader{Name: "resources/../../slipped.txt"}, "x"), "slipped.txt", "FA2"),
		refused("slip with backslashes", withEntry(zip.FileHeader{Name: `..\slipped.txt`}, "x"), "slipped.txt", "FA2"),
		refused("absolute name", withEntry(zip.FileHeader{Name: "/tmp/macrostep-slipped.txt"}, "x"), "absolute path", "FA2"),
		refused("drive letter", withEntry(zip.FileHeader{Name: `C:\slipped.txt`}, "x"), "drive letter", "FA2"),
		refused("symbolic link", withEntry(link, "/etc/hostname"), "resources/link", "is a link", "FA2"),
		refused("device", withEntry(device, ""), "resources/device", "neither file nor folder", "FA2"),
		refused("NUL in a name", withEntry(zip.FileHeader{Name: "resources/a\x00b"}, "x"), "control character", "FA2"),
		refused("no name", withEntry(zip.FileHeader{Name: ""}, "x"), "no name", "FA2"),
		refused("entry twice", withEntry(zip.FileHeader{Name: "modelDescription.xml"}, "x"), "modelDescription.xml", "twice", "FA2"),
		refused("file in the way of a folder", withEntry(zip.FileHeader{Name: "sources"}, "x"), "sources"),
		tolerated("separator", withFMU(func(_ *testing.T, all []part) []part {
			for i := range all {
				all[i].Name = strings.ReplaceAll(all[i].Name, "/", `\`)
			}
			return all
		}), "separator", "FA1"),
		refused("bomb by ratio", withFMU(func(_ *testing.T, all []part) []part {
			return append(all, part{zip.FileHeader{Name: "resources/zeros", Method: zip.Deflate}, make([]byte, 100<<20)})
		}), "times its size", "FA2S"),
		refused("bomb by count", withFMU(func(_ *testing.T, all []part) []part {
			for i := range 100_001 {
				all = append(all, part{zip.FileHeader{Name: fmt.Sprintf("resources/%d", i)}, nil})
			}
			return all
		}), "entries, more than", "FA2S"),
		refused("size that lies", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 10) })
		}), "sources/fmu.c", "does not unpack"),
		refused("encrypted", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { h[8] |= 1 })
		}), "sources/fmu.c", "encrypted", "FA2"),
		refused("unknown method", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { h[10] = 14 })
		}), "sources/fmu.c", "method 14", "FA2"),
		refused("wrong checksum", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "modelDescription.xml", func(h []byte) { h[16] ^= 0xff })
		}), "modelDescription.xml", "checksum"),
		refused("overlapping entries", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { binary.LittleEndian.PutUint32(h[20:], 1<<30) })
		}), "FA2S"),
		refused("truncated", withBytes(func(_ *testing.T, data []byte) []byte { return data[:len(data)/2] }), "not a readable ZIP archive", "FA0"),
		refused("last bytes missing", withBytes(func(_ *testing.T, data []byte) []byte { return data[:len(data)-30] }), "not a readable ZIP archive", "FA0"),
		refused("empty file", withBytes(func(*testing.T, []byte) []byte { return nil }), "model.fmu", "empty", "FA0"),
		refused("text", withBytes(func(*testing.T, []byte) []byte { return []byte("hello\n") }), "not a readable ZIP archive", "FA0"),
		refused("archive without entries", withFMU(func(*testing.T, []part) []part { return nil }), "modelDescription.xml", "no "),
		refused("one folder too deep", withFMU(func(_ *testing.T, all []part) []part {
			for i := range all {
				all[i].Name = "model/" + all[i].Name
			}
			return all
		}), "model/modelDescription.xml"),
		refused("no such file", func(_ *testing.T, dir string) []string { return []string{filepath.Join(dir, "model.fmu")} }, "model.fmu", "no such"),
		refused("folder in place of an FMU", func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, "model.fmu", "readme.txt"), nil)
			return []string{filepath.Join(dir, "model.fmu")}
		}, "modelDescription.xml"),
		refused("folder in place of the description", func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, "model.fmu", "modelDescription.xml", "x"), nil)
			return []string{filepath.Join(dir, "model.fmu")}
		}, "modelDescription.xml", "folder"),
		refused("link to nowhere", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "model.fmu")
			if err := os.Symlink(filepath.Join(dir, "nowhere"), path); err != nil {
				t.Fatal(err)
			}
			return []string{path}
		}, "model.fmu", "no such"),
		refused("link to itself", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "model.fmu")
			if err := os.Symlink(path, path); err != nil {
				t.Fatal(err)
			}
			return []string{path}
		}, "model.fmu"),
	}
	if runtime.GOOS != "windows" {
		pipe := func(name string) func(*testing.T, string) []string {
			return func(t *testing.T, dir string) []string {
				path := filepath.Join(dir, name)
				if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
					t.Fatalf("mkfifo: %v: %s", err, out)
				}
				return []string{path}
			}
		}
		cases = append(cases,
			refused("pipe in place of an FMU", pipe("model.fmu"), "model.fmu", "pipe", "FA0"),
			refused("pipe in place of a system", pipe("system.ssd"), "system.ssd", "neither a file nor a folder"),
			refused("pipe in place of a description", func(t *testing.T, dir string) []string {
				if err := os.Mkdir(filepath.Join(dir, "model.fmu"), 0o755); err != nil {
					t.Fatal(err)
				}
				pipe(filepath.Join("model.fmu", "modelDescription.xml"))(t, dir)
				return []string{filepath.Join(dir, "model.fmu")}
			}, "modelDescription.xml", "pipe"))
	}
	return cases
}

// patchDirectory changes the header of one entry in the central directory.
func patchDirectory(t *testing.T, data []byte, name string, change func(header []byte)) []byte {
	t.Helper()
	out := bytes.Clone(data)
	for at := 0; ; at++ {
		next := bytes.Index(out[at:], []byte("PK\x01\x02"))
		if next < 0 {
			t.Fatalf("the archive has no entry %s", name)
		}
		at += next
		if h := out[at:]; string(h[46:46+binary.LittleEndian.Uint16(h[28:])]) == name {
			change(h)
			return out
		}
	}
}

func hostileDescriptions() []hostile {
	const place = "model.fmu!modelDescription.xml"
	return []hostile{
		refused("empty", withDescription(whole("")), place, "no element", "MD"),
		refused("blank", withDescription(whole(" \n")), place, "no element"),
		refused("truncated", withDescription(func(s string) string { return s[:len(s)/2] }), place, "MD"),
		refused("200 000 nested elements", withDescription(whole(deep("<?xml version='1.0'?>"))), place, "MD"),
		refused("200 000 nested annotations", withDescription(swap("<ModelVariables>", "<VendorAnnotations><Tool name='x'>"+deep("")+"</Tool></VendorAnnotations><ModelVariables>")), place, "nested deeper"),
		refused("external entity", withDescription(chain(afterProlog(external), swap(`modelName="quarter_chassis_a"`, `modelName="&secret;"`))), place, "secret"),
		refused("entities of entities", withDescription(chain(afterProlog(laughs), swap(`modelName="quarter_chassis_a"`, `modelName="&c;"`))), place, "c;"),
		accepted("document type that is not used", withDescription(afterProlog(external))),
		tolerated("UTF-16", withDescription(utf16Text), place, "UTF-16"),
		refused("NUL byte", withDescription(swap(`modelName="quarter`, "modelName=\"\x00quarter")), place, "U+0000"),
		refused("not in UTF-8", withDescription(swap(`modelName="quarter`, "modelName=\"\xff\xfequarter")), place, "UTF-8"),
		tolerated("Latin-1", withDescription(chain(swap("UTF-8", "ISO-8859-1"), swap(`modelName="quarter`, "modelName=\"\xfcquarter"))), place, "ISO-8859-1"),
		refused("unknown encoding", withDescription(swap("UTF-8", "EBCDIC-INT")), place, "EBCDIC-INT"),
		refused("wrong root", withDescription(whole("<html/>")), place, "html", "fmiModelDescription"),
		refused("FMI 3", withDescription(swap(`fmiVersion="2.0"`, `fmiVersion="3.0"`)), place, "3.0"),
		refused("FMI 1", withDescription(swap(`fmiVersion="2.0"`, `fmiVersion="1.0"`)), place, "1.0"),
		refused("FMI 3 in full", withDescription(whole(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="BouncingBall" instantiationToken="{1AE5E10D-9521-4DE3-80B9-D0EAAA7D5AF1}">
  <CoSimulation modelIdentifier="BouncingBall"/>
  <ModelVariables><Float64 name="h" valueReference="1" causality="output" start="1"/></ModelVariables>
  <ModelStructure><Output valueReference="1"/></ModelStructure>
</fmiModelDescription>`)), place, "3.0"),
		refused("root in a namespace", withDescription(chain(swap("<fmiModelDescription ", `<f:fmiModelDescription xmlns:f="urn:f" `), swap("</fmiModelDescription>", "</f:fmiModelDescription>"))), place, "fmiModelDescription"),
		refused("two roots", withDescription(func(s string) string { return s + "<fmiModelDescription/>" }), place, "second root"),
		refused("attribute twice", withDescription(swap(`modelName=`, `modelName="x" modelName=`)), place, "modelName", "twice"),
		refused("no GUID", withDescription(swap(` guid="`, ` gguid="`)), place, "guid"),
		refused("Model Exchange only", withDescription(func(s string) string {
			a, b := strings.Index(s, "<CoSimulation"), strings.Index(s, "</CoSimulation>")
			return s[:a] + `<ModelExchange modelIdentifier="x"/>` + s[b+len("</CoSimulation>"):]
		}), place, "Model Exchange"),
		refused("no model identifier", withDescription(swap(` modelIdentifier="quarter_chassis_a"`, "")), place, "modelIdentifier"),
		refused("model identifier with a path", withDescription(swap(` modelIdentifier="quarter_chassis_a"`, ` modelIdentifier="../../slipped"`)), place, "slipped"),
		refused("NaN", withDescription(swap(`start="400"`, `start="NaN"`)), place, "NaN", "ScalarVariable[5]/Real/@start"),
		refused("infinite start", withDescription(swap(`start="400"`, `start="INF"`)), place, "INF", "ScalarVariable[5]/Real/@start"),
		refused("text for a number", withDescription(swap(`start="400"`, `start="heavy"`)), place, "heavy"),
		refused("text for a boolean", withDescription(swap(`canInterpolateInputs="true"`, `canInterpolateInputs="True"`)), place, "True"),
		refused("variable twice", withDescription(swap(`name="z_c"`, `name="v_c"`)), place, "v_c"),
		refused("two types", withDescription(swap(`<Real unit="N" start="0"/>`, `<Real unit="N" start="0"/><Integer start="0"/>`)), place, "ScalarVariable[1]", "second base type"),
		refused("no type", withDescription(swap(`<Real unit="N" start="0"/>`, ``)), place, "F_c"),
		tolerated("index out of range", withDescription(swap(`</Outputs>`, `<Unknown index="99999"/></Outputs>`)), place, "99999"),
		tolerated("derivative of nothing", withDescription(swap(`start="400"`, `start="400" derivative="99999"`)), place, "MD29"),
		refused("value reference out of range", withDescription(swap(`valueReference="3"`, `valueReference="99999999999"`)), place, "99999999999"),
		refused("negative value reference", withDescription(swap(`valueReference="3"`, `valueReference="-3"`)), place, "-3"),
		refused("impossible start of the default experiment", withDescription(swap(`stopTime="4"`, `stopTime="-INF"`)), place, "INF"),
		refused("ten megabytes of a name", withDescription(swap(`name="z_c"`, `name="v_c" bad`+strings.Repeat("x", 10<<20)+`="1"`)), place),
		refused("100 000 attributes", withDescription(swap(`name="z_c"`, `name="v_c" `+manyAttributes(100_000))), place, "v_c"),
	}
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` a%d="%d"`, i, i)
	}
	return b.String()
}

func hostileLibraries() []hostile {
	cut := func(n int) func(*testing.T, string) []string {
		return withLibrary(func(_ *testing.T, data []byte) []byte { return data[:min(n, len(data))] })
	}
	cases := []hostile{
		failing("wrong GUID", withDescription(func(s string) string {
			at := strings.Index(s, `guid="{`) + len(`guid="{`)
			return s[:at] + "00000000" + s[at+8:]
		}), "model", "fmi2Instantiate", "GUID"),
		refused("none", withFMU(func(_ *testing.T, all []part) []part {
			return slices.DeleteFunc(all, func(p part) bool { return !strings.HasPrefix(p.Name, "modelDescription") })
		}), "model.fmu", "no library", "FA5"),
		refused("sources only", withFMU(func(_ *testing.T, all []part) []part {
			return slices.DeleteFunc(all, func(p part) bool { return strings.HasPrefix(p.Name, "binaries/") })
		}), "model.fmu", "sources", "FA5"),
		refused("foreign", withFMU(func(_ *testing.T, all []part) []part {
			for i := range all {
				if dir, name, ok := strings.Cut(strings.TrimPrefix(all[i].Name, "binaries/"), "/"); ok && strings.HasPrefix(all[i].Name, "binaries/"+dir) {
					all[i].Name = "binaries/vax-vms/" + name
				}
			}
			return all
		}), "model.fmu", "vax-vms", "FA5"),
		refused("text", withLibrary(func(*testing.T, []byte) []byte {
			return []byte("no library at all, but long enough for a header of one")
		}), "model.fmu", victim, "FA6", loaderSays("ELF")),
		refused("empty", cut(0), "model.fmu", victim, "FA6"),
		refused("folder", withFMU(func(_ *testing.T, all []part) []part {
			for i := range all {
				if strings.HasPrefix(all[i].Name, "binaries/") {
					all[i].Name += "/x"
				}
			}
			return all
		}), "model.fmu", "FA5"),
		refused("without functions", withLibrary(func(t *testing.T, _ []byte) []byte { return compiled(t, "int nothing;\n") }), "model.fmu", "fmi2Instantiate", "FA7"),
		refused("of FMI 3", withLibrary(func(t *testing.T, _ []byte) []byte {
			return compiled(t, "void *fmi3InstantiateCoSimulation(void) { return 0; }\n")
		}), "model.fmu", "FMI 3", "FA7"),
		refused("of another types platform", withLibrary(func(t *testing.T, _ []byte) []byte {
			return compiled(t, "void *fmi2Instantiate(void) { return 0; } const char *fmi2GetTypesPlatform(void) { return \"exotic\"; }\n")
		}), "model.fmu", "exotic", "FA8"),
	}
	if runtime.GOOS == "linux" {
		cases = append(cases,
			refused("only a header", cut(70), "model.fmu", "cut off", "FA6"),
			refused("cut to a tenth", cut(2000), "model.fmu", "cut off", "FA6"),
			refused("cut to a third", cut(8000), "model.fmu", "cut off", "FA6"),
			refused("of another processor", withLibrary(func(_ *testing.T, data []byte) []byte {
				data = bytes.Clone(data)
				binary.LittleEndian.PutUint16(data[18:], 8) // MIPS
				return data
			}), "model.fmu", victim, "FA6", "ELF"))
	}
	return cases
}

// loaderSays is a word of the loader of Linux, nothing elsewhere.
func loaderSays(word string) string {
	if runtime.GOOS == "linux" {
		return word
	}
	return ""
}

// compiled builds a shared library of a source.
func compiled(t *testing.T, source string) []byte {
	t.Helper()
	compiler := strings.Fields(os.Getenv("CC"))
	if len(compiler) == 0 {
		compiler = []string{"cc"}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.c"), []byte(source))
	cmd := exec.Command(compiler[0], append(compiler[1:], "-shared", "-fPIC", "-o", "x.so", "x.c")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed (install one or set CC): %v\n%s", err, out)
	}
	return read(t, filepath.Join(dir, "x.so"))
}

func hostileSystems() []hostile {
	const ssd = "SystemStructure.ssd"
	packed := func(change func(all []part) []part) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			r, err := zip.OpenReader(system(t, "quarter-car-a"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var all []part
			for _, f := range r.File {
				data, err := fs.ReadFile(r, f.Name)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, part{zip.FileHeader{Name: f.Name}, data})
			}
			path := filepath.Join(dir, "system.ssp")
			pack(t, path, change(all))
			return []string{path}
		}
	}
	add := func(name string) func(*testing.T, string) []string {
		return packed(func(all []part) []part { return append(all, part{zip.FileHeader{Name: name}, []byte("x")}) })
	}
	onDisk := func(name, text string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, name), []byte(text))
			return []string{filepath.Join(dir, name)}
		}
	}
	return []hostile{
		// The package.
		refused("slip", add("../slipped.txt"), "system.ssp", "slipped.txt", "FA2"),
		refused("absolute name", add("/tmp/macrostep-slipped.txt"), "system.ssp", "absolute", "FA2"),
		refused("bomb by ratio", packed(func(all []part) []part {
			return append(all, part{zip.FileHeader{Name: "zeros", Method: zip.Deflate}, make([]byte, 100<<20)})
		}), "system.ssp", "times its size", "FA2S"),
		refused("no document", packed(func(all []part) []part {
			return slices.DeleteFunc(all, func(p part) bool { return p.Name == ssd })
		}), "system.ssp", ssd),
		refused("document of another name", packed(func(all []part) []part {
			for i := range all {
				if all[i].Name == ssd {
					all[i].Name = "system.ssd"
				}
			}
			return all
		}), "system.ssp", "system.ssd"),
		refused("damaged FMU in a package", packed(func(all []part) []part {
			for i := range all {
				if strings.HasSuffix(all[i].Name, "quarter_wheel_a.fmu") {
					all[i].data = all[i].data[:1000]
				}
			}
			return all
		}), "quarter_wheel_a.fmu", "not a readable ZIP archive", "FA0"),
		refused("empty package", onDisk("system.ssp", ""), "system.ssp", "empty"),
		refused("text as a package", onDisk("system.ssp", "hello\n"), "system.ssp"),
		refused("empty document", onDisk("system.ssd", ""), "system.ssd", "empty"),
		refused("empty folder", func(t *testing.T, dir string) []string { return []string{dir} }, ssd),
		refused("folder in place of the document", func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, ssd, "x"), nil)
			return []string{dir}
		}, ssd, "no ordinary file"),
		refused("no such system", func(_ *testing.T, dir string) []string { return []string{filepath.Join(dir, "none.ssp")} }, "none.ssp"),
		refused("another kind of file", onDisk("system.msim", "version 1"), "system.msim"),

		// The document as XML.
		refused("truncated", withSystem(func(s string) string { return s[:len(s)/2] }, nil), ssd, "SD1"),
		refused("200 000 nested elements", withSystem(whole(deep("<?xml version='1.0'?>")), nil), ssd, "nested deeper", "SD1"),
		refused("external entity", withSystem(chain(afterProlog(external), swap(`name="quarter-car-a"`, `name="&secret;"`)), nil), ssd, "secret", "SD1"),
		refused("entities of entities", withSystem(chain(afterProlog(laughs), swap(`name="quarter-car-a"`, `name="&c;"`)), nil), ssd, "SD1"),
		refused("UTF-16", withSystem(utf16Text, nil), ssd, "UTF-16", "SD1"),
		refused("NUL byte", withSystem(swap(`name="quarter`, "name=\"\x00quarter"), nil), ssd, "U+0000", "SD1"),
		refused("not in UTF-8", withSystem(swap(`name="quarter`, "name=\"\xffquarter"), nil), ssd, "UTF-8", "SD1"),
		refused("wrong root", withSystem(whole("<html/>"), nil), ssd, "html", "SD1"),
		refused("wrong namespace", withSystem(swap("SSP1/SystemStructureDescription", "SSP9/SystemStructureDescription"), nil), ssd, "SSP9", "SD1"),
		refused("no system", withSystem(func(s string) string {
			a, b := strings.Index(s, "<ssd:System "), strings.Index(s, "</ssd:System>")
			return s[:a] + s[b+len("</ssd:System>"):]
		}, nil), ssd, "System", "SD1"),
		refused("attribute twice", withSystem(swap(`name="chassis"`, `name="chassis" name="wheel"`), nil), ssd, "twice", "SD1"),
		tolerated("undeclared prefix", withSystem(swap(`xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"`, ""), nil), ssd, "ssc", "SD1T"),

		// Components.
		refused("missing FMU", withSystem(swap("resources/quarter_wheel_a.fmu", "resources/other.fmu"), nil), ssd, "resources/other.fmu", "wheel", "SD2"),
		refused("folder in place of an FMU in a system", withSystem(swap("resources/quarter_wheel_a.fmu", "resources"), nil), "resources", "modelDescription.xml"),
		refused("text in place of an FMU", withSystem(swap("resources/quarter_wheel_a.fmu", "x.fmu"), map[string]string{"x.fmu": "hello"}), "x.fmu", "FA0"),
		refused("absolute source", withSystem(swap("resources/quarter_wheel_a.fmu", "/etc/hostname"), nil), ssd, "/etc/hostname", "wheel"),
		refused("source on the web", withSystem(swap("resources/quarter_wheel_a.fmu", "https://example.com/a.fmu"), nil), ssd, "example.com", "wheel"),
		refused("source outside of the package", packed(func(all []part) []part {
			for i := range all {
				if all[i].Name == ssd {
					all[i].data = bytes.Replace(all[i].data, []byte("resources/quarter_wheel_a.fmu"), []byte("../../secret.fmu"), 1)
				}
			}
			return all
		}), ssd, "../../secret.fmu", "out of the package"),
		refused("two components of one name", withSystem(swap(`name="wheel"`, `name="chassis"`), nil), ssd, "chassis", "SD4"),
		refused("unknown kind of component", withSystem(swap("application/x-fmu-sharedlibrary", "application/avl-mcx-x"), nil), ssd, "application/avl-mcx-x"),

		// Connections.
		refused("unknown variable in a connection", withSystem(swap(connection, strings.Replace(connection, `"wheel" startConnector="F_c"`, `"wheel" startConnector="Force"`, 1)), nil), ssd, "Force", "wheel"),
		refused("connector that the FMU does not have", withSystem(func(s string) string {
			return strings.NewReplacer(`"F_c" kind="output"`, `"Force" kind="output"`, `startConnector="F_c"`, `startConnector="Force"`).Replace(s)
		}, nil), ssd, "Force", "SD6"),
		refused("unknown component in a connection", withSystem(swap(`startElement="wheel"`, `startElement="weel"`), nil), ssd, "weel", "SD5"),
		refused("unit of other dimension", withSystem(func(s string) string {
			s = swap(`"F_c" kind="output"><ssc:Real unit="N"/>`, `"F_c" kind="output"><ssc:Real unit="m"/>`)(s)
			return s
		}, nil), ssd, "F_c", "SD7D"),
		refused("connection of different dimensions", withSystem(swap(connection, strings.Replace(connection, `startConnector="F_c"`, `startConnector="v_w"`, 1)), nil), ssd, "dimension", "SD11"),
		refused("two sources on one input", withSystem(swap(connection, connection+strings.Replace(connection, `startConnector="F_c"`, `startConnector="v_w"`, 1)), nil), ssd, "chassis", "F_c", "SD9"),
		refused("input to input", withSystem(swap(connection, strings.Replace(connection, `startConnector="F_c"`, `startConnector="v_c"`, 1)), nil), ssd, "SD8"),
		refused("wrong kind of a connector", withSystem(swap(`"F_c" kind="output"`, `"F_c" kind="exhaust"`), nil), ssd, "exhaust"),
		refused("kind against the FMU", withSystem(swap(`"v_w" kind="output"`, `"v_w" kind="input"`), nil), ssd, "v_w", "SD6").onlyStrict(),
		refused("factor that is no number", withSystem(swap(connection, strings.Replace(connection, "/>", `><ssc:LinearTransformation factor="NaN"/></ssd:Connection>`, 1)), nil), ssd, "NaN", "SD1"),
		refused("unknown transformation", withSystem(swap(connection, strings.Replace(connection, "/>", `><ssc:BooleanMappingTransformation><ssc:MapEntry source="true" target="false"/></ssc:BooleanMappingTransformation></ssd:Connection>`, 1)), nil), ssd, "SD12"),

		// Experiment and annotation.
		refused("stop before start", withSystem(swap(`stopTime="4"`, `stopTime="-4"`), nil), "-4"),
		refused("text for a time", withSystem(swap(`stopTime="4"`, `stopTime="late"`), nil), ssd, "late"),
		refused("step size of zero", withSystem(swap(`stepSize="0.001"`, `stepSize="0"`), nil), ssd, "stepSize"),
		refused("unknown version of the annotation", withSystem(swap(`ssp/1" version="1"`, `ssp/1" version="99"`), nil), ssd, "99", "SD21O"),
		refused("misspelt setting in the annotation", withSystem(swap(`stepSize="0.001"`, `stepsize="0.001"`), nil), ssd, "stepsize", "SD21O"),
		refused("unknown algorithm in the annotation", withSystem(swap(`stepSize="0.001"`, `stepSize="0.001" algorithm="magic"`), nil), "magic"),

		// Values and mappings.
		refused("missing set", withSystem(swap(systemHead, systemHead+fmt.Sprintf(bindings, `<ssd:ParameterBinding source="none.ssv"/>`)), nil), ssd, "none.ssv", "SD2"),
		refused("folder in place of a set", withSystem(swap(systemHead, systemHead+fmt.Sprintf(bindings, `<ssd:ParameterBinding source="resources"/>`)), nil), ssd, "resources", "SD2"),
		refused("empty set", withSet(""), "set.ssv", "empty", "SD1"),
		refused("truncated set", withSet(values("wheel.m_w", `<ssv:Real value="1"/>`)[:250]), "set.ssv", "SD1"),
		refused("set that is something else", withSet(fmt.Sprintf(mapHead, "")), "set.ssv", "SD1"),
		refused("nested set", withSet(deep("")), "set.ssv", "nested deeper", "SD1"),
		refused("entity in a set", withSet(external+strings.Replace(values("wheel.m_w", `<ssv:Real value="1"/>`), `value="1"`, `value="&secret;"`, 1)), "set.ssv", "SD1"),
		refused("UTF-16 in a set", withSet(utf16Text(values("wheel.m_w", `<ssv:Real value="1"/>`))), "set.ssv", "UTF-16", "SD1"),
		refused("NaN in a set", withSet(values("wheel.m_w", `<ssv:Real value="NaN"/>`)), "set.ssv", "NaN"),
		refused("text for a Real", withSet(values("wheel.m_w", `<ssv:String value="heavy"/>`)), "set.ssv", "m_w", "SD17"),
		refused("value of a type that is none", withSet(values("wheel.m_w", `<ssv:Matrix value="1"/>`)), "set.ssv", "Matrix"),
		refused("Real for an Integer", withSet(values("wheel.micro_steps", `<ssv:Real value="1.5"/>`)), "set.ssv", "micro_steps", "SD17"),
		refused("below the minimum", withSet(values("wheel.micro_steps", `<ssv:Integer value="0"/>`)), "set.ssv", "micro_steps", "SD17"),
		refused("Integer that is too large", withSet(values("wheel.micro_steps", `<ssv:Integer value="99999999999"/>`)), "set.ssv", "99999999999"),
		refused("unit of other dimension in a set", withSet(strings.Replace(values("wheel.m_w", `<ssv:Real value="1" unit="s"/>`), "</ssv:Parameters>", `</ssv:Parameters><ssv:Units><ssc:Unit name="s"><ssc:BaseUnit s="1"/></ssc:Unit></ssv:Units>`, 1)), "set.ssv", "m_w", "SD11"),
		refused("value for an output", withSet(values("wheel.F_c", `<ssv:Real value="1"/>`)), "F_c", "SD14S"),
		tolerated("value for nothing", withSet(values("wheel.nothing", `<ssv:Real value="1"/>`)), "nothing", "SD14"),
		refused("missing mapping", withSystem(swap(systemHead, systemHead+fmt.Sprintf(bindings, `<ssd:ParameterBinding source="resources/set.ssv"><ssd:ParameterMapping source="none.ssm"/></ssd:ParameterBinding>`)),
			map[string]string{"resources/set.ssv": values("m", `<ssv:Real value="1"/>`)}), "none.ssm", "SD2"),
		refused("empty mapping", withSet(values("m", `<ssv:Real value="1"/>`), ""), "map.ssm", "empty", "SD1"),
		refused("truncated mapping", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, "")[:100]), "map.ssm", "SD1"),
		refused("mapping that is something else", withSet(values("m", `<ssv:Real value="1"/>`), values("m", "")), "map.ssm", "SD1"),
		refused("nested mapping", withSet(values("m", `<ssv:Real value="1"/>`), deep("")), "map.ssm", "nested deeper", "SD1"),
		refused("mapping without target", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, `<ssm:MappingEntry source="m"/>`)), "map.ssm", "target", "SD1"),
		refused("two sources for one target", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, `<ssm:MappingEntry source="m" target="wheel.m_w"/><ssm:MappingEntry source="n" target="wheel.m_w"/>`)), "map.ssm", "m_w", "SD16T").onlyStrict(),
		refused("mapping by a factor that is no number", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, `<ssm:MappingEntry source="m" target="wheel.m_w"><ssc:LinearTransformation xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" factor="x"/></ssm:MappingEntry>`)), "map.ssm", "SD1"),
		tolerated("mapping of nothing", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, `<ssm:MappingEntry source="none" target="wheel.m_w"/>`)), "none", "SD15S"),
	}
}

// onlyStrict makes a refused case one that the tolerant reading lets pass.
func (h hostile) onlyStrict() hostile {
	h.strictCode, h.strictWords = 2, h.words
	h.code, h.words = 0, nil
	return h
}

func hostileOptions() []hostile {
	folder := func(flag, name string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			return []string{system(t, "quarter-car-a"), flag, filepath.Join(dir, name)}
		}
	}
	return []hostile{
		refused("misspelt option", option("--stoptime", "1"), "--stoptime", "--stop-time"),
		refused("misspelt parameter", option("--param", "ordre=1"), "ordre", "order"),
		refused("misspelt algorithm", option("--algorithm", "gaus-seidel"), "gaus-seidel", "gauss-seidel"),
		refused("misspelt variable", option("--set", "wheel.M_w=1"), "wheel", "M_w", "m_w"),
		refused("misspelt component", option("--set", "weel.m_w=1"), "weel", "wheel"),
		refused("text for a parameter", option("--param", "order=high"), "order", "high"),
		refused("parameter out of range", option("--param", "order=-1"), "order", "-1"),
		refused("parameter without value", option("--param", "order"), "order", "="),
		refused("text for a Real", option("--set", "wheel.m_w=heavy"), "wheel.m_w", "Real"),
		refused("NaN", option("--set", "wheel.m_w=NaN"), "wheel.m_w", "finite"),
		refused("Real for an Integer", option("--set", "wheel.micro_steps=1.5"), "wheel.micro_steps", "Integer"),
		refused("Integer that is too large", option("--set", "wheel.micro_steps=4294967296"), "wheel.micro_steps", "32 bits"),
		refused("output that is set", option("--set", "wheel.F_c=1"), "wheel.F_c", "output"),
		refused("set twice", option("--set", "wheel.m_w=1", "--set", "wheel.m_w=2"), "wheel.m_w", "twice"),
		refused("option twice", option("--stop-time", "1", "--stop-time", "2"), "--stop-time", "twice"),
		refused("option without value", option("--stop-time"), "--stop-time", "needs a value"),
		refused("text for a time", option("--stop-time", "late"), "--stop-time", "late"),
		refused("infinite time", option("--stop-time", "inf"), "--stop-time", "inf"),
		refused("stop before start", option("--start-time", "2", "--stop-time", "1"), "--stop-time", "--start-time"),
		refused("negative step", option("--step-size", "-1"), "--step-size", "-1"),
		refused("too many steps", option("--step-size", "1e-300"), "step"),
		refused("negative tolerance", option("--tolerance", "-1"), "--tolerance"),
		refused("negative interval", option("--output-interval", "0"), "--output-interval"),
		refused("unknown level", option("--log-level", "loud"), "--log-level", "loud", "debug"),
		refused("record of nothing", option("--record", "wheel.nothing"), "wheel.nothing"),
		refused("stateless that is nobody", option("--stateless", "nobody"), "nobody", "chassis"),
		refused("results into a folder", folder("--output", "r.csv"), "r.csv"),
		refused("manifest into a folder", folder("--manifest", "m.json"), "m.json"),
		refused("log into a folder", folder("--log-fmi-calls", "l.txt"), "l.txt"),
		refused("results into no folder", option("--output", filepath.Join("no", "such", "r.csv")), "such"),
		refused("results over the system", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "s.ssp")
			write(t, path, read(t, system(t, "quarter-car-a")))
			return []string{path, "--output", path}
		}, "overwrite", "s.ssp"),

		refused("no input file", option("--input", "none.csv"), "--input", "none.csv"),
		refused("folder as input", folder("--input", "in.csv"), "--input", "in.csv"),
		refused("empty input", table("--input", ""), "table.csv", "empty"),
		refused("input without times", table("--input", "quarter_chassis_a.F_c\n1\n"), "table.csv", "time"),
		refused("input without rows", table("--input", "time,quarter_chassis_a.F_c\n"), "table.csv", "row"),
		refused("ragged input", table("--input", "time,quarter_chassis_a.F_c\n0,1\n1\n"), "table.csv", "3"),
		refused("text in an input", table("--input", "time,quarter_chassis_a.F_c\n0,a\n"), "table.csv", "F_c"),
		refused("NaN in an input", table("--input", "time,quarter_chassis_a.F_c\n0,NaN\n"), "table.csv", "NaN"),
		refused("time that goes back", table("--input", "time,quarter_chassis_a.F_c\n1,1\n0,1\n"), "table.csv", "3"),
		refused("NaN as time", table("--input", "time,quarter_chassis_a.F_c\nNaN,1\n"), "table.csv", "2"),
		refused("input of nobody", table("--input", "time,nobody.F_c\n0,1\n"), "table.csv", "nobody"),
		refused("input of no variable", table("--input", "time,quarter_chassis_a.nothing\n0,1\n"), "table.csv", "nothing"),
		refused("input that is an output", table("--input", "time,quarter_chassis_a.v_c\n0,1\n"), "table.csv", "v_c"),
		refused("input that is a parameter", table("--input", "time,quarter_chassis_a.m_c\n0,1\n"), "table.csv", "m_c"),
		refused("column twice", table("--input", "time,quarter_chassis_a.F_c,quarter_chassis_a.F_c\n0,1,2\n"), "table.csv", "F_c", "twice"),
		refused("open quote", table("--input", "time,\"quarter_chassis_a.F_c\n0,1\n"), "table.csv"),
		refused("NUL in an input", table("--input", "time,quarter_chassis_a.F_c\n0,\x00\n"), "table.csv"),
		refused("UTF-16 in an input", table("--input", utf16Text("time,quarter_chassis_a.F_c\n0,1\n")), "table.csv"),
		refused("connected input", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "table.csv")
			write(t, path, []byte("time,wheel.v_c\n0,1\n"))
			return []string{system(t, "quarter-car-a"), "--input", path}
		}, "wheel.v_c", "connected"),
		refused("empty history", table("--history", ""), "table.csv", "empty"),
		refused("history without a column", table("--history", "time,wheel.F_c\n-1,0\n"), "table.csv", "chassis.v_c"),
	}
}

// Nothing that is put before macrostep makes it panic, hang, write where it
// should not or leave anything behind; it says what is wrong, where, and what
// to do, once, with the exit code as defined: 2 for what is found before the
// first FMU is instantiated, 1 after that.
func TestHostile(t *testing.T) {
	take := long.Sample(11)
	groups := map[string][]hostile{
		"archive": hostileArchives(), "description": hostileDescriptions(), "library": hostileLibraries(),
		"system": hostileSystems(), "options": hostileOptions(),
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, c := range groups[group] {
			if !take() {
				continue
			}
			t.Run(group+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

func (h *hostile) run(t *testing.T) {
	dir := t.TempDir()
	inputs, cwd, temp := filepath.Join(dir, "in"), filepath.Join(dir, "cwd"), filepath.Join(dir, "tmp")
	for _, d := range []string{inputs, cwd, temp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	args := h.build(t, inputs)
	before := tree(t, dir)
	for _, strict := range []bool{false, true} {
		code, words := h.code, h.words
		call := append([]string{"run"}, args...)
		if !slices.Contains(args, "--stop-time") && !slices.Contains(args, "--start-time") && !strings.Contains(h.name, "stop before start") && !strings.Contains(h.name, "for a time") {
			call = append(call, "--stop-time", "0.01")
		}
		if strict {
			call = append(call, "--strict")
			if h.strictCode != same {
				code, words = h.strictCode, h.strictWords
			}
		}
		got, output := contained(t, cwd, temp, call...)
		if got != code {
			t.Errorf("%v: exit code %d, want %d\n%s", call, got, code, clipped(output))
		}
		oneMessage(t, output, code, words)
		if after := tree(t, dir); code == 2 && !maps.Equal(before, after) {
			t.Errorf("%v: the files changed: before %v, after %v", call, before, after)
		}
		emptied(t, temp)
		if code == 2 {
			continue
		}
		// What the run wrote is where it belongs; the next one begins as this did.
		for name := range tree(t, dir) {
			if _, old := before[name]; !old {
				if filepath.Dir(name) != "cwd" || !strings.HasPrefix(filepath.Base(name), "results.") {
					t.Errorf("%v: wrote %s", call, name)
				}
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// Whatever it is, info does not fall over it either.
	if _, err := os.Stat(args[0]); err == nil {
		code, output := contained(t, cwd, temp, "info", args[0])
		if code != 0 && code != 2 {
			t.Errorf("info %s: exit code %d\n%s", args[0], code, clipped(output))
		}
		oneMessage(t, output, code, nil)
		emptied(t, temp)
	}
}

// contained calls the program in one folder with another one for temporary files.
func contained(t *testing.T, cwd, temp string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = cwd
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// oneMessage checks a message: one, with the words, not endless, no traceback.
func oneMessage(t *testing.T, output string, code int, words []string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(output, w) {
			t.Errorf("%q is not in\n%s", w, clipped(output))
		}
	}
	for _, bad := range []string{"goroutine ", "panic", "runtime error", "%!", "SIG"} {
		if strings.Contains(output, bad) {
			t.Errorf("%q is in\n%s", bad, clipped(output))
		}
	}
	if n := strings.Count(output, "macrostep: "); code != 0 && n != 1 {
		t.Errorf("%d messages instead of one:\n%s", n, clipped(output))
	}
	// "must be a whole number from 0 to 5" says what would be right, too.
	if code != 0 && !strings.Contains(output, "; ") && !strings.Contains(output, "See: ") && !strings.Contains(output, ": must be ") {
		t.Errorf("no remedy in\n%s", clipped(output))
	}
	if len(output) > 20_000 {
		t.Errorf("%d bytes of output:\n%s", len(output), clipped(output))
	}
}

func clipped(s string) string {
	if len(s) > 2000 {
		s = s[:1500] + " … " + s[len(s)-500:]
	}
	return s
}

// emptied checks that nothing was left among the temporary files.
func emptied(t *testing.T, temp string) {
	t.Helper()
	entries, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", e.Name())
		_ = os.RemoveAll(filepath.Join(temp, e.Name()))
	}
}

// tree gives the files below a folder with size and time of change.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		all[rel] = fmt.Sprint(info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
