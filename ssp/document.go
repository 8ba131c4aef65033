package ssp

import (
	"iter"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Document is one SystemStructureDescription (ssp 9), as written: nothing is
// resolved but the names of units and enumerations, which are those of the file;
// defaults of the standard are filled in.
type Document struct {
	File    string // as shown in findings
	Dir     string // folder against which sources are resolved
	Version string
	Name    string
	// Metadata holds the descriptive attributes of the root element: see MetadataKeys.
	Metadata     map[string]string
	System       *System
	Enumerations []EnumerationType
	Units        []unit.Definition
	Experiment   Experiment
	Annotations  []Annotation

	// Tree is the root element as read, geometry and all; nil: made by hand.
	Tree *etree.Element

	home home // with Dir
}

// Experiment is the DefaultExperiment (ssp 10); nil where absent.
type Experiment struct {
	Start, Stop *float64
	Annotations []Annotation
}

// Annotation is kept raw (ssp 21).
type Annotation struct {
	Type    string
	Content *etree.Element // the Annotation element itself
	Place   Place

	node *xmltree.Node
}

// EnumerationType is an enumeration defined in a file (ssp 18).
type EnumerationType struct {
	Name  string
	Items map[string]int32 // by item name
}

// Element is a *System, a *Component, a *DictionaryReference or a *FunctionElement.
type Element interface{ Base() *Common }

// Common is what all elements of a system have.
type Common struct {
	Name, ID, Description string
	Connectors            []Connector
	Bindings              []Binding
	Annotations           []Annotation
	Place                 Place
}

// Base returns the part that all elements share.
func (c *Common) Base() *Common { return c }

// System contains elements and connects them.
type System struct {
	Common
	Elements     []Element // document order
	Connections  []Connection
	Dictionaries []Dictionary
}

// All returns the system and all elements in it, at any depth, in document order.
func (s *System) All() iter.Seq[Element] {
	return func(yield func(Element) bool) { s.all(yield) }
}

func (s *System) all(yield func(Element) bool) bool {
	if !yield(s) {
		return false
	}
	for _, e := range s.Elements {
		if kid, ok := e.(*System); ok {
			if !kid.all(yield) {
				return false
			}
		} else if !yield(e) {
			return false
		}
	}
	return true
}

// Dictionary is a SignalDictionary of a system (ssp 20). What it holds is loaded,
// also from a file of its own.
type Dictionary struct {
	Name    string
	Source  string // "" if inline
	Signals *SignalDictionary
	Place   Place

	// Content is the element as read; it is written as it is.
	Content *etree.Element
}

// SignalDictionary is an SSB document, inline or not (ssp 20).
type SignalDictionary struct {
	File         string // as shown
	Version      string
	Entries      []Connector // of kind inout, each with a type
	Units        []unit.Definition
	Enumerations []EnumerationType
}

// Component stands for an FMU, or for another system (ssp 12–15).
type Component struct {
	Common
	// Source is the URI as written. HasSource is false for a placeholder.
	Source         string
	HasSource      bool
	Type           string // MIME type
	Implementation string // any, CoSimulation, ModelExchange or ScheduledExecution

	system *System   // what stands for it if it is another system; nil: an FMU or nothing
	within *Document // the file of system

	StepHint *StepHint // of a simulator in a Structure; nil: none
}

// DictionaryReference returns access to a signal dictionary (ssp 20).
type DictionaryReference struct {
	Common
	Dictionary string
}

// Kind is the role of a connector (ssp 17).
type Kind string

// The kinds; the last four exist since version 2.0.
const (
	Input               Kind = "input"
	Output              Kind = "output"
	Parameter           Kind = "parameter"
	CalculatedParameter Kind = "calculatedParameter"
	Inout               Kind = "inout"
	StructuralParameter Kind = "structuralParameter"
	Constant            Kind = "constant"
	Local               Kind = "local"
	AnyKind             Kind = "unspecified"
)

// Connector is one signal at the border of an element (ssp 16–18).
type Connector struct {
	Name, Description string
	Kind              Kind
	Type              ValueType
	Unit              string // of a Real; "" if none is given
	Enumeration       string // name of the type of an Enumeration
	// Array reports that the connector has dimensions (version 2.0).
	Array bool
	Place Place

	face face
}

// face is what a name of a unit or enumeration means in its file. The zero value is
// a signal of which neither is known.
type face struct {
	unitName string
	unit     *unit.Base // nil: not known, unitName is ""
	items    map[string]int32
}

// setUnit takes the unit of another face that has one.
func (f *face) setUnit(of face) {
	if of.unit != nil {
		f.unit, f.unitName = of.unit, of.unitName
	}
}

// Connection joins two connectors. Which end is the source follows from the
// kinds, not from start and end (ssp 24). An empty element means this system.
type Connection struct {
	StartElement, StartConnector string
	EndElement, EndConnector     string
	SuppressUnitConversion       bool
	Transformation               *Transformation // nil if none
	Indexed                      bool            // connects single entries of arrays (version 2.0)
	Annotations                  []Annotation
	Bond                         string // power bond that it belongs to, "" if none
	Place                        Place
}

// TransformationKind is a kind of transformation (ssp 29).
type TransformationKind uint8

// The kinds, in the order of the elements of the standard.
const (
	Linear TransformationKind = iota
	BooleanMapping
	IntegerMapping
	EnumerationMapping
)

// Transformation changes a value on its way (ssp 29). Linear: target =
// Factor·value + Offset. The mappings replace the values in their table and
// pass the others unchanged.
type Transformation struct {
	Kind           TransformationKind
	Factor, Offset float64
	Numbers        map[int32]int32   // Boolean (0, 1) and Integer
	Names          map[string]string // Enumeration, by item name
	Place          Place
}

// Binding is a ParameterBinding (ssp 33). Its set and mapping are loaded, also
// from files of their own.
type Binding struct {
	Source     string // "" if inline
	Type       string // MIME type
	SourceBase string // SSD or component
	Prefix     string
	Set        *ParameterSet
	Mapping    *ParameterMapping // nil if there is none
	Place      Place
}

// ParameterSet is an SSV document, inline or not (ssp 39).
type ParameterSet struct {
	File          string // as shown
	Version, Name string
	Parameters    []ParameterValue
	Units         []unit.Definition
	Enumerations  []EnumerationType

	Unmatched *diag.Rule     // broken by a name that matches nothing; nil: SD14
	Tree      *etree.Element // the set as read; nil: made by hand
}

// ParameterValue is one Parameter of a set.
type ParameterValue struct {
	Name        string
	Value       Value
	Unit        string
	Enumeration string // name of the enumeration type; "" if not given
	// Array reports that the value has dimensions or is a list (version 2.0).
	Array bool
	Place Place

	face face
}

// ParameterMapping is an SSM document, inline or not (ssp 34).
type ParameterMapping struct {
	File    string
	Version string
	Entries []MappingEntry

	Tree *etree.Element // the mapping as read; nil: made by hand
}

// MappingEntry applies the parameter Source under the name Target.
type MappingEntry struct {
	Source, Target         string
	SuppressUnitConversion bool
	Transformation         *Transformation
	Place                  Place
}
