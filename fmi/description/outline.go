package description

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Outline describes an FMU of FMI 1.0, 2.0 or 3.0 for people. It is the content of the description of an
// FMU that macrostep cannot run. Nothing in it is checked.
type Outline struct {
	FMIVersion string
	Attributes map[string]string // of the root: modelName, generationTool …
	Interfaces []string          // "Co-Simulation", "Model Exchange", "Scheduled Execution"
	Experiment DefaultExperiment
	Variables  []OutlineVariable

	units     map[string]string // by name of the type
	declaring string            // the type that is being read
}

// OutlineVariable is a variable; values are texts of the document, "" if they are missing.
type OutlineVariable struct {
	Name, Reference, Causality, Variability, Initial, Type, DeclaredType, Unit, Start, Description string
	Size                                                                                           string // of an array: "2×3", with variables by their references
}

// interfaces are the elements for the kinds of FMUs; the last two are of FMI 1.0.
var interfaces = map[string]string{
	"CoSimulation": "Co-Simulation", "ModelExchange": "Model Exchange", "ScheduledExecution": "Scheduled Execution",
	"CoSimulation_StandAlone": "Co-Simulation", "CoSimulation_Tool": "Co-Simulation",
}

// ReadOutline reads the outline of modelDescription.xml of any version of FMI. The error is about
// the reader, or about text that is not XML.
func ReadOutline(r io.Reader) (*Outline, error) {
	src, err := newSource(r)
	if err != nil {
		return nil, err
	}
	d := xml.NewDecoder(src.r)
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // src has converted it
	o := &Outline{units: map[string]string{}}
	var path []string
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && o.Attributes == nil:
			return nil, errors.New("the document has no root element")
		case errors.Is(err, io.EOF):
			return o, nil
		case err != nil:
			return nil, fmt.Errorf("the document is not XML: %w", err)
		}
		switch e := t.(type) {
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
			}
			o.element(path, e.Name.Local, attributes)
			path = append(path, e.Name.Local)
		case xml.EndElement:
			path = path[:max(0, len(path)-1)]
		}
	}
}

// element takes an element at a path from the root.
func (o *Outline) element(path []string, name string, a map[string]string) {
	switch len(path) {
	case 0:
		o.FMIVersion, o.Attributes = a["fmiVersion"], a
		return
	case 1:
		if kind, ok := interfaces[name]; ok {
			o.Interfaces = append(o.Interfaces, kind)
		}
		if name == "DefaultExperiment" {
			number := func(key string) *float64 {
				v, err := strconv.ParseFloat(a[key], 64)
				if err != nil {
					return nil
				}
				return &v
			}
			o.Experiment = DefaultExperiment{StartTime: number("startTime"), StopTime: number("stopTime"),
				StepSize: number("stepSize"), Tolerance: number("tolerance")}
		}
		return
	}
	switch section := path[1]; {
	case section == "Implementation" && len(path) == 2 && interfaces[name] != "": // FMI 1.0
		o.Interfaces = append(o.Interfaces, interfaces[name])
	case section == "TypeDefinitions":
		o.declaring = cmp.Or(a["name"], o.declaring)
		if a["unit"] != "" {
			o.units[o.declaring] = a["unit"]
		}
	case section == "ModelVariables" && len(path) == 2:
		o.variable(name, a)
	case section == "ModelVariables" && len(path) == 3 && len(o.Variables) > 0:
		v := &o.Variables[len(o.Variables)-1]
		switch {
		case name == "Dimension":
			v.Size += "×" + cmp.Or(a["start"], "#"+a["valueReference"])
		case name == "Start": // of Strings and Binaries
			v.Start = strings.TrimSpace(v.Start + " " + a["value"])
		case v.Type == "": // FMI 1.0 and 2.0: the first element is the type
			o.typeOf(v, name, a)
		}
	}
}

// variable adds a variable: ScalarVariable, or in FMI 3.0 an element named after the type.
func (o *Outline) variable(name string, a map[string]string) {
	v := OutlineVariable{Name: a["name"], Reference: a["valueReference"], Description: a["description"],
		Causality: a["causality"], Variability: a["variability"], Initial: a["initial"]}
	if o.FMIVersion == "1.0" {
		switch {
		case v.Variability == "parameter":
			v.Causality, v.Variability = "parameter", "fixed"
		case v.Causality == "internal" || v.Causality == "none":
			v.Causality = ""
		}
	}
	v.Causality = cmp.Or(v.Causality, "local")
	if name != "ScalarVariable" {
		o.typeOf(&v, name, a)
	}
	o.Variables = append(o.Variables, v)
}

// typeOf takes what an element says of the type of a variable.
func (o *Outline) typeOf(v *OutlineVariable, name string, a map[string]string) {
	v.Type, v.DeclaredType, v.Start = name, a["declaredType"], a["start"]
	v.Unit = cmp.Or(a["unit"], o.units[v.DeclaredType])
	usual := "discrete"
	switch {
	case v.Causality == "parameter" || v.Causality == "calculatedParameter" || v.Causality == "structuralParameter":
		usual = "fixed"
	case name == "Real" || strings.HasPrefix(name, "Float"):
		usual = "continuous"
	}
	v.Variability = cmp.Or(v.Variability, usual)
}
