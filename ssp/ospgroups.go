package ssp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The model descriptions of OSP: groups of variables beside an FMU.
const (
	ospModelRoot   = "OspModelDescription"
	ospModelSuffix = "_OspModelDescription.xml"
	nsOSPModel     = "https://open-simulation-platform.com/OspModelDescription/1.0.1"
)

// ospModelVersions are the namespaces of the versions 1.0.1, 1.0.0 and 0.1. Version 1.0.1
// adds the attribute axis of a variable to 1.0.0.
var ospModelVersions = []string{nsOSPModel, "https://open-simulation-platform.com/OspModelDescription/1.0.0",
	"http://opensimulationplatform.com/MSMI/OSPModelDescription"}

// Named is a VariableSet that knows the modelName of its FMU, by which the model
// description of OSP is found.
type Named interface{ ModelName() string }

// ospModel is one model description of OSP.
type ospModel struct {
	file   string // as shown
	groups []*ospGroup
	units  []unit.Definition
	broken bool // the document cannot be read
}

// ospGroup is a group of variables: "Force" with name "force" holds variables, a
// "LinearMechanicalPort" further groups.
type ospGroup struct {
	kind, name string
	variables  []ospVariable
	groups     []*ospGroup
}

type ospVariable struct {
	ref, unit string
	axis      string // x, y or z; "" if not given
	kind      string // of the innermost group
}

// findGroups returns the groups of a name: those of the outermost level that has one.
func findGroups(groups []*ospGroup, name string) (found []*ospGroup) {
	var inner []*ospGroup
	for _, g := range groups {
		if g.name == name {
			found = append(found, g)
		}
		inner = append(inner, g.groups...)
	}
	if len(found) > 0 || len(inner) == 0 {
		return found
	}
	return findGroups(inner, name)
}

// groupNames lists the groups for messages.
func groupNames(groups []*ospGroup) (names []string) {
	for _, g := range groups {
		names = append(names, g.name)
		names = append(names, groupNames(g.groups)...)
	}
	return names
}

// variable looks for a variable in all groups.
func (m *ospModel) variable(ref string) (v ospVariable, ok bool) {
	var walk func(groups []*ospGroup) bool
	walk = func(groups []*ospGroup) bool {
		for _, g := range groups {
			for _, v = range g.variables {
				if v.ref == ref {
					return true
				}
			}
			if walk(g.groups) {
				return true
			}
		}
		return false
	}
	if m == nil || !walk(m.groups) {
		return ospVariable{}, false
	}
	return v, true
}

// ospModelOf reads the model description of a component, once; nil if there is none. What
// is wrong in it is a warning: only a connection of groups needs it, which then reports
// what it lacks.
func (f *flattener) ospModelOf(in *instance) *ospModel {
	if m, known := f.models[in]; known {
		return m
	}
	var m *ospModel
	if rel := f.p.findModel(f.net.Components[in.index], f.vars[in.index]); rel != "" {
		path := filepath.Join(f.p.Dir, rel)
		f.p.files = append(f.p.files, path)
		file := f.p.shown(rel)
		if data, err := readDocument(path); err != nil {
			f.l.Add(ruleOSPPart, file, "", 0, "the model description cannot be read: %v", unwrapPath(err))
			m = &ospModel{file: file, broken: true}
		} else {
			own := &diag.List{Strict: f.l.Strict}
			if m = parseModel(data, newParser(own, file)); !f.l.Strict {
				for i := range own.Findings {
					own.Findings[i].Level = min(own.Findings[i].Level, diag.Warning)
				}
			}
			f.l.Append(own)
		}
	}
	f.models[in] = m
	return m
}

// findModel returns the path, relative to the folder of the document, of the model
// description of a component, "" if there is none: MODEL_OspModelDescription.xml
// beside the FMU, else beside the document. MODEL is the modelName of the FMU or
// the name of its file; it need not agree in case.
func (p *Package) findModel(c *FlatComponent, vars VariableSet) string {
	rel, err := filepath.Rel(p.Dir, c.Source)
	if err != nil {
		return ""
	}
	base := filepath.Base(rel)
	names := []string{strings.TrimSuffix(base, filepath.Ext(base)) + ospModelSuffix}
	if named, ok := vars.(Named); ok {
		names = slices.Insert(names, 0, named.ModelName()+ospModelSuffix)
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, dir := range []string{filepath.Dir(rel), "."} {
			entries, err := os.ReadDir(filepath.Join(p.Dir, dir))
			if err != nil {
				continue
			}
			for _, name := range names {
				for _, e := range entries {
					if same(e.Name(), name) {
						return filepath.Join(dir, e.Name())
					}
				}
			}
		}
	}
	return ""
}

