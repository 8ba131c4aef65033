package description

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// maxDepth bounds the nesting of elements, which only annotations can have.
const maxDepth = 100

// reader reads one modelDescription.xml in a single pass and then checks the
// rules. It uses the raw tokens of encoding/xml: FMI needs no namespaces, and
// resolving them would cost a fifth of the time.
//
// Each method for an element gets its start tag and reads up to its end tag.
// The start tag is valid until the next call of child.
type reader struct {
	dec  *xml.Decoder
	src  *source
	file string
	err  error // ends the reading: not well-formed, or the file cannot be read

	open  []level          // elements that are open
	start xml.StartElement // of the innermost one
	line  int              // of its start tag
	end   int64            // offset of the end tag read last

	opaque int // > 0 inside elements that are skipped or kept as raw XML

	options ReadOptions
	three   bool    // FMI 3.0
	single  bool    // numbers of the innermost open element are Float32
	started []start // values of the start attribute read last, or of the Start elements
	several []several
	refs    map[uint32]span
	ordinal []int // of the element of each variable in ModelVariables of FMI 3.0, from 0; nil = its index

	documented   map[uint32]int64 // start values of structural parameters that the options change, by reference
	dependencies int              // number of all dependencies after the expansion of arrays

	list   diag.List
	groups map[*diag.Rule]*group

	d        *ModelDescription
	chunks   [][]ScalarVariable // the variables while they are read
	given    []given            // of each variable
	lines    struct{ units, types []int }
	places   struct{ outputs, derivatives, initialUnknowns []place } // of the unknowns
	sections map[string]int                                          // line of each child of the root
	numbers  []float64                                               // memory of min, max and nominal

	// For the rules on the whole document.
	unitOf, typeOf map[string]int  // first index by name
	undefined      map[string]bool // units reported already
	isState        []bool          // variables that have a derivative
}

// level is an open element and its place among its siblings.
type level struct {
	name     xml.Name
	ordinal  int
	children int
}

// given is a set of attributes that the document has, possibly with the default value.
type given uint8

const (
	givenVariability given = 1 << iota
	givenInitial
	givenRelative
	givenUnbounded
	givenName
	givenReference
)

// place is an element of a list: its line, and its number among the siblings.
type place struct{ line, ordinal int }

// ReadOptions change how a document is read.
type ReadOptions struct {
	// Structure has sizes of arrays: values of structural parameters of FMI 3.0, by name.
	// They become the start values of these parameters. An array whose size they change
	// has no start value.
	Structure map[string]uint64
}

// Read is ReadWith without options.
func Read(r io.Reader, name string, l *diag.List) (*ModelDescription, error) {
	return ReadWith(r, name, l, ReadOptions{})
}

// ReadWith reads a modelDescription.xml (checklist 12–28, fmi3 1–14); findings refer to it by
// name. It appends its findings to l, which may be nil; l.Strict selects strict
// mode. It returns either a description or an error: an error of r, or a
// *diag.ListError with all violations that make the document unusable.
//
// Several violations of one rule make one finding with their number, unless
// they are errors. If a document breaks the schema, no other rules are checked.
func ReadWith(r io.Reader, name string, l *diag.List, o ReadOptions) (*ModelDescription, error) {
	p := &reader{
		file:     name,
		options:  o,
		groups:   map[*diag.Rule]*group{},
		sections: map[string]int{},
		d:        &ModelDescription{VariableNamingConvention: "flat"},
	}
	if l != nil {
		p.list.Strict = l.Strict
	}
	p.read(r)
	p.finishFindings()
	if l != nil {
		l.Append(&p.list)
	}
	if p.err != nil && !errors.Is(p.err, errStop) {
		return nil, p.err
	}
	if err := p.list.Err(); err != nil {
		return nil, err
	}
	p.d.hideClocks()
	return p.d, nil
}

// hideClocks makes Clocks local: they have no value to exchange or record.
func (d *ModelDescription) hideClocks() {
	for i := range d.Variables {
		if v := &d.Variables[i]; v.Clock != nil {
			v.Clock.Causality, v.Causality = v.Causality, Local
		}
	}
	d.Outputs = slices.DeleteFunc(d.Outputs, func(u Unknown) bool { return d.Variables[u.Index-1].Clock != nil })
}

// errStop ends the reading; a finding has the reason.
var errStop = errors.New("stop")

