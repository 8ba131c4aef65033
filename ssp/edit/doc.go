// Package edit writes what package ssp reads: Encode makes documents, parameter sets and
// mappings of the model, with all that they were read with; WriteArchive packs a .ssp; Bind
// gives parameters values that win; Prepare adds what other tools ask for.
//
//	p.Root.System.Elements[0].Base().Description = "edited"
//	data, err := edit.Encode(p.Root)
//	err = edit.WriteArchive(w, []edit.File{{Name: ssp.DocumentName, Data: data}, {Name: "resources/a.fmu", Path: "a.fmu"}})
//
// A file that is written is encoded anew, in UTF-8: comments, processing instructions,
// annotations, attributes and elements of other namespaces and the order of entries are
// kept, the layout is not.
package edit
