package study

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/record"
)

// A row passes the check if it is one that a run of its variant can have; else the error names what is wrong, without control
// characters of the row.
func TestCheckRow(t *testing.T) {
	p := mustParse(t, "{system: s, vary: {a.x: 'linear(0, 1)'}, optimise: {fit: m.csv}, collect: {u: final(a.u)}}", "m.csv", "time,a.y\n0,1\n1,2\n2,3\n")
	run, check := Variant{ID: 7, Values: []string{"0.5"}}, Variant{ID: ^7, Values: []string{"0.5"}}
	samples := Variant{ID: ^8, Values: []string{"0.5"}, Samples: true}
	worst, over := 0.01, math.Inf(1)
	for _, c := range []struct {
		name   string
		of     Variant
		change func(r *Row)
		want   string // "" = nothing is wrong
	}{
		{"as it is", run, func(*Row) {}, ""},
		{"a warning", run, func(r *Row) { r.Warn("two\nlines \x1b[2J \u202e\tand more" + strings.Repeat(" more", 1000)) }, ""},
		{"no value", run, func(r *Row) { r.Collected[0] = math.NaN() }, ""},
		{"a failed run", run, func(r *Row) { *r = p.NoRow(run, Failed, "a\r\nb\u2028c\xff") }, ""},
		{"no reason is given", run, func(r *Row) { *r = p.NoRow(run, Crashed, " \n") }, ""},
		{"a coupling error", check, func(r *Row) { r.Error = &record.Error{Worst: &worst, Where: "a.y", Limit: 0.05} }, ""},
		{"an unknown one", check, func(r *Row) { r.Error = unmeasured("why") }, ""},
		{"a curve", samples, func(r *Row) { r.Curves = [][]float64{{1, 2, 3}} }, ""},
		{"failed samples", samples, func(r *Row) { *r = p.NoRow(samples, Failed, "why") }, ""},

		{"another run", run, func(r *Row) { r.ID = 590 }, "the row of run 7 is of another, run 590"},
		{"its check", run, func(r *Row) { r.ID = ^7 }, "check of run 7"},
		{"samples", samples, func(r *Row) { r.Samples = false }, "is of another"},
		{"other factors", run, func(r *Row) { r.Values = []string{"0.6"} }, `"[0.6]", not "[0.5]"`},
		{"no factors", run, func(r *Row) { r.Values = nil }, `"[]", not "[0.5]"`},
		{"no quantities", run, func(r *Row) { r.Collected = nil }, "has 0 values for 2 quantities"},
		{"too many", run, func(r *Row) { r.Collected = make([]float64, 3) }, "has 3 values for 2 quantities"},
		{"infinite", run, func(r *Row) { r.Collected[1] = math.Inf(-1) }, "infinite value of deviation(a.y)"},
		{"failed with a value", run, func(r *Row) { r.Status, r.Reason = Failed, "why" }, "has a value of u"},
		{"no status", run, func(r *Row) { *r = p.NoRow(run, "", "why") }, `unknown status ""`},
		{"a status of its own", run, func(r *Row) { *r = p.NoRow(run, "good\x1b[2J", "why") }, `unknown status "good\x1b[2J"`},
		{"a verdict of its own", run, func(r *Row) { r.Verdict = "splendid" }, `unknown verdict "splendid"`},
		{"no verdict", run, func(r *Row) { r.Verdict = "" }, "unknown verdict"},
		{"OK with a reason", run, func(r *Row) { r.Reason = "all went well" }, "no warning"},
		{"no reason", run, func(r *Row) { *r = p.NoRow(run, Failed, "why"); r.Reason = "" }, "without a reason"},
		{"two lines", run, func(r *Row) { r.Reason = "warning: a\nb" }, "not one line"},
		{"a terminal", run, func(r *Row) { r.Reason = "warning: \x1b[2J" }, `"warning: \x1b[2J"`},
		{"a line separator", run, func(r *Row) { r.Reason = "warning: a\u2028b" }, `a\u2028b`},
		{"reversed", run, func(r *Row) { r.Reason = "warning: a\u202eb" }, `a\u202eb`},
		{"no text", run, func(r *Row) { r.Reason = "warning: \xff" }, `\xff`},
		{"a long reason", run, func(r *Row) { r.Reason = "warning: " + strings.Repeat("x", 1<<20) }, "too long"},
		{"an engine", run, func(r *Row) { r.Engine = "a\rb" }, `a\rb`},
		{"steps", run, func(r *Row) { r.Steps = -1 }, "less than 0"},
		{"rejected steps", run, func(r *Row) { r.Rejected = -1 }, "less than 0"},
		{"time", run, func(r *Row) { r.Seconds = -1 }, "-1 s"},
		{"no time", run, func(r *Row) { r.Seconds = math.NaN() }, "NaN s"},
		{"curves", run, func(r *Row) { r.Curves = [][]float64{{1, 2, 3}} }, "curves"},
		{"no curves", samples, func(*Row) {}, "of 0 variables, of 1"},
		{"a short curve", samples, func(r *Row) { r.Curves = [][]float64{{1, 2}} }, "2 points for deviation(a.y), which has 3"},
		{"a curve with a gap", samples, func(r *Row) { r.Curves = [][]float64{{1, math.NaN(), 2}} }, "infinite or NaN"},
		{"an error", run, func(r *Row) { r.Error = unmeasured("why") }, "which its run does not measure"},
		{"an error for no reason", check, func(r *Row) { r.Error = &record.Error{Limit: 0.05} }, "not either known or unknown"},
		{"an infinite error", check, func(r *Row) { r.Error = &record.Error{Worst: &over} }, "infinite or NaN"},
		{"an infinite part", check, func(r *Row) {
			r.Error = &record.Error{Worst: &worst, Variables: map[string]record.VariableError{"a.y": {Moments: &record.Moments{RMS: math.NaN()}}}}
		}, "infinite or NaN"},
		{"a text of an error", check, func(r *Row) { r.Error = unmeasured("a\nb") }, "not one line"},
		{"a name of an error", check, func(r *Row) {
			r.Error = &record.Error{Worst: &worst, Variables: map[string]record.VariableError{"a\x00": {}}}
		}, "not one line"},
	} {
		r := p.NoRow(c.of, OK, "")
		if c.of.ID >= 0 {
			r.Collected[0] = 1
		}
		c.change(&r)
		err := p.CheckRow(c.of, &r)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		case err != nil && (!isLine(err.Error()) || len(err.Error()) > 500):
			t.Errorf("%s: the message is not one short line: %q", c.name, err)
		}
	}
}

