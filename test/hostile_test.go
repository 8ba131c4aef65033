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
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// hostile is a file or an option that macrostep must meet with a clear message.
type hostile struct {
	name  string
	build func(t *testing.T, dir string) []string // writes what it needs into dir and returns the arguments of macrostep run
	// code and strict are the exit codes without and with --strict; words are in the message of a run that fails.
	code, strict int
	words        []string
}

// refused is a case that fails before the first FMU is instantiated.
func refused(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name, build, 2, 2, words}
}

// failing is a case that fails when an FMU is used.
func failing(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name, build, 1, 1, words}
}

// tolerated is a case that only --strict refuses.
func tolerated(name string, build func(t *testing.T, dir string) []string, words ...string) hostile {
	return hostile{name, build, 0, 2, words}
}

// accepted is a case that looks odd but is right.
func accepted(name string, build func(t *testing.T, dir string) []string) hostile {
	return hostile{name, build, 0, 0, nil}
}

const victim = "quarter_chassis_a" // the FMU that gets damaged

// maker writes what a case needs into a folder and returns the arguments of macrostep run.
type maker = func(t *testing.T, dir string) []string

// archive returns a maker of a copy of an archive with its entries changed.
func archive(name string, original func(t testing.TB) string, change func(all []part) []part) maker {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, name)
		pack(t, path, change(entries(t, original(t)))...)
		return []string{path}
	}
}

// withFMU returns a maker of a single FMU with its entries changed.
func withFMU(change func(all []part) []part) maker {
	return archive("model.fmu", func(t testing.TB) string { return fmu(t, victim) }, change)
}

// packed returns a maker of the quarter car as a package with its entries changed.
func packed(change func(all []part) []part) maker {
	return archive("system.ssp", func(t testing.TB) string { return system(t, "quarter-car-a") }, change)
}

// adding appends an entry.
func adding(h zip.FileHeader, data string) func(all []part) []part {
	return func(all []part) []part { return append(all, part{h, []byte(data)}) }
}

// edited changes the entries whose names begin with prefix.
func edited(prefix string, change func(p *part)) func(all []part) []part {
	return func(all []part) []part {
		for i := range all {
			if strings.HasPrefix(all[i].Name, prefix) {
				change(&all[i])
			}
		}
		return all
	}
}

// without removes the entries that match.
func without(match func(name string) bool) func(all []part) []part {
	return func(all []part) []part { return slices.DeleteFunc(all, func(p part) bool { return match(p.Name) }) }
}

// withBytes returns a maker of a single FMU whose archive is changed byte by byte.
func withBytes(change func(data []byte) []byte) maker {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "model.fmu")
		write(t, path, change(read(t, fmu(t, victim))))
		return []string{path}
	}
}

// withDescription returns a maker of a single FMU with its modelDescription.xml changed.
func withDescription(change func(text string) string) maker {
	return withFMU(edited("modelDescription.xml", func(p *part) {
		before := string(p.data)
		if p.data = []byte(change(before)); string(p.data) == before {
			panic("the test changes nothing")
		}
	}))
}

