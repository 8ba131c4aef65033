// Package compose makes the SSP document of a system of FMUs from their model descriptions.
//
//	links, open := compose.MatchByName(parts, nil) // connections by the names of variables
//	d, notes, err := compose.Compose(parts, compose.Composition{Name: "pair", Links: links})
//	data, err := edit.Encode(d)
package compose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
	"github.com/macrostep/macrostep/ssp/edit"
)

// Part is an FMU that becomes a component of a new system.
type Part struct {
	Name        string // of the component
	Source      string // URI of the FMU in the document
	Description *description.ModelDescription
}

// Link is a connection from an output to an input, by the indices of the parts.
type Link struct {
	From   int
	Output string
	To     int
	Input  string
}

// The default step size for other tools: a thousandth of the time span, of a second if there is
// no stop time.
const (
	defaultSpan  = 1.0 // s
	defaultSteps = 1000
)

// NoLink is an input without a connection, and the reason.
type NoLink struct {
	Input      string   // "component.variable"
	Candidates []string // outputs that it might be connected to
	Why        string
}

// MatchByName finds the output for each input of the parts that is not connected yet, by name:
// the output has the same name, or the input is called after the component and the output
// ("chassis.v" or "chassis_v" for v of chassis). The output must be of another component, have a
// suitable type and unit, and be the only one. Other inputs are returned in open, with the
// outputs of suitable names as candidates.
func MatchByName(parts []Part, connected []Link) (links []Link, open []NoLink) {
	m := matcher{parts: parts, exact: map[string][]output{}, qualified: map[string][]output{}}
	for i, p := range parts {
		for _, v := range p.Description.OutputVariables() {
			o := output{i, v}
			m.exact[v.Name] = append(m.exact[v.Name], o)
			for _, separator := range []string{".", "_"} {
				m.qualified[p.Name+separator+v.Name] = append(m.qualified[p.Name+separator+v.Name], o)
			}
		}
	}
	taken := map[[2]any]bool{}
	for _, l := range connected {
		taken[[2]any{l.To, l.Input}] = true
	}
	for i, p := range parts {
		for k := range p.Description.Variables {
			v := &p.Description.Variables[k]
			if v.Causality != description.Input || taken[[2]any{i, v.Name}] {
				continue
			}
			if o, none := m.match(i, v); none == nil {
				links = append(links, Link{o.part, o.v.Name, i, v.Name})
			} else {
				open = append(open, *none)
			}
		}
	}
	return links, open
}

// output is an output of a part.
type output struct {
	part int
	v    *description.ScalarVariable
}

// matcher finds outputs by name.
type matcher struct {
	parts            []Part
	exact, qualified map[string][]output // by name, without and with the component
}

