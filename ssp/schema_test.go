package ssp_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// What the schemas refuse is told with its line, runs all the same and is refused in
// strict mode (ssp 7): each change of a document that is valid, and what is told of it.
func TestSchemas(t *testing.T) {
	const (
		set = `<ssv:ParameterSet version="2.0" name="s" id="set" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssv:Parameters>
<ssv:Parameter name="p"><ssv:Real value="1" unit="m"/></ssv:Parameter>
<ssv:Parameter name="raw"><ssv:Binary value="00ff"/></ssv:Parameter>
</ssv:Parameters>
<ssv:Enumerations><ssc:Enumeration name="e"><ssc:Item name="i" value="1"/></ssc:Enumeration></ssv:Enumerations>
<ssv:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit></ssv:Units>
<ssc:MetaData kind="general" type="text/x"><ssc:Content><x/></ssc:Content></ssc:MetaData>
<ssc:Signature role="suitability" type="t"/>
<ssv:Annotations><ssc:Annotation type="org.x"><x/></ssc:Annotation></ssv:Annotations>
</ssv:ParameterSet>`
		mapping = `<ssm:ParameterMapping version="1.0" xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssm:MappingEntry source="a" target="b"><ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="2"/></ssc:IntegerMappingTransformation></ssm:MappingEntry>
<ssm:Annotations><ssc:Annotation type="org.x"/></ssm:Annotations>
</ssm:ParameterMapping>`
		signals = `<ssb:SignalDictionary version="1.0" xmlns:ssb="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssb:DictionaryEntry name="x"><ssc:Real unit="m"/></ssb:DictionaryEntry>
<ssb:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit></ssb:Units>
</ssb:SignalDictionary>`
	)
	for _, c := range []struct {
		document, old, new, id, message string
		line                            int
	}{
		{set, "", "", "", "", 0},
		{mapping, "", "", "", "", 0},
		{signals, "", "", "", "", 0},
		{set, `<ssc:Item name="i" value="1"/>`, "", "SD1S", `"ssc:Enumeration" contains no Item`, 6},
		{set, "<ssv:Parameters>\n", `<ssc:MetaData kind="quality" type="t"/><ssv:Parameters>` + "\n", "SD1S", `"ssv:Parameters" comes after "ssc:MetaData"`, 2},
		{set, ` name="s"`, "", "SD1S", `"name" is missing`, 1},
		{set, `<ssv:Parameter name="p">`, `<ssv:Parameter name="p" id="set">`, "SD1S", "occurs twice in this file", 3},
		{set, "<x/></ssc:Annotation>", "<x/><x/></ssc:Annotation>", "SD1S", "contains 2 elements", 10},
		{set, "<ssc:Content><x/></ssc:Content>", "<x/>", "SD1U", `"x"`, 8},
		{set, `<ssc:BaseUnit m="1"/>`, `<ssc:BaseUnit m="1"><x/></ssc:BaseUnit>`, "SD1U", `"x"`, 7},
		{set, `<ssc:BaseUnit m="1"/>`, `<ssc:BaseUnit m="1"/><ssv:Annotations><ssc:Annotation type="org.x"/></ssv:Annotations>`, "SD1T", "belongs to the namespace", 7},
		{set, "<ssv:Parameters>\n", "<ssv:Parameters>\nstray\ntext\n", "SD1S", `the text "stray…" in "ssv:Parameters" is not allowed`, 3},
		{set, "</ssv:Parameters>\n", "x&amp;y </ssv:Parameters>\n", "SD1S", `the text "x&y" in "ssv:Parameters"`, 5},
		{set, "<x/></ssc:Annotation>", "text<x>text</x></ssc:Annotation>", "", "", 0},
		{mapping, `<ssc:MapEntry source="1" target="2"/>`, "", "SD1S", "contains no MapEntry", 2},
		{mapping, `<ssc:Annotation type="org.x"/>`, "", "SD1S", "contains no Annotation", 3},
		{signals, "<ssb:DictionaryEntry", `<ssb:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit></ssb:Units><ssb:DictionaryEntry`, "SD1S", `"ssb:DictionaryEntry" comes after "ssb:Units"`, 2},
	} {
		text := strings.Replace(c.document, c.old, c.new, 1)
		if strings.Contains(c.message, "DictionaryEntry") { // moved, not doubled
			at := strings.LastIndex(text, "<ssb:Units>")
			text = text[:at] + text[strings.LastIndex(text, "</ssb:SignalDictionary>"):]
		}
		l := &diag.List{}
		if root, known := ssp.CheckPart([]byte(text), "part", l); !known || !strings.Contains(text, root+` version="`) {
			t.Errorf("%s: root element %q, known %t", c.message, root, known)
		}
		var got []diag.Finding
		for _, f := range l.Findings {
			if f.Level > diag.Info || f.Inert {
				got = append(got, f)
			}
		}
		switch {
		case l.Err() != nil:
			t.Errorf("%s: %v", c.message, l.Err())
		case c.id == "" && len(got) > 0:
			t.Errorf("findings %v", got)
		case c.id == "":
		case len(got) != 1 || got[0].ID != c.id || got[0].Line != c.line || !strings.Contains(got[0].Message, c.message):
			t.Errorf("findings %v, want %s in line %d with %q", got, c.id, c.line, c.message)
		}
	}
}

