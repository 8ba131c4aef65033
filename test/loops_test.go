package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// member is a component of a system made for a test: its FMU, and its inputs
// and outputs.
type member struct{ name, fmu, in, out string }

// component writes a member.
func (m member) component(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<s:Component name=%q source="%s%s.fmu"><s:Connectors>`, m.name, folder, m.fmu)
	for kind, names := range map[string]string{"input": m.in, "output": m.out} {
		for name := range strings.FieldsSeq(names) {
			fmt.Fprintf(&b, `<s:Connector name=%q kind=%q><c:Real/></s:Connector>`, name, kind)
		}
	}
	b.WriteString("</s:Connectors></s:Component>")
	return b.String()
}

// wires writes connections "a.y → b.u", one a line; an end without a dot is a
// connector of the system itself.
func wires(lines string) string {
	var b strings.Builder
	end := func(side, name string) {
		if element, connector, ok := strings.Cut(name, "."); ok {
			fmt.Fprintf(&b, ` %sElement=%q %sConnector=%q`, side, element, side, connector)
		} else {
			fmt.Fprintf(&b, ` %sConnector=%q`, side, name)
		}
	}
	for line := range strings.Lines(lines) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if !ok {
			continue
		}
		b.WriteString("<s:Connection")
		end("start", from)
		end("end", to)
		b.WriteString("/>")
	}
	return b.String()
}

// coupled writes an .ssp of members, further elements and connections, and gives
// its path. What is declared tells whether the FMUs keep their directional
// derivatives and dependencies.
func coupled(t *testing.T, declared bool, members []member, elements, lines string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<s:SystemStructureDescription name="loop" version="1.0" xmlns:s="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <s:System name="loop"><s:Elements>` + elements)
	for _, m := range members {
		b.WriteString(m.component("resources/"))
	}
	b.WriteString("</s:Elements><s:Connections>" + wires(lines) + `</s:Connections></s:System><s:DefaultExperiment startTime="0" stopTime="0.01"/>
</s:SystemStructureDescription>`)
	all := []part{part{data: []byte(b.String())}.called("SystemStructure.ssd")}
	for _, name := range []string{"linear", "polynomial"} {
		path := filepath.Join(t.TempDir(), name+".fmu")
		entries := parts(t, name)
		for i := range entries {
			if !declared && entries[i].Name == "modelDescription.xml" {
				text := string(entries[i].data)
				text = strings.Replace(text, ` providesDirectionalDerivative="true"`, "", 1)
				a, z := strings.Index(text, "<ModelStructure>"), strings.Index(text, "</ModelStructure>")
				entries[i].data = []byte(text[:a] + "<ModelStructure>" + text[z:])
			}
		}
		pack(t, path, entries)
		all = append(all, part{data: read(t, path)}.called("resources/"+name+".fmu"))
	}
	path := filepath.Join(t.TempDir(), "loop.ssp")
	pack(t, path, all)
	return path
}

