package assemble

import (
	"errors"
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/ssp"
)

// byUser is the place of a value of Options.Set at the connector of a system, in findings and
// settings.
const byUser = "--set"

// target finds the variable of an FMU or the connector of a system (not nil) with a name. An ambiguous
// name is an error.
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

// ofConnector reports whether an assignment is for the connector of a system.
func (a *Assembly) ofConnector(set Assignment) bool {
	_, _, connector, _ := a.target(set.Name)
	return connector != nil
}

// orConnectors lists the connectors of the outermost system, of one kind or all, as the end of
// the message on an unknown name.
func (a *Assembly) orConnectors(err error, kind ssp.Kind) string {
	if several := (*ambiguousError)(nil); errors.As(err, &several) || a.pkg == nil {
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

// give passes the values for connectors of systems to the documents, which pass them on over
// connections. Values for variables of FMUs override those of the documents.
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
		units = addUnit(units, &value, u)
		values = append(values, value)
	}
	a.pkg.Beat(beaten)
	if len(values) > 0 {
		a.pkg.Give(values, units, byUser)
	}
	return errors.Join(errs...)
}

// checkGiven warns if the value of a connector has no effect.
func (a *Assembly) checkGiven(name string, driven []map[string]bool) {
	reached := false
	for _, s := range a.network.Settings {
		if s.From.At() != name || s.From.Place.File != byUser {
			continue
		}
		reached = true
		if driven[s.Component][s.Variable] {
			a.Findings.Add(ruleNoEffect, "", name, 0, "%s.%s is given from outside: the value set has no effect on it",
				a.Components[s.Component].Name, s.Variable)
		}
	}
	if !reached {
		a.Findings.Add(ruleNoEffect, "", name, 0, "the value of the connector reaches no FMU: nothing is connected to it, "+
			"or an output that feeds it or another value overrides it")
	}
}

// Input is an input of an FMU that an input of the outermost system feeds: with its value times
// Gain plus Offset for Reals, with its value mapped by Map for other types.
type Input struct {
	Name         string // "component.variable"
	Gain, Offset float64
	Map          map[int64]int64

	component int
	variable  string
}

// drivenTarget is target for a name in Options.Driven, which may have a unit: "u [kN]". The value of the target is gain times the
// given one plus offset.
func (a *Assembly) drivenTarget(name string) (d drivenTarget, err error) {
	d.gain = 1
	if d.component, d.v, d.connector, err = a.target(name); err == nil {
		return d, nil
	}
	bare, text := results.SplitUnit(name)
	if bare == name {
		return d, err
	}
	if d.component, d.v, d.connector, err = a.target(bare); err != nil {
		return d, err
	}
	var own *unit.Base // of the target, and its name
	var of string
	var relative bool
	given := results.Unit(text)
	if c := d.connector; c != nil {
		own, of = c.UnitBase, c.Unit
	} else if d.v.Type == description.Real {
		description := a.Components[d.component].FMU.Description
		own, of, relative = baseUnit(description, d.v), d.v.Real.Unit, d.v.Real.RelativeQuantity
		if u, ok := description.Unit(text); ok && u.Base != nil {
			given = u.Base
		}
	}
	if own == nil {
		own = results.Unit(of)
	}
	switch {
	case of == "" || text == "" || of == text:
		return d, nil
	case given == nil || own == nil:
		return d, fmt.Errorf("%s is in %q in the table and in %q in the FMU, and macrostep cannot convert one into the other; give it in %q",
			bare, text, of, of)
	}
	if d.gain, d.offset, err = unit.Convert(given, own, relative); err != nil {
		return d, fmt.Errorf("%s is in %q in the table and in %q in the FMU: %w; give it in %q", bare, text, of, err, of)
	}
	return d, nil
}

// drivenTarget is an input that a signal drives: a variable, or a connector of a system.
type drivenTarget struct {
	component    int
	v            *description.ScalarVariable
	connector    *ssp.SystemConnector
	gain, offset float64
}

// Inputs returns the inputs of FMUs that a column of a table feeds, for names of columns that are
// not names of inputs in System: inputs of the outermost system, with and without quotes, and
// other names in Options.Driven.
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
		bare, _ := results.SplitUnit(name)
		all, _ := a.meanings(name) // drivenTarget would compose an error message, which takes long
		if len(out[name]) > 0 || bare == name && (len(all) != 1 || a.pkg != nil && len(a.pkg.SystemConnectors(name)) > 0) {
			continue
		}
		d, err := a.drivenTarget(name)
		switch {
		case err != nil:
		case d.connector != nil:
			for _, in := range out[bare] {
				in.Gain, in.Offset = in.Gain*d.gain, in.Gain*d.offset+in.Offset
				out[name] = append(out[name], in)
			}
		default:
			if settled := a.Components[d.component].Name + "." + d.v.Name; settled != name {
				out[name] = []Input{{Name: settled, Gain: d.gain, Offset: d.offset, component: d.component, variable: d.v.Name}}
			}
		}
	}
	return out
}

// Outputs lists the outputs of the outermost system, by the outputs of FMUs and functions that feed them.
func (a *Assembly) Outputs() (out []record.Output) {
	for _, o := range a.network.Outputs {
		out = append(out, record.Output{Name: o.Name, From: a.endpoint(o.From).String(), Unit: o.Unit, Gain: o.Gain, Offset: o.Offset, Map: o.Map})
	}
	return out
}

// ItemsOf returns the items of an enumeration "component.variable" by name; nil if it is
// not an enumeration.
func (a *Assembly) ItemsOf(name string) map[string]int64 {
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

// Items returns the items of the enumerations in Options.Driven.
func (a *Assembly) Items() map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for _, name := range a.options.Driven {
		d, err := a.drivenTarget(name)
		switch {
		case err != nil:
		case d.connector != nil:
			if c := a.typed(d.connector); len(c.Items) > 0 {
				out[name] = c.Items
			}
		case d.v.Type == description.Enumeration:
			if of, ok := (variables{a.Components[d.component].FMU.Description}).Lookup(d.v.Name); ok && len(of.Items) > 0 {
				out[name] = of.Items
			}
		}
	}
	return out
}
