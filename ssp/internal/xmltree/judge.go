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
		Remedy: "correct the document; the schemas of the standard say what is allowed"}
	RuleTolerated = &diag.Rule{ID: "SD1T", Level: diag.Warning, Strict: true, Ref: "ssp 6, 7",
		Doc:    "Namespaces are declared and named as the standard names them.",
		Remedy: "correct the document; it was read as it was surely meant"}
	RuleSequence = &diag.Rule{ID: "SD1S", Level: diag.Warning, Strict: true, Ref: "ssp 7",
		Doc:    "Elements stand in the order of the schemas, a list that is there has an entry, identifiers are unique, and elements hold no text. Other tools may refuse the document.",
		Remedy: "move the element, leave out the empty list, or correct the attribute; the document was read as it was surely meant"}
	RuleUnknown = &diag.Rule{ID: "SD1U", Level: diag.Warning, Ref: "ssp 6",
		Doc:    "Elements and attributes that the standard does not know have no meaning and are left out.",
		Remedy: "correct the name if it is a typing error; what is meant for a tool belongs into an annotation"}
)

// Reader reads one document and reports what is wrong with it.
type Reader struct {
	List *diag.List
	File string // as shown to the user
	// Prefixes are taken literally where the document does not declare them, like those
	// of SSP: namespaces by prefix.
	Prefixes map[string]string

	seen       map[string]bool // of Once
	undeclared []string        // prefixes that Parse declares
}

// Place returns where an element stands.
func (p *Reader) Place(n *Node) diag.Place {
	return diag.Place{File: p.File, Path: n.Path(), Line: n.Line, Column: n.Column}
}

// Add reports a violation at an element.
func (p *Reader) Add(r *diag.Rule, n *Node, format string, args ...any) {
	p.List.Report(r, p.Place(n), format, args...)
}

// Once reports whether a key comes up for the first time in this file.
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

// Parse reads the document and reports where it departs from the schemas. It returns nil
// after an error that leaves no tree to read.
func (p *Reader) Parse(data []byte) *Node {
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
				hint = `; if it is in ISO-8859-1, it must begin with <?xml version="1.0" encoding="ISO-8859-1"?>, else save it as UTF-8`
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

// judge finds the namespaces of an element and of those in it, and reports what is wrong
// whatever they mean. foreign means that they are in something that is not of SSP.
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

// atMostOnce are the elements of the standard that stand at most once in their parent.
var atMostOnce = map[string]bool{
	"Connectors": true, "Elements": true, "Connections": true, "SignalDictionaries": true, "ParameterBindings": true,
	"ParameterValues": true, "ParameterMapping": true, "Parameters": true, "Enumerations": true, "Units": true, "BaseUnit": true,
	"DefaultExperiment": true, "Annotations": true,
}

// singles reports elements that occur twice where one is allowed: which of them counts
// is not known.
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
			p.Add(RuleSchema, k, "the element %q stands twice in %q, first in line %d", k.Name, n.Name, first)
		}
		seen[k.Name] = k.Line
	}
}

// known returns the namespace that an undeclared prefix stands for, "" if none (ssp 6).
func (p *Reader) known(prefix string) string {
	for uri, standard := range Prefixes {
		if prefix == standard && Standard(uri) {
			return uri
		}
	}
	return p.Prefixes[prefix]
}

// declare has Parse declare a prefix at the root, so that the tree can be written.
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

// knownAttributes are those of the elements of the standard, versions 1.0 and
// 2.0. Elements that are not listed here are not checked: geometry, notes and
// metadata have no effect on a run.
var knownAttributes = func() map[string][]string {
	base := []string{"id", "description"}
	top := append([]string{"version", "name", "author", "fileversion", "copyright", "license", "generationTool", "generationDateAndTime"}, base...)
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
	for _, list := range []string{"Connectors", "Elements", "Connections", "ParameterBindings", "SignalDictionaries", "ParameterValues", "Units", "Enumerations", "Annotations"} {
		m[SSD+" "+list] = nil
	}
	return m
}()

// attributes reports attributes that stand twice on an element, and those
// without namespace that the standard does not know.
func (p *Reader) attributes(n *Node) {
	known, listed := knownAttributes[n.URI+" "+n.Name]
	seen := make(map[string]bool, len(n.El.Attr))
	for _, a := range n.El.Attr {
		key := a.FullKey()
		if a.Space != "" && a.Space != "xmlns" && p.known(a.Space) != "" && Resolve(n.El, a.Space) == "" {
			p.declare(a.Space)
		}
		if seen[key] {
			p.Add(RuleSchema, n, "the attribute %q stands twice", key)
		}
		seen[key] = true
		if listed && a.Space == "" && a.Key != "xmlns" && !slices.Contains(known, a.Key) {
			p.Add(RuleUnknown, n, "the attribute %q is not known here and is left out", a.Key)
		}
	}
}

// Need returns an attribute that must be there.
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
	p.Add(RuleUnknown, n, "the element %q is not known here and is left out", n.El.FullTag())
}

// Each returns the children that have a name in one of the namespaces, and reports the others.
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

// Silent reports whether an element is known to have no effect on a run: geometry
// and notes (ssp 22), metadata and signatures of version 2.
func Silent(n *Node) bool {
	switch n.Name {
	case "ElementGeometry", "ConnectorGeometry", "ConnectionGeometry", "SystemGeometry", "GraphicalElements":
		return n.URI == SSD
	case "MetaData", "Signature":
		return n.URI == SSC || n.URI == SSD
	}
	return false
}

