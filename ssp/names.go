package ssp

import (
	"slices"
	"strings"
)

// quoteName returns a name in quotes, so that its dots do not separate: 'a.b', like FMI writes
// names with special characters.
func quoteName(name string) string {
	if strings.ContainsAny(name, `\'`) {
		name = strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)
	}
	return "'" + name + "'"
}

// quoteAll returns the path of an instance with each name in quotes: 'a'.'b.c'.
func (in *instance) quoteAll() string {
	if in.isRoot() {
		return ""
	}
	return strings.TrimPrefix(in.parent.quoteAll()+"."+quoteName(in.name), ".")
}

// collision is a path shared by two instances, or by variables of both.
type collision struct {
	a, b  int // indices of the instances
	joint string
}

// name sets the paths of components and functions outside of documents: their names joined with
// dots, or in quotes if the joined names are ambiguous, alone or together with the variables (ssp
// 11). Without variables (nil) only the paths themselves are compared.
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

// collisions finds ambiguous names among the present paths.
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

// Name sets the Path of components to Quoted if their variables would be ambiguous in results.
// Flatten does the same. The resolver is called once for each component; one without variables
// keeps its name.
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

// names sets the paths of components, and reports those that need quotes.
func (f *flattener) names() {
	told := make(map[[2]int]bool)
	for _, c := range f.p.name(f.vars) {
		if told[[2]int{c.a, c.b}] {
			continue
		}
		told[[2]int{c.a, c.b}] = true
		a, b := f.p.instances[c.a], f.p.instances[c.b]
		f.l.Report(ruleSamePath, b.element.Base().Place, "%q is ambiguous: it is below %q of %s and below %q of %s; "+
			"they are called %s and %s", c.joint, a.name, a.parent, b.name, b.parent, a.path, b.path)
	}
}

// SystemConnector is a connector of a system or of a signal dictionary.
type SystemConnector struct {
	Variable        // Name is Joined, or Quoted if several connectors share Joined
	Joined   string // names joined with dots, as in a binding of the outermost system
	Quoted   string // each name in quotes, never ambiguous
	// To is the first FMU variable on the connections inwards, through connectors without a
	// type; Component is -1 if there is none.
	To FlatEnd
}

// SystemConnectors finds the connectors of systems that a parameter binding of the outermost system
// could mean by a name: "connector" or "system.connector". There may be several if names contain
// dots, but only one if each name is in quotes. The causality is the kind of the connector, the
// type is Unspecified if it has none.
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

// inwards follows the connections of a system from a connector without a type to a variable or to a
// connector with one.
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
		case c.Transformation != nil && c.Transformation.Kind != Linear: // a mapping may change the type
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

// declared returns a connector of a system, nil if there is none.
func (in *instance) declared(name string) *Connector {
	if in.inside != nil {
		return in.inside[name]
	}
	return in.connectors[name]
}

// connectorsNamed finds the connectors of systems with a name, in quotes or not.
func (p *Package) connectorsNamed(name string) (out []end) {
	read := UnquoteName
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

// UnquoteName returns the name of an element, connector or variable that is written in quotes, without them.
func UnquoteName(s string) (name string, ok bool) {
	if len(s) < 3 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return "", false
	}
	name = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(s[1 : len(s)-1])
	return name, quoteName(name) == s
}
