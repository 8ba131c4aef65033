package ssp

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// memory flattens a document whose files are in memory.
func memory(t testing.TB, document string, files map[string]string, r Resolver) *Network {
	t.Helper()
	l := &diag.List{}
	d := parseDocument([]byte(document), "memory.ssd", func(uri string, _ *Component) ([]byte, string, bool, error) {
		text, ok := files[uri]
		if !ok {
			return nil, "", false, fs.ErrNotExist
		}
		return []byte(text), uri, false, nil
	}, l)
	if d == nil {
		t.Fatal(l.Err())
	}
	p := &Package{Path: "memory.ssd", Root: d, Dir: "/nowhere"}
	d.home = home{dir: "/nowhere"}
	p.instantiate(l)
	n, err := p.Flatten(r, l)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// form is one way to bind the parameter p of component c in system mid.
type form struct {
	level    int // 0 = component, 1 = mid, 2 = top
	prefix   bool
	mapping  string // "", "inline" or "file"
	external bool
}

func (f form) String() string {
	return fmt.Sprintf("level %d, prefix %v, mapping %q, file %v", f.level, f.prefix, f.mapping, f.external)
}

func forms() (all []form) {
	for level := range 3 {
		for _, prefix := range []bool{false, true} {
			for _, mapping := range []string{"", "inline", "file"} {
				for _, external := range []bool{false, true} {
					all = append(all, form{level, prefix, mapping, external})
				}
			}
		}
	}
	return all
}

// binding binds metres to p, in files whose names begin with id.
func (f form) binding(id string, metres float64, files map[string]string) string {
	target := []string{"p", "c.p", "mid.c.p"}[f.level]
	source := target // in the set
	attrs := ""
	if f.mapping != "" {
		source = "source"
	}
	if f.prefix { // splits the name, or adds to it what the mapping must name
		if f.mapping == "" {
			source = target[len(target)-1:]
			attrs = fmt.Sprintf(` prefix="%s"`, target[:len(target)-1])
		} else {
			attrs = ` prefix="x."`
		}
	}
	set := `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="` + xmltree.SSV + `" xmlns:ssc="` + xmltree.SSC + `"><ssv:Parameters>` +
		param("other", realValue(99, "")) + param(source, realValue(metres, "m")) +
		`</ssv:Parameters><ssv:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit></ssv:Units></ssv:ParameterSet>`
	values := "<ssd:ParameterValues>" + set + "</ssd:ParameterValues>"
	if f.external {
		files[id+".ssv"], values = set, ""
		attrs += ` source="` + id + `.ssv"`
	}
	mapped := ""
	if f.mapping != "" {
		if f.prefix {
			source = "x." + source
		}
		mapped = `<ssm:ParameterMapping version="1.0" xmlns:ssm="` + xmltree.SSM + `" xmlns:ssc="` + xmltree.SSC + `"><ssm:MappingEntry source="` + source + `" target="` + target + `">` + linear(2, 1) + `</ssm:MappingEntry></ssm:ParameterMapping>`
		if f.mapping == "file" {
			files[id+".ssm"] = mapped
			mapped = `<ssd:ParameterMapping source="` + id + `.ssm"/>`
		} else {
			mapped = "<ssd:ParameterMapping>" + mapped + "</ssd:ParameterMapping>"
		}
	}
	return "<ssd:ParameterBinding" + attrs + ">" + values + mapped + "</ssd:ParameterBinding>"
}

// value is what the form makes of metres, by hand: the variable is in mm, the unit
// comes first, and the mapping doubles and adds 1 (ssp 34, 39).
func (f form) value(metres float64) float64 {
	if f.mapping != "" {
		return 2*1000*metres + 1
	}
	return 1000 * metres
}

// Every way to bind a parameter against every other, in both orders: the outer level
// wins, at one level the later binding (ssp 36), however the values come there.
func TestPrecedenceMatrix(t *testing.T) {
	vars := fakes{"mid.c": {with(par("p", Real), "mm", mm)}}
	pairs := 0
	for _, a := range forms() {
		for _, b := range forms() {
			files := map[string]string{}
			var at [3]string
			at[a.level] += a.binding("a", 3, files)
			at[b.level] += b.binding("b", 5, files)
			for i := range at {
				at[i] = bindings(nonEmpty(at[i])...)
			}
			n := memory(t, levels(at[2], at[1], at[0]), files, vars)
			want, weaker := b.value(5), a.value(3)
			if a.level > b.level {
				want, weaker = weaker, want
			}
			s := n.Settings[0]
			if len(n.Settings) != 1 || s.Value.Real != want || len(s.Overrides) != 1 || s.Overrides[0].Value.Real != weaker {
				t.Fatalf("%v, then %v: %+v, want %v over %v", a, b, n.Settings, want, weaker)
			}
			if level := []string{"mid.c", "mid", ""}[max(a.level, b.level)]; s.From.Level != level {
				t.Fatalf("%v, then %v: from %q, want %q", a, b, s.From.Level, level)
			}
			pairs++
		}
	}
	if pairs != 36*36 {
		t.Errorf("%d pairs", pairs)
	}
}

// Every kind of connector at every place against every other, written in both
// directions: what the standard allows is a connection in its direction, all else is
// an error (ssp 24, 25). An element is a system here, since FMUs do not have all kinds.
func TestDirections(t *testing.T) {
	kinds := []Kind{Input, Output, Parameter, CalculatedParameter, Inout, StructuralParameter, Constant, Local}
	legal := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(allowedByStandard)) {
		source, targets, _ := strings.Cut(strings.TrimSpace(line), " → ")
		for target := range strings.SplitSeq(targets, ", ") {
			legal[source+" → "+target] = true
		}
	}
	connector := func(name string, k Kind) string {
		return fmt.Sprintf(`<ssd:Connector name="%s" kind="%s"><ssc:Real/></ssd:Connector>`, name, k)
	}
	count := 0
	for _, a := range []string{"S", "E"} {
		for _, b := range []string{"S", "E"} {
			for _, ka := range kinds {
				for _, kb := range kinds {
					// Each end is an element or the system around; entries of dictionaries are inout.
					var own, elements string
					ends := [2]string{}
					for i, end := range []struct {
						owner string
						kind  Kind
					}{{a, ka}, {b, kb}} {
						name := string(rune('a' + i))
						switch {
						case end.owner == "S":
							own += connector(name, end.kind)
							ends[i] = fmt.Sprintf(`%%sConnector="%s"`, name)
							continue
						case end.kind == Inout:
							elements += fmt.Sprintf(`<ssd:SignalDictionaryReference name="%s" dictionary="d"><ssd:Connectors>%s</ssd:Connectors></ssd:SignalDictionaryReference>`, name, connector(name, end.kind))
						default:
							elements += fmt.Sprintf(`<ssd:System name="%s"><ssd:Connectors>%s</ssd:Connectors></ssd:System>`, name, connector(name, end.kind))
						}
						ends[i] = fmt.Sprintf(`%%sElement="%s" %%[1]sConnector="%s"`, name, name)
					}
					elements += `<ssd:System name="pad"/>`
					if own != "" {
						own = "<ssd:Connectors>" + own + "</ssd:Connectors>"
					}
					document := strings.Replace(head, `version="1.0" name`, `version="2.0" name`, 1) + `<ssd:System name="top"><ssd:Elements><ssd:System name="S">` + own + "<ssd:Elements>" + elements + "</ssd:Elements><ssd:Connections><ssd:Connection " +
						fmt.Sprintf(ends[0], "start") + " " + fmt.Sprintf(ends[1], "end") + `/></ssd:Connections><ssd:SignalDictionaries><ssd:SignalDictionary name="d">` +
						dictionary(entry("a", "<ssc:Real/>"), entry("b", "<ssc:Real/>")) + `</ssd:SignalDictionary></ssd:SignalDictionaries></ssd:System></ssd:Elements></ssd:System>` + tail
					ab := legal[fmt.Sprintf("%s %s → %s %s", a, ka, b, kb)]
					ba := legal[fmt.Sprintf("%s %s → %s %s", b, kb, a, ka)]
					if ab && ba {
						t.Fatal("the table goes both ways")
					}
					l := &diag.List{}
					d := parseDocument([]byte(document), "m.ssd", nil, l)
					if d == nil {
						t.Fatal(l.Err())
					}
					p := &Package{Root: d}
					p.instantiate(l)
					f := &flattener{p: p, l: l, inbound: map[end]edge{}, told: map[string]bool{}}
					f.connect(p.top)
					refused := diag.Has(l.Err(), "SD8")
					var from string
					for _, g := range f.inbound {
						if g.within != nil {
							from = g.from.name
						}
					}
					want := map[bool]string{ab: "a", ba: "b"}[true]
					if refused != (want == "") || from != want {
						t.Errorf("%s %s and %s %s: the source is %q, want %q; %v", a, ka, b, kb, from, want, l.Findings)
					}
					count++
				}
			}
		}
	}
	if count != 4*8*8 {
		t.Errorf("%d combinations", count)
	}
}

