// Package edit writes what package ssp reads. Encode writes new documents. Bind sets parameters and
// settings in the documents of a system as they were read. WriteArchive packs a .ssp.
//
//	data, err := edit.Encode(&ssp.Document{Name: "car", System: system})
//	err = edit.WriteArchive(w, []edit.File{{Name: ssp.DocumentName, Data: data}, {Name: "resources/a.fmu", Path: "a.fmu"}})
//
// Files are written in UTF-8. Bind keeps everything that it does not change: comments, annotations,
// attributes and elements of other namespaces, order and layout.
package edit
