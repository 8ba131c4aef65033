package ssp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// end is a connector of an instance, or a variable of a component without one.
type end struct {
	in   *instance
	name string
}

func (e end) String() string {
	if e.in.path == "" {
		return e.name
	}
	return e.in.path + "." + e.name
}

// edge is the only connection that feeds an end.
type edge struct {
	from, to end
	c        *Connection
	within   *instance // system of the connection; nil if it leads to or from a dictionary entry
}

// port describes an end. From outside, its face is that of the connector of the component; from
// inside, that of the FMU variable or of the system that stands for the component (ssp 15, 31). At
// other ends both are the same.
type port struct {
	kind           Kind
	typ            ValueType
	outside, inner face
	decl           *Connector // connector of the component; nil if not declared
	array          bool
	variable       *Variable // nil at a system
}

// flattener is the state of one call of Flatten.
type flattener struct {
	p    *Package
	l    *diag.List
	net  *Network
	vars []VariableSet // by component

	inbound  map[end]edge
	fed      []end                // keys of inbound in document order
	assigned map[end][]assignment // bound values, the strongest last
	bound    []end                // keys of assigned in order of first assignment
	told     map[string]bool      // findings of once
	way      []edge               // scratch of trace

	more []Connection // connections of the outermost system from a Structure
}

// Flatten resolves the document into FMUs, connections and values. It asks the resolver once for
// each component. Findings go to l (nil: nowhere). The error holds those of level Error and the
// errors of the resolver; the network is nil then.
func (p *Package) Flatten(r Resolver, l *diag.List) (*Network, error) {
	own, done := collect(l)
	defer done()
	f := p.flattener(own)
	f.net.Experiment.Start, f.net.Experiment.Stop = p.Root.Experiment.Start, p.Root.Experiment.Stop
	errs := f.resolve(r)
	f.names()
	tools := f.settings()
	f.placeholders()
	if err := errors.Join(append(errs, own.Err())...); err != nil {
		return nil, err
	}
	f.record(tools)
	judge := func(*Network) {}
	if p.structure != nil {
		f.more, judge = p.structure.Connect(f.resolved())
	}
	used := f.connect()
	p.top.each(func(in *instance) {
		if in.index >= 0 || in.inside != nil {
			f.checkConnectors(in, used)
		}
	})
	f.bind(p.top)
	if p.given != nil {
		f.binding(level{p.top, false}, p.given)
	}
	if err := own.Err(); err != nil { // the next steps require sound connections
		return nil, err
	}
	f.connections()
	f.vanishing()
	if own.Err() == nil {
		judge(f.net)
	}
	f.outputs()
	f.inputs()
	f.values()
	if err := own.Err(); err != nil {
		return nil, err
	}
	return f.net, nil
}

func (p *Package) flattener(l *diag.List) *flattener {
	return &flattener{p: p, l: l, inbound: make(map[end]edge), assigned: make(map[end][]assignment),
		told: make(map[string]bool),
		net:  &Network{Name: p.Root.Name, Components: p.components, Functions: p.functions}}
}

// Sizes returns the structural parameters of FMUs to which the document binds whole numbers. It reports nothing:
// Flatten does, whose resolver has the variables of FMUs with these sizes of their arrays.
func (p *Package) Sizes(r Resolver) (list []Setting) {
	f := p.flattener(&diag.List{})
	f.resolve(r)
	f.bind(p.top)
	for _, t := range f.bound {
		if v, ok := f.variable(t); ok && v.isSize() {
			last := f.assigned[t][len(f.assigned[t])-1].from
			list = append(list, Setting{Component: t.in.index, Variable: t.name, Value: last.Value, From: last})
		}
	}
	return list
}

// settings reads all annotations, and returns those of the dialects.
func (f *flattener) settings() []Annotations {
	s := &settings{l: f.l}
	for _, d := range f.p.dialects {
		if d.New != nil {
			s.dialects, s.native = append(s.dialects, d.New()), append(s.native, d.Native)
		}
	}
	s.experiment(f.p.Root)
	f.p.top.each(func(in *instance) { f.instanceSettings(s, in) })
	s.report()
	s.finish(f.net.Components)
	if f.p.structure != nil {
		s.add(f.p.structure.Settings(), false)
	}
	for _, c := range f.net.Components {
		s.hints(c)
	}
	f.net.Asked = s.asked
	for i := range f.net.Asked {
		f.file(&f.net.Asked[i])
	}
	return s.dialects
}

// instanceSettings reads the annotations at one element, and those of the connections in it.
func (f *flattener) instanceSettings(s *settings, in *instance) {
	switch e := in.element.(type) {
	case *Component:
		f.componentSettings(s, in, e)
	case *DictionaryReference:
		for _, a := range e.Annotations {
			s.unknown(a)
		}
	}
	if in.system == nil {
		return
	}
	for _, c := range in.system.Connections {
		for _, a := range c.Annotations {
			s.tool(a, AtConnection, "")
		}
	}
	if !in.isRoot() {
		for _, a := range in.system.Annotations {
			s.unknown(a)
		}
	}
}

