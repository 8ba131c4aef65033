package assemble

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/ssp"
)

// Change is a value that Bind changes: as written in a parameter set, "" for a
// variable without a value so far.
type Change struct{ Name, Old, New string }

// Bind gives variables "component.variable" values in the documents of the system:
// ssp.Package.Bind with the types and units of the FMUs. Values are written as for
// Options.Set, in the unit of the variable. The files that differ then are given
// back, none is written; the assembly is as before and may be closed.
func (a *Assembly) Bind(list []Assignment) (changes []Change, files []ssp.File, err error) {
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
		values = append(values, value)
		changes = append(changes, Change{set.Name, a.valueNow(set.Name), value.Value.String()})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	files, err = a.pkg.Bind(values, units)
	return changes, files, err
}

// parameter makes the entry of a set.
func (a *Assembly) parameter(set Assignment) (ssp.ParameterValue, *unit.Definition, error) {
	out := ssp.ParameterValue{Name: set.Name}
	i, v, err := a.find(set.Name)
	if err != nil {
		return out, nil, err
	}
	d := a.Components[i].FMU.Description
	value, err := parseValue(v, d, set.Value)
	if err != nil {
		return out, nil, err
	}
	if !fmuslave.Settable(v) {
		return out, nil, fmt.Errorf("it cannot be set: its causality is %s, its variability %s, its initial %s; set what it follows from", v.Causality, v.Variability, v.Initial)
	}
	if low, high, inside := bounds(v, value); !inside {
		return out, nil, fmt.Errorf("the value lies outside the bounds %g to %g", low, high)
	}
	out.Value = ssp.Value{Type: typeOf(v.Type), Real: value.Real, Int: value.Integer, Bool: value.Boolean, Text: value.String}
	switch v.Type {
	case fmi.Real:
		if u, ok := d.Unit(v.Real.Unit); ok && u.Base != nil {
			out.Unit = u.Name
			return out, u, nil
		}
	case fmi.Enumeration:
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

// valueNow gives the value of a variable before the run: of the documents, else of
// the FMU; "" if there is none.
func (a *Assembly) valueNow(name string) string {
	for _, s := range a.Settings() {
		if s.Name == name {
			return s.Value
		}
	}
	_, v, err := a.find(name)
	if err != nil || !v.HasStart {
		return ""
	}
	switch v.Type {
	case fmi.Real:
		return strconv.FormatFloat(v.StartReal, 'g', -1, 64)
	case fmi.Boolean:
		return strconv.FormatBool(v.StartBoolean)
	case fmi.String:
		return v.StartString
	}
	return strconv.Itoa(int(v.StartInteger))
}

// Package gives the documents of the system, nil for an FMU alone. It is closed with
// the assembly.
func (a *Assembly) Package() *ssp.Package { return a.pkg }
