package ssp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// MIME types (ssp 12, 33).
const (
	mimeFMU        = "application/x-fmu-sharedlibrary"
	mimeDefinition = "application/x-ssp-definition"
	mimePackage    = "application/x-ssp-package"
	mimeSet        = "application/x-ssp-parameter-set"
	mimeMapping    = "application/x-ssp-parameter-mapping"
	mimeDictionary = "application/x-ssp-signal-dictionary"
)

// opener reads a file that a document refers to and gives the name to show. The
// file is found from the folder of the document, or inside a component (ssp 33); outside
// tells that it lies in neither.
type opener func(uri string, inside *Component) (data []byte, file string, outside bool, err error)

// parseDocument reads an SSD from memory. The name is shown in findings; open
// reads the parameter files that the document refers to. It returns nil if the
// list then holds an error of this document.
func parseDocument(data []byte, file string, open opener, l *diag.List) *Document {
	own := &diag.List{Strict: l.Strict}
	r := &reader{parser: parser{l: own, file: file}, open: open}
	var d *Document
	if root := r.tree(data); root != nil {
		d = r.document(root)
	}
	l.Append(own)
	if own.Err() != nil {
		return nil
	}
	return d
}

// reader turns an SSD into the model.
type reader struct {
	parser
	open   opener
	of     *Component      // that is being read; nil: a system or a reference
	inline []*ParameterSet // whose units may be those of the document
	files  []*ParameterSet // whose units must be their own, but are those of the document where they are not
	signal []*SignalDictionary
}

// version checks the version attribute of a root element (ssp 5).
func (p *parser) version(n *node) string {
	v, ok := n.attr("version")
	p.v2 = v == "2" || strings.HasPrefix(v, "2.")
	switch {
	case !ok:
		p.need(n, "version")
	case v == "1", v == "2":
		p.add(ruleTolerated, n, "version %q should be %q", v, v+".0")
		v += ".0" // as which it is written
	case !p.v2 && !strings.HasPrefix(v, "1."):
		p.add(ruleSchema, n, "version %q is not known; versions 1 and 2 are read", v)
	}
	return v
}

// since2 reports a feature of version 2.0 in an older file (SD3).
func (p *parser) since2(n *node, what string) {
	if !p.v2 && p.once("version "+what) {
		p.add(ruleVersion, n, "%s exists since version 2.0 only", what)
	}
}

func (r *reader) document(n *node) *Document {
	if !n.is("SystemStructureDescription", nsSSD) {
		r.add(ruleSchema, n, "the root element is %q of namespace %q, not SystemStructureDescription of %q", n.el.FullTag(), n.uri, nsSSD)
		return nil
	}
	d := &Document{File: r.file, Version: r.version(n), Name: r.need(n, "name"), Metadata: make(map[string]string), tree: n.el}
	for _, key := range []string{"author", "fileversion", "copyright", "license", "generationTool", "generationDateAndTime", "description"} {
		if v, ok := n.attr(key); ok {
			d.Metadata[key] = v
		}
	}
	for _, k := range n.kids {
		switch {
		case k.is("System", nsSSD):
			if d.System != nil {
				r.add(ruleSchema, k, "a document has one System at its root")
				continue
			}
			d.System = r.system(k)
		case k.is("Enumerations", nsSSD):
			d.Enumerations = r.enumerations(k)
		case k.is("Units", nsSSD):
			d.Units = r.units(k)
		case k.is("DefaultExperiment", nsSSD):
			d.Experiment.Start, d.Experiment.Stop = r.number(k, "startTime"), r.number(k, "stopTime")
			for _, kk := range k.kids {
				if kk.is("Annotations", nsSSD) {
					d.Experiment.Annotations = r.annotations(kk)
				} else if !silent(kk) {
					r.unknown(kk)
				}
			}
		case k.is("Annotations", nsSSD):
			d.Annotations = r.annotations(k)
		case silent(k):
		default:
			r.unknown(k)
		}
	}
	if d.System == nil {
		r.add(ruleSchema, n, "there is no System")
		return nil
	}
	r.names(d)
	return d
}