func (f *flattener) componentSettings(s *settings, in *instance, e *Component) {
	if in.index < 0 {
		for _, a := range e.Annotations {
			if in.system != nil && a.Type == OwnType {
				f.l.Report(RuleOwn, e.Place, "the annotations of component %q require an FMU, but a system stands for it; "+
					"annotate its components", in.path)
			} else {
				s.note(a)
			}
		}
		return
	}
	c := f.net.Components[in.index]
	c.Isolate, c.StepHints = c.proxy, nil
	for _, a := range e.Annotations {
		c.StepHints = append(c.StepHints, s.tool(a, AtComponent, in.path)...)
	}
	if e.StepHint != nil {
		c.StepHints = append(c.StepHints, *e.StepHint)
	}
	if c.proxy {
		f.l.Report(RuleTaken, c.Place, "component %q runs in a separate process, as its source demands", c.Path)
	}
}

// placeholders reports the components without a source.
func (f *flattener) placeholders() {
	f.p.top.each(func(in *instance) {
		if _, ok := in.element.(*Component); ok && in.index < 0 && in.system == nil {
			f.l.Report(rulePlaceholder, in.element.Base().Place, "component %q has no source and is omitted", in.path)
		}
	})
}

// resolve gets the variables of all components.
func (f *flattener) resolve(r Resolver) (errs []error) {
	f.vars = make([]VariableSet, len(f.net.Components))
	for i, c := range f.net.Components {
		if c.Problem != nil {
			f.l.Report(c.problemRule, c.Place, "%v", c.Problem)
			continue
		}
		vars, err := r.Variables(c)
		switch {
		case err == nil && vars == nil:
			err = errors.New("the resolver returned no variables")
		case errors.Is(err, fs.ErrNotExist):
			f.l.Report(ruleFile, c.Place, "the FMU %q of component %q does not exist%s", c.URI, c.Path, c.hint())
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: component %q: %w", c.Place, c.Path, err))
			continue
		}
		f.vars[i] = vars
	}
	for _, in := range f.p.instances[len(f.p.components):] {
		f.vars = append(f.vars, functionVariables{in})
	}
	return errs
}

// variable returns the FMU variable of an end.
func (f *flattener) variable(e end) (Variable, bool) {
	if e.in.index < 0 {
		return Variable{}, false
	}
	return f.vars[e.in.index].Lookup(e.name)
}

// at describes an end. It returns false if there is neither a connector nor a variable.
func (f *flattener) at(e end) (port, bool) {
	p := port{decl: e.in.outer(e.name)}
	truth := p.decl // has the actual kind, type and inner face
	switch v, ok := f.variable(e); {
	case ok:
		p.variable = &v
		p.kind, p.typ = Kind(v.Causality), v.Type
		p.inner = v.face()
		p.outside = p.inner
		if p.decl == nil {
			return p, true
		}
		if p.decl.Kind != AnyKind {
			p.kind = p.decl.Kind
		}
		p.array = p.decl.Array && p.decl.Name == e.name
		p.outside.setUnit(p.decl.face)
		return p, true
	case e.in.inside != nil:
		truth = e.in.inside[e.name]
	}
	if truth == nil {
		return p, false
	}
	p.kind, p.typ, p.array, p.inner = truth.Kind, truth.Type, truth.Array, truth.face
	if e.in.signals != nil { // a reference without type or unit has those of the entry
		p.orAs(e.in.signals.connectors[e.name])
	}
	p.outside = p.inner
	if p.decl != nil && p.decl != truth {
		if p.typ == Unspecified {
			p.typ = p.decl.Type
		}
		p.outside.setUnit(p.decl.face)
		if p.outside.items == nil {
			p.outside.items = p.decl.face.items
		}
	}
	return p, true
}

// orAs completes a port with the type, unit and items of a connector.
func (p *port) orAs(c *Connector) {
	if c == nil {
		return
	}
	if p.typ == Unspecified {
		p.typ = c.Type
	}
	if p.inner.unit == nil {
		p.inner.unit, p.inner.unitName = c.face.unit, c.face.unitName
	}
	if p.inner.items == nil {
		p.inner.items = c.face.items
	}
	p.array = p.array || c.Array
}

// role reports whether an end can be the source or the destination of a connection, seen from
// inside the system (ssp 25). own is true for the connectors of that system.
func role(k Kind, own bool) (source, destination bool) {
	switch k {
	case Input, Parameter, StructuralParameter:
		return own, !own
	case Output, CalculatedParameter:
		return !own, own
	case Local, Constant:
		return !own, own
	case AnyKind:
		return true, true
	case Inout:
		return !own, !own
	}
	return false, false
}

// pair is a kind of connector, of the system itself or of an element in it.
type pair struct {
	own  bool
	kind Kind
}

