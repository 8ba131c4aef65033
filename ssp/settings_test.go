package ssp_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// levels is a component in a system in the outermost system, each with bindings.
func levels(top, mid, component string) string {
	return Head + Sys("top", top, Sys("mid", mid, Comp("c", component))) + Units + Tail
}

// The outer level beats the inner, and at one level the later binding the
// earlier one (ssp 36): all 64 combinations of two bindings on three levels.
func TestPrecedence(t *testing.T) {
	names := []string{"p", "p", "c.p", "c.p", "mid.c.p", "mid.c.p"} // from weak to strong
	for set := range 1 << len(names) {
		var level [3][]string
		want, count := -1, 0
		for i, name := range names {
			if set&(1<<i) != 0 {
				level[i/2] = append(level[i/2], Inline("", Parameter(name, RealValue(float64(i), "")), ""))
				want = i
				count++
			}
		}
		n, l := Sound(t, levels(Bindings(level[2]...), Bindings(level[1]...), Bindings(level[0]...)), nil, Fakes{"mid.c": {Par("p", ssp.Real)}})
		if count == 0 {
			if len(n.Settings) != 0 {
				t.Errorf("set %b: settings %v", set, n.Settings)
			}
			continue
		}
		s := n.Settings[0]
		if len(n.Settings) != 1 || s.Value.Real != float64(want) || len(s.Overrides) != count-1 {
			t.Errorf("set %06b: %+v, want the value %d over %d others", set, n.Settings, want, count-1)
		}
		for i := 1; i < len(s.Overrides); i++ {
			if s.Overrides[i-1].Value.Real >= s.Overrides[i].Value.Real {
				t.Errorf("set %06b: the overridden values are not weakest first: %+v", set, s.Overrides)
			}
		}
		if wantLevel := [...]string{"mid.c", "mid", ""}[want/2]; s.From.Level != wantLevel {
			t.Errorf("set %06b: level %q, want %q", set, s.From.Level, wantLevel)
		}
		if told := len(l.Findings); (told == 1) != (count > 1) || told > 1 {
			t.Errorf("set %06b: findings %v", set, l.Findings)
		}
	}
}

// Prefix and mapping (ssp 34), and names on three levels (ssp 35).
func TestBindingNames(t *testing.T) {
	vars := Fakes{"mid.c": {Par("p", ssp.Real), Par("q", ssp.Real), Par("a.b", ssp.Real)}}
	one := Parameter("p", RealValue(1, ""))
	cases := []struct {
		name          string
		top, mid, own string
		want          string // "variable=value …"
	}{
		{"two levels up", Inline("", Parameter("mid.c.a.b", RealValue(1, "")), ""), "", "", "a.b=1"},
		{"prefix without dot", Inline(` prefix="mid."`, Parameter("c.p", RealValue(1, "")), ""), "", "", "p=1"},
		{"mapping", Inline("", one, Mapped("p", "mid.c.q", "")), "", "", "q=1"},
		{"one to many", Inline("", one, Mapped("p", "mid.c.q", "")+Mapped("p", "mid.c.p", "")), "", "", "p=1 q=1"},
		{"prefix comes before mapping", Inline(` prefix="x."`, one, Mapped("x.p", "mid.c.q", "")), "", "", "q=1"},
		{"empty mapping", Inline("", one, "\n"), "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, l := Sound(t, levels(Bindings(c.top), Bindings(c.mid), Bindings(c.own)), nil, vars)
			if got := Values(n); got != c.want || len(l.Findings) > 0 {
				t.Errorf("got %q, want %q; findings %v", got, c.want, l.Findings)
			}
		})
	}
}