// names finds the units and enumerations that the document names (ssp 9, SD13).
func (r *reader) names(d *Document) {
	own := newNames(d.Units, d.Enumerations)
	var walk func(e Element)
	walk = func(e Element) {
		c := e.Base()
		for i := range c.Connectors {
			r.connectorNames(&c.Connectors[i], own)
		}
		if s, ok := e.(*System); ok {
			for _, kid := range s.Elements {
				walk(kid)
			}
		}
	}
	walk(d.System)
	for _, s := range r.inline {
		r.setNames(s, newNames(s.Units, s.Enumerations), own)
	}
	for _, s := range r.files {
		for i := range s.Parameters {
			v := &s.Parameters[i]
			for _, name := range []string{v.Unit, withoutBrackets(v.Unit)} {
				if v.face.unit == nil && own.units[name] != nil {
					v.face.unit, v.face.unitName = own.units[name], name
				}
			}
		}
	}
	for _, s := range r.signal {
		r.dictionaryNames(s, newNames(s.Units, s.Enumerations), own)
	}
}

// names are the definitions of a file.
type names struct {
	units map[string]*unit.Base
	items map[string]map[string]int32
}

func newNames(units []unit.Definition, enumerations []EnumerationType) *names {
	n := &names{make(map[string]*unit.Base, len(units)), make(map[string]map[string]int32, len(enumerations))}
	for _, u := range units {
		n.units[u.Name] = u.Base
	}
	for _, e := range enumerations {
		n.items[e.Name] = e.Items
	}
	return n
}

// lookUp gives what the names of a unit and an enumeration mean in the first of
// several scopes that defines them, and reports those that none does; otherwise says what
// becomes of the unit then.
func (p *parser) lookUp(unitName, enumeration string, at Place, otherwise string, scopes ...*names) (f face) {
	found := unitName == ""
	for _, s := range scopes {
		if base, ok := s.units[unitName]; ok && !found {
			found = true
			if base != nil {
				f.unit, f.unitName = base, unitName
			}
		}
		if f.items == nil {
			f.items = s.items[enumeration]
		}
	}
	if !found && p.once("unit "+unitName) {
		report(p.l, ruleUndefined, at, "the unit %q is not defined in this file%s", unitName, otherwise)
	}
	if enumeration != "" && f.items == nil && p.once("enumeration "+enumeration) {
		report(p.l, ruleUndefined, at, "the enumeration %q is not defined in this file; the items of the FMU count", enumeration)
	}
	return f
}

func (p *parser) connectorNames(c *Connector, scopes ...*names) {
	c.face = p.lookUp(c.Unit, c.Enumeration, c.Place, " and counts as none", scopes...)
}

func (p *parser) setNames(s *ParameterSet, scopes ...*names) {
	for i := range s.Parameters {
		v := &s.Parameters[i]
		v.face = p.lookUp(v.Unit, v.Enumeration, v.Place, "; what the system that binds the value or the FMU calls so counts", scopes...)
	}
}

func (p *parser) dictionaryNames(s *SignalDictionary, scopes ...*names) {
	for i := range s.Entries {
		p.connectorNames(&s.Entries[i], scopes...)
	}
}

// common reads what all elements share and gives the children left over.
func (r *reader) common(n *node, c *Common) (rest []*node) {
	c.Name, c.ID, c.Description = r.need(n, "name"), n.str("id", ""), n.str("description", "")
	c.Place = r.place(n)
	if _, ok := n.attr("name"); ok && c.Name == "" {
		r.add(ruleName, n, "the name is empty")
	}
	for _, k := range n.kids {
		switch {
		case k.is("Connectors", nsSSD):
			c.Connectors = r.connectors(k)
		case k.is("ParameterBindings", nsSSD):
			for _, kk := range k.kids {
				if kk.is("ParameterBinding", nsSSD) {
					c.Bindings = append(c.Bindings, r.binding(kk))
				} else {
					r.unknown(kk)
				}
			}
		case k.is("Annotations", nsSSD):
			c.Annotations = r.annotations(k)
		case silent(k):
		default:
			rest = append(rest, k)
		}
	}
	return rest
}

func (r *reader) system(n *node) *System {
	s := &System{}
	for _, k := range r.common(n, &s.Common) {
		switch {
		case k.is("Elements", nsSSD):
			s.Elements = r.elements(k)
		case k.is("Connections", nsSSD):
			for _, kk := range k.kids {
				if kk.is("Connection", nsSSD) {
					s.Connections = append(s.Connections, r.connection(kk))
				} else {
					r.unknown(kk)
				}
			}
		case k.is("SignalDictionaries", nsSSD):
			s.Dictionaries = r.dictionaries(k)
		default:
			r.unknown(k)
		}
	}
	return s
}

