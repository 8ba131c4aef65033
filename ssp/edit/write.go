package edit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Encode returns the document as XML: an indented SSD with the elements in the order of the
// schemas, and parameter sets and mappings inline or as references, according to the bindings.
// Equal documents give equal bytes.
//
// Everything that was read and is not in the model is kept: geometry, notes, metadata, annotations,
// comments and unknown parts, even of elements that were moved or renamed, which are identified by
// their Place. Parts that were removed from the model are removed. Missing declarations of prefixes
// are added, and wrong namespaces corrected (ssp 6). The document is not changed. Sets and mappings
// in files are not included: see EncodeSet and EncodeMapping.
//
// An empty Version becomes 1.0, or 2.0 if necessary (ssp 48). The error lists everything that XML
// or the standard cannot represent: text with control characters, numbers that are not finite,
// empty names, units without base unit, arrays that were not in the document as read.
func Encode(d *ssp.Document) ([]byte, error) {
	w := newWriter(d.Tree, d.File, xmltree.SSD, "SystemStructureDescription")
	w.text(w.root, "version", cmp.Or(d.Version, leastVersion(d)), "")
	w.required(w.root, "name", d.Name)
	for _, key := range ssp.MetadataKeys {
		w.text(w.root, key, d.Metadata[key], "")
	}
	if d.System == nil {
		w.fail(w.root, "there is no System")
	} else {
		w.element(w.root, d.System, only(w.root, xmltree.SSD, "System"))
	}
	w.enumerations(w.root, xmltree.SSD, d.Enumerations)
	w.units(w.root, xmltree.SSD, d.Units)
	w.experiment(&d.Experiment)
	w.annotations(w.root, d.Annotations)
	return w.finish()
}

// EncodeSet is Encode for a parameter set, which becomes an SSV document.
func EncodeSet(s *ssp.ParameterSet) ([]byte, error) {
	w := newWriter(s.Tree, s.File, xmltree.SSV, "ParameterSet")
	w.set(w.root, s)
	return w.finish()
}

// EncodeMapping is Encode for a mapping, which becomes an SSM document.
func EncodeMapping(m *ssp.ParameterMapping) ([]byte, error) {
	w := newWriter(m.Tree, m.File, xmltree.SSM, "ParameterMapping")
	w.mapping(w.root, m)
	return w.finish()
}

// prefixesOf lists the namespaces that a new document declares, other than its own.
var prefixesOf = map[string][]string{xmltree.SSD: {xmltree.SSC, xmltree.SSV, xmltree.SSM}, xmltree.SSV: {xmltree.SSC},
	xmltree.SSM: {xmltree.SSC}}

// leastVersion returns the lowest version that a new document can have (ssp 5, 48).
func leastVersion(d *ssp.Document) string {
	if d.System == nil {
		return "1.0"
	}
	v2 := false
	kinds := []ssp.Kind{ssp.StructuralParameter, ssp.Constant, ssp.Local, ssp.AnyKind}
	for e := range d.System.All() {
		for _, c := range e.Base().Connectors {
			v2 = v2 || slices.Contains(kinds, c.Kind) || c.Type == ssp.Clock || c.Array
		}
		switch e := e.(type) {
		case *ssp.System:
			v2 = v2 || slices.ContainsFunc(e.Connections, func(c ssp.Connection) bool { return c.Indexed })
		case *ssp.Component:
			v2 = v2 || !e.HasSource || e.Implementation == "ScheduledExecution"
		}
	}
	if v2 {
		return "2.0"
	}
	return "1.0"
}

// writer changes a tree to agree with the model.
type writer struct {
	file  string
	doc   *etree.Document
	root  *etree.Element
	kept  map[string]*etree.Element // elements of the tree as read, by path
	used  map[*etree.Element]bool   // elements that belong to an item of the model
	fresh map[*etree.Element]bool   // new elements
	// reserved are the elements from which items were read. They are not used for other items.
	reserved map[*etree.Element]bool
	errs     []error
}

