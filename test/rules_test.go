package test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	judging "github.com/macrostep/macrostep/master/validate"
)

// An id means one rule in the whole program, every rule says what it asks for
// and where that comes from, and all are listed.
func TestRuleIDs(t *testing.T) {
	first := map[string]string{}
	for _, r := range judging.Rules() {
		if other, twice := first[r.ID]; twice {
			t.Errorf("%s is the id of %q and of %q", r.ID, other, r.Doc)
		}
		first[r.ID] = r.Doc
		if r.ID == "" || r.Doc == "" || r.Ref == "" {
			t.Errorf("%s: no id, requirement or source: %+v", r.ID, *r)
		}
	}
	declared := 0
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		declared += bytes.Count(source, []byte("= &diag.Rule{"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if declared != len(first) {
		t.Errorf("%d rules are declared and %d are listed", declared, len(first))
	}
}