func (r *reader) dictionaries(n *node) []Dictionary {
	var out []Dictionary
	seen := make(map[string]bool)
	for _, k := range n.kids {
		if !k.is("SignalDictionary", nsSSD) {
			r.unknown(k)
			continue
		}
		d := Dictionary{Name: r.need(k, "name"), Source: k.str("source", ""), Place: r.place(k), Content: k.el}
		if seen[d.Name] {
			r.add(ruleName, k, "another signal dictionary of this system is called %q too", d.Name)
		}
		seen[d.Name] = true
		d.Signals = readPart(r, k, k, d.Source, k.str("type", mimeDictionary), mimeDictionary, "SSD", (*parser).signalDictionary)
		if d.Signals == nil {
			continue
		}
		if d.Source == "" {
			r.signal = append(r.signal, d.Signals)
		}
		out = append(out, d)
	}
	return out
}

func (p *parser) signalDictionary(n *node, inline bool) *SignalDictionary {
	if !n.is("SignalDictionary", nsSSB) {
		p.add(ruleSchema, n, "the element is %q of namespace %q, not SignalDictionary of %q", n.el.FullTag(), n.uri, nsSSB)
		return nil
	}
	outer := p.v2
	s := &SignalDictionary{File: p.file, Version: p.version(n)}
	defer func() { p.v2 = outer }()
	seen := make(map[string]bool)
	for _, k := range n.kids {
		switch {
		case k.is("DictionaryEntry", nsSSB):
			c := Connector{Name: p.need(k, "name"), Description: k.str("description", ""), Kind: Inout, Place: p.place(k)}
			for _, kk := range k.kids {
				if !p.signalType(kk, &c) && !p.inert(kk) {
					p.unknown(kk)
				}
			}
			if c.Type == Unspecified {
				p.add(ruleSchema, k, "the entry %q has no type", c.Name)
			}
			if seen[c.Name] {
				p.add(ruleName, k, "another entry of this dictionary is called %q too", c.Name)
			}
			seen[c.Name] = true
			s.Entries = append(s.Entries, c)
		case k.is("Enumerations", nsSSB):
			s.Enumerations = p.enumerations(k)
		case k.is("Units", nsSSB):
			s.Units = p.units(k)
		case p.inert(k):
		default:
			p.unknown(k)
		}
	}
	if !inline {
		p.dictionaryNames(s, newNames(s.Units, s.Enumerations))
	}
	return s
}

func (r *reader) elements(n *node) []Element {
	var out []Element
	seen := make(map[string]bool)
	for _, k := range n.kids {
		var e Element
		var rest []*node
		switch {
		case k.is("System", nsSSD):
			e = r.system(k)
		case k.is("Component", nsSSD):
			c := &Component{Type: k.str("type", mimeFMU), Implementation: k.str("implementation", "any")}
			c.Source, c.HasSource = k.attr("source")
			r.of = c
			rest = r.common(k, &c.Common)
			r.of = nil
			switch c.Implementation {
			case "any", "CoSimulation", "ModelExchange":
			case "ScheduledExecution":
				r.since2(k, "ScheduledExecution")
			default:
				r.add(ruleSchema, k, "the implementation %q is none of any, CoSimulation, ModelExchange", c.Implementation)
			}
			e = c
		case k.is("SignalDictionaryReference", nsSSD):
			ref := &DictionaryReference{Dictionary: r.need(k, "dictionary")}
			rest = r.common(k, &ref.Common)
			e = ref
		default:
			r.unknown(k)
			continue
		}
		for _, kk := range rest {
			r.unknown(kk)
		}
		name := e.Base().Name
		if seen[name] {
			r.add(ruleName, k, "another element of this system is called %q too", name)
		}
		seen[name] = true
		out = append(out, e)
	}
	return out
}

