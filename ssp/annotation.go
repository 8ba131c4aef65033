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

// OwnType is the type of the annotations of macrostep.
const OwnType = "com.github.macrostep"

// OwnVersion is the supported version of ms:Settings.
const OwnVersion = "1"

// OwnSettings holds the settings of the annotation of macrostep at the DefaultExperiment (ssp 46),
// completed by annotations of other tools. nil and "" mean that a setting is not given.
type OwnSettings struct {
	Algorithm           string   // name of a preset
	StepSize, Tolerance *float64 // macro step in s; relative tolerance
	Params              []Param  // parameters of the algorithm
	Stateless           []string // paths of components, including those marked at the component
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

	// Sources holds the source of each setting by its name: "algorithm", "param order",
	// "bond axle", "rate motor" and so on.
	Sources map[string]SettingSource
}

// Table is a file with signals.
type Table struct {
	URI   string // as written
	Path  string // absolute
	Shown string // name in messages
}

// SettingSource is the source of a setting.
type SettingSource struct {
	Text  string // for example "annotation of macrostep", "com.opensimulationplatform StepSizeHint"
	Place Place
}

// From records the source of a setting.
func (o *OwnSettings) From(name, text string, at Place) {
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

// Bond declares a power bond: an exchange of energy between components. Its power is the sum over
// the pairs of effort times flow. A scalar exchange has one pair, a vector, such as a planar force
// and its velocity, one for each entry.
type Bond struct {
	Name  string
	Pairs []BondPair // at least one
	// EnergyScale in J and Tolerance are E0 and r of sadjina (14), the scale of residual
	// energies and their relative tolerance. nil means those of the algorithm.
	EnergyScale, Tolerance *float64
	Place                  Place
}

// BondPair holds two Real outputs "component.variable" of different FMUs, the factors of a power.
// The component that gives the effort receives the flow and the other way round, so the outputs
// determine the causality.
type BondPair struct {
	Effort, Flow string
	// Opposed is true if the product is the power that leaves the component with the flow,
	// and false if it is the power that enters it.
	Opposed bool
	Place   Place
}

// Rate gives a component Ratio steps per macro step, or one step per Over macro steps. One of the
// two is 1.
type Rate struct {
	Component   string
	Ratio, Over int
	Place       Place
}

// Node returns the Annotation element.
func (a Annotation) Node() *Node {
	if a.node == nil { // it was not read
		return xmltree.Of(a.Content)
	}
	return a.node
}

// StepHint is a macro step that a document requests.
type StepHint struct {
	Value  float64 // s
	Source string  // for example "com.opensimulationplatform baseStepSize"
	Finer  bool    // for a component: the step may be a fraction of the macro step
	Place  Place
}

// settings collects the settings in the annotations of a document.
type settings struct {
	l        *diag.List
	own      OwnSettings
	seen     bool // an annotation of macrostep was found
	dialects []Annotations
	tools    []OwnSettings // by dialect
	steps    [][]StepHint  // by dialect
	named    []namedComponent
	ownStep  []StepHint
	foreign  []StepHint // in order of precedence
	// Types of unknown annotations: their numbers, first places and order.
	counted map[string]int
	first   map[string]Place
	types   []string
}

// namedComponent is a path in the annotation of macrostep.
type namedComponent struct {
	path  string
	place Place
}

// experiment reads the annotations at the document, at the DefaultExperiment and at the outermost
// system (ssp 42–46).
func (s *settings) experiment(d *Document) {
	s.steps = make([][]StepHint, len(s.dialects))
	for _, a := range d.Experiment.Annotations {
		if a.Type == OwnType {
			s.readOwn(s.parser(a), a)
		} else {
			s.tool(a, AtExperiment, "")
		}
	}
	for _, a := range d.System.Annotations {
		s.tool(a, AtSystem, "")
	}
	for _, a := range d.Annotations {
		s.unknown(a)
	}
}

// tool passes an annotation to the first dialect that takes it, and returns its steps.
func (s *settings) tool(a Annotation, at Site, path string) []StepHint {
	for i, d := range s.dialects {
		steps, taken := d.Read(&s.parser(a).Reader, a, at, path)
		if !taken {
			continue
		}
		if at != AtComponent {
			s.steps[i] = append(s.steps[i], steps...)
		}
		return steps
	}
	s.unknown(a)
	return nil
}

// finish collects the settings of the dialects. The algorithm is that of the tool whose macro step
// counts.
func (s *settings) finish(components []*FlatComponent) {
	for i, d := range s.dialects {
		set := d.Settings(components, len(s.foreign) == 0, s.l)
		if len(s.foreign) > 0 && set.Algorithm != "" {
			first := s.foreign[0].Source
			src := set.Sources["algorithm"]
			why, rule := "the algorithm is taken from the tool that gives the macro step: "+first, RuleForeignPart
			switch {
			case s.own.Algorithm != "":
				why, rule = "the annotation of macrostep counts", RuleTaken
			case len(s.ownStep) > 0:
				why = "of several tools the first counts, " + first
			}
			s.l.Report(rule, src.Place, "algorithm %s of %s is ignored: %s", set.Algorithm, src.Text, why)
			set.Algorithm, set.Params = "", nil
		}
		s.tools = append(s.tools, set)
		s.foreign = append(s.foreign, s.steps[i]...)
	}
}

// unknown notes an annotation without effect.
func (s *settings) unknown(a Annotation) {
	if a.Type == OwnType {
		s.l.Report(ruleOwn, a.Place, noPlace)
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

// report reports the annotations of unknown, one finding for each type.
func (s *settings) report() {
	for _, t := range s.types {
		more := ""
		if n := s.counted[t]; n > 1 {
			more = " (" + strconv.Itoa(n) + " times; this is the first)"
		}
		s.l.Report(RuleForeign, s.first[t], "the annotation %q is not known here and has no effect%s", t, more)
	}
}

func (s *settings) parser(a Annotation) *parser { return newParser(s.l, a.Place.File) }

// stepHints returns the macro steps in order of precedence, and warns if tools disagree (ssp 47).
func (s *settings) stepHints() []StepHint {
	if len(s.foreign) > 1 && len(s.ownStep) == 0 {
		first := s.foreign[0]
		for _, h := range s.foreign[1:] {
			s.l.Report(RuleForeignPart, h.Place, "%s (%v s) is ignored: %s (%v s) counts", h.Source, h.Value, first.Source, first.Value)
		}
	}
	if len(s.ownStep) == 0 && len(s.foreign) > 0 {
		h := s.foreign[0]
		s.l.Report(RuleTaken, h.Place, "the macro step of %v s is taken from %s", h.Value, h.Source)
	}
	return slices.Concat(s.ownStep, s.foreign)
}

// ownComponent holds the settings of the annotation of macrostep at a component.
type ownComponent struct {
	stateless bool
	isolate   bool
	host      string
	quirks    []string
}

// component reads the annotations at a component. steps are those that other tools give it.
func (s *settings) component(c *Component, path string) (own ownComponent, step []StepHint) {
	for _, a := range c.Annotations {
		p := s.parser(a)
		switch {
		case a.Type == OwnType:
			o := readOwnComponent(p, a)
			own.stateless = own.stateless || o.stateless
			own.isolate = own.isolate || o.isolate
			own.host = cmp.Or(own.host, o.host)
			own.quirks = append(own.quirks, o.quirks...)
		default:
			step = append(step, s.tool(a, AtComponent, path)...)
		}
	}
	if c.StepHint != nil {
		step = append(step, *c.StepHint)
	}
	return own, step
}

// hints reports the steps that other tools give a component. A rate in the annotation of macrostep
// overrides them.
func (s *settings) hints(c *FlatComponent) {
	own := slices.ContainsFunc(s.own.Rates, func(r Rate) bool { return r.Component == c.Path })
	for i, h := range c.StepHints {
		switch {
		case own:
			s.l.Report(RuleTaken, h.Place, "%s (%v s) is ignored: the rate of component %q in the annotation of macrostep counts",
				h.Source, h.Value, c.Path)
		case i > 0:
			s.l.Report(RuleForeignPart, h.Place, "%s (%v s) is ignored: %s counts", h.Source, h.Value, c.StepHints[0].Source)
		default:
			s.own.From("rate "+c.Path, h.Source, h.Place)
			s.l.Report(RuleTaken, h.Place, "component %q steps every %v s, rounded to suit the macro step: taken from %s",
				c.Path, h.Value, h.Source)
		}
	}
}

// merge adds the settings of other tools that the annotation of macrostep does not give, and
// reports them. Parameters belong to the algorithm of the same tool.
func (s *settings) merge() {
	o := &s.own
	if t := s.tolerance(); t != nil && o.Tolerance == nil {
		src := t.Sources["tolerance"]
		s.l.Report(RuleTaken, src.Place, "the tolerance %v for the FMUs is taken from %s", *t.Tolerance, src.Text)
	}
	for _, t := range s.tools {
		// fill uses a setting of the tool, unless it is given already.
		fill := func(name, what string, there bool, set func()) {
			src := t.Sources[name]
			if there {
				rule := RuleForeignPart // two tools disagree
				if o.Sources[name].Text == sourceOwn {
					rule = RuleTaken
				}
				s.l.Report(rule, src.Place, "%s of %s is ignored: %s counts", what, src.Text, o.Sources[name].Text)
				return
			}
			set()
			o.From(name, src.Text, src.Place)
			s.l.Report(RuleTaken, src.Place, "%s is taken from %s", what, src.Text)
		}
		withParams := o.Algorithm == "" // else they are ignored like the algorithm
		if t.Algorithm != "" {
			fill("algorithm", "algorithm "+t.Algorithm, o.Algorithm != "", func() { o.Algorithm = t.Algorithm })
		}
		for _, p := range t.Params {
			if withParams {
				there := slices.ContainsFunc(o.Params, func(q Param) bool { return q.Key == p.Key })
				fill("param "+p.Key, fmt.Sprintf("parameter %s=%s", p.Key, p.Value), there, func() { o.Params = append(o.Params, p) })
			}
		}
		if t.Record != nil {
			fill("record", fmt.Sprintf("the selection of recorded variables (%s)", diag.Some(t.Record)), o.Record != nil,
				func() { o.Record = t.Record })
		}
		if t.OutputInterval != nil {
			fill("output-interval", fmt.Sprintf("a row every %v s", *t.OutputInterval), o.OutputInterval != nil,
				func() { o.OutputInterval = t.OutputInterval })
		}
		if t.Workers != nil {
			fill("workers", fmt.Sprintf("the number of %d workers", *t.Workers), o.Workers != nil, func() { o.Workers = t.Workers })
		}
	}
}

// tolerance returns the settings of the first tool with a tolerance, nil if there is none.
func (s *settings) tolerance() *OwnSettings {
	for i := range s.tools {
		if s.tools[i].Tolerance != nil {
			return &s.tools[i]
		}
	}
	return nil
}

// sources records the sources of the settings of a component.
func (own *ownComponent) sources(o *OwnSettings, c *FlatComponent) {
	if own.stateless {
		o.From("stateless "+c.Path, sourceOwn, c.Place)
	}
	if own.host != "" {
		o.From("on "+c.Path, sourceOwn, c.Place)
	}
	if own.isolate {
		o.From("isolate-component "+c.Path, sourceOwn, c.Place)
	}
	for _, q := range own.quirks {
		o.From("quirk "+c.Path+" "+q, sourceOwn, c.Place)
	}
}

// strict reads elements of the annotation of macrostep. Everything unknown is an error.
type strict struct{ *parser }

// content returns the only element of an annotation; nil after a finding.
func (p strict) content(a Annotation, name string) *xmltree.Node {
	if kids := a.Node().Kids; len(kids) == 1 && kids[0].Is(name, xmltree.Own) {
		return kids[0]
	}
	p.Add(ruleOwn, a.Node(), "the annotation must contain one element %s of namespace %q", name, xmltree.Own)
	return nil
}

// attrs reports attributes of an element that are not in a list.
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

// text returns a required attribute, and reports an empty one.
func (p strict) text(n *xmltree.Node, key string) string {
	v := n.Str(key, "")
	if v == "" {
		p.Add(ruleOwn, n, "the attribute %q is missing or empty", key)
	}
	return v
}

// positive returns a number above 0, nil if the attribute is absent or wrong.
func (p strict) positive(n *xmltree.Node, key string) *float64 {
	text, ok := n.Attr(key)
	if !ok {
		return nil
	}
	v, err := xmltree.ParseReal(text)
	if err != nil || v <= 0 {
		p.Add(ruleOwn, n, "%s=%q is not a number above 0", key, text)
		return nil
	}
	return &v
}

func (s *settings) readOwn(base *parser, a Annotation) {
	p := strict{base}
	n := p.content(a, "Settings")
	if n == nil {
		return
	}
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
		s.child(p, k)
	}
}

// child reads an element of ms:Settings.
func (s *settings) child(p strict, k *xmltree.Node) {
	o, at := &s.own, p.Place(k)
	switch {
	case k.Is("Record", xmltree.Own):
		p.attrs(k, "match")
		o.Record = append(o.Record, p.text(k, "match"))
		if len(o.Record) > 1 && slices.Contains(o.Record, "none") {
			p.Add(ruleOwn, k, "none must be the only Record: nothing is recorded then")
		}
		o.From("record", sourceOwn, at)
	case k.Is("Param", xmltree.Own):
		p.attrs(k, "key", "value")
		if _, ok := k.Attr("value"); !ok {
			p.Add(ruleOwn, k, "the attribute %q is missing", "value")
		}
		key := p.text(k, "key")
		if slices.ContainsFunc(o.Params, func(q Param) bool { return q.Key == key }) {
			p.Add(ruleOwn, k, "the parameter %q is given twice", key)
		}
		o.Params = append(o.Params, Param{Key: key, Value: k.Str("value", ""), Place: at})
		o.From("param "+key, sourceOwn, at)
	case k.Is("Stateless", xmltree.Own):
		p.attrs(k, "component")
		c := p.text(k, "component")
		o.Stateless = append(o.Stateless, c)
		o.From("stateless "+c, sourceOwn, at)
		s.named = append(s.named, namedComponent{c, at})
	case k.Is("Bond", xmltree.Own):
		b := p.bond(k)
		if b.Name != "" && slices.ContainsFunc(o.Bonds, func(o Bond) bool { return o.Name == b.Name }) {
			p.Add(ruleOwn, k, "two bonds are called %q", b.Name)
		}
		o.Bonds = append(o.Bonds, b)
		o.From("bond "+b.Name, sourceOwn, at)
	case k.Is("Rate", xmltree.Own):
		r := p.rate(k)
		if slices.ContainsFunc(o.Rates, func(o Rate) bool { return o.Component == r.Component }) {
			p.Add(ruleOwn, k, "component %q has two rates", r.Component)
		}
		o.Rates = append(o.Rates, r)
		o.From("rate "+r.Component, sourceOwn, at)
		s.named = append(s.named, namedComponent{r.Component, at})
	default:
		p.Add(ruleOwn, k, "the element %q is not known; Settings has Param, Stateless, Bond, Rate, Record", k.El.FullTag())
	}
}

// rate reads ms:Rate: a whole number of steps per macro step, or 1/N.
func (p strict) rate(n *xmltree.Node) Rate {
	p.attrs(n, "component", "ratio")
	text, slow := strings.CutPrefix(p.text(n, "ratio"), "1/")
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		p.Add(ruleOwn, n, "ratio=%q is not a whole number above 0, nor 1/ and such a number", n.Str("ratio", ""))
	}
	r := Rate{Component: p.text(n, "component"), Ratio: number, Over: 1, Place: p.Place(n)}
	if slow {
		r.Ratio, r.Over = 1, number
	}
	return r
}

// sourceOwn names the annotation of macrostep as a source of settings; noPlace is the message
// about one in a place where it has no effect.
const (
	sourceOwn = "annotation of macrostep"
	noPlace   = "the annotation of macrostep is not allowed here; ms:Settings belongs to the DefaultExperiment, ms:Component to a Component"
)

// attributes reads the attributes of ms:Settings.
func (s *settings) attributes(p strict, n *xmltree.Node) {
	p.attrs(n, "version", "algorithm", "stepSize", "tolerance", "monitorEnergy", "energySpike", "workers",
		"isolation", "restarts", "stepTimeout", "memoryLimit", "outputInterval", "input", "history")
	o, at := &s.own, p.Place(n)
	given := func(key, name string) bool {
		_, ok := n.Attr(key)
		if ok {
			o.From(name, sourceOwn, at)
		}
		return ok
	}
	if given("algorithm", "algorithm") {
		o.Algorithm = p.text(n, "algorithm")
	}
	if o.StepSize = p.positive(n, "stepSize"); o.StepSize != nil {
		s.ownStep = []StepHint{{Value: *o.StepSize, Source: sourceOwn, Place: at}}
	}
	if given("monitorEnergy", "monitor-energy") {
		v := p.boolean(n, "monitorEnergy")
		o.MonitorEnergy = &v
	}
	if given("energySpike", "energy-spike") {
		v, err := xmltree.ParseReal(n.Str("energySpike", ""))
		if err != nil || v < 0 {
			p.Add(ruleOwn, n, "energySpike=%q is not a number of at least 0", n.Str("energySpike", ""))
		}
		o.EnergySpike = &v
	}
	whole := func(key string, least int) *int {
		v, err := strconv.Atoi(n.Str(key, ""))
		if err != nil || v < least {
			p.Add(ruleOwn, n, "%s=%q is not a whole number of at least %d", key, n.Str(key, ""), least)
		}
		return &v
	}
	if given("workers", "workers") {
		o.Workers = whole("workers", 1)
	}
	if given("isolation", "isolate") {
		o.Isolation = p.text(n, "isolation")
		if modes := []string{"", "auto", "always", "never"}; !slices.Contains(modes, o.Isolation) {
			p.Add(ruleOwn, n, "isolation=%q is not auto, always or never", o.Isolation)
		}
	}
	if given("restarts", "on-crash") {
		o.Restarts = whole("restarts", 0)
	}
	for _, q := range []struct {
		key, name string
		to        **float64
	}{
		{"tolerance", "tolerance", &o.Tolerance}, {"stepTimeout", "step-timeout", &o.StepTimeout},
		{"memoryLimit", "memory-limit", &o.MemoryLimit}, {"outputInterval", "output-interval", &o.OutputInterval},
	} {
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

// bond reads ms:Bond. bonds checks its pairs when the FMUs are known.
func (p strict) bond(n *xmltree.Node) Bond {
	p.attrs(n, "name", "energyScale", "tolerance")
	b := Bond{Name: p.text(n, "name"), EnergyScale: p.positive(n, "energyScale"), Tolerance: p.positive(n, "tolerance"), Place: p.Place(n)}
	if strings.ContainsAny(b.Name, ",\"\r\n") {
		p.Add(ruleOwn, n, "the name %q cannot be part of a column name; remove commas, quotation marks and line breaks", b.Name)
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

// boolean returns an attribute, false if it is absent or wrong.
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
	n := p.content(a, "Component")
	if n == nil {
		return own
	}
	p.attrs(n, "stateless", "quirks", "isolate", "host")
	p.leaf(n)
	own.stateless, own.isolate = p.boolean(n, "stateless"), p.boolean(n, "isolate")
	own.quirks, own.host = strings.Fields(n.Str("quirks", "")), n.Str("host", "")
	return own
}