func (p *reader) read(r io.Reader) {
	src, err := newSource(r)
	var unsupported encodingError
	var pointer pointerError
	switch {
	case errors.As(err, &pointer):
		p.add(ruleSchema.WithRemedy(diag.FetchPointer), "/", 0, "", "%v", err)
		p.err = errStop
		return
	case errors.As(err, &unsupported):
		p.syntax(1, "%v", err)
		return
	case err != nil:
		p.err = fmt.Errorf("%s: %w", p.file, err)
		return
	}
	p.src = src
	if src.encoding != "" {
		p.add(ruleEncoding, "/", 1, "", "the document is in %s, not in UTF-8", src.encoding)
	}
	p.dec = xml.NewDecoder(src)
	p.dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // converted by src
	e, ok := p.child()
	switch {
	case ok && e.Name.Local == "fmiModelDescription" && e.Name.Space == "":
		p.root(e)
	case ok:
		p.add(ruleSchema, p.path(""), p.line, "", "the root element is %s, not fmiModelDescription", clip(e.Name.Local))
		p.err = errStop
	case p.err == nil:
		p.add(ruleSchema, "/", 0, "", "the document has no element")
		p.err = errStop
	}
	if p.err == nil {
		if _, ok := p.child(); ok {
			p.add(ruleSchema, p.path(""), p.line, "", "the document has a second root element")
			p.err = errStop
		}
	}
	// Missing values would cause false findings of the other rules.
	if p.err == nil && p.groups[ruleSchema] == nil && p.groups[ruleNotANumber] == nil && p.groups[ruleWidth] == nil {
		p.check()
	}
}

// child returns the start tag of the next child of the innermost open element. It
// returns false after the end tag of that element, or after an error.
func (p *reader) child() (*xml.StartElement, bool) {
	for p.err == nil {
		line, _ := p.dec.InputPos()
		offset := p.dec.InputOffset()
		t, err := p.dec.RawToken()
		if err != nil {
			p.stop(err, line)
			break
		}
		switch t := t.(type) {
		case xml.StartElement:
			p.line = line
			p.start = t
			if len(p.open) == maxDepth {
				p.syntax(line, "elements are nested deeper than %d", maxDepth)
				break
			}
			ordinal := 1
			if n := len(p.open); n > 0 {
				p.open[n-1].children++
				ordinal = p.open[n-1].children
			}
			p.open = append(p.open, level{name: t.Name, ordinal: ordinal})
			p.unique(t.Attr)
			return &p.start, true
		case xml.EndElement:
			n := len(p.open) - 1
			if n < 0 || p.open[n].name != t.Name {
				p.syntax(line, "unexpected end tag %s", clip(t.Name.Local))
				break
			}
			p.open = p.open[:n]
			p.end = offset
			return nil, false
		case xml.CharData:
			if len(p.open) > 0 && p.opaque == 0 && len(bytes.TrimLeft(t, " \t\r\n")) > 0 {
				p.add(ruleUnknown, p.path(""), line, "", "unexpected text between elements")
			}
		}
	}
	return nil, false
}

// children reads the children of the innermost open element and its end tag.
func (p *reader) children(yield func(*xml.StartElement) bool) {
	for e, ok := p.child(); ok && yield(e); e, ok = p.child() {
	}
}

// each reads the children of the innermost open element by their names. Others are not known here.
func (p *reader) each(read map[string]func(*xml.StartElement)) {
	for e := range p.children {
		if known := read[e.Name.Local]; known != nil && e.Name.Space == "" {
			known(e)
		} else {
			p.unknownElement(e)
		}
	}
}

// once is the reading of an element that is known only once.
func (p *reader) once(read func(*xml.StartElement)) func(*xml.StartElement) {
	again := false
	return func(e *xml.StartElement) {
		if again {
			p.unknownElement(e)
			return
		}
		again = true
		read(e)
	}
}

// stop ends the reading after an error of the decoder.
func (p *reader) stop(err error, line int) {
	var s *xml.SyntaxError
	switch {
	case errors.As(err, &s):
		p.syntax(s.Line, "the document is not well-formed: %s", s.Msg)
	case errors.Is(err, io.EOF):
		if len(p.open) > 0 {
			p.syntax(line, "the document ends inside %s", p.open[len(p.open)-1].name.Local)
		}
	case strings.HasPrefix(err.Error(), "xml: "): // unsupported XML version or encoding
		p.syntax(line, "%s", strings.TrimPrefix(err.Error(), "xml: "))
	default:
		p.err = fmt.Errorf("%s: line %d: %w", p.file, line, err)
	}
}

func (p *reader) syntax(line int, format string, args ...any) {
	p.add(ruleSchema, p.path(""), line, "", format, args...)
	p.err = errStop
}