func (r *reader) connectors(n *node) []Connector {
	var out []Connector
	seen := make(map[string]bool)
	for _, k := range n.kids {
		if !k.is("Connector", nsSSD) {
			r.unknown(k)
			continue
		}
		c := Connector{Name: r.need(k, "name"), Description: k.str("description", ""), Kind: Kind(r.need(k, "kind")), Place: r.place(k)}
		switch c.Kind {
		case Input, Output, Parameter, CalculatedParameter, Inout, "":
		case StructuralParameter, Constant, Local, AnyKind:
			r.since2(k, "the kind "+string(c.Kind))
		default:
			r.add(ruleSchema, k, "the kind %q is not known", c.Kind)
		}
		for _, kk := range k.kids {
			if !r.signalType(kk, &c) && !r.inert(kk) {
				r.unknown(kk)
			}
		}
		if seen[c.Name] {
			r.add(ruleName, k, "another connector of this element is called %q too", c.Name)
		}
		seen[c.Name] = true
		out = append(out, c)
	}
	return out
}

// signalType reads a type, dimension or clock of a connector or dictionary entry;
// false: the element is something else.
func (p *parser) signalType(n *node, c *Connector) bool {
	t, v2, isType := typeByName(n.name)
	switch {
	case n.is("Clock", nsSSD): // names a clock; no type
		p.since2(n, "Clock")
		p.add(ruleClock, n, "the connector %q is associated with the clock %q; FMUs of version 2.0 have no clocks", c.Name, p.need(n, "name"))
	case isType && n.is(n.name, nsSSC, nsSSD):
		if v2 {
			p.since2(n, "the type "+n.name)
		}
		if c.Type != Unspecified {
			p.add(ruleSchema, n, "there is more than one type")
		}
		c.Type = t
		switch t {
		case Real:
			c.Unit = n.str("unit", "")
		case Enumeration:
			c.Enumeration = p.need(n, "name")
		}
	case n.is("Dimension", nsSSC, nsSSD):
		p.since2(n, "Dimension")
		p.dimension(n)
		c.Array = true
	default:
		return false
	}
	return true
}

// dimension checks a dimension of an array: a number, the name of a connector that
// gives it, or neither.
func (p *parser) dimension(n *node) {
	size, fixed := n.attr("size")
	if _, given := n.attr("sizeConnector"); given && fixed {
		p.add(ruleSchema, n, "a dimension has both size and sizeConnector")
	}
	if _, err := strconv.ParseUint(strings.TrimSpace(size), 10, 64); fixed && err != nil {
		p.add(ruleSchema, n, "the size %q of a dimension is no whole number", size)
	}
}

func (r *reader) connection(n *node) Connection {
	c := Connection{
		StartElement: n.str("startElement", ""), StartConnector: r.need(n, "startConnector"),
		EndElement: n.str("endElement", ""), EndConnector: r.need(n, "endConnector"),
		SuppressUnitConversion: r.boolean(n, "suppressUnitConversion", false),
		Place:                  r.place(n),
	}
	_, start := n.attr("startIndices")
	_, end := n.attr("endIndices")
	if c.Indexed = start || end; c.Indexed {
		r.since2(n, "startIndices")
	}
	var rest []*node
	c.Transformation, rest = r.transformation(n)
	for _, k := range rest {
		switch {
		case k.is("Annotations", nsSSD):
			c.Annotations = r.annotations(k)
		case silent(k):
		default:
			r.unknown(k)
		}
	}
	return c
}

// transformation reads the transformation in a Connection or MappingEntry, if
// there is one, and gives the other children.
func (p *parser) transformation(n *node) (t *Transformation, rest []*node) {
	for _, k := range n.kids {
		if k.uri != nsSSC && k.uri != nsSSD {
			rest = append(rest, k)
			continue
		}
		var kind TransformationKind
		switch k.name {
		case "LinearTransformation":
			kind = Linear
		case "BooleanMappingTransformation":
			kind = BooleanMapping
		case "IntegerMappingTransformation":
			kind = IntegerMapping
		case "EnumerationMappingTransformation":
			kind = EnumerationMapping
		default:
			rest = append(rest, k)
			continue
		}
		if t != nil {
			p.add(ruleSchema, k, "there is more than one transformation")
			continue
		}
		t = &Transformation{Kind: kind, Factor: p.numberOr(k, "factor", 1), Offset: p.numberOr(k, "offset", 0), Place: p.place(k)}
		switch kind {
		case Linear:
		case EnumerationMapping:
			t.Names = make(map[string]string)
		default:
			t.Numbers = make(map[int32]int32)
		}
		for _, e := range k.kids {
			if kind == Linear || !e.is("MapEntry", k.uri) {
				p.unknown(e)
				continue
			}
			p.mapEntry(e, t)
		}
	}
	return t, rest
}

