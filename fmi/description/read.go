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

// reader reads one modelDescription.xml. It goes through the document once,
// with the tokens of encoding/xml but without its namespaces, which FMI does
// not use and which cost a fifth of the time; then the rules are checked on
// what was read.
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

	opaque int // > 0 in elements that are passed over or kept as they are

	list   diag.List
	groups map[*diag.Rule]*group

	d        *ModelDescription
	chunks   [][]ScalarVariable // the variables while they are read
	given    []given            // of each variable
	lines    struct{ units, types, outputs, derivatives, initialUnknowns []int }
	sections map[string]int // line of each child of the root
	numbers  []float64      // where min, max and nominal stand

	// For the rules on the whole document.
	unitOf, typeOf map[string]int  // first index by name
	undefined      map[string]bool // units reported already
	displays       map[display]bool
	categories     map[string]bool
	isState        []bool // variables that have a derivative
}

// level is an open element and its place among its siblings.
type level struct {
	name     xml.Name
	ordinal  int
	children int
}

// given says which attributes stand in the document, where the value alone does not tell.
type given uint8

const (
	givenVariability given = 1 << iota
	givenInitial
	givenRelative
	givenUnbounded
	givenMultipleSet
	givenReinit
)

// Read reads a modelDescription.xml (checklist 12–28) whose name is
// used in findings. The findings go to l, which may be nil and whose Strict
// says how strict the reading is. It gives a description or an error, never
// both: a *diag.ListError with all violations that forbid the use of the
// document, or what r said.
//
// Several violations of one rule are one finding, which counts them, unless
// they are errors. A document that breaks the schema is not judged further.
func Read(r io.Reader, name string, l *diag.List) (*ModelDescription, error) {
	p := &reader{
		file:       name,
		groups:     map[*diag.Rule]*group{},
		sections:   map[string]int{},
		categories: map[string]bool{},
		displays:   map[display]bool{},
		d:          &ModelDescription{VariableNamingConvention: "flat"},
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
	return p.d, nil
}

// errStop ends the reading after a finding that says why.
var errStop = errors.New("stop")

func (p *reader) read(r io.Reader) {
	src, err := newSource(r)
	var unsupported encodingError
	switch {
	case errors.As(err, &unsupported):
		p.syntax(1, "%v", err)
		return
	case err != nil:
		p.err = fmt.Errorf("%s: %w", p.file, err)
		return
	}
	p.src = src
	if src.encoding != "" {
		p.add(ruleEncoding, "/", 1, "", "the document is in %s and not in UTF-8", src.encoding)
	}
	p.dec = xml.NewDecoder(src)
	p.dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // converted by src
	e, ok := p.child()
	switch {
	case ok && e.Name.Local == "fmiModelDescription" && e.Name.Space == "":
		p.root(e)
	case ok:
		p.add(ruleSchema, p.path(""), p.line, "", "the root element is %s and not fmiModelDescription", clip(e.Name.Local))
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
	// Where values are missing the other rules would find what is not so.
	if p.err == nil && p.groups[ruleSchema] == nil && p.groups[ruleNotANumber] == nil {
		p.check()
	}
}

// child returns the start tag of the next child of the innermost open element. If
// there is none, it has read the end tag; after an error it gives none either.
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
				p.syntax(line, "the end tag %s closes nothing", clip(t.Name.Local))
				break
			}
			p.open = p.open[:n]
			p.end = offset
			return nil, false
		case xml.CharData:
			if len(p.open) > 0 && p.opaque == 0 && len(bytes.TrimLeft(t, " \t\r\n")) > 0 {
				p.add(ruleUnknown, p.path(""), line, "", "text stands between the elements")
			}
		}
	}
	return nil, false
}

// stop ends the reading at an error of the decoder.
func (p *reader) stop(err error, line int) {
	var s *xml.SyntaxError
	switch {
	case errors.As(err, &s):
		p.syntax(s.Line, "the document is not well-formed: %s", s.Msg)
	case errors.Is(err, io.EOF):
		if len(p.open) > 0 {
			p.syntax(line, "the document ends inside %s", p.open[len(p.open)-1].name.Local)
		}
	case strings.HasPrefix(err.Error(), "xml: "): // an XML version or encoding it does not take
		p.syntax(line, "%s", strings.TrimPrefix(err.Error(), "xml: "))
	default:
		p.err = fmt.Errorf("%s: line %d: %w", p.file, line, err)
	}
}

func (p *reader) syntax(line int, format string, args ...any) {
	p.add(ruleSchema, p.path(""), line, "", format, args...)
	p.err = errStop
}

// unique checks that no attribute stands twice, which the decoder does not.
func (p *reader) unique(attrs []xml.Attr) {
	if len(attrs) > 64 {
		seen := make(map[xml.Name]bool, len(attrs))
		for i := range attrs {
			if seen[attrs[i].Name] {
				p.syntax(p.line, "the document is not well-formed: the attribute %s stands twice", clip(attrs[i].Name.Local))
				return
			}
			seen[attrs[i].Name] = true
		}
		return
	}
	for i := range attrs {
		for k := range i {
			if attrs[k].Name == attrs[i].Name {
				p.syntax(p.line, "the document is not well-formed: the attribute %s stands twice", clip(attrs[i].Name.Local))
				return
			}
		}
	}
}

// skip reads up to the end tag of the innermost open element.
func (p *reader) skip() {
	p.opaque++
	defer func() { p.opaque-- }()
	for {
		if _, ok := p.child(); !ok {
			return
		}
		p.skip()
	}
}

// none reads an element that has no children.
func (p *reader) none() {
	for {
		e, ok := p.child()
		if !ok {
			return
		}
		p.unknownElement(e)
	}
}

// unknownElement passes over an element that does not belong where it stands.
func (p *reader) unknownElement(e *xml.StartElement) {
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

// unknownAttribute reports an attribute that the schema does not know.
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

// raw reads up to the end tag of the innermost open element and gives what
// stands before it as it is, in UTF-8.
func (p *reader) raw() string {
	start := p.dec.InputOffset()
	p.src.recording, p.src.record = true, p.src.record[:0]
	p.skip()
	p.src.recording = false
	if p.err != nil {
		return ""
	}
	// <Tool name="x"/> makes an end tag out of nothing.
	return string(p.src.record[:min(p.end-start, int64(len(p.src.record)))])
}

// path returns the place of the innermost open element, or of an attribute of it.
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
			fmt.Fprintf(&b, "[%d]", p.open[i].ordinal)
		}
	}
	if attribute != "" {
		b.WriteString("/@")
		b.WriteString(attribute)
	}
	return b.String()
}

// clip shortens a text from the document for a message.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// group is the violations of one rule beyond those listed.
type group struct {
	last  int // index in the list of the finding that stands for the others
	count int // listed
	more  int // not listed
	names []string
}

// Errors are listed one by one up to a bound, everything else once.
const (
	errorsListed = 20
	namesListed  = 8
)

// add reports a violation. The subject is what the place is called, for the
// finding that stands for several; it may be "".
func (p *reader) add(r *diag.Rule, path string, line int, subject, format string, args ...any) {
	g := p.groups[r]
	if g == nil {
		g = &group{}
		p.groups[r] = g
	}
	bound := 1
	if r.Level == diag.Error || r.Strict && p.list.Strict {
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

// finishFindings completes the findings that stand for several, and sorts all.
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
