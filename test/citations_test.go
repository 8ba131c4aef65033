package test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	continuedComment = regexp.MustCompile(`\n\s*// ?`)
	citation         = regexp.MustCompile(`\b(fmi2|ssp|checklist) (\d+(?:(?:[-–]|, )\d+)*)`)
	citedItem        = regexp.MustCompile(`(?m)^(\d+)\. \S(?:.*\n(?: {2,}\S.*\n)*)`)
)

// cited returns the numbers that a text cites, by document: "fmi2 30–37, 39" or, in the
// documentation of descriptions, "checklist 17".
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

// TestCitations holds docs/fmi2.md and docs/ssp.md to the Go files: every item that one of
// them cites exists, and every item is cited or marked "(Cited nowhere.)".
func TestCitations(t *testing.T) {
	t.Parallel()
	where := map[string]map[int]string{"fmi2": {}, "ssp": {}} // a file that cites the item
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