func (p *parser) mapEntry(n *node, t *Transformation) {
	source, target := p.need(n, "source"), p.need(n, "target")
	if t.Kind == EnumerationMapping {
		if first, twice := t.Names[source]; twice {
			p.again(ruleTransformation, n, first == target, "the source %q is mapped twice", source)
		}
		t.Names[source] = target
		return
	}
	number := func(text string) int32 {
		if t.Kind == IntegerMapping {
			v, err := parseInteger(text)
			if err != nil {
				p.add(ruleSchema, n, "%v", err)
			}
			return v
		}
		v, err := parseBoolean(text)
		if err != nil {
			p.add(ruleSchema, n, "%v", err)
		}
		if v {
			return 1
		}
		return 0
	}
	from, to := number(source), number(target)
	if first, twice := t.Numbers[from]; twice {
		p.again(ruleTransformation, n, first == to, "the source %q is mapped twice", source)
	}
	t.Numbers[from] = to
}

// again reports an entry whose name an earlier one has: of the same meaning it is
// harmless, of another nobody could tell which counts.
func (p *parser) again(different *diag.Rule, n *node, same bool, format string, args ...any) {
	rule := different
	if same {
		rule = ruleTwice
	}
	p.add(rule, n, format, args...)
}

// annotations keeps them raw; older files have them in the namespace ssd (ssp 42).
func (p *parser) annotations(n *node) []Annotation {
	var out []Annotation
	for _, k := range n.kids {
		if !k.is("Annotation", nsSSC, nsSSD) {
			p.unknown(k)
			continue
		}
		out = append(out, Annotation{Type: strings.TrimSpace(p.need(k, "type")), Content: k.el, Place: p.place(k), node: k})
	}
	return out
}

func (p *parser) enumerations(n *node) []EnumerationType {
	var out []EnumerationType
	seen := make(map[string]map[string]int32)
	for _, k := range n.kids {
		if !k.is("Enumeration", nsSSC, nsSSD) {
			p.unknown(k)
			continue
		}
		e := EnumerationType{Name: p.need(k, "name"), Items: make(map[string]int32)}
		for _, i := range k.kids {
			if !i.is("Item", nsSSC, nsSSD) {
				if !p.inert(i) {
					p.unknown(i)
				}
				continue
			}
			name := p.need(i, "name")
			v, err := parseInteger(p.need(i, "value"))
			if err != nil {
				p.add(ruleSchema, i, "the attribute \"value\": %v", err)
			}
			if first, twice := e.Items[name]; twice {
				p.again(ruleSchema, i, first == v, "the item %q is defined twice", name)
			}
			e.Items[name] = v
		}
		if first, twice := seen[e.Name]; twice {
			p.again(ruleSchema, k, maps.Equal(first, e.Items), "the enumeration %q is defined twice", e.Name)
		}
		seen[e.Name] = e.Items
		out = append(out, e)
	}
	return out
}

func (p *parser) units(n *node) []unit.Definition {
	var out []unit.Definition
	seen := make(map[string]*unit.Base)
	for _, k := range n.kids {
		if !k.is("Unit", nsSSC, nsSSD) {
			p.unknown(k)
			continue
		}
		d := unit.Definition{Name: p.need(k, "name")}
		for _, b := range k.kids {
			if !b.is("BaseUnit", nsSSC, nsSSD) {
				if !p.inert(b) {
					p.unknown(b)
				}
				continue
			}
			base := &unit.Base{Factor: p.numberOr(b, "factor", 1), Offset: p.numberOr(b, "offset", 0)}
			for _, e := range []struct {
				key string
				to  *int
			}{{"kg", &base.Kg}, {"m", &base.M}, {"s", &base.S}, {"A", &base.A},
				{"K", &base.K}, {"mol", &base.Mol}, {"cd", &base.Cd}, {"rad", &base.Rad}} {
				if text, ok := b.attr(e.key); ok {
					v, err := parseInteger(text)
					if err != nil {
						p.add(ruleSchema, b, "the attribute %q: %v", e.key, err)
					}
					*e.to = int(v)
				}
			}
			if base.Factor == 0 {
				p.add(ruleSchema, b, "the factor of unit %q is 0", d.Name)
			}
			d.Base = base
		}
		if d.Base == nil {
			p.add(ruleUndefined, k, "the unit %q has no BaseUnit, without which it counts as none", d.Name)
		}
		if first, twice := seen[d.Name]; twice {
			same := first == d.Base || first != nil && d.Base != nil && *first == *d.Base
			p.again(ruleSchema, k, same, "the unit %q is defined twice", d.Name)
		}
		seen[d.Name] = d.Base
		out = append(out, d)
	}
	return out
}

