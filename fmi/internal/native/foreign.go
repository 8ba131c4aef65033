package native

import (
	"os"
	"path/filepath"
	"strings"
)

// Siblings lists the other shared libraries in the folder of a library.
func Siblings(path string) (others []string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // none if it cannot be read
	for _, e := range entries {
		n := e.Name()
		if e.Type().IsRegular() && n != filepath.Base(path) && (strings.HasSuffix(n, LibrarySuffix) || strings.Contains(n, ".so.")) {
			others = append(others, filepath.Join(filepath.Dir(path), n))
		}
	}
	return others
}

// callForeign calls a C function that runs code of an FMU, with integers and C addresses as
// arguments. modes reports whether it changed the floating-point modes, which are restored.
func callForeign(t Tag, fn uintptr, args ...uintptr) (ret uintptr, modes bool, err error) {
	var mem Memory
	defer mem.Release()
	b := mem.Batch()
	recs, err := Slice[Record](&mem, 1)
	if err != nil {
		return 0, false, err
	}
	recs[0].Fn, recs[0].Tag = fn, t
	copy(recs[0].Int[:], args)
	b.Recs, b.N = Address(recs), 1
	Run(b)
	return recs[0].Ret, b.Modes != 0, nil
}

// CallText calls a function of an FMU that returns a string, and returns at most 64 bytes of it.
func CallText(t Tag, fn uintptr) (string, error) {
	p, _, err := callForeign(t, fn)
	const longest = 64
	return String(p, longest), err
}
