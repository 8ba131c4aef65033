package ssp_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// gain is a document whose system has an input u, an output y and a parameter k, all
// in mm (which this document calls "unit"), and an FMU behind them: u is doubled on
// the way in, y plus 1 mm on the way out. Its own binding gives k the value 1 mm.
func gain(name, source string) string {
	return strings.Replace(Head, `name="test"`, `name="`+name+`"`, 1) + `<ssd:System name="` + name + `" id="` + name + `"><ssd:Connectors>
<ssd:Connector name="u" kind="input"><ssc:Real unit="unit"/></ssd:Connector>
<ssd:Connector name="y" kind="output"><ssc:Real unit="unit"/></ssd:Connector>
<ssd:Connector name="k" kind="parameter"><ssc:Real unit="unit"/></ssd:Connector>
</ssd:Connectors>` + Bindings(Inline("", Parameter("k", RealValue(1, "unit")), ""), Inline("", Parameter("c.p", RealValue(10, "")), "")) + `<ssd:Elements>
<ssd:Component name="c" source="` + source + `"><ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="y" kind="output"/>
<ssd:Connector name="k" kind="parameter"/></ssd:Connectors></ssd:Component>
</ssd:Elements><ssd:Connections>
<ssd:Connection startConnector="u" endElement="c" endConnector="u">` + LinearTransform(2, 0) + `</ssd:Connection>
<ssd:Connection startConnector="y" endElement="c" endConnector="y">` + LinearTransform(1, 1) + `</ssd:Connection>
<ssd:Connection startConnector="k" endElement="c" endConnector="k"/>
</ssd:Connections></ssd:System>
<ssd:Units><ssc:Unit name="unit"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssd:Units>` + Tail
}

// around is a document with a source, a component that is another system, and a sink.
// Here "unit" is a metre.
func around(attributes, content, top, more string) string {
	return Head + `<ssd:System name="top">` + top + `<ssd:Elements>
<ssd:Component name="from" source="from.fmu"><ssd:Connectors><ssd:Connector name="y" kind="output"><ssc:Real unit="unit"/></ssd:Connector></ssd:Connectors></ssd:Component>
<ssd:Component name="s" ` + attributes + `>` + content + `</ssd:Component>
<ssd:Component name="to" source="to.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"><ssc:Real unit="unit"/></ssd:Connector></ssd:Connectors></ssd:Component>` + more + `
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="from" startConnector="y" endElement="s" endConnector="u"/>
<ssd:Connection startElement="s" startConnector="y" endElement="to" endConnector="u"/>
</ssd:Connections></ssd:System>
<ssd:Units><ssc:Unit name="unit"><ssc:BaseUnit m="1"/></ssc:Unit><ssc:Unit name="km"><ssc:BaseUnit m="1" factor="1000"/></ssc:Unit></ssd:Units>` + Tail
}

const itsConnectors = `<ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="y" kind="output"/></ssd:Connectors>`

func gainFakes(paths ...string) Fakes {
	f := Fakes{"from": {Out("y", ssp.Real)}, "to": {In("u", ssp.Real)}}
	for _, path := range paths {
		f[path] = []ssp.Variable{In("u", ssp.Real), Out("y", ssp.Real), Par("k", ssp.Real), Par("p", ssp.Real)}
	}
	return f
}