// Systems, and what is no XML, are no documents of CheckPart; errors in a set are reported.
func TestCheckPart(t *testing.T) {
	for _, c := range []struct {
		text, root string
		known      bool
		finding    string
	}{
		{BaseSet, "ParameterSet", true, ""},
		{strings.Replace(BaseSet, `name="height"`, `name="gain"`, 1), "ParameterSet", true, "SD16T"},
		{base, "SystemStructureDescription", false, "SD1"},
		{"hello", "", false, "SD1"},
		{"", "", false, "SD1"},
	} {
		l := &diag.List{}
		root, known := ssp.CheckPart([]byte(c.text), "x.xml", l)
		if root != c.root || known != c.known || IDs(l.Findings) != c.finding {
			t.Errorf("%.40q: %q, %t, findings %v, want %s", c.text, root, known, l.Findings, c.finding)
		}
	}
}

// Files of any kind outside of the folder of a document are reported where it refers to
// them (ssp 12).
func TestFilesOutside(t *testing.T) {
	document := Head + `<ssd:System name="top"><ssd:ParameterBindings><ssd:ParameterBinding source="../set.ssv"/>
<ssd:ParameterBinding source="in/set.ssv"/></ssd:ParameterBindings><ssd:Elements>
<ssd:Component name="out" type="application/x-ssp-definition" source="../box.ssd"/>
<ssd:Component name="in" type="application/x-ssp-definition" source="in/box.ssd"/></ssd:Elements>
<ssd:Connections><ssd:Connection startElement="in" startConnector="y" endElement="out" endConnector="u"/></ssd:Connections></ssd:System>` + Tail
	set := `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="` + xmltree.SSV + `"><ssv:Parameters/></ssv:ParameterSet>`
	box := func(connector string) string {
		return Head + `<ssd:System name="box"><ssd:Connectors>` + connector + `</ssd:Connectors><ssd:ParameterBindings><ssd:ParameterBinding source="../set.ssv"/></ssd:ParameterBindings></ssd:System>` + Tail
	}
	dir := Folder(t, map[string]string{"set.ssv": set, "box.ssd": strings.Replace(box(`<ssd:Connector name="u" kind="input"/>`), "../set.ssv", "set.ssv", 1),
		"system/" + ssp.DocumentName: document, "system/set.ssv": set, "system/in/set.ssv": set, "system/in/box.ssd": box(`<ssd:Connector name="y" kind="output"/>`)})
	l := &diag.List{}
	Open(t, filepath.Join(dir, "system"), l)
	first := strings.Count(Head, "\n") + 1
	want := []string{
		fmt.Sprint(first, ` the file "../set.ssv" lies outside`),
		fmt.Sprint(first+2, ` the source "../box.ssd" of component "out" lies outside`),
		fmt.Sprint(first, ` the file "set.ssv" lies outside`), // of the box outside, beside it
	}
	var got []string
	for _, f := range l.Findings {
		if text, _, is := strings.Cut(f.Message, " the folder"); is && f.ID == "SD2O" && f.Level == diag.Info {
			got = append(got, fmt.Sprint(f.Line, " ", text))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("findings %v, want %q", l.Findings, want)
	}
}
