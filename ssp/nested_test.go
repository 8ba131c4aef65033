package ssp_test

import (
	"cmp"
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
	connectors := func(content string) string {
		return Conns(Con("u", "input", content), Con("y", "output", content), Con("k", "parameter", content))
	}
	bindings := Bindings(Inline("", Parameter("k", RealValue(1, "unit")), ""), Inline("", Parameter("c.p", RealValue(10, "")), ""))
	system := Sys(name, connectors(RealType("unit"))+bindings, `<ssd:Component name="c" source="`+source+`">`+connectors("")+"</ssd:Component>",
		Link("u", "c/u", LinearTransform(2, 0)), Link("y", "c/y", LinearTransform(1, 1)), Link("k", "c/k", ""))
	return strings.Replace(Head, `name="test"`, `name="`+name+`"`, 1) + strings.Replace(system, ">", ` id="`+name+`">`, 1) +
		`<ssd:Units><ssc:Unit name="unit"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssd:Units>` + Tail
}

// around is a document with a source, a component that is another system, and a sink.
// Here "unit" is a metre.
func around(attributes, content, top, more string) string {
	elements := Comp("from", Conns(Con("y", "output", RealType("unit")))) + `<ssd:Component name="s" ` + attributes + `>` + content + `</ssd:Component>` +
		Comp("to", Conns(Con("u", "input", RealType("unit"))))
	return Head + Sys("top", top, elements+more, Link("from/y", "s/u", ""), Link("s/y", "to/u", "")) +
		strings.Replace(Units, `name="m"`, `name="unit"`, 1) + Tail
}

// boxAround is around with box.ssd as the system.
func boxAround(content, top string) string {
	return around(`type="application/x-ssp-definition" source="box.ssd"`, content, top, "")
}

var itsConnectors = Conns(Con("u", "input", ""), Con("y", "output", ""))

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
	inside := around(`source="#box"`, itsConnectors, "", Sys("library", "", system(gain("box", "c.fmu"))))
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
			const path = "s.c"
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
		return Conns(Con("u", "input", ""), Con("y", "output", ""), Con("k", "parameter", RealType(unit)))
	}
	const km = "km"
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
		{"mapped", km, "", Inline("", Parameter("x", RealValue(3, "")), Mapped("x", "k", LinearTransform(2, 1))), "", 7000, `"x" has no unit`, "km → unit"},
		{"not converted", km, "", Inline("", Parameter("x", RealValue(3, "unit")), Mapped("x", "k", "suppress")), "", 3000, "", "km → unit"},
		{"in its own document", km, "", "", RealValue(5, ""), 0.005, "", ""},
		{"where both say the same", "mm", "", Inline("", Parameter("k", RealValue(3, "")), ""), "", 0.003, "", ""},
		{"over a connector of the outermost system", km, Conns(Con("K", "parameter", "")) + Bindings(Inline("", Parameter("K", RealValue(3, "")), "")), "", "", 3000, "", "km → unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := c.top
			if top != "" && !strings.Contains(top, "ParameterBindings") {
				top = Bindings(top)
			}
			document := boxAround(k(c.connector)+Bindings(c.at), top)
			if strings.Contains(top, `name="K"`) {
				document = strings.Replace(document, "<ssd:Connections>", "<ssd:Connections>"+Link("K", "s/k", ""), 1)
			}
			box := strings.Replace(gain("box", "c.fmu"), RealValue(1, "unit"), cmp.Or(c.its, RealValue(1, "unit")), 1)
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
	own := func(name string, v float64, unit string) string {
		return Bindings(Inline("", Parameter(name, RealValue(v, unit)), ""))
	}
	for _, c := range []struct {
		name, top, component string
		variable             string
		want                 float64 // in mm: the FMU knows no unit
		level                string
		overrides            []float64
	}{
		{"component beats it", "", own("k", 2, "unit"), "k", 2000, "s", []float64{1}},
		{"component, no unit", "", own("k", 2, ""), "k", 2, "s", []float64{1}},
		{"around beats component", own("s.k", 3, "unit"), own("k", 2, "unit"), "k", 3000, "", []float64{1, 2000}},
		{"a connector beats the variable behind it", "", own("c.k", 7, ""), "k", 1, "s", []float64{7}},
		{"without a connector in between the order alone counts", "", own("c.p", 20, ""), "p", 20, "s", []float64{10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, _ := Sound(t, boxAround(itsConnectors+c.component, c.top), map[string]string{"box.ssd": gain("box", "c.fmu")}, gainFakes("s.c"))
			s := Settings(n)["s.c."+c.variable]
			var overrides []float64
			for _, o := range s.Overrides {
				overrides = append(overrides, o.Value.Real)
			}
			if s.Value.Real != c.want || s.From.Level != c.level || !slices.Equal(overrides, c.overrides) {
				t.Errorf("%+v, want %v over %v", s, c.want, c.overrides)
			}
		})
	}
}

