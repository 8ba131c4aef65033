package ssp

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// canonical are the prefixes that new elements get. Some tools know no others (ssp 6).
var canonical = map[string]string{nsSSD: "ssd", nsSSC: "ssc", nsSSV: "ssv", nsSSM: "ssm", nsSSB: "ssb", nsOSP: "osp", nsOMS: "oms", nsOwn: "ms"}

// prefixesOf lists what a new document declares beside its own namespace.
var prefixesOf = map[string][]string{nsSSD: {nsSSC, nsSSV, nsSSM}, nsSSV: {nsSSC}, nsSSM: {nsSSC}}

// commonElements are those that belong to the namespace of the common parts, where
// older files have them in that of the SSD (ssp 42).
var commonElements = []string{"Annotation", "Unit", "BaseUnit", "Enumeration", "Item", "Real", "Integer", "Boolean", "String", "Binary", "Dimension", "MapEntry",
	"Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64",
	"LinearTransformation", "BooleanMappingTransformation", "IntegerMappingTransformation", "EnumerationMappingTransformation", "MetaData", "Signature"}

// sequence is the order of the children that the schemas want (ssp 7), those of
// version 2.0 included.
var sequence = func() map[string][]string {
	types := []string{"Real", "Float64", "Float32", "Integer", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64",
		"Boolean", "String", "Enumeration", "Binary"}
	transformations := []string{"LinearTransformation", "BooleanMappingTransformation", "IntegerMappingTransformation", "EnumerationMappingTransformation"}
	component := []string{"Connectors", "ElementGeometry", "ParameterBindings", "MetaData", "Signature", "Annotations"}
	return map[string][]string{
		nsSSD + " SystemStructureDescription": {"System", "Enumerations", "Units", "DefaultExperiment", "MetaData", "Signature", "Annotations"},
		nsSSD + " System": {"Connectors", "ElementGeometry", "ParameterBindings", "MetaData", "Signature", "Elements", "Connections",
			"SignalDictionaries", "SystemGeometry", "GraphicalElements", "Annotations"},
		nsSSD + " Component":                 component,
		nsSSD + " SignalDictionaryReference": component,
		// The type Clock and the reference to a clock are told apart by their namespaces only.
		nsSSD + " Connector":        append(slices.Clone(types), "Dimension", "Clock", "ConnectorGeometry", "Annotations"),
		nsSSD + " Connection":       append(slices.Clone(transformations), "ConnectionGeometry", "Annotations"),
		nsSSD + " ParameterBinding": {"ParameterValues", "ParameterMapping", "MetaData", "Signature", "Annotations"},
		nsSSC + " Unit":             {"BaseUnit", "Annotations"},
		nsSSC + " Enumeration":      {"Item", "Annotations"},
		nsSSV + " ParameterSet":     {"Parameters", "Enumerations", "Units", "MetaData", "Signature", "Annotations"},
		nsSSV + " Parameter":        append(slices.Clone(types), "Dimension", "Annotations"),
		nsSSM + " ParameterMapping": {"MappingEntry", "MetaData", "Signature", "Annotations"},
		nsSSM + " MappingEntry":     append(slices.Clone(transformations), "Annotations"),
		nsSSB + " SignalDictionary": {"DictionaryEntry", "Enumerations", "Units", "MetaData", "Signature", "Annotations"},
		nsSSB + " DictionaryEntry":  append(slices.Clone(types), "Dimension", "Annotations"),
	}
}()

// neverEmpty are the lists that the schemas want to have an entry (ssp 7), and that may
// be left out.
var neverEmpty = []string{"Connectors", "Elements", "Connections", "SignalDictionaries", "GraphicalElements", "Units", "Enumerations", "ParameterBindings", "Annotations"}

// rankOf gives the place of an element in a sequence, -1 if it is not in it.
func rankOf(names []string, name, uri string) int {
	switch r := slices.Index(names, name); {
	case !ours(uri):
		return -1
	case name == "Clock" && uri == nsSSC:
		return 0 // the type
	default:
		return r
	}
}

// foreignContent reports whether what an element of this name holds is not of SSP.
func foreignContent(name string) bool {
	return name == "Annotation" || name == "MetaData" || name == "Signature"
}

// opaque reports whether the content of an element is not ours to arrange.
func opaque(el *etree.Element) bool { return foreignContent(el.Tag) || !ours(uriOf(el)) }

func uriOf(el *etree.Element) string { return el.NamespaceURI() }

// attrOf gives an attribute without namespace, nil if it is not there. It stays
// part of the element.
func attrOf(el *etree.Element, key string) *etree.Attr {
	for i := range el.Attr {
		if el.Attr[i].Space == "" && el.Attr[i].Key == key {
			return &el.Attr[i]
		}
	}
	return nil
}

func valueOf(el *etree.Element, key string) string {
	if a := attrOf(el, key); a != nil {
		return a.Value
	}
	return ""
}

