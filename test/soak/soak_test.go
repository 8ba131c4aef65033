//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
)

// emptyKit builds nothing: what is drawn does not depend on it.
func emptyKit(t *testing.T) *kit {
	k := newKit()
	k.dir = t.TempDir()
	empty := func(dir, name string) (string, error) {
		path := filepath.Join(dir, name)
		return path, os.WriteFile(path, nil, 0o644)
	}
	k.fmu, k.write = empty, empty
	return k
}

// A case follows from seed and number; and everything that there is to draw is drawn, what is new in the catalogue
// and in package fmus too.
func TestDraw(t *testing.T) {
	k := emptyKit(t)
	dir := filepath.Join(t.TempDir(), "case")
	var all strings.Builder
	labels := map[string]bool{}
	for number := range 4000 {
		var first string
		rounds := 1
		if number%20 == 0 {
			rounds = 2 // the second gives the same
		}
		for round := range rounds {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			c, err := k.draw(5, number, dir)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(c.labels, c.steps)
			if document, err := os.ReadFile(filepath.Join(dir, "system", "SystemStructure.ssd")); err == nil {
				text += string(document)
			}
			if round == 1 && text != first {
				t.Fatalf("case %d is\n%s\nand then\n%s", number, first, text)
			}
			if first = text; round == 0 {
				all.WriteString(text)
			}
			for _, l := range c.labels {
				labels[l] = true
			}
		}
	}
	text := all.String()
	var want []string
	for _, p := range algorithms.Presets() {
		want = append(want, "--algorithm "+p.Name+" ")
		for _, q := range p.Params {
			want = append(want, "--param "+q.Name+"=")
		}
	}
	for _, name := range fmus.Names() {
		want = append(want, "resources/"+name+".fmu")
	}
	for _, name := range fmus.Misbehaving() {
		want = append(want, "resources/"+name+".fmu")
	}
	for _, name := range fmus.Systems() {
		want = append(want, filepath.Join(k.dir, name)+" ")
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q was not drawn", w)
		}
	}
	for _, f := range judged() {
		want = append(want, "fault="+f)
		if !labels["fault="+f] {
			t.Errorf("fault %s was not drawn", f)
		}
	}
	for _, p := range fmus.Places() {
		if !labels["place="+p] {
			t.Errorf("place %s was not drawn", p)
		}
	}
	for _, e := range []string{interrupt, twice, terminate, hangUp, kill, killWorker, stopWorker} {
		if !labels["event="+e] {
			t.Errorf("event %s was not drawn", e)
		}
	}
}

const (
	goodTable    = "time,a.y\n0,1\n0.1,2\n0.2,3\n"
	goodManifest = `{"status": "complete", "reason": "", "results": "results.csv", "steps": {"accepted": 2}, "end_time": 0.2, "warnings": []}`
)

