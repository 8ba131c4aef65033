//go:build linux || darwin || freebsd || netbsd

package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// LibrarySuffix ends the name of a shared library.
var LibrarySuffix = map[bool]string{true: ".dylib", false: ".so"}[runtime.GOOS == "darwin"]

// preloadBase brings into the global scope, once, what exporters take for
// granted: some name neither libm nor libpthread among the needs of their
// library, and a program without cgo has not loaded them. Absent ones are
// passed over; the FMU's own load then tells what is missing.
var preloadBase = sync.OnceFunc(func() {
	if runtime.GOOS == "linux" {
		preload("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")
	}
})

// preloadLanguages does the same with the run-time libraries of compilers. It
// waits until a load has failed: an FMU may bundle another version.
var preloadLanguages = sync.OnceFunc(func() {
	if runtime.GOOS == "linux" {
		preload("libgcc_s.so.1", "libstdc++.so.6", "libquadmath.so.0", "libgfortran.so.5")
	}
})

func preload(names ...string) {
	for _, n := range names {
		_, _ = purego.Dlopen(n, purego.RTLD_LAZY|purego.RTLD_GLOBAL) // best effort, see above
	}
}

// OpenLibrary loads the library at an absolute path: all symbols at once and
// into a scope of its own, so that FMUs with equal symbol names do not call
// each other (checklist fmi2 7). If that fails, the other libraries in its
// folder are loaded first, since many exporters bundle them without a search
// path; then the languages' run-time libraries. modes tells that an initialiser
// left with other floating-point modes, as the start-up code of -ffast-math does.
func OpenLibrary(path string, t Tag) (h uintptr, modes bool, err error) {
	// dlerror reports the last error of this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	preloadBase()
	watchForks()
	const mode = purego.RTLD_NOW | purego.RTLD_LOCAL
	open := func(path string) (h uintptr, err error) {
		if err := checkImage(path); err != nil {
			return 0, err
		}
		h, changed, err := dlopen(path, mode, t)
		modes = modes || changed
		return h, err
	}
	h, first := open(path)
	if first == nil {
		return h, modes, first
	}
	pending := siblings(path)
	for len(pending) > 0 {
		var failed []string
		for _, s := range pending { // they may need each other: repeat while any loads
			if _, err := open(s); err != nil {
				failed = append(failed, s)
			}
		}
		if len(failed) == len(pending) {
			break
		}
		pending = failed
	}
	if h, err = open(path); err == nil {
		return h, modes, nil
	}
	preloadLanguages()
	if h, err = open(path); err == nil {
		return h, modes, nil
	}
	return 0, modes, fmt.Errorf("%w%s", first, loaderRemedy(first.Error()))
}

// dlopen is that of the C library, by the path of all calls into FMUs: it keeps
// the floating-point modes, and tells whether it had to.
func dlopen(path string, mode int, t Tag) (h uintptr, modes bool, err error) {
	open, err := libcSymbol("dlopen")
	if err != nil {
		return 0, false, err
	}
	reason, err := libcSymbol("dlerror") // now: a look-up makes dlerror forget
	if err != nil {
		return 0, false, err
	}
	var mem Memory
	defer mem.Release()
	text, err := Slice[byte](&mem, len(path)+1)
	if err != nil {
		return 0, false, err
	}
	copy(text, path)
	h, modes, err = callForeign(t.loading(), open, Address(text), uintptr(mode))
	if h != 0 || err != nil {
		return h, modes, err
	}
	why := "the loader gave no reason"
	if p := CallInts(reason); p != 0 {
		why = String(p, MaxString)
	}
	return 0, modes, errors.New(why)
}

// siblings lists the other shared libraries in the folder of path.
func siblings(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		n := e.Name()
		if e.Type().IsRegular() && n != filepath.Base(path) &&
			(strings.HasSuffix(n, LibrarySuffix) || strings.Contains(n, ".so.")) {
			out = append(out, filepath.Join(filepath.Dir(path), n))
		}
	}
	return out
}

// loaderRemedy says what can be done about a message of the dynamic loader.
func loaderRemedy(msg string) string {
	switch {
	case strings.Contains(msg, "GLIBC"):
		return "; the FMU was built for a newer C or C++ library than this system has: run it on a newer system or have it exported for this one"
	case strings.Contains(msg, "cannot open shared object"), strings.Contains(msg, "Library not loaded"):
		return "; install the library named here, or put it on the loader's search path (LD_LIBRARY_PATH, on macOS DYLD_LIBRARY_PATH)"
	case strings.Contains(msg, "undefined symbol"), strings.Contains(msg, "symbol not found"):
		return "; the FMU was linked without the library that holds this symbol: install that library and start with it in LD_PRELOAD"
	case strings.Contains(msg, "ELF"), strings.Contains(msg, "mach-o"), strings.Contains(msg, "architecture"):
		return "; the file is no library for this processor: have the FMU exported for it"
	}
	return ""
}

// Symbol returns the address of an exported function, or 0.
func Symbol(lib uintptr, name string) uintptr {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := purego.Dlsym(lib, name)
	if err != nil {
		return 0
	}
	return p
}

// libcSymbol returns the address of a function of the C library.
func libcSymbol(name string) (uintptr, error) {
	p, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil {
		return 0, fmt.Errorf("the C library lacks %s: %w", name, err)
	}
	return p, nil
}

// CallInts calls a C function whose arguments are integers and C addresses.
func CallInts(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}
