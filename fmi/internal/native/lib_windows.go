package native

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

const LibrarySuffix = ".dll"

// OpenLibrary loads the library at an absolute path. The search path begins with its
// folder, where exporters bundle other libraries (checklist fmi2 7). changed reports
// whether an initialiser changed the floating-point modes, which are restored.
func OpenLibrary(path string, t Tag) (h uintptr, changed bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mem Memory
	defer mem.Release()
	b := mem.Batch()
	b.Start = uint64(time.Now().UnixNano())
	b.mark(t.loading())
	before := modes()
	l, err := windows.LoadLibraryEx(path, 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH)
	b.mark(0)
	if changed = modes() != before; changed {
		setModes(before)
	}
	switch {
	case err == nil:
		noteOpened(library{path, t, uintptr(l)})
		return uintptr(l), changed, nil
	case errors.Is(err, windows.ERROR_MOD_NOT_FOUND):
		return 0, changed, fmt.Errorf("%w; a required DLL is missing: install the run-time libraries of the exporting tool or compiler", err)
	case errors.Is(err, windows.ERROR_BAD_EXE_FORMAT):
		return 0, changed, fmt.Errorf("%w; the file is not a library for this processor: have the FMU exported for it", err)
	}
	return 0, changed, err
}

// Preload loads a library before others that need it.
func Preload(file string, t Tag) (changed bool, err error) {
	_, changed, err = OpenLibrary(file, t)
	return changed, err
}

// Symbol returns the address of an exported function, or 0.
func Symbol(lib uintptr, name string) uintptr {
	p, err := windows.GetProcAddress(windows.Handle(lib), name)
	if err != nil {
		return 0
	}
	return p
}

// Replaced returns "": a library states for each name which library it is from.
func Replaced(string) string { return "" }

// Shared returns nothing, like Replaced.
func Shared(string) map[string]bool { return nil }

// libcSymbol returns the address of a function of the C library.
func libcSymbol(name string) (uintptr, error) {
	var first error
	for _, dll := range []string{"ucrtbase.dll", "msvcrt.dll"} {
		h, err := windows.LoadLibraryEx(dll, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
		if err == nil {
			var p uintptr
			if p, err = windows.GetProcAddress(h, name); err == nil {
				return p, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	return 0, fmt.Errorf("the C library lacks %s: %w", name, first)
}

// CallInts calls a C function whose arguments are integers and C addresses.
func CallInts(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(fn, args...)
	return r
}