// newWriter starts with a copy of the tree as read, or with an empty root.
func newWriter(tree *etree.Element, file, uri, name string) *writer {
	w := &writer{file: file, doc: etree.NewDocument(), kept: make(map[string]*etree.Element),
		used: make(map[*etree.Element]bool), fresh: make(map[*etree.Element]bool), reserved: make(map[*etree.Element]bool)}
	if tree == nil {
		w.root = etree.NewElement(name)
		w.root.Space = xmltree.Prefixes[uri]
		w.root.CreateAttr("xmlns:"+w.root.Space, uri)
		for _, more := range prefixesOf[uri] {
			w.root.CreateAttr("xmlns:"+xmltree.Prefixes[more], more)
		}
		w.doc.SetRoot(w.root)
		return w
	}
	if parent := tree.Parent(); parent != nil && parent.Parent() == nil && parent.Tag == "" {
		// The root with the comments around it. (An inline set has the binding as parent.)
		for _, t := range slices.Clone(parent.Copy().Child) {
			declaration, _ := t.(*etree.ProcInst)
			if _, layout := t.(*etree.CharData); !layout && (declaration == nil || declaration.Target != "xml") {
				w.doc.AddChild(t)
			}
		}
		w.root = w.doc.Root()
	} else {
		w.root = tree.Copy()
		w.doc.SetRoot(w.root)
		xmltree.DeclareInherited(w.root, tree)
	}
	xmltree.Repair(w.root)
	w.index(xmltree.Of(w.root))
	return w
}

// index records the path of each element, as findings name it.
func (w *writer) index(n *xmltree.Node) {
	w.kept[n.Path()] = n.El
	for _, k := range n.Kids {
		w.index(k)
	}
}

// finish orders and indents the tree, and returns the bytes.
func (w *writer) finish() ([]byte, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	xmltree.Arrange(w.root)
	out := etree.NewDocument()
	out.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	out.CreateText("\n")
	for _, t := range slices.Clone(w.doc.Child) {
		out.AddChild(t)
		out.CreateText("\n")
	}
	out.WriteSettings = etree.WriteSettings{CanonicalAttrVal: true, CanonicalText: true}
	return out.WriteToBytes()
}

// fail records an error at an element.
func (w *writer) fail(el *etree.Element, format string, args ...any) {
	var where []string
	for at := el; at != nil && at.Tag != ""; at = at.Parent() {
		part := at.Tag
		if name := at.SelectAttr("name"); name != nil {
			part += "[@name='" + name.Value + "']"
		}
		where = append(where, part)
	}
	slices.Reverse(where)
	file := w.file
	if file == "" {
		file = "the new document"
	}
	w.errs = append(w.errs, fmt.Errorf("%s: /%s: %s", file, strings.Join(where, "/"), fmt.Sprintf(format, args...)))
}

// find returns the element from which an item was read, nil if it is used already.
func (w *writer) find(at ssp.Place, uri, name string) *etree.Element {
	if at.File != w.file || at.Path == "" {
		return nil
	}
	el := w.kept[at.Path]
	if el == nil || w.used[el] || el.Tag != name || xmltree.URI(el) != uri {
		return nil
	}
	return el
}

// claim returns the element of an item in a list: the one from which it was read, else same, the
// one with the same key, else a new one.
func (w *writer) claim(list *etree.Element, at ssp.Place, uri, name string, same *etree.Element) *etree.Element {
	el := w.find(at, uri, name)
	if el == nil && same != nil && !w.used[same] && !w.reserved[same] && is(uri, name)(same) {
		el = same
	}
	if el == nil {
		el = w.create(list, uri, name)
	} else if el.Parent() != list {
		list.AddChild(el)
	}
	w.used[el] = true
	return el
}

// keyed returns the children of a list by an attribute, the first if several have the same value.
func keyed(list *etree.Element, key string) map[string]*etree.Element {
	out := make(map[string]*etree.Element)
	for _, k := range list.ChildElements() {
		if a := xmltree.Attr(k, key); a != nil && out[a.Value] == nil {
			out[a.Value] = k
		}
	}
	return out
}

