// Package truck builds Chassis.fmu and Wheel.fmu of a quarter truck (src/truck.c), with the names and variables of the
// example of OSP.
package truck

import (
	_ "embed"
	"fmt"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/truck.c
var source string

// Build compiles both FMUs and writes them into dir.
func Build(dir string) error {
	chassis := description("Chassis", "chassis", "force", "N", "velocity", "m/s", "position")
	wheel := description("Wheel", "wheel", "in_vel", "m/s", "out_spring_damper_f", "N", "position", "velocity")
	if _, err := fmus.Pack(dir, "Chassis", chassis, source); err != nil {
		return err
	}
	_, err := fmus.Pack(dir, "Wheel", wheel, "#define WHEEL\n"+source)
	return err
}

// references are the value references of further outputs.
var references = map[string]int{"velocity": 4, "position": 5}

// description returns modelDescription.xml with an input, an output and further outputs.
func description(identifier, name, in, inUnit, out, outUnit string, further ...string) string {
	variables, unknowns := "", `<Unknown index="5"/>`
	for i, v := range further {
		variables += fmt.Sprintf("    <ScalarVariable name=%q valueReference=\"%d\" causality=\"output\"><Real/></ScalarVariable>\n",
			v, references[v])
		unknowns += fmt.Sprintf(`<Unknown index="%d" dependencies=""/>`, 6+i)
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="%s" guid="{truck}">
  <CoSimulation modelIdentifier="%s" canHandleVariableCommunicationStepSize="true"/>
  <UnitDefinitions>
    <Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
    <Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>
  </UnitDefinitions>
  <ModelVariables>
    <ScalarVariable name="mass" valueReference="0" causality="parameter" variability="fixed"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="timeStep" valueReference="1" causality="parameter" variability="fixed"><Real start="1e-3"/></ScalarVariable>
    <ScalarVariable name="solverType" valueReference="0" causality="parameter" variability="fixed"><String start=""/></ScalarVariable>
    <ScalarVariable name="%s" valueReference="2" causality="input"><Real start="0" unit="%s"/></ScalarVariable>
    <ScalarVariable name="%s" valueReference="3" causality="output"><Real unit="%s"/></ScalarVariable>
%s  </ModelVariables>
  <ModelStructure><Outputs>%s</Outputs><InitialUnknowns>%[8]s</InitialUnknowns></ModelStructure>
</fmiModelDescription>
`, name, identifier, in, inUnit, out, outUnit, variables, unknowns)
}
