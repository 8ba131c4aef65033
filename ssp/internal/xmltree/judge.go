package xmltree

import (
	"encoding/xml"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
)

// The rules of this package; see those of package ssp.
var (
	RuleSchema = &diag.Rule{ID: "SD1", Level: diag.Error, Ref: "ssp 4-9, 13, 21",
		Doc:    "A document is well-formed XML and has the required elements and attributes, with values of the required form.",
		Remedy: "correct the document according to the schemas of the standard"}
	RuleTolerated = &diag.Rule{ID: "SD1T", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 6, 7",
		Doc:    "Namespaces are declared and are those of the standard.",
		Remedy: "correct the document; it was read with the namespace of the standard"}
	RuleSequence = &diag.Rule{ID: "SD1S", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 7",
		Doc: "Elements are in the order of the schemas, lists are not empty, identifiers are unique, and elements " +
			"contain no text. Other tools may refuse the document otherwise.",
		Remedy: "move the element, remove the empty list or the text, or correct the attribute; " +
			"the document was read nevertheless"}
	RuleUnknown = &diag.Rule{ID: "SD1U", Level: diag.Warning, Ref: "ssp 6",
		Doc:    "Elements and attributes are those of the standard. Others have no effect.",
		Remedy: "correct the name if it is a typing error; use annotations for data of a tool"}
)

// Reader reads one document and reports errors in it.
type Reader struct {
	List *diag.List
	File string // name in findings
	// Prefixes maps prefixes to the namespaces that they have if the document does not declare
	// them, in addition to those of SSP.
	Prefixes map[string]string

	seen       map[string]bool // of Once
	undeclared []string        // prefixes that Parse declares
}

// Place returns the position of an element.
func (p *Reader) Place(n *Node) diag.Place {
	return diag.Place{File: p.File, Path: n.Path(), Line: n.Line, Column: n.Column}
}

// Add reports a finding at an element.
func (p *Reader) Add(r *diag.Rule, n *Node, format string, args ...any) {
	p.List.Report(r, p.Place(n), format, args...)
}

// Once reports whether a key occurs for the first time in this file.
func (p *Reader) Once(key string) bool {
	if p.seen[key] {
		return false
	}
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	p.seen[key] = true
	return true
}

// Parse reads a document and reports differences from the schemas. It returns nil after an error
// that leaves no tree.
func (p *Reader) Parse(data []byte) *Node {
	if what := diag.Pointer(data); what != "" {
		p.List.Add(RuleSchema.WithRemedy(diag.FetchPointer), p.File, "", 0, "%s", what)
		return nil
	}
	data, err := decode(data)
	if err != nil {
		p.List.Add(RuleSchema, p.File, "", 0, "%v", err)
		return nil
	}
	root, err := parse(data)
	if err != nil {
		line, hint := 0, ""
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			line = syntax.Line
			if !utf8.Valid(data) {
				hint = `; save it as UTF-8 or, if it is in ISO-8859-1, ` +
					`begin it with <?xml version="1.0" encoding="ISO-8859-1"?>`
			}
		}
		p.List.Add(RuleSchema, p.File, "", line, "the file is not well-formed XML: %v%s", err, hint)
		return nil
	}
	p.judge(root, false)
	p.texts(root)
	for _, prefix := range p.undeclared {
		root.El.CreateAttr("xmlns:"+prefix, p.known(prefix))
	}
	return root
}

// judge resolves the namespaces of an element and of those in it, and checks what does not depend
// on their meaning. foreign is true inside elements that are not part of SSP.
func (p *Reader) judge(n *Node, foreign bool) {
	n.URI = p.namespace(n)
	numberSiblings(n.Kids)
	p.attributes(n)
	foreign = foreign || !Standard(n.URI)
	if !foreign {
		p.written(n)
	}
	for _, k := range n.Kids {
		p.judge(k, foreign || foreignContent(n.Name))
	}
	p.singles(n)
	if !foreign {
		p.arranged(n)
	}
}

// atMostOnce are the elements of the standard that a parent has at most once.
var atMostOnce = map[string]bool{
	"Connectors": true, "Elements": true, "Connections": true, "SignalDictionaries": true, "ParameterBindings": true,
	"ParameterValues": true, "ParameterMapping": true, "Parameters": true, "Enumerations": true, "Units": true, "BaseUnit": true,
	"DefaultExperiment": true, "Annotations": true,
}

