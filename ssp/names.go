package ssp

import (
	"slices"
	"strings"
)

// quoteName writes a name of an element so that its dots are its own: 'a.b', as FMI writes
// names with other characters than letters and digits.
func quoteName(name string) string {
	if strings.ContainsAny(name, `\'`) {
		name = strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)
	}
	return "'" + name + "'"
}

// quoteAll writes the path of an instance with each name in quotes: 'a'.'b.c'.
func (in *instance) quoteAll() string {
	if in.isRoot() {
		return ""
	}
	return strings.TrimPrefix(in.parent.quoteAll()+"."+quoteName(in.name), ".")
}

// collision is a name that two instances would share: of a component, or with a variable
// of both.
type collision struct {
	a, b  int // indices of the instances
	joint string
}

// name returns components and functions the paths by which they go outside of the
// documents: names joined with dots, and in quotes where that, with a variable behind it,
// would mean two things (ssp 11). Without their variables (nil) only the paths themselves
// are told apart.
func (p *Package) name(vars []VariableSet) []collision {
	joined, quoted := make([]string, len(p.instances)), make([]string, len(p.instances))
	for i, in := range p.instances {
		joined[i] = strings.TrimPrefix(in.parent.path+"."+in.name, ".")
		in.path = joined[i]
	}
	var all []collision
	for {
		found := p.collisions(vars)
		fresh := 0
		for _, c := range found {
			for _, i := range []int{c.a, c.b} {
				if quoted[i] == "" {
					quoted[i] = p.instances[i].quoteAll()
					p.instances[i].path = quoted[i]
					fresh++
				}
			}
		}
		all = append(all, found...)
		if fresh == 0 {
			break
		}
	}
	for i, in := range p.instances {
		if i < len(p.components) {
			c := p.components[i]
			c.Path, c.Joined, c.Quoted = in.path, joined[i], in.quoteAll()
		} else {
			p.functions[i-len(p.components)].Path = in.path
		}
	}
	return all
}

// collisions finds names that mean two things as instances are called now.
func (p *Package) collisions(vars []VariableSet) (out []collision) {
	byPath := make(map[string]int, len(p.instances))
	for i, in := range p.instances {
		if first, twice := byPath[in.path]; twice {
			out = append(out, collision{first, i, in.path})
			continue
		}
		byPath[in.path] = i
	}
	if vars == nil {
		return out
	}
	for j, in := range p.instances {
		for k := range len(in.path) {
			if in.path[k] != '.' {
				continue
			}
			i, is := byPath[in.path[:k]]
			if !is || i == j || vars[i] == nil || vars[j] == nil {
				continue
			}
			for v := range vars[j].All() {
				if _, both := vars[i].Lookup(in.path[k+1:] + "." + v.Name); both {
					out = append(out, collision{i, j, in.path + "." + v.Name})
					break
				}
			}
		}
	}
	return out
}

// Name tells components apart whose variables would go by the same name in results: it
// sets the Path of those to Quoted. Flatten does that, too. The resolver is asked once
// for each component; one that it does not know keeps its name.
func (p *Package) Name(r Resolver) {
	vars := make([]VariableSet, len(p.instances))
	for i, c := range p.components {
		if c.Problem == nil {
			vars[i], _ = r.Variables(c) // Flatten reports errors
		}
	}
	for i := len(p.components); i < len(vars); i++ {
		vars[i] = functionVariables{p.instances[i]}
	}
	p.name(vars)
}

// names tells components apart by the variables that they have, and reports those that
// have to be.
func (f *flattener) names() {
	told := make(map[[2]int]bool)
	for _, c := range f.p.name(f.vars) {
		if told[[2]int{c.a, c.b}] {
			continue
		}
		told[[2]int{c.a, c.b}] = true
		a, b := f.p.instances[c.a], f.p.instances[c.b]
		f.l.Report(ruleSamePath, b.element.Base().Place, "%q would be the name of two things, at %q of %s and at %q of %s; they are called %s and %s", c.joint,
			a.name, a.parent, b.name, b.parent, a.path, b.path)
	}
}

