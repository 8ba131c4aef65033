package assemble

import (
	"slices"
	"strconv"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/ssp"
)

// settle completes the options by the settings of the documents.
func (a *Assembly) settle(o Options) (Options, error) {
	if o.Settle != nil {
		err := o.Settle(&o, a.Asked)
		limit := func(s ssp.Asked) bool {
			return slices.Contains([]string{"step-timeout", "memory-limit", "on-crash"}, s.Name)
		}
		if o.Isolate == IsolateNever && len(o.IsolateComponents) == 0 && slices.ContainsFunc(a.Asked, limit) {
			a.Findings.Add(ruleNoEffect, "", "", 0, "the restarts and the limits of time and memory that the document gives "+
				"are for FMUs in processes of their own, and there are none; the step timeout ends only steps that are pending")
		}
		return o, err
	}
	for _, asked := range a.Asked {
		if asked.Name != ssp.StepSize && asked.Name != tolerance {
			at := asked.Place
			a.Findings.Add(ruleNoEffect, at.File, at.Path, at.Line, "%s has no effect: the program that opens the document reads no settings", asked)
		}
	}
	return o, nil
}

// tolerance is the name of the setting of the relative tolerance for the FMUs.
const tolerance = "tolerance"

// number returns a setting of the documents that is a number; nil if there is none.
func (a *Assembly) number(name string) *Sourced {
	i := slices.IndexFunc(a.Asked, func(s ssp.Asked) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	v, err := strconv.ParseFloat(a.Asked[i].Text, 64)
	if err != nil {
		return nil // reported when it was read
	}
	return &Sourced{v, a.Asked[i].From}
}

// bond is a power bond of the documents.
type bond struct {
	algorithms.Bond
	place ssp.Place
}

// declaredBonds returns the bonds of the documents. What is no bond was reported when it was read.
func (a *Assembly) declaredBonds() (list []bond) {
	for _, s := range a.Asked {
		if s.Name != "bond" {
			continue
		}
		if b, err := algorithms.ParseBond(s.Text); err == nil {
			list = append(list, bond{b, s.Place})
		}
	}
	return list
}

// Timeout converts a time in s to a duration of at least 1 ns.
func Timeout(s float64) time.Duration {
	const longest = 1e9 // s
	return max(time.Duration(min(s, longest)*float64(time.Second)), 1)
}