// parseModel reads a model description of OSP.
func parseModel(data []byte, p *parser) *ospModel {
	m := &ospModel{file: p.File}
	root := p.Parse(data)
	if root != nil && root.Name != ospModelRoot {
		p.Add(xmltree.RuleSchema, root, "the root element is %q, not %s", root.El.FullTag(), ospModelRoot)
	}
	if m.broken = p.List.Err() != nil; m.broken {
		return m
	}
	if !slices.Contains(ospModelVersions, root.URI) {
		p.Add(ruleOSPModel, root, "the namespace %q is not known; the document is read like %s", root.URI, nsOSPModel)
	}
	for _, k := range root.Kids {
		switch k.Name {
		case "UnitDefinitions":
			for _, u := range k.Kids { // they are those of the SSP but for the namespace
				if u.URI = xmltree.SSC; len(u.Kids) > 0 {
					u.Kids[0].URI = xmltree.SSC
				}
			}
			m.units = p.units(k)
		case "VariableGroups":
			for _, g := range k.Kids {
				m.groups = append(m.groups, p.group(g))
			}
		default:
			p.Unknown(k)
		}
	}
	if p.List.Err() != nil {
		m.units = nil // they may be wrong
	}
	return m
}

func (p *parser) group(n *xmltree.Node) *ospGroup {
	g := &ospGroup{kind: n.Name, name: n.Str("name", "")} // without a name nothing can refer to it
	if n.Name == "VariableGroup" {                        // of the older form
		g.kind = n.Str("type", n.Name)
	}
	for _, k := range n.Kids {
		if k.Name != "Variable" {
			g.groups = append(g.groups, p.group(k))
			continue
		}
		v := ospVariable{unit: k.Str("unit", ""), axis: k.Str("axis", ""), kind: g.kind}
		var ok bool
		if v.ref, ok = k.Attr("ref"); !ok {
			v.ref = p.Need(k, "name") // of the older form
		}
		for _, a := range k.El.Attr {
			if a.Space == "" && !slices.Contains([]string{"ref", "name", "unit", "axis"}, a.Key) {
				p.Add(xmltree.RuleUnknown, k, "the attribute %q is not known here and is left out", a.Key)
			}
		}
		g.variables = append(g.variables, v)
	}
	return g
}

// groups turns the connections of groups into connections of variables.
func (f *flattener) groups() {
	for _, c := range f.p.osp.groups {
		a := f.group(c.place, c.a)
		if c.signals != nil {
			if a == nil {
				continue
			}
			if len(a.groups) > 0 || len(a.variables) != len(c.signals) {
				f.l.Report(ruleOSP, c.place, "the group %q has %d variables and %d groups; the signals of %q are %d", c.a, len(a.variables), len(a.groups), c.b, len(c.signals))
				continue
			}
			for i, v := range a.variables {
				f.connectVariables(c, v, ospVariable{ref: c.signals[i]})
			}
			continue
		}
		if b := f.group(c.place, c.b); a != nil && b != nil {
			f.connectGroups(c, a, b)
		}
	}
}

// group finds one group; nil after a finding.
func (f *flattener) group(at Place, e ospGroupEnd) *ospGroup {
	in := f.p.top.byName[e.element]
	if in == nil || in.index < 0 || in.index >= len(f.net.Components) {
		return nil // a placeholder, told as such
	}
	m := f.ospModelOf(in)
	if m == nil {
		base := filepath.Base(in.element.(*Component).Source)
		f.l.Report(ruleOSP, at, "there is no model description of OSP for %q, which must tell the group %q: no %s beside the FMU or the document",
			e.element, e.group, strings.TrimSuffix(base, filepath.Ext(base))+ospModelSuffix)
		return nil
	}
	if m.broken {
		f.l.Report(ruleOSP, at, "the group %q of %q is not known: %s cannot be read", e.group, e.element, m.file)
		return nil
	}
	switch found := findGroups(m.groups, e.group); len(found) {
	case 0:
		f.l.Report(ruleOSP, at, "%s has no group %q; it has %s", m.file, e.group, few(groupNames(m.groups)))
	case 1:
		return found[0]
	default:
		f.l.Report(ruleOSP, at, "%s has %d groups of the name %q, and nothing says which is meant", m.file, len(found), e.group)
	}
	return nil
}

// connectGroups connects the parts of two groups: those of one kind that each side
// has once, else in their order.
func (f *flattener) connectGroups(c ospGroupConnection, a, b *ospGroup) {
	if len(a.groups) != len(b.groups) || len(a.variables) != len(b.variables) {
		f.l.Report(ruleOSP, c.place, "the groups %q and %q cannot be connected: %q has %d variables and %d groups, %q has %d and %d", c.a, c.b,
			a.name, len(a.variables), len(a.groups), b.name, len(b.variables), len(b.groups))
		return
	}
	if a.kind != b.kind {
		f.l.Report(ruleOSPPart, c.place, "%s %q is connected with %s %q, which is of another kind", a.kind, a.name, b.kind, b.name)
	}
	for i := range a.variables {
		f.connectVariables(c, a.variables[i], b.variables[i])
	}
	partners := slices.Clone(b.groups)
	if byKind := sameKinds(a.groups, b.groups); byKind != nil {
		partners = byKind
	}
	for i, g := range a.groups {
		f.connectGroups(c, g, partners[i])
	}
}

