// Package store builds FMUs that store the values of their variables, for tests of transferred values and in place of
// FMUs of third-party documents.
package store

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/store.c
var source string

// Variable is a Real of the FMU. Its value reference is its index in the list.
type Variable struct {
	Name      string
	Causality string // input, output, parameter or calculatedParameter
	Unit      string // m, mm or ""
	Start     float64
	// On lists the indices of the inputs and parameters that an output or calculated parameter depends on;
	// nil = dependencies are not declared.
	On []int
}

// Pack compiles the FMU, writes dir/name.fmu and returns its path. evaluate is a statement in C that computes the outputs
// and calculated parameters in the array r from the other variables: "r[2] = r[0] + r[1]".
func Pack(dir, name, evaluate string, variables ...Variable) (path string, err error) {
	return fmus.Pack(dir, name, Description(name, variables...), Source(evaluate, variables...))
}

// Source returns the C source of the FMU.
func Source(evaluate string, variables ...Variable) string {
	flags, starts := make([]string, len(variables)), make([]string, len(variables))
	for i, v := range variables {
		if flags[i] = "0"; v.Causality == "parameter" {
			flags[i] = "1"
		}
		starts[i] = fmt.Sprint(v.Start)
	}
	return fmt.Sprintf("#define EVALUATE %s\n#define PARAMETERS %s\n#define STARTS %s\n%s",
		evaluate, strings.Join(flags, ", "), strings.Join(starts, ", "), source)
}

// Description returns modelDescription.xml.
func Description(name string, variables ...Variable) string {
	var list, outputs, unknowns strings.Builder
	for i, v := range variables {
		attributes := fmt.Sprintf("name=%q valueReference=\"%d\" causality=%q", v.Name, i, v.Causality)
		unit, start := "", fmt.Sprintf(" start=\"%v\"", v.Start)
		if v.Unit != "" {
			unit = fmt.Sprintf(" unit=%q", v.Unit)
		}
		entry := fmt.Sprintf(`<Unknown index="%d"`, i+1)
		if v.On != nil {
			var on []string
			for _, k := range v.On {
				on = append(on, fmt.Sprint(k+1))
			}
			entry += fmt.Sprintf(` dependencies="%s"`, strings.Join(on, " "))
		}
		entry += "/>"
		switch v.Causality {
		case "output":
			outputs.WriteString(entry)
			unknowns.WriteString(entry)
			start = ""
		case "calculatedParameter":
			attributes += ` variability="fixed"`
			unknowns.WriteString(entry)
			start = ""
		case "parameter":
			attributes += ` variability="fixed"`
		}
		fmt.Fprintf(&list, "    <ScalarVariable %s><Real%s%s/></ScalarVariable>\n", attributes, start, unit)
	}
	structure := ""
	if outputs.Len() > 0 {
		structure = "<Outputs>" + outputs.String() + "</Outputs>"
	}
	if unknowns.Len() > 0 {
		structure += "<InitialUnknowns>" + unknowns.String() + "</InitialUnknowns>"
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="%s" guid="{store}">
  <CoSimulation modelIdentifier="%[1]s" canHandleVariableCommunicationStepSize="true"/>
  <UnitDefinitions>
    <Unit name="m"><BaseUnit m="1"/></Unit>
    <Unit name="mm"><BaseUnit m="1" factor="0.001"/></Unit>
  </UnitDefinitions>
  <ModelVariables>
%s  </ModelVariables>
  <ModelStructure>%s</ModelStructure>
</fmiModelDescription>
`, name, list.String(), structure)
}
