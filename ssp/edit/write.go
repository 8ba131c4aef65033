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

// Encode returns a new document as XML: an indented SSD with the elements in the order of the
// schemas, and parameter sets and mappings inline or as references, according to the bindings.
// Equal documents give equal bytes.
//
// An empty Version becomes 1.0, or 2.0 if necessary (ssp 48). The error lists everything that
// cannot be written: documents and annotations that were read from a file, signal dictionaries,
// arrays, and what XML or the standard cannot represent, such as text with control characters,
// numbers that are not finite, empty names and units without base unit.
func Encode(d *ssp.Document) ([]byte, error) {
	doc, root := newDocument(xmltree.SSD, "SystemStructureDescription", xmltree.SSC, xmltree.SSV, xmltree.SSM)
	w := &writer{file: "the new document"}
	if d.Tree != nil {
		return nil, fmt.Errorf("%s was read from a file; only new documents can be encoded", d.File)
	}
	w.set(root, "version", cmp.Or(d.Version, leastVersion(d)))
	w.set(root, "name", d.Name)
	for _, key := range ssp.MetadataKeys {
		w.text(root, key, d.Metadata[key], "")
	}
	if d.System == nil {
		w.fail(root, "there is no System")
	} else {
		w.element(root, d.System, names{})
	}
	w.types(root, d.Enumerations, d.Units)
	w.experiment(root, &d.Experiment)
	w.annotations(root, d.Annotations)
	doc.Indent(2)
	return w.bytes(doc)
}

// leastVersion returns the lowest version that a document can have (ssp 5, 48).
func leastVersion(d *ssp.Document) string {
	if d.System == nil {
		return "1.0"
	}
	v2 := func(c ssp.Connector) bool {
		return c.Type == ssp.Clock || slices.Contains([]ssp.Kind{ssp.StructuralParameter, ssp.Constant, ssp.Local, ssp.AnyKind}, c.Kind)
	}
	for _, e := range d.Enumerations {
		for _, n := range e.Items {
			if int64(int32(n)) != n { // 2.0.1 has items of 64 bits
				return "2.0"
			}
		}
	}
	for e := range d.System.All() {
		c, ok := e.(*ssp.Component)
		if ok && (!c.HasSource || c.Implementation == "ScheduledExecution") || slices.ContainsFunc(e.Base().Connectors, v2) {
			return "2.0"
		}
	}
	return "1.0"
}

// newDocument returns a document and its root, which declares its namespace and others.
func newDocument(uri, name string, others ...string) (*etree.Document, *etree.Element) {
	root := etree.NewElement(name)
	root.Space = xmltree.Prefixes[uri]
	for _, uri := range append([]string{uri}, others...) {
		root.CreateAttr("xmlns:"+xmltree.Prefixes[uri], uri)
	}
	return etree.NewDocumentWithRoot(root), root
}

// writer adds parts of the model to XML and collects what cannot be written.
type writer struct {
	file string // in errors
	errs []error
}

// bytes returns a document in UTF-8.
func (w *writer) bytes(doc *etree.Document) ([]byte, error) {
	if err := errors.Join(w.errs...); err != nil {
		return nil, err
	}
	const declaration = `version="1.0" encoding="UTF-8"`
	if p, ok := doc.Child[0].(*etree.ProcInst); ok && p.Target == "xml" {
		p.Inst = declaration
	} else {
		doc.InsertChildAt(0, etree.NewText("\n"))
		doc.InsertChildAt(0, etree.NewProcInst("xml", declaration))
	}
	doc.WriteSettings = etree.WriteSettings{CanonicalAttrVal: true, CanonicalText: true}
	return doc.WriteToBytes()
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
	w.errs = append(w.errs, fmt.Errorf("%s: /%s: %s", w.file, strings.Join(where, "/"), fmt.Sprintf(format, args...)))
}

// set sets an attribute, even if it is empty.
func (w *writer) set(el *etree.Element, key, value string) {
	if r, bad := xmltree.BadRune(value); bad {
		w.fail(el, "%s=%q: XML cannot hold the character %q", key, value, r)
	} else if a := xmltree.Attr(el, key); a != nil {
		a.Value = value
	} else {
		el.CreateAttr(key, value)
	}
}