// allowed is the table of connections of the standard, from source to target (ssp 25). The kind
// unspecified can be connected to every kind.
var allowed = map[pair][]pair{
	{true, Parameter}: {{true, CalculatedParameter}, {true, Output}, {false, Parameter}, {false, Input}, {false, Inout}, {true, Local}},
	{true, Input}:     {{true, Output}, {false, Input}, {false, Inout}, {true, Local}},
	{true, StructuralParameter}: {{true, CalculatedParameter}, {true, Output}, {true, Local},
		{false, StructuralParameter}, {false, Parameter}, {false, Input}, {false, Inout}},
	{false, CalculatedParameter}: {{false, Parameter}, {false, Input}, {false, Inout}, {true, CalculatedParameter},
		{true, Output}, {true, Local}},
	{false, Output}: {{false, Input}, {false, Inout}, {true, Output}, {true, Local}},
	{false, Constant}: {{false, StructuralParameter}, {false, Parameter}, {false, Input}, {false, Inout},
		{true, Constant}, {true, CalculatedParameter}, {true, Output}, {true, Local}},
	{false, Local}: {{false, Input}, {false, Inout}, {true, Output}, {true, Local}},
	{false, Inout}: {{false, Input}, {true, Output}, {true, Local}},
}

// connect adds all connections, and returns the ends that are connected.
func (f *flattener) connect() map[end]bool {
	used := make(map[end]bool)
	f.p.top.each(func(in *instance) {
		if in.system == nil {
			return
		}
		connections := in.system.Connections
		if in.isRoot() {
			connections = append(slices.Clip(connections), f.more...)
		}
		for i := range connections {
			all := f.elementwise(in, &connections[i])
			for k := range all {
				c := &all[k]
				a, okA := f.end(in, c, c.StartElement, c.StartConnector)
				b, okB := f.end(in, c, c.EndElement, c.EndConnector)
				used[a], used[b] = true, true
				if okA && okB {
					f.join(in, c, a, b)
				}
			}
		}
	})
	return used
}

// end finds one end of a connection.
func (f *flattener) end(in *instance, c *Connection, element, connector string) (end, bool) {
	at := in
	if element != "" {
		if at = in.byName[element]; at == nil {
			f.l.Report(RuleEnd, c.Place, "there is no element %q in %s", element, in)
			return end{in, ""}, false
		}
	}
	e := end{at, connector}
	p, ok := f.at(e)
	switch {
	case !ok && at.isRoot():
		f.l.Report(RuleEnd, c.Place, "the outermost system has no connector %q", connector)
	case !ok && at.index < 0:
		f.l.Report(RuleEnd, c.Place, "%s has no connector %q", at, connector)
	case !ok:
		f.l.Report(RuleEnd, c.Place, "component %q has no connector %q, and its FMU has no such variable", at.path, connector)
	case p.array && at.index < 0:
		f.l.Report(ruleTypes, c.Place, "the connector %q is an array; give all its dimensions a size", e)
		return e, false
	case p.array:
		f.l.Report(ruleTypes, c.Place, "the connector %q is an array; its FMU has none of that name", e)
		return e, false
	case p.typ == Binary || p.typ == Clock:
		f.l.Report(ruleTypes, c.Place, "the connector %q is of type %s, which FMI 2.0 does not have%s", e, p.typ, f.osmp(e, p.typ))
		return e, false
	case at.index >= 0 && p.decl != nil && p.variable == nil: // reported with the connector
		return e, false
	case p.decl == nil && at != in && f.p.structure == nil: // a Structure declares no connectors
		f.l.Report(ruleUndeclared, c.Place, "component %q does not declare the connector %q", at.path, connector)
	}
	return e, ok
}

// osmp returns, for a message, the three Integers that an FMU of version 2.0 has in place of a
// Binary by the convention of OSMP: two halves of an address in the memory of the process, and a
// size (ssp 18). It returns "" if there are none.
func (f *flattener) osmp(e end, t ValueType) string {
	if t != Binary || e.in.index < 0 {
		return ""
	}
	for _, part := range []string{".base.lo", ".base.hi", ".size"} {
		if v, ok := f.vars[e.in.index].Lookup(e.name + part); !ok || v.Type != Integer {
			return ""
		}
	}
	return fmt.Sprintf("; the FMU has three Integers in its place, by the convention of OSMP: "+
		"connect %[1]s.base.lo, %[1]s.base.hi and %[1]s.size instead, and run both FMUs in one process, "+
		"because they are an address in its memory", e.name)
}

// join adds a connection, in the direction that follows from the kinds (ssp 24).
func (f *flattener) join(in *instance, c *Connection, a, b end) {
	pa, _ := f.at(a)
	pb, _ := f.at(b)
	aOut, aIn := role(pa.kind, a.in == in)
	bOut, bIn := role(pb.kind, b.in == in)
	forward, backward := aOut && bIn, bOut && aIn
	switch {
	case forward && backward:
		f.l.Report(ruleKinds, c.Place, "the kinds of %q and %q do not determine which one is the source", a, b)
		return
	case !forward && !backward:
		f.l.Report(ruleKinds, c.Place, "%q (%s) and %q (%s) cannot be connected: neither can feed the other",
			a, pa.kind, b, pb.kind)
		return
	case backward:
		a, b, pa, pb = b, a, pb, pa
	}
	legal := pa.kind == AnyKind || pb.kind == AnyKind ||
		slices.Contains(allowed[pair{a.in == in, pa.kind}], pair{b.in == in, pb.kind})
	if !legal {
		f.l.Report(ruleKinds, c.Place, "%q (%s) must not feed %q (%s)", a, pa.kind, b, pb.kind)
		return
	}
	if a.in.signals != nil { // read from the entry
		entry := end{a.in.signals, a.name}
		a.in = a.in.reader
		f.inbound[a] = edge{from: entry, to: a, c: &Connection{Place: c.Place}}
	}
	if !f.feed(edge{from: a, to: b, c: c, within: in}) {
		return
	}
	if b.in.signals != nil { // write to the entry
		f.feed(edge{from: b, to: end{b.in.signals, b.name}, c: &Connection{Place: c.Place}})
	}
}

