package simulate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Dialects returns dialects after that of macrostep, which is made of Settings; nil = those of package dialect.
func Dialects(others []ssp.Dialect) []ssp.Dialect {
	if others == nil {
		others = dialect.All()
	}
	if slices.ContainsFunc(others, func(d ssp.Dialect) bool { return d.Native }) {
		return others
	}
	own := ssp.Dialect{Name: "macrostep", Native: true, New: func() ssp.Annotations { return &annotations{} }}
	return append([]ssp.Dialect{own}, others...)
}

// annotations reads the annotations of macrostep (ssp 46). Everything unknown is an error.
type annotations struct {
	asked []ssp.Asked
	seen  bool    // one at the experiment
	tried Request // takes the settings, to find errors
}

// sourceOwn names the annotation of macrostep as a source of settings.
const sourceOwn = "annotation of macrostep"

// Read reads ms:Settings at the experiment and ms:Component at a component.
func (s *annotations) Read(r *ssp.Reader, a ssp.Annotation, at ssp.Site, path string) (_ []ssp.StepHint, taken bool) {
	name := map[ssp.Site]string{ssp.AtExperiment: "Settings", ssp.AtComponent: "Component"}[at]
	if a.Type != ssp.OwnType || name == "" {
		return nil, false
	}
	kids := a.Node().Kids
	if len(kids) != 1 || !kids[0].Is(name, ssp.OwnNamespace) {
		r.Add(ssp.RuleOwn, a.Node(), "the annotation must contain one element %s of namespace %q", name, ssp.OwnNamespace)
		return nil, true
	}
	n := kids[0]
	if at == ssp.AtComponent {
		s.component(r, n, path)
		return nil, true
	}
	switch v := text(r, n, "version"); {
	case v != ssp.OwnVersion:
		r.Add(ssp.RuleOwn, n, "version %q is not known; this program reads version %s", v, ssp.OwnVersion)
	case s.seen:
		r.Add(ssp.RuleOwn, n, "there is more than one annotation of macrostep")
	default:
		s.seen = true
		s.settings(r, n)
	}
	return nil, true
}

// Settings returns the settings, and reports those for components that do not exist.
func (s *annotations) Settings(components []*ssp.FlatComponent, _ bool, l *diag.List) []ssp.Asked {
	for _, a := range s.asked {
		path, named := strings.CutSuffix(a.Key, " "+stateless)
		if (named || a.Name == "rate") && !slices.ContainsFunc(components, func(c *ssp.FlatComponent) bool { return c.Path == path }) {
			l.Report(ssp.RuleOwn, a.Place, "there is no component %q%s", path, called(components, path))
		}
	}
	return s.asked
}

// called lists, as the end of a message, the components whose joined path is ambiguous and equals the given one.
func called(components []*ssp.FlatComponent, joined string) string {
	var paths []string
	for _, c := range components {
		if c.Joined == joined && c.Path != joined {
			paths = append(paths, c.Path)
		}
	}
	if paths == nil {
		return ""
	}
	return ", only " + strings.Join(paths, " and ")
}

// settings reads ms:Settings.
func (s *annotations) settings(r *ssp.Reader, n *ssp.Node) {
	known, elements := listed("version"), []shown{}
	for _, e := range Settings {
		name, parts, element := strings.Cut(e.Annotation, " ")
		switch {
		case e.Annotation == "":
		case element || name == "Bond": // it has pairs besides its attributes
			elements = append(elements, shown{name, e.Hint != ""})
			for _, k := range n.Kids {
				if !k.Is(name, ssp.OwnNamespace) {
				} else if value := elementText(r, k, strings.Fields(parts)); value != "" {
					s.ask(r, k, e, value)
				}
			}
		default:
			known = append(known, shown{name, e.Hint != ""})
			if value, ok := n.Attr(name); ok {
				s.ask(r, n, e, value)
			}
		}
	}
	attributes(r, n, known)
	for _, k := range n.Kids {
		if !slices.ContainsFunc(elements, func(e shown) bool { return k.Is(e.name, ssp.OwnNamespace) }) {
			r.Add(ssp.RuleOwn, k, "the element %q is not known; Settings has %s", k.El.FullTag(), list(elements))
		}
	}
}

// component reads ms:Component.
func (s *annotations) component(r *ssp.Reader, n *ssp.Node, path string) {
	var known []shown
	for _, e := range Settings {
		if e.Component == "" {
			continue
		}
		known = append(known, shown{e.Component, e.Hint != ""})
		value, _ := n.Attr(e.Component)
		for _, word := range strings.Fields(value) {
			if named, _, valued := strings.Cut(e.Value(), "="); valued && named != "" {
				s.ask(r, n, e, path+"="+word)
			} else if on, err := boolean(word); err != nil {
				r.Add(ssp.RuleOwn, n, "the attribute %q: %v", e.Component, err)
			} else if on {
				s.ask(r, n, e, path)
			}
		}
	}
	attributes(r, n, known)
	leaf(r, n)
}

// ask adds a setting, or reports what is wrong with it.
func (s *annotations) ask(r *ssp.Reader, n *ssp.Node, e *Entry, value string) {
	place := r.Place(n)
	g, err := s.tried.apply(Given{Name: e.Name, Text: value, Source: strings.Fields(e.Annotation + " " + e.Component)[0]})
	if err != nil {
		r.Add(ssp.RuleOwn, n, "%v", err)
		return
	}
	if slices.ContainsFunc(s.asked, func(a ssp.Asked) bool { return a.Name == g.Name && a.Text == g.Text }) {
		return // once more
	}
	s.asked = append(s.asked, ssp.Asked{Name: g.Name, Text: g.Text, Key: g.Key, File: e.Path, From: sourceOwn, Place: place})
}

