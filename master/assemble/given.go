package assemble

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
)

// byUser is where findings and settings place a value of Options.Set at the connector of
// a system.
const byUser = "--set"

// target finds what a value can be given to: a variable of an FMU, or the connector of a
// system (not nil). A name that means several of them is an error.
func (a *Assembly) target(name string) (component int, v *description.ScalarVariable, connector *ssp.SystemConnector, err error) {
	component, v, err = a.find(name)
	if a.pkg == nil {
		return component, v, nil, err
	}
	connectors := a.pkg.SystemConnectors(name)
	variables, _ := a.meanings(name)
	if len(connectors)+len(variables) > 1 {
		var quoted []string
		for _, m := range variables {
			quoted = append(quoted, m.quoted)
		}
		for _, c := range connectors {
			quoted = append(quoted, c.Quoted)
		}
		return -1, nil, nil, &ambiguousError{name, quoted}
	}
	if len(connectors) == 1 {
		return -1, nil, &connectors[0], nil
	}
	return component, v, nil, err
}

// ofConnector reports whether a value is for the connector of a system.
func (a *Assembly) ofConnector(set Assignment) bool {
	_, _, connector, _ := a.target(set.Name)
	return connector != nil
}

// orConnectors names the connectors of the outermost system, those of one kind or all, as
// the end of a message on a name that means nothing.
func (a *Assembly) orConnectors(err error, kind ssp.Kind) string {
	if several := (*ambiguousError)(nil); errors.As(err, &several) || a.pkg == nil || len(a.pkg.Root.System.Connectors) == 0 {
		return ""
	}
	var names []string
	for _, c := range a.pkg.Root.System.Connectors {
		if kind == "" || c.Kind == kind {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; connectors of the system are " + strings.Join(names, ", ")
}

// give hands the values for connectors of systems to the documents, through which they
// go on. Those for variables of FMUs stay, and beat what the documents give them.
func (a *Assembly) give(list []Assignment) error {
	var values []ssp.ParameterValue
	var units []unit.Definition
	var errs []error
	beaten := map[ssp.Beaten]bool{}
	for _, set := range list {
		component, v, connector, err := a.target(set.Name)
		if connector == nil {
			if err == nil {
				beaten[ssp.Beaten{Component: component, Variable: v.Name}] = true
			}
			continue
		}
		value, u, err := a.parameter(set)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", set.Name, set.Value, err))
			continue
		}
		value.Name = connector.Name
		if i := slices.IndexFunc(units, func(k unit.Definition) bool { return k.Name == value.Unit }); u != nil && i >= 0 && *units[i].Base != *u.Base {
			value.Unit = "" // that of the connector counts
		} else if u != nil && i < 0 {
			units = append(units, *u)
		}
		values = append(values, value)
	}
	a.pkg.Beat(beaten)
	if len(values) > 0 {
		a.pkg.Give(values, units, byUser)
	}
	return errors.Join(errs...)
}

// checkGiven warns where the value of a connector does not come to count.
func (a *Assembly) checkGiven(name string, driven []map[string]bool) {
	reached := false
	for _, s := range a.network.Settings {
		if s.From.At() != name || s.From.Place.File != byUser {
			continue
		}
		reached = true
		if driven[s.Component][s.Variable] {
			a.Findings.Add(ruleNoEffect, "", name, 0, "%s.%s is given from outside: the value set has no effect on it", a.Components[s.Component].Name, s.Variable)
		}
	}
	if !reached {
		a.Findings.Add(ruleNoEffect, "", name, 0, "the value of the connector reaches no FMU: nothing is connected to it, an output that feeds it beats it, or another value set behind it does")
	}
}

// Input is what an input of the outermost system gives to an input of an FMU: the value
// times Gain plus Offset for Reals, through Map for other types.
type Input struct {
	Name         string // "component.variable"
	Gain, Offset float64
	Map          map[int32]int32

	component int
	variable  string
}

// Inputs tells what the columns of a table feed that do not have the name of an input in
// the system: inputs of the outermost system, by their names both as they are and in
// quotes, and inputs of FMUs that Options.Driven calls otherwise.
func (a *Assembly) Inputs() map[string][]Input {
	out := map[string][]Input{}
	for _, in := range a.network.Inputs {
		if in.To.Component >= len(a.Components) {
			continue // of a function
		}
		for _, name := range []string{in.Name, in.Quoted} {
			out[name] = append(out[name], Input{a.endpoint(in.To).String(), in.Gain, in.Offset, in.Map, in.To.Component, in.To.Variable})
		}
	}
	for _, name := range a.options.Driven {
		all, _ := a.meanings(name) // without the messages of target, which take long
		if len(all) != 1 || a.pkg != nil && len(a.pkg.SystemConnectors(name)) > 0 {
			continue
		}
		i, v := all[0].component, all[0].v
		if settled := a.Components[i].Name + "." + v.Name; settled != name {
			out[name] = []Input{{Name: settled, Gain: 1, component: i, variable: v.Name}}
		}
	}
	return out
}

// ItemsOf returns the items of a variable "component.variable" of an FMU that is an
// enumeration, by their names; nil = it is none.
func (a *Assembly) ItemsOf(name string) map[string]int32 {
	for i := range a.Components {
		variable, ok := strings.CutPrefix(name, a.Components[i].Name+".")
		if !ok || a.Components[i].FMU == nil {
			continue
		}
		if v, known := (variables{a.Components[i].FMU.Description}).Lookup(variable); known && len(v.Items) > 0 {
			return v.Items
		}
	}
	return nil
}

// Items returns the items of those of Options.Driven that are enumerations.
func (a *Assembly) Items() map[string]map[string]int32 {
	out := map[string]map[string]int32{}
	for _, name := range a.options.Driven {
		i, v, connector, err := a.target(name)
		switch {
		case err != nil:
		case connector != nil:
			if c := a.typed(connector); len(c.Items) > 0 {
				out[name] = c.Items
			}
		case v.Type == description.Enumeration:
			if of, ok := (variables{a.Components[i].FMU.Description}).Lookup(v.Name); ok && len(of.Items) > 0 {
				out[name] = of.Items
			}
		}
	}
	return out
}