// alike reports whether two connections between the same ends pass the same values.
func (c *Connection) alike(o *Connection) bool {
	return c.Transformation.Equal(o.Transformation) && c.SuppressUnitConversion == o.SuppressUnitConversion && c.Bond == o.Bond
}

// feed adds an edge. It returns false if its target has a source already.
func (f *flattener) feed(g edge) bool {
	if first, twice := f.inbound[g.to]; twice && first.from == g.from && first.within == g.within && first.c.alike(g.c) {
		f.l.Report(RuleTwice, g.c.Place, "the connection of %q to %q is repeated, first in line %d",
			g.from, g.to, first.c.Place.Line)
		return false
	} else if twice {
		f.l.Report(ruleWriters, g.c.Place, "%q has two sources: %q and, from line %d, %q",
			g.to, g.from, first.c.Place.Line, first.from)
		return false
	}
	f.inbound[g.to] = g
	f.fed = append(f.fed, g.to)
	return true
}

// checkConnectors compares the connectors of a component with its FMU, or with the system that
// stands for it (SD6, SD7).
func (f *flattener) checkConnectors(in *instance, used map[end]bool) {
	connectors := in.element.Base().Connectors
	for k := range connectors {
		c := &connectors[k]
		rule := ruleVariableUnused
		if used[end{in, c.Name}] {
			rule = ruleVariable
		}
		if in.inside != nil {
			f.checkNested(in, c, rule)
			continue
		}
		name := c.Name
		if sizes := f.sizes(end{in, name}); sizes != nil && c.Array {
			name += subscript(0, sizes)
			if used[end{in, name}] {
				rule = ruleVariable
			}
			if c.Sizes != nil && !slices.Equal(c.Sizes, sizes) {
				f.l.Report(ruleVariable, c.Place, "the connector %q of component %q is %s, and its FMU variable %s",
					c.Name, in.path, shape(c.Sizes), shape(sizes))
			}
		}
		v, ok := f.vars[in.index].Lookup(name)
		if !ok {
			if f.osmp(end{in, c.Name}, c.Type) == "" { // reported with the connection, if there is one
				f.l.Report(rule, c.Place, "the FMU of component %q has no variable %q", in.path, c.Name)
			}
			continue
		}
		if c.Kind != AnyKind && string(c.Kind) != v.Causality {
			f.l.Report(rule, c.Place, "the connector %q of component %q is of kind %s; its FMU variable has the causality %s",
				c.Name, in.path, c.Kind, v.Causality)
		}
		if c.Type != Unspecified && c.Type != v.Type && (c.Type != Binary || v.MediaType == "") {
			f.l.Report(ruleConnectorType, c.Place, "the connector %q of component %q is of type %s; "+
				"its FMU variable is of type %s, which is used", c.Name, in.path, c.Type, v.Type)
		}
		f.checkFace(in, c, v.face(), v.RelativeQuantity, "FMU variable")
	}
}

// checkNested compares a connector of a component with that of the system that stands for it.
func (f *flattener) checkNested(in *instance, c *Connector, rule *diag.Rule) {
	inner := in.inside[c.Name]
	if inner == nil {
		f.l.Report(rule, c.Place, "the system %q, which stands for component %q, has no connector %q", in.system.Name, in.path, c.Name)
		return
	}
	if c.Array != inner.Array || c.Sizes != nil && !slices.Equal(c.Sizes, inner.Sizes) {
		f.l.Report(rule, c.Place,
			"the connector %q of component %q is %s, but %s in the system that stands for the component",
			c.Name, in.path, shape(c.Sizes), shape(inner.Sizes))
	}
	if c.Kind != AnyKind && inner.Kind != AnyKind && c.Kind != inner.Kind {
		f.l.Report(rule, c.Place, "the connector %q of component %q is of kind %s, but of kind %s in the system "+
			"that stands for the component", c.Name, in.path, c.Kind, inner.Kind)
	}
	if c.Type != Unspecified && inner.Type != Unspecified && c.Type != inner.Type {
		f.l.Report(ruleConnectorType, c.Place, "the connector %q of component %q is of type %s, but of type %s in the system "+
			"that stands for the component; the latter is used", c.Name, in.path, c.Type, inner.Type)
	}
	f.checkFace(in, c, inner.face, false, "system")
}