// elementText returns the values of attributes of an element, joined by equals signs, or those of a bond; "" after a finding. Of
// two, the second may be empty if it is called value, like that of a parameter.
func elementText(r *ssp.Reader, n *ssp.Node, names []string) string {
	if len(names) == 0 {
		return bond(r, n)
	}
	attributes(r, n, listed(names...))
	leaf(r, n)
	var values []string
	for i, name := range names {
		value, ok := n.Attr(name)
		if !ok || value == "" && !(i == 1 && name == "value") {
			r.Add(ssp.RuleOwn, n, "the attribute %q is missing or empty", name)
			return ""
		}
		values = append(values, value)
	}
	return strings.Join(values, "=")
}

// bond returns ms:Bond as text; "" after a finding.
func bond(r *ssp.Reader, n *ssp.Node) string {
	attributes(r, n, listed("name", "energyScale", "tolerance"))
	var items []string
	for _, k := range n.Kids {
		if !k.Is("Pair", ssp.OwnNamespace) {
			r.Add(ssp.RuleOwn, k, "the element %q is not known; Bond has Pair", k.El.FullTag())
			continue
		}
		attributes(r, k, listed("effort", "flow", "opposed"))
		leaf(r, k)
		opposed, err := boolean(k.Str("opposed", "false"))
		if err != nil {
			r.Add(ssp.RuleOwn, k, "the attribute \"opposed\": %v", err)
		}
		effort, flow := text(r, k, "effort"), text(r, k, "flow")
		if opposed {
			effort = "-" + effort
		}
		items = append(items, effort+":"+flow)
	}
	if len(items) == 0 {
		r.Add(ssp.RuleOwn, n, "the bond has no Pair; it needs an effort and a flow")
		return ""
	}
	for _, o := range []struct{ key, attribute string }{{"scale", "energyScale"}, {"tolerance", "tolerance"}} {
		if value, ok := n.Attr(o.attribute); ok {
			items = append(items, o.key+"="+value)
		}
	}
	return text(r, n, "name") + "=" + strings.Join(items, ",")
}

// shown is the name of an attribute or element. Messages do not offer old ones.
type shown struct {
	name string
	old  bool
}

func listed(names ...string) (list []shown) {
	for _, name := range names {
		list = append(list, shown{name: name})
	}
	return list
}

// list returns the names that are not old.
func list(all []shown) string {
	var names []string
	for _, s := range all {
		if !s.old {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// attributes reports attributes of an element that are not known.
func attributes(r *ssp.Reader, n *ssp.Node, known []shown) {
	for _, a := range n.El.Attr {
		is := func(s shown) bool { return s.name == a.Key }
		if a.Space != "xmlns" && (a.Space != "" || a.Key != "xmlns" && !slices.ContainsFunc(known, is)) {
			r.Add(ssp.RuleOwn, n, "the attribute %q is not known; %s has %s", a.FullKey(), n.Name, list(known))
		}
	}
}

// leaf reports elements in an element that has none.
func leaf(r *ssp.Reader, n *ssp.Node) {
	for _, k := range n.Kids {
		r.Add(ssp.RuleOwn, k, "the element %q is not known here", k.El.FullTag())
	}
}

// text returns a required attribute, and reports an empty one.
func text(r *ssp.Reader, n *ssp.Node, key string) string {
	v := n.Str(key, "")
	if v == "" {
		r.Add(ssp.RuleOwn, n, "the attribute %q is missing or empty", key)
	}
	return v
}

// coupled are the settings that Choose takes from the documents.
var coupled = []string{"algorithm", "param", "bond", "rate"}

// Adopt applies settings of documents that are not given already, but those of the algorithm, which Choose adds.
func (r *Request) Adopt(asked []ssp.Asked) error {
	if r.Closed {
		return nil
	}
	r.Given = slices.Clip(r.Given) // copies of the request may share it
	before := *r
	for _, a := range asked {
		switch never := before.Isolate == assemble.IsolateNever; {
		case slices.Contains(coupled, a.Name), before.given(a.Name, a.Key), a.Name == "step-size", a.Name == "tolerance", before.holds(a):
			continue
		case a.Name == "isolate" && (a.Key == "" && before.Isolate != assemble.IsolateAuto || a.Key != "" && never):
			continue
		}
		if err := r.adopt(a); err != nil {
			return err
		}
	}
	if !before.given("isolate", "") {
		r.isolateLimited()
	}
	return nil
}

// holds reports whether a program has set the field of a setting that has one.
func (r *Request) holds(a ssp.Asked) bool {
	var alone Request
	if e := Find(a.Name); e.Repeats || alone.adopt(a) != nil { // Adopt returns the error
		return false
	}
	var both func(x, y reflect.Value) bool
	both = func(x, y reflect.Value) bool {
		for i := range x.NumField() {
			switch f := x.Type().Field(i); {
			case f.Name == "Given":
			case f.Anonymous && both(x.Field(i), y.Field(i)), !f.Anonymous && !x.Field(i).IsZero() && !y.Field(i).IsZero():
				return true
			}
		}
		return false
	}
	return both(reflect.ValueOf(*r), reflect.ValueOf(alone))
}

func (r *Request) adopt(a ssp.Asked) error {
	g := Given{Name: a.Name, Text: a.Text, Source: fmt.Sprintf("%s (%s)", a.From, a.Place), Document: true}
	if _, err := r.apply(g); err != nil {
		return fmt.Errorf("%s: %w", a.Place, err)
	}
	return nil
}

// AskedBy returns the settings of documents alone.
func AskedBy(asked []ssp.Asked) (r Request, err error) {
	for _, a := range asked {
		if err := r.adopt(a); err != nil {
			return r, err
		}
	}
	return r, nil
}
