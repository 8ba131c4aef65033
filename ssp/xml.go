package ssp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
)

// The namespaces of SSP 1.0 and 2.0: both versions have the same (ssp 5).
const (
	nsSSD = "http://ssp-standard.org/SSP1/SystemStructureDescription"
	nsSSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"
	nsSSV = "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
	nsSSM = "http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
	nsSSB = "http://ssp-standard.org/SSP1/SystemStructureSignalDictionary"
	nsOSP = "http://opensimulationplatform.com/SSP/OSPAnnotations"
	nsOMS = "https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd"
	nsOwn = "https://github.com/macrostep/macrostep/ssp/1"
)

// knownPrefixes are taken literally where a document forgets to declare them (ssp 6).
var knownPrefixes = map[string]string{
	"ssd": nsSSD, "ssc": nsSSC, "ssv": nsSSV, "ssm": nsSSM, "ssb": nsSSB, "osp": nsOSP, "oms": nsOMS,
}

// aliases are namespaces that occur in place of the right ones (ssp 6).
var aliases = map[string]string{
	"http://ssp-standard.org/SSP1/ParameterValues": nsSSV,
}

// maxDocument bounds a document in memory. The largest parameter sets known
// have some ten thousand entries, about 2 MB.
const maxDocument = 256 << 20

// maxDepth bounds the nesting of elements. A nested system takes two levels.
const maxDepth = 500

// Place is where something stands in a document.
type Place struct {
	File string // as shown to the user; for a package "system.ssp/resources/set.ssv"
	Path string // XPath-like
	Line int    // 1-based
}

// String gives "file:line"; what has no line is named by File alone.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// node is an element with its namespace resolved and its line known. The tree
// of nodes mirrors that of etree, which stays as the faithful form.
type node struct {
	el     *etree.Element
	uri    string
	name   string // local
	line   int
	index  int // in the order of the document
	nth    int // 1-based among siblings of the same tag, and name where they have one; 0 if it is the only one
	parent *node
	kids   []*node
}

// parser turns nodes of one file into the model and reports on the way.
type parser struct {
	l    *diag.List
	file string // as shown
	// v2 reports whether the file says version 2.
	v2 bool
	// undefined holds the units and enumerations already reported.
	undefined map[string]bool
}

func (p *parser) place(n *node) Place { return Place{File: p.file, Path: n.path(), Line: n.line} }

func (p *parser) add(r *diag.Rule, n *node, format string, args ...any) {
	p.l.Add(r, p.file, n.path(), n.line, format, args...)
}

// report is add for a place that is already known.
func report(l *diag.List, r *diag.Rule, at Place, format string, args ...any) {
	l.Add(r, at.File, at.Path, at.Line, format, args...)
}

// tree reads a document. It returns nil after reporting an error.
func (p *parser) tree(data []byte) *node {
	data, err := utf8Document(data)
	if err != nil {
		p.l.Add(ruleSchema, p.file, "", 0, "%v", err)
		return nil
	}
	lines, texts, err := startLines(data)
	if err != nil {
		line := 0
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			line = syntax.Line
		}
		hint := ""
		if line > 0 && !utf8.Valid(data) {
			hint = `; if it is in ISO-8859-1, it must begin with <?xml version="1.0" encoding="ISO-8859-1"?>, else save it as UTF-8`
		}
		p.l.Add(ruleSchema, p.file, "", line, "the file is not well-formed XML: %v%s", err, hint)
		return nil
	}
	doc := etree.NewDocument()
	doc.ReadSettings = etree.ReadSettings{PreserveDuplicateAttrs: true, CharsetReader: keepCharset}
	if err := doc.ReadFromBytes(data); err != nil {
		p.l.Add(ruleSchema, p.file, "", 0, "the file cannot be read: %v", err)
		return nil
	}
	next := 0
	var build func(el *etree.Element, parent *node) *node
	build = func(el *etree.Element, parent *node) *node {
		n := &node{el: el, name: el.Tag, parent: parent, index: next}
		if next < len(lines) {
			n.line = lines[next]
		}
		next++
		for _, c := range el.ChildElements() {
			n.kids = append(n.kids, build(c, n))
		}
		return n
	}
	root := build(doc.Root(), nil)
	p.judge(root, false)
	p.texts(root, texts)
	return root
}

