package native

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// Guard holds settings of the process that an FMU must not change (checklist fmi2 73).
type Guard struct {
	dir     string
	locale  string
	signals signalTable
	told    map[string]bool // kinds of changes that News has returned
}

// Watch returns a guard with the present working directory, locale and signal handlers.
func Watch() *Guard {
	g := &Guard{told: map[string]bool{}}
	g.dir, _ = os.Getwd() // "" if unknown; then it is not compared
	g.locale = Locale()
	g.signals.read()
	return g
}

// Change is a change of the process by an FMU.
type Change struct {
	Kind     string    // setting that changed
	Text     string    // "changed the …; it is restored"
	Lasting  bool      // it could not be restored
	Handlers []uintptr // addresses of the new signal handlers
}

// Restore restores the settings and returns the changes.
func (g *Guard) Restore() []Change {
	var out []Change
	add := func(kind string, lasting bool, format string, args ...any) {
		out = append(out, Change{Kind: kind, Lasting: lasting, Text: fmt.Sprintf(format, args...)})
	}
	if names, handlers := g.signals.restore(); names != "" {
		add("signals", false, "replaced the handlers of signals %s; they are restored", names)
		out[0].Handlers = handlers
	}
	if dir, err := os.Getwd(); g.dir != "" && (err != nil || dir != g.dir) {
		if err := os.Chdir(g.dir); err != nil {
			add("directory", true, "changed the working directory to %q, which cannot be restored: %v; isolate the FMU", dir, err)
		} else {
			add("directory", false, "changed the working directory to %q; it is restored", dir)
		}
	}
	if l := Locale(); l != g.locale {
		if setLocale(g.locale) {
			add("locale", false, "changed the locale of the C library to %q; it is restored to %q", l, g.locale)
		} else {
			add("locale", true, "changed the locale of the C library to %q; it cannot be restored to %q; isolate the FMU", l, g.locale)
		}
	}
	return out
}

// News is Restore, but returns only the first change of each kind.
func (g *Guard) News() (out []Change) {
	for _, c := range g.Restore() {
		if !g.told[c.Kind] {
			g.told[c.Kind] = true
			out = append(out, c)
		}
	}
	return out
}

var cSetLocale = sync.OnceValue(func() uintptr { return inLibc("setlocale") })

// allCategories is LC_ALL.
func allCategories() uintptr {
	if runtime.GOOS == "linux" {
		return 6
	}
	return 0
}

const maxLocale = 4096

// Locale returns the locale of the C library for all categories, "" if unknown.
func Locale() string {
	f := cSetLocale()
	if f == 0 {
		return ""
	}
	return String(CallInts(f, allCategories(), 0), maxLocale)
}

// setLocale sets a locale that Locale returned.
func setLocale(name string) bool {
	f := cSetLocale()
	p, err := Alloc(uintptr(len(name) + 1))
	if f == 0 || err != nil {
		return false
	}
	defer cfree(p)
	copy(unsafe.Slice((*byte)(p), len(name)), name)
	return CallInts(f, allCategories(), uintptr(p)) != 0
}
