package ssp_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// base is a sound document with something of everything: each case of TestRules
// breaks it in one place.
const base = Head + `<ssd:System name="top">
  <ssd:Connectors>
    <ssd:Connector name="result" kind="output"><ssc:Real unit="m"/></ssd:Connector>
    <ssd:Connector name="level" kind="input"><ssc:Real unit="m"/></ssd:Connector>
  </ssd:Connectors>
  <ssd:ParameterBindings>
    <ssd:ParameterBinding source="set.ssv"><ssd:ParameterMapping source="map.ssm"/></ssd:ParameterBinding>
  </ssd:ParameterBindings>
  <ssd:Elements>
    <ssd:Component name="a" source="a.fmu">
      <ssd:Connectors>
        <ssd:Connector name="y" kind="output"><ssc:Real unit="m"/></ssd:Connector>
        <ssd:Connector name="n" kind="output"><ssc:Integer/></ssd:Connector>
        <ssd:Connector name="q" kind="calculatedParameter"><ssc:Real/></ssd:Connector>
        <ssd:Connector name="e" kind="output"><ssc:Enumeration name="gear"/></ssd:Connector>
        <ssd:Connector name="u" kind="input"/>
        <ssd:Connector name="k" kind="parameter"/>
      </ssd:Connectors>
    </ssd:Component>
    <ssd:System name="inner">
      <ssd:Connectors>
        <ssd:Connector name="x" kind="input"><ssc:Real/></ssd:Connector>
        <ssd:Connector name="z" kind="output"><ssc:Real/></ssd:Connector>
      </ssd:Connectors>
      <ssd:Elements>
        <ssd:Component name="b" source="b.fmu">
          <ssd:Connectors>
            <ssd:Connector name="u" kind="input"><ssc:Real unit="m"/></ssd:Connector>
            <ssd:Connector name="m" kind="input"><ssc:Integer/></ssd:Connector>
            <ssd:Connector name="y" kind="output"><ssc:Real unit="m"/></ssd:Connector>
          </ssd:Connectors>
          <ssd:ParameterBindings>
            <ssd:ParameterBinding>
              <ssd:ParameterValues>
                <ssv:ParameterSet version="1.0" name="inline">
                  <ssv:Parameters>
                    <ssv:Parameter name="p"><ssv:Real value="1.5" unit="m"/></ssv:Parameter>
                  </ssv:Parameters>
                </ssv:ParameterSet>
              </ssd:ParameterValues>
            </ssd:ParameterBinding>
          </ssd:ParameterBindings>
        </ssd:Component>
      </ssd:Elements>
      <ssd:Connections>
        <ssd:Connection startConnector="x" endElement="b" endConnector="u"><ssc:LinearTransformation factor="2"/></ssd:Connection>
        <ssd:Connection startConnector="z" endElement="b" endConnector="y"/>
      </ssd:Connections>
    </ssd:System>
  </ssd:Elements>
  <ssd:Connections>
    <ssd:Connection startElement="a" startConnector="y" endElement="inner" endConnector="x"/>
    <ssd:Connection startElement="inner" startConnector="z" endConnector="result"/>
    <ssd:Connection startConnector="level" endElement="a" endConnector="u"/>
  </ssd:Connections>
</ssd:System>
<ssd:Enumerations>
  <ssc:Enumeration name="gear"><ssc:Item name="park" value="0"/><ssc:Item name="drive" value="1"/></ssc:Enumeration>
</ssd:Enumerations>
<ssd:Units>
  <ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
</ssd:Units>
<ssd:DefaultExperiment startTime="0" stopTime="2">
</ssd:DefaultExperiment>` + Tail

const baseMap = `<?xml version="1.0"?>
<ssm:ParameterMapping version="1.0" xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <ssm:MappingEntry source="gain" target="a.k"><ssc:LinearTransformation factor="10"/></ssm:MappingEntry>
  <ssm:MappingEntry source="height" target="level"/>
</ssm:ParameterMapping>
`

