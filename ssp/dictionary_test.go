package ssp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
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

// dictionaries are those of a system: name, document, name, document …
func dictionaries(list ...string) (text string) {
	for i := 0; i < len(list); i += 2 {
		text += `<ssd:SignalDictionary name="` + list[i] + `">` + list[i+1] + `</ssd:SignalDictionary>`
	}
	return "<ssd:SignalDictionaries>" + text + "</ssd:SignalDictionaries>"
}

// reference refers to entries of a dictionary.
func reference(name, dictionary string, connectors ...string) string {
	return `<ssd:SignalDictionaryReference name="` + name + `" dictionary="` + dictionary + `">` + Conns(connectors...) + `</ssd:SignalDictionaryReference>`
}

// bus is a system in which component a writes the entry x of a dictionary and b, in a system of its own, reads it: write
// and read are the contents of the connectors of the two references, to and from those of the connections at them.
func bus(dictionary, write, read, to, from string) string {
	reader := Sys("s", "", Comp("b", Conns(Con("u", "input", "")))+reference("r", "d", Con("x", "output", read)), Link("r/x", "b/u", from))
	writer := Comp("a", Conns(Con("y", "output", ""))) + reference("w", "d", Con("x", "input", write))
	return Sys("top", dictionaries("d", dictionary), writer+reader, Link("w/x", "a/y", to))
}

// Two dictionaries with other names and units are joined by connections between their
// references; the same connector may be written and read; system connectors take part.
func TestDictionariesJoined(t *testing.T) {
	const inU = `<ssc:Real unit="u"/>`
	two := strings.Replace(dictionary(entry("z", inU)), "0.01", "0.1", 1)
	document := Head + Sys("top", Conns(Con("result", "output", ""), Con("set", "input", ""))+
		Bindings(Inline("", Parameter("set", RealValue(5, "")), ""))+dictionaries("one", dictionary(entry("x", inU), entry("s", inU)), "two", two),
		Comp("a", Conns(Con("y", "output", "")))+Comp("b", Conns(Con("u", "input", ""), Con("v", "input", ""), Con("w", "input", "")))+
			reference("one", "one", Con("x", "inout", ""), Con("s", "inout", ""))+reference("two", "two", Con("z", "input", ""))+
			reference("too", "two", Con("z", "output", "")),
		Link("a/y", "one/x", ""), Link("one/x", "b/u", ""), Link("one/x", "two/z", LinearTransform(3, 0)), Link("too/z", "b/v", ""),
		Link("too/z", "result", ""), Link("set", "one/s", ""), Link("b/w", "one/s", "")) + Tail
	metres := func(name string) ssp.Variable { return With(In(name, ssp.Real), "m", Metre) }
	n, l := Sound(t, document, nil, Fakes{"a": {With(Out("y", ssp.Real), "m", Metre)}, "b": {metres("u"), metres("v"), metres("w")}})
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
	if IDs(l.Findings) != "SD1S" { // the dictionaries come before the elements
		t.Errorf("findings %v", l.Findings)
	}
}

// What a dictionary or a reference may not be.
func TestBadDictionaries(t *testing.T) {
	with := func(content string) string { return bus(dictionary(entry("x", content)), "", "", "", "") }
	sound := with("<ssc:Real/>")
	own, input, output := dictionaries("d", dictionary(entry("x", "<ssc:Real/>"))), `name="x" kind="input"`, `name="x" kind="output"`
	beside := strings.Replace(strings.Replace(sound, own, "", 1), `<ssd:System name="s">`, `<ssd:System name="s">`+own, 1)
	seconds := strings.Replace(bus(dictionary(entry("x", `<ssc:Real unit="u"/>`)), RealType("m"), "", "", ""), `m="1" factor="0.01"`, `s="1"`, 1)
	both := strings.Replace(sound, Link("r/x", "b/u", ""), Link("b/y", "r/x", "")+Link("r/x", "b/u", ""), 1)
	vars := Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real), Out("y", ssp.Real)}}
	for _, c := range []struct{ name, system, id, message string }{
		{"no type", with(""), "SD1", `entry "x" has no type`},
		{"two types", with("<ssc:Real/><ssc:Integer/>"), "SD1", "more than one type"},
		{"entry twice", bus(dictionary(entry("x", "<ssc:Real/>"), entry("x", "<ssc:Real/>")), "", "", "", ""), "SD4", `entry of this dictionary is called "x" too`},
		{"in a system beside", beside, "SD19", `around "w"`},
		{"written at an output", strings.Replace(sound, input, output, 1), "SD8", "neither can feed the other"},
		{"units", seconds, "SD11", `"m" cannot be converted into "u"`},
		{"array", bus(dictionary(entry("x", `<ssc:Real/><ssc:Dimension size="3"/>`)), "<ssc:Dimension/>", "", "", ""), "SD10", "is an array"},
		{"dimension", with(`<ssc:Real/><ssc:Dimension size="3" sizeConnector="n"/>`), "SD1", "both size and sizeConnector"},
		{"two writers", strings.Replace(both, output, `name="x" kind="inout"`, 1), "SD9", `"d.x" has two sources`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Refused(t, Head+c.system+Units+Tail, nil, vars, c.id, c.message)
			if !slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return f.ID == c.id && f.Line > 0 }) {
				t.Errorf("no place: %v", l.Findings)
			}
		})
	}
	for want, system := range map[string]string{
		"SD13": with(`<ssc:Real unit="?"/>`),
		"SD5D": strings.Replace(sound, "<ssd:Connections>"+Link("w/x", "a/y", "")+"</ssd:Connections>", "", 1), // nobody writes
	} {
		n, l := Sound(t, Head+system+Tail, nil, vars)
		if IDs(l.Findings) != "SD1S "+want || want == "SD5D" && len(n.Connections) != 0 {
			t.Errorf("findings %v, want %s", l.Findings, want)
		}
	}
}
