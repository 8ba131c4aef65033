package ssp

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// con is a connector, and conns several.
func con(name, kind, content string) string {
	return `<ssd:Connector name="` + name + `" kind="` + kind + `">` + content + `</ssd:Connector>`
}

func conns(list ...string) string {
	return "<ssd:Connectors>" + strings.Join(list, "") + "</ssd:Connectors>"
}

// link is a connection between "element.connector" or a connector of the system.
func link(from, to, content string) string {
	end := func(which, name string) string {
		element, connector, inside := strings.Cut(name, "/")
		if !inside {
			element, connector = "", name
		}
		text := ` ` + which + `Connector="` + connector + `"`
		if inside {
			text += ` ` + which + `Element="` + element + `"`
		}
		return text
	}
	attributes := ""
	if rest, ok := strings.CutPrefix(content, "suppress"); ok {
		attributes, content = ` suppressUnitConversion="true"`, rest
	}
	return "<ssd:Connection" + end("start", from) + end("end", to) + attributes + ">" + content + "</ssd:Connection>\n"
}

// sys is a system with what stands before its elements, its elements, and connections.
func sys(name, before, elements string, connections ...string) string {
	text := `<ssd:System name="` + name + `">` + before
	if elements != "" {
		text += "<ssd:Elements>" + elements + "</ssd:Elements>"
	}
	if len(connections) > 0 {
		text += "<ssd:Connections>" + strings.Join(connections, "") + "</ssd:Connections>"
	}
	return text + "</ssd:System>\n"
}

func comp(name, content string) string {
	return `<ssd:Component name="` + name + `" source="` + name + `.fmu">` + content + `</ssd:Component>`
}

func mapped(source, target, content string) string {
	return `<ssm:MappingEntry source="` + source + `" target="` + target + `">` + content + `</ssm:MappingEntry>`
}

func dictionaries(name string) string {
	return `<ssd:SignalDictionaries><ssd:SignalDictionary name="` + name + `">` + dictionary(entry("n", "<ssc:Real/>")) + `</ssd:SignalDictionary></ssd:SignalDictionaries>`
}

// reference refers to the entry n of a dictionary.
func reference(name, dictionary string) string {
	return `<ssd:SignalDictionaryReference name="` + name + `" dictionary="` + dictionary + `">` + conns(con("n", "inout", "")) + `</ssd:SignalDictionaryReference>`
}

const nastyNames = `<ssd:Enumerations>
<ssc:Enumeration name="abc"><ssc:Item name="A" value="1"/><ssc:Item name="B" value="2"/><ssc:Item name="C" value="7"/></ssc:Enumeration>
<ssc:Enumeration name="cba"><ssc:Item name="A" value="7"/><ssc:Item name="B" value="2"/><ssc:Item name="C" value="1"/></ssc:Enumeration>
</ssd:Enumerations>
<ssd:Units>
<ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit>
<ssc:Unit name="degC"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
<ssc:Unit name="degF"><ssc:BaseUnit K="1" factor="0.5" offset="255"/></ssc:Unit>
<ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
<ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>
<ssc:Unit name="km"><ssc:BaseUnit m="1" factor="1000"/></ssc:Unit>
</ssd:Units>`

