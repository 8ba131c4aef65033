package dialect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The model descriptions of OSP: groups of variables beside an FMU.
const (
	ospModelRoot   = "OspModelDescription"
	ospModelSuffix = "_OspModelDescription.xml"
	nsOSPModel     = "https://open-simulation-platform.com/OspModelDescription/1.0.1"
)

// ospModelVersions are the namespaces of the versions 1.0.1, 1.0.0 and 0.1. Version 1.0.1 adds the
// attribute axis of a variable.
var ospModelVersions = []string{nsOSPModel, "https://open-simulation-platform.com/OspModelDescription/1.0.0",
	"http://opensimulationplatform.com/MSMI/OSPModelDescription"}

// ospModel is a model description of OSP.
type ospModel struct {
	file   string // name in messages
	groups []*ospGroup
	units  []unit.Definition
	broken bool // the document cannot be read
}

// ospGroup is a group of variables: a "Force" has variables, a "LinearMechanicalPort" further
// groups.
type ospGroup struct {
	kind, name string
	variables  []ospVariable
	groups     []*ospGroup
}

type ospVariable struct {
	ref, unit string
	axis      string // x, y or z; "" if not given
	kind      string // of its group
}

// findGroups returns the groups with a name at the outermost level that has one.
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

// variable finds a variable in groups.
func variable(groups []*ospGroup, ref string) (v ospVariable, ok bool) {
	for _, g := range groups {
		if i := slices.IndexFunc(g.variables, func(v ospVariable) bool { return v.ref == ref }); i >= 0 {
			return g.variables[i], true
		}
		if v, ok := variable(g.groups, ref); ok {
			return v, true
		}
	}
	return ospVariable{}, false
}

// ospConnector is the state of one call of Connect.
type ospConnector struct {
	*ospStructure
	*ssp.Resolved
	models map[int]*ospModel // by component; nil if there is none
	more   []ssp.Connection
}

// Connect turns the connections of groups into connections of variables.
func (o *ospStructure) Connect(s *ssp.Resolved) (more []ssp.Connection, judge func(*ssp.Network)) {
	f := &ospConnector{ospStructure: o, Resolved: s, models: map[int]*ospModel{}}
	for _, c := range o.groups {
		a := f.group(c.place, c.a)
		switch {
		case c.signals == nil:
			if b := f.group(c.place, c.b); a != nil && b != nil {
				f.connectGroups(c, a, b)
			}
		case a == nil:
		case len(a.groups) > 0 || len(a.variables) != len(c.signals):
			f.List.Report(ruleOSP, c.place, "the group %q has %d variables and %d groups, but %q has %d signals",
				c.a, len(a.variables), len(a.groups), c.b, len(c.signals))
		default:
			for i, v := range a.variables {
				f.connectVariables(c, v, ospVariable{ref: c.signals[i]})
			}
		}
	}
	return f.more, func(n *ssp.Network) {
		f.judgeUnits(n)
		f.makeBonds(n)
	}
}

// model returns the model description of a component, read once; nil if there is none. Errors in it
// are warnings, because only connections of groups need it, and they report missing parts.
func (f *ospConnector) model(component int) *ospModel {
	m, known := f.models[component]
	if known {
		return m
	}
	if rel := f.findModel(component); rel != "" {
		data, file, err := f.ReadFile(rel)
		if err != nil {
			f.List.Add(ruleOSPPart, file, "", 0, "the model description cannot be read: %v", err)
			m = &ospModel{file: file, broken: true}
		} else {
			own := &diag.List{Strict: f.List.Strict}
			if m = parseModel(data, &ssp.Reader{List: own, File: file}); !own.Strict {
				for i := range own.Findings {
					own.Findings[i].Level = min(own.Findings[i].Level, diag.Warning)
				}
			}
			f.List.Append(own)
		}
	}
	f.models[component] = m
	return m
}

