package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// car writes the quarter car with other annotations into a folder: at component wheel, at the outermost system, at
// the experiment, with further files.
func car(t testing.TB, component, system, experiment string, more ...string) string {
	t.Helper()
	document, err := fmus.SystemDocument("quarter-car-a")
	if err != nil {
		t.Fatal(err)
	}
	text := string(document)
	begin, end := strings.Index(text, "<ssd:DefaultExperiment"), strings.Index(text, "</ssd:SystemStructureDescription>")
	wrap := func(s string) string {
		if s == "" {
			return ""
		}
		return "<ssd:Annotations>" + s + "</ssd:Annotations>"
	}
	text = text[:begin] + `<ssd:DefaultExperiment startTime="0" stopTime="0.2">` + wrap(experiment) +
		"</ssd:DefaultExperiment>" + text[end:]
	text = strings.Replace(text, "<ssd:SystemStructureDescription",
		`<ssd:SystemStructureDescription xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" `+
			`xmlns:oms="https://raw.githubusercontent.com/OpenModelica/OMSimulator/master/schema/oms.xsd" xmlns:osp="http://opensimulationplatform.com/SSP/OSPAnnotations"`, 1)
	text = strings.Replace(text, "</ssd:System>", wrap(system)+"</ssd:System>", 1)
	at := strings.LastIndex(text, "</ssd:Component>")
	text = text[:at] + wrap(component) + text[at:]
	dir := t.TempDir()
	copyFMUs(t, filepath.Join(dir, "resources"), "quarter_chassis_a", "quarter_wheel_a")
	for i := 0; i < len(more); i += 2 {
		write(t, filepath.Join(dir, more[i]), []byte(more[i+1]))
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), text)
	return dir
}

func annotation(kind, content string) string {
	return fmt.Sprintf("<ssc:Annotation type=%q>%s</ssc:Annotation>", kind, content)
}

// expectSources compares the beginnings of the sources that a manifest names.
func expectSources(t *testing.T, o *outcome, want map[string]string) {
	t.Helper()
	for name, source := range o.manifest.Sources {
		if w, ok := want[name]; !ok || !strings.HasPrefix(source, w) {
			t.Errorf("%s comes from %q, want %q", name, source, w)
		}
	}
	for name, w := range want {
		if _, ok := o.manifest.Sources[name]; !ok {
			t.Errorf("%s has no source, want %q", name, w)
		}
	}
}

const (
	ownType = "com.github.macrostep"
	ownText = "annotation of macrostep ("
)

// Our annotation has every setting of the flags, and flags override it.
func TestSettings(t *testing.T) {
	dir := settingsExample(t)
	o := complete(t, dir, "--algorithm", "gauss-seidel", "--param", "order=0", "--step-size", "0.0005",
		"--record", "left.x", "--output-interval", "0.01",
		"--rate", "right=1", "--workers", "1", "--isolate", "never", "--on-crash", "stop", "--bond", "other=spring.F:left.v")
	m := o.manifest
	if m.Parameters["order"] != "0" || m.StepSize.Value != 0.0005 || m.FMUSteps["right"] != m.FMUSteps["left"] || len(o.columns) != 2 {
		t.Errorf("%v, %+v, %v, %d columns", m.Parameters, m.StepSize, m.FMUSteps, len(o.columns))
	}
	want := maps.Clone(settingsSources)
	delete(want, "bond rod")
	delete(want, "isolate left") // nothing is
	for _, flag := range []string{"algorithm", "record", "output-interval", "workers", "isolate", "on-crash"} {
		want[flag] = "--" + flag
	}
	want["param order"], want["rate right"], want["bond other"] = "--param", "--rate", "--bond"
	expectSources(t, o, want)
}