// Systems that ask for several things at once, each against what the standard gives
// by hand. The summary has the connections as "from → to type gain offset table", the
// values as "component variable value level others".
func TestNasty(t *testing.T) {
	const real = "<ssc:Real/>"
	degF := with(in("u", Real), "F", degF())
	abc, cba := map[string]int32{"A": 1, "B": 2, "C": 7}, map[string]int32{"A": 7, "B": 2, "C": 1}
	calc := out("q", Real)
	calc.Causality = "calculatedParameter"
	cases := []struct {
		name     string
		document string // what stands between head and tail, but for nastyNames
		files    map[string]string
		vars     fakes
		want     string
		findings string
	}{
		{"three levels, a unit at each, transformations in between", sys("top", "",
			comp("a", "")+sys("s1", conns(con("i", "input", realType("mm"))),
				sys("s2", conns(con("i", "input", realType("km"))), comp("b", ""), link("i", "b/u", linear(10, 1))), link("i", "s2/i", linear(3, 5))),
			link("a/y", "s1/i", linear(2, 0))), nil,
			fakes{"a": {with(out("y", Real), "m", metre)}, "s1.s2.b": {with(in("u", Real), "m", metre)}},
			// 2·1000 y mm; 1e-6 of it km, tripled, + 5 km; 1000 of it m, times ten, + 1 m
			"a.y → s1.s2.b.u Real 60 50001 map[]\n", "SD5U SD5U"},
		{"offset units at three levels", sys("top", "",
			comp("a", "")+sys("s1", conns(con("i", "input", realType("degC"))),
				sys("s2", conns(con("i", "input", realType("K"))), comp("b", ""), link("i", "b/u", linear(1, 10))), link("i", "s2/i", linear(2, 0))),
			link("a/y", "s1/i", "")), nil,
			fakes{"a": {with(out("y", Real), "K", kelvin)}, "s1.s2.b": {degF}},
			// °C: y − 273.15; in K: y, doubled; in F: (2y − 255)/0.5, + 10
			"a.y → s1.s2.b.u Real 4 -500 map[]\n", "SD5U SD5U"},
		{"out through three levels, every connection written the wrong way round", sys("top", conns(con("o", "output", realType("mm"))),
			sys("s1", conns(con("o", "output", "")), sys("s2", conns(con("o", "output", "")), comp("a", conns(con("y", "output", ""))), link("o", "a/y", linear(2, 0))), link("o", "s2/o", linear(1, 1)))+
				comp("b", conns(con("u", "input", ""))),
			link("o", "s1/o", ""), link("b/u", "s1/o", "")), nil,
			fakes{"s1.s2.a": {out("y", Real)}, "b": {in("u", Real)}},
			"s1.s2.a.y → b.u Real 2 1 map[]\n{o {0 y} 2 1}\n", ""},
		{"input straight to output of a system between two", sys("top", "",
			comp("a", "")+sys("s", conns(con("i", "input", realType("m")), con("o", "output", realType("mm"))), "", link("o", "i", linear(2, 0)))+comp("b", ""),
			link("s/i", "a/y", ""), link("b/u", "s/o", linear(1, 3))), nil,
			fakes{"a": {with(out("y", Real), "km", kilometre())}, "b": {with(in("u", Real), "m", metre)}},
			// m: 1000 y; mm: 1e6 y, doubled; m: 2000 y, + 3
			"a.y → b.u Real 2000 3 map[]\n", "SD5U SD5U"},
		{"conversion suppressed in the middle only", sys("top", "",
			comp("a", "")+sys("s1", conns(con("i", "input", realType("mm"))), sys("s2", conns(con("i", "input", realType("km"))), comp("b", ""), link("i", "b/u", "")), link("i", "s2/i", "suppress"+linear(2, 0))),
			link("a/y", "s1/i", "")), nil,
			fakes{"a": {with(out("y", Real), "m", metre)}, "s1.s2.b": {with(in("u", Real), "m", metre)}},
			// 1000 y mm, taken as km and doubled; 1000 of it m
			"a.y → s1.s2.b.u Real 2e+06 0 map[]\n", "SD5U SD5U"},
		{"a parameter goes in over three levels, bound at each", sys("top", bindings(inline("", param("s1.s2.p", realValue(5, "km")), ""), inline("", param("s1.p", realValue(4, "m")), "")),
			sys("s1", conns(con("p", "parameter", realType("mm")))+bindings(inline("", param("s2.c.p", realValue(9, "m")), "")),
				sys("s2", conns(con("p", "parameter", realType("m")))+bindings(inline("", param("p", realValue(3, "m")), "")), comp("c", bindings(inline("", param("p", realValue(1, "")), ""))), link("p", "c/p", linear(10, 1))),
				link("p", "s2/p", linear(2, 0)))), nil,
			fakes{"s1.s2.c": {with(par("p", Real), "mm", mm)}},
			// s1.p = 4000 mm is farthest out; in m 4, doubled; in mm 8000, times ten, + 1
			"s1.s2.c p 80001  4\n", "SD5U SD16 SD16C SD16C SD16"},
		{"as before, s1.p not bound", sys("top", bindings(inline("", param("s1.s2.p", realValue(5, "km")), "")),
			sys("s1", conns(con("p", "parameter", realType("mm"))),
				sys("s2", conns(con("p", "parameter", realType("m")))+bindings(inline("", param("p", realValue(3, "m")), "")), comp("c", ""), link("c/p", "p", linear(10, 1))),
				link("p", "s2/p", linear(2, 0)))), nil,
			fakes{"s1.s2.c": {with(par("p", Real), "mm", mm)}},
			"s1.s2.c p 5.0000001e+07  1\n", "SD5U SD16"},
		{"prefix, mapping, unit and transformation into a connector, on to two variables", sys("top",
			conns(con("k", "parameter", realType("degC")))+bindings(inline(` prefix="x."`, param("t", realValue(300, "K")), mapped("x.t", "k", linear(2, 1))+mapped("t", "k2", ""))),
			comp("c", "")+comp("d", ""), link("k", "c/p", ""), link("d/p", "k", linear(1, -1))), nil,
			fakes{"c": {with(par("p", Real), "K", kelvin)}, "d": {with(par("p", Real), "F", *degF.UnitBase)}},
			// 26.85 °C, doubled, + 1 = 54.7 °C; in K 327.85; in F (327.85 − 255)/0.5 − 1
			"c p 327.85  0\nd p 144.7  0\n", "SD5U SD5U SD15S"},
		{"a transformation of a value into a connector without unit ends its unit", sys("top",
			conns(con("k", "parameter", ""))+bindings(inline("", param("t", realValue(3, "m")), mapped("t", "k", linear(1000, 0)))),
			comp("c", ""), link("k", "c/p", "")), nil,
			fakes{"c": {with(par("p", Real), "mm", mm)}}, "c p 3000  0\n", "SD5U SD11L"},
		{"without transformation the connector takes the unit of the value", sys("top",
			conns(con("k", "parameter", ""))+bindings(inline("", param("t", realValue(3, "m")), mapped("t", "k", ""))),
			comp("c", ""), link("k", "c/p", "")), nil,
			fakes{"c": {with(par("p", Real), "mm", mm)}}, "c p 3000  0\n", "SD5U"},
		{"a value whose conversion is suppressed", sys("top",
			conns(con("k", "parameter", ""))+bindings(inline("", param("t", realValue(3, "m")), `<ssm:MappingEntry source="t" target="k" suppressUnitConversion="true"/>`)),
			comp("c", ""), link("k", "c/p", "")), nil,
			fakes{"c": {with(par("p", Real), "mm", mm)}}, "c p 3  0\n", "SD5U"},
		{"an item by name through two enumerations", sys("top",
			conns(con("e", "parameter", `<ssc:Enumeration name="abc"/>`))+bindings(inline("", param("e", `<ssv:Enumeration value="A"/>`), "")),
			comp("c", "")+comp("d", ""), link("e", "c/p", ""), link("e", "d/p", numbers("Enumeration", "A", "C"))), nil,
			fakes{"c": {enum(par("p", Enumeration), cba)}, "d": {enum(par("p", Enumeration), cba)}},
			"c p A  0\nd p C  0\n", "SD5U SD5U"},
		{"a number for an enumeration, mapped by number", sys("top", bindings(inline("", param("e", `<ssv:Integer value="1"/>`), mapped("e", "c.p", numbers("Integer", 1, 7)))), comp("c", "")), nil,
			fakes{"c": {enum(par("p", Enumeration), abc)}}, "c p C  0\n", ""},
		{"an item that the set defines otherwise than the FMU", sys("top", bindings(`<ssd:ParameterBinding source="e.ssv"/>`), comp("c", "")+comp("d", "")),
			map[string]string{"e.ssv": `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="` + xmltree.SSV + `" xmlns:ssc="` + xmltree.SSC + `"><ssv:Parameters>` + param("c.p", `<ssv:Enumeration value="B" name="own"/>`) + param("d.p", `<ssv:Enumeration value="B" name="own"/>`) +
				`</ssv:Parameters><ssv:Enumerations><ssc:Enumeration name="own"><ssc:Item name="B" value="40"/></ssc:Enumeration></ssv:Enumerations></ssv:ParameterSet>`},
			// by name where the target has items, else the number of the set
			fakes{"c": {enum(par("p", Enumeration), abc)}, "d": {par("p", Integer)}}, "c p B  0\nd p 40  0\n", ""},
		{"a boolean, negated by a mapping and again by a connection", sys("top",
			conns(con("b", "parameter", "<ssc:Boolean/>"))+bindings(inline("", param("x", `<ssv:Boolean value="1"/>`), mapped("x", "b", numbers("Boolean", true, false)))),
			comp("c", "")+comp("d", ""), link("b", "c/p", ""), link("b", "d/p", numbers("Boolean", 0, 1))), nil,
			fakes{"c": {par("p", Boolean)}, "d": {par("p", Boolean)}}, "c p false  0\nd p true  0\n", "SD5U SD5U"},
		{"an integer for a Real with a unit, mapped", sys("top", bindings(inline("", param("x", `<ssv:Integer value="3"/>`), mapped("x", "c.p", linear(0.5, 0)))), comp("c", "")), nil,
			fakes{"c": {with(par("p", Real), "mm", mm)}}, "c p 1.5  0\n", ""},
		{"a Real for an Integer, integral after its mapping", sys("top", bindings(inline("", param("x", realValue(1.5, "")), mapped("x", "c.p", linear(2, 0)))), comp("c", "")), nil,
			fakes{"c": {par("p", Integer)}}, "c p 3  0\n", ""},
		{"a calculated parameter out of one system and into the parameter of another", sys("top", "",
			sys("s", conns(con("q", "calculatedParameter", realType("mm"))), comp("a", ""), link("q", "a/q", linear(2, 0)))+
				sys("r", conns(con("p", "parameter", realType("m"))), comp("b", ""), link("b/p", "p", linear(1, 1))),
			link("r/p", "s/q", "")), nil,
			fakes{"s.a": {with(calc, "m", metre)}, "r.b": {with(par("p", Real), "m", metre)}},
			// mm: 1000 q, doubled; m: 2 q, + 1
			"s.a.q → r.b.p Real 2 1 map[]\n", "SD5U SD5U"},
		{"one value for many, through a mapping with many targets", sys("top", bindings(inline("", param("x", realValue(2, "m")), mapped("x", "c.p", "")+mapped("x", "d.p", linear(3, 0))+mapped("x", "s.e.p", ""))),
			comp("c", "")+comp("d", "")+sys("s", "", comp("e", ""))), nil,
			fakes{"c": {par("p", Real)}, "d": {with(par("p", Real), "mm", mm)}, "s.e": {with(par("p", Real), "km", kilometre())}},
			"c p 2  0\nd p 6000  0\ns.e p 0.002  0\n", ""},
		{"a later binding at one level beats an earlier one, whatever its form", sys("top",
			bindings(inline("", param("x", realValue(2, "m")), mapped("x", "s.c.p", "")), inline(` prefix="s."`, param("c.p", realValue(3, "m")), ""), inline(` prefix="s.c"`, param(".p", realValue(4, "m")), "")),
			sys("s", bindings(inline("", param("c.p", realValue(9, "m")), "")), comp("c", ""))), nil,
			fakes{"s.c": {par("p", Real)}}, "s.c p 4  3\n", "SD16"},
		{"names with dots, brackets and blanks", sys("top", bindings(inline("", param("a.b.c[1].x y", realValue(2, "")), "")), `<ssd:Component name="a.b" source="c.fmu"><ssd:Connectors>`+con("c[1].x y", "parameter", "")+`</ssd:Connectors></ssd:Component>`), nil,
			fakes{"a.b": {par("c[1].x y", Real)}}, "a.b c[1].x y 2  0\n", ""},
		{"the dictionary of the system around, hidden by one of the same name", sys("top", dictionaries("d"),
			comp("a", "")+reference("w", "d")+
				sys("s", dictionaries("d"), comp("b", "")+comp("c", "")+reference("r", "d"), link("c/y", "r/n", ""), link("r/n", "b/u", ""))+
				sys("far", "", sys("deep", "", comp("b", "")+reference("r", "d"), link("b/u", "r/n", linear(2, 0))))+comp("e", ""),
			link("a/y", "w/n", linear(3, 0)), link("w/n", "e/u", ""), link("e/v", "a/y", "")), nil,
			fakes{"a": {out("y", Real)}, "s.b": {in("u", Real)}, "s.c": {out("y", Real)}, "e": {in("u", Real), in("v", Real)}, "far.deep.b": {in("u", Real)}},
			"a.y → e.u Real 3 0 map[]\na.y → e.v Real 1 0 map[]\na.y → far.deep.b.u Real 6 0 map[]\ns.c.y → s.b.u Real 1 0 map[]\n", "SD1S SD1S SD5U SD5U SD5U SD5U SD5U SD5U SD5U"},
		{"fan-out with another transformation to each", sys("top", "", comp("a", "")+comp("b", "")+sys("s", conns(con("i", "input", real)), comp("c", ""), link("i", "c/u", linear(5, 0)), link("i", "c/v", "")),
			link("a/y", "b/u", linear(2, 0)), link("a/y", "s/i", linear(3, 0))), nil,
			fakes{"a": {out("y", Real)}, "b": {in("u", Real)}, "s.c": {in("u", Real), in("v", Real)}},
			"a.y → b.u Real 2 0 map[]\na.y → s.c.u Real 15 0 map[]\na.y → s.c.v Real 3 0 map[]\n", "SD5U SD5U SD5U SD5U SD5U"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, l, err := flatten(t, head+c.document+nastyNames+tail, c.files, c.vars, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := rounded(n); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			var ids []string
			for _, f := range l.Findings {
				ids = append(ids, f.ID)
			}
			if got := strings.Join(ids, " "); got != c.findings {
				t.Errorf("findings %q, want %q: %v", got, c.findings, l.Findings)
			}
		})
	}
}

