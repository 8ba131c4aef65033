package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

const ospTruck = `<?xml version="1.0" encoding="UTF-8"?>
<OspSystemStructure xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure" version="0.1">
  <StartTime>0.5</StartTime>
  <EndTime>2</EndTime>
  <BaseStepSize>0.0001</BaseStepSize>
  <Algorithm>ecco</Algorithm>
  <Simulators>
    <Simulator name="chassis" source="Chassis.fmu" stepSize="0.0003">
      <InitialValues>
        <InitialValue variable="mass"><Real value="400"/></InitialValue>
        <InitialValue variable="solver"><String value="Euler"/></InitialValue>
        <InitialValue variable="gear"><Integer value="2"/></InitialValue>
        <InitialValue variable="on"><Boolean value="1"/></InitialValue>
      </InitialValues>
    </Simulator>
    <Simulator name="wheel" source="Wheel.fmu"/>
  </Simulators>
  <Connections>
    <VariableConnection powerBond="axle">
      <Variable simulator="chassis" name="velocity" causality="input"/>
      <Variable simulator="wheel" name="in_vel" causality="output"/>
    </VariableConnection>
    <VariableConnection powerBond="axle">
      <Variable simulator="wheel" name="out_f" causality="input"/>
      <Variable simulator="chassis" name="force" causality="output"/>
    </VariableConnection>
  </Connections>
  <EccoConfiguration>
    <SafetyFactor>0.99</SafetyFactor>
    <StepSize>0.0001</StepSize>
    <MinimumStepSize>0.00001</MinimumStepSize>
    <MaximumStepSize>0.01</MaximumStepSize>
    <MinimumChangeRate>0.2</MinimumChangeRate>
    <MaximumChangeRate>1.5</MaximumChangeRate>
    <ProportionalGain>0.2</ProportionalGain>
    <IntegralGain>0.15</IntegralGain>
    <RelativeTolerance>1e-6</RelativeTolerance>
    <AbsoluteTolerance>2e-6</AbsoluteTolerance>
  </EccoConfiguration>
</OspSystemStructure>
`

var (
	newton = unit.Base{Kg: 1, M: 1, S: -2, Factor: 1}
	speed  = unit.Base{M: 1, S: -1, Factor: 1}
)

func truckFakes() Fakes {
	real := func(v func(string, ssp.ValueType) ssp.Variable, name string) ssp.Variable { return v(name, ssp.Real) }
	return Fakes{
		"chassis": {
			With(real(Out, "velocity"), "m/s", speed), With(real(In, "force"), "N", newton),
			With(real(Out, "z"), "m", Metre), real(Out, "plain"),
			real(Par, "mass"), Par("solver", ssp.String), Par("gear", ssp.Enumeration), Par("on", ssp.Boolean),
		},
		"wheel": {
			With(real(Out, "out_f"), "N", newton), With(real(In, "in_vel"), "m/s", speed),
			real(In, "more"), real(Out, "x"), real(Out, "y"), real(In, "u[1]"), real(In, "u[2]"),
		},
	}
}

// structure reads and flattens a structure with further files in its folder.
func structure(t testing.TB, document string, files map[string]string, r ssp.Resolver) (*ssp.Network, *diag.List, error) {
	t.Helper()
	return FlattenAs(t, "OspSystemStructure.xml", document, files, r, false, dialect.All()...)
}

// shown lists connections as "from → to ×gain+offset".
func shown(n *ssp.Network) []string {
	name := func(e ssp.FlatEnd) string {
		if k := e.Component - len(n.Components); k >= 0 {
			return n.Functions[k].Path + "." + e.Variable
		}
		return n.Components[e.Component].Path + "." + e.Variable
	}
	var out []string
	for _, c := range n.Connections {
		text := name(c.From) + " → " + name(c.To)
		if c.Gain != 1 || c.Offset != 0 {
			text += fmt.Sprintf(" ×%g%+g", c.Gain, c.Offset)
		}
		out = append(out, text)
	}
	return out
}

