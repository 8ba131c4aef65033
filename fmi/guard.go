package fmi

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// guard remembers what an FMU must not change in the process while it is
// loaded, instantiated, initialised or freed (checklist fmi2 73).
type guard struct {
	dir     string
	locale  string
	signals signalTable
}

// watch takes down working directory, locale and signal handlers.
func watch() *guard {
	g := new(guard)
	g.dir, _ = os.Getwd() // "" where there is none; then it is not compared
	g.locale = locale()
	g.signals.read()
	return g
}

// restore undoes what has changed and gives one line per change.
func (g *guard) restore() []string {
	var out []string
	if names := g.signals.restore(); names != "" {
		out = append(out, "the FMU replaced the handlers of signals "+names+"; they are restored")
	}
	if dir, err := os.Getwd(); g.dir != "" && (err != nil || dir != g.dir) {
		if err := os.Chdir(g.dir); err != nil {
			out = append(out, fmt.Sprintf("the FMU changed the working directory to %q and it cannot be restored: %v", dir, err))
		} else {
			out = append(out, fmt.Sprintf("the FMU changed the working directory to %q; it is restored", dir))
		}
	}
	if l := locale(); l != g.locale {
		if setLocale(g.locale) {
			out = append(out, fmt.Sprintf("the FMU changed the locale of the C library to %q; it is back at %q", l, g.locale))
		} else {
			out = append(out, fmt.Sprintf("the FMU changed the locale of the C library to %q and it cannot be put back to %q", l, g.locale))
		}
	}
	return out
}

var cSetLocale = sync.OnceValue(func() uintptr {
	p, err := libcSymbol("setlocale")
	if err != nil {
		return 0
	}
	return p
})

// allCategories is LC_ALL.
func allCategories() uintptr {
	if runtime.GOOS == "linux" {
		return 6
	}
	return 0
}

const maxLocale = 4096

// locale gives the locale that the C library works in, for all categories; ""
// where it cannot be told.
func locale() string {
	f := cSetLocale()
	if f == 0 {
		return ""
	}
	return cstring(callInts(f, allCategories(), 0), maxLocale)
}

// setLocale sets what locale gave.
func setLocale(name string) bool {
	f, p := cSetLocale(), calloc(uintptr(len(name)+1))
	if f == 0 || p == nil {
		return false
	}
	defer cfree(p)
	copy(unsafe.Slice((*byte)(p), len(name)), name)
	return callInts(f, allCategories(), uintptr(p)) != 0
}