// Units and transformations of values (ssp 39): into the unit of the variable
// first, then the transformation; and what ssp 40 forbids.
func TestValueConversion(t *testing.T) {
	gears := map[string]int64{"P": 0, "N": 1, "D": 2}
	bounded := Par("p", ssp.Integer)
	bounded.Low, bounded.High = -1, 2
	narrow := Par("p", ssp.Integer)
	narrow.Low, narrow.High = math.MinInt32, math.MaxInt32
	bytes := Par("p", ssp.String)
	bytes.MediaType = "application/x"
	for _, c := range []struct {
		name     string
		variable ssp.Variable
		value    string
		entry    string // content of the mapping entry; "-" = no mapping
		want     string
		message  string // of the refusal; "" = the value is taken
	}{
		{"same unit", With(Par("p", ssp.Real), "m", Metre), RealValue(0.976535328081166, "m"), "-", "0.976535328081166", ""},
		{"unit", With(Par("p", ssp.Real), "mm", MM), RealValue(2, "m"), "-", "2000", ""},
		{"offset unit", With(Par("p", ssp.Real), "K", Kelvin), RealValue(20, "degC"), "-", "293.15", ""},
		{"unit unknown in the FMU", Par("p", ssp.Real), RealValue(2, "mm"), "-", "2", ""},
		{"unit, then linear", With(Par("p", ssp.Real), "mm", MM), RealValue(2, "m"), LinearTransform(3, 1), "6001", ""},
		{"suppressed, linear", With(Par("p", ssp.Real), "mm", MM), RealValue(2, "m"), "suppress" + LinearTransform(3, 1), "7", ""},
		{"integer to real", Par("p", ssp.Real), `<ssv:Integer value="7"/>`, "-", "7", ""},
		{"integral real to integer", Par("p", ssp.Integer), RealValue(-4, ""), "-", "-4", ""},
		{"integer mapping", Par("p", ssp.Integer), `<ssv:Integer value="7"/>`, Mapping("Integer", 7, 8), "8", ""},
		{"boolean mapping", Par("p", ssp.Boolean), `<ssv:Boolean value="1"/>`, Mapping("Boolean", true, false), "false", ""},
		{"string", Par("p", ssp.String), `<ssv:String value=" x &amp; y"/>`, "-", " x & y", ""},
		{"item by number", Enum(Par("p", ssp.Enumeration), gears), `<ssv:Integer value="1"/>`, "-", "N", ""},
		{"item mapping", Enum(Par("p", ssp.Enumeration), gears), `<ssv:Enumeration value="drive"/>`, Mapping("Enumeration", "drive", "D"), "D", ""},
		{"infinite", Par("p", ssp.Real), `<ssv:Real value="INF"/>`, "-", "INF", ""},
		{"infinite, other unit, linear", With(Par("p", ssp.Real), "mm", MM), `<ssv:Real value="-INF" unit="m"/>`, LinearTransform(3, 1), "-INF", ""},
		{"not a number", Par("p", ssp.Real), `<ssv:Real value="NaN"/>`, "-", "", `"NaN" is not a finite number`},
		{"infinite by a transformation", Par("p", ssp.Real), RealValue(1e300, ""), LinearTransform(1e300, 0), "", "turn it into +Inf"},
		{"decimal comma", Par("p", ssp.Real), `<ssv:Real value="2,5"/>`, "-", "", "a decimal point instead of a comma: 2.5"},
		{"least integer", Par("p", ssp.Integer), `<ssv:Integer value="-2147483648"/>`, "-", "-2147483648", ""},
		{"integer of 2.0", Par("p", ssp.Integer), `<ssv:UInt8 value="200"/>`, "-", "200", ""},
		{"fraction to integer", Par("p", ssp.Integer), RealValue(1.5, ""), "-", "", "not an exact integer"},
		{"boolean to real", Par("p", ssp.Real), `<ssv:Boolean value="true"/>`, "-", "", "Boolean cannot be given"},
		{"integer to boolean", Par("p", ssp.Boolean), `<ssv:Integer value="1"/>`, "-", "", "Integer cannot be given"},
		{"unknown item", Enum(Par("p", ssp.Enumeration), gears), `<ssv:Enumeration value="X"/>`, "-", "", "it has P (0), N (1), D (2)"},
		{"item to integer", Par("p", ssp.Integer), `<ssv:Enumeration value="D"/>`, "-", "", "is not known"},
		{"above maximum", bounded, `<ssv:Integer value="3"/>`, "-", "", `3 is not in the range of "mid.c.p", -1 to 2`},
		{"too large", Par("p", ssp.Integer), `<ssv:Integer value="3000000000"/>`, "-", "", "not an integer of 32 bits"},
		{"least Int64", Par("p", ssp.Integer), `<ssv:Int64 value="-9223372036854775808"/>`, "-", "-9223372036854775808", ""},
		{"largest UInt64", Par("p", ssp.Integer), `<ssv:UInt64 value="9223372036854775807"/>`, "-", "9223372036854775807", ""},
		{"mapped Int64", Par("p", ssp.Integer), `<ssv:Int64 value="9007199254740993"/>`, Mapping("Integer", 9007199254740993, 9007199254740995), "9007199254740995", ""},
		{"beyond Int64", Par("p", ssp.Integer), `<ssv:UInt64 value="18446744073709551615"/>`, "-", "",
			`parameter "p": "18446744073709551615" is larger than 9223372036854775807`},
		{"Int64 for 32 bits", narrow, `<ssv:Int64 value="3000000000"/>`, "-", "", `3000000000 is not in the range of "mid.c.p", -2147483648 to 2147483647`},
		{"Float64 for 32 bits", narrow, `<ssv:Float64 value="3e9"/>`, "-", "", `3000000000 is not in the range of "mid.c.p"`},
		{"Int64 to real", Par("p", ssp.Real), `<ssv:Int64 value="-9007199254740992"/>`, "-", "-9.007199254740992e+15", ""},
		{"inexact Int64 to real", Par("p", ssp.Real), `<ssv:Int64 value="9007199254740993"/>`, "-", "", "9007199254740993 is not exact as a Real"},
		{"inexact real to integer", Par("p", ssp.Integer), `<ssv:Float64 value="1e16"/>`, "-", "", "1e+16 is not an exact integer"},
		{"binary", bytes, `<ssv:Binary value=" 00fF "/>`, "-", "00fF", ""},
		{"no binary", bytes, `<ssv:Binary value="00f"/>`, "-", "", `"00f" is not a list of bytes`},
		{"array", Par("p", ssp.Real), `<ssv:Real value="1 2 3"/>`, "-", "", "is an array"},
		{"array of something else", Par("p", ssp.Real), `<ssv:Real value="1 two 3"/>`, "-", "", `entry 2 of the value of parameter "p"`},
		{"Float32", Par("p", ssp.Real), `<ssv:Float32 value="1e300"/>`, "-", "", "beyond the range of a Float32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, mapping := "v", Mapped("v", "p", c.entry)
			if c.entry == "-" {
				target, mapping = "p", ""
			}
			document, vars := levels("", "", Bindings(Inline("", Parameter(target, c.value), mapping))), Fakes{"mid.c": {c.variable}}
			if c.message != "" {
				Refused(t, document, nil, vars, "SD17", c.message)
				return
			}
			n, l := Sound(t, document, nil, vars)
			if len(n.Settings) != 1 || n.Settings[0].Value.String() != c.want || n.Settings[0].Value.Type != c.variable.Type {
				t.Errorf("settings %+v, want %s; findings %v", n.Settings, c.want, l.Findings)
			}
			if c.variable.Type == ssp.Enumeration && n.Settings[0].Value.Int != gears[c.want] {
				t.Errorf("number %d", n.Settings[0].Value.Int)
			}
		})
	}
}

