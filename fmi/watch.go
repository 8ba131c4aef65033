package fmi

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// ProcessWatch puts back what FMUs change in the process in their steps: signal
// handlers (on Linux), locale and working directory. What they change while they
// are loaded, created, initialised or ended is put back at once, without it.
type ProcessWatch struct {
	guard *native.Guard
	fmus  []*FMU
	told  map[string]bool
}

// WatchProcess takes the process as it is now for what it is to be. The program
// itself must not change it before the watch is given up, but that Go's own
// signal handlers may be put in place.
func WatchProcess(fmus []*FMU) *ProcessWatch {
	return &ProcessWatch{guard: native.Watch(), fmus: fmus, told: map[string]bool{}}
}

// Restore puts back what has changed, while no FMU is called. It takes some tens
// of microseconds, so that it can be called a few times a second and does not fit
// into every step. It gives one sentence, once, for each kind of change; it names
// the FMU, or those that it may have been.
func (w *ProcessWatch) Restore() []string {
	var out []string
	for _, c := range w.guard.Restore() {
		if !w.told[c.Kind] {
			w.told[c.Kind] = true
			out = append(out, w.who(c)+" "+c.Text)
		}
	}
	return out
}

// who names the FMU that made a change.
func (w *ProcessWatch) who(c native.Change) string {
	var names []string
	for _, f := range w.fmus {
		name := filepath.Base(f.Path)
		for _, h := range c.Handlers {
			if lib, own := native.LibraryOf(h), f.Library(); lib != "" && own != "" && filepath.Dir(lib) == filepath.Dir(own) {
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
