// Package ssp reads system structures of the standard SSP (1.0 and 2.0), and flattens them
// to a plain network of FMUs: components, connections from FMU output to FMU input, and
// values to set before the run.
//
//	var findings diag.List
//	p, err := ssp.Open("system.ssp", &findings, dialect.All()...) // or a folder, or a .ssd
//	if err != nil { ... }
//	defer p.Close()
//	if err := p.CheckSources(&findings); err != nil { ... } // is every FMU there?
//	for _, c := range p.Components() { ... open c.Source ... }
//	network, err := p.Flatten(resolver, &findings)
//
// The package knows nothing of FMUs: what it must know of their variables it
// asks a Resolver. Documents are kept as written (Document); all that follows
// from them is computed by Flatten.
//
// Package edit writes documents and packs them; package graph draws.
//
// What is reported, and how heavily, is data: see rules.go. Errors are what
// applies but cannot be carried out. Names of parameters that match nothing and
// empty entries of mappings are information, an error in strict mode.
//
// # Names
//
// Outside of the documents, in results, tables, flags and settings, a variable goes by the
// names of the systems around it, its component and itself, joined with dots. Names may have
// dots of their own, so that this can mean several things: a variable of component "a.b"
// and one of component "b" in system "a", or "p" of "S.C" and "C.p" of "S" (ssp 11). The
// components of which that is true are called by all their names in quotes, 'a.b'.p and
// 'a'.'b'.p, \ and ' within them behind a \, and a warning says so. Every component and
// every connector of a system ('a'.'k') can be called so, also where the joined name is
// clear; a joined name that means several things is refused. In documents names are always
// joined: a binding gives its value to all that they mean (ssp 35).
//
// # How values and signals change on their way
//
// At each connection the unit is converted first and then the transformation applied (ssp
// 30). A connector of a system without a unit has the unit of what feeds it, but behind a
// linear transformation into it the unit is unknown, as a warning says; the unit of a
// connector that is not defined counts as none; an unknown unit is not converted. The unit
// of a value in a parameter set is looked up in the set, in the SSD that binds it and in
// the FMU that gets it, in this order; where it has to be converted and none of them knows
// it, the value is refused; "[m]", if it is defined nowhere, counts as "m". A value
// without a unit is in that of what it is given to: of the FMU variable, or of the
// connector of a system; where another system stands for a component, of the connector
// that the component has in the binding document, and within the other document of that of
// its system. A warning says so where they differ. Where the unit of a connector differs
// from that of the FMU variable, the FMU is right about its value, and the connector is a
// stage of conversion of its own (ssp 31).
//
// Values come from parameter bindings, the innermost level first, in document
// order; the last one wins, so the outer level beats the inner and a later
// binding an earlier one (ssp 36). A name that one set, or one mapping, has twice is an
// error only where two different values reach one variable, else a warning. A value bound to a connector of a system
// goes inward along its connections, and there beats what is bound directly
// (ssp 37); of several on one way that farthest upstream counts. Package.Give binds
// values that beat all of the documents, and Network.Inputs lists what the inputs of the
// outermost system lead to, for those who give them values over time. Numeric types of version 2.0 count as Real and Integer; an integer that
// does not fit into 32 bits can be given to a Real only.
//
// A parameter of an FMU that is connected to a calculated parameter of another takes its
// value during the initialisation (ssp 28); in all other connections FMI 2.0 has inputs
// as targets, and outputs and calculated parameters as sources.
//
// # Systems in files of their own
//
// A component may be another system: an .ssd, an .ssp (its default variant, or the one
// after #), a folder with an unpacked one, or a system of the same document by its id
// (source="#id"). It acts as if that system stood in its place (ssp 14, 15): names go on
// through it (component.element.variable), the bindings of the component come after its
// own, and dictionaries of the systems around it are found. Units, enumerations and
// references to files are those of the document in which they stand. Where a connector
// of the component differs in unit from that of the system, it is a stage of conversion,
// as at an FMU. The DefaultExperiment of such a document has no effect, which is reported.
//
// Files may lie inside a component (sourceBase="component"): in the archive of an FMU or
// SSP, or beside an SSD.
//
// # Signal dictionaries
//
// All references to a dictionary share one signal for each entry (ssp 20): one connection
// writes it, at a connector of kind input or inout, any number read it, at one of kind
// output or inout. A connector of a reference without type or unit has those of the
// entry; a unit that differs is a stage of conversion. A value that is bound to a
// connector of a reference is that of the signal.
//
// # Settings of a run
//
// They stand in an annotation of type com.github.macrostep at the DefaultExperiment and at
// components, which is read strictly: an unknown version, attribute or element is an
// error. There is one for every flag of macrostep run but those that belong to one call of
// the program. Open takes the dialects of other tools (package dialect has those of OSP,
// OMSimulator and OpenMCx): what their annotations say counts where ours leaves it open, and
// each setting taken or left out is reported (rules SD21…; ssp 42–47). docs/ssp-settings.md has every element and attribute, with an example, and what
// beats what; OwnSettings holds what was found.
//
// # Other tools
//
// A Dialect is what one tool adds: annotations, a format of its own in place of an SSD,
// URIs of FMUs. The package knows none; package dialect has those of OSP, OMSimulator and
// OpenMCx, and a program may hand over its own.
//
// # What FMUs of version 2.0 cannot carry
//
// Connections of arrays, of Binary and of Clock are errors, and so are values that are
// arrays. An FMU that has a Binary as three Integers by the convention of OSMP
// (name.base.lo, name.base.hi, name.size) is connected by these; they are an address in
// the memory of the process, so both FMUs must run in one. A connector that is associated with a clock is read, and a warning says that
// the association has no effect. Connectors of kind local, constant and
// structuralParameter pass signals between systems; at an FMU nothing has such a
// causality but local, which FMI 2.0 does not let be connected.
package ssp
