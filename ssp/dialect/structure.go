package dialect

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The system structure of OSP (Open Simulation Platform), OspSystemStructure.xml. It is read
// as libcosim reads it, into a Document like that of an SSP.
const (
	ospDocumentName = "OspSystemStructure.xml"
	ospRoot         = "OspSystemStructure"
	nsOSPSystem     = "http://opensimulationplatform.com/MSMI/OSPSystemStructure"
	ospVersion      = "0.1"
	sourceOSP       = "OspSystemStructure"
)

// mostFunctionSignals limits the number of signals of a function.
const mostFunctionSignals = 10_000

// ospStructure is the content of a structure that a Document cannot hold.
type ospStructure struct {
	names  map[string]ssp.Place // of simulators and functions
	groups []ospGroupConnection
	asked  []ssp.Asked
	bonds  []string // names in order of appearance
	places map[string]ssp.Place
}

// ospGroupConnection connects two groups of variables, or one to the signals of a function. The
// groups are in the model descriptions of OSP.
type ospGroupConnection struct {
	a, b    ospEnd
	signals []string // of b if that is a function, else nil
	bond    string
	place   ssp.Place
}

// Settings returns macro step, algorithm and parameters.
func (o *ospStructure) Settings() []ssp.Asked { return o.asked }

// ospEnd is a variable, a signal or a group.
type ospEnd struct{ element, name string }

func (e ospEnd) String() string { return e.element + "." + e.name }

// readStructure reads a system structure of OSP.
func readStructure(p *ssp.Reader, root *ssp.Node, name string) (*ssp.Document, ssp.Structure) {
	r := &ospReader{Reader: p, functions: map[string]*ospFunction{}}
	if !root.Is(ospRoot, nsOSPSystem) {
		r.Add(xmltree.RuleSchema, root, "the root element is %q of namespace %q, not %s of %q", root.El.FullTag(),
			root.URI, ospRoot, nsOSPSystem)
		return nil, nil
	}
	r.out = &ospStructure{names: map[string]ssp.Place{}, places: map[string]ssp.Place{}}
	return r.document(root, name), r.out
}

// ospReader turns a structure of OSP into a Document.
type ospReader struct {
	*ssp.Reader
	functions map[string]*ospFunction
	order     []*ospFunction
	out       *ospStructure
}

// ospFunction is a function and the use of its signals.
type ospFunction struct {
	name, kind      string
	place           ssp.Place
	inputs, outputs []string // signals
	groups          map[string][]string
	used            map[string]bool
	factor, offset  float64 // of a linear transformation
}

// ospElements are the elements of a structure.
var ospElements = []string{"Description", "StartTime", "EndTime", "BaseStepSize", "Algorithm", "Simulators", "Functions",
	"Connections", "EccoConfiguration"}

func (r *ospReader) document(n *ssp.Node, name string) *ssp.Document {
	d := &ssp.Document{File: r.File, Version: r.Need(n, "version"), Name: name, Metadata: map[string]string{}, Tree: n.El}
	d.System = &ssp.System{Common: ssp.Common{Name: name, Place: r.Place(n)}}
	if d.Version != "" && d.Version != ospVersion {
		r.Add(ruleOSPPart, n, "version %q is not known; the structure is read as version %s", d.Version, ospVersion)
	}
	known(r.Reader, n, "version")
	kid := map[string]*ssp.Node{}
	for _, k := range n.Kids {
		switch {
		case k.URI != nsOSPSystem || !slices.Contains(ospElements, k.Name):
			r.Unknown(k)
		case kid[k.Name] != nil:
			r.Add(xmltree.RuleSchema, k, "there is more than one %s", k.Name)
		default:
			kid[k.Name] = k
		}
	}
	if k := kid["Description"]; k != nil {
		d.Metadata["description"] = strings.TrimSpace(k.El.Text())
	}
	start, stop, step := r.content(kid["StartTime"]), r.content(kid["EndTime"]), r.content(kid["BaseStepSize"])
	if d.Experiment.Start, d.Experiment.Stop = start, stop; start != nil && stop != nil && *stop <= *start {
		r.Add(xmltree.RuleSchema, n, "EndTime %v is not after StartTime %v", *stop, *start)
	}
	if k := kid["BaseStepSize"]; step != nil && *step <= 0 {
		r.Add(xmltree.RuleSchema, k, "the step size %v is not above 0", *step)
	} else if step != nil {
		r.out.asked = append(r.out.asked, ssp.Asked{Name: ssp.StepSize, Text: ssp.Number(*step), From: sourceOSP + " BaseStepSize", Place: r.Place(k)})
	}
	if k := kid["Simulators"]; k != nil {
		r.simulators(k, d.System)
	} else {
		r.Add(xmltree.RuleSchema, n, "there are no Simulators")
	}
	if k := kid["Functions"]; k != nil {
		r.readFunctions(k)
	}
	if k := kid["Connections"]; k != nil {
		r.connections(k, d.System)
	}
	r.placeFunctions(d.System)
	r.algorithm(kid["Algorithm"], kid["EccoConfiguration"])
	return d
}

