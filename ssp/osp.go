package ssp

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The system structure of OSP (Open Simulation Platform), read as libcosim reads
// it: a document of its own, OspSystemStructure.xml, which becomes a Document
// like that of an SSP.
const (
	ospDocumentName = "OspSystemStructure.xml"
	ospRoot         = "OspSystemStructure"
	nsOSPSystem     = "http://opensimulationplatform.com/MSMI/OSPSystemStructure"
	ospVersion      = "0.1"
	sourceOSP       = "OspSystemStructure"
)

// mostFunctionSignals bounds what a few digits in a document can make.
const mostFunctionSignals = 10_000

// ospStructure is what a structure of OSP has beside its Document.
type ospStructure struct {
	groups []ospGroupConnection
	// settings of the run, in the words of this program; merged like those of an annotation.
	settings OwnSettings
	steps    []StepHint
	bonds    []string // names in order of appearance
	places   map[string]Place
}

// ospGroupConnection connects two groups of variables, or one with the signals of
// a function. The groups stand in the model descriptions of OSP.
type ospGroupConnection struct {
	a, b    ospGroupEnd
	signals []string // of b, which is a function then
	bond    string
	place   Place
}

type ospGroupEnd struct{ element, group string }

func (e ospGroupEnd) String() string { return e.element + "." + e.group }

// Function is a sum of Reals that stands in a network like an FMU: a Sum or a
// VectorSum of OSP. Its outputs are functions of its inputs at the same instant.
// Its signals have no unit.
type Function struct {
	Path            string
	Inputs, Outputs []string
	Terms           [][]int // for each output the inputs whose sum it is
	Place           Place
}

// functionElement is a Function among the elements of a document.
type functionElement struct {
	Common
	function *Function
}

// functionVariables shows the signals of a function like the variables of an FMU.
type functionVariables struct {
	f     Function
	kinds map[string]Kind
}

func newFunctionVariables(f Function) functionVariables {
	s := functionVariables{f, make(map[string]Kind)}
	for _, name := range f.Inputs {
		s.kinds[name] = Input
	}
	for _, name := range f.Outputs {
		s.kinds[name] = Output
	}
	return s
}

// Lookup finds a signal by its name.
func (s functionVariables) Lookup(name string) (Variable, bool) {
	kind, ok := s.kinds[name]
	return Variable{Name: name, Type: Real, Causality: string(kind), Variability: "continuous"}, ok
}

// All returns the signals, inputs first.
func (s functionVariables) All() iter.Seq[Variable] {
	return func(yield func(Variable) bool) {
		for _, name := range slices.Concat(s.f.Inputs, s.f.Outputs) {
			if v, _ := s.Lookup(name); !yield(v) {
				return
			}
		}
	}
}

// readStructure reads a system structure of OSP. It returns nil after an error in the document.
func readStructure(p *parser, root *xmltree.Node, name string) (*Document, *ospStructure) {
	r := &ospReader{parser: *p, names: map[string]Place{}, functions: map[string]*ospFunction{}}
	if !root.Is(ospRoot, nsOSPSystem) {
		r.Add(xmltree.RuleSchema, root, "the root element is %q of namespace %q, not %s of %q", root.El.FullTag(), root.URI, ospRoot, nsOSPSystem)
		return nil, nil
	}
	d := r.document(root, name)
	if r.List.Err() != nil {
		return nil, nil
	}
	return d, r.out
}

// ospReader turns a structure of OSP into a Document.
type ospReader struct {
	parser
	names     map[string]Place // of simulators and functions
	functions map[string]*ospFunction
	order     []*ospFunction
	out       *ospStructure
}

// ospFunction is a function with the use of its signals.
type ospFunction struct {
	name, kind      string
	place           Place
	inputs, outputs []string // signals
	groups          map[string][]string
	used            map[string]bool
	factor, offset  float64 // of a linear transformation
}

