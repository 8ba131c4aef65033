package description

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
)

// large returns a description of 50 000 variables (17 MB), like those of large
// models: parameters, inputs, outputs and local variables.
var large = sync.OnceValue(func() []byte {
	const n = 50_000
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<?xml version="1.0" encoding="UTF-8"?>`)
	p(`<fmiModelDescription fmiVersion="2.0" modelName="large" guid="{1}" variableNamingConvention="structured">`)
	p(`  <CoSimulation modelIdentifier="large" canGetAndSetFMUstate="true"/>`)
	p(`  <UnitDefinitions><Unit name="m"><BaseUnit m="1"/><DisplayUnit name="mm" factor="1000"/></Unit></UnitDefinitions>`)
	p(`  <TypeDefinitions><SimpleType name="Length"><Real quantity="Length" unit="m" displayUnit="mm" nominal="0.1"/></SimpleType></TypeDefinitions>`)
	p(`  <ModelVariables>`)
	for i := range n {
		name := fmt.Sprintf("vehicle.chassis.suspension[%d].upperArm.joint.frame_a.r_0[%d]", i/3, i%3+1)
		attributes, start := ``, ``
		switch i % 5 {
		case 0:
			attributes, start = ` causality="parameter" variability="tunable" initial="exact"`, fmt.Sprintf(` start="%g"`, float64(i)/7)
		case 1:
			attributes, start = ` causality="input"`, ` start="0.0"`
		case 2:
			attributes = ` causality="output" initial="calculated"`
		}
		p(`    <ScalarVariable name="%s" valueReference="%d" description="Position vector from world frame to the connector"%s>`, name, i, attributes)
		p(`      <Real declaredType="Length" unit="m" displayUnit="mm" min="-1e6" max="1e6"%s/>`, start)
		p(`    </ScalarVariable>`)
	}
	p(`  </ModelVariables>`)
	p(`  <ModelStructure>`)
	for _, list := range []string{"Outputs", "InitialUnknowns"} {
		p(`    <%s>`, list)
		for i := 2; i < n; i += 5 {
			p(`      <Unknown index="%d" dependencies="%d %d"/>`, i+1, i-1+1, (i+4)%n+1)
		}
		p(`    </%s>`, list)
	}
	p(`  </ModelStructure>`)
	p(`</fmiModelDescription>`)
	return b.Bytes()
})

// BenchmarkRead is to stay below 1.5 times BenchmarkTokenLoop.
func BenchmarkRead(b *testing.B) {
	data := large()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(data), "large.xml", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTokenLoop is the least that reading with encoding/xml costs.
func BenchmarkTokenLoop(b *testing.B) {
	data := large()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		dec := xml.NewDecoder(bytes.NewReader(data))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
