package fmi

// FMU is an unpacked FMU.
type FMU struct {
	Description *ModelDescription
	Path        string // the archive
	Dir         string // the unpacked tree
	Hash        string // "sha256:…" of the archive

	loader
}
