// Package probe builds an FMU for tests of the interfaces between documents, FMUs and master (src/probe.c). It has
// variables of all types and causalities, and its parameters choose a fault.
package probe

import (
	_ "embed"
	"fmt"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/probe.c
var source string

// Faults are the values of the parameter fault.
const (
	None = iota
	DoStep
	SetReal
	GetReal
	SetDerivatives
	SetInteger
	Terminate
	Enter
	Exit
	GetStatus
	SetState
)

// Everything declares all capabilities of the probe.
const Everything = `canHandleVariableCommunicationStepSize="true" canInterpolateInputs="true" canRunAsynchronuously="true" ` +
	`canGetAndSetFMUstate="true" providesDirectionalDerivative="true"`

// Description returns modelDescription.xml. capabilities are attributes of CoSimulation; elements are inserted between
// LogCategories and ModelVariables.
func Description(name, capabilities, elements string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="probe" guid="{probe}" variableNamingConvention="flat">
  <CoSimulation modelIdentifier="%s" %s/>
  <UnitDefinitions>
    <Unit name="m"><BaseUnit m="1"/></Unit>
    <Unit name="km"><BaseUnit m="1" factor="1000"/></Unit>
  </UnitDefinitions>
  <TypeDefinitions>
    <SimpleType name="Mode"><Enumeration><Item name="low" value="1"/><Item name="middle" value="2"/><Item name="high" value="3"/></Enumeration></SimpleType>
  </TypeDefinitions>
  <LogCategories><Category name="fault"/></LogCategories>
  %s
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input"><Real start="0.5" unit="m"/></ScalarVariable>
    <ScalarVariable name="ud" valueReference="1" causality="input" variability="discrete"><Real start="0.25"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="2" causality="output"><Real unit="km" nominal="100"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="3" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="w" valueReference="4"><Real/></ScalarVariable>
    <ScalarVariable name="echo_ud" valueReference="5" causality="output" variability="discrete"><Real/></ScalarVariable>
    <ScalarVariable name="p" valueReference="6" causality="parameter" variability="fixed"><Real start="1.5" min="0" max="9"/></ScalarVariable>
    <ScalarVariable name="a" valueReference="7" initial="approx"><Real start="3"/></ScalarVariable>
    <ScalarVariable name="q" valueReference="8" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="time" valueReference="9" causality="independent"><Real/></ScalarVariable>
    <ScalarVariable name="share" valueReference="10" causality="parameter" variability="fixed"><Real start="-1"/></ScalarVariable>
    <ScalarVariable name="p.alias" valueReference="6" causality="parameter" variability="fixed"><Real/></ScalarVariable>
    <ScalarVariable name="mode" valueReference="0" causality="input" variability="discrete"><Enumeration declaredType="Mode" start="2"/></ScalarVariable>
    <ScalarVariable name="echo_mode" valueReference="1" causality="output" variability="discrete"><Enumeration declaredType="Mode"/></ScalarVariable>
    <ScalarVariable name="count" valueReference="2" variability="discrete"><Integer/></ScalarVariable>
    <ScalarVariable name="fault" valueReference="3" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="status" valueReference="4" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="at" valueReference="5" causality="parameter" variability="fixed"><Integer start="1" min="0"/></ScalarVariable>
    <ScalarVariable name="polls" valueReference="6" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="outcome" valueReference="7" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="ends" valueReference="8" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="cancel" valueReference="9" causality="parameter" variability="fixed"><Integer start="0"/></ScalarVariable>
    <ScalarVariable name="b" valueReference="0" causality="input" variability="discrete"><Boolean start="true"/></ScalarVariable>
    <ScalarVariable name="not_b" valueReference="1" causality="output" variability="discrete"><Boolean/></ScalarVariable>
    <ScalarVariable name="odd" valueReference="2" variability="discrete"><Boolean/></ScalarVariable>
    <ScalarVariable name="s" valueReference="0" causality="input" variability="discrete"><String start="abc"/></ScalarVariable>
    <ScalarVariable name="quoted" valueReference="1" causality="output" variability="discrete"><String/></ScalarVariable>
    <ScalarVariable name="done" valueReference="2" variability="discrete"><String/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs>
      <Unknown index="3" dependencies=""/>
      <Unknown index="4" dependencies="1"/>
      <Unknown index="6" dependencies="2"/>
      <Unknown index="9" dependencies=""/>
      <Unknown index="14" dependencies="13"/>
      <Unknown index="24"/>
      <Unknown index="27" dependencies="26"/>
    </Outputs>
    <InitialUnknowns>
      <Unknown index="3" dependencies=""/>
      <Unknown index="4" dependencies="1"/>
      <Unknown index="6" dependencies="2"/>
      <Unknown index="9" dependencies="7"/>
      <Unknown index="14" dependencies="13"/>
      <Unknown index="24"/>
      <Unknown index="27" dependencies="26"/>
    </InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
`, name, capabilities, elements)
}

// Build compiles the probe, writes dir/name.fmu and returns its path.
func Build(dir, name, capabilities, elements string) (path string, err error) {
	return Pack(dir, name, Description(name, capabilities, elements))
}

// Pack compiles the probe with macros of src/probe.c, "NAME" or "NAME value", and writes dir/name.fmu with a description
// derived from Description.
func Pack(dir, name, description string, macros ...string) (path string, err error) {
	text := source
	for _, m := range macros {
		text = "#define " + m + "\n" + text
	}
	return fmus.Pack(dir, name, description, text)
}