// A study whose folder was edited or damaged is refused with file, line and remedy, or goes on: never does a row count for
// another run.
func TestFolderDamaged(t *testing.T) {
	text := "{system: s, vary: {a.x: [1, 2, 3], a.t: [x, \"y\\r\\nz\"]}, collect: {u: final(a.u)}}"
	p := mustParse(t, text)
	path := filepath.Join(t.TempDir(), "study")
	f, err := Create(path, p, []byte(text), &Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	design, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range design.List[:4] {
		r := p.NoRow(v, OK, "")
		r.Collected[0] = 0.25
		if err := f.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(path, filepath.FromSlash(name)) }
	before := map[string][]byte{}
	for _, name := range []string{ResultsFile, VariantsFile, folderIndex, "files/plan.yaml"} {
		if before[name], err = os.ReadFile(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	replaced := func(old, by string) func(string) string {
		return func(text string) string {
			if !strings.Contains(text, old) {
				t.Fatalf("%q has no %q", text, old)
			}
			return strings.Replace(text, old, by, 1)
		}
	}
	windows := func(text string) string {
		return byteOrderMark + strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	cut := func(n int) func(string) string { return func(text string) string { return text[:n] } }
	for _, c := range []struct {
		what, name string
		edit       func(string) string // nil = the file is removed
		rows       int
		want       string // of the error
	}{
		{"nothing", ResultsFile, cut(len(before[ResultsFile])), 4, ""},
		{"no table", ResultsFile, nil, 0, ""},
		{"an empty table", ResultsFile, cut(0), 0, ""},
		{"a torn header", ResultsFile, cut(5), 0, ""},
		{"line ends of Windows and a byte order mark", ResultsFile, windows, 4, ""},
		{"only a byte order mark", ResultsFile, func(string) string { return byteOrderMark }, 0, ""},
		{"a reason of an earlier version", ResultsFile, replaced("ok,,", "ok,warning: \x1b[2J,"), 4, ""},
		{"a second row of a run", ResultsFile, func(text string) string { return text + "0,1,x,0.75,ok,,none,0,0,0,\n" }, 4, ""},
		{"another separator", ResultsFile, func(text string) string { return strings.ReplaceAll(text, ",", ";") }, 0, "results.csv:1: the header"},
		{"no header", ResultsFile, replaced("run,a.x", "a.x"), 0, "results.csv:1: the header"},
		{"a number", ResultsFile, replaced("0,1,x,0.25", "0,1,x,25?"), 0, "results.csv:2: run 0"},
		{"an infinite value", ResultsFile, replaced("0,1,x,0.25", "0,1,x,inf"), 0, "results.csv:2: run 0 has an infinite value"},
		{"a status", ResultsFile, replaced("ok", "okay"), 0, `results.csv:2: run 0 has a value of u, and its status "okay"`},
		{"a failed row with a value", ResultsFile, replaced("ok,,", "failed,why,"), 0, "results.csv:2: run 0 has a value of u"},
		{"a factor", ResultsFile, replaced("2,2,x", "2,2.5,x"), 0, `results.csv:5: run 2 has a.x = "2.5" here, and "2" in the design`},
		{"the number of a run", ResultsFile, replaced("\n2,2,x", "\n4,2,x"), 0, `results.csv:5: run 4 has a.x = "2" here, and "3" in the design`},
		{"a run too many", ResultsFile, replaced("\n2,2,x", "\n6,2,x"), 0, "results.csv:5: run 6 is none of the design"},
		{"no number of a run", ResultsFile, replaced("\n2,2,x", "\n-2,2,x"), 0, "results.csv:5: \"-2\" is no number"},
		{"a field too many", ResultsFile, replaced("2,2,x", "2,2,x,"), 0, "results.csv:5: 12 fields, want 11"},
		{"a quote that is open", ResultsFile, replaced("0,1,x", "0,1,\"x"), 0, "results.csv:2: "},
		{"no design", VariantsFile, nil, 4, ""},
		{"a design with other line ends", VariantsFile, windows, 4, ""},
		{"a design that was edited", VariantsFile, replaced("2,2,x", "2,9,x"), 0, "variants.csv:5: from here on it is not the design of "},
		{"a short design", VariantsFile, cut(20), 0, "variants.csv:"},
		{"a plan that was edited", "files/plan.yaml", replaced("[1, 2, 3]", "[1, 2, 3, 4]"), 0, "variants.csv:11: from here on"},
		{"a plan that is broken", "files/plan.yaml", replaced("collect", "collected"), 0, `there is no key "collected"`},
		{"no plan", "files/plan.yaml", nil, 0, "restore it, or make the study again"},
		{"a torn index", folderIndex, cut(30), 0, "study.json: the file is damaged"},
		{"an empty index", folderIndex, cut(0), 0, "study.json: the file is damaged"},
		{"an index of nothing", folderIndex, func(string) string { return "{}" }, 0, "study.json: the file is damaged"},
	} {
		for name, data := range before {
			if err := os.WriteFile(file(name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if c.edit == nil {
			err = os.Remove(file(c.name))
		} else {
			err = os.WriteFile(file(c.name), []byte(c.edit(string(before[c.name]))), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(path, ReadWrite)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.what, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		made := 0
		found, err := (&Study{Plan: f.Plan, Folder: f}).Run(t.Context(), function{f.Plan, func(x []float64) []float64 { made++; return []float64{0.25} }})
		if err != nil || made != 6-c.rows || len(found.Rows) != 6 {
			t.Errorf("%s: %d runs, %d rows, %v", c.what, made, len(found.Rows), err)
		}
		if err := f.Sort(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(file(ResultsFile)); err != nil || !bytes.HasPrefix(data, []byte("run,a.x,")) || !bytes.Contains(data, []byte("5,3,\"y\r\nz\",0.25,ok")) {
			t.Errorf("%s: %v, %s", c.what, err, data)
		}
	}
}

// The errors of an earlier check stay in the report, but for those that no check could have measured.
func TestDamagedChecks(t *testing.T) {
	text := "{system: s, vary: {a.x: [1, 2, 3]}, collect: {u: final(a.u)}}"
	f, err := Create(filepath.Join(t.TempDir(), "study"), mustParse(t, text), []byte(text), &Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checks := `{"checks": [{"run": 0, "why": "smallest", "error": null}, {"run": 1, "why": "random"}, {"run": 1, "why": "random", "error": {"worst": -1}},
		{"run": 2, "why": "largest", "error": {"worst": 0.125, "where": "a.u"}}]}`
	if err := os.WriteFile(filepath.Join(f.Path, ReportFile), []byte(checks), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Conclude(f, &Findings{Rows: []Row{f.Plan.NoRow(Variant{ID: 0, Values: []string{"1"}}, OK, "")}})
	if err != nil || len(r.Checks) != 1 || r.Checks[0].Run != 2 || *r.Checks[0].Error.Worst != 0.125 {
		t.Errorf("%v, %+v", err, r.Checks)
	}
}

// What a killed study has left is removed when the study goes on: files that are not complete, and tables of runs without a row.
// Other files in the folder stay.
func TestFolderSwept(t *testing.T) {
	text := "{system: s, vary: {a.x: [1, 2, 3]}, collect: {u: final(a.u)}, keep: all}"
	path := filepath.Join(t.TempDir(), "study")
	f, err := Create(path, mustParse(t, text), []byte(text), &Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Add(f.Plan.NoRow(Variant{ID: 1, Values: []string{"2"}}, Failed, "why")), f.Close()); err != nil {
		t.Fatal(err)
	}
	runs, err := f.Runs()
	if err != nil {
		t.Fatal(err)
	}
	stay := []string{"1.csv", "1.json", "02.csv", "mine.csv", "2.csv.gz", "2"}
	for _, name := range append([]string{"0.csv", "0.json", "2.csv", "2.json.partial", "1.csv.partial", "x.partial", "1.json.ms-0123abcd.tmp"}, stay...) {
		if err := os.WriteFile(filepath.Join(runs, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{ResultsFile + ".partial", PageFile + ".partial", "mine.partial"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	is := func(folder string, want ...string) {
		t.Helper()
		entries, err := os.ReadDir(folder)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q (%v)", folder, got, want, err)
		}
	}
	if _, err := OpenFolder(path, ReadOnly); err != nil { // as engines do while the study goes on
		t.Fatal(err)
	}
	is(runs, append([]string{"0.csv", "0.json", "2.csv", "2.json.partial", "1.csv.partial", "x.partial", "1.json.ms-0123abcd.tmp"}, stay...)...)
	if f, err = OpenFolder(path, ReadWrite); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	is(runs, stay...)
	is(path, "files", "lock", "mine.partial", ResultsFile, "runs", folderIndex, VariantsFile)
}
