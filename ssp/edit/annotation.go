package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/beevik/etree"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// NewAnnotation makes an annotation from the XML of its only element, which must declare its
// namespaces (ssp 21).
func NewAnnotation(typ, content string) (ssp.Annotation, error) {
	doc := etree.NewDocument()
	if err := doc.ReadFromString(content); err != nil {
		return ssp.Annotation{}, fmt.Errorf("the content of an annotation: %w", err)
	}
	if len(doc.ChildElements()) != 1 {
		return ssp.Annotation{}, fmt.Errorf("an annotation contains one element, not %d", len(doc.ChildElements()))
	}
	el := etree.NewElement("Annotation")
	el.Space = xmltree.Prefixes[xmltree.SSC]
	el.CreateAttr("xmlns:"+el.Space, xmltree.SSC)
	el.CreateAttr("type", typ)
	el.AddChild(doc.Root())
	return ssp.Annotation{Type: typ, Content: el}, nil
}

// identifier matches the names of elements that OMSimulator supports.
var identifier = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// Identifier turns a name into one that every tool supports: letters, digits and underscores,
// beginning with a letter.
func Identifier(name string) string {
	out := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
	if !identifier.MatchString(out) {
		out = "c" + out
	}
	return out
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// SettingsAnnotation returns the annotation of macrostep for the default experiment, with
// algorithm, step size, tolerance and parameters (ssp 46). It does not write other settings.
func SettingsAnnotation(o *ssp.OwnSettings) (ssp.Annotation, error) {
	el := etree.NewElement("Settings")
	el.Space = xmltree.Prefixes[xmltree.Own]
	el.CreateAttr("xmlns:"+el.Space, xmltree.Own)
	el.CreateAttr("version", ssp.OwnVersion)
	if o.Algorithm != "" {
		el.CreateAttr("algorithm", o.Algorithm)
	}
	if o.StepSize != nil {
		el.CreateAttr("stepSize", number(*o.StepSize))
	}
	if o.Tolerance != nil {
		el.CreateAttr("tolerance", number(*o.Tolerance))
	}
	for _, q := range o.Params {
		k := el.CreateElement("Param")
		k.Space = el.Space
		k.CreateAttr("key", q.Key)
		k.CreateAttr("value", q.Value)
	}
	doc := etree.NewDocumentWithRoot(el)
	text, err := doc.WriteToString()
	if err != nil {
		return ssp.Annotation{}, err
	}
	return NewAnnotation(ssp.OwnType, text)
}

// find returns a unit by name, nil if it is not defined.
func find(units []unit.Definition, name string) *unit.Definition {
	if i := slices.IndexFunc(units, func(u unit.Definition) bool { return u.Name == name }); i >= 0 {
		return &units[i]
	}
	return nil
}
