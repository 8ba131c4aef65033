package assemble

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/ssp"
)

// Explanation describes the sources of the value of a variable.
type Explanation struct {
	Name        string `json:"name"` // component.variable
	Type        string `json:"type"`
	Unit        string `json:"unit"`
	Causality   string `json:"causality"`
	Variability string `json:"variability"`
	Initial     string `json:"initial"`
	// Chain lists the values before the run; each overrides the previous ones (ssp 36).
	Chain []Origin `json:"chain"`
	// Fed is the connection that feeds an input during the run, null = none. With it, Chain
	// applies only until the first exchange.
	Fed *Feed `json:"fed"`
	// Note is a remark, for example why the variable cannot be set.
	Note string `json:"note"`
}

// Origin is a value with its place.
type Origin struct {
	Value string `json:"value"`
	Place string `json:"place"` // file and line; "" = Options.Set
	How   string `json:"how"`   // in words
	// Steps lists the conversions of the value, from its parameter set to Value.
	Steps []Step `json:"steps,omitempty"`
}

// Step is a conversion of a value, with its result.
type Step struct {
	What  string `json:"what"` // in words
	Value string `json:"value"`
	Unit  string `json:"unit"`
	Place string `json:"place"` // file and line; "" = of the variable itself
}

// newSteps describes the conversions of a value.
func newSteps(list []ssp.Step) []Step {
	out := make([]Step, len(list))
	for i, s := range list {
		out[i] = Step{What: s.What, Value: s.Value.String(), Unit: s.Unit}
		if s.Place != (ssp.Place{}) {
			out[i].Place = s.Place.String()
		}
	}
	return out
}

// Feed describes a connection to an input.
type Feed struct {
	From   string  `json:"from"`
	Unit   string  `json:"unit"`
	Gain   float64 `json:"gain"` // of Reals, unit conversion included
	Offset float64 `json:"offset"`
	Map    string  `json:"map"`
	Via    string  `json:"via"`
	Place  string  `json:"place"`
}

// Explain describes the sources of the value of a variable "component.variable".
func (a *Assembly) Explain(name string) (*Explanation, error) {
	i, v, err := a.find(name)
	if err != nil {
		return nil, cmp.Or(a.explainConnector(name), err)
	}
	c := a.Components[i]
	e := &Explanation{Name: c.Name + "." + v.Name, Type: v.Type.String(), Unit: v.Real.Unit,
		Causality: v.Causality.String(), Variability: v.Variability.String(), Initial: v.Initial.String(), Chain: []Origin{}}
	if v.DeclaredType != "" {
		e.Type += " " + v.DeclaredType
	}
	_, resized := c.FMU.Structure[v.Name]
	if v.HasStart && !resized {
		how := "documented start value of the FMU" // the FMU should have it without being set (fmi2 42)
		if fmuslave.Settable(v) && a.Components[i].Quirks.Has(fmuslave.SetStarts) {
			how += ", set by a quirk"
		}
		place := fmt.Sprintf("%s!modelDescription.xml:%d", c.Source, v.Line)
		e.Chain = append(e.Chain, Origin{Value: startText(v, c.FMU.Description), Place: place, How: how})
	}
	for _, s := range a.network.Settings {
		if s.Component != i || s.Variable != v.Name {
			continue
		}
		for _, p := range append(slices.Clip(s.Overrides), s.From) {
			level := "at the outermost system"
			if p.Level != "" {
				level = "at " + p.Level
			}
			how, place := fmt.Sprintf("bound %s as %q", level, p.Name), p.Place.String()
			if place == byUser {
				how, place = fmt.Sprintf("given by the user as %q", p.Name), ""
			}
			e.Chain = append(e.Chain, Origin{p.Value.String(), place, how, newSteps(p.Steps)})
		}
	}
	for _, set := range a.options.Set {
		if k, w, err := a.find(set.Name); err == nil && k == i && w == v {
			e.Chain = append(e.Chain, Origin{Value: set.Value, How: "given by the user"})
		}
	}
	for _, k := range a.network.Connections {
		if k.To == (ssp.FlatEnd{Component: i, Variable: v.Name}) {
			e.Fed = &Feed{From: a.endpoint(k.From).String(), Unit: a.unitOf(k.From), Gain: k.Gain, Offset: k.Offset,
				Map: mapText(k.Map), Via: strings.Join(k.Via, ", "), Place: k.Place.String()}
		}
	}
	switch {
	case v.Causality == description.Independent:
		e.Note = "it is the time"
	case v.Variability == description.Constant:
		e.Note = "it is a constant of the FMU"
	case isSize(v):
		e.Note = "it is fixed when the system is opened"
	case v.Causality == description.Output || v.Causality == description.CalculatedParameter, !fmuslave.Settable(v):
		e.Note = "the FMU computes it"
		if fmuslave.Settable(v) {
			e.Note += ", from this start value"
		}
	}
	return e, nil
}

// explainConnector returns an error that lists the variables to which the connector of a system
// passes a value; nil if the name is not a connector.
func (a *Assembly) explainConnector(name string) error {
	if a.pkg == nil {
		return nil
	}
	_, _, connector, err := a.target(name)
	if connector == nil {
		return err
	}
	var reached []string
	for _, s := range a.Settings() {
		if s.At == connector.Joined || s.At == connector.Name {
			reached = append(reached, s.Name)
		}
	}
	if len(reached) == 0 {
		return fmt.Errorf("%q is a connector of a system and sets no variable of an FMU; name a connector of a component", name)
	}
	return fmt.Errorf("%q is a connector of a system; it gives %s a value: explain that", name, strings.Join(reached, ", "))
}

// Functions lists the functions of a system of OSP as equations: "out = in[0] + in[1]".
func (a *Assembly) Functions() []FunctionInfo {
	var out []FunctionInfo
	for _, f := range a.network.Functions {
		info := FunctionInfo{Name: f.Path}
		for j, terms := range f.Terms {
			var names []string
			for _, i := range terms {
				names = append(names, f.Inputs[i])
			}
			info.Equations = append(info.Equations, f.Outputs[j]+" = "+strings.Join(names, " + "))
		}
		out = append(out, info)
	}
	return out
}

// FunctionInfo describes a function.
type FunctionInfo struct {
	Name      string   `json:"name"`
	Equations []string `json:"equations"`
}

// unitOf returns the unit of an end, "" if there is none.
func (a *Assembly) unitOf(e ssp.FlatEnd) string {
	if e.Component >= len(a.Components) {
		return "" // of a function
	}
	if v, ok := a.Components[e.Component].FMU.Description.Variable(e.Variable); ok {
		return v.Real.Unit
	}
	return ""
}

// mapText formats a mapping of values, sorted by source.
func mapText(m map[int64]int64) string {
	var parts []string
	for _, from := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d → %d", from, m[from]))
	}
	return strings.Join(parts, ", ")
}

// startText formats the start value of a variable like a parameter set.
func startText(v *description.ScalarVariable, d *description.ModelDescription) string {
	switch v.Type {
	case description.Integer:
		return strconv.FormatInt(v.StartInteger, 10)
	case description.Enumeration:
		for _, item := range d.Enumeration(v.DeclaredType) {
			if item.Value == v.StartInteger {
				return item.Name
			}
		}
		return strconv.FormatInt(v.StartInteger, 10)
	case description.Boolean:
		return strconv.FormatBool(v.StartBoolean)
	case description.String:
		return v.StartText()
	}
	return strconv.FormatFloat(v.StartReal, 'g', -1, 64)
}
