package ssp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// OwnType is the type of the annotations that macrostep writes and reads.
const OwnType = "com.github.macrostep"

// OwnVersion is the version of ms:Settings that is understood.
const OwnVersion = "1"

// OwnSettings is the annotation of macrostep at the DefaultExperiment (ssp 46), and
// what it leaves open and an annotation of another tool says. The zero value means
// that there is none; nil and "" mean that a setting is not given.
type OwnSettings struct {
	Algorithm           string   // name of a preset
	StepSize, Tolerance *float64 // macro step in s; relative tolerance
	Params              []Param  // of the algorithm, or of all that take them if it is not given
	Stateless           []string // paths of components, also those marked at the component
	Bonds               []Bond
	Rates               []Rate

	MonitorEnergy  *bool
	EnergySpike    *float64 // ratio of peaks of residual power; 0 = no warning
	Workers        *int
	Isolation      string   // auto, always or never
	Restarts       *int     // of each component after a crash; nil = not given
	StepTimeout    *float64 // s
	MemoryLimit    *float64 // MiB
	Record         []string // patterns over component.variable with * and ?; "none" alone
	OutputInterval *float64 // s
	Input, History *Table

	// Sources tells where each setting comes from, by its name: "algorithm",
	// "param order", "bond axle", "rate motor" and so on.
	Sources map[string]SettingSource
}

// Table is a file with signals that a document names.
type Table struct {
	URI   string // as written
	Path  string // absolute
	Shown string // as the user knows it
}

// SettingSource tells where a setting comes from.
type SettingSource struct {
	Text  string // for example "annotation of macrostep", "com.opensimulationplatform StepSizeHint"
	Place Place
}

// from notes the source of a setting.
func (o *OwnSettings) from(name, text string, at Place) {
	if o.Sources == nil {
		o.Sources = make(map[string]SettingSource)
	}
	o.Sources[name] = SettingSource{text, at}
}

// Param sets one parameter of the algorithm.
type Param struct {
	Key, Value string
	Place      Place
}

// Bond declares a power bond: an exchange of energy between components, whose
// power is the sum over the pairs of effort times flow. A scalar exchange has one
// pair; a vector, such as a planar force with its velocity, one for each entry.
type Bond struct {
	Name  string
	Pairs []BondPair // at least one
	// EnergyScale is the energy in J that residual energies are compared with,
	// Tolerance the relative tolerance of that (sadjina (14), E0 and r). nil: those
	// of the algorithm.
	EnergyScale, Tolerance *float64
	Place                  Place
}

// BondPair holds the two Real outputs "component.variable", of FMUs, of different
// components, that make one factor pair of a power. By giving the effort the one
// component takes the flow, and the other way round, so that the two outputs tell
// the causality too.
type BondPair struct {
	Effort, Flow string
	// Opposed tells that the product is power that leaves the component which gives
	// the flow; otherwise it enters that component.
	Opposed bool
	Place   Place
}

// Rate lets a component make Ratio steps per macro step, or one step over Over of
// them; one of the two is 1.
type Rate struct {
	Component   string
	Ratio, Over int
	Place       Place
}

// StepHint is a macro step that a document asks for.
type StepHint struct {
	Value  float64 // s
	Source string  // for example "com.opensimulationplatform baseStepSize"
	Finer  bool    // of a component: it may be a part of the macro step, too
	Place  Place
}

const (
	TypeOSP = "com.opensimulationplatform"
	TypeOMS = "org.openmodelica"
	typeMCX = "com.avl.model.connect.ssp."
	// Vico reads the hints of OSP beside its own (ssp 44).
	typeVico = "com.github.ntnu-ihb.vico"
)

// settings is what the annotations of a document say.
type settings struct {
	l      *diag.List
	own    OwnSettings
	seen   bool          // an own annotation was there
	tools  []OwnSettings // of other tools, in order of precedence
	filter *signalFilter // of OMSimulator; nil = none

	// Of OpenMCx: when components are triggered, by path, and the orders at which
	// connections extrapolate.
	triggers  map[string]int
	orders    []SettingSource
	mcx       *OwnSettings
	named     []namedComponent
	ownStep   []StepHint
	foreign   []StepHint // in order of precedence: OSP, OMSimulator, OpenMCx
	tolerance *StepHint  // of OMSimulator; no step, but the same kind of thing
	// counted holds the types not understood, in order of appearance.
	counted map[string]int
	first   map[string]Place
	types   []string
}