// Everything that must not be is found, and nothing that may be.
func TestJudge(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(goodManifest, old) {
			t.Fatalf("%q is not in the manifest", old)
		}
		return strings.Replace(goodManifest, old, new, 1)
	}
	unfinishedManifest := `{"status": "incomplete", "reason": "` + unfinished + `", "results": "results.csv"}`
	failedManifest := strings.Replace(replace("complete", failed), `"reason": ""`, `"reason": "why"`, 1)
	none := "none" // no such file
	for _, test := range []struct {
		what               string
		table, manifest    string // "" = good
		step               step
		end                end
		more               map[string]string // further files
		same, sameManifest bool              // as before the run
		want               []string          // nil = nothing is found
	}{
		{what: "a run that is complete"},
		{what: "a refused one", end: end{code: 2, output: "macrostep: why\n"}, same: true, sameManifest: true},
		{what: "panic", end: end{output: "x\npanic: index out of range\n"}, want: []string{`prints "panic: index`}},
		{what: "traceback", end: end{code: 2, output: "goroutine 1 [running]:\n"}, same: true, sameManifest: true,
			want: []string{"goroutine 1"}},
		{what: "a run that an FMU may end by exit", manifest: unfinishedManifest, step: step{mayDie: true},
			end: end{code: 0}, want: []string{"exit code 0, and the manifest says incomplete", "of the beginning"}},
		{what: "killed", table: "time,a.y\n0,1\n0.1", manifest: unfinishedManifest,
			step: step{event: event{kind: kill}}, end: end{code: -1, signal: syscall.SIGKILL, sent: true},
			more: map[string]string{"tmp/left": "", ".results.json-1": ""}},
		{what: "killed, and complete all the same", table: "time,a.y\n0,1\n", step: step{event: event{kind: kill}},
			end:  end{code: -1, signal: syscall.SIGKILL, sent: true},
			want: []string{"1 rows for 2 steps", "not of 0.2"}},
		{what: "killed beside the manifest of a run before", sameManifest: true, step: step{event: event{kind: kill}},
			end:  end{code: -1, signal: syscall.SIGKILL, sent: true},
			want: []string{"beside the manifest of another"}},
		{what: "another exit code", end: end{code: 3}, want: []string{"none of 0, 1, 2"}},
		{what: "no end", end: end{hung: true}, want: []string{"does not end"}},
		{what: "no end, since an FMU takes the signals", table: none, manifest: unfinishedManifest,
			end: end{code: -1, hung: true, signal: syscall.SIGKILL}, step: step{deaf: true}},
		{what: "a process", end: end{left: []int{42}}, want: []string{"processes are left: [42]"}},
		{what: "memory", end: end{peak: 1000}, want: []string{"1000 MiB"}},
		{what: "a temporary folder", more: map[string]string{"tmp/macrostep-00000000": ""}, want: []string{"temporary folder holds"}},
		{what: "a stray file", more: map[string]string{".results.json-1": ""}, want: []string{"stray file .results.json-1"}},
		{what: "1 and complete", end: end{code: 1, output: "x"}, want: []string{"exit code 1, and the manifest says complete"}},
		{what: "1 and no word", manifest: failedManifest, end: end{code: 1}, want: []string{"not a word"}},
		{what: "the manifest of the beginning", manifest: unfinishedManifest, end: end{code: 1, output: "x"},
			want: []string{"of the beginning"}},
		{what: "no manifest", manifest: none, want: []string{"there is no manifest"}},
		{what: "refused, and results touched", end: end{code: 2}, sameManifest: true, want: []string{"results have changed"}},
		{what: "refused, and FMUs called", end: end{code: 2}, same: true, sameManifest: true,
			step: step{calls: "calls.txt"}, more: map[string]string{"calls.txt": "0 a fmi2Instantiate"},
			want: []string{"FMUs were called"}},
		{what: "a checkpoint refused", end: end{code: 2, output: "why"}, same: true, sameManifest: true,
			step: step{resume: true}, want: []string{"checkpoint of macrostep is refused"}},
		{what: "resumed and interrupted before there is another row", manifest: strings.NewReplacer("complete",
			incomplete, `"reason": ""`, `"reason": "interrupted"`, "2}", "1}").Replace(goodManifest),
			same: true, end: end{code: 1, output: "interrupted", sent: true}, step: step{resume: true}},
		{what: "a row too few", table: "time,a.y\n0,1\n0.2,3\n", want: []string{"2 rows for 2 steps"}},
		{what: "another end", manifest: replace("0.2", "0.3"), want: []string{"not of 0.3"}},
		{what: "time stands still", table: "time,a.y\n0,1\n0.2,2\n0.2,3\n", want: []string{"does not follow"}},
		{what: "half a line", table: goodTable + "0.3", want: []string{"whole line"}},
		{what: "NaN", table: "time,a.y\n0,1\n0.1,NaN\n0.2,3\n", want: []string{"a.y is NaN at t = 0.1 s, and no warning"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := &drawn{dir: t.TempDir()}
			put := func(name, text string) {
				path := filepath.Join(c.dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
					if err := os.WriteFile(path, []byte(text), 0o644); err == nil {
						return
					}
				}
				t.Fatalf("%s cannot be written", path)
			}
			if err := os.Mkdir(filepath.Join(c.dir, "tmp"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"results.csv": test.table, "results.json": test.manifest} {
				if text == "" {
					text = map[string]string{"results.csv": goodTable, "results.json": goodManifest}[name]
				}
				if text != none {
					put(name, text)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(test.more)) {
				put(name, test.more[name])
			}
			e := test.end
			if now := filesIn(c.dir); true {
				if test.same {
					e.before.results = now.results
				}
				if test.sameManifest {
					e.before.manifest = now.manifest
				}
			}
			test.step.judged = true
			got := judge(c, test.step, &e)
			text := strings.Join(got, "\n")
			for _, w := range test.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not found", w)
				}
			}
			if len(got) != max(len(test.want), 0) {
				t.Errorf("%d findings, want %d:\n%s", len(got), len(test.want), text)
			}
		})
	}
}