// The limits of an annotation isolate all FMUs, as those of the flags do.
func TestSettingsLimits(t *testing.T) {
	dir := car(t, "", "", annotation(ownType, `<ms:Settings version="1" stepSize="0.01" stepTimeout="30"/>`))
	for _, c := range []struct {
		flags []string
		want  int
		warn  bool
	}{{nil, 2, false}, {[]string{"--isolate", "never"}, 0, true}, {[]string{"--isolate", "auto"}, 0, false}} {
		o := complete(t, append([]string{dir}, c.flags...)...)
		n := 0
		for _, f := range o.manifest.FMUs {
			if f.Isolated != "" {
				n++
			}
		}
		if n != c.want || strings.Contains(o.warnings(), "and there are none") != c.warn {
			t.Errorf("%v: %d isolated, warnings %q", c.flags, n, o.manifest.Warnings)
		}
	}
}

// Connectors of the outermost system take values and inputs, which go on over their connections with units and
// transformations.
func TestConnectorsGiven(t *testing.T) {
	dir := car(t, "", "", "")
	text := read(t, filepath.Join(dir, "SystemStructure.ssd"))
	document := strings.NewReplacer(
		`<ssd:Connection startElement="wheel" startConnector="F_c" endElement="chassis" endConnector="F_c"/>`,
		`<ssd:Connection startConnector="push" endElement="chassis" endConnector="F_c"><ssc:LinearTransformation factor="-1"/></ssd:Connection>
<ssd:Connection startConnector="mass" endElement="chassis" endConnector="m_c"/>`).Replace(string(text))
	at := strings.Index(document, "<ssd:Elements>")
	document = document[:at] + `<ssd:Connectors><ssd:Connector name="push" kind="input"><ssc:Real unit="kN"/></ssd:Connector><ssd:Connector name="mass" kind="parameter"><ssc:Real unit="t"/></ssd:Connector></ssd:Connectors>` + document[at:]
	at = strings.Index(document, "<ssd:Units>") + len("<ssd:Units>")
	document = document[:at] + `<ssc:Unit name="kN"><ssc:BaseUnit kg="1" m="1" s="-2" factor="1000"/></ssc:Unit><ssc:Unit name="t"><ssc:BaseUnit kg="1" factor="1000"/></ssc:Unit>` + document[at:]
	write(t, filepath.Join(dir, "SystemStructure.ssd"), document)
	table := filepath.Join(t.TempDir(), "push.csv")
	write(t, table, "time,push\n0,0\n1,0.4\n")
	o := complete(t, dir, "--step-size", "0.01", "--record", "chassis.*", "--input", table, "--set", "mass=0.5")
	if f, m := o.column(t, "chassis.F_c"), o.column(t, "chassis.m_c"); f[10] < -41 || f[10] > -39 || m[0] != 500 {
		t.Errorf("the force at 0.1 s is %g, the mass %g", f[10], m[0])
	}
	o = complete(t, dir, "--step-size", "0.01", "--record", "chassis.*", "--set", "push=0.25")
	if f := o.column(t, "chassis.F_c"); f[10] != -250 {
		t.Errorf("the force at 0.1 s is %g", f[10])
	}
	run(t, dir, "--step-size", "0.01", "--set", "pull=1").is(t, 2, "connectors of the system are push, mass")
}

