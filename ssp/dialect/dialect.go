// Package dialect reads what other tools add to SSP: annotations of OSP (libcosim, Vico),
// OMSimulator and OpenMCx. Package ssp knows none of them; they are handed to ssp.Open:
//
//	p, err := ssp.Open("system.ssp", &findings, dialect.All()...)
//
// A further dialect is a type with the methods of ssp.Annotations and a row in such a list.
// Prepare writes the annotations without which a tool refuses a document.
package dialect

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// All returns the dialects of this package, in order of precedence (ssp 47).
func All() []ssp.Dialect {
	return []ssp.Dialect{
		{Name: "OSP", New: func() ssp.Annotations { return osp{} }, Format: &ssp.Format{File: ospDocumentName, Root: ospRoot, Read: readStructure},
			Source: proxied, Prefixes: map[string]string{"osp": nsOSP}, Rules: []*diag.Rule{ruleOSP, ruleOSPPart, ruleOSPModel, ruleOSPUnit, ruleOSPName}},
		{Name: "OMSimulator", New: func() ssp.Annotations { return &omSimulator{} }, Prefixes: prefixOMS},
		{Name: "OpenMCx", New: func() ssp.Annotations { return &openMCx{} }},
	}
}

// hint reads a step size from an attribute of another tool. What is no positive
// number is told and left out.
func hint(p *ssp.Reader, n *ssp.Node, key, source string) []ssp.StepHint {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := xmltree.ParseReal(text)
	if err != nil || v <= 0 {
		p.Add(ssp.RuleForeignPart, n, "%s=%q is no step size and is left out", key, text)
		return nil
	}
	return []ssp.StepHint{{Value: v, Source: source + " " + key, Place: p.Place(n)}}
}