func (r *reader) binding(n *node) Binding {
	b := Binding{Source: n.str("source", ""), Type: n.str("type", mimeSet), SourceBase: n.str("sourceBase", "SSD"),
		Prefix: n.str("prefix", ""), Place: r.place(n)}
	var values, mapping *node
	for _, k := range n.kids {
		switch {
		case k.is("ParameterValues", nsSSD):
			values = k
		case k.is("ParameterMapping", nsSSD):
			mapping = k
		case r.inert(k):
		default:
			r.unknown(k)
		}
	}
	b.Set = readPart(r, n, values, b.Source, b.Type, mimeSet, b.SourceBase, (*parser).parameterSet)
	switch {
	case b.Set == nil:
	case b.Source == "":
		r.inline = append(r.inline, b.Set)
	default:
		r.files = append(r.files, b.Set)
	}
	if mapping != nil {
		b.Mapping = readPart(r, mapping, mapping, mapping.str("source", ""), mapping.str("type", mimeMapping), mimeMapping,
			mapping.str("sourceBase", "SSD"), (*parser).parameterMapping)
	}
	return b
}

// readPart reads the set of a binding, a mapping or a dictionary: n has the
// attributes, inline holds the content if there is any. It returns nil after an error.
func readPart[T any](r *reader, n, inline *node, source, mime, want, base string, read func(p *parser, n *node, inline bool) *T) *T {
	switch {
	case mime != want:
		r.add(ruleContent, n, "content of type %q cannot be read; it must be %q", mime, want)
		return nil
	case base != "SSD" && base != "component":
		r.add(ruleSchema, n, "the sourceBase %q is neither SSD nor component", base)
		return nil
	}
	var content []*node
	if inline != nil {
		for _, k := range inline.kids {
			if !r.inert(k) {
				content = append(content, k)
			}
		}
	}
	switch {
	case source != "" && len(content) > 0:
		r.add(ruleContent, n, "there is both a source and inline content")
		return nil
	case source != "" && base == "component" && r.of == nil:
		r.add(ruleBase, n, "%q is to be found inside the component, but this is none", source)
		return nil
	case source != "":
		var inside *Component
		if base == "component" {
			inside = r.of
		}
		data, file, outside, err := r.open(source, inside)
		if err != nil {
			r.add(ruleFile, n, "%v", err)
			return nil
		}
		if outside {
			r.add(ruleFileOutside, n, "the file %q lies outside the folder of the document", source)
		}
		p := &parser{l: r.l, file: file}
		root := p.tree(data)
		if root == nil {
			return nil
		}
		return read(p, root, false)
	case len(content) == 1:
		return read(&r.parser, content[0], true)
	case len(content) > 1:
		r.add(ruleContent, content[1], "there are %d elements, and one is the content", len(content))
		return nil
	}
	r.add(ruleContent, n, "there is neither a source nor inline content")
	return nil
}

func (p *parser) parameterSet(n *node, inline bool) *ParameterSet {
	if !n.is("ParameterSet", nsSSV) {
		p.add(ruleSchema, n, "the element is %q of namespace %q, not ParameterSet of %q", n.el.FullTag(), n.uri, nsSSV)
		return nil
	}
	s := &ParameterSet{File: p.file, Name: n.str("name", ""), tree: n.el}
	outer := p.v2
	s.Version = p.version(n)
	defer func() { p.v2 = outer }()
	seen := make(map[string]int)
	for _, k := range n.kids {
		switch {
		case k.is("Parameters", nsSSV):
			for _, kk := range k.kids {
				if !kk.is("Parameter", nsSSV) {
					p.unknown(kk)
					continue
				}
				v := p.parameter(kk)
				p.repeated(kk, seen, v.Name, "the parameter %q is in this set twice")
				s.Parameters = append(s.Parameters, v)
			}
		case k.is("Enumerations", nsSSV):
			s.Enumerations = p.enumerations(k)
		case k.is("Units", nsSSV):
			s.Units = p.units(k)
		case p.inert(k), k.is("MetaData", nsSSV), k.is("Signature", nsSSV):
		default:
			p.unknown(k)
		}
	}
	if !inline {
		p.setNames(s, newNames(s.Units, s.Enumerations))
	}
	return s
}