// propagate is a parameter of two FMUs that hangs on connectors of systems:
// top.P → mid.P → c.p and top.P → d.p.
func propagate(top, mid, own string) string {
	p, real := Conns(Con("p", "parameter", "")), RealType("")
	inner := Sys("mid", Conns(Con("P", "parameter", real))+mid, Comp("c", p+own), Link("P", "c/p", LinearTransform(2, 0)))
	around := Conns(Con("P", "parameter", RealType("m")))
	return Head + Sys("top", around+top, inner+Comp("d", p), Link("P", "mid/P", ""), Link("P", "d/p", "")) + Units + Tail
}

// The value of a connector of a system goes inward along the connections, with
// units and transformations, and beats what is bound further in (ssp 37).
func TestPropagation(t *testing.T) {
	vars := Fakes{"mid.c": {Par("p", ssp.Real)}, "d": {With(Par("p", ssp.Real), "mm", MM)}}
	top := Inline("", Parameter("P", RealValue(3, "m")), "")
	mid := Inline("", Parameter("P", RealValue(5, "")), "")
	own := Inline("", Parameter("p", RealValue(7, "")), "")
	for _, c := range []struct {
		name          string
		top, mid, own string
		c, d          float64 // NaN = no setting
		overrides     int     // at c
	}{
		{"nothing", "", "", "", math.NaN(), math.NaN(), 0},
		{"outermost", top, "", "", 6, 3000, 0},
		{"direct", "", "", own, 7, math.NaN(), 0},
		{"outermost beats direct", top, "", own, 6, 3000, 1},
		{"all", top, mid, own, 6, 3000, 2},
		{"later beats earlier", Inline("", Parameter("P", RealValue(1, "mm")), "") + top, "", "", 6, 3000, 1},
		{"integer", Inline("", Parameter("P", `<ssv:Integer value="3"/>`), ""), "", "", 6, 3000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, _ := Sound(t, propagate(Bindings(c.top), Bindings(c.mid), Bindings(c.own)), nil, vars)
			got := Settings(n)
			for name, want := range map[string]float64{"mid.c.p": c.c, "d.p": c.d} {
				s, ok := got[name]
				if ok == math.IsNaN(want) || ok && s.Value.Real != want {
					t.Errorf("%s = %+v, want %v", name, s, want)
				}
			}
			if s := got["mid.c.p"]; len(s.Overrides) != c.overrides {
				t.Errorf("overrides %+v, want %d", s.Overrides, c.overrides)
			}
		})
	}
}

