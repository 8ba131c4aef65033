package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

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
	inner := `<ssd:System name="inner"><ssd:Connectors><ssd:Connector name="from" kind="input"><ssc:Real/></ssd:Connector>` +
		`<ssd:Connector name="to" kind="output"><ssc:Real/></ssd:Connector></ssd:Connectors><ssd:Elements>` +
		f.component("resources/") + l.component("resources/") + "</ssd:Elements><ssd:Connections>" +
		wires("f.y → l.u[1]\nfrom → l.u[2]\nl.y[1] → f.u\nl.y[2] → to") + "</ssd:Connections></ssd:System>"
	for _, c := range []struct {
		name     string
		members  []member
		elements string
		lines    string
		set      string
		want     map[string]float64
	}{
		// y_f = 1 + u_f, y_g = 2 − u_g, u_f = y_g, u_g = y_f: y_f = 1 + 2 − y_f = 1.5
		{"linear of two signals", []member{l, f, g}, "", "l.y[1] → f.u\nl.y[2] → g.u\nf.y → l.u[1]\ng.y → l.u[2]",
			"f.a=1 f.b=1 g.a=2 g.b=-1 l.D[1,2]=1 l.D[2,1]=1", map[string]float64{"f.y": 1.5, "g.y": 0.5}},
		{"nonlinear from very far away", []member{f, one}, "", "f.y → l.u[1]\nl.y[1] → f.u",
			"f.a=10 f.d=1 l.D[1,1]=-1 f.u=1e30 l.u[1]=1e30", map[string]float64{"f.y": 2, "l.y[1]": -2}},
		{"three FMUs", []member{f, one, k}, "", "f.y → l.u[1]\nl.y[1] → k.u[1]\nk.y[1] → f.u",
			"f.a=10 f.d=1 l.D[1,1]=0.5 k.D[1,1]=-2", map[string]float64{"f.y": 2, "l.y[1]": 1, "k.y[1]": -2}},
		{"nested from far away", []member{g}, inner, "inner.to → g.u\ng.y → inner.from",
			"inner.f.a=9 inner.f.d=1 g.a=5.375 g.d=1 inner.l.D[1,1]=-1 inner.l.D[1,2]=-0.5 inner.l.D[2,1]=0.5 inner.l.D[2,2]=-1 " +
				"inner.f.u=1000 g.u=-1000 inner.l.u[1]=500 inner.l.u[2]=1e4",
			map[string]float64{"inner.f.y": 1, "g.y": 2, "inner.l.y[1]": -2, "inner.l.y[2]": -1.5}},
	} {
		for _, declared := range []bool{true, false} {
			if !take() {
				continue
			}
			t.Run(fmt.Sprintf("%s/declared=%t", c.name, declared), func(t *testing.T) {
				t.Parallel()
				o := complete(t, looped(t, declared, c.members, c.elements, c.lines, c.set)...)
				for name, want := range c.want {
					if got := o.column(t, name)[0]; !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
						t.Errorf("%s starts at %.17g, want %g", name, got, want)
					}
				}
			})
		}
	}
}

// looped gives the arguments of a run of members with values. What is declared tells
// whether the FMUs keep their directional derivatives and dependencies.
func looped(t *testing.T, declared bool, members []member, elements, lines, set string) (args []string) {
	t.Helper()
	dir := t.TempDir()
	coupled(t, dir, "0.01", members, lines, elements)
	for _, name := range []string{"linear", "polynomial"} {
		all := entries(t, fmu(t, name))
		for i := range all {
			if !declared && all[i].Name == "modelDescription.xml" {
				text := strings.Replace(string(all[i].data), ` providesDirectionalDerivative="true"`, "", 1)
				a, z := strings.Index(text, "<ModelStructure>"), strings.Index(text, "</ModelStructure>")
				all[i].data = []byte(text[:a] + "<ModelStructure>" + text[z:])
			}
		}
		pack(t, filepath.Join(dir, "resources", name+".fmu"), all...)
	}
	args = []string{dir, "--step-size", "0.01"}
	for s := range strings.FieldsSeq(set) {
		args = append(args, "--set", s)
	}
	return args
}

// A loop without a solution is named with its residual, and one without a
// unique solution as such; the exit code is that of a failed run.
func testInitialisationWithoutSolution(t *testing.T) {
	t.Parallel()
	members := []member{{"f", "polynomial", "u", "y"}, {"k", "linear", "u[1]", "y[1]"}}
	for _, c := range []struct {
		name, set string
		words     []string
	}{
		// y = 1 + y + y²; y = 2 + y + y²; y = 1 + y
		{"none", "f.a=1 f.b=1 f.c=1 k.D[1,1]=1", []string{"algebraic loop", "f.u", "k.y[1]", "is not solved", "residual"}},
		{"none far away", "f.a=2 f.b=1 f.c=1 k.D[1,1]=1 f.u=1e3 k.u[1]=1e3", []string{"algebraic loop", "f.u", "is not solved", "residual"}},
		{"singular", "f.a=1 f.b=1 k.D[1,1]=1", []string{"algebraic loop", "f.u", "no unique solution"}},
	} {
		for _, declared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/declared=%t", c.name, declared), func(t *testing.T) {
				o := run(t, looped(t, declared, members, "", "f.y → k.u[1]\nk.y[1] → f.u", c.set)...)
				if o.code != 1 || o.manifest.Status != "failed" {
					t.Errorf("exit code %d, status %q", o.code, o.manifest.Status)
				}
				oneMessage(t, o.output, o.code, c.words)
			})
		}
	}
}