// SystemConnector is a connector of a system, or of what a reference to a dictionary shares.
type SystemConnector struct {
	Variable        // Name is Joined, or Quoted where several connectors have that
	Joined   string // names joined with dots, as a binding of the outermost system has it
	Quoted   string // each name in quotes, which means nothing else
	// To is the first FMU variable that connections inwards lead to, behind further
	// connectors if these have no type; Component is -1 if there is none.
	To FlatEnd
}

// SystemConnectors finds what a name means to a parameter binding of the outermost
// system, other than a variable of an FMU: "connector" or "system.connector". That may be
// several things where names have dots; with each name in quotes it is one. The causality
// is the kind of the connector, and the type is Unspecified if it has none.
func (p *Package) SystemConnectors(name string) []SystemConnector {
	var out []SystemConnector
	for _, e := range p.connectorsNamed(name) {
		c := e.in.declared(e.name)
		s := SystemConnector{
			Variable: Variable{Type: c.Type, Causality: string(c.Kind), Unit: c.face.unitName, UnitBase: c.face.unit, Items: c.face.items},
			Joined:   e.String(), Quoted: strings.TrimPrefix(e.in.quoteAll()+"."+quoteName(e.name), "."), To: FlatEnd{Component: -1},
		}
		if to, ok := e.inwards(nil); ok && to.in.index >= 0 && to.in.index < len(p.components) {
			s.To = FlatEnd{to.in.index, to.name}
		} else if ok {
			c = to.in.declared(to.name)
			s.Type, s.Items = c.Type, c.face.items
		}
		if outer := e.in.connectors[e.name]; outer != nil && outer.face.unit != nil {
			s.Unit, s.UnitBase = outer.face.unitName, outer.face.unit
		}
		if s.Name = s.Joined; len(p.connectorsNamed(s.Joined)) > 1 {
			s.Name = s.Quoted
		}
		out = append(out, s)
	}
	return out
}

// inwards follows the connections of a system from one of its connectors without type to
// a variable or to a connector that has one.
func (e end) inwards(way []end) (end, bool) {
	if slices.Contains(way, e) {
		return end{}, false
	}
	if c := e.in.declared(e.name); e.in.index >= 0 || c != nil && c.Type != Unspecified {
		return e, true
	}
	if e.in.system == nil {
		return end{}, false
	}
	for i := range e.in.system.Connections {
		c := &e.in.system.Connections[i]
		element, connector := c.EndElement, c.EndConnector
		switch {
		case c.Transformation != nil && c.Transformation.Kind != Linear: // has values of its own
			continue
		case c.StartElement == "" && c.StartConnector == e.name:
		case c.EndElement == "" && c.EndConnector == e.name:
			element, connector = c.StartElement, c.StartConnector
		default:
			continue
		}
		if kid := e.in.byName[element]; kid != nil {
			if to, ok := (end{kid, connector}).inwards(append(way, e)); ok {
				return to, true
			}
		}
	}
	return end{}, false
}

// declared returns the connector of a system by its name, nil if there is none.
func (in *instance) declared(name string) *Connector {
	if in.inside != nil {
		return in.inside[name]
	}
	return in.connectors[name]
}

// connectorsNamed finds the connectors of systems with a name, in quotes or not.
func (p *Package) connectorsNamed(name string) (out []end) {
	read := unquoteName
	var find func(in *instance, rest string)
	find = func(in *instance, rest string) {
		if in.index >= 0 || in.signals != nil {
			return
		}
		if last, ok := read(rest); ok && in.declared(last) != nil {
			out = append(out, end{in, last})
		}
		for i := range len(rest) {
			if rest[i] != '.' {
				continue
			}
			if first, ok := read(rest[:i]); ok && in.byName[first] != nil {
				find(in.byName[first], rest[i+1:])
			}
		}
	}
	if find(p.top, name); len(out) == 0 {
		read = func(s string) (string, bool) { return s, true }
		find(p.top, name)
	}
	return out
}

// unquoteName returns a name that quoteName has written.
func unquoteName(s string) (name string, ok bool) {
	if len(s) < 3 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return "", false
	}
	name = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(s[1 : len(s)-1])
	return name, quoteName(name) == s
}
