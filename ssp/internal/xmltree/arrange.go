package xmltree

import (
	"cmp"
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

// URI returns the namespace of an element, the right one for a known wrong one.
func URI(el *etree.Element) string {
	uri := el.NamespaceURI()
	return cmp.Or(aliases[uri], uri)
}

// Child returns the first child of a name, nil if there is none.
func Child(parent *etree.Element, uri, name string) *etree.Element {
	for _, k := range parent.ChildElements() {
		if k.Tag == name && URI(k) == uri {
			return k
		}
	}
	return nil
}

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

// Declares reports whether an attribute declares a namespace, and its prefix.
func Declares(a etree.Attr) (prefix string, ok bool) {
	if a.Space == "xmlns" {
		return a.Key, true
	}
	return "", a.Space == "" && a.Key == "xmlns"
}

// declared reports whether a prefix is declared at an element.
func declared(el *etree.Element, prefix string) bool {
	for ; el != nil; el = el.Parent() {
		if slices.ContainsFunc(el.Attr, func(a etree.Attr) bool { p, ok := Declares(a); return ok && p == prefix }) {
			return true
		}
	}
	return false
}

// Insert adds an element to a parent, where the schemas allow it (ssp 7): after its predecessors in
// the sequence, or at the end. It gets a line of its own if the other children have one, or the
// parent if there are none. Comments stay before the element that follows them.
func Insert(parent *etree.Element, uri, name string) *etree.Element {
	at, margin, end := place(parent, uri, name), marginOf(parent), ""
	if !slices.ContainsFunc(parent.Child, visible) {
		if end = marginOf(parent.Parent()); end != "" {
			step := strings.TrimPrefix(end, cmp.Or(marginOf(parent.Parent().Parent()), "\n"))
			margin = end + cmp.Or(step, "  ")
		}
		at, parent.Child = 0, nil
	}
	if margin != "" {
		parent.InsertChildAt(at, etree.NewText(margin))
		at++
	}
	el := etree.NewElement(name)
	parent.InsertChildAt(at, el)
	if end != "" {
		parent.CreateText(end)
	}
	qualify(el, uri)
	return el
}

// Remove removes an element and the blanks before it.
func Remove(el *etree.Element) {
	parent, at := el.Parent(), el.Index()
	parent.RemoveChildAt(at)
	if at > 0 && !visible(parent.Child[at-1]) {
		parent.RemoveChildAt(at - 1)
	}
}

// place returns the index of a new child.
func place(parent *etree.Element, uri, name string) int {
	names := sequence[URI(parent)+" "+parent.Tag]
	rank, at := rankOf(names, name, uri), len(parent.Child)
	for i := at - 1; i >= 0 && rank >= 0; i-- {
		if k, ok := parent.Child[i].(*etree.Element); ok {
			if r := rankOf(names, k.Tag, URI(k)); r > rank {
				at = i
			} else if r >= 0 {
				break
			}
		}
	}
	last := at == len(parent.Child)
	for ; at > 0; at-- {
		t := parent.Child[at-1]
		if _, element := t.(*etree.Element); element || last && visible(t) {
			break
		}
	}
	return at
}

// visible reports whether a token is more than blanks.
func visible(t etree.Token) bool {
	text, ok := t.(*etree.CharData)
	return !ok || strings.TrimSpace(text.Data) != ""
}

// marginOf returns the line end and the blanks before the first child of an element, "" if it
// begins no line.
func marginOf(el *etree.Element) string {
	if el == nil || len(el.Child) == 0 || visible(el.Child[0]) {
		return ""
	}
	text := el.Child[0].(*etree.CharData).Data
	return text[max(0, strings.LastIndexByte(text, '\n')):]
}

// qualify gives an element the prefix of a namespace: that of its parent, or one that is declared
// around it, or a new one, which it declares at the root.
func qualify(el *etree.Element, uri string) {
	if el.Space = el.Parent().Space; URI(el) == uri {
		return
	}
	root := el.Parent()
	for at := root; at != nil && at.Tag != ""; at = at.Parent() {
		root = at
		for _, a := range at.Attr {
			if p, ok := Declares(a); ok {
				if el.Space = p; URI(el) == uri {
					return
				}
			}
		}
	}
	el.Space = Prefixes[uri]
	for n := 2; URI(el) != ""; n++ {
		el.Space = Prefixes[uri] + strconv.Itoa(n)
	}
	root.CreateAttr("xmlns:"+el.Space, uri)
}
