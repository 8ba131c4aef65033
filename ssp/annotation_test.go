package ssp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// bonded is a system of two components with settings, bondFakes its FMUs.
func bonded(experiment string) string {
	return strings.Replace(Annotated("", "", experiment), "</ssd:Elements>", `<ssd:Component name="d" source="d.fmu"/></ssd:Elements>`, 1)
}

var bondFakes = Fakes{
	"c": {
		{Name: "F", Type: ssp.Real, Causality: "output"}, {Name: "v", Type: ssp.Real, Causality: "output"},
		{Name: "u", Type: ssp.Real, Causality: "input"}, {Name: "n", Type: ssp.Integer, Causality: "output"},
	},
	"d": {{Name: "v", Type: ssp.Real, Causality: "output"}, {Name: "sub.F[2]", Type: ssp.Real, Causality: "output"}},
}

func TestOwnSettings(t *testing.T) {
	own := Annotate(ssp.OwnType, `
<ms:Settings version="1" algorithm="explicit" stepSize="1e-3" tolerance="1e-4">
  <ms:Param key="order" value="2"/>
  <ms:Param key="note" value=""/>
  <ms:Stateless component="c"/>
  <ms:Bond name="axle" energyScale="750" tolerance="1e-5"><ms:Pair effort="c.F" flow="d.v" opposed="true"/></ms:Bond>
  <ms:Bond name="tip">
    <ms:Pair effort="c.F" flow="d.v"/>
    <ms:Pair effort="d.sub.F[2]" flow="c.v" opposed="0"/>
  </ms:Bond>
  <ms:Rate component="c" ratio="10"/>
</ms:Settings>`)
	n, l := Sound(t, bonded(own), nil, bondFakes)
	o := n.Own
	if len(l.Findings) > 0 || o.Algorithm != "explicit" || *o.StepSize != 1e-3 || *o.Tolerance != 1e-4 {
		t.Errorf("settings %+v, findings %v", o, l.Findings)
	}
	if len(o.Params) != 2 || o.Params[0].Key != "order" || o.Params[0].Value != "2" || o.Params[1].Value != "" {
		t.Errorf("params %+v", o.Params)
	}
	var bonds []string
	for _, b := range o.Bonds {
		text := b.Name
		if b.EnergyScale != nil {
			text += fmt.Sprint(" E0=", *b.EnergyScale)
		}
		if b.Tolerance != nil {
			text += fmt.Sprint(" r=", *b.Tolerance)
		}
		for _, p := range b.Pairs {
			text += fmt.Sprintf(" %s:%s %v", p.Effort, p.Flow, p.Opposed)
			if p.Place.Line < b.Place.Line || b.Place.Line == 0 {
				t.Errorf("places %+v, %+v", b.Place, p.Place)
			}
		}
		bonds = append(bonds, text)
	}
	if want := []string{"axle E0=750 r=1e-05 c.F:d.v true", "tip c.F:d.v false d.sub.F[2]:c.v false"}; !slices.Equal(bonds, want) {
		t.Errorf("bonds %q, want %q", bonds, want)
	}
	if len(o.Rates) != 1 || o.Rates[0].Component != "c" || o.Rates[0].Ratio != 10 || o.Rates[0].Over != 1 {
		t.Errorf("rates %+v", o.Rates)
	}
	if fmt.Sprint(o.Stateless) != "[c]" || !n.Components[0].Stateless {
		t.Errorf("stateless %v", o.Stateless)
	}
	for mark, want := range map[string]bool{`stateless="true"`: true, `stateless="0"`: false, "": false} {
		n, _ := Sound(t, Annotated(Annotate(ssp.OwnType, "<ms:Component "+mark+"/>"), "", ""), nil, Fakes{"c": {}})
		if n.Components[0].Stateless != want || (len(n.Own.Stateless) == 1) != want {
			t.Errorf("%q: stateless %v", mark, n.Components[0].Stateless)
		}
	}
}

