package ssp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// annotated is a system of one component with annotations in every place that
// settings may come from.
func annotated(component, system, experiment string) string {
	wrap := func(s string) string {
		if s == "" {
			return ""
		}
		return "<ssd:Annotations>" + s + "</ssd:Annotations>"
	}
	return head + `<ssd:System name="top"><ssd:Elements><ssd:Component name="c" source="c.fmu">` + wrap(component) +
		`</ssd:Component></ssd:Elements>` + wrap(system) + `</ssd:System><ssd:DefaultExperiment>` + wrap(experiment) +
		`</ssd:DefaultExperiment>` + tail
}

func annotation(kind, content string) string {
	return fmt.Sprintf("<ssc:Annotation type=%q>%s</ssc:Annotation>", kind, content)
}

// The macro step from each tool, in old and new forms (ssp 42–47).
func TestSteps(t *testing.T) {
	const simulation = "<oms:SimulationInformation>%s</oms:SimulationInformation>"
	fixed := fmt.Sprintf(simulation, `<oms:FixedStepMaster description="oms-ma" stepSize="0.002" relativeTolerance="0.0001"/>`)
	osp := annotation("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="1e-4"/></osp:Algorithm>`)
	oms := annotation("org.openmodelica", "<oms:Annotations>"+fixed+"</oms:Annotations>")
	mcx := annotation("com.avl.model.connect.ssp.task", `<mc:Task xmlns:mc="urn:mc" stepType="sequential" deltaTime="0.02"/>`)
	own := annotation(OwnType, `<ms:Settings version="1" stepSize="0.5"/>`)
	cases := []struct {
		name                          string
		component, system, experiment string
		want                          string // "value source; …"
		findings                      string // ids
		tolerance                     float64
	}{
		{"none", "", "", "", "", "[]", 0},
		{"OSP", "", "", osp, "0.0001 com.opensimulationplatform baseStepSize", "[]", 0},
		{"OSP, undeclared prefix", "", "", strings.ReplaceAll(osp, "osp:", "osq:"), "0.0001 com.opensimulationplatform baseStepSize", "[]", 0},
		{"OSP, other algorithm", "", "", annotation("com.opensimulationplatform", `<osp:Algorithm><osp:Ecco/></osp:Algorithm>`), "", "[SD21P]", 0},
		{"OSP, no number", "", "", annotation("com.opensimulationplatform", `<osp:Algorithm><osp:FixedStepAlgorithm baseStepSize="-1"/></osp:Algorithm>`), "", "[SD21P]", 0},
		{"OMSimulator", "", oms, "", "0.002 org.openmodelica stepSize", "[]", 1e-4},
		{"OMSimulator, old form", "", annotation("org.openmodelica", fixed), "", "0.002 org.openmodelica stepSize", "[]", 1e-4},
		{"OMSimulator, old namespace", "", strings.NewReplacer("ssc:Annotation", "ssd:Annotation").Replace(oms), "", "0.002 org.openmodelica stepSize", "[]", 1e-4},
		{"OMSimulator, version 3", "", annotation("org.openmodelica", `<oms:Annotations><oms:SimulationInformation name="s" method="oms_ma" fixedStepSize="0.003"/></oms:Annotations>`), "", "0.003 org.openmodelica fixedStepSize", "[]", 0},
		{"OMSimulator, variable steps", "", annotation("org.openmodelica", fmt.Sprintf(simulation, `<oms:VariableStepMaster description="oms-mav" initialStepSize="1e-6" relativeTolerance="1e-3"/>`)), "", "1e-06 org.openmodelica initialStepSize", "[SD21P]", 1e-3},
		{"OMSimulator, solver", "", annotation("org.openmodelica", fmt.Sprintf(simulation, `<oms:VariableStepSolver description="cvode" initialStepSize="1e-6"/>`)), "", "", "[SD21]", 0},
		{"OMSimulator, result file", "", "", annotation("org.openmodelica", fmt.Sprintf(simulation, "")), "", "[]", 0},
		{"OpenMCx", "", "", mcx, "0.02 com.avl.model.connect.ssp.task deltaTime", "[]", 0},
		{"all foreign", "", oms, mcx + osp, "0.0001 com.opensimulationplatform baseStepSize; 0.002 org.openmodelica stepSize; 0.02 com.avl.model.connect.ssp.task deltaTime", "[SD21P SD21P]", 1e-4},
		{"own first", "", oms, osp + own, "0.5 own annotation; 0.0001 com.opensimulationplatform baseStepSize; 0.002 org.openmodelica stepSize", "[]", 1e-4},
		{"hint of a component", annotation("com.opensimulationplatform", `<osp:StepSizeHint value="0.1"/>`), "", "", "", "[SD21P]", 0},
		{"unknown, several times", annotation("org.x", ""), annotation("org.x", "") + annotation("org.y", ""), "", "", "[SD21 SD21]", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, l := sound(t, annotated(c.component, c.system, c.experiment), nil, fakes{"c": {}})
			var got []string
			for _, s := range n.Step {
				got = append(got, fmt.Sprintf("%v %s", s.Value, s.Source))
				if s.Place.Line == 0 {
					t.Error("no line")
				}
			}
			if g := strings.Join(got, "; "); g != c.want {
				t.Errorf("steps %q, want %q", g, c.want)
			}
			ids := []string{}
			for _, f := range l.Findings {
				ids = append(ids, f.ID)
			}
			if fmt.Sprint(ids) != c.findings {
				t.Errorf("findings %v, want %s", l.Findings, c.findings)
			}
			if (n.Tolerance != nil) != (c.tolerance != 0) || n.Tolerance != nil && *n.Tolerance != c.tolerance {
				t.Errorf("tolerance %v, want %v", n.Tolerance, c.tolerance)
			}
		})
	}
}

