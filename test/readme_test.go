package test

import (
	"math"
	"os"
	"os/exec"
	"path"
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
// command before it, if that line contains "prints"; or commands, which fail if it ends with " is refused:".
type block struct {
	file    string
	output  bool
	refused bool
	lines   []string
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
			open.refused = strings.HasSuffix(above, " is refused:")
			out = append(out, open)
		case indented:
			open.lines = append(open.lines, code)
		case line == "" && open != nil && open.output: // output may have empty lines
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
		case b.output && printed == "": // the command was skipped
			continue
		case b.output:
			var lines [][]string
			for line := range strings.Lines(printed) {
				lines = append(lines, strings.Fields(line))
			}
			for _, line := range b.lines {
				compared++
				if want := strings.Fields(line); !slices.ContainsFunc(lines, func(got []string) bool { return shownAs(want, got) }) {
					t.Errorf("the page shows\n  %s\nand printed is\n%s", line, printed)
				}
			}
			continue
		}
		printed = ""
		for _, command := range b.lines {
			command = strings.Replace(command, "go run -v ./cmd/macrostep", "macrostep", 1)
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
				if (code != 0) != b.refused {
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
// Analyses are a long test; TestCheckingPage makes one.
var pageTests = []struct {
	page               string
	commands, compared int
}{
	{"../README", 8, 0}, {"algorithms", 8, 0}, {"coupling", 1, 0}, {"checking", 1, 0}, {"building", 12, 2}, {"crashes", 7, 0}, {"realtime", 2, 0}, {"results", 5, 0}, {"running", 6, 0}, {"scenarios", 4, 0},
}

// The first command of the README lists what Go compiles, since that takes minutes and says nothing by itself; the second runs the tests.
// The platforms of the archives, and the version of Go, are those of the files that make them.
func TestReadmeGettingIn(t *testing.T) {
	readme := string(read(t, filepath.Join("..", "README.md")))
	var first []string
	for _, b := range blocksOf(readme) {
		if strings.HasPrefix(b.lines[0], "go ") {
			first = b.lines
			break
		}
	}
	if want := []string{"go run -v ./cmd/macrostep demo", "go test ./..."}; !slices.Equal(first, want) {
		t.Errorf("the commands from source are %q, want %q", first, want)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(read(t, filepath.Join("..", "go.mod"))))[1]
	container := string(read(t, filepath.Join("..", ".ci", "Containerfile")))
	for what, text := range map[string]string{"You need Go " + version + " ": readme, "FROM golang:" + version + "-": container} {
		if !strings.Contains(text, what) {
			t.Errorf("there is no %q", what)
		}
	}
	targets := regexp.MustCompile(`(?m)^ *targets: \[(.*)\]`).FindStringSubmatch(string(read(t, filepath.Join("..", ".ci", "goreleaser.yaml"))))[1]
	for target := range strings.SplitSeq(targets, ", ") {
		words := strings.Split(target, "_")
		if archive := words[0] + "-" + words[1]; !strings.Contains(readme, archive) {
			t.Errorf("the README does not name the archive for %s", archive)
		}
	}
	// The program of the page on embedding finds the FMUs where the README puts them.
	run := regexp.MustCompile(`(?m)^    go run \. (\S+) (\S+)$`).FindStringSubmatch(string(read(t, filepath.Join("..", "docs", "embedding.md"))))
	for _, fmu := range run[1:] {
		folder, name := path.Split(fmu)
		for _, want := range []string{"mkdir " + path.Clean(folder) + " && cd " + path.Clean(folder) + "\n", " " + name + "\n"} {
			if !strings.Contains(readme, want) {
				t.Errorf("docs/embedding.md runs %s, and the README has no command that ends in %q", fmu, want)
			}
		}
	}
}

func TestPages(t *testing.T) {
	for _, c := range pageTests {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			page := string(read(t, filepath.Join("..", "docs", c.page+".md")))
			ran, compared := runPage(t, t.TempDir(), page, func(command string) bool {
				return strings.HasPrefix(command, "macrostep analyze ") && !long.On || strings.Contains(command, "--live") // waits for a browser
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

// The tutorial runs as it stands, with the FMUs that it names.
func testRealTutorial(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"dymola/Controller", "dymola/Drivetrain", "20sim/MassSpringDamper1", "20sim/MassSpringDamper2"} {
		file := filepath.FromSlash(name + ".fmu")
		write(t, filepath.Join(dir, filepath.Base(file)), read(t, filepath.Join(*realDir, "fmus", file)))
	}
	ran, compared := runPage(t, dir, string(read(t, filepath.Join("..", "docs", "tutorial.md"))), func(string) bool { return false })
	if ran["run"] < 10 || ran["info"] < 2 || ran["ssp"] < 3 || ran["study"] < 1 || compared < 15 {
		t.Errorf("%v, %d lines of output", ran, compared)
	}
}

// The page on checks shows what analyze prints of the quarter car, on one screen. The command that it recommends runs as it
// stands.
func TestCheckingPage(t *testing.T) {
	t.Parallel()
	const most, columns = 26, 100
	page := string(read(t, filepath.Join("..", "docs", "checking.md")))
	_, shown, ok := strings.Cut(page, "\nprints\n")
	if !ok {
		t.Fatal("the page shows no output")
	}
	dir := t.TempDir()
	runPage(t, dir, "    macrostep demo quarter-car-b\n", func(string) bool { return false })
	cmd := exec.Command(program, "analyze", "macrostep-demo/quarter-car-b.ssp")
	cmd.Dir = dir
	out, err := cmd.Output() // without progress
	printed := string(out)
	if n := strings.Count(printed, "\n"); err != nil || n > most || n < 15 {
		t.Errorf("%v, %d lines:\n%s", err, n, printed)
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
}

// shownAs compares a line of a page with a printed one, of which "…" replaces the rest.
func shownAs(want, got []string) bool {
	if n := len(want) - 1; n >= 0 && want[n] == "…" && len(got) > n {
		want, got = want[:n], got[:n]
	}
	return sameWords(want, got, 0.05)
}

// sameWords compares lines: the same words, and numbers within a tolerance. Numbers below 1e-9 are rounding errors.
func sameWords(want, got []string, rtol float64) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		x, err := strconv.ParseFloat(strings.Trim(a, "(),~"), 64)
		y, err2 := strconv.ParseFloat(strings.Trim(b, "(),~"), 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= max(1e-9, rtol*math.Abs(x))
	})
}

// Links and names of files in the documentation lead somewhere, and README or CONTRIBUTING leads to each page of docs.
func TestDocumentationLinks(t *testing.T) {
	root := ".."
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("%v, %v", pages, err)
	}
	index := string(read(t, filepath.Join(root, "README.md"))) + string(read(t, filepath.Join(root, "CONTRIBUTING.md")))
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	file := regexp.MustCompile("`([\\w/]+\\.go)`")
	for _, path := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		for _, m := range link.FindAllStringSubmatch(string(read(t, path)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: the link %s: %v", path, m[1], err)
			}
		}
		for _, m := range file.FindAllStringSubmatch(string(read(t, path)), -1) {
			if filepath.Base(path) != "literature.md" {
				break
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1])))
			if _, inAlgorithms := os.Stat(filepath.Join(root, "algorithms", filepath.FromSlash(m[1]))); err != nil && inAlgorithms != nil {
				t.Errorf("%s: there is no file %s", path, m[1])
			}
		}
		if name := filepath.Base(path); filepath.Dir(path) != root && !strings.Contains(index, "](docs/"+name+")") {
			t.Errorf("neither README nor CONTRIBUTING leads to docs/%s", name)
		}
	}
}