// A component that is another system acts as if that stood there (ssp 14, 15): every
// way to refer to one gives the same network.
func TestNested(t *testing.T) {
	const definition, packaged = `type="application/x-ssp-definition" `, `type="application/x-ssp-package" `
	box := Archived(t, ssp.DocumentName, gain("box", "resources/c.fmu"), "resources/c.fmu", "x", "Other.ssd", gain("other", "resources/d.fmu"), "resources/d.fmu", "x")
	inside := strings.Replace(around(`source="#box"`, itsConnectors, "", `
<ssd:System name="library"><ssd:Elements>`+system(gain("box", "c.fmu"))+`</ssd:Elements></ssd:System>`),
		"<ssd:Units>", `<ssd:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>`, 1)
	for _, c := range []struct {
		name, attributes string
		files            map[string]string
		source           string // of the FMU, its last part
		warning          string
	}{
		{"document", definition + `source="sub/box.ssd"`, map[string]string{"sub/box.ssd": gain("box", "c.fmu"), "sub/c.fmu": "x"}, "sub/c.fmu", ""},
		{"document that leads up", definition + `source="sub/box.ssd"`, map[string]string{"sub/box.ssd": gain("box", "../c.fmu"), "c.fmu": "x"}, "c.fmu", ""},
		{"package", packaged + `source="resources/box.ssp"`, map[string]string{"resources/box.ssp": box}, "resources/c.fmu", ""},
		{"variant", packaged + `source="resources/box.ssp#Other.ssd"`, map[string]string{"resources/box.ssp": box}, "resources/d.fmu", ""},
		{"unpacked package", packaged + `source="box"`, map[string]string{"box/" + ssp.DocumentName: gain("box", "c.fmu"), "box/c.fmu": "x"}, "box/c.fmu", ""},
		{"by the ending", `source="box.ssd"`, map[string]string{"box.ssd": gain("box", "c.fmu"), "c.fmu": "x"}, "c.fmu", "SD19T"},
		{"wrong type", definition + `source="box.ssp"`, map[string]string{"box.ssp": box}, "resources/c.fmu", "SD19T"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := "s.c"
			if strings.Contains(c.name, "in a package") {
				path = "s.i.c"
			}
			all := map[string]string{ssp.DocumentName: around(c.attributes, itsConnectors, "", ""), "from.fmu": "x", "to.fmu": "x"}
			maps.Copy(all, c.files)
			for _, form := range []string{"folder", "package"} {
				dir := Folder(t, all)
				if form == "package" {
					dir = Pack(t, Entries(all)...)
				}
				l := &diag.List{}
				p := Open(t, dir, l)
				if err := p.CheckSources(l); err != nil {
					t.Fatal(err)
				}
				n, err := p.Flatten(gainFakes(path), l)
				if err != nil {
					t.Fatal(err)
				}
				got := Links(n)
				// m → mm: 1000 y, doubled; back: y mm + 1 mm in m
				if in, ok := got["from.y → "+path+".u"]; !ok || in.Gain != 2000 || in.Offset != 0 {
					t.Errorf("%s: connections %+v", form, got)
				}
				if back, ok := got[path+".y → to.u"]; !ok || back.Gain != 0.001 || back.Offset != 0.001 || len(got) != 2 {
					t.Errorf("%s: connections %+v", form, got)
				}
				s := Settings(n)
				if len(s) != 2 || s[path+".k"].Value.Real != 1 || s[path+".p"].Value.Real != 10 {
					t.Errorf("%s: settings %+v", form, s)
				}
				if IDs(slices.DeleteFunc(slices.Clone(l.Findings), func(f diag.Finding) bool { return f.ID == "SD2V" })) != c.warning {
					t.Errorf("%s: findings %v, want %q", form, l.Findings, c.warning)
				}
				fmu := p.Components()[1]
				if !strings.HasSuffix(fmu.Source, filepath.FromSlash(c.source)) || !strings.HasSuffix(fmu.Shown, filepath.FromSlash(c.source)) || !strings.HasPrefix(fmu.Shown, dir) {
					t.Errorf("%s: the FMU %q, shown as %q", form, fmu.Source, fmu.Shown)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(fmu.Source); (form == "package" || strings.Contains(c.name, "package")) && !strings.HasPrefix(fmu.Source, dir) && err == nil {
					t.Errorf("%s: %s is still there after Close", form, fmu.Source)
				}
			}
		})
	}
	t.Run("part of this document", func(t *testing.T) {
		// In one file "unit" has one meaning, the metre: u is doubled, y gets 1 m more.
		vars := gainFakes("s.c", "library.box.c")
		n, l := Sound(t, inside, nil, vars)
		got := Links(n)
		if in := got["from.y → s.c.u"]; in.Gain != 2 || got["s.c.y → to.u"].Offset != 1 || len(got) != 2 {
			t.Errorf("connections %+v", got)
		}
		if s := Settings(n); len(s) != 4 || s["s.c.k"].Value.Real != 1 || s["library.box.c.k"].Value.Real != 1 {
			t.Errorf("settings %+v; findings %v", s, l.Findings)
		}
	})
}

