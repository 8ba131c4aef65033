package ssp

import (
	"github.com/beevik/etree"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// CheckPart checks a document that is not a system: a parameter set, parameter mapping or signal
// dictionary (ssp 4). Findings go to l and name the file. It returns the name of the root element,
// "" if the document cannot be read. known is false, after a finding, for any other kind of
// document.
func CheckPart(data []byte, file string, l *diag.List) (root string, known bool) {
	p := newParser(l, file)
	n := p.Parse(data)
	if n == nil {
		return "", false
	}
	switch n.Name {
	case "ParameterSet":
		p.parameterSet(n, false)
	case "ParameterMapping":
		p.parameterMapping(n, false)
	case "SignalDictionary":
		p.signalDictionary(n, false)
	default:
		p.Add(xmltree.RuleSchema, n, "the root element is %s; expected ParameterSet, ParameterMapping or SignalDictionary", n.El.FullTag())
		return n.Name, false
	}
	return n.Name, true
}

// ReadParameterSet reads an SSV document from memory (ssp 39). Findings go to l (nil: nowhere) and
// name the file; the error holds those of level Error.
func ReadParameterSet(data []byte, file string, l *diag.List) (*ParameterSet, error) {
	own, done := collect(l)
	defer done()
	p := newParser(own, file)
	var s *ParameterSet
	if root := p.Parse(data); root != nil {
		s = p.parameterSet(root, false)
	}
	if err := own.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// ReadTransformation returns the transformation in a Connection or MappingEntry, nil if there is
// none. Like ReadItems and ReadValue it is for writers, which compare, and reports nothing.
func ReadTransformation(el *etree.Element) *Transformation {
	t, _ := newParser(&diag.List{}, "").transformation(xmltree.Of(el))
	return t
}

// ReadItems returns the items of an Enumeration.
func ReadItems(el *etree.Element) map[string]int32 {
	return newParser(&diag.List{}, "").enumerations(&xmltree.Node{Kids: []*xmltree.Node{xmltree.Of(el)}})[0].Items
}

// ReadValue returns the value in the type element of a Parameter, with unit and enumeration. sound
// is false if the value cannot be read.
func ReadValue(el *etree.Element) (v ParameterValue, sound bool) {
	p := newParser(&diag.List{}, "")
	p.v2 = true
	t, _, _ := TypeByName(el.Tag)
	p.parameterValue(xmltree.Of(el), t, &v)
	return v, p.List.Err() == nil
}
