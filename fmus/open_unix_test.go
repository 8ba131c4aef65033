//go:build !windows

package fmus

import "github.com/ebitengine/purego"

func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// heap returns the C functions that the counting allocator stands on.
func heap() (calloc func(n, size uintptr) uintptr, free func(uintptr), err error) {
	c, err := purego.Dlsym(purego.RTLD_DEFAULT, "calloc")
	if err != nil {
		return nil, nil, err
	}
	f, err := purego.Dlsym(purego.RTLD_DEFAULT, "free")
	if err != nil {
		return nil, nil, err
	}
	purego.RegisterFunc(&calloc, c)
	purego.RegisterFunc(&free, f)
	return calloc, free, nil
}
