package dialect_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
	"github.com/macrostep/macrostep/ssp/edit"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// written writes a document into a folder of the test, and returns its path.
func written(t testing.TB, document string) string {
	t.Helper()
	return filepath.Join(Folder(t, map[string]string{ssp.DocumentName: document}), ssp.DocumentName)
}

func encode(t testing.TB, d *ssp.Document) string {
	t.Helper()
	data, err := edit.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sound flattens a document that has no errors. Its FMUs have no variables.
func sound(t testing.TB, document string) (*ssp.Network, *diag.List) {
	t.Helper()
	return Sound(t, document, nil, FakeSet{}, dialect.All()...)
}

const typeOSP, typeOMS, typeMCX = "com.opensimulationplatform", "org.openmodelica", "com.avl.model.connect.ssp."

// The macro step from each tool, in old and new forms (ssp 42–47).
func TestSteps(t *testing.T) {
	const simulation = "<oms:SimulationInformation>%s</oms:SimulationInformation>"
	fixed := fmt.Sprintf(simulation, `<oms:FixedStepMaster description="oms-ma" stepSize="0.002" relativeTolerance="0.0001"/>`)
	osp := Annotate("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm>`)
	oms := Annotate("org.openmodelica", "<oms:Annotations>"+fixed+"</oms:Annotations>")
	mcx := Annotate("com.avl.model.connect.ssp.task", `<mc:Task xmlns:mc="urn:mc" stepType="sequential" deltaTime="0.02"/>`)
	cases := []struct {
		name                          string
		component, system, experiment string
		want                          string // "value source; …"
		findings                      string // ids
		tolerance                     float64
	}{
		{"OSP", "", "", osp, "0.0001 com.opensimulationplatform baseStepSize", "[SD21T]", 0},
		{"OSP, undeclared prefix", "", "", strings.ReplaceAll(osp, "osp:", "osq:"), "0.0001 com.opensimulationplatform baseStepSize", "[SD21T]", 0},
		{"OSP, other algorithm", "", "", Annotate("com.opensimulationplatform", `<osp:Algorithm><osp:Ecco/></osp:Algorithm>`), "", "[SD21P]", 0},
		{"OMSimulator", "", oms, "", "0.002 org.openmodelica stepSize", "[SD21T SD21T]", 1e-4},
		{"OMSimulator, old namespace", "", strings.NewReplacer("ssc:Annotation", "ssd:Annotation").Replace(oms), "", "0.002 org.openmodelica stepSize", "[SD1T SD21T SD21T]", 1e-4},
		{"OMSimulator, version 3", "", Annotate("org.openmodelica", `<oms:Annotations><oms:SimulationInformation name="s" method="oms_ma" fixedStepSize="0.003"/></oms:Annotations>`), "", "0.003 org.openmodelica fixedStepSize", "[SD21T]", 0},
		{"OMSimulator, variable steps", "", Annotate("org.openmodelica", fmt.Sprintf(simulation, `<oms:VariableStepMaster description="oms-mav" initialStepSize="1e-6" relativeTolerance="1e-3"/>`)), "", "1e-06 org.openmodelica initialStepSize", "[SD21T SD21T SD21T SD21T SD21T]", 1e-3},
		{"OMSimulator, solver", "", Annotate("org.openmodelica", fmt.Sprintf(simulation, `<oms:VariableStepSolver description="cvode" initialStepSize="1e-6"/>`)), "", "", "[SD21]", 0},
		{"OpenMCx", "", "", mcx, "0.02 com.avl.model.connect.ssp.task deltaTime", "[SD21T SD21T]", 0},
		{"all foreign", "", oms, mcx + osp, "0.0001 com.opensimulationplatform baseStepSize", "[SD21T SD21P SD21T SD21P SD21P]", 1e-4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, l := sound(t, Annotated(c.component, c.system, c.experiment))
			if g := strings.Join(Asked(n, ssp.StepSize), "; "); g != c.want {
				t.Errorf("steps %q, want %q", g, c.want)
			}
			for _, a := range n.Asked {
				if a.Place.Line == 0 {
					t.Errorf("%s has no line", a)
				}
			}
			if "["+IDs(l.Findings)+"]" != c.findings {
				t.Errorf("findings %v, want %s", l.Findings, c.findings)
			}
			want := []string(nil)
			if c.tolerance != 0 {
				want = []string{ssp.Number(c.tolerance) + " org.openmodelica relativeTolerance"}
			}
			if got := Asked(n, "tolerance"); !slices.Equal(got, want) {
				t.Errorf("tolerance %q, want %q", got, want)
			}
		})
	}
}

// A prefix of a dialect need not be declared (ssp 6), and is declared where the document is
// written anew: that of an element with a warning, that of an attribute in silence.
func TestUndeclaredPrefix(t *testing.T) {
	const declaration = `xmlns:osp="http://opensimulationplatform.com/SSP/OSPAnnotations"`
	for content, findings := range map[string]string{
		`<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm>`:                       "SD1T",
		`<x:Algorithm xmlns:x="urn:x"><x:FixedStepAlgorithm osp:odd="1" baseStepSize="1e-4"/></x:Algorithm>`: "",
	} {
		l := &diag.List{}
		document := strings.Replace(Annotated("", "", Annotate(typeOSP, content)), "\n  "+declaration, "", 1)
		p, err := ssp.Open(written(t, document), l, dialect.All()...)
		if err != nil || IDs(l.Findings) != findings {
			t.Fatalf("%v, findings %v", err, l.Findings)
		}
		files, err := edit.Bind(p, []ssp.ParameterValue{{Name: "c.p", Value: ssp.Value{Type: ssp.Real}}}, nil)
		if err != nil || len(files) != 2 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		set, text := string(files[0].Data), string(files[1].Data)
		Open(t, Folder(t, map[string]string{files[0].Name: set, ssp.DocumentName: text}), l, dialect.All()...)
		if IDs(l.Findings) != findings || strings.Count(text, declaration) != 1 {
			t.Errorf("findings %v\n%s", l.Findings, text)
		}
	}
}

// The trigger sequence of a system without FMUs is none.
func TestSequenceOfPlaceholders(t *testing.T) {
	document := strings.Replace(Annotated(Annotate("com.avl.model.connect.ssp.component", `<mc:Component xmlns:mc="urn:mc" triggerSequence="1"/>`), "",
		Annotate("com.avl.model.connect.ssp.task", `<mc:Task xmlns:mc="urn:mc" stepType="sequential" deltaTime="1"/>`)), ` source="c.fmu"`, "", 1)
	n, _ := sound(t, document)
	if len(n.Components) != 0 || len(Asked(n, ssp.Algorithm)) != 1 || Asked(n, ssp.Param) != nil {
		t.Errorf("settings %v", n.Asked)
	}
}

// Why a setting of another tool is ignored.
func TestLeftOut(t *testing.T) {
	osp := Annotate("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm>`)
	mcx := Annotate("com.avl.model.connect.ssp.task", `<mc:Task xmlns:mc="urn:mc" stepType="sequential"/>`)
	trigger := Annotate("com.avl.model.connect.ssp.component", `<mc:Component xmlns:mc="urn:mc" triggerSequence="1"/>`)
	for _, tt := range []struct{ name, component, experiment, want string }{
		{"c", "", osp + mcx, "is ignored: the algorithm is taken from the tool that gives the macro step: com.opensimulationplatform baseStepSize"},
		{"c", "", mcx, "--algorithm gauss-seidel is taken from"},
		{"c,d", trigger, mcx, `component "c,d" has a comma in its name`},
	} {
		document := strings.Replace(Annotated(tt.component, "", tt.experiment), `name="c"`, `name="`+tt.name+`"`, 1)
		_, l := sound(t, document)
		got := strings.Join(Told(l, ssp.RuleForeignPart.ID, ssp.RuleTaken.ID), "; ")
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.experiment, got, tt.want)
		}
	}
}

