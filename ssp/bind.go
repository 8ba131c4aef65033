package ssp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
)

// assignment is one value bound to a variable or to a connector of a system.
type assignment struct {
	face // unit of the value, and items of its set
	from Provenance
	of   *Binding
}

// bind applies the bindings of an element and of those in it. The outer level
// comes last, and within a level the document order counts, so that the last
// one wins (ssp 36).
func (f *flattener) bind(in *instance) {
	for _, kid := range in.kids {
		f.bind(kid)
	}
	// Those of a component stand behind those of the system in its place (ssp 15).
	if in.system != nil && in.inside != nil {
		f.bindings(level{in, true}, in.system.Bindings)
	}
	f.bindings(level{in, false}, in.element.Base().Bindings)
}

// level is where a binding stands: at an element, or inside of it, at the system that
// stands for a component.
type level struct {
	*instance
	within bool
}

func (f *flattener) bindings(in level, bindings []Binding) {
	for i := range bindings {
		f.binding(in, &bindings[i])
	}
}

// binding applies one set, in the steps of the standard (ssp 34).
func (f *flattener) binding(in level, b *Binding) {
	if b.Mapping == nil {
		for i := range b.Set.Parameters {
			v := &b.Set.Parameters[i]
			f.assign(in, b, v, b.Prefix+v.Name, nil)
		}
		return
	}
	sources := make(map[string][]*ParameterValue, len(b.Set.Parameters))
	for i := range b.Set.Parameters {
		name := b.Prefix + b.Set.Parameters[i].Name
		sources[name] = append(sources[name], &b.Set.Parameters[i])
	}
	empty := 0
	var firstEmpty Place
	for i := range b.Mapping.Entries {
		e := &b.Mapping.Entries[i]
		if e.Source == "" {
			if empty == 0 {
				firstEmpty = e.Place
			}
			empty++
			continue
		}
		if len(sources[e.Source]) == 0 {
			f.l.Report(ruleMappingSource, e.Place, "the source %q is no parameter of %s", e.Source, b.Set.File)
		}
		for _, v := range sources[e.Source] {
			f.assign(in, b, v, e.Target, e)
		}
	}
	if empty > 0 {
		f.l.Report(ruleMappingSource, firstEmpty, "%d entries of the mapping have an empty source and do nothing; this is the first", empty)
	}
}

// match finds everything below an instance that has a name (ssp 35): variables
// of a component, connectors of a system, signals of a dictionary, and what follows
// "element.".
func (f *flattener) match(in *instance, name string) []end {
	if in.index >= 0 {
		if _, ok := f.vars[in.index].Lookup(name); ok {
			return []end{{in, name}}
		}
		return nil
	}
	if in.signals != nil {
		if in.connectors[name] != nil {
			return []end{{in.signals, name}}
		}
		return nil
	}
	var out []end
	connectors := in.connectors
	if in.inside != nil {
		connectors = in.inside
	}
	if connectors[name] != nil {
		out = append(out, end{in, name})
	}
	for i := range len(name) { // names of elements may have dots
		if name[i] != '.' {
			continue
		}
		if kid := in.byName[name[:i]]; kid != nil {
			out = append(out, f.match(kid, name[i+1:])...)
		}
	}
	return out
}

// assign returns the value of a parameter to all that has the name.
func (f *flattener) assign(in level, b *Binding, v *ParameterValue, name string, e *MappingEntry) {
	at := v.Place
	if e != nil {
		at = e.Place
	}
	targets := f.match(in.instance, name)
	if b == f.p.given {
		targets = f.p.connectorsNamed(name)
	}
	switch {
	case len(targets) == 0:
		hint := ""
		if rest, ok := strings.CutPrefix(name, in.name+"."); ok && len(f.match(in.instance, rest)) > 0 {
			hint = fmt.Sprintf("; a binding here calls it %q", rest)
		}
		f.l.Report(cmp.Or(b.Set.Unmatched, ruleUnmatched), at, "%q matches nothing in %s%s", name, in, hint)
		return
	case len(targets) > 1:
		f.l.Report(rulePunning, at, "%q means %d things in %s; all of them get the value", name, len(targets), in)
	}
	if v.Array {
		f.l.Report(RuleValue, v.Place, "the value of %q is an array; FMUs of version 2.0 have scalar variables only", v.Name)
		return
	}
	for _, t := range targets {
		f.assignTo(t, in, b, v, name, e, at)
	}
}

