package ssp

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// Variable describes one FMU variable.
type Variable struct {
	Name string
	Type ValueType // Real, Integer, Boolean, String or Enumeration
	// Causality, Variability and Initial as in modelDescription.xml, with the defaults of the
	// standard filled in.
	Causality, Variability, Initial string
	Unit                            string     // "" if none
	UnitBase                        *unit.Base // nil if the dimension is not known
	RelativeQuantity                bool
	Items                           map[string]int64 // of an Enumeration, by name
	Min, Max                        *float64         // of Real; nil if unbounded
	Low, High                       int64            // range of an Integer or Enumeration; both 0 = that of int64
	MediaType                       string           // of a String that holds a Binary of FMI 3.0; "" = text
	// Settable is true if the variable can be set before the run: an input, or not constant
	// and initial exact or approx (ssp 38).
	Settable bool
}

// isSize reports whether a variable is a structural parameter with whole numbers, which only bindings set.
func (to *Variable) isSize() bool {
	return to.Causality == string(StructuralParameter) && to.Type == Integer
}

// directly returns how a variable is set that no connection sets, as the end of a message.
func (to *Variable) directly() string {
	if to.isSize() {
		return "; bind a value to it at its component, since sizes of arrays are fixed before connections are followed"
	}
	return ""
}

func (to *Variable) face() face { return face{to.Unit, to.UnitBase, to.Items} }

// VariableSet holds the variables of one FMU.
type VariableSet interface {
	Lookup(name string) (Variable, bool)
	All() iter.Seq[Variable]
}

// Named is optionally implemented by a VariableSet. It returns the modelName of the FMU, by which
// dialects find files beside it.
type Named interface{ ModelName() string }

// UnitSet is optionally implemented by a VariableSet. It returns the unit of this name that the FMU
// defines, nil if there is none.
type UnitSet interface {
	Unit(name string) *unit.Base
}

// ArraySet is optionally implemented by a VariableSet. It returns the sizes of an array of FMI 3.0, whose elements are
// the variables name[1,1] and so on; nil if there is none.
type ArraySet interface {
	Sizes(name string) []int
}

// Resolver returns the variables of a component. An error that wraps fs.ErrNotExist is reported as
// a missing file, with a hint to other places.
type Resolver interface {
	Variables(c *FlatComponent) (VariableSet, error)
}

// FlatComponent is one FMU instance of the flattened system.
type FlatComponent struct {
	Path           string // name in results: Joined, or Quoted if Joined is ambiguous
	Joined         string // names from the outermost system down, as in parameter sets: "SuT.edrive_mass"
	Quoted         string // the same with each name in quotes, never ambiguous: "'SuT'.'edrive_mass'"
	URI            string // source as written
	Source         string // absolute path of the FMU; "" if Problem is set
	Shown          string // the same path for messages: "system.ssp/resources/a.fmu"
	Type           string // MIME type
	Implementation string // any, CoSimulation, ModelExchange or ScheduledExecution, for the caller to check
	Connectors     []Connector
	Place          Place
	// Problem is the reason why there is no FMU to open; nil if there is one.
	Problem error

	// Flatten sets the fields below.

	Isolate bool // the source demands a separate process
	// StepHints are the steps that other tools give the component.
	StepHints []StepHint

	problemRule *diag.Rule
	home        home // of the document with the component
	proxy       bool // the source demands a separate process
}

// Proxied returns the file of a source that demands a separate process; ok is false for any other source, which is the file.
func (p *Package) Proxied(source string) (file string, ok bool) {
	for _, d := range p.dialects {
		if d.Source == nil {
			continue
		}
		if file, ok := d.Source(source); ok {
			return file, true
		}
	}
	return source, false
}

// Function is a sum of Reals that acts like an FMU in a network. Its outputs depend on its inputs
// at the same time. Its signals have no unit.
type Function struct {
	Path            string // set by Open
	Inputs, Outputs []string
	Terms           [][]int // for each output, the indices of the inputs in its sum
	Place           Place
}

// FunctionElement is a Function among the elements of a system.
type FunctionElement struct {
	Common   // has a Connector for each signal, inputs first
	Function Function
}

// functionVariables presents the signals of a function as variables of an FMU.
type functionVariables struct{ *instance }

// Lookup finds a signal by its name.
func (s functionVariables) Lookup(name string) (Variable, bool) {
	c := s.connectors[name]
	if c == nil {
		return Variable{}, false
	}
	return Variable{Name: name, Type: Real, Causality: string(c.Kind), Variability: "continuous"}, true
}

// All returns the signals, inputs first.
func (s functionVariables) All() iter.Seq[Variable] {
	return func(yield func(Variable) bool) {
		for _, c := range s.element.Base().Connectors {
			if v, _ := s.Lookup(c.Name); !yield(v) {
				return
			}
		}
	}
}

// FlatEnd is an FMU variable, or a signal of a function.
type FlatEnd struct {
	Component int // index in Network.Components followed by Network.Functions
	Variable  string
}

