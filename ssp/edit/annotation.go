package edit

import (
	"fmt"
	"regexp"
	"slices"
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

// SettingsAnnotation returns the annotation of macrostep for the default experiment, with
// algorithm ("" = none), step size in s and tolerance (nil = none) (ssp 46).
func SettingsAnnotation(algorithm string, step, tolerance *float64) (ssp.Annotation, error) {
	el := etree.NewElement("Settings")
	el.Space = xmltree.Prefixes[xmltree.Own]
	el.CreateAttr("xmlns:"+el.Space, xmltree.Own)
	el.CreateAttr("version", ssp.OwnVersion)
	if algorithm != "" {
		el.CreateAttr("algorithm", algorithm)
	}
	if step != nil {
		el.CreateAttr("stepSize", ssp.Number(*step))
	}
	if tolerance != nil {
		el.CreateAttr("tolerance", ssp.Number(*tolerance))
	}
	doc := etree.NewDocumentWithRoot(el)
	text, err := doc.WriteToString()
	if err != nil {
		return ssp.Annotation{}, err
	}
	return NewAnnotation(ssp.OwnType, text)
}

// settings changes ms:Settings at the DefaultExperiment, or makes it.
func (w *writer) settings(root *etree.Element, list []ssp.Asked) {
	box := child(child(root, xmltree.SSD, "DefaultExperiment"), xmltree.SSD, "Annotations")
	isOwn := func(a *etree.Element) bool {
		return a.Tag == "Annotation" && strings.TrimSpace(xmltree.Value(a, "type")) == ssp.OwnType
	}
	var own *etree.Element
	if i := slices.IndexFunc(box.ChildElements(), isOwn); i >= 0 {
		own = box.ChildElements()[i]
	} else {
		own = xmltree.Insert(box, xmltree.SSC, "Annotation")
		w.set(own, "type", ssp.OwnType)
	}
	el := child(own, xmltree.Own, "Settings")
	w.set(el, "version", ssp.OwnVersion)
	replaced := false // all parameters
	for _, s := range list {
		switch s.Name {
		case ssp.Algorithm:
			replaced = true
			w.set(el, "algorithm", s.Text)
		case ssp.StepSize:
			w.set(el, "stepSize", s.Text)
		case ssp.Param:
		default:
			w.fail(el, "%s cannot be written", s)
		}
	}
	written := map[string]bool{}
	for _, k := range el.ChildElements() {
		key := strings.TrimSpace(xmltree.Value(k, "key"))
		i := slices.IndexFunc(list, func(s ssp.Asked) bool { return s.Name == ssp.Param && s.Key == key })
		switch {
		case k.Tag != "Param" || xmltree.URI(k) != xmltree.Own:
		case i >= 0 && !written[key]:
			w.set(k, "value", list[i].Value())
			written[key] = true
		case i >= 0 || replaced:
			xmltree.Remove(k)
		}
	}
	for _, s := range list {
		if s.Name == ssp.Param && !written[s.Key] {
			k := xmltree.Insert(el, xmltree.Own, "Param")
			w.set(k, "key", s.Key)
			w.set(k, "value", s.Value())
		}
	}
}

// find returns a unit by name, nil if it is not defined.
func find(units []unit.Definition, name string) *unit.Definition {
	if i := slices.IndexFunc(units, func(u unit.Definition) bool { return u.Name == name }); i >= 0 {
		return &units[i]
	}
	return nil
}
