package fmi

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// ProcessWatch restores signal handlers (on Linux), locale and working directory that
// FMUs change in their steps. Changes while FMUs are loaded, created, initialised or
// ended are always restored, without a ProcessWatch.
type ProcessWatch struct {
	guard *native.Guard
	fmus  []*FMU
}

// WatchProcess returns a watch that restores the present settings of the process.
// While the watch is in use, the program itself must not change them, except for
// the signal handlers of Go.
func WatchProcess(fmus []*FMU) *ProcessWatch {
	return &ProcessWatch{guard: native.Watch(), fmus: fmus}
}

// Restore restores what FMUs have changed; no FMU may be called meanwhile. It takes
// some tens of microseconds, so call it a few times a second and not in every step.
// It returns a sentence for the first change of each kind, with the FMU or the
// possible FMUs: those that are restored, and those that could not be.
func (w *ProcessWatch) Restore() (restored, lasting []string) {
	for _, c := range w.guard.News() {
		if text := w.who(c) + " " + c.Text; c.Lasting {
			lasting = append(lasting, text)
		} else {
			restored = append(restored, text)
		}
	}
	return restored, lasting
}

// who names the FMU that made a change, or the candidates.
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
