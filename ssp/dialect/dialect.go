// Package dialect reads what other tools add to SSP: annotations of OSP (libcosim, Vico),
// OMSimulator and OpenMCx, and the system structure of OSP. Package ssp knows none of them;
// they are handed to ssp.Open:
//
//	p, err := ssp.Open("system.ssp", &findings, dialect.All()...)
//
// A further dialect is an ssp.Dialect in such a list. Prepare writes the annotations without
// which a tool refuses a document.
//
// # The system structure of OSP
//
// OspSystemStructure.xml is a format of its own, for which ssp.Open gives the same kind of
// network. Simulators become components, their stepSize a hint as above, their
// InitialValues settings, of variables that must exist. The FMUs decide which end of a
// connection is the source. Numbers pass unchanged, as in OSP; where
// units differ a warning says so.
//
// A source proxyfmu://localhost?file=a.fmu, also in an SSP, asks for a process of its
// own, which the component gets like one with isolate="true".
//
// Groups of variables are found in MODEL_OspModelDescription.xml beside the FMU or the
// document, with MODEL the modelName of the FMU or the name of its file. Their
// variables are connected in order, groups in them by kind where that is unique, else
// in order.
// Versions 0.1, 1.0.0 and 1.0.1 are known by their namespaces, others are read like 1.0.1 with
// a note. The axis of a variable changes no connection; a warning names variables of
// different axes that are connected. Errors in a model description are warnings unless a
// connection of groups needs what they concern.
//
// A LinearTransformation is folded into the connections through it. A Sum or VectorSum
// becomes a Function: a subsystem without states, which adds no delay and whose
// outputs are recorded.
//
// Connections with the same powerBond make a bond; which output is the effort follows
// from units, else from the kind of group (Force, Torque, Pressure, Voltage). The
// algorithm fixedStep is explicit, ecco is ecco with EccoConfiguration as parameters:
// RelativeTolerance is r of sadjina (14), and AbsoluteTolerance r E0.
package dialect

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// All returns the dialects of this package, in order of precedence (ssp 47).
func All() []ssp.Dialect {
	return []ssp.Dialect{
		{Name: "OSP", New: func() ssp.Annotations { return osp{} }, Source: proxied, Prefixes: map[string]string{"osp": nsOSP},
			Format: &ssp.Format{File: ospDocumentName, Root: ospRoot, Read: readStructure},
			Rules:  []*diag.Rule{ruleOSP, ruleOSPPart, ruleOSPModel, ruleOSPUnit, ruleOSPName}},
		{Name: "OMSimulator", New: func() ssp.Annotations { return &omSimulator{} }, Prefixes: prefixOMS},
		{Name: "OpenMCx", New: func() ssp.Annotations { return &openMCx{} }},
	}
}

// hint reads a step size from an attribute of another tool. It reports and leaves out what
// is not above 0.
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
