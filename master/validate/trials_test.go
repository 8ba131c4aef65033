package validate_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/validate"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/store"
)

// outcome makes something wrong, or right, and gives its path.
type outcome struct {
	rule        string
	fails, pass func(t *testing.T) string
	options     validate.Options
}

func check(t *testing.T, list []outcome, ours func(id string) bool) {
	tested := map[string]bool{}
	for _, c := range list {
		t.Run(c.rule, func(t *testing.T) {
			tested[c.rule] = true
			rule, known := validate.Find(c.rule)
			if !known {
				t.Fatal("there is no such rule")
			}
			for _, side := range []struct {
				make func(t *testing.T) string
				want bool
			}{{c.fails, true}, {c.pass, false}} {
				r, err := validate.File(t.Context(), side.make(t), c.options)
				must(t, err)
				i := slices.IndexFunc(r.Findings, func(f finding) bool { return f.ID == c.rule })
				switch {
				case (i >= 0) != side.want:
					t.Errorf("found: %t, want %t: %v", i >= 0, side.want, r.Findings)
				case i >= 0 && (r.Findings[i].Level != rule.Level || r.Findings[i].File == "" || r.Findings[i].Level > diag.Info && r.Findings[i].Remedy == "" && rule.Remedy != ""):
					t.Errorf("finding %+v", r.Findings[i])
				}
			}
		})
	}
	for _, r := range validate.Rules() {
		if ours(r.ID) && !tested[r.ID] {
			t.Errorf("%s has no examples", r.ID)
		}
	}
}

// entry is a file of an archive.
type entry struct{ name, text string }

// packed writes an archive.
func packed(name string, entries ...entry) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, e := range entries {
			f, err := w.Create(e.name)
			if err == nil {
				_, err = io.WriteString(f, e.text)
			}
			must(t, err)
		}
		must(t, w.Close())
		path := filepath.Join(t.TempDir(), name)
		write(t, path, b.String())
		return path
	}
}

// changed rewrites the bytes of what another makes.
func changed(of func(t *testing.T) string, change func(data []byte) []byte) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		path := of(t)
		data, err := os.ReadFile(path)
		must(t, err)
		write(t, path, string(change(data)))
		return path
	}
}

const smallest = `<fmiModelDescription fmiVersion="2.0" modelName="a" guid="{a}"><CoSimulation modelIdentifier="a"/><ModelVariables/><ModelStructure/></fmiModelDescription>`

const emptySystem = `<SystemStructureDescription version="1.0" name="x" xmlns="http://ssp-standard.org/SSP1/SystemStructureDescription"><System name="x"/></SystemStructureDescription>`

// The rules on archives have examples.
func TestArchives(t *testing.T) {
	description := entry{"modelDescription.xml", smallest}
	good := packed("a.fmu", description)
	check(t, []outcome{
		{rule: "FA0", fails: changed(good, func([]byte) []byte { return []byte("hello") }), pass: good},
		{rule: "FA1", fails: packed("a.fmu", description, entry{`resources\a.txt`, ""}), pass: good},
		{rule: "FA1V", fails: changed(good, func(data []byte) []byte {
			at := bytes.Index(data, []byte("PK\x01\x02"))
			data[at+6] = 45 // version needed
			return data
		}), pass: good},
		{rule: "FA2", fails: packed("a.fmu", description, entry{"../a.txt", ""}), pass: packed("a.fmu", description, entry{"resources/a..txt", ""})},
		{rule: "FA2L", fails: packed("a.fmu", description, entry{"a.txt", "1"}, entry{"a.txt", "1"}), pass: good},
		{rule: "FA2S", fails: packed("a.fmu", description, entry{"resources/zeros", strings.Repeat("\x00", 80<<20)}), pass: good},
		{rule: "FA3", fails: packed("a.fmu", entry{"a/modelDescription.xml", smallest}), pass: good},
		{rule: "SD2V", fails: packed("a.ssp", entry{"SystemStructure.ssd", emptySystem}, entry{"Other.ssd", emptySystem}), pass: packed("a.ssp", entry{"SystemStructure.ssd", emptySystem})},
	}, func(id string) bool {
		return slices.Contains([]string{"FA0", "FA1", "FA1V", "FA2", "FA2L", "FA2S", "FA3"}, id)
	})
}

