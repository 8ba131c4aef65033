package ssp

import (
	"iter"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Document is one SystemStructureDescription (ssp 9) as written, with the defaults of the standard
// filled in. Only the names of units and enumerations are resolved, with the definitions of the
// file.
type Document struct {
	File    string // name in findings
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

	// Tree is the root element as read; nil if the document was not read.
	Tree *etree.Element

	home home
}

// Experiment is the DefaultExperiment (ssp 10); nil where absent.
type Experiment struct {
	Start, Stop *float64
	Annotations []Annotation
}

// Annotation is an annotation as read (ssp 21).
type Annotation struct {
	Type    string
	Content *etree.Element // the Annotation element itself
	Place   Place

	node *xmltree.Node
}

// EnumerationType is an enumeration defined in a file (ssp 18).
type EnumerationType struct {
	Name  string
	Items map[string]int64 // by item name
}

// Element is a *System, a *Component, a *DictionaryReference or a *FunctionElement.
type Element interface{ Base() *Common }

// Common has the fields of all elements of a system.
type Common struct {
	Name, ID, Description string
	Connectors            []Connector
	Bindings              []Binding
	Annotations           []Annotation
	Place                 Place
}

// Base returns the fields that all elements share.
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

// Dictionary is a SignalDictionary of a system (ssp 20). Its content is loaded, also from a
// separate file.
type Dictionary struct {
	Name    string
	Source  string // "" if inline
	Signals *SignalDictionary
	Place   Place
}

// SignalDictionary is an SSB document, inline or in a file (ssp 20).
type SignalDictionary struct {
	File         string // name in findings
	Version      string
	Entries      []Connector // of kind inout, each with a type
	Units        []unit.Definition
	Enumerations []EnumerationType
}

// Component is an FMU, or a system in a separate file (ssp 12–15).
type Component struct {
	Common
	// Source is the URI as written. HasSource is false for a placeholder.
	Source         string
	HasSource      bool
	Type           string // MIME type
	Implementation string // any, CoSimulation, ModelExchange or ScheduledExecution

	system *System   // the system that stands for it; nil for an FMU or a placeholder
	within *Document // the document of system

	StepHint *StepHint // of a simulator in a Structure; nil if there is none
}

// DictionaryReference gives access to a signal dictionary (ssp 20).
type DictionaryReference struct {
	Common
	Dictionary string
}

// Kind is the role of a connector (ssp 17).
type Kind string

// The kinds of connectors. Those from StructuralParameter on exist since version 2.0.
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

// Connector is one signal of an element (ssp 16–18).
type Connector struct {
	Name, Description string
	Kind              Kind
	Type              ValueType
	Unit              string // of a Real; "" if none is given
	Enumeration       string // name of the type of an Enumeration
	// Array is true if the connector has dimensions (version 2.0).
	Array bool
	Sizes []int // of an array; nil if the document does not give all
	Place Place

	face face
}

// face is the unit and enumeration of a signal, as its file defines them. In the zero value both
// are unknown.
type face struct {
	unitName string
	unit     *unit.Base // nil if not known; unitName is "" then
	items    map[string]int64
}

// setUnit copies the unit of another face if that has one.
func (f *face) setUnit(of face) {
	if of.unit != nil {
		f.unit, f.unitName = of.unit, of.unitName
	}
}

// Connection joins two connectors. The kinds determine which end is the source, not start and end
// (ssp 24). An empty element means this system.
type Connection struct {
	StartElement, StartConnector string
	EndElement, EndConnector     string
	SuppressUnitConversion       bool
	Transformation               *Transformation // nil if none
	StartIndices, EndIndices     []int           // of single elements of arrays, from 1 (version 2.0); nil = the whole
	Annotations                  []Annotation
	Bond                         string // its power bond, "" if none
	Place                        Place
}

// TransformationKind is a kind of transformation (ssp 29).
type TransformationKind uint8

// The kinds of transformations, in the order of xmltree.Transformations.
const (
	Linear TransformationKind = iota
	BooleanMapping
	IntegerMapping
	EnumerationMapping
)

// Transformation changes the values of a signal (ssp 29). Linear: target = Factor·value + Offset.
// The mappings replace the values in their table and pass the others unchanged.
type Transformation struct {
	Kind           TransformationKind
	Factor, Offset float64
	Numbers        map[int64]int64   // Boolean (0, 1) and Integer
	Names          map[string]string // Enumeration, by item name
	Place          Place
}

// Binding is a ParameterBinding (ssp 33). Its set and mapping are loaded, also from separate files.
type Binding struct {
	Source     string // "" if inline
	Type       string // MIME type
	SourceBase string // SSD or component
	Prefix     string
	Set        *ParameterSet
	Mapping    *ParameterMapping // nil if there is none
	Place      Place
}

// ParameterSet is an SSV document, inline or in a file (ssp 39).
type ParameterSet struct {
	File          string // name in findings
	Version, Name string
	Parameters    []ParameterValue
	Units         []unit.Definition
	Enumerations  []EnumerationType

	Unmatched *diag.Rule     // for names that match nothing; nil for SD14
	Tree      *etree.Element // the set as read; nil if it was not read
}

// ParameterValue is one Parameter of a set.
type ParameterValue struct {
	Name        string
	Value       Value
	Unit        string
	Enumeration string // name of the enumeration type; "" if not given
	// Array is true if the value has dimensions or is a list (version 2.0). Its elements are in Values, the last index
	// runs first.
	Array  bool
	Sizes  []int // nil if the document does not give all
	Values []Value
	Place  Place

	face face
}

// ParameterMapping is an SSM document, inline or in a file (ssp 34).
type ParameterMapping struct {
	File    string
	Version string
	Entries []MappingEntry
}

// MappingEntry gives the parameter Source the name Target.
type MappingEntry struct {
	Source, Target         string
	SuppressUnitConversion bool
	Transformation         *Transformation
	Place                  Place
}