// create appends a new element.
func (w *writer) create(parent *etree.Element, uri, name string) *etree.Element {
	el := etree.NewElement(name)
	el.Space = xmltree.Prefix(parent, uri)
	parent.AddChild(el)
	w.fresh[el] = true
	return el
}

// child returns the first child of this name, a new one if there is none.
func (w *writer) child(parent *etree.Element, uri, name string) *etree.Element {
	if el := only(parent, uri, name); el != nil {
		return el
	}
	return w.create(parent, uri, name)
}

// only returns the first child of this name, nil if there is none.
func only(parent *etree.Element, uri, name string) *etree.Element {
	for _, k := range parent.ChildElements() {
		if k.Tag == name && xmltree.URI(k) == uri {
			return k
		}
	}
	return nil
}

// items makes the elements of a list agree with n items of the model: one fills and returns the
// element of an item, mine selects the elements of items. It removes other such elements, and keeps
// comments before the element that they precede.
func (w *writer) items(list *etree.Element, n int, at func(i int) ssp.Place, one func(i int) *etree.Element,
	mine func(*etree.Element) bool) {
	for i := range n {
		if p := at(i); p.File == w.file && p.Path != "" {
			w.reserved[w.kept[p.Path]] = true
		}
	}
	made := make([]*etree.Element, n)
	for i := range made {
		made[i] = one(i)
	}
	var rest []*etree.Element
	for _, k := range list.ChildElements() {
		if mine(k) && !w.used[k] {
			list.RemoveChild(k)
		} else if mine(k) {
			rest = append(rest, k)
		}
	}
	if slices.Equal(rest, made) {
		return
	}
	// In the order of the items, each with what is before it.
	before := make(map[*etree.Element][]etree.Token)
	var pending, all []etree.Token
	for _, t := range list.Child {
		if el, ok := t.(*etree.Element); ok && mine(el) {
			before[el], pending = pending, nil
		} else {
			pending = append(pending, t)
		}
	}
	for _, el := range made {
		all = append(append(all, before[el]...), el)
	}
	xmltree.Refill(list, append(all, pending...))
}

// text sets an attribute. If the value is the default, it does not add it; if both are "", it
// removes it.
func (w *writer) text(el *etree.Element, key, value, absent string) {
	a := xmltree.Attr(el, key)
	if a == nil && value == absent {
		return
	}
	if a != nil && a.Value == value {
		return
	}
	if value == "" && absent == "" {
		xmltree.RemoveAttr(el, key)
		return
	}
	w.required(el, key, value)
}

// required sets an attribute, even if it is empty.
func (w *writer) required(el *etree.Element, key, value string) {
	if r, bad := xmltree.BadRune(value); bad {
		w.fail(el, "%s=%q: XML cannot hold the character %q", key, value, r)
		return
	}
	if a := xmltree.Attr(el, key); a != nil {
		a.Value = value
		return
	}
	el.CreateAttr(key, value)
}

// named sets the attribute name, and reports an empty one.
func (w *writer) named(el *etree.Element, name string) {
	if name == "" {
		w.fail(el, "the name is empty")
	}
	w.required(el, "name", name)
}

// number sets a Real attribute, unless its text has the same value.
func (w *writer) number(el *etree.Element, key string, value float64, absent *float64) {
	if a := xmltree.Attr(el, key); a != nil {
		if v, err := xmltree.ParseReal(a.Value); err == nil && v == value {
			return
		}
	} else if absent != nil && value == *absent {
		return
	}
	if math.IsInf(value, 0) || math.IsNaN(value) {
		w.fail(el, "%s: %v is not a finite number", key, value)
		return
	}
	w.required(el, key, strconv.FormatFloat(value, 'g', -1, 64))
}

// boolean sets an attribute with the default false.
func (w *writer) boolean(el *etree.Element, key string, value bool) {
	if a := xmltree.Attr(el, key); a != nil {
		if v, err := xmltree.ParseBoolean(a.Value); err == nil && v == value {
			return
		}
	} else if !value {
		return
	}
	w.required(el, key, strconv.FormatBool(value))
}