// namedComponent is a path that our own annotation names.
type namedComponent struct {
	path  string
	place Place
}

// experiment reads the annotations at the DefaultExperiment and the outermost
// system (ssp 42–46).
func (s *settings) experiment(d *Document) {
	var osp, oms, mcx []StepHint
	var fromOMS, fromMCX OwnSettings
	for _, a := range d.Experiment.Annotations {
		p := s.parser(a)
		switch {
		case a.Type == OwnType:
			s.readOwn(p, a)
		case a.Type == TypeOSP:
			osp = append(osp, readOSP(p, a)...)
		case a.Type == TypeOMS:
			s.readOMSExperiment(p, a.node, &fromOMS)
		case a.Type == typeMCX+"task":
			mcx = append(mcx, readTask(p, a, &fromMCX)...)
		default:
			s.unknown(a)
		}
	}
	for _, a := range d.System.Annotations {
		if a.Type == TypeOMS {
			oms = append(oms, s.readOMS(s.parser(a), a, &fromOMS)...)
			continue
		}
		s.unknown(a)
	}
	for _, a := range d.Annotations {
		s.unknown(a)
	}
	s.foreign = slices.Concat(osp, oms, mcx)
	// The algorithm is that of the tool whose step counts.
	for _, t := range []struct {
		first []StepHint
		set   *OwnSettings
	}{{osp, &fromOMS}, {slices.Concat(osp, oms), &fromMCX}} {
		if len(t.first) > 0 && t.set.Algorithm != "" {
			src := t.set.Sources["algorithm"]
			why := "the algorithm is taken from the tool that gives the macro step: " + t.first[0].Source
			switch {
			case s.own.Algorithm != "":
				why = "the annotation of macrostep counts"
			case len(s.ownStep) > 0:
				why = "of several tools the first counts, and " + t.first[0].Source + " stands before it"
			}
			s.l.Report(ruleForeignPart, src.Place, "algorithm %s of %s is left out: %s", t.set.Algorithm, src.Text, why)
			t.set.Algorithm, t.set.Params = "", nil
		}
	}
	s.tools = []OwnSettings{fromOMS, fromMCX}
	if len(osp)+len(oms) == 0 {
		s.mcx = &s.tools[1]
	}
}

// unknown notes an annotation that has no effect.
func (s *settings) unknown(a Annotation) {
	if a.Type == OwnType {
		s.l.Report(ruleOwn, a.Place, "an annotation of macrostep has no place here; settings belong to the DefaultExperiment, ms:Component to a Component")
		return
	}
	if s.counted == nil {
		s.counted, s.first = make(map[string]int), make(map[string]Place)
	}
	if s.counted[a.Type] == 0 {
		s.types = append(s.types, a.Type)
		s.first[a.Type] = a.Place
	}
	s.counted[a.Type]++
}

// tell reports the annotations noted by unknown, one line per type.
func (s *settings) tell() {
	for _, t := range s.types {
		more := ""
		if n := s.counted[t]; n > 1 {
			more = " (" + strconv.Itoa(n) + " times; this is the first)"
		}
		s.l.Report(ruleForeign, s.first[t], "the annotation %q is not understood here and has no effect%s", t, more)
	}
}

func (s *settings) parser(a Annotation) *parser { return newParser(s.l, a.Place.File) }

// steps gives the hints in order of precedence and warns where tools disagree (ssp 47).
func (s *settings) steps() []StepHint {
	if len(s.foreign) > 1 && len(s.ownStep) == 0 {
		first := s.foreign[0]
		for _, h := range s.foreign[1:] {
			s.l.Report(ruleForeignPart, h.Place, "%s (%v s) is left out, because %s (%v s) counts", h.Source, h.Value, first.Source, first.Value)
		}
	}
	if len(s.ownStep) == 0 && len(s.foreign) > 0 {
		h := s.foreign[0]
		s.l.Report(ruleTaken, h.Place, "the macro step of %v s is taken from %s", h.Value, h.Source)
	}
	return slices.Concat(s.ownStep, s.foreign)
}