// A value without a unit is in that of what it is given to: where a system stands for a
// component, that of the connector in the document which binds it (ssp 15, 31). By hand:
// k is km at the component, mm at the system in its place, m in the FMU.
func TestValuesWithoutUnit(t *testing.T) {
	k := func(unit string) string {
		return itsConnectors[:len(itsConnectors)-len("</ssd:Connectors>")] + `<ssd:Connector name="k" kind="parameter"><ssc:Real` + unit + `/></ssd:Connector></ssd:Connectors>`
	}
	const km = ` unit="km"`
	mapped := func(attributes, transformation string) string {
		return `<ssm:MappingEntry source="x" target="k"` + attributes + `>` + transformation + `</ssm:MappingEntry>`
	}
	for _, c := range []struct {
		name          string
		connector     string // of the component
		top, at, its  string // bindings at the outermost system, at the component, and what its document binds in place of 1 mm
		want          float64
		warning, step string
	}{
		{"at the component", km, "", Inline("", Parameter("k", RealValue(3, "")), ""), "", 3000, `"k" has no unit; it is read in "km", the unit of the connector of the component, not in "unit"`, "no unit"},
		{"at the outermost system", km, Inline("", Parameter("s.k", RealValue(3, "")), ""), "", "", 3000, `"s.k" has no unit; it is read in "km"`, "km → unit"},
		{"with a unit", km, "", Inline("", Parameter("k", RealValue(3, "unit")), ""), "", 3, "", ""},
		{"mapped", km, "", Inline("", Parameter("x", RealValue(3, "")), mapped("", LinearTransform(2, 1))), "", 7000, `"x" has no unit`, "km → unit"},
		{"not converted", km, "", Inline("", Parameter("x", RealValue(3, "unit")), mapped(` suppressUnitConversion="true"`, "")), "", 3000, "", "km → unit"},
		{"in its own document", km, "", "", RealValue(5, ""), 0.005, "", ""},
		{"where both say the same", ` unit="mm"`, "", Inline("", Parameter("k", RealValue(3, "")), ""), "", 0.003, "", ""},
		{"over a connector of the outermost system", km, `<ssd:Connectors><ssd:Connector name="K" kind="parameter"/></ssd:Connectors>` + Bindings(Inline("", Parameter("K", RealValue(3, "")), "")), "", "", 3000, "", "km → unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := c.top
			if top != "" && !strings.Contains(top, "ParameterBindings") {
				top = Bindings(top)
			}
			document := around(`type="application/x-ssp-definition" source="box.ssd"`, k(c.connector)+Bindings(c.at), top, "")
			document = strings.Replace(document, "<ssd:Units>", `<ssd:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>`, 1)
			if strings.Contains(top, `name="K"`) {
				document = strings.Replace(document, "<ssd:Connections>", `<ssd:Connections><ssd:Connection startConnector="K" endElement="s" endConnector="k"/>`, 1)
			}
			box := gain("box", "c.fmu")
			if c.its != "" {
				box = strings.Replace(box, RealValue(1, "unit"), c.its, 1)
			}
			vars := gainFakes("s.c")
			vars["s.c"][2] = With(Par("k", ssp.Real), "m", Metre)
			n, l, err := Flatten(t, document, map[string]string{"box.ssd": box, "c.fmu": "x", "from.fmu": "x", "to.fmu": "x"}, vars, false)
			if err != nil {
				t.Fatal(err)
			}
			s := Settings(n)["s.c.k"]
			if math.Abs(s.Value.Real-c.want) > 1e-12*c.want {
				t.Errorf("k is %v m, want %v; %+v", s.Value.Real, c.want, s.From.Steps)
			}
			if c.step != "" && !slices.ContainsFunc(s.From.Steps, func(s ssp.Step) bool { return strings.HasPrefix(s.What, c.step) }) {
				t.Errorf("no step %q: %+v", c.step, s.From.Steps)
			}
			told := slices.DeleteFunc(slices.Clone(l.Findings), func(f diag.Finding) bool { return f.ID != "SD13V" })
			if (c.warning != "") != (len(told) == 1) || len(told) == 1 && !strings.Contains(told[0].Message, c.warning) {
				t.Errorf("findings %v, want %q", told, c.warning)
			}
		})
	}
}

// system cuts the System out of a document.
func system(document string) string {
	from := strings.Index(document, "<ssd:System name")
	return document[from : strings.LastIndex(document, "</ssd:System>")+len("</ssd:System>")]
}