// singles reports elements that occur twice but may occur only once: it is unknown which one counts.
func (p *Reader) singles(n *Node) {
	if !Standard(n.URI) {
		return
	}
	seen := make(map[string]int)
	for _, k := range n.Kids {
		if !atMostOnce[k.Name] || !Standard(k.URI) {
			continue
		}
		if first, twice := seen[k.Name]; twice {
			p.Add(RuleSchema, k, "the element %q occurs twice in %q, first in line %d", k.Name, n.Name, first)
		}
		seen[k.Name] = k.Line
	}
}

// known returns the namespace of an undeclared prefix, "" if there is none (ssp 6).
func (p *Reader) known(prefix string) string {
	for uri, standard := range Prefixes {
		if prefix == standard && Standard(uri) {
			return uri
		}
	}
	return p.Prefixes[prefix]
}

// declare makes Parse declare a prefix at the root, so that the tree can be written.
func (p *Reader) declare(prefix string) {
	if !slices.Contains(p.undeclared, prefix) {
		p.undeclared = append(p.undeclared, prefix)
	}
}

func (p *Reader) namespace(n *Node) string {
	uri := n.El.NamespaceURI()
	if known := p.known(n.El.Space); uri == "" && known != "" {
		if p.Once("prefix " + n.El.Space) {
			p.Add(RuleTolerated, n, "the namespace prefix %q is not declared", n.El.Space)
		}
		p.declare(n.El.Space)
		return known
	}
	if right, ok := aliases[uri]; ok {
		if p.Once("namespace " + uri) {
			p.Add(RuleTolerated, n, "the namespace %q should be %q", uri, right)
		}
		return right
	}
	return uri
}

// knownAttributes are the attributes of the elements of the standard, versions 1.0 and 2.0. Other
// elements are not checked: geometry, notes and metadata have no effect on a run.
var knownAttributes = func() map[string][]string {
	base := []string{"id", "description"}
	top := append([]string{"version", "name", "author", "fileversion", "copyright", "license",
		"generationTool", "generationDateAndTime"}, base...)
	m := map[string][]string{
		SSD + " SystemStructureDescription": top, SSV + " ParameterSet": top, SSM + " ParameterMapping": top,
		SSB + " SignalDictionary":          top,
		SSB + " DictionaryEntry":           append([]string{"name"}, base...),
		SSD + " SignalDictionary":          append([]string{"name", "type", "source"}, base...),
		SSD + " System":                    append([]string{"name"}, base...),
		SSD + " Component":                 append([]string{"name", "type", "source", "implementation"}, base...),
		SSD + " SignalDictionaryReference": append([]string{"name", "dictionary"}, base...),
		SSD + " Connector":                 append([]string{"name", "kind"}, base...),
		SSD + " Connection": append([]string{"startElement", "startConnector", "startIndices",
			"endElement", "endConnector", "endIndices", "suppressUnitConversion"}, base...),
		SSD + " ParameterBinding":  append([]string{"type", "source", "sourceBase", "prefix"}, base...),
		SSD + " ParameterMapping":  append([]string{"type", "source", "sourceBase"}, base...),
		SSD + " DefaultExperiment": {"startTime", "stopTime"},
		SSV + " Parameter":         append([]string{"name"}, base...),
		SSM + " MappingEntry":      append([]string{"source", "target", "suppressUnitConversion"}, base...),
		SSC + " Unit":              append([]string{"name"}, base...),
		SSC + " BaseUnit":          {"kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset"},
		SSC + " Enumeration":       append([]string{"name"}, base...),
		SSC + " Item":              {"name", "value"},
		SSC + " Annotation":        {"type"},
		SSC + " MapEntry":          {"source", "target"},
		SSC + " Real":              {"unit"}, SSC + " Float64": {"unit"}, SSC + " Float32": {"unit"},
		SSV + " Real": {"value", "unit"}, SSV + " Float64": {"value", "unit"}, SSV + " Float32": {"value", "unit"},
		SSV + " Integer": {"value"}, SSV + " Boolean": {"value"}, SSV + " String": {"value"}, SSV + " Enumeration": {"value", "name"},
		SSC + " LinearTransformation": {"factor", "offset"},
		SSC + " Dimension":            {"size", "sizeConnector"},
	}
	for _, list := range []string{"Connectors", "Elements", "Connections", "ParameterBindings", "SignalDictionaries",
		"ParameterValues", "Units", "Enumerations", "Annotations"} {
		m[SSD+" "+list] = nil
	}
	return m
}()

