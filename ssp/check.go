package ssp

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// CheckPart judges a document that is no system by itself: a parameter set, a
// parameter mapping or a signal dictionary (ssp 4). The name is shown in findings,
// which go to l. It gives the name of the root element, "" if the document cannot
// be read; known tells whether it is one of these kinds, which is an error else.
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
		p.Add(xmltree.RuleSchema, n, "the root element is %s; parameter sets (ParameterSet), mappings (ParameterMapping) and signal dictionaries (SignalDictionary) stand by themselves", n.El.FullTag())
		return n.Name, false
	}
	return n.Name, true
}