// sameKinds orders the groups of b as those of a, by kind; nil if kinds do not
// tell groups apart.
func sameKinds(a, b []*ospGroup) []*ospGroup {
	byKind := map[string]*ospGroup{}
	for _, g := range b {
		if byKind[g.kind] != nil {
			return nil
		}
		byKind[g.kind] = g
	}
	out := make([]*ospGroup, len(a))
	for i, g := range a {
		if out[i] = byKind[g.kind]; out[i] == nil {
			return nil
		}
		delete(byKind, g.kind)
	}
	return out
}

func (f *flattener) connectVariables(c ospGroupConnection, a, b ospVariable) {
	if a.axis != "" && b.axis != "" && a.axis != b.axis {
		f.l.Report(ruleOSPPart, c.place, "%q is of axis %s and is connected with %q of axis %s: variables of groups are connected in their order", a.ref, a.axis, b.ref, b.axis)
	}
	f.more = append(f.more, Connection{StartElement: c.a.element, StartConnector: a.ref, EndElement: c.b.element, EndConnector: b.ref,
		SuppressUnitConversion: true, bond: c.bond, Place: c.place})
}

// unitOfEnd returns the unit of a variable: that of the FMU, else that of the model
// description of OSP.
func (f *flattener) unitOfEnd(e end) (name string, base *unit.Base, kind string) {
	v, ok := f.variable(e)
	if !ok || e.in.index >= len(f.net.Components) {
		return "", nil, ""
	}
	name, base = v.Unit, v.UnitBase
	m := f.ospModelOf(e.in)
	if w, ok := m.variable(e.name); ok {
		kind = w.kind
		if base == nil && w.unit != "" {
			name, base = w.unit, newNames(m.units, nil).units[w.unit]
		}
	}
	return name, base, kind
}

// ospUnits warns where the number of a signal passes unchanged although the units
// of its ends differ: OSP converts nothing.
func (f *flattener) ospUnits(from, to end, at Place) {
	nameA, a, _ := f.unitOfEnd(from)
	nameB, b, _ := f.unitOfEnd(to)
	gain, offset, err := unit.Convert(a, b, false)
	if err != nil || gain != 1 || offset != 0 {
		f.l.Report(ruleOSPUnit, at, "%s is in %q and %s in %q; the number passes unchanged, as in OSP", from, nameA, to, nameB)
	}
}

// efforts are the kinds of group whose variables are the effort of a bond.
var efforts = []string{"Force", "Torque", "Pressure", "Voltage"}

// ospBonds makes power bonds of the connections that name them.
func (f *flattener) ospBonds() {
	type lead struct {
		from, to end
		effort   bool
		known    bool
	}
	leads := map[string][]lead{}
	for _, to := range f.fed {
		g := f.inbound[to]
		if g.c.bond == "" {
			continue
		}
		_, base, kind := f.unitOfEnd(g.from)
		l := lead{from: g.from, to: to, effort: base != nil && base.Kg != 0 || slices.Contains(efforts, kind)}
		l.known = base != nil || kind != ""
		leads[g.c.bond] = append(leads[g.c.bond], l)
	}
	for _, name := range f.p.osp.bonds {
		at := f.p.osp.places[name]
		b := Bond{Name: name, Place: at}
		var there, back []lead
		wrong := ""
		for _, l := range leads[name] {
			first := leads[name][0]
			switch {
			case l.from.in.index < 0 || l.to.in.index < 0 || l.from.in.index >= len(f.net.Components) || l.to.in.index >= len(f.net.Components):
				wrong = "it leads through a function, and a bond joins two simulators directly"
			case l.from.in == first.from.in && l.to.in == first.to.in:
				there = append(there, l)
			case l.from.in == first.to.in && l.to.in == first.from.in:
				back = append(back, l)
			default:
				wrong = "its connections join more than two simulators"
			}
		}
		if wrong == "" && (len(there) != len(back) || len(there) == 0) {
			wrong = "an effort and a flow that leads back make a pair, and the connections are not as many in either direction"
		}
		if wrong != "" {
			f.l.Report(ruleOSP, at, "the power bond %q cannot be followed: %s", name, wrong)
			continue
		}
		sure := true
		for i, one := range there {
			two := back[i]
			effort, flow := two, one
			if one.known && one.effort && !two.effort {
				effort, flow = one, two
			}
			sure = sure && effort.known && flow.known && effort.effort != flow.effort
			b.Pairs = append(b.Pairs, BondPair{Effort: effort.from.String(), Flow: flow.from.String(), Place: at})
		}
		if !sure {
			f.l.Report(ruleTaken, at, "units do not tell which output of the power bond %q is the effort and which the flow; the residual energy may have the other sign", name)
		}
		f.net.Own.Bonds = append(f.net.Own.Bonds, b)
		f.net.Own.From("bond "+name, sourceOSP+" powerBond", at)
	}
}
