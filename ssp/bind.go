package ssp

import (
	"cmp"
	"fmt"
	"math"
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

// bind applies the bindings of an element and of those in it. The outer level comes last, and each
// level is in document order, so that the last value wins (ssp 36).
func (f *flattener) bind(in *instance) {
	for _, kid := range in.kids {
		f.bind(kid)
	}
	// The bindings of a component follow those of the system in its place (ssp 15).
	if in.system != nil && in.inside != nil {
		f.bindings(level{in, true}, in.system.Bindings)
	}
	f.bindings(level{in, false}, in.element.Base().Bindings)
}

// level is the place of a binding: an element or, with within, the system that stands for a
// component.
type level struct {
	*instance
	within bool
}

func (f *flattener) bindings(in level, bindings []Binding) {
	for i := range bindings {
		f.binding(in, &bindings[i])
	}
}

// binding applies one binding, in the steps of the standard (ssp 34).
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
			f.l.Report(ruleMappingSource, e.Place, "the source %q is not a parameter of %s", e.Source, b.Set.File)
		}
		for _, v := range sources[e.Source] {
			f.assign(in, b, v, e.Target, e)
		}
	}
	if empty > 0 {
		rule := *ruleMappingSource
		rule.Inert, rule.Remedy = true, "fill in the sources, or remove the entries"
		f.l.Report(&rule, firstEmpty, "%d entries of the mapping have an empty source and no effect; this is the first", empty)
	}
}