// judge finds the namespaces of an element and of those in it, and reports what is wrong
// whatever they mean. foreign tells that they stand in something that is not of SSP.
func (p *parser) judge(n *node, foreign bool) {
	n.uri = p.namespace(n)
	numberSiblings(n.kids)
	p.attributes(n)
	foreign = foreign || !ours(n.uri)
	if !foreign {
		p.written(n)
	}
	for _, k := range n.kids {
		p.judge(k, foreign || foreignContent(n.name))
	}
	p.singles(n)
	if !foreign {
		p.arranged(n)
	}
}

// numberSiblings tells siblings of one tag and name apart.
func numberSiblings(siblings []*node) {
	named := make(map[string][]*node)
	for _, kid := range siblings {
		key := kid.name
		if own := kid.str("name", ""); own != "" {
			key += " " + own
		}
		named[key] = append(named[key], kid)
	}
	for _, kids := range named {
		for i, kid := range kids {
			if len(kids) > 1 {
				kid.nth = i + 1
			}
		}
	}
}

// atMostOnce are the elements of the standard that stand at most once in their parent.
var atMostOnce = map[string]bool{
	"Connectors": true, "Elements": true, "Connections": true, "SignalDictionaries": true, "ParameterBindings": true,
	"ParameterValues": true, "ParameterMapping": true, "Parameters": true, "Enumerations": true, "Units": true, "BaseUnit": true,
	"DefaultExperiment": true, "Annotations": true,
}

// singles reports elements that stand twice where one is allowed: which of them counts
// nobody could tell.
func (p *parser) singles(n *node) {
	if !ours(n.uri) {
		return
	}
	seen := make(map[string]int)
	for _, k := range n.kids {
		if !atMostOnce[k.name] || !ours(k.uri) {
			continue
		}
		if first, twice := seen[k.name]; twice {
			p.add(ruleSchema, k, "the element %q stands twice in %q, first in line %d", k.name, n.name, first)
		}
		seen[k.name] = k.line
	}
}

// ours reports whether a namespace is one of the standard.
func ours(uri string) bool {
	switch uri {
	case nsSSD, nsSSC, nsSSV, nsSSM, nsSSB:
		return true
	}
	return false
}

