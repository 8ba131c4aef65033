package test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/macrostep/macrostep/"

// allowed lists, for each package, the packages of this module that it may import, and for those that must stay light
// the packages from outside.
var allowed = []struct {
	pkg     string
	imports []string // of this module
	outside []string // module paths; nil = standard library only, "*" = any
}{
	{"master/plainjson", nil, nil},
	{"fmi/diag", nil, nil},
	{"fmi/unit", nil, nil},
	{"fmi/archive", []string{"fmi/diag"}, []string{"golang.org/x/sys"}},
	{"fmi/process", nil, []string{"golang.org/x/sys"}},
	{"fmi/csrc", []string{"fmi/process"}, nil},
	{"fmi/worker", []string{"fmi", "fmi/archive", "fmi/diag", "fmi/internal/remote", "fmi/process"}, []string{"golang.org/x/sys"}},
	{"fmi/host", []string{"fmi", "fmi/archive", "fmi/diag", "fmi/internal/remote", "fmi/secret", "fmi/worker"}, []string{"golang.org/x/sys"}},
	{"fmi/secret", []string{"fmi/diag"}, nil},
	{"fmi/description", []string{"fmi/diag", "fmi/unit"}, []string{"golang.org/x/text"}},
	{"fmi/internal/native", []string{"fmi/process"}, []string{"github.com/ebitengine/purego", "golang.org/x/sys"}},
	{"fmi/internal/capi", []string{"fmi/archive", "fmi/diag", "fmi/internal/native"}, nil},
	{"fmi/internal/remote", []string{"fmi/diag", "fmi/internal/capi", "fmi/internal/native"}, nil},
	{"fmi", []string{"fmi/diag", "fmi/description", "fmi/archive", "fmi/csrc", "fmi/internal/capi", "fmi/internal/native", "fmi/internal/remote", "fmi/process"}, nil},
	{"ssp/graph", nil, nil},
	{"ssp/internal/xmltree", []string{"fmi/diag"}, []string{"github.com/beevik/etree", "golang.org/x/text"}},
	{"ssp", []string{"fmi/diag", "fmi/unit", "fmi/archive", "ssp/internal/xmltree"}, []string{"github.com/beevik/etree"}},
	{"ssp/edit", []string{"fmi/diag", "fmi/unit", "ssp", "ssp/internal/xmltree"}, []string{"github.com/beevik/etree"}},
	{"ssp/dialect", []string{"fmi/diag", "fmi/unit", "ssp", "ssp/edit", "ssp/internal/xmltree"}, nil},
	{"ssp/compose", []string{"fmi/description", "fmi/diag", "fmi/unit", "ssp", "ssp/dialect", "ssp/edit"}, nil},
	{"master", nil, nil},
	{"master/mastertest", []string{"master"}, []string{"gonum.org/v1/gonum"}},
	{"algorithms/internal/num", nil, []string{"gonum.org/v1/gonum"}},
	{"algorithms/internal/solver", []string{"algorithms/internal/num"}, nil},
	{"algorithms/internal/input", []string{"algorithms/internal/num", "master"}, nil},
	{"algorithms", []string{"algorithms/internal/input", "algorithms/internal/num", "algorithms/internal/solver", "fmi/diag", "master"}, []string{"gonum.org/v1/gonum"}},
	{"algorithms/analyze", []string{"algorithms", "algorithms/internal/num", "master", "master/measure", "master/record"}, nil},
	{"master/internal/parquetfile", nil, []string{"github.com/klauspost/compress/snappy", "github.com/parquet-go/parquet-go"}},
	{"master/record", []string{"fmi/diag", "master/plainjson", "master", "master/internal/parquetfile", "master/results"}, nil},
	{"master/results", []string{"fmi/diag", "fmi/unit", "master/internal/parquetfile"}, []string{"github.com/parquet-go/parquet-go"}},
	{"master/results/axis", nil, nil},
	{"master/results/plot", []string{"master/results/axis"}, []string{"codeberg.org/go-fonts/liberation", "git.sr.ht/~sbinet/gg", "golang.org/x/image"}},
	{"master/results/page", []string{"master/results/axis"}, nil},
	{"master/study/page", []string{"master/results/axis", "master/results/page", "master/study"}, nil},
	{"master/native", []string{"master", "master/record"}, nil},
	{"master/metrics", []string{"master"}, nil},
	{"master/scenario", []string{"fmi/diag", "master", "master/record"}, []string{"go.yaml.in/yaml/v3"}},
	{"master/fmuprobe", []string{"fmi", "fmi/archive", "master"}, nil},
	{"master/workdir", []string{"fmi/archive", "fmi/diag"}, nil},
	{"master/fmuslave", []string{"fmi", "fmi/description", "fmi/diag", "master", "master/fmuprobe"}, nil},
	{"master/internal/slavetest", []string{"fmi", "fmi/worker", "fmus", "master", "master/fmuslave", "test/cc", "test/probe"}, nil},
	{"master/validate", []string{"fmi", "fmi/archive", "fmi/description", "fmi/diag", "master", "master/assemble", "master/fmuprobe", "master/fmuslave", "master/workdir", "ssp", "ssp/dialect"}, nil},
	{"master/assemble", []string{"algorithms", "fmi", "fmi/description", "fmi/diag", "fmi/unit", "master", "master/fmuprobe", "master/fmuslave", "master/native", "master/record", "master/results", "master/workdir", "ssp", "ssp/dialect", "ssp/edit"}, nil},
	{"master/measure", []string{"algorithms", "master"}, []string{"gonum.org/v1/gonum"}},
	{"master/simulate", []string{"algorithms", "algorithms/analyze", "fmi", "fmi/diag", "fmi/host", "fmi/process", "fmi/worker", "master", "master/assemble", "master/fmuslave", "master/measure", "master/record", "master/scenario", "master/workdir", "ssp", "ssp/dialect"}, []string{"golang.org/x/sys"}},
	{"master/supervise", []string{"fmi", "fmi/archive", "fmi/process", "fmi/worker", "master", "master/fmuslave", "master/simulate"}, []string{"golang.org/x/sys"}},
	{"master/study", []string{"algorithms", "fmi/diag", "master", "master/record", "master/results", "master/scenario", "master/simulate", "master/workdir", "ssp"}, []string{"github.com/parquet-go/parquet-go", "go.yaml.in/yaml/v3", "gonum.org/v1/gonum"}},
	{"cmd/macrostep/internal/cluster", []string{"fmi/diag", "fmi/secret", "master/record", "master/simulate", "master/study"}, []string{"github.com/nats-io/nats-server/v2/server", "github.com/nats-io/nats.go", "github.com/nats-io/nkeys"}},
	{"test/fields", nil, nil},
	{"test/probe", []string{"fmus"}, nil},
	{"test/judged", []string{"fmi/archive", "fmus", "master/results"}, nil},
	{"fmus", []string{"fmus", "fmi/archive", "fmi/csrc"}, []string{"gonum.org/v1/gonum"}},
}