// hint reads a step size from an attribute of another tool. What is no positive
// number is told and left out.
func hint(p *parser, n *xmltree.Node, key, source string) []StepHint {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := xmltree.ParseReal(text)
	if err != nil || v <= 0 {
		p.Add(ruleForeignPart, n, "%s=%q is no step size and is left out", key, text)
		return nil
	}
	return []StepHint{{Value: v, Source: source + " " + key, Place: p.Place(n)}}
}

// readOSP reads osp:Algorithm (ssp 43).
func readOSP(p *parser, a Annotation) []StepHint {
	var out []StepHint
	for _, k := range a.node.Kids {
		if k.Name != "Algorithm" {
			p.Add(ruleForeignPart, k, "the setting %q of OSP is not understood", k.El.FullTag())
			continue
		}
		for _, kk := range k.Kids {
			if kk.Name != "FixedStepAlgorithm" {
				p.Add(ruleForeignPart, kk, "the algorithm %q of OSP is not understood", kk.El.FullTag())
				continue
			}
			out = append(out, hint(p, kk, "baseStepSize", TypeOSP)...)
			if n, ok := kk.Attr("numWorkerThreads"); ok {
				p.Add(ruleForeign, kk, "numWorkerThreads=%q of OSP has no effect: how many threads pay depends on the machine, see --workers", n)
			}
		}
	}
	return out
}

// readTask reads the annotation of OpenMCx at the experiment (ssp 45).
func readTask(p *parser, a Annotation, set *OwnSettings) []StepHint {
	var out []StepHint
	for _, k := range a.node.Kids {
		out = append(out, hint(p, k, "deltaTime", typeMCX+"task")...)
		for _, attr := range k.El.Attr {
			switch {
			case attr.Space != "" || attr.Key == "xmlns" || attr.Key == "deltaTime":
			case attr.Key == "stepType" && attr.Value == "sequential":
				set.Algorithm = "gauss-seidel"
				set.from("algorithm", typeMCX+"task stepType", p.Place(k))
			case attr.Key == "stepType" && strings.HasPrefix(attr.Value, "parallel"): // explicit, the default
			default:
				p.Add(ruleForeignPart, k, "the setting %s=%q of OpenMCx is not understood", attr.Key, attr.Value)
			}
		}
	}
	return out
}