// A name that means several things sets all of them (ssp 35), with a warning.
func TestPunning(t *testing.T) {
	c := `<ssd:Component name="c" source="a.fmu">` + Conns(Con("b.p", "parameter", "")) + "</ssd:Component>"
	document := Head + Sys("top", Bindings(Inline("", Parameter("a.b.p", RealValue(1, "")), "")),
		Comp("a", "")+Sys("a.b", Conns(Con("p", "parameter", "")), c, Link("p", "c/b.p", ""))) + Tail
	vars := []ssp.Variable{Par("b.p", ssp.Real)}
	n, l := Sound(t, document, nil, Fakes{"a": vars, "a.b.c": vars})
	if s := Settings(n); len(s) != 2 || s["a.b.p"].Value.Real != 1 || s["a.b.c.b.p"].Value.Real != 1 {
		t.Errorf("settings %+v", n.Settings)
	}
	if len(l.Findings) != 1 || l.Findings[0].ID != "SD20" || l.Findings[0].Level != diag.Warning {
		t.Errorf("findings %v", l.Findings)
	}
}

// unitFake is an FMU that defines the unit "x".
type unitFake struct {
	FakeSet
	x unit.Base
}

func (u unitFake) Unit(name string) *unit.Base {
	if name == "x" {
		return &u.x
	}
	return nil
}

func (u unitFake) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) { return u, nil }

