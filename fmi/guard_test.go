package fmi

import (
	"os"
	"strings"
	"testing"
)

// Changes are restored each time and reported once.
func TestProcessWatch(t *testing.T) {
	home, err := os.Getwd()
	must(t, err)
	f := plainFMU(t)
	for _, c := range []struct {
		fmus []*FMU
		want string
	}{
		{[]*FMU{f, f}, ".fmu: in a step the FMU changed the working directory to "},
		{[]*FMU{f, {Path: "dir/other.fmu"}}, ", other.fmu changed the working directory to "},
	} {
		w := WatchProcess(c.fmus)
		if told, lasting := w.Restore(); told != nil || lasting != nil {
			t.Errorf("before anything has changed: %q", told)
		}
		for k := range 2 {
			must(t, os.Chdir(t.TempDir()))
			told, _ := w.Restore()
			if k == 0 && (len(told) != 1 || !strings.Contains(told[0], c.want) || !strings.HasSuffix(told[0], "it is restored")) || k == 1 && told != nil {
				t.Errorf("time %d: told %q, want %q", k, told, c.want)
			}
			if dir, err := os.Getwd(); err != nil || dir != home {
				t.Errorf("the directory is %q, want %q (%v)", dir, home, err)
			}
		}
	}
}
