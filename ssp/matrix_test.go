package ssp

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// memory flattens a document whose files are in memory.
func memory(t testing.TB, document string, files map[string]string, r Resolver) *Network {
	t.Helper()
	l := &diag.List{}
	d := parseDocument([]byte(document), "memory.ssd", func(uri string, _ *Component) ([]byte, string, error) {
		text, ok := files[uri]
		if !ok {
			return nil, "", fs.ErrNotExist
		}
		return []byte(text), uri, nil
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
	set := `<ssv:ParameterSet version="1.0" name="s" xmlns:ssv="` + nsSSV + `" xmlns:ssc="` + nsSSC + `"><ssv:Parameters>` +
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
		mapped = `<ssm:ParameterMapping version="1.0" xmlns:ssm="` + nsSSM + `" xmlns:ssc="` + nsSSC + `"><ssm:MappingEntry source="` + source + `" target="` + target + `">` + linear(2, 1) + `</ssm:MappingEntry></ssm:ParameterMapping>`
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