// element writes a system, component or reference.
func (w *writer) element(parent *etree.Element, e ssp.Element, same *etree.Element) *etree.Element {
	c := e.Base()
	kind := "System"
	switch e.(type) {
	case *ssp.Component:
		kind = "Component"
	case *ssp.DictionaryReference:
		kind = "SignalDictionaryReference"
	}
	el := w.claim(parent, c.Place, xmltree.SSD, kind, same)
	w.named(el, c.Name)
	w.text(el, "id", c.ID, "")
	w.text(el, "description", c.Description, "")
	switch e := e.(type) {
	case *ssp.Component:
		w.text(el, "type", cmp.Or(e.Type, ssp.MIMEFMU), ssp.MIMEFMU)
		if e.HasSource {
			w.required(el, "source", e.Source)
		} else {
			xmltree.RemoveAttr(el, "source")
		}
		w.text(el, "implementation", cmp.Or(e.Implementation, "any"), "any")
	case *ssp.DictionaryReference:
		w.required(el, "dictionary", e.Dictionary)
	}
	w.connectors(el, c.Connectors)
	w.bindings(el, c.Bindings)
	if s, ok := e.(*ssp.System); ok {
		w.content(el, s)
	}
	w.annotations(el, c.Annotations)
	return el
}

// list returns the element of a list, a new one if there is none and it is needed.
func (w *writer) list(parent *etree.Element, uri, name string, n int) *etree.Element {
	if n == 0 {
		return only(parent, uri, name)
	}
	return w.child(parent, uri, name)
}

func (w *writer) content(el *etree.Element, s *ssp.System) {
	if list := w.list(el, xmltree.SSD, "Elements", len(s.Elements)); list != nil {
		seen, byName := make(map[string]bool), keyed(list, "name")
		w.items(list, len(s.Elements), func(i int) ssp.Place { return s.Elements[i].Base().Place }, func(i int) *etree.Element {
			k := w.element(list, s.Elements[i], byName[s.Elements[i].Base().Name])
			if name := s.Elements[i].Base().Name; seen[name] {
				w.fail(k, "another element of this system is called %q too", name)
			} else {
				seen[name] = true
			}
			return k
		}, func(k *etree.Element) bool {
			return xmltree.URI(k) == xmltree.SSD && (k.Tag == "System" || k.Tag == "Component" || k.Tag == "SignalDictionaryReference")
		})
	}
	if list := w.list(el, xmltree.SSD, "Connections", len(s.Connections)); list != nil {
		// Connections without a Place are identified by their ends.
		ends := make(map[[4]string][]*etree.Element)
		for _, k := range list.ChildElements() {
			key := endsOf(k)
			ends[key] = append(ends[key], k)
		}
		w.items(list, len(s.Connections), func(i int) ssp.Place { return s.Connections[i].Place },
			func(i int) *etree.Element { return w.connection(list, &s.Connections[i], ends) },
			is(xmltree.SSD, "Connection"))
	}
	if list := w.list(el, xmltree.SSD, "SignalDictionaries", len(s.Dictionaries)); list != nil {
		w.items(list, len(s.Dictionaries), func(i int) ssp.Place { return s.Dictionaries[i].Place }, func(i int) *etree.Element {
			return w.dictionary(list, &s.Dictionaries[i])
		}, is(xmltree.SSD, "SignalDictionary"))
	}
}

// dictionary writes a signal dictionary as read.
func (w *writer) dictionary(list *etree.Element, d *ssp.Dictionary) *etree.Element {
	k := w.raw(list, d.Content, d.Place, xmltree.SSD, "SignalDictionary")
	w.named(k, d.Name)
	if d.Content == nil {
		w.fail(k, "new signal dictionaries are not supported")
	}
	return k
}

// nowhere is the place of items that are identified by their names.
func nowhere(int) ssp.Place { return ssp.Place{} }

func is(uri, name string) func(*etree.Element) bool {
	return func(k *etree.Element) bool { return k.Tag == name && xmltree.URI(k) == uri }
}

