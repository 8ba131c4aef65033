// Package edit writes what package ssp reads. Encode, EncodeSet and EncodeMapping write documents,
// parameter sets and mappings, and keep what the model does not represent. WriteArchive packs a
// .ssp. Bind sets parameters.
//
//	p.Root.System.Elements[0].Base().Description = "edited"
//	data, err := edit.Encode(p.Root)
//	err = edit.WriteArchive(w, []edit.File{{Name: ssp.DocumentName, Data: data}, {Name: "resources/a.fmu", Path: "a.fmu"}})
//
// Files are written in UTF-8, with their comments, processing instructions, annotations,
// attributes and elements of other namespaces, and in the same order, but with a new layout.
package edit
