package test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/store"
)

const nestedHead = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="nested" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
  xmlns:ssb="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary">
`

// A package in a package, used twice; parameters in a file inside its FMU, in a set around it, and calculated by
// another FMU; signals over a dictionary in a file. All of it runs, and gives what follows by hand:
//
//	source:  y = 3
//	box:     y = k·u + p, in mm outside, m inside
//	maker:   c = 2·base, a calculated parameter
func TestNested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stored := func(name, evaluate string, variables ...store.Variable) string {
		path, err := store.Pack(dir, name, evaluate, variables...)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	source := stored("source", "r[0] = 3", store.Variable{Name: "y", Causality: "output", Unit: "mm", On: []int{}})
	maker := stored("maker", "r[1] = 2 * r[0]", store.Variable{Name: "base", Causality: "parameter", Start: 1},
		store.Variable{Name: "c", Causality: "calculatedParameter"})
	plain := stored("gain", "r[1] = r[2] * r[0] + r[3]", store.Variable{Name: "u", Causality: "input", Unit: "m"},
		store.Variable{Name: "y", Causality: "output", Unit: "m", On: []int{0}},
		store.Variable{Name: "k", Causality: "parameter", Start: 1}, store.Variable{Name: "p", Causality: "parameter", Start: 100})
	gain := filepath.Join(dir, "gain2.fmu")
	pack(t, gain, append(entries(t, plain), file("extra/values.ssv", `<ssv:ParameterSet version="1.0" name="v" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"><ssv:Parameters>
<ssv:Parameter name="k"><ssv:Real value="5"/></ssv:Parameter><ssv:Parameter name="p"><ssv:Real value="7"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>`))...)
	const connectors = `<ssd:Connectors><ssd:Connector name="u" kind="input"><ssc:Real unit="mm"/></ssd:Connector><ssd:Connector name="y" kind="output"><ssc:Real unit="mm"/></ssd:Connector>
<ssd:Connector name="p" kind="parameter"/></ssd:Connectors>`
	const unitsOfIt = `<ssd:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssd:Units>`
	box := filepath.Join(dir, "box.ssp")
	pack(t, box, file("resources/gain.fmu", read(t, gain)), file("SystemStructure.ssd", nestedHead+`<ssd:System name="box">`+connectors+`<ssd:Elements>
<ssd:Component name="gain" source="resources/gain.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="y" kind="output"/><ssd:Connector name="p" kind="parameter"/></ssd:Connectors>
<ssd:ParameterBindings><ssd:ParameterBinding source="extra/values.ssv" sourceBase="component"/></ssd:ParameterBindings></ssd:Component>
</ssd:Elements><ssd:Connections>
<ssd:Connection startConnector="u" endElement="gain" endConnector="u"/><ssd:Connection startElement="gain" startConnector="y" endConnector="y"/>
<ssd:Connection startConnector="p" endElement="gain" endConnector="p"/>
</ssd:Connections></ssd:System>`+unitsOfIt+"</ssd:SystemStructureDescription>"))
	reference := func(name, kind string) string {
		return `<ssd:SignalDictionaryReference name="` + name + `" dictionary="bus"><ssd:Connectors><ssd:Connector name="x" kind="` +
			kind + `"/></ssd:Connectors></ssd:SignalDictionaryReference>`
	}
	component := `type="application/x-ssp-package" source="resources/box.ssp">` + connectors
	whole := filepath.Join(dir, "whole.ssp")
	pack(t, whole, file("resources/box.ssp", read(t, box)), file("resources/source.fmu", read(t, source)),
		file("resources/maker.fmu", read(t, maker)),
		file("resources/bus.ssb", `<ssb:SignalDictionary version="1.0" xmlns:ssb="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssb:DictionaryEntry name="x"><ssc:Real/></ssb:DictionaryEntry></ssb:SignalDictionary>`),
		file("SystemStructure.ssd", nestedHead+`<ssd:System name="top"><ssd:ParameterBindings><ssd:ParameterBinding prefix="two."><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters>
<ssv:Parameter name="gain.k"><ssv:Real value="11"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding>
<ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters><ssv:Parameter name="maker.base"><ssv:Real value="4"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
<ssd:Elements>
<ssd:Component name="source" source="resources/source.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"/></ssd:Connectors></ssd:Component>
<ssd:Component name="maker" source="resources/maker.fmu"><ssd:Connectors><ssd:Connector name="c" kind="calculatedParameter"/></ssd:Connectors></ssd:Component>
<ssd:Component name="one" `+component+`</ssd:Component>
<ssd:Component name="two" `+component+`</ssd:Component>`+reference("in", "inout")+reference("out", "output")+`
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="in" startConnector="x" endElement="source" endConnector="y"/>
<ssd:Connection startElement="in" startConnector="x" endElement="one" endConnector="u"/>
<ssd:Connection startElement="out" startConnector="x" endElement="two" endConnector="u"><ssc:LinearTransformation factor="10"/></ssd:Connection>
<ssd:Connection startElement="maker" startConnector="c" endElement="two" endConnector="p"><ssc:LinearTransformation offset="1"/></ssd:Connection>
</ssd:Connections><ssd:SignalDictionaries><ssd:SignalDictionary name="bus" source="resources/bus.ssb"/></ssd:SignalDictionaries></ssd:System>`+unitsOfIt+`
<ssd:DefaultExperiment startTime="0" stopTime="1"/></ssd:SystemStructureDescription>`))
	for _, algorithm := range []string{"explicit", "gauss-seidel"} {
		o := complete(t, whole, "--step-size", "0.1", "--algorithm", algorithm, "--record", "*")
		for name, want := range map[string]float64{
			"maker.c": 8, "one.gain.k": 5, "one.gain.p": 7, "one.gain.u": 0.003, "one.gain.y": 5*0.003 + 7,
			"two.gain.k": 11, "two.gain.p": 9, "two.gain.u": 0.03, "two.gain.y": 11*0.03 + 9,
		} {
			for _, got := range o.column(t, name) {
				if math.Abs(got-want) > 1e-12*want {
					t.Errorf("%s: %s is %v, want %v", algorithm, name, got, want)
					break
				}
			}
		}
	}
	call(t, "info", whole, "--explain", "two.gain.p").is(t, 0, "maker.c", "bound at two.gain")
	o := complete(t, whole, "--step-size", "0.1", "--set", "two.gain.p=1", "--record", "*")
	if got := o.column(t, "two.gain.p")[0]; got != 9 {
		t.Errorf("two.gain.p is %v", got)
	}
}

