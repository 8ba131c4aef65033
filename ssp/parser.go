package ssp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Place is a position in a document.
type Place = diag.Place

// parser reads the elements of one file into the model, and reports findings.
type parser struct {
	xmltree.Reader
	v2 bool // the file is of version 2
}

// collect returns a list for findings. done appends it to l, which may be nil.
func collect(l *diag.List) (own *diag.List, done func()) {
	if l == nil {
		l = &diag.List{}
	}
	own = &diag.List{Strict: l.Strict}
	return own, func() { l.Append(own) }
}

func newParser(l *diag.List, file string) *parser {
	return &parser{Reader: xmltree.Reader{List: l, File: file}}
}

// inert reports whether an element has no effect on a run: it is silent, or contains annotations in
// a place where none has an effect. It reports these annotations.
func (p *parser) inert(n *xmltree.Node) bool {
	if !n.Is("Annotations", xmltree.SSD, xmltree.SSC, xmltree.SSV, xmltree.SSM, xmltree.SSB) {
		return xmltree.Silent(n)
	}
	for _, k := range n.Kids {
		switch t := strings.TrimSpace(k.Str("type", "")); {
		case !k.Is("Annotation", xmltree.SSC, xmltree.SSD):
			p.Unknown(k)
		case p.Need(k, "type") == "":
		case t == OwnType:
			p.Add(RuleOwn, k, noPlace)
		case p.Once("annotation " + t):
			p.Add(RuleForeign, k, "the annotation %q is not known here and has no effect", t)
		}
	}
	return true
}

// parseSizedReal reads a Real of a parameter set. It refuses values beyond the range of a Float32,
// but does not round to the precision of one.
func parseSizedReal(element, text string) (float64, error) {
	v, err := xmltree.ParseValue(text)
	if err != nil || element != "Float32" || math.IsInf(v, 0) {
		return v, err
	}
	if narrow := float64(float32(v)); math.IsInf(narrow, 0) {
		return 0, fmt.Errorf("%q is beyond the range of a Float32", text)
	}
	return v, nil
}

// parseSized reads an integer of a parameter set.
func parseSized(element, text string) (int64, error) {
	bits := 32
	kind, unsigned := strings.CutPrefix(element, "U")
	if size, sized := strings.CutPrefix(kind, "Int"); sized {
		if n, err := strconv.Atoi(size); err == nil {
			bits = n
		}
	}
	if !unsigned {
		return xmltree.ParseInteger(text, bits)
	}
	u, err := strconv.ParseUint(strings.TrimSpace(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not an unsigned integer of %d bits", text, bits)
	}
	if u > math.MaxInt64 {
		return 0, fmt.Errorf("%q is larger than %d, the largest integer that macrostep represents", text, math.MaxInt64)
	}
	return int64(u), nil
}
