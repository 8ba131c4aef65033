package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// echoing packs the probe with Integers in place of its enumerations.
func echoing(t testing.TB, dir string) {
	t.Helper()
	text := strings.NewReplacer(`<Enumeration declaredType="Mode" start="2"/>`, `<Integer start="2"/>`,
		`<Enumeration declaredType="Mode"/>`, `<Integer/>`).Replace(probe.Description("echo", probe.Everything, ""))
	if _, err := probe.Pack(dir, "echo", text); err != nil {
		t.Fatal(err)
	}
}

// An Integer output feeds a Real input, with and without a transformation, whatever the algorithm and wherever the FMU runs.
// The recorded input is the number that the FMU has. Overrides of either end reach it, and a resumed run goes on from it.
func TestIntegerFeedsReal(t *testing.T) {
	dir := t.TempDir()
	echoing(t, dir)
	component := func(name string) string { return `<ssd:Component name="` + name + `" source="echo.fmu"/>` }
	text := document("1", component("a")+component("b")+component("c"), "a.echo_mode → b.u\n a.echo_mode → c.u\n b.x → c.ud")
	text = strings.Replace(text, `endElement="c" endConnector="u"/>`,
		`endElement="c" endConnector="u"><ssc:LinearTransformation factor="0.5" offset="-1"/></ssd:Connection>`, 1)
	input := filepath.Join(dir, "input.csv")
	write(t, input, "time,a.mode\n0,1\n0.2,3\n0.5,2\n0.8,3\n")
	path := filepath.Join(dir, "SystemStructure.ssd")
	write(t, path, text)
	equal := func(what string, o *outcome, from, to float64, value func(n float64) (b, c float64)) {
		t.Helper()
		times, n, b, c, y := o.column(t, "time"), o.column(t, "a.echo_mode"), o.column(t, "b.u"), o.column(t, "c.u"), o.column(t, "b.y")
		seen := 0
		for k, at := range times {
			if at < from || at > to {
				continue
			}
			seen++
			if wantB, wantC := value(n[k]); b[k] != wantB || c[k] != wantC || y[k] != 2*b[max(k-1, 0)] && y[k] != 2*b[k] {
				t.Errorf("%s: at %g s a.echo_mode is %g, b.u %g, c.u %g and b.y %g; want inputs of %g and %g", what, at, n[k], b[k], c[k], y[k], wantB, wantC)
			}
		}
		if seen == 0 || n[len(n)-1] != 3 {
			t.Errorf("%s: %d points, the last number is %g", what, seen, n[len(n)-1])
		}
	}
	plain := func(n float64) (b, c float64) { return n, 0.5*n - 1 }
	for _, args := range []string{"", "--algorithm gauss-seidel", "--algorithm implicit", "--algorithm explicit --param order=2", "--isolate always"} {
		equal(args, complete(t, append([]string{path, "--step-size", "0.1", "--input", input}, strings.Fields(args)...)...), 0, 1, plain)
	}
	for what, want := range map[string]func(n float64) (b, c float64){
		"a.echo_mode: 40": func(float64) (b, c float64) { return 40, 19 },
		"b.u: 7.5":        func(n float64) (b, c float64) { return 7.5, 0.5*n - 1 },
	} {
		scenario := filepath.Join(dir, "scenario.yaml")
		write(t, scenario, fmt.Sprintf("events:\n- at: 0.35\n  set: {%s}\n", what))
		equal(what, complete(t, path, "--step-size", "0.1", "--input", input, "--scenario", scenario), 0.45, 1, want)
	}
}

// Outputs of the system are recorded by their own names, with the conversions on the way to them.
func TestRecordSystemOutputs(t *testing.T) {
	dir := t.TempDir()
	echoing(t, dir)
	input := filepath.Join(dir, "input.csv")
	write(t, input, "time,a.mode,a.b,a.u\n0,1,0,5\n0.5,3,1,5\n")
	out := func(name, kind string) string {
		return `<ssd:Connector name="` + name + `" kind="output">` + kind + `</ssd:Connector>`
	}
	text := document("1", `<ssd:Component name="a" source="echo.fmu"/>`, "a.x → far\n a.y → y\n a.echo_mode → scaled\n a.echo_mode → mode\n a.not_b → flipped\n a.y → double")
	text = strings.Replace(text, "<ssd:Elements>", "<ssd:Connectors>"+out("far", `<ssc:Real unit="m"/>`)+out("y", "<ssc:Real/>")+out("double", "<ssc:Real/>")+
		out("scaled", "<ssc:Real/>")+out("mode", "<ssc:Integer/>")+out("flipped", "<ssc:Boolean/>")+"</ssd:Connectors><ssd:Elements>", 1)
	for name, change := range map[string]string{"double": `<ssc:LinearTransformation factor="2"/>`, "scaled": `<ssc:LinearTransformation factor="0.5" offset="1"/>`,
		"mode":    `<ssc:IntegerMappingTransformation><ssc:MapEntry source="3" target="30"/></ssc:IntegerMappingTransformation>`,
		"flipped": `<ssc:BooleanMappingTransformation><ssc:MapEntry source="true" target="false"/><ssc:MapEntry source="false" target="true"/></ssc:BooleanMappingTransformation>`} {
		text = strings.Replace(text, `endConnector="`+name+`"/>`, `endConnector="`+name+`">`+change+`</ssd:Connection>`, 1)
	}
	text = strings.Replace(text, `<ssc:Unit name="K">`, `<ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit><ssc:Unit name="K">`, 1)
	path := filepath.Join(dir, "SystemStructure.ssd")
	write(t, path, text)
	args := []string{path, "--step-size", "0.25", "--input", input}
	for _, more := range []string{"--record *", "--record far --record y --record double --record scaled --record mode --record flipped"} {
		o := complete(t, append(args, strings.Fields(more)...)...)
		all := complete(t, append(args, "--record", "a.*")...)
		x, y, mode, not := all.column(t, "a.x"), all.column(t, "a.y"), all.column(t, "a.echo_mode"), all.column(t, "a.not_b")
		far, same, double, scaled, mapped, flipped := o.column(t, "far"), o.column(t, "y"), o.column(t, "double"), o.column(t, "scaled"), o.column(t, "mode"), o.column(t, "flipped")
		for k := range x {
			want := mode[k]
			if want == 3 {
				want = 30
			}
			if far[k] != 1000*x[k] || same[k] != y[k] || double[k] != 2*y[k] || scaled[k] != 0.5*mode[k]+1 || mapped[k] != want || flipped[k] != 1-not[k] {
				t.Errorf("%s, row %d: far %g, y %g, double %g, scaled %g, mode %g, flipped %g; of x %g, y %g, mode %g, not_b %g", more, k,
					far[k], same[k], double[k], scaled[k], mapped[k], flipped[k], x[k], y[k], mode[k], not[k])
			}
		}
	}
	if o := complete(t, args...); strings.Contains(o.table(t), "double") {
		t.Error("outputs of the system are recorded without being asked for")
	}
}
