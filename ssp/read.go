package ssp

import (
	"fmt"
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
)

// opener reads a file that a document refers to and gives the name to show.
type opener func(uri string) (data []byte, file string, err error)

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
	open opener
}

// version checks the version attribute of a root element (ssp 5).
func (p *parser) version(n *node) string {
	v := p.need(n, "version")
	p.v2 = strings.HasPrefix(v, "2.")
	if v != "" && !p.v2 && !strings.HasPrefix(v, "1.") {
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

// names checks the references to units and enumerations (ssp 9, SD13).
func (r *reader) names(d *Document) {
	check := func(c *Connector) {
		if c.Unit != "" && findUnit(d.Units, c.Unit) == nil && r.once("unit "+c.Unit) {
			report(r.l, ruleUndefined, c.Place, "the unit %q is not defined in this file and counts as none", c.Unit)
		}
		if c.Enumeration != "" && findItems(d.Enumerations, c.Enumeration) == nil && r.once("enumeration "+c.Enumeration) {
			report(r.l, ruleUndefined, c.Place, "the enumeration %q is not defined in this file; the items of the FMU count", c.Enumeration)
		}
	}
	var walk func(e Element)
	walk = func(e Element) {
		c := e.Base()
		for i := range c.Connectors {
			check(&c.Connectors[i])
		}
		if s, ok := e.(*System); ok {
			for _, kid := range s.Elements {
				walk(kid)
			}
		}
	}
	walk(d.System)
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
			for _, kk := range k.kids {
				if kk.is("SignalDictionary", nsSSD) {
					s.Dictionaries = append(s.Dictionaries, Dictionary{Name: r.need(kk, "name"), Content: kk.el, Place: r.place(kk)})
				} else {
					r.unknown(kk)
				}
			}
		default:
			r.unknown(k)
		}
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
			rest = r.common(k, &c.Common)
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
			t, v2, isType := typeByName(kk.name)
			switch {
			case kk.is("Clock", nsSSD): // names a clock; no type
				r.since2(kk, "Clock")
			case isType && kk.is(kk.name, nsSSC, nsSSD):
				if v2 {
					r.since2(kk, "the type "+kk.name)
				}
				c.Type = t
				switch t {
				case Real:
					c.Unit = kk.str("unit", "")
				case Enumeration:
					c.Enumeration = r.need(kk, "name")
				}
			case kk.is("Dimension", nsSSC, nsSSD):
				r.since2(kk, "Dimension")
				c.Array = true
			case silent(kk), kk.is("Annotations", nsSSD):
			default:
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
		if _, twice := t.Names[source]; twice {
			p.add(ruleTransformation, n, "the source %q stands twice", source)
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
	if _, twice := t.Numbers[from]; twice {
		p.add(ruleTransformation, n, "the source %q stands twice", source)
	}
	t.Numbers[from] = to
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
	for _, k := range n.kids {
		if !k.is("Enumeration", nsSSC, nsSSD) {
			p.unknown(k)
			continue
		}
		e := EnumerationType{Name: p.need(k, "name"), Items: make(map[string]int32)}
		if findItems(out, e.Name) != nil {
			p.add(ruleSchema, k, "the enumeration %q is defined twice", e.Name)
		}
		for _, i := range k.kids {
			if !i.is("Item", nsSSC, nsSSD) {
				if !i.is("Annotations", nsSSC, nsSSD) {
					p.unknown(i)
				}
				continue
			}
			name := p.need(i, "name")
			v, err := parseInteger(p.need(i, "value"))
			if err != nil {
				p.add(ruleSchema, i, "the attribute \"value\": %v", err)
			}
			if _, twice := e.Items[name]; twice {
				p.add(ruleSchema, i, "the item %q is defined twice", name)
			}
			e.Items[name] = v
		}
		out = append(out, e)
	}
	return out
}

func (p *parser) units(n *node) []unit.Definition {
	var out []unit.Definition
	for _, k := range n.kids {
		if !k.is("Unit", nsSSC, nsSSD) {
			p.unknown(k)
			continue
		}
		d := unit.Definition{Name: p.need(k, "name")}
		if findUnit(out, d.Name) != nil {
			p.add(ruleSchema, k, "the unit %q is defined twice", d.Name)
		}
		for _, b := range k.kids {
			if !b.is("BaseUnit", nsSSC, nsSSD) {
				if !b.is("Annotations", nsSSC, nsSSD) {
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
		out = append(out, d)
	}
	return out
}

// findUnit gives the definition of a unit, nil if there is none.
func findUnit(units []unit.Definition, name string) *unit.Definition {
	for i := range units {
		if units[i].Name == name {
			return &units[i]
		}
	}
	return nil
}

// baseOf gives the base unit by name, nil if it is not known.
func baseOf(units []unit.Definition, name string) *unit.Base {
	if d := findUnit(units, name); d != nil {
		return d.Base
	}
	return nil
}

// findItems gives the items of an enumeration, nil if it is not defined.
func findItems(types []EnumerationType, name string) map[string]int32 {
	for _, t := range types {
		if t.Name == name {
			return t.Items
		}
	}
	return nil
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
		case k.is("Annotations", nsSSD), silent(k):
		default:
			r.unknown(k)
		}
	}
	b.Set = readPart(r, n, values, b.Source, b.Type, mimeSet, b.SourceBase, (*parser).parameterSet)
	if mapping != nil {
		b.Mapping = readPart(r, mapping, mapping, mapping.str("source", ""), mapping.str("type", mimeMapping), mimeMapping,
			mapping.str("sourceBase", "SSD"), (*parser).parameterMapping)
	}
	return b
}

// readPart reads the set of a binding, or a mapping: n has the attributes,
// inline holds the content if there is any. It returns nil after an error.
func readPart[T any](r *reader, n, inline *node, source, mime, want, base string, read func(*parser, *node) *T) *T {
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
			if !silent(k) {
				content = append(content, k)
			}
		}
	}
	switch {
	case source != "" && len(content) > 0:
		r.add(ruleContent, n, "there is both a source and inline content")
		return nil
	case source != "" && base == "component":
		r.add(ruleBase, n, "%q is to be found inside the component, which is not supported", source)
		return nil
	case source != "":
		data, file, err := r.open(source)
		if err != nil {
			r.add(ruleFile, n, "%v", err)
			return nil
		}
		p := &parser{l: r.l, file: file}
		root := p.tree(data)
		if root == nil {
			return nil
		}
		return read(p, root)
	case len(content) == 1:
		return read(&r.parser, content[0])
	}
	r.add(ruleContent, n, "there is neither a source nor inline content")
	return nil
}

func (p *parser) parameterSet(n *node) *ParameterSet {
	if !n.is("ParameterSet", nsSSV) {
		p.add(ruleSchema, n, "the element is %q of namespace %q, not ParameterSet of %q", n.el.FullTag(), n.uri, nsSSV)
		return nil
	}
	s := &ParameterSet{File: p.file, Name: n.str("name", ""), tree: n.el}
	outer := p.v2
	s.Version = p.version(n)
	defer func() { p.v2 = outer }()
	seen := make(map[string]bool)
	for _, k := range n.kids {
		switch {
		case k.is("Parameters", nsSSV):
			for _, kk := range k.kids {
				if !kk.is("Parameter", nsSSV) {
					p.unknown(kk)
					continue
				}
				v := p.parameter(kk)
				if seen[v.Name] {
					p.add(ruleSchema, kk, "the parameter %q stands twice in this set", v.Name)
				}
				seen[v.Name] = true
				s.Parameters = append(s.Parameters, v)
			}
		case k.is("Enumerations", nsSSV):
			s.Enumerations = p.enumerations(k)
		case k.is("Units", nsSSV):
			s.Units = p.units(k)
		case k.is("Annotations", nsSSV), silent(k), k.is("MetaData", nsSSV), k.is("Signature", nsSSV):
		default:
			p.unknown(k)
		}
	}
	return s
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
			p.parameterValue(k, t, &v)
		case k.is("Dimension", nsSSC, nsSSV):
			p.since2(k, "Dimension")
			v.Array = true
		case k.is("Annotations", nsSSV), silent(k):
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
	var err error
	switch t {
	case Real:
		v.Value.Real, err = parseReal(text)
	case Integer:
		v.Value.Int, err = parseInteger(text)
	case Boolean:
		v.Value.Bool, err = parseBoolean(text)
	default:
		v.Value.Text = text
	}
	if err == nil {
		return
	}
	if len(strings.Fields(text)) > 1 { // an array of version 2.0
		p.since2(n, "a list of values")
		v.Array = true
		return
	}
	if _, ok := n.attr("value"); ok {
		p.add(ruleValue, n, "the value of parameter %q: %v", v.Name, err)
	}
}

func (p *parser) parameterMapping(n *node) *ParameterMapping {
	if !n.is("ParameterMapping", nsSSM) {
		p.add(ruleSchema, n, "the element is %q of namespace %q, not ParameterMapping of %q", n.el.FullTag(), n.uri, nsSSM)
		return nil
	}
	outer := p.v2
	m := &ParameterMapping{File: p.file, Version: p.version(n), tree: n.el}
	defer func() { p.v2 = outer }()
	targets := make(map[string]Place)
	for _, k := range n.kids {
		switch {
		case k.is("MappingEntry", nsSSM):
			e := MappingEntry{Source: p.need(k, "source"), Target: p.need(k, "target"),
				SuppressUnitConversion: p.boolean(k, "suppressUnitConversion", false), Place: p.place(k)}
			var rest []*node
			e.Transformation, rest = p.transformation(k)
			for _, kk := range rest {
				if !kk.is("Annotations", nsSSM) && !silent(kk) {
					p.unknown(kk)
				}
			}
			if first, twice := targets[e.Target]; twice && e.Source != "" {
				p.add(ruleMapping, k, "the target %q has a source already, in line %d", e.Target, first.Line)
			} else if e.Source != "" {
				targets[e.Target] = e.Place
			}
			m.Entries = append(m.Entries, e)
		case k.is("Annotations", nsSSM), silent(k), k.is("MetaData", nsSSM), k.is("Signature", nsSSM):
		default:
			p.unknown(k)
		}
	}
	return m
}