// Bindings of a component that is a system stand behind those of that system, before
// those around it (ssp 15, 36), each in the units of its own file.
func TestNestedPrecedence(t *testing.T) {
	own := func(v float64, unit string) string {
		return Bindings(Inline("", Parameter("k", RealValue(v, unit)), ""))
	}
	outer := func(v float64, unit string) string {
		return Bindings(Inline("", Parameter("s.k", RealValue(v, unit)), ""))
	}
	deep := Bindings(Inline("", Parameter("c.k", RealValue(7, "")), ""))
	for _, c := range []struct {
		name, top, component string
		want                 float64 // of k, in mm: the FMU knows no unit
		overrides            int
	}{
		{"component beats it", "", own(2, "unit"), 2000, 1},
		{"component, no unit", "", own(2, ""), 2, 1},
		{"around beats component", outer(3, "unit"), own(2, "unit"), 3000, 2},
		{"a connector beats the variable behind it", "", deep, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, _ := Sound(t, around(`source="box.ssd" type="application/x-ssp-definition"`, itsConnectors+c.component, c.top, ""),
				map[string]string{"box.ssd": gain("box", "c.fmu")}, gainFakes("s.c"))
			s := Settings(n)["s.c.k"]
			if s.Value.Real != c.want || len(s.Overrides) != c.overrides {
				t.Errorf("%+v, want %v over %d others", s, c.want, c.overrides)
			}
		})
	}
	// Without a connector in between the order alone counts.
	p := Bindings(Inline("", Parameter("c.p", RealValue(20, "")), ""))
	n, _ := Sound(t, around(`source="box.ssd" type="application/x-ssp-definition"`, itsConnectors+p, "", ""),
		map[string]string{"box.ssd": gain("box", "c.fmu")}, gainFakes("s.c"))
	if s := Settings(n)["s.c.p"]; s.Value.Real != 20 || s.From.Level != "s" || len(s.Overrides) != 1 || s.Overrides[0].Value.Real != 10 {
		t.Errorf("%+v", s)
	}
}

// The connectors that a component declares are compared with those of the system; a
// unit of another size is a stage of conversion of its own (ssp 31).
func TestNestedConnectors(t *testing.T) {
	files := map[string]string{"box.ssd": gain("box", "c.fmu")}
	component := func(u, y string) string {
		return `<ssd:Connectors>` + u + y + `</ssd:Connectors>`
	}
	const u, y = `<ssd:Connector name="u" kind="input"/>`, `<ssd:Connector name="y" kind="output"/>`
	for _, c := range []struct {
		name, u, y, id string
		level          diag.Level
		message        string
	}{
		{"kind", strings.Replace(u, "input", "parameter", 1), y, "SD6", diag.Error, "of kind parameter, but of kind input in the system"},
		{"unknown", u, y + `<ssd:Connector name="z" kind="output"/>`, "SD6U", diag.Info, `has no connector "z"`},
		{"not declared", u, "", "SD5U", diag.Info, `does not declare the connector "y"`},
		{"type", `<ssd:Connector name="u" kind="input"><ssc:Integer/></ssd:Connector>`, y, "SD7", diag.Warning, "of type Integer, but of type Real in the system"},
		{"unit", `<ssd:Connector name="u" kind="input"><ssc:Real unit="km"/></ssd:Connector>`, y, "SD7", diag.Warning, "values are converted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, l, err := Flatten(t, around(`source="box.ssd" type="application/x-ssp-definition"`, component(c.u, c.y), "", ""), files, gainFakes("s.c"), false)
			found := l.At(c.level)
			if len(found) != 1 || found[0].ID != c.id || !strings.Contains(found[0].Message, c.message) || found[0].Line == 0 {
				t.Errorf("findings %v, want %s with %q", l.Findings, c.id, c.message)
			}
			if (err != nil) != (c.level == diag.Error) {
				t.Errorf("error %v", err)
			}
			if n != nil {
				if got := Links(n)["from.y → s.c.u"]; got.Gain != 2000 || got.Offset != 0 {
					t.Errorf("connection %+v", got)
				}
			}
		})
	}
	// The transformation of a connection works in the unit of the connector that is
	// declared around: 2·y + 1 km, then mm and doubled.
	km := `<ssd:Connector name="u" kind="input"><ssc:Real unit="km"/></ssd:Connector>`
	kmOut := `<ssd:Connector name="y" kind="output"><ssc:Real unit="km"/></ssd:Connector>`
	document := around(`source="box.ssd" type="application/x-ssp-definition"`, component(km, kmOut), "", "")
	document = strings.Replace(document, `endElement="s" endConnector="u"/>`, `endElement="s" endConnector="u">`+LinearTransform(2, 1)+`</ssd:Connection>`, 1)
	document = strings.Replace(document, `endElement="to" endConnector="u"/>`, `endElement="to" endConnector="u" suppressUnitConversion="true"/>`, 1)
	n, _ := Sound(t, document, files, gainFakes("s.c"))
	if got := Links(n)["from.y → s.c.u"]; !Near(got.Gain, 4000) || !Near(got.Offset, 2e6) {
		t.Errorf("connection %+v", got)
	}
	// Out: y mm + 1 mm in km; not converted further.
	if got := Links(n)["s.c.y → to.u"]; !Near(got.Gain, 1e-6) || !Near(got.Offset, 1e-6) {
		t.Errorf("connection %+v", got)
	}
}

