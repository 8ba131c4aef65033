package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checklist is the table of checklist.md: what the standard requires of a
// master, clause by clause, and the tests that hold it.
type checklist struct {
	required []string // numbers that must stand in the table
	lines    map[string]*checklistLine
}

type checklistLine struct {
	clauses int
	tests   []testName
}

// testName is a test as the table names it: `fmi TestStatuses/discard in doStep`.
type testName struct {
	folder, function, sub string
	at                    int // line of the table
}

var (
	headingOfLine = regexp.MustCompile(`^### (\d+) \S`)
	namedTest     = regexp.MustCompile("`([a-z0-9/]+) ((?:Test|Fuzz)\\w+)(?:/([^`]+))?`")
)

// parseChecklist reads the table. All faults of its form are told.
func parseChecklist(text string) (c checklist, faults []string) {
	c.lines = map[string]*checklistLine{}
	fault := func(at int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("line %d: ", at)+fmt.Sprintf(format, args...))
	}
	var number string
	for i, line := range strings.Split(text, "\n") {
		at := i + 1
		if list, ok := strings.CutPrefix(line, "Required by the standard: "); ok {
			c.required = append(c.required, strings.Fields(list)...)
			continue
		}
		if m := headingOfLine.FindStringSubmatch(line); m != nil {
			if number = m[1]; c.lines[number] != nil {
				fault(at, "number %s stands twice", number)
			}
			c.lines[number] = &checklistLine{}
			continue
		}
		clause, isClause := strings.CutPrefix(line, "- ")
		switch {
		case strings.HasPrefix(line, "#"):
			number = ""
			continue
		case !isClause || number == "":
			continue
		}
		l := c.lines[number]
		l.clauses++
		text, tests, _ := strings.Cut(clause, " → ")
		found := namedTest.FindAllStringSubmatch(tests, -1)
		if len(found) == 0 {
			fault(at, "number %s: no test holds %q", number, text)
		}
		// Nothing but tests and commas stands behind the arrow.
		if rest := strings.Trim(namedTest.ReplaceAllString(tests, ""), ", "); rest != "" {
			fault(at, "number %s: %q is no test", number, rest)
		}
		for _, m := range found {
			l.tests = append(l.tests, testName{m[1], m[2], m[3], at})
		}
	}
	for _, n := range c.required {
		if l := c.lines[n]; l == nil {
			faults = append(faults, fmt.Sprintf("number %s is required and not in the table", n))
		} else if l.clauses == 0 {
			faults = append(faults, fmt.Sprintf("number %s has no clause and no test", n))
		}
	}
	if len(c.required) == 0 {
		faults = append(faults, "the table does not say which numbers are required")
	}
	return c, faults
}

// testSources are the test functions of the packages in the order they are
// asked for: by name the string literals of the file that each stands in.
type testSources map[string]map[string]map[string]bool

func (s testSources) functions(folder string) (map[string]map[string]bool, error) {
	if known := s[folder]; known != nil {
		return known, nil
	}
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		literals := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					literals[text] = true
					// Of the rule cases "MD12:line 24|MD11:Length" each id counts.
					for part := range strings.SplitSeq(text, "|") {
						id, _, _ := strings.Cut(part, ":")
						literals[id] = true
					}
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
	s[folder] = all
	return all, nil
}

// missing tells what is wrong with the name of a test, "" if it exists.
func (s testSources) missing(n testName) string {
	functions, err := s.functions(n.folder)
	if err != nil {
		return err.Error()
	}
	literals, ok := functions[n.function]
	switch {
	case len(functions) == 0:
		return fmt.Sprintf("the folder %s has no tests", n.folder)
	case !ok:
		return fmt.Sprintf("the folder %s has no test %s", n.folder, n.function)
	case n.sub != "" && !literals[n.sub]:
		return fmt.Sprintf("%s %s: %q does not stand in its file", n.folder, n.function, n.sub)
	}
	return ""
}

// Every line of the FMI 2.0 checklist that the standard requires has a test for
// each of its clauses, and the tests exist.
func TestChecklist(t *testing.T) {
	text := read(t, "checklist.md")
	c, faults := parseChecklist(string(text))
	for _, f := range faults {
		t.Errorf("checklist.md: %s", f)
	}
	sources := testSources{}
	for _, number := range slices.Sorted(maps.Keys(c.lines)) {
		for _, n := range c.lines[number].tests {
			if m := sources.missing(n); m != "" {
				t.Errorf("checklist.md: line %d: number %s: %s", n.at, number, m)
			}
		}
	}
}

// A table that lacks something is not let pass.
func TestChecklistFaults(t *testing.T) {
	t.Parallel()
	const good = "Required by the standard: 1 2\n### 1 first\n- a → `fmi TestFatal`\n### 2 second\n- b → `fmi TestStatuses/discard in doStep`, `test TestHostile`\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"good", "", "", ""},
		{"no test", "a → `fmi TestFatal`", "a", `no test holds "a"`},
		{"no clause", "- a → `fmi TestFatal`\n", "", "number 1 has no clause"},
		{"no line", "### 1 first\n- a → `fmi TestFatal`\n", "", "number 1 is required and not in the table"},
		{"twice", "### 2", "### 1", "number 1 stands twice"},
		{"text for a test", "`fmi TestFatal`", "`fmi TestFatal`, see there", `"see there" is no test`},
		{"nothing required", "Required by the standard: 1 2\n", "", "does not say which"},
		{"no such folder", "`fmi TestFatal`", "`fmi/none TestFatal`", "fmi/none has no tests"},
		{"no such test", "`fmi TestFatal`", "`fmi TestFetal`", "fmi has no test TestFetal"},
		{"test of another folder", "`fmi TestFatal`", "`ssp TestFatal`", "ssp has no test TestFatal"},
		{"no such subtest", "discard in doStep", "discard in dostap", `"discard in dostap" does not stand`},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, faults := parseChecklist(strings.Replace(good, c.old, c.new, 1))
			sources := testSources{}
			for _, l := range list.lines {
				for _, n := range l.tests {
					if m := sources.missing(n); m != "" {
						faults = append(faults, m)
					}
				}
			}
			if got := strings.Join(faults, "\n"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("faults %q, want %q", got, c.want)
			}
		})
	}
}

// The numbers of the table are those that the checklist marks as required; it
// lies beside the folder of -real.
func testRealChecklist(t *testing.T) {
	original := read(t, filepath.Join(filepath.Dir(*realDir), "standards", "fmi2-master-checklist.md"))
	text := read(t, "checklist.md")
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^(\d+)\. M `).FindAllStringSubmatch(string(original), -1) {
		want = append(want, m[1])
	}
	if c, _ := parseChecklist(string(text)); len(want) == 0 || !slices.Equal(c.required, want) {
		t.Errorf("checklist.md requires %v, the checklist %v", c.required, want)
	}
}