// known reports attributes of an element that are not in a list.
func known(r *ssp.Reader, n *ssp.Node, names ...string) {
	for _, a := range n.El.Attr {
		if a.Space == "" && a.Key != "xmlns" && !slices.Contains(names, a.Key) {
			r.Add(xmltree.RuleUnknown, n, "the attribute %q is not known here and is ignored", a.Key)
		}
	}
}

// content returns the number in the text of an element, nil if there is none.
func (r *ospReader) content(n *ssp.Node) *float64 {
	if n == nil {
		return nil
	}
	known(r.Reader, n)
	v, err := xmltree.ParseReal(n.El.Text())
	if err != nil {
		r.Add(xmltree.RuleSchema, n, "%v", err)
		return nil
	}
	return &v
}

// name returns the name of a simulator or function, and reports one that is used already.
func (r *ospReader) name(n *ssp.Node) string {
	name := r.Need(n, "name")
	if first, twice := r.out.names[name]; twice {
		r.Add(ssp.RuleName, n, "another simulator or function is called %q too, in line %d", name, first.Line)
	}
	if _, there := n.Attr("name"); there && name == "" {
		r.Add(ssp.RuleName, n, "the name is empty")
	}
	r.out.names[name] = r.Place(n)
	return name
}

func (r *ospReader) simulators(n *ssp.Node, s *ssp.System) {
	for k := range r.Each(n, "Simulator", nsOSPSystem) {
		known(r.Reader, k, "name", "source", "stepSize")
		c := &ssp.Component{Common: ssp.Common{Name: r.name(k), Place: r.Place(k)}, Source: r.Need(k, "source"), HasSource: true,
			Type: ssp.MIMEFMU, Implementation: "any"}
		if text, ok := k.Attr("source"); ok && text == "" {
			r.Add(xmltree.RuleSchema, k, "the source is empty")
		}
		if step := r.Number(k, "stepSize"); step != nil && *step > 0 {
			c.StepHint = &ssp.StepHint{Value: *step, Source: sourceOSP + " stepSize", Place: r.Place(k)}
		} else if step != nil && *step < 0 {
			r.Add(xmltree.RuleSchema, k, "the step size %v is below 0", *step)
		}
		for kk := range r.Each(k, "InitialValues", nsOSPSystem) {
			if set := r.initialValues(kk); len(set.Parameters) > 0 {
				c.Bindings = append(c.Bindings, ssp.Binding{Type: ssp.MIMESet, SourceBase: "SSD", Set: set, Place: r.Place(kk)})
			}
		}
		s.Elements = append(s.Elements, c)
	}
}