// attributes reports repeated attributes, and unknown ones without a namespace.
func (p *Reader) attributes(n *Node) {
	known, listed := knownAttributes[n.URI+" "+n.Name]
	seen := make(map[string]bool, len(n.El.Attr))
	for _, a := range n.El.Attr {
		key := a.FullKey()
		if a.Space != "" && a.Space != "xmlns" && p.known(a.Space) != "" && !declared(n.El, a.Space) {
			p.declare(a.Space)
		}
		if seen[key] {
			p.Add(RuleSchema, n, "the attribute %q occurs twice", key)
		}
		seen[key] = true
		if listed && a.Space == "" && a.Key != "xmlns" && !slices.Contains(known, a.Key) {
			p.Add(RuleUnknown, n, "the attribute %q is not known here and is ignored", a.Key)
		}
	}
}

// Need returns a required attribute.
func (p *Reader) Need(n *Node, key string) string {
	v, ok := n.Attr(key)
	if !ok {
		p.Add(RuleSchema, n, "the attribute %q is missing", key)
	}
	return v
}

// Number returns an attribute of type xs:double, nil if it is absent or wrong.
func (p *Reader) Number(n *Node, key string) *float64 {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := ParseReal(text)
	if err != nil {
		p.Add(RuleSchema, n, "the attribute %q: %v", key, err)
		return nil
	}
	return &v
}

// NumberOr is Number with a default.
func (p *Reader) NumberOr(n *Node, key string, absent float64) float64 {
	if v := p.Number(n, key); v != nil {
		return *v
	}
	return absent
}

// Boolean returns an attribute of type xs:boolean.
func (p *Reader) Boolean(n *Node, key string, absent bool) bool {
	text, ok := n.Attr(key)
	if !ok {
		return absent
	}
	v, err := ParseBoolean(text)
	if err != nil {
		p.Add(RuleSchema, n, "the attribute %q: %v", key, err)
		return absent
	}
	return v
}

// Unknown names an element that has no meaning here.
func (p *Reader) Unknown(n *Node) {
	p.Add(RuleUnknown, n, "the element %q is not known here and is ignored", n.El.FullTag())
}

// Each returns the children with a name in one of the namespaces, and reports the others.
func (p *Reader) Each(n *Node, name string, uris ...string) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, k := range n.Kids {
			if !k.Is(name, uris...) {
				p.Unknown(k)
			} else if !yield(k) {
				return
			}
		}
	}
}

// Silent reports whether an element is known to have no effect on a run: geometry and notes (ssp
// 22), metadata and signatures of version 2.
func Silent(n *Node) bool {
	switch n.Name {
	case "ElementGeometry", "ConnectorGeometry", "ConnectionGeometry", "SystemGeometry", "GraphicalElements":
		return n.URI == SSD
	case "MetaData", "Signature":
		return n.URI == SSC || n.URI == SSD
	}
	return false
}

// The rest of this file checks requirements of the schemas that reading does not need (ssp 7):
// the order of elements, and lists that are not empty.

// arranged reports children in the wrong order or namespace, unknown or repeated ones, and lists
// without the entries that the schemas require.
func (p *Reader) arranged(n *Node) {
	if foreignContent(n.Name) {
		p.held(n)
		return
	}
	names, last, rank := sequence[n.URI+" "+n.Name], "", -1
	seen, told := make(map[string]bool), false
	for _, k := range n.Kids {
		if !p.belongs(n, k, names) {
			continue
		}
		r := rankOf(names, k.Name, k.URI)
		switch {
		case r < 0:
			continue
		case r < rank && !told: // only the first is reported
			told = true
			p.Add(RuleSequence, k, "%q comes after %q; the schema requires it before", k.El.FullTag(), last)
		case seen[k.Name] && (strings.HasSuffix(k.Name, "Geometry") || k.Name == "GraphicalElements"):
			p.Add(RuleSequence, k, "%q occurs twice in %q", k.El.FullTag(), n.El.FullTag())
		}
		if seen[k.Name] = true; r > rank {
			last, rank = k.El.FullTag(), r
		}
	}
	for _, need := range needed[n.Name] {
		if n.Name == "Enumeration" && !isEnumeration(n) {
			break
		}
		if !slices.ContainsFunc(n.Kids, func(k *Node) bool { return slices.Contains(need, k.Name) }) {
			p.Add(RuleSequence, n, "%q contains no %s; the schema requires at least one", n.El.FullTag(), need[0])
		}
	}
}