// Settings of other tools count where our annotation has none, and are reported.
func TestForeignSettings(t *testing.T) {
	t.Parallel()
	simulation := func(s string) string {
		return annotation("org.openmodelica", "<oms:Annotations>"+s+"</oms:Annotations>")
	}
	const master = `<oms:SimulationInformation><oms:VariableStepMaster description="oms-mav" initialStepSize="1e-4" minimumStepSize="1e-6" maximumStepSize="1e-2" relativeTolerance="1e-3"/></oms:SimulationInformation>`
	filter := `<oms:SimulationInformation resultFile="r.mat" loggingInterval="0.05" bufferSize="10" signalFilter="%s"/>`
	oms := map[string]string{"algorithm": "org.openmodelica oms-mav (",
		"param control.h0": "org.openmodelica initialStepSize", "param control.h-min": "org.openmodelica minimumStepSize",
		"param control.h-max": "org.openmodelica maximumStepSize", "param control.rtol": "org.openmodelica relativeTolerance", "output-interval": "org.openmodelica loggingInterval", "record": "org.openmodelica signalFilter"}
	const names = `<?xml version="1.0"?><oms:SignalFilter version="1.0"><oms:Variable name="quarter-car-a.quarter-car-a.wheel.z_w" type="Real" kind="output"/>
<oms:Variable name="quarter-car-a.quarter-car-a.border" type="Real" kind="output"/></oms:SignalFilter>`
	const hint = `<osp:StepSizeHint value="0.005"/>`
	const task = `<mc:Task xmlns:mc="urn:mc" stepType="sequential" deltaTime="0.004"/>`
	for _, c := range []struct {
		name                          string
		component, system, experiment string
		more                          []string
		algorithm                     string
		step                          float64
		columns                       int // 0 = the default choice
		want                          map[string]string
		notes                         string
	}{
		{"OMSimulator, a file", "", simulation(master), simulation(fmt.Sprintf(filter, `signalFilter.xml`)),
			[]string{"signalFilter.xml", names}, "richardson", 1e-4, 2,
			oms, "1 names are not variables of FMUs"},
		{"OSP", annotation("com.opensimulationplatform", hint), "", annotation("com.opensimulationplatform",
			`<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="0.002" numWorkerThreads="2"/></osp:Algorithm>`), nil,
			"explicit", 2e-3, 0, map[string]string{"rate wheel": "com.opensimulationplatform StepSizeHint"}, "numWorkerThreads"},
		{"OpenMCx", annotation("com.avl.model.connect.ssp.component", `<mc:Component xmlns:mc="urn:mc" deltaTime="0.001"/>`), "",
			annotation("com.avl.model.connect.ssp.task", task), nil,
			"gauss-seidel", 4e-3, 0, map[string]string{"algorithm": "com.avl.model.connect.ssp.task stepType",
				"rate wheel": "com.avl.model.connect.ssp.component deltaTime"}, "--step-size 0.004 is taken"},
		{"ours first", annotation("com.opensimulationplatform", hint), simulation(master),
			simulation(fmt.Sprintf(filter, `.*wheel\.[vz]_w`)) + annotation(ownType,
				`<ms:Settings version="1" algorithm="explicit" stepSize="0.01" outputInterval="0.1"><ms:Record match="chassis.*"/><ms:Rate component="wheel" ratio="3"/></ms:Settings>`), nil,
			"explicit", 1e-2, 6, map[string]string{"algorithm": ownText, "output-interval": ownText,
				"record": ownText, "rate wheel": ownText}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags := []string{car(t, c.component, c.system, c.experiment, c.more...)}
			o := complete(t, flags...)
			if o.manifest.Algorithm != c.algorithm || o.manifest.StepSize.Value != c.step {
				t.Errorf("algorithm %s, step %+v", o.manifest.Algorithm, o.manifest.StepSize)
			}
			if c.columns != 0 && len(o.columns) != c.columns {
				t.Errorf("columns %d", len(o.columns))
			}
			expectSources(t, o, c.want)
			if told := strings.Join(o.manifest.Notes, "\n"); !strings.Contains(told, c.notes) {
				t.Errorf("notes %s", told)
			}
			if c.name == "ours first" && strings.Count(o.notes()+o.warnings(), " is ignored") < 4 {
				t.Errorf("notes %q", o.manifest.Notes)
			}
		})
	}
}

// settingsSources are the settings of the example of docs/ssp-settings.md.
var settingsSources = func() map[string]string {
	sources := map[string]string{}
	for _, name := range []string{"algorithm", "param order", "quirk spring stateless", "bond rod", "rate right", "record", "workers", "isolate",
		"on-crash", "step-timeout", "memory-limit", "output-interval", "input", "history", "isolate left", "quirk left noTerminate"} {
		sources[name] = ownText
	}
	return sources
}()