func (r *ospReader) document(n *xmltree.Node, name string) *Document {
	r.out = &ospStructure{places: map[string]Place{}}
	d := &Document{File: r.File, Version: r.Need(n, "version"), Name: name, Metadata: map[string]string{}, Tree: n.El}
	d.System = &System{Common: Common{Name: name, Place: r.Place(n)}}
	if d.Version != "" && d.Version != ospVersion {
		r.Add(ruleOSPPart, n, "version %q is not known; the structure is read as version %s", d.Version, ospVersion)
	}
	r.known(n, "version")
	var algorithm, ecco, connections *xmltree.Node
	seen := map[string]bool{}
	for _, k := range n.Kids {
		if k.URI != nsOSPSystem {
			r.Unknown(k)
			continue
		}
		if seen[k.Name] {
			r.Add(xmltree.RuleSchema, k, "there is more than one %s", k.Name)
			continue
		}
		seen[k.Name] = true
		switch k.Name {
		case "Description":
			d.Metadata["description"] = strings.TrimSpace(k.El.Text())
		case "StartTime":
			d.Experiment.Start = r.content(k)
		case "EndTime":
			d.Experiment.Stop = r.content(k)
		case "BaseStepSize":
			if v := r.content(k); v != nil {
				if *v <= 0 {
					r.Add(xmltree.RuleSchema, k, "the step size %v is not above 0", *v)
					break
				}
				r.out.steps = append(r.out.steps, StepHint{Value: *v, Source: sourceOSP + " BaseStepSize", Place: r.Place(k)})
			}
		case "Algorithm":
			algorithm = k
		case "Simulators":
			r.simulators(k, d.System)
		case "Functions":
			r.readFunctions(k)
		case "Connections":
			connections = k
		case "EccoConfiguration":
			ecco = k
		default:
			r.Unknown(k)
		}
	}
	if !seen["Simulators"] {
		r.Add(xmltree.RuleSchema, n, "there are no Simulators")
	}
	if a, b := d.Experiment.Start, d.Experiment.Stop; a != nil && b != nil && *b <= *a {
		r.Add(xmltree.RuleSchema, n, "EndTime %v is not after StartTime %v", *b, *a)
	}
	if connections != nil {
		r.connections(connections, d.System)
	}
	r.placeFunctions(d.System)
	r.algorithm(algorithm, ecco)
	return d
}

// known names attributes that mean nothing here.
func (r *ospReader) known(n *xmltree.Node, names ...string) {
	for _, a := range n.El.Attr {
		if a.Space == "" && a.Key != "xmlns" && !slices.Contains(names, a.Key) {
			r.Add(xmltree.RuleUnknown, n, "the attribute %q is not known here and is left out", a.Key)
		}
	}
}

// content returns the number that is the text of an element.
func (r *ospReader) content(n *xmltree.Node) *float64 {
	r.known(n)
	v, err := xmltree.ParseReal(n.El.Text())
	if err != nil {
		r.Add(xmltree.RuleSchema, n, "%v", err)
		return nil
	}
	return &v
}

// name returns the name of a simulator or function, which no other has.
func (r *ospReader) name(n *xmltree.Node) string {
	name := r.Need(n, "name")
	if first, twice := r.names[name]; twice {
		r.Add(ruleName, n, "another simulator or function is called %q too, in line %d", name, first.Line)
	}
	if _, there := n.Attr("name"); there && name == "" {
		r.Add(ruleName, n, "the name is empty")
	}
	r.names[name] = r.Place(n)
	return name
}

