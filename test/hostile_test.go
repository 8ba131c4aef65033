package test

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// hostile is a file or an option that macrostep must meet with a clear message.
type hostile struct {
	name  string
	build maker
	// code and strict are the exit codes without and with --strict; words are in the message of a run that fails.
	code, strict int
	words        []string
}

// refused is a case that fails before the first FMU is instantiated.
func refused(name string, build maker, words ...string) hostile {
	return hostile{name, build, 2, 2, words}
}

// accepted is a case that looks odd but is right.
func accepted(name string, build maker) hostile { return hostile{name, build, 0, 0, nil} }

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

// bound returns a maker of the quarter car whose system is bound to a file with one value.
func bound(name, value string) maker {
	const ssp = `="http://ssp-standard.org/SSP1/SystemStructure`
	set := `<ssv:ParameterSet xmlns:ssv` + ssp + `ParameterValues" xmlns:ssc` + ssp + `Common" version="1.0" name="set"><ssv:Parameters>` +
		`<ssv:Parameter name="` + name + `"><ssv:Real value="` + value + `"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>`
	const system = `<ssd:System name="quarter-car-a">`
	binding := `<ssd:ParameterBindings><ssd:ParameterBinding source="resources/set.ssv"/></ssd:ParameterBindings>`
	return withSystem(swap(system, system+binding), map[string]string{"resources/set.ssv": set})
}

// external declares an entity in another file.
var external = swap("?>", `?><!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/hostname">]>`)

// linked is a maker of a file that is a link to itself.
func linked(t *testing.T, dir string) []string {
	path := filepath.Join(dir, "model.fmu")
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// piped is a maker of a named pipe.
func piped(t *testing.T, dir string) []string {
	path := filepath.Join(dir, "model.fmu")
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	return []string{path}
}

// intoFolder is a maker of results whose name is that of a folder.
func intoFolder(t *testing.T, dir string) []string {
	mkdir(t, filepath.Join(dir, "r.csv"))
	return []string{system(t, "quarter-car-a"), "--output", filepath.Join(dir, "r.csv")}
}

// overSystem is a maker of results that would replace the system.
func overSystem(t *testing.T, dir string) []string {
	path := filepath.Join(dir, "s.ssp")
	write(t, path, read(t, system(t, "quarter-car-a")))
	return []string{path, "--output", path}
}

// hostiles are the cases: of each kind of file one path through, and what only the program as a whole can show. The
// rules of archives, descriptions, libraries and systems are tested where they are.
func hostiles() []hostile {
	const ssd, wheel, place = "SystemStructure.ssd", "resources/quarter_wheel_a.fmu", "model.fmu!modelDescription.xml"
	secret := func(s string) string {
		return external(swap(`modelName="quarter_chassis_a"`, `modelName="&secret;"`)(s))
	}
	foreign := edited("binaries/", func(p *part) { p.Name = "binaries/vax-vms/" + path.Base(p.Name) })
	cases := []hostile{
		refused("archive/slip", withFMU(adding(zip.FileHeader{Name: "../slipped.txt"}, "x")), "../slipped.txt", `".."`, "FA2"),
		refused("archive/link to itself", linked, "model.fmu"),

		refused("description/external entity", withDescription(secret), place, "secret"),
		accepted("description/document type that is not used", withDescription(external)),
		refused("description/model identifier with a path",
			withDescription(swap(`modelIdentifier="quarter`, `modelIdentifier="../../quarter`)), place, "../../quarter"),
		refused("description/NaN", withDescription(swap(`start="400"`, `start="NaN"`)), place, "NaN", "ScalarVariable[5]/Real/@start"),
		refused("description/ten megabytes of a name",
			withDescription(swap(`name="z_c"`, `name="v_c" bad`+strings.Repeat("x", 10<<20)+`="1"`)), place),

		{"library/wrong GUID", withDescription(swap(`guid="{`, `guid="{0`)), 1, 1, []string{"model", "fmi2Instantiate", "GUID"}},
		refused("library/foreign", withFMU(foreign), "model.fmu", "vax-vms", "FA5"),

		refused("system/damaged FMU in a package", packed(edited(wheel, func(p *part) { p.data = p.data[:1000] })),
			"quarter_wheel_a.fmu", "not a readable ZIP archive", "FA0"),
		refused("system/stop before start", withSystem(swap(`stopTime="4"`, `stopTime="-4"`), nil), "-4"),
		refused("system/unknown version of the annotation", withSystem(swap(`ssp/1" version="1"`, `ssp/1" version="99"`), nil),
			ssd, "99", "SD21O"),
		refused("system/unknown algorithm in the annotation",
			withSystem(swap(`stepSize="0.001"`, `stepSize="0.001" algorithm="magic"`), nil), "magic"),
		refused("system/NaN in a set", bound("wheel.m_w", "NaN"), "set.ssv", "NaN"),
		{"system/value for nothing", bound("wheel.nothing", "1"), 0, 2, []string{"nothing", "SD14"}},

		refused("options/results into a folder", intoFolder, "r.csv"),
		refused("options/results over the system", overSystem, "overwrite", "s.ssp"),
	}
	if runtime.GOOS != "windows" {
		cases = append(cases, refused("archive/pipe in place of an FMU", piped, "model.fmu", "pipe", "FA0"))
	}
	return cases
}

// No file or option makes macrostep panic, hang, write where it should not or leave anything behind. One message
// names the fault, its place and the remedy. The exit code is 2 if no FMU was instantiated, else 1.
func TestHostile(t *testing.T) {
	take := long.Sample(5)
	for _, c := range hostiles() {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
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
	if h.name != "system/stop before start" {
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
