package assemble

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/fmuslave"
)

// planStarts collects the values of the documents and, overriding them, of the user.
func (a *Assembly) planStarts(o Options, plan []componentPlan) error {
	for _, s := range a.network.Settings {
		v := s.Value
		if of, ok := a.Components[s.Component].FMU.Description.Variable(s.Variable); ok {
			v.Text, _ = bytesOf(of, v.Text) // ssp has checked it
		}
		plan[s.Component].starts = append(plan[s.Component].starts, fmuslave.Value{
			Variable: s.Variable, Real: v.Real, Integer: v.Int, Boolean: v.Bool, String: v.Text,
		})
	}
	var errs []error
	for _, set := range o.Set {
		i, v, connector, err := a.target(set.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w%s", err, a.orConnectors(err, "")))
			continue
		}
		if connector != nil { // done by give
			continue
		}
		value, err := parseValue(v, a.Components[i].FMU.Description, set.Value)
		if err == nil {
			err = settable(v)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", set.Name, set.Value, err))
			continue
		}
		if low, high, inside := bounds(v, value); !inside {
			a.Findings.Add(ruleRange, "", a.Components[i].Name+"."+v.Name, 0,
				"the value %s lies outside the bounds %v to %v", set.Value, low, high)
		}
		plan[i].starts = append(plan[i].starts, value)
	}
	for i := range plan {
		errs = append(errs, a.fixSizes(i, &plan[i]))
	}
	return errors.Join(errs...)
}

// fixSizes takes the structural parameters out of the values of a component, whose FMU was opened with them.
func (a *Assembly) fixSizes(component int, p *componentPlan) error {
	last := map[string]int64{}
	p.starts = slices.DeleteFunc(p.starts, func(s fmuslave.Value) bool {
		v, _ := a.Components[component].FMU.Description.Variable(s.Variable)
		if isSize(v) {
			last[v.Name] = s.Integer
		}
		return isSize(v)
	})
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if v, _ := a.Components[component].FMU.Description.Variable(name); v.StartInteger != last[name] {
			errs = append(errs, fmt.Errorf("%s.%s = %d: it is a structural parameter, and the FMU was opened with %d; the "+
				"sizes of arrays are fixed when the system is opened",
				a.Components[component].Name, name, last[name], v.StartInteger))
		}
	}
	return errors.Join(errs...)
}

// Varies returns an error for the values that cannot differ between the systems of the model.
func (m *Model) Varies(values []Assignment) error {
	var errs []error
	for _, set := range values {
		if _, v, _, err := m.first.target(set.Name); err == nil && isSize(v) {
			errs = append(errs, fmt.Errorf("%s cannot vary: it is a structural parameter, and the sizes of arrays are fixed "+
				"when the system is opened; make a study for each size, with --run set=%[1]s=VALUE", set.Name))
		}
	}
	return errors.Join(errs...)
}

// settable returns an error if a variable cannot be set.
func settable(v *description.ScalarVariable) error {
	if fmuslave.Settable(v) || isSize(v) {
		return nil
	}
	return fmt.Errorf("it cannot be set: its causality is %s, its variability %s, its initial %s; "+
		"set the variables from which it is calculated", v.Causality, v.Variability, v.Initial)
}

// parseValue parses a value for a variable: a number, true, false, 0 or 1, the name of an
// enumeration item, or text.
func parseValue(v *description.ScalarVariable, d *description.ModelDescription, text string) (fmuslave.Value, error) {
	out := fmuslave.Value{Variable: v.Name}
	switch v.Type {
	case description.Real:
		x, err := strconv.ParseFloat(text, 64) // also INF and -INF
		if err != nil || math.IsNaN(x) {
			return out, fmt.Errorf("the variable is a Real; give a finite number, INF or -INF%s", diag.DecimalComma(text))
		}
		if v.Storage == description.StoreFloat32 && math.IsInf(float64(float32(x)), 0) && !math.IsInf(x, 0) {
			return out, errors.New("the variable is a Float32; give a number of at most 3.4e38")
		}
		out.Real = x
	case description.Integer, description.Enumeration:
		items := d.Enumeration(v.DeclaredType)
		if i := slices.IndexFunc(items, func(e description.EnumerationItem) bool { return e.Name == text }); i >= 0 {
			out.Integer = int64(items[i].Value)
			return out, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if low, high := v.Range(); err != nil || n < low || n > high {
			if v.Type == description.Enumeration {
				return out, fmt.Errorf("the variable is an Enumeration; give one of its items%s%s", listed(items), diag.DidYouMean(text, namesOf(items)))
			}
			if low != math.MinInt32 {
				return out, fmt.Errorf("the variable is of type %s; give a whole number from %d to %d", v.TypeName(), low, high)
			}
			return out, errors.New("the variable is an Integer; give a whole number of 32 bits")
		}
		out.Integer = n
		if len(items) > 0 && !slices.ContainsFunc(items, func(e description.EnumerationItem) bool { return e.Value == n }) {
			return out, fmt.Errorf("the variable is an Enumeration, and none of its items has this number; give one of them%s",
				listed(items))
		}
	case description.Boolean:
		switch text {
		case "true", "1":
			out.Boolean = true
		case "false", "0":
		default:
			return out, errors.New("the variable is a Boolean; give true or false")
		}
	case description.String:
		var err error
		if out.String, err = bytesOf(v, text); err != nil {
			return out, errors.New("the variable is a Binary; give its bytes, each as two hexadecimal digits")
		}
	}
	return out, nil
}

// bytesOf returns a text, or the bytes of a Binary.
func bytesOf(v *description.ScalarVariable, text string) (string, error) {
	if v.Storage != description.StoreBinary {
		return text, nil
	}
	b, err := hex.DecodeString(strings.TrimSpace(text))
	return string(b), err
}

func namesOf(items []description.EnumerationItem) (names []string) {
	for _, item := range items {
		names = append(names, item.Name)
	}
	return names
}

// listed lists items at the end of a message.
func listed(items []description.EnumerationItem) string {
	if len(items) == 0 {
		return ", by its number"
	}
	by := make(map[string]int64, len(items))
	for _, item := range items {
		by[item.Name] = int64(item.Value)
	}
	return ": " + diag.ListItems(by)
}

// bounds reports whether a value lies between min and max of the variable (fmi2 45).
func bounds(v *description.ScalarVariable, value fmuslave.Value) (low, high any, inside bool) {
	switch v.Type {
	case description.Real:
		low, high := math.Inf(-1), math.Inf(1)
		if v.Real.Min != nil {
			low = *v.Real.Min
		}
		if v.Real.Max != nil {
			high = *v.Real.Max
		}
		return low, high, low <= value.Real && value.Real <= high
	case description.Integer:
		low, high := v.Bounds()
		return low, high, low <= value.Integer && value.Integer <= high
	}
	return nil, nil, true
}