// settingsExample writes that example into a folder.
func settingsExample(t testing.TB) string {
	t.Helper()
	page := string(read(t, filepath.Join("..", "docs", "ssp-settings.md")))
	_, rest, _ := strings.Cut(page, "```xml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/ssp-settings.md has no example")
	}
	dir := t.TempDir()
	copyFMUs(t, filepath.Join(dir, "resources"), "mass_force", "coupling")
	write(t, filepath.Join(dir, "SystemStructure.ssd"), example)
	write(t, filepath.Join(dir, "push.csv"), "time,right.F\n0,0\n1,100\n")
	write(t, filepath.Join(dir, "before.csv"), "time,left.x,left.v,right.x,right.v,spring.F\n-0.002,0,0,0,0,0\n-0.001,0,0,0,0,0\n")
	return dir
}

// The example of docs/ssp-settings.md runs, and each of its settings is in force.
func TestSettingsPage(t *testing.T) {
	dir := settingsExample(t)
	o := complete(t, dir)
	m := o.manifest
	if m.Algorithm != "gauss-seidel" || m.StepSize.Value != 1e-3 || m.Parameters["order"] != "1" ||
		m.FMUSteps["right"] != 2*m.FMUSteps["left"] || o.rows != 21 {
		t.Errorf("%s, %v, %v, %v, %d rows", m.Algorithm, m.StepSize, m.Parameters, m.FMUSteps, o.rows)
	}
	expectSources(t, o, settingsSources)
	write(t, filepath.Join(dir, "push.csv"), "time\n")
	if o := run(t, dir); o.code == 0 || !strings.Contains(o.output, `push.csv`) {
		t.Errorf("a table without columns: exit code %d\n%s", o.code, o.output)
	}
}

// info --explain shows the whole chain of precedence: the FMU, the component, the system, a later binding through a
// mapping; and what feeds an input.
func TestExplain(t *testing.T) {
	t.Parallel()
	bindings := func(all ...string) string {
		text := "<ssd:ParameterBindings>"
		for i := 0; i < len(all); i += 3 {
			text += `<ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters><ssv:Parameter name="` +
				all[i] + `"><ssv:Real value="` + all[i+1] +
				`"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>` + all[i+2] +
				`</ssd:ParameterBinding>`
		}
		return text + "</ssd:ParameterBindings>"
	}
	const mapping = `<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="heavy" target="wheel.m_w"><ssc:LinearTransformation factor="2" offset="1"/></ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping>`
	const namespace = `xmlns:%s="http://ssp-standard.org/SSP1/SystemStructureParameter%s" `
	dir := withSystem(func(text string) string {
		text = swap("<ssd:Elements>", bindings("wheel.m_w", "42", "", "heavy", "43", mapping)+"<ssd:Elements>")(text)
		at := strings.LastIndex(text, "</ssd:Component>")
		text = text[:at] + bindings("m_w", "41", "") + text[at:]
		return swap("<ssd:SystemStructureDescription ",
			"<ssd:SystemStructureDescription "+fmt.Sprintf(namespace+namespace, "ssv", "Values", "ssm",
				"Mapping"))(text)
	}, nil)(t, t.TempDir())[0]
	o := call(t, "info", dir, "--explain", "wheel.m_w")
	o.is(t, 0)
	lines := strings.Split(strings.TrimSpace(o.output), "\n")
	want := [][]string{
		{"wheel.m_w: parameter, fixed Real in kg, initial exact"},
		{"start value of the FMU", "= 40", "overridden", "quarter_wheel_a.fmu!modelDescription.xml:"},
		{`bound at wheel as "m_w"`, "= 41", "overridden", "SystemStructure.ssd:"},
		{`bound at the outermost system as "wheel.m_w"`, "= 42", "overridden", "SystemStructure.ssd:"},
		{`bound at the outermost system as "wheel.m_w"`, "= 87", "in force", "SystemStructure.ssd:"},
		{`    parameter "heavy"`, "= 43", "SystemStructure.ssd:"},
		{`    mapping of "heavy" to "wheel.m_w"`, "SystemStructure.ssd:"},
		{"    × 2 + 1", "= 87 kg", "SystemStructure.ssd:"},
	}
	if len(lines) != len(want) {
		t.Fatalf("explained\n%s", o.output)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d is %q, want %q in it", i, lines[i], part)
			}
		}
	}
	call(t, "info", dir, "--explain", "chassis.F_c").is(t, 0, "connected to wheel.F_c [N]")
	call(t, "info", dir, "--explain", "chassis.v_c").is(t, 0, "the FMU computes it")
}