// unique reports duplicate attributes, which the decoder accepts.
func (p *reader) unique(attrs []xml.Attr) {
	var seen map[xml.Name]bool
	if len(attrs) > 64 { // comparing all pairs would take too long
		seen = make(map[xml.Name]bool, len(attrs))
	}
	for i := range attrs {
		name := attrs[i].Name
		if seen[name] || seen == nil && slices.ContainsFunc(attrs[:i], func(a xml.Attr) bool { return a.Name == name }) {
			p.syntax(p.line, "the document is not well-formed: duplicate attribute %s", clip(name.Local))
			return
		}
		if seen != nil {
			seen[name] = true
		}
	}
}

// skip reads up to the end tag of the innermost open element.
func (p *reader) skip() {
	p.opaque++
	defer func() { p.opaque-- }()
	for range p.children {
		p.skip()
	}
}

// none reads an element that has no children.
func (p *reader) none() { p.each(nil) }

// unknownElement reports and skips an element that the schema does not have here. FMI 3.0 has Annotations
// nearly everywhere.
func (p *reader) unknownElement(e *xml.StartElement) {
	if p.three && e.Name.Local == "Annotations" && e.Name.Space == "" {
		p.skip()
		return
	}
	p.add(ruleUnknown, p.path(""), p.line, "", "the element %s is not known here", clip(e.Name.Local))
	p.skip()
}

// local returns the name of an attribute, "" if it belongs to another namespace.
func local(a *xml.Attr) string {
	if a.Name.Space != "" {
		return ""
	}
	return a.Name.Local
}

// unknownAttribute reports an attribute that the schema does not have.
func (p *reader) unknownAttribute(a *xml.Attr) {
	if a.Name.Space == "" && a.Name.Local != "xmlns" {
		p.add(ruleUnknown, p.path(""), p.line, "", "the attribute %s is not known here", clip(a.Name.Local))
	}
}

// required reports a missing attribute.
func (p *reader) required(present bool, attribute string) {
	if !present {
		p.add(ruleSchema, p.path(""), p.line, "", "the attribute %s is missing", attribute)
	}
}

// raw returns the content of the innermost open element as XML in UTF-8, and
// reads its end tag.
func (p *reader) raw() string {
	start := p.dec.InputOffset()
	p.src.recording, p.src.record = true, p.src.record[:0]
	p.skip()
	p.src.recording = false
	if p.err != nil {
		return ""
	}
	// The decoder makes up an end tag for <Tool name="x"/>.
	return string(p.src.record[:min(p.end-start, int64(len(p.src.record)))])
}

// path returns the path of the innermost open element, or of one of its attributes.
func (p *reader) path(attribute string) string {
	if len(p.open) == 0 {
		return "/"
	}
	var b strings.Builder
	for i := range p.open {
		b.WriteByte('/')
		b.WriteString(clip(p.open[i].name.Local))
		switch p.open[i].name.Local {
		case "ScalarVariable", "Unknown", "Unit", "DisplayUnit", "SimpleType", "Item", "Category", "Tool", "File":
		default:
			if !p.three || i != 2 {
				continue
			}
		}
		fmt.Fprintf(&b, "[%d]", p.open[i].ordinal)
	}
	if attribute != "" {
		b.WriteString("/@")
		b.WriteString(attribute)
	}
	return b.String()
}

// clip shortens text of the document for a message.
func clip(s string) string { return diag.Clip(s, 60) }

// group counts the violations of one rule.
type group struct {
	last  int // index of the finding that represents those not listed
	count int // listed
	more  int // not listed
	names []string
}

// The first errors of a rule are separate findings; warnings share one finding.
const (
	errorsListed = 20
	namesListed  = 8
)

// add reports a violation of r. A finding for several violations lists their
// subjects, for example names of variables; "" is not listed.
func (p *reader) add(r *diag.Rule, path string, line int, subject, format string, args ...any) {
	g := p.groups[r]
	if g == nil {
		g = &group{}
		p.groups[r] = g
	}
	bound := 1
	if p.list.LevelOf(r) == diag.Error {
		bound = errorsListed
	}
	if g.count < bound {
		g.last = len(p.list.Findings)
		g.count++
		p.list.Add(r, p.file, path, line, format, args...)
		return
	}
	g.more++
	if subject != "" && len(g.names) < namesListed {
		g.names = append(g.names, clip(subject))
	}
}

// finishFindings completes the findings for several violations, and sorts all by line.
func (p *reader) finishFindings() {
	for _, g := range p.groups {
		if g.more == 0 {
			continue
		}
		text := fmt.Sprintf("; %d more places break this rule", g.more)
		if g.more == 1 {
			text = "; one more place breaks this rule"
		}
		if len(g.names) > 0 {
			text += ": " + strings.Join(g.names, ", ")
			if g.more > len(g.names) {
				text += ", …"
			}
		}
		p.list.Findings[g.last].Message += text
	}
	slices.SortStableFunc(p.list.Findings, func(a, b diag.Finding) int { return a.Line - b.Line })
}
