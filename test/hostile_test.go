package test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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

const victim = "quarter_chassis_a" // the FMU that gets damaged

// withFMU gives a single FMU whose entries were changed.
func withFMU(change func(t *testing.T, all []part) []part) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "model.fmu")
		pack(t, path, change(t, entries(t, fmu(t, victim)))...)
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
		write(t, filepath.Join(path, "SystemStructure.ssd"), text)
		copyFMUs(t, filepath.Join(path, "resources"), "quarter_chassis_a", "quarter_wheel_a")
		for name, text := range files {
			write(t, filepath.Join(path, name), text)
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
		write(t, path, text)
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
	cases := []hostile{
		refused("slip", withEntry(zip.FileHeader{Name: "../slipped.txt"}, "x"), "../slipped.txt", `".."`, "FA2"),
		refused("symbolic link", withEntry(link, "/etc/hostname"), "resources/link", "is a link", "FA2"),
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
		}), "sources/fmu.c", "cannot unpack"),
		refused("encrypted", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { h[8] |= 1 })
		}), "sources/fmu.c", "encrypted", "FA2"),
		refused("unknown method", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "sources/fmu.c", func(h []byte) { h[10] = 14 })
		}), "sources/fmu.c", "method 14", "FA2"),
		refused("wrong checksum", withBytes(func(t *testing.T, data []byte) []byte {
			return patchDirectory(t, data, "modelDescription.xml", func(h []byte) { h[16] ^= 0xff })
		}), "modelDescription.xml", "checksum"),
		refused("truncated", withBytes(func(_ *testing.T, data []byte) []byte { return data[:len(data)/2] }), "not a readable ZIP archive", "FA0"),
		refused("empty file", withBytes(func(*testing.T, []byte) []byte { return nil }), "model.fmu", "empty", "FA0"),
		refused("folder in place of an FMU", func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, "model.fmu", "readme.txt"), "")
			return []string{filepath.Join(dir, "model.fmu")}
		}, "modelDescription.xml"),
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
			refused("pipe in place of a description", func(t *testing.T, dir string) []string {
				mkdir(t, filepath.Join(dir, "model.fmu"))
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
		refused("truncated", withDescription(func(s string) string { return s[:len(s)/2] }), place, "MD"),
		refused("200 000 nested elements", withDescription(whole(deep("<?xml version='1.0'?>"))), place, "MD"),
		refused("external entity", withDescription(chain(afterProlog(external), swap(`modelName="quarter_chassis_a"`, `modelName="&secret;"`))), place, "secret"),
		refused("entities of entities", withDescription(chain(afterProlog(laughs), swap(`modelName="quarter_chassis_a"`, `modelName="&c;"`))), place, "c;"),
		accepted("document type that is not used", withDescription(afterProlog(external))),
		tolerated("UTF-16", withDescription(utf16Text), place, "UTF-16"),
		refused("NUL byte", withDescription(swap(`modelName="quarter`, "modelName=\"\x00quarter")), place, "U+0000"),
		refused("FMI 3", withDescription(swap(`fmiVersion="2.0"`, `fmiVersion="3.0"`)), place, "3.0"),
		refused("no GUID", withDescription(swap(` guid="`, ` gguid="`)), place, "guid"),
		refused("no model identifier", withDescription(swap(` modelIdentifier="quarter_chassis_a"`, "")), place, "modelIdentifier"),
		refused("model identifier with a path", withDescription(swap(` modelIdentifier="quarter_chassis_a"`, ` modelIdentifier="../../slipped"`)), place, "slipped"),
		refused("NaN", withDescription(swap(`start="400"`, `start="NaN"`)), place, "NaN", "ScalarVariable[5]/Real/@start"),
		refused("text for a boolean", withDescription(swap(`canInterpolateInputs="true"`, `canInterpolateInputs="True"`)), place, "True"),
		refused("variable twice", withDescription(swap(`name="z_c"`, `name="v_c"`)), place, "v_c"),
		tolerated("index out of range", withDescription(swap(`</Outputs>`, `<Unknown index="99999"/></Outputs>`)), place, "99999"),
		refused("value reference out of range", withDescription(swap(`valueReference="3"`, `valueReference="99999999999"`)), place, "99999999999"),
		refused("negative value reference", withDescription(swap(`valueReference="3"`, `valueReference="-3"`)), place, "-3"),
		refused("ten megabytes of a name", withDescription(swap(`name="z_c"`, `name="v_c" bad`+strings.Repeat("x", 10<<20)+`="1"`)), place),
	}
}