// readOMS reads the annotation of OMSimulator at a system, in its old and new
// form, with or without the level oms:Annotations (ssp 42).
func (s *settings) readOMS(p *parser, a Annotation, set *OwnSettings) []StepHint {
	var out []StepHint
	read := func(n *xmltree.Node, step string) {
		out = append(out, hint(p, n, step, TypeOMS)...)
		if t := hint(p, n, "relativeTolerance", TypeOMS); t != nil && s.tolerance == nil {
			s.tolerance = &t[0]
		}
	}
	// The variable-step masters of OMSimulator compare a step with two of half the
	// size, and go back (rollback).
	adaptive := func(n *xmltree.Node) {
		read(n, "initialStepSize")
		set.Algorithm = "richardson"
		set.from("algorithm", TypeOMS+" "+n.Str("description", n.Str("method", n.Name)), p.Place(n))
		for _, k := range []struct{ key, param string }{{"initialStepSize", "control.h0"}, {"minimumStepSize", "control.h-min"},
			{"maximumStepSize", "control.h-max"}, {"relativeTolerance", "control.rtol"}, {"absoluteTolerance", "control.atol"}} {
			for _, h := range hint(newParser(&diag.List{}, p.File), n, k.key, TypeOMS) { // told before
				set.Params = append(set.Params, Param{Key: k.param, Value: strconv.FormatFloat(h.Value, 'g', -1, 64), Place: h.Place})
				set.from("param "+k.param, h.Source, h.Place)
			}
		}
	}
	var walk func(n *xmltree.Node)
	walk = func(n *xmltree.Node) {
		for _, k := range n.Kids {
			switch k.Name {
			case "Annotations":
				walk(k)
			case "SimulationInformation":
				switch k.Str("method", "") {
				case "oms_ma":
					read(k, "fixedStepSize")
				case "oms_mav", "oms_mav2":
					adaptive(k)
				case "":
					walk(k)
				default:
					p.Add(ruleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", k.Str("method", ""))
				}
			case "FixedStepMaster":
				read(k, "stepSize")
			case "VariableStepMaster":
				adaptive(k)
			case "VariableStepSolver":
				p.Add(ruleForeign, k, "the solver %q of OMSimulator is for model exchange and has no effect", k.Str("description", ""))
			default:
				p.Add(ruleForeign, k, "the setting %q of OMSimulator is not understood", k.El.FullTag())
			}
		}
	}
	walk(a.node)
	return out
}

// ownComponent is what our own annotation says of a component.
type ownComponent struct {
	stateless bool
	isolate   bool
	quirks    []string
}

// readOMSExperiment reads the annotation of OMSimulator at the experiment: which
// signals are recorded, and how often (ssp 42).
func (s *settings) readOMSExperiment(p *parser, n *xmltree.Node, set *OwnSettings) {
	for _, k := range n.Kids {
		switch k.Name {
		case "Annotations":
			s.readOMSExperiment(p, k, set)
		case "SimulationInformation":
			for _, a := range k.El.Attr {
				switch a.Key {
				case "loggingInterval":
					if v, err := xmltree.ParseReal(a.Value); err != nil || v < 0 {
						p.Add(ruleForeignPart, k, "loggingInterval=%q is no time and is left out", a.Value)
					} else if v > 0 { // 0: every communication point
						set.OutputInterval = &v
						set.from("output-interval", TypeOMS+" loggingInterval", p.Place(k))
					}
				case "signalFilter":
					s.filter = &signalFilter{a.Value, p.Place(k)}
				case "resultFile":
					p.Add(ruleForeign, k, "%s=%q of OMSimulator has no effect: the command line names the file of the results (--output)", a.Key, a.Value)
				case "bufferSize":
					p.Add(ruleForeign, k, "%s=%q of OMSimulator has no effect: results need no buffer of a given size", a.Key, a.Value)
				default:
					if a.Space != "xmlns" && a.Key != "xmlns" {
						p.Add(ruleForeignPart, k, "the setting %s=%q of OMSimulator is not understood", a.Key, a.Value)
					}
				}
			}
		default:
			p.Add(ruleForeign, k, "the setting %q of OMSimulator is not understood", k.El.FullTag())
		}
	}
}

// trigger reads what OpenMCx says of a component beside its step.
func (s *settings) trigger(p *parser, n *xmltree.Node, path string) {
	for _, a := range n.El.Attr {
		switch {
		case a.Space != "" || a.Key == "xmlns" || a.Key == "deltaTime":
		case a.Key == "triggerSequence":
			v, err := strconv.Atoi(a.Value)
			if err != nil {
				p.Add(ruleForeignPart, n, "triggerSequence=%q is no whole number and is left out", a.Value)
				continue
			}
			if s.triggers == nil {
				s.triggers = map[string]int{}
			}
			s.triggers[path] = v
		default:
			p.Add(ruleForeignPart, n, "the setting %s=%q of OpenMCx is not understood", a.Key, a.Value)
		}
	}
}

// connection reads the annotations at a connection: OpenMCx has there how its signal
// is extrapolated (ssp 45).
func (s *settings) connection(a Annotation) {
	if a.Type != typeMCX+"connection.inter_extrapolation" {
		s.unknown(a)
		return
	}
	p := s.parser(a)
	for _, k := range a.node.Kids {
		for _, attr := range k.El.Attr {
			switch order := map[string]string{"zero": "0", "first": "1"}[attr.Value]; {
			case attr.Space != "" || attr.Key == "xmlns":
			case attr.Key == "extrapolationOrder" && order != "":
				s.orders = append(s.orders, SettingSource{order, p.Place(k)})
			default:
				p.Add(ruleForeignPart, k, "the setting %s=%q of OpenMCx is not understood", attr.Key, attr.Value)
			}
		}
	}
}

// openMCx makes parameters of what OpenMCx says at components and connections: the
// sequence if it has all components, the order if all connections agree.
func (s *settings) openMCx(components []*FlatComponent) {
	if s.mcx == nil {
		return
	}
	param := func(key, value, source string, at Place) {
		s.mcx.Params = append(s.mcx.Params, Param{Key: key, Value: value, Place: at})
		s.mcx.from("param "+key, source, at)
	}
	if len(s.orders) > 0 {
		first := s.orders[0]
		if slices.ContainsFunc(s.orders, func(o SettingSource) bool { return o.Text != first.Text }) {
			s.l.Report(ruleForeignPart, first.Place, "the extrapolation orders of OpenMCx are left out: connections differ in them, and here all have one")
		} else {
			param("order", first.Text, typeMCX+"connection.inter_extrapolation extrapolationOrder", first.Place)
		}
	}
	if s.mcx.Algorithm != "gauss-seidel" || len(s.triggers) == 0 || len(components) == 0 {
		return // triggers of placeholders say nothing
	}
	var names []string
	for _, c := range components {
		why := ""
		if _, ok := s.triggers[c.Path]; !ok {
			why = "has none"
		} else if strings.Contains(c.Path, ",") {
			why = "has a comma in its name, which separates the names of a sequence"
		}
		if why != "" {
			s.l.Report(ruleForeignPart, c.Place, "the trigger sequence of OpenMCx is left out: component %q %s", c.Path, why)
			return
		}
		names = append(names, c.Path)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.triggers[a], s.triggers[b]) })
	param("sequence", strings.Join(names, ","), typeMCX+"component triggerSequence", components[0].Place)
}