// findModel returns the path of the model description of a component, relative to the folder of the
// document, "" if there is none: MODEL_OspModelDescription.xml beside the FMU, else beside the
// document. MODEL is the modelName of the FMU or the name of its file, regardless of case.
func (f *ospConnector) findModel(component int) string {
	rel, err := filepath.Rel(f.Dir, f.Components()[component].Source)
	if err != nil {
		return ""
	}
	names := []string{modelFile(rel)}
	if named, ok := f.Variables[component].(ssp.Named); ok {
		names = slices.Insert(names, 0, named.ModelName()+ospModelSuffix)
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, dir := range []string{filepath.Dir(rel), "."} {
			entries, err := os.ReadDir(filepath.Join(f.Dir, dir))
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

// modelFile returns the name of the model description beside an FMU.
func modelFile(source string) string {
	base := filepath.Base(source)
	return strings.TrimSuffix(base, filepath.Ext(base)) + ospModelSuffix
}

// parseModel reads a model description of OSP.
func parseModel(data []byte, p *ssp.Reader) *ospModel {
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
			for _, u := range k.Kids { // like those of SSP, in another namespace
				if u.URI = xmltree.SSC; len(u.Kids) > 0 {
					u.Kids[0].URI = xmltree.SSC
				}
			}
			m.units = ssp.ReadUnits(p, k)
		case "VariableGroups":
			for _, g := range k.Kids {
				m.groups = append(m.groups, readGroup(p, g))
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

func readGroup(p *ssp.Reader, n *ssp.Node) *ospGroup {
	g := &ospGroup{kind: n.Name, name: n.Str("name", "")} // a group without a name cannot be referred to
	if n.Name == "VariableGroup" {                        // older form
		g.kind = n.Str("type", n.Name)
	}
	for _, k := range n.Kids {
		if k.Name != "Variable" {
			g.groups = append(g.groups, readGroup(p, k))
			continue
		}
		v := ospVariable{unit: k.Str("unit", ""), axis: k.Str("axis", ""), kind: g.kind}
		var ok bool
		if v.ref, ok = k.Attr("ref"); !ok {
			v.ref = p.Need(k, "name") // older form
		}
		known(p, k, "ref", "name", "unit", "axis")
		g.variables = append(g.variables, v)
	}
	return g
}

// group returns one group; nil after a finding.
func (f *ospConnector) group(at ssp.Place, e ospEnd) *ospGroup {
	in := slices.IndexFunc(f.Components(), func(c *ssp.FlatComponent) bool { return c.Place == f.names[e.element] })
	if in < 0 {
		return nil // a placeholder, reported as such
	}
	m := f.model(in)
	if m == nil {
		f.List.Report(ruleOSP, at, "the group %q of %q needs a model description of OSP, but there is no %s beside the FMU or the document",
			e.name, e.element, modelFile(f.Components()[in].URI))
		return nil
	}
	if m.broken {
		f.List.Report(ruleOSP, at, "the group %q of %q is not known: %s cannot be read", e.name, e.element, m.file)
		return nil
	}
	switch found := findGroups(m.groups, e.name); len(found) {
	case 0:
		f.List.Report(ruleOSP, at, "%s has no group %q; it has %s", m.file, e.name, diag.Some(groupNames(m.groups)))
	case 1:
		return found[0]
	default:
		f.List.Report(ruleOSP, at, "%s has %d groups of the name %q; it is unknown which one is meant", m.file, len(found), e.name)
	}
	return nil
}

// connectGroups connects the parts of two groups: by kind if each side has each kind once, else in
// order.
func (f *ospConnector) connectGroups(c ospGroupConnection, a, b *ospGroup) {
	if len(a.groups) != len(b.groups) || len(a.variables) != len(b.variables) {
		f.List.Report(ruleOSP, c.place,
			"the groups %q and %q cannot be connected: %q has %d variables and %d groups, %q has %d and %d", c.a, c.b,
			a.name, len(a.variables), len(a.groups), b.name, len(b.variables), len(b.groups))
		return
	}
	if a.kind != b.kind {
		f.List.Report(ruleOSPPart, c.place, "%s %q is connected to %s %q, which is of another kind", a.kind, a.name, b.kind, b.name)
	}
	for i := range a.variables {
		f.connectVariables(c, a.variables[i], b.variables[i])
	}
	partners := sameKinds(a.groups, b.groups)
	for i, g := range a.groups {
		f.connectGroups(c, g, partners[i])
	}
}

// sameKinds returns the groups of b in the order of those of a, by kind. If the kinds are not
// unique or differ, it returns b.
func sameKinds(a, b []*ospGroup) []*ospGroup {
	byKind := map[string]*ospGroup{}
	for _, g := range b {
		byKind[g.kind] = g
	}
	if len(byKind) < len(b) {
		return b
	}
	out := make([]*ospGroup, len(a))
	for i, g := range a {
		if out[i] = byKind[g.kind]; out[i] == nil {
			return b
		}
		delete(byKind, g.kind)
	}
	return out
}

func (f *ospConnector) connectVariables(c ospGroupConnection, a, b ospVariable) {
	if a.axis != "" && b.axis != "" && a.axis != b.axis {
		f.List.Report(ruleOSPPart, c.place, "%q of axis %s is connected to %q of axis %s: variables of groups are connected in order",
			a.ref, a.axis, b.ref, b.axis)
	}
	f.more = append(f.more, connect(ospEnd{c.a.element, a.ref}, ospEnd{c.b.element, b.ref}, c.bond, c.place))
}

// unitOf returns the unit of a variable, from the FMU or else from the model description of OSP,
// and the kind of its group. Signals of functions have no unit.
func (f *ospConnector) unitOf(e ssp.FlatEnd) (name string, dimension *unit.Base, kind string) {
	if e.Component >= len(f.Components()) {
		return "", nil, ""
	}
	v, _ := f.Variables[e.Component].Lookup(e.Variable)
	name, dimension = v.Unit, v.UnitBase
	m := f.model(e.Component)
	if m == nil {
		return name, dimension, ""
	}
	w, _ := variable(m.groups, e.Variable)
	if dimension == nil && w.unit != "" {
		name, dimension = w.unit, base(m.units, w.unit)
	}
	return name, dimension, w.kind
}

// name returns the name of a variable of a component.
func (f *ospConnector) name(e ssp.FlatEnd) string {
	return f.Components()[e.Component].Path + "." + e.Variable
}

// judgeUnits warns if the units of two ends differ, because OSP converts no units.
func (f *ospConnector) judgeUnits(n *ssp.Network) {
	for _, c := range n.Connections {
		if c.Type != ssp.Real {
			continue
		}
		from, a, _ := f.unitOf(c.From)
		to, b, _ := f.unitOf(c.To)
		if gain, offset, err := unit.Convert(a, b, false); err != nil || gain != 1 || offset != 0 {
			f.List.Report(ruleOSPUnit, c.Place, "%s is in %q and %s in %q; the number passes unchanged, as in OSP",
				f.name(c.From), from, f.name(c.To), to)
		}
	}
}

// efforts are the kinds of groups whose variables are efforts.
var efforts = []string{"Force", "Torque", "Pressure", "Voltage"}

// makeBonds makes power bonds of the connections that name them.
func (f *ospConnector) makeBonds(n *ssp.Network) {
	for _, name := range f.bonds {
		at := f.places[name]
		there, back, wrong := bondSources(n, name)
		if wrong != "" {
			f.List.Report(ruleOSP, at, "the power bond %q cannot be formed: %s", name, wrong)
			continue
		}
		sure := true
		var pairs []string
		for i := range there {
			flow, effort := there[i], back[i]
			isEffort, known := f.isEffort(flow)
			other, otherKnown := f.isEffort(effort)
			if known && isEffort && !other {
				flow, effort = effort, flow
			}
			sure = sure && known && otherKnown && isEffort != other
			pairs = append(pairs, f.name(effort)+":"+f.name(flow))
		}
		if !sure {
			f.List.Report(ssp.RuleTaken, at, "the units do not show which output of the power bond %q is the effort and which the flow; "+
				"the sign of the residual energy may be wrong", name)
		}
		n.Asked = append(n.Asked, ssp.Asked{Name: "bond", Key: name, Text: name + "=" + strings.Join(pairs, ","), From: sourceOSP + " powerBond", Place: at})
	}
}

// bondSources returns the sources of the connections of a bond in either direction. wrong is the
// reason why they form no bond, "" if they do.
func bondSources(n *ssp.Network, name string) (there, back []ssp.FlatEnd, wrong string) {
	var first ssp.FlatConnection
	for _, c := range n.Connections {
		if c.Bond != name {
			continue
		}
		if there == nil {
			first = c
		}
		switch {
		case c.From.Component == first.From.Component && c.To.Component == first.To.Component:
			there = append(there, c.From)
		case c.From.Component == first.To.Component && c.To.Component == first.From.Component:
			back = append(back, c.From)
		default:
			wrong = "its connections join more than two simulators"
		}
	}
	if wrong == "" && (len(there) != len(back) || len(there) == 0) {
		wrong = "it needs pairs of an effort and a flow in opposite directions, but there are not as many connections in either direction"
	}
	return there, back, wrong
}

// isEffort reports whether an output is the effort of its bond, by its unit or else by the kind of
// its group. known is false if there is neither.
func (f *ospConnector) isEffort(e ssp.FlatEnd) (is, known bool) {
	_, base, kind := f.unitOf(e)
	return base != nil && base.Kg != 0 || slices.Contains(efforts, kind), base != nil || kind != ""
}
