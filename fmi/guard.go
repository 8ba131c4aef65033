package fmi

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// guard remembers what an FMU must not change in the process (checklist fmi2 73).
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

// change is something that an FMU did to the process, and what became of it.
type change struct {
	kind string // tells changes of different things apart
	text string // "changed the …; it is restored"
	// handlers are the addresses of the functions that were put in place, if any.
	handlers []uintptr
}

// restore undoes what has changed.
func (g *guard) restore() []change {
	var out []change
	add := func(kind, format string, args ...any) {
		out = append(out, change{kind: kind, text: fmt.Sprintf(format, args...)})
	}
	if names, handlers := g.signals.restore(); names != "" {
		add("signals", "replaced the handlers of signals %s; they are restored", names)
		out[0].handlers = handlers
	}
	if dir, err := os.Getwd(); g.dir != "" && (err != nil || dir != g.dir) {
		if err := os.Chdir(g.dir); err != nil {
			add("directory", "changed the working directory to %q and it cannot be restored: %v", dir, err)
		} else {
			add("directory", "changed the working directory to %q; it is restored", dir)
		}
	}
	if l := locale(); l != g.locale {
		if setLocale(g.locale) {
			add("locale", "changed the locale of the C library to %q; it is back at %q", l, g.locale)
		} else {
			add("locale", "changed the locale of the C library to %q and it cannot be put back to %q", l, g.locale)
		}
	}
	return out
}

// ProcessWatch puts back what FMUs change in the process in their steps: signal
// handlers (on Linux), locale and working directory. What they change while they
// are loaded, created, initialised or ended is put back at once, without it.
type ProcessWatch struct {
	guard *guard
	fmus  []*FMU
	told  map[string]bool
}

// WatchProcess takes the process as it is now for what it is to be. The program
// itself must not change it before the watch is given up, but that Go's own
// signal handlers may be put in place.
func WatchProcess(fmus []*FMU) *ProcessWatch {
	return &ProcessWatch{guard: watch(), fmus: fmus, told: map[string]bool{}}
}

// Restore puts back what has changed, while no FMU is called. It takes some tens
// of microseconds, so that it can be called a few times a second and does not fit
// into every step. It gives one sentence, once, for each kind of change; it names
// the FMU, or those that it may have been.
func (w *ProcessWatch) Restore() []string {
	var out []string
	for _, c := range w.guard.restore() {
		if !w.told[c.kind] {
			w.told[c.kind] = true
			out = append(out, w.who(c)+" "+c.text)
		}
	}
	return out
}

// who names the FMU that made a change.
func (w *ProcessWatch) who(c change) string {
	var names []string
	for _, f := range w.fmus {
		name := filepath.Base(f.Path)
		for _, h := range c.handlers {
			if lib := libraryOf(h); lib != "" && f.image != nil && filepath.Dir(lib) == filepath.Dir(f.library) {
				return name + ": in a step the FMU"
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return names[0] + ": in a step the FMU"
	}
	return "in a step one of the FMUs " + strings.Join(names, ", ")
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
