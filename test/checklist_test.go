package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requiredNumbers returns the numbers that checklist.md lists as required by the standard.
func requiredNumbers(text string) []string {
	_, list, _ := strings.Cut(text, "Required by the standard: ")
	list, _, _ = strings.Cut(list, "\n")
	return strings.Fields(list)
}

// testsIn returns the functions of the tests of a folder, each with the string literals of its file: the names of
// subtests are among them. Of the rule cases "MD12:line 24|MD11:Length" each id counts, and so does each rule of
// testdata/examples.txt.
func testsIn(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	all, examples := map[string]map[string]bool{}, map[string]bool{}
	if text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(folder), "testdata", "examples.txt")); err == nil {
		for _, m := range regexp.MustCompile(`(?m)^== (\w+)`).FindAllSubmatch(text, -1) {
			examples[string(m[1])] = true
		}
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		literals := map[string]bool{"": true}
		maps.Copy(literals, examples)
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value) // the parser has accepted it
				literals[text] = true
				for part := range strings.SplitSeq(text, "|") {
					id, _, _ := strings.Cut(part, ":")
					literals[id] = true
				}
			}
			return true
		})
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				all[f.Name.Name] = literals
			}
		}
	}
	return all
}

// checklist.md has every number that the standard requires, once, each with clauses; each clause names tests, which
// exist.
func TestChecklist(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`^### (\d+) \S`)
	named := regexp.MustCompile("`([a-z0-9/]+) ((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")
	text := string(read(t, "checklist.md"))
	folders := map[string]map[string]map[string]bool{}
	clauses := map[string]int{}
	number := ""
	for i, line := range strings.Split(text, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			number = m[1]
			if _, twice := clauses[number]; twice {
				t.Errorf("checklist.md:%d: duplicate number %s", i+1, number)
			}
			clauses[number] = 0
			continue
		}
		clause, ok := strings.CutPrefix(line, "- ")
		if strings.HasPrefix(line, "#") {
			number = ""
		}
		if !ok || number == "" {
			continue
		}
		clauses[number]++
		_, tests, _ := strings.Cut(clause, " → ")
		found := named.FindAllStringSubmatch(tests, -1)
		if rest := strings.Trim(named.ReplaceAllString(tests, ""), ", "); len(found) == 0 || rest != "" {
			t.Errorf("checklist.md:%d: number %s: not a list of tests: %q", i+1, number, tests)
		}
		for _, m := range found {
			folder, function, subtest := m[1], m[2], m[3]
			if folders[folder] == nil {
				folders[folder] = testsIn(t, folder)
			}
			if !folders[folder][function][subtest] {
				t.Errorf("checklist.md:%d: number %s: no test %s", i+1, number, m[0])
			}
		}
	}
	required := requiredNumbers(text)
	if len(required) == 0 {
		t.Error("checklist.md does not list the required numbers")
	}
	for _, n := range required {
		if clauses[n] == 0 {
			t.Errorf("checklist.md: the required number %s has no clause", n)
		}
	}
}

// The required numbers are those that the checklist beside the folder of -real marks as required.
func testRealChecklist(t *testing.T) {
	original := read(t, filepath.Join(filepath.Dir(*realDir), "standards", "fmi2-master-checklist.md"))
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^(\d+)\. M `).FindAllStringSubmatch(string(original), -1) {
		want = append(want, m[1])
	}
	if got := requiredNumbers(string(read(t, "checklist.md"))); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("checklist.md requires %v, the checklist %v", got, want)
	}
}
