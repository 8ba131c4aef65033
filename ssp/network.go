package ssp

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
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
	// Settable tells that the variable takes a value before the run: an input,
	// or not constant and initial exact or approx (ssp 38).
	Settable bool
}

// VariableSet gives the variables of one FMU.
type VariableSet interface {
	Lookup(name string) (Variable, bool)
	All() iter.Seq[Variable]
}

// Resolver tells about the FMU behind a component. An error that wraps
// fs.ErrNotExist is reported as a missing file, with a hint where the file may be.
type Resolver interface {
	Variables(c *FlatComponent) (VariableSet, error)
}

// FlatComponent is one FMU instance of the flattened system.
type FlatComponent struct {
	Path           string // names from the outermost system down: "SuT.edrive_mass"
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
	proxy       bool // a source of OSP that asks for a process of its own
}

// proxied gives the file behind a source "proxyfmu://localhost?file=a.fmu" of OSP: an
// FMU that a process of its own runs, here on this machine.
func proxied(source string) (file string, ok bool) {
	u, err := url.Parse(source)
	if err != nil || u.Scheme != "proxyfmu" || u.Hostname() != "localhost" {
		return "", false
	}
	file, ok = strings.CutPrefix(u.RawQuery, "file=")
	return file, ok
}

// FlatEnd is an FMU variable, or a signal of a function.
type FlatEnd struct {
	Component int // index in Network.Components, behind them that in Network.Functions
	Variable  string
}

// FlatConnection leads an FMU output to an FMU input, through whatever
// connectors of systems lie between (ssp 27).
type FlatConnection struct {
	From, To FlatEnd
	// Type is that of the input.
	Type ValueType
	// Gain and Offset give a Real input: u = Gain·y + Offset, conversion of
	// units and linear transformations composed along the path (ssp 30).
	// 1 and 0 for every other type.
	Gain, Offset float64
	// Map gives an Integer, Enumeration or Boolean (0, 1) input; values not in
	// it pass unchanged. nil if there is nothing to replace.
	Map   map[int32]int32
	Via   []string // connectors of systems on the way, in the direction of the signal
	Place Place    // of the connection at the input
}

// Provenance tells where a value comes from.
type Provenance struct {
	Place Place  // of the parameter in its set, or of the mapping entry
	Level string // path of the element that has the binding; "" = the outermost system
	Name  string // name under which it was bound
	Value Value  // in the type and unit of the target
}

// Setting gives a variable of an FMU a value before the run.
type Setting struct {
	Component int
	Variable  string
	Value     Value // type and unit of the variable
	From      Provenance
	Overrides []Provenance // weaker values for the same variable, weakest first (ssp 36)
	// Connected tells that the variable is an input fed by an FMU output: the
	// value counts until the first exchange only (ssp 37).
	Connected bool
}

// SystemOutput is an output of the outermost system and the FMU output behind it.
type SystemOutput struct {
	Name         string
	From         FlatEnd
	Gain, Offset float64 // of a Real
}

// Network is a system flattened to FMUs: nothing of SSP is left in it.
type Network struct {
	Name        string
	Components  []*FlatComponent
	Functions   []Function // of OSP
	Connections []FlatConnection
	Settings    []Setting // by component, then by name
	Experiment  struct{ Start, Stop *float64 }
	// Step holds what the document asks for as macro step, in order of
	// precedence (ssp 47): our annotation, OSP, OMSimulator, OpenMCx.
	Step      []StepHint
	Tolerance *float64 // relativeTolerance of OMSimulator; informative
	Own       OwnSettings
	Outputs   []SystemOutput
}

// instance is one element in the tree of systems. A component with an FMU has
// an index, systems and placeholders have -1.
type instance struct {
	name, path string
	parent     *instance
	element    Element
	index      int
	kids       []*instance
	byName     map[string]*instance
	connectors map[string]*Connector
}

func (in *instance) isRoot() bool { return in.parent == nil }

// String names an instance for messages.
func (in *instance) String() string {
	if in.isRoot() {
		return "the outermost system"
	}
	return fmt.Sprintf("%q", in.path)
}

// Components gives the FMU instances of the system in document order, nested
// systems walked. Placeholders are left out. The components are those of
// Network, so their indices agree.
func (p *Package) Components() []*FlatComponent { return p.components }

// instantiate builds the tree of instances.
func (p *Package) instantiate() {
	var functions []*instance
	var build func(e Element, parent *instance) *instance
	build = func(e Element, parent *instance) *instance {
		c := e.Base()
		in := &instance{name: c.Name, parent: parent, element: e, index: -1,
			byName: make(map[string]*instance), connectors: make(map[string]*Connector)}
		if parent != nil {
			in.path = strings.TrimPrefix(parent.path+"."+c.Name, ".")
		}
		for i := range c.Connectors {
			in.connectors[c.Connectors[i].Name] = &c.Connectors[i]
		}
		switch e := e.(type) {
		case *System:
			for _, k := range e.Elements {
				kid := build(k, in)
				in.kids = append(in.kids, kid)
				in.byName[kid.name] = kid
			}
		case *Component:
			if e.Source != "" {
				in.index = len(p.components)
				p.components = append(p.components, p.component(e, in.path))
				p.instances = append(p.instances, in)
			}
		case *functionElement:
			functions = append(functions, in)
		}
		return in
	}
	p.top = build(p.Root.System, nil)
	for _, in := range functions { // behind all components
		in.index = len(p.instances)
		f := *in.element.(*functionElement).function
		f.Path = in.path
		p.functions = append(p.functions, f)
		p.instances = append(p.instances, in)
	}
}

func (p *Package) component(e *Component, path string) *FlatComponent {
	c := &FlatComponent{Path: path, URI: e.Source, Type: e.Type, Implementation: e.Implementation,
		Connectors: e.Connectors, Place: e.Place}
	lower := strings.ToLower(e.Source)
	switch {
	case e.Type == mimeDefinition, e.Type == mimePackage, strings.Contains(lower, "#"),
		strings.HasSuffix(lower, ".ssp"), strings.HasSuffix(lower, ".ssd"):
		c.problemRule = ruleReference
		c.Problem = fmt.Errorf("component %q is another system (%q), and systems in files of their own are not read yet", path, e.Source)
	case e.Type != mimeFMU:
		c.problemRule = ruleReference
		c.Problem = fmt.Errorf("component %q has the type %q; only FMUs (%s) can be run", path, e.Type, mimeFMU)
	default:
		rel, err := p.locate(e.Source)
		if file, ok := proxied(e.Source); ok {
			c.proxy = true
			rel, err = p.locate(file)
		}
		if err != nil {
			c.problemRule, c.Problem = ruleFile, fmt.Errorf("component %q: %w", path, err)
			break
		}
		c.Source, c.Shown = filepath.Join(p.Dir, rel), p.shown(rel)
	}
	return c
}

var errNoVariables = errors.New("the resolver gave no variables")