func hostileLibraries() []hostile {
	cases := []hostile{
		failing("wrong GUID", withDescription(func(s string) string {
			at := strings.Index(s, `guid="{`) + len(`guid="{`)
			return s[:at] + "00000000" + s[at+8:]
		}), "model", "fmi2Instantiate", "GUID"),
		refused("none", withFMU(func(_ *testing.T, all []part) []part {
			return slices.DeleteFunc(all, func(p part) bool { return !strings.HasPrefix(p.Name, "modelDescription") })
		}), "model.fmu", "no library", "FA5"),
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
		refused("of another types platform", withLibrary(func(t *testing.T, _ []byte) []byte {
			return compiled(t, "void *fmi2Instantiate(void) { return 0; } const char *fmi2GetTypesPlatform(void) { return \"exotic\"; }\n")
		}), "model.fmu", "exotic", "FA8"),
	}
	if runtime.GOOS == "linux" {
		cut := withLibrary(func(_ *testing.T, data []byte) []byte { return data[:8000] })
		cases = append(cases, refused("cut to a third", cut, "model.fmu", "cut off", "FA6"))
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
	write(t, filepath.Join(dir, "x.c"), source)
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
			path := filepath.Join(dir, "system.ssp")
			pack(t, path, change(entries(t, system(t, "quarter-car-a")))...)
			return []string{path}
		}
	}
	add := func(name string) func(*testing.T, string) []string {
		return packed(func(all []part) []part { return append(all, part{zip.FileHeader{Name: name}, []byte("x")}) })
	}
	onDisk := func(name, text string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			write(t, filepath.Join(dir, name), text)
			return []string{filepath.Join(dir, name)}
		}
	}
	return []hostile{
		// The package.
		refused("slip", add("../slipped.txt"), "system.ssp", "slipped.txt", "FA2"),
		refused("bomb by ratio", packed(func(all []part) []part {
			return append(all, part{zip.FileHeader{Name: "zeros", Method: zip.Deflate}, make([]byte, 100<<20)})
		}), "system.ssp", "times its size", "FA2S"),
		refused("no document", packed(func(all []part) []part {
			return slices.DeleteFunc(all, func(p part) bool { return p.Name == ssd })
		}), "system.ssp", ssd),
		refused("damaged FMU in a package", packed(func(all []part) []part {
			for i := range all {
				if strings.HasSuffix(all[i].Name, "quarter_wheel_a.fmu") {
					all[i].data = all[i].data[:1000]
				}
			}
			return all
		}), "quarter_wheel_a.fmu", "not a readable ZIP archive", "FA0"),
		refused("empty document", onDisk("system.ssd", ""), "system.ssd", "empty"),

		// The document as XML.
		refused("200 000 nested elements", withSystem(whole(deep("<?xml version='1.0'?>")), nil), ssd, "nested deeper", "SD1"),
		refused("entities of entities", withSystem(chain(afterProlog(laughs), swap(`name="quarter-car-a"`, `name="&c;"`)), nil), ssd, "SD1"),

		// Components.
		refused("missing FMU", withSystem(swap("resources/quarter_wheel_a.fmu", "resources/other.fmu"), nil), ssd, "resources/other.fmu", "wheel", "SD2"),
		refused("folder in place of an FMU in a system", withSystem(swap("resources/quarter_wheel_a.fmu", "resources"), nil), "resources", "modelDescription.xml"),
		refused("text in place of an FMU", withSystem(swap("resources/quarter_wheel_a.fmu", "x.fmu"), map[string]string{"x.fmu": "hello"}), "x.fmu", "FA0"),
		refused("source outside of the package", packed(func(all []part) []part {
			for i := range all {
				if all[i].Name == ssd {
					all[i].data = bytes.Replace(all[i].data, []byte("resources/quarter_wheel_a.fmu"), []byte("../../secret.fmu"), 1)
				}
			}
			return all
		}), ssd, "../../secret.fmu", "out of the package"),
		refused("two components of one name", withSystem(swap(`name="wheel"`, `name="chassis"`), nil), ssd, "chassis", "SD4"),

		// Connections.
		refused("connection of different dimensions", withSystem(swap(connection, strings.Replace(connection, `startConnector="F_c"`, `startConnector="v_w"`, 1)), nil), ssd, "dimension", "SD11"),
		refused("kind against the FMU", withSystem(swap(`"v_w" kind="output"`, `"v_w" kind="input"`), nil), ssd, "v_w", "SD6").onlyStrict(),

		// Experiment and annotation.
		refused("stop before start", withSystem(swap(`stopTime="4"`, `stopTime="-4"`), nil), "-4"),
		refused("unknown version of the annotation", withSystem(swap(`ssp/1" version="1"`, `ssp/1" version="99"`), nil), ssd, "99", "SD21O"),
		refused("unknown algorithm in the annotation", withSystem(swap(`stepSize="0.001"`, `stepSize="0.001" algorithm="magic"`), nil), "magic"),

		// Values and mappings.
		refused("missing set", withSystem(swap(systemHead, systemHead+fmt.Sprintf(bindings, `<ssd:ParameterBinding source="none.ssv"/>`)), nil), ssd, "none.ssv", "SD2"),
		refused("truncated set", withSet(values("wheel.m_w", `<ssv:Real value="1"/>`)[:250]), "set.ssv", "SD1"),
		refused("UTF-16 in a set", withSet(utf16Text(values("wheel.m_w", `<ssv:Real value="1"/>`))), "set.ssv", "UTF-16", "SD1"),
		refused("NaN in a set", withSet(values("wheel.m_w", `<ssv:Real value="NaN"/>`)), "set.ssv", "NaN"),
		refused("below the minimum", withSet(values("wheel.micro_steps", `<ssv:Integer value="0"/>`)), "set.ssv", "micro_steps", "SD17"),
		tolerated("value for nothing", withSet(values("wheel.nothing", `<ssv:Real value="1"/>`)), "nothing", "SD14"),
		refused("mapping that is something else", withSet(values("m", `<ssv:Real value="1"/>`), values("m", "")), "map.ssm", "SD1"),
		refused("two sources for one target", withSet(values("m", `<ssv:Real value="1"/>`), fmt.Sprintf(mapHead, `<ssm:MappingEntry source="m" target="wheel.m_w"/><ssm:MappingEntry source="n" target="wheel.m_w"/>`)), "map.ssm", "m_w", "SD16T").onlyStrict(),
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
			mkdir(t, filepath.Join(dir, name))
			return []string{system(t, "quarter-car-a"), flag, filepath.Join(dir, name)}
		}
	}
	return []hostile{
		refused("misspelt option", option("--stoptime", "1"), "--stoptime", "--stop-time"),
		refused("misspelt parameter", option("--param", "ordre=1"), "ordre", "order"),
		refused("misspelt variable", option("--set", "wheel.M_w=1"), "wheel", "M_w", "m_w"),
		refused("parameter out of range", option("--param", "order=-1"), "order", "-1"),
		refused("NaN", option("--set", "wheel.m_w=NaN"), "wheel.m_w", "finite"),
		refused("output that is set", option("--set", "wheel.F_c=1"), "wheel.F_c", "output"),
		refused("stop before start", option("--start-time", "2", "--stop-time", "1"), "--stop-time", "--start-time"),
		refused("too many steps", option("--step-size", "1e-300"), "step"),
		refused("results into a folder", folder("--output", "r.csv"), "r.csv"),
		refused("manifest into a folder", folder("--manifest", "m.json"), "m.json"),
		refused("results over the system", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "s.ssp")
			write(t, path, read(t, system(t, "quarter-car-a")))
			return []string{path, "--output", path}
		}, "overwrite", "s.ssp"),

		refused("folder as input", folder("--input", "in.csv"), "--input", "in.csv"),
		refused("empty input", table("--input", ""), "table.csv", "empty"),
		refused("ragged input", table("--input", "time,quarter_chassis_a.F_c\n0,1\n1\n"), "table.csv", "3"),
		refused("NaN in an input", table("--input", "time,quarter_chassis_a.F_c\n0,NaN\n"), "table.csv", "NaN"),
		refused("time that goes back", table("--input", "time,quarter_chassis_a.F_c\n1,1\n0,1\n"), "table.csv", "3"),
		refused("input of nobody", table("--input", "time,nobody.F_c\n0,1\n"), "table.csv", "nobody"),
		refused("UTF-16 in an input", table("--input", utf16Text("time,quarter_chassis_a.F_c\n0,1\n")), "table.csv"),
		refused("connected input", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "table.csv")
			write(t, path, "time,wheel.v_c\n0,1\n")
			return []string{system(t, "quarter-car-a"), "--input", path}
		}, "wheel.v_c", "connected"),
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
		mkdir(t, d)
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
	for _, name := range listed(t, temp) {
		t.Errorf("left behind: %s", name)
		_ = os.RemoveAll(filepath.Join(temp, name))
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