func degF() unit.Base      { return unit.Base{K: 1, Factor: 0.5, Offset: 255} }
func kilometre() unit.Base { return unit.Base{M: 1, Factor: 1000} }

// rounded is summary with numbers to twelve digits: what is worked out by hand has no
// error of rounding.
func rounded(n *Network) string {
	round := func(v *float64) { *v, _ = strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 12, 64), 64) }
	for i := range n.Connections {
		round(&n.Connections[i].Gain)
		round(&n.Connections[i].Offset)
	}
	for i := range n.Settings {
		round(&n.Settings[i].Value.Real)
	}
	return summary(n)
}

// A Binary that the FMU has as three Integers, as OSMP wants it (ssp 18): what to do is
// told, and the connector alone is no fault.
func TestOSMP(t *testing.T) {
	binary := func(name, kind string) string {
		return conns(con(name, kind, `<ssc:Binary mime-type="application/x-open-simulation-interface"/>`))
	}
	parts := func(v func(string, ValueType) Variable, name string) []Variable {
		return []Variable{v(name+".base.lo", Integer), v(name+".base.hi", Integer), v(name+".size", Integer)}
	}
	vars := fakes{"a": parts(out, "View"), "b": parts(in, "View")}
	elements := comp("a", binary("View", "output")) + comp("b", binary("View", "input"))
	document := func(connections ...string) string {
		return strings.Replace(head, `version="1.0" name`, `version="2.0" name`, 1) + sys("top", "", elements, connections...) + tail
	}
	_, l, err := flatten(t, document(link("a/View", "b/View", "")), nil, vars, false)
	if err == nil || !strings.Contains(err.Error(), "connect View.base.lo, View.base.hi and View.size instead, and run both FMUs in one process") || l.Findings[0].ID != "SD10" || l.Findings[0].Line == 0 {
		t.Errorf("error %v", err)
	}
	n, l, err := flatten(t, document(link("a/View.base.lo", "b/View.base.lo", ""), link("a/View.base.hi", "b/View.base.hi", ""), link("a/View.size", "b/View.size", "")), nil, vars, false)
	if err != nil || len(n.Connections) != 3 {
		t.Fatalf("error %v", err)
	}
	for _, f := range l.Findings {
		if f.ID != "SD5U" {
			t.Errorf("finding %v", f)
		}
	}
	if _, l, err := flatten(t, document(link("a/View", "b/View", "")), nil, fakes{"a": {out("y", Real)}, "b": {in("u", Real)}}, false); err == nil || !strings.Contains(err.Error(), `has no variable "View"`) {
		t.Errorf("error %v, findings %v", err, l.Findings)
	}
}

