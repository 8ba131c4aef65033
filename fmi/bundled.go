package fmi

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// bundles are the additional shared libraries of the FMUs in this process: name to
// hash. The loader uses only the first of several libraries with one name. Guarded
// by loading.
var bundles = map[string]string{}

// Bundled returns the other shared libraries in the folder of the FMU's library:
// name to hash. It is empty if the FMU has no library for this platform.
func (f *FMU) Bundled() map[string]string {
	loading.Lock()
	defer loading.Unlock()
	return f.bundled()
}

func (f *FMU) bundled() map[string]string {
	if f.locate() != nil || f.place.Path == "" || f.place.Prefix != "" {
		return nil
	}
	if f.beside != nil {
		return f.beside
	}
	dir, own := filepath.Split(f.place.Path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	f.beside = out
	for _, e := range entries {
		n := e.Name()
		if e.Type().IsRegular() && n != own && (strings.HasSuffix(n, native.LibrarySuffix) || strings.Contains(n, ".so.")) {
			out[n] = fmi2.ContentKey(filepath.Join(dir, n))
		}
	}
	return out
}

// Clash returns the name of a bundled library for which another FMU of this process
// has already loaded a library with the same name but different content; "" if there is
// none. The loader would use only the first one.
func (f *FMU) Clash() string {
	loading.Lock()
	defer loading.Unlock()
	for name, content := range f.bundled() {
		if other, ok := bundles[name]; ok && other != content {
			return name
		}
	}
	return ""
}

// TakenBy returns the name of the only instance that this process can have of an FMU
// with canBeInstantiatedOnlyOncePerProcess; "" if there has been none, or there is no
// such limit.
func (f *FMU) TakenBy() string {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return ""
	}
	loading.Lock()
	defer loading.Unlock()
	if f.locate() != nil {
		return ""
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	return onlyOnce.used[fmi2.ContentKey(f.place.Path)]
}
