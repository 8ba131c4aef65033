package fmi

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// sharedHere is what the FMUs in this process share by name: the version of the first. Guarded by
// loading.
var sharedHere = map[string]string{}

// Shared returns what the FMUs of a process share by name, and the version that this FMU needs:
// other libraries in the folder of its library, variables that C++ has once in a process, and the
// operator new. It is empty if the FMU has no library for this platform.
func (f *FMU) Shared() map[string]string {
	loading.Lock()
	defer loading.Unlock()
	return f.shared()
}

func (f *FMU) shared() map[string]string {
	if f.locate() != nil || f.place.Path == "" || f.place.Prefix != "" {
		return nil
	}
	if f.shares != nil {
		return f.shares
	}
	f.shares = map[string]string{}
	for _, file := range native.Siblings(f.place.Path) {
		f.shares["library "+filepath.Base(file)] = capi.ContentKey(file)
	}
	for name, own := range native.Shared(f.place.Path) {
		f.shares[name] = map[bool]string{true: cmp.Or(f.Hash, f.place.Path)}[own]
	}
	return f.shares
}

// Clash returns a name for which another FMU of this process needs another version than this one
// (see Shared); "" if there is none. The process would use the first version for both.
func (f *FMU) Clash() string {
	loading.Lock()
	defer loading.Unlock()
	shared := f.shared()
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if other, ok := sharedHere[name]; ok && other != shared[name] {
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
	return onlyOnce.used[capi.ContentKey(f.place.Path)]
}
