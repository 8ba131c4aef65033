// Package xmltree reads the XML documents of SSP into a tree with namespaces, lines and columns,
// checks it against the schemas, and adds elements where they allow them. Package ssp interprets
// the elements.
package xmltree

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"golang.org/x/text/encoding/charmap"
)

// The namespaces of SSP 1.0 and 2.0: both versions have the same (ssp 5).
const (
	SSD = "http://ssp-standard.org/SSP1/SystemStructureDescription"
	SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"
	SSV = "http://ssp-standard.org/SSP1/SystemStructureParameterValues"
	SSM = "http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
	SSB = "http://ssp-standard.org/SSP1/SystemStructureSignalDictionary"
	Own = "https://github.com/macrostep/macrostep/ssp/1"
)

// Prefixes are the prefixes of new elements. Some tools know no others (ssp 6).
var Prefixes = map[string]string{SSD: "ssd", SSC: "ssc", SSV: "ssv", SSM: "ssm", SSB: "ssb", Own: "ms"}

// aliases maps wrong namespaces that occur in files to the right ones (ssp 6).
var aliases = map[string]string{
	"http://ssp-standard.org/SSP1/ParameterValues": SSV,
}

// Standard reports whether a namespace is one of SSP.
func Standard(uri string) bool {
	switch uri {
	case SSD, SSC, SSV, SSM, SSB:
		return true
	}
	return false
}

// MaxDocument is the largest size of a document in bytes. The largest known parameter sets have
// some ten thousand entries, about 2 MB.
const MaxDocument = 256 << 20

// maxDepth is the deepest nesting of elements. A nested system takes two levels.
const maxDepth = 500

// Node is an element with its namespace and position. The tree of nodes mirrors that of etree,
// which has comments, text and attributes.
type Node struct {
	El           *etree.Element
	URI, Name    string // namespace and local name
	Line, Column int    // of the start tag; see diag.Place
	Parent       *Node
	Kids         []*Node

	nth  int // 1-based among siblings of the same tag and name; 0 if it is the only one
	text *stray
}

// stray is the first text directly in an element.
type stray struct {
	line, column int
	text         string
}

// newStray returns the text of a token at a line and column, nil if it is blank.
func newStray(data []byte, line, column int) *stray {
	text := bytes.TrimLeft(data, " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	blank := data[:len(data)-len(text)]
	if lines := bytes.Count(blank, []byte{'\n'}); lines > 0 {
		line, column = line+lines, len(blank)-bytes.LastIndexByte(blank, '\n')
	} else {
		column += len(blank)
	}
	return &stray{line, column, string(bytes.TrimSpace(text))}
}

// Of returns the nodes of an element that was not read by a Reader: without lines, and with the
// declared namespaces.
func Of(el *etree.Element) *Node {
	n := &Node{El: el, Name: el.Tag, URI: URI(el)}
	for _, k := range el.ChildElements() {
		kid := Of(k)
		kid.Parent = n
		n.Kids = append(n.Kids, kid)
	}
	numberSiblings(n.Kids)
	return n
}

// parse reads a document in one pass. The error is a *xml.SyntaxError where the line is known.
func parse(data []byte) (*Node, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // decode has converted it
	parent := &etree.NewDocument().Element
	var root, open *Node
	roots, depth := 0, 0
	for {
		line, column := dec.InputPos()
		token, err := dec.RawToken()
		fail := func(format string, args ...any) (*Node, error) {
			at, _ := dec.InputPos()
			return nil, &xml.SyntaxError{Msg: fmt.Sprintf(format, args...), Line: at}
		}
		switch {
		case err == io.EOF && open != nil:
			return fail("unexpected EOF")
		case err == io.EOF && roots == 1:
			return root, nil
		case err == io.EOF && len(bytes.TrimSpace(data)) == 0:
			return nil, errors.New("it is empty")
		case err == io.EOF:
			return nil, fmt.Errorf("it has %d root elements instead of one", roots)
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("line %d: elements are nested deeper than %d", line, maxDepth)
			}
			el := etree.NewElement(t.Name.Local)
			el.Space = t.Name.Space
			for _, a := range t.Attr {
				el.Attr = append(el.Attr, etree.Attr{Space: a.Name.Space, Key: a.Name.Local, Value: a.Value})
			}
			parent.AddChild(el)
			n := &Node{El: el, Name: el.Tag, Line: line, Column: column, Parent: open}
			if open == nil {
				roots++
				root = n
			} else {
				open.Kids = append(open.Kids, n)
			}
			parent, open = el, n
		case xml.EndElement:
			name := strings.TrimPrefix(t.Name.Space+":"+t.Name.Local, ":")
			if open == nil {
				return fail("unexpected end element </%s>", name)
			}
			if open.El.FullTag() != name {
				return fail("element <%s> closed by </%s>", open.El.FullTag(), name)
			}
			depth--
			parent, open = parent.Parent(), open.Parent
		case xml.CharData:
			if text := newStray(t, line, column); text != nil && open == nil {
				return nil, errors.New("there is text outside of the root element")
			} else if text != nil && open.text == nil {
				open.text = text
			}
			parent.CreateText(string(t))
		case xml.Comment:
			parent.CreateComment(string(t))
		case xml.ProcInst:
			parent.CreateProcInst(t.Target, string(t.Inst))
		case xml.Directive:
			parent.CreateDirective(string(t))
		}
	}
}