// made are the FMUs that were built, by what they were built of; they live as long as
// the tests.
var made = map[string]string{}

// once builds an FMU at its first use.
func once(t *testing.T, key string, build func(dir string) (string, error)) string {
	t.Helper()
	if made[key] == "" {
		dir, err := os.MkdirTemp(work, "")
		if err == nil {
			made[key], err = build(dir)
		}
		must(t, err)
	}
	return made[key]
}

// built returns one of our FMUs.
func built(name string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return once(t, name, func(dir string) (string, error) { return fmus.Build(dir, name) })
	}
}

// misbehaving builds one that does something wrong.
func misbehaving(name string, starts ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		values := map[string]string{}
		for i := 0; i < len(starts); i += 2 {
			values[starts[i]] = starts[i+1]
		}
		return once(t, fmt.Sprint(name, starts), func(dir string) (string, error) { return fmus.BuildMisbehaving(dir, "bad", name, values) })
	}
}

// unpacked unpacks what another makes, and lets a function change it.
func unpacked(of func(t *testing.T) string, change func(t *testing.T, dir string)) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		z, err := zip.OpenReader(of(t))
		must(t, err)
		defer z.Close()
		dir := filepath.Join(t.TempDir(), "unpacked")
		must(t, os.CopyFS(dir, z))
		change(t, dir)
		return dir
	}
}

// inDescription replaces text in the description.
func inDescription(old, new string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, "modelDescription.xml")
		data, err := os.ReadFile(path)
		must(t, err)
		if !strings.Contains(string(data), old) {
			t.Fatalf("%q is not in the description:\n%s", old, data)
		}
		write(t, path, strings.Replace(string(data), old, new, 1))
	}
}

// library returns the path of the library.
func library(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "binaries", "*", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("libraries %v, %v", found, err)
	}
	return found[0]
}

// stored builds an FMU that keeps what it is given, after changes to its description
// and source: old and new in turn.
func stored(evaluate string, edits ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		variables := []store.Variable{{Name: "u", Causality: "input"}, {Name: "y", Causality: "output", On: []int{}}, {Name: "p", Causality: "parameter"}}
		description, source := store.Description("stored", variables...), store.Source(evaluate, variables...)
		for i := 0; i < len(edits); i += 2 {
			before := description + source
			description, source = strings.Replace(description, edits[i], edits[i+1], 1), strings.Replace(source, edits[i], edits[i+1], 1)
			if description+source == before {
				t.Fatalf("%q is neither in the description nor in the source:\n%s\n%s", edits[i], description, source)
			}
		}
		return once(t, description+source, func(dir string) (string, error) { return fmus.Pack(dir, "stored", description, source) })
	}
}

// loop couples y = b u with y = u.
func loop(b string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		fmu, err := os.ReadFile(built("polynomial")(t))
		must(t, err)
		component := func(name, b string) string {
			return `<ssd:Component name="` + name + `" source="p.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="y" kind="output"/></ssd:Connectors>
<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters><ssv:Parameter name="b"><ssv:Real value="` + b + `"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings></ssd:Component>`
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "p.fmu"), string(fmu))
		write(t, filepath.Join(dir, "SystemStructure.ssd"), `<ssd:SystemStructureDescription version="1.0" name="loop" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
<ssd:System name="loop"><ssd:Elements>`+component("f", b)+component("g", "1")+`</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="f" startConnector="y" endElement="g" endConnector="u"/><ssd:Connection startElement="g" startConnector="y" endElement="f" endConnector="u"/>
</ssd:Connections></ssd:System></ssd:SystemStructureDescription>`)
		return dir
	}
}

// alone puts an FMU into a system.
func alone(of func(t *testing.T) string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		fmu, err := os.ReadFile(of(t))
		must(t, err)
		dir := t.TempDir()
		write(t, filepath.Join(dir, "p.fmu"), string(fmu))
		write(t, filepath.Join(dir, "SystemStructure.ssd"), `<ssd:SystemStructureDescription version="1.0" name="alone" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription">
<ssd:System name="alone"><ssd:Elements><ssd:Component name="f" source="p.fmu"/></ssd:Elements></ssd:System></ssd:SystemStructureDescription>`)
		return dir
	}
}