// swap replaces the first occurrence of a text.
func swap(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// withSystem returns a maker of the folder of the quarter car with its document changed and files added.
func withSystem(change func(text string) string, files map[string]string) maker {
	return func(t *testing.T, dir string) []string {
		data, err := fmus.SystemDocument("quarter-car-a")
		if err != nil {
			t.Fatal(err)
		}
		text := change(string(data))
		if text == string(data) {
			t.Fatal("the test changes nothing")
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

// table returns a maker of a file for a flag, with the quarter car or, for --input, one of its FMUs.
func table(flag, text string) maker {
	return func(t *testing.T, dir string) []string {
		path := filepath.Join(dir, "table.csv")
		write(t, path, text)
		subject := system(t, "quarter-car-a")
		if flag == "--input" {
			subject = fmu(t, victim)
		}
		return []string{subject, flag, path}
	}
}

// bound returns a maker of the quarter car whose system is bound to a file of values, with a mapping if given.
func bound(set, mapping string) maker {
	const (
		ssp  = `="http://ssp-standard.org/SSP1/SystemStructure`
		head = `<ssv:ParameterSet xmlns:ssv` + ssp + `ParameterValues" xmlns:ssc` + ssp +
			`Common" version="1.0" name="set"><ssv:Parameters>`
	)
	inside, files := "", map[string]string{"resources/set.ssv": head + set + `</ssv:Parameters></ssv:ParameterSet>`}
	if mapping != "" {
		inside = `<ssd:ParameterMapping source="resources/map.ssm"/>`
		files["resources/map.ssm"] = `<ssm:ParameterMapping xmlns:ssm` + ssp + `ParameterMapping" version="1.0">` +
			mapping + `</ssm:ParameterMapping>`
	}
	return withSystem(binding("resources/set.ssv", inside), files)
}

// binding adds a parameter binding to the system of a document.
func binding(source, inside string) func(string) string {
	const system = `<ssd:System name="quarter-car-a">`
	return swap(system, system+`<ssd:ParameterBindings><ssd:ParameterBinding source="`+source+`">`+inside+`</ssd:ParameterBinding></ssd:ParameterBindings>`)
}

// deep returns a document of 200 000 nested elements.
func deep(string) string {
	const n = 200_000
	return "<?xml version='1.0'?>" + strings.Repeat("<a>", n) + strings.Repeat("</a>", n)
}

// utf16Text encodes a text with a byte order mark.
func utf16Text(s string) string {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, utf16.Encode([]rune("\uFEFF"+s))) // a buffer gives no error
	return b.String()
}

// external declares an entity in another file.
var external = swap("?>", `?><!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/hostname">]>`)

func half(s string) string { return s[:len(s)/2] }

// encrypted marks an entry as encrypted in the central directory of an archive.
func encrypted(data []byte) []byte {
	const name = "sources/fmu.c"
	at := bytes.LastIndex(data, []byte(name)) - 46 // the header before the name
	data[at+8] |= 1
	return data
}

func hostileArchives() []hostile {
	link := zip.FileHeader{Name: "resources/link"}
	link.SetMode(fs.ModeSymlink | 0o777)
	zeros := zip.FileHeader{Name: "resources/zeros", Method: zip.Deflate}
	backslashes := edited("", func(p *part) { p.Name = strings.ReplaceAll(p.Name, "/", `\`) })
	cases := []hostile{
		refused("slip", withFMU(adding(zip.FileHeader{Name: "../slipped.txt"}, "x")), "../slipped.txt", `".."`, "FA2"),
		refused("symbolic link", withFMU(adding(link, "/etc/hostname")), "resources/link", "is a link", "FA2"),
		accepted("separator", withFMU(backslashes)),
		refused("bomb", withFMU(adding(zeros, string(make([]byte, 100<<20)))), "times its size", "FA2S"),
		refused("encrypted", withBytes(encrypted), "sources/fmu.c", "encrypted", "FA2"),
		refused("truncated", withBytes(func(data []byte) []byte { return data[:len(data)/2] }), "not a readable ZIP archive", "FA0"),
		refused("link to itself", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "model.fmu")
			if err := os.Symlink(path, path); err != nil {
				t.Fatal(err)
			}
			return []string{path}
		}, "model.fmu"),
	}
	if runtime.GOOS != "windows" {
		cases = append(cases, refused("pipe in place of an FMU", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "model.fmu")
			if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
				t.Fatalf("mkfifo: %v: %s", err, out)
			}
			return []string{path}
		}, "model.fmu", "pipe", "FA0"))
	}
	return cases
}

func hostileDescriptions() []hostile {
	const place = "model.fmu!modelDescription.xml"
	secret := func(s string) string {
		return external(swap(`modelName="quarter_chassis_a"`, `modelName="&secret;"`)(s))
	}
	return []hostile{
		refused("truncated", withDescription(half), place, "MD"),
		refused("200 000 nested elements", withDescription(deep), place, "MD"),
		refused("external entity", withDescription(secret), place, "secret"),
		accepted("document type that is not used", withDescription(external)),
		accepted("UTF-16", withDescription(utf16Text)),
		refused("FMI 3", withDescription(swap(`fmiVersion="2.0"`, `fmiVersion="3.0"`)), place, "3.0"),
		refused("model identifier with a path", withDescription(swap(`modelIdentifier="quarter`, `modelIdentifier="../../quarter`)),
			place, "../../quarter"),
		refused("NaN", withDescription(swap(`start="400"`, `start="NaN"`)), place, "NaN", "ScalarVariable[5]/Real/@start"),
		refused("variable twice", withDescription(swap(`name="z_c"`, `name="v_c"`)), place, "v_c"),
		refused("ten megabytes of a name", withDescription(swap(`name="z_c"`, `name="v_c" bad`+strings.Repeat("x", 10<<20)+`="1"`)), place),
	}
}

func hostileLibraries() []hostile {
	const exotic = `void *fmi2Instantiate(void) { return 0; } const char *fmi2GetTypesPlatform(void) { return "exotic"; }`
	library := func(change func(data []byte) []byte) maker {
		return withFMU(edited("binaries/", func(p *part) { p.data = change(p.data) }))
	}
	foreign := edited("binaries/", func(p *part) { p.Name = "binaries/vax-vms/" + path.Base(p.Name) })
	cases := []hostile{
		failing("wrong GUID", withDescription(swap(`guid="{`, `guid="{0`)), "model", "fmi2Instantiate", "GUID"),
		refused("none", withFMU(without(func(name string) bool { return name != "modelDescription.xml" })),
			"model.fmu", "no library", "FA5"),
		refused("foreign", withFMU(foreign), "model.fmu", "vax-vms", "FA5"),
		refused("text", library(func([]byte) []byte { return []byte(strings.Repeat("no library at all ", 10)) }),
			"model.fmu", victim, "FA6"),
		refused("of another types platform", func(t *testing.T, dir string) []string {
			data := compiled(t, exotic)
			return library(func([]byte) []byte { return data })(t, dir)
		}, "model.fmu", "exotic", "FA8"),
	}
	if runtime.GOOS == "linux" {
		cases = append(cases, refused("cut to a third", library(func(data []byte) []byte { return data[:8000] }),
			"model.fmu", "cut off", "FA6"))
	}
	return cases
}

// compiled builds a shared library of a source.
func compiled(t *testing.T, source string) []byte {
	t.Helper()
	cc, err := csrc.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.c"), source)
	if err := csrc.Library(t.Context(), cc, dir, filepath.Join(dir, "x.so"), "-fPIC", "x.c"); err != nil {
		t.Fatal(err)
	}
	return read(t, filepath.Join(dir, "x.so"))
}

func hostileSystems() []hostile {
	const ssd, wheel = "SystemStructure.ssd", "resources/quarter_wheel_a.fmu"
	const mass = `<ssv:Parameter name="m"><ssv:Real value="1"/></ssv:Parameter>`
	outside := edited(ssd, func(p *part) { p.data = []byte(swap(wheel, "../../secret.fmu")(string(p.data))) })
	return []hostile{
		refused("no document", packed(without(func(name string) bool { return name == ssd })), "system.ssp", ssd),
		refused("damaged FMU in a package", packed(edited(wheel, func(p *part) { p.data = p.data[:1000] })),
			"quarter_wheel_a.fmu", "not a readable ZIP archive", "FA0"),
		refused("200 000 nested elements", withSystem(deep, nil), ssd, "nested deeper", "SD1"),
		refused("missing FMU", withSystem(swap(wheel, "resources/other.fmu"), nil), ssd, "resources/other.fmu", "wheel", "SD2"),
		refused("source outside of the package", packed(outside), ssd, "../../secret.fmu", "out of the package"),
		refused("stop before start", withSystem(swap(`stopTime="4"`, `stopTime="-4"`), nil), "-4"),
		refused("unknown version of the annotation", withSystem(swap(`ssp/1" version="1"`, `ssp/1" version="99"`), nil), ssd,
			"99", "SD21O"),
		refused("unknown algorithm in the annotation",
			withSystem(swap(`stepSize="0.001"`, `stepSize="0.001" algorithm="magic"`), nil), "magic"),
		refused("missing set", withSystem(binding("none.ssv", ""), nil), ssd, "none.ssv", "SD2"),
		refused("NaN in a set", bound(`<ssv:Parameter name="wheel.m_w"><ssv:Real value="NaN"/></ssv:Parameter>`, ""), "set.ssv", "NaN"),
		tolerated("value for nothing", bound(`<ssv:Parameter name="wheel.nothing"><ssv:Real value="1"/></ssv:Parameter>`, ""),
			"nothing", "SD14"),
		tolerated("two sources for one target",
			bound(mass, `<ssm:MappingEntry source="m" target="wheel.m_w"/><ssm:MappingEntry source="n" target="wheel.m_w"/>`),
			"map.ssm", "SD15S"),
	}
}

func hostileOptions() []hostile {
	return []hostile{
		refused("results into a folder", func(t *testing.T, dir string) []string {
			mkdir(t, filepath.Join(dir, "r.csv"))
			return []string{system(t, "quarter-car-a"), "--output", filepath.Join(dir, "r.csv")}
		}, "r.csv"),
		refused("results over the system", func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "s.ssp")
			write(t, path, read(t, system(t, "quarter-car-a")))
			return []string{path, "--output", path}
		}, "overwrite", "s.ssp"),
		refused("ragged input", table("--input", "time,quarter_chassis_a.F_c\n0,1\n1\n"), "table.csv", "3"),
		refused("NaN in an input", table("--input", "time,quarter_chassis_a.F_c\n0,NaN\n"), "table.csv", "NaN"),
		refused("history without a column", table("--history", "time,wheel.F_c\n-1,0\n"), "table.csv", "chassis.v_c"),
	}
}

// No file or option makes macrostep panic, hang, write where it should not or leave anything behind. One message
// names the fault, its place and the remedy. The exit code is 2 if no FMU was instantiated, else 1.
func TestHostile(t *testing.T) {
	take := long.Sample(17)
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
	call := append([]string{"run"}, args...)
	if h.name != "stop before start" {
		call = append(call, "--stop-time", "0.01")
	}
	for _, code := range []int{h.code, h.strict} {
		got, output := contained(t, cwd, temp, call...)
		if got != code {
			t.Errorf("%v: exit code %d, want %d\n%s", call, got, code, clipped(output))
		}
		words := h.words
		if code == 0 {
			words = nil
		}
		oneMessage(t, output, code, words)
		if after := tree(t, dir); code == 2 && !maps.Equal(before, after) {
			t.Errorf("%v: the files changed: before %v, after %v", call, before, after)
		}
		emptied(t, temp)
		for name := range tree(t, dir) { // the next run begins as this one did
			if _, old := before[name]; old {
				continue
			}
			if filepath.Dir(name) != "cwd" || !strings.HasPrefix(filepath.Base(name), "results.") {
				t.Errorf("%v: wrote %s", call, name)
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		call = append(call, "--strict")
	}
	if _, err := os.Stat(args[0]); err == nil { // macrostep info survives it, too
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
	// "must be a whole number from 0 to 5" is a remedy, too.
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

// tree returns the files below a folder with size and time of change.
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