func endsOf(k *etree.Element) [4]string {
	return [4]string{xmltree.Value(k, "startElement"), xmltree.Value(k, "startConnector"),
		xmltree.Value(k, "endElement"), xmltree.Value(k, "endConnector")}
}

func (w *writer) connection(list *etree.Element, c *ssp.Connection, ends map[[4]string][]*etree.Element) *etree.Element {
	var same *etree.Element
	for _, k := range ends[[4]string{c.StartElement, c.StartConnector, c.EndElement, c.EndConnector}] {
		if !w.used[k] {
			same = k
			break
		}
	}
	el := w.claim(list, c.Place, xmltree.SSD, "Connection", same)
	w.text(el, "startElement", c.StartElement, "")
	w.required(el, "startConnector", c.StartConnector)
	w.text(el, "endElement", c.EndElement, "")
	w.required(el, "endConnector", c.EndConnector)
	w.boolean(el, "suppressUnitConversion", c.SuppressUnitConversion)
	if indexed := xmltree.Attr(el, "startIndices") != nil || xmltree.Attr(el, "endIndices") != nil; c.Indexed && !indexed {
		w.fail(el, "new connections of array entries are not supported")
	} else if !c.Indexed {
		xmltree.RemoveAttr(el, "startIndices")
		xmltree.RemoveAttr(el, "endIndices")
	}
	w.transformation(el, c.Transformation)
	w.annotations(el, c.Annotations)
	return el
}

func (w *writer) connectors(el *etree.Element, list []ssp.Connector) {
	box := w.list(el, xmltree.SSD, "Connectors", len(list))
	if box == nil {
		return
	}
	seen, byName := make(map[string]bool), keyed(box, "name")
	w.items(box, len(list), func(i int) ssp.Place { return list[i].Place }, func(i int) *etree.Element {
		c := &list[i]
		k := w.claim(box, c.Place, xmltree.SSD, "Connector", byName[c.Name])
		if seen[c.Name] {
			w.fail(k, "another connector of this element is called %q too", c.Name)
		}
		seen[c.Name] = true
		w.named(k, c.Name)
		w.text(k, "description", c.Description, "")
		w.required(k, "kind", string(c.Kind))
		w.connectorType(k, c)
		return k
	}, is(xmltree.SSD, "Connector"))
}

// connectorType writes the type. It keeps a type of version 2.0 that means the same in the model.
func (w *writer) connectorType(el *etree.Element, c *ssp.Connector) {
	if c.Array && only(el, xmltree.SSC, "Dimension") == nil {
		w.fail(el, "new arrays are not supported")
	}
	is, t := typeIn(el, xmltree.SSC)
	if is != nil && t != c.Type {
		el.RemoveChild(is)
		is = nil
	}
	if c.Type == ssp.Unspecified {
		return
	}
	if is == nil {
		is = w.create(el, xmltree.SSC, c.Type.String())
	}
	switch c.Type {
	case ssp.Real:
		w.text(is, "unit", c.Unit, "")
	case ssp.Enumeration:
		if c.Enumeration == "" {
			w.fail(el, "the enumeration has no name; give the name of one that the document defines")
		}
		w.required(is, "name", c.Enumeration)
	}
}

// typeIn returns the child that names a type, nil if there is none.
func typeIn(el *etree.Element, uri string) (is *etree.Element, t ssp.ValueType) {
	for _, k := range el.ChildElements() {
		if named, _, ok := ssp.TypeByName(k.Tag); ok && xmltree.URI(k) == uri {
			is, t = k, named
		}
	}
	return is, t
}

// remove removes some children.
func remove(el *etree.Element, which func(*etree.Element) bool) {
	for _, k := range el.ChildElements() {
		if which(k) {
			el.RemoveChild(k)
		}
	}
}

