package ssp

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// table finds a table that our own annotation names.
func (f *flattener) table(t *Table) {
	if t == nil || t.URI == "" {
		return
	}
	at := f.ownPlace("input")
	if t == f.net.Own.History {
		at = f.ownPlace("history")
	}
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
		f.l.Report(ruleFile, at, "the table %q is no ordinary file", t.URI)
	}
	f.p.files = append(f.p.files, t.Path)
}

// ownPlace gives where a setting stands.
func (f *flattener) ownPlace(name string) Place { return f.net.Own.Sources[name].Place }

// record turns the signal filter of OMSimulator into names of variables (ssp 42).
// Its names begin with those of the document and of the outermost system.
func (f *flattener) record() {
	if f.filter == nil {
		return
	}
	at, text := f.filter.place, f.filter.text
	source := TypeOMS + " signalFilter"
	var names []string
	missing := 0
	switch {
	case f.net.Own.Record != nil:
		f.l.Report(ruleForeignPart, at, "%s is left out: the annotation of macrostep tells what is recorded", source)
		return
	case text == "" || text == ".*":
		f.l.Report(ruleForeign, at, "%s=%q selects everything and has no effect: outputs and connected inputs are recorded; --record '*' records all", source, text)
		return
	case strings.HasSuffix(text, ".xml"):
		for _, name := range f.readFilter(at, text) {
			if own, ok := f.ownName(name); ok {
				names = append(names, own)
			} else {
				missing++
			}
		}
	default:
		pattern, err := regexp.Compile(`^(?:` + text + `)$`)
		if err != nil {
			f.l.Report(ruleForeignPart, at, "%s=%q is no regular expression that is understood, and is left out: %v", source, text, err)
			return
		}
		prefix := f.p.Root.Name + "." + f.p.Root.System.Name + "."
		for i, c := range f.net.Components {
			for v := range f.vars[i].All() {
				if pattern.MatchString(prefix + c.Joined + "." + v.Name) {
					names = append(names, c.Path+"."+v.Name)
				}
			}
		}
	}
	if missing > 0 {
		f.l.Report(ruleForeign, at, "%s: %d names are no variables of FMUs, such as connectors of systems, and are left out", source, missing)
	}
	if len(names) == 0 {
		f.l.Report(ruleForeignPart, at, "%s=%q selects no variable of an FMU, and is left out", source, text)
		return
	}
	f.net.Own.Record = names
	f.net.Own.from("record", source, at)
	f.l.Report(ruleTaken, at, "what is recorded is taken from %s: %s", source, few(names))
}

// ownName gives "component.variable" for a name of OMSimulator.
func (f *flattener) ownName(name string) (string, bool) {
	for _, prefix := range []string{f.p.Root.Name + "." + f.p.Root.System.Name + ".", ""} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		for i, c := range f.net.Components {
			variable, ok := strings.CutPrefix(rest, c.Joined+".")
			if !ok {
				continue
			}
			if _, ok := f.vars[i].Lookup(variable); ok {
				return c.Path + "." + variable, true
			}
		}
	}
	return "", false
}

// readFilter reads the names in a file of OMSimulator.
func (f *flattener) readFilter(at Place, uri string) (names []string) {
	data, file, err := f.p.openFile(f.p.Root.home, uri)
	if err != nil {
		f.l.Report(ruleForeignPart, at, "the signal filter is left out: %v", err)
		return nil
	}
	p := newParser(f.l, file)
	p.Once("prefix oms") // OMSimulator writes these files without declaring it
	root := p.Parse(data)
	if root == nil {
		return nil
	}
	if !root.Is("SignalFilter", xmltree.OMS) {
		p.Add(ruleForeignPart, root, "the root element is %q, not SignalFilter of OMSimulator; the file is left out", root.El.FullTag())
		return nil
	}
	for _, k := range root.Kids {
		if k.Is("Variable", xmltree.OMS) {
			names = append(names, p.Need(k, "name"))
		} else {
			p.Unknown(k)
		}
	}
	return names
}