// No annotation makes a dialect panic.
func FuzzAnnotations(f *testing.F) {
	f.Add(typeMCX+"component", `<mc:Component xmlns:mc="urn:mc" deltaTime="0.1" triggerSequence="1"/>`, typeMCX+"task", `<mc:Task xmlns:mc="urn:mc" stepType="sequential" deltaTime="1"/>`)
	f.Add(typeOSP, `<osp:StepSizeHint value="0.1"/>`, typeOMS, `<oms:SimulationInformation signalFilter="test\.top\.c\.(u|p)" loggingInterval="2"/>`)
	f.Add(typeOMS, `<oms:SimulationInformation/>`, typeOMS, `<oms:SimulationInformation signalFilter="set.xml"/>`)
	f.Add(typeOMS, `<oms:SimulationInformation><oms:VariableStepMaster initialStepSize="1" minimumStepSize="2" maximumStepSize="3" relativeTolerance="4"/></oms:SimulationInformation>`, typeOSP, `<osp:Algorithm/>`)
	f.Fuzz(func(t *testing.T, inner, one, outer, two string) {
		a, b := Annotate(inner, one), Annotate(outer, two)
		l := &diag.List{}
		p, err := ssp.Open(written(t, Annotated(a+b, a+b, a+b)), l, dialect.All()...)
		if err != nil {
			return
		}
		defer p.Close()
		if n, err := p.Flatten(FakeSet{}, l); (n == nil) != (err != nil) {
			t.Fatalf("network %v, error %v", n, err)
		}
	})
}