func (r *ospReader) simulators(n *xmltree.Node, s *System) {
	for _, k := range n.Kids {
		if !k.Is("Simulator", nsOSPSystem) {
			r.Unknown(k)
			continue
		}
		r.known(k, "name", "source", "stepSize")
		c := &Component{Common: Common{Name: r.name(k), Place: r.Place(k)}, Source: r.Need(k, "source"), HasSource: true,
			Type: MIMEFMU, Implementation: "any"}
		if text, ok := k.Attr("source"); ok && text == "" {
			r.Add(xmltree.RuleSchema, k, "the source is empty")
		}
		if step := r.Number(k, "stepSize"); step != nil && *step > 0 {
			c.stepHint = &StepHint{Value: *step, Source: sourceOSP + " stepSize", Place: r.Place(k)}
		} else if step != nil && *step < 0 {
			r.Add(xmltree.RuleSchema, k, "the step size %v is below 0", *step)
		}
		for _, kk := range k.Kids {
			if !kk.Is("InitialValues", nsOSPSystem) {
				r.Unknown(kk)
				continue
			}
			if set := r.initialValues(kk); len(set.Parameters) > 0 {
				c.Bindings = append(c.Bindings, Binding{Type: MIMESet, SourceBase: "SSD", Set: set, Place: r.Place(kk)})
			}
		}
		s.Elements = append(s.Elements, c)
	}
}

func (r *ospReader) initialValues(n *xmltree.Node) *ParameterSet {
	set := &ParameterSet{File: r.File, Name: "InitialValues", exact: true}
	seen := map[string]int{}
	for _, k := range n.Kids {
		if !k.Is("InitialValue", nsOSPSystem) {
			r.Unknown(k)
			continue
		}
		r.known(k, "variable")
		v := ParameterValue{Name: r.Need(k, "variable"), Place: r.Place(k)}
		r.repeated(k, seen, v.Name, "the variable %q has two initial values")
		if len(k.Kids) != 1 || k.Kids[0].URI != nsOSPSystem {
			r.Add(xmltree.RuleSchema, k, "the variable %q has not one value but %d", v.Name, len(k.Kids))
			continue
		}
		value := k.Kids[0]
		r.known(value, "value")
		text, err := r.Need(value, "value"), error(nil)
		switch value.Name {
		case "Real":
			v.Value.Type = Real
			v.Value.Real, err = xmltree.ParseReal(text)
		case "Integer":
			v.Value.Type = Integer
			v.Value.Int, err = xmltree.ParseInteger(text)
		case "Boolean":
			v.Value.Type = Boolean
			v.Value.Bool, err = xmltree.ParseBoolean(text)
		case "String":
			v.Value = Value{Type: String, Text: text}
		case "Enumeration": // a number; the schema has none
			v.Value.Type = Integer
			v.Value.Int, err = xmltree.ParseInteger(text)
		default:
			r.Add(xmltree.RuleSchema, value, "the type %q is none of Real, Integer, Boolean, String", value.Name)
			continue
		}
		if _, there := value.Attr("value"); err != nil && there {
			r.Add(ruleValue, value, "the initial value of %q: %v", v.Name, err)
		}
		set.Parameters = append(set.Parameters, v)
	}
	return set
}

func (r *ospReader) readFunctions(n *xmltree.Node) {
	for _, k := range n.Kids {
		f := &ospFunction{kind: k.Name, place: r.Place(k), groups: map[string][]string{}, used: map[string]bool{}}
		switch {
		case k.Is("LinearTransformation", nsOSPSystem):
			r.known(k, "name", "factor", "offset")
			f.inputs, f.outputs = []string{"in"}, []string{"out"}
			f.factor, f.offset = r.NumberOr(k, "factor", 1), r.NumberOr(k, "offset", 0)
		case k.Is("Sum", nsOSPSystem):
			r.known(k, "name", "inputCount")
			f.outputs = []string{"out"}
			for i := range r.count(k, "inputCount", 1) {
				f.inputs = append(f.inputs, fmt.Sprintf("in[%d]", i))
			}
		case k.Is("VectorSum", nsOSPSystem):
			r.known(k, "name", "inputCount", "dimension")
			dimension := r.count(k, "dimension", 1)
			vector := func(name string) (signals []string) {
				for j := range dimension {
					signals = append(signals, fmt.Sprintf("%s[%d]", name, j))
				}
				f.groups[name] = signals
				return signals
			}
			for i := range r.count(k, "inputCount", dimension) {
				f.inputs = append(f.inputs, vector(fmt.Sprintf("in[%d]", i))...)
			}
			f.outputs = vector("out")
		default:
			r.Add(ruleOSP, k, "the function %q is not known; there are LinearTransformation, Sum and VectorSum", k.El.FullTag())
			continue
		}
		for _, kk := range k.Kids {
			r.Unknown(kk)
		}
		f.name = r.name(k)
		r.functions[f.name] = f
		r.order = append(r.order, f)
	}
}

