package test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/record"
)

var tableKey = regexp.MustCompile("`((?:[a-z_0-9]+|\\[\\])(?:\\[\\]|\\.\\*|\\.[a-z_0-9]+)*)`")

// documentedKeys returns the keys in the first columns of the tables of a section, up to the next one of its level.
func documentedKeys(t *testing.T, page, title string) map[string]bool {
	t.Helper()
	_, section, ok := strings.Cut(page, "\n"+title+"\n")
	if !ok {
		t.Fatalf("the page has no section %s", title)
	}
	level, _, _ := strings.Cut(title, " ")
	section, _, _ = strings.Cut(section, "\n"+level+" ")
	keys := map[string]bool{}
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			column, _, _ := strings.Cut(line[2:], " | ")
			for _, m := range tableKey.FindAllStringSubmatch(column, -1) {
				keys[m[1]] = true
			}
		}
	}
	return keys
}

// keysOfType adds the keys of a type that JSON is made of: a.b of an object, a[] of a list, a.* of an object with any keys.
func keysOfType(keys map[string]bool, at string, of reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer:
		keysOfType(keys, at, of.Elem())
	case reflect.Slice:
		keysOfType(keys, at+"[]", of.Elem())
	case reflect.Map:
		keysOfType(keys, at+".*", of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			keysOfType(keys, strings.TrimPrefix(at+"."+name, "."), of.Field(i).Type)
		}
	default:
		keys[at] = true
	}
}

// keysOfValue is keysOfType for a decoded document. An object whose documented key ends in .* has any keys.
func keysOfValue(keys, documented map[string]bool, at string, value any) {
	if documented[at] || documented[at+"[]"] { // a value, or what another table describes
		return
	}
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			keysOfValue(keys, documented, at+"[]", v)
		}
	case map[string]any:
		for k, v := range value {
			if documented[at+".*"] {
				k = "*"
			}
			keysOfValue(keys, documented, strings.TrimPrefix(at+"."+k, "."), v)
		}
	case nil: // an object that does not exist has no keys here
		for k := range documented {
			if strings.HasPrefix(k, at+".") {
				return
			}
		}
		keys[at] = true
	default:
		keys[at] = true
	}
}

// The page on scripts names every key of the manifest, also in nested objects, and no other.
func TestScriptingPageManifest(t *testing.T) {
	page := string(read(t, filepath.Join("..", "docs", "scripting.md")))
	documented, keys := documentedKeys(t, page, "## Manifest"), map[string]bool{}
	keysOfType(keys, "", reflect.TypeFor[record.Manifest]())
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !documented[key] {
			t.Errorf("docs/scripting.md lacks the key %s of the manifest", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if !keys[key] {
			t.Errorf("docs/scripting.md has %s, which is no key of the manifest", key)
		}
	}
}

// The page names every key that the commands print as JSON, but for the structure of systems in analyses.
func TestScriptingPageJSON(t *testing.T) {
	dir := t.TempDir()
	page := string(read(t, filepath.Join("..", "docs", "scripting.md")))
	path := system(t, "quarter-car-a")
	write(t, filepath.Join(dir, "a.csv"), "time,x,y\n0,1,1\n1,2,2\n")
	write(t, filepath.Join(dir, "b.csv"), "time,x,z\n0,1,1\n1,3,2\n")
	set := filepath.Join(dir, "set.ssp")
	if code, out := macrostepIn(t, dir, "ssp", "set", path, "wheel.k_w=2e5", "-o", set); code != 0 {
		t.Fatal(out)
	}
	for title, args := range map[string][]string{
		"### info SYSTEM":                {"info", set, "--json"},
		"### info FMU":                   {"info", fmu(t, "mass_force"), "--json"},
		"### info SYSTEM --explain NAME": {"info", set, "--json", "--explain", "chassis.F_c"},
		"### info SYSTEM --bonds":        {"info", set, "--json", "--bonds"},
		"### validate":                   {"validate", set, "--json"},
		"### algorithms":                 {"algorithms", "--json"},
		"### compare":                    {"compare", "a.csv", "b.csv", "--json"},
		"### analyze":                    {"analyze", path, "--json", "--algorithm", "explicit", "--stop-time", "1"},
	} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, _ := cmd.Output() // compare answers no
		var document any
		if err := json.Unmarshal(out, &document); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		documented, keys := documentedKeys(t, page, title), map[string]bool{}
		keysOfValue(keys, documented, "", document)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			t.Errorf("%s of docs/scripting.md lacks the key %s", title, key)
		}
	}
}

// The program of the page runs as it stands. Where no python3 is installed, the rest of the page is tested only; where it is,
// a wrong program fails.
func TestScriptingPageProgram(t *testing.T) {
	dir := t.TempDir()
	ran, _ := runPage(t, dir, string(read(t, filepath.Join("..", "docs", "scripting.md"))), func(string) bool { return false })
	if len(ran) != 0 { // the demo is built without its command
		t.Errorf("%v were run", ran)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("the program is not run: ", err)
		return
	}
	for system, want := range map[string]string{"": "4000 steps; chassis.z_c is at most 0.1", "no.ssp": "macrostep: no.ssp: no such file"} {
		text := string(read(t, filepath.Join(dir, "peak.py")))
		if system != "" {
			text = strings.Replace(text, "macrostep-demo/quarter-car-a.ssp", system, 1)
		}
		write(t, filepath.Join(dir, "tried.py"), text)
		cmd := exec.Command(python, "tried.py")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), want) || (err == nil) != (system == "") {
			t.Errorf("%v, want %s:\n%s", err, want, out)
		}
	}
}
