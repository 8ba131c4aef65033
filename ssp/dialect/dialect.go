// Package dialect reads what other tools add to SSP: annotations of OSP (libcosim, Vico),
// OMSimulator and OpenMCx, and the system structure of OSP. The dialects are passed to ssp.Open:
//
//	p, err := ssp.Open("system.ssp", &findings, dialect.All()...)
//
// A program adds its own dialects, of type ssp.Dialect, to this list. Prepare writes annotations
// that other tools require.
//
// # The system structure of OSP
//
// ssp.Open reads OspSystemStructure.xml into the same kind of network. Simulators become
// components, a stepSize a step hint, and InitialValues settings, of variables that must exist.
// The FMUs determine which end of a connection is the source. Numbers pass unchanged, as in
// OSP; a warning reports different units.
//
// A source proxyfmu://localhost?file=a.fmu, in an SSP too, demands a separate process, like
// isolate="true" at a component.
//
// Groups of variables are in MODEL_OspModelDescription.xml beside the FMU or the document,
// where MODEL is the modelName of the FMU or the name of its file. Connections of groups
// connect their variables in order, and groups within them by kind if that is unique, else in
// order. Versions 0.1, 1.0.0 and 1.0.1 are recognized by their namespaces; others are read like
// 1.0.1, with a finding. The axis of a variable has no effect, but connected variables with
// different axes cause a warning. Errors in a model description are warnings, unless a
// connection of groups needs the faulty part.
//
// A LinearTransformation becomes part of its connections. A Sum or VectorSum becomes an
// ssp.Function: a subsystem without states and delay, whose outputs are recorded.
//
// Connections with the same powerBond form a bond. The effort is recognized by the units, else
// by the kind of group (Force, Torque, Pressure, Voltage). The algorithm fixedStep is explicit;
// ecco is ecco with EccoConfiguration as parameters: RelativeTolerance is r of sadjina (14),
// AbsoluteTolerance is r E0.
package dialect

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// All returns the dialects of this package, in order of precedence (ssp 47).
func All() []ssp.Dialect {
	return []ssp.Dialect{
		{Name: "OSP", New: func() ssp.Annotations { return &osp{} }, Source: proxied, Prefixes: map[string]string{"osp": nsOSP},
			Format: &ssp.Format{File: ospDocumentName, Root: ospRoot, Read: readStructure},
			Rules:  []*diag.Rule{ruleOSP, ruleOSPPart, ruleOSPModel, ruleOSPUnit, ruleOSPName}},
		{Name: "OMSimulator", New: func() ssp.Annotations { return &omSimulator{} }, Prefixes: prefixOMS},
		{Name: "OpenMCx", New: func() ssp.Annotations { return &openMCx{} }},
	}
}

// step asks for a macro step in an attribute of another tool.
func step(p *ssp.Reader, n *ssp.Node, key, source string) (out []ssp.Asked) {
	for _, h := range hint(p, n, key, source) {
		out = append(out, ssp.Asked{Name: ssp.StepSize, Text: ssp.Number(h.Value), From: h.Source, Place: h.Place})
	}
	return out
}

// hint reads a step size from an attribute of another tool. It reports and ignores a value that is
// not above 0.
func hint(p *ssp.Reader, n *ssp.Node, key, source string) []ssp.StepHint {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := xmltree.ParseReal(text)
	if err != nil || v <= 0 {
		p.Add(ssp.RuleForeignPart, n, "%s=%q is not a step size and is ignored", key, text)
		return nil
	}
	return []ssp.StepHint{{Value: v, Source: source + " " + key, Place: p.Place(n)}}
}
