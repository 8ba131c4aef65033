package app

import (
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
)

// outline describes a system that cannot be assembled by its documents alone; nil if they cannot be read.
func outline(path string, dialects []ssp.Dialect) *fileDescription {
	list := &diag.List{}
	pkg, err := ssp.Open(path, list, dialects...)
	if err != nil || assemble.IsFMU(path) {
		return nil
	}
	defer pkg.Close() // the files were only read
	s := &systemDescription{Partial: true, Path: path, Name: pkg.Root.Name, Sources: map[string]string{}}
	experiment := func(v *float64) simulate.Setting {
		if v == nil {
			return simulate.Setting{}
		}
		return simulate.Setting{Value: *v, Source: "DefaultExperiment of the system"}
	}
	s.StartTime, s.StopTime = experiment(pkg.Root.Experiment.Start), experiment(pkg.Root.Experiment.Stop)
	s.Components = outlineComponents(pkg)
	found := &diag.List{}
	n, err := pkg.Flatten(newDeclaredOnly(pkg.Root), found)
	if !slices.ContainsFunc(s.Components, func(c componentInfo) bool { return c.Missing }) { // else missing FMUs may cause them
		list.Append(found)
	}
	if err != nil {
		s.Connections = written(pkg.Root.System, "")
	} else {
		outlineNetwork(s, n)
	}
	// The caller reports the errors, which prevented the assembly.
	findings := slices.DeleteFunc(list.Findings, func(f diag.Finding) bool { return f.Level >= diag.Error })
	return &fileDescription{System: s, Findings: findings}
}

// outlineComponents describes the components by the connectors in the document.
func outlineComponents(pkg *ssp.Package) (list []componentInfo) {
	for _, c := range pkg.Components() {
		_, err := os.Stat(c.Source)
		info := componentInfo{Name: c.Path, Source: c.URI, Missing: c.Problem != nil || err != nil}
		for i := range c.Connectors {
			switch c.Connectors[i].Kind {
			case ssp.Input:
				info.Inputs++
			case ssp.Output:
				info.Outputs++
			}
		}
		list = append(list, info)
	}
	return list
}

// outlineNetwork adds connections, settings and settings of a run.
func outlineNetwork(s *systemDescription, n *ssp.Network) {
	name := func(e ssp.FlatEnd) string {
		if k := e.Component - len(n.Components); k >= 0 {
			return n.Functions[k].Path + "." + e.Variable
		}
		return n.Components[e.Component].Path + "." + e.Variable
	}
	for _, c := range n.Connections {
		s.Connections = append(s.Connections, assemble.ConnectionInfo{From: name(c.From), To: name(c.To), Gain: c.Gain, Offset: c.Offset,
			Via: strings.Join(c.Via, ", "), Origin: c.Place.String()})
	}
	for _, v := range n.Settings {
		info := settingInfo{Name: name(ssp.FlatEnd{Component: v.Component, Variable: v.Variable}), Value: v.Value.String(),
			Origin: v.From.Place.String(), Weaker: len(v.Overrides)}
		if at := v.From.At(); at != n.Components[v.Component].Joined+"."+v.Variable && at != info.Name {
			info.Over = at
		}
		s.Settings = append(s.Settings, info)
	}
	own, _ := simulate.AskedBy(n.Asked) // errors were reported when it was read
	s.Algorithm, s.Stateless = own.Algorithm, own.Stateless
	if own.Step != nil {
		s.StepSize = *own.Step
	}
}

// written lists the connections of a system and its nested systems as in the document.
func written(s *ssp.System, path string) (out []assemble.ConnectionInfo) {
	end := func(element, connector string) string {
		return strings.Join(slices.DeleteFunc([]string{path, element, connector}, func(s string) bool { return s == "" }), ".")
	}
	for i := range s.Connections {
		c := &s.Connections[i]
		info := assemble.ConnectionInfo{From: end(c.StartElement, c.StartConnector), To: end(c.EndElement, c.EndConnector),
			Gain: 1, Origin: c.Place.String()}
		if t := c.Transformation; t != nil && t.Kind == ssp.Linear {
			info.Gain, info.Offset = t.Factor, t.Offset
		}
		out = append(out, info)
	}
	for _, e := range s.Elements {
		if kid, ok := e.(*ssp.System); ok {
			out = append(out, written(kid, end(kid.Name, ""))...)
		}
	}
	return out
}

// declaredOnly treats the connectors of a component, and the values that the document binds to it, as the
// variables of its FMU.
type declaredOnly struct {
	bound map[string]ssp.Value // by "component.variable"
}

func newDeclaredOnly(d *ssp.Document) declaredOnly {
	out := declaredOnly{bound: map[string]ssp.Value{}}
	var walk func(e ssp.Element, path string)
	walk = func(e ssp.Element, path string) {
		full := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
		for _, b := range e.Base().Bindings {
			byName := map[string]ssp.Value{}
			for _, v := range b.Set.Parameters {
				byName[b.Prefix+v.Name] = v.Value
			}
			if b.Mapping == nil {
				for name, v := range byName {
					out.bound[full(name)] = v
				}
				continue
			}
			for _, m := range b.Mapping.Entries {
				if v, ok := byName[m.Source]; ok {
					out.bound[full(m.Target)] = v
				}
			}
		}
		if s, ok := e.(*ssp.System); ok {
			for _, kid := range s.Elements {
				walk(kid, full(kid.Base().Name))
			}
		}
	}
	walk(d.System, "")
	return out
}

func (d declaredOnly) Variables(c *ssp.FlatComponent) (ssp.VariableSet, error) {
	set := connectorSet{}
	for name, v := range d.bound {
		if rest, ok := strings.CutPrefix(name, c.Joined+"."); ok {
			set[rest] = ssp.Variable{Name: rest, Type: v.Type, Causality: string(ssp.Parameter), Settable: true}
		}
	}
	for i := range c.Connectors {
		k := &c.Connectors[i]
		v := ssp.Variable{Name: k.Name, Type: k.Type, Causality: string(k.Kind), Settable: k.Kind != ssp.Output}
		if v.Type == ssp.Unspecified {
			v.Type = ssp.Real
			if b, ok := set[k.Name]; ok {
				v.Type = b.Type
			}
		}
		set[k.Name] = v
	}
	return set, nil
}

type connectorSet map[string]ssp.Variable

func (s connectorSet) Lookup(name string) (ssp.Variable, bool) { v, ok := s[name]; return v, ok }

func (s connectorSet) All() iter.Seq[ssp.Variable] { return maps.Values(s) }