// The connectors that a component declares are compared with those of the system; a
// unit of another size is a stage of conversion of its own (ssp 31).
func TestNestedConnectors(t *testing.T) {
	files := map[string]string{"box.ssd": gain("box", "c.fmu")}
	u, y, km := Con("u", "input", ""), Con("y", "output", ""), RealType("km")
	for _, c := range []struct {
		name, u, y, id string
		level          diag.Level
		message        string
	}{
		{"kind", strings.Replace(u, "input", "parameter", 1), y, "SD6", diag.Error, "of kind parameter, but of kind input in the system"},
		{"unknown", u, y + Con("z", "output", ""), "SD6U", diag.Info, `has no connector "z"`},
		{"not declared", u, "", "SD5U", diag.Info, `does not declare the connector "y"`},
		{"type", Con("u", "input", "<ssc:Integer/>"), y, "SD7", diag.Warning, "of type Integer, but of type Real in the system"},
		{"unit", Con("u", "input", km), y, "SD7", diag.Warning, "values are converted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, l, err := Flatten(t, boxAround(Conns(c.u, c.y), ""), files, gainFakes("s.c"), false)
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
	document := boxAround(Conns(Con("u", "input", km), Con("y", "output", km)), "")
	document = strings.Replace(document, Link("from/y", "s/u", ""), Link("from/y", "s/u", LinearTransform(2, 1)), 1)
	document = strings.Replace(document, Link("s/y", "to/u", ""), Link("s/y", "to/u", "suppress"), 1)
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
		return Head + Sys("l", "", `<ssd:Component name="again" `+definition+`source="`+source+`"/>`) + Tail
	}
	bomb := Sys("b39", "", Sys("x", "", ""))
	for k := 38; k >= 0; k-- {
		part := fmt.Sprint(`source="#b`, k+1, `"`)
		bomb = Sys(fmt.Sprint("b", k), "", strings.Replace(bomb, ">", fmt.Sprint(` id="b`, k+1, `">`), 1)+`<ssd:Component name="one" `+part+`/><ssd:Component name="two" `+part+`/>`)
	}
	bomb = Head + Sys("b", "", strings.Replace(bomb, ">", ` id="b0">`, 1)) + Tail
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
	inner := Archived(t, ssp.DocumentName, Head+Sys("x", "", "")+Tail)
	for range 33 {
		inner = Archived(t, ssp.DocumentName, Single("x.ssp"), "x.ssp", inner)
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
			document := Head + Sys("top", "", `<ssd:Component name="c" `+c.source+`>`+c.binding+`</ssd:Component>`) + Tail
			if c.id != "" {
				Refused(t, document, c.files, Fakes{"c": vars}, c.id, c.message)
				return
			}
			n, _ := Sound(t, document, c.files, Fakes{"c": vars})
			if got := Values(n); got != c.want {
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
