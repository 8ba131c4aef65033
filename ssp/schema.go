package ssp

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// What the schemas ask for beside what the model needs (ssp 7, 22): the order of
// elements, lists that are not empty, and the attributes of parts that have no effect on
// a run. Documents that do not follow are read all the same.

// arranged reports children that do not stand as the schemas want it: in their sequence,
// once, where they belong, and in lists that are not empty.
func (p *parser) arranged(n *node) {
	if foreignContent(n.name) {
		p.held(n)
		return
	}
	names, last, rank := sequence[n.uri+" "+n.name], "", -1
	seen, told := make(map[string]bool), false
	for _, k := range n.kids {
		switch {
		case k.uri == nsSSD && slices.Contains(commonElements, k.name):
			if p.once("common " + k.name) {
				p.add(ruleTolerated, k, "the element %q belongs into the namespace %q", k.el.FullTag(), nsSSC)
			}
		case k.name == "Annotations" && ours(k.uri) && k.uri != n.uri:
			p.add(ruleTolerated, k, "the element %q belongs into the namespace %q, which is that of %q", k.el.FullTag(), n.uri, n.el.FullTag())
		case empty(n) || n.name == "GraphicalElements" && k.name != "Note" || names != nil && silent(k) && !slices.Contains(names, k.name):
			p.unknown(k)
			continue
		}
		r := rankOf(names, k.name, k.uri)
		switch {
		case r < 0:
			continue
		case r < rank && !told: // the first tells enough
			told = true
			p.add(ruleSequence, k, "%q stands behind %q, and the schema wants it before", k.el.FullTag(), last)
		case seen[k.name] && (strings.HasSuffix(k.name, "Geometry") || k.name == "GraphicalElements"):
			p.add(ruleSequence, k, "%q stands twice in %q", k.el.FullTag(), n.el.FullTag())
		}
		if seen[k.name] = true; r > rank {
			last, rank = k.el.FullTag(), r
		}
	}
	for _, need := range needed[n.name] {
		if n.name == "Enumeration" && !isEnumeration(n) {
			break
		}
		if !slices.ContainsFunc(n.kids, func(k *node) bool { return slices.Contains(need, k.name) }) {
			p.add(ruleSequence, n, "%q holds no %s, and the schema wants one at least", n.el.FullTag(), need[0])
		}
	}
}

// held reports what annotations, metadata and signatures must not hold themselves; what
// stands in their content is theirs.
func (p *parser) held(n *node) {
	if n.name == "Annotation" {
		if len(n.kids) > 1 {
			p.add(ruleSequence, n, "the annotation holds %d elements, and the schema wants one at most", len(n.kids))
		}
		return
	}
	for _, k := range n.kids {
		if k.name != "Content" && (k.name != "Signature" || n.name != "MetaData") {
			p.unknown(k)
		}
	}
}

// stray is text that stands directly in an element.
type stray struct {
	within int // the element, by its place in the document
	line   int
	text   string
}

// texts reports text in elements of the standard, which hold elements only: the first in
// each. That of annotations and metadata is theirs, and values of arrays may be texts.
func (p *parser) texts(root *node, list []stray) {
	if len(list) == 0 {
		return
	}
	elements := []*node{}
	var walk func(n *node)
	walk = func(n *node) {
		elements = append(elements, n)
		for _, k := range n.kids {
			walk(k)
		}
	}
	walk(root)
	for i, s := range list {
		n := elements[s.within]
		if i > 0 && list[i-1].within == s.within || n.theirs() || n.name == "Value" {
			continue
		}
		report(p.l, ruleSequence, Place{p.file, n.path(), s.line}, "the text %q in %q has no meaning: the element holds none", shortened(s.text), n.el.FullTag())
	}
}

