// Package archive unpacks FMUs and SSPs, which are ZIP archives from others,
// into private folders that do not outlive the program.
//
//	dir, err := archive.NewTempDir("", "macrostep-")
//	…
//	defer dir.Remove()
//	err = archive.Unpack("model.fmu", dir.Path, &findings, archive.Limits{})
//
// Nothing an archive holds is written outside the given folder, and no archive
// fills the disk: names, kinds and sizes of all entries are judged before the
// first byte is written, and the sizes again while writing (fmi2 1–3, ssp 1).
//
// A folder of NewTempDir, or a file of NewTempFile that has not come to its place, is
// removed by Remove, by Cleanup or End on the way out of the program, or, if the program
// was killed, by the next program that asks for one in the same place.
package archive
