package ssp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// A name that a list has twice is an error only where two different values reach one
// variable: in a set, in a mapping, at a connector; and so is a second connection only
// where it differs from the first.
func TestTwice(t *testing.T) {
	const gain = `<ssv:Parameter name="gain"><ssv:Real value="3" unit="m"/></ssv:Parameter>`
	const toK = `<ssm:MappingEntry source="gain" target="a.k"><ssc:LinearTransformation factor="10"/></ssm:MappingEntry>`
	const toLevel = `<ssm:MappingEntry source="height" target="level"/>`
	const wire = `<ssd:Connection startElement="a" startConnector="y" endElement="inner" endConnector="x"/>`
	const outer = `<ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="o"><ssv:Parameters><ssv:Parameter name="a.k"><ssv:Real value="7" unit="m"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
  <ssd:Elements>`
	again := func(text, more string) [2]string { return [2]string{text, text + more} }
	for _, c := range []struct {
		name    string
		changes [][2]string
		fault   string  // rule of the error, "" if there is none
		k, u    float64 // of a
	}{
		{"equal", [][2]string{again(gain, gain)}, "", 30, 4},
		{"equal in another unit", [][2]string{again(gain, `<ssv:Parameter name="gain"><ssv:Real value="3000" unit="mm"/></ssv:Parameter>`), again("<ssv:Units>", `<ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>`)}, "", 30, 4},
		{"different", [][2]string{again(gain, strings.Replace(gain, `"3"`, `"5"`, 1))}, "SD16D", 0, 0},
		{"different in the unit", [][2]string{again(gain, strings.Replace(gain, `"m"`, `"mm"`, 1)), again("<ssv:Units>", `<ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit>`)}, "SD16D", 0, 0},
		{"different at a connector", [][2]string{again(gain, strings.Replace(strings.Replace(gain, "gain", "height", 1), `"3"`, `"5"`, 1))}, "SD16D", 0, 0},
		{"different, nothing takes it", [][2]string{{gain, gain + strings.Replace(strings.Replace(gain, "gain", "other", 1), `"3"`, `"5"`, 1) + strings.Replace(gain, "gain", "other", 1)}}, "", 30, 4},
		{"different, but a later binding counts", [][2]string{again(gain, strings.Replace(gain, `"3"`, `"5"`, 1)), {"</ssd:ParameterBindings>\n  <ssd:Elements>", outer}}, "", 7, 4},
		{"target", [][2]string{again(toK, toK)}, "", 30, 4},
		{"target with another value", [][2]string{again(toK, strings.Replace(toK, `"10"`, `"11"`, 1))}, "SD15", 0, 0},
		{"target of another source", [][2]string{again(toLevel, strings.Replace(toLevel, "height", "gain", 1))}, "SD15", 0, 0},
		{"target, once without source", [][2]string{again(toK, toK+strings.Replace(toK, `source="gain"`, `source=""`, 1))}, "", 30, 4},
		{"connection", [][2]string{again(wire, wire)}, "", 30, 4},
		{"connection with another factor", [][2]string{again(wire, strings.Replace(wire, "/>", `><ssc:LinearTransformation factor="2"/></ssd:Connection>`, 1))}, "SD9", 0, 0},
		{"item of another number", [][2]string{again(`<ssc:Item name="park" value="0"/>`, `<ssc:Item name="park" value="2"/>`)}, "SD1", 0, 0},
		{"enumeration", [][2]string{again("<ssd:Enumerations>", `<ssc:Enumeration name="gear"><ssc:Item name="drive" value="1"/><ssc:Item name="park" value="0"/></ssc:Enumeration>`)}, "", 30, 4},
	} {
		files := map[string]string{ssp.DocumentName: Base, "set.ssv": BaseSet, "map.ssm": BaseMap}
		for _, change := range c.changes {
			found := false
			for name, text := range files {
				if strings.Count(text, change[0]) == 1 {
					files[name], found = strings.Replace(text, change[0], change[1], 1), true
				}
			}
			if !found {
				t.Fatalf("%s: no %s", c.name, change[0])
			}
		}
		for _, strict := range []bool{false, true} {
			n, l, err := Flatten(t, files[ssp.DocumentName], files, baseFakes(), strict)
			isTwice := func(f diag.Finding) bool { return f.ID == ssp.RuleTwice.ID }
			if c.fault == "" && !slices.ContainsFunc(l.Findings, isTwice) {
				t.Errorf("%s: findings %v, want %s", c.name, l.Findings, ssp.RuleTwice.ID)
			}
			if (err != nil) != (c.fault != "") || c.fault != "" && !diag.Has(err, c.fault) {
				t.Errorf("%s, strict %t: error %v, want %q", c.name, strict, err, c.fault)
				continue
			}
			if err == nil {
				if s := Settings(n); s["a.k"].Value.Real != c.k || s["a.u"].Value.Real != c.u || len(n.Connections) != 1 {
					t.Errorf("%s: settings %+v, connections %+v", c.name, n.Settings, n.Connections)
				}
			}
		}
	}
}
