package ssp_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// chain is a.y → outer.i → outer.deep.i → outer.deep.b.u: three connections over two levels of
// systems, with the content of connectors (c) and connections (t) from the source on.
func chain(c [4]string, t [3]string) string {
	deep := Sys("deep", Conns(Con("i", "input", c[2])), Comp("b", Conns(Con("u", "input", c[3]))), Link("i", "b/u", t[2]))
	outer := Sys("outer", Conns(Con("i", "input", c[1])), deep, Link("deep/i", "i", t[1])) // reversed
	return Head + Sys("top", "", Comp("a", Conns(Con("y", "output", c[0])))+outer, Link("a/y", "outer/i", t[0])) + Names + Tail
}

// Composed by hand: at each connection the unit first, then the transformation
// (ssp 30).
func TestComposedReal(t *testing.T) {
	y, u := Out("y", ssp.Real), In("u", ssp.Real)
	cases := []struct {
		name         string
		from, to     ssp.Variable
		connectors   [4]string // units; "-" = no type at all
		ways         [3]string
		gain, offset float64
	}{
		{"no types", y, u, [4]string{"-", "-", "-", "-"}, [3]string{}, 1, 0},
		{"FMU units, connectors silent", With(y, "mm", MM), With(u, "m", Metre), [4]string{"", "", "", ""}, [3]string{}, 0.001, 0},
		{"unit in the middle only", y, u, [4]string{"", "mm", "", ""}, [3]string{}, 1, 0},
		{"there and back", y, u, [4]string{"m", "mm", "", "m"}, [3]string{}, 1, 0},
		{"offset units", With(y, "degC", DegC), With(u, "K", Kelvin), [4]string{"", "", "", ""}, [3]string{}, 1, 273.15},
		// K = 0.5·F + 255, so F = 2·K − 510; from °C: 2·(c + 273.15) − 510
		{"factor and offset units", y, u, [4]string{"degC", "", "", "degF"}, [3]string{}, 2, 36.3},
		// m → mm: 1000 y; then 2·+5: 2000 y + 5 mm; mm → m: 2 y + 0.005; then 3·−1
		{"unit before transformation", y, u, [4]string{"m", "mm", "m", ""}, [3]string{LinearTransform(2, 5), LinearTransform(3, -1), ""}, 6, -0.985},
		{"unit lost behind a transformation", y, u, [4]string{"m", "", "", "mm"}, [3]string{LinearTransform(2, 0), "", ""}, 2, 0},
		{"suppressed, transformation kept", y, u, [4]string{"m", "mm", "", "mm"}, [3]string{"suppress" + LinearTransform(4, 1), "", ""}, 4, 1},
		{"other dimension, suppressed", y, u, [4]string{"K", "mm", "", "m"}, [3]string{"suppress", "", ""}, 0.001, 0},
		// the FMU gives mm; its connector says m, which is a stage of its own
		{"connector against FMU", With(y, "mm", MM), u, [4]string{"m", "", "", "m"}, [3]string{}, 0.001, 0},
		// the transformation works in the unit of the connector, not of the FMU: (2·y[m] + 1 m) in mm
		{"transformation in the connector's unit", y, With(u, "mm", MM), [4]string{"m", "m", "m", "m"}, [3]string{"", "", LinearTransform(2, 1)}, 2000, 1000},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var types [4]string
			for i, u := range c.connectors {
				if u != "-" {
					types[i] = RealType(u)
				}
			}
			n, _ := Sound(t, chain(types, c.ways), nil, Fakes{"a": {c.from}, "outer.deep.b": {c.to}})
			got, ok := Links(n)["a.y → outer.deep.b.u"]
			if !ok || len(n.Connections) != 1 {
				t.Fatalf("connections %+v", n.Connections)
			}
			if math.Abs(got.Gain-c.gain) > 1e-12*math.Abs(c.gain) || math.Abs(got.Offset-c.offset) > 1e-12*max(1, math.Abs(c.offset)) {
				t.Errorf("gain %v offset %v, want %v and %v", got.Gain, got.Offset, c.gain, c.offset)
			}
			if got.Map != nil || got.Type != ssp.Real {
				t.Errorf("map %v type %v", got.Map, got.Type)
			}
		})
	}
}