func (r *ospReader) initialValues(n *ssp.Node) *ssp.ParameterSet {
	set := &ssp.ParameterSet{File: r.File, Name: "InitialValues", Unmatched: ruleOSPName}
	seen := map[string]int{}
	for k := range r.Each(n, "InitialValue", nsOSPSystem) {
		known(r.Reader, k, "variable")
		v := ssp.ParameterValue{Name: r.Need(k, "variable"), Place: r.Place(k)}
		if first, twice := seen[v.Name]; twice {
			r.Add(ssp.RuleTwice, k, "the variable %q has two initial values, first in line %d", v.Name, first)
		} else {
			seen[v.Name] = k.Line
		}
		if len(k.Kids) != 1 || k.Kids[0].URI != nsOSPSystem {
			r.Add(xmltree.RuleSchema, k, "the variable %q has %d values instead of one", v.Name, len(k.Kids))
			continue
		}
		value := k.Kids[0]
		known(r.Reader, value, "value")
		text, err := r.Need(value, "value"), error(nil)
		switch value.Name {
		case "Real":
			v.Value.Type = ssp.Real
			v.Value.Real, err = xmltree.ParseValue(text)
		case "Integer":
			v.Value.Type = ssp.Integer
			v.Value.Int, err = xmltree.ParseInteger(text, 32)
		case "Boolean":
			v.Value.Type = ssp.Boolean
			v.Value.Bool, err = xmltree.ParseBoolean(text)
		case "String":
			v.Value = ssp.Value{Type: ssp.String, Text: text}
		case "Enumeration": // a number; the schema has none
			v.Value.Type = ssp.Integer
			v.Value.Int, err = xmltree.ParseInteger(text, 32)
		default:
			r.Add(xmltree.RuleSchema, value, "the type is %q; it must be Real, Integer, Boolean or String", value.Name)
			continue
		}
		if _, there := value.Attr("value"); err != nil && there {
			r.Add(ssp.RuleValue, value, "the initial value of %q: %v", v.Name, err)
		}
		set.Parameters = append(set.Parameters, v)
	}
	return set
}