// signalFilter is what OMSimulator says that is recorded.
type signalFilter struct {
	text  string // a regular expression over model.system.component.variable, or a file
	place Place
}

// component reads the annotations at one component: our own, and the step that
// another tool gives it.
func (s *settings) component(c *Component, path string) (own ownComponent, step []StepHint) {
	for _, a := range c.Annotations {
		p := s.parser(a)
		switch {
		case a.Type == OwnType:
			o := readOwnComponent(p, a)
			own.stateless = own.stateless || o.stateless
			own.isolate = own.isolate || o.isolate
			own.quirks = append(own.quirks, o.quirks...)
		case a.Type == TypeOSP || a.Type == typeVico:
			for _, k := range a.node.Kids {
				if k.Name == "StepSizeHint" {
					step = append(step, hint(p, k, "value", a.Type+" StepSizeHint")...)
				} else {
					p.Add(ruleForeignPart, k, "the setting %q is not understood", k.El.FullTag())
				}
			}
		case a.Type == typeMCX+"component":
			for _, k := range a.node.Kids {
				for _, h := range hint(p, k, "deltaTime", a.Type) {
					h.Finer = true
					step = append(step, h)
				}
				s.trigger(p, k, path)
			}
		default:
			s.unknown(a)
		}
	}
	if c.stepHint != nil {
		step = append(step, *c.stepHint)
	}
	return own, step
}

// hints tells of the steps that other tools give to a component; its rate in our own
// annotation counts first.
func (s *settings) hints(c *FlatComponent) {
	own := slices.ContainsFunc(s.own.Rates, func(r Rate) bool { return r.Component == c.Path })
	for i, h := range c.StepHints {
		switch {
		case own:
			s.l.Report(ruleForeignPart, h.Place, "%s (%v s) is left out: the rate of component %q in the annotation of macrostep counts", h.Source, h.Value, c.Path)
		case i > 0:
			s.l.Report(ruleForeignPart, h.Place, "%s (%v s) is left out: %s counts", h.Source, h.Value, c.StepHints[0].Source)
		default:
			s.own.from("rate "+c.Path, h.Source, h.Place)
			s.l.Report(ruleTaken, h.Place, "component %q steps every %v s, as far as the macro step divides that: taken from %s", c.Path, h.Value, h.Source)
		}
	}
}

