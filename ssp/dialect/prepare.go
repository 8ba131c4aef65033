package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

// Tools lists the tools that Prepare supports.
func Tools() []string { return []string{"omsimulator", "osp"} }

// Prepare adds annotations without which a tool refuses a document or crashes (ssp 42, 43), with a
// macro step in s: for "omsimulator" a master at the outermost and each nested system, for "osp"
// (libcosim and programs based on it) an algorithm at the default experiment. It keeps existing
// annotations of the tool. The notes list parts of the document that the tool ignores or that make
// it fail.
func Prepare(d *ssp.Document, tool string, step float64, tolerance *float64) (notes []string, err error) {
	if !(step > 0) {
		return nil, fmt.Errorf("the macro step for %s is %v; it must be greater than 0", tool, step)
	}
	switch tool {
	case "omsimulator":
		return prepareOMS(d, step, tolerance)
	case "osp":
		return prepareOSP(d, step)
	}
	return nil, fmt.Errorf("the tool %q is not known; known tools are %s", tool, strings.Join(Tools(), ", "))
}

func has(list []ssp.Annotation, typ string) bool {
	return slices.ContainsFunc(list, func(a ssp.Annotation) bool { return a.Type == typ })
}

func prepareOMS(d *ssp.Document, step float64, tolerance *float64) (notes []string, err error) {
	rtol := 1e-4 // the default of OMSimulator
	if tolerance != nil {
		rtol = *tolerance
	}
	content := fmt.Sprintf(`<oms:Annotations xmlns:oms="%s"><oms:SimulationInformation>`+
		`<oms:FixedStepMaster description="oms-ma" stepSize="%s" relativeTolerance="%s"/>`+
		`</oms:SimulationInformation></oms:Annotations>`, nsOMS, ssp.Number(step), ssp.Number(rtol))
	note := func(format string, args ...any) { notes = append(notes, "OMSimulator "+fmt.Sprintf(format, args...)) }
	for e := range d.System.All() {
		name, kind := e.Base().Name, "component"
		if _, is := e.(*ssp.System); is {
			kind = "system"
		}
		if edit.Identifier(name) != name {
			note("supports only letters, digits and _ in names: the %s %q", kind, name)
		}
		switch e := e.(type) {
		case *ssp.System:
			if !has(e.Annotations, typeOMS) {
				a, err := edit.NewAnnotation(typeOMS, content)
				if err != nil {
					return notes, err
				}
				e.Annotations = append(e.Annotations, a)
			}
			for i := range e.Connections {
				if t := e.Connections[i].Transformation; t != nil && t.Kind != ssp.Linear {
					note("ignores %s: %s", t, ends(&e.Connections[i]))
				}
			}
		case *ssp.Component:
			if !strings.HasPrefix(e.Source, "resources/") {
				note("looks for FMUs in resources/ of a package: component %q has %q", name, e.Source)
			}
		}
	}
	return notes, nil
}

func ends(c *ssp.Connection) string {
	name := func(element, connector string) string { return strings.TrimPrefix(element+"."+connector, ".") }
	return name(c.StartElement, c.StartConnector) + " to " + name(c.EndElement, c.EndConnector)
}

func prepareOSP(d *ssp.Document, step float64) (notes []string, err error) {
	if !has(d.Experiment.Annotations, typeOSP) {
		a, err := edit.NewAnnotation(typeOSP, fmt.Sprintf(`<osp:Algorithm xmlns:osp="%s">`+
			`<osp:FixedStepAlgorithm baseStepSize="%s"/></osp:Algorithm>`, nsOSP, ssp.Number(step)))
		if err != nil {
			return nil, err
		}
		d.Experiment.Annotations = append(d.Experiment.Annotations, a)
	}
	o := ospCheck{connectors: make(map[[2]string]*ssp.Connector)}
	if len(d.System.Connectors) > 0 || len(d.System.Bindings) > 0 {
		o.note("ignores connectors and parameter bindings of the system; bind parameters at the components")
	}
	for _, e := range d.System.Elements {
		if _, ok := e.(*ssp.Component); !ok {
			o.note("supports only components with FMUs: %q", e.Base().Name)
		}
		o.element(e.Base())
	}
	for i := range d.System.Connections {
		o.connection(&d.System.Connections[i], d.Units)
	}
	return o.notes, nil
}

// ospCheck notes what OSP does not support.
type ospCheck struct {
	connectors map[[2]string]*ssp.Connector // by element and name
	notes      []string
}

func (o *ospCheck) note(format string, args ...any) {
	o.notes = append(o.notes, "OSP "+fmt.Sprintf(format, args...))
}

// element checks the connectors and bindings of an element.
func (o *ospCheck) element(c *ssp.Common) {
	for i := range c.Connectors {
		k := &c.Connectors[i]
		o.connectors[[2]string{c.Name, k.Name}] = k
		switch k.Type {
		case ssp.Real, ssp.Integer, ssp.Boolean, ssp.String:
		default:
			o.note("fails with connectors of type %s: %s.%s", k.Type, c.Name, k.Name)
		}
	}
	if len(c.Bindings) > 1 {
		o.note("uses only the first parameter binding of a component: %q", c.Name)
	}
	for i := range c.Bindings {
		if b := &c.Bindings[i]; b.Prefix != "" || b.Mapping != nil {
			o.note("ignores prefixes and mappings of parameter bindings: %q", c.Name)
		}
	}
}

// connection checks a connection of the outermost system.
func (o *ospCheck) connection(c *ssp.Connection, units []unit.Definition) {
	if c.StartElement == "" || c.EndElement == "" {
		o.note("fails with connections with the system: %s", ends(c))
		return
	}
	if t := c.Transformation; t != nil && t.Kind != ssp.Linear {
		o.note("ignores %s: %s", t, ends(c))
	}
	from, to := o.connectors[[2]string{c.StartElement, c.StartConnector}], o.connectors[[2]string{c.EndElement, c.EndConnector}]
	if from == nil || to == nil {
		o.note("requires connectors at both ends: %s", ends(c))
		return
	}
	if from.Kind == ssp.Input || to.Kind == ssp.Output {
		o.note("supports connections only from output to input: %s", ends(c))
	}
	a, b := base(units, from.Unit), base(units, to.Unit)
	if a != nil && b != nil && *a != *b && !c.SuppressUnitConversion {
		o.note("does not convert units, and so couples %s with %s: %s", from.Unit, to.Unit, ends(c))
	}
}

// base returns a unit by name, nil if it is not defined.
func base(units []unit.Definition, name string) *unit.Base {
	if i := slices.IndexFunc(units, func(u unit.Definition) bool { return u.Name == name }); i >= 0 {
		return units[i].Base
	}
	return nil
}
