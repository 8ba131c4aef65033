package fmi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// The documents are found in the FMU; what cannot be read is told.
func TestCheckExtras(t *testing.T) {
	d, err := description.Read(strings.NewReader(baseXML), "x.xml", nil)
	must(t, err)
	dir := t.TempDir()
	f := &FMU{Description: d, Path: filepath.Join(dir, "a.fmu"), Dir: dir}
	l := &diag.List{}
	if f.CheckExtras(l); len(l.Findings) > 0 {
		t.Errorf("nothing is there: %v", l.Findings)
	}
	for _, name := range []string{"terminalsAndIcons/terminalsAndIcons.xml", "sources/buildDescription.xml"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700))
	}
	if f.CheckExtras(l); len(l.Findings) != 2 || l.Findings[0].File != f.Path+"!terminalsAndIcons/terminalsAndIcons.xml" || !strings.Contains(l.Findings[0].Message, "no plain file") {
		t.Errorf("folders: %v", l.Findings)
	}
}