func (p *parser) namespace(n *node) string {
	uri := n.el.NamespaceURI()
	if uri == "" && n.el.Space != "" {
		if known, ok := knownPrefixes[n.el.Space]; ok {
			if p.once("prefix " + n.el.Space) {
				p.add(ruleTolerated, n, "the namespace prefix %q is not declared", n.el.Space)
			}
			return known
		}
	}
	if right, ok := aliases[uri]; ok {
		if p.once("namespace " + uri) {
			p.add(ruleTolerated, n, "the namespace %q should be %q", uri, right)
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
		nsSSD + " SystemStructureDescription": top, nsSSV + " ParameterSet": top, nsSSM + " ParameterMapping": top,
		nsSSB + " SignalDictionary":          top,
		nsSSB + " DictionaryEntry":           append([]string{"name"}, base...),
		nsSSD + " SignalDictionary":          append([]string{"name", "type", "source"}, base...),
		nsSSD + " System":                    append([]string{"name"}, base...),
		nsSSD + " Component":                 append([]string{"name", "type", "source", "implementation"}, base...),
		nsSSD + " SignalDictionaryReference": append([]string{"name", "dictionary"}, base...),
		nsSSD + " Connector":                 append([]string{"name", "kind"}, base...),
		nsSSD + " Connection": append([]string{"startElement", "startConnector", "startIndices",
			"endElement", "endConnector", "endIndices", "suppressUnitConversion"}, base...),
		nsSSD + " ParameterBinding":  append([]string{"type", "source", "sourceBase", "prefix"}, base...),
		nsSSD + " ParameterMapping":  append([]string{"type", "source", "sourceBase"}, base...),
		nsSSD + " DefaultExperiment": {"startTime", "stopTime"},
		nsSSV + " Parameter":         append([]string{"name"}, base...),
		nsSSM + " MappingEntry":      append([]string{"source", "target", "suppressUnitConversion"}, base...),
		nsSSC + " Unit":              append([]string{"name"}, base...),
		nsSSC + " BaseUnit":          {"kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset"},
		nsSSC + " Enumeration":       append([]string{"name"}, base...),
		nsSSC + " Item":              {"name", "value"},
		nsSSC + " Annotation":        {"type"},
		nsSSC + " MapEntry":          {"source", "target"},
		nsSSC + " Real":              {"unit"}, nsSSC + " Float64": {"unit"}, nsSSC + " Float32": {"unit"},
		nsSSV + " Real": {"value", "unit"}, nsSSV + " Float64": {"value", "unit"}, nsSSV + " Float32": {"value", "unit"},
		nsSSV + " Integer": {"value"}, nsSSV + " Boolean": {"value"}, nsSSV + " String": {"value"}, nsSSV + " Enumeration": {"value", "name"},
		nsSSC + " LinearTransformation": {"factor", "offset"},
		nsSSC + " Dimension":            {"size", "sizeConnector"},
	}
	for _, list := range []string{"Connectors", "Elements", "Connections", "ParameterBindings", "SignalDictionaries", "ParameterValues", "Units", "Enumerations", "Annotations"} {
		m[nsSSD+" "+list] = nil
	}
	return m
}()

// attributes reports attributes that stand twice on an element, and those
// without namespace that the standard does not know.
func (p *parser) attributes(n *node) {
	known, listed := knownAttributes[n.uri+" "+n.name]
	seen := make(map[string]bool, len(n.el.Attr))
	for _, a := range n.el.Attr {
		key := a.FullKey()
		if seen[key] {
			p.add(ruleSchema, n, "the attribute %q stands twice", key)
		}
		seen[key] = true
		if listed && a.Space == "" && a.Key != "xmlns" && !slices.Contains(known, a.Key) {
			p.add(ruleUnknown, n, "the attribute %q is not known here and is left out", a.Key)
		}
	}
}

// once reports whether a key comes up for the first time in this file.
func (p *parser) once(key string) bool {
	if p.undefined[key] {
		return false
	}
	if p.undefined == nil {
		p.undefined = make(map[string]bool)
	}
	p.undefined[key] = true
	return true
}

// startLines checks that a document is well-formed with one root element and
// gives the line of every start tag, in document order, and what text there is. It is a pass of its own
// because etree keeps no positions, and because its own check (ValidateInput)
// refuses white space after the root element.
func startLines(data []byte) ([]int, []stray, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = keepCharset
	var lines, open []int
	var texts []stray
	line, counted, depth, roots := 1, 0, 0, 0
	for {
		start := int(dec.InputOffset()) // tokens follow each other without gaps
		tok, err := dec.Token()
		if err == io.EOF {
			if roots != 1 {
				if len(bytes.TrimSpace(data)) == 0 {
					return nil, nil, errors.New("it is empty")
				}
				return nil, nil, fmt.Errorf("it has %d root elements instead of one", roots)
			}
			return lines, texts, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			line += bytes.Count(data[counted:start], []byte{'\n'})
			counted = start
			open = append(open, len(lines))
			lines = append(lines, line)
			if depth == 0 {
				roots++
			}
			if depth++; depth > maxDepth {
				return nil, nil, fmt.Errorf("line %d: elements are nested deeper than %d", line, maxDepth)
			}
		case xml.EndElement:
			depth--
			open = open[:depth]
		case xml.CharData:
			text := bytes.TrimSpace(t)
			if len(text) == 0 {
				break
			}
			if depth == 0 {
				return nil, nil, errors.New("there is text outside of the root element")
			}
			line += bytes.Count(data[counted:start], []byte{'\n'})
			counted = start
			before := t[:len(t)-len(bytes.TrimLeft(t, " \t\r\n"))]
			texts = append(texts, stray{open[depth-1], line + bytes.Count(before, []byte{'\n'}), string(text)})
		}
	}
}

// keepCharset lets the decoder accept a document that declares a charset;
// utf8Document has converted or refused it already.
func keepCharset(_ string, r io.Reader) (io.Reader, error) { return r, nil }

// utf8Document strips a byte order mark and converts Latin-1. The standard
// wants UTF-8 (ssp 4).
func utf8Document(data []byte) ([]byte, error) {
	text, _, err := decodeDocument(data)
	return text, err
}

// decodeDocument is utf8Document, and tells whether the document was in Latin-1.
func decodeDocument(data []byte) (text []byte, latin1 bool, err error) {
	data, marked := bytes.CutPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, false, errors.New("the file is encoded in UTF-16; save it as UTF-8")
	}
	head := data[:min(len(data), 200)]
	end := bytes.Index(head, []byte("?>"))
	if !bytes.HasPrefix(head, []byte("<?xml")) || end < 0 {
		return data, false, nil
	}
	_, after, found := bytes.Cut(head[:end], []byte("encoding"))
	if !found {
		return data, false, nil
	}
	after = bytes.TrimLeft(after, " \t\r\n=")
	if len(after) == 0 {
		return data, false, nil
	}
	name, _, _ := bytes.Cut(after[1:], after[:1])
	switch strings.ToLower(string(name)) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return data, false, nil
	case "iso-8859-1", "latin1", "latin-1":
		if marked && utf8.Valid(data) { // the mark is that of UTF-8; the declaration was left behind
			return data, false, nil
		}
		out := make([]rune, len(data))
		for i, b := range data {
			out[i] = rune(b)
		}
		return []byte(string(out)), true, nil
	}
	return nil, false, fmt.Errorf("the file is encoded in %q; save it as UTF-8", name)
}