// transformation writes the transformation of a connection or mapping entry, unless the present one
// means the same.
func (w *writer) transformation(el *etree.Element, t *ssp.Transformation) {
	if ssp.ReadTransformation(el).Equal(t) {
		return
	}
	remove(el, func(k *etree.Element) bool {
		return strings.HasSuffix(k.Tag, "Transformation") && xmltree.URI(k) == xmltree.SSC
	})
	if t == nil {
		return
	}
	zero, one := 0.0, 1.0
	if int(t.Kind) >= len(xmltree.Transformations) {
		w.fail(el, "there is no transformation of kind %d", t.Kind)
		return
	}
	k := w.create(el, xmltree.SSC, xmltree.Transformations[t.Kind])
	entry := func(source, target string) {
		e := w.create(k, xmltree.SSC, "MapEntry")
		w.required(e, "source", source)
		w.required(e, "target", target)
	}
	switch t.Kind {
	case ssp.Linear:
		w.number(k, "factor", t.Factor, &one)
		w.number(k, "offset", t.Offset, &zero)
		return
	case ssp.EnumerationMapping:
		for _, source := range slices.Sorted(maps.Keys(t.Names)) {
			entry(source, t.Names[source])
		}
	default:
		for _, source := range slices.Sorted(maps.Keys(t.Numbers)) {
			from, to := strconv.Itoa(int(source)), strconv.Itoa(int(t.Numbers[source]))
			if t.Kind == ssp.BooleanMapping {
				from, to = strconv.FormatBool(source != 0), strconv.FormatBool(t.Numbers[source] != 0)
			}
			entry(from, to)
		}
	}
	if len(t.Names)+len(t.Numbers) == 0 {
		w.fail(el, "the mapping has no entry")
	}
}

func (w *writer) enumerations(parent *etree.Element, uri string, list []ssp.EnumerationType) {
	box := w.list(parent, uri, "Enumerations", len(list))
	if box == nil {
		return
	}
	byName := keyed(box, "name")
	w.items(box, len(list), nowhere, func(i int) *etree.Element {
		e := &list[i]
		el := w.claim(box, ssp.Place{}, xmltree.SSC, "Enumeration", byName[e.Name])
		w.named(el, e.Name)
		if len(e.Items) == 0 && w.fresh[el] {
			w.fail(el, "the enumeration has no item")
		}
		if maps.Equal(ssp.ReadItems(el), e.Items) {
			return el
		}
		remove(el, is(xmltree.SSC, "Item"))
		names := slices.SortedFunc(maps.Keys(e.Items), func(a, b string) int {
			return cmp.Or(cmp.Compare(e.Items[a], e.Items[b]), cmp.Compare(a, b))
		})
		for _, name := range names {
			k := w.create(el, xmltree.SSC, "Item")
			w.required(k, "name", name)
			w.required(k, "value", strconv.Itoa(int(e.Items[name])))
		}
		return el
	}, is(xmltree.SSC, "Enumeration"))
}

func (w *writer) units(parent *etree.Element, uri string, list []unit.Definition) {
	box := w.list(parent, uri, "Units", len(list))
	if box == nil {
		return
	}
	byName := keyed(box, "name")
	w.items(box, len(list), nowhere, func(i int) *etree.Element {
		u := &list[i]
		el := w.claim(box, ssp.Place{}, xmltree.SSC, "Unit", byName[u.Name])
		w.named(el, u.Name)
		if u.Base == nil {
			if w.fresh[el] {
				w.fail(el, "the unit %q has no base unit, which the standard requires", u.Name)
			}
			return el
		}
		b := w.child(el, xmltree.SSC, "BaseUnit")
		for key, n := range ssp.Exponents(u.Base) {
			if a := xmltree.Attr(b, key); a != nil {
				if v, err := xmltree.ParseInteger(a.Value); err == nil && int(v) == *n {
					continue
				}
			} else if *n == 0 {
				continue
			}
			w.required(b, key, strconv.Itoa(*n))
		}
		zero, one := 0.0, 1.0
		w.number(b, "factor", u.Base.Factor, &one)
		w.number(b, "offset", u.Base.Offset, &zero)
		return el
	}, is(xmltree.SSC, "Unit"))
}