// assignTo converts a value for one target and enters it.
func (f *flattener) assignTo(t end, in level, b *Binding, v *ParameterValue, name string, e *MappingEntry, at Place) {
	p, _ := f.at(t)
	if p.variable != nil && !p.variable.Settable {
		f.l.Report(ruleNotSettable, at, "%q cannot be set: causality %s, variability %s, initial %q", t,
			p.variable.Causality, p.variable.Variability, p.variable.Initial)
		return
	}
	a := assignment{face: face{v.Unit, v.face.unit, v.face.items}, from: Provenance{Place: at, Level: in.path, Name: name}, of: b}
	if a.unit == nil && a.unitName != "" {
		if a.unit = f.unitNamed(t, a.unitName); a.unit == nil {
			a.unitName = withoutBrackets(a.unitName)
			a.unit = f.unitNamed(t, a.unitName)
		}
	}
	suppress := e != nil && e.SuppressUnitConversion
	// target is the variable, or what stands for it at a system: at a component the
	// connector of the document in which that stands, unless the binding stands within.
	// With a unit and nothing else to be done the value needs no such stage.
	border := p.outside
	within := in.within && in.instance == t.in
	if within || a.unit != nil && !suppress && (e == nil || e.Transformation == nil) {
		border = p.inner
	}
	target := Variable{Name: t.String(), Type: p.typ, UnitBase: border.unit, Unit: border.unitName, Items: p.inner.items}
	if p.variable != nil {
		target = *p.variable
		target.Name = t.String()
	}
	value := v.Value
	isNumber := value.Type == Real || value.Type == Integer
	steps := []Step{{What: fmt.Sprintf("parameter %q", v.Name), Value: value, Unit: v.Unit, Place: v.Place}}
	if e != nil {
		steps = append(steps, Step{What: fmt.Sprintf("mapping of %q to %q", e.Source, e.Target), Value: value, Unit: v.Unit, Place: e.Place})
	}
	if v.Unit == "" && !within && isNumber {
		if text := p.whose(); text != "" {
			f.l.Report(ruleNoUnit, at, "the value of %q has no unit; it is taken in %q, the unit of %s", v.Name, target.Unit, text)
			counts := "connector"
			if p.variable != nil {
				counts = "FMU variable"
			}
			steps = append(steps, Step{"no unit: that of the " + counts, value, target.Unit, at})
		}
	}
	if !suppress && a.unit == nil && a.unitName != "" && target.Unit != "" && a.unitName != target.Unit {
		f.l.Report(ruleUnitUnknown, at, "the value of %q has the unit %q, which neither the parameter set nor the SSD nor the FMU defines, and %q has the unit %q: it cannot be converted", v.Name, v.Unit, t, target.Unit)
		return
	}
	// convert brings a number into another unit.
	convert := func(from, to face, relative bool, at Place) error {
		stages, err := conversion(from, to, relative, at)
		for _, s := range stages {
			value, _ = s.apply(value)
			steps = append(steps, Step{s.String(), value, s.toUnit, at})
		}
		return err
	}
	if isNumber && !suppress && a.unit != nil {
		if err := convert(a.face, target.face(), target.RelativeQuantity, at); err != nil {
			f.l.Report(ruleDimension, at, "the value of %q has the unit %q, which cannot be converted into %q of %q: %v", v.Name, v.Unit, target.Unit, t, err)
			return
		}
	}
	if target.UnitBase != nil || suppress { // without a unit the target has that of the value
		a.unit, a.unitName = target.UnitBase, target.Unit
	}
	if e != nil && e.Transformation != nil {
		if a.unitName != "" && target.UnitBase == nil && p.variable == nil && e.Transformation.Kind == Linear {
			f.once(ruleUnitLost, at, "%q: the connector %q has no unit; after the transformation the unit is unknown", v.Name, t)
			a.unit, a.unitName = nil, ""
		}
		from := a.items
		if from == nil {
			from = target.Items
		}
		s := stage{gain: e.Transformation.Factor, offset: e.Transformation.Offset, t: e.Transformation, from: from, to: target.Items}
		var err error
		if value, err = s.apply(value); err != nil {
			f.l.Report(ruleTransformation, at, "the value of %q for %q: %v", v.Name, t, err)
			return
		}
		steps = append(steps, Step{s.String(), value, a.unitName, e.Transformation.Place})
	}
	if p.variable == nil && border.unit != p.inner.unit && p.inner.unit != nil && (value.Type == Real || value.Type == Integer) {
		_ = convert(a.face, p.inner, false, p.decl.Place) // an error is reported with the connector
		a.setUnit(p.inner)
	}
	value, err := coerceAt(value, &target, a.items, p.variable == nil)
	if err != nil {
		f.l.Report(RuleValue, at, "the value of %q: %v", v.Name, err)
		return
	}
	a.from.Value, a.from.Bound, a.from.Steps = value, p.fromInside(value), steps
	if e == nil && !within && value.Type == v.Value.Type && (v.Unit == "" || v.Unit == p.outside.unitName) {
		a.from.Bound = v.Value // as it is written, not converted there and back
	}
	if len(f.assigned[t]) == 0 {
		f.bound = append(f.bound, t)
	}
	for _, first := range f.assigned[t] {
		if first.of != b || first.from.Name != name {
			continue
		}
		if first.from.Value == value && first.unitName == a.unitName {
			return
		}
		rule := ruleClash
		if e != nil && first.from.Place != e.Place {
			rule = ruleMapping
		}
		a.from.clash = &clash{rule, first.from}
	}
	f.assigned[t] = append(f.assigned[t], a)
}

