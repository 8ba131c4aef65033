package assemble

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

// Change is a value that Bind changes: as written in a parameter set, "" for a
// variable without a value so far.
type Change struct{ Name, Old, New string }

// Bind returns variables "component.variable" values in the documents of the system:
// edit.Bind with the types and units of the FMUs. Values are written as for
// Options.Set, in the unit of the variable. A name may also be that of a connector of
// a system, "connector" or "system.connector", whose value goes on to all that it is
// connected to, in the unit of the connector (ssp 37). The files that differ then are given
// back, none is written; the assembly is as before and may be closed.
func (a *Assembly) Bind(list []Assignment) (changes []Change, files []edit.File, err error) {
	if a.pkg == nil {
		return nil, nil, errors.New("an FMU alone has no parameter sets; make a system of it with: macrostep ssp new")
	}
	var values []ssp.ParameterValue
	var units []unit.Definition
	var errs []error
	for _, set := range list {
		value, u, err := a.parameter(set)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", set.Name, set.Value, err))
			continue
		}
		if i := slices.IndexFunc(units, func(k unit.Definition) bool { return k.Name == value.Unit }); value.Unit != "" && i >= 0 && *units[i].Base != *u.Base {
			value.Unit = "" // that of the FMU counts
		} else if value.Unit != "" && i < 0 {
			units = append(units, *u)
		}
		name, joined := a.inDocuments(set.Name)
		if means := a.meansJoined(joined); len(means) > 1 {
			errs = append(errs, fmt.Errorf("%s: a parameter set of the outermost system calls it %q, and gives the value to all that is called so there: %s; rename one of them, or bind the value in the document at the component itself", set.Name, joined, strings.Join(means, " and ")))
			continue
		}
		value.Name = joined
		values = append(values, value)
		changes = append(changes, Change{name, a.valueNow(name), value.Value.String()})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	files, err = edit.Bind(a.pkg, values, units)
	return changes, files, err
}

// inDocuments returns the name of a variable or connector in results and settings, and as
// parameter sets have it.
func (a *Assembly) inDocuments(name string) (settled, joined string) {
	i, v, connector, err := a.target(name)
	switch {
	case err != nil:
		return name, name
	case connector != nil:
		return connector.Joined, connector.Joined
	}
	joined, _ = a.paths(i)
	return a.Components[i].Name + "." + v.Name, joined + "." + v.Name
}

// meansJoined tells what a name means to a parameter set.
func (a *Assembly) meansJoined(joined string) (quoted []string) {
	variables, _ := a.meanings(joined)
	for _, m := range variables {
		quoted = append(quoted, m.quoted)
	}
	for _, c := range a.pkg.SystemConnectors(joined) {
		quoted = append(quoted, c.Quoted)
	}
	return quoted
}

// parameter makes the entry of a set.
func (a *Assembly) parameter(set Assignment) (ssp.ParameterValue, *unit.Definition, error) {
	out := ssp.ParameterValue{Name: set.Name}
	i, v, connector, err := a.target(set.Name)
	if err != nil {
		return out, nil, err
	}
	if connector != nil {
		return connectorValue(a.typed(connector), set)
	}
	d := a.Components[i].FMU.Description
	value, err := parseValue(v, d, set.Value)
	if err != nil {
		return out, nil, err
	}
	if !fmuslave.Settable(v) {
		return out, nil, fmt.Errorf("it cannot be set: its causality is %s, its variability %s, its initial %s; set the variables from which it is calculated", v.Causality, v.Variability, v.Initial)
	}
	if low, high, inside := bounds(v, value); !inside {
		return out, nil, fmt.Errorf("the value lies outside the bounds %g to %g", low, high)
	}
	out.Value = ssp.Value{Type: typeOf(v.Type), Real: value.Real, Int: value.Integer, Bool: value.Boolean, Text: value.String}
	switch v.Type {
	case description.Real:
		if u, ok := d.Unit(v.Real.Unit); ok && u.Base != nil {
			out.Unit = u.Name
			return out, u, nil
		}
	case description.Enumeration:
		for _, item := range d.Enumeration(v.DeclaredType) {
			if item.Value == value.Integer {
				out.Value.Text = item.Name
			}
		}
		if out.Value.Text == "" {
			return out, nil, errors.New("the FMU does not name the items of the enumeration, and a parameter set holds names")
		}
	}
	return out, nil, nil
}