// The rules on libraries, and on what FMUs do, have examples.
func TestTrials(t *testing.T) {
	o := validate.Options{Dynamic: true, Launcher: &worker.Launcher{}}
	folder, suffix := here(t)
	good := misbehaving("misbehave")
	plain := built("mass_force")
	const reset = "fmi2Status fmi2Reset(fmi2Component c) { return (void)c, fmi2Error; }"
	const working = "fmi2Status fmi2Reset(fmi2Component c) { return *(Store *)c = (Store){{0}, 0}, fmi2OK; }"
	sources := func(change func(t *testing.T, dir string)) func(t *testing.T) string {
		return func(t *testing.T) string {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "modelDescription.xml"), `<fmiModelDescription fmiVersion="2.0" modelName="a" guid="{a}"><CoSimulation modelIdentifier="a"><SourceFiles><File name="a.c"/></SourceFiles></CoSimulation><ModelVariables/><ModelStructure/></fmiModelDescription>`)
			write(t, filepath.Join(dir, "sources", "a.c"), "void *fmi2Instantiate(void) { return 0; }\nconst char *fmi2GetTypesPlatform(void) { return \"default\"; }\nconst char *fmi2GetVersion(void) { return \"2.0\"; }\n")
			change(t, dir)
			return dir
		}
	}
	pid := "getpid"
	if runtime.GOOS == "windows" {
		pid = "_getpid"
	}
	compiled := o
	compiled.Compile = true
	unchanged := func(*testing.T, string) {}
	list := []outcome{
		{rule: "FA5", fails: packed("a.fmu", entry{"modelDescription.xml", smallest}), pass: plain},
		{rule: "FA6", fails: packed("a.fmu", entry{"modelDescription.xml", smallest}, entry{"binaries/" + folder + "/a" + suffix, "no library"}), pass: plain, options: o},
		{rule: "FA6G", fails: misbehaving("misbehave_load"), pass: plain, options: o},
		{rule: "FA6N", fails: unpacked(plain, func(t *testing.T, dir string) {
			path := library(t, dir)
			must(t, os.Rename(path, filepath.Join(filepath.Dir(path), "other"+suffix)))
		}), pass: plain},
		{rule: "FA6S", fails: func(t *testing.T) string {
			path, err := fmus.Pack(t.TempDir(), "a", smallest, `#define OWN __attribute__((visibility("default")))
OWN double timezone;
OWN char **environ;
OWN int fmi2DoStep(void) { return timezone + (environ != 0); }`)
			must(t, err)
			return path
		}, pass: plain},
		{rule: "FA7", fails: func(t *testing.T) string {
			path, err := fmus.Pack(t.TempDir(), "a", smallest, "int fmi2DoStep(void) { return 0; }")
			must(t, err)
			return path
		}, pass: plain, options: o},
		{rule: "FA7M", fails: stored("r[1] = r[0]", reset, ""), pass: good, options: o},
		{rule: "FA8", fails: stored("r[1] = r[0]", "return fmi2TypesPlatform", `return "other"`), pass: plain, options: o},
		{rule: "FA8V", fails: stored("r[1] = r[0]", "return fmi2Version", `return "1.0"`), pass: plain, options: o},
		{rule: "FA9", fails: misbehaving("misbehave_refuse"), pass: plain, options: o},
		{rule: "FA10", fails: misbehaving("misbehave", "fault", "LogEnvironment"), pass: good, options: o},
		{rule: "FA11S", fails: sources(func(t *testing.T, dir string) { write(t, filepath.Join(dir, "sources", "a.c"), "no C") }), pass: sources(unchanged), options: compiled},
		{rule: "FA11G", fails: sources(inDescription(`<SourceFiles><File name="a.c"/></SourceFiles>`, "")), pass: sources(unchanged), options: compiled},
		{rule: "FA11O", fails: sources(func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "sources", "buildDescription.xml"), `<fmiBuildDescription fmiVersion="2.0"><BuildConfiguration modelIdentifier="a"><SourceFileSet compilerOptions="-Dno_such=1"><SourceFile name="a.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>`)
		}), pass: sources(unchanged), options: compiled},

		{rule: "DY1", fails: misbehaving("misbehave", "fault", "Error"), pass: good, options: o},
		{rule: "DY1L", fails: misbehaving("misbehave", "fault", "Warning"), pass: good, options: o},
		{rule: "DY2", fails: stored("r[1] = r[0]", `start="0"/></ScalarVariable>`, `start="5"/></ScalarVariable>`), pass: stored("r[1] = r[0]"), options: o},
		{rule: "DY3", fails: misbehaving("misbehave", "fault", "NaN", "during", "GetReal"), pass: good, options: o},
		{rule: "DY3I", fails: misbehaving("misbehave", "fault", "Infinity", "during", "GetReal"), pass: good, options: o},
		{rule: "DY4", fails: misbehaving("misbehave", "fault", "ForgetState", "during", "SetFMUstate"), pass: good, options: o},
		{rule: "DY4P", fails: misbehaving("misbehave", "fault", "Uncommitted"), pass: good, options: o},
		{rule: "DY4N", fails: good, pass: misbehaving("misbehave_plain"), options: o},
		{rule: "DY5", fails: stored("extern int " + pid + "(void); r[1] = " + pid + "()"), pass: stored("r[1] = r[0]"), options: o},
		{rule: "DY5R", fails: stored("static int n; r[1] = n++", reset, working),
			pass: stored("r[1] = r[0]", reset, working), options: o},
		{rule: "DY6", fails: misbehaving("misbehave", "d", "2"), pass: good, options: o},
		{rule: "DY7", fails: stored("r[1] = 3", `causality="output"><Real`, `causality="output"><Real max="2"`), pass: stored("r[1] = 3", `causality="output"><Real`, `causality="output"><Real max="3"`), options: o},
		{rule: "DY8", fails: good, pass: misbehaving("misbehave_refuse"), options: o},
	}
	if runtime.GOOS != "linux" { // names are not replaced there
		list = slices.DeleteFunc(list, func(c outcome) bool { return c.rule == "FA6S" })
	}
	coupled := o
	coupled.Strategy = (&example{}).strategy
	list = append(list, outcome{rule: "CC4", fails: loop("-2"), pass: loop("-0.5"), options: coupled})
	list = append(list, outcome{rule: "CC29", fails: alone(misbehaving("misbehave", "fault", "ForgetState", "during", "SetFMUstate")), pass: alone(good), options: coupled})
	check(t, list, func(id string) bool {
		return id == "CC4" || id == "CC29" || strings.HasPrefix(id, "DY") || elsewhere(id) && strings.HasPrefix(id, "FA") && !slices.Contains([]string{"FA0", "FA1", "FA1V", "FA2", "FA2L", "FA2S", "FA3"}, id) && (id != "FA6S" || runtime.GOOS == "linux")
	})
}