// is reports whether the node has this name in one of the namespaces.
func (n *node) is(name string, uris ...string) bool {
	return n.name == name && slices.Contains(uris, n.uri)
}

// path gives the place of a node, with names where there are some and numbers
// where there are several of a kind.
func (n *node) path() string {
	var parts []string
	for ; n != nil; n = n.parent {
		part := n.name
		if name, ok := n.attr("name"); ok && name != "" && n.parent != nil {
			part += "[@name='" + name + "']"
		}
		if n.nth > 0 {
			part += "[" + strconv.Itoa(n.nth) + "]"
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return "/" + strings.Join(parts, "/")
}

// attr gives an attribute without namespace.
func (n *node) attr(key string) (string, bool) {
	for _, a := range n.el.Attr {
		if a.Space == "" && a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

// str gives an attribute, or a default where it is absent.
func (n *node) str(key, absent string) string {
	if v, ok := n.attr(key); ok {
		return v
	}
	return absent
}

// need gives an attribute that must be there.
func (p *parser) need(n *node, key string) string {
	v, ok := n.attr(key)
	if !ok {
		p.add(ruleSchema, n, "the attribute %q is missing", key)
	}
	return v
}

// number gives an attribute of type xs:double, nil if it is absent or wrong.
func (p *parser) number(n *node, key string) *float64 {
	text, ok := n.attr(key)
	if !ok {
		return nil
	}
	v, err := parseReal(text)
	if err != nil {
		p.add(ruleSchema, n, "the attribute %q: %v", key, err)
		return nil
	}
	return &v
}

// numberOr is number with a default.
func (p *parser) numberOr(n *node, key string, absent float64) float64 {
	if v := p.number(n, key); v != nil {
		return *v
	}
	return absent
}

// boolean gives an attribute of type xs:boolean.
func (p *parser) boolean(n *node, key string, absent bool) bool {
	text, ok := n.attr(key)
	if !ok {
		return absent
	}
	v, err := parseBoolean(text)
	if err != nil {
		p.add(ruleSchema, n, "the attribute %q: %v", key, err)
		return absent
	}
	return v
}

// unknown names an element that has no meaning here.
func (p *parser) unknown(n *node) {
	p.add(ruleUnknown, n, "the element %q is not known here and is left out", n.el.FullTag())
}

// silent reports whether an element is known to have no effect on a run: geometry
// and notes (ssp 22), metadata and signatures of version 2.
func silent(n *node) bool {
	switch n.name {
	case "ElementGeometry", "ConnectorGeometry", "ConnectionGeometry", "SystemGeometry", "GraphicalElements":
		return n.uri == nsSSD
	case "MetaData", "Signature":
		return n.uri == nsSSC || n.uri == nsSSD
	}
	return false
}

// inert reports whether an element has no effect on a run: a silent one, or annotations
// where none means anything to us, which are told.
func (p *parser) inert(n *node) bool {
	if !n.is("Annotations", nsSSD, nsSSC, nsSSV, nsSSM, nsSSB) {
		return silent(n)
	}
	for _, k := range n.kids {
		switch t := strings.TrimSpace(k.str("type", "")); {
		case !k.is("Annotation", nsSSC, nsSSD):
			p.unknown(k)
		case p.need(k, "type") == "":
		case t == OwnType:
			p.add(ruleOwn, k, "an annotation of macrostep has no place here; settings belong to the DefaultExperiment, ms:Component to a Component")
		case p.once("annotation " + t):
			p.add(ruleForeign, k, "the annotation %q is not understood here and has no effect", t)
		}
	}
	return true
}

// parseReal reads an xs:double. Infinities and NaN are no values here (fmi2 12),
// nor are the hexadecimal forms that Go knows.
func parseReal(text string) (float64, error) {
	t := strings.TrimSpace(text)
	v, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(t, "xXpP_") {
		return 0, fmt.Errorf("%q is not a finite number", text)
	}
	return v, nil
}

// parseSizedReal reads a Real of a parameter set. What a Float32 cannot hold is refused;
// its digits are those of the text, and are not rounded to its precision.
func parseSizedReal(element, text string) (float64, error) {
	v, err := parseReal(text)
	if err != nil || element != "Float32" {
		return v, err
	}
	if narrow := float64(float32(v)); math.IsInf(narrow, 0) {
		return 0, fmt.Errorf("%q is beyond what a Float32 can hold", text)
	}
	return v, nil
}

func parseInteger(text string) (int32, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a 32-bit integer", text)
	}
	return int32(v), nil
}

// parseSized reads an integer of a parameter set. What its type holds but an Integer
// of FMI 2.0 does not is kept as a Real, which can go to a Real.
func parseSized(element, text string) (Value, error) {
	t := strings.TrimSpace(text)
	bits := 32
	kind, unsigned := strings.CutPrefix(element, "U")
	if size, sized := strings.CutPrefix(kind, "Int"); sized {
		if n, err := strconv.Atoi(size); err == nil {
			bits = n
		}
	}
	var v int64
	var err error
	if unsigned {
		var u uint64
		if u, err = strconv.ParseUint(t, 10, bits); u > math.MaxInt64 {
			v = math.MaxInt64
		} else {
			v = int64(u)
		}
	} else {
		v, err = strconv.ParseInt(t, 10, bits)
	}
	const exact = 1 << 53
	switch {
	case err != nil && unsigned:
		return Value{Type: Integer}, fmt.Errorf("%q is no integer of %d bits without sign", text, bits)
	case err != nil:
		return Value{Type: Integer}, fmt.Errorf("%q is no integer of %d bits", text, bits)
	case v >= math.MinInt32 && v <= math.MaxInt32:
		return Value{Type: Integer, Int: int32(v)}, nil
	case v < -exact || v > exact:
		return Value{Type: Integer}, fmt.Errorf("%q cannot be held exactly by a Real or an Integer of FMI 2.0; give a Float64", text)
	}
	return Value{Type: Real, Real: float64(v)}, nil
}

func parseBoolean(text string) (bool, error) {
	switch strings.TrimSpace(text) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf(`%q is neither "true" nor "false"`, text)
}