// FlatConnection connects an FMU output to an FMU input, through any connectors of systems (ssp
// 27); or a calculated parameter to an input or to a parameter, which takes its value during the
// initialization (ssp 28).
type FlatConnection struct {
	From, To FlatEnd
	// Type is that of the target.
	Type ValueType
	// For a Real input, u = Gain·y + Offset: conversions of units and linear transformations
	// composed along the path (ssp 30). 1 and 0 for every other type.
	Gain, Offset float64
	// Map replaces values of an Integer, Enumeration or Boolean (0, 1) input. Others pass
	// unchanged. nil if no value changes.
	Map   map[int64]int64
	Via   []string // connectors of systems on the path, in the direction of the signal
	Bond  string   // power bond of the connection at the input, "" if none
	Place Place    // of that connection
}

// Provenance is the origin of a value.
type Provenance struct {
	Place Place  // of the parameter in its set, or of the mapping entry
	Level string // path of the element that has the binding; "" = the outermost system
	Name  string // name under which it was bound
	Value Value  // in the type and unit of the target
	// Bound is the value at the variable or connector called Name. At a connector it differs from
	// Value by the effect of the connections. Where a system stands for a component, it is in the
	// unit of the connector of the component.
	Bound Value
	// Steps lists the value as written in its set, then after each mapping, conversion of units,
	// transformation and connection, up to Value.
	Steps []Step

	clash *clash // another value of the binding under this name; nil if there is none
}

// clash is an earlier, different value that the same binding gives a variable under the same name.
type clash struct {
	rule  *diag.Rule
	first Provenance
}

// Step is one step of a value to a variable, and the value after it.
type Step struct {
	What  string // in words: `parameter "k"`, "km → m", "× 2 + 1"
	Value Value
	Unit  string // of Value, "" if not known
	Place Place
}

// At returns the path to which the value is bound: "component.variable", or "system.connector" if
// connections pass it on.
func (p *Provenance) At() string { return strings.TrimPrefix(p.Level+"."+p.Name, ".") }

// Setting is the value of an FMU variable before the run.
type Setting struct {
	Component int
	Variable  string
	Value     Value // type and unit of the variable
	From      Provenance
	Overrides []Provenance // weaker values for the same variable, weakest first (ssp 36)
	// Connected is true if an FMU output feeds the variable: the value counts only until the
	// first exchange (ssp 37).
	Connected bool
}

// SystemOutput is an output of the outermost system and the FMU output that feeds it.
type SystemOutput struct {
	Name         string
	From         FlatEnd
	Gain, Offset float64         // of a number
	Map          map[int64]int64 // of other types, as of FlatConnection
	Unit         string          // of the connector; "" = that of From
}

// SystemInput is an input of the outermost system and an FMU input that it feeds. The fields are
// those of FlatConnection. If the connector has no unit, its values are in the first known unit on
// the path.
type SystemInput struct {
	Name         string
	Quoted       string // Name in quotes, never ambiguous
	To           FlatEnd
	Gain, Offset float64
	Map          map[int64]int64
	Place        Place
}

// Network is a system flattened to FMUs, independent of SSP.
type Network struct {
	Name        string
	Components  []*FlatComponent
	Functions   []Function
	Connections []FlatConnection
	Settings    []Setting // by component, then by name
	Experiment  struct{ Start, Stop *float64 }
	Asked       []Asked // settings of the run, each name and key from one source
	Outputs     []SystemOutput
	Inputs      []SystemInput // by FMU input, in the order of the connections to them
}

// instance is one element in the tree of systems. The index is that of a component with an FMU, or
// of a function; -1 for all others. A system that stands for several components has an instance for
// each of them.
type instance struct {
	name, path string
	parent     *instance
	element    Element
	system     *System // the element, or the system that stands for it; nil if it has no content
	index      int
	kids       []*instance
	byName     map[string]*instance
	connectors map[string]*Connector // as the element declares them
	// inside holds the connectors of the system that stands for a component; nil for any
	// other instance.
	inside map[string]*Connector
	// dictionaries holds an instance for each dictionary of a system. Its connectors are the
	// entries, which are both written and read.
	dictionaries map[string]*instance
	// At a reference, signals is the instance of the dictionary. reader represents the reference
	// for reading, because the same connector may be written and read.
	signals, reader *instance
}

// each visits an instance and all below it.
func (in *instance) each(visit func(*instance)) {
	visit(in)
	for _, kid := range in.kids {
		kid.each(visit)
	}
}

func (in *instance) isRoot() bool { return in.parent == nil }

// String names an instance for messages.
func (in *instance) String() string {
	if in.isRoot() {
		return "the outermost system"
	}
	return fmt.Sprintf("%q", in.path)
}

// Components returns the FMU instances of the system and its nested systems, in document order and
// without placeholders. Their indices are those of Network.Components.
func (p *Package) Components() []*FlatComponent { return p.components }

// Clone returns a package with the same documents and its own components: Flatten, Give and Beat do
// not change the original, which may be read at the same time. Only the original needs Close.
func (p *Package) Clone() *Package {
	c := *p
	c.components, c.functions, c.instances, c.cleanup = nil, nil, nil, nil
	c.files = slices.Clip(c.files)
	c.instantiate(&diag.List{})
	return &c
}