// Of an FMU that runs alone every flag takes the names of variables with that of the component and without; inputs
// that a table or a scenario drives are recorded.
func TestNamesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := fmus.Build(dir, "quarter_chassis_a")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		write(t, name, text)
		return name
	}
	const prefix = "quarter_chassis_a."
	results := map[string]string{}
	for _, before := range []string{"", prefix} {
		input := file("input.csv", "time,"+before+"F_c\n0,0\n0.1,-40\n")
		events := file("events.yaml", "events:\n  - {at: 0.05, set: {"+before+"F_c: -80}}\nexpect:\n  - {variable: "+before+"z_c, at: 0.1, min: 1e-9}\n")
		args := []string{path, "--stop-time", "0.1", "--step-size", "0.01", "--set", before + "m_c=200"}
		for name, more := range map[string][]string{
			"input": {"--input", input}, "scenario": {"--scenario", events}, "recorded": {"--input", input,
				"--record", before + "z_c", "--record", before + "m_?"},
		} {
			o := complete(t, append(slices.Clip(args), more...)...)
			if was, again := results[name]; again && was != o.table(t) {
				t.Errorf("%s: other results with %q", name, before)
			}
			results[name] = o.table(t)
			if name != "recorded" { // the input that is driven is recorded
				o.column(t, prefix+"F_c")
			}
		}
		call(t, "info", path, "--explain", before+"m_c").is(t, 0, prefix+"m_c")
		call(t, "plot", complete(t, append(slices.Clip(args), "--input", input)...).results,
			"--select", before+"z_c").is(t, 0, "1 chart of")
	}
	if header, _, _ := strings.Cut(results["recorded"], "\n"); header != "time,"+prefix+"z_c,"+prefix+"m_c" {
		t.Errorf("recorded %s", header)
	}
	for _, c := range []struct{ flag, value, says string }{
		{"--set", "m_d=1", `component quarter_chassis_a has no variable "m_d"; did you mean "m_c"?`},
		{"--record", "m_d", `no variable matches "m_d"`},
		{"--input", file("wrong.csv", "time,F_d\n0,1\n"), `component quarter_chassis_a has no variable "F_d"`},
		{"--input", file("both.csv", "time,F_c,quarter_chassis_a.F_c\n0,1,1\n"), `quarter_chassis_a.F_c is given twice`},
	} {
		call(t, "run", path, c.flag, c.value).is(t, 2, c.says)
	}
}