// typed returns the connector of a system; where it has no type, or an enumeration that its
// document does not define, it has that of the variable to which it leads.
func (a *Assembly) typed(c *ssp.SystemConnector) *ssp.Variable {
	v := c.Variable
	if c.To.Component < 0 || v.Type != ssp.Unspecified && (v.Type != ssp.Enumeration || len(v.Items) > 0) {
		return &v
	}
	if to, ok := (variables{a.Components[c.To.Component].FMU.Description}).Lookup(c.To.Variable); ok {
		v.Type, v.Items = to.Type, to.Items
	}
	return &v
}

// connectorValue makes the entry of a set for a connector of a system. Where that has
// no type, the form of the value tells.
func connectorValue(c *ssp.Variable, set Assignment) (ssp.ParameterValue, *unit.Definition, error) {
	out := ssp.ParameterValue{Name: set.Name, Value: ssp.Value{Type: c.Type}}
	if c.Type == ssp.Unspecified {
		out.Value.Type = ssp.String
		if _, err := strconv.ParseInt(set.Value, 10, 32); err == nil {
			out.Value.Type = ssp.Integer
		} else if _, err := strconv.ParseFloat(set.Value, 64); err == nil {
			out.Value.Type = ssp.Real
		} else if set.Value == "true" || set.Value == "false" {
			out.Value.Type = ssp.Boolean
		}
	}
	v := &description.ScalarVariable{Name: set.Name}
	switch out.Value.Type {
	case ssp.Real:
		v.Type = description.Real
	case ssp.Integer:
		v.Type = description.Integer
	case ssp.Boolean:
		v.Type = description.Boolean
	case ssp.String:
		v.Type = description.String
	case ssp.Enumeration: // by name, as in parameter sets
		if _, known := c.Items[set.Value]; known || len(c.Items) == 0 {
			out.Value.Text = set.Value
			return out, nil, nil
		}
		n, err := strconv.ParseInt(set.Value, 10, 32)
		for name, number := range c.Items {
			if err == nil && int64(number) == n && (out.Value.Text == "" || name < out.Value.Text) {
				out.Value.Text = name
			}
		}
		if out.Value.Text == "" {
			return out, nil, fmt.Errorf("the connector is an Enumeration; give one of its items: %s", diag.ListItems(c.Items))
		}
		return out, nil, nil
	default:
		return out, nil, fmt.Errorf("the connector is of type %s, which FMI 2.0 does not have", c.Type)
	}
	value, err := parseValue(v, &description.ModelDescription{}, set.Value)
	if err != nil {
		return out, nil, err
	}
	out.Value.Real, out.Value.Int, out.Value.Bool, out.Value.Text = value.Real, value.Integer, value.Boolean, value.String
	if out.Value.Type == ssp.Real && c.UnitBase != nil {
		out.Unit = c.Unit
		return out, &unit.Definition{Name: c.Unit, Base: c.UnitBase}, nil
	}
	return out, nil, nil
}

// valueNow returns the value of a variable before the run: of the documents, else of
// the FMU; of a connector of a system what it is bound to; "" if there is none.
func (a *Assembly) valueNow(name string) string {
	for _, s := range a.Settings() {
		switch name {
		case s.Name:
			return s.Value
		case s.At:
			return s.Bound
		}
	}
	_, v, err := a.find(name)
	if err != nil || !v.HasStart {
		return ""
	}
	switch v.Type {
	case description.Real:
		return strconv.FormatFloat(v.StartReal, 'g', -1, 64)
	case description.Boolean:
		return strconv.FormatBool(v.StartBoolean)
	case description.String:
		return v.StartString
	}
	return strconv.Itoa(int(v.StartInteger))
}

// Package returns the documents of the system, nil for an FMU alone. It is closed with
// the assembly.
func (a *Assembly) Package() *ssp.Package { return a.pkg }
