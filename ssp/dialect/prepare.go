package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

// Tools names the tools that Prepare knows.
func Tools() []string { return []string{"omsimulator", "osp"} }

// Prepare adds the annotations without which a tool refuses a document or crashes
// (ssp 42, 43), with a macro step in s: "omsimulator" wants its master at the
// outermost and each nested system, "osp" (libcosim and what is built on it) an
// algorithm at the default experiment. An annotation of the tool that is there
// stays. The notes name what the tool does with the document all the same: parts
// that it leaves out, or that make it fail.
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
	return nil, fmt.Errorf("there is no tool %q here; there are %s", tool, strings.Join(Tools(), ", "))
}

func has(list []ssp.Annotation, typ string) bool {
	return slices.ContainsFunc(list, func(a ssp.Annotation) bool { return a.Type == typ })
}

func prepareOMS(d *ssp.Document, step float64, tolerance *float64) (notes []string, err error) {
	rtol := 1e-4 // what OMSimulator writes where nobody asks for another
	if tolerance != nil {
		rtol = *tolerance
	}
	content := fmt.Sprintf(`<oms:Annotations xmlns:oms="%s"><oms:SimulationInformation><oms:FixedStepMaster description="oms-ma" stepSize="%s" relativeTolerance="%s"/></oms:SimulationInformation></oms:Annotations>`,
		nsOMS, number(step), number(rtol))
	note := func(format string, args ...any) { notes = append(notes, "OMSimulator "+fmt.Sprintf(format, args...)) }
	for e := range d.System.All() {
		name, kind := e.Base().Name, "component"
		if _, is := e.(*ssp.System); is {
			kind = "system"
		}
		if edit.Identifier(name) != name {
			note("takes letters, digits and _ only in names: the %s %q", kind, name)
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
					note("leaves %s out: %s", t, ends(&e.Connections[i]))
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

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func ends(c *ssp.Connection) string {
	name := func(element, connector string) string { return strings.TrimPrefix(element+"."+connector, ".") }
	return name(c.StartElement, c.StartConnector) + " to " + name(c.EndElement, c.EndConnector)
}

func prepareOSP(d *ssp.Document, step float64) (notes []string, err error) {
	if !has(d.Experiment.Annotations, typeOSP) {
		a, err := edit.NewAnnotation(typeOSP, fmt.Sprintf(`<osp:Algorithm xmlns:osp="%s"><osp:FixedStepAlgorithm baseStepSize="%s"/></osp:Algorithm>`, nsOSP, number(step)))
		if err != nil {
			return nil, err
		}
		d.Experiment.Annotations = append(d.Experiment.Annotations, a)
	}
	note := func(format string, args ...any) { notes = append(notes, "OSP "+fmt.Sprintf(format, args...)) }
	if len(d.System.Connectors) > 0 || len(d.System.Bindings) > 0 {
		note("leaves connectors and parameter bindings of the system out; bind parameters at the components")
	}
	connectors := make(map[[2]string]*ssp.Connector)
	for _, e := range d.System.Elements {
		c := e.Base()
		if _, ok := e.(*ssp.Component); !ok {
			note("takes components with FMUs only: %q", c.Name)
		}
		for i := range c.Connectors {
			k := &c.Connectors[i]
			connectors[[2]string{c.Name, k.Name}] = k
			switch k.Type {
			case ssp.Real, ssp.Integer, ssp.Boolean, ssp.String:
			default:
				note("ends at connectors of type %s: %s.%s", k.Type, c.Name, k.Name)
			}
		}
		if len(c.Bindings) > 1 {
			note("takes the first parameter binding of a component only: %q", c.Name)
		}
		for i := range c.Bindings {
			if b := &c.Bindings[i]; b.Prefix != "" || b.Mapping != nil {
				note("takes neither prefixes nor mappings of parameter bindings: %q", c.Name)
			}
		}
	}
	for i := range d.System.Connections {
		c := &d.System.Connections[i]
		if c.StartElement == "" || c.EndElement == "" {
			note("ends at connections with the system: %s", ends(c))
			continue
		}
		if t := c.Transformation; t != nil && t.Kind != ssp.Linear {
			note("leaves %s out: %s", t, ends(c))
		}
		from, to := connectors[[2]string{c.StartElement, c.StartConnector}], connectors[[2]string{c.EndElement, c.EndConnector}]
		if from == nil || to == nil {
			note("wants connectors at both ends: %s", ends(c))
			continue
		}
		if from.Kind == ssp.Input || to.Kind == ssp.Output {
			note("takes connections from the output to the input only: %s", ends(c))
		}
		a, b := base(d.Units, from.Unit), base(d.Units, to.Unit)
		if a != nil && b != nil && *a != *b && !c.SuppressUnitConversion {
			note("does not convert units, and so couples %s with %s: %s", from.Unit, to.Unit, ends(c))
		}
	}
	return notes, nil
}

// base returns a unit by name, nil if it is not known.
func base(units []unit.Definition, name string) *unit.Base {
	if i := slices.IndexFunc(units, func(u unit.Definition) bool { return u.Name == name }); i >= 0 {
		return units[i].Base
	}
	return nil
}
