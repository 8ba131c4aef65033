package assemble

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/ssp"
)

// GuessedStep is the source of the default step size.
const GuessedStep = "a thousandth of the time span"

// Defaults of the times.
const (
	defaultSpan  = 1.0 // s
	defaultSteps = 1000
)

// experiment sets start, stop, macro step and tolerance from the documents, else from the default
// experiments of the FMUs (ssp 10, 47; fmi2 23). Without any of these, stop and step have no source.
func (a *Assembly) experiment() {
	n := a.network
	a.Asked = n.Asked
	every := func(float64) bool { return true }
	a.Start = Sourced{0, "default"}
	if n.Experiment.Start != nil {
		a.Start = Sourced{*n.Experiment.Start, "DefaultExperiment of the system"}
	} else if s, ok := a.smallest(every, func(d *description.DefaultExperiment) *float64 { return d.StartTime }); ok {
		a.Start = s
	}
	if n.Experiment.Stop != nil {
		a.Stop = Sourced{*n.Experiment.Stop, "DefaultExperiment of the system"}
	} else {
		later := func(t float64) bool { return t > a.Start.Value }
		a.Stop, _ = a.smallest(later, func(d *description.DefaultExperiment) *float64 { return d.StopTime })
	}
	if step := a.number(ssp.StepSize); step != nil {
		a.Step = *step
	} else {
		positive := func(h float64) bool { return h > 0 }
		a.Step, _ = a.smallest(positive, func(d *description.DefaultExperiment) *float64 { return d.StepSize })
		suggested := a.Step.Source != ""
		for _, c := range a.Components { // shorter steps than those within the FMU change nothing
			own := c.FMU.Description.CoSimulation.FixedInternalStepSize
			if own != nil && !suggested && (a.Step.Source == "" || *own < a.Step.Value) {
				a.Step = Sourced{*own, "fixedInternalStepSize of " + c.Name}
			}
		}
	}
	a.Tolerance = a.number(tolerance)
}

// smallest returns the least sensible value in the default experiments of the FMUs, with its
// source.
func (a *Assembly) smallest(sensible func(float64) bool, of func(*description.DefaultExperiment) *float64) (least Sourced, ok bool) {
	for _, c := range a.Components {
		d := c.FMU.Description.DefaultExperiment
		if d == nil {
			continue
		}
		if v := of(d); v != nil && sensible(*v) && (!ok || *v < least.Value) {
			least, ok = Sourced{*v, "DefaultExperiment of " + c.Name}, true
		}
	}
	return least, ok
}

// Override replaces start, stop, step (s) and tolerance by the values of the user (nil = not
// given) and applies defaults: a span of one second and a thousandth of the span as macro step.
// It returns warnings about defaults and about steps of components that cannot be kept, and notes about steps that are
// shorter than an FMU suggests, and about a default step where nothing is coupled.
func (a *Assembly) Override(start, stop, step, tolerance *float64) (warnings, notes []string) {
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
	if a.Stop.Source == "" {
		a.Stop = Sourced{a.Start.Value + defaultSpan, "default: one second"}
		warnings = append(warnings, fmt.Sprintf("no stop time is given: the run ends at %.6g s; choose one with --stop-time", a.Stop.Value))
	}
	if a.Step.Source == "" {
		span := a.Stop.Value - a.Start.Value
		if !(span > 0) { // reported elsewhere
			span = defaultSpan
		}
		a.Step = Sourced{span / defaultSteps, GuessedStep}
		text := fmt.Sprintf("no step size is given: the macro step is %.6g s, %s; choose one with --step-size", a.Step.Value, GuessedStep)
		if len(a.network.Connections) > 0 {
			warnings = append(warnings, text)
		} else { // nothing is approximated between its ends
			notes = append(notes, text)
		}
	}
	warnings = append(warnings, a.hintedRates()...)
	if strings.HasPrefix(a.Step.Source, "DefaultExperiment") { // the smallest of them
		return warnings, notes
	}
	for _, c := range a.Components {
		if d := c.FMU.Description.DefaultExperiment; d != nil && d.StepSize != nil && *d.StepSize > a.Step.Value*(1+1e-9) {
			notes = append(notes, fmt.Sprintf("%s suggests steps of %.6g s, which are longer than the macro step of %.6g s: "+
				"if it computes only at its own steps, its outputs do not change in between", c.Name, *d.StepSize, a.Step.Value))
		}
	}
	return warnings, notes
}

// hintedRates converts step sizes of components in annotations of other tools into rates:
// libcosim steps a component every ⌊hint/step⌋ base steps, at least in each one (ssp 43);
// OpenMCx also divides the macro step (ssp 45). Rates of our annotation have precedence. It
// returns warnings about hints that are not met exactly.
func (a *Assembly) hintedRates() (warnings []string) {
	a.Hinted = nil
	for _, c := range a.network.Components {
		given := slices.ContainsFunc(a.Asked, func(s ssp.Asked) bool { return s.Name == "rate" && s.Key == c.Path })
		if given || len(c.StepHints) == 0 {
			continue
		}
		hint := c.StepHints[0]
		const slack = 1e-9 // the two numbers are rounded
		ratio := hint.Value / a.Step.Value
		r := Hinted{Rate: algorithms.Rate{Component: c.Path, Steps: 1, Over: 1}, Hint: hint}
		met := ratio
		switch {
		case ratio >= 1-slack:
			r.Over = int(min(ratio*(1+slack), mostRate))
			met = float64(r.Over)
		case hint.Finer:
			r.Steps = int(min(math.Ceil((1-slack)/ratio), mostRate))
			met = 1 / float64(r.Steps)
		default:
			met = 1
		}
		if math.Abs(met-ratio) > slack*max(met, ratio) {
			warnings = append(warnings, fmt.Sprintf("%s takes steps of %.6g s instead of %.6g s (%s): "+
				"steps of a component are multiples or parts of the macro step; choose a --step-size that fits", c.Path, met*a.Step.Value, hint.Value, hint.Source))
		}
		if r.Over > 1 || r.Steps > 1 {
			a.Hinted = append(a.Hinted, r)
		}
	}
	return warnings
}

// mostRate is the largest computed rate.
const mostRate = 1e9