// count returns a number of signals, such that times of them are not too many; 0
// after a finding.
func (r *ospReader) count(n *xmltree.Node, key string, times int) int {
	text := r.Need(n, key)
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || v < 1 || v > mostFunctionSignals/max(times, 1) {
		if _, there := n.Attr(key); there {
			r.Add(xmltree.RuleSchema, n, "%s=%q is no whole number above 0, or more than makes sense", key, text)
		}
		return 0
	}
	return v
}

// placeFunctions makes elements of the functions: a linear transformation becomes
// a system with one connection, so that it is folded into those that lead through
// it; sums stand behind the simulators.
func (r *ospReader) placeFunctions(s *System) {
	for _, f := range r.order {
		if free := slices.DeleteFunc(slices.Clone(f.inputs), func(in string) bool { return f.used[in] }); len(free) > 0 {
			r.List.Report(ruleOSP, f.place, "nothing is connected to inputs of the function %q: %s", f.name, few(free))
		}
		if !slices.ContainsFunc(f.outputs, func(out string) bool { return f.used[out] }) {
			r.List.Report(ruleOSPPart, f.place, "the function %q has no effect: nothing is connected to its output", f.name)
		}
		common := Common{Name: f.name, Place: f.place}
		for _, in := range f.inputs {
			common.Connectors = append(common.Connectors, Connector{Name: in, Kind: Input, Type: Real, Place: f.place})
		}
		for _, out := range f.outputs {
			common.Connectors = append(common.Connectors, Connector{Name: out, Kind: Output, Type: Real, Place: f.place})
		}
		if f.kind == "LinearTransformation" {
			s.Elements = append(s.Elements, f.linear(common))
			continue
		}
		function := &Function{Inputs: f.inputs, Outputs: f.outputs, Place: f.place}
		width := len(f.outputs)
		for j := range f.outputs {
			var terms []int
			for i := j; i < len(f.inputs); i += width {
				terms = append(terms, i)
			}
			function.Terms = append(function.Terms, terms)
		}
		s.Elements = append(s.Elements, &functionElement{Common: common, function: function})
	}
}

// linear returns a linear transformation as a system.
func (f *ospFunction) linear(common Common) *System {
	return &System{Common: common, Connections: []Connection{{
		StartConnector: "in", EndConnector: "out", SuppressUnitConversion: true, Place: f.place,
		Transformation: &Transformation{Kind: Linear, Factor: f.factor, Offset: f.offset, Place: f.place},
	}}}
}