// instantiate builds the tree of instances.
func (p *Package) instantiate(l *diag.List) {
	b := &builder{p: p, l: l}
	p.top = b.build(p.Root.System, nil, p.Root)
	for _, in := range b.functions { // behind all components
		in.index = len(p.instances)
		f := in.element.(*FunctionElement).Function
		f.Path = in.path
		p.functions = append(p.functions, f)
		p.instances = append(p.instances, in)
	}
	p.name(nil)
}

// builder makes the tree of instances.
type builder struct {
	p         *Package
	l         *diag.List
	count     int
	functions []*instance
}

// newInstance makes an instance with the connectors of an element.
func newInstance(name string, parent *instance, e Element, connectors []Connector) *instance {
	in := &instance{name: name, parent: parent, element: e, index: -1, connectors: byName(connectors)}
	if parent != nil {
		in.path = strings.TrimPrefix(parent.path+"."+name, ".")
	}
	return in
}

func byName(connectors []Connector) map[string]*Connector {
	m := make(map[string]*Connector, len(connectors))
	for _, c := range elements(connectors) {
		m[c.Name] = c
	}
	return m
}

// build makes the instance of an element of document d, and of all elements in it.
func (b *builder) build(e Element, parent *instance, d *Document) *instance {
	c := e.Base()
	in := newInstance(c.Name, parent, e, c.Connectors)
	b.count++
	switch e := e.(type) {
	case *System:
		b.fill(in, e, d)
	case *Component:
		switch {
		case e.system != nil:
			b.refer(in, e)
		case e.Source != "":
			in.index = len(b.p.components)
			b.p.components = append(b.p.components, b.p.component(e, in.path, &d.home))
			b.p.instances = append(b.p.instances, in)
		}
	case *DictionaryReference:
		b.reference(in, e)
	case *FunctionElement:
		b.functions = append(b.functions, in)
	}
	return in
}

// fill makes the instances of the elements of a system.
func (b *builder) fill(in *instance, s *System, d *Document) {
	in.system = s
	in.dictionaries = make(map[string]*instance, len(s.Dictionaries))
	for i := range s.Dictionaries {
		k := &s.Dictionaries[i]
		in.dictionaries[k.Name] = newInstance(k.Name, in, nil, k.Signals.Entries)
	}
	in.byName = make(map[string]*instance, len(s.Elements))
	for _, k := range s.Elements {
		if b.count >= maxInstances {
			if b.count == maxInstances { // reported once
				b.count++
				b.l.Report(ruleReference, k.Base().Place, "the system unfolds to more than %d elements", maxInstances)
			}
			return
		}
		kid := b.build(k, in, d)
		in.kids = append(in.kids, kid)
		in.byName[kid.name] = kid
	}
}

// refer puts a system in the place of a component (ssp 15).
func (b *builder) refer(in *instance, e *Component) {
	for at := in.parent; at != nil; at = at.parent {
		if at.system == e.system {
			b.l.Report(ruleReference, e.Place, "the system %q contains itself, through the source %q of component %q",
				e.system.Name, e.Source, in.path)
			return
		}
	}
	in.inside = byName(e.system.Connectors)
	b.fill(in, e.system, e.within)
}

// reference finds the dictionary of a reference in the systems around it (ssp 20).
func (b *builder) reference(in *instance, e *DictionaryReference) {
	for at := in.parent; at != nil && in.signals == nil; at = at.parent {
		in.signals = at.dictionaries[e.Dictionary]
	}
	if in.signals == nil {
		b.l.Report(ruleReference, e.Place, "no signal dictionary %q is defined in the systems around %q", e.Dictionary, in.path)
		return
	}
	for i := range e.Connectors {
		if c := &e.Connectors[i]; in.signals.connectors[c.Name] == nil {
			b.l.Report(ruleReference, c.Place, "the signal dictionary %q has no entry %q", e.Dictionary, c.Name)
		}
	}
	in.reader = newInstance(in.name, in.parent, e, e.Connectors)
	in.reader.signals = in.signals
}

func (p *Package) component(e *Component, path string, h *home) *FlatComponent {
	c := &FlatComponent{Path: path, URI: e.Source, Type: e.Type, Implementation: e.Implementation,
		Connectors: e.Connectors, Place: e.Place, home: *h}
	if e.Type != MIMEFMU {
		c.problemRule = ruleReference
		c.Problem = fmt.Errorf("component %q has the type %q; only FMUs (%s) and systems (%s, %s) can be run",
			path, e.Type, MIMEFMU, mimeDefinition, mimePackage)
		return c
	}
	var source string
	source, c.proxy = p.Proxied(e.Source)
	rel, err := h.locate(source)
	if err != nil {
		c.problemRule, c.Problem = ruleFile, fmt.Errorf("component %q: %w", path, err)
		return c
	}
	c.Source, c.Shown = filepath.Join(h.dir, rel), h.show(rel)
	return c
}
