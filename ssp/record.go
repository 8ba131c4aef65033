package ssp

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/macrostep/macrostep/fmi/diag"
)

// file finds a file that the annotation of macrostep names.
func (f *flattener) file(a *Asked) {
	if !a.File || a.Text == "" {
		return
	}
	home, uri := &f.p.Root.home, a.Text
	rel, err := home.locate(uri)
	if err != nil {
		f.l.Report(ruleFile, a.Place, "%v", err)
		return
	}
	a.Text, a.Shown = filepath.Join(home.dir, rel), home.show(rel)
	if info, err := os.Stat(a.Text); err != nil {
		f.l.Report(ruleFile, a.Place, "the table %q cannot be read: %v%s", uri, unwrapPath(err), home.hint(rel))
	} else if !info.Mode().IsRegular() {
		f.l.Report(ruleFile, a.Place, "the table %q is not a regular file", uri)
	}
	f.p.files = append(f.p.files, a.Text)
}

func (f *flattener) resolved() *Resolved {
	given := slices.ContainsFunc(f.net.Asked, func(a Asked) bool { return a.Name == Record })
	return &Resolved{Package: f.p, List: f.l, Variables: f.vars, Given: given}
}

// record takes the recorded variables from other tools, unless the annotation of macrostep gives
// them.
func (f *flattener) record(tools []Annotations) {
	for _, tool := range tools {
		r, is := tool.(Recorder)
		if !is {
			continue
		}
		names, from, at := r.Record(f.resolved())
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			f.net.Asked = append(f.net.Asked, Asked{Name: Record, Text: name, From: from, Place: at})
		}
		f.l.Report(RuleTaken, at, "the recorded variables are taken from %s: %s", from, diag.Some(names))
	}
}