// The unit of a value in a set of its own is that of the set, else of the SSD, else of
// the FMU; of the same name as that of the variable it needs no definition. Where it has
// to be converted and is not known, the value is refused, also behind the connectors of
// systems (ssp 9, 39).
func TestUnitsOfSets(t *testing.T) {
	for _, tt := range []struct {
		name, set, system, fmu string  // where the unit "x" is defined, as mm, cm or km
		variable, connector    string  // units of the ends
		content                string  // of the mapping entry
		value                  string  // unit of the value; "" = x
		want                   float64 // 0: refused
	}{
		{name: "the set", set: "0.01", system: "1000", variable: "mm", want: 20},
		{name: "the SSD", system: "1000", fmu: "0.01", variable: "mm", want: 2e6},
		{name: "the FMU", fmu: "0.01", variable: "mm", want: 20},
		{name: "nobody", variable: "mm"},
		{name: "the same name", variable: "x", want: 2},
		{name: "the FMU, in brackets through a connector", value: "[x]", fmu: "0.01", variable: "mm", connector: "none", want: 20},
		{name: "nobody, in brackets", value: "[x]", variable: "mm"},
		{name: "nothing to convert into", variable: "", want: 2},
		{name: "suppressed", variable: "mm", content: "suppress", want: 2},
		{name: "the FMU, through a connector", fmu: "0.01", variable: "mm", connector: "none", want: 20},
		{name: "nobody, and the connector has a unit", variable: "mm", connector: "mm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, before, links := "c.p", "", []string(nil)
			if tt.connector != "" {
				connector := Con("k", "parameter", RealType(strings.TrimPrefix(tt.connector, "none")))
				target, before, links = "k", Conns(connector), []string{Link("k", "c/p", "")}
			}
			binding := `<ssd:ParameterBinding source="s.ssv"><ssd:ParameterMapping><ssm:ParameterMapping version="1.0">` + Mapped("p", target, tt.content) +
				"</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>"
			document := Head + Sys("top", before+Bindings(binding), Comp("c", Conns(Con("p", "parameter", ""))), links...) +
				cmp.Or(Length("ssd", "x", tt.system), Units) + Tail
			set := SetFile(Parameter("p", RealValue(2, cmp.Or(tt.value, "x"))), Length("ssv", "x", tt.set))
			p := Par("p", ssp.Real)
			if p.Unit = tt.variable; p.Unit == "mm" {
				p = With(p, "mm", MM)
			}
			var fake ssp.Resolver = FakeSet{"p": p}
			if tt.fmu != "" {
				fake = unitFake{FakeSet{"p": p}, unit.Base{M: 1, Factor: 0.01}}
			}
			n, _, err := Flatten(t, document, map[string]string{"s.ssv": set}, fake, false)
			switch {
			case tt.want == 0 && !diag.Has(err, "SD13C"):
				t.Errorf("error %v", err)
			case tt.want == 0:
			case err != nil:
				t.Error(err)
			case !Near(n.Settings[0].Value.Real, tt.want):
				t.Errorf("%v, want %v", n.Settings[0].Value, tt.want)
			}
		})
	}
}

// The steps of a value: from how it stands in its set to the variable, with what each
// makes of it.
func TestValueSteps(t *testing.T) {
	set := SetFile(Parameter("kk", RealValue(5, "km")), Length("ssv", "km", "1000"))
	mapping := "<ssm:ParameterMapping version=\"1.0\" xmlns:ssm=\"" + xmltree.SSM + "\" xmlns:ssc=\"" + xmltree.SSC + "\">\n" + Mapped("x.kk", "a.p", LinearTransform(2, 1)) + "\n" + Mapped("x.kk", "s.k", "") + "</ssm:ParameterMapping>"
	p := Con("p", "parameter", "")
	document := Head + Sys("top", Bindings(`<ssd:ParameterBinding source="set.ssv" prefix="x."><ssd:ParameterMapping source="map.ssm"/></ssd:ParameterBinding>`),
		Comp("a", Conns(p))+Sys("s", Conns(Con("k", "parameter", RealType("mm"))), Comp("b", Conns(p)), Link("k", "b/p", LinearTransform(10, -1)))) + Units + Tail
	n, _ := Sound(t, document, map[string]string{"set.ssv": set, "map.ssm": mapping},
		Fakes{"a": {With(Par("p", ssp.Real), "m", Metre)}, "s.b": {With(Par("p", ssp.Real), "m", Metre)}})
	for name, want := range map[string][]string{
		"a.p": {`parameter "kk" 5 km set.ssv:1`, `mapping of "x.kk" to "a.p" 5 km map.ssm:2`, "km → m 5000 m map.ssm:2", "× 2 + 1 10001 m map.ssm:2"},
		"s.b.p": {`parameter "kk" 5 km set.ssv:1`, `mapping of "x.kk" to "s.k" 5 km map.ssm:3`, "km → mm 5e+06 mm map.ssm:3",
			"connection s.k → s.b.p 5e+06 mm SystemStructure.ssd:", "mm → m 5000 m SystemStructure.ssd:", "× 10 - 1 49999 m SystemStructure.ssd:"},
	} {
		s := Settings(n)[name]
		var got []string
		for _, k := range s.From.Steps {
			got = append(got, fmt.Sprintf("%s %s %s %s", k.What, k.Value, k.Unit, filepath.Base(k.Place.String())))
		}
		if len(got) != len(want) || s.From.Steps[len(got)-1].Value != s.Value {
			t.Errorf("%s: %q, want %q", name, got, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: step %d is %q, want %q", name, i, got[i], want[i])
			}
		}
	}
}

