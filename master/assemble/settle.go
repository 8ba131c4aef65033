package assemble

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macrostep/macrostep/ssp"
)

// settle applies the settings of the documents that the user has not set.
func (a *Assembly) settle(o Options) (Options, error) {
	own := &a.network.Own
	if err := a.settleIsolation(&o); err != nil {
		return o, err
	}
	switch {
	case o.Record != nil || own.Record == nil:
	case o.Select == nil:
		at := own.Sources["record"].Place
		a.Findings.Add(ruleNoEffect, at.File, at.Path, at.Line,
			"the selection of recorded variables in the document has no effect: the program that opens it cannot select by patterns")
	default:
		match, err := o.Select(own.Record)
		if err != nil {
			return o, fmt.Errorf("%s: what is recorded: %w", own.Sources["record"].Place, err)
		}
		o.Record = match
	}
	if o.DrivenBy == "" && own.Input != nil {
		if o.Columns == nil {
			return o, errors.New("the document names a table of inputs, but the program that opens it cannot read tables (Options.Columns)")
		}
		names, err := o.Columns(own.Input.Path)
		if err != nil {
			return o, fmt.Errorf("%s: the input %s: %w", own.Sources["input"].Place, own.Input.Shown, err)
		}
		o.Driven, o.DrivenBy = names, own.Input.Shown
	}
	return o, nil
}

// settleIsolation applies the settings of the documents on separate processes.
func (a *Assembly) settleIsolation(o *Options) error {
	own := &a.network.Own
	if !o.IsolateGiven && own.Isolation != "" {
		mode, err := ParseIsolation(own.Isolation)
		if err != nil {
			return fmt.Errorf("%s: %w", own.Sources["isolate"].Place, err)
		}
		o.Isolate = mode
	}
	if !o.RestartsGiven && own.Restarts != nil {
		o.Restarts = *own.Restarts
	}
	if own.StepTimeout != nil && o.Instance.StepTimeout == 0 {
		o.Instance.StepTimeout = Timeout(*own.StepTimeout)
	}
	limited := own.StepTimeout != nil || own.MemoryLimit != nil || !o.RestartsGiven && o.Restarts > 0
	named := len(o.IsolateComponents) > 0 ||
		slices.ContainsFunc(a.network.Components, func(c *ssp.FlatComponent) bool { return c.Isolate })
	switch {
	case !limited || named:
	case o.Isolate == IsolateAuto && !o.IsolateGiven: // limits need separate processes
		o.Isolate = IsolateAlways
	case o.Isolate == IsolateNever:
		a.Findings.Add(ruleNoEffect, "", "", 0, "the restarts and the limits of time and memory that the document gives "+
			"are for FMUs in processes of their own, and there are none; the step timeout ends only steps that are pending")
	}
	return nil
}

// Timeout converts a time in s to a duration of at least 1 ns.
func Timeout(s float64) time.Duration {
	const longest = 1e9 // s
	return max(time.Duration(min(s, longest)*float64(time.Second)), 1)
}