func TestOSP(t *testing.T) {
	n, l, err := structure(t, ospTruck, nil, truckFakes())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Findings {
		if f.Level != diag.Info || f.Line == 0 || f.Path == "" {
			t.Errorf("finding %s", f)
		}
	}
	if got, want := shown(n), []string{"chassis.velocity → wheel.in_vel", "wheel.out_f → chassis.force"}; !slices.Equal(got, want) {
		t.Errorf("connections %q, want %q", got, want)
	}
	if *n.Experiment.Start != 0.5 || *n.Experiment.Stop != 2 || !slices.Equal(Asked(n, ssp.StepSize), []string{"0.0001 OspSystemStructure BaseStepSize"}) {
		t.Errorf("experiment %v %v, settings %v", *n.Experiment.Start, *n.Experiment.Stop, n.Asked)
	}
	if h := n.Components[0].StepHints; len(h) != 1 || h[0].Value != 3e-4 || len(n.Components[1].StepHints) != 0 {
		t.Errorf("step hints %v", h)
	}
	if got := Asked(n, ssp.Algorithm); !slices.Equal(got, []string{"ecco OspSystemStructure Algorithm"}) {
		t.Errorf("algorithm %q", got)
	}
	var params []string
	for _, a := range n.Asked {
		if a.Name != ssp.Param {
			continue
		}
		params = append(params, a.Text)
		if !strings.HasPrefix(a.From, "OspSystemStructure EccoConfiguration ") || a.Place.Line < 29 {
			t.Errorf("source of %s: %+v", a, a.Place)
		}
	}
	if want := "control.safety=0.99 control.h0=0.0001 control.h-min=1e-05 control.h-max=0.01 control.ratio-min=0.2 control.ratio-max=1.5 " +
		"control.p-gain=0.2 control.i-gain=0.15 ecco.tolerance=1e-06 ecco.energy-scale=2"; strings.Join(params, " ") != want {
		t.Errorf("parameters %v, want %s", params, want)
	}
	axle := []string{"axle=wheel.out_f:chassis.velocity OspSystemStructure powerBond"}
	if got := Asked(n, "bond"); !slices.Equal(got, axle) {
		t.Errorf("bonds %q", got)
	}
	var values []string
	for _, s := range n.Settings {
		values = append(values, fmt.Sprintf("%s %s %s", s.Variable, s.Value.Type, s.Value))
	}
	if want := []string{"gear Enumeration 2", "mass Real 400", "on Boolean true", "solver String Euler"}; !slices.Equal(values, want) {
		t.Errorf("values %q, want %q", values, want)
	}
}

const ospHead = `<OspSystemStructure xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure" version="0.1"><Simulators>
<Simulator name="chassis" source="Chassis.fmu"/><Simulator name="wheel" source="Wheel.fmu"/></Simulators>
`

// ospSystem returns a structure with functions and connections.
func ospSystem(functions string, connections ...string) string {
	return ospHead + "<Functions>" + functions + "</Functions><Connections>" + strings.Join(connections, "\n") + "</Connections></OspSystemStructure>"
}

func ospVariables(a, b string) string {
	end := func(s string) string {
		simulator, name, _ := strings.Cut(s, ".")
		return fmt.Sprintf(`<Variable simulator=%q name=%q/>`, simulator, name)
	}
	return "<VariableConnection>" + end(a) + end(b) + "</VariableConnection>"
}

func ospSignal(variable, signal string) string {
	simulator, name, _ := strings.Cut(variable, ".")
	function, port, _ := strings.Cut(signal, ".")
	return fmt.Sprintf(`<SignalConnection><Variable simulator=%q name=%q/><Signal function=%q name=%q/></SignalConnection>`, simulator, name, function, port)
}