// What cannot be put in the place of a component is named with its place.
func TestNestedErrors(t *testing.T) {
	const definition, packaged = `type="application/x-ssp-definition" `, `type="application/x-ssp-package" `
	loop := func(source string) string {
		return Head + `<ssd:System name="l"><ssd:Elements><ssd:Component name="again" ` + definition + `source="` + source + `"/></ssd:Elements></ssd:System>` + Tail
	}
	bomb := Head + `<ssd:System name="b"><ssd:Elements>`
	for k := range 40 {
		bomb += fmt.Sprintf(`<ssd:System name="b%d" id="b%d"><ssd:Elements>`, k, k)
		for i := range 2 {
			if k < 39 {
				bomb += fmt.Sprintf(`<ssd:Component name="c%d" source="#b%d"/>`, i, k+1)
			}
		}
		bomb += `<ssd:System name="x"/></ssd:Elements></ssd:System>`
	}
	bomb += `</ssd:Elements></ssd:System>` + Tail
	for _, c := range []struct {
		name, attributes string
		files            map[string]string
		id, message      string
	}{
		{"missing", definition + `source="sub/x.ssd"`, map[string]string{"x.ssd": gain("x", "c.fmu")}, "SD2", `at "x.ssd": is it the right one`},
		{"no document in it", packaged + `source="x.ssp"`, map[string]string{"x.ssp": Archived(t, "Other.ssd", "")}, "SD2", "SystemStructure.ssd, only Other.ssd"},
		{"variant elsewhere", packaged + `source="x.ssp#../V.ssd"`, map[string]string{"x.ssp": Archived(t, ssp.DocumentName, gain("x", "c.fmu"))}, "SD2", "names no variant"},
		{"no such part", definition + `source="x.ssd#y"`, map[string]string{"x.ssd": gain("x", "c.fmu")}, "SD19", `of "x.ssd" has the id "y"`},
		{"out of its package", packaged + `source="x.ssp"`, map[string]string{"x.ssp": Archived(t, ssp.DocumentName, loop("../y.ssd"))}, "SD2", "leads out of the package"},
		{"contains itself", definition + `source="x.ssd"`, map[string]string{"x.ssd": loop("x.ssd")}, "SD19", `"l" contains itself`},
		{"is no archive", packaged + `source="x.ssp"`, map[string]string{"x.ssp": "hello"}, "SD1", "not well-formed"},
		{"broken archive", packaged + `source="x.ssp"`, map[string]string{"x.ssp": "PK\x03\x04hello"}, "SD19", "cannot be unpacked"},
		{"unfolds for ever", definition + `source="x.ssd#b0"`, map[string]string{"x.ssd": bomb}, "SD19", "unfolds to more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Refused(t, around(c.attributes, "", "", ""), c.files, gainFakes("s.c"), c.id, c.message)
			if c.name != "is no archive" && !slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return f.ID == c.id && f.Line > 0 }) {
				t.Errorf("no place: %v", l.Findings)
			}
		})
	}
}

