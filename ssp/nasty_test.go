package ssp_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// Systems that ask for several things at once, each against what the standard gives
// by hand. The summary has the connections as "from → to type gain offset table", the
// values as "component variable value level others".
func TestNasty(t *testing.T) {
	abc, cba := map[string]int64{"A": 1, "B": 2, "C": 7}, map[string]int64{"A": 7, "B": 2, "C": 1}
	calc := Out("q", ssp.Real)
	calc.Causality = "calculatedParameter"
	hold := dictionaries("d", dictionary(entry("n", "<ssc:Real/>")))
	reference := func(name, own string) string { // to the entry n of a dictionary d, with bindings of its own
		return strings.TrimSuffix(reference(name, "d", Con("n", "inout", "")), "</ssd:SignalDictionaryReference>") + own + "</ssd:SignalDictionaryReference>"
	}
	three := Bindings(Inline("", Parameter("n", RealValue(3, "")), ""))
	for _, c := range []struct {
		name     string
		document string // between head and tail, but for Names
		files    map[string]string
		vars     Fakes
		want     string // the summary
		findings string
	}{
		{"three levels, a unit at each, transformations in between", Sys("top", "",
			Comp("a", "")+Sys("s1", Conns(Con("i", "input", RealType("mm"))),
				Sys("s2", Conns(Con("i", "input", RealType("km"))), Comp("b", ""), Link("i", "b/u", LinearTransform(10, 1))), Link("i", "s2/i", LinearTransform(3, 5))),
			Link("a/y", "s1/i", LinearTransform(2, 0))), nil,
			Fakes{"a": {With(Out("y", ssp.Real), "m", Metre)}, "s1.s2.b": {With(In("u", ssp.Real), "m", Metre)}},
			// 2·1000 y mm; 1e-6 of it km, tripled, + 5 km; 1000 of it m, times ten, + 1 m
			"a.y → s1.s2.b.u Real 60 50001 map[]\n", "SD5U SD5U"},
		{"out through three levels, every connection written the wrong way round", Sys("top", Conns(Con("o", "output", RealType("mm"))),
			Sys("s1", Conns(Con("o", "output", "")), Sys("s2", Conns(Con("o", "output", "")), Comp("a", Conns(Con("y", "output", ""))), Link("o", "a/y", LinearTransform(2, 0))), Link("o", "s2/o", LinearTransform(1, 1)))+
				Comp("b", Conns(Con("u", "input", ""))),
			Link("o", "s1/o", ""), Link("b/u", "s1/o", "")), nil,
			Fakes{"s1.s2.a": {Out("y", ssp.Real)}, "b": {In("u", ssp.Real)}},
			"s1.s2.a.y → b.u Real 2 1 map[]\n{o {0 y} 2 1 map[] mm}\n", ""},
		{"input straight to output of a system between two", Sys("top", "",
			Comp("a", "")+Sys("s", Conns(Con("i", "input", RealType("m")), Con("o", "output", RealType("mm"))), "", Link("o", "i", LinearTransform(2, 0)))+Comp("b", ""),
			Link("s/i", "a/y", ""), Link("b/u", "s/o", LinearTransform(1, 3))), nil,
			Fakes{"a": {With(Out("y", ssp.Real), "km", KM)}, "b": {With(In("u", ssp.Real), "m", Metre)}},
			// m: 1000 y; mm: 1e6 y, doubled; m: 2000 y, + 3
			"a.y → b.u Real 2000 3 map[]\n", "SD5U SD5U"},
		{"conversion suppressed in the middle only", Sys("top", "",
			Comp("a", "")+Sys("s1", Conns(Con("i", "input", RealType("mm"))), Sys("s2", Conns(Con("i", "input", RealType("km"))), Comp("b", ""), Link("i", "b/u", "")), Link("i", "s2/i", "suppress"+LinearTransform(2, 0))),
			Link("a/y", "s1/i", "")), nil,
			Fakes{"a": {With(Out("y", ssp.Real), "m", Metre)}, "s1.s2.b": {With(In("u", ssp.Real), "m", Metre)}},
			// 1000 y mm, taken as km and doubled; 1000 of it m
			"a.y → s1.s2.b.u Real 2e+06 0 map[]\n", "SD5U SD5U"},
		{"prefix, mapping, unit and transformation into a connector, on to two variables", Sys("top",
			Conns(Con("k", "parameter", RealType("degC")))+Bindings(Inline(` prefix="x."`, Parameter("t", RealValue(300, "K")), Mapped("x.t", "k", LinearTransform(2, 1))+Mapped("t", "k2", ""))),
			Comp("c", "")+Comp("d", ""), Link("k", "c/p", ""), Link("d/p", "k", LinearTransform(1, -1))), nil,
			Fakes{"c": {With(Par("p", ssp.Real), "K", Kelvin)}, "d": {With(Par("p", ssp.Real), "F", DegF)}},
			// 26.85 °C, doubled, + 1 = 54.7 °C; in K 327.85; in F (327.85 − 255)/0.5 − 1
			"c p 327.85  0\nd p 144.7  0\n", "SD5U SD5U SD15S"},
		{"a transformation of a value into a connector without unit ends its unit", Sys("top",
			Conns(Con("k", "parameter", ""))+Bindings(Inline("", Parameter("t", RealValue(3, "m")), Mapped("t", "k", LinearTransform(1000, 0)))),
			Comp("c", ""), Link("k", "c/p", "")), nil,
			Fakes{"c": {With(Par("p", ssp.Real), "mm", MM)}}, "c p 3000  0\n", "SD5U SD11L"},
		{"an item by name through two enumerations", Sys("top",
			Conns(Con("e", "parameter", `<ssc:Enumeration name="abc"/>`))+Bindings(Inline("", Parameter("e", `<ssv:Enumeration value="A"/>`), "")),
			Comp("c", "")+Comp("d", ""), Link("e", "c/p", ""), Link("e", "d/p", Mapping("Enumeration", "A", "C"))), nil,
			Fakes{"c": {Enum(Par("p", ssp.Enumeration), cba)}, "d": {Enum(Par("p", ssp.Enumeration), cba)}},
			"c p A  0\nd p C  0\n", "SD5U SD5U"},
		{"an item that the set defines otherwise than the FMU", Sys("top", Bindings(`<ssd:ParameterBinding source="e.ssv"/>`), Comp("c", "")+Comp("d", "")),
			map[string]string{"e.ssv": SetFile(Parameter("c.p", `<ssv:Enumeration value="B" name="own"/>`)+Parameter("d.p", `<ssv:Enumeration value="B" name="own"/>`),
				`<ssv:Enumerations><ssc:Enumeration name="own"><ssc:Item name="B" value="40"/></ssc:Enumeration></ssv:Enumerations>`)},
			// by name where the target has items, else the number of the set
			Fakes{"c": {Enum(Par("p", ssp.Enumeration), abc)}, "d": {Par("p", ssp.Integer)}}, "c p B  0\nd p 40  0\n", ""},
		{"a calculated parameter out of one system and into the parameter of another", Sys("top", "",
			Sys("s", Conns(Con("q", "calculatedParameter", RealType("mm"))), Comp("a", ""), Link("q", "a/q", LinearTransform(2, 0)))+
				Sys("r", Conns(Con("p", "parameter", RealType("m"))), Comp("b", ""), Link("b/p", "p", LinearTransform(1, 1))),
			Link("r/p", "s/q", "")), nil,
			Fakes{"s.a": {With(calc, "m", Metre)}, "r.b": {With(Par("p", ssp.Real), "m", Metre)}},
			// mm: 1000 q, doubled; m: 2 q, + 1
			"s.a.q → r.b.p Real 2 1 map[]\n", "SD5U SD5U"},
		{"a later binding at one level beats an earlier one, whatever its form", Sys("top",
			Bindings(Inline("", Parameter("x", RealValue(2, "m")), Mapped("x", "s.c.p", "")), Inline(` prefix="s."`, Parameter("c.p", RealValue(3, "m")), ""), Inline(` prefix="s.c"`, Parameter(".p", RealValue(4, "m")), "")),
			Sys("s", Bindings(Inline("", Parameter("c.p", RealValue(9, "m")), "")), Comp("c", ""))), nil,
			Fakes{"s.c": {Par("p", ssp.Real)}}, "s.c p 4  3\n", "SD16"},
		{"the dictionary of the system around, hidden by one of the same name", Sys("top", hold,
			Comp("a", "")+reference("w", "")+
				Sys("s", hold, Comp("b", "")+Comp("c", "")+reference("r", ""), Link("c/y", "r/n", ""), Link("r/n", "b/u", ""))+
				Sys("far", "", Sys("deep", "", Comp("b", "")+reference("r", ""), Link("b/u", "r/n", LinearTransform(2, 0))))+Comp("e", ""),
			Link("a/y", "w/n", LinearTransform(3, 0)), Link("w/n", "e/u", ""), Link("e/v", "a/y", "")), nil,
			Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real)}, "s.c": {Out("y", ssp.Real)}, "e": {In("u", ssp.Real), In("v", ssp.Real)}, "far.deep.b": {In("u", ssp.Real)}},
			"a.y → e.u Real 3 0 map[]\na.y → e.v Real 1 0 map[]\na.y → far.deep.b.u Real 6 0 map[]\ns.c.y → s.b.u Real 1 0 map[]\n", "SD1S SD1S SD5U SD5U SD5U SD5U SD5U SD5U SD5U"},
		{"transformation in the unit of a reference to a dictionary", bus(dictionary(entry("x", `<ssc:Real unit="u"/>`)), RealType("mm"), RealType("m"), LinearTransform(1, 7), ""), nil,
			Fakes{"a": {With(Out("y", ssp.Real), "m", Metre)}, "s.b": {In("u", ssp.Real)}},
			// mm: 1000 y + 7; cm: 100 y + 0.7; m: y + 0.007
			"a.y → s.b.u Real 1 0.007 map[]\n", "SD1S"},
		{"enumeration of a dictionary", bus(dictionary(entry("x", `<ssc:Enumeration name="e"/>`)), "", "", "", Mapping("Enumeration", "A", "A", "B", "B")), nil,
			Fakes{"a": {Enum(Out("y", ssp.Enumeration), map[string]int64{"A": 1, "B": 2})}, "s.b": {Enum(In("u", ssp.Enumeration), map[string]int64{"A": 10, "B": 20})}},
			"a.y → s.b.u Enumeration 1 0 map[1:10 2:20]\n", "SD1S"},
		{"integers through a dictionary", bus(dictionary(entry("x", "<ssc:Integer/>")), "", "", Mapping("Integer", 1, 2), Mapping("Integer", 2, 3)), nil,
			Fakes{"a": {Out("y", ssp.Integer)}, "s.b": {In("u", ssp.Integer)}}, "a.y → s.b.u Integer 1 0 map[1:3 2:3]\n", "SD1S"},
		{"a value bound at a reference to a dictionary, and one from outside", Sys("top", hold+Bindings(Inline("", Parameter("r.n", RealValue(4, "")), "")),
			Comp("b", "")+reference("r", three),
			Link("r/n", "b/u", "")), nil,
			Fakes{"b": {In("u", ssp.Real)}}, "b u 4  1\n", "SD1S SD5U SD16"},
		{"a value bound at a reference whose signal is written", Sys("top", hold,
			Comp("a", "")+Comp("b", "")+reference("r", three),
			Link("a/y", "r/n", ""), Link("r/n", "b/u", "")), nil,
			Fakes{"a": {Out("y", ssp.Real)}, "b": {In("u", ssp.Real)}}, "a.y → b.u Real 1 0 map[]\n", "SD1S SD5U SD5U SD16C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, l, err := Flatten(t, Head+c.document+Names+Tail, c.files, c.vars, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := rounded(n); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if got := IDs(l.Findings); got != c.findings {
				t.Errorf("findings %q, want %q: %v", got, c.findings, l.Findings)
			}
		})
	}
}