func baseFakes() Fakes {
	gear := map[string]int32{"park": 0, "drive": 1}
	calc := Out("q", ssp.Real)
	calc.Causality = "calculatedParameter"
	low := 0.0
	k := With(Par("k", ssp.Real), "m", Metre)
	k.Min = &low
	loc := Out("hidden", ssp.Real)
	loc.Causality = "local"
	return Fakes{
		"a":       {With(Out("y", ssp.Real), "m", Metre), Out("n", ssp.Integer), calc, Enum(Out("e", ssp.Enumeration), gear), In("u", ssp.Real), k, loc},
		"inner.b": {With(In("u", ssp.Real), "m", Metre), In("m", ssp.Integer), With(Out("y", ssp.Real), "m", Metre), With(Par("p", ssp.Real), "m", Metre), loc},
	}
}

// A document without faults gives no finding, tolerant or strict, and a network
// known in every part.
func TestSound(t *testing.T) {
	n, l, err := Flatten(t, base, map[string]string{"set.ssv": BaseSet, "map.ssm": baseMap}, baseFakes(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Findings {
		t.Errorf("finding: %s", f)
	}
	c := Links(n)["a.y → inner.b.u"]
	if len(n.Connections) != 1 || c.Gain != 2 || c.Offset != 0 || c.Map != nil || c.Type != ssp.Real {
		t.Errorf("connections %+v", n.Connections)
	}
	s := Settings(n)
	if len(s) != 3 || s["a.k"].Value.Real != 30 || s["a.u"].Value.Real != 4 || s["inner.b.p"].Value.Real != 1.5 {
		t.Errorf("settings %+v", n.Settings)
	}
	if p := s["inner.b.p"].From; p.Level != "inner.b" || !strings.HasSuffix(p.Place.File, ssp.DocumentName) || p.Place.Line != lineOf(t, base, `name="p"`) {
		t.Errorf("provenance %+v", p)
	}
	if len(n.Outputs) != 1 || n.Outputs[0].Name != "result" || n.Outputs[0].From != (ssp.FlatEnd{1, "y"}) {
		t.Errorf("outputs %+v", n.Outputs)
	}
	if *n.Experiment.Start != 0 || *n.Experiment.Stop != 2 {
		t.Errorf("experiment %v", n.Experiment)
	}
	if n.Components[1].Path != "inner.b" || filepath.Base(n.Components[1].Source) != "b.fmu" || !filepath.IsAbs(n.Components[1].Source) {
		t.Errorf("component %+v", n.Components[1])
	}
}

// tooled is the end of an experiment with an annotation of the tool of toolDialect.
func tooled(content string) string {
	return "<ssd:Annotations>" + Annotate("org.tool", content) + "</ssd:Annotations></ssd:DefaultExperiment>"
}

func lineOf(t testing.TB, text, marker string) int {
	t.Helper()
	before, _, found := strings.Cut(text, marker)
	if !found {
		t.Fatalf("%q is not in the document", marker)
	}
	return 1 + strings.Count(before, "\n")
}

// Each case replaces one piece of the sound document (or of its set or mapping)
// and has exactly the finding that it must have, with path and line. Package validate has an
// example for every rule; these differ from them in what is checked or in the message.
func TestRules(t *testing.T) {
	const ssd, ssv, ssm = ssp.DocumentName, "set.ssv", "map.ssm"
	type change struct{ file, old, new string }
	cases := []struct {
		name    string
		changes []change
		vars    func(Fakes)
		id      string
		level   diag.Level
		message string // part of the message
		line    string // marker of the line, in the file of the first change; "" = its new text
	}{
		{"not XML", []change{{ssd, "</ssd:Units>", "</ssd:Unit>"}}, nil, "SD1", diag.Error, "not well-formed", "</ssd:Unit>"},
		{"wrong root", []change{{ssv, `SystemStructureParameterValues"`, `Nothing"`}}, nil, "SD1", diag.Error, "not ParameterSet", "<ssv:ParameterSet"},
		{"version", []change{{ssd, `version="1.0" name="test"`, `version="3.0" name="test"`}}, nil, "SD1", diag.Error, `version "3.0"`, "<ssd:SystemStructureDescription"},
		{"version without its part", []change{{ssd, `version="1.0" name="test"`, `version="1" name="test"`}}, nil, "SD1T", diag.Info, `version "1" should be "1.0"`, "<ssd:SystemStructureDescription"},
		{"twin attribute", []change{{ssd, `name="n" kind="output"`, `name="n" kind="output" kind="output"`}}, nil, "SD1", diag.Error, "occurs twice", ""},
		{"infinite number", []change{{ssd, `stopTime="2"`, `stopTime="INF"`}}, nil, "SD1", diag.Error, "not a finite number", ""},
		{"unknown kind", []change{{ssd, `name="k" kind="parameter"`, `name="k" kind="knob"`}}, nil, "SD1", diag.Error, `"knob"`, ""},
		{"twin unit of another meaning", []change{{ssd, `<ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>`, `<ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit><ssc:Unit name="m"><ssc:BaseUnit s="1"/></ssc:Unit>`}}, nil, "SD1", diag.Error, "defined twice", ""},
		{"twin list", []change{{ssd, "<ssd:DefaultExperiment", "<ssd:Units><ssc:Unit name=\"m\"><ssc:BaseUnit m=\"1\"/></ssc:Unit></ssd:Units>\n<ssd:DefaultExperiment"}}, nil, "SD1", diag.Error, `"Units" occurs twice`, ""},
		{"order", []change{{ssd, "<ssd:Enumerations>\n", "<ssd:Units><ssc:Unit name=\"m\"><ssc:BaseUnit m=\"1\"/></ssc:Unit></ssd:Units>\n<ssd:Enumerations>\n"}, {ssd, "<ssd:Units>\n  <ssc:Unit name=\"m\"><ssc:BaseUnit m=\"1\"/></ssc:Unit>\n</ssd:Units>\n", ""}}, nil, "SD1S", diag.Info, `"ssd:Enumerations" comes after "ssd:Units"`, "<ssd:Enumerations>"},
		{"empty list", []change{{ssd, "</ssd:System>\n<ssd:Enumerations>", "<ssd:GraphicalElements/></ssd:System>\n<ssd:Enumerations>"}}, nil, "SD1S", diag.Info, `"ssd:GraphicalElements" contains no Note`, "<ssd:GraphicalElements/>"},
		{"empty unit", []change{{ssd, "</ssd:Units>", `<ssc:Unit name="e"/></ssd:Units>`}}, nil, "SD13", diag.Info, `"e" has no BaseUnit`, ""},
		{"twin parameter", []change{{ssv, `value="3" unit="m"/></ssv:Parameter>`, `value="3" unit="m"/></ssv:Parameter><ssv:Parameter name="gain"><ssv:Real value="3"/></ssv:Parameter>`}}, nil, "SD16T", diag.Info, "occurs twice in this set", ""},
		{"twin parameter of another value", []change{{ssm, `<ssm:MappingEntry source="gain"`, "\n<ssm:MappingEntry source=\"gain\""}, {ssv, `value="3" unit="m"/></ssv:Parameter>`, `value="3" unit="m"/></ssv:Parameter><ssv:Parameter name="gain"><ssv:Real value="5" unit="m"/></ssv:Parameter>`}},
			nil, "SD16D", diag.Error, `"a.k" gets two values from one binding: 30 from line 5 and 50 from here`, "<ssm:MappingEntry source=\"gain\""},
		{"undeclared prefix", []change{{ssd, `xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"`, ""},
			{ssd, `<ssd:ParameterMapping source="map.ssm"/>`, `<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="gain" target="a.k"/></ssm:ParameterMapping></ssd:ParameterMapping>`}},
			nil, "SD1T", diag.Info, `prefix "ssm" is not declared`, "<ssm:ParameterMapping"},
		{"namespace of old sets", []change{{ssv, "SSP1/SystemStructureParameterValues", "SSP1/ParameterValues"}}, nil, "SD1T", diag.Info, "should be", "<ssv:ParameterSet"},
		{"set elsewhere", []change{{ssd, `source="set.ssv"`, `source="sub/set.ssv"`}}, nil, "SD2", diag.Error, `at "set.ssv": is it the right one`, ""},
		{"empty name", []change{{ssd, `<ssd:System name="inner">`, `<ssd:System name="">`}, {ssd, `endElement="inner" endConnector="x"`, `endElement="a" endConnector="u"`},
			{ssd, `startElement="inner" startConnector="z"`, `startElement="a" startConnector="y"`}}, nil, "SD4", diag.Error, "name is empty", ""},
		{"twin element", []change{{ssd, `<ssd:System name="inner">`, `<ssd:System name="a">`}}, nil, "SD4", diag.Error, `called "a" too`, ""},
		{"unknown end connector", []change{{ssd, `endElement="inner" endConnector="x"`, `endElement="inner" endConnector="xx"`}}, nil, "SD5", diag.Error, `no connector "xx"`, ""},
		{"undeclared connector", []change{{ssd, `<ssd:Connector name="u" kind="input"><ssc:Real unit="m"/></ssd:Connector>`, ``}}, nil, "SD5U", diag.Info, `does not declare the connector "u"`, `endElement="b" endConnector="u"`},
		{"no variable, unused", nil, func(f Fakes) { f["a"][1].Name = "N" }, "SD6U", diag.Info, `no variable "n"`, `name="n"`},
		{"kind and causality", nil, func(f Fakes) { f["inner.b"][1].Causality = "output" }, "SD6U", diag.Info, "causality output", `name="m" kind="input"`},
		{"type of connector", []change{{ssd, `name="m" kind="input"><ssc:Integer/>`, `name="m" kind="input"><ssc:Real/>`}}, nil, "SD7", diag.Warning, "type Integer, which is used", ""},
		{"items of connector", nil, func(f Fakes) { f["a"][3].Items = map[string]int32{"park": 0, "drive": 2} }, "SD7", diag.Warning, `"drive" is 1 in one and 2`, `name="e"`},
		{"dimension of connector", nil, func(f Fakes) { f["a"][0].UnitBase = &Second }, "SD7D", diag.Error, "contradicts the unit", `name="y" kind="output"`},
		{"unit of connector", nil, func(f Fakes) { f["inner.b"][2].UnitBase = &MM }, "SD7", diag.Warning, "values are converted", `name="y" kind="output"><ssc:Real unit="m"/></ssd:Connector>` + "\n          </ssd"},
		{"kinds", []change{{ssd, `startElement="a" startConnector="y" endElement="inner"`, `startElement="a" startConnector="u" endElement="inner"`}}, nil, "SD8", diag.Error, "neither can feed the other", ""},
		{"output to parameter", []change{{ssd, `startConnector="level" endElement="a" endConnector="u"`, `startElement="a" startConnector="y" endElement="a" endConnector="k"`}}, nil, "SD8", diag.Error, "must not feed", ""},
		{"output to parameter over systems", []change{{ssd, `<ssd:Connector name="x" kind="input"><ssc:Real/>`, `<ssd:Connector name="x" kind="unspecified"><ssc:Real/>`}, {ssd, `startElement="a" startConnector="y" endElement="inner" endConnector="x"`, `startElement="a" startConnector="q" endElement="inner" endConnector="x"`},
			{ssd, `<ssd:Connector name="u" kind="input"><ssc:Real unit="m"/></ssd:Connector>
            <ssd:Connector name="m"`, `<ssd:Connector name="u" kind="unspecified"><ssc:Real unit="m"/></ssd:Connector>
            <ssd:Connector name="m"`}, {ssd, `version="1.0" name="test"`, `version="2.0" name="test"`}, {ssd, `<ssd:Connector name="q" kind="calculatedParameter">`, `<ssd:Connector name="q" kind="unspecified">`}},
			func(f Fakes) { f["a"][2].Causality = "output"; f["inner.b"][0].Causality = "parameter" }, "SD8", diag.Error, "an output can feed inputs", `startConnector="x" endElement="b"`},
		{"parameter that cannot be set", []change{{ssd, `startConnector="level" endElement="a" endConnector="u"`, `startElement="a" startConnector="q" endElement="a" endConnector="k"`},
			{ssm, `<ssm:MappingEntry source="height" target="level"/>`, ``}, {ssm, `<ssm:MappingEntry source="gain" target="a.k"><ssc:LinearTransformation factor="10"/></ssm:MappingEntry>`, ``}},
			func(f Fakes) { f["a"][5].Settable = false }, "SD14S", diag.Error, "cannot be set", ""},
		{"types", []change{{ssd, `startElement="a" startConnector="y" endElement="inner" endConnector="x"`, `startElement="a" startConnector="n" endElement="inner" endConnector="x"`}}, nil, "SD10", diag.Error, "type Integer, the target of type Real", ""},
		{"enumeration and integer", []change{{ssd, `startConnector="level" endElement="a" endConnector="u"`, `startElement="a" startConnector="n" endElement="a" endConnector="u"`},
			{ssm, `<ssm:MappingEntry source="height" target="level"/>`, ``}}, func(f Fakes) { f["a"][4] = Enum(In("u", ssp.Enumeration), map[string]int32{"park": 0}) },
			"SD10E", diag.Warning, `"a.n" is of type Integer and "a.u" of type Enumeration`, ""},
		{"dimension", []change{{ssd, `<ssd:Connector name="x" kind="input"><ssc:Real/>`, `<ssd:Connector name="x" kind="input"><ssc:Real unit="s"/>`}, {ssd, `<ssc:Unit name="m">`, `<ssc:Unit name="s"><ssc:BaseUnit s="1"/></ssc:Unit><ssc:Unit name="m">`}}, nil, "SD11", diag.Error, `"m" cannot be converted into "s"`, `startElement="a" startConnector="y"`},
		{"relative quantity", nil, func(f Fakes) { f["a"][0].RelativeQuantity = true }, "SD11R", diag.Warning, "relativeQuantity", `startConnector="x"`},
		{"dimension of value", []change{{ssv, `value="3" unit="m"`, `value="3" unit="s"`}, {ssv, `<ssc:Unit name="m">`, `<ssc:Unit name="s"><ssc:BaseUnit s="1"/></ssc:Unit><ssc:Unit name="m">`}}, nil, "SD11", diag.Error, "cannot be converted", "-"},
		{"transformation of type", []change{{ssd, `<ssc:LinearTransformation factor="2"/>`, `<ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="2"/></ssc:IntegerMappingTransformation>`}}, nil, "SD12", diag.Error, "an integer mapping does not suit the type Real", ""},
		{"twin map source", []change{{ssd, `<ssc:LinearTransformation factor="2"/>`, `<ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="2"/><ssc:MapEntry source="1" target="3"/></ssc:IntegerMappingTransformation>`}}, nil, "SD12", diag.Error, `source "1" is mapped twice`, ""},
		{"undefined unit", []change{{ssd, `<ssd:Connector name="level" kind="input"><ssc:Real unit="m"/>`, `<ssd:Connector name="level" kind="input"><ssc:Real unit="[m]"/>`}}, nil, "SD13", diag.Info, `unit "[m]"`, ""},
		{"unknown unit of value", []change{{ssm, `target="a.k"`, `target="a.k" `}, {ssv, `value="3" unit="m"`, `value="3" unit="[k]"`}}, nil, "SD13C", diag.Error, `the unit "[k]", which neither`, ""},
		{"undefined enumeration", []change{{ssd, `<ssc:Enumeration name="gear"/>`, `<ssc:Enumeration name="gears"/>`}}, nil, "SD13", diag.Info, `"gears"`, ""},
		{"value without unit", []change{{ssv, `value="3" unit="m"`, `value="3"`}, {ssd, `<ssd:Connector name="k" kind="parameter"/>`, `<ssd:Connector name="k" kind="parameter"><ssc:Real unit="mm"/></ssd:Connector>`},
			{ssd, `<ssc:Unit name="m">`, `<ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit><ssc:Unit name="m">`}}, nil, "SD13V", diag.Warning, `it is read in "m", the unit of the FMU variable, not in "mm"`, "-"},
		{"unmatched with hint", []change{{ssd, `<ssv:Parameter name="p">`, `<ssv:Parameter name="b.p">`}}, nil, "SD14", diag.Info, `a binding here calls it "p"`, ""},
		{"not settable", []change{{ssm, `target="a.k"`, `target="a.hidden"`}}, nil, "SD14S", diag.Error, "cannot be set", ""},
		{"two sources of a target", []change{{ssm, `target="level"`, `target="a.k"`}}, nil, "SD15", diag.Error, "gets two values from one binding", `source="height"`},
		{"unknown source", []change{{ssm, `source="gain"`, `source="gains"`}}, nil, "SD15S", diag.Info, `"gains"`, ""},
		{"bound twice", []change{{ssm, `target="level"`, `target="inner.b.p"`}}, nil, "SD16", diag.Info, "bound 2 times; 4 from here", ""},
		{"bound and connected", []change{{ssm, `target="level"`, `target="inner.b.u"`}}, nil, "SD16C", diag.Warning, "until the first exchange", ""},
		{"value out of bounds", []change{{ssv, `value="3"`, `value="-3"`}}, nil, "SD17", diag.Error, "below the minimum", "-"},
		{"value is no number", []change{{ssv, `value="3"`, `value="three"`}}, nil, "SD17", diag.Error, "not a finite number", ""},
		{"value of wrong type", []change{{ssm, `<ssc:LinearTransformation factor="10"/>`, ``}, {ssv, `<ssv:Real value="3" unit="m"/>`, `<ssv:String value="3"/>`}}, nil, "SD17", diag.Error, "of type String cannot be given", `source="gain"`},
		{"source and content", []change{{ssd, `<ssd:ParameterMapping source="map.ssm"/>`, `<ssd:ParameterMapping source="map.ssm"><ssm:ParameterMapping version="1.0"/></ssd:ParameterMapping>`}}, nil, "SD18", diag.Error, "both a source and inline", ""},
		{"MIME type", []change{{ssd, `source="set.ssv"`, `source="set.ssv" type="text/csv"`}}, nil, "SD18", diag.Error, `"text/csv" cannot be read`, ""},
		{"missing package", []change{{ssd, `source="a.fmu"`, `source="a.ssp"`}}, nil, "SD2", diag.Error, `source "a.ssp" cannot be read`, ""},
		{"unknown id", []change{{ssd, `source="a.fmu"`, `source="#a"`}}, nil, "SD19", diag.Error, `has the id "a"`, ""},
		{"system in itself", []change{{ssd, `source="a.fmu"`, `source="#self"`}, {ssd, `<ssd:System name="top">`, `<ssd:System name="top" id="self">`}}, nil, "SD19", diag.Error, `"top" contains itself`, ""},
		{"no dictionary", []change{{ssd, `<ssd:System name="inner">`, `<ssd:SignalDictionaryReference name="bus" dictionary="d"/>` + "\n" + `<ssd:System name="inner">`}}, nil, "SD19", diag.Error, `no signal dictionary "d"`, ""},
		{"inout", []change{{ssd, `name="level" kind="input"`, `name="level" kind="inout"`}}, nil, "SD8", diag.Error, "neither can feed the other", `startConnector="level"`},
		{"clock", []change{{ssd, `<ssd:Connector name="n" kind="output"><ssc:Integer/>`, `<ssd:Connector name="n" kind="output"><ssc:Integer/><ssd:Clock name="tick"/>`}, {ssd, `version="1.0" name="test"`, `version="2.0" name="test"`}}, nil, "SD3C", diag.Info, `the clock "tick"`, "<ssd:Clock"},
		{"sourceBase of a system", []change{{ssd, `source="set.ssv"`, `source="set.ssv" sourceBase="component"`}}, nil, "SD18B", diag.Error, "not a component", ""},
		{"experiment of nested system", []change{{ssd, `<ssd:System name="inner">`, `<ssd:Component name="box" type="application/x-ssp-definition" source="box.ssd"/>` + "\n" + `<ssd:System name="inner">`},
			{"box.ssd", "", Head + `<ssd:System name="b"/><ssd:DefaultExperiment stopTime="3"/>` + Tail}}, nil, "SD19N", diag.Info, "has no effect because the document stands for", `source="box.ssd"`},
		{"placeholder", []change{{ssd, `<ssd:System name="inner">`, `<ssd:Component name="box"/>` + "\n" + `<ssd:System name="inner">`}}, nil, "SD19P", diag.Warning, `"box" has no source`, `<ssd:Component name="box"/>`},
		{"setting of another tool", []change{{ssd, `</ssd:DefaultExperiment>`, tooled(`<x:Gadget xmlns:x="urn:x"/>`)}}, nil, "SD21P", diag.Warning, `"x:Gadget" is not understood`, "<x:Gadget"},
		{"step of another tool", []change{{ssd, `</ssd:DefaultExperiment>`, tooled(`<x:Step xmlns:x="urn:x"/>`)}}, nil, "SD21T", diag.Info, "--step-size 0.1 is taken from org.tool", "<x:Step"},
		{"unit lost", []change{{ssd, `<ssd:Connection startElement="a" startConnector="y" endElement="inner" endConnector="x"/>`, `<ssd:Connection startElement="a" startConnector="y" endElement="inner" endConnector="x">` + LinearTransform(1, 1) + `</ssd:Connection>`}}, nil, "SD11L", diag.Warning, "the unit is unknown", ""},
		{"same path", []change{{ssd, `<ssd:System name="inner">`, `<ssd:Component name="inner.b" source="a.fmu"/>` + "\n" + `<ssd:System name="inner">`}},
			func(f Fakes) { f["'inner.b'"], f["'inner'.'b'"] = f["a"], f["inner.b"] }, "SD20P", diag.Info, `they are called 'inner.b' and 'inner'.'b'`, `name="b"`},
		{"own annotation elsewhere", []change{{ssd, `<ssd:Connection startConnector="level" endElement="a" endConnector="u"/>`, `<ssd:Connection startConnector="level" endElement="a" endConnector="u"><ssd:Annotations><ssc:Annotation type="com.github.macrostep"/></ssd:Annotations></ssd:Connection>`}}, nil, "SD21O", diag.Error, "is not allowed here", ""},
		{"dangling", []change{{ssd, `<ssd:Connection startElement="a" startConnector="y" endElement="inner" endConnector="x"/>`, ""}}, nil, "SD5D", diag.Warning, "which nothing feeds", `startConnector="x"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{ssd: base, ssv: BaseSet, ssm: baseMap}
			where, marker := ssd, c.line
			for i, ch := range c.changes {
				if ch.old == "" { // a further file
					files[ch.file] = ch.new
					continue
				}
				if strings.Count(files[ch.file], ch.old) != 1 {
					t.Fatalf("%q is %d times in %s", ch.old, strings.Count(files[ch.file], ch.old), ch.file)
				}
				files[ch.file] = strings.Replace(files[ch.file], ch.old, ch.new, 1)
				if i == 0 {
					where = ch.file
					if marker == "" {
						marker = ch.new
					}
				}
			}
			vars := baseFakes()
			if c.vars != nil {
				c.vars(vars)
			}
			n, l, err := Flatten(t, files[ssd], files, vars, false, toolDialect)
			if with := map[string]string{"SD13C": "SD13", "SD13V": "SD7", "SD16D": "SD16T", "SD15": "SD16T"}[c.id]; with != "" { // which comes with it
				l.Findings = slices.DeleteFunc(l.Findings, func(f diag.Finding) bool { return f.ID == with })
			}
			if len(l.Findings) == 0 {
				t.Fatalf("no finding; error %v", err)
			}
			for _, f := range l.Findings {
				if f.ID != c.id || f.Level != c.level || !strings.Contains(f.Message, c.message) {
					t.Errorf("finding %s (%s), want %s (%s) with %q", f, f.Level, c.id, c.level, c.message)
				}
				if f.Remedy == "" && f.Level > diag.Info {
					t.Error("no remedy")
				}
			}
			if f := l.Findings[0]; marker != "-" {
				if strings.Contains(c.line, "source=\"gain\"") {
					where = ssm
				}
				if filepath.Base(f.File) != where {
					t.Errorf("file %s, want %s", f.File, where)
				}
				if want := lineOf(t, files[where], marker); f.Line != want {
					t.Errorf("line %d, want %d", f.Line, want)
				}
				if f.Path == "" && !strings.Contains(f.Message, "well-formed") {
					t.Error("no path")
				}
				if f.Path != "" {
					doc := etree.NewDocument()
					doc.ReadSettings.PreserveDuplicateAttrs = true
					if err := doc.ReadFromString(files[where]); err != nil {
						t.Fatal(err)
					}
					if n := len(doc.FindElements(f.Path)); n != 1 {
						t.Errorf("%s leads to %d elements", f.Path, n)
					}
				}
			}
			if (err != nil) != (c.level == diag.Error) || (n == nil) != (err != nil) {
				t.Errorf("network %v, error %v", n, err)
			}
			if err != nil && !diag.Has(err, c.id) && !strings.Contains(err.Error(), c.id) {
				t.Errorf("the error does not hold %s: %v", c.id, err)
			}
		})
	}
}