// Packages that lie within each other without end come to one.
func TestNestedDepth(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // nobody else's folders are counted
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	inner := Archived(t, ssp.DocumentName, Head+`<ssd:System name="x"/>`+Tail)
	for range 33 {
		inner = Archived(t, ssp.DocumentName, Head+`<ssd:System name="x"><ssd:Elements><ssd:Component name="c" type="application/x-ssp-package" source="x.ssp"/></ssd:Elements></ssd:System>`+Tail, "x.ssp", inner)
	}
	before := len(unpacked(t))
	_, err := ssp.Open(Folder(t, map[string]string{ssp.DocumentName: Single("x.ssp"), "x.ssp": inner}), nil)
	if !diag.Has(err, "SD19") || !strings.Contains(err.Error(), "packages are nested") {
		t.Errorf("error %v", err)
	}
	if after := len(unpacked(t)); after != before {
		t.Errorf("%d folders are left", after-before)
	}
}

// Parameter files inside of components (ssp 33).
func TestInsideComponents(t *testing.T) {
	set := strings.ReplaceAll(BaseSet, `name="gain"`, `name="p"`)
	mapping := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(BaseMap, `target="a.k"`, `target="p"`), `target="level"`, `target="q"`), `source="gain"`, `source="p"`)
	binding := func(attrs, mapping string) string {
		return Bindings(`<ssd:ParameterBinding sourceBase="component" ` + attrs + `>` + mapping + `</ssd:ParameterBinding>`)
	}
	vars := []ssp.Variable{Par("p", ssp.Real), Par("q", ssp.Real), Par("height", ssp.Real)}
	fmu := Archived(t, "modelDescription.xml", "", "extra/p.ssv", set, "extra/p.ssm", mapping)
	for _, c := range []struct {
		name, source, binding string
		files                 map[string]string
		want, id, message     string
	}{
		{"set and mapping", `source="c.fmu"`, binding(`source="extra/p.ssv"`, `<ssd:ParameterMapping sourceBase="component" source="extra/p.ssm"/>`), map[string]string{"c.fmu": fmu}, "p=30 q=4", "", ""},
		{"unpacked FMU", `source="c"`, binding(`source="extra/p.ssv"`, ""), map[string]string{"c/extra/p.ssv": set}, "height=4 p=3", "", ""},
		{"not there", `source="c.fmu"`, binding(`source="extra/x.ssv"`, ""), map[string]string{"c.fmu": fmu}, "", "SD2", `"extra/x.ssv" inside "c.fmu" cannot be read`},
		{"leads out", `source="c.fmu"`, binding(`source="../x.ssv"`, ""), map[string]string{"c.fmu": fmu}, "", "SD2", "leads out of the package"},
		{"no FMU", `source="c.fmu"`, binding(`source="x.ssv"`, ""), nil, "", "SD2", `inside "c.fmu", which cannot be read`},
		{"placeholder", ``, binding(`source="x.ssv"`, ""), nil, "", "SD2", "has no source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := Head + `<ssd:System name="top"><ssd:Elements><ssd:Component name="c" ` + c.source + `>` + c.binding + `</ssd:Component></ssd:Elements></ssd:System>` + Tail
			if c.id != "" {
				Refused(t, document, c.files, Fakes{"c": vars}, c.id, c.message)
				return
			}
			n, _ := Sound(t, document, c.files, Fakes{"c": vars})
			var got []string
			for _, s := range n.Settings {
				got = append(got, s.Variable+"="+s.Value.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("settings %v, want %s", got, c.want)
			}
		})
	}
	// Inside a component that is a system: in its package, or beside its document.
	sub := strings.Replace(BaseSet, `name="gain"`, `name="c.p"`, 1)
	for name, files := range map[string]map[string]string{
		"box.ssp":     {"box.ssp": Archived(t, ssp.DocumentName, gain("box", "c.fmu"), "p.ssv", sub)},
		"sub/box.ssd": {"sub/box.ssd": gain("box", "c.fmu"), "sub/p.ssv": sub},
	} {
		n, _ := Sound(t, around(`source="`+name+`"`, itsConnectors+binding(`source="p.ssv"`, ""), "", ""), files, gainFakes("s.c"))
		if s := Settings(n)["s.c.p"]; s.Value.Real != 3 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