// What units and transformations make of a value or a signal must be a number, and a
// binding has one set.
func TestBeyondNumbers(t *testing.T) {
	huge := LinearTransform(1e308, 0)
	vars := Fakes{"a": {Out("y", ssp.Real)}, "c": {In("u", ssp.Real), Par("p", ssp.Real)}}
	through := Sys("s", Conns(Con("i", "input", "<ssc:Real/>"), Con("o", "output", "<ssc:Real/>")), "", Link("i", "o", huge))
	for document, want := range map[string]string{
		Sys("top", "", Comp("a", Conns(Con("y", "output", "")))+through+Comp("c", Conns(Con("u", "input", ""))), Link("a/y", "s/i", huge), Link("s/o", "c/u", "")): "SD12",
		Sys("top", Bindings(Inline("", Parameter("v", RealValue(1e9, "")), Mapped("v", "c.p", huge))), Comp("a", "")+Comp("c", "")):                                "SD17",
	} {
		Refused(t, Head+document+Tail, nil, vars, want, "+Inf")
	}
	two := strings.Replace(Inline("", Parameter("c.p", RealValue(1, "")), ""), "</ssd:ParameterValues>", `<ssv:ParameterSet version="1.0" name="t"><ssv:Parameters/></ssv:ParameterSet></ssd:ParameterValues>`, 1)
	Refused(t, Head+Sys("top", Bindings(two), Comp("a", "")+Comp("c", ""))+Tail, nil, vars, "SD18", "there are 2 elements")
}

// What Give hands over counts at its connector and behind it, also where a document gives
// a connector that feeds it a value; of several the nearest to the variable counts, and what
// is fed otherwise keeps its value (ssp 37). By hand: mm at X and in m.U, m in the FMUs.
func TestGivenAtConnectors(t *testing.T) {
	value := func(name string, v float64) string { return Parameter(name, RealValue(v, "")) }
	mm := RealType("mm")
	document := Head + Sys("top", Conns(Con("X", "input", mm))+Bindings(Inline("", value("X", 2000)+value("m.U", 7000), "")),
		Sys("m", Conns(Con("U", "input", mm)), Comp("a", ""), Link("U", "a/u", LinearTransform(10, 0)))+Comp("b", ""),
		Link("X", "m/U", ""), Link("X", "b/u", "")) + Units + Tail
	u := With(In("u", ssp.Real), "m", Metre)
	for _, c := range []struct {
		name  string
		given map[string]float64
		a, b  float64 // in m
		told  string
	}{
		{"nothing", nil, 20, 2, `"m.U" is bound to 7000, but connected to the connector "X"`},
		{"inside", map[string]float64{"m.U": 4000}, 40, 2, `"X" is bound to 2000; after "m.U", which it feeds, the value given there counts`},
		{"outside", map[string]float64{"X": 3000}, 30, 3, `"m.U" is bound to 7000, but connected to the connector "X"`},
		{"both", map[string]float64{"X": 3000, "m.U": 4000}, 40, 3, `"X" is bound to 3000; after "m.U"`},
	} {
		l := &diag.List{}
		p := Open(t, Folder(t, map[string]string{ssp.DocumentName: document}), l)
		var values []ssp.ParameterValue
		for _, name := range slices.Sorted(maps.Keys(c.given)) {
			values = append(values, ssp.ParameterValue{Name: name, Value: ssp.Value{Type: ssp.Real, Real: c.given[name]}})
		}
		if values != nil {
			p.Give(values, nil, "by hand")
		}
		n, err := p.Flatten(Fakes{"m.a": {u}, "b": {u}}, l)
		if err != nil {
			t.Fatal(c.name, err)
		}
		s := Settings(n)
		if a, b := s["m.a.u"].Value.Real, s["b.u"].Value.Real; math.Abs(a-c.a) > 1e-12 || math.Abs(b-c.b) > 1e-12 {
			t.Errorf("%s: %v and %v m, want %v and %v", c.name, a, b, c.a, c.b)
		}
		if want := 2 + len(c.given); len(s["m.a.u"].Overrides)+1 != want {
			t.Errorf("%s: %d values, want %d", c.name, len(s["m.a.u"].Overrides)+1, want)
		}
		if !slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return strings.Contains(f.Message, c.told) }) {
			t.Errorf("%s: findings %v, want %q", c.name, l.Findings, c.told)
		}
	}
}