func (r *ospReader) readFunctions(n *ssp.Node) {
	for _, k := range n.Kids {
		f := &ospFunction{kind: k.Name, place: r.Place(k), groups: map[string][]string{}, used: map[string]bool{}}
		switch {
		case k.Is("LinearTransformation", nsOSPSystem):
			known(r.Reader, k, "name", "factor", "offset")
			f.inputs, f.outputs = []string{"in"}, []string{"out"}
			f.factor, f.offset = r.NumberOr(k, "factor", 1), r.NumberOr(k, "offset", 0)
		case k.Is("Sum", nsOSPSystem):
			known(r.Reader, k, "name", "inputCount")
			f.outputs = []string{"out"}
			for i := range r.count(k, "inputCount", 1) {
				f.inputs = append(f.inputs, fmt.Sprintf("in[%d]", i))
			}
		case k.Is("VectorSum", nsOSPSystem):
			known(r.Reader, k, "name", "inputCount", "dimension")
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

// count returns a number of signals, 0 after a finding. times is the factor for the limit.
func (r *ospReader) count(n *ssp.Node, key string, times int) int {
	text := r.Need(n, key)
	v, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || v < 1 || v > mostFunctionSignals/max(times, 1) {
		if _, there := n.Attr(key); there {
			r.Add(xmltree.RuleSchema, n, "%s=%q is not a whole number above 0, or the function has more than %d signals",
				key, text, mostFunctionSignals)
		}
		return 0
	}
	return v
}

// placeFunctions makes elements of the functions. A linear transformation becomes a system with one
// connection, so that flattening merges it with the connections through it; sums follow the
// simulators.
func (r *ospReader) placeFunctions(s *ssp.System) {
	for _, f := range r.order {
		free := slices.DeleteFunc(slices.Clone(f.inputs), func(in string) bool { return f.used[in] })
		switch {
		case len(f.used) == 0:
			r.List.Report(ruleOSPPart, f.place, "the function %q is left out: nothing is connected to it", f.name)
			continue
		case !slices.ContainsFunc(f.outputs, func(out string) bool { return f.used[out] }):
			r.List.Report(ruleOSPPart, f.place, "the function %q has no effect: its output is not connected", f.name)
		case len(free) > 0:
			r.List.Report(ruleOSP, f.place, "the function %q has unconnected inputs: %s", f.name, diag.Some(free))
		}
		common := ssp.Common{Name: f.name, Place: f.place}
		for i, name := range slices.Concat(f.inputs, f.outputs) {
			kind := ssp.Input
			if i >= len(f.inputs) {
				kind = ssp.Output
			}
			common.Connectors = append(common.Connectors, ssp.Connector{Name: name, Kind: kind, Type: ssp.Real, Place: f.place})
		}
		if f.kind == "LinearTransformation" {
			s.Elements = append(s.Elements, f.linear(common))
			continue
		}
		function := ssp.Function{Inputs: f.inputs, Outputs: f.outputs, Place: f.place}
		width := len(f.outputs)
		for j := range f.outputs {
			var terms []int
			for i := j; i < len(f.inputs); i += width {
				terms = append(terms, i)
			}
			function.Terms = append(function.Terms, terms)
		}
		s.Elements = append(s.Elements, &ssp.FunctionElement{Common: common, Function: function})
	}
}

// linear returns a linear transformation as a system.
func (f *ospFunction) linear(common ssp.Common) *ssp.System {
	return &ssp.System{Common: common, Connections: []ssp.Connection{{
		StartConnector: "in", EndConnector: "out", SuppressUnitConversion: true, Place: f.place,
		Transformation: &ssp.Transformation{Kind: ssp.Linear, Factor: f.factor, Offset: f.offset, Place: f.place},
	}}}
}

// connect returns a connection of two variables. OSP converts no units.
func connect(from, to ospEnd, bond string, at ssp.Place) ssp.Connection {
	return ssp.Connection{StartElement: from.element, StartConnector: from.name, EndElement: to.element, EndConnector: to.name,
		SuppressUnitConversion: true, Bond: bond, Place: at}
}

func (r *ospReader) connections(n *ssp.Node, s *ssp.System) {
	for _, k := range n.Kids {
		if k.URI != nsOSPSystem {
			r.Unknown(k)
			continue
		}
		switch k.Name {
		case "VariableConnection":
			known(r.Reader, k, "powerBond")
			if ends := r.ends(k, "Variable", "Variable"); ends != nil {
				r.causalities(k)
				s.Connections = append(s.Connections, connect(ends[0], ends[1], r.bond(k), r.Place(k)))
			}
		case "SignalConnection":
			known(r.Reader, k)
			if ends := r.ends(k, "Variable", "Signal"); ends != nil && r.use(k, ends[1]) {
				s.Connections = append(s.Connections, connect(ends[0], ends[1], "", r.Place(k)))
			}
		case "VariableGroupConnection":
			known(r.Reader, k, "powerBond")
			if ends := r.ends(k, "VariableGroup", "VariableGroup"); ends != nil {
				r.out.groups = append(r.out.groups, ospGroupConnection{a: ends[0], b: ends[1], bond: r.bond(k), place: r.Place(k)})
			}
		case "SignalGroupConnection":
			known(r.Reader, k)
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

// ends reads the two ends of a connection, elements with these names in this order; nil after an
// error.
func (r *ospReader) ends(n *ssp.Node, names ...string) []ospEnd {
	ends := make([]ospEnd, 0, 2)
	left := slices.Clone(n.Kids)
	for _, name := range names {
		at := slices.IndexFunc(left, func(k *ssp.Node) bool { return k.Is(name, nsOSPSystem) })
		if at < 0 {
			r.Add(xmltree.RuleSchema, n, "the connection has no %s and %s", names[0], names[1])
			return nil
		}
		k := left[at]
		left = slices.Delete(left, at, at+1)
		owner := "simulator"
		if strings.HasPrefix(name, "Signal") {
			owner = "function"
			known(r.Reader, k, owner, "name")
		} else {
			known(r.Reader, k, owner, "name", "causality")
		}
		e := ospEnd{r.Need(k, owner), r.Need(k, "name")}
		_, there := r.out.names[e.element]
		if _, isFunction := r.functions[e.element]; !there || isFunction != (owner == "function") {
			r.Add(ssp.RuleEnd, k, "there is no %s %q", owner, e.element)
			return nil
		}
		ends = append(ends, e)
	}
	for _, k := range left {
		r.Add(xmltree.RuleSchema, k, "the connection has more elements than a %s and a %s", names[0], names[1])
	}
	return ends
}

// causalities checks the causalities in a connection. They do not determine the source, because
// known documents call the source the input of the connection.
func (r *ospReader) causalities(n *ssp.Node) {
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
		r.Add(ruleOSPPart, n, "both ends have the causality %s; the FMUs determine the source", given[0])
	}
}

// bond returns the name of the power bond of a connection, "" if none.
func (r *ospReader) bond(n *ssp.Node) string {
	name := n.Str("powerBond", "")
	if strings.ContainsAny(name, ",\"\r\n") {
		r.Add(ruleOSP, n,
			"the name %q of the power bond cannot be part of a column name; remove commas, quotation marks and line breaks", name)
		return ""
	}
	if _, seen := r.out.places[name]; name != "" && !seen {
		r.out.bonds = append(r.out.bonds, name)
		r.out.places[name] = r.Place(n)
	}
	return name
}

// use marks a signal of a function as connected.
func (r *ospReader) use(n *ssp.Node, e ospEnd) bool {
	f := r.functions[e.element]
	if !slices.Contains(f.inputs, e.name) && !slices.Contains(f.outputs, e.name) {
		r.Add(ssp.RuleEnd, n, "the function %q has no signal %q; it has %s", f.name, e.name, diag.Some(slices.Concat(f.inputs, f.outputs)))
		return false
	}
	f.used[e.name] = true
	return true
}

// useGroup marks a group of signals as connected, and returns it; nil after an error.
func (r *ospReader) useGroup(n *ssp.Node, e ospEnd) []string {
	f := r.functions[e.element]
	signals := f.groups[e.name]
	if signals == nil {
		r.Add(ssp.RuleEnd, n, "the function %q has no group of signals %q; a VectorSum has in[0], in[1], … and out", f.name, e.name)
	}
	for _, s := range signals {
		f.used[s] = true
	}
	return signals
}

// eccoSetting is an element of EccoConfiguration and its parameter, "" if that depends on another
// element too.
type eccoSetting struct{ name, key string }

var eccoSettings = []eccoSetting{
	{"SafetyFactor", "control.safety"}, {"StepSize", "control.h0"},
	{"MinimumStepSize", "control.h-min"}, {"MaximumStepSize", "control.h-max"},
	{"MinimumChangeRate", "control.ratio-min"}, {"MaximumChangeRate", "control.ratio-max"},
	{"ProportionalGain", "control.p-gain"}, {"IntegralGain", "control.i-gain"},
	{"RelativeTolerance", "ecco.tolerance"}, {"AbsoluteTolerance", ""},
}

// algorithm reads the name of the algorithm and the configuration of ECCO.
func (r *ospReader) algorithm(algorithm, ecco *ssp.Node) {
	s, preset := r.out, ""
	if algorithm != nil {
		known(r.Reader, algorithm)
		source := sourceOSP + " Algorithm"
		switch name := strings.TrimSpace(algorithm.El.Text()); strings.ToLower(name) {
		case "fixedstep":
			preset = "explicit"
		case "ecco":
			preset = "ecco"
		default:
			r.Add(ruleOSP, algorithm, "the algorithm %q is not known; OSP has fixedStep and ecco", name)
		}
		if preset != "" {
			s.asked = append(s.asked, ssp.Asked{Name: ssp.Algorithm, Text: preset, From: source, Place: r.Place(algorithm)})
		}
	}
	if ecco == nil {
		return
	}
	known(r.Reader, ecco)
	if preset != "ecco" {
		r.Add(ruleOSPPart, ecco, "EccoConfiguration has no effect: the algorithm is not ecco")
		return
	}
	values, places := map[string]float64{}, map[string]ssp.Place{}
	for _, k := range ecco.Kids {
		known := slices.ContainsFunc(eccoSettings, func(e eccoSetting) bool { return e.name == k.Name })
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
	param := func(name, key string, v float64, at ssp.Place) {
		s.asked = append(s.asked, ssp.AskParam(key, ssp.Number(v), sourceOSP+" EccoConfiguration "+name, at))
	}
	for _, e := range eccoSettings {
		if v, ok := values[e.name]; ok && e.key != "" {
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
		r.Add(ruleOSPPart, ecco, "AbsoluteTolerance has no effect: the energy scale is AbsoluteTolerance/RelativeTolerance, "+
			"so both must be above 0")
	}
}