// match finds everything below an instance with this name (ssp 35): variables of a component,
// connectors of a system, signals of a dictionary, and the targets of the rest of the name after
// "element.".
func (f *flattener) match(in *instance, name string) []end {
	if in.index >= 0 {
		if _, ok := f.vars[in.index].Lookup(name); ok || f.sizes(end{in, name}) != nil {
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

// assign gives the value of a parameter to all targets of a name.
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
	for _, t := range targets {
		x := binder{flattener: f, in: in, of: b, v: v, name: name, e: e, place: at}
		if v.Array || f.sizes(t) != nil {
			x.assignArray(t)
		} else {
			x.bindTo(t)
		}
	}
}

// binder gives one value to one target.
type binder struct {
	*flattener
	in    level
	of    *Binding
	v     *ParameterValue
	name  string        // under which it is bound
	e     *MappingEntry // nil if there is no mapping
	place Place         // of the mapping entry or the parameter

	to     end
	port   port
	border face     // unit of the target in the document of the binding
	target Variable // the FMU variable, or the properties of the connector of a system
	a      assignment
	value  Value // after the steps so far
	steps  []Step
}

// bindTo converts the value for a target and enters it there.
func (x *binder) bindTo(t end) {
	x.to, x.value = t, x.v.Value
	x.port, _ = x.at(t)
	if v := x.port.variable; v != nil && !v.Settable && !v.isSize() {
		x.l.Report(ruleNotSettable, x.place, "%q cannot be set: causality %s, variability %s, initial %q",
			t, v.Causality, v.Variability, v.Initial)
		return
	}
	x.a = assignment{face: face{x.v.Unit, x.v.face.unit, x.v.face.items},
		from: Provenance{Place: x.place, Level: x.in.path, Name: x.name}, of: x.of}
	x.findUnit()
	x.aim()
	x.steps = []Step{{What: fmt.Sprintf("parameter %q", x.v.Name), Value: x.value, Unit: x.v.Unit, Place: x.v.Place}}
	if x.e != nil {
		x.steps = append(x.steps, Step{What: fmt.Sprintf("mapping of %q to %q", x.e.Source, x.e.Target),
			Value: x.value, Unit: x.v.Unit, Place: x.e.Place})
	}
	x.withoutUnit()
	if !x.convertUnit() || !x.transform() {
		return
	}
	inner := x.port.inner
	if x.port.variable == nil && x.border.unit != inner.unit && inner.unit != nil && x.isNumber() {
		_ = x.change(x.a.face, inner, false, x.port.decl.Place) // an error is reported with the connector
		x.a.setUnit(inner)
	}
	x.enter()
}

// isNumber reports whether the value has a unit.
func (x *binder) isNumber() bool { return x.value.Type == Real || x.value.Type == Integer }

// suppressed reports whether the value is not to be converted.
func (x *binder) suppressed() bool { return x.e != nil && x.e.SuppressUnitConversion }

// within reports whether the target is a connector of the system with the binding, and the
// system stands for a component.
func (x *binder) within() bool { return x.in.within && x.in.instance == x.to.in }

// findUnit looks up a unit in the FMU, with its name as written, then without brackets.
func (x *binder) findUnit() {
	if x.a.unit != nil || x.a.unitName == "" {
		return
	}
	if x.a.unit = x.unitNamed(x.to, x.a.unitName); x.a.unit == nil {
		x.a.unitName = withoutBrackets(x.a.unitName)
		x.a.unit = x.unitNamed(x.to, x.a.unitName)
	}
}

// aim determines the target. At a component that is a system it is the connector of the
// component, unless the binding is in that system or the value needs no step in the unit of
// the connector: it has a unit and no transformation.
func (x *binder) aim() {
	x.border = x.port.outside
	if x.within() || x.a.unit != nil && !x.suppressed() && (x.e == nil || x.e.Transformation == nil) {
		x.border = x.port.inner
	}
	x.target = Variable{Type: x.port.typ, UnitBase: x.border.unit, Unit: x.border.unitName, Items: x.port.inner.items}
	if x.port.variable != nil {
		x.target = *x.port.variable
	}
	x.target.Name = x.to.String()
}

// withoutUnit reports a value without a unit if several units could be meant.
func (x *binder) withoutUnit() {
	if x.v.Unit != "" || x.within() || !x.isNumber() {
		return
	}
	text := x.port.whose()
	if text == "" {
		return
	}
	x.l.Report(ruleNoUnit, x.place, "the value of %q has no unit; it is read in %q, the unit of %s", x.v.Name, x.target.Unit, text)
	owner := "connector"
	if x.port.variable != nil {
		owner = "FMU variable"
	}
	x.steps = append(x.steps, Step{"no unit: that of the " + owner, x.value, x.target.Unit, x.place})
}

// change converts the value into another unit.
func (x *binder) change(from, to face, relative bool, at Place) error {
	stages, err := conversion(from, to, relative, at)
	for _, s := range stages {
		x.value, _ = s.apply(x.value)
		x.steps = append(x.steps, Step{s.String(), x.value, s.toUnit, at})
	}
	return err
}

// convertUnit converts the value into the unit of the target. It returns false after an error.
func (x *binder) convertUnit() bool {
	a, target := &x.a, &x.target
	if !x.suppressed() && a.unit == nil && a.unitName != "" && target.Unit != "" && a.unitName != target.Unit {
		x.l.Report(ruleUnitUnknown, x.place, "the value of %q has the unit %q, which neither the parameter set nor the SSD "+
			"nor the FMU defines; it cannot be converted into %q, the unit of %q", x.v.Name, x.v.Unit, target.Unit, x.to)
		return false
	}
	if x.isNumber() && !x.suppressed() && a.unit != nil {
		if err := x.change(a.face, target.face(), target.RelativeQuantity, x.place); err != nil {
			x.l.Report(ruleDimension, x.place, "the value of %q has the unit %q, which cannot be converted into %q of %q: %v",
				x.v.Name, x.v.Unit, target.Unit, x.to, err)
			return false
		}
	}
	if target.UnitBase != nil || x.suppressed() { // a target without a unit takes that of the value
		a.unit, a.unitName = target.UnitBase, target.Unit
	}
	return true
}

// transform applies the transformation of the mapping entry. It returns false after an error.
func (x *binder) transform() bool {
	if x.e == nil || x.e.Transformation == nil {
		return true
	}
	t := x.e.Transformation
	if x.a.unitName != "" && x.target.UnitBase == nil && x.port.variable == nil && t.Kind == Linear {
		x.once(ruleUnitLost, x.place, "%q: the connector %q has no unit; after the transformation the unit is unknown", x.v.Name, x.to)
		x.a.unit, x.a.unitName = nil, ""
	}
	s := stage{gain: t.Factor, offset: t.Offset, t: t, from: x.a.items, to: x.target.Items}
	if s.from == nil {
		s.from = x.target.Items
	}
	var err error
	if x.value, err = s.apply(x.value); err != nil {
		x.l.Report(ruleTransformation, x.place, "the value of %q for %q: %v", x.v.Name, x.to, err)
		return false
	}
	x.steps = append(x.steps, Step{s.String(), x.value, x.a.unitName, t.Place})
	return true
}

// enter adds the value to those of the target, and notes a different one of the same binding
// and name.
func (x *binder) enter() {
	value, err := coerceAt(x.value, &x.target, x.a.items, x.port.variable == nil)
	if err == nil {
		err = overflowed(x.steps, value, x.target.Name)
	}
	if err != nil {
		x.l.Report(RuleValue, x.place, "the value of %q: %v", x.v.Name, err)
		return
	}
	a := x.a
	a.from.Value, a.from.Bound, a.from.Steps = value, x.port.fromInside(value), x.steps
	if x.e == nil && !x.within() && value.Type == x.v.Value.Type && (x.v.Unit == "" || x.v.Unit == x.port.outside.unitName) {
		a.from.Bound = x.v.Value // as written, not converted there and back
	}
	if len(x.assigned[x.to]) == 0 {
		x.bound = append(x.bound, x.to)
	}
	for _, first := range x.assigned[x.to] {
		if first.of != x.of || first.from.Name != x.name {
			continue
		}
		if first.from.Value == value && first.unitName == a.unitName {
			return
		}
		rule := ruleClash
		if x.e != nil && first.from.Place != x.e.Place {
			rule = ruleMapping
		}
		a.from.clash = &clash{rule, first.from}
	}
	x.assigned[x.to] = append(x.assigned[x.to], a)
}

// fromInside converts a value from the unit of the system that stands for a component into that of
// the connector of the component.
func (p *port) fromInside(v Value) Value {
	if p.variable != nil || v.Type != Real {
		return v
	}
	if gain, offset, err := unit.Convert(p.inner.unit, p.outside.unit, false); err == nil {
		v.Real = gain*v.Real + offset
	}
	return v
}

// whose describes, for a message, which unit applies to a value without one, if the connector and
// the variable or system behind it differ; "" if they do not.
func (p *port) whose() string {
	gain, offset, err := unit.Convert(p.inner.unit, p.outside.unit, false)
	switch {
	case p.typ != Real && p.typ != Unspecified, err == nil && gain == 1 && offset == 0:
		return ""
	case p.variable != nil:
		return fmt.Sprintf("the FMU variable, not in %q, the unit of the connector", p.outside.unitName)
	}
	return fmt.Sprintf("the connector of the component, not in %q, the unit in the system that stands for it", p.inner.unitName)
}

// withoutBrackets removes the brackets around the name of a unit. Some tools write undefined units
// as "[m]".
func withoutBrackets(name string) string {
	if inner, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]")
	}
	return name
}