// TestArrows checks the imports of each package (docs/architecture.md).
func TestArrows(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		imports[strings.TrimPrefix(words[0], module)] = words[1:]
	}
	for _, a := range allowed {
		if imports[a.pkg] == nil {
			t.Errorf("there is no package %s", a.pkg)
		}
		for _, imported := range imports[a.pkg] {
			if rest, own := strings.CutPrefix(imported, module); own {
				if !slices.Contains(a.imports, rest) {
					t.Errorf("%s imports %s", a.pkg, rest)
				}
			} else if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && !hasPrefix(a.outside, imported) {
				t.Errorf("%s imports %s", a.pkg, imported)
			}
		}
	}
}

// TestNoServer checks that NATS stays in the command line: no other package may need a server or its client.
func TestNoServer(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}`, module+"fmi/...",
		module+"ssp/...", module+"master/...", module+"algorithms/...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, imported := range words[1:] {
			if strings.HasPrefix(imported, "github.com/nats-io/") {
				t.Errorf("%s imports %s", strings.TrimPrefix(words[0], module), imported)
			}
		}
	}
}

// TestNoCgo checks that no package uses cgo.
func TestNoCgo(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{if .CgoFiles}}{{.ImportPath}}{{end}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if s := strings.TrimSpace(string(out)); s != "" {
		t.Errorf("packages with cgo: %s", s)
	}
}

func hasPrefix(list []string, s string) bool {
	return slices.ContainsFunc(list, func(e string) bool { return e == "*" || s == e || strings.HasPrefix(s, e+"/") })
}

var (
	continuedComment = regexp.MustCompile(`\n\s*// ?`)
	citation         = regexp.MustCompile(`\b(fmi2|fmi3|ssp|checklist) (\d+(?:(?:[-–]|, )\d+)*)`)
	citedItem        = regexp.MustCompile(`(?m)^(\d+)\. \S(?:.*\n(?: {2,}\S.*\n)*)`)
)

// cited returns the numbers that a text cites, by document: "fmi2 30–37, 39" or, in the documentation of
// descriptions, "checklist 17".
func cited(text string) map[string][]int {
	out := map[string][]int{}
	for _, m := range citation.FindAllStringSubmatch(continuedComment.ReplaceAllString(text, " "), -1) {
		document := strings.Replace(m[1], "checklist", "fmi2", 1)
		for part := range strings.SplitSeq(m[2], ", ") {
			first, last, found := strings.Cut(strings.ReplaceAll(part, "–", "-"), "-")
			from, _ := strconv.Atoi(first)
			to := from
			if found {
				to, _ = strconv.Atoi(last)
			}
			for n := from; n <= to; n++ {
				out[document] = append(out[document], n)
			}
		}
	}
	return out
}

// TestCitations compares docs/fmi2.md, docs/fmi3.md and docs/ssp.md with the Go files: every cited item exists, and every item is
// cited or marked "(Cited nowhere.)".
func TestCitations(t *testing.T) {
	t.Parallel()
	where := map[string]map[int]string{"fmi2": {}, "fmi3": {}, "ssp": {}} // a file that cites the item
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || filepath.Base(path) == "citations_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		for document, numbers := range cited(string(text)) {
			for _, n := range numbers {
				where[document][n] = path
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for document, files := range where {
		text := read(t, "../docs/"+document+".md")
		for _, m := range citedItem.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.Atoi(m[1])
			if strings.Contains(m[0], "(Cited nowhere.)") == (files[n] != "") {
				t.Errorf("docs/%s.md: item %d is cited by %q: it must be there once, and marked (Cited nowhere.) only if nothing cites it", document, n, files[n])
			}
			delete(files, n)
		}
		for _, n := range slices.Sorted(maps.Keys(files)) {
			t.Errorf("docs/%s.md has no item %d, which %s cites", document, n, files[n])
		}
	}
}