// rounded is summary with numbers to twelve digits: what is worked out by hand has no
// error of rounding.
func rounded(n *ssp.Network) string {
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
		return Conns(Con(name, kind, `<ssc:Binary mime-type="application/x-open-simulation-interface"/>`))
	}
	parts := func(v func(string, ssp.ValueType) ssp.Variable, name string) []ssp.Variable {
		return []ssp.Variable{v(name+".base.lo", ssp.Integer), v(name+".base.hi", ssp.Integer), v(name+".size", ssp.Integer)}
	}
	vars := Fakes{"a": parts(Out, "View"), "b": parts(In, "View")}
	elements := Comp("a", binary("View", "output")) + Comp("b", binary("View", "input"))
	document := func(connections ...string) string {
		return Head2 + Sys("top", "", elements, connections...) + Tail
	}
	_, l, err := Flatten(t, document(Link("a/View", "b/View", "")), nil, vars, false)
	if err == nil || !strings.Contains(err.Error(), "connect View.base.lo, View.base.hi and View.size instead, and run both FMUs in one process") || l.Findings[0].ID != "SD10" || l.Findings[0].Line == 0 {
		t.Errorf("error %v", err)
	}
	n, l, err := Flatten(t, document(Link("a/View.base.lo", "b/View.base.lo", ""), Link("a/View.base.hi", "b/View.base.hi", ""), Link("a/View.size", "b/View.size", "")), nil, vars, false)
	if err != nil || len(n.Connections) != 3 {
		t.Fatalf("error %v", err)
	}
	for _, f := range l.Findings {
		if f.ID != "SD5U" {
			t.Errorf("finding %v", f)
		}
	}
	if _, l, err := Flatten(t, document(Link("a/View", "b/View", "")), nil, Fakes{"a": {Out("y", ssp.Real)}, "b": {In("u", ssp.Real)}}, false); err == nil || !strings.Contains(err.Error(), `has no variable "View"`) {
		t.Errorf("error %v, findings %v", err, l.Findings)
	}
}