// unitNamed returns the definition of a unit in the FMU of an end, nil if there is none.
func (f *flattener) unitNamed(e end, name string) *unit.Base {
	if e.in.index < 0 {
		return nil
	}
	if set, ok := f.vars[e.in.index].(UnitSet); ok {
		return set.Unit(name)
	}
	return nil
}

// overflowed returns an error if units and transformations have made a finite value infinite.
func overflowed(steps []Step, last Value, target string) error {
	first := steps[0].Value
	if last.Type == Real && math.IsInf(last.Real, 0) && !(first.Type == Real && math.IsInf(first.Real, 0)) {
		return fmt.Errorf("units and transformations turn it into %v, which %q cannot take", last.Real, target)
	}
	return nil
}

// coerceAt is Value.coerce, except at the connector of a system: without a type it accepts every
// value, and item names are resolved at the FMU variable.
func coerceAt(v Value, target *Variable, own map[string]int64, atSystem bool) (Value, error) {
	if atSystem && (target.Type == Unspecified || target.Type == Enumeration && v.Type == Enumeration && target.Items == nil) {
		return v, nil
	}
	return v.coerce(target, own)
}

// values makes the settings: values bound to variables directly, and values of connectors of
// systems (ssp 37).
func (f *flattener) values() {
	used := make(map[end]bool) // connectors of systems whose value reaches a variable
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

// clashes reports variables to which one binding gives two values with the same name.
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
		f.once(c.rule, s.From.Place, "%q gets two values from one binding: %s from line %d and %s from here", t,
			c.first.Bound, c.first.Place.Line, s.From.Bound)
	}
}

// put sets a value that overrides the present one.
func (s *Setting) put(p Provenance) {
	if s.From.Place != (Place{}) {
		s.Overrides = append(s.Overrides, s.From)
	}
	s.From, s.Value = p, p.Value
}

// counting returns the index of the connection whose source has the value that counts, -1 if there
// is none. Values of Give count at the connector nearest to the variable, other values at the one
// farthest from it (ssp 37).
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
	if source.in.index >= 0 {
		f.fedByOutput(t, source, path, settings[t], used)
		return
	}
	at := f.counting(path)
	if at < 0 {
		return
	}
	for _, g := range path { // also those whose values are overridden
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
		f.l.Report(ruleNotSettable, a.from.Place, "%q, which gets the value of the connector %q, cannot be set: "+
			"causality %s, variability %s, initial %q%s", t, start, v.Causality, v.Variability, v.Initial, v.directly())
		return
	}
	x := carried{flattener: f, from: start, to: t, place: a.from.Place, value: a.from.Value, unit: a.unitName,
		steps: slices.Clone(a.from.Steps)}
	if !x.carry(a, path[at:], &v) {
		return
	}
	s := &Setting{Component: t.in.index, Variable: t.name}
	if direct := settings[t]; direct != nil {
		s.Overrides = append(direct.Overrides, direct.From)
		f.l.Report(ruleConnected, direct.From.Place, "%q is bound to %s, but connected to the connector %q, whose value %s counts",
			t, direct.Value, start, x.value)
	}
	s.Overrides = append(s.Overrides, f.weaker(path, at)...)
	s.From = a.from
	s.From.Value, s.From.Steps, s.Value = x.value, x.steps, x.value
	settings[t] = s
}

