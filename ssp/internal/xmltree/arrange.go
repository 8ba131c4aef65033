package xmltree

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// types are the elements that name the type of a connector or value, except Clock.
var types = []string{"Real", "Float64", "Float32",
	"Integer", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64",
	"Boolean", "String", "Enumeration", "Binary"}

// Transformations are the elements that change the values of a signal.
var Transformations = []string{"LinearTransformation", "BooleanMappingTransformation",
	"IntegerMappingTransformation", "EnumerationMappingTransformation"}

// commonElements are the elements of the common namespace. Older files have them in that of the SSD
// (ssp 42).
var commonElements = slices.Concat(types, Transformations,
	[]string{"Annotation", "Unit", "BaseUnit", "Item", "Dimension", "MapEntry", "MetaData", "Signature"})

// sequence is the order of children in the schemas (ssp 7), including those of version 2.0.
var sequence = func() map[string][]string {
	component := []string{"Connectors", "ElementGeometry", "ParameterBindings", "MetaData", "Signature", "Annotations"}
	return map[string][]string{
		SSD + " SystemStructureDescription": {"System", "Enumerations", "Units", "DefaultExperiment", "MetaData",
			"Signature", "Annotations"},
		SSD + " System": {"Connectors", "ElementGeometry", "ParameterBindings", "MetaData", "Signature", "Elements", "Connections",
			"SignalDictionaries", "SystemGeometry", "GraphicalElements", "Annotations"},
		SSD + " Component":                 component,
		SSD + " SignalDictionaryReference": component,
		// The type Clock and the reference to a clock differ only in their namespaces.
		SSD + " Connector":        append(slices.Clone(types), "Dimension", "Clock", "ConnectorGeometry", "Annotations"),
		SSD + " Connection":       append(slices.Clone(Transformations), "ConnectionGeometry", "Annotations"),
		SSD + " ParameterBinding": {"ParameterValues", "ParameterMapping", "MetaData", "Signature", "Annotations"},
		SSC + " Unit":             {"BaseUnit", "Annotations"},
		SSC + " Enumeration":      {"Item", "Annotations"},
		SSV + " ParameterSet":     {"Parameters", "Enumerations", "Units", "MetaData", "Signature", "Annotations"},
		SSV + " Parameter":        append(slices.Clone(types), "Dimension", "Annotations"),
		SSM + " ParameterMapping": {"MappingEntry", "MetaData", "Signature", "Annotations"},
		SSM + " MappingEntry":     append(slices.Clone(Transformations), "Annotations"),
		SSB + " SignalDictionary": {"DictionaryEntry", "Enumerations", "Units", "MetaData", "Signature", "Annotations"},
		SSB + " DictionaryEntry":  append(slices.Clone(types), "Dimension", "Annotations"),
	}
}()

// neverEmpty are optional lists that must have an entry (ssp 7).
var neverEmpty = []string{"Connectors", "Elements", "Connections", "SignalDictionaries", "GraphicalElements",
	"Units", "Enumerations", "ParameterBindings", "Annotations"}

// rankOf returns the index of an element in a sequence, -1 if it is not in it.
func rankOf(names []string, name, uri string) int {
	switch r := slices.Index(names, name); {
	case !Standard(uri):
		return -1
	case name == "Clock" && uri == SSC:
		return 0 // the type
	default:
		return r
	}
}

// foreignContent reports whether the content of an element is not part of SSP.
func foreignContent(name string) bool {
	return name == "Annotation" || name == "MetaData" || name == "Signature"
}

// opaque reports whether the content of an element must not be rearranged.
func opaque(el *etree.Element) bool { return foreignContent(el.Tag) || !Standard(URI(el)) }

// URI returns the namespace of an element.
func URI(el *etree.Element) string { return el.NamespaceURI() }

// Attr returns an attribute without namespace, nil if it is absent. It points into the element.
func Attr(el *etree.Element, key string) *etree.Attr {
	for i := range el.Attr {
		if el.Attr[i].Space == "" && el.Attr[i].Key == key {
			return &el.Attr[i]
		}
	}
	return nil
}

// Value returns an attribute without namespace, "" if it is absent.
func Value(el *etree.Element, key string) string {
	if a := Attr(el, key); a != nil {
		return a.Value
	}
	return ""
}

// RemoveAttr removes an attribute without namespace.
func RemoveAttr(el *etree.Element, key string) {
	el.Attr = slices.DeleteFunc(el.Attr, func(a etree.Attr) bool { return a.Space == "" && a.Key == key })
}

// BadRune finds a character that XML cannot represent, not even escaped.
func BadRune(s string) (rune, bool) {
	for i, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
		case r < ' ' || r == 0xFFFE || r == 0xFFFF:
			return r, true
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return r, true
			}
		}
	}
	return 0, false
}

// Resolve returns the namespace of a prefix at an element, "" if none.
func Resolve(at *etree.Element, prefix string) string {
	if prefix == "xml" {
		return "http://www.w3.org/XML/1998/namespace"
	}
	for ; at != nil; at = at.Parent() {
		for _, a := range at.Attr {
			if p, ok := Declaration(a); ok && p == prefix {
				return a.Value
			}
		}
	}
	return ""
}

// Declaration reports whether an attribute declares a namespace, and its prefix.
func Declaration(a etree.Attr) (prefix string, ok bool) {
	if a.Space == "xmlns" {
		return a.Key, true
	}
	return "", a.Space == "" && a.Key == "xmlns"
}

