package probe

import (
	_ "embed"
	"strings"

	"github.com/macrostep/macrostep/fmus"
)

//go:embed src/sampler.c
var sampler string

// samplerDescription is that of the FMU of Sampler, without the attributes of its Clock.
const samplerDescription = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="sampler" instantiationToken="{sampler}">
  <CoSimulation modelIdentifier="NAME" hasEventMode="true" canHandleVariableCommunicationStepSize="true"
    canGetAndSetFMUState="true" canSerializeFMUState="true"/>
  <LogCategories><Category name="logStatusError"/></LogCategories>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <Clock name="tick" valueReference="1" causality="input" CLOCK/>
    <Float64 name="u" valueReference="2" causality="input" variability="discrete" start="0" clocks="1"/>
    <Float64 name="y" valueReference="3" causality="output" variability="discrete" initial="calculated" clocks="1"/>
    <Float64 name="kp" valueReference="4" causality="parameter" variability="fixed" start="1"/>
    <Float64 name="ki" valueReference="5" causality="parameter" variability="fixed" start="1"/>
    <Float64 name="interval" valueReference="6" causality="parameter" variability="fixed" start="0.1"/>
    <Float64 name="d" valueReference="7" causality="input" variability="discrete" start="0"/>
    <Float64 name="s" valueReference="8" causality="output" variability="discrete" initial="calculated"/>
    <Float64 name="pace" valueReference="9" causality="parameter" variability="fixed" start="0"/>
    <Float64 name="at" valueReference="10" causality="parameter" variability="fixed" start="0"/>
    <Float64 name="z" valueReference="11" causality="output" variability="continuous" initial="calculated"/>
    <Int32 name="n" valueReference="12" causality="input" variability="discrete" start="0"/>
    <Int32 name="stairs" valueReference="13" causality="output" variability="discrete" initial="calculated"/>
    <Int32 name="ticks" valueReference="14" causality="output" variability="discrete" initial="calculated"/>
    <Int32 name="fault" valueReference="15" causality="parameter" variability="fixed" start="0"/>
    <Int32 name="kind" valueReference="16" causality="parameter" variability="fixed" start="0"/>
    <Int32 name="updates" valueReference="17" causality="output" variability="discrete" initial="calculated"/>
    <String name="word" valueReference="18" causality="input"><Start value=""/></String>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="3" dependencies="2"/><Output valueReference="8" dependencies="7 12"/>
    <Output valueReference="11" dependencies=""/>
    <Output valueReference="13" dependencies=""/><Output valueReference="14" dependencies=""/>
    <Output valueReference="17" dependencies=""/>
    <InitialUnknown valueReference="8"/><InitialUnknown valueReference="11"/><InitialUnknown valueReference="13"/>
    <InitialUnknown valueReference="14"/>
    <InitialUnknown valueReference="17"/>
  </ModelStructure>
</fmiModelDescription>
`

// Sampler compiles src/sampler.c, of FMI 3.0, with these attributes of its Clock, and writes dir/name.fmu.
func Sampler(dir, name, clock string) (path string, err error) {
	return fmus.Pack(dir, name, strings.NewReplacer("NAME", name, "CLOCK", clock).Replace(samplerDescription), sampler)
}