// text sets an attribute; it removes one that is empty or has the default.
func (w *writer) text(el *etree.Element, key, value, absent string) {
	if value == "" || value == absent {
		xmltree.RemoveAttr(el, key)
	} else {
		w.set(el, key, value)
	}
}

// number sets a Real attribute, unless its text has the same value.
func (w *writer) number(el *etree.Element, key string, value float64) {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		w.fail(el, "%s: %v is not a finite number", key, value)
	} else if was, err := xmltree.ParseReal(xmltree.Value(el, key)); err != nil || was != value {
		w.set(el, key, strconv.FormatFloat(value, 'g', -1, 64))
	}
}

// linear sets a factor and an offset; the defaults are 1 and 0.
func (w *writer) linear(el *etree.Element, factor, offset float64) {
	if factor != 1 {
		w.number(el, "factor", factor)
	}
	if offset != 0 {
		w.number(el, "offset", offset)
	}
}

// suppress sets the attribute that excludes a signal from the conversion of units.
func (w *writer) suppress(el *etree.Element, is bool) {
	if is {
		w.set(el, "suppressUnitConversion", "true")
	}
}

// names are the names of a list, which are unique.
type names map[string]bool

// named sets the name of an item.
func (w *writer) named(el *etree.Element, name string, others names) {
	w.set(el, "name", name)
	if name == "" {
		w.fail(el, "the name is empty")
	} else if others[name] {
		w.fail(el, "the name %q occurs twice in this list", name)
	}
	others[name] = true
}

// list adds a list with its items, unless there are none.
func list[T any](parent *etree.Element, uri, name string, items []T, add func(list *etree.Element, item *T, others names)) {
	if len(items) == 0 {
		return
	}
	box, others := xmltree.Insert(parent, uri, name), names{}
	for i := range items {
		add(box, &items[i], others)
	}
}

// element writes a system or component.
func (w *writer) element(parent *etree.Element, e ssp.Element, others names) {
	kind := "System"
	if _, ok := e.(*ssp.Component); ok {
		kind = "Component"
	}
	c, el := e.Base(), xmltree.Insert(parent, xmltree.SSD, kind)
	w.named(el, c.Name, others)
	w.text(el, "id", c.ID, "")
	w.text(el, "description", c.Description, "")
	list(el, xmltree.SSD, "Connectors", c.Connectors, w.connector)
	list(el, xmltree.SSD, "ParameterBindings", c.Bindings, w.binding)
	switch e := e.(type) {
	case *ssp.Component:
		w.text(el, "type", e.Type, ssp.MIMEFMU)
		if e.HasSource {
			w.set(el, "source", e.Source)
		}
		w.text(el, "implementation", e.Implementation, "any")
	case *ssp.System:
		list(el, xmltree.SSD, "Elements", e.Elements, func(box *etree.Element, e *ssp.Element, others names) { w.element(box, *e, others) })
		list(el, xmltree.SSD, "Connections", e.Connections, w.connection)
		if len(e.Dictionaries) > 0 {
			w.fail(el, "signal dictionaries cannot be written")
		}
	default:
		w.fail(el, "elements of type %T cannot be written", e)
	}
	w.annotations(el, c.Annotations)
}

func (w *writer) connector(box *etree.Element, c *ssp.Connector, others names) {
	el := xmltree.Insert(box, xmltree.SSD, "Connector")
	w.named(el, c.Name, others)
	w.text(el, "description", c.Description, "")
	w.set(el, "kind", string(c.Kind))
	if c.Array {
		w.fail(el, "arrays cannot be written")
	}
	if c.Type == ssp.Unspecified {
		return
	}
	is := xmltree.Insert(el, xmltree.SSC, c.Type.String())
	switch c.Type {
	case ssp.Real:
		w.text(is, "unit", c.Unit, "")
	case ssp.Enumeration:
		if c.Enumeration == "" {
			w.fail(el, "the enumeration has no name; give the name of one that the document defines")
		}
		w.set(is, "name", c.Enumeration)
	}
}

