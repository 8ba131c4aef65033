package fmuslave

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Quirk is a deviation from the normal treatment, for an FMU that needs it (fmi2 74). None is on by default.
type Quirk uint16

// The quirks.
const (
	InputsBeforeInit Quirk = 1 << iota
	ChdirOnLoad
	NoTerminate
	IgnoreInitialUnknowns
	StopTime
	ConstantH
	NoRollback
	NoInputDerivatives
	NoDirectionalDerivatives
	SetStarts
	Preload
	EventMode
)

// QuirkInfo describes a quirk.
type QuirkInfo struct {
	Quirk     Quirk
	Name, Doc string
}

// Quirks returns all quirks. Four of fmi2 74 are not among them, because macrostep treats every FMU that way:
// libraries are never unloaded (noUnload), the stop time is not set (noStopTime; StopTime is the opposite),
// Reset is called only if a getter has failed and no second instance can be made, and outputs are read early, in initialisation mode, and again after it
// (earlyGet). The early values may be stale zeros (fmi2 71), but the later ones replace them before the
// first step.
func Quirks() []QuirkInfo {
	return []QuirkInfo{
		{InputsBeforeInit, "inputsBeforeInit", "set all inputs, also before initialisation mode"},      // fmi2 42
		{ChdirOnLoad, "chdirOnLoad", "load the library in its own folder"},                             // fmi2 7
		{NoTerminate, "noTerminate", "do not call fmi2Terminate"},                                      // fmi2 62
		{IgnoreInitialUnknowns, "ignoreInitialUnknowns", "read no dependencies from InitialUnknowns"},  // fmi2 65
		{StopTime, "stopTime", "pass the stop time to the FMU if no step goes beyond it"},              // fmi2 40
		{ConstantH, "constantH", "take only steps of the size of the macro step"},                      // fmi2 49
		{NoRollback, "noRollback", "ignore canGetAndSetFMUstate"},                                      // fmi2 59
		{NoInputDerivatives, "noInputDerivatives", "ignore canInterpolateInputs"},                      // fmi2 56
		{NoDirectionalDerivatives, "noDirectionalDerivatives", "ignore providesDirectionalDerivative"}, // fmi2 60
		{SetStarts, "setStarts", "set all documented start values, not only given ones"},               // fmi2 42
		{EventMode, "eventMode", "handle events in event mode, also without discrete inputs"},          // fmi3 19
		{Preload, "preload:FILE", "in a process of its own, load the library FILE first, whose symbols the FMU uses"},
	}
}

// preloadPrefix begins the name of the quirk Preload.
const preloadPrefix = "preload:"

// PreloadFile returns the file of the quirk Preload, by its name; "" for any other quirk.
func PreloadFile(name string) string {
	file, ok := strings.CutPrefix(name, preloadPrefix)
	if !ok {
		return ""
	}
	return file
}

// ParseQuirk finds a quirk by its name. The error lists the names.
func ParseQuirk(name string) (Quirk, error) {
	var names []string
	if name == preloadPrefix {
		return 0, fmt.Errorf("the quirk %s needs the library, %sFILE, such as %slibpython3.so", preloadPrefix, preloadPrefix, preloadPrefix)
	}
	for _, q := range Quirks() {
		if q.Name == name || q.Quirk == Preload && PreloadFile(name) != "" {
			return q.Quirk, nil
		}
		names = append(names, q.Name)
	}
	names = append(names, "stateless") // of the coupling, not of the FMU
	return 0, fmt.Errorf("there is no quirk %q%s", name, diag.DidYouMeanOr(name, names, "; the quirks are "))
}

// Has reports whether q contains all quirks of other.
func (q Quirk) Has(other Quirk) bool { return q&other == other }

// Names lists the names of the quirks in q, sorted.
func (q Quirk) Names() []string {
	var names []string
	for _, i := range Quirks() {
		if q.Has(i.Quirk) {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return names
}
