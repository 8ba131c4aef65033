package ssp

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Node is an element of a document, Reader what reads one and reports on it.
type (
	Node   = xmltree.Node
	Reader = xmltree.Reader
)

// Dialect is what one tool adds to the standard (ssp 42–45). Of several dialects the first
// counts.
type Dialect struct {
	Name string
	New  func() Annotations // for each Flatten
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

// Annotations reads the annotations of one tool in one system, and keeps what they say.
type Annotations interface {
	// Read takes an annotation; taken is false if the tool has none of this type there.
	// The steps are macro steps, at a component, named by its path, those of its own.
	// What is wrong is reported with RuleForeignPart, what has no effect with RuleForeign.
	Read(r *Reader, a Annotation, at Site, path string) (steps []StepHint, taken bool)
	// Settings is called when all annotations are read, and returns what counts where the
	// annotation of macrostep leaves it open, each with its source. leads reports that no
	// dialect before gives a macro step.
	Settings(components []*FlatComponent, leads bool, l *diag.List) OwnSettings
}

// Recorder is implemented by Annotations that tell which variables are recorded.
type Recorder interface {
	Annotations
	// Record returns names "component.variable", and where they come from.
	Record(s *Selection) (names []string, from SettingSource)
}

// Selection is a flattened system to choose variables from.
type Selection struct {
	List       *diag.List
	Root       *Document
	Components []*FlatComponent
	Variables  []VariableSet // by component
	Given      bool          // another annotation tells what is recorded
	// Open reads a file that the document refers to; file is its name for findings.
	Open func(uri string) (data []byte, file string, err error)
}