// merge takes what our own annotation leaves open from those of other tools, and
// tells of it. Parameters belong to the algorithm that stands with them.
func (s *settings) merge() {
	o := &s.own
	if t := s.tolerance; t != nil && o.Tolerance == nil {
		s.l.Report(ruleTaken, t.Place, "the tolerance %v for the FMUs is taken from %s", t.Value, t.Source)
	}
	for _, t := range s.tools {
		took := func(name string) {
			src := t.Sources[name]
			o.from(name, src.Text, src.Place)
			s.l.Report(ruleTaken, src.Place, "%s is taken from %s", s.describe(name, &t), src.Text)
		}
		left := func(name string) {
			src := t.Sources[name]
			s.l.Report(ruleForeignPart, src.Place, "%s of %s is left out: %s counts", s.describe(name, &t), src.Text, o.Sources[name].Text)
		}
		fill := func(name string, given, taken bool, set func()) {
			switch {
			case !given:
			case taken:
				left(name)
			default:
				set()
				took(name)
			}
		}
		withParams := o.Algorithm == ""
		fill("algorithm", t.Algorithm != "", o.Algorithm != "", func() { o.Algorithm = t.Algorithm })
		for _, p := range t.Params {
			taken := !withParams || slices.ContainsFunc(o.Params, func(q Param) bool { return q.Key == p.Key })
			if !withParams {
				continue // told with the algorithm
			}
			fill("param "+p.Key, true, taken, func() { o.Params = append(o.Params, p) })
		}
		fill("record", t.Record != nil, o.Record != nil, func() { o.Record = t.Record })
		fill("output-interval", t.OutputInterval != nil, o.OutputInterval != nil, func() { o.OutputInterval = t.OutputInterval })
		fill("workers", t.Workers != nil, o.Workers != nil, func() { o.Workers = t.Workers })
	}
}

// describe gives a setting of a tool for a notice.
func (s *settings) describe(name string, t *OwnSettings) string {
	switch name {
	case "algorithm":
		return "algorithm " + t.Algorithm
	case "output-interval":
		return fmt.Sprintf("a row every %v s", *t.OutputInterval)
	case "workers":
		return fmt.Sprintf("the number of %d workers", *t.Workers)
	case "record":
		return fmt.Sprintf("what is recorded (%s)", few(t.Record))
	}
	for _, p := range t.Params {
		if name == "param "+p.Key {
			return fmt.Sprintf("parameter %s=%s", p.Key, p.Value)
		}
	}
	return name
}

// sources notes where the settings of a component come from.
func (own *ownComponent) sources(o *OwnSettings, c *FlatComponent) {
	if own.stateless {
		o.from("stateless "+c.Path, sourceOwn, c.Place)
	}
	if own.isolate {
		o.from("isolate-component "+c.Path, sourceOwn, c.Place)
	}
	for _, q := range own.quirks {
		o.from("quirk "+c.Path+" "+q, sourceOwn, c.Place)
	}
}

// strict reads elements of our own annotation: what it does not know is an error.
type strict struct{ *parser }

// attrs checks that an element has only these attributes.
func (p strict) attrs(n *xmltree.Node, known ...string) {
	for _, a := range n.El.Attr {
		if a.Space == "xmlns" || a.Space == "" && (a.Key == "xmlns" || slices.Contains(known, a.Key)) {
			continue
		}
		p.Add(ruleOwn, n, "the attribute %q is not known; %s has %s", a.FullKey(), n.Name, strings.Join(known, ", "))
	}
}

func (p strict) leaf(n *xmltree.Node) {
	for _, k := range n.Kids {
		p.Add(ruleOwn, k, "the element %q is not known here", k.El.FullTag())
	}
}

// text gives an attribute that must be there and not be empty.
func (p strict) text(n *xmltree.Node, key string) string {
	v := n.Str(key, "")
	if v == "" {
		p.Add(ruleOwn, n, "the attribute %q is missing or empty", key)
	}
	return v
}

// positive gives a number above 0, nil if absent or wrong.
func (p strict) positive(n *xmltree.Node, key string) *float64 {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := xmltree.ParseReal(text)
	if err != nil || v <= 0 {
		p.Add(ruleOwn, n, "%s=%q is no number above 0", key, text)
		return nil
	}
	return &v
}

