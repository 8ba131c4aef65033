package description

import (
	"reflect"
	"strings"
	"testing"
)

// An outline has what a user asks of an FMU of any version: interfaces, default experiment, variables with units from their
// types.
func TestReadOutline(t *testing.T) {
	for name, c := range map[string]struct {
		document   string
		version    string
		interfaces string
		stop       float64
		variables  []OutlineVariable
	}{
		"1.0": {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>" + `<fmiModelDescription fmiVersion="1.0" modelName="M" modelIdentifier="m" guid="g">
<TypeDefinitions><Type name="Length"><RealType unit="m"/></Type></TypeDefinitions>
<DefaultExperiment startTime="0" stopTime="3"/>
<ModelVariables>
<ScalarVariable name="x" valueReference="1" causality="output" description="H` + "\xf6" + `he"><Real declaredType="Length" start="1"/><DirectDependency/></ScalarVariable>
<ScalarVariable name="k" valueReference="2" variability="parameter"><Integer start="4"/></ScalarVariable>
<ScalarVariable name="i" valueReference="3" causality="internal"><Boolean/></ScalarVariable>
</ModelVariables><Implementation><CoSimulation_StandAlone><Capabilities/></CoSimulation_StandAlone></Implementation></fmiModelDescription>`,
			"1.0", "Co-Simulation", 3, []OutlineVariable{
				{Name: "x", Reference: "1", Causality: "output", Variability: "continuous", Type: "Real", DeclaredType: "Length", Unit: "m", Start: "1", Description: "Höhe"},
				{Name: "k", Reference: "2", Causality: "parameter", Variability: "fixed", Type: "Integer", Start: "4"},
				{Name: "i", Reference: "3", Causality: "local", Variability: "discrete", Type: "Boolean"},
			}},
		"2.0": {`<fmiModelDescription fmiVersion="2.0" modelName="M" guid="g"><ModelExchange modelIdentifier="m"/>
<TypeDefinitions><SimpleType name="Length"><Real unit="m"/></SimpleType></TypeDefinitions>
<ModelVariables><ScalarVariable name="x" valueReference="1" causality="input"><Real declaredType="Length" unit="mm"/><Annotations/></ScalarVariable></ModelVariables>
</fmiModelDescription>`, "2.0", "Model Exchange", 0, []OutlineVariable{
			{Name: "x", Reference: "1", Causality: "input", Variability: "continuous", Type: "Real", DeclaredType: "Length", Unit: "mm"}}},
		"3.0": {`<fmiModelDescription fmiVersion="3.0" modelName="M" instantiationToken="g"><ModelExchange/><CoSimulation/><ScheduledExecution/>
<TypeDefinitions><Float64Type name="Length" unit="m"/></TypeDefinitions>
<DefaultExperiment stopTime="1e1"/>
<ModelVariables>
<Float64 name="x" valueReference="1" causality="output" declaredType="Length" start="1 2"><Dimension start="2"/><Dimension valueReference="7"/></Float64>
<String name="s" valueReference="2" causality="parameter"><Start value="a b"/></String>
<Clock name="c" valueReference="3" causality="input"/>
</ModelVariables></fmiModelDescription>`, "3.0", "Model Exchange, Co-Simulation, Scheduled Execution", 10, []OutlineVariable{
			{Name: "x", Reference: "1", Causality: "output", Variability: "continuous", Type: "Float64", Size: "×2×#7", DeclaredType: "Length", Unit: "m", Start: "1 2"},
			{Name: "s", Reference: "2", Causality: "parameter", Variability: "fixed", Type: "String", Start: "a b"},
			{Name: "c", Reference: "3", Causality: "input", Variability: "discrete", Type: "Clock"}}},
	} {
		o, err := ReadOutline(strings.NewReader(c.document))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o.FMIVersion != c.version || o.Attributes["modelName"] != "M" || strings.Join(o.Interfaces, ", ") != c.interfaces {
			t.Errorf("%s: %+v", name, o)
		}
		if stop := o.Experiment.StopTime; (stop != nil) != (c.stop > 0) || stop != nil && *stop != c.stop {
			t.Errorf("%s: the stop time is %v", name, stop)
		}
		if !reflect.DeepEqual(o.Variables, c.variables) {
			t.Errorf("%s: variables\n%+v, want\n%+v", name, o.Variables, c.variables)
		}
	}
	for _, broken := range []string{"", "<a", "text", `<a b="&#0;"/>`} {
		if o, err := ReadOutline(strings.NewReader(broken)); err == nil && o.FMIVersion != "" {
			t.Errorf("%q: %+v", broken, o)
		}
	}
}

func FuzzReadOutline(f *testing.F) {
	f.Add(`<fmiModelDescription fmiVersion="3.0"><ModelVariables><Float64 name="x"><Dimension/></Float64></ModelVariables></fmiModelDescription>`)
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := ReadOutline(strings.NewReader(text)); (o == nil) == (err == nil) {
			t.Errorf("%v, %v", o, err)
		}
	})
}