// belongs reports children in the wrong namespace. It returns false, after a finding, for
// children that the parent cannot have.
func (p *Reader) belongs(n, k *Node, names []string) bool {
	switch {
	case k.URI == SSD && slices.Contains(commonElements, k.Name):
		if p.Once("common " + k.Name) {
			p.Add(RuleTolerated, k, "the element %q belongs to the namespace %q", k.El.FullTag(), SSC)
		}
	case k.Name == "Annotations" && Standard(k.URI) && k.URI != n.URI:
		p.Add(RuleTolerated, k, "the element %q belongs to the namespace %q of %q", k.El.FullTag(), n.URI, n.El.FullTag())
	case empty(n) || n.Name == "GraphicalElements" && k.Name != "Note" ||
		names != nil && Silent(k) && !slices.Contains(names, k.Name):
		p.Unknown(k)
		return false
	}
	return true
}

// held checks the children of annotations, metadata and signatures, but not their content.
func (p *Reader) held(n *Node) {
	if n.Name == "Annotation" {
		if len(n.Kids) > 1 {
			p.Add(RuleSequence, n, "the annotation contains %d elements; the schema allows one", len(n.Kids))
		}
		return
	}
	for _, k := range n.Kids {
		if k.Name != "Content" && (k.Name != "Signature" || n.Name != "MetaData") {
			p.Unknown(k)
		}
	}
}

// texts reports text in elements of the standard, the first in each. Annotations, metadata and
// values of arrays may contain text.
func (p *Reader) texts(n *Node) {
	if t := n.text; t != nil && !n.theirs() && n.Name != "Value" {
		at := diag.Place{File: p.File, Path: n.Path(), Line: t.line, Column: t.column}
		p.List.Report(RuleSequence, at, "the text %q in %q is not allowed: the element may contain only elements",
			shortened(t.text), n.El.FullTag())
	}
	for _, k := range n.Kids {
		p.texts(k)
	}
}

// theirs reports whether an element or one around it is not part of the standard or has foreign
// content.
func (n *Node) theirs() bool {
	for ; n != nil; n = n.Parent {
		if !Standard(n.URI) || foreignContent(n.Name) {
			return true
		}
	}
	return false
}

// shortened returns the first line of a text, cut for a message.
func shortened(text string) string {
	const most = 40
	text, more, cut := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(text[:min(len(text), (most+1)*utf8.UTFMax)]); len(r) > most {
		text, cut = string(r[:most]), true
	}
	if cut || more != "" {
		text += "…"
	}
	return text
}

// isEnumeration reports whether an Enumeration is a definition, not a type or value.
func isEnumeration(n *Node) bool {
	return n.Name == "Enumeration" && n.Parent != nil && n.Parent.Name == "Enumerations"
}

// empty reports whether an element may have no children, and no reader checks that.
func empty(n *Node) bool {
	switch n.Name {
	case "MapEntry", "Item", "BaseUnit", "Dimension", "Note", "Clock":
		return true
	}
	return strings.HasSuffix(n.Name, "Geometry") || slices.Contains(types, n.Name) && n.URI == SSC && !isEnumeration(n)
}

// needed lists for each parent groups of elements of which the schemas require at least one (ssp
// 7). The first of a group names it in messages.
var needed = map[string][][]string{
	"Connectors": {{"Connector"}}, "Elements": {{"Component", "System", "SignalDictionaryReference"}}, "Connections": {{"Connection"}},
	"SignalDictionaries": {{"SignalDictionary"}}, "GraphicalElements": {{"Note"}}, "Units": {{"Unit"}}, "Enumerations": {{"Enumeration"}},
	"ParameterBindings": {{"ParameterBinding"}}, "Annotations": {{"Annotation"}}, "Enumeration": {{"Item"}},
	"ParameterSet": {{"Parameters"}}, "BooleanMappingTransformation": {{"MapEntry"}},
	"IntegerMappingTransformation": {{"MapEntry"}}, "EnumerationMappingTransformation": {{"MapEntry"}},
}

// written reports repeated identifiers, and a parameter set without a name.
func (p *Reader) written(n *Node) {
	if id, ok := n.Attr("id"); ok && !p.Once("id "+id) {
		p.Add(RuleSequence, n, "the id %q occurs twice in this file", id)
	}
	if _, ok := n.Attr("name"); !ok && n.Name == "ParameterSet" {
		p.Add(RuleSequence, n, "the attribute %q is missing", "name")
	}
}
