package edit

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Bind gives parameters values that override all others that the document binds (ssp 36). It
// changes the set that the outermost system binds last, if that is in a file, without prefix and
// mapping, and not used elsewhere; else it adds a new file with a binding after all others.
//
// Names are paths below the outermost system, "component.variable" or "system.connector". units
// defines the units of the values. If an existing set defines such a name as another unit, the
// value is written without a unit, that is, in the unit of the variable or connector (ssp 39).
//
// Bind also writes settings of a run (ssp.Algorithm, ssp.Param, ssp.StepSize) into the annotation of
// macrostep (ssp 46). With an algorithm, its other parameters are removed.
//
// Bind returns the changed files, the set first, for the caller to write. Their names are relative
// to Dir, with slashes. Everything else in them stays as it was, in UTF-8 and with the layout of
// elements. The package is not changed.
func Bind(p *ssp.Package, values []ssp.ParameterValue, units []unit.Definition, settings ...ssp.Asked) (changed []File, err error) {
	document := p.Document()
	if !strings.EqualFold(filepath.Ext(document), ".ssd") {
		return nil, fmt.Errorf("%s is not an .ssd and has no parameter sets and no annotation of macrostep", document)
	}
	w, doc := &writer{file: p.Root.File}, copyOf(p.Root.Tree)
	touched := len(settings) > 0
	if touched {
		w.settings(doc.Root(), settings)
	}
	if len(values) > 0 {
		set, fresh, err := changedSet(p, document, values, units)
		if err != nil {
			return nil, err
		}
		changed = append(changed, set)
		if fresh {
			touched = true
			bindings := child(xmltree.Child(doc.Root(), xmltree.SSD, "System"), xmltree.SSD, "ParameterBindings")
			w.set(xmltree.Insert(bindings, xmltree.SSD, "ParameterBinding"), "source", SourceURI(set.Name))
		}
	}
	if !touched {
		return changed, nil
	}
	data, err := w.bytes(doc)
	return append(changed, File{Name: document, Data: data}), err
}

// changedSet returns the set with the values, and whether it is new.
func changedSet(p *ssp.Package, document string, values []ssp.ParameterValue, units []unit.Definition) (_ File, fresh bool, err error) {
	set, file := lastSet(p)
	if set != nil {
		w, doc := &writer{file: set.File}, copyOf(set.Tree)
		w.put(doc.Root(), values, set.Units, units)
		data, err := w.bytes(doc)
		return File{Name: file, Data: data}, false, err
	}
	if file, err = freeName(p, document); err != nil {
		return File{}, true, err
	}
	w := &writer{file: file}
	doc, root := newDocument(xmltree.SSV, "ParameterSet", xmltree.SSC)
	w.parameterSet(root, &ssp.ParameterSet{Name: strings.TrimSuffix(path.Base(file), ".ssv")})
	w.put(root, values, nil, units)
	doc.Indent(2)
	data, err := w.bytes(doc)
	return File{Name: file, Data: data}, true, err
}

// copyOf returns a copy of the document of a root element that was read.
func copyOf(root *etree.Element) *etree.Document {
	doc := etree.NewDocument()
	for _, t := range slices.Clone(root.Parent().Copy().Child) {
		doc.AddChild(t)
	}
	return doc
}

// child returns a child, a new one if there is none.
func child(parent *etree.Element, uri, name string) *etree.Element {
	if el := xmltree.Child(parent, uri, name); el != nil {
		return el
	}
	return xmltree.Insert(parent, uri, name)
}

// put gives a set values, each in place of all of the same name, and defines their units there.
// known are the units that the set defines.
func (w *writer) put(root *etree.Element, values []ssp.ParameterValue, known, units []unit.Definition) {
	known = slices.Clone(known)
	list := child(root, xmltree.SSV, "Parameters")
	for _, v := range values {
		el := w.parameter(list, v.Name)
		if v.Unit != "" {
			u, defined := find(units, v.Unit), find(known, v.Unit)
			switch {
			case u == nil || u.Base == nil:
				w.fail(el, "the unit %q is not defined", v.Unit)
			case defined == nil:
				known = append(known, *u)
				w.unit(child(root, xmltree.SSV, "Units"), u, names{})
			case defined.Base == nil || *defined.Base != *u.Base:
				v.Unit = ""
			}
		}
		w.value(el, &v)
	}
}

// parameter returns the first parameter of a name, a new one if there is none, and removes others.
func (w *writer) parameter(list *etree.Element, name string) (el *etree.Element) {
	for _, k := range list.ChildElements() {
		if k.Tag != "Parameter" || xmltree.URI(k) != xmltree.SSV || xmltree.Value(k, "name") != name {
			continue
		}
		if el != nil {
			list.RemoveChild(k)
			continue
		}
		el = k
	}
	if el == nil {
		el = xmltree.Insert(list, xmltree.SSV, "Parameter")
		w.named(el, name, names{})
	}
	return el
}

// lastSet returns the set that the outermost system binds last, and its file, if its names are not
// changed by the binding and no other binding uses it.
func lastSet(p *ssp.Package) (*ssp.ParameterSet, string) {
	list := p.Root.System.Bindings
	if len(list) == 0 {
		return nil, ""
	}
	b := &list[len(list)-1]
	if b.Source == "" || b.Set == nil || b.Prefix != "" || b.Mapping != nil || b.SourceBase == "component" {
		return nil, ""
	}
	file, err := p.Root.Locate(b.Source)
	if err != nil || !filepath.IsLocal(file) {
		return nil, ""
	}
	uses := 0
	for e := range p.Root.System.All() {
		for _, b := range e.Base().Bindings {
			if other, err := p.Root.Locate(b.Source); err == nil && other == file {
				uses++
			}
		}
	}
	if uses != 1 {
		return nil, ""
	}
	return b.Set, filepath.ToSlash(file)
}

// freeName finds a name for a new set: in resources of a package, or beside a single document.
func freeName(p *ssp.Package, document string) (string, error) {
	base := "resources/parameters"
	switch {
	case document != ssp.DocumentName && p.Packed(): // a variant
		base = "resources/" + strings.TrimSuffix(document, filepath.Ext(document))
	case document != ssp.DocumentName:
		base = strings.TrimSuffix(document, filepath.Ext(document))
	}
	for n := 1; n < 1000; n++ {
		name := base + ".ssv"
		if n > 1 {
			name = fmt.Sprintf("%s%d.ssv", base, n)
		}
		if _, err := os.Lstat(filepath.Join(p.Dir, filepath.FromSlash(name))); os.IsNotExist(err) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: there are already 999 sets %s….ssv; remove some", p.Path, base)
}
