package ssp_test

import (
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

func entry(name, content string) string {
	return `<ssb:DictionaryEntry name="` + name + `">` + content + `</ssb:DictionaryEntry>`
}

const nsOfSSB = ` xmlns:ssb="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"`

// dictionary is an SSB document. Its units are its own: "u" is a centimetre.
func dictionary(entries ...string) string {
	return `<ssb:SignalDictionary version="1.0"` + nsOfSSB + `>` + strings.Join(entries, "") +
		`<ssb:Enumerations><ssc:Enumeration name="e"><ssc:Item name="A" value="1"/><ssc:Item name="B" value="2"/></ssc:Enumeration></ssb:Enumerations>` +
		`<ssb:Units><ssc:Unit name="u"><ssc:BaseUnit m="1" factor="0.01"/></ssc:Unit></ssb:Units></ssb:SignalDictionary>`
}

// bus is a system with a dictionary: component a writes, and b, in a system of its
// own, reads; dictionary is the SignalDictionary element, write and read are the
// connectors of the two references, to and from attributes of the connections to the
// first and from the second and what they hold.
func bus(dictionary, write, read, to, from string) string {
	return Head + `<ssd:System name="top"><ssd:Elements>
<ssd:Component name="a" source="a.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"/></ssd:Connectors></ssd:Component>
<ssd:SignalDictionaryReference name="w" dictionary="d"><ssd:Connectors>` + write + `</ssd:Connectors></ssd:SignalDictionaryReference>
<ssd:System name="s"><ssd:Elements>
<ssd:Component name="b" source="b.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"/></ssd:Connectors></ssd:Component>
<ssd:SignalDictionaryReference name="r" dictionary="d"><ssd:Connectors>` + read + `</ssd:Connectors></ssd:SignalDictionaryReference>
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="r" startConnector="x" endElement="b" endConnector="u"` + from + `</ssd:Connection>
</ssd:Connections></ssd:System>
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="w" startConnector="x" endElement="a" endConnector="y"` + to + `</ssd:Connection>
</ssd:Connections><ssd:SignalDictionaries>` + dictionary + `</ssd:SignalDictionaries></ssd:System>
` + Units + Tail
}

func inDocument(dictionary string) string {
	return `<ssd:SignalDictionary name="d">` + dictionary + `</ssd:SignalDictionary>`
}

func signal(kind, content string) string {
	return `<ssd:Connector name="x" kind="` + kind + `">` + content + `</ssd:Connector>`
}

// Two dictionaries with other names and units are joined by connections between their
// references; the same connector may be written and read; system connectors take part.
func TestDictionariesJoined(t *testing.T) {
	document := Head + `<ssd:System name="top"><ssd:Connectors><ssd:Connector name="result" kind="output"/><ssd:Connector name="set" kind="input"/></ssd:Connectors><ssd:Elements>
<ssd:Component name="a" source="a.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"/></ssd:Connectors></ssd:Component>
<ssd:Component name="b" source="b.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="v" kind="input"/><ssd:Connector name="w" kind="input"/></ssd:Connectors></ssd:Component>
<ssd:SignalDictionaryReference name="one" dictionary="one"><ssd:Connectors><ssd:Connector name="x" kind="inout"/><ssd:Connector name="s" kind="inout"/></ssd:Connectors></ssd:SignalDictionaryReference>
<ssd:SignalDictionaryReference name="two" dictionary="two"><ssd:Connectors><ssd:Connector name="z" kind="input"/></ssd:Connectors></ssd:SignalDictionaryReference>
<ssd:SignalDictionaryReference name="too" dictionary="two"><ssd:Connectors><ssd:Connector name="z" kind="output"/></ssd:Connectors></ssd:SignalDictionaryReference>
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="a" startConnector="y" endElement="one" endConnector="x"/>
<ssd:Connection startElement="one" startConnector="x" endElement="b" endConnector="u"/>
<ssd:Connection startElement="one" startConnector="x" endElement="two" endConnector="z">` + LinearTransform(3, 0) + `</ssd:Connection>
<ssd:Connection startElement="too" startConnector="z" endElement="b" endConnector="v"/>
<ssd:Connection startElement="too" startConnector="z" endConnector="result"/>
<ssd:Connection startConnector="set" endElement="one" endConnector="s"/>
<ssd:Connection startElement="b" startConnector="w" endElement="one" endConnector="s"/>
</ssd:Connections><ssd:SignalDictionaries>
<ssd:SignalDictionary name="one">` + dictionary(entry("x", `<ssc:Real unit="u"/>`), entry("s", `<ssc:Real unit="u"/>`)) + `</ssd:SignalDictionary>
<ssd:SignalDictionary name="two">` + strings.Replace(dictionary(entry("z", `<ssc:Real unit="u"/>`)), "0.01", "0.1", 1) + `</ssd:SignalDictionary>
</ssd:SignalDictionaries></ssd:System>` + Tail
	document = strings.Replace(document, `<ssd:Elements>`, Bindings(Inline("", Parameter("set", RealValue(5, "")), ""))+`<ssd:Elements>`, 1)
	n, l := Sound(t, document, nil, Fakes{"a": {With(Out("y", ssp.Real), "m", Metre)}, "b": {With(In("u", ssp.Real), "m", Metre), With(In("v", ssp.Real), "m", Metre), With(In("w", ssp.Real), "m", Metre)}})
	got := Links(n)
	// m → cm → dm · 3 → m
	if u, v := got["a.y → b.u"], got["a.y → b.v"]; !Near(u.Gain, 1) || !Near(v.Gain, 3) || len(got) != 2 {
		t.Errorf("connections %+v", got)
	}
	if len(n.Outputs) != 1 || n.Outputs[0].From != (ssp.FlatEnd{0, "y"}) || !Near(n.Outputs[0].Gain, 30) { // in dm
		t.Errorf("outputs %+v", n.Outputs)
	}
	if s := Settings(n); len(s) != 1 || !Near(s["b.w"].Value.Real, 0.05) { // 5, taken as cm
		t.Errorf("settings %+v", s)
	}
	if len(l.Findings) > 0 {
		t.Errorf("findings %v", l.Findings)
	}
}

// What a dictionary or a reference may not be.
func TestBadDictionaries(t *testing.T) {
	sound := dictionary(entry("x", "<ssc:Real/>"))
	w, r := signal("input", ""), signal("output", "")
	for _, c := range []struct{ name, document, id, message string }{
		{"no type", bus(inDocument(dictionary(entry("x", ""))), w, r, ">", ">"), "SD1", `entry "x" has no type`},
		{"two types", bus(inDocument(dictionary(entry("x", "<ssc:Real/><ssc:Integer/>"))), w, r, ">", ">"), "SD1", "more than one type"},
		{"entry twice", bus(inDocument(dictionary(entry("x", "<ssc:Real/>"), entry("x", "<ssc:Real/>"))), w, r, ">", ">"), "SD4", `entry of this dictionary is called "x" too`},
		{"in a system beside", strings.Replace(strings.Replace(bus("", w, r, ">", ">"), "<ssd:SignalDictionaries></ssd:SignalDictionaries>", "", 1),
			"</ssd:Connections></ssd:System>", "</ssd:Connections><ssd:SignalDictionaries>"+inDocument(sound)+"</ssd:SignalDictionaries></ssd:System>", 1), "SD19", `around "w"`},
		{"written at an output", bus(inDocument(sound), signal("output", ""), r, ">", ">"), "SD8", "neither can feed the other"},
		{"units", bus(inDocument(strings.Replace(dictionary(entry("x", `<ssc:Real unit="u"/>`)), `m="1" factor="0.01"`, `s="1"`, 1)), signal("input", RealType("m")), r, ">", ">"), "SD11", `"m" cannot be converted into "u"`},
		{"array", bus(inDocument(dictionary(entry("x", "<ssc:Real/><ssc:Dimension size=\"3\"/>"))), signal("input", "<ssc:Dimension/>"), r, ">", ">"), "SD10", "is an array"},
		{"dimension", bus(inDocument(dictionary(entry("x", `<ssc:Real/><ssc:Dimension size="3" sizeConnector="n"/>`))), w, r, ">", ">"), "SD1", "both size and sizeConnector"},
		{"two writers", strings.Replace(strings.Replace(bus(inDocument(sound), w, signal("inout", ""), ">", ">"),
			`<ssd:Component name="b" source="b.fmu"><ssd:Connectors>`, `<ssd:Component name="b" source="b.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"/>`, 1),
			`<ssd:Connection startElement="r"`, `<ssd:Connection startElement="b" startConnector="y" endElement="r" endConnector="x"/><ssd:Connection startElement="r"`, 1), "SD9", `"d.x" has two sources`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Refused(t, c.document, nil, Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real), Out("y", ssp.Real)}}, c.id, c.message)
			if len(l.Findings) == 0 || l.Findings[0].Line == 0 {
				t.Errorf("no place: %v", l.Findings)
			}
		})
	}
	document := bus(inDocument(strings.Replace(sound, "<ssc:Real/>", `<ssc:Real unit="?"/>`, 1)), w, r, ">", ">")
	if _, l, err := Flatten(t, document, nil, Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real)}}, false); err != nil || len(l.Findings) != 1 || l.Findings[0].ID != "SD13" {
		t.Errorf("undefined unit: %v, findings %v", err, l.Findings)
	}
	document = strings.Replace(bus(inDocument(sound), w, r, ">", ">"), `<ssd:Connection startElement="w" startConnector="x" endElement="a" endConnector="y"></ssd:Connection>`, "", 1)
	document = strings.Replace(document, "<ssd:Connections>\n\n</ssd:Connections>", "", 1)
	if n, l, err := Flatten(t, document, nil, Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real)}}, false); err != nil || len(n.Connections) != 0 || len(l.Findings) != 1 || l.Findings[0].ID != "SD5D" {
		t.Errorf("nobody writes: %v, findings %v", err, l.Findings)
	}
}