// checkFace compares enumeration and unit of a connector with those of what is behind it.
func (f *flattener) checkFace(in *instance, c *Connector, inner face, relative bool, what string) {
	if c.face.items != nil && inner.items != nil {
		if how := differ(c.face.items, inner.items); how != "" {
			f.l.Report(ruleConnectorType, c.Place, "the enumeration %q of connector %q differs from that of the %s: %s",
				c.Enumeration, c.Name, strings.TrimSuffix(what, " variable"), how)
		}
	}
	switch gain, offset, err := unit.Convert(inner.unit, c.face.unit, relative); {
	case err != nil:
		f.l.Report(ruleConnectorUnit, c.Place, "the unit %q of connector %q of component %q contradicts the unit %q of its %s: %v",
			c.Unit, c.Name, in.path, inner.unitName, what, err)
	case gain != 1 || offset != 0:
		f.l.Report(ruleConnectorType, c.Place, "the connector %q of component %q has the unit %q, but its %s the unit %q; "+
			"values are converted: connector = %g · inside + %g", c.Name, in.path, c.Unit, what, inner.unitName, gain, offset)
	}
}

// differ describes the first difference of two enumerations; "" if they agree.
func differ(a, b map[string]int64) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch n, ok := b[name]; {
		case !ok:
			return fmt.Sprintf("only one has the item %q", name)
		case n != a[name]:
			return fmt.Sprintf("%q is %d in one and %d in the other", name, a[name], n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			return fmt.Sprintf("only one has the item %q", name)
		}
	}
	return ""
}

// trace follows the connections backwards from an end to the source of its signal. path is in the
// direction of the signal, and valid until the next call. ok is false if the connections form a
// ring.
func (f *flattener) trace(e end) (source end, path []edge, ok bool) {
	// A ring is found when the path returns to a mark. The mark moves after one, two, four …
	// steps, so that it gets into the ring (Brent 1980).
	mark, next := e, 1
	path = f.way[:0]
	defer func() { f.way = path[:0] }()
	for at := e; ; {
		g, fed := f.inbound[at]
		if !fed {
			slices.Reverse(path)
			return at, path, true
		}
		path = append(path, g)
		if at = g.from; at.in.index >= 0 {
			slices.Reverse(path)
			return at, path, true
		}
		if at == mark {
			return at, path, false
		}
		if len(path) == next {
			mark, next = at, 2*next
		}
	}
}

// carrier describes a signal at a point of its path.
type carrier struct {
	face
	typ      ValueType
	relative bool
	// constant marks a bound value. It may change from Integer to Real (ssp 40), which a
	// signal between FMU variables may not.
	constant bool
}

// follow compiles the path of a signal into stages. Each connection converts the unit first, then
// applies its transformation (ssp 30). A connector of a system without a unit has the unit of
// its source (ssp 31), but after a linear transformation its unit is unknown. At a component
// the signal is converted into the unit of the connector, then into that of the variable, or
// of the system, behind it.
func (f *flattener) follow(c carrier, path []edge) (out []stage, last carrier, ok bool) {
	w := walker{flattener: f, carrier: c}
	for _, g := range path {
		if !w.pass(g) {
			return nil, w.carrier, false
		}
	}
	if w.mapped && w.mixed != nil {
		w.mixed()
		return nil, w.carrier, false
	}
	return w.stages, w.carrier, true
}

// walker follows a signal.
type walker struct {
	*flattener
	carrier
	stages []stage
	mapped bool   // a mapping by item names is on the path
	mixed  func() // reports the first connection whose numbers would mix up items; nil if there is none
}

// pass takes the signal over one connection. It returns false after an error.
func (w *walker) pass(g edge) bool {
	to, _ := w.at(g.to)
	what, at := way{g.from, g.to}, g.c.Place
	linear := g.c.Transformation != nil && g.c.Transformation.Kind == Linear
	widens := w.typ == Integer && (to.typ == Real || to.typ == Unspecified && linear) && !w.isFunction(g.to.in)
	if !alike(w.typ, to.typ) && !widens {
		w.l.Report(ruleTypes, at, "%s: the source is of type %s, the target of type %s", what, w.typ, to.typ)
		return false
	}
	if widens && (g.c.Transformation == nil || g.c.Transformation.Kind != IntegerMapping) { // else the mapping comes first
		w.typ = Real
	}
	first, second := to.outside, to.inner
	if g.to.in == g.within { // from inside
		first, second = second, first
	}
	if g.c.SuppressUnitConversion {
		w.unit, w.unitName = first.unit, first.unitName
	} else if !w.convertTo(first, at, what) {
		return false
	}
	if t := g.c.Transformation; t != nil {
		if !w.transform(t, to, first, at, what) {
			return false
		}
	} else if !w.constant { // bound values pass by item name
		w.passNumbers(to, first, at, what)
	}
	if to.typ != Unspecified {
		w.typ = to.typ
	}
	if first.items != nil {
		w.items = first.items
	}
	if !w.convertTo(second, at, what) {
		return false
	}
	if second.items != nil {
		w.items = second.items
	}
	return true
}

