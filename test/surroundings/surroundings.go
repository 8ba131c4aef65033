// Package surroundings builds an FMU that reports what surrounds it, such as working folder, environment and limits, and
// that may write files, for tests of the ways to run FMUs.
package surroundings

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/surroundings.c
var source string

// Outputs are the names of the outputs that report, in the order of their value references from 1.
var Outputs = []string{"table", "environment", "umask", "locale", "input", "streams", "signals", "crashes", "mask", "limits", "stack", "group", "nice"}

// What the FMU does: values of the parameter files.
const (
	Reports = iota
	Writes
	Appends
	Makes
	Removes
	WritesBelow
	Nothing
	Needs
)

// Once is an attribute for Pack.
const Once = ` canBeInstantiatedOnlyOncePerProcess="true"`

// Pack compiles the FMU, writes dir/name.fmu and returns its path. attributes are further ones of CoSimulation, and files
// is the start value of the parameter.
func Pack(dir, name, attributes string, files int) (path string, err error) {
	var texts, unknowns strings.Builder
	for k, report := range Outputs {
		fmt.Fprintf(&texts, `    <ScalarVariable name=%q valueReference="%d" causality="output" variability="discrete"><String/></ScalarVariable>
`, report, k+1)
		fmt.Fprintf(&unknowns, `<Unknown index="%d" dependencies=""/>`, 9+k)
	}
	description := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="surroundings" guid="{surroundings}">
  <CoSimulation modelIdentifier=%q canHandleVariableCommunicationStepSize="true" canInterpolateInputs="true" canGetAndSetFMUstate="true"
    canSerializeFMUstate="true" providesDirectionalDerivative="true"%s/>
  <DefaultExperiment startTime="0" stopTime="2" stepSize="0.1"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="3" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="crash" valueReference="4" causality="parameter" variability="fixed"><Real start="1e9"/></ScalarVariable>
    <ScalarVariable name="files" valueReference="0" causality="parameter" variability="fixed"><Integer start="%d"/></ScalarVariable>
    <ScalarVariable name="found" valueReference="1" causality="output" variability="discrete"><Integer/></ScalarVariable>
    <ScalarVariable name="marker" valueReference="0" causality="parameter" variability="fixed"><String start=""/></ScalarVariable>
%s  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="4" dependencies="2"/><Unknown index="7" dependencies=""/>%s</Outputs>
    <Derivatives><Unknown index="3" dependencies="1 2"/></Derivatives>
    <InitialUnknowns><Unknown index="3"/><Unknown index="4"/><Unknown index="7" dependencies=""/>%s</InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
`, name, attributes, files, &texts, &unknowns, &unknowns)
	return fmus.Pack(dir, name, description, fmt.Sprintf("#define START_FILES %d\n%s", files, source))
}
