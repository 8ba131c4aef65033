package ssp

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
)

// A splicer changes the text of a document in places and leaves all others as they are:
// indentation, order of attributes, quotes, line ends, encoding, byte order mark.
type splicer struct {
	text   []byte // UTF-8, without mark
	mark   bool
	latin1 bool
	root   *node
	spans  []span // by node.index
	edits  []edit
}

// span is where an element stands in the text: from the start of its start tag to the
// end of that, and from the start of its end tag to the end of that. Of an element
// without end tag the last three are equal.
type span struct{ start, opened, closing, end int }

// edit replaces the text between two places.
type edit struct {
	from, to int
	by       string
}

// newSplicer takes a document as it stands in its file.
func newSplicer(raw []byte, file string) (*splicer, error) {
	s := &splicer{}
	var err error
	if s.text, s.latin1, err = decodeDocument(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s.mark = bytes.HasPrefix(raw, []byte("\xef\xbb\xbf"))
	l := &diag.List{}
	if s.root = (&parser{l: l, file: file}).tree(raw); s.root == nil {
		return nil, l.Err()
	}
	if s.spans, err = elementSpans(s.text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// elementSpans gives where the elements of a well-formed document stand, in its order.
func elementSpans(text []byte) ([]span, error) {
	dec := xml.NewDecoder(bytes.NewReader(text))
	dec.CharsetReader = keepCharset
	var spans []span
	var open []int
	for {
		start := int(dec.InputOffset())
		tok, err := dec.RawToken()
		if err == io.EOF {
			return spans, nil
		}
		if err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		switch tok.(type) {
		case xml.StartElement:
			open = append(open, len(spans))
			spans = append(spans, span{start: start, opened: end})
		case xml.EndElement:
			s := &spans[open[len(open)-1]]
			open = open[:len(open)-1]
			s.closing, s.end = start, end
		}
	}
}

// at gives where a node stands.
func (s *splicer) at(n *node) *span { return &s.spans[n.index] }

func (s *splicer) replace(from, to int, by string) { s.edits = append(s.edits, edit{from, to, by}) }

// bytes gives the document as it is to stand in its file.
func (s *splicer) bytes() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range s.edits {
		out = append(append(out, s.text[at:e.from]...), e.by...)
		at = e.to
	}
	out = append(out, s.text[at:]...)
	switch {
	case s.latin1:
		var narrow []byte
		for _, r := range string(out) {
			if r > 0xFF {
				narrow = fmt.Appendf(narrow, "&#x%X;", r)
			} else {
				narrow = append(narrow, byte(r))
			}
		}
		return narrow
	case s.mark:
		return append([]byte("\xef\xbb\xbf"), out...)
	}
	return out
}

// lead gives the white space before an element, as far as the tag or text before it.
func (s *splicer) lead(n *node) string { return s.blanksBefore(s.at(n).start) }

func (s *splicer) blanksBefore(end int) string {
	from := end
	for from > 0 && strings.IndexByte(" \t\r\n", s.text[from-1]) >= 0 {
		from--
	}
	if from > 0 && s.text[from-1] != '>' {
		return ""
	}
	return string(s.text[from:end])
}

// deeper gives the white space before an element in one that has none yet, and before
// the end tag of that.
func (s *splicer) deeper(parent *node) (before, after string) {
	after = s.lead(parent)
	if !strings.Contains(after, "\n") {
		return "", ""
	}
	step := "  "
	if strings.HasSuffix(after, "\t") {
		step = "\t"
	}
	return after + step, after
}

// insert puts elements into a parent behind others, which are named: behind the last
// of them that is there, else first. Each is made for the white space before it.
func (s *splicer) insert(parent *node, behind []string, elements ...func(lead string) string) {
	var last *node
	for _, k := range parent.kids {
		if ours(k.uri) && slices.Contains(behind, k.name) {
			last = k
		}
	}
	all := func(lead string) string {
		var b strings.Builder
		for _, one := range elements {
			b.WriteString(lead + one(lead))
		}
		return b.String()
	}
	at := s.at(parent)
	switch {
	case len(elements) == 0:
	case last != nil:
		s.replace(s.at(last).end, s.at(last).end, all(s.lead(last)))
	case len(parent.kids) > 0:
		s.replace(at.opened, at.opened, all(s.lead(parent.kids[0])))
	case at.opened == at.end: // <a/>
		before, after := s.deeper(parent)
		tag := strings.TrimRight(strings.TrimSuffix(string(s.text[at.start:at.opened]), "/>"), " \t\r\n")
		s.replace(at.start, at.end, tag+">"+all(before)+after+"</"+parent.el.FullTag()+">")
	default:
		before, after := s.deeper(parent)
		if strings.TrimSpace(string(s.text[at.opened:at.closing])) != "" { // a comment
			s.replace(at.opened, at.opened, all(before))
		} else {
			s.replace(at.opened, at.closing, all(before)+after)
		}
	}
}

// set gives an element an attribute, or takes it away with the value "".
func (s *splicer) set(n *node, key, value string) {
	at := s.at(n)
	i := at.start + 1 + len(n.el.FullTag())
	for i < at.opened {
		from := i
		for i < at.opened && strings.IndexByte(" \t\r\n", s.text[i]) >= 0 {
			i++
		}
		name := i
		for i < at.opened && strings.IndexByte(" \t\r\n=/>", s.text[i]) < 0 {
			i++
		}
		if name == i { // the end of the tag
			if value != "" {
				s.replace(from, from, " "+key+"="+quote(value))
			}
			return
		}
		found := string(s.text[name:i]) == key
		for s.text[i] != '"' && s.text[i] != '\'' {
			i++
		}
		open := i
		for i++; s.text[i] != s.text[open]; i++ {
		}
		i++
		switch {
		case found && value == "":
			s.replace(from, i, "")
		case found && s.text[open] == '\'' && !strings.ContainsAny(value, "'"):
			s.replace(open+1, i-1, strings.Trim(quote(value), `"`))
		case found:
			s.replace(open, i, quote(value))
		default:
			continue
		}
		return
	}
}

// quote writes the value of an attribute.
func quote(value string) string {
	return `"` + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;").Replace(value) + `"`
}

// tag gives the name of an element of a namespace below a node, and what declares its
// prefix if nothing does.
func (s *splicer) tag(at *node, uri, name string) (tag, declare string) {
	for n := at; n != nil; n = n.parent {
		if n.uri == uri && resolve(at.el, n.el.Space) == uri {
			return strings.TrimPrefix(n.el.Space+":"+name, ":"), ""
		}
		for _, a := range n.el.Attr {
			if prefix, ok := declaration(a); ok && a.Value == uri && resolve(at.el, prefix) == uri {
				return strings.TrimPrefix(prefix+":"+name, ":"), ""
			}
		}
	}
	prefix := canonical[uri]
	if known := resolve(at.el, prefix); known == "" && at.uri == uri { // undeclared all over, as reading tolerates
		return strings.TrimPrefix(at.el.Space+":"+name, ":"), ""
	}
	return prefix + ":" + name, ` xmlns:` + prefix + `=` + quote(uri)
}

// newElement writes an element in a line of its own below lead, with children that it
// may indent one step deeper.
func newElement(lead, tag, attributes string, children ...func(lead string) string) string {
	if len(children) == 0 {
		return "<" + tag + attributes + "/>"
	}
	inner := lead
	if strings.Contains(lead, "\n") {
		if inner += "  "; strings.HasSuffix(lead, "\t") {
			inner = lead + "\t"
		}
	}
	var b strings.Builder
	b.WriteString("<" + tag + attributes + ">")
	for _, c := range children {
		b.WriteString(inner + c(inner))
	}
	b.WriteString(lead + "</" + tag + ">")
	return b.String()
}

// attribute writes one attribute, with the blank before it.
func attribute(key, value string) string { return " " + key + "=" + quote(value) }

// spliceSet gives parameters of a set values, in its file: those that it has in their
// place, others behind them, and the units that it lacks.
func spliceSet(raw []byte, file string, values []ParameterValue, units []unit.Definition) ([]byte, error) {
	s, err := newSplicer(raw, file)
	if err != nil {
		return nil, err
	}
	var list, unitList *node
	for _, k := range s.root.kids {
		switch {
		case k.is("Parameters", nsSSV):
			list = k
		case k.is("Units", nsSSV):
			unitList = k
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%s: the set has no Parameters", file)
	}
	there := make(map[string]*node)
	var sample *node // how parameters are laid out
	for _, k := range list.kids {
		if k.is("Parameter", nsSSV) {
			there[k.str("name", "")], sample = k, k
		}
	}
	valueTag, declare := s.tag(list, nsSSV, "")
	var added []func(lead string) string
	for i := range values {
		v := &values[i]
		element := func(string) string {
			text := attribute("value", v.Value.String())
			if v.Unit != "" {
				text += attribute("unit", v.Unit)
			}
			return "<" + valueTag + v.Value.Type.String() + text + "/>"
		}
		if n := there[v.Name]; n != nil {
			s.change(n, v, element(""))
			continue
		}
		added = append(added, func(lead string) string {
			attributes := declare + attribute("name", v.Name)
			if sample != nil && len(sample.kids) > 0 && s.lead(sample.kids[0]) == "" { // in one line
				return "<" + valueTag + "Parameter" + attributes + ">" + element("") + "</" + valueTag + "Parameter>"
			}
			return newElement(lead, valueTag+"Parameter", attributes, element)
		})
	}
	s.insert(list, []string{"Parameter"}, added...)
	definition := func(u *unit.Definition) func(lead string) string {
		return func(lead string) string {
			at := list
			if unitList != nil {
				at = unitList
			}
			tag, declare := s.tag(at, nsSSC, "")
			return newElement(lead, tag+"Unit", declare+attribute("name", u.Name), func(string) string {
				return "<" + tag + "BaseUnit" + baseAttributes(u.Base) + "/>"
			})
		}
	}
	var define []func(lead string) string
	for i := range units {
		define = append(define, definition(&units[i]))
	}
	switch {
	case unitList != nil:
		s.insert(unitList, []string{"Unit"}, define...)
	case len(define) > 0:
		s.insert(s.root, []string{"Parameters", "Enumerations"}, func(lead string) string {
			return newElement(lead, valueTag+"Units", declare, define...)
		})
	}
	return s.bytes(), nil
}

// change gives a parameter another value: in its attributes, or by another element where
// it is of another type.
func (s *splicer) change(n *node, v *ParameterValue, element string) {
	for _, k := range n.kids {
		t, _, is := typeByName(k.name)
		if !is || k.uri != nsSSV {
			continue
		}
		if t != v.Value.Type || len(k.kids) > 0 {
			s.replace(s.at(k).start, s.at(k).end, element)
			return
		}
		var was ParameterValue
		(&parser{l: &diag.List{}, v2: true}).parameterValue(k, t, &was)
		if was.Value != v.Value || was.Array {
			s.set(k, "value", v.Value.String())
		}
		if was.Unit != v.Unit {
			s.set(k, "unit", v.Unit)
		}
		if was.Enumeration != v.Enumeration {
			s.set(k, "name", v.Enumeration)
		}
		return
	}
}

// spliceBinding binds a set behind all others of the outermost system, in the file of
// the document.
func spliceBinding(raw []byte, file, source string) ([]byte, error) {
	s, err := newSplicer(raw, file)
	if err != nil {
		return nil, err
	}
	var system *node
	for _, k := range s.root.kids {
		if k.is("System", nsSSD) {
			system = k
		}
	}
	if system == nil {
		return nil, fmt.Errorf("%s: there is no System", file)
	}
	tag, declare := s.tag(system, nsSSD, "")
	binding := func(declare string) func(lead string) string {
		return func(string) string {
			return "<" + tag + "ParameterBinding" + declare + attribute("source", source) + "/>"
		}
	}
	for _, k := range system.kids {
		if k.is("ParameterBindings", nsSSD) {
			s.insert(k, []string{"ParameterBinding"}, binding(declare))
			return s.bytes(), nil
		}
	}
	s.insert(system, []string{"Connectors", "ElementGeometry"}, func(lead string) string {
		return newElement(lead, tag+"ParameterBindings", declare, binding(""))
	})
	return s.bytes(), nil
}