func removeAttr(el *etree.Element, key string) {
	el.Attr = slices.DeleteFunc(el.Attr, func(a etree.Attr) bool { return a.Space == "" && a.Key == key })
}

// badRune finds a character that XML cannot hold, not even escaped.
func badRune(s string) (rune, bool) {
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

// resolve gives the namespace that a prefix stands for at an element, "" if none.
func resolve(at *etree.Element, prefix string) string {
	if prefix == "xml" {
		return "http://www.w3.org/XML/1998/namespace"
	}
	for ; at != nil; at = at.Parent() {
		for _, a := range at.Attr {
			if p, ok := declaration(a); ok && p == prefix {
				return a.Value
			}
		}
	}
	return ""
}

// declaration reports whether an attribute declares a namespace, and for which prefix.
func declaration(a etree.Attr) (prefix string, ok bool) {
	if a.Space == "xmlns" {
		return a.Key, true
	}
	return "", a.Space == "" && a.Key == "xmlns"
}

// prefix gives the prefix of a namespace for an element that is put below at. One
// that is not declared yet is declared at the root.
func (w *writer) prefix(at *etree.Element, uri string) string {
	for e := at; e != nil; e = e.Parent() {
		for _, a := range e.Attr {
			if p, ok := declaration(a); ok && a.Value == uri && resolve(at, p) == uri {
				return p
			}
		}
	}
	p := canonical[uri]
	if p == "" {
		p = "ns"
	}
	for n := 2; resolve(at, p) != "" || resolve(w.root, p) != ""; n++ {
		p = strings.TrimRight(p, "0123456789") + strconv.Itoa(n)
	}
	w.root.CreateAttr("xmlns:"+p, uri)
	return p
}

// declareInherited lets every prefix in a copied element mean what it means in the
// original.
func declareInherited(el, original *etree.Element) {
	var walk func(a, b *etree.Element)
	walk = func(a, b *etree.Element) {
		prefixes := []string{a.Space}
		for _, x := range a.Attr {
			if _, ok := declaration(x); !ok && x.Space != "" {
				prefixes = append(prefixes, x.Space)
			}
		}
		for _, p := range prefixes {
			if want := resolve(b, p); want == resolve(a, p) {
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

// repair puts right what reading tolerates: namespaces that are not those of the
// standard, or that were not declared.
func (w *writer) repair(el *etree.Element) {
	for i := range el.Attr {
		if _, ok := declaration(el.Attr[i]); ok {
			if right, wrong := aliases[el.Attr[i].Value]; wrong {
				el.Attr[i].Value = right
			}
		}
	}
	known := func(prefix string) {
		if uri := knownPrefixes[prefix]; uri != "" && resolve(el, prefix) == "" {
			w.root.CreateAttr("xmlns:"+prefix, uri)
		}
	}
	known(el.Space)
	for _, a := range slices.Clone(el.Attr) {
		if _, ok := declaration(a); !ok {
			known(a.Space)
		}
	}
	if parent := el.Parent(); uriOf(el) == nsSSD && slices.Contains(commonElements, el.Tag) && (parent == nil || !opaque(parent)) {
		el.Space = w.prefix(el, nsSSC)
	}
	for _, k := range el.ChildElements() {
		w.repair(k)
	}
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

// order puts the children into the sequence of the schemas. Comments stay before
// the element that they stand before, unknown elements behind their neighbour.
func order(el *etree.Element) {
	if opaque(el) {
		return
	}
	if names := sequence[uriOf(el)+" "+el.Tag]; names != nil {
		type group struct {
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
			if r := rankOf(names, k.Tag, uriOf(k)); r >= 0 {
				rank = r
			}
			groups = append(groups, group{rank, pending})
			pending = nil
		}
		byRank := func(a, b group) int { return a.rank - b.rank }
		if !slices.IsSortedFunc(groups, byRank) {
			slices.SortStableFunc(groups, byRank)
			tokens := make([]etree.Token, 0, len(el.Child))
			for _, g := range groups {
				tokens = append(tokens, g.tokens...)
			}
			refill(el, append(tokens, pending...))
		}
	}
	for _, k := range el.ChildElements() {
		order(k)
	}
}

// refill gives an element these children in place of its own.
func refill(el *etree.Element, tokens []etree.Token) {
	tokens = slices.Clone(tokens)
	for i := len(el.Child) - 1; i >= 0; i-- {
		el.RemoveChildAt(i)
	}
	for _, t := range tokens {
		el.AddChild(t)
	}
}

// indent lays the elements of the standard out, one a line. What is in annotations,
// metadata and signatures stays as written, unless there is no text in it at all.
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
	refill(el, all)
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

// nodesOf gives the nodes of an element, for the functions that read.
func nodesOf(el *etree.Element) *node {
	n := &node{el: el, name: el.Tag, uri: uriOf(el)}
	for _, k := range el.ChildElements() {
		kid := nodesOf(k)
		kid.parent = n
		n.kids = append(n.kids, kid)
	}
	return n
}