// isFunction reports whether an instance is a Function, whose inputs are Reals that change within a step.
func (f *flattener) isFunction(in *instance) bool { return in.index >= len(f.p.components) }

// convertTo converts the unit of the signal.
func (w *walker) convertTo(to face, at Place, what way) bool {
	stages, ok := w.convert(&w.carrier, to, at, what)
	w.stages = append(w.stages, stages...)
	return ok
}

// transform applies a transformation to the signal, at a connector with this face.
func (w *walker) transform(t *Transformation, to port, at face, place Place, what way) bool {
	if !t.suits(w.typ) {
		w.l.Report(ruleTransformation, place, "%s: %s does not suit the type %s", what, t, w.typ)
		return false
	}
	if at.unit == nil && w.unit != nil && to.variable == nil && t.Kind == Linear {
		w.once(ruleUnitLost, place, "%s: the connector has no unit; after the transformation the unit is unknown", what)
		w.unit, w.unitName = nil, ""
	}
	target := at.items
	if target == nil {
		target = w.items
	}
	s := stage{gain: t.Factor, offset: t.Offset, t: t, from: w.items, to: target, at: t.Place}
	if !w.checkTargets(&s, to.typ, at.items, place, what) {
		return false
	}
	w.stages = append(w.stages, s)
	w.mapped = w.mapped || t.Kind == EnumerationMapping
	return true
}

// passNumbers notes a connection without a transformation whose ends number an item differently.
func (w *walker) passNumbers(to port, at face, place Place, what way) {
	name, differs := renumber(w.items, at.items)
	if !differs {
		return
	}
	before, after := w.items[name], at.items[name]
	if to.variable == nil {
		w.once(ruleConnectorType, place, "%s: the item %q is %d in one enumeration and %d in the other; "+
			"the number passes unchanged", what, name, before, after)
	}
	if w.mixed == nil {
		w.mixed = func() {
			w.l.Report(ruleUntransformed(), place, "%s: a mapping on the path gives items by name, but this connection has none "+
				"and passes numbers; the item %q is %d before it and %d after it", what, name, before, after)
		}
	}
}

// renumber returns an item that two enumerations number differently, the first by name.
func renumber(a, b map[string]int64) (name string, is bool) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if n, both := b[name]; both && n != a[name] {
			return name, true
		}
	}
	return "", false
}

// way names a connection in messages. It is formatted only if there is a message.
type way struct{ from, to end }

func (w way) String() string { return fmt.Sprintf("%s → %s", w.from, w.to) }

// once reports a finding that every signal on the same path would cause, once for each rule and
// place.
func (f *flattener) once(r *diag.Rule, at Place, format string, args ...any) {
	key := r.ID + " " + at.String() + " " + at.Path
	if !f.told[key] {
		f.told[key] = true
		f.l.Report(r, at, format, args...)
	}
}

// convert changes the unit of a signal if both units are known.
func (f *flattener) convert(c *carrier, to face, at Place, what way) (out []stage, ok bool) {
	if c.typ != Real || to.unit == nil {
		return nil, true
	}
	if c.constant && c.unit == nil && c.unitName != "" && c.unitName != to.unitName {
		f.l.Report(ruleUnitUnknown, at, "%s: the value has the undefined unit %q, which cannot be converted into %q",
			what, c.unitName, to.unitName)
		return nil, false
	}
	out, err := conversion(c.face, to, c.relative, at)
	if err != nil {
		f.l.Report(ruleDimension, at, "%s: the unit %q cannot be converted into %q: %v", what, c.unitName, to.unitName, err)
		return nil, false
	}
	c.unit, c.unitName = to.unit, to.unitName
	return out, true
}

// checkTargets reports a value of a mapping that the target does not have (ssp 29).
func (f *flattener) checkTargets(s *stage, typ ValueType, items map[string]int64, at Place, what way) bool {
	if s.t.Kind != IntegerMapping || typ != Enumeration || items == nil {
		return true
	}
	for _, n := range slices.Sorted(maps.Keys(s.t.Numbers)) {
		if v := s.t.Numbers[n]; itemName(items, v) == "" {
			f.l.Report(ruleTransformation, at, "%s: %d is mapped to %d, which is not an item of the target; it has %s",
				what, n, v, diag.ListItems(items))
			return false
		}
	}
	return true
}

// fromVariable returns the signal of an FMU variable, and the stages to its connector.
func (f *flattener) fromVariable(e end) (carrier, []stage) {
	p, _ := f.at(e)
	v := p.variable
	c := carrier{face: v.face(), typ: v.Type, relative: v.RelativeQuantity}
	return c, f.leave(&c, p)
}

// leave converts a signal from the unit inside a component into that of its connector.
func (f *flattener) leave(c *carrier, p port) []stage {
	if p.outside.unit == nil || c.typ != Real {
		return nil
	}
	var at Place
	if p.decl != nil {
		at = p.decl.Place
	}
	out, _ := conversion(c.face, p.outside, c.relative, at) // an error is reported with the connector
	c.unit, c.unitName = p.outside.unit, p.outside.unitName
	return out
}