// told returns the findings of some rules, with the connector or connection they name.
func told(l *diag.List, rules ...string) (out []string) {
	for _, f := range l.Findings {
		if slices.Contains(rules, f.ID) {
			out = append(out, f.ID+" "+f.Message)
		}
	}
	return out
}

// A connection into a system in which nothing takes the value is told once, where it
// enters (ssp 27); one that reaches an FMU by any way is not.
func TestVanishing(t *testing.T) {
	const real = "<ssc:Real/>"
	i, o := con("i", "input", real), con("o", "output", real)
	vars := fakes{"a": {out("y", Real)}, "s.b": {in("u", Real)}, "c": {in("u", Real)}}
	b, c := comp("b", conns(con("u", "input", ""))), comp("c", conns(con("u", "input", "")))
	a := comp("a", conns(con("y", "output", "")))
	for name, tt := range map[string]struct {
		document string
		want     []string
	}{
		"nothing inside takes it": {sys("top", "", a+sys("s", conns(i), b), link("a/y", "s/i", "")), []string{`"a.y" is connected to "s.i"`}},
		"nothing takes it deeper down": {sys("top", "", a+sys("s", conns(i), b+sys("t", conns(i), ""), link("i", "t/i", "")), link("s/i", "a/y", "")),
			[]string{`"a.y" is connected to "s.i"`}},
		"through and out to nothing": {sys("top", "", a+sys("s", conns(i, o), b, link("i", "o", "")), link("a/y", "s/i", "")), []string{`"a.y" is connected to "s.i"`}},
		"through and out to an FMU":  {sys("top", "", a+c+sys("s", conns(i, o), b, link("i", "o", "")), link("a/y", "s/i", ""), link("s/o", "c/u", "")), nil},
		"an output that nobody uses": {sys("top", "", a+c+sys("s", conns(o), b), link("a/y", "c/u", "")), nil},
		"taken by one of two":        {sys("top", "", a+sys("s", conns(i), b+sys("t", conns(i), ""), link("i", "b/u", ""), link("i", "t/i", "")), link("a/y", "s/i", "")), nil},
		"from the outermost system":  {sys("top", conns(i), a+sys("s", conns(i), b), link("i", "s/i", "")), []string{`"i" is connected to "s.i"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, err := flatten(t, head+tt.document+tail, nil, vars, false)
			got := told(l, "SD5D")
			if err != nil || len(got) != len(tt.want) {
				t.Fatalf("findings %q, want %q: %v", got, tt.want, err)
			}
			for k := range got {
				if !strings.Contains(got[k], tt.want[k]) {
					t.Errorf("%s, want %s", got[k], tt.want[k])
				}
			}
		})
	}
}

// Of values at connectors on one way that of the one farthest upstream counts; each
// that loses is told (SD16C), as are several at one connector (SD16).
func TestLosingConnectors(t *testing.T) {
	const real = "<ssc:Real/>"
	c := comp("c", conns(con("p", "parameter", real)))
	s := sys("s", conns(con("a", "parameter", real), con("z", "calculatedParameter", real))+bindings(inline("", param("a", realValue(4, "")), "")), "", link("a", "z", linear(3, 0)))
	vars := fakes{"c": {par("p", Real)}}
	n, l := sound(t, head+sys("top", bindings(inline("", param("s.z", realValue(9, "")), "")), s+c, link("s/z", "c/p", linear(1, 1)))+tail, nil, vars)
	if v := settings1(n)["c.p"]; v.Value.Real != 13 || len(v.Overrides) != 1 {
		t.Errorf("%+v", v)
	}
	if got := told(l, "SD16", "SD16C"); len(got) != 1 || !strings.Contains(got[0], `SD16C the connector "s.z" is bound to 9, but connected to the connector "s.a"`) {
		t.Errorf("%q", got)
	}
	n, l = sound(t, head+sys("top", conns(con("k", "parameter", real))+bindings(inline("", param("k", realValue(1, "")), ""), inline("", param("k", realValue(2, "")), "")), c, link("k", "c/p", ""))+tail, nil, vars)
	if v := settings1(n)["c.p"]; v.Value.Real != 2 {
		t.Errorf("%+v", v)
	}
	if got := told(l, "SD16", "SD16C"); len(got) != 1 || !strings.Contains(got[0], `SD16 the connector "k" is bound 2 times; 2 from here counts`) {
		t.Errorf("%q", got)
	}
}

// A mapping gives items by their names. A connection without one behind it passes
// numbers, which must not mix the items up.
func TestSplitMapping(t *testing.T) {
	abc, cba := map[string]int32{"A": 1, "B": 2, "C": 7}, map[string]int32{"A": 7, "B": 2, "C": 1}
	const ab, ba = `<ssc:Enumeration name="abc"/>`, `<ssc:Enumeration name="cba"/>`
	swap := `<ssc:EnumerationMappingTransformation><ssc:MapEntry source="A" target="B"/></ssc:EnumerationMappingTransformation>`
	for _, tt := range []struct{ inner, outer, inside, want string }{
		{ab, "", swap, "SD12"},
		{ab, swap, "", "SD12"},
		{ba, swap, "", ""},
		{ab, swap, swap, ""},
	} {
		document := head + sys("top", "", comp("a", "")+sys("s", conns(con("i", "input", tt.inner)), comp("b", ""), link("i", "b/u", tt.inside)), link("a/y", "s/i", tt.outer)) +
			nastyNames + tail
		vars := fakes{"a": {enum(out("y", Enumeration), abc)}, "s.b": {enum(in("u", Enumeration), cba)}}
		if tt.inner == ab && tt.outer == "" { // the first connection renumbers, the second maps
			vars["a"] = []Variable{enum(out("y", Enumeration), cba)}
		}
		_, l, err := flatten(t, document, nil, vars, false)
		if got := strings.Join(told(l, "SD12"), " "); (err == nil) != (tt.want == "") || tt.want != "" && !strings.Contains(got, `the item "A" is`) {
			t.Errorf("%+v: %s %v", tt, got, err)
		}
	}
}

// A connector of a system that numbers items differently passes numbers, which is told.
func TestOtherEnumerationBetween(t *testing.T) {
	abc := map[string]int32{"A": 1, "B": 2, "C": 7}
	document := head + sys("top", "", comp("a", "")+sys("s", conns(con("i", "input", `<ssc:Enumeration name="cba"/>`)), comp("b", ""), link("i", "b/u", "")), link("a/y", "s/i", "")) + nastyNames + tail
	_, l := sound(t, document, nil, fakes{"a": {enum(out("y", Enumeration), abc)}, "s.b": {enum(in("u", Enumeration), abc)}})
	if got := told(l, "SD7"); len(got) != 1 || !strings.Contains(got[0], `a.y → s.i: the item "A" is 1 in one enumeration and 7 in the other`) {
		t.Errorf("%q", got)
	}
}