func (s *settings) readOwn(base *parser, a Annotation) {
	p := strict{base}
	if len(a.node.Kids) != 1 || !a.node.Kids[0].Is("Settings", xmltree.Own) {
		p.Add(ruleOwn, a.node, "the annotation must hold one element Settings of namespace %q", xmltree.Own)
		return
	}
	n := a.node.Kids[0]
	if v := p.text(n, "version"); v != OwnVersion {
		p.Add(ruleOwn, n, "version %q is not known; this program reads version %s", v, OwnVersion)
		return
	}
	if s.seen {
		p.Add(ruleOwn, n, "there is more than one annotation of macrostep")
		return
	}
	s.seen = true
	s.attributes(p, n)
	for _, k := range n.Kids {
		if !k.Is("Bond", xmltree.Own) {
			p.leaf(k)
		}
		at := p.Place(k)
		switch {
		case k.Is("Record", xmltree.Own):
			p.attrs(k, "match")
			s.own.Record = append(s.own.Record, p.text(k, "match"))
			if len(s.own.Record) > 1 && slices.Contains(s.own.Record, "none") {
				p.Add(ruleOwn, k, "none stands alone: nothing is recorded")
			}
			s.own.from("record", sourceOwn, at)
		case k.Is("Param", xmltree.Own):
			p.attrs(k, "key", "value")
			if _, ok := k.Attr("value"); !ok {
				p.Add(ruleOwn, k, "the attribute %q is missing", "value")
			}
			key := p.text(k, "key")
			if slices.ContainsFunc(s.own.Params, func(q Param) bool { return q.Key == key }) {
				p.Add(ruleOwn, k, "the parameter %q is given twice", key)
			}
			s.own.Params = append(s.own.Params, Param{Key: key, Value: k.Str("value", ""), Place: at})
			s.own.from("param "+key, sourceOwn, at)
		case k.Is("Stateless", xmltree.Own):
			p.attrs(k, "component")
			c := p.text(k, "component")
			s.own.Stateless = append(s.own.Stateless, c)
			s.own.from("stateless "+c, sourceOwn, at)
			s.named = append(s.named, namedComponent{c, at})
		case k.Is("Bond", xmltree.Own):
			b := p.bond(k)
			if b.Name != "" && slices.ContainsFunc(s.own.Bonds, func(o Bond) bool { return o.Name == b.Name }) {
				p.Add(ruleOwn, k, "two bonds are called %q", b.Name)
			}
			s.own.Bonds = append(s.own.Bonds, b)
			s.own.from("bond "+b.Name, sourceOwn, at)
		case k.Is("Rate", xmltree.Own):
			p.attrs(k, "component", "ratio")
			ratio, over := 1, 1
			number, slow := strings.CutPrefix(p.text(k, "ratio"), "1/")
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				p.Add(ruleOwn, k, "ratio=%q is no whole number above 0, nor 1/ and one", k.Str("ratio", ""))
			}
			if slow {
				over = n
			} else {
				ratio = n
			}
			c := p.text(k, "component")
			if slices.ContainsFunc(s.own.Rates, func(o Rate) bool { return o.Component == c }) {
				p.Add(ruleOwn, k, "component %q has two rates", c)
			}
			s.own.Rates = append(s.own.Rates, Rate{Component: c, Ratio: ratio, Over: over, Place: at})
			s.own.from("rate "+c, sourceOwn, at)
			s.named = append(s.named, namedComponent{c, at})
		default:
			p.Add(ruleOwn, k, "the element %q is not known; Settings has Param, Stateless, Bond, Rate, Record", k.El.FullTag())
		}
	}
}

// sourceOwn is our own annotation as a source of settings.
const sourceOwn = "annotation of macrostep"

