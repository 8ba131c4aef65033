package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/reason"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// block is an indented block of a page: a file, if the line above ends with its name as in "`NAME`:", or commands, or
// what a command prints.
type block struct {
	file  string
	lines []string
}

// text is the content of a file.
func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

var fileName = regexp.MustCompile("`([\\w-]+\\.[a-z]+)`:$")

// blocksOf returns the indented blocks of a page.
func blocksOf(page string) []*block {
	var out []*block
	var open *block
	above := ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && open == nil:
			open = &block{lines: []string{code}}
			if m := fileName.FindStringSubmatch(above); m != nil {
				open.file = m[1]
			}
			out = append(out, open)
		case indented:
			open.lines = append(open.lines, code)
		default:
			open = nil
			if line != "" {
				above = line
			}
		}
	}
	return out
}

var commandWord = regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S)`)

// wordsOf splits a command as a shell does, with quotes but without variables.
func wordsOf(command string) (words []string) {
	end := 0
	for _, m := range commandWord.FindAllStringSubmatchIndex(command, -1) {
		part := ""
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				part = command[m[i]:m[i+1]]
			}
		}
		if m[0] > end || len(words) == 0 {
			words = append(words, "")
		}
		words[len(words)-1] += part
		end = m[1]
	}
	return words
}

// demoFolder makes a folder with some of the systems that macrostep demo builds.
func demoFolder(t *testing.T, systems ...string) string {
	t.Helper()
	dir := t.TempDir()
	demo := filepath.Join(dir, "macrostep-demo")
	mkdir(t, demo)
	for _, name := range systems {
		if _, err := fmus.WriteSystem(demo, name); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runPage writes the files of a page to a folder and runs its commands there, in their order, without those that skip
// reports. seen gets the output of each, and the block after it.
func runPage(t *testing.T, dir, page string, skip func(words []string) bool, seen func(words []string, output string, next *block)) {
	t.Helper()
	blocks := append(blocksOf(page), &block{})
	for i, b := range blocks[:len(blocks)-1] {
		if b.file != "" {
			write(t, filepath.Join(dir, b.file), b.text())
			continue
		}
		for _, command := range b.lines {
			words := wordsOf(command)
			switch {
			case len(words) == 0 || skip(words):
			case words[0] == "cp":
				write(t, filepath.Join(dir, words[2]), read(t, filepath.Join(dir, filepath.FromSlash(words[1]))))
			case words[0] == "macrostep":
				code, output := macrostepIn(t, dir, words[1:]...)
				if code != 0 {
					t.Errorf("%s: exit code %d\n%s", command, code, output)
				}
				seen(words[1:], output, blocks[i+1])
			}
		}
	}
}

// The commands of the tutorial in the README and of its study run in their order (a long test).
func TestReadmeTutorial(t *testing.T) {
	t.Parallel()
	readme := string(read(t, filepath.Join("..", "README.md")))
	_, rest, _ := strings.Cut(readme, "## Two FMUs of your own")
	section, rest, ok := strings.Cut(rest, "\n## ")
	study, _, ok2 := strings.Cut(rest, "\n## ")
	if !ok || !ok2 || !strings.HasPrefix(study, "A study in three commands") {
		t.Fatal("the README has no tutorial, or no study after it")
	}
	dir := demoFolder(t, "quarter-car-a", "quarter-car-b")
	ran := map[string]int{}
	runPage(t, dir, section+"\n"+study, func(words []string) bool {
		if len(words) > 1 && words[0] == "macrostep" {
			ran[words[1]]++
		}
		return len(words) > 1 && words[1] == "analyze" && !long.On
	}, func(words []string, output string, _ *block) {
		switch {
		case words[0] == "run" && !strings.Contains(output, "complete at t = 1 s"):
			t.Errorf("%s: the run is not complete\n%s", words, output)
		case words[0] == "study" && !strings.Contains(output, "15 runs: 15 ok"):
			t.Errorf("%s: the study is not complete\n%s", words, output)
		}
	})
	if ran["study"] != 2 {
		t.Errorf("%d commands of the study", ran["study"])
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

// The page on checks shows what analyze prints of the quarter car, on one screen, and explains each reason. The command that
// it recommends runs as it stands.
func TestCheckingPage(t *testing.T) {
	t.Parallel()
	const most, columns = 26, 100
	page := string(read(t, filepath.Join("..", "docs", "checking.md")))
	_, shown, ok := strings.Cut(page, "\nprints\n")
	if !ok {
		t.Fatal("the page shows no output")
	}
	dir := demoFolder(t, "quarter-car-b")
	code, printed := macrostepIn(t, dir, "analyze", "macrostep-demo/quarter-car-b.ssp")
	if at := strings.Index(printed, "explicit, order 0"); at > 0 {
		printed = printed[at:] // without progress
	}
	if n := strings.Count(printed, "\n"); code != 0 || n > most || n < 15 {
		t.Errorf("exit code %d, %d lines:\n%s", code, n, printed)
	}
	ran := false
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		switch command, isCommand := strings.CutPrefix(line, "macrostep "); {
		case isCommand:
			if code, output := macrostepIn(t, dir, wordsOf(command)...); code != 0 {
				t.Errorf("%s: exit code %d\n%s", line, code, output)
			}
			ran = true
		case len([]rune(line)) > columns:
			t.Errorf("longer than %d: %s", columns, line)
		}
	}
	if !ran {
		t.Error("no command is recommended")
	}
	shown = shown[:strings.Index(shown, "\n- **")]
	if !sameWords(strings.Fields(shown), strings.Fields(printed), 0.05) {
		t.Errorf("the page shows\n%s\nand printed is\n%s", shown, printed)
	}
	for _, w := range reason.All() {
		means, do := w.Explain()
		if row := fmt.Sprintf("\n| `%s` | %s | %s |\n", string(w), means, do); !strings.Contains(page, row) {
			t.Errorf("the page lacks the row%s", row)
		}
	}
}

// sameWords compares lines: the same words, and numbers within a tolerance. Numbers below 1e-9 are rounding errors.
func sameWords(want, got []string, rtol float64) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		x, err := strconv.ParseFloat(strings.Trim(a, "(),~"), 64)
		y, err2 := strconv.ParseFloat(strings.Trim(b, "(),~"), 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= max(1e-9, rtol*math.Abs(x))
	})
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