// decode removes a byte order mark and converts Latin-1. The standard requires UTF-8 (ssp 4).
func decode(data []byte) ([]byte, error) {
	data, marked := bytes.CutPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, errors.New("the file is encoded in UTF-16; save it as UTF-8")
	}
	head, _, found := bytes.Cut(data[:min(len(data), 200)], []byte("?>"))
	if !found || !bytes.HasPrefix(head, []byte("<?xml")) {
		return data, nil
	}
	_, after, _ := bytes.Cut(head, []byte("encoding"))
	after = bytes.TrimLeft(after, " \t\r\n=")
	if len(after) == 0 {
		return data, nil
	}
	name, _, _ := bytes.Cut(after[1:], after[:1])
	switch strings.ToLower(string(name)) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return data, nil
	case "iso-8859-1", "latin1", "latin-1":
		if marked && utf8.Valid(data) { // the mark is that of UTF-8; the declaration is outdated
			return data, nil
		}
		return charmap.ISO8859_1.NewDecoder().Bytes(data)
	}
	return nil, fmt.Errorf("the file is encoded in %q; save it as UTF-8", name)
}

// Is reports whether the node has a name in one of the namespaces.
func (n *Node) Is(name string, uris ...string) bool {
	return n.Name == name && slices.Contains(uris, n.URI)
}

// Path returns the path of a node, with names, and numbers where siblings would be ambiguous.
func (n *Node) Path() string {
	var parts []string
	for ; n != nil; n = n.Parent {
		part := n.Name
		if name, ok := n.Attr("name"); ok && name != "" && n.Parent != nil {
			part += "[@name='" + name + "']"
		}
		if n.nth > 0 {
			part += "[" + strconv.Itoa(n.nth) + "]"
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return "/" + strings.Join(parts, "/")
}

// Attr returns an attribute without namespace.
func (n *Node) Attr(key string) (string, bool) {
	a := Attr(n.El, key)
	if a == nil {
		return "", false
	}
	return a.Value, true
}

// Str returns an attribute, or a default if it is absent.
func (n *Node) Str(key, absent string) string {
	if v, ok := n.Attr(key); ok {
		return v
	}
	return absent
}

// numberSiblings numbers siblings of the same tag and name.
func numberSiblings(siblings []*Node) {
	named := make(map[string][]*Node)
	for _, kid := range siblings {
		key := kid.Name
		if own := kid.Str("name", ""); own != "" {
			key += " " + own
		}
		named[key] = append(named[key], kid)
	}
	for _, kids := range named {
		for i, kid := range kids {
			if len(kids) > 1 {
				kid.nth = i + 1
			}
		}
	}
}

// ParseReal reads an xs:double. It refuses infinities, NaN (fmi2 12) and the hexadecimal forms of
// Go.
func ParseReal(text string) (float64, error) {
	t := strings.TrimSpace(text)
	v, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(t, "xXpP_") {
		return 0, fmt.Errorf("%q is not a finite number%s", text, diag.DecimalComma(text))
	}
	return v, nil
}

// ParseValue reads an xs:double that is a value of a variable: it may be INF, +INF or -INF.
func ParseValue(text string) (float64, error) {
	switch strings.TrimSpace(text) {
	case "INF", "+INF":
		return math.Inf(1), nil
	case "-INF":
		return math.Inf(-1), nil
	}
	return ParseReal(text)
}

// FormatValue writes an xs:double.
func FormatValue(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// ParseInteger reads an xs:integer of so many bits.
func ParseInteger(text string, bits int) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not an integer of %d bits", text, bits)
	}
	return v, nil
}

// ParseBoolean reads an xs:boolean.
func ParseBoolean(text string) (bool, error) {
	switch strings.TrimSpace(text) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, fmt.Errorf(`%q is neither "true" nor "false"`, text)
}
