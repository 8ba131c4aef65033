package ssp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// OwnType is the type of the annotations of macrostep, OwnVersion the supported version of its settings, and OwnNamespace
// that of its elements (ssp 46).
const (
	OwnType      = "com.github.macrostep"
	OwnVersion   = "1"
	OwnNamespace = xmltree.Own
)

// Asked is a setting of the run that a document asks for. Its name and text are those of a flag of macrostep run.
type Asked struct {
	Name, Text string
	Key        string // the parameter, component or bond that the setting is for; "" = none
	File       bool   // Text is the URI of a file; Flatten turns it into a path
	Shown      string // name of the file in messages
	From       string // for example "annotation of macrostep", "com.opensimulationplatform StepSizeHint"
	Place      Place
}

// StepSize is the name of the setting of the macro step. Of several tools, the algorithm is that of the one whose macro step counts.
const StepSize = "step-size"

// Names of other settings that dialects give.
const (
	Algorithm = "algorithm"
	Param     = "param" // "KEY=VALUE"
	Record    = "record"
	rate      = "rate"
)

// Number returns the text of a setting that is a number.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// AskParam returns a parameter of the algorithm.
func AskParam(key, value, from string, at Place) Asked {
	return Asked{Name: Param, Key: key, Text: key + "=" + value, From: from, Place: at}
}

// Node returns the Annotation element.
func (a Annotation) Node() *Node {
	if a.node == nil { // it was not read
		return xmltree.Of(a.Content)
	}
	return a.node
}

// StepHint is the time between steps that a document requests for a component.
type StepHint struct {
	Value  float64 // s
	Source string  // for example "com.opensimulationplatform StepSizeHint"
	Finer  bool    // the step may be a fraction of the macro step
	Place  Place
}

// settings collects the settings in the annotations of a document.
type settings struct {
	l        *diag.List
	dialects []Annotations
	native   []bool  // by dialect: it is that of macrostep
	asked    []Asked // in order of precedence
	own      int     // number of those of macrostep
	lead     string  // first source of a macro step of another tool; "" = there is none
	// Types of unknown annotations: their numbers, first places and order.
	counted map[string]int
	first   map[string]Place
	types   []string
}

// experiment reads the annotations at the document, at the DefaultExperiment and at the outermost
// system (ssp 42–46).
func (s *settings) experiment(d *Document) {
	for _, a := range d.Experiment.Annotations {
		s.tool(a, AtExperiment, "")
	}
	for _, a := range d.System.Annotations {
		s.tool(a, AtSystem, "")
	}
	for _, a := range d.Annotations {
		s.unknown(a)
	}
}

// tool passes an annotation to the first dialect that takes it, and returns the steps of a component.
func (s *settings) tool(a Annotation, at Site, path string) []StepHint {
	for _, d := range s.dialects {
		if hints, taken := d.Read(&newParser(s.l, a.Place.File).Reader, a, at, path); taken {
			return hints
		}
	}
	if at == AtExperiment || at == AtComponent {
		s.note(a)
	} else {
		s.unknown(a)
	}
	return nil
}

// unknown notes an annotation at a place where no tool has settings.
func (s *settings) unknown(a Annotation) {
	if a.Type == OwnType {
		s.l.Report(RuleOwn, a.Place, noPlace)
		return
	}
	s.note(a)
}

// noPlace is the message about the annotation of macrostep in a place where it has no effect.
const noPlace = "the annotation of macrostep is not allowed here; ms:Settings belongs to the DefaultExperiment, ms:Component to a Component"

// note counts an annotation without effect.
func (s *settings) note(a Annotation) {
	if s.counted == nil {
		s.counted, s.first = make(map[string]int), make(map[string]Place)
	}
	if s.counted[a.Type] == 0 {
		s.types = append(s.types, a.Type)
		s.first[a.Type] = a.Place
	}
	s.counted[a.Type]++
}

// report reports the annotations of note, one finding for each type.
func (s *settings) report() {
	for _, t := range s.types {
		more := ""
		if n := s.counted[t]; n > 1 {
			more = " (" + strconv.Itoa(n) + " times; this is the first)"
		}
		s.l.Report(RuleForeign, s.first[t], "the annotation %q is not known here and has no effect%s", t, more)
	}
}

// finish collects the settings of the dialects.
func (s *settings) finish(components []*FlatComponent) {
	for i, d := range s.dialects {
		s.add(d.Settings(components, s.lead == "", s.l), s.native[i])
	}
}

// add adds the settings of a tool, except those that are given already, and reports them unless the tool is macrostep. Parameters
// belong to the algorithm of the same tool, and that to its macro step.
func (s *settings) add(list []Asked, native bool) {
	before := slices.Clip(s.asked)
	find := func(in []Asked, name, key string) *Asked {
		if i := slices.IndexFunc(in, func(a Asked) bool { return a.Name == name && a.Key == key }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	lead := s.lead
	others := find(before, Algorithm, "") != nil || lead != "" && find(list, Algorithm, "") != nil // parameters are for another algorithm
	told := map[string]bool{}
	for _, a := range list {
		was := find(before, a.Name, a.Key)
		id := a.Name + " " + a.Key
		switch {
		case a.Name == Param && others:
		case was == nil && a.Name == Algorithm && lead != "":
			s.l.Report(RuleForeignPart, a.Place, "%s of %s is ignored: the algorithm is taken from the tool that gives the macro step: %s",
				a, a.From, lead)
		case was != nil && !told[id]:
			rule := RuleForeignPart // two tools disagree
			if slices.ContainsFunc(before[:s.own], func(b Asked) bool { return b.Name == a.Name && b.Key == a.Key }) {
				rule = RuleTaken
			}
			s.l.Report(rule, a.Place, "%s of %s is ignored: %s counts", a, a.From, was.From)
		case was == nil:
			s.asked = append(s.asked, a)
			if !native {
				s.l.Report(RuleTaken, a.Place, "%s is taken from %s", a, a.From)
			}
		}
		told[id] = true
		if a.Name == StepSize && !native && s.lead == "" {
			s.lead = a.From
		}
	}
	if native {
		s.own = len(s.asked)
	}
}

// Value returns the text without the key.
func (a Asked) Value() string { return strings.TrimPrefix(a.Text, a.Key+"=") }

// String returns the setting as a flag.
func (a Asked) String() string { return "--" + a.Name + " " + a.Text }

// hints reports the steps that other tools give a component. A rate in the annotation of macrostep
// overrides them.
func (s *settings) hints(c *FlatComponent) {
	own := slices.ContainsFunc(s.asked, func(a Asked) bool { return a.Name == rate && a.Key == c.Path })
	for i, h := range c.StepHints {
		switch {
		case own:
			s.l.Report(RuleTaken, h.Place, "%s (%v s) is ignored: the rate of component %q in the annotation of macrostep counts",
				h.Source, h.Value, c.Path)
		case i > 0:
			s.l.Report(RuleForeignPart, h.Place, "%s (%v s) is ignored: %s counts", h.Source, h.Value, c.StepHints[0].Source)
		default:
			s.l.Report(RuleTaken, h.Place, "component %q steps every %v s, rounded to suit the macro step: taken from %s",
				c.Path, h.Value, h.Source)
		}
	}
}