// Algebraic loops of the initialisation are solved: linear and nonlinear ones,
// through two and three FMUs, one inside another, from near and far. The exact
// solutions follow by hand from
//
//	y = a + u³ with u = −y, so y³ + y = a: y = 2 for a = 10,
//
// and from choosing y and computing a. Relative tolerance 1e-10.
func TestInitialisationLoops(t *testing.T) {
	take := long.Sample(5)
	const tolerance = 1e-10
	f := member{"f", "polynomial", "u", "y"}
	g := member{"g", "polynomial", "u", "y"}
	l := member{"l", "linear", "u[1] u[2]", "y[1] y[2]"}
	k := member{"k", "linear", "u[1]", "y[1]"}
	one := member{"l", "linear", "u[1]", "y[1]"}
	// The inner system holds f and l in a loop of their own, and is itself on a
	// loop with g: y_f = 9 + u_f³, y_g = 5.375 + u_g³, u_f = −y_f − y_g/2,
	// u_g = y_f/2 − y_g; the solution is y_f = 1, y_g = 2 (monotone, so the only one).
	inner := `<s:System name="inner"><s:Connectors><s:Connector name="from" kind="input"><c:Real/></s:Connector><s:Connector name="to" kind="output"><c:Real/></s:Connector></s:Connectors><s:Elements>` +
		f.component("resources/") + l.component("resources/") + "</s:Elements><s:Connections>" + wires(`
			f.y → l.u[1]
			from → l.u[2]
			l.y[1] → f.u
			l.y[2] → to`) + "</s:Connections></s:System>"
	for _, c := range []struct {
		name     string
		members  []member
		elements string
		lines    string
		set      []string
		want     map[string]float64
	}{
		{
			name: "linear", members: []member{one, k}, lines: "l.y[1] → k.u[1]\nk.y[1] → l.u[1]",
			// y_l = 3 + 0.5 y_k, y_k = −2 y_l: y_l = 1.5
			set:  []string{"l.C[1,1]=1", "l.x0[1]=3", "l.D[1,1]=0.5", "k.D[1,1]=-2"},
			want: map[string]float64{"l.y[1]": 1.5, "k.y[1]": -3},
		}, {
			name: "linear of two signals", members: []member{l, f, g}, lines: "l.y[1] → f.u\nl.y[2] → g.u\nf.y → l.u[1]\ng.y → l.u[2]",
			// y_f = 1 + u_f, y_g = 2 − u_g, u_f = y_g, u_g = y_f: y_f = 1 + 2 − y_f = 1.5
			set:  []string{"f.a=1", "f.b=1", "g.a=2", "g.b=-1", "l.D[1,2]=1", "l.D[2,1]=1"},
			want: map[string]float64{"f.y": 1.5, "g.y": 0.5},
		}, {
			name: "nonlinear", members: []member{f, one}, lines: "f.y → l.u[1]\nl.y[1] → f.u",
			set:  []string{"f.a=10", "f.d=1", "l.D[1,1]=-1"},
			want: map[string]float64{"f.y": 2, "l.y[1]": -2},
		}, {
			name: "nonlinear from far away", members: []member{f, one}, lines: "f.y → l.u[1]\nl.y[1] → f.u",
			set:  []string{"f.a=10", "f.d=1", "l.D[1,1]=-1", "f.u=1e6", "l.u[1]=-1e6"},
			want: map[string]float64{"f.y": 2, "l.y[1]": -2},
		}, {
			name: "nonlinear from very far away", members: []member{f, one}, lines: "f.y → l.u[1]\nl.y[1] → f.u",
			set:  []string{"f.a=10", "f.d=1", "l.D[1,1]=-1", "f.u=1e30", "l.u[1]=1e30"},
			want: map[string]float64{"f.y": 2, "l.y[1]": -2},
		}, {
			name: "two nonlinear ones", members: []member{f, g}, lines: "f.y → g.u\ng.y → f.u",
			// y_f = 10 + y_g³, y_g = −y_f
			set:  []string{"f.a=10", "f.d=1", "g.b=-1"},
			want: map[string]float64{"f.y": 2, "g.y": -2},
		}, {
			name: "three FMUs", members: []member{f, one, k}, lines: "f.y → l.u[1]\nl.y[1] → k.u[1]\nk.y[1] → f.u",
			set:  []string{"f.a=10", "f.d=1", "l.D[1,1]=0.5", "k.D[1,1]=-2"},
			want: map[string]float64{"f.y": 2, "l.y[1]": 1, "k.y[1]": -2},
		}, {
			name: "nested", members: []member{g}, elements: inner, lines: "inner.to → g.u\ng.y → inner.from",
			set: []string{"inner.f.a=9", "inner.f.d=1", "g.a=5.375", "g.d=1",
				"inner.l.D[1,1]=-1", "inner.l.D[1,2]=-0.5", "inner.l.D[2,1]=0.5", "inner.l.D[2,2]=-1"},
			want: map[string]float64{"inner.f.y": 1, "g.y": 2, "inner.l.y[1]": -2, "inner.l.y[2]": -1.5},
		}, {
			name: "nested from far away", members: []member{g}, elements: inner, lines: "inner.to → g.u\ng.y → inner.from",
			set: []string{"inner.f.a=9", "inner.f.d=1", "g.a=5.375", "g.d=1",
				"inner.l.D[1,1]=-1", "inner.l.D[1,2]=-0.5", "inner.l.D[2,1]=0.5", "inner.l.D[2,2]=-1",
				"inner.f.u=1000", "g.u=-1000", "inner.l.u[1]=500", "inner.l.u[2]=1e4"},
			want: map[string]float64{"inner.f.y": 1, "g.y": 2, "inner.l.y[1]": -2, "inner.l.y[2]": -1.5},
		},
	} {
		for _, declared := range []bool{true, false} {
			if !take() {
				continue
			}
			t.Run(fmt.Sprintf("%s/declared=%t", c.name, declared), func(t *testing.T) {
				t.Parallel()
				args := []string{coupled(t, declared, c.members, c.elements, c.lines), "--step-size", "0.01"}
				for _, s := range c.set {
					args = append(args, "--set", s)
				}
				o := complete(t, args...)
				for name, want := range c.want {
					if got := o.column(t, name)[0]; !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
						t.Errorf("%s starts at %.17g, want %g", name, got, want)
					}
				}
			})
		}
	}
}

// A loop without a solution is named with its residual, and one without a
// unique solution as such; the exit code is that of a failed run.
func testInitialisationWithoutSolution(t *testing.T) {
	t.Parallel()
	f := member{"f", "polynomial", "u", "y"}
	k := member{"k", "linear", "u[1]", "y[1]"}
	const lines = "f.y → k.u[1]\nk.y[1] → f.u"
	for _, c := range []struct {
		name  string
		set   []string
		words []string
	}{
		// y = 1 + y + y²
		{"none", []string{"f.a=1", "f.b=1", "f.c=1", "k.D[1,1]=1"}, []string{"algebraic loop", "f.u", "k.y[1]", "is not solved", "residual"}},
		// y = 2 + y + y²
		{"none far away", []string{"f.a=2", "f.b=1", "f.c=1", "k.D[1,1]=1", "f.u=1e3", "k.u[1]=1e3"}, []string{"algebraic loop", "f.u", "is not solved", "residual"}},
		// y = 1 + y
		{"singular", []string{"f.a=1", "f.b=1", "k.D[1,1]=1"}, []string{"algebraic loop", "f.u", "no unique solution"}},
	} {
		for _, declared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/declared=%t", c.name, declared), func(t *testing.T) {
				args := []string{coupled(t, declared, []member{f, k}, "", lines)}
				for _, s := range c.set {
					args = append(args, "--set", s)
				}
				o := run(t, args...)
				if o.code != 1 || o.manifest.Status != "failed" {
					t.Errorf("exit code %d, status %q", o.code, o.manifest.Status)
				}
				oneMessage(t, o.output, o.code, c.words)
			})
		}
	}
}
