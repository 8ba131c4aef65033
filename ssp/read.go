package ssp

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// MIME types (ssp 12, 33).
const (
	MIMEFMU        = "application/x-fmu-sharedlibrary"
	mimeDefinition = "application/x-ssp-definition"
	mimePackage    = "application/x-ssp-package"
	MIMESet        = "application/x-ssp-parameter-set"
	mimeMapping    = "application/x-ssp-parameter-mapping"
	mimeDictionary = "application/x-ssp-signal-dictionary"
)

// opener reads a file that a document refers to, and returns its name for findings. The path is
// relative to the folder of the document or, with inside, to the content of that component (ssp
// 33). outside is true if the file is outside of the system.
type opener func(uri string, inside *Component) (data []byte, file string, outside bool, err error)

// parseDocument reads an SSD from memory. open reads the parameter files that it refers to. It
// returns nil if the document has errors.
func parseDocument(p *parser, data []byte, open opener) *Document {
	own, done := collect(p.List)
	defer done()
	p.List = own
	if root := p.Parse(data); root != nil {
		return p.document(root, open)
	}
	return nil
}

// document reads an SSD. It returns nil if the list of the parser has errors.
func (p *parser) document(root *xmltree.Node, open opener) *Document {
	r := &reader{parser: *p, open: open}
	if d := r.document(root); p.List.Err() == nil {
		return d
	}
	return nil
}

// MetadataKeys are the keys of Document.Metadata (ssp 8).
var MetadataKeys = []string{"author", "fileversion", "copyright", "license", "generationTool", "generationDateAndTime", "description"}

// reader reads an SSD into the model.
type reader struct {
	parser
	open   opener
	of     *Component          // the component that is being read; nil in a system or a reference
	inline []*ParameterSet     // inline sets, which may use units of the document
	files  []*ParameterSet     // sets in files, which use units of the document only if they do not define them
	signal []*SignalDictionary // inline dictionaries, which may use units of the document
}

// version returns the version attribute of a root element, and checks it (ssp 5).
func (p *parser) version(n *xmltree.Node) string {
	v, ok := n.Attr("version")
	p.v2 = v == "2" || strings.HasPrefix(v, "2.")
	switch {
	case !ok:
		p.Need(n, "version")
	case v == "1", v == "2":
		p.Add(xmltree.RuleTolerated, n, "version %q should be %q", v, v+".0")
		v += ".0" // the form in which it is written
	case !p.v2 && !strings.HasPrefix(v, "1."):
		p.Add(xmltree.RuleSchema, n, "version %q is not supported; supported are versions 1 and 2", v)
	}
	return v
}

// part begins an element that may be a document of its own. It reads the version, which applies
// until done is called. ok is false, after a finding, if the element has another name.
func (p *parser) part(n *xmltree.Node, name, uri string) (version string, done func(), ok bool) {
	if !n.Is(name, uri) {
		p.Add(xmltree.RuleSchema, n, "the element is %q of namespace %q, not %s of %q", n.El.FullTag(), n.URI, name, uri)
		return "", nil, false
	}
	outer := p.v2
	return p.version(n), func() { p.v2 = outer }, true
}

// since2 reports a feature of version 2.0 in an older file (SD3), once for each feature.
func (p *parser) since2(n *xmltree.Node, what string) {
	if !p.v2 && p.Once("version "+what) {
		p.Add(ruleVersion, n, "%s requires version 2.0", what)
	}
}

