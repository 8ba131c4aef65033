//go:build unix

package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// Tables that others touch during the run do not pass for results.
func TestTablesTouchedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		touch func(path string) error
		says  string
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"removed", os.Remove, "was removed or renamed during the run"},
		{"renamed", func(path string) error { return os.Rename(path, path+".old") }, "was removed or renamed during the run"},
		{"replaced", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, []byte("other"), 0o644)
		}, "was replaced by another file"},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }, "was changed by another program during the run: it has 0 bytes"},
		{"longer", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			if _, err := f.WriteString("junk"); err != nil {
				return err
			}
			return f.Close()
		}, "was changed by another program during the run"},
	} {
		for _, more := range []bool{false, true} { // rows after it
			sys := testSystem(t)
			table := NewTable(filepath.Join(t.TempDir(), "r.csv"), Options{})
			attempts := NewAttempts(filepath.Join(t.TempDir(), "a.csv"), nil)
			for what, r := range map[string]struct {
				master.Recorder
				row  func() error
				path string
			}{
				"results":  {table, func() error { return table.Record(testPoint(sys)) }, table.path},
				"attempts": {attempts, func() error { return attempts.RecordAttempt(0, 1, master.Trial{}, true, nil) }, attempts.path},
			} {
				must(t, r.Begin(sys, nil))
				must(t, r.row())
				must(t, r.Flush())
				must(t, c.touch(r.path))
				var err error
				if more {
					must(t, r.row())
					err = r.Flush()
				}
				if end := r.End(master.Result{}); err == nil {
					err = end
				}
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), filepath.Base(r.path))) {
					t.Errorf("%s %s, more rows %v: %v", what, c.name, more, err)
				}
			}
		}
	}
}