func (r *ospReader) connections(n *xmltree.Node, s *System) {
	for _, k := range n.Kids {
		if k.URI != nsOSPSystem {
			r.Unknown(k)
			continue
		}
		switch k.Name {
		case "VariableConnection":
			r.known(k, "powerBond")
			if ends := r.ends(k, "Variable", "Variable"); ends != nil {
				r.causalities(k)
				s.Connections = append(s.Connections, Connection{StartElement: ends[0].element, StartConnector: ends[0].group,
					EndElement: ends[1].element, EndConnector: ends[1].group, SuppressUnitConversion: true, bond: r.bond(k), Place: r.Place(k)})
			}
		case "SignalConnection":
			r.known(k)
			if ends := r.ends(k, "Variable", "Signal"); ends != nil && r.use(k, ends[1]) {
				s.Connections = append(s.Connections, Connection{StartElement: ends[0].element, StartConnector: ends[0].group,
					EndElement: ends[1].element, EndConnector: ends[1].group, SuppressUnitConversion: true, Place: r.Place(k)})
			}
		case "VariableGroupConnection":
			r.known(k, "powerBond")
			if ends := r.ends(k, "VariableGroup", "VariableGroup"); ends != nil {
				r.out.groups = append(r.out.groups, ospGroupConnection{a: ends[0], b: ends[1], bond: r.bond(k), place: r.Place(k)})
			}
		case "SignalGroupConnection":
			r.known(k)
			if ends := r.ends(k, "VariableGroup", "SignalGroup"); ends != nil {
				if signals := r.useGroup(k, ends[1]); signals != nil {
					r.out.groups = append(r.out.groups, ospGroupConnection{a: ends[0], b: ends[1], signals: signals, place: r.Place(k)})
				}
			}
		default:
			r.Unknown(k)
		}
	}
}

// ends reads the two ends of a connection, given by the names of their elements,
// in this order; nil after an error.
func (r *ospReader) ends(n *xmltree.Node, names ...string) []ospGroupEnd {
	ends := make([]ospGroupEnd, 0, 2)
	left := slices.Clone(n.Kids)
	for _, name := range names {
		at := slices.IndexFunc(left, func(k *xmltree.Node) bool { return k.Is(name, nsOSPSystem) })
		if at < 0 {
			r.Add(xmltree.RuleSchema, n, "the connection has no %s and %s", names[0], names[1])
			return nil
		}
		k := left[at]
		left = slices.Delete(left, at, at+1)
		owner, what := "simulator", "simulator"
		if strings.HasPrefix(name, "Signal") {
			owner, what = "function", "function"
			r.known(k, "function", "name")
		} else {
			r.known(k, "simulator", "name", "causality")
		}
		e := ospGroupEnd{r.Need(k, owner), r.Need(k, "name")}
		_, there := r.names[e.element]
		_, isFunction := r.functions[e.element]
		if there = there && isFunction == (what == "function"); !there {
			r.Add(ruleEnd, k, "there is no %s %q", what, e.element)
			return nil
		}
		ends = append(ends, e)
	}
	for _, k := range left {
		r.Add(xmltree.RuleSchema, k, "the connection has more than a %s and a %s", names[0], names[1])
	}
	return ends
}

// causalities checks what a connection says of its ends. The FMUs tell which end
// is the source: in the documents that there are, causality calls the source the
// input of the connection.
func (r *ospReader) causalities(n *xmltree.Node) {
	var given []string
	for _, k := range n.Kids {
		switch c, ok := k.Attr("causality"); {
		case !ok:
		case c != "input" && c != "output":
			r.Add(xmltree.RuleSchema, k, "the causality %q is neither input nor output", c)
		default:
			given = append(given, c)
		}
	}
	if len(given) == 2 && given[0] == given[1] {
		r.Add(ruleOSPPart, n, "both ends have the causality %s; the FMUs tell which of them is the source", given[0])
	}
}

// bond returns the name of the power bond that a connection belongs to, "" if none.
func (r *ospReader) bond(n *xmltree.Node) string {
	name := n.Str("powerBond", "")
	if strings.ContainsAny(name, ",\"\r\n") {
		r.Add(ruleOSP, n, "the name %q of the power bond does not suit a column of results; leave out commas, quotation marks and line breaks", name)
		return ""
	}
	if _, seen := r.out.places[name]; name != "" && !seen {
		r.out.bonds = append(r.out.bonds, name)
		r.out.places[name] = r.Place(n)
	}
	return name
}

// use marks a signal of a function as connected.
func (r *ospReader) use(n *xmltree.Node, e ospGroupEnd) bool {
	f := r.functions[e.element]
	if !slices.Contains(f.inputs, e.group) && !slices.Contains(f.outputs, e.group) {
		r.Add(ruleEnd, n, "the function %q has no signal %q; it has %s", f.name, e.group, few(slices.Concat(f.inputs, f.outputs)))
		return false
	}
	f.used[e.group] = true
	return true
}