// What the schemas ask for beside what the model needs (ssp 7): the order of elements and
// lists that are not empty. Documents that do not follow are read all the same.

// arranged reports children that do not stand as the schemas want it: in their sequence,
// once, where they belong, and in lists that are not empty.
func (p *Reader) arranged(n *Node) {
	if foreignContent(n.Name) {
		p.held(n)
		return
	}
	names, last, rank := sequence[n.URI+" "+n.Name], "", -1
	seen, told := make(map[string]bool), false
	for _, k := range n.Kids {
		switch {
		case k.URI == SSD && slices.Contains(commonElements, k.Name):
			if p.Once("common " + k.Name) {
				p.Add(RuleTolerated, k, "the element %q belongs into the namespace %q", k.El.FullTag(), SSC)
			}
		case k.Name == "Annotations" && Standard(k.URI) && k.URI != n.URI:
			p.Add(RuleTolerated, k, "the element %q belongs into the namespace %q, which is that of %q", k.El.FullTag(), n.URI, n.El.FullTag())
		case empty(n) || n.Name == "GraphicalElements" && k.Name != "Note" || names != nil && Silent(k) && !slices.Contains(names, k.Name):
			p.Unknown(k)
			continue
		}
		r := rankOf(names, k.Name, k.URI)
		switch {
		case r < 0:
			continue
		case r < rank && !told: // the first is enough
			told = true
			p.Add(RuleSequence, k, "%q stands behind %q, and the schema wants it before", k.El.FullTag(), last)
		case seen[k.Name] && (strings.HasSuffix(k.Name, "Geometry") || k.Name == "GraphicalElements"):
			p.Add(RuleSequence, k, "%q stands twice in %q", k.El.FullTag(), n.El.FullTag())
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
			p.Add(RuleSequence, n, "%q holds no %s, and the schema wants one at least", n.El.FullTag(), need[0])
		}
	}
}

// held reports what annotations, metadata and signatures must not hold themselves; what
// stands in their content is theirs.
func (p *Reader) held(n *Node) {
	if n.Name == "Annotation" {
		if len(n.Kids) > 1 {
			p.Add(RuleSequence, n, "the annotation holds %d elements, and the schema wants one at most", len(n.Kids))
		}
		return
	}
	for _, k := range n.Kids {
		if k.Name != "Content" && (k.Name != "Signature" || n.Name != "MetaData") {
			p.Unknown(k)
		}
	}
}

// texts reports text in elements of the standard, which hold elements only: the first in
// each. That of annotations and metadata is theirs, and values of arrays may be texts.
func (p *Reader) texts(n *Node) {
	if t := n.text; t != nil && !n.theirs() && n.Name != "Value" {
		p.List.Report(RuleSequence, diag.Place{File: p.File, Path: n.Path(), Line: t.line, Column: t.column}, "the text %q in %q has no meaning: the element holds none", shortened(t.text), n.El.FullTag())
	}
	for _, k := range n.Kids {
		p.texts(k)
	}
}

// theirs reports whether an element is not of the standard, or holds or lies in what is not.
func (n *Node) theirs() bool {
	for ; n != nil; n = n.Parent {
		if !Standard(n.URI) || foreignContent(n.Name) {
			return true
		}
	}
	return false
}

// shortened is the first line of a text, and of that not more than a message bears.
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

// isEnumeration reports whether an Enumeration is a definition, and no type or value.
func isEnumeration(n *Node) bool {
	return n.Name == "Enumeration" && n.Parent != nil && n.Parent.Name == "Enumerations"
}

// empty reports whether an element is one that holds no others, and that no reader looks
// into.
func empty(n *Node) bool {
	switch n.Name {
	case "MapEntry", "Item", "BaseUnit", "Dimension", "Note", "Clock":
		return true
	}
	return strings.HasSuffix(n.Name, "Geometry") || slices.Contains(types, n.Name) && n.URI == SSC && !isEnumeration(n)
}

// needed are the elements of which the schemas want one at least, by that in which they
// stand (ssp 7): one of each group, the first of which names it.
var needed = map[string][][]string{
	"Connectors": {{"Connector"}}, "Elements": {{"Component", "System", "SignalDictionaryReference"}}, "Connections": {{"Connection"}},
	"SignalDictionaries": {{"SignalDictionary"}}, "GraphicalElements": {{"Note"}}, "Units": {{"Unit"}}, "Enumerations": {{"Enumeration"}},
	"ParameterBindings": {{"ParameterBinding"}}, "Annotations": {{"Annotation"}}, "Enumeration": {{"Item"}}, "ParameterSet": {{"Parameters"}},
	"BooleanMappingTransformation": {{"MapEntry"}}, "IntegerMappingTransformation": {{"MapEntry"}}, "EnumerationMappingTransformation": {{"MapEntry"}},
}

// written reports identifiers that stand twice, and a parameter set without a name.
func (p *Reader) written(n *Node) {
	if id, ok := n.Attr("id"); ok && !p.Once("id "+id) {
		p.Add(RuleSequence, n, "the id %q stands twice in this file", id)
	}
	if _, ok := n.Attr("name"); !ok && n.Name == "ParameterSet" {
		p.Add(RuleSequence, n, "the attribute %q is missing", "name")
	}
}
