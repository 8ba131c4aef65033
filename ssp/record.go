package ssp

import (
	"os"
	"path/filepath"

	"github.com/macrostep/macrostep/fmi/diag"
)

// table finds a table that the annotation of macrostep names.
func (f *flattener) table(t *Table) {
	if t == nil || t.URI == "" {
		return
	}
	name := "input"
	if t == f.net.Own.History {
		name = "history"
	}
	at := f.net.Own.Sources[name].Place
	home := &f.p.Root.home
	rel, err := home.locate(t.URI)
	if err != nil {
		f.l.Report(ruleFile, at, "%v", err)
		return
	}
	t.Path, t.Shown = filepath.Join(home.dir, rel), home.show(rel)
	if info, err := os.Stat(t.Path); err != nil {
		f.l.Report(ruleFile, at, "the table %q cannot be read: %v%s", t.URI, unwrapPath(err), home.hint(rel))
	} else if !info.Mode().IsRegular() {
		f.l.Report(ruleFile, at, "the table %q is not a regular file", t.URI)
	}
	f.p.files = append(f.p.files, t.Path)
}

func (f *flattener) resolved() *Resolved {
	return &Resolved{Package: f.p, List: f.l, Variables: f.vars, Given: f.net.Own.Record != nil}
}

// record takes the recorded variables from other tools, unless the annotation of macrostep gives
// them.
func (f *flattener) record(tools []Annotations) {
	for _, tool := range tools {
		r, is := tool.(Recorder)
		if !is {
			continue
		}
		names, from := r.Record(f.resolved())
		if len(names) == 0 {
			continue
		}
		f.net.Own.Record = names
		f.net.Own.From("record", from.Text, from.Place)
		f.l.Report(RuleTaken, from.Place, "the recorded variables are taken from %s: %s", from.Text, diag.Some(names))
	}
}