// Other tools get their annotations once, at every system, and what they cannot take
// is named.
func TestPrepare(t *testing.T) {
	d := &ssp.Document{Name: "hand", System: &ssp.System{Common: ssp.Common{Name: "top"}, Elements: []ssp.Element{
		&ssp.Component{Common: ssp.Common{Name: "a", Connectors: []ssp.Connector{{Name: "y", Kind: ssp.Output, Type: ssp.Real, Unit: "mm"}, {Name: "mode", Kind: ssp.Output, Type: ssp.Enumeration, Enumeration: "modes"}}}, Source: "resources/a.fmu", HasSource: true},
		&ssp.Component{Common: ssp.Common{Name: "b", Connectors: []ssp.Connector{{Name: "u", Kind: ssp.Input, Type: ssp.Real, Unit: "m"}, {Name: "n", Kind: ssp.Input, Type: ssp.Integer}, {Name: "free", Kind: ssp.Input}},
			Bindings: []ssp.Binding{{Source: "b.ssv", Prefix: "b."}}}, Source: "b.fmu", HasSource: true},
	}, Connections: []ssp.Connection{
		{StartElement: "a", StartConnector: "y", EndElement: "b", EndConnector: "u"},
		{StartElement: "a", StartConnector: "mode", EndElement: "b", EndConnector: "n", Transformation: &ssp.Transformation{Kind: ssp.IntegerMapping, Numbers: map[int64]int64{2: 20, 1: 10}}},
	}}, Enumerations: []ssp.EnumerationType{{Name: "modes", Items: map[string]int64{"off": 1, "on": 2}}},
		Units: []unit.Definition{{Name: "mm", Base: &unit.Base{M: 1, Factor: 0.001}}, {Name: "m", Base: &unit.Base{M: 1, Factor: 1}}}}
	d.System.Elements = append(d.System.Elements, &ssp.System{Common: ssp.Common{Name: "in side"}})
	d.System.Bindings = []ssp.Binding{{Source: "p.ssv"}}
	d.System.Connections = append(d.System.Connections, ssp.Connection{StartConnector: "u", EndElement: "b", EndConnector: "u"},
		ssp.Connection{StartElement: "b", StartConnector: "u", EndElement: "a", EndConnector: "y"})
	for range 2 {
		for _, tool := range dialect.Tools() {
			notes, err := dialect.Prepare(d, tool, 1e-3, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{
				"omsimulator": {`the system "in side"`, `component "b" has "b.fmu"`, "ignores an integer mapping: a.mode to b.n"},
				"osp": {"ignores connectors and parameter bindings of the system", `supports only components with FMUs: "in side"`, "fails with connectors of type Enumeration: a.mode",
					"connectors of type unspecified: b.free", "connections with the system: u to b.u", "only from output to input: b.u to a.y", "ignores prefixes and mappings", "couples mm with m: a.y to b.u"},
			}[tool]
			for _, w := range want {
				if !strings.Contains(strings.Join(notes, "\n"), w) {
					t.Errorf("%s: %q does not say %s", tool, notes, w)
				}
			}
		}
	}
	d.System.Bindings, d.System.Elements[1].Base().Bindings = nil, nil // their files are not there to be read
	text := encode(t, d)
	for part, n := range map[string]int{`type="org.openmodelica"`: 2, `type="com.opensimulationplatform"`: 1, `stepSize="0.001" relativeTolerance="0.0001"`: 2, `baseStepSize="0.001"`: 1} {
		if got := strings.Count(text, part); got != n {
			t.Errorf("%s stands %d times, not %d", part, got, n)
		}
	}
	p := Open(t, written(t, text), nil, dialect.All()...)
	if got := len(p.Root.Experiment.Annotations) + len(p.Root.System.Annotations); got != 2 {
		t.Errorf("%d annotations", got)
	}
	alone := &ssp.Document{Name: "d", System: &ssp.System{Common: ssp.Common{Name: "s"}}}
	fresh := Open(t, written(t, encode(t, alone)), nil, dialect.All()...)
	if _, err := dialect.Prepare(fresh.Root, "osp", 1e-3, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := fresh.Flatten(FakeSet{}, nil); err != nil || len(Asked(n, ssp.StepSize)) != 1 { // an annotation that was not read
		t.Errorf("%v, %v", err, n)
	}
	for _, tool := range dialect.Tools() {
		if _, err := dialect.Prepare(alone, tool, 1e-3, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := sound(t, encode(t, alone)); !slices.Equal(Asked(n, ssp.StepSize), []string{"0.001 com.opensimulationplatform baseStepSize"}) {
		t.Errorf("settings %v", n.Asked)
	}
	if _, err := dialect.Prepare(d, "other", 1, nil); err == nil || !strings.Contains(err.Error(), `the tool "other" is not known`) {
		t.Error(err)
	}
	if _, err := dialect.Prepare(d, "osp", 0, nil); err == nil {
		t.Error("a step of 0 is taken")
	}
}
