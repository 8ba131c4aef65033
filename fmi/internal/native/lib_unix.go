//go:build linux || darwin || freebsd || netbsd

package native

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// LibrarySuffix is the suffix of shared libraries.
var LibrarySuffix = map[bool]string{true: ".dylib", false: ".so"}[runtime.GOOS == "darwin"]

// preloads load libraries into the global scope that some FMUs use without naming them: those
// of the C library, which a program without cgo has not loaded, and those of compilers. Each
// is called only after a failure, because the names in them could replace those of other FMUs.
// They ignore errors, since loading the FMU reports missing libraries.
var preloads = []func(){
	sync.OnceFunc(func() { preload("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1") }),
	sync.OnceFunc(func() { preload("libgcc_s.so.1", "libstdc++.so.6", "libquadmath.so.0", "libgfortran.so.5") }),
}

func preload(names ...string) {
	for _, n := range names {
		if runtime.GOOS == "linux" {
			_, _ = purego.Dlopen(n, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
		}
	}
}

const (
	openMode = purego.RTLD_NOW | purego.RTLD_LOCAL
	deepBind = 8 // RTLD_DEEPBIND of glibc
)

// OpenLibrary loads the library at an absolute path, with all symbols and in a local scope,
// so that FMUs with equal symbol names do not call each other (checklist fmi2 7). If that
// fails, it first loads the other libraries in the folder, which many exporters bundle
// without a search path, then what preloads has. modes reports whether an initialiser changed
// the floating-point modes, such as the start-up code of -ffast-math.
func OpenLibrary(path string, t Tag) (h uintptr, modes bool, err error) {
	// dlerror reports the last error of this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	beforeOpening()
	watchForks()
	noteOpened(library{path: path, tag: t})
	load := func(path string, mode int) (uintptr, error) {
		h, changed, err := dlopen(path, mode, t)
		modes = modes || changed
		return h, err
	}
	open := func(path string) (uintptr, error) {
		if err := checkImage(path); err != nil {
			return 0, err
		}
		n := readNames(path)
		global, mathematical := n.clashing()
		// Libraries of the system, which other FMUs use as well, must not bind to names of this one.
		if (global != nil || mathematical != nil) && !n.replacesNew() {
			for _, name := range n.needs {
				_, _ = load(name, openMode) // an error is that of the FMU
			}
		}
		mode := openMode
		if global != nil && n.inseparable(global) == "" {
			mode |= deepBind
		}
		return load(path, mode)
	}
	if h, err = open(path); err == nil {
		return h, modes, nil
	}
	pending := Siblings(path)
	for len(pending) > 0 {
		var failed []string
		for _, s := range pending { // they may need each other: repeat until none loads
			if _, err := open(s); err != nil {
				failed = append(failed, s)
			}
		}
		if len(failed) == len(pending) {
			break
		}
		pending = failed
	}
	h, err = open(path)
	for k := 0; err != nil && k < len(preloads); k++ {
		preloads[k]()
		h, err = open(path)
	}
	if err != nil {
		return 0, modes, fmt.Errorf("%w%s", err, loaderRemedy(err.Error()))
	}
	return h, modes, nil
}

// Preload loads a library, by its path or by a name that the loader finds, so that libraries loaded later use its symbols. modes is as
// of OpenLibrary.
func Preload(file string, t Tag) (modes bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, modes, err = dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL, t)
	return modes, err
}

// dlopen calls dlopen of the C library like a function of an FMU. modes reports whether the
// floating-point modes changed; they are restored.
func dlopen(path string, mode int, t Tag) (h uintptr, modes bool, err error) {
	open, err := libcSymbol("dlopen")
	if err != nil {
		return 0, false, err
	}
	reason, err := libcSymbol("dlerror") // before dlopen, since looking it up clears the error
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

// loaderRemedy returns the remedy for a message of the dynamic loader.
func loaderRemedy(msg string) string {
	switch {
	case strings.Contains(msg, "GLIBC"):
		return "; the FMU was built for a newer C or C++ library than that of this system: " +
			"run it on a newer system or have it exported for this one"
	case strings.Contains(msg, "cannot open shared object"), strings.Contains(msg, "Library not loaded"):
		return "; install this library, or add its folder to the search path of the loader " +
			"(LD_LIBRARY_PATH, on macOS DYLD_LIBRARY_PATH)"
	case pythonSymbol.MatchString(msg):
		return pythonRemedy()
	case strings.Contains(msg, "undefined symbol"), strings.Contains(msg, "symbol not found"):
		return "; the FMU was linked without the library that has this symbol: install the library and add it to LD_PRELOAD"
	case strings.Contains(msg, "ELF"), strings.Contains(msg, "mach-o"), strings.Contains(msg, "architecture"):
		return "; the file is not a library for this processor: have the FMU exported for it"
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