// Ways through several levels by hand: at each connection the unit first, then the
// transformation; connectors whose unit is not that of what is inside are stages (ssp 24,
// 28, 30, 31, 37). Units: km, m, mm; the FMU variables are u (m), v (mm), w (no unit),
// y (m), z (mm), q (calculated, m), p (m), r (mm), each a copy.
func TestWays(t *testing.T) {
	vars := []Variable{with(in("u", Real), "m", metre), with(in("v", Real), "mm", mm), in("w", Real), with(out("y", Real), "m", metre), with(out("z", Real), "mm", mm),
		with(Variable{Name: "q", Type: Real, Causality: "calculatedParameter", Variability: "fixed", Initial: "calculated"}, "m", metre), with(par("p", Real), "m", metre), with(par("r", Real), "mm", mm)}
	r := fakes{}
	for _, path := range []string{"a", "b", "s.c", "s.t.c"} {
		r[path] = vars
	}
	connectors := func(list ...string) string { // name kind unit
		text := ""
		for _, c := range list {
			f := strings.Fields(c + " -")
			unit := ""
			if f[2] != "-" {
				unit = ` unit="` + f[2] + `"`
			}
			text += fmt.Sprintf(`<ssd:Connector name=%q kind=%q><ssc:Real%s/></ssd:Connector>`, f[0], f[1], unit)
		}
		return "<ssd:Connectors>" + text + "</ssd:Connectors>"
	}
	fmu := func(name string, list ...string) string {
		return fmt.Sprintf(`<ssd:Component name=%q source="x.fmu">%s</ssd:Component>`, name, connectors(list...))
	}
	group := func(name, head, elements, connections string) string {
		return fmt.Sprintf(`<ssd:System name=%q>%s<ssd:Elements>%s</ssd:Elements><ssd:Connections>%s</ssd:Connections></ssd:System>`, name, head, elements, connections)
	}
	join := func(from, to, attributes, inside string) string {
		end := func(which, at string) string {
			if element, connector, ok := strings.Cut(at, "."); ok {
				return fmt.Sprintf(`%[1]sElement=%[2]q %[1]sConnector=%[3]q`, which, element, connector)
			}
			return fmt.Sprintf(`%sConnector=%q`, which, at)
		}
		return "<ssd:Connection " + end("start", from) + " " + end("end", to) + attributes + ">" + inside + "</ssd:Connection>"
	}
	const suppress = ` suppressUnitConversion="true"`
	for name, c := range map[string]struct {
		top          string
		link         string // or the parameter that gets the value at
		gain, offset float64
	}{
		// x km = 1000x m, 2000x+1 m = 1000(2000x+1) mm, half of it + 10 mm in m, − 1
		"inwards": {group("top", connectors("X parameter km")+bindings(inline("", param("X", realValue(3, "m")), "")),
			group("s", connectors("i parameter m"), group("t", connectors("j parameter mm"), fmu("c", "p parameter m"), join("j", "c.p", "", linear(1, -1))), join("i", "t.j", "", linear(0.5, 10))),
			join("X", "s.i", "", linear(2, 1))), "s.t.c.p", 0, 0.5*(2*3+1) + 0.01 - 1},
		// z mm at a connector in m: z/1000 m = z/1e6 km, times 4 + 0.001 km = z·4e-3 + 1 m, + 2 m in mm, a tenth
		"outwards": {group("top", "", group("s", connectors("o output m"), group("t", connectors("o output km"), fmu("c", "z output m"), join("c.z", "o", "", linear(4, 0.001))), join("o", "t.o", "", linear(1, 2)))+fmu("b", "v input mm"),
			join("b.v", "s.o", "", linear(0.1, 0))), "s.t.c.z → b.v", 0.4, 300},
		"not converted": {group("top", "", fmu("a", "y output m")+group("s", connectors("i input km"), fmu("c", "u input"), join("i", "c.u", "", "")), join("a.y", "s.i", suppress, linear(1, 2))), "a.y → s.c.u", 1000, 2000},
		// q m in km, + 1 km, in mm
		"calculated": {group("top", "", fmu("a", "q calculatedParameter")+group("s", connectors("P parameter km"), fmu("c", "r parameter"), join("c.r", "P", "", "")), join("s.P", "a.q", "", linear(1, 1))), "a.q → s.c.r", 1000, 1e6},
		// 3y m is 0.003y km in the dictionary and 3000y mm where it is read; in m, + 1
		"dictionary": {group("top", "", fmu("a", "y output")+`<ssd:SignalDictionaryReference name="W" dictionary="D">`+connectors("e input m")+`</ssd:SignalDictionaryReference>`+
			group("s", "", `<ssd:SignalDictionaryReference name="R" dictionary="D">`+connectors("e output mm")+`</ssd:SignalDictionaryReference>`+fmu("c", "u input"), join("c.u", "R.e", "", linear(1, 1))),
			join("a.y", "W.e", "", linear(3, 0))), "a.y → s.c.u", 3, 1},
		"connector of another unit": {group("top", "", fmu("a", "y output mm")+fmu("b", "w input"), join("a.y", "b.w", "", linear(1, 1))), "a.y → b.w", 1000, 1},
		"itself":                    {group("top", "", fmu("a", "y output", "v input"), join("a.y", "a.v", "", linear(1, 1))), "a.y → a.v", 1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dictionaries := ""
			if name == "dictionary" {
				dictionaries = `<ssd:SignalDictionaries><ssd:SignalDictionary name="D"><ssb:SignalDictionary version="1.0" xmlns:ssb="` + xmltree.SSB + `"><ssb:DictionaryEntry name="e"><ssc:Real unit="km"/></ssb:DictionaryEntry></ssb:SignalDictionary></ssd:SignalDictionary></ssd:SignalDictionaries>`
			}
			top := strings.TrimSuffix(c.top, "</ssd:System>") + dictionaries + "</ssd:System>"
			n := memory(t, head+top+`<ssd:Units><ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit><ssc:Unit name="km"><ssc:BaseUnit m="1" factor="1000"/></ssc:Unit></ssd:Units>`+tail, nil, r)
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }
			if s, is := settings1(n)[c.link]; is {
				if !near(s.Value.Real, c.offset) {
					t.Errorf("%s = %v, want %v", c.link, s.Value.Real, c.offset)
				}
				return
			}
			got, is := links(n)[c.link]
			if !is || len(n.Connections) != 1 || !near(got.Gain, c.gain) || !near(got.Offset, c.offset) {
				t.Errorf("%v, want %s · %v + %v", links(n), c.link, c.gain, c.offset)
			}
		})
	}
}