func (w *writer) experiment(e *ssp.Experiment) {
	el := only(w.root, xmltree.SSD, "DefaultExperiment")
	if el == nil {
		if e.Start == nil && e.Stop == nil && len(e.Annotations) == 0 {
			return
		}
		el = w.create(w.root, xmltree.SSD, "DefaultExperiment")
	}
	for _, t := range []struct {
		key   string
		value *float64
	}{{"startTime", e.Start}, {"stopTime", e.Stop}} {
		if t.value == nil {
			xmltree.RemoveAttr(el, t.key)
		} else {
			w.number(el, t.key, *t.value, nil)
		}
	}
	w.annotations(el, e.Annotations)
}

// annotations writes annotations as read. It does not change those of parts that are not in the
// model.
func (w *writer) annotations(parent *etree.Element, list []ssp.Annotation) {
	box := w.list(parent, xmltree.SSD, "Annotations", len(list))
	if box == nil {
		return
	}
	w.items(box, len(list), func(i int) ssp.Place { return list[i].Place }, func(i int) *etree.Element {
		a := &list[i]
		el := w.raw(box, a.Content, a.Place, xmltree.SSC, "Annotation")
		if strings.TrimSpace(xmltree.Value(el, "type")) != a.Type {
			w.required(el, "type", a.Type)
		}
		return el
	}, is(xmltree.SSC, "Annotation"))
}

// raw replaces an element by a copy of the one that was read.
func (w *writer) raw(box, content *etree.Element, at ssp.Place, uri, name string) *etree.Element {
	was := w.find(at, uri, name)
	if content == nil {
		if was == nil {
			was = w.create(box, uri, name)
		}
		w.used[was] = true
		return was
	}
	el := content.Copy()
	if was != nil && was.Parent() == box {
		i := was.Index()
		box.RemoveChildAt(i)
		box.InsertChildAt(i, el)
	} else {
		box.AddChild(el)
	}
	xmltree.DeclareInherited(el, content)
	if was == nil { // remove declarations that are valid around it
		el.Attr = slices.DeleteFunc(el.Attr, func(a etree.Attr) bool {
			p, ok := xmltree.Declaration(a)
			return ok && xmltree.Resolve(box, p) == a.Value
		})
	}
	xmltree.Repair(el)
	if xmltree.URI(el) != uri || el.Tag != name {
		el.Tag, el.Space = name, xmltree.Prefix(box, uri)
	}
	w.used[el] = true
	return el
}

func (w *writer) bindings(el *etree.Element, list []ssp.Binding) {
	box := w.list(el, xmltree.SSD, "ParameterBindings", len(list))
	if box == nil {
		return
	}
	w.items(box, len(list), func(i int) ssp.Place { return list[i].Place }, func(i int) *etree.Element {
		b := &list[i]
		k := w.claim(box, b.Place, xmltree.SSD, "ParameterBinding", nil)
		w.text(k, "type", cmp.Or(b.Type, ssp.MIMESet), ssp.MIMESet)
		w.text(k, "source", b.Source, "")
		w.text(k, "sourceBase", cmp.Or(b.SourceBase, "SSD"), "SSD")
		w.text(k, "prefix", b.Prefix, "")
		values := only(k, xmltree.SSD, "ParameterValues")
		switch {
		case b.Source != "":
			if values != nil && len(values.ChildElements()) > 0 {
				k.RemoveChild(values)
			}
		case b.Set == nil:
			w.fail(k, "the binding has neither a source nor a set")
		default:
			if values == nil {
				values = w.create(k, xmltree.SSD, "ParameterValues")
			}
			w.set(w.child(values, xmltree.SSV, "ParameterSet"), b.Set)
		}
		w.bindingMapping(k, b)
		return k
	}, is(xmltree.SSD, "ParameterBinding"))
}