// A connection into a system in which nothing takes the value is told once, where it
// enters (ssp 27); one that reaches an FMU by any way is not.
func TestVanishing(t *testing.T) {
	const real = "<ssc:Real/>"
	i, o := Con("i", "input", real), Con("o", "output", real)
	vars := Fakes{"a": {Out("y", ssp.Real)}, "s.b": {In("u", ssp.Real)}, "c": {In("u", ssp.Real)}}
	b, c := Comp("b", Conns(Con("u", "input", ""))), Comp("c", Conns(Con("u", "input", "")))
	a := Comp("a", Conns(Con("y", "output", "")))
	for name, tt := range map[string]struct {
		document string
		want     []string
	}{
		"nothing inside takes it": {Sys("top", "", a+Sys("s", Conns(i), b), Link("a/y", "s/i", "")), []string{`"a.y" is connected to "s.i"`}},
		"nothing takes it deeper down": {Sys("top", "", a+Sys("s", Conns(i), b+Sys("t", Conns(i), ""), Link("i", "t/i", "")), Link("s/i", "a/y", "")),
			[]string{`"a.y" is connected to "s.i"`}},
		"through and out to nothing": {Sys("top", "", a+Sys("s", Conns(i, o), b, Link("i", "o", "")), Link("a/y", "s/i", "")), []string{`"a.y" is connected to "s.i"`}},
		"through and out to an FMU":  {Sys("top", "", a+c+Sys("s", Conns(i, o), b, Link("i", "o", "")), Link("a/y", "s/i", ""), Link("s/o", "c/u", "")), nil},
		"an output that nobody uses": {Sys("top", "", a+c+Sys("s", Conns(o), b), Link("a/y", "c/u", "")), nil},
		"taken by one of two":        {Sys("top", "", a+Sys("s", Conns(i), b+Sys("t", Conns(i), ""), Link("i", "b/u", ""), Link("i", "t/i", "")), Link("a/y", "s/i", "")), nil},
		"from the outermost system":  {Sys("top", Conns(i), a+Sys("s", Conns(i), b), Link("i", "s/i", "")), []string{`"i" is connected to "s.i"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, err := Flatten(t, Head+tt.document+Tail, nil, vars, false)
			got := Told(l, "SD5D")
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

// A mapping gives items by their names. A connection without one after it passes numbers,
// which must not mix the items up. Without any mapping, a connector that numbers the items
// differently is only reported.
func TestSplitMapping(t *testing.T) {
	abc, cba := map[string]int64{"A": 1, "B": 2, "C": 7}, map[string]int64{"A": 7, "B": 2, "C": 1}
	const ab, ba = `<ssc:Enumeration name="abc"/>`, `<ssc:Enumeration name="cba"/>`
	swap := `<ssc:EnumerationMappingTransformation><ssc:MapEntry source="A" target="B"/></ssc:EnumerationMappingTransformation>`
	for _, tt := range []struct {
		from, to             map[string]int64
		inner, outer, inside string
		id, message          string
	}{
		{cba, cba, ab, "", swap, "SD12", `the item "A" is`}, // the first connection renumbers, the second maps
		{abc, cba, ab, swap, "", "SD12", `the item "A" is`},
		{abc, cba, ba, swap, "", "", ""},
		{abc, cba, ab, swap, swap, "", ""},
		{abc, abc, ba, "", "", "SD7", `a.y → s.i: the item "A" is 1 in one enumeration and 7 in the other`},
	} {
		inside := Sys("s", Conns(Con("i", "input", tt.inner)), Comp("b", ""), Link("i", "b/u", tt.inside))
		document := Head + Sys("top", "", Comp("a", "")+inside, Link("a/y", "s/i", tt.outer)) + Names + Tail
		vars := Fakes{"a": {Enum(Out("y", ssp.Enumeration), tt.from)}, "s.b": {Enum(In("u", ssp.Enumeration), tt.to)}}
		_, l, err := Flatten(t, document, nil, vars, false)
		got := strings.Join(Told(l, "SD12", "SD7"), " ")
		if (err != nil) != (tt.id == "SD12") || !strings.Contains(got, tt.id) || !strings.Contains(got, tt.message) || tt.id == "" && got != "" {
			t.Errorf("%+v: %s %v", tt, got, err)
		}
	}
}