// fromInside returns a value of what stands for a component in the unit of the connector.
func (p *port) fromInside(v Value) Value {
	if p.variable != nil || v.Type != Real {
		return v
	}
	if gain, offset, err := unit.Convert(p.inner.unit, p.outside.unit, false); err == nil {
		v.Real = gain*v.Real + offset
	}
	return v
}

// whose returns in words which unit counts for a value without one, where that of a connector
// and of what is inside the component differ; "" where they do not.
func (p *port) whose() string {
	gain, offset, err := unit.Convert(p.inner.unit, p.outside.unit, false)
	switch {
	case p.typ != Real && p.typ != Unspecified, err == nil && gain == 1 && offset == 0:
		return ""
	case p.variable != nil:
		return fmt.Sprintf("the FMU variable, not in %q, that of the connector", p.outside.unitName)
	}
	return fmt.Sprintf("the connector of the component, not in %q, that of the system in its place", p.inner.unitName)
}

// withoutBrackets returns the name of a unit that stands in brackets, as some tools write
// what they do not define: "[m]".
func withoutBrackets(name string) string {
	if inner, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]")
	}
	return name
}

// unitNamed returns what the FMU behind an end calls by the name of a unit; nil if nothing.
func (f *flattener) unitNamed(e end, name string) *unit.Base {
	if e.in.index < 0 {
		return nil
	}
	if set, ok := f.vars[e.in.index].(UnitSet); ok {
		return set.Unit(name)
	}
	return nil
}

// coerceAt is coerce, but at the connector of a system without type everything
// is taken as it is, and names of items wait for the FMU variable.
func coerceAt(v Value, target *Variable, own map[string]int32, atSystem bool) (Value, error) {
	if atSystem && (target.Type == Unspecified || target.Type == Enumeration && v.Type == Enumeration && target.Items == nil) {
		return v, nil
	}
	return v.coerce(target, own)
}

