package test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// The commands of the tutorial in the README run in their order, and analyze prints what the README shows (a long
// test).
func TestReadmeTutorial(t *testing.T) {
	t.Parallel()
	readme := string(read(t, filepath.Join("..", "README.md")))
	_, rest, _ := strings.Cut(readme, "## Two FMUs of your own")
	section, _, ok := strings.Cut(rest, "\n## ")
	if !ok {
		t.Fatal("the README has no tutorial")
	}
	dir := t.TempDir()
	demo := filepath.Join(dir, "macrostep-demo")
	mkdir(t, demo)
	for _, name := range []string{"quarter-car-a", "quarter-car-b"} {
		if _, err := fmus.WriteSystem(demo, name); err != nil {
			t.Fatal(err)
		}
	}
	ran := map[string]int{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		command := strings.TrimSpace(line)
		words := strings.Fields(strings.ReplaceAll(command, "'", ""))
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "cp":
			write(t, filepath.Join(dir, words[2]), read(t, filepath.Join(dir, filepath.FromSlash(words[1]))))
		case "macrostep":
			if ran[words[1]]++; words[1] == "analyze" && !long.On {
				continue
			}
			code, output := macrostepIn(t, dir, words[1:]...)
			switch {
			case code != 0:
				t.Errorf("%s: exit code %d\n%s", command, code, output)
			case words[1] == "run" && !strings.Contains(output, "complete at t = 1 s"):
				t.Errorf("%s: the run is not complete\n%s", command, output)
			case words[1] == "analyze":
				sameTable(t, section, output)
			}
		}
	}
	for _, name := range []string{"info", "run", "ssp", "plot", "compare", "validate", "analyze"} {
		if ran[name] == 0 {
			t.Errorf("the tutorial does not use macrostep %s", name)
		}
	}
	for name, rows := range map[string]int{"pair.csv": 1002, "half.csv": 2002} {
		if n := strings.Count(string(read(t, filepath.Join(dir, name))), "\n"); n != rows {
			t.Errorf("%s has %d lines and not %d", name, n, rows)
		}
	}
	for _, name := range []string{"pair.html", "pair.svg", "both.svg"} {
		if len(read(t, filepath.Join(dir, name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if n := strings.Count(section, "\n"); n > 80 {
		t.Errorf("the tutorial has %d lines; two screens are 80", n)
	}
}

// sameTable compares the table of analyze in the README with the one printed: the same words, and numbers that differ
// by no more than other processors round.
func sameTable(t *testing.T, shown, printed string) {
	table := func(text string) (rows [][]string) {
		_, text, _ = strings.Cut(text, "at 0.001 s:")
		_, text, _ = strings.Cut(text, "\n")
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) < 6 || words[0] == "*" {
				break
			}
			rows = append(rows, words)
		}
		return rows
	}
	want, got := table(shown), table(printed)
	if len(want) < 5 || len(want) != len(got) {
		t.Fatalf("the README shows %d rows of the analysis, and %d are printed:\n%s", len(want), len(got), printed)
	}
	same := func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= 0.02*math.Abs(x)
	}
	for i := range want {
		equal := len(want[i]) == len(got[i])
		for k := 0; equal && k < len(want[i]); k++ {
			equal = same(want[i][k], got[i][k])
		}
		if !equal {
			t.Errorf("the README shows of the analysis\n  %v\nand printed is\n  %v", want[i], got[i])
		}
	}
}

// Links and names of files in the documentation lead somewhere, and each page of docs is found from the README.
func TestDocumentationLinks(t *testing.T) {
	root := ".."
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("%v, %v", pages, err)
	}
	readme := string(read(t, filepath.Join(root, "README.md")))
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, path := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		for _, m := range link.FindAllStringSubmatch(string(read(t, path)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: the link %s: %v", path, m[1], err)
			}
		}
		if name := filepath.Base(path); filepath.Dir(path) != root && !strings.Contains(readme, "](docs/"+name+")") {
			t.Errorf("the README does not lead to docs/%s", name)
		}
	}
}