// attributes reads those of ms:Settings.
func (s *settings) attributes(p strict, n *xmltree.Node) {
	p.attrs(n, "version", "algorithm", "stepSize", "tolerance", "monitorEnergy", "energySpike", "workers",
		"isolation", "restarts", "stepTimeout", "memoryLimit", "outputInterval", "input", "history")
	o, at := &s.own, p.Place(n)
	given := func(key, name string) bool {
		_, ok := n.Attr(key)
		if ok {
			o.from(name, sourceOwn, at)
		}
		return ok
	}
	if given("algorithm", "algorithm") {
		o.Algorithm = p.text(n, "algorithm")
	}
	if o.StepSize = p.positive(n, "stepSize"); o.StepSize != nil {
		s.ownStep = []StepHint{{Value: *o.StepSize, Source: sourceOwn, Place: at}}
	}
	given("tolerance", "tolerance")
	o.Tolerance = p.positive(n, "tolerance")
	if given("monitorEnergy", "monitor-energy") {
		v := p.boolean(n, "monitorEnergy")
		o.MonitorEnergy = &v
	}
	if given("energySpike", "energy-spike") {
		v, err := xmltree.ParseReal(n.Str("energySpike", ""))
		if err != nil || v < 0 {
			p.Add(ruleOwn, n, "energySpike=%q is no number of at least 0", n.Str("energySpike", ""))
		}
		o.EnergySpike = &v
	}
	if given("workers", "workers") {
		v, err := strconv.Atoi(n.Str("workers", ""))
		if err != nil || v < 1 {
			p.Add(ruleOwn, n, "workers=%q is no whole number above 0", n.Str("workers", ""))
		}
		o.Workers = &v
	}
	if given("isolation", "isolate") {
		o.Isolation = p.text(n, "isolation")
		if modes := []string{"", "auto", "always", "never"}; !slices.Contains(modes, o.Isolation) {
			p.Add(ruleOwn, n, "isolation=%q is none of auto, always, never", o.Isolation)
		}
	}
	if given("restarts", "on-crash") {
		v, err := strconv.Atoi(n.Str("restarts", ""))
		if err != nil || v < 0 {
			p.Add(ruleOwn, n, "restarts=%q is no whole number of at least 0", n.Str("restarts", ""))
		}
		o.Restarts = &v
	}
	for _, q := range []struct {
		key, name string
		to        **float64
	}{{"stepTimeout", "step-timeout", &o.StepTimeout}, {"memoryLimit", "memory-limit", &o.MemoryLimit}, {"outputInterval", "output-interval", &o.OutputInterval}} {
		given(q.key, q.name)
		*q.to = p.positive(n, q.key)
	}
	for _, q := range []struct {
		key string
		to  **Table
	}{{"input", &o.Input}, {"history", &o.History}} {
		if given(q.key, q.key) {
			*q.to = &Table{URI: p.text(n, q.key)}
		}
	}
}

// bond reads ms:Bond. What its pairs name is checked when the FMUs are known.
func (p strict) bond(n *xmltree.Node) Bond {
	p.attrs(n, "name", "energyScale", "tolerance")
	b := Bond{Name: p.text(n, "name"), EnergyScale: p.positive(n, "energyScale"), Tolerance: p.positive(n, "tolerance"), Place: p.Place(n)}
	if strings.ContainsAny(b.Name, ",\"\r\n") {
		p.Add(ruleOwn, n, "the name %q does not suit a column of results; leave out commas, quotation marks and line breaks", b.Name)
	}
	for _, k := range n.Kids {
		if !k.Is("Pair", xmltree.Own) {
			p.Add(ruleOwn, k, "the element %q is not known; Bond has Pair", k.El.FullTag())
			continue
		}
		p.attrs(k, "effort", "flow", "opposed")
		p.leaf(k)
		pair := BondPair{Effort: p.text(k, "effort"), Flow: p.text(k, "flow"), Place: p.Place(k)}
		pair.Opposed = p.boolean(k, "opposed")
		b.Pairs = append(b.Pairs, pair)
	}
	if len(b.Pairs) == 0 {
		p.Add(ruleOwn, n, "the bond has no Pair; it needs an effort and a flow")
	}
	return b
}

// boolean gives an attribute that is false if absent or wrong.
func (p strict) boolean(n *xmltree.Node, key string) bool {
	text, ok := n.Attr(key)
	if !ok {
		return false
	}
	v, err := xmltree.ParseBoolean(text)
	if err != nil {
		p.Add(ruleOwn, n, "the attribute %q: %v", key, err)
	}
	return v
}

func readOwnComponent(base *parser, a Annotation) (own ownComponent) {
	p := strict{base}
	if len(a.node.Kids) != 1 || !a.node.Kids[0].Is("Component", xmltree.Own) {
		p.Add(ruleOwn, a.node, "the annotation must hold one element Component of namespace %q", xmltree.Own)
		return own
	}
	n := a.node.Kids[0]
	p.attrs(n, "stateless", "quirks", "isolate")
	p.leaf(n)
	own.stateless, own.isolate = p.boolean(n, "stateless"), p.boolean(n, "isolate")
	own.quirks = strings.Fields(n.Str("quirks", ""))
	return own
}