// repeated reports a name that is in the list already; seen holds the lines of the names.
// Whether this matters shows when the values are bound.
func (p *parser) repeated(n *node, seen map[string]int, name, what string) {
	if first, twice := seen[name]; twice {
		p.add(ruleTwice, n, what+", first in line %d", name, first)
		return
	}
	seen[name] = n.line
}

func (p *parser) parameter(n *node) ParameterValue {
	v := ParameterValue{Name: p.need(n, "name"), Place: p.place(n)}
	for _, k := range n.kids {
		t, v2, isType := typeByName(k.name)
		switch {
		case isType && k.uri == nsSSV:
			if v2 {
				p.since2(k, "the type "+k.name)
			}
			if v.Value.Type != Unspecified {
				p.add(ruleSchema, k, "the parameter %q has a second value", v.Name)
				continue
			}
			p.parameterValue(k, t, &v)
		case k.is("Dimension", nsSSC, nsSSV):
			p.since2(k, "Dimension")
			p.dimension(k)
			v.Array = true
		case p.inert(k):
		default:
			p.unknown(k)
		}
	}
	if v.Value.Type == Unspecified {
		what := "no value"
		if len(n.kids) > 0 {
			what = fmt.Sprintf("no value of a type that the standard knows; it holds %q", n.kids[0].el.FullTag())
		}
		p.add(ruleSchema, n, "the parameter %q has %s", v.Name, what)
	}
	return v
}

func (p *parser) parameterValue(n *node, t ValueType, v *ParameterValue) {
	v.Value.Type = t
	for _, k := range n.kids {
		if k.is("Value", nsSSV) {
			p.since2(k, "Value")
			v.Array = true
			continue
		}
		p.unknown(k)
	}
	v.Unit, v.Enumeration = n.str("unit", ""), n.str("name", "")
	if v.Array {
		return
	}
	text := p.need(n, "value")
	read := func(text string) (err error) {
		switch t {
		case Real:
			v.Value.Real, err = parseSizedReal(n.name, text)
		case Integer:
			v.Value, err = parseSized(n.name, text)
		case Boolean:
			v.Value.Bool, err = parseBoolean(text)
		default:
			v.Value.Text = text
		}
		return err
	}
	err := read(text)
	if err == nil {
		return
	}
	if list := strings.Fields(text); len(list) > 1 { // an array of version 2.0
		p.since2(n, "a list of values")
		v.Array = true
		if i := slices.IndexFunc(list, func(one string) bool { return read(one) != nil }); i >= 0 {
			p.add(ruleValue, n, "entry %d of the value of parameter %q: %v", i+1, v.Name, read(list[i]))
		}
		v.Value = Value{Type: t}
		return
	}
	if _, ok := n.attr("value"); ok {
		p.add(ruleValue, n, "the value of parameter %q: %v", v.Name, err)
	}
}

func (p *parser) parameterMapping(n *node, _ bool) *ParameterMapping {
	if !n.is("ParameterMapping", nsSSM) {
		p.add(ruleSchema, n, "the element is %q of namespace %q, not ParameterMapping of %q", n.el.FullTag(), n.uri, nsSSM)
		return nil
	}
	outer := p.v2
	m := &ParameterMapping{File: p.file, Version: p.version(n), tree: n.el}
	defer func() { p.v2 = outer }()
	targets := make(map[string]int)
	for _, k := range n.kids {
		switch {
		case k.is("MappingEntry", nsSSM):
			e := MappingEntry{Source: p.need(k, "source"), Target: p.need(k, "target"),
				SuppressUnitConversion: p.boolean(k, "suppressUnitConversion", false), Place: p.place(k)}
			var rest []*node
			e.Transformation, rest = p.transformation(k)
			for _, kk := range rest {
				if !p.inert(kk) {
					p.unknown(kk)
				}
			}
			if e.Source != "" {
				p.repeated(k, targets, e.Target, "the target %q has two sources")
			}
			m.Entries = append(m.Entries, e)
		case p.inert(k), k.is("MetaData", nsSSM), k.is("Signature", nsSSM):
		default:
			p.unknown(k)
		}
	}
	return m
}
