package probe

import (
	_ "embed"
	"strings"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/space.c
var space string

// spaceDescription is that of the FMU of Space. Its sizes are 1, from 0 to 5.
const spaceDescription = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="space" instantiationToken="{space}">
  <CoSimulation modelIdentifier="space" canHandleVariableCommunicationStepSize="true" canGetAndSetFMUState="true"
    canSerializeFMUState="true"/>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.125"/>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <UInt64 name="m" valueReference="1" causality="structuralParameter" variability="fixed" start="1" min="0" max="5"/>
    <UInt64 name="n" valueReference="2" causality="structuralParameter" variability="tunable" start="1" min="0"
      max="5"/>
    <UInt64 name="r" valueReference="3" causality="structuralParameter" variability="fixed" start="1" min="0" max="5"/>
    <Float64 name="A" valueReference="4" causality="parameter" variability="fixed" start="0">
      <Dimension valueReference="2"/><Dimension valueReference="2"/></Float64>
    <Float64 name="B" valueReference="5" causality="parameter" variability="fixed" start="0">
      <Dimension valueReference="2"/><Dimension valueReference="1"/></Float64>
    <Float64 name="C" valueReference="6" causality="parameter" variability="fixed" start="0">
      <Dimension valueReference="3"/><Dimension valueReference="2"/></Float64>
    <Float64 name="D" valueReference="7" causality="parameter" variability="fixed" start="0">
      <Dimension valueReference="3"/><Dimension valueReference="1"/></Float64>
    <Float64 name="x0" valueReference="8" causality="parameter" variability="fixed" start="0">
      <Dimension valueReference="2"/></Float64>
    <Float64 name="u" valueReference="9" causality="input" start="0"><Dimension valueReference="1"/></Float64>
    <Float64 name="y" valueReference="10" causality="output"><Dimension valueReference="3"/></Float64>
    <Float64 name="x" valueReference="11"><Dimension valueReference="2"/></Float64>
  </ModelVariables>
  <ModelStructure><Output valueReference="10"/><InitialUnknown valueReference="10"/></ModelStructure>
</fmiModelDescription>
`

// Space compiles src/space.c, of FMI 3.0, with macros "NAME value", and writes dir/name.fmu. It refuses the size 5.
func Space(dir, name string, macros ...string) (path string, err error) {
	text := "#define REFUSED 5\n" + space
	for _, m := range macros {
		text = "#define " + m + "\n" + text
	}
	return fmus.Pack(dir, name, strings.Replace(spaceDescription, `modelIdentifier="space"`, `modelIdentifier="`+name+`"`,
		1), text)
}
