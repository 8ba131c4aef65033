package test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// block is an indented block of a page: a file, if the line above ends with its name as in "`NAME`:"; output of the
// command before it, if that line contains "prints"; or commands.
type block struct {
	file   string
	output bool
	lines  []string
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
			open.output = strings.Contains(above, "prints")
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

// runPage writes the files of a page to a folder and runs its commands there, in their order, without those that skip
// reports. Each line of an output must be among the printed ones, up to the fifth digit of numbers or so. It returns
// how many commands it ran, by name, and how many lines it compared.
func runPage(t *testing.T, dir, page string, skip func(command string) bool) (ran map[string]int, compared int) {
	t.Helper()
	ran = map[string]int{}
	printed := ""
	for _, b := range blocksOf(page) {
		switch {
		case b.file != "":
			write(t, filepath.Join(dir, b.file), b.text())
			continue
		case b.output && printed != "":
			var lines [][]string
			for line := range strings.Lines(printed) {
				lines = append(lines, strings.Fields(line))
			}
			for _, line := range b.lines {
				compared++
				if want := strings.Fields(line); !slices.ContainsFunc(lines, func(got []string) bool { return sameWords(want, got, 0.05) }) {
					t.Errorf("the page shows\n  %s\nand printed is\n%s", line, printed)
				}
			}
			continue
		}
		printed = ""
		for _, command := range b.lines {
			words := wordsOf(command)
			switch {
			case len(words) == 0 || skip(command):
			case words[0] == "cp":
				write(t, filepath.Join(dir, words[2]), read(t, filepath.Join(dir, filepath.FromSlash(words[1]))))
			case words[0] == "macrostep" && words[1] == "demo":
				demo := filepath.Join(dir, "macrostep-demo")
				mkdir(t, demo)
				for _, name := range append(words[2:], "quarter-car-a") {
					if _, err := fmus.WriteSystem(demo, name); err != nil {
						t.Fatal(err)
					}
				}
			case words[0] == "macrostep":
				code, output := macrostepIn(t, dir, words[1:]...)
				if code != 0 {
					t.Errorf("%s: exit code %d\n%s", command, code, output)
				}
				ran[words[1]]++
				printed = output
			}
		}
	}
	return ran, compared
}

// pageTests are the pages whose commands run as they are, and how many commands and lines of output they have at least.
// Analyses are a long test.
var pageTests = []struct {
	page               string
	commands, compared int
}{
	{"algorithms", 8, 0}, {"building", 12, 2}, {"crashes", 7, 0}, {"realtime", 2, 0}, {"results", 5, 0}, {"running", 6, 0}, {"scenarios", 4, 0},
}

func TestPages(t *testing.T) {
	for _, c := range pageTests {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			page := string(read(t, filepath.Join("..", "docs", c.page+".md")))
			ran, compared := runPage(t, t.TempDir(), page, func(command string) bool {
				return strings.HasPrefix(command, "macrostep analyze ") && !long.On || !strings.Contains(command, " ")
			})
			sum := 0
			for _, n := range ran {
				sum += n
			}
			if sum < c.commands || compared < c.compared {
				t.Errorf("%d commands, %d lines of output", sum, compared)
			}
		})
	}
}

// The commands of the tutorial in the README and of its study run in their order, and analyze prints what the README
// shows (a long test).
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
		case words[0] == "analyze":
			sameTable(t, section, output)
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
	for i := range want {
		if !sameWords(want[i], got[i], 0.02) {
			t.Errorf("the README shows of the analysis\n  %v\nand printed is\n  %v", want[i], got[i])
		}
	}
}

// sameWords compares lines: the same words, and numbers within a tolerance. Numbers below 1e-9 are rounding errors.
func sameWords(want, got []string, rtol float64) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		x, err := strconv.ParseFloat(strings.Trim(a, "(),"), 64)
		y, err2 := strconv.ParseFloat(strings.Trim(b, "(),"), 64)
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
