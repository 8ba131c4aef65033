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

// Dialect is the support for the documents of one tool (ssp 42–45). Every field but Name may be
// empty. If several dialects give a setting, the first counts.
type Dialect struct {
	Name string
	// Native: it is that of macrostep, which comes first. Its settings need no report.
	Native bool
	// New returns a reader of annotations. Each Flatten calls it.
	New func() Annotations
	// Format is a document that the tool uses in place of an SSD.
	Format *Format
	// Source returns the file of an FMU whose URI demands a separate process.
	Source func(uri string) (file string, ok bool)
	// Prefixes maps prefixes that documents may leave undeclared to namespaces.
	Prefixes map[string]string
	// Rules lists the rules of the dialect, beyond those of this package.
	Rules []*diag.Rule
}

// Site is the place of an annotation.
type Site uint8

// The sites at which dialects read annotations.
const (
	AtExperiment Site = iota // DefaultExperiment
	AtSystem                 // the outermost System
	AtComponent
	AtConnection
)

// Annotations reads the annotations of one tool in one system, and collects their settings.
type Annotations interface {
	// Read reads an annotation; taken is false if the tool has none of this type at the site.
	// At a component, given by its path, it returns the steps of the component.
	// Errors are findings of RuleForeignPart, settings without effect of RuleForeign.
	Read(r *Reader, a Annotation, at Site, path string) (hints []StepHint, taken bool)
	// Settings is called after all annotations have been read. It returns settings, each with
	// its source, to be used where the annotation of macrostep does not give them. leads is
	// true if no earlier dialect gives a macro step.
	Settings(components []*FlatComponent, leads bool, l *diag.List) []Asked
}

// Recorder is implemented by Annotations that select the recorded variables.
type Recorder interface {
	Annotations
	// Record returns names "component.variable" and their source.
	Record(s *Resolved) (names []string, from string, at Place)
}

// Resolved is a package with the variables of its FMUs.
type Resolved struct {
	*Package
	List      *diag.List    // for findings
	Variables []VariableSet // by component, then by function
	Given     bool          // an annotation of macrostep selects the recorded variables
}

// Format is a document of a tool that describes a system in its own way.
type Format struct {
	File string // name in a folder or package without SystemStructure.ssd
	Root string // name of the root element
	// Read converts the document. Errors go to the list of r.
	Read func(r *Reader, root *Node, name string) (*Document, Structure)
}

// Structure holds the content of a document of a Format that a Document cannot hold. Such documents
// do not declare the connectors of components.
type Structure interface {
	// Settings returns the settings of the run, each with its source.
	Settings() []Asked
	// Connect is called by each Flatten. It returns connections of the outermost system that
	// depend on the FMUs. judge is called with the network if its connections are sound; it
	// may report findings and add power bonds.
	Connect(s *Resolved) (more []Connection, judge func(*Network))
}

// ReadUnits reads a list of units and reports errors in it.
func ReadUnits(r *Reader, n *Node) []unit.Definition {
	p := &parser{Reader: *r}
	return p.units(n)
}
