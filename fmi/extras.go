package fmi

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// CheckExtras judges the documents of an FMU that no run uses: those on terminals
// and on how to build. The findings go to l.
func (f *FMU) CheckExtras(l *diag.List) {
	for _, x := range []struct {
		name  string
		check func(data io.Reader, file string, l *diag.List)
		rule  *diag.Rule
	}{
		{"terminalsAndIcons/terminalsAndIcons.xml", func(r io.Reader, file string, l *diag.List) { description.CheckTerminals(r, file, f.Description, l) }, description.RuleTerminals},
		{"sources/buildDescription.xml", f.checkBuild, description.RuleBuild},
	} {
		path := filepath.Join(f.Dir, filepath.FromSlash(x.name))
		shown := f.Path + "!" + x.name
		if f.Dir == f.Path {
			shown = path
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && !info.Mode().IsRegular():
			err = errors.New("it is no plain file")
		}
		var r *os.File
		if err == nil {
			r, err = os.Open(path)
		}
		if err != nil {
			l.Add(x.rule, shown, "", 0, "the document cannot be read: %v", err)
			continue
		}
		x.check(r, shown, l)
		_ = r.Close() // it was only read
	}
}

// checkBuild judges a buildDescription.xml by what is in the FMU.
func (f *FMU) checkBuild(r io.Reader, file string, l *diag.List) {
	description.CheckBuild(r, file, f.Description, func(name string) bool {
		info, err := os.Stat(filepath.Join(f.Dir, "sources", filepath.FromSlash(name)))
		return filepath.IsLocal(filepath.FromSlash(name)) && err == nil && info.Mode().IsRegular()
	}, l)
}
