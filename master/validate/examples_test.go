package validate_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
	"github.com/macrostep/macrostep/test/cc"
)

type finding = diag.Finding

func TestMain(m *testing.M) {
	cc.Cache()
	worker.Main() // does not return in the process of an FMU that is tried
	var err error
	if work, err = os.MkdirTemp("", "macrostep-validate-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(work)
	os.Exit(code)
}

// work is for what outlives a test.
var work string

// example is one of testdata/examples.txt.
type example struct {
	line       int
	rule, base string
	pass       bool
	options    map[string]string
	changes    []change
	at, words  string // file and line of the finding, and what its message contains; "" if that is not checked
}

// change replaces old by new in a file; without old it makes the file.
type change struct {
	file, old, new string
	whole          bool
}

func readExamples(t *testing.T) []*example {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "examples.txt"))
	must(t, err)
	var list []*example
	file := ""
	for n, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if rest, ok := strings.CutPrefix(line, "== "); ok {
			words := strings.Fields(rest)
			e := &example{line: n + 1, rule: words[0], base: words[1], options: map[string]string{}}
			for _, w := range words[2:] {
				key, value, _ := strings.Cut(w, "=")
				if key == "pass" {
					e.pass = true
				}
				e.options[key] = value
			}
			main := map[string]string{"model": "modelDescription.xml", "osp": "OspSystemStructure.xml"}[e.base]
			list, file = append(list, e), cmp.Or(e.options["file"], main, "SystemStructure.ssd")
			continue
		}
		if len(list) == 0 || line == "" {
			continue
		}
		e := list[len(list)-1]
		text := strings.ReplaceAll(line[1:], `\n`, "\n")
		last := len(e.changes) - 1
		switch {
		case line[0] == '~':
			e.at, e.words, _ = strings.Cut(line[2:], " ")
		case line[0] == '-':
			e.changes = append(e.changes, change{file: file, old: text})
		case line[0] == '+' && last >= 0 && e.changes[last].file == file && e.changes[last].whole:
			e.changes[last].new += text + "\n"
		case line[0] == '+' && last >= 0 && e.changes[last].file == file && !e.changes[last].whole:
			e.changes[last].new = text
		case line[0] == '+':
			e.changes = append(e.changes, change{file: file, new: text + "\n", whole: true})
		default:
			file = line
		}
	}
	return list
}

// here names the folder of libraries of this platform and their suffix.
func here(t *testing.T) (folder, suffix string) {
	t.Helper()
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return "linux64", ".so"
	case "linux/arm64":
		return "aarch64-linux", ".so"
	case "windows/amd64":
		return "win64", ".dll"
	case "darwin/amd64":
		return "darwin64", ".dylib"
	case "darwin/arm64":
		return "aarch64-darwin", ".dylib"
	}
	t.Fatal("the tests do not know where libraries of this platform lie")
	return "", ""
}

// make writes the base with the changes of the example, and libraries that are none,
// since nothing is loaded.
func (e *example) make(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x")
	if name := e.options["in"]; name != "" {
		dir = filepath.Join(filepath.Dir(dir), name)
	}
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", e.base))))
	folder, suffix := here(t)
	fmus, err := filepath.Glob(filepath.Join(dir, "*.fmu"))
	must(t, err)
	for _, f := range append(fmus, filepath.Join(dir, "base.fmu")) {
		name := strings.TrimSuffix(filepath.Base(f), ".fmu")
		if name == "base" {
			f = dir
			if e.base != "model" {
				continue
			}
		}
		write(t, filepath.Join(f, "binaries", folder, name+suffix), name)
	}
	for _, c := range e.changes {
		path := filepath.Join(dir, filepath.FromSlash(strings.NewReplacer("HERE", folder, "LIB", suffix).Replace(c.file)))
		if c.whole {
			write(t, path, c.new)
			continue
		}
		data, err := os.ReadFile(path)
		must(t, err)
		if n := strings.Count(string(data), c.old); n != 1 {
			t.Fatalf("examples.txt:%d: %q stands %d times in %s", e.line, c.old, n, c.file)
		}
		write(t, path, strings.Replace(string(data), c.old, c.new, 1))
	}
	return filepath.Join(dir, filepath.FromSlash(e.options["file"]))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	must(t, err)
}

// judge validates an example.
func (e *example) judge(t *testing.T, strict bool) *validate.Report {
	t.Helper()
	o := validate.Options{Strict: strict, Strategy: e.strategy, Assemble: simulate.Reading(context.Background())}
	if e.options["launcher"] != "none" {
		o.Launcher = &worker.Launcher{}
	}
	if name, value, ok := strings.Cut(e.options["set"], "="); ok {
		o.Assemble.Set = []assemble.Assignment{{Name: name, Value: value}}
	}
	r, err := validate.File(t.Context(), e.make(t), o)
	if err != nil {
		t.Fatalf("examples.txt:%d: %v", e.line, err)
	}
	return r
}