// values makes the settings: what is bound to variables directly, and what
// reaches them from connectors of systems (ssp 37).
func (f *flattener) values() {
	used := make(map[end]bool) // connectors of systems whose value reaches something
	settings := make(map[end]*Setting)
	for _, t := range f.bound {
		if t.in.index < 0 {
			continue
		}
		s := &Setting{Component: t.in.index, Variable: t.name}
		for _, a := range f.assigned[t] {
			s.put(a.from)
		}
		settings[t] = s
		if len(s.Overrides) > 0 && s.From.clash == nil {
			f.l.Report(ruleOverridden, s.From.Place, "%q is bound %d times; %s from here counts", t, len(s.Overrides)+1, s.From.Value)
		}
	}
	for _, t := range f.fed {
		if t.in.index >= 0 {
			f.valueOver(t, settings, used)
		}
	}
	for _, t := range f.bound {
		if as := f.assigned[t]; t.in.index < 0 && len(as) > 1 {
			last := as[len(as)-1].from
			f.l.Report(ruleOverridden, last.Place, "the connector %q is bound %d times; %s from here counts", t, len(as), last.Value)
		}
		if t.in.index < 0 && !used[t] {
			f.l.Report(ruleUseless, f.assigned[t][0].from.Place, "the value of the connector %q reaches no FMU", t)
		}
	}
	for _, s := range settings {
		f.net.Settings = append(f.net.Settings, *s)
	}
	slices.SortFunc(f.net.Settings, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Variable, b.Variable))
	})
	f.clashes(settings)
}

// clashes reports variables whose value is one of two that a binding gives under one name.
func (f *flattener) clashes(settings map[end]*Setting) {
	for _, t := range slices.Concat(f.bound, f.fed) {
		s := settings[t]
		if s == nil || s.From.clash == nil || f.p.beaten[Beaten{s.Component, s.Variable}] {
			continue
		}
		if v, _ := f.variable(t); s.Connected && v.Causality == string(Parameter) {
			continue // the value has no effect
		}
		c := s.From.clash
		f.once(c.rule, s.From.Place, "%q gets two values from one binding: %s from line %d and %s from here", t, c.first.Bound, c.first.Place.Line, s.From.Bound)
	}
}

// put enters a stronger value.
func (s *Setting) put(p Provenance) {
	if s.From.Place != (Place{}) {
		s.Overrides = append(s.Overrides, s.From)
	}
	s.From, s.Value = p, p.Value
}

// counting returns the first connection of a way whose value counts: of the connectors that
// a value is given to by Give the nearest to the variable, since what is given there is to
// arrive behind it, else of all that are bound the farthest upstream (ssp 37); -1 if there
// is none.
func (f *flattener) counting(path []edge) int {
	first := -1
	for i, g := range slices.Backward(path) {
		as := f.assigned[g.from]
		if len(as) == 0 {
			continue
		}
		if first = i; as[len(as)-1].of == f.p.given {
			break
		}
	}
	return first
}

