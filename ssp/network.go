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

// Variable is what a Resolver says of one FMU variable.
type Variable struct {
	Name string
	Type ValueType // Real, Integer, Boolean, String or Enumeration
	// Causality, Variability and Initial as in modelDescription.xml, defaults
	// of the standard filled in.
	Causality, Variability, Initial string
	Unit                            string     // "" if none
	UnitBase                        *unit.Base // nil if the dimension is not known
	RelativeQuantity                bool
	Items                           map[string]int32 // of an Enumeration, by name
	Min, Max                        *float64         // of Real and Integer; nil if unbounded
	// Settable reports that the variable takes a value before the run: an input,
	// or not constant and initial exact or approx (ssp 38).
	Settable bool
}

func (to *Variable) face() face { return face{to.Unit, to.UnitBase, to.Items} }

// VariableSet returns the variables of one FMU.
type VariableSet interface {
	Lookup(name string) (Variable, bool)
	All() iter.Seq[Variable]
}

// Named is what a VariableSet may be, too: it knows the modelName of its FMU, by which
// dialects find files beside it.
type Named interface{ ModelName() string }

// UnitSet is what a VariableSet may be, too: it knows the units that its FMU defines, by
// name; nil = not known.
type UnitSet interface {
	Unit(name string) *unit.Base
}

// Resolver knows the FMU behind a component. An error that wraps
// fs.ErrNotExist is reported as a missing file, with a hint where the file may be.
type Resolver interface {
	Variables(c *FlatComponent) (VariableSet, error)
}

// FlatComponent is one FMU instance of the flattened system.
type FlatComponent struct {
	Path           string // by which it goes in results: Joined, or Quoted where that is ambiguous
	Joined         string // names from the outermost system down, as parameter sets have them: "SuT.edrive_mass"
	Quoted         string // the same with each name in quotes, which means nothing else: "'SuT'.'edrive_mass'"
	URI            string // source as written
	Source         string // absolute path of the FMU; "" if Problem is set
	Shown          string // the same as the user knows it: "system.ssp/resources/a.fmu"
	Type           string // MIME type
	Implementation string // any, CoSimulation, ModelExchange or ScheduledExecution; the caller decides
	Connectors     []Connector
	Place          Place
	// Problem says why there is no FMU that could be opened; nil if there is none.
	Problem error

	// Stateless is set by Flatten: the annotation of macrostep says that the
	// outputs depend on the inputs of the same instant only.
	Stateless bool
	// Isolate is set by Flatten: the annotation of macrostep at the component asks
	// for a process of its own.
	Isolate bool
	// Quirks is set by Flatten: the names that the annotation of macrostep at the
	// component gives; the caller knows what they mean.
	Quirks []string
	// StepHints is set by Flatten: the steps that other tools give this component.
	StepHints []StepHint

	problemRule *diag.Rule
	home        home // of the document that names the FMU
	proxy       bool // the source asks for a process of its own
}

// proxied returns the file behind a source with which a tool asks for a process of its own.
func (p *Package) proxied(source string) (file string, ok bool) {
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

// Function is a sum of Reals that counts in a network like an FMU. Its outputs are
// functions of its inputs at the same instant. Its signals have no unit.
type Function struct {
	Path            string // set by Open
	Inputs, Outputs []string
	Terms           [][]int // for each output the inputs whose sum it is
	Place           Place
}

// FunctionElement is a Function among the elements of a system.
type FunctionElement struct {
	Common   // with a Connector for each signal, inputs first
	Function Function
}

// functionVariables shows the signals of a function like the variables of an FMU.
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
	Component int // index in Network.Components, behind them that in Network.Functions
	Variable  string
}

// FlatConnection leads an FMU output to an FMU input, through whatever
// connectors of systems lie between (ssp 27); or a calculated parameter to an input,
// or to a parameter, which takes its value during the initialisation (ssp 28).
type FlatConnection struct {
	From, To FlatEnd
	// Type is that of the target.
	Type ValueType
	// Gain and Offset give a Real input: u = Gain·y + Offset, conversion of
	// units and linear transformations composed along the path (ssp 30).
	// 1 and 0 for every other type.
	Gain, Offset float64
	// Map gives an Integer, Enumeration or Boolean (0, 1) input; values not in
	// it pass unchanged. nil if there is nothing to replace.
	Map   map[int32]int32
	Via   []string // connectors of systems on the way, in the direction of the signal
	Bond  string   // power bond of the connection at the input, "" if none
	Place Place    // of that connection
}