// Between relative quantities the offsets of units drop out (fmi2 15); between
// a relative and an absolute one they cannot be right.
func TestRelativeQuantity(t *testing.T) {
	degrees := [2]ssp.Variable{With(Out("y", ssp.Real), "degC", DegC), With(In("u", ssp.Real), "K", Kelvin)}
	metres := [2]ssp.Variable{With(Out("y", ssp.Real), "m", Metre), With(In("u", ssp.Real), "m", Metre)}
	silent := [4]string{RealType(""), RealType(""), RealType(""), RealType("")}
	for _, c := range []struct {
		ends     [2]ssp.Variable
		relative [2]bool
		strict   bool
		id       string
		fails    bool
	}{
		{degrees, [2]bool{true, true}, false, "", false},
		{degrees, [2]bool{true, false}, false, "SD11", true},
		{metres, [2]bool{true, false}, false, "SD11R", false}, // without offsets the number is the same
		{metres, [2]bool{true, false}, true, "SD11R", true},
	} {
		c.ends[0].RelativeQuantity, c.ends[1].RelativeQuantity = c.relative[0], c.relative[1]
		n, l, err := Flatten(t, chain(silent, [3]string{}), nil, Fakes{"a": {c.ends[0]}, "outer.deep.b": {c.ends[1]}}, c.strict)
		if IDs(l.Findings) != c.id || (err != nil) != c.fails || err == nil && (n.Connections[0].Gain != 1 || n.Connections[0].Offset != 0) {
			t.Errorf("%+v: error %v, findings %v", c, err, l.Findings)
		}
	}
}

// Mappings replace what is in their table and pass the rest (ssp 29); one after
// the other they compose.
func TestComposedTables(t *testing.T) {
	abc := map[string]int64{"A": 1, "B": 2, "C": 7}
	xyz := map[string]int64{"X": 10, "Y": 20, "Z": 30}
	colours, others := map[string]int64{"red": 1, "green": 2, "blue": 5}, map[string]int64{"blue": 1, "green": 2, "red": 3}
	const integer, boolean = "<ssc:Integer/>", "<ssc:Boolean/>"
	const typeABC, typeXYZ = `<ssc:Enumeration name="abc"/>`, `<ssc:Enumeration name="xyz"/>`
	cases := []struct {
		name       string
		from, to   ssp.Variable
		connectors [4]string
		ways       [3]string
		want       map[int64]int64
	}{
		// 1 → 2 → 5, 2 → 5 (passes the first), 3 → 4 → 4, 7 → 2 → 5
		{"two", Out("y", ssp.Integer), In("u", ssp.Integer), [4]string{integer, integer, integer, integer},
			[3]string{Mapping("Integer", 1, 2, 3, 4, 7, 2), "", Mapping("Integer", 2, 5)}, map[int64]int64{1: 5, 2: 5, 3: 4, 7: 5}},
		{"there and back", Out("y", ssp.Integer), In("u", ssp.Integer), [4]string{integer, integer, integer, integer},
			[3]string{Mapping("Integer", 1, 2, 2, 1), Mapping("Integer", 1, 2, 2, 1), ""}, nil},
		{"boolean", Out("y", ssp.Boolean), In("u", ssp.Boolean), [4]string{boolean, boolean, boolean, boolean},
			[3]string{Mapping("Boolean", true, false, "0", "1"), "", ""}, map[int64]int64{1: 0, 0: 1}},
		{"by name", Enum(Out("y", ssp.Enumeration), abc), Enum(In("u", ssp.Enumeration), xyz), [4]string{typeABC, typeXYZ, typeXYZ, typeXYZ},
			[3]string{Mapping("Enumeration", "A", "X", "B", "X", "C", "Z"), "", ""}, map[int64]int64{1: 10, 2: 10, 7: 30}},
		{"by name and number", Enum(Out("y", ssp.Enumeration), abc), In("u", ssp.Integer), [4]string{typeABC, typeXYZ, typeXYZ, integer},
			[3]string{Mapping("Enumeration", "A", "X", "B", "Y"), "", Mapping("Integer", 10, 7)}, map[int64]int64{1: 7, 2: 20, 10: 7}},
		// blue is mapped; red keeps its name and not its number
		{"items left out keep their names", Enum(Out("y", ssp.Enumeration), colours), Enum(In("u", ssp.Enumeration), others), [4]string{},
			[3]string{"", "", Mapping("Enumeration", "blue", "green")}, map[int64]int64{5: 2, 1: 3}},
		{"enumeration to integer", Enum(Out("y", ssp.Enumeration), abc), In("u", ssp.Integer), [4]string{typeABC, integer, integer, integer}, [3]string{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, _ := Sound(t, chain(c.connectors, c.ways), nil, Fakes{"a": {c.from}, "outer.deep.b": {c.to}})
			got := n.Connections[0]
			if !maps.Equal(got.Map, c.want) || (got.Map == nil) != (c.want == nil) || got.Gain != 1 || got.Offset != 0 {
				t.Errorf("map %v gain %v offset %v, want %v", got.Map, got.Gain, got.Offset, c.want)
			}
		})
	}
}