// Calculated parameters are passed on in the order of their dependencies; a parameter that depends on itself is
// refused by name.
func TestParameterChain(t *testing.T) {
	dir := t.TempDir()
	if _, err := store.Pack(dir, "twice", "r[1] = 2 * r[0]", store.Variable{Name: "p", Causality: "parameter", Start: 1},
		store.Variable{Name: "c", Causality: "calculatedParameter"},
		store.Variable{Name: "u", Causality: "input"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pack(dir, "out", "r[1] = r[0]", store.Variable{Name: "p", Causality: "parameter", Start: 1},
		store.Variable{Name: "y", Causality: "output", On: []int{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pack(dir, "felt", "r[1] = 2 * r[0] + r[2]", store.Variable{Name: "p", Causality: "parameter", Start: 1},
		store.Variable{Name: "c", Causality: "calculatedParameter"},
		store.Variable{Name: "u", Causality: "input"}); err != nil {
		t.Fatal(err)
	}
	document := func(connections ...string) string {
		text := nestedHead + `<ssd:System name="top"><ssd:Elements>`
		for _, name := range []string{"c", "b", "a"} { // against the order of the chain
			text += `<ssd:Component name="` + name +
				`" source="twice.fmu"><ssd:Connectors><ssd:Connector name="p" kind="parameter"/><ssd:Connector name="c" kind="calculatedParameter"/><ssd:Connector name="u" kind="input"/></ssd:Connectors></ssd:Component>`
		}
		text += `<ssd:Component name="out" source="out.fmu"><ssd:Connectors><ssd:Connector name="p" kind="parameter"/><ssd:Connector name="y" kind="output"/></ssd:Connectors></ssd:Component></ssd:Elements><ssd:Connections>`
		for _, c := range connections {
			from, to, _ := strings.Cut(c, " ")
			a, x, _ := strings.Cut(from, ".")
			b, y, _ := strings.Cut(to, ".")
			text += `<ssd:Connection startElement="` + a + `" startConnector="` + x + `" endElement="` + b + `" endConnector="` + y + `"/>`
		}
		text += `</ssd:Connections></ssd:System><ssd:DefaultExperiment startTime="0" stopTime="1"/></ssd:SystemStructureDescription>`
		path := filepath.Join(dir, "s.ssd")
		write(t, path, text)
		return path
	}
	// The output of the last one goes back to an input of the first, on which its calculated parameter depends only
	// if the FMU does not declare the contrary.
	o := complete(t, document("a.c b.p", "b.c c.p", "c.c out.p", "out.y a.u"), "--step-size", "0.1", "--record", "*")
	for name, want := range map[string]float64{"b.p": 2, "c.p": 4, "out.p": 8, "out.y": 8, "a.u": 8} {
		if got := o.column(t, name)[0]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	o = run(t, document("a.c b.p", "b.c a.p"), "--step-size", "0.1")
	if o.code == 0 || !strings.Contains(o.output, "depends on itself") || !strings.Contains(o.output, "b.p") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
	// An undeclared dependency on an input is found.
	path := document("a.c out.p", "out.y a.u")
	write(t, path, strings.ReplaceAll(string(read(t, path)), "twice.fmu", "felt.fmu"))
	o = run(t, path, "--step-size", "0.1")
	if o.code == 0 || !strings.Contains(o.output, "a.c has changed since it gave its value to the parameter out.p") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}