// connections makes the flat connections, and reports inputs without a source.
func (f *flattener) connections() {
	for _, e := range f.fed {
		if e.in.index < 0 {
			continue
		}
		source, path, ok := f.trace(e)
		at := f.inbound[e].c.Place
		if !ok {
			f.l.Report(ruleRing, at, "the signal of %q comes from itself", e)
			continue
		}
		if source.in.index >= 0 {
			f.flat(source, e, path)
			continue
		}
		hasValue := slices.ContainsFunc(path, func(g edge) bool { return len(f.assigned[g.from]) > 0 })
		if !source.in.isRoot() && !hasValue {
			f.l.Report(ruleDangling, at, "%q is connected to %q, which nothing feeds and which has no value", e, source)
		}
	}
}

// vanishing reports connections into systems that do not use the signal (ssp 27). Connections into
// placeholders are reported with the placeholder.
func (f *flattener) vanishing() {
	taken := make(map[end]bool) // ends whose signal reaches an FMU or an output of the outermost system
	for _, e := range f.fed {
		if e.in.index < 0 && !e.in.isRoot() {
			continue
		}
		for at, fed := e, true; fed && !taken[at]; {
			taken[at] = true
			var g edge
			g, fed = f.inbound[at]
			at = g.from
		}
	}
	for _, e := range f.fed {
		g := f.inbound[e]
		into := g.within != nil && e.in != g.within && (e.in.system != nil || e.in.signals != nil)
		if !into || taken[e] {
			continue
		}
		if _, outer := f.inbound[g.from]; outer && g.from.in == g.within { // reported outside
			continue
		}
		f.l.Report(ruleDangling, g.c.Place, "%q is connected to %q, but nothing uses the value there", g.from, e)
	}
}

// flat makes one flat connection.
func (f *flattener) flat(from, to end, path []edge) {
	at := f.inbound[to].c.Place
	v, _ := f.variable(from)
	w, _ := f.variable(to)
	if !f.checkEnds(from, to, &v, &w, at) {
		return
	}
	all, ok := f.compile(from, path, at)
	if !ok {
		return
	}
	if v.Type == Real && v.UnitBase != nil && w.UnitBase != nil && v.RelativeQuantity != w.RelativeQuantity {
		rule := ruleRelative
		if v.UnitBase.Offset != 0 || w.UnitBase.Offset != 0 {
			rule = ruleDimension
		}
		f.l.Report(rule, at, "%q and %q differ in relativeQuantity: only one is a difference of two values", from, to)
	}
	if !f.arrive(from, to, v, w.Items, all.table, path, at) {
		return
	}
	if all.table == nil {
		f.checkNumbers(from, to, &v, &w, at)
	}
	var via []string
	for _, g := range path[:len(path)-1] {
		via = append(via, g.to.String())
	}
	f.net.Connections = append(f.net.Connections, FlatConnection{
		From: FlatEnd{from.in.index, from.name}, To: FlatEnd{to.in.index, to.name}, Type: w.Type,
		Gain: all.gain, Offset: all.offset, Map: all.table, Via: via, Bond: f.inbound[to].c.Bond, Place: at,
	})
}

// checkEnds reports variables that cannot be connected.
func (f *flattener) checkEnds(from, to end, v, w *Variable, at Place) bool {
	switch {
	case v.MediaType != w.MediaType:
		name := func(t string) string { return cmp.Or(t, "text") }
		f.l.Report(ruleKinds, at, "%q holds %s and %q takes %s; only Binaries of the same mimeType can be connected",
			from, name(v.MediaType), to, name(w.MediaType))
	case v.Causality != string(Output) && v.Causality != string(CalculatedParameter):
		f.l.Report(ruleKinds, at, "%q has the causality %s in its FMU; only an output or a calculated parameter can feed %q",
			from, v.Causality, to)
	case w.Causality == string(Input):
		return true
	case w.Causality != string(Parameter) || v.Causality != string(CalculatedParameter):
		f.l.Report(ruleKinds, at, "%q has the causality %s in its FMU; an output can feed inputs, "+
			"and a calculated parameter inputs and parameters", to, w.Causality)
	case !w.Settable:
		f.l.Report(ruleNotSettable, at, "%q cannot be set: causality %s, variability %s, initial %q",
			to, w.Causality, w.Variability, w.Initial)
	default:
		return true
	}
	return false
}

// checkNumbers reports ends without a mapping whose numbers may mean different things.
func (f *flattener) checkNumbers(from, to end, v, w *Variable, at Place) {
	if v.Type == Integer && w.Type == Real {
		return // nothing is lost up to 2^53
	}
	if v.Type != w.Type {
		f.l.Report(ruleEnumeration, at, "%q is of type %s and %q of type %s; the number passes unchanged",
			from, v.Type, to, w.Type)
		return
	}
	if v.Type == Enumeration && v.Items != nil && w.Items != nil {
		if what := differ(v.Items, w.Items); what != "" {
			f.l.Report(ruleConnectorType, at, "the enumerations of %q and %q differ (%s); the number passes unchanged", from, to, what)
		}
	}
}

