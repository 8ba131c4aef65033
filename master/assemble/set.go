package assemble

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

// Change is a value changed by Bind, in the form of a parameter set; Old is "" if there was no
// value.
type Change struct{ Name, Old, New string }

// Bind binds values to variables "component.variable" in the documents of the system: edit.Bind
// with the types and units of the FMUs. Values have the form of Options.Set and the unit of the
// variable. A name may also be that of a connector of a system, "connector" or
// "system.connector"; its value, in the unit of the connector, is passed on over its connections
// (ssp 37). Settings are those of edit.Bind. Bind returns the changed files without writing them and does not change the assembly.
func (a *Assembly) Bind(list []Assignment, settings ...ssp.Asked) (changes []Change, files []edit.File, err error) {
	if a.pkg == nil {
		return nil, nil, errors.New("an FMU alone has no parameter sets and no annotation of macrostep; make a system of it with: macrostep ssp new")
	}
	before := make([]string, len(list))
	for k, set := range list {
		name, _ := a.inDocuments(set.Name)
		before[k] = a.valueNow(name)
	}
	a.options.Set = list
	if err := a.resize(); err != nil { // sizes of arrays decide which variables there are
		return nil, nil, err
	}
	var values []ssp.ParameterValue
	var units []unit.Definition
	var errs []error
	for k, set := range list {
		value, u, err := a.parameter(set)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", set.Name, set.Value, err))
			continue
		}
		units = addUnit(units, &value, u)
		name, joined := a.inDocuments(set.Name)
		if means := a.meansJoined(joined); len(means) > 1 {
			errs = append(errs, fmt.Errorf("%s: a parameter set of the outermost system calls it %q, "+
				"and gives the value to everything of that name there: %s; "+
				"rename one of them, or bind the value in the document at the component itself",
				set.Name, joined, strings.Join(means, " and ")))
			continue
		}
		value.Name = joined
		values = append(values, value)
		changes = append(changes, Change{name, before[k], value.Value.String()})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	files, err = edit.Bind(a.pkg, values, units, settings...)
	return changes, files, err
}

// addUnit adds the unit of a value to a list. If the list has a different unit of this name, it
// removes the unit from the value, whose target then determines the unit.
func addUnit(units []unit.Definition, value *ssp.ParameterValue, u *unit.Definition) []unit.Definition {
	if u == nil {
		return units
	}
	i := slices.IndexFunc(units, func(k unit.Definition) bool { return k.Name == value.Unit })
	if i < 0 {
		return append(units, *u)
	}
	if *units[i].Base != *u.Base {
		value.Unit = ""
	}
	return units
}

// inDocuments returns the name of a variable or connector in results and settings, and its
// name in parameter sets.
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

// meansJoined lists the variables and connectors to which a name in a parameter set refers.
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

// parameter returns the entry of a parameter set for an assignment, and the definition of its
// unit; nil = it has none.
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
	if err := settable(v); err != nil {
		return out, nil, err
	}
	if low, high, inside := bounds(v, value); !inside {
		return out, nil, fmt.Errorf("the value lies outside the bounds %v to %v", low, high)
	}
	out.Value = ssp.Value{Type: typeOf(v.Type), Real: value.Real, Int: value.Integer, Bool: value.Boolean, Text: value.String}
	switch v.Type {
	case description.String:
		if v.Storage == description.StoreBinary {
			out.Value.Type, out.Value.Text = ssp.Binary, strings.TrimSpace(set.Value)
		}
	case description.Real:
		if u, ok := d.Unit(v.Real.Unit); ok && u.Base != nil {
			out.Unit = u.Name
			return out, u, nil
		}
	case description.Enumeration:
		for _, item := range d.Enumeration(v.DeclaredType) {
			if item.Value == int64(value.Integer) {
				out.Value.Text = item.Name
			}
		}
		if out.Value.Text == "" {
			return out, nil, errors.New("the FMU does not name the items of the enumeration, and a parameter set holds names")
		}
	}
	return out, nil, nil
}

// typed returns the connector of a system. If it has no type, or an enumeration that its
// document does not define, it gets the type of the variable to which it leads.
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

// connectorValue returns the entry of a parameter set for a connector of a system. If the
// connector has no type, the type follows from the form of the value.
func connectorValue(c *ssp.Variable, set Assignment) (ssp.ParameterValue, *unit.Definition, error) {
	out := ssp.ParameterValue{Name: set.Name, Value: ssp.Value{Type: c.Type}}
	switch c.Type {
	case ssp.Unspecified:
		out.Value.Type = typeOfText(set.Value)
	case ssp.Enumeration:
		name, err := itemName(c.Items, set.Value)
		out.Value.Text = name
		return out, nil, err
	}
	kinds := map[ssp.ValueType]description.BaseType{
		ssp.Real: description.Real, ssp.Integer: description.Integer, ssp.Boolean: description.Boolean, ssp.String: description.String,
	}
	kind, known := kinds[out.Value.Type]
	if !known {
		return out, nil, fmt.Errorf("the connector is of type %s, which FMI 2.0 does not have", c.Type)
	}
	// The range is that of the FMU variable.
	v := &description.ScalarVariable{Name: set.Name, Type: kind, Storage: description.StoreInt64}
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

// typeOfText returns the type that the form of a value suggests.
func typeOfText(text string) ssp.ValueType {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ssp.Integer
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return ssp.Real
	}
	if text == "true" || text == "false" {
		return ssp.Boolean
	}
	return ssp.String
}

// itemName returns the name of an enumeration item given by name or number. Without items, any
// name is accepted.
func itemName(items map[string]int64, text string) (string, error) {
	if _, known := items[text]; known || len(items) == 0 {
		return text, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	for _, name := range slices.Sorted(maps.Keys(items)) {
		if err == nil && int64(items[name]) == n {
			return name, nil
		}
	}
	return "", fmt.Errorf("the connector is an Enumeration; give one of its items: %s%s", diag.ListItems(items),
		diag.DidYouMean(text, slices.Sorted(maps.Keys(items))))
}

// valueNow returns the value of a variable before the run: from the documents, else the start
// value of the FMU. For a connector of a system it returns the value bound to it. "" = none.
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
		return v.StartText()
	}
	return strconv.FormatInt(v.StartInteger, 10)
}

// Package returns the documents of the system, nil for a single FMU. They are closed with the
// assembly.
func (a *Assembly) Package() *ssp.Package { return a.pkg }