// Everything that the annotation does not know is an error, with its line.
func TestOwnStrict(t *testing.T) {
	const good = `<ms:Settings version="1">
</ms:Settings>`
	refused := func(document string, vars Fakes, message string) {
		t.Helper()
		for _, f := range Refused(t, document, nil, vars, "SD21O", message).Findings {
			if f.Line == 0 || f.Path == "" || f.Remedy == "" {
				t.Errorf("a finding without place or remedy: %+v", f)
			}
		}
	}
	for _, c := range []struct{ component, experiment, message string }{
		{"", "", "one element Settings"},
		{"", `<Settings version="1"/>`, "one element Settings"},
		{"", `<ms:Settings/>`, `"version" is missing`},
		{"", `<ms:Settings version="1.0"/>`, `version "1.0" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="k"/></ms:Settings>`, `"value" is missing`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1" unit="m"/></ms:Settings>`, `"unit" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"><ms:X/></ms:Param></ms:Settings>`, `"ms:X" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"/><ms:Param key="a" value="2"/></ms:Settings>`, `"a" is given twice`},
		{"", `<ms:Settings version="1"><ms:Rate component="c" ratio="1.5"/></ms:Settings>`, "not a whole number above 0"},
		{"", `<ms:Settings version="1"><ms:Rate component="c" ratio="2"/><ms:Rate component="c" ratio="1/2"/></ms:Settings>`, `component "c" has two rates`},
		{"", `<ms:Settings version="1"><ms:Rate component="d" ratio="2"/></ms:Settings>`, `no component "d"`},
		{"<ms:Component stateless='perhaps'/>", good, `neither "true" nor "false"`},
		{"<ms:Component><ms:X/></ms:Component>", good, `"ms:X" is not known`},
	} {
		component := ""
		if c.component != "" {
			component = Annotate(ssp.OwnType, c.component)
		}
		refused(Annotated(component, "", Annotate(ssp.OwnType, c.experiment)), Fakes{"c": {}}, c.message)
	}
	for _, c := range []struct{ bond, message string }{
		{`<ms:Bond><ms:Pair effort="c.F" flow="d.v"/></ms:Bond>`, `"name" is missing`},
		{`<ms:Bond name="b"/>`, "no Pair"},
		{`<ms:Bond name="b" a="c.u" b="d.v"><ms:Pair effort="c.F" flow="d.v"/></ms:Bond>`, `"a" is not known`},
		{`<ms:Bond name="b" energyScale="0"><ms:Pair effort="c.F" flow="d.v"/></ms:Bond>`, "not a number above 0"},
		{`<ms:Bond name="a,b"><ms:Pair effort="c.F" flow="d.v"/></ms:Bond>`, "remove commas"},
		{`<ms:Bond name="b"><ms:Pair effort="c.F" flow="d.v"><ms:X/></ms:Pair></ms:Bond>`, `"ms:X" is not known`},
		{`<ms:Bond name="b"><ms:Pair effort="c.F"/></ms:Bond>`, `"flow" is missing`},
		{`<ms:Bond name="b"><ms:Pair effort="c.F" flow="d.v" opposed="-1"/></ms:Bond>`, `"opposed"`},
		{`<ms:Bond name="b"><ms:Pair effort="c.F" flow="d.v"/></ms:Bond><ms:Bond name="b"><ms:Pair effort="c.F" flow="d.v"/></ms:Bond>`, `two bonds are called "b"`},
		{`<ms:Bond name="b"><ms:Pair effort="c.F" flow="e.v"/></ms:Bond>`, `"e.v" is not a Real output, component.variable: there is no such component`},
		{`<ms:Bond name="b"><ms:Pair effort="c.G" flow="d.v"/></ms:Bond>`, `component "c" has no such variable`},
		{`<ms:Bond name="b"><ms:Pair effort="c.u" flow="d.v"/></ms:Bond>`, "its causality is input"},
		{`<ms:Bond name="b"><ms:Pair effort="c.F" flow="c.v"/></ms:Bond>`, "outputs of the same component"},
	} {
		refused(bonded(Annotate(ssp.OwnType, "<ms:Settings version='1'>\n"+c.bond+"</ms:Settings>")), bondFakes, c.message)
	}
	refused(Annotated("", "", Annotate(ssp.OwnType, good)+Annotate(ssp.OwnType, good)), Fakes{"c": {}}, "more than one annotation")
}