// An FMU that ends or hangs its process while it is tried ends the trial alone.
func TestTrialEnds(t *testing.T) {
	take := long.Sample(8)
	for _, fault := range []string{"Segfault", "Exit0", "StackOverflow"} {
		for _, during := range []string{"DoStep", "Instantiate", "Terminate"} {
			if !take() {
				continue
			}
			r, err := validate.File(t.Context(), misbehaving("misbehave", "fault", fault, "during", during)(t), validate.Options{Dynamic: true, Launcher: &worker.Launcher{}})
			must(t, err)
			if !slices.ContainsFunc(r.Findings, func(f finding) bool { return f.ID == "DY1" && strings.Contains(f.Message, "fmi2"+during) }) {
				t.Errorf("%s in %s: %v", fault, during, r.Findings)
			}
		}
	}
	pending := misbehaving("misbehave", "fault", "Pending", "polls", "-1")(t)
	r, err := validate.File(t.Context(), pending, validate.Options{Dynamic: true, Launcher: &worker.Launcher{}, StepTimeout: 100 * time.Millisecond})
	must(t, err)
	if !slices.ContainsFunc(r.Findings, func(f finding) bool { return f.ID == "DY1" && strings.Contains(f.Message, "still pending after 100ms") }) {
		t.Errorf("Pending: %v", r.Findings)
	}
}