// arrive checks the values at an enumeration. Each item of the source must become an item of the
// target, with or without a mapping, because values that a mapping does not contain pass unchanged
// (ssp 29). The numbers of an Integer are known only if it has bounds. A Structure is not checked:
// it has no mappings that could be corrected.
func (f *flattener) arrive(from, to end, v Variable, items map[string]int64, table map[int64]int64, path []edge, at Place) bool {
	if len(items) == 0 || f.p.structure != nil {
		return true
	}
	numbers := make(map[int64]bool, len(items))
	for _, n := range items {
		numbers[n] = true
	}
	becomes := func(n int64) int64 {
		if to, mapped := table[n]; mapped {
			return to
		}
		return n
	}
	switch {
	case v.Type == Enumeration:
		for _, name := range slices.Sorted(maps.Keys(v.Items)) {
			if n := becomes(v.Items[name]); !numbers[n] {
				rule := ruleTransformation
				if !slices.ContainsFunc(path, func(g edge) bool { return g.c.Transformation != nil }) {
					rule = ruleUntransformed()
				}
				f.l.Report(rule, at,
					"%q → %q: the item %q of the source, %d, becomes %d, which is not an item of the target; it has %s", from, to, name, v.Items[name], n, diag.ListItems(items))
				return false
			}
		}
	case v.Type == Integer && table != nil && !v.within(func(n int64) bool { return numbers[becomes(n)] }):
		f.l.Report(ruleEnumeration, at, "%q → %q: numbers that the mapping does not contain pass unchanged, but the target has only %s",
			from, to, diag.ListItems(items))
	}
	return true
}

// mostNumbers is the largest range of an Integer whose numbers are checked one by one.
const mostNumbers = 1000

// within reports whether a condition holds for all numbers within the bounds of a variable. It
// returns false if the variable has no bounds or a range of more than mostNumbers.
func (to *Variable) within(holds func(int64) bool) bool {
	span := uint64(to.High) - uint64(to.Low)
	if span == 0 || span > mostNumbers {
		return false
	}
	for n := range int64(span) + 1 {
		if !holds(to.Low + n) {
			return false
		}
	}
	return true
}

// change is the joint effect of stages: a linear function of a Real, or a table of the values that
// change.
type change struct {
	gain, offset float64
	table        map[int64]int64
}

// compile returns the change of a signal from an FMU variable over a path.
func (f *flattener) compile(from end, path []edge, at Place) (change, bool) {
	c, stages := f.fromVariable(from)
	return f.compose(c, stages, from, path, at)
}

// compose returns the change of a signal by some stages and then over a path.
func (f *flattener) compose(c carrier, stages []stage, from end, path []edge, at Place) (change, bool) {
	more, _, ok := f.follow(c, path)
	if !ok {
		return change{}, false
	}
	all, err := compose(append(stages, more...))
	switch {
	case err != nil:
		f.l.Report(ruleTransformation, at, "the enumeration mapping from %q: %v", from, err)
	case all.gain-all.gain != 0 || all.offset-all.offset != 0:
		f.l.Report(ruleTransformation, at, "units and transformations turn %q into %v times its value plus %v, which is out of range",
			from, all.gain, all.offset)
	default:
		return all, true
	}
	return change{}, false
}

// outputs finds the sources of the outputs of the outermost system.
func (f *flattener) outputs() {
	for _, c := range elements(f.p.Root.System.Connectors) {
		e := end{f.p.top, c.Name}
		if _, fed := f.inbound[e]; !fed {
			continue
		}
		source, path, ok := f.trace(e)
		if !ok {
			f.l.Report(ruleRing, c.Place, "the signal of %q comes from itself", c.Name)
			continue
		}
		if source.in.index < 0 {
			continue
		}
		if all, ok := f.compile(source, path, c.Place); ok {
			f.net.Outputs = append(f.net.Outputs, SystemOutput{Name: c.Name, From: FlatEnd{source.in.index,
				source.name}, Gain: all.gain, Offset: all.offset, Map: all.table, Unit: c.face.unitName})
		}
	}
}

// inputs finds the FMU inputs that the inputs of the outermost system feed.
func (f *flattener) inputs() {
	for _, e := range f.fed {
		v, isVariable := f.variable(e)
		if !isVariable || v.Causality != string(Input) {
			continue
		}
		source, path, ok := f.trace(e)
		if !ok || !source.in.isRoot() {
			continue
		}
		p, _ := f.at(source)
		if p.kind != Input {
			continue
		}
		at := f.inbound[e].c.Place
		c := carrier{face: p.inner, typ: p.typ, relative: v.RelativeQuantity, constant: true}
		all, ok := f.compose(c, nil, source, path, at)
		if !ok || !f.arrive(source, e, Variable{Type: p.typ, Items: p.inner.items}, v.Items, all.table, path, at) {
			continue
		}
		f.net.Inputs = append(f.net.Inputs, SystemInput{Name: source.name, Quoted: quoteName(source.name), To: FlatEnd{e.in.index, e.name},
			Gain: all.gain, Offset: all.offset, Map: all.table, Place: at})
	}
}
