package fmi

import (
	"fmt"
	"os"
)

// guard remembers what an FMU must not change in the process while it is
// loaded, instantiated, initialised or freed (checklist fmi2 73).
type guard struct {
	dir     string
	signals signalTable
}

// watch takes down working directory and signal handlers.
func watch() *guard {
	g := new(guard)
	g.dir, _ = os.Getwd() // "" where there is none; then it is not compared
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
	return out
}