// What comes to an enumeration is an item of it, with a mapping and without one: an item
// of the source that arrives as none is an error, and so it is for a calculated parameter
// and an input of the outermost system; of an Integer only numbers can be told (ssp 29).
func TestItemsArrive(t *testing.T) {
	colours := map[string]int64{"red": 1, "green": 2, "blue": 5}
	farben := map[string]int64{"rot": 1, "gruen": 2, "blau": 7}
	calculated := Enum(ssp.Variable{Name: "y", Type: ssp.Enumeration, Causality: string(ssp.CalculatedParameter), Variability: "fixed", Initial: "calculated"}, colours)
	y := Enum(Out("y", ssp.Enumeration), colours)
	bounded := func(low, high int64) ssp.Variable {
		v := Out("y", ssp.Integer)
		v.Low, v.High = low, high
		return v
	}
	same, swapped := Enum(In("u", ssp.Enumeration), colours), Enum(In("u", ssp.Enumeration), map[string]int64{"red": 2, "green": 1, "blue": 5})
	redOnly, blueToo := Mapping("Enumeration", "red", "blau"), Mapping("Enumeration", "blue", "blau")
	for _, c := range []struct {
		name     string
		from, to ssp.Variable
		way      string
		id       string // "" for none
		message  string
		want     map[int64]int64
	}{
		{"no item of the source", y, same, Mapping("Enumeration", "Q", "red"), "SD12", `"Q" is not an item of the source`, nil},
		{"no item of the target", y, same, Mapping("Enumeration", "red", "Q"), "SD12", `"Q" is not an item of the target`, nil},
		{"no number of the target", y, same, Mapping("Integer", 1, 9), "SD12", `1 is mapped to 9`, nil},
		{"numbers differ", y, swapped, "", "SD7", `("green" is 2 in one and 1 in the other); the number passes unchanged`, nil},
		{"unmapped", y, In("u", ssp.Enumeration), redOnly, "SD12", `"blue" of the source, 5, becomes 5, which is not an item of the target; it has rot (1), gruen (2), blau (7)`, nil},
		{"no mapping", y, In("u", ssp.Enumeration), "", "SD12", `"blue"`, nil},
		{"parameter without mapping", calculated, Par("u", ssp.Enumeration), "", "SD12", `"blue"`, nil},
		{"all mapped", y, In("u", ssp.Enumeration), blueToo, "", "", map[int64]int64{5: 7}},
		{"Integer", Out("y", ssp.Integer), In("u", ssp.Enumeration), Mapping("Integer", 5, 7), "SD10E", "numbers that the mapping does not contain", map[int64]int64{5: 7}},
		{"bounded Integer", bounded(1, 2), In("u", ssp.Enumeration), Mapping("Integer", 5, 7), "", "", map[int64]int64{5: 7}},
		{"wider Integer", bounded(1, 3), In("u", ssp.Enumeration), Mapping("Integer", 5, 7), "SD10E", "numbers that the mapping does not contain", map[int64]int64{5: 7}},
	} {
		if c.to.Items == nil {
			c.to = Enum(c.to, farben)
		}
		document := Head + Sys("top", "", Comp("a", Conns(Con("y", c.from.Causality, "")))+Comp("b", Conns(Con("u", c.to.Causality, ""))), Link("a/y", "b/u", c.way)) + Tail
		vars := Fakes{"a": {c.from}, "b": {c.to}}
		if c.id == "SD12" {
			Refused(t, document, nil, vars, c.id, c.message)
			continue
		}
		n, l, err := Flatten(t, document, nil, vars, false)
		told := ""
		for _, f := range l.At(diag.Warning) {
			if f.ID != "SD7" || c.id == "SD7" { // of the names, which differ
				told = f.ID + " " + f.Message
			}
		}
		if err != nil || !strings.HasPrefix(told, c.id) || !strings.Contains(told, c.message) || c.id == "" && told != "" {
			t.Errorf("%s: error %v, finding %q, want %s with %q", c.name, err, told, c.id, c.message)
			continue
		}
		if got := n.Connections[0].Map; !maps.Equal(got, c.want) {
			t.Errorf("%s: map %v, want %v", c.name, got, c.want)
		}
	}

	input := Head + Sys("top", Conns(Con("in", "input", `<ssc:Enumeration name="colours"/>`)), Comp("b", Conns(Con("u", "input", ""))), Link("in", "b/u", redOnly)) +
		`<ssd:Enumerations><ssc:Enumeration name="colours"><ssc:Item name="red" value="1"/><ssc:Item name="blue" value="5"/></ssc:Enumeration></ssd:Enumerations>` + Tail
	Refused(t, input, nil, Fakes{"b": {Enum(In("u", ssp.Enumeration), farben)}}, "SD12", `"blue"`)
}