// A name that means two variables of an FMU is refused by every flag, with names of which each means one.
func TestNamesAmbiguous(t *testing.T) {
	dir := t.TempDir()
	built := withDescription(func(text string) string {
		return strings.NewReplacer(`name="v_c"`, `name="m.F_c"`, `name="der(v_c)"`, `name="m.m_c"`).Replace(text)
	})(t, dir)[0]
	path := filepath.Join(dir, "m.fmu")
	if err := os.Rename(built, path); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		write(t, name, text)
		return name
	}
	const name = `"m.F_c" `
	for _, c := range []struct{ flag, value, says string }{
		{"--set", "m.m_c=1", `"m.m_c" has 2 meanings: m_c and m.m.m_c; write the name of the one you mean`},
		{"--record", "m.F_c", name + "matches 2 variables: "},
		{"--input", file("input.csv", "time,m.F_c\n0,1\n"), name + "has 2 meanings: F_c and m.m.F_c"},
		{"--scenario", file("events.yaml", "events:\n  - {at: 0.05, set: {m.F_c: 1}}\n"), name + "has 2 meanings: F_c and m.m.F_c"},
	} {
		call(t, "run", path, "--stop-time", "0.1", c.flag, c.value).is(t, 2, c.says)
	}
	o := complete(t, path, "--stop-time", "0.1", "--set", "m_c=100", "--input", file("input.csv", "time,F_c\n0,-100\n"),
		"--record", "m.m.F_c", "--record", "F_c", "--record", "m.m.m_c")
	if v := last(o.column(t, "m.m.F_c")); v < 0.0999 || v > 0.1001 {
		t.Errorf("the velocity is %g", v)
	}
	if o.column(t, "m.F_c")[0] != -100 || o.column(t, "m.m.m_c")[0] != 1 {
		t.Errorf("force %v, acceleration %v", o.columns["m.F_c"], o.columns["m.m.m_c"])
	}
}

// Where a parameter set has a name twice, run, validate and info --explain agree: it is an error where two values
// reach one variable, else a note.
func TestParameterTwice(t *testing.T) {
	set := func(values ...string) func(*testing.T, string) []string {
		text := `<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" name="s"><ssv:Parameters>`
		for _, v := range values {
			name, value, _ := strings.Cut(v, "=")
			text += `<ssv:Parameter name="` + name + `"><ssv:Real value="` + value + `"/></ssv:Parameter>`
		}
		return withSystem(swap(`<ssd:Elements>`,
			text+`</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings><ssd:Elements>`), nil)
	}
	for _, c := range []struct {
		name, says string
		values     []string
		code       int
	}{
		{"equal", "", []string{"chassis.m_c=300", "chassis.m_c=3e2"}, 0},
		{"of no variable", "", []string{"chassis.m_c=300", "engine.p=1", "engine.p=2"}, 0},
		{"different", `"chassis.m_c" gets two values from one binding: 300 from line 7 and 301 from here [SD16D]`,
			[]string{"chassis.m_c=300", "chassis.m_c=301"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			system := set(c.values...)(t, t.TempDir())[0]
			run(t, system, "--stop-time", "0.01").is(t, c.code, c.says)
			call(t, "info", system, "--explain", "chassis.m_c").is(t, c.code, "300", c.says)
			v := call(t, "validate", system)
			if v.is(t, c.code/2, "SD16T"); (c.code > 0) != strings.Contains(v.output, "SD16D") {
				t.Errorf("validate:\n%s", v.output)
			}
			// A value of the user beats both.
			if w := complete(t, system, "--stop-time", "0.01", "--set", "chassis.m_c=310").notes(); !strings.Contains(w, "SD16T") ||
				strings.Contains(w, "SD16D") {
				t.Errorf("run --set: notes %s", w)
			}
		})
	}
}

// Each warning about a value of --set names component and variable.
func TestSetWithoutEffect(t *testing.T) {
	o := complete(t, system(t, "quarter-car-a"), "--set", "chassis.F_c=3", "--set", "wheel.v_c=1")
	for _, name := range []string{"chassis.F_c", "wheel.v_c"} {
		if !slices.ContainsFunc(o.manifest.Warnings, func(text string) bool {
			return strings.HasPrefix(text, name+": the input is connected: ")
		}) {
			t.Errorf("no warning names %s:\n%s", name, o.warnings())
		}
	}
}