// match returns the only output for an input of part i; else none gives the reason.
func (m *matcher) match(i int, v *description.ScalarVariable) (o output, none *NoLink) {
	others := func(list []output) []output {
		return slices.DeleteFunc(slices.Clone(list), func(o output) bool { return o.part == i })
	}
	found := others(m.exact[v.Name])
	if len(found) == 0 {
		found = others(m.qualified[v.Name])
	}
	to := m.parts[i]
	none = &NoLink{Input: to.Name + "." + v.Name}
	var fits []output
	for _, o := range found {
		from := m.parts[o.part]
		name := from.Name + "." + o.v.Name
		none.Candidates = append(none.Candidates, name)
		why := mismatch(from.Description, o.v, to.Description, v)
		if why == "" && !maps.Equal(items(from.Description, o.v), items(to.Description, v)) {
			why = "its items differ from those of the input"
		}
		if why != "" {
			none.Why = name + ": " + why
		} else {
			fits = append(fits, o)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		none.Why = fmt.Sprintf("%d outputs have this name", len(fits))
	case len(found) == 0:
		none.Why = "no output has this name"
	}
	return output{}, none
}

// mismatch returns the reason why an output cannot feed an input; "" if it can.
func mismatch(from *description.ModelDescription, y *description.ScalarVariable, to *description.ModelDescription,
	u *description.ScalarVariable) string {
	discrete := func(t description.BaseType) bool { return t == description.Integer || t == description.Enumeration }
	if y.Type != u.Type && !(discrete(y.Type) && discrete(u.Type)) {
		return fmt.Sprintf("it is of type %s, but the input of type %s", y.Type, u.Type)
	}
	if y.Type != description.Real {
		return ""
	}
	a, b := base(from, y), base(to, u)
	if a != nil && b != nil && !a.SameDimension(*b) {
		return fmt.Sprintf("its unit %s cannot be converted into %s", y.Real.Unit, u.Real.Unit)
	}
	return ""
}

// items returns the items of an enumeration; nil for other types.
func items(d *description.ModelDescription, v *description.ScalarVariable) map[string]int64 {
	if v.Type != description.Enumeration {
		return nil
	}
	out := map[string]int64{}
	for _, item := range d.Enumeration(v.DeclaredType) {
		out[item.Name] = int64(item.Value)
	}
	return out
}

func base(d *description.ModelDescription, v *description.ScalarVariable) *unit.Base {
	if u, ok := d.Unit(v.Real.Unit); ok && v.Real.Unit != "" {
		return u.Base
	}
	return nil
}

// ParseLink reads "component.output:component.input".
func ParseLink(parts []Part, text string) (Link, error) {
	var first error
	for i, r := range text { // names may contain colons too
		if r != ':' {
			continue
		}
		from, y, err := findPart(parts, text[:i], description.Output)
		if err == nil {
			var to int
			var u *description.ScalarVariable
			if to, u, err = findPart(parts, text[i+1:], description.Input); err == nil {
				if why := mismatch(parts[from].Description, y, parts[to].Description, u); why != "" {
					return Link{}, fmt.Errorf("%s cannot feed %s: %s", text[:i], text[i+1:], why)
				}
				return Link{from, y.Name, to, u.Name}, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%q is not COMPONENT.OUTPUT:COMPONENT.INPUT", text)
	}
	return Link{}, first
}

// findPart finds the output or input "component.variable".
func findPart(parts []Part, name string, c description.Causality) (int, *description.ScalarVariable, error) {
	var names []string
	for i, p := range parts {
		names = append(names, p.Name)
		rest, ok := strings.CutPrefix(name, p.Name+".")
		if !ok {
			continue
		}
		v, ok := p.Description.Variable(rest)
		if ok && v.Causality == c {
			return i, v, nil
		}
		if ok {
			return 0, nil, fmt.Errorf("%s is not an %s: its causality is %s", name, c, v.Causality)
		}
		var like []string
		for k := range p.Description.Variables {
			if v := &p.Description.Variables[k]; v.Causality == c {
				like = append(like, v.Name)
			}
		}
		return 0, nil, fmt.Errorf("component %s has no %s %q%s", p.Name, c, rest,
			cmp.Or(diag.DidYouMean(rest, like), fmt.Sprintf("; it has %s", diag.Some(like))))
	}
	component, _, _ := strings.Cut(name, ".")
	return 0, nil, fmt.Errorf("%q names no component%s", name, diag.DidYouMeanOr(component, names, "; the components are "))
}

// Composition describes a new document.
type Composition struct {
	Name       string // of document and system
	Links      []Link
	Parameters bool // connectors for parameters, too
	// Times in s; nil for those of the default experiments of the FMUs: the earliest start, the
	// earliest stop after it, the smallest step.
	Start, Stop, Step *float64
	Tolerance         *float64 // nil for none
	Algorithm         string   // preset; "" for none
	For               []string // tools of dialect.Prepare
}

// Compose makes the document of a system of FMUs (ssp 16, 19, 48, 49): a connector with type and
// unit for each input and output, the units and enumerations that they use, the connections and the
// default experiment. If step, tolerance, algorithm or tools are given, it adds the annotation of
// macrostep, which has the step too. The notes list differences from the FMUs, and features that
// the tools do not support.
func Compose(parts []Part, c Composition) (d *ssp.Document, notes []string, err error) {
	b := &composer{parts: parts, c: c, d: &ssp.Document{
		Name: c.Name, Metadata: map[string]string{"generationTool": "macrostep"},
		System: &ssp.System{Common: ssp.Common{Name: c.Name}},
	}}
	linked := map[string]bool{}
	fed := map[string]string{}
	for _, l := range c.Links {
		from, to := parts[l.From].Name+"."+l.Output, parts[l.To].Name+"."+l.Input
		if other, twice := fed[to]; twice {
			return nil, nil, fmt.Errorf("%s is connected to both %s and %s; an input has one source", to, other, from)
		}
		fed[to] = from
		linked[from], linked[to] = true, true
	}
	for i := range parts {
		b.component(i, linked)
	}
	for _, l := range c.Links {
		connection := ssp.Connection{StartElement: parts[l.From].Name, StartConnector: l.Output,
			EndElement: parts[l.To].Name, EndConnector: l.Input}
		if connection.Transformation, err = b.itemsByName(l); err != nil {
			return nil, nil, err
		}
		b.d.System.Connections = append(b.d.System.Connections, connection)
	}
	if err := b.experiment(); err != nil {
		return nil, nil, err
	}
	return b.d, b.notes, nil
}

// composer makes one document.
type composer struct {
	parts []Part
	c     Composition
	d     *ssp.Document
	notes []string
}

func (b *composer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}

func (b *composer) component(i int, linked map[string]bool) {
	p := b.parts[i]
	c := &ssp.Component{Common: ssp.Common{Name: p.Name}, Source: p.Source, HasSource: true, Implementation: "CoSimulation"}
	for k := range p.Description.Variables {
		v := &p.Description.Variables[k]
		connector := ssp.Connector{Name: v.Name, Kind: ssp.Kind(v.Causality.String())}
		switch v.Causality {
		case description.Input, description.Output:
		case description.Parameter, description.CalculatedParameter:
			if !b.c.Parameters {
				continue
			}
		default:
			continue
		}
		connector.Type, _, _ = ssp.TypeByName(v.Type.String())
		if v.Type == description.Enumeration {
			if slices.Contains(b.c.For, "osp") && !linked[p.Name+"."+v.Name] {
				b.note("%s.%s gets no connector: OSP fails with enumerations", p.Name, v.Name)
				continue
			}
			connector.Enumeration = b.enumeration(p, v)
			if connector.Enumeration == "" {
				connector.Type = ssp.Unspecified
			}
		}
		if v.Type == description.Real {
			connector.Unit = b.unit(p, v)
		}
		c.Connectors = append(c.Connectors, connector)
	}
	b.d.System.Elements = append(b.d.System.Elements, c)
}

// itemsByName returns the mapping for a connection of enumerations that number items of the same
// name differently; nil if none is needed.
func (b *composer) itemsByName(l Link) (*ssp.Transformation, error) {
	from, to := b.parts[l.From], b.parts[l.To]
	y, okY := from.Description.Variable(l.Output)
	u, okU := to.Description.Variable(l.Input)
	if !okY || !okU {
		return nil, nil
	}
	source, target := items(from.Description, y), items(to.Description, u)
	names, renumbered := make(map[string]string), false
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(source)) {
		n, both := target[name]
		if !both {
			lost = append(lost, name)
			continue
		}
		names[name] = name
		renumbered = renumbered || n != source[name]
	}
	switch {
	case !renumbered || len(target) == 0:
		return nil, nil
	case len(lost) > 0:
		return nil, fmt.Errorf("%s.%s cannot feed %s.%s: their enumerations number items of the same name differently, "+
			"and the input has no item %s to map to", from.Name, l.Output, to.Name, l.Input, strings.Join(lost, ", "))
	}
	b.note("%s.%s and %s.%s number their items differently: the connection gets a mapping to the items of the same name",
		from.Name, l.Output, to.Name, l.Input)
	return &ssp.Transformation{Kind: ssp.EnumerationMapping, Names: names}, nil
}

// unit defines the unit of a variable and returns its name, or "" if the document cannot define it.
// The unit of the FMU applies in any case (ssp 31).
func (b *composer) unit(p Part, v *description.ScalarVariable) string {
	name := v.Real.Unit
	if name == "" {
		return ""
	}
	base := base(p.Description, v)
	if base == nil {
		b.note("the unit %s of %s is omitted: the FMU does not define it in base units", name, p.Name)
		return ""
	}
	for _, u := range b.d.Units {
		if u.Name == name {
			if *u.Base != *base {
				b.note("the unit %s of %s is omitted: another FMU defines this name differently", name, p.Name)
				return ""
			}
			return name
		}
	}
	own := *base
	b.d.Units = append(b.d.Units, unit.Definition{Name: name, Base: &own})
	return name
}

// enumeration defines the type of a variable and returns its name, with the name of the component
// before it if FMUs define one name differently.
func (b *composer) enumeration(p Part, v *description.ScalarVariable) string {
	items := items(p.Description, v)
	if len(items) == 0 {
		return ""
	}
	for _, name := range []string{v.DeclaredType, p.Name + "." + v.DeclaredType} {
		i := slices.IndexFunc(b.d.Enumerations, func(e ssp.EnumerationType) bool { return e.Name == name })
		if i < 0 {
			b.d.Enumerations = append(b.d.Enumerations, ssp.EnumerationType{Name: name, Items: items})
			return name
		}
		if maps.Equal(b.d.Enumerations[i].Items, items) {
			return name
		}
	}
	return ""
}

// experiment sets times and settings.
func (b *composer) experiment() error {
	start, stop, step := b.c.Start, b.c.Stop, b.c.Step
	if start == nil {
		start = b.least(func(e *description.DefaultExperiment) *float64 { return e.StartTime }, nil)
	}
	first := 0.0
	if start != nil {
		first = *start
	}
	if stop == nil {
		stop = b.least(func(e *description.DefaultExperiment) *float64 { return e.StopTime }, &first)
	}
	if stop != nil && !(*stop > first) {
		return fmt.Errorf("the stop time %g is not after the start time %g", *stop, first)
	}
	b.d.Experiment = ssp.Experiment{Start: start, Stop: stop}
	if step == nil && len(b.c.For) > 0 {
		zero := 0.0
		if step = b.least(func(e *description.DefaultExperiment) *float64 { return e.StepSize }, &zero); step == nil {
			last := first + defaultSpan
			if stop != nil {
				last = *stop
			}
			h := (last - first) / defaultSteps
			step = &h
			b.note("the step size for other tools is assumed as %g s, a thousandth of the time span; give --step-size", h)
		}
	}
	if step != nil || b.c.Tolerance != nil || b.c.Algorithm != "" {
		a, err := edit.SettingsAnnotation(b.c.Algorithm, step, b.c.Tolerance)
		if err != nil {
			return err
		}
		b.d.Experiment.Annotations = append(b.d.Experiment.Annotations, a)
	}
	tolerance := b.c.Tolerance
	if tolerance == nil { // OMSimulator has one for all FMUs: the smallest of their default experiments
		zero := 0.0
		tolerance = b.least(func(e *description.DefaultExperiment) *float64 { return e.Tolerance }, &zero)
	}
	for _, tool := range b.c.For {
		notes, err := dialect.Prepare(b.d, tool, *step, tolerance)
		if err != nil {
			return err
		}
		b.notes = append(b.notes, notes...)
	}
	return nil
}

// least returns the smallest value of the default experiments above a bound (nil: any); nil if
// there is none.
func (b *composer) least(of func(*description.DefaultExperiment) *float64, above *float64) *float64 {
	var least *float64
	for _, p := range b.parts {
		if e := p.Description.DefaultExperiment; e != nil {
			if v := of(e); v != nil && (above == nil || *v > *above) && (least == nil || *v < *least) {
				least = v
			}
		}
	}
	return least
}