func TestOwnSettings(t *testing.T) {
	own := annotation(OwnType, `
<ms:Settings version="1" algorithm="explicit" stepSize="1e-3" tolerance="1e-4">
  <ms:Param key="order" value="2"/>
  <ms:Param key="note" value=""/>
  <ms:Stateless component="c"/>
  <ms:Bond name="axle" a="c.v" b="c.F"/>
  <ms:Rate component="c" ratio="10"/>
</ms:Settings>`)
	n, l := sound(t, annotated("", "", own), nil, fakes{"c": {}})
	o := n.Own
	if len(l.Findings) > 0 || o.Algorithm != "explicit" || *o.StepSize != 1e-3 || *o.Tolerance != 1e-4 {
		t.Errorf("settings %+v, findings %v", o, l.Findings)
	}
	if len(o.Params) != 2 || o.Params[0].Key != "order" || o.Params[0].Value != "2" || o.Params[1].Value != "" {
		t.Errorf("params %+v", o.Params)
	}
	if len(o.Bonds) != 1 || o.Bonds[0].Name != "axle" || o.Bonds[0].A != "c.v" || o.Bonds[0].B != "c.F" {
		t.Errorf("bonds %+v", o.Bonds)
	}
	if len(o.Rates) != 1 || o.Rates[0].Component != "c" || o.Rates[0].Ratio != 10 {
		t.Errorf("rates %+v", o.Rates)
	}
	if fmt.Sprint(o.Stateless) != "[c]" || !n.Components[0].Stateless {
		t.Errorf("stateless %v", o.Stateless)
	}
	for mark, want := range map[string]bool{`stateless="true"`: true, `stateless="0"`: false, "": false} {
		n, _ := sound(t, annotated(annotation(OwnType, "<ms:Component "+mark+"/>"), "", ""), nil, fakes{"c": {}})
		if n.Components[0].Stateless != want || (len(n.Own.Stateless) == 1) != want {
			t.Errorf("%q: stateless %v", mark, n.Components[0].Stateless)
		}
	}
}

// Everything that the annotation does not know is an error, with its line.
func TestOwnStrict(t *testing.T) {
	const good = `<ms:Settings version="1">
</ms:Settings>`
	for _, c := range []struct{ component, experiment, message string }{
		{"", "", "one element Settings"},
		{"", good + good, "one element Settings"},
		{"", `<ms:settings version="1"/>`, "one element Settings"},
		{"", `<Settings version="1"/>`, "one element Settings"},
		{"", `<ms:Settings/>`, `"version" is missing`},
		{"", `<ms:Settings version="1.0"/>`, `version "1.0" is not known`},
		{"", `<ms:Settings version="1" tolerance="small"/>`, "no number above 0"},
		{"", `<ms:Settings version="1"><ms:Param key="k"/></ms:Settings>`, `"value" is missing`},
		{"", `<ms:Settings version="1"><ms:Param key="" value="1"/></ms:Settings>`, `"key" is missing or empty`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1" unit="m"/></ms:Settings>`, `"unit" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"><ms:X/></ms:Param></ms:Settings>`, `"ms:X" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"/><ms:Param key="a" value="2"/></ms:Settings>`, `"a" is given twice`},
		{"", `<ms:Settings version="1"><ms:Bond name="b" a="x"/></ms:Settings>`, `"b" is missing`},
		{"", `<ms:Settings version="1"><ms:Rate component="c" ratio="1.5"/></ms:Settings>`, "no whole number above 0"},
		{"", `<ms:Settings version="1"><ms:Rate component="d" ratio="2"/></ms:Settings>`, `no component "d"`},
		{"<ms:Component stateless='perhaps'/>", good, `neither "true" nor "false"`},
		{"<ms:Component state='1'/>", good, `"state" is not known`},
		{"<ms:Component><ms:X/></ms:Component>", good, `"ms:X" is not known`},
		{"<ms:Settings version='1'/>", good, "one element Component"},
	} {
		component := ""
		if c.component != "" {
			component = annotation(OwnType, c.component)
		}
		_, l, err := flatten(t, annotated(component, "", annotation(OwnType, c.experiment)), nil, fakes{"c": {}}, false)
		if !diag.Has(err, "SD21O") || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s%s: error %v, want SD21O with %q", c.component, c.experiment, err, c.message)
		}
		for _, f := range l.Findings {
			if f.Line == 0 || f.Path == "" || f.Remedy == "" {
				t.Errorf("%s: a finding without place or remedy: %+v", c.experiment, f)
			}
		}
	}
	twice := annotation(OwnType, good) + annotation(OwnType, good)
	if _, _, err := flatten(t, annotated("", "", twice), nil, fakes{"c": {}}, false); !diag.Has(err, "SD21O") {
		t.Errorf("two annotations: error %v, want SD21O", err)
	}
}