// A macro step, a time between rows or between checkpoints that is longer than the run is a warning with its remedy.
func TestLongerThanTheRun(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--step-size 0.3", "the macro step of 0.3 s (--step-size) is longer than the run of 0.2 s, which is a single step"},
		{"--step-size 0.2", ""},
		{"--step-size 0.3 --algorithm im-milne", ""},
		{"--output-interval 0.3", "the time between rows, 0.3 s (--output-interval), is longer than the run of 0.2 s"},
		{"--output-interval 0.3 --record none", ""},
		{"--output-interval 0.2", ""},
		{"--checkpoint 0.3 " + filepath.Join(t.TempDir(), "c"), "the time between checkpoints, 0.3 s, is longer than the run of 0.2 s"},
		{"--checkpoint 0.2 " + filepath.Join(t.TempDir(), "c"), ""},
	} {
		o := complete(t, append(strings.Fields(c.args), "--stop-time", "0.2", system(t, "two-mass-ff"))...)
		if (c.says != "") != strings.Contains(o.warnings(), "longer than the run") || !strings.Contains(o.warnings(), c.says) {
			t.Errorf("%s: the warnings are %q, want %q", c.args, o.warnings(), c.says)
		}
	}
}

// A message about an unknown name suggests a similar one.
func TestSuggestions(t *testing.T) {
	path := system(t, "quarter-car-a")
	for args, says := range map[string]string{
		"run SYSTEM --set wheel.kw=1":                 `component wheel has no variable "kw"; did you mean "k_w"?`,
		"run SYSTEM --set whel.k_w=1":                 `"whel.k_w" names no component; did you mean "wheel.k_w"?`,
		"run SYSTEM --set whel.stiffness=1":           `did you mean "wheel"?`,
		"run SYSTEM --bond a=whel.F_c:chassis.v_c":    `did you mean "wheel.F_c"?`,
		"run SYSTEM --algorithm gaus-seidel":          `did you mean "gauss-seidel"?`,
		"run SYSTEM --preset gauss-seidel":            "there is no flag --preset; its job is done by --algorithm",
		"run SYSTEM --dt 1":                           "its job is done by --step-size",
		"run SYSTEM --rate whel=2":                    `did you mean "wheel"?`,
		"run SYSTEM --stateless whel":                 `did you mean "wheel"?`,
		"run SYSTEM --isolate-component whel":         `did you mean "wheel"?`,
		"run SYSTEM --quirk whel=stopTime":            `did you mean "wheel"?`,
		"run SYSTEM --quirk wheel=stoptime":           `did you mean "stopTime"?`,
		"run SYSTEM --record whel.z_w":                `did you mean "wheel.z_w"?`,
		"run SYSTEM --record whel.*":                  `did you mean "wheel.*"?`,
		"plot TABLE --select whel.z_w":                `did you mean "wheel.z_w"?`,
		"plot TABLE --select whel.?_w -o x.svg":       `did you mean "wheel.?_w"?`,
		"plot TABLE wheel.z_w -o x.svg":               "wheel.z_w is a variable of TABLE; to draw it: --select wheel.z_w",
		"report TABLE --select whel.* -o x.html":      `did you mean "wheel.*"?`,
		"compare TABLE TABLE --select whel.*":         `did you mean "wheel.*"?`,
		"compare TABLE TABLE --match whel.z_w=nobody": `has no variable whel.z_w; did you mean "wheel.z_w"?`,
	} {
		t.Run(args, func(t *testing.T) {
			dir := t.TempDir()
			table := filepath.Join(dir, "r.csv")
			write(t, table, "time,wheel.z_w,wheel.v_w,chassis.v_c\n0,0,0,0\n1,1,2,3\n")
			fill := strings.NewReplacer("SYSTEM", path, "TABLE", table)
			code, out := macrostepIn(t, dir, strings.Fields(fill.Replace(args))...)
			if code != 2 || !strings.Contains(out, fill.Replace(says)) {
				t.Errorf("exit code %d, want %q\n%s", code, says, out)
			}
		})
	}
}