// only checks a new finding, one that the base does not have: it has the words and the line of the example, and its path leads to one
// element. Every other new finding is of a rule in the option also.
func (e *example) only(t *testing.T, findings, base []finding) {
	t.Helper()
	inBase := map[string]bool{}
	for _, f := range base {
		inBase[f.ID+f.Message] = true
	}
	var also []string
	found := false
	for _, f := range findings {
		if inBase[f.ID+f.Message] {
			continue
		}
		if f.ID != e.rule {
			also = append(also, f.ID)
			continue
		}
		at := fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		if !strings.Contains(f.Message, e.words) || !found && at != e.at {
			t.Errorf("finding in %s: %s, want %s with %q", at, f, e.at, e.words)
		}
		found = true
		document := etree.NewDocument()
		document.ReadSettings.PreserveDuplicateAttrs = true
		if err := document.ReadFromFile(f.File); err != nil {
			continue // what is not well-formed has no path
		}
		if n := len(document.FindElements(f.Path)); n != 1 || f.Path == "" {
			t.Errorf("the path %q leads to %d elements", f.Path, n)
		}
	}
	slices.Sort(also)
	if got := strings.Join(slices.Compact(also), ","); got != e.options["also"] {
		t.Errorf("findings of %s, want of %q: %v", got, e.options["also"], findings)
	}
}

// strategy makes the algorithm of the example.
func (e *example) strategy(a *assemble.Assembly) assemble.Strategy {
	preset := e.options["algorithm"]
	if preset == "" {
		preset = "explicit"
	}
	params := map[string]string{}
	if key, value, ok := strings.Cut(e.options["param"], "="); ok {
		params[key] = value
	}
	own, err := simulate.AskedBy(a.Asked)
	if err != nil {
		return assemble.Strategy{Preset: preset, Unfit: err}
	}
	choice, err := algorithms.New(preset, params, algorithms.With{Bonds: own.Bonds})
	if err != nil {
		return assemble.Strategy{Preset: preset, Unfit: err}
	}
	s := assemble.Strategy{Preset: preset, Algorithm: choice.Algorithm, Discard: choice.Discard, Order: -1}
	if n, err := strconv.Atoi(choice.Values["order"]); err == nil {
		s.Order = n
	}
	if names := params["sequence"]; names != "" {
		s.Sequence = strings.Split(names, ",")
	}
	return s
}

// elsewhere are the rules that documents alone cannot break; TestTrials and
// TestArchives have their examples, and test/ those of sources that are compiled.
func elsewhere(id string) bool {
	return slices.Contains([]string{"FA0", "FA1", "FA1V", "FA2", "FA2L", "FA2S", "FA3", "FA5", "FA6", "FA6G", "FA6N", "FA6S", "FA7", "FA7M", "FA8", "FA8V", "FA9", "FA10",
		"FA11S", "FA11G", "FA11O", "SD2V", "CC4", "CC29"}, id) || strings.HasPrefix(id, "DY")
}

// Every rule has an example that breaks it and one that just does not, and nothing
// else is an error there: where it is an error it is the only one.
func TestExamples(t *testing.T) {
	fails, passes := map[string]bool{}, map[string]bool{}
	bases := map[string]*validate.Report{}
	for _, name := range []string{"model", "system", "osp", "pair"} {
		e := &example{base: name, options: map[string]string{}}
		bases[name] = e.judge(t, false)
		if f := bases[name].Findings; slices.ContainsFunc(f, func(f finding) bool { return f.Level == diag.Error }) {
			t.Errorf("the base %s has errors: %v", name, f)
		}
	}
	for _, e := range readExamples(t) {
		t.Run(fmt.Sprintf("%s line %d", e.rule, e.line), func(t *testing.T) {
			rule, known := validate.Find(e.rule)
			if !known || rule.ID != e.rule {
				t.Fatalf("there is no rule %s", e.rule)
			}
			r := e.judge(t, false)
			i := slices.IndexFunc(r.Findings, func(f finding) bool { return f.ID == e.rule })
			if e.pass {
				passes[e.rule] = true
				if i >= 0 {
					t.Errorf("it is found: %s", r.Findings[i])
				}
				return
			}
			fails[e.rule] = true
			if i < 0 {
				t.Fatalf("it is not found: %v", r.Findings)
			}
			f := r.Findings[i]
			if f.Level != rule.Level || f.Message == "" || f.File == "" || f.Remedy == "" && f.Level > diag.Info {
				t.Errorf("finding %+v", f)
			}
			if !slices.ContainsFunc(bases[e.base].Findings, func(f finding) bool { return f.ID == e.rule }) && e.options["file"] == "" {
				passes[e.rule] = true
			}
			for _, f := range r.Findings {
				if f.Level == diag.Error && f.ID != e.rule {
					t.Errorf("an error too many: %s", f)
				}
			}
			if e.at != "" {
				e.only(t, r.Findings, bases[e.base].Findings)
			}
			if strict := e.judge(t, true); rule.Strict && !slices.ContainsFunc(strict.Findings, func(f finding) bool { return f.ID == e.rule && f.Level == diag.Error }) {
				t.Errorf("no error in the strict reading: %v", strict.Findings)
			}
		})
	}
	for _, r := range validate.Rules() {
		if elsewhere(r.ID) {
			continue
		}
		if !fails[r.ID] {
			t.Errorf("%s has no example that breaks it", r.ID)
		}
		if !passes[r.ID] {
			t.Errorf("%s has no example that passes", r.ID)
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