// Provenance is where a value comes from.
type Provenance struct {
	Place Place  // of the parameter in its set, or of the mapping entry
	Level string // path of the element that has the binding; "" = the outermost system
	Name  string // name under which it was bound
	Value Value  // in the type and unit of the target
	// Bound is the value at what has that name: at a connector of a system it differs
	// from Value by what the connections make of it. It is in the unit of the connector
	// in the document where that stands for a component.
	Bound Value
	// Steps is the way of the value: as written in its set, then after each mapping,
	// conversion of units, transformation and connection, up to Value.
	Steps []Step

	clash *clash // nil: the binding gives no other value under this name
}

// clash is a value that the same binding gives a variable under the same name before.
type clash struct {
	rule  *diag.Rule
	first Provenance
}

// Step is one step of a value on its way to a variable, and what comes out of it.
type Step struct {
	What  string // in words: `parameter "k"`, "km → m", "× 2 + 1"
	Value Value
	Unit  string // of Value, "" if it is not known
	Place Place
}

// At returns the path of what the value is bound to: "component.variable", or
// "system.connector" if it comes from there over connections.
func (p *Provenance) At() string { return strings.TrimPrefix(p.Level+"."+p.Name, ".") }

// Setting returns a variable of an FMU a value before the run.
type Setting struct {
	Component int
	Variable  string
	Value     Value // type and unit of the variable
	From      Provenance
	Overrides []Provenance // weaker values for the same variable, weakest first (ssp 36)
	// Connected reports that the variable is an input fed by an FMU output: the
	// value counts until the first exchange only (ssp 37).
	Connected bool
}

// SystemOutput is an output of the outermost system and the FMU output behind it.
type SystemOutput struct {
	Name         string
	From         FlatEnd
	Gain, Offset float64 // of a Real
}

// SystemInput is an input of the outermost system and an FMU input that it feeds. The
// fields are those of FlatConnection; where the connector has no unit, what is given to
// it counts in that of the first that has one on the way.
type SystemInput struct {
	Name         string
	Quoted       string // Name in quotes, which means nothing else
	To           FlatEnd
	Gain, Offset float64
	Map          map[int32]int32
	Place        Place
}

// Network is a system flattened to FMUs: nothing of SSP is left in it.
type Network struct {
	Name        string
	Components  []*FlatComponent
	Functions   []Function
	Connections []FlatConnection
	Settings    []Setting // by component, then by name
	Experiment  struct{ Start, Stop *float64 }
	// Step holds what the document asks for as macro step, in order of
	// precedence (ssp 47): our annotation, OSP, OMSimulator, OpenMCx.
	Step      []StepHint
	Tolerance *float64 // relativeTolerance of OMSimulator; informative
	Own       OwnSettings
	Outputs   []SystemOutput
	Inputs    []SystemInput // by FMU input, in the order of the connections to them
}

// instance is one element in the tree of systems. A component with an FMU has
// an index, all others have -1. The same system of a document has an instance for
// each component that it stands for.
type instance struct {
	name, path string
	parent     *instance
	element    Element
	system     *System // that it is, or that stands for it; nil if it holds nothing
	index      int
	kids       []*instance
	byName     map[string]*instance
	connectors map[string]*Connector // as the element declares them
	// inside holds the connectors of the system that stands for a component; nil: the
	// instance is no such component.
	inside map[string]*Connector
	// dictionaries holds the signals of the dictionaries of a system: an instance of
	// its own for each, with the entries as connectors, which are both written and read.
	dictionaries map[string]*instance
	// signals is, at a reference, the dictionary, and reader stands for the reference
	// where it is read, since the same connector may be written and read.
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

// Components returns the FMU instances of the system in document order, nested
// systems walked. Placeholders are left out. The components are those of
// Network, so their indices agree.
func (p *Package) Components() []*FlatComponent { return p.components }

// Clone returns a package with the same documents whose components are its own: Flatten, Give
// and Beat do not touch the original, which others may read meanwhile. Only the original is
// to be closed.
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

// builder makes instances.
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
	for i := range connectors {
		m[connectors[i].Name] = &connectors[i]
	}
	return m
}

// build makes the instance of an element of document d, and of all in it.
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

// fill makes the instances in a system.
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
			b.l.Report(ruleReference, e.Place, "the system %q contains itself: by the source %q of component %q", e.system.Name, e.Source, in.path)
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
		c.Problem = fmt.Errorf("component %q has the type %q; FMUs (%s) and systems (%s, %s) can be run", path, e.Type, MIMEFMU, mimeDefinition, mimePackage)
		return c
	}
	var source string
	source, c.proxy = p.proxied(e.Source)
	rel, err := h.locate(source)
	if err != nil {
		c.problemRule, c.Problem = ruleFile, fmt.Errorf("component %q: %w", path, err)
		return c
	}
	c.Source, c.Shown = filepath.Join(h.dir, rel), h.show(rel)
	return c
}