// Prefix returns the prefix of a namespace for a new element below at. It declares a missing prefix
// at the root.
func Prefix(at *etree.Element, uri string) string {
	for e := at; e != nil; e = e.Parent() {
		for _, a := range e.Attr {
			if p, ok := Declaration(a); ok && a.Value == uri && Resolve(at, p) == uri {
				return p
			}
		}
	}
	p := Prefixes[uri]
	if p == "" {
		p = "ns"
	}
	for n := 2; Resolve(at, p) != ""; n++ {
		p = strings.TrimRight(p, "0123456789") + strconv.Itoa(n)
	}
	top(at).CreateAttr("xmlns:"+p, uri)
	return p
}

// top returns the root element of the document of an element.
func top(el *etree.Element) *etree.Element {
	for p := el.Parent(); p != nil && p.Tag != ""; p = el.Parent() {
		el = p
	}
	return el
}

// DeclareInherited declares namespaces in a copied element so that all prefixes mean the same as in
// the original.
func DeclareInherited(el, original *etree.Element) {
	var walk func(a, b *etree.Element)
	walk = func(a, b *etree.Element) {
		prefixes := []string{a.Space}
		for _, x := range a.Attr {
			if _, ok := Declaration(x); !ok && x.Space != "" {
				prefixes = append(prefixes, x.Space)
			}
		}
		for _, p := range prefixes {
			if want := Resolve(b, p); want == Resolve(a, p) {
				continue
			} else if p == "" {
				el.CreateAttr("xmlns", want)
			} else if want != "" {
				el.CreateAttr("xmlns:"+p, want)
			}
		}
		kids := b.ChildElements()
		for i, k := range a.ChildElements() {
			walk(k, kids[i])
		}
	}
	walk(el, original)
}

// Repair corrects namespaces that reading tolerates.
func Repair(el *etree.Element) {
	for i := range el.Attr {
		if _, ok := Declaration(el.Attr[i]); ok {
			if right, wrong := aliases[el.Attr[i].Value]; wrong {
				el.Attr[i].Value = right
			}
		}
	}
	if parent := el.Parent(); URI(el) == SSD && slices.Contains(commonElements, el.Tag) && (parent == nil || !opaque(parent)) {
		el.Space = Prefix(el, SSC)
	}
	for _, k := range el.ChildElements() {
		Repair(k)
	}
}

// Arrange prepares a tree for writing: the order of the schemas, no empty lists, indentation (ssp
// 7).
func Arrange(root *etree.Element) {
	prune(root)
	order(root)
	indent(root, 0)
}

// prune removes lists without an entry.
func prune(el *etree.Element) {
	for _, k := range el.ChildElements() {
		if opaque(k) {
			continue
		}
		prune(k)
		if len(k.ChildElements()) == 0 && slices.Contains(neverEmpty, k.Tag) {
			el.RemoveChild(k)
		}
	}
}

// order sorts the children of an element and of those in it into the sequence of the schemas.
// A comment stays before the element that follows it, an unknown element after the one before.
func order(el *etree.Element) {
	if opaque(el) {
		return
	}
	if names := sequence[URI(el)+" "+el.Tag]; names != nil {
		orderChildren(el, names)
	}
	for _, k := range el.ChildElements() {
		order(k)
	}
}

func orderChildren(el *etree.Element, names []string) {
	type group struct { // an element and what is before it
		rank   int
		tokens []etree.Token
	}
	var groups []group
	var pending []etree.Token
	rank := -1
	for _, t := range el.Child {
		pending = append(pending, t)
		k, ok := t.(*etree.Element)
		if !ok {
			continue
		}
		if r := rankOf(names, k.Tag, URI(k)); r >= 0 {
			rank = r
		}
		groups = append(groups, group{rank, pending})
		pending = nil
	}
	byRank := func(a, b group) int { return a.rank - b.rank }
	if slices.IsSortedFunc(groups, byRank) {
		return
	}
	slices.SortStableFunc(groups, byRank)
	tokens := make([]etree.Token, 0, len(el.Child))
	for _, g := range groups {
		tokens = append(tokens, g.tokens...)
	}
	Refill(el, append(tokens, pending...))
}

// Refill replaces the children of an element.
func Refill(el *etree.Element, tokens []etree.Token) {
	tokens = slices.Clone(tokens)
	for i := len(el.Child) - 1; i >= 0; i-- {
		el.RemoveChildAt(i)
	}
	for _, t := range tokens {
		el.AddChild(t)
	}
}

// indent puts each element of the standard on its own line. Annotations, metadata and signatures
// with text stay as written.
func indent(el *etree.Element, depth int) {
	if opaque(el) && hasText(el) {
		return
	}
	tokens := slices.DeleteFunc(slices.Clone(el.Child), func(t etree.Token) bool {
		c, ok := t.(*etree.CharData)
		return ok && strings.TrimSpace(c.Data) == ""
	})
	if slices.ContainsFunc(tokens, func(t etree.Token) bool { _, ok := t.(*etree.CharData); return ok }) {
		return
	}
	var all []etree.Token
	for _, t := range tokens {
		all = append(all, etree.NewText("\n"+strings.Repeat("  ", depth+1)), t)
	}
	if len(tokens) > 0 {
		all = append(all, etree.NewText("\n"+strings.Repeat("  ", depth)))
	}
	Refill(el, all)
	for _, k := range el.ChildElements() {
		indent(k, depth+1)
	}
}

func hasText(el *etree.Element) bool {
	for _, t := range el.Child {
		switch t := t.(type) {
		case *etree.CharData:
			return true
		case *etree.Element:
			if hasText(t) {
				return true
			}
		}
	}
	return false
}
