package fmi

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// bundles are the shared libraries that FMUs of this process brought beside
// their own: name to content. The loader takes a second one of equal name for
// the first. Guarded by loading.
var bundles = map[string]string{}

// Bundled returns the shared libraries that lie beside that of the FMU: name to
// a hash of the content. It is empty if the FMU has no library for this platform.
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

// Clash names a library that the FMU brings and of which this process has loaded
// another one, of equal name and other content, with another FMU; "" if there is
// none. Of the two only the first would be used.
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

// TakenBy returns the name of the instance that took the only place which this
// process has for the FMU, "" if it is free or the FMU has no such limit.
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
