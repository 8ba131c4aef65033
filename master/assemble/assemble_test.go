package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/cc"
	"github.com/macrostep/macrostep/test/probe"
)

// work is for what outlives a test, since libraries stay loaded.
var work string

func TestMain(m *testing.M) {
	cc.Cache()
	worker.Main()
	var err error
	if work, err = os.MkdirTemp("", "macrostep-assemble-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(work)
	os.Exit(code)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// built are the probes, each built at its first use.
var built sync.Map

// probeFMU returns the file of a probe.
func probeFMU(tb testing.TB, capabilities, elements string) string {
	tb.Helper()
	type result struct {
		path string
		err  error
	}
	build, _ := built.LoadOrStore(capabilities+elements, sync.OnceValue(func() result {
		dir, err := os.MkdirTemp(work, "")
		if err != nil {
			return result{"", err}
		}
		path, err := probe.Build(dir, "probe", capabilities, elements)
		return result{path, err}
	}))
	r := build.(func() result)()
	must(tb, r.err)
	return r.path
}

// system is a document to be written beside its FMUs.
type system struct {
	fmus        map[string]string // file name and where it is
	connectors  string
	elements    string
	connections string
	annotations string // of the outermost system
	experiment  string // attributes of the DefaultExperiment
	settings    string // its annotations
	units       string
}

func component(name, source, inside string) string {
	return fmt.Sprintf(`<ssd:Component name=%q source=%q>%s</ssd:Component>`, name, source, inside)
}

func connection(from, to, inside string) string {
	a, x, _ := strings.Cut(from, ".")
	b, y, _ := strings.Cut(to, ".")
	return fmt.Sprintf(`<ssd:Connection startElement=%q startConnector=%q endElement=%q endConnector=%q>%s</ssd:Connection>`, a, x, b, y, inside)
}

func annotation(kind, content string) string {
	return fmt.Sprintf("<ssc:Annotation type=%q>%s</ssc:Annotation>", kind, content)
}

// own is our annotation.
func own(attributes, inside string) string {
	return annotation("com.github.macrostep", fmt.Sprintf(`<ms:Settings version="1" %s>%s</ms:Settings>`, attributes, inside))
}

func (s system) write(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, from := range s.fmus {
		data, err := os.ReadFile(from)
		must(tb, err)
		must(tb, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	wrap := func(element, content string) string {
		if content == "" {
			return ""
		}
		return "<ssd:" + element + ">" + content + "</ssd:" + element + ">"
	}
	document := `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="test"
  xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"
  xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
  xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
  xmlns:ms="https://github.com/macrostep/macrostep/ssp/1"
  xmlns:osp="http://opensimulationplatform.com/SSP/OSPAnnotations"
  xmlns:oms="https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd">
<ssd:System name="top">` + wrap("Connectors", s.connectors) + wrap("Elements", s.elements) + wrap("Connections", s.connections) + wrap("Annotations", s.annotations) + `</ssd:System>
` + wrap("Units", s.units) + `<ssd:DefaultExperiment ` + s.experiment + `>` + wrap("Annotations", s.settings) + `</ssd:DefaultExperiment>
</ssd:SystemStructureDescription>`
	path := filepath.Join(dir, "SystemStructure.ssd")
	must(tb, os.WriteFile(path, []byte(document), 0o600))
	return path
}

// open opens a system; it is closed at the end of the test.
func open(tb testing.TB, path string, o assemble.Options) (*assemble.Assembly, error) {
	tb.Helper()
	if o.Settle == nil { // the settings of documents
		r := simulate.Reading(tb.Context())
		o.Settle, o.Dialects = r.Settle, r.Dialects
	}
	a, err := assemble.Open(path, o)
	if a == nil {
		tb.Fatal("no assembly: ", err)
	}
	tb.Cleanup(func() { must(tb, a.Close()) })
	return a, err
}

func sound(tb testing.TB, path string, o assemble.Options) *assemble.Assembly {
	tb.Helper()
	a, err := open(tb, path, o)
	must(tb, err)
	return a
}

// run takes a system to its end and gives the last point by names.
func run(tb testing.TB, a *assemble.Assembly, stop, step float64) (*master.Run, map[string]any) {
	tb.Helper()
	c, err := algorithms.New("explicit", nil)
	must(tb, err)
	r, err := master.NewRun(a.System, c.Algorithm, master.Options{Stop: stop, Step: step})
	must(tb, err)
	_, err = r.Run(context.Background())
	must(tb, err)
	values := map[string]any{}
	p := r.Point()
	for i, info := range a.System.Infos {
		collect := func(ports []master.Port, v master.Values) {
			var at [master.String + 1]int
			for _, port := range ports {
				k := at[port.Kind]
				at[port.Kind]++
				values[info.Name+"."+port.Name] = [...]func() any{
					func() any { return v.Real[k] }, func() any { return v.Integer[k] },
					func() any { return v.Boolean[k] }, func() any { return v.String[k] },
				}[port.Kind]()
			}
		}
		collect(info.In, master.Values{Real: p.U[a.System.InAt[i]:]})
		collect(info.Out, master.Values{Real: p.Y[a.System.OutAt[i]:]})
		collect(info.DiscreteIn, p.DiscreteIn[i])
		collect(info.DiscreteOut, p.DiscreteOut[i])
		collect(info.Watch, p.Watch[i])
	}
	return r, values
}

// expect compares some values.
func expect(tb testing.TB, got map[string]any, want map[string]any) {
	tb.Helper()
	for name, w := range want {
		g, ok := got[name]
		if x, isReal := w.(float64); isReal && ok {
			if y, _ := g.(float64); math.Abs(x-y) <= 1e-12*max(1, math.Abs(x)) {
				continue
			}
		}
		if !ok || g != w {
			tb.Errorf("%s is %v (%v), want %v", name, g, ok, w)
		}
	}
}

// Where start, stop, step and tolerance come from (fmi2 23, ssp 10, 47).
func TestPrecedence(t *testing.T) {
	slow := probeFMU(t, "", `<DefaultExperiment startTime="1" stopTime="9" stepSize="0.1" tolerance="0.5"/>`)
	quick := probeFMU(t, "", `<DefaultExperiment startTime="2" stopTime="8" stepSize="0.05"/>`)
	past := probeFMU(t, "", `<DefaultExperiment stopTime="0"/>`)
	silent := probeFMU(t, "", "")
	osp := annotation("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="0.3"/></osp:Algorithm>`)
	oms := annotation("org.openmodelica", `<oms:Annotations><oms:SimulationInformation><oms:FixedStepMaster description="oms-ma" stepSize="0.4" relativeTolerance="0.01"/></oms:SimulationInformation></oms:Annotations>`)
	mcx := annotation("com.avl.model.connect.ssp.task", `<mc:Task xmlns:mc="urn:mc" deltaTime="0.6"/>`)
	mine := own(`stepSize="0.2" tolerance="0.03"`, "")
	f := func(x float64) *float64 { return &x }
	type four [4]*float64 // start, stop, step, tolerance
	for _, c := range []struct {
		name       string
		fmus       []string
		experiment string
		system     string
		settings   string
		user       four
		want       string // value source, ; between
		warnings   int
	}{
		{"nothing", []string{silent}, "", "", "", four{}, "0 default; 1 default: one second; 0.001 a thousandth of the time span; none", 1},
		{"start only", []string{silent}, `startTime="5"`, "", "", four{}, "5 DefaultExperiment of the system; 6 default: one second; 0.001 a thousandth of the time span; none", 1},
		{"start by hand", []string{silent}, "", "", "", four{f(7)}, "7 command line; 8 default: one second; 0.001 a thousandth of the time span; none", 1},
		{"no span", []string{silent}, `startTime="5" stopTime="2"`, "", "", four{}, "5 DefaultExperiment of the system; 2 DefaultExperiment of the system; 0.001 a thousandth of the time span; none", 0},
		{"span", []string{silent}, `stopTime="50"`, "", "", four{}, "0 default; 50 DefaultExperiment of the system; 0.05 a thousandth of the time span; none", 0},
		{"span by hand", []string{silent}, `stopTime="50"`, "", "", four{nil, f(20)}, "0 default; 20 command line; 0.02 a thousandth of the time span; none", 0},
		{"FMUs", []string{slow, quick}, "", "", "", four{}, "1 DefaultExperiment of c0; 8 DefaultExperiment of c1; 0.05 DefaultExperiment of c1; none", 0},
		{"FMU ends before the start", []string{past, slow}, "", "", "", four{}, "1 DefaultExperiment of c1; 9 DefaultExperiment of c1; 0.1 DefaultExperiment of c1; none", 0},
		{"system over FMUs", []string{slow, quick}, `startTime="0" stopTime="3"`, "", "", four{}, "0 DefaultExperiment of the system; 3 DefaultExperiment of the system; 0.05 DefaultExperiment of c1; none", 0},
		{"OpenMCx", []string{quick}, "", "", mcx, four{}, "2 DefaultExperiment of c0; 8 DefaultExperiment of c0; 0.6 com.avl.model.connect.ssp.task deltaTime; none", 0},
		{"OMSimulator", []string{quick}, "", oms, mcx, four{}, "2 DefaultExperiment of c0; 8 DefaultExperiment of c0; 0.4 org.openmodelica stepSize; 0.01 org.openmodelica relativeTolerance", 0},
		{"OSP", []string{quick}, "", oms, mcx + osp, four{}, "2 DefaultExperiment of c0; 8 DefaultExperiment of c0; 0.3 com.opensimulationplatform baseStepSize; 0.01 org.openmodelica relativeTolerance", 0},
		{"own", []string{quick}, "", oms, mcx + osp + mine, four{}, "2 DefaultExperiment of c0; 8 DefaultExperiment of c0; 0.2 annotation of macrostep; 0.03 annotation of macrostep", 0},
		{"finer than an FMU suggests", []string{quick}, "", "", "", four{nil, nil, f(0.01)}, "2 DefaultExperiment of c0; 8 DefaultExperiment of c0; 0.01 command line; none", 0},
		{"user", []string{quick}, `stopTime="3"`, oms, osp + mine, four{f(0), f(4), f(0.7), f(0.9)}, "0 command line; 4 command line; 0.7 command line; 0.9 command line", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := system{fmus: map[string]string{}, experiment: c.experiment, annotations: c.system, settings: c.settings}
			for i, path := range c.fmus {
				file := fmt.Sprintf("f%d.fmu", i)
				s.fmus[file] = path
				s.elements += component(fmt.Sprint("c", i), file, "")
			}
			a := sound(t, s.write(t), assemble.Options{})
			warnings, notes := a.Override(c.user[0], c.user[1], c.user[2], c.user[3])
			tolerance := "none"
			if a.Tolerance != nil {
				tolerance = fmt.Sprint(a.Tolerance.Value, " ", a.Tolerance.Source)
			}
			got := fmt.Sprint(a.Start.Value, " ", a.Start.Source, "; ", a.Stop.Value, " ", a.Stop.Source, "; ", a.Step.Value, " ", a.Step.Source, "; ", tolerance)
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if len(warnings) != c.warnings {
				t.Errorf("warnings %q, want %d", warnings, c.warnings)
			}
			if told := c.name == "finer than an FMU suggests" || a.Step.Source == assemble.GuessedStep; (len(notes) == 1) != told {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// A single FMU is a component called by its file name.
func TestSingle(t *testing.T) {
	data, err := os.ReadFile(probeFMU(t, "", `<DefaultExperiment startTime="1" stopTime="2" stepSize="0.25"/>`))
	must(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "my engine.2.FMU")
	must(t, os.WriteFile(path, data, 0o600))
	a := sound(t, path, assemble.Options{Set: []assemble.Assignment{{Name: "my engine.2.p", Value: "4"}}})
	a.Override(nil, nil, nil, nil)
	if a.Name != "my engine.2" || len(a.Components) != 1 || a.Components[0].Name != "my engine.2" || a.Components[0].Source != path || a.Stop.Value != 2 {
		t.Errorf("%+v", a)
	}
	must(t, a.Load(t.Context()))
	_, values := run(t, a, 1, 0.5)
	expect(t, values, map[string]any{"my engine.2.q": 7.0, "my engine.2.x": 0.5, "my engine.2.quoted": "<abc>"})

	nameless := filepath.Join(dir, ".fmu")
	must(t, os.WriteFile(nameless, data, 0o600))
	if _, err := open(t, nameless, assemble.Options{}); err == nil || !strings.Contains(err.Error(), "rename the file") {
		t.Errorf("%v", err)
	}
}

// What cannot be read is an error that names the file, and the assembly closes.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	good := probeFMU(t, "", "")
	broken := file("broken.fmu", "PK\x03\x04 no archive")
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "missing.ssp"), "missing.ssp"},
		{filepath.Join(dir, "missing.fmu"), "missing.fmu"},
		{file("garbage.fmu", "garbage"), "garbage.fmu"},
		{file("garbage.ssp", "garbage"), "garbage.ssp"},
		{file("garbage.ssd", "<a>"), "garbage.ssd"},
		{dir, "SystemStructure.ssd"},
		{system{fmus: map[string]string{"f.fmu": broken}, elements: component("c", "f.fmu", "")}.write(t), "f.fmu"},
		{system{elements: component("c", "none.fmu", "")}.write(t), "none.fmu"},
		{system{fmus: map[string]string{"f.fmu": good, "g.fmu": broken}, elements: component("c", "f.fmu", "") + component("d", "g.fmu", "")}.write(t), "g.fmu"},
		{system{fmus: map[string]string{"f.fmu": good}, elements: component("c", "f.fmu", "") + component("d", "f.fmu", ""),
			connections: connection("c.x", "d.nothing", "")}.write(t), "nothing"},
		{system{fmus: map[string]string{"f.fmu": good}, elements: component("c", "f.fmu", "") + component("d", "f.fmu", ""),
			connections: connection("c.x", "d.s", "")}.write(t), "type"},
	} {
		a, err := open(t, c.path, assemble.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
		must(t, a.Close())
	}
}

// Values of the user beat those of documents, and those beat the FMU's.
func TestSet(t *testing.T) {
	binding := func(name, value string) string {
		return `<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters>
<ssv:Parameter name="` + name + `">` + value + `</ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>`
	}
	s := system{
		fmus: map[string]string{"f.fmu": probeFMU(t, "", "")},
		elements: component("one", "f.fmu", binding("p", `<ssv:Real value="4"/>`)) + component("two", "f.fmu", binding("mode", `<ssv:Enumeration value="high"/>`)) +
			component("one.two", "f.fmu", ""),
	}
	path := s.write(t)
	set := func(list ...string) (out []assemble.Assignment) {
		for _, text := range list {
			name, value, _ := strings.Cut(text, "=")
			out = append(out, assemble.Assignment{Name: name, Value: value})
		}
		return out
	}
	for _, c := range []struct {
		set     []string
		want    map[string]any
		outside bool // of the bounds, which is warned of
	}{
		{nil, map[string]any{"one.q": 7.0, "two.q": 4.5, "one.echo_mode": int64(2), "two.echo_mode": int64(3)}, false},
		{[]string{"one.p=2.5e-1", "two.mode=low", "two.b=0", "two.s= a, b ", "one.u=-1"},
			map[string]any{"one.q": 3.25, "two.q": 4.5, "two.echo_mode": int64(1), "two.not_b": true, "two.quoted": "< a, b >", "one.y": -2.0, "two.y": 1.0}, false},
		{[]string{"one.p.alias=8", "one.a=1"}, map[string]any{"one.q": 9.0}, false}, // an alias of what the document sets
		{[]string{"two.mode=1", "two.b=false"}, map[string]any{"two.echo_mode": int64(1), "two.not_b": true}, false},
		{[]string{"one.two.p=0"}, map[string]any{"one.two.q": 3.0, "one.q": 7.0}, false},
		{[]string{"one.p=INF"}, map[string]any{"one.q": math.Inf(1)}, true},
		{[]string{"one.p=10"}, map[string]any{"one.q": 13.0}, true},
		{[]string{"one.at=-3"}, nil, true},
	} {
		a := sound(t, path, assemble.Options{Set: set(c.set...)})
		if got := slices.ContainsFunc(a.Findings.At(diag.Warning), func(f diag.Finding) bool { return f.ID == "CC14V" }); got != c.outside {
			t.Errorf("%v: warned of bounds: %v", c.set, got)
		}
		_, values := run(t, a, 1, 0.5)
		expect(t, values, c.want)
	}
	if got := sound(t, path, assemble.Options{}).Settings(); len(got) != 2 || got[0].Name != "one.p" || got[0].Value != "4" || !strings.Contains(got[0].Origin, "SystemStructure.ssd") || got[1].Value != "high" {
		t.Errorf("settings %+v", got)
	}
	for _, c := range []struct{ set, want string }{
		{"three.p=1", "names no component; write component.variable, with one of the components one, two, one.two"},
		{"p=1", "names no component"},
		{"one.pp=1", `component one has no variable "pp"`},
		{"one.MODE=1", `did you mean "mode"?`},
		{"one.coumt=1", `did you mean "count"?`},
		{"one.two.none=1", `component one.two has no variable "none"`},
		{"one.p=heavy", "is a Real; give a finite number"},
		{"one.p=2,5", "numbers have a decimal point instead of a comma: 2.5"},
		{"one.p=NaN", "finite number"},
		{"one.p=1e999", "finite number"},
		{"one.at=1.5", "is an Integer; give a whole number of 32 bits"},
		{"one.at=3000000000", "32 bits"},
		{"one.mode=loud", "give one of its items: low (1), middle (2), high (3)"},
		{"one.mode=4", "none of its items has this number"},
		{"one.b=yes", "give true or false"},
		{"one.w=1", "cannot be set: its causality is local"},
		{"one.x=1", "cannot be set"},
	} {
		if _, err := open(t, path, assemble.Options{Set: set(c.set)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
	// All faults at once.
	if _, err := open(t, path, assemble.Options{Set: set("one.p=a", "two.b=b")}); err == nil || !strings.Contains(err.Error(), "one.p") || !strings.Contains(err.Error(), "two.b") {
		t.Errorf("%v", err)
	}
}

// A parameter of any type that a document gives, also by a mapping, is kept, and no warning says otherwise.
func TestKept(t *testing.T) {
	life, err := probe.Sources(t.TempDir(), "life", probe.LifeCapabilities)
	must(t, err)
	for _, c := range []struct{ target, value, transformation, set string }{
		{target: "k", value: `Real value="4"`},
		{target: "k", value: `Real value="4"`, transformation: `<ssc:LinearTransformation factor="2"/>`},
		{target: "n", value: `Integer value="2"`},
		{target: "n", value: `Integer value="2"`, transformation: `<ssc:IntegerMappingTransformation><ssc:MapEntry source="2" target="3"/></ssc:IntegerMappingTransformation>`},
		{target: "on", value: `Boolean value="false"`},
		{target: "on", value: `Boolean value="true"`, transformation: `<ssc:BooleanMappingTransformation><ssc:MapEntry source="true" target="false"/></ssc:BooleanMappingTransformation>`},
		{target: "text", value: `String value="word"`},
		{target: "mode", value: `Enumeration value="low"`},
		{target: "mode", value: `Integer value="1"`},
		{target: "mode", value: `Enumeration value="high"`, transformation: `<ssc:EnumerationMappingTransformation><ssc:MapEntry source="high" target="low"/></ssc:EnumerationMappingTransformation>`},
		{target: "mode", value: `Enumeration value="high"`, set: "low"},
		{target: "mode", value: `Enumeration value="high"`, set: "1"},
	} {
		s := system{fmus: map[string]string{"f.fmu": life}, elements: component("c", "f.fmu",
			`<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="s"><ssv:Parameters><ssv:Parameter name="given"><ssv:`+c.value+`/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>
<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="given" target="`+c.target+`">`+c.transformation+`</ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding></ssd:ParameterBindings>`)}
		o := assemble.Options{Compile: true}
		if c.set != "" {
			o.Set = []assemble.Assignment{{Name: "c." + c.target, Value: c.set}}
		}
		a := sound(t, s.write(t), o)
		if len(a.Settings()) != 1 {
			t.Errorf("%+v: %v", c, a.Settings())
		}
		r, _ := run(t, a, 1, 0.5)
		if result, err := r.Close(); err != nil || slices.ContainsFunc(result.Warnings, func(w string) bool { return strings.Contains(w, "was set to") }) {
			t.Errorf("%+v: %v, %q", c, err, result.Warnings)
		}
	}
}

// A name splits at the component path that has the variable. Where several have it, they
// are told apart by quotes, and nothing chooses one in silence (ssp 11).
func TestLongestPath(t *testing.T) {
	other := probeFMU(t, "", "<!-- another -->")
	one, two := component("p", "f.fmu", ""), component("p.p", "g.fmu", "")
	for _, elements := range []string{one + two, two + one} {
		s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", ""), "g.fmu": other}, elements: elements}
		// Only p has a p.alias, only p.p has a p.
		a := sound(t, s.write(t), assemble.Options{Set: []assemble.Assignment{{Name: "p.p.alias", Value: "8"}, {Name: "p.p.p", Value: "3"}}})
		_, values := run(t, a, 1, 0.5)
		expect(t, values, map[string]any{"p.q": 11.0, "p.p.q": 6.0})
		// Quotes are allowed around every part.
		a = sound(t, s.write(t), assemble.Options{Set: []assemble.Assignment{{Name: "'p'.'p.alias'", Value: "8"}, {Name: "'p.p'.'p'", Value: "3"}}})
		_, values = run(t, a, 1, 0.5)
		expect(t, values, map[string]any{"p.q": 11.0, "p.p.q": 6.0})
	}
	both, err := fmus.Pack(t.TempDir(), "both", strings.Replace(probe.Description("both", "", ""), `name="u"`, `name="p.u"`, 1), "int nothing;\n")
	must(t, err)
	for _, elements := range []string{one + two, two + one} {
		s := system{fmus: map[string]string{"f.fmu": both, "g.fmu": other}, elements: elements}
		path := s.write(t)
		for _, o := range []assemble.Options{{Set: []assemble.Assignment{{Name: "p.p.u", Value: "8"}}}, {Driven: []string{"p.p.u"}}} {
			if a, err := open(t, path, o); err == nil || !strings.Contains(err.Error(), `"p.p.u" has 2 meanings: `) || !strings.Contains(err.Error(), "'p'.p.u") || !strings.Contains(err.Error(), "'p.p'.u") {
				t.Errorf("%+v: %v, %v", o, a, err)
			}
		}
		a := sound(t, path, assemble.Options{Set: []assemble.Assignment{{Name: "'p.p'.u", Value: "8"}}, Driven: []string{"'p.p'.u"}})
		if !diag.Has(&diag.ListError{Findings: a.Findings.Findings}, "SD20P") {
			t.Errorf("not told: %v", a.Findings.Findings)
		}
		for _, info := range a.System.Infos {
			if n := len(info.In); n != map[string]int{"'p'": 0, "'p.p'": 1}[info.Name] || n == 1 && info.StartIn[0] != 8 {
				t.Errorf("%s: inputs %v, start %v", info.Name, info.In, info.StartIn)
			}
		}
	}
}

// Elements of one hierarchical name: values reach the one that is meant, a name that means
// several is refused with the names that do not, and a parameter set, which cannot tell
// them apart, is left alone (ssp 11, 35).
func TestSameNames(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: component("a.b", "f.fmu", "") + `<ssd:System name="a">
<ssd:Connectors><ssd:Connector name="b.p" kind="parameter"><ssc:Real/></ssd:Connector></ssd:Connectors>
<ssd:Elements>` + component("b", "f.fmu", "") + component("c", "f.fmu", `<ssd:Connectors><ssd:Connector name="p" kind="parameter"/></ssd:Connectors>`) + `</ssd:Elements>
<ssd:Connections><ssd:Connection startConnector="b.p" endElement="c" endConnector="p"/></ssd:Connections></ssd:System>`}
	path := s.write(t)
	a := sound(t, path, assemble.Options{Set: []assemble.Assignment{{Name: "'a.b'.p", Value: "1"}, {Name: "'a'.'b'.p", Value: "2"}, {Name: "'a'.'b.p'", Value: "5"}}})
	_, values := run(t, a, 1, 0.5)
	expect(t, values, map[string]any{"'a.b'.q": 4.0, "'a'.'b'.q": 5.0, "a.c.q": 8.0}) // q = p + 3
	for _, f := range a.Findings.Findings {
		if f.Level > diag.Info && strings.HasPrefix(f.ID, "SD") && f.ID != "SD20P" {
			t.Errorf("%s", f)
		}
	}
	if e, err := a.Explain("'a'.'b'.p"); err != nil || e.Name != "'a'.'b'.p" || e.Chain[len(e.Chain)-1].Value != "2" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, name := range []string{"'a.b'.p", "'a'.'b'.p", "'a'.'b.p'"} {
		_, err := open(t, path, assemble.Options{Set: []assemble.Assignment{{Name: "a.b.p", Value: "1"}}})
		if err == nil || !strings.Contains(err.Error(), `"a.b.p" has 3 meanings`) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := a.Bind([]assemble.Assignment{{Name: name, Value: "5"}}); err == nil || !strings.Contains(err.Error(), `calls it "a.b.p"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What only one of them has needs no quotes, and is written as documents have it.
	changes, files, err := a.Bind([]assemble.Assignment{{Name: "'a'.'c'.p", Value: "5"}})
	must(t, err)
	if len(changes) != 1 || changes[0].Name != "a.c.p" || !strings.Contains(string(files[0].Data), `name="a.c.p"`) {
		t.Errorf("%+v\n%s", changes, files[0].Data)
	}
}

// Items of enumerations go by name and by number, at variables and at connectors, which
// may leave their type to the FMU (ssp 16, 39); errors name them. Mode is low 1, middle 2,
// high 3; Own is off 10, on 20, and on is mapped to high.
func TestItems(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: component("one", "f.fmu", "") + component("two", "f.fmu", `<ssd:Connectors><ssd:Connector name="mode" kind="input"/></ssd:Connectors>`) +
		component("three", "f.fmu", `<ssd:Connectors><ssd:Connector name="mode" kind="input"/></ssd:Connectors>`)}
	path := s.write(t)
	data, err := os.ReadFile(path)
	must(t, err)
	document := strings.NewReplacer(`<ssd:System name="top">`, `<ssd:System name="top"><ssd:Connectors><ssd:Connector name="plain" kind="input"/><ssd:Connector name="own" kind="input"><ssc:Enumeration name="Own"/></ssd:Connector></ssd:Connectors>`,
		`</ssd:Elements>`, `</ssd:Elements><ssd:Connections><ssd:Connection startElement="two" startConnector="mode" endConnector="plain"/>
<ssd:Connection startConnector="own" endElement="three" endConnector="mode"><ssc:EnumerationMappingTransformation><ssc:MapEntry source="on" target="high"/><ssc:MapEntry source="off" target="low"/></ssc:EnumerationMappingTransformation></ssd:Connection></ssd:Connections>`,
		`<ssd:DefaultExperiment`, `<ssd:Enumerations><ssc:Enumeration name="Own"><ssc:Item name="off" value="10"/><ssc:Item name="on" value="20"/></ssc:Enumeration></ssd:Enumerations><ssd:DefaultExperiment`).Replace(string(data))
	must(t, os.WriteFile(path, []byte(document), 0o600))
	for _, c := range []struct{ one, two, three string }{{"high", "low", "on"}, {"3", "1", "20"}} {
		a := sound(t, path, assemble.Options{Set: []assemble.Assignment{{Name: "one.mode", Value: c.one}, {Name: "plain", Value: c.two}, {Name: "own", Value: c.three}}})
		_, values := run(t, a, 1, 0.5)
		expect(t, values, map[string]any{"one.echo_mode": int64(3), "two.echo_mode": int64(1), "three.echo_mode": int64(3)})
	}
	for set, want := range map[string]string{
		"one.mode=loud": "low (1), middle (2), high (3)", "one.mode=4": "low (1), middle (2), high (3)", "plain=loud": "low (1), middle (2), high (3)", "own=low": "off (10), on (20)", "own=1": "off (10), on (20)",
	} {
		name, value, _ := strings.Cut(set, "=")
		if _, err := open(t, path, assemble.Options{Set: []assemble.Assignment{{Name: name, Value: value}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
	a := sound(t, path, assemble.Options{Driven: []string{"one.mode", "plain", "own", "one.u"}})
	mode := map[string]int64{"low": 1, "middle": 2, "high": 3}
	if got, want := a.Items(), map[string]map[string]int64{"one.mode": mode, "plain": mode, "own": {"off": 10, "on": 20}}; !reflect.DeepEqual(got, want) {
		t.Errorf("items %v, want %v", got, want)
	}
	for name, want := range map[string]map[string]int64{"one.mode": mode, "two.echo_mode": mode, "one.u": nil, "four.mode": nil} {
		if got := a.ItemsOf(name); !reflect.DeepEqual(got, want) {
			t.Errorf("items of %s %v, want %v", name, got, want)
		}
	}
	if in := a.Inputs()["own"]; len(in) != 1 || in[0].Map[20] != 3 || in[0].Map[10] != 1 {
		t.Errorf("inputs %+v", in)
	}
}

// What is exchanged and recorded.
func TestRecorded(t *testing.T) {
	names := func(ports ...[]master.Port) string {
		var out []string
		for _, p := range slices.Concat(ports...) {
			out = append(out, p.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	s := system{
		fmus: map[string]string{"f.fmu": probeFMU(t, "", ""), "chassis.fmu": exampleFMU(t, "mass_force")}, elements: component("one", "f.fmu", "") + component("two", "f.fmu", ""),
		connections: connection("one.y", "two.u", "") + connection("one.quoted", "two.s", ""),
	}
	path := s.write(t)
	glob := func(list ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	const outs = "echo_mode echo_ud not_b q quoted x y"
	for _, c := range []struct {
		name              string
		o                 assemble.Options
		in, out, watch    string // of one
		in2, out2, watch2 string // of two
	}{
		{"default", assemble.Options{}, "", outs, "", "s u", outs, ""},
		{"none", assemble.Options{Record: glob()}, "", "quoted y", "", "s u", "", ""},
		{"some", assemble.Options{Record: glob("one.x", "one.w", "one.time", "two.u", "two.ud", "two.done", "two.p")}, "", "quoted x y", "w", "s u", "", "done p ud"},
		{"driven", assemble.Options{Driven: []string{"one.u", "two.mode"}, Record: glob("one.u")}, "u", "quoted y", "", "mode s u", "", ""},
		{"driven, default", assemble.Options{Driven: []string{"one.u"}}, "u", outs, "", "s u", outs, ""},
	} {
		a := sound(t, path, c.o)
		one, two := a.System.Infos[0], a.System.Infos[1]
		got := fmt.Sprintf("%s|%s|%s|%s|%s|%s", names(one.In, one.DiscreteIn), names(one.Out, one.DiscreteOut), names(one.Watch),
			names(two.In, two.DiscreteIn), names(two.Out, two.DiscreteOut), names(two.Watch))
		want := fmt.Sprintf("%s|%s|%s|%s|%s|%s", c.in, c.out, c.watch, c.in2, c.out2, c.watch2)
		if got != want {
			t.Errorf("%s: %s\nwant %s", c.name, got, want)
		}
	}
	for _, c := range []struct{ driven, want string }{
		{"two.u", "two.u is connected to an output"},
		{"one.x", "one.x is not an input: its causality is output"},
		{"one.none", `no variable "none"`},
		{"u", "names no component"},
	} {
		if _, err := open(t, path, assemble.Options{Driven: []string{c.driven}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.driven, err, c.want)
		}
	}
}

// A component with neither outputs nor connections shows what changes in it.
func TestRecordedWithoutOutputs(t *testing.T) {
	description := strings.NewReplacer(` causality="output"`, "", "<Outputs>", "<Derivatives>", "</Outputs>", "</Derivatives>").Replace(probe.Description("quiet", "", ""))
	// Without outputs the structure is empty.
	description = description[:strings.Index(description, "<ModelStructure>")] + "<ModelStructure/>\n</fmiModelDescription>\n"
	path, err := fmus.Pack(t.TempDir(), "quiet", description, "int nothing;\n")
	must(t, err)
	for _, driven := range [][]string{nil, {"quiet.u"}} {
		a := sound(t, path, assemble.Options{Driven: driven})
		var got []string
		for _, p := range a.System.Infos[0].Watch {
			got = append(got, p.Name)
		}
		want := []string{"u", "ud", "x", "y", "w", "echo_ud", "a", "q", "mode", "echo_mode", "count", "b", "not_b", "odd", "s", "quoted", "done"}
		if driven != nil {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("driven %v: watched %v, want %v", driven, got, want)
		}
	}
}

func exampleFMU(tb testing.TB, name string) string {
	tb.Helper()
	build, _ := built.LoadOrStore("example "+name, sync.OnceValues(func() (string, error) { return fmus.Build(work, name) }))
	path, err := build.(func() (string, error))()
	must(tb, err)
	return path
}

// One file is opened once, for all its components; each has its own values.
func TestShared(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: component("one", "f.fmu", "") + component("two", "f.fmu", ""),
		connections: connection("one.x", "two.u", "")}
	a := sound(t, s.write(t), assemble.Options{Set: []assemble.Assignment{{Name: "two.p", Value: "3"}, {Name: "one.u", Value: "2"}}})
	if a.Components[0].FMU != a.Components[1].FMU {
		t.Error("the file is opened twice")
	}
	_, values := run(t, a, 1, 0.5)
	// x of one in km: 0, 1 at 0.5 s; u of two in m.
	expect(t, values, map[string]any{"one.q": 4.5, "two.q": 6.0, "one.x": 2.0, "two.u": 2000.0, "two.x": 500.0})
	if got := a.Connections(); len(got) != 1 || got[0].From != "one.x" || got[0].FromUnit != "km" || got[0].To != "two.u" || got[0].ToUnit != "m" || got[0].Gain != 1000 || got[0].Offset != 0 {
		t.Errorf("connections %+v", got)
	}
	// The step of a coupling must be chosen.
	if warnings, _ := a.Override(nil, nil, nil, nil); !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, "no step size is given") }) {
		t.Errorf("warnings %q", warnings)
	}
}

// An FMU that may live once is used once, by whatever name its file has.
func TestOnce(t *testing.T) {
	file := probeFMU(t, `canBeInstantiatedOnlyOncePerProcess="true"`, "")
	for _, c := range []struct {
		name     string
		files    []string
		elements string
		want     string
	}{
		{"once", []string{"f.fmu"}, component("one", "f.fmu", ""), ""},
		{"one file twice", []string{"f.fmu"}, component("one", "f.fmu", "") + component("two", "f.fmu", ""), "the components one, two use it"},
		{"two copies", []string{"f.fmu", "g.fmu"}, component("one", "f.fmu", "") + component("two", "g.fmu", ""), "the components one, two use it"},
	} {
		s := system{fmus: map[string]string{}, elements: c.elements}
		for _, f := range c.files {
			s.fmus[f] = file
		}
		_, err := open(t, s.write(t), assemble.Options{})
		if (err == nil) != (c.want == "") || err != nil && (!diag.Has(err, "CC36") || strings.Count(err.Error(), c.want) != 1) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Three places make a component stateless.
func TestStateless(t *testing.T) {
	plain, marked := exampleFMU(t, "mass_force"), exampleFMU(t, "coupling")
	at := `<ssd:Annotations>` + annotation("com.github.macrostep", `<ms:Component stateless="true"/>`) + `</ssd:Annotations>`
	for _, c := range []struct {
		name     string
		fmu      string
		inside   string
		settings string
		flags    []string
		want     bool
	}{
		{"no", plain, "", "", nil, false},
		{"FMU", marked, "", "", nil, true},
		{"component", plain, at, "", nil, true},
		{"settings", plain, "", own("", `<ms:Stateless component="c"/>`), nil, true},
		{"flag", plain, "", "", []string{"c"}, true},
	} {
		s := system{fmus: map[string]string{"f.fmu": c.fmu}, elements: component("c", "f.fmu", c.inside), settings: c.settings}
		a := sound(t, s.write(t), assemble.Options{Stateless: c.flags})
		if got := a.System.Infos[0].Stateless; got != c.want {
			t.Errorf("%s: stateless %v", c.name, got)
		}
	}
	s := system{fmus: map[string]string{"f.fmu": plain}, elements: component("c", "f.fmu", "")}
	if _, err := open(t, s.write(t), assemble.Options{Stateless: []string{"d"}}); err == nil || !strings.Contains(err.Error(), `no component is called "d"`) {
		t.Errorf("%v", err)
	}
	_, err := open(t, s.write(t), assemble.Options{On: []assemble.On{{Pattern: "d", Host: "127.0.0.1:9"}}})
	if want := `no component is called "d", which should run on host 127.0.0.1:9; the system has c`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What has no effect is named; what is taken over arrives.
func TestAnnotation(t *testing.T) {
	both := probeFMU(t, `/><ModelExchange modelIdentifier="probe"`, "")
	for _, name := range []string{"ModelExchange", "ScheduledExecution"} {
		s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: `<ssd:Component name="d" source="f.fmu" implementation="` + name + `"/>`}
		a, err := open(t, s.write(t), assemble.Options{})
		if !diag.Has(err, "SD19M") || !strings.Contains(err.Error(), name) || a.Findings.At(diag.Error)[0].Line == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := system{fmus: map[string]string{"f.fmu": both},
		elements: component("c", "f.fmu", `<ssd:Annotations>`+annotation("com.opensimulationplatform", `<osp:StepSizeHint value="0.1"/>`)+`</ssd:Annotations>`) +
			`<ssd:Component name="d" source="f.fmu" implementation="ModelExchange"/>`,
		settings: own(`algorithm="gauss-seidel"`, `<ms:Param key="order" value="2"/><ms:Bond name="axle"><ms:Pair effort="c.y" flow="d.y"/></ms:Bond><ms:Rate component="c" ratio="10"/><ms:Rate component="d" ratio="1/5"/>`)}
	a := sound(t, s.write(t), assemble.Options{})
	if len(a.Asked) != 5 || len(a.Hinted) > 0 {
		t.Errorf("settings %v, rates %+v", a.Asked, a.Hinted)
	}
	var told []string
	for _, f := range a.Findings.Findings {
		if f.ID == "SD21T" || f.ID == "SD19I" {
			told = append(told, f.ID+" "+f.Message)
			if f.File == "" || f.Line == 0 || f.Remedy == "" {
				t.Errorf("no place or remedy: %+v", f)
			}
		}
	}
	want := []string{
		`SD19I implementation is ModelExchange`, `SD21T com.opensimulationplatform StepSizeHint value (0.1 s) is ignored: the rate of component "c"`,
	}
	slices.Sort(told)
	slices.Sort(want)
	if !slices.EqualFunc(told, want, strings.HasPrefix) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// Every kind of signal goes over connections with units, transformations and
// mappings, into FMUs that refuse what is wrong.
func TestKinds(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", "")}, elements: component("a", "f.fmu", "") + component("b", "f.fmu", ""),
		connections: connection("a.x", "b.u", "") +
			connection("a.y", "b.ud", `<ssc:LinearTransformation factor="3" offset="1"/>`) +
			connection("a.echo_mode", "b.mode", `<ssc:EnumerationMappingTransformation><ssc:MapEntry source="high" target="low"/></ssc:EnumerationMappingTransformation>`) +
			connection("a.not_b", "b.b", `<ssc:BooleanMappingTransformation><ssc:MapEntry source="false" target="true"/><ssc:MapEntry source="true" target="false"/></ssc:BooleanMappingTransformation>`) +
			connection("a.quoted", "b.s", ""),
	}
	a := sound(t, s.write(t), assemble.Options{
		Set:    []assemble.Assignment{{Name: "a.mode", Value: "high"}, {Name: "a.u", Value: "2"}},
		Driven: []string{"a.mode", "a.b"}, // no signals: they keep their start values
	})
	_, values := run(t, a, 1, 0.5)
	expect(t, values, map[string]any{
		"a.x": 2.0, "b.u": 2000.0, "b.ud": 13.0, "b.echo_ud": 13.0, "a.mode": int64(3), "b.mode": int64(1), "b.echo_mode": int64(1),
		"a.b": true, "a.not_b": false, "b.b": true, "b.not_b": false, "b.s": "<abc>", "b.quoted": "<<abc>>",
	})
}

// A calculated parameter feeds an input, through units and from the
// initialisation on, also one that is followed by an extrapolated output; an
// enumeration that is connected with an Integer is told (fmi2 46).
func TestSources(t *testing.T) {
	d := probe.Description("calculated", probe.Everything, "")
	for _, change := range [][2]string{
		{`name="q" valueReference="8" causality="output"`, `name="q" valueReference="8" causality="calculatedParameter" variability="fixed"`},
		{`      <Unknown index="9" dependencies=""/>` + "\n", ``},
		{`<Enumeration declaredType="Mode" start="2"/>`, `<Integer start="2"/>`},
	} {
		if strings.Count(d, change[0]) != 1 {
			t.Fatalf("%q is not in the description once", change[0])
		}
		d = strings.Replace(d, change[0], change[1], 1)
	}
	path, err := probe.Pack(t.TempDir(), "calculated", d)
	must(t, err)
	s := system{fmus: map[string]string{"f.fmu": path}, elements: component("a", "f.fmu", "") + component("b", "f.fmu", ""),
		connections: connection("a.q", "b.u", `<ssc:LinearTransformation factor="2" offset="1"/>`) + connection("b.x", "a.u", "") +
			connection("a.echo_mode", "b.mode", ""),
	}
	a := sound(t, s.write(t), assemble.Options{Set: []assemble.Assignment{{Name: "a.p", Value: "4"}, {Name: "a.mode", Value: "3"}}})
	var told []string
	for _, f := range a.Findings.At(diag.Warning) {
		if f.ID == "SD10E" {
			told = append(told, f.Message)
		}
	}
	if want := `"a.echo_mode" is of type Enumeration and "b.mode" of type Integer; the number passes unchanged`; len(told) != 1 || told[0] != want {
		t.Errorf("told %q, want %q", told, want)
	}
	c, err := algorithms.New("explicit", map[string]string{"order": "2"})
	must(t, err)
	r, err := master.NewRun(a.System, c.Algorithm, master.Options{Stop: 1, Step: 0.25})
	must(t, err)
	must(t, r.Start(t.Context()))
	for more := true; more; {
		if u, err := r.Real("b.u"); err != nil || u != 15 { // 2·(4 + 3) + 1
			t.Fatalf("b.u is %v, %v", u, err)
		}
		more, err = r.Step(t.Context())
		must(t, err)
	}
	_, err = r.Close()
	must(t, err)
}

// Load finds what cannot be loaded; Close removes what was unpacked, and may be
// called again.
func TestLoadAndClose(t *testing.T) {
	library, err := fmus.Pack(t.TempDir(), "hollow", probe.Description("hollow", "", ""), "int nothing;\n")
	must(t, err)
	s := system{fmus: map[string]string{"f.fmu": library}, elements: component("c", "f.fmu", "")}
	a := sound(t, s.write(t), assemble.Options{})
	if err := a.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "fmi2") {
		t.Errorf("%v", err)
	}
	dir := a.Components[0].FMU.Dir
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	must(t, errors.Join(a.Close(), a.Close()))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// In the strict reading deviations that may change results are errors.
func TestStrict(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": exampleFMU(t, "linear")}, elements: component("a", "f.fmu", "") + component("b", "f.fmu", ""),
		connections: connection("a.y[1]", "b.u[1]", "")} // connectors are not declared
	sound(t, s.write(t), assemble.Options{Strict: true})
	s.elements = component("a", "f.fmu", `<ssd:Connectors><ssd:Connector name="y[1]" kind="output"><ssc:Integer/></ssd:Connector></ssd:Connectors>`) +
		component("b", "f.fmu", "")
	path := s.write(t)
	sound(t, path, assemble.Options{})
	if _, err := open(t, path, assemble.Options{Strict: true}); !diag.Has(err, "SD7") {
		t.Errorf("%v, want SD7", err)
	}
}
