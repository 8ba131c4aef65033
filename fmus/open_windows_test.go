package fmus

import (
	"syscall"

	"github.com/ebitengine/purego"
)

func openLibrary(path string) (uintptr, error) {
	h, err := syscall.LoadLibrary(path)
	return uintptr(h), err
}

// heap returns the C functions that the counting allocator stands on.
func heap() (calloc func(n, size uintptr) uintptr, free func(uintptr), err error) {
	h, err := syscall.LoadLibrary("msvcrt.dll")
	if err != nil {
		return nil, nil, err
	}
	purego.RegisterLibFunc(&calloc, uintptr(h), "calloc")
	purego.RegisterLibFunc(&free, uintptr(h), "free")
	return calloc, free, nil
}
