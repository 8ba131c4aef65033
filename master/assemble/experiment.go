package assemble

import (
	"fmt"
	"math"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/ssp"
)

// Defaults where no document says anything.
const (
	defaultSpan  = 1.0 // s
	defaultSteps = 1000
)

// experiment finds start, stop, macro step and tolerance: our annotation, then
// another tool's, then the default experiments of the FMUs (ssp 10, 47; fmi2 23).
func (a *Assembly) experiment() {
	n := a.network
	a.Algorithm, a.Params = n.Own.Algorithm, map[string]string{}
	for _, p := range n.Own.Params {
		a.Params[p.Key] = p.Value
	}
	a.Start = Sourced{0, "default"}
	if n.Experiment.Start != nil {
		a.Start = Sourced{*n.Experiment.Start, "DefaultExperiment of the system"}
	} else if v, name, ok := a.smallest(func(d *fmi.DefaultExperiment) *float64 { return d.StartTime }); ok {
		a.Start = Sourced{v, "DefaultExperiment of " + name}
	}
	switch v, name, ok := a.smallest(func(d *fmi.DefaultExperiment) *float64 { return d.StopTime }); {
	case n.Experiment.Stop != nil:
		a.Stop = Sourced{*n.Experiment.Stop, "DefaultExperiment of the system"}
	case ok && v > a.Start.Value:
		a.Stop = Sourced{v, "DefaultExperiment of " + name}
	default:
		a.Stop = Sourced{a.Start.Value + defaultSpan, "default: one second"}
	}
	switch v, name, ok := a.smallest(func(d *fmi.DefaultExperiment) *float64 { return d.StepSize }); {
	case len(n.Step) > 0:
		a.Step = Sourced{n.Step[0].Value, n.Step[0].Source}
	case ok:
		a.Step = Sourced{v, "DefaultExperiment of " + name}
	}
	if n.Own.Tolerance != nil {
		a.Tolerance = &Sourced{*n.Own.Tolerance, ssp.OwnType}
	} else if n.Tolerance != nil {
		a.Tolerance = &Sourced{*n.Tolerance, "annotation of the system"}
	}
}

// smallest gives the least value that a default experiment of
// the FMUs has, and whose it is.
func (a *Assembly) smallest(of func(*fmi.DefaultExperiment) *float64) (v float64, name string, ok bool) {
	v = math.Inf(1)
	for _, c := range a.Components {
		if d := c.FMU.Description.DefaultExperiment; d != nil {
			if p := of(d); p != nil && *p < v {
				v, name, ok = *p, c.Name, true
			}
		}
	}
	return v, name, ok
}

// Override replaces start, stop, step and tolerance by what the user gave (nil
// = not given), and settles what is still open: a thousandth of the time span
// as macro step. It gives warnings about what had to be guessed.
func (a *Assembly) Override(start, stop, step, tolerance *float64) (warnings []string) {
	const flag = "command line"
	if start != nil {
		a.Start = Sourced{*start, flag}
	}
	if stop != nil {
		a.Stop = Sourced{*stop, flag}
	}
	if step != nil {
		a.Step = Sourced{*step, flag}
	}
	if tolerance != nil {
		a.Tolerance = &Sourced{*tolerance, flag}
	}
	if strings.HasPrefix(a.Stop.Source, "default") {
		if start != nil {
			a.Stop.Value = a.Start.Value + defaultSpan
		}
		warnings = append(warnings, fmt.Sprintf("no stop time is given anywhere: the run ends at %g s; give --stop-time", a.Stop.Value))
	}
	if a.Step.Source == "" {
		a.Step = Sourced{(a.Stop.Value - a.Start.Value) / defaultSteps, "a thousandth of the time span"}
		warnings = append(warnings, fmt.Sprintf("no step size is given anywhere: a thousandth of the time span is taken, %g s; give --step-size", a.Step.Value))
	}
	return warnings
}