// Base types must match; Integer and Enumeration are one to the functions of
// FMI, but connecting them is told (fmi2 46). A mapping says what is meant.
func TestTypesOfEnds(t *testing.T) {
	end := func(v ssp.Variable) ssp.Variable {
		if v.Type == ssp.Enumeration {
			v.Items = map[string]int64{"A": 1, "B": 2}
		}
		return v
	}
	types := []ssp.ValueType{ssp.Real, ssp.Integer, ssp.Boolean, ssp.String, ssp.Enumeration}
	discrete := []ssp.ValueType{ssp.Integer, ssp.Enumeration}
	for _, from := range types {
		for _, to := range types {
			vars := Fakes{"a": {end(Out("y", from))}, "outer.deep.b": {end(In("u", to))}}
			flatten := func(way string) (found, message string) {
				n, l, err := Flatten(t, chain([4]string{}, [3]string{way}), nil, vars, false)
				if err == nil && len(n.Connections) != 1 {
					t.Errorf("%s to %s: connections %v", from, to, n.Connections)
				}
				for _, f := range l.Findings {
					message += f.Message
				}
				return IDs(l.Findings), message
			}
			wantID, want := "SD10", fmt.Sprintf("type %s, the target of type %s", from, to)
			switch {
			case from == to:
				wantID, want = "", ""
			case from == ssp.Integer && to == ssp.Real: // nothing is lost
				wantID, want = "", ""
				for way, gain := range map[string]float64{Mapping("Integer", 1, 2): 1, LinearTransform(3, 1): 3} {
					n, l, err := Flatten(t, chain([4]string{}, [3]string{way}), nil, vars, false)
					if err != nil || len(n.Connections) != 1 || n.Connections[0].Gain != gain || (n.Connections[0].Map[1] == 2) != (gain == 1) {
						t.Errorf("Integer to Real with %s: %v, findings %v", way, err, l.Findings)
					}
				}
			case slices.Contains(discrete, from) && slices.Contains(discrete, to):
				wantID, want = "SD10E", fmt.Sprintf(`"a.y" is of type %s and "outer.deep.b.u" of type %s`, from, to)
				mapped := "" // of an Integer any other number may come
				if from == ssp.Integer {
					mapped = "SD10E"
				}
				if id, _ := flatten(Mapping("Integer", 1, 2)); id != mapped {
					t.Errorf("%s to %s with a mapping: findings %s", from, to, id)
				}
			}
			if found, message := flatten(""); found != wantID || !strings.Contains(message, want) {
				t.Errorf("%s to %s: %s %s, want %s with %q", from, to, found, message, wantID, want)
			}
		}
	}
}

// The kinds of version 2.0: unspecified takes the causality of the FMU, local
// passes through systems; at an FMU only outputs are sources.
func TestKinds2(t *testing.T) {
	way := func(a, s, b string) string {
		return Head2 + Sys("top", "",
			Sys("s", Conns(Con("o", s, "")), Comp("a", Conns(Con("y", a, ""))), Link("a/y", "o", ""))+Comp("b", Conns(Con("u", b, ""))), Link("s/o", "b/u", "")) + Tail
	}
	for _, c := range []struct{ a, s, b, causality, id, message string }{
		{"output", "output", "input", "output", "", ""},
		{"output", "local", "input", "output", "", ""},
		{"unspecified", "unspecified", "unspecified", "output", "", ""},
		{"output", "input", "input", "output", "SD8", "neither can feed the other"},
		{"local", "output", "input", "local", "SD8", "only an output or a calculated parameter can feed"},
		{"calculatedParameter", "calculatedParameter", "input", "calculatedParameter", "", ""},
		{"structuralParameter", "output", "input", "structuralParameter", "SD8", "neither can feed"},
		{"unspecified", "unspecified", "unspecified", "output to parameter", "SD8", "an output can feed inputs"},
		{"calculatedParameter", "calculatedParameter", "parameter", "calculatedParameter to constant parameter", "SD14S", "cannot be set"},
	} {
		y, u := Out("y", ssp.Real), In("u", ssp.Real)
		causality, target, _ := strings.Cut(c.causality, " to ")
		if y.Causality = causality; target != "" {
			u = Par("u", ssp.Real)
			u.Settable = target == "parameter"
		}
		vars := Fakes{"s.a": {y}, "b": {u}}
		if c.id != "" {
			Refused(t, way(c.a, c.s, c.b), nil, vars, c.id, c.message)
		} else if n, l := Sound(t, way(c.a, c.s, c.b), nil, vars); len(n.Connections) != 1 || len(l.Findings) > 0 {
			t.Errorf("%s → %s → %s: findings %v", c.a, c.s, c.b, l.Findings)
		}
	}
	document := strings.Replace(way("output", "output", "input"), `startConnector="o"`, `startConnector="o" startIndices="1"`, 1)
	Refused(t, document, nil, Fakes{"s.a": {Out("y", ssp.Real)}, "b": {In("u", ssp.Real)}}, "SD10", "no element with the indices [1]")
}