func (r *reader) document(n *xmltree.Node) *Document {
	if !n.Is("SystemStructureDescription", xmltree.SSD) {
		r.Add(xmltree.RuleSchema, n, "the root element is %q of namespace %q, not SystemStructureDescription of %q",
			n.El.FullTag(), n.URI, xmltree.SSD)
		return nil
	}
	d := &Document{File: r.File, Version: r.version(n), Name: r.Need(n, "name"), Metadata: make(map[string]string), Tree: n.El}
	for _, key := range MetadataKeys {
		if v, ok := n.Attr(key); ok {
			d.Metadata[key] = v
		}
	}
	for _, k := range n.Kids {
		switch {
		case k.Is("System", xmltree.SSD):
			if d.System != nil {
				r.Add(xmltree.RuleSchema, k, "a second System at the root of the document")
				continue
			}
			d.System = r.system(k)
		case k.Is("Enumerations", xmltree.SSD):
			d.Enumerations = r.enumerations(k)
		case k.Is("Units", xmltree.SSD):
			d.Units = r.units(k)
		case k.Is("DefaultExperiment", xmltree.SSD):
			d.Experiment = Experiment{Start: r.Number(k, "startTime"), Stop: r.Number(k, "stopTime"),
				Annotations: r.annotationsAmong(k.Kids)}
		case k.Is("Annotations", xmltree.SSD):
			d.Annotations = r.annotations(k)
		case xmltree.Silent(k):
		default:
			r.Unknown(k)
		}
	}
	if d.System == nil {
		r.Add(xmltree.RuleSchema, n, "the document has no System")
		return nil
	}
	r.names(d)
	return d
}

// names resolves the units and enumerations that the document uses (ssp 9, SD13).
func (r *reader) names(d *Document) {
	own := newNames(d.Units, d.Enumerations)
	for e := range d.System.All() {
		for i := range e.Base().Connectors {
			r.connectorNames(&e.Base().Connectors[i], own)
		}
	}
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

// names are the units and enumerations that a file defines.
type names struct {
	units map[string]*unit.Base
	items map[string]map[string]int64
}

func newNames(units []unit.Definition, enumerations []EnumerationType) *names {
	n := &names{make(map[string]*unit.Base, len(units)), make(map[string]map[string]int64, len(enumerations))}
	for _, u := range units {
		n.units[u.Name] = u.Base
	}
	for _, e := range enumerations {
		n.items[e.Name] = e.Items
	}
	return n
}

// lookUp resolves the names of a unit and an enumeration in the first scope that defines them. It
// reports undefined names; otherwise describes the consequence for a unit.
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
	if !found && p.Once("unit "+unitName) {
		p.List.Report(ruleUndefined, at, "the unit %q is not defined in this file%s", unitName, otherwise)
	}
	if enumeration != "" && f.items == nil && p.Once("enumeration "+enumeration) {
		p.List.Report(ruleUndefined, at, "the enumeration %q is not defined in this file; the items of the FMU are used", enumeration)
	}
	return f
}

func (p *parser) connectorNames(c *Connector, scopes ...*names) {
	c.face = p.lookUp(c.Unit, c.Enumeration, c.Place, " and is ignored", scopes...)
}

func (p *parser) setNames(s *ParameterSet, scopes ...*names) {
	for i := range s.Parameters {
		v := &s.Parameters[i]
		v.face = p.lookUp(v.Unit, v.Enumeration, v.Place,
			"; a definition in the system that binds the value, or in the FMU, is used", scopes...)
	}
}

func (p *parser) dictionaryNames(s *SignalDictionary, scopes ...*names) {
	for i := range s.Entries {
		p.connectorNames(&s.Entries[i], scopes...)
	}
}

// common reads the parts that all elements share, and returns the other children.
func (r *reader) common(n *xmltree.Node, c *Common) (rest []*xmltree.Node) {
	c.Name, c.ID, c.Description = r.Need(n, "name"), n.Str("id", ""), n.Str("description", "")
	c.Place = r.Place(n)
	if _, ok := n.Attr("name"); ok && c.Name == "" {
		r.Add(RuleName, n, "the name is empty")
	}
	for _, k := range n.Kids {
		switch {
		case k.Is("Connectors", xmltree.SSD):
			c.Connectors = r.connectors(k)
		case k.Is("ParameterBindings", xmltree.SSD):
			for kk := range r.Each(k, "ParameterBinding", xmltree.SSD) {
				c.Bindings = append(c.Bindings, r.binding(kk))
			}
		case k.Is("Annotations", xmltree.SSD):
			c.Annotations = r.annotations(k)
		case xmltree.Silent(k):
		default:
			rest = append(rest, k)
		}
	}
	return rest
}