func (w *writer) connection(box *etree.Element, c *ssp.Connection, _ names) {
	el := xmltree.Insert(box, xmltree.SSD, "Connection")
	w.text(el, "startElement", c.StartElement, "")
	w.set(el, "startConnector", c.StartConnector)
	w.text(el, "endElement", c.EndElement, "")
	w.set(el, "endConnector", c.EndConnector)
	w.suppress(el, c.SuppressUnitConversion)
	if c.StartIndices != nil || c.EndIndices != nil {
		w.fail(el, "connections of array entries cannot be written")
	}
	w.transformation(el, c.Transformation)
	w.annotations(el, c.Annotations)
}

// transformation writes the transformation of a connection or mapping entry; nil = none.
func (w *writer) transformation(el *etree.Element, t *ssp.Transformation) {
	if t == nil {
		return
	}
	if int(t.Kind) >= len(xmltree.Transformations) {
		w.fail(el, "there is no transformation of kind %d", t.Kind)
		return
	}
	k := xmltree.Insert(el, xmltree.SSC, xmltree.Transformations[t.Kind])
	if t.Kind == ssp.Linear {
		w.linear(k, t.Factor, t.Offset)
		return
	}
	entry := func(source, target string) {
		e := xmltree.Insert(k, xmltree.SSC, "MapEntry")
		w.set(e, "source", source)
		w.set(e, "target", target)
	}
	for _, source := range slices.Sorted(maps.Keys(t.Names)) {
		entry(source, t.Names[source])
	}
	for _, source := range slices.Sorted(maps.Keys(t.Numbers)) {
		if target := t.Numbers[source]; t.Kind == ssp.BooleanMapping {
			entry(strconv.FormatBool(source != 0), strconv.FormatBool(target != 0))
		} else {
			entry(strconv.Itoa(int(source)), strconv.Itoa(int(target)))
		}
	}
	if len(k.Child) == 0 {
		w.fail(el, "the mapping has no entry")
	}
}

// types writes the enumerations and units of a document or parameter set.
func (w *writer) types(root *etree.Element, enumerations []ssp.EnumerationType, units []unit.Definition) {
	uri := xmltree.URI(root)
	list(root, uri, "Enumerations", enumerations, func(box *etree.Element, e *ssp.EnumerationType, others names) {
		el := xmltree.Insert(box, xmltree.SSC, "Enumeration")
		w.named(el, e.Name, others)
		if len(e.Items) == 0 {
			w.fail(el, "the enumeration has no item")
		}
		for _, name := range slices.SortedFunc(maps.Keys(e.Items), func(a, b string) int {
			return cmp.Or(cmp.Compare(e.Items[a], e.Items[b]), cmp.Compare(a, b))
		}) {
			k := xmltree.Insert(el, xmltree.SSC, "Item")
			w.set(k, "name", name)
			w.set(k, "value", strconv.FormatInt(e.Items[name], 10))
		}
	})
	list(root, uri, "Units", units, w.unit)
}

func (w *writer) unit(box *etree.Element, u *unit.Definition, others names) {
	el := xmltree.Insert(box, xmltree.SSC, "Unit")
	w.named(el, u.Name, others)
	if u.Base == nil {
		w.fail(el, "the unit %q has no base unit, which the standard requires", u.Name)
		return
	}
	b := xmltree.Insert(el, xmltree.SSC, "BaseUnit")
	for key, n := range ssp.Exponents(u.Base) {
		if *n != 0 {
			w.set(b, key, strconv.Itoa(*n))
		}
	}
	w.linear(b, u.Base.Factor, u.Base.Offset)
}

func (w *writer) experiment(root *etree.Element, e *ssp.Experiment) {
	if e.Start == nil && e.Stop == nil && len(e.Annotations) == 0 {
		return
	}
	el := xmltree.Insert(root, xmltree.SSD, "DefaultExperiment")
	if e.Start != nil {
		w.number(el, "startTime", *e.Start)
	}
	if e.Stop != nil {
		w.number(el, "stopTime", *e.Stop)
	}
	w.annotations(el, e.Annotations)
}

func (w *writer) annotations(el *etree.Element, annotations []ssp.Annotation) {
	list(el, xmltree.SSD, "Annotations", annotations, func(box *etree.Element, a *ssp.Annotation, _ names) {
		el := xmltree.Insert(box, xmltree.SSC, "Annotation")
		w.set(el, "type", a.Type)
		if a.Content == nil || a.Content.Parent() != nil {
			w.fail(el, "the annotation is not one of NewAnnotation")
			return
		}
		for _, k := range a.Content.ChildElements() {
			el.AddChild(k.Copy())
		}
	})
}

