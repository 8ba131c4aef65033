package ssp

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Node is an element of a document. Reader reads a document and reports on it.
type (
	Node   = xmltree.Node
	Reader = xmltree.Reader
)

// Dialect is what one tool adds to the standard (ssp 42–45). Every field but Name may be
// empty. Of several dialects that give a setting the first counts.
type Dialect struct {
	Name string
	// New makes a reader of annotations, for each Flatten.
	New func() Annotations
	// Format is a document that the tool has in place of an SSD.
	Format *Format
	// Source returns the FMU behind a URI with which the tool asks for a process of its own.
	Source func(uri string) (file string, ok bool)
	// Prefixes are namespaces by the prefix that documents may leave undeclared.
	Prefixes map[string]string
	// Rules lists the rules that the dialect reports, beside those of this package.
	Rules []*diag.Rule
}

// Site is where an annotation is.
type Site uint8

// The sites whose annotations dialects are asked for.
const (
	AtExperiment Site = iota // DefaultExperiment
	AtSystem                 // the outermost System
	AtComponent
	AtConnection
)

// Annotations reads the annotations of one tool in one system, and keeps their settings.
type Annotations interface {
	// Read takes an annotation; taken is false if the tool has none of this type there.
	// The steps are macro steps; at a component, named by its path, they are its own.
	// Read reports errors with RuleForeignPart, and what has no effect with RuleForeign.
	Read(r *Reader, a Annotation, at Site, path string) (steps []StepHint, taken bool)
	// Settings is called when all annotations are read. It returns settings, each with its
	// source, for what the annotation of macrostep leaves open. leads reports that no
	// earlier dialect gives a macro step.
	Settings(components []*FlatComponent, leads bool, l *diag.List) OwnSettings
}

// Recorder is implemented by Annotations that select the recorded variables.
type Recorder interface {
	Annotations
	// Record returns names "component.variable", and where they come from.
	Record(s *Resolved) (names []string, from SettingSource)
}

// Resolved is a package whose FMUs are known.
type Resolved struct {
	*Package
	List      *diag.List    // for findings
	Variables []VariableSet // by component, then by function
	Given     bool          // an annotation of macrostep selects the recorded variables
}

// Format is a document of a tool that describes a system in a way of its own.
type Format struct {
	File string // name in a folder or package without SystemStructure.ssd
	Root string // name of the root element
	// Read turns the document into one like those of SSP. Errors go to the list of r.
	Read func(r *Reader, root *Node, name string) (*Document, Structure)
}

// Structure is what a document of a Format holds beside its Document. Nothing in such a
// document declares the connectors of components.
type Structure interface {
	// Settings returns the settings of the run and its macro steps, each with its source.
	Settings() (OwnSettings, []StepHint)
	// Connect is called by each Flatten. It returns connections of the outermost system
	// that depend on the FMUs. judge is called with the network when its connections are
	// sound; it may report on them and add power bonds.
	Connect(s *Resolved) (more []Connection, judge func(*Network))
}

// ReadUnits reads a list of units and reports errors in it.
func ReadUnits(r *Reader, n *Node) []unit.Definition {
	p := &parser{Reader: *r}
	return p.units(n)
}