// ospSignalGroup connects a group of variables and a group of signals.
func ospSignalGroup(variables, signals string) string {
	return strings.NewReplacer("SignalConnection", "SignalGroupConnection", "<Variable", "<VariableGroup", "<Signal ", "<SignalGroup ").Replace(ospSignal(variables, signals))
}

func ospGroups(bond, a, b string) string {
	end := func(s string) string {
		simulator, name, _ := strings.Cut(s, ".")
		return fmt.Sprintf(`<VariableGroup simulator=%q name=%q/>`, simulator, name)
	}
	if bond != "" {
		bond = fmt.Sprintf(" powerBond=%q", bond)
	}
	return "<VariableGroupConnection" + bond + ">" + end(a) + end(b) + "</VariableGroupConnection>"
}

func TestOSPFunctions(t *testing.T) {
	for _, c := range []struct {
		name, functions string
		connections     []string
		want            []string
		terms           string
	}{
		{"reversed", "", []string{ospVariables("wheel.more", "chassis.plain")}, []string{"chassis.plain → wheel.more"}, "[]"},
		{"linear", `<LinearTransformation name="f" factor="2.5" offset="-1"/>`, []string{ospSignal("wheel.more", "f.out"), ospSignal("chassis.plain", "f.in")},
			[]string{"chassis.plain → wheel.more ×2.5-1"}, "[]"},
		{"linear, defaults and fan-out", `<LinearTransformation name="f" offset="3"/>`,
			[]string{ospSignal("chassis.plain", "f.in"), ospSignal("wheel.more", "f.out"), ospSignal("wheel.in_vel", "f.out")},
			[]string{"chassis.plain → wheel.more ×1+3", "chassis.plain → wheel.in_vel ×1+3"}, "[]"},
		{"sum", `<Sum name="s" inputCount="3"/>`, []string{ospSignal("wheel.x", "s.in[0]"), ospSignal("wheel.y", "s.in[1]"), ospSignal("chassis.plain", "s.in[2]"), ospSignal("wheel.more", "s.out")},
			[]string{"wheel.x → s.in[0]", "wheel.y → s.in[1]", "chassis.plain → s.in[2]", "s.out → wheel.more"}, "[s in[0] in[1] in[2] → out [[0 1 2]]]"},
		{"vector sum", `<VectorSum name="s" inputCount="2" dimension="2"/>`, []string{
			ospSignalGroup("wheel.pair", "s.in[0]"),
			ospSignal("chassis.plain", "s.in[1][0]"), ospSignal("chassis.z", "s.in[1][1]"),
			`<SignalGroupConnection><SignalGroup function="s" name="out"/><VariableGroup simulator="wheel" name="inputs"/></SignalGroupConnection>`},
			[]string{"chassis.plain → s.in[1][0]", "chassis.z → s.in[1][1]", "wheel.x → s.in[0][0]", "wheel.y → s.in[0][1]", "s.out[0] → wheel.u[1]", "s.out[1] → wheel.u[2]"},
			"[s in[0][0] in[0][1] in[1][0] in[1][1] → out[0] out[1] [[0 2] [1 3]]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"wheel_ospmodeldescription.XML": `<OspModelDescription xmlns="http://opensimulationplatform.com/MSMI/OSPModelDescription"><VariableGroups>
<VariableGroup name="pair" type="vector"><Variable name="x"/><Variable name="y"/></VariableGroup>
<VariableGroup name="inputs" type="vector"><Variable name="u[1]"/><Variable name="u[2]"/></VariableGroup></VariableGroups></OspModelDescription>`}
			n, _, err := structure(t, ospSystem(c.functions, c.connections...), files, truckFakes())
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(n); !slices.Equal(got, c.want) {
				t.Errorf("connections %q, want %q", got, c.want)
			}
			terms := []string{}
			for _, f := range n.Functions {
				terms = append(terms, fmt.Sprintf("%s %s → %s %v", f.Path, strings.Join(f.Inputs, " "), strings.Join(f.Outputs, " "), f.Terms))
			}
			if fmt.Sprint(terms) != c.terms {
				t.Errorf("functions %v, want %s", terms, c.terms)
			}
		})
	}
}

// ospPort is the model description of a side with a mechanical port.
func ospPort(force, velocity string, turned bool) string {
	f := fmt.Sprintf(`<Force name="the force"><Variable ref=%q unit="N"/></Force>`, force)
	v := fmt.Sprintf(`<LinearVelocity name="the velocity"><Variable ref=%q unit="m/s"/></LinearVelocity>`, velocity)
	if turned {
		f, v = v, f
	}
	return `<OspModelDescription xmlns="https://open-simulation-platform.com/OspModelDescription/1.0.0" version="1.0">
<UnitDefinitions><Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit><Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit></UnitDefinitions>
<VariableGroups><LinearMechanicalPort name="port">` + f + v + `</LinearMechanicalPort></VariableGroups></OspModelDescription>`
}

// ports are the model descriptions of the chassis and the wheel, changed by pairs of old and new texts.
func ports(chassis, wheel []string) map[string]string {
	return map[string]string{
		"Chassis_OspModelDescription.xml": strings.NewReplacer(chassis...).Replace(ospPort("force", "velocity", false)),
		"Wheel_OspModelDescription.xml":   strings.NewReplacer(wheel...).Replace(ospPort("out_f", "in_vel", false)),
	}
}

// Groups are connected by kind, and make bonds; the innermost can be named alone.
func TestOSPGroups(t *testing.T) {
	both := []string{"wheel.out_f → chassis.force", "chassis.velocity → wheel.in_vel"}
	for _, turned := range []bool{false, true} {
		files := map[string]string{"Chassis_OspModelDescription.xml": ospPort("force", "velocity", false), "wheel_OspModelDescription.xml": ospPort("out_f", "in_vel", turned)}
		n, l, err := structure(t, ospSystem("", ospGroups("axle", "chassis.port", "wheel.port")), files, truckFakes())
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(n); !slices.Equal(got, both) {
			t.Errorf("connections %q, want %q", got, both)
		}
		if got := Asked(n, "bond"); !slices.Equal(got, []string{"axle=wheel.out_f:chassis.velocity OspSystemStructure powerBond"}) {
			t.Errorf("bonds %q", got)
		}
		if w := l.At(diag.Warning); len(w) > 0 {
			t.Errorf("warnings %v", w)
		}
		n, _, err = structure(t, ospSystem("", ospGroups("", "chassis.the force", "wheel.the force")), files, truckFakes())
		if err != nil || !slices.Equal(shown(n), both[:1]) || Asked(n, "bond") != nil {
			t.Errorf("%v, network %+v", err, n)
		}
	}
}

// Every version of the model description is read, an unknown one with a note; what is
// wrong in it and concerns no connection of groups is a warning at most.
func TestOSPModelVersions(t *testing.T) {
	const known = "https://open-simulation-platform.com/OspModelDescription/1.0.0"
	both := []string{"wheel.out_f → chassis.force", "chassis.velocity → wheel.in_vel"}
	axis := strings.NewReplacer(`unit="N"`, `unit="N" axis="x"`, "1.0.0", "1.0.1")
	for _, c := range []struct {
		name, old, new string
		want           []string // rules of the findings in one of two such files
	}{
		{"1.0.1", known, axis.Replace(known), nil},
		{"0.1", known, "http://opensimulationplatform.com/MSMI/OSPModelDescription", nil},
		{"2.0.0", known, strings.Replace(known, "1.0.0", "2.0.0", 1), []string{"SD22V"}},
		{"no namespace", ` xmlns="` + known + `"`, "", []string{"SD22V"}},
		{"an attribute", `unit="N"`, `unit="N" colour="red"`, []string{"SD1U"}},
		{"a unit", `m="1" s="-2"`, `m="1" s="-0.5"`, []string{"SD1"}},
		{"a group without a name", "<VariableGroups>", `<VariableGroups><Generic><Variable ref="x"/></Generic>`, nil},
	} {
		files := ports(nil, nil)
		for name, text := range files {
			files[name] = strings.Replace(axis.Replace(text), axis.Replace(c.old), c.new, 1)
		}
		n, l, err := structure(t, ospSystem("", ospGroups("axle", "chassis.port", "wheel.port")), files, truckFakes())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := shown(n); !slices.Equal(got, both) {
			t.Errorf("%s: connections %q, want %q", c.name, got, both)
		}
		var got []string
		for _, f := range l.Findings {
			if strings.HasPrefix(filepath.Base(f.File), "Wheel_") {
				got = append(got, f.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: findings %v, want %v", c.name, l.Findings, c.want)
		}
	}
}

// Without units in the FMUs the model descriptions decide which end of a bond is the effort;
// without these, too, a finding says that nothing decides.
func TestOSPBondDirection(t *testing.T) {
	plain := truckFakes()
	for path := range plain {
		for i := range plain[path] {
			plain[path][i].Unit, plain[path][i].UnitBase = "", nil
		}
	}
	for _, files := range []map[string]string{ports(nil, nil), nil} {
		n, l, err := structure(t, ospTruck, files, plain)
		if err != nil {
			t.Fatal(err)
		}
		unsure := slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return strings.Contains(f.Message, "units do not show") })
		if b := Asked(n, "bond"); !strings.HasPrefix(b[0], "axle=wheel.out_f:") || unsure != (files == nil) {
			t.Errorf("bonds %q, findings %v", b, l.Findings)
		}
	}
}

// What cannot be carried out is an error with its place; what has no effect or
// another meaning is a named warning.
func TestOSPFaults(t *testing.T) {
	replace := func(old, by string) string {
		if !strings.Contains(ospTruck, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(ospTruck, old, by, 1)
	}
	groups := func(a, b string) string { return ospSystem("", ospGroups("", a, b)) }
	const fault, warning = diag.Error, diag.Warning
	for _, c := range []struct {
		name, document string
		files          map[string]string
		id             string
		level          diag.Level
		message        string
	}{
		{"namespace", replace("MSMI/OSPSystemStructure", "MSMI/Other"), nil, "SD1", fault, "root element"},
		{"no simulators", `<OspSystemStructure xmlns="http://opensimulationplatform.com/MSMI/OSPSystemStructure" version="0.1"/>`, nil, "SD1", fault, "no Simulators"},
		{"end", replace("<EndTime>2", "<EndTime>0.1"), nil, "SD1", fault, "not after StartTime"},
		{"step", replace("<BaseStepSize>0.0001", "<BaseStepSize>0"), nil, "SD1", fault, "not above 0"},
		{"ECCO tolerance", replace("<RelativeTolerance>1e-6</RelativeTolerance>", ""), nil, "SD22P", warning, "AbsoluteTolerance has no effect"},
		{"same name", replace(`name="wheel" source`, `name="chassis" source`), nil, "SD4", fault, `called "chassis" too`},
		{"initial values", replace(`<Real value="400"/></InitialValue>`, `<Real value="400"/></InitialValue><InitialValue variable="mass"><Real value="40"/></InitialValue>`),
			nil, "SD16D", fault, "400 from line"},
		{"causalities", replace(`name="in_vel" causality="output"`, `name="in_vel" causality="input"`), nil, "SD22P", warning, "both ends have the causality input"},
		{"bond name", replace(`powerBond="axle"`, `powerBond="a,b"`), nil, "SD22", fault, "cannot be part of a column name"},
		{"half a bond", replace(`powerBond="axle"`, ``), nil, "SD22", fault, "not as many connections in either direction"},
		{"function", ospSystem(`<Product name="p"/>`), nil, "SD22", fault, "LinearTransformation, Sum and VectorSum"},
		{"function size", ospSystem(`<VectorSum name="s" inputCount="99999" dimension="99999"/>`), nil, "SD1", fault, "more than 10000 signals"},
		{"functions without connections", ospSystem(`<LinearTransformation name="l"/><Sum name="s" inputCount="2"/><VectorSum name="v" inputCount="2" dimension="3"/>`), nil,
			"SD22P", warning, `the function "v" is left out: nothing is connected to it`},
		{"function input", ospSystem(`<LinearTransformation name="f"/>`, ospSignal("wheel.more", "f.out")), nil, "SD22", fault, `"f" has unconnected inputs: in`},
		{"function output", ospSystem(`<LinearTransformation name="f"/>`, ospSignal("wheel.x", "f.in")), nil, "SD22P", warning, `"f" has no effect`},
		{"signal", ospSystem(`<LinearTransformation name="f"/>`, ospSignal("wheel.x", "f.inn")), nil, "SD5", fault, `no signal "inn"; it has in, out`},
		{"signal group", ospSystem(`<Sum name="s" inputCount="1"/>`, ospSignalGroup("wheel.g", "s.in[0]")),
			nil, "SD5", fault, "a VectorSum has"},
		{"signal group size", ospSystem(`<VectorSum name="s" inputCount="1" dimension="2"/>`, ospSignal("wheel.more", "s.out[0]"),
			ospSignalGroup("wheel.the force", "s.in[0]")), ports(nil, nil), "SD22", fault, "\"s.in[0]\" has 2 signals"},
		{"no model description", groups("chassis.port", "wheel.port"), nil, "SD22", fault, "Chassis_OspModelDescription.xml"},
		{"no group", groups("chassis.porte", "wheel.port"), ports(nil, nil), "SD22", fault, `no group "porte"; it has port, the force, the velocity`},
		{"kinds differ", groups("chassis.the force", "wheel.other"), ports(nil, []string{"the force", "other", "Force", "Torque"}), "SD22P", warning, "which is of another kind"},
		{"axes", groups("chassis.the force", "wheel.the force"), ports([]string{`unit="N"`, `unit="N" axis="x"`}, []string{`unit="N"`, `unit="N" axis="z"`}),
			"SD22P", warning, `"force" of axis x is connected to "out_f" of axis z`},
		{"two groups", groups("chassis.the force", "wheel.the force"), ports([]string{"the velocity", "the force"}, nil), "SD22", fault, `2 groups of the name "the force"`},
		{"bond over a function", ospSystem(`<LinearTransformation name="f"/>`, ospSignal("chassis.plain", "f.in"), ospSignal("wheel.more", "f.out"),
			strings.Replace(ospVariables("chassis.velocity", "wheel.in_vel"), ">", ` powerBond="b">`, 1)), nil, "SD22", fault, "not as many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, l, err := structure(t, c.document, c.files, truckFakes())
			if (err != nil) != (c.level == diag.Error) || (n == nil) != (err != nil) {
				t.Fatalf("network %v, error %v", n, err)
			}
			at := slices.IndexFunc(l.Findings, func(f diag.Finding) bool {
				return f.ID == c.id && f.Level == c.level && strings.Contains(f.Message, c.message)
			})
			if at < 0 {
				t.Fatalf("no %s %q in %v", c.id, c.message, l.Findings)
			}
			if f := l.Findings[at]; f.Line == 0 || f.Path == "" || f.File == "" {
				t.Errorf("no place: %+v", f)
			}
		})
	}
}

// A structure is found by its name in a folder, and by its content; an SSP counts first.
func TestOSPForms(t *testing.T) {
	dir := Folder(t, map[string]string{"OspSystemStructure.xml": ospTruck, "any.xml": ospTruck})
	for _, path := range []string{dir, filepath.Join(dir, "OspSystemStructure.xml"), filepath.Join(dir, "any.xml")} {
		p, err := ssp.Open(path, nil, dialect.All()...)
		if err != nil || len(p.Components()) != 2 || p.Root.Name != filepath.Base(dir) {
			t.Errorf("%s: %v", path, err)
		}
	}
	archive := Pack(t, "OspSystemStructure.xml", ospTruck)
	if p, err := ssp.Open(archive, nil, dialect.All()...); err != nil || len(p.Components()) != 2 || p.Close() != nil {
		t.Errorf("%s: %v", archive, err)
	}
	if err := os.WriteFile(filepath.Join(dir, ssp.DocumentName), []byte(Single("a.fmu")), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &diag.List{}
	p, err := ssp.Open(dir, l, dialect.All()...)
	if err != nil || len(p.Components()) != 1 {
		t.Errorf("%v", err)
	}
	if len(l.Findings) != 1 || !strings.Contains(l.Findings[0].Message, "there is both") {
		t.Errorf("findings %v", l.Findings)
	}
}

// No structure and no model description makes the reader or the flattener panic.
func FuzzOSP(f *testing.F) {
	f.Add(ospTruck, ospPort("force", "velocity", false))
	f.Add(ospSystem(`<VectorSum name="s" inputCount="2" dimension="2"/><Sum name="t" inputCount="3"/>`, ospSignal("wheel.x", "t.in[1]"), ospSignal("wheel.x", "s.in[1][0]"),
		ospSignalGroup("wheel.port", "s.in[0]")), ospPort("x", "y", true))
	f.Add(ospSystem(`<LinearTransformation name="f" factor="2"/>`, ospSignal("chassis.plain", "f.in"), ospSignal("wheel.more", "f.out"), ospGroups("b", "chassis.port", "wheel.port")), ospPort("p", "u", false))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, model string) {
		l := &diag.List{}
		for name, text := range map[string]string{"Chassis_OspModelDescription.xml": model, "Wheel_OspModelDescription.xml": model, "OspSystemStructure.xml": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := ssp.Open(dir, l, dialect.All()...)
		if (p == nil) != (err != nil) {
			t.Fatalf("package %v, error %v", p, err)
		}
		if err != nil {
			return
		}
		n, err := p.Flatten(Generous{}, l)
		if (n == nil) != (err != nil) {
			t.Fatalf("network %v, error %v", n, err)
		}
		if n != nil {
			shown(n)
		}
	})
}

// A proxy of OSP on this machine is an FMU in a process of its own; elsewhere there is none.
func TestProxy(t *testing.T) {
	for source, want := range map[string]string{"proxyfmu://localhost?file=sub/Wheel.fmu": "sub/Wheel.fmu", "proxyfmu://localhost:9090?file=Wheel.fmu": "Wheel.fmu"} {
		document := strings.Replace(ospTruck, `source="Wheel.fmu"`, fmt.Sprintf("source=%q", source), 1)
		n, l, err := structure(t, document, nil, truckFakes())
		if err != nil {
			t.Fatal(err)
		}
		if c := n.Components[1]; !c.Isolate || !strings.HasSuffix(filepath.ToSlash(c.Source), "/"+want) || n.Components[0].Isolate {
			t.Errorf("%s: %+v", source, c)
		}
		if !slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return strings.Contains(f.Message, "a separate process") }) {
			t.Errorf("%s: nothing is told", source)
		}
	}
	for _, source := range []string{"proxyfmu://far.away?file=Wheel.fmu", "proxyfmu://localhost?guid=1", "proxyfmu://localhost?file=/etc/Wheel.fmu"} {
		document := strings.Replace(ospTruck, `source="Wheel.fmu"`, fmt.Sprintf("source=%q", source), 1)
		if _, _, err := structure(t, document, nil, truckFakes()); !diag.Has(err, "SD2") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
