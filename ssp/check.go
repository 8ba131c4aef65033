package ssp

import (
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