// theirs reports whether an element is not of the standard, or holds or lies in what is not.
func (n *node) theirs() bool {
	for ; n != nil; n = n.parent {
		if !ours(n.uri) || foreignContent(n.name) {
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
func isEnumeration(n *node) bool {
	return n.name == "Enumeration" && n.parent != nil && n.parent.name == "Enumerations"
}

// empty reports whether an element is one that holds no others, and that no reader looks
// into.
func empty(n *node) bool {
	switch n.name {
	case "MapEntry", "Item", "BaseUnit", "Dimension", "Note", "Clock":
		return true
	}
	_, _, isType := typeByName(n.name)
	return strings.HasSuffix(n.name, "Geometry") || isType && n.uri == nsSSC && !isEnumeration(n)
}

// needed are the elements of which the schemas want one at least, by that in which they
// stand (ssp 7): one of each group, the first of which names it.
var needed = map[string][][]string{
	"Connectors": {{"Connector"}}, "Elements": {{"Component", "System", "SignalDictionaryReference"}}, "Connections": {{"Connection"}},
	"SignalDictionaries": {{"SignalDictionary"}}, "GraphicalElements": {{"Note"}}, "Units": {{"Unit"}}, "Enumerations": {{"Enumeration"}},
	"ParameterBindings": {{"ParameterBinding"}}, "Annotations": {{"Annotation"}}, "Enumeration": {{"Item"}}, "ParameterSet": {{"Parameters"}},
	"BooleanMappingTransformation": {{"MapEntry"}}, "IntegerMappingTransformation": {{"MapEntry"}}, "EnumerationMappingTransformation": {{"MapEntry"}},
}

// attributeForm is what an attribute must look like.
type attributeForm struct {
	key      string
	required bool
	is       func(text string) bool // nil: anything
	what     string
}

// attributeForms are those of attributes without effect on a run, by element.
var attributeForms = func() map[string][]attributeForm {
	number := func(key string, required bool) attributeForm {
		return attributeForm{key, required, func(text string) bool { _, err := parseReal(text); return err == nil }, "number"}
	}
	boolean := func(key string) attributeForm {
		return attributeForm{key, false, func(text string) bool { _, err := parseBoolean(text); return err == nil }, `"true" or "false"`}
	}
	oneOf := func(key string, required bool, list ...string) attributeForm {
		return attributeForm{key, required, func(text string) bool { return slices.Contains(list, text) }, "one of " + strings.Join(list, ", ")}
	}
	list := func(key string) attributeForm {
		return attributeForm{key, true, func(text string) bool {
			return !slices.ContainsFunc(strings.Fields(text), func(one string) bool { _, err := parseReal(one); return err != nil })
		}, "list of numbers"}
	}
	box := []attributeForm{number("x1", true), number("y1", true), number("x2", true), number("y2", true)}
	top := []attributeForm{{"generationDateAndTime", false, isDate, "date and time such as 2026-01-31T12:00:00Z"}}
	kind := attributeForm{"type", true, nil, ""}
	return map[string][]attributeForm{
		"SystemStructureDescription": top, "ParameterMapping": top, "SignalDictionary": top,
		"ParameterSet":    append([]attributeForm{{"name", true, nil, ""}}, top...),
		"ElementGeometry": append([]attributeForm{number("rotation", false), number("iconRotation", false), boolean("iconFlip"), boolean("iconFixedAspectRatio")}, box...),
		"SystemGeometry":  box, "Note": append([]attributeForm{{"text", true, nil, ""}}, box...),
		"ConnectorGeometry":  {number("x", true), number("y", true), number("systemInnerX", false), number("systemInnerY", false)},
		"ConnectionGeometry": {list("pointsX"), list("pointsY")},
		"MetaData":           {kind, oneOf("kind", true, "general", "quality"), oneOf("sourceBase", false, "file", "resource")},
		"Signature":          {kind, oneOf("role", true, "authenticity", "suitability"), oneOf("sourceBase", false, "file", "resource", "metaData")},
	}
}()

// identifiers are those of XML (NCName).
var identifiers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}\p{M}_.·-]*$`) })

// isDate reports whether a text is a dateTime of XML Schema.
func isDate(text string) bool {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// written reports attributes without effect on a run that are missing or not of their
// form, and identifiers that stand twice.
func (p *parser) written(n *node) {
	if id, ok := n.attr("id"); ok {
		switch {
		case !identifiers().MatchString(strings.TrimSpace(id)):
			p.add(ruleSequence, n, "the id %q is no identifier: letters, digits, _ and - that begin with a letter", id)
		case !p.once("id " + id):
			p.add(ruleSequence, n, "the id %q stands twice in this file", id)
		}
	}
	for _, a := range attributeForms[n.name] {
		switch text, ok := n.attr(a.key); {
		case !ok && a.required:
			p.add(ruleSequence, n, "the attribute %q is missing", a.key)
		case ok && a.is != nil && !a.is(text):
			p.add(ruleSequence, n, "%s=%q is no %s", a.key, text, a.what)
		}
	}
	if n.name == "ConnectionGeometry" {
		if x, y := len(strings.Fields(n.str("pointsX", ""))), len(strings.Fields(n.str("pointsY", ""))); x != y {
			p.add(ruleSequence, n, "pointsX has %d numbers and pointsY %d, and each point has one of both", x, y)
		}
	}
	if text, ok := n.attr("value"); ok && n.name == "Binary" && n.uri == nsSSV {
		if _, err := hex.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			p.add(ruleSequence, n, "value=%q is no hexadecimal text", text)
		}
	}
}
