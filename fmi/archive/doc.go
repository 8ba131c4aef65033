// Package archive unpacks FMUs and SSPs, which are untrusted ZIP archives, into private temporary
// folders.
//
//	dir, err := archive.NewTempDir("", "macrostep-")
//	…
//	defer dir.Remove()
//	err = archive.Unpack("model.fmu", dir.Path, &findings, archive.Limits{})
//
// No archive can write outside the given folder or fill the disk: names, kinds and sizes of all
// entries are checked before unpacking, and sizes again while writing (fmi2 1–3, ssp 1).
//
// A folder of NewTempDir, or a file of NewTempFile before Place, is removed by Remove, or at the
// end of the program by Cleanup or End. If the program was killed, the next program that makes
// one in the same place removes it.
package archive