// useGroup is use for a group of signals, which it gives; nil after an error.
func (r *ospReader) useGroup(n *xmltree.Node, e ospGroupEnd) []string {
	f := r.functions[e.element]
	signals := f.groups[e.group]
	if signals == nil {
		r.Add(ruleEnd, n, "the function %q has no group of signals %q; a VectorSum has in[0], in[1], … and out", f.name, e.group)
	}
	for _, s := range signals {
		f.used[s] = true
	}
	return signals
}

// few lists names for a message.
func few(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// eccoSettings are the elements of EccoConfiguration that mean a parameter here.
var eccoSettings = []struct{ name, key string }{
	{"SafetyFactor", "control.safety"}, {"StepSize", "control.h0"},
	{"MinimumStepSize", "control.h-min"}, {"MaximumStepSize", "control.h-max"},
	{"MinimumChangeRate", "control.ratio-min"}, {"MaximumChangeRate", "control.ratio-max"},
	{"ProportionalGain", "control.p-gain"}, {"IntegralGain", "control.i-gain"},
	{"RelativeTolerance", "ecco.tolerance"},
}

// algorithm reads the name of the algorithm and the configuration of ECCO.
func (r *ospReader) algorithm(algorithm, ecco *xmltree.Node) {
	s := &r.out.settings
	if algorithm != nil {
		r.known(algorithm)
		source := sourceOSP + " Algorithm"
		switch name := strings.TrimSpace(algorithm.El.Text()); strings.ToLower(name) {
		case "fixedstep":
			s.Algorithm = "explicit"
		case "ecco":
			s.Algorithm = "ecco"
		default:
			r.Add(ruleOSP, algorithm, "the algorithm %q is not known; OSP has fixedStep and ecco", name)
		}
		s.From("algorithm", source, r.Place(algorithm))
	}
	if ecco == nil {
		return
	}
	r.known(ecco)
	if s.Algorithm != "ecco" {
		r.Add(ruleOSPPart, ecco, "EccoConfiguration has no effect: the algorithm is not ecco")
		return
	}
	values, places := map[string]float64{}, map[string]Place{}
	for _, k := range ecco.Kids {
		known := k.Name == "AbsoluteTolerance"
		for _, e := range eccoSettings {
			known = known || e.name == k.Name
		}
		if !known || k.URI != nsOSPSystem {
			r.Unknown(k)
			continue
		}
		if _, twice := values[k.Name]; twice {
			r.Add(xmltree.RuleSchema, k, "there is more than one %s", k.Name)
		}
		if v := r.content(k); v != nil {
			values[k.Name], places[k.Name] = *v, r.Place(k)
		}
	}
	param := func(name, key string, v float64, at Place) {
		s.Params = append(s.Params, Param{Key: key, Value: strconv.FormatFloat(v, 'g', -1, 64), Place: at})
		s.From("param "+key, sourceOSP+" EccoConfiguration "+name, at)
	}
	for _, e := range eccoSettings {
		if v, ok := values[e.name]; ok {
			param(e.name, e.key, v, places[e.name])
		}
	}
	// ECCO of OSP compares δE with atol + rtol |E|; (14) of sadjina with r (E0 + |E|).
	absolute, a := values["AbsoluteTolerance"]
	relative, b := values["RelativeTolerance"]
	switch {
	case a && b && absolute > 0 && relative > 0 && !math.IsInf(absolute/relative, 0) && absolute/relative > 0:
		param("AbsoluteTolerance/RelativeTolerance", "ecco.energy-scale", absolute/relative, places["AbsoluteTolerance"])
	case a:
		r.Add(ruleOSPPart, ecco, "AbsoluteTolerance has no effect: it is the energy scale times RelativeTolerance, and both must be above 0")
	}
}