// fedByOutput reports values that an FMU output overrides.
func (f *flattener) fedByOutput(t, source end, path []edge, direct *Setting, used map[end]bool) {
	if direct != nil {
		direct.Connected = true
		until := "the value counts until the first exchange only"
		if v, _ := f.variable(t); v.Causality == string(Parameter) {
			until = "the value has no effect"
		}
		f.l.Report(ruleConnected, direct.From.Place, "%q is bound to %s, but connected to the output %q; %s", t,
			direct.Value, source, until)
	}
	for _, g := range path {
		if as := f.assigned[g.from]; g.from.in.index < 0 && len(as) > 0 && !used[g.from] {
			used[g.from] = true
			f.l.Report(ruleConnected, as[0].from.Place,
				"the connector %q is bound to a value, but connected to the output %q, which counts",
				g.from, source)
		}
	}
}

// carried is a value on its path from a connector to an FMU variable.
type carried struct {
	*flattener
	from, to end
	place    Place // of the value
	value    Value
	unit     string
	steps    []Step
}

// carry takes the value over a path to a variable. It returns false after an error.
func (x *carried) carry(a assignment, path []edge, v *Variable) bool {
	p, _ := x.at(x.from)
	c := carrier{face: a.face, typ: x.value.Type, relative: v.RelativeQuantity, constant: true}
	if p.inner.items != nil {
		c.items = p.inner.items
	}
	if c.unit == nil && c.unitName != "" {
		c.unit = x.unitNamed(x.to, c.unitName)
	}
	if path[0].within != x.from.in && !x.apply(x.leave(&c, p)) {
		return false
	}
	for i, g := range path {
		x.steps = append(x.steps, Step{"connection " + g.from.String() + " → " + g.to.String(), x.value, x.unit, g.c.Place})
		stages, next, ok := x.follow(c, path[i:i+1])
		if !ok || !x.apply(stages) {
			return false
		}
		c, x.unit = next, next.unitName
	}
	target := *v
	target.Name = x.to.String()
	var err error
	if x.value, err = x.value.coerce(&target, c.items); err == nil {
		err = overflowed(x.steps, x.value, target.Name)
	}
	if err != nil {
		x.l.Report(RuleValue, x.place, "the value of the connector %q: %v", x.from, err)
	}
	return err == nil
}

// apply changes the value by some stages. It returns false after an error.
func (x *carried) apply(stages []stage) bool {
	for i := range stages {
		s := &stages[i]
		var err error
		if x.value, err = s.apply(x.value); err != nil {
			x.l.Report(ruleTransformation, x.place, "the value of the connector %q for %q: %v", x.from, x.to, err)
			return false
		}
		if s.t == nil {
			x.unit = s.toUnit
		}
		x.steps = append(x.steps, Step{s.String(), x.value, x.unit, s.at})
	}
	return true
}

// weaker returns the values on a path that do not count, the weakest first: the last value of
// the connector with this index counts. It reports them.
func (f *flattener) weaker(path []edge, at int) (out []Provenance) {
	start := path[at].from
	for i, g := range slices.Backward(path) {
		as := f.assigned[g.from]
		for k, weak := range as {
			last := k == len(as)-1
			if i == at && last {
				continue
			}
			out = append(out, weak.from)
			switch {
			case !last:
			case i < at:
				f.once(ruleOverridden, weak.from.Place,
					"the connector %q is bound to %s; after %q, which it feeds, the value given there counts",
					g.from, weak.from.Value, start)
			default:
				f.once(ruleConnected, weak.from.Place,
					"the connector %q is bound to %s, but connected to the connector %q, whose value counts",
					g.from, weak.from.Value, start)
			}
		}
	}
	return out
}

// Give makes Flatten bind values of the outermost system that override all others (ssp 36), at a
// connector also those of connectors that feed it. The document is not changed. Names are those of
// SystemConnectors. units defines the units of the values. from names the origin of the values in
// findings.
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

// Beaten is a variable of a component, given by its index, that the caller sets after Flatten.
type Beaten struct {
	Component int
	Variable  string
}

// Beat makes Flatten accept such variables even if the document gives them contradicting values.
func (p *Package) Beat(variables map[Beaten]bool) { p.beaten = variables }
