package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// car writes the quarter car with other annotations into a folder: at component
// wheel, at the outermost system, at the experiment, with further files.
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
	text = text[:begin] + `<ssd:DefaultExperiment startTime="0" stopTime="0.2">` + wrap(experiment) + "</ssd:DefaultExperiment>" + text[end:]
	text = strings.Replace(text, "<ssd:SystemStructureDescription", `<ssd:SystemStructureDescription xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" `+
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

// Our annotation says everything that the flags say; flags beat it.
func TestSettings(t *testing.T) {
	dir := car(t, annotation(ownType, `<ms:Component isolate="true" quirks="noTerminate"/>`), "", annotation(ownType,
		`<ms:Settings version="1" algorithm="gauss-seidel" stepSize="0.002" tolerance="1e-5" monitorEnergy="true" energySpike="7" workers="2"
		isolation="auto" stepTimeout="30" memoryLimit="4000" outputInterval="0.01" history="before.csv">
		<ms:Param key="order" value="1"/><ms:Param key="delivery" value="held"/><ms:Record match="wheel.*_w"/><ms:Record match="chassis.F_c"/><ms:Rate component="wheel" ratio="2"/>
		<ms:Bond name="axle"><ms:Pair effort="wheel.F_c" flow="chassis.v_c" opposed="true"/></ms:Bond></ms:Settings>`),
		"before.csv", "time,wheel.F_c,chassis.v_c\n-0.002,0,0\n-0.001,0,0\n")
	o := complete(t, dir)
	m := o.manifest
	if m.Algorithm != "gauss-seidel" || m.StepSize.Value != 0.002 || m.Parameters["order"] != "1" || m.Bonds["axle"].MeanAbsResidualPower == 0 {
		t.Errorf("%s, %+v, %v, %v", m.Algorithm, m.StepSize, m.Parameters, m.Bonds)
	}
	if o.rows != 21 || m.FMUSteps["wheel"] != 2*m.FMUSteps["chassis"] {
		t.Errorf("%d rows, steps %v", o.rows, m.FMUSteps)
	}
	for _, name := range []string{"wheel.z_w", "wheel.v_w", "chassis.F_c"} {
		o.column(t, name)
	}
	if _, there := o.columns["chassis.z_c"]; there {
		t.Error("chassis.z_c is recorded")
	}
	for _, f := range m.FMUs {
		if (f.Isolated != "") != (f.Component == "wheel") {
			t.Errorf("%s isolated: %q", f.Component, f.Isolated)
		}
	}
	all := map[string]string{"algorithm": ownText, "param order": ownText, "param delivery": ownText, "monitor-energy": ownText, "energy-spike": ownText,
		"workers": ownText, "isolate": ownText, "step-timeout": ownText, "memory-limit": ownText, "output-interval": ownText, "history": ownText,
		"record": ownText, "rate wheel": ownText, "bond axle": ownText, "quirk wheel noTerminate": ownText, "isolate-component wheel": ownText}
	expectSources(t, o, all)

	o = complete(t, dir, "--algorithm", "gauss-seidel", "--param", "order=0", "--step-size", "0.001", "--record", "chassis.z_c", "--output-interval", "0.1",
		"--rate", "wheel=1", "--workers", "1", "--isolate", "never", "--bond", "other=wheel.F_c:chassis.v_c", "--energy-spike", "0")
	if m := o.manifest; m.Parameters["order"] != "0" || m.Parameters["delivery"] != "held" || m.StepSize.Value != 0.001 || m.FMUSteps["wheel"] != m.FMUSteps["chassis"] {
		t.Errorf("%v, %+v, %v", m.Parameters, m.StepSize, m.FMUSteps)
	}
	if o.rows != 3 {
		t.Errorf("%d rows", o.rows)
	}
	for _, f := range []string{"algorithm", "record", "output-interval", "workers", "isolate", "energy-spike"} {
		all[f] = "--" + f
	}
	all["param order"], all["rate wheel"], all["bond other"] = "--param", "--rate", "--bond"
	delete(all, "bond axle")
	expectSources(t, o, all)
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

// A table of inputs goes with the document.
func TestSettingsInput(t *testing.T) {
	dir := car(t, "", "", annotation(ownType, `<ms:Settings version="1" stepSize="0.01" input="signals/push.csv"/>`))
	text := read(t, filepath.Join(dir, "SystemStructure.ssd"))
	cut := `<ssd:Connection startElement="wheel" startConnector="F_c" endElement="chassis" endConnector="F_c"/>`
	write(t, filepath.Join(dir, "SystemStructure.ssd"), []byte(strings.Replace(string(text), cut, "", 1)))
	if o := run(t, dir); o.code == 0 || !strings.Contains(o.output, `the table "signals/push.csv" cannot be read`) {
		t.Errorf("a missing table: exit code %d\n%s", o.code, o.output)
	}
	mkdir(t, filepath.Join(dir, "signals"))
	write(t, filepath.Join(dir, "signals", "push.csv"), "time,chassis.F_c\n0,0\n1,-400\n")
	o := complete(t, dir, "--record", "chassis.F_c")
	if f := o.column(t, "chassis.F_c"); f[10] < -41 || f[10] > -39 {
		t.Errorf("the force at 0.1 s is %g", f[10])
	}
	expectSources(t, o, map[string]string{"input": ownText, "record": "--record"})
}

// Connectors of the outermost system take values and inputs, which go on over their
// connections with units and transformations.
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
	for args, want := range map[string]string{
		"--set|pull=1":                       "connectors of the system are push, mass",
		"--set|mass=much":                    "give a finite number",
		"--input|" + table + "|--set|push=1": "chassis.F_c is given from outside: the value set has no effect",
	} {
		o := run(t, append([]string{dir, "--step-size", "0.01"}, strings.Split(args, "|")...)...)
		if !strings.Contains(o.output+o.warnings(), want) {
			t.Errorf("%s: exit code %d\n%s", args, o.code, o.output)
		}
	}
}

// What other tools say counts where our annotation says nothing, and is told.
func TestForeignSettings(t *testing.T) {
	t.Parallel()
	simulation := func(s string) string {
		return annotation("org.openmodelica", "<oms:Annotations>"+s+"</oms:Annotations>")
	}
	const master = `<oms:SimulationInformation><oms:VariableStepMaster description="oms-mav" initialStepSize="1e-4" minimumStepSize="1e-6" maximumStepSize="1e-2" relativeTolerance="1e-3"/></oms:SimulationInformation>`
	filter := `<oms:SimulationInformation resultFile="r.mat" loggingInterval="0.05" bufferSize="10" signalFilter="%s"/>`
	oms := map[string]string{"algorithm": "org.openmodelica oms-mav (", "param control.h0": "org.openmodelica initialStepSize", "param control.h-min": "org.openmodelica minimumStepSize",
		"param control.h-max": "org.openmodelica maximumStepSize", "param control.rtol": "org.openmodelica relativeTolerance", "output-interval": "org.openmodelica loggingInterval"}
	with := func(m map[string]string, pairs ...string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
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
		{"OMSimulator, a pattern", "", simulation(master), simulation(fmt.Sprintf(filter, `.*wheel\.[vz]_w`)), nil, "richardson", 1e-4, 3,
			with(oms, "record", "org.openmodelica signalFilter"), "algorithm richardson is taken from org.openmodelica oms-mav"},
		{"OMSimulator, a file", "", simulation(master), simulation(fmt.Sprintf(filter, `signalFilter.xml`)), []string{"signalFilter.xml", names}, "richardson", 1e-4, 2,
			with(oms, "record", "org.openmodelica signalFilter"), "1 names are no variables of FMUs"},
		{"OMSimulator, everything", "", "", simulation(fmt.Sprintf(filter, `.*`)), nil, "explicit", 1e-3, 0, map[string]string{"output-interval": "org.openmodelica"}, "selects everything and has no effect"},
		{"OSP", annotation("com.opensimulationplatform", hint), "", annotation("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="0.002" numWorkerThreads="2"/></osp:Algorithm>`), nil,
			"explicit", 2e-3, 0, map[string]string{"rate wheel": "com.opensimulationplatform StepSizeHint"}, "numWorkerThreads"},
		{"OpenMCx", annotation("com.avl.model.connect.ssp.component", `<mc:Component xmlns:mc="urn:mc" deltaTime="0.001"/>`), "", annotation("com.avl.model.connect.ssp.task", task), nil,
			"gauss-seidel", 4e-3, 0, map[string]string{"algorithm": "com.avl.model.connect.ssp.task stepType", "rate wheel": "com.avl.model.connect.ssp.component deltaTime"}, "the macro step of 0.004 s is taken"},
		{"ours first", annotation("com.opensimulationplatform", hint), simulation(master), simulation(fmt.Sprintf(filter, `.*wheel\.[vz]_w`)) + annotation(ownType,
			`<ms:Settings version="1" algorithm="explicit" stepSize="0.01" outputInterval="0.1"><ms:Record match="chassis.*"/><ms:Rate component="wheel" ratio="3"/></ms:Settings>`), nil,
			"explicit", 1e-2, 6, map[string]string{"algorithm": ownText, "output-interval": ownText, "record": ownText, "rate wheel": ownText}, ""},
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
			if c.name == "ours first" && strings.Count(o.warnings(), " left out") < 4 {
				t.Errorf("warnings %q", o.manifest.Warnings)
			}
		})
	}
}