func (w *writer) binding(box *etree.Element, b *ssp.Binding, _ names) {
	el := xmltree.Insert(box, xmltree.SSD, "ParameterBinding")
	w.text(el, "type", b.Type, ssp.MIMESet)
	w.text(el, "source", b.Source, "")
	w.text(el, "sourceBase", b.SourceBase, "SSD")
	w.text(el, "prefix", b.Prefix, "")
	if b.Source == "" && b.Set == nil {
		w.fail(el, "the binding has neither a source nor a set")
	} else if b.Source == "" {
		w.parameterSet(xmltree.Insert(xmltree.Insert(el, xmltree.SSD, "ParameterValues"), xmltree.SSV, "ParameterSet"), b.Set)
	}
	if m := b.Mapping; m != nil {
		el := xmltree.Insert(xmltree.Insert(el, xmltree.SSD, "ParameterMapping"), xmltree.SSM, "ParameterMapping")
		w.set(el, "version", cmp.Or(m.Version, "1.0"))
		for _, e := range m.Entries {
			k := xmltree.Insert(el, xmltree.SSM, "MappingEntry")
			w.set(k, "source", e.Source)
			w.set(k, "target", e.Target)
			w.suppress(k, e.SuppressUnitConversion)
			w.transformation(k, e.Transformation)
		}
	}
}

func (w *writer) parameterSet(el *etree.Element, s *ssp.ParameterSet) {
	w.set(el, "version", cmp.Or(s.Version, "1.0"))
	w.named(el, s.Name, names{})
	box, others := xmltree.Insert(el, xmltree.SSV, "Parameters"), names{}
	for i := range s.Parameters {
		k := xmltree.Insert(box, xmltree.SSV, "Parameter")
		w.named(k, s.Parameters[i].Name, others)
		w.value(k, &s.Parameters[i])
	}
	w.types(el, s.Enumerations, s.Units)
}

// value writes the value of a parameter in place of any other.
func (w *writer) value(el *etree.Element, v *ssp.ParameterValue) {
	switch t := v.Value.Type; {
	case v.Array:
		w.fail(el, "arrays cannot be written")
		return
	case t == ssp.Unspecified || t >= ssp.Clock:
		w.fail(el, "the parameter %q has no value, or one of a type that a set cannot contain", v.Name)
		return
	case t == ssp.Enumeration && v.Value.Text == "":
		w.fail(el, "the parameter %q is an enumeration item given by number; a set contains item names", v.Name)
	}
	is := valueOf(el, v.Value.Type)
	if n := v.Value.Int; v.Value.Type == ssp.Integer && int64(int32(n)) != n {
		is.Tag = "Int64"
		if set := el.Parent().Parent(); strings.HasPrefix(xmltree.Value(set, "version"), "1") {
			w.set(set, "version", "2.0")
		}
	}
	if v.Value.Type == ssp.Real && !math.IsInf(v.Value.Real, 0) {
		w.number(is, "value", v.Value.Real)
	} else {
		w.set(is, "value", v.Value.String())
	}
	w.text(is, "unit", v.Unit, "")
	w.text(is, "name", v.Enumeration, "")
}

// valueOf returns the element with the value of a parameter. It becomes a new one unless it has the
// type and no array.
func valueOf(el *etree.Element, t ssp.ValueType) *etree.Element {
	for _, k := range el.ChildElements() {
		is, _, ok := ssp.TypeByName(k.Tag)
		switch uri := xmltree.URI(k); {
		case k.Tag == "Dimension" && xmltree.Standard(uri):
			el.RemoveChild(k)
		case ok && uri == xmltree.SSV:
			if is != t || len(k.ChildElements()) > 0 {
				k.Tag, k.Child = t.String(), nil
				k.Attr = slices.DeleteFunc(k.Attr, func(a etree.Attr) bool { _, ok := xmltree.Declares(a); return !ok })
			}
			return k
		}
	}
	return xmltree.Insert(el, xmltree.SSV, t.String())
}