// valueOver brings the value of the connector that counts to an FMU variable.
func (f *flattener) valueOver(t end, settings map[end]*Setting, used map[end]bool) {
	source, path, ok := f.trace(t)
	if !ok {
		return
	}
	direct := settings[t]
	if source.in.index >= 0 {
		if direct != nil {
			direct.Connected = true
			until := "the value counts until the first exchange only"
			if v, _ := f.variable(t); v.Causality == string(Parameter) {
				until = "the value has no effect"
			}
			f.l.Report(ruleConnected, direct.From.Place, "%q is bound to %s, but connected to the output %q; %s", t, direct.Value, source, until)
		}
		for _, g := range path {
			if as := f.assigned[g.from]; g.from.in.index < 0 && len(as) > 0 && !used[g.from] {
				used[g.from] = true
				f.l.Report(ruleConnected, as[0].from.Place, "the connector %q is bound to a value, but connected to the output %q, which counts", g.from, source)
			}
		}
		return
	}
	at := f.counting(path)
	if at < 0 {
		return
	}
	for _, g := range path { // weaker ones are used up too
		used[g.from] = true
	}
	v, known := f.variable(t)
	if !known {
		return
	}
	start := path[at].from
	as := f.assigned[start]
	a := as[len(as)-1]
	if !v.Settable {
		f.l.Report(ruleNotSettable, a.from.Place, "%q, which gets the value of the connector %q, cannot be set: causality %s, variability %s, initial %q",
			t, start, v.Causality, v.Variability, v.Initial)
		return
	}
	p, _ := f.at(start)
	c := carrier{face: a.face, typ: a.from.Value.Type, relative: v.RelativeQuantity, constant: true}
	if p.inner.items != nil {
		c.items = p.inner.items
	}
	if c.unit == nil && c.unitName != "" {
		c.unit = f.unitNamed(t, c.unitName)
	}
	value, unit := a.from.Value, a.unitName
	steps := slices.Clone(a.from.Steps)
	// send brings the value over some stages.
	send := func(stages []stage) bool {
		var err error
		for i := range stages {
			s := &stages[i]
			if value, err = s.apply(value); err != nil {
				f.l.Report(ruleTransformation, a.from.Place, "the value of the connector %q for %q: %v", start, t, err)
				return false
			}
			if s.t == nil {
				unit = s.toUnit
			}
			steps = append(steps, Step{s.String(), value, unit, s.at})
		}
		return true
	}
	if path[at].within != start.in && !send(f.leave(&c, p)) {
		return
	}
	for i, g := range path[at:] {
		way := path[at+i : at+i+1]
		steps = append(steps, Step{"connection " + g.from.String() + " → " + g.to.String(), value, unit, g.c.Place})
		stages, next, ok := f.follow(c, way)
		if !ok || !send(stages) {
			return
		}
		c, unit = next, next.unitName
	}
	target := v
	target.Name = t.String()
	value, err := value.coerce(&target, c.items)
	if err != nil {
		f.l.Report(RuleValue, a.from.Place, "the value of the connector %q: %v", start, err)
		return
	}
	s := &Setting{Component: t.in.index, Variable: t.name}
	if direct != nil {
		s.Overrides = append(direct.Overrides, direct.From)
		f.l.Report(ruleConnected, direct.From.Place, "%q is bound to %s, but connected to the connector %q, whose value %s counts", t, direct.Value, start, value)
	}
	for i := len(path) - 1; i >= 0; i-- { // weaker values along the way, and at the connector itself
		there := f.assigned[path[i].from]
		for k, weak := range there {
			if i == at && k == len(as)-1 {
				continue
			}
			s.Overrides = append(s.Overrides, weak.from)
			switch {
			case k < len(there)-1:
			case i < at:
				f.once(ruleOverridden, weak.from.Place, "the connector %q is bound to %s; behind %q, which it feeds, the value given there counts", path[i].from, weak.from.Value, start)
			default:
				f.once(ruleConnected, weak.from.Place, "the connector %q is bound to %s, but connected to the connector %q, whose value counts", path[i].from, weak.from.Value, start)
			}
		}
	}
	s.From = a.from
	s.From.Value, s.From.Steps, s.Value = value, steps, value
	settings[t] = s
}

// Give has Flatten bind values behind all others of the outermost system, so that they
// win (ssp 36), at a connector also over values of those that feed it. The document stays
// as it is. Names are those of SystemConnectors, units
// those that the values use; from says in findings where the values come from.
func (p *Package) Give(values []ParameterValue, units []unit.Definition, from string) {
	set := &ParameterSet{File: from, Parameters: slices.Clone(values)}
	scope := newNames(units, nil)
	for i := range set.Parameters {
		v := &set.Parameters[i]
		v.Place = Place{File: from, Path: v.Name}
		v.face = face{unit: scope.units[v.Unit], unitName: v.Unit}
	}
	p.given = &Binding{Set: set, Place: Place{File: from}}
}

// Beaten is a variable of a component, by its number, to which the caller gives a value of
// its own after Flatten.
type Beaten struct {
	Component int
	Variable  string
}

// Beat lets Flatten accept that the document does not say which of several values such a
// variable has.
func (p *Package) Beat(variables map[Beaten]bool) { p.beaten = variables }