// bindingMapping writes a mapping into its binding, or keeps the reference to its file.
func (w *writer) bindingMapping(k *etree.Element, b *ssp.Binding) {
	el := only(k, xmltree.SSD, "ParameterMapping")
	if b.Mapping == nil {
		if el != nil {
			k.RemoveChild(el)
		}
		return
	}
	if el != nil && xmltree.Value(el, "source") != "" && b.Mapping.Tree != nil && b.Mapping.File != w.file {
		return
	}
	if el == nil {
		el = w.create(k, xmltree.SSD, "ParameterMapping")
	}
	xmltree.RemoveAttr(el, "source")
	w.mapping(w.child(el, xmltree.SSM, "ParameterMapping"), b.Mapping)
}

// set writes a parameter set into its element.
func (w *writer) set(el *etree.Element, s *ssp.ParameterSet) {
	v2 := false
	for i := range s.Parameters {
		v2 = v2 || s.Parameters[i].Array
	}
	version := "1.0"
	if v2 {
		version = "2.0"
	}
	w.text(el, "version", cmp.Or(s.Version, version), "")
	if s.Tree == nil || s.Name != "" {
		w.named(el, s.Name)
	}
	box := w.child(el, xmltree.SSV, "Parameters")
	seen, byName := make(map[string]bool), keyed(box, "name")
	w.items(box, len(s.Parameters), func(i int) ssp.Place { return s.Parameters[i].Place }, func(i int) *etree.Element {
		v := &s.Parameters[i]
		k := w.claim(box, v.Place, xmltree.SSV, "Parameter", byName[v.Name])
		if seen[v.Name] && v.Place == (ssp.Place{}) {
			w.fail(k, "the parameter %q occurs twice in this set", v.Name)
		}
		seen[v.Name] = true
		w.named(k, v.Name)
		w.value(k, v)
		return k
	}, is(xmltree.SSV, "Parameter"))
	w.enumerations(el, xmltree.SSV, s.Enumerations)
	w.units(el, xmltree.SSV, s.Units)
}

// value writes the value of a parameter, unless the present text means the same.
func (w *writer) value(el *etree.Element, v *ssp.ParameterValue) {
	is, t := typeIn(el, xmltree.SSV)
	if is != nil {
		was, sound := ssp.ReadValue(is)
		if was.Value == v.Value && (was.Array || only(el, xmltree.SSC, "Dimension") != nil) == v.Array && sound {
			w.text(is, "unit", v.Unit, "")
			w.text(is, "name", v.Enumeration, "")
			return
		}
		if t != v.Value.Type || v.Array {
			el.RemoveChild(is)
			is = nil
		}
	}
	if v.Array {
		w.fail(el, "new arrays are not supported")
		return
	}
	if t := v.Value.Type; t == ssp.Unspecified || t >= ssp.Clock {
		w.fail(el, "the parameter %q has no value, or one of a type that a set cannot contain", v.Name)
		return
	}
	if is == nil {
		is = w.create(el, xmltree.SSV, v.Value.Type.String())
	}
	switch v.Value.Type {
	case ssp.Real:
		w.number(is, "value", v.Value.Real, nil)
	case ssp.Enumeration:
		if v.Value.Text == "" {
			w.fail(el, "the parameter %q is an enumeration item given by number; a set contains item names", v.Name)
		}
		w.required(is, "value", v.Value.Text)
	default:
		w.required(is, "value", v.Value.String())
	}
	w.text(is, "unit", v.Unit, "")
	w.text(is, "name", v.Enumeration, "")
}

// mapping writes a parameter mapping into its element.
func (w *writer) mapping(el *etree.Element, m *ssp.ParameterMapping) {
	w.text(el, "version", cmp.Or(m.Version, "1.0"), "")
	byTarget := keyed(el, "target")
	w.items(el, len(m.Entries), func(i int) ssp.Place { return m.Entries[i].Place }, func(i int) *etree.Element {
		e := &m.Entries[i]
		k := w.claim(el, e.Place, xmltree.SSM, "MappingEntry", byTarget[e.Target])
		w.required(k, "source", e.Source)
		w.required(k, "target", e.Target)
		w.boolean(k, "suppressUnitConversion", e.SuppressUnitConversion)
		w.transformation(k, e.Transformation)
		return k
	}, is(xmltree.SSM, "MappingEntry"))
}
