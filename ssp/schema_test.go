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

// Systems, and what is no XML, are no documents of CheckPart; errors in a set are reported.
func TestCheckPart(t *testing.T) {
	for _, c := range []struct {
		text, root string
		known      bool
		finding    string
	}{
		{BaseSet, "ParameterSet", true, ""},
		{strings.Replace(BaseSet, `name="height"`, `name="gain"`, 1), "ParameterSet", true, "SD16T"},
		{Base, "SystemStructureDescription", false, "SD1"},
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