func (r *reader) system(n *xmltree.Node) *System {
	s := &System{}
	for _, k := range r.common(n, &s.Common) {
		switch {
		case k.Is("Elements", xmltree.SSD):
			s.Elements = r.elements(k)
		case k.Is("Connections", xmltree.SSD):
			for kk := range r.Each(k, "Connection", xmltree.SSD) {
				s.Connections = append(s.Connections, r.connection(kk))
			}
		case k.Is("SignalDictionaries", xmltree.SSD):
			s.Dictionaries = r.dictionaries(k)
		default:
			r.Unknown(k)
		}
	}
	return s
}

func (r *reader) dictionaries(n *xmltree.Node) []Dictionary {
	var out []Dictionary
	seen := make(map[string]bool)
	for k := range r.Each(n, "SignalDictionary", xmltree.SSD) {
		d := Dictionary{Name: r.Need(k, "name"), Source: k.Str("source", ""), Place: r.Place(k)}
		r.unique(seen, k, d.Name, "signal dictionary of this system")
		d.Signals = readPart(r, k, k, d.Source, k.Str("type", mimeDictionary), mimeDictionary, "SSD", (*parser).signalDictionary)
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

func (p *parser) signalDictionary(n *xmltree.Node, inline bool) *SignalDictionary {
	version, done, ok := p.part(n, "SignalDictionary", xmltree.SSB)
	if !ok {
		return nil
	}
	defer done()
	s := &SignalDictionary{File: p.File, Version: version}
	seen := make(map[string]bool)
	for _, k := range n.Kids {
		switch {
		case k.Is("DictionaryEntry", xmltree.SSB):
			c := Connector{Name: p.Need(k, "name"), Description: k.Str("description", ""), Kind: Inout, Place: p.Place(k)}
			p.signalTypes(k, &c)
			if c.Type == Unspecified {
				p.Add(xmltree.RuleSchema, k, "the entry %q has no type", c.Name)
			}
			p.unique(seen, k, c.Name, "entry of this dictionary")
			s.Entries = append(s.Entries, c)
		case k.Is("Enumerations", xmltree.SSB):
			s.Enumerations = p.enumerations(k)
		case k.Is("Units", xmltree.SSB):
			s.Units = p.units(k)
		default:
			p.leftOver(k)
		}
	}
	if !inline {
		p.dictionaryNames(s, newNames(s.Units, s.Enumerations))
	}
	return s
}

func (r *reader) elements(n *xmltree.Node) []Element {
	var out []Element
	seen := make(map[string]bool)
	for _, k := range n.Kids {
		var e Element
		var rest []*xmltree.Node
		switch {
		case k.Is("System", xmltree.SSD):
			e = r.system(k)
		case k.Is("Component", xmltree.SSD):
			c := &Component{Type: k.Str("type", MIMEFMU), Implementation: k.Str("implementation", "any")}
			c.Source, c.HasSource = k.Attr("source")
			r.of = c
			rest = r.common(k, &c.Common)
			r.of = nil
			switch c.Implementation {
			case "any", "CoSimulation", "ModelExchange":
			case "ScheduledExecution":
				r.since2(k, "ScheduledExecution")
			default:
				r.Add(xmltree.RuleSchema, k, "the implementation is %q; it must be any, CoSimulation or ModelExchange", c.Implementation)
			}
			e = c
		case k.Is("SignalDictionaryReference", xmltree.SSD):
			ref := &DictionaryReference{Dictionary: r.Need(k, "dictionary")}
			rest = r.common(k, &ref.Common)
			e = ref
		default:
			r.Unknown(k)
			continue
		}
		for _, kk := range rest {
			r.Unknown(kk)
		}
		r.unique(seen, k, e.Base().Name, "element of this system")
		out = append(out, e)
	}
	return out
}

func (r *reader) connectors(n *xmltree.Node) []Connector {
	var out []Connector
	seen := make(map[string]bool)
	for k := range r.Each(n, "Connector", xmltree.SSD) {
		c := Connector{Name: r.Need(k, "name"), Description: k.Str("description", ""), Kind: Kind(r.Need(k, "kind")), Place: r.Place(k)}
		switch c.Kind {
		case Input, Output, Parameter, CalculatedParameter, Inout, "":
		case StructuralParameter, Constant, Local, AnyKind:
			r.since2(k, "the kind "+string(c.Kind))
		default:
			r.Add(xmltree.RuleSchema, k, "the kind %q is not known", c.Kind)
		}
		r.signalTypes(k, &c)
		r.unique(seen, k, c.Name, "connector of this element")
		out = append(out, c)
	}
	return out
}

// signalTypes reads the type of a connector or dictionary entry, and reports unknown elements.
func (p *parser) signalTypes(n *xmltree.Node, c *Connector) {
	for _, k := range n.Kids {
		if !p.signalType(k, c) {
			p.leftOver(k)
		}
	}
}

// leftOver reports an element that is not allowed here, unless it is inert.
func (p *parser) leftOver(n *xmltree.Node) {
	if !p.inert(n) {
		p.Unknown(n)
	}
}

// signalType reads a type, dimension or clock of a connector or dictionary entry. It returns false
// for other elements.
func (p *parser) signalType(n *xmltree.Node, c *Connector) bool {
	t, v2, isType := TypeByName(n.Name)
	switch {
	case n.Is("Clock", xmltree.SSD): // a reference to a clock, not a type
		p.since2(n, "Clock")
		p.Add(ruleClock, n, "the connector %q refers to the clock %q; FMUs of version 2.0 have no clocks", c.Name, p.Need(n, "name"))
	case isType && n.Is(n.Name, xmltree.SSC, xmltree.SSD):
		if v2 {
			p.since2(n, "the type "+n.Name)
		}
		if c.Type != Unspecified {
			p.Add(xmltree.RuleSchema, n, "there is more than one type")
		}
		c.Type = t
		switch t {
		case Real:
			c.Unit = n.Str("unit", "")
		case Enumeration:
			c.Enumeration = p.Need(n, "name")
		}
	case n.Is("Dimension", xmltree.SSC, xmltree.SSD):
		p.since2(n, "Dimension")
		c.Sizes, c.Array = p.dimension(n, c.Sizes, !c.Array), true
	default:
		return false
	}
	return true
}

// dimension adds the size of a dimension of an array to those before: it may have a size, or the name of a connector
// with the size. Without the sizes of all dimensions, there are none.
func (p *parser) dimension(n *xmltree.Node, sizes []int, first bool) []int {
	size, fixed := n.Attr("size")
	if _, given := n.Attr("sizeConnector"); given && fixed {
		p.Add(xmltree.RuleSchema, n, "a dimension has both size and sizeConnector")
	}
	k, err := strconv.ParseUint(strings.TrimSpace(size), 10, 64)
	switch {
	case !fixed || !first && sizes == nil:
		return nil
	case err != nil:
		p.Add(xmltree.RuleSchema, n, "the size %q of a dimension is not a whole number", size)
	case k < 1 || k > maxElements || uint64(product(sizes))*k > maxElements:
		p.Add(ruleTypes, n, "the size %d of a dimension is not possible: an array has from 1 to %d elements", k, maxElements)
	default:
		return append(sizes, int(k))
	}
	return nil
}

func (r *reader) connection(n *xmltree.Node) Connection {
	c := Connection{
		StartElement: n.Str("startElement", ""), StartConnector: r.Need(n, "startConnector"),
		EndElement: n.Str("endElement", ""), EndConnector: r.Need(n, "endConnector"),
		SuppressUnitConversion: r.Boolean(n, "suppressUnitConversion", false),
		Place:                  r.Place(n),
	}
	c.StartIndices, c.EndIndices = r.indices(n, "startIndices"), r.indices(n, "endIndices")
	var rest []*xmltree.Node
	c.Transformation, rest = r.transformation(n)
	c.Annotations = r.annotationsAmong(rest)
	return c
}

// indices reads the indices of an element of an array; nil without the attribute.
func (r *reader) indices(n *xmltree.Node, attribute string) []int {
	text, given := n.Attr(attribute)
	if !given {
		return nil
	}
	r.since2(n, attribute)
	list := []int{}
	for word := range strings.FieldsSeq(text) {
		k, err := strconv.Atoi(word)
		if err != nil {
			r.Add(xmltree.RuleSchema, n, "%s is %q, which is not a list of whole numbers", attribute, text)
		}
		list = append(list, k)
	}
	return list
}

// transformation returns the transformation in a Connection or MappingEntry, nil if there is none,
// and the other children.
func (p *parser) transformation(n *xmltree.Node) (t *Transformation, rest []*xmltree.Node) {
	for _, k := range n.Kids {
		at := slices.Index(xmltree.Transformations, k.Name)
		if at < 0 || !k.Is(k.Name, xmltree.SSC, xmltree.SSD) {
			rest = append(rest, k)
			continue
		}
		if t != nil {
			p.Add(xmltree.RuleSchema, k, "there is more than one transformation")
			continue
		}
		t = &Transformation{Kind: TransformationKind(at), Factor: p.NumberOr(k, "factor", 1), Offset: p.NumberOr(k,
			"offset", 0), Place: p.Place(k)}
		entry := "MapEntry"
		switch t.Kind {
		case Linear:
			entry = "" // no children
		case EnumerationMapping:
			t.Names = make(map[string]string)
		default:
			t.Numbers = make(map[int64]int64)
		}
		for e := range p.Each(k, entry, k.URI) {
			p.mapEntry(e, t)
		}
	}
	return t, rest
}

func (p *parser) mapEntry(n *xmltree.Node, t *Transformation) {
	source, target := p.Need(n, "source"), p.Need(n, "target")
	if t.Kind == EnumerationMapping {
		if first, twice := t.Names[source]; twice {
			p.again(ruleTransformation, n, first == target, "the source %q is mapped twice", source)
		}
		t.Names[source] = target
		return
	}
	number := func(text string) (v int64) {
		var err error
		if t.Kind == IntegerMapping {
			v, err = xmltree.ParseInteger(text, 64)
		} else {
			var is bool
			is, err = xmltree.ParseBoolean(text)
			v = toNumber(is)
		}
		if err != nil {
			p.Add(xmltree.RuleSchema, n, "%v", err)
		}
		return v
	}
	from, to := number(source), number(target)
	if first, twice := t.Numbers[from]; twice {
		p.again(ruleTransformation, n, first == to, "the source %q is mapped twice", source)
	}
	t.Numbers[from] = to
}

// unique reports a name that occurred before in a list.
func (p *parser) unique(seen map[string]bool, n *xmltree.Node, name, what string) {
	if seen[name] {
		p.Add(RuleName, n, "another %s is called %q too", what, name)
	}
	seen[name] = true
}

// again reports a repeated entry of a list: as harmless if it means the same as the first, else
// with the other rule, because it is unknown which one counts.
func (p *parser) again(different *diag.Rule, n *xmltree.Node, same bool, format string, args ...any) {
	rule := different
	if same {
		rule = RuleTwice
	}
	p.Add(rule, n, format, args...)
}

// annotationsAmong returns the annotations among elements, and reports unknown elements.
func (p *parser) annotationsAmong(list []*xmltree.Node) (out []Annotation) {
	for _, n := range list {
		switch {
		case n.Is("Annotations", xmltree.SSD):
			out = p.annotations(n)
		case xmltree.Silent(n):
		default:
			p.Unknown(n)
		}
	}
	return out
}

// annotations returns the annotations of a list. Older files have them in the namespace ssd (ssp
// 42).
func (p *parser) annotations(n *xmltree.Node) []Annotation {
	var out []Annotation
	for k := range p.Each(n, "Annotation", xmltree.SSC, xmltree.SSD) {
		out = append(out, Annotation{Type: strings.TrimSpace(p.Need(k, "type")), Content: k.El, Place: p.Place(k), node: k})
	}
	return out
}

func (p *parser) enumerations(n *xmltree.Node) []EnumerationType {
	var out []EnumerationType
	seen := make(map[string]map[string]int64)
	for k := range p.Each(n, "Enumeration", xmltree.SSC, xmltree.SSD) {
		e := EnumerationType{Name: p.Need(k, "name"), Items: make(map[string]int64)}
		for _, i := range k.Kids {
			if !i.Is("Item", xmltree.SSC, xmltree.SSD) {
				p.leftOver(i)
				continue
			}
			name := p.Need(i, "name")
			v, err := xmltree.ParseInteger(p.Need(i, "value"), 64)
			if err != nil {
				p.Add(xmltree.RuleSchema, i, "the attribute \"value\": %v", err)
			}
			if first, twice := e.Items[name]; twice {
				p.again(xmltree.RuleSchema, i, first == v, "the item %q is defined twice", name)
			}
			e.Items[name] = v
		}
		if first, twice := seen[e.Name]; twice {
			p.again(xmltree.RuleSchema, k, maps.Equal(first, e.Items), "the enumeration %q is defined twice", e.Name)
		}
		seen[e.Name] = e.Items
		out = append(out, e)
	}
	return out
}

// Exponents returns the exponents of a base unit by the names of their attributes.
func Exponents(b *unit.Base) iter.Seq2[string, *int] {
	return func(yield func(string, *int) bool) {
		to := []*int{&b.Kg, &b.M, &b.S, &b.A, &b.K, &b.Mol, &b.Cd, &b.Rad}
		for i, key := range []string{"kg", "m", "s", "A", "K", "mol", "cd", "rad"} {
			if !yield(key, to[i]) {
				return
			}
		}
	}
}

func (p *parser) units(n *xmltree.Node) []unit.Definition {
	var out []unit.Definition
	seen := make(map[string]*unit.Base)
	for k := range p.Each(n, "Unit", xmltree.SSC, xmltree.SSD) {
		d := unit.Definition{Name: p.Need(k, "name")}
		for _, b := range k.Kids {
			if !b.Is("BaseUnit", xmltree.SSC, xmltree.SSD) {
				p.leftOver(b)
				continue
			}
			base := &unit.Base{Factor: p.NumberOr(b, "factor", 1), Offset: p.NumberOr(b, "offset", 0)}
			for key, to := range Exponents(base) {
				if text, ok := b.Attr(key); ok {
					v, err := xmltree.ParseInteger(text, 32)
					if err != nil {
						p.Add(xmltree.RuleSchema, b, "the attribute %q: %v", key, err)
					}
					*to = int(v)
				}
			}
			if base.Factor == 0 {
				p.Add(xmltree.RuleSchema, b, "the factor of unit %q is 0", d.Name)
			}
			d.Base = base
		}
		if d.Base == nil {
			p.Add(ruleUndefined, k, "the unit %q has no BaseUnit and is ignored", d.Name)
		}
		if first, twice := seen[d.Name]; twice {
			same := first == d.Base || first != nil && d.Base != nil && *first == *d.Base
			p.again(xmltree.RuleSchema, k, same, "the unit %q is defined twice", d.Name)
		}
		seen[d.Name] = d.Base
		out = append(out, d)
	}
	return out
}

func (r *reader) binding(n *xmltree.Node) Binding {
	b := Binding{Source: n.Str("source", ""), Type: n.Str("type", MIMESet), SourceBase: n.Str("sourceBase", "SSD"),
		Prefix: n.Str("prefix", ""), Place: r.Place(n)}
	var values, mapping *xmltree.Node
	for _, k := range n.Kids {
		switch {
		case k.Is("ParameterValues", xmltree.SSD):
			values = k
		case k.Is("ParameterMapping", xmltree.SSD):
			mapping = k
		default:
			r.leftOver(k)
		}
	}
	b.Set = readPart(r, n, values, b.Source, b.Type, MIMESet, b.SourceBase, (*parser).parameterSet)
	switch {
	case b.Set == nil:
	case b.Source == "":
		r.inline = append(r.inline, b.Set)
	default:
		r.files = append(r.files, b.Set)
	}
	if mapping != nil {
		b.Mapping = readPart(r, mapping, mapping, mapping.Str("source", ""), mapping.Str("type", mimeMapping), mimeMapping,
			mapping.Str("sourceBase", "SSD"), (*parser).parameterMapping)
	}
	return b
}

// readPart reads a parameter set, mapping or dictionary, inline or from a file. n has the
// attributes, inline the content if there is any. It returns nil after an error.
func readPart[T any](r *reader, n, inline *xmltree.Node, source, mime, want, base string, read func(p *parser,
	n *xmltree.Node, inline bool) *T) *T {
	switch {
	case mime != want:
		r.Add(ruleContent, n, "the type %q cannot be read; it must be %q", mime, want)
		return nil
	case base != "SSD" && base != "component":
		r.Add(xmltree.RuleSchema, n, "the sourceBase %q is neither SSD nor component", base)
		return nil
	}
	var content []*xmltree.Node
	if inline != nil {
		for _, k := range inline.Kids {
			if !r.inert(k) {
				content = append(content, k)
			}
		}
	}
	switch {
	case source != "" && len(content) > 0:
		r.Add(ruleContent, n, "there is both a source and inline content")
		return nil
	case source != "" && base == "component" && r.of == nil:
		r.Add(ruleBase, n, `%q has sourceBase="component", but this element is not a component`, source)
		return nil
	case source != "":
		var inside *Component
		if base == "component" {
			inside = r.of
		}
		data, file, outside, err := r.open(source, inside)
		if err != nil {
			r.Add(ruleFile, n, "%v", err)
			return nil
		}
		if outside {
			r.Add(ruleFileOutside, n, "the file %q lies outside the folder of the document", source)
		}
		p := newParser(r.List, file)
		p.Prefixes = r.Prefixes
		root := p.Parse(data)
		if root == nil {
			return nil
		}
		return read(p, root, false)
	case len(content) == 1:
		return read(&r.parser, content[0], true)
	case len(content) > 1:
		r.Add(ruleContent, content[1], "there are %d elements; only one may be the content", len(content))
		return nil
	}
	r.Add(ruleContent, n, "there is neither a source nor inline content")
	return nil
}

func (p *parser) parameterSet(n *xmltree.Node, inline bool) *ParameterSet {
	version, done, ok := p.part(n, "ParameterSet", xmltree.SSV)
	if !ok {
		return nil
	}
	defer done()
	s := &ParameterSet{File: p.File, Version: version, Name: n.Str("name", ""), Tree: n.El}
	seen := make(map[string]int)
	for _, k := range n.Kids {
		switch {
		case k.Is("Parameters", xmltree.SSV):
			for kk := range p.Each(k, "Parameter", xmltree.SSV) {
				v := p.parameter(kk)
				p.repeated(kk, seen, v.Name, "the parameter %q occurs twice in this set")
				s.Parameters = append(s.Parameters, v)
			}
		case k.Is("Enumerations", xmltree.SSV):
			s.Enumerations = p.enumerations(k)
		case k.Is("Units", xmltree.SSV):
			s.Units = p.units(k)
		case k.Is("MetaData", xmltree.SSV), k.Is("Signature", xmltree.SSV):
		default:
			p.leftOver(k)
		}
	}
	if !inline {
		p.setNames(s, newNames(s.Units, s.Enumerations))
	}
	return s
}

// repeated reports a name that occurred before; seen holds the lines of the names. Whether the
// repetition is an error is decided when the values are bound.
func (p *parser) repeated(n *xmltree.Node, seen map[string]int, name, what string) {
	if first, twice := seen[name]; twice {
		p.Add(RuleTwice, n, what+", first in line %d", name, first)
		return
	}
	seen[name] = n.Line
}

func (p *parser) parameter(n *xmltree.Node) ParameterValue {
	v := ParameterValue{Name: p.Need(n, "name"), Place: p.Place(n)}
	sized := false
	for _, k := range n.Kids {
		t, v2, isType := TypeByName(k.Name)
		switch {
		case isType && k.URI == xmltree.SSV:
			if v2 {
				p.since2(k, "the type "+k.Name)
			}
			if v.Value.Type != Unspecified {
				p.Add(xmltree.RuleSchema, k, "the parameter %q has a second value", v.Name)
				continue
			}
			p.parameterValue(k, t, &v)
		case k.Is("Dimension", xmltree.SSC, xmltree.SSV):
			p.since2(k, "Dimension")
			v.Sizes, v.Array = p.dimension(k, v.Sizes, !sized), true
			sized = true
		default:
			p.leftOver(k)
		}
	}
	if v.Array && v.Values == nil {
		v.Values = []Value{v.Value}
	}
	if v.Value.Type == Unspecified {
		what := "no value"
		if len(n.Kids) > 0 {
			what = fmt.Sprintf("no value of a known type; it contains %q", n.Kids[0].El.FullTag())
		}
		p.Add(xmltree.RuleSchema, n, "the parameter %q has %s", v.Name, what)
	}
	return v
}

func (p *parser) parameterValue(n *xmltree.Node, t ValueType, v *ParameterValue) {
	v.Value.Type = t
	for _, k := range n.Kids {
		if k.Is("Value", xmltree.SSV) {
			p.since2(k, "Value")
			v.Values = append(v.Values, Value{Type: t, Text: p.Need(k, "value")})
			continue
		}
		p.Unknown(k)
	}
	v.Unit, v.Enumeration = n.Str("unit", ""), n.Str("name", "")
	if len(v.Values) == 1 { // a scalar, or an array with dimensions
		v.Value, v.Values = v.Values[0], nil
		return
	}
	if v.Values != nil {
		if v.Array = true; t != String && t != Enumeration && t != Binary {
			p.Add(xmltree.RuleSchema, n, "the values of parameter %q are a list, not elements", v.Name)
		}
		return
	}
	text := p.Need(n, "value")
	read := func(text string) (err error) {
		switch t {
		case Real:
			v.Value.Real, err = parseSizedReal(n.Name, text)
		case Integer:
			v.Value.Int, err = parseSized(n.Name, text)
		case Boolean:
			v.Value.Bool, err = xmltree.ParseBoolean(text)
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
		for i, one := range list {
			if err := read(one); err != nil {
				p.Add(RuleValue, n, "entry %d of the value of parameter %q: %v", i+1, v.Name, err)
				break
			}
			v.Values = append(v.Values, v.Value)
		}
		v.Value = Value{Type: t}
		return
	}
	if _, ok := n.Attr("value"); ok {
		p.Add(RuleValue, n, "the value of parameter %q: %v", v.Name, err)
	}
}

func (p *parser) parameterMapping(n *xmltree.Node, _ bool) *ParameterMapping {
	version, done, ok := p.part(n, "ParameterMapping", xmltree.SSM)
	if !ok {
		return nil
	}
	defer done()
	m := &ParameterMapping{File: p.File, Version: version}
	targets := make(map[string]int)
	for _, k := range n.Kids {
		switch {
		case k.Is("MappingEntry", xmltree.SSM):
			e := MappingEntry{Source: p.Need(k, "source"), Target: p.Need(k, "target"),
				SuppressUnitConversion: p.Boolean(k, "suppressUnitConversion", false), Place: p.Place(k)}
			var rest []*xmltree.Node
			e.Transformation, rest = p.transformation(k)
			for _, kk := range rest {
				p.leftOver(kk)
			}
			if e.Source != "" {
				p.repeated(k, targets, e.Target, "the target %q has two sources")
			}
			m.Entries = append(m.Entries, e)
		case k.Is("MetaData", xmltree.SSM), k.Is("Signature", xmltree.SSM):
		default:
			p.leftOver(k)
		}
	}
	return m
}
