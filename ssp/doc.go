// Package ssp reads system structures of the standard SSP (1.0 and 2.0), and flattens them
// to a network of FMUs: components, connections from FMU output to FMU input, and values to
// set before the run.
//
//	var findings diag.List
//	p, err := ssp.Open("system.ssp", &findings, dialect.All()...) // or a folder, or a .ssd
//	if err != nil { ... }
//	defer p.Close()
//	if err := p.CheckSources(&findings); err != nil { ... } // does every FMU exist?
//	for _, c := range p.Components() { ... open c.Source ... }
//	network, err := p.Flatten(resolver, &findings)
//
// The package does not read FMUs: a Resolver returns their variables. A Document holds a file
// as written; Flatten computes everything that follows from the documents.
//
// Package edit writes and packs documents, package graph draws systems.
//
// The rules and their levels are data: see rules.go. Unmatched names of parameters and empty
// mapping entries are information, and errors in strict mode.
//
// # Names
//
// Results, tables, flags and settings identify a variable by a path: the names of the systems
// around it, its component and itself, joined with dots. Names may contain dots, so a path
// may be ambiguous: a variable of component "a.b" and one of component "b" in system "a", or
// "p" of "S.C" and "C.p" of "S" (ssp 11). The paths of such components have each name in
// quotes, 'a.b'.p and 'a'.'b'.p, with \ before \ and ' in them, and a warning reports it.
// Every component and every connector of a system ('a'.'k') can be addressed in quotes, even
// if the joined name is unambiguous; an ambiguous joined name is refused. In documents names
// are always joined, and a binding gives its value to all variables that match (ssp 35).
//
// # Units and transformations
//
// At each connection the unit is converted first, then the transformation applied (ssp 30).
//
//   - A connector of a system without a unit has the unit of its source. After a linear
//     transformation into it the unit is unknown, and a warning reports it.
//   - An undefined unit of a connector is ignored. An unknown unit is not converted.
//   - The unit of a value in a parameter set is looked up in the set, then in the SSD that
//     binds it, then in the FMU. If it must be converted and is not defined there, the value
//     is refused. An undefined "[m]" is read as "m".
//   - A value without a unit is in the unit of its target: the FMU variable, or the connector
//     of a system. Where another system stands for a component, it is in the unit of the
//     connector of the component in the document with the binding; for bindings of the other
//     document, in that of its own system. A warning reports where these units differ.
//   - If the unit of a connector differs from that of the FMU variable, values are converted
//     between the two, in both directions (ssp 31).
//
// # Values
//
// Bindings apply from the innermost level outwards, each level in document order, and the
// last value wins: the outer level overrides the inner, a later binding an earlier one
// (ssp 36). A name that occurs twice in a set or mapping is an error only if two different
// values reach one variable, else a warning.
//
// A value bound to a connector of a system follows its connections inwards, and overrides
// values that are bound to the variables directly (ssp 37). Of several connectors on one path
// the outermost counts. Values of Package.Give override all others. Network.Inputs lists the
// FMU inputs that each input of the outermost system feeds.
//
// Numeric types of version 2.0 count as Real and Integer; a value must be in the range of its variable, and
// be exact as a Real if that is one.
//
// A parameter that is connected to a calculated parameter takes its value during the
// initialization (ssp 28). In all other connections the targets are inputs, and the sources
// outputs and calculated parameters.
//
// # Systems in separate files
//
// A component may be another system: an .ssd, an .ssp (its default variant, or the one
// after #), a folder with an unpacked one, or a system of the same document by its id
// (source="#id"). It acts like a system in the place of the component (ssp 14, 15): names
// continue through it (component.element.variable), the bindings of the component apply after
// its own, and it can use dictionaries of the systems around it. Units, enumerations and
// file references are those of its own document. If a connector of the component differs in
// unit from that of the system, values are converted, as at an FMU. The DefaultExperiment of
// such a document has no effect, which is reported.
//
// Parameter files may be inside a component (sourceBase="component"): in the archive of an
// FMU or SSP, or in the folder of an SSD.
//
// # Signal dictionaries
//
// All references to a dictionary share one signal for each entry (ssp 20). One connection
// writes it, to a connector of kind input or inout; any number read it, from connectors of
// kind output or inout. A connector of a reference without type or unit has those of the
// entry; if the units differ, values are converted. A value that is bound to a connector of
// a reference is a value of the signal.
//
// # Settings of a run
//
// Annotations ask for settings of the run (Asked), by the names of flags of macrostep run. Those
// of macrostep have the type com.github.macrostep and are read by a Dialect of package
// master/simulate; docs/ssp-settings.md describes them.
//
// # Other tools
//
// A Dialect adds what one tool uses: annotations, a format of its own in place of an SSD,
// URIs of FMUs. Package dialect has those of OSP, OMSimulator and OpenMCx; a program may pass
// its own to Open. Settings of other tools are used where no annotation of macrostep gives
// them. Each setting that is used or ignored is reported (rules SD21…; ssp 42–47).
//
// # What FMI 2.0 does not have
//
// Connections of arrays, of Binary and of Clock, and array values, need FMUs of FMI 3.0 (see ArraySet). An FMU
// with a Binary as three Integers by the convention of OSMP (name.base.lo, name.base.hi,
// name.size) is connected by these. They are an address in the memory of the process, so both
// FMUs must run in one process. A connector may refer to a clock; a warning reports that this
// has no effect. Connectors of kind local, constant and structuralParameter pass signals
// between systems. FMU variables cannot have these causalities, except local, which FMI 2.0
// does not allow to be connected.
package ssp
