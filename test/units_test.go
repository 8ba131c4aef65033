package test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// units are defined in both FMUs. The values below are worked out by hand from these definitions: base = factor·value
// + offset (fmi2 15).
const units = `<UnitDefinitions>
    <Unit name="K"><BaseUnit K="1"/><DisplayUnit name="degC" offset="-273.15"/></Unit>
    <Unit name="degC"><BaseUnit K="1" offset="273.15"/><DisplayUnit name="K" offset="273.15"/></Unit>
    <Unit name="degF"><BaseUnit K="1" factor="0.5555555555555556" offset="255.3722222222222"/></Unit>
    <Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>
    <Unit name="km/h"><BaseUnit m="1" s="-1" factor="0.2777777777777778"/></Unit>
    <Unit name="rad/s"><BaseUnit s="-1" rad="1"/></Unit>
    <Unit name="rpm"><BaseUnit s="-1" rad="1" factor="0.10471975511965977"/></Unit>
    <Unit name="Hz"><BaseUnit s="-1"/></Unit>
  </UnitDefinitions>
  <LogCategories>`

// withUnits writes linear with attributes on the Reals of some variables.
func withUnits(t *testing.T, path string, attributes map[string]string) {
	t.Helper()
	all := entries(t, fmu(t, "linear"))
	at := slices.IndexFunc(all, func(p part) bool { return p.Name == "modelDescription.xml" })
	text := strings.Replace(string(all[at].data), "<LogCategories>", units, 1)
	for name, value := range attributes {
		before, after, ok := strings.Cut(text, fmt.Sprintf("name=%q", name))
		head, rest, real := strings.Cut(after, "<Real")
		if !ok || !real {
			t.Fatalf("there is no Real %s", name)
		}
		text = before + fmt.Sprintf("name=%q", name) + head + "<Real " + value + rest
	}
	all[at].data = []byte(text)
	pack(t, path, all...)
}

// unitSystem couples source and sink, both linear with units on variables; extra is added to the component source.
func unitSystem(t *testing.T, source, sink map[string]string, extra, lines string) string {
	t.Helper()
	dir := t.TempDir()
	withUnits(t, filepath.Join(dir, "source.fmu"), source)
	withUnits(t, filepath.Join(dir, "sink.fmu"), sink)
	from := member{"source", "source", "u[1]", "y[1] y[2] y[3] y[4]"}.component("")
	from = strings.Replace(from, "</ssd:Component>", extra+"</ssd:Component>", 1)
	to := member{"sink", "sink", "u[1] u[2] u[3] u[4]", "y[1]"}.component("")
	path := filepath.Join(dir, "units.ssd")
	write(t, path, document("0.01", from+to, lines))
	return path
}

// Units with factors and offsets, relative quantities and display units, through documents and FMUs, against values
// worked out by hand.
func TestUnits(t *testing.T) {
	t.Parallel()
	const fourLines = "source.y[1] → sink.u[1]\nsource.y[2] → sink.u[2]\nsource.y[3] → sink.u[3]\nsource.y[4] → sink.u[4]"
	for _, c := range []struct {
		name         string
		source, sink map[string]string
		start        [4]float64 // outputs of the source
		want         [4]float64 // inputs of the sink
	}{
		{
			"factors and offsets",
			map[string]string{"y[1]": `unit="degC"`, "y[2]": `unit="km/h"`, "y[3]": `unit="rpm"`, "y[4]": `unit="degC"`},
			map[string]string{"u[1]": `unit="K"`, "u[2]": `unit="m/s"`, "u[3]": `unit="rad/s"`, "u[4]": `unit="degF"`},
			[4]float64{20, 36, 60, 100}, [4]float64{293.15, 10, 2 * math.Pi, 212},
		}, {
			"the other way",
			map[string]string{"y[1]": `unit="K"`, "y[2]": `unit="m/s"`, "y[3]": `unit="rad/s"`, "y[4]": `unit="degF"`},
			map[string]string{"u[1]": `unit="degC"`, "u[2]": `unit="km/h"`, "u[3]": `unit="rpm"`, "u[4]": `unit="degC"`},
			[4]float64{293.15, 10, math.Pi, 14}, [4]float64{20, 36, 30, -10},
		}, {
			"relative quantities",
			map[string]string{"y[1]": `unit="degC" relativeQuantity="true"`, "y[2]": `unit="degF" relativeQuantity="true"`,
				"y[3]": `unit="K" relativeQuantity="true"`, "y[4]": `unit="km/h" relativeQuantity="true"`},
			map[string]string{"u[1]": `unit="K" relativeQuantity="true"`, "u[2]": `unit="K" relativeQuantity="true"`,
				"u[3]": `unit="degF" relativeQuantity="true"`, "u[4]": `unit="m/s" relativeQuantity="true"`},
			[4]float64{20, 18, 10, 36}, [4]float64{20, 10, 18, 10},
		}, {
			// Values are always in the unit, never in the display unit.
			"display units",
			map[string]string{"y[1]": `unit="K" displayUnit="degC"`, "y[2]": `unit="degC" displayUnit="K"`,
				"y[3]": `unit="K" displayUnit="degC"`, "y[4]": `unit="degC" displayUnit="K"`},
			map[string]string{"u[1]": `unit="K"`, "u[2]": `unit="degC"`, "u[3]": `unit="degC" displayUnit="K"`,
				"u[4]": `unit="K" displayUnit="degC"`},
			[4]float64{300, 20, 300, 20}, [4]float64{300, 20, 26.85, 293.15},
		}, {
			"a unit on one side only",
			map[string]string{"y[1]": `unit="degC"`, "y[2]": ``, "y[3]": `unit="rpm"`, "y[4]": ``},
			map[string]string{"u[1]": ``, "u[2]": `unit="m/s"`, "u[3]": ``, "u[4]": ``},
			[4]float64{20, 36, 60, 7}, [4]float64{20, 36, 60, 7},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{unitSystem(t, c.source, c.sink, "", fourLines), "--step-size", "0.01"}
			for i, v := range c.start {
				args = append(args, "--set", fmt.Sprintf("source.C[%d,%d]=1", i+1, i+1), "--set", fmt.Sprintf("source.x0[%d]=%v", i+1, v))
			}
			o := complete(t, args...)
			for i, want := range c.want {
				for n, got := range o.column(t, fmt.Sprintf("sink.u[%d]", i+1)) {
					if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
						t.Errorf("point %d: %v becomes %.17g, want %v", n, c.start[i], got, want)
					}
				}
			}
		})
	}
}

// Units are converted in loops as everywhere: with y in °C of the source and u
// in K of the sink, y_sink = u_sink/2 in K and u_source in °C,
// y_source = 20 − 0.5 u_source: by hand
// u_source = (y_source + 273.15)/2 − 273.15 = 20·0.5 − 0.25 u_source − 136.575,
// so u_source = −126.575/1.25 = −101.26 and y_source = 70.63.
func TestUnitsInLoop(t *testing.T) {
	path := unitSystem(t, map[string]string{"y[1]": `unit="degC"`, "u[1]": `unit="degC"`},
		map[string]string{"u[1]": `unit="K"`, "y[1]": `unit="K"`},
		"", "source.y[1] → sink.u[1]\nsink.y[1] → source.u[1]")
	o := complete(t, path, "--step-size", "0.01", "--set", "source.C[1,1]=1", "--set", "source.x0[1]=20",
		"--set", "source.D[1,1]=-0.5", "--set", "sink.D[1,1]=0.5")
	for name, want := range map[string]float64{"source.u[1]": -101.26, "source.y[1]": 70.63, "sink.u[1]": 343.78, "sink.y[1]": 171.89} {
		if got := o.column(t, name)[0]; math.Abs(got-want) > 1e-10 {
			t.Errorf("%s starts at %.17g, want %v", name, got, want)
		}
	}
}

// A parameter of a document comes in a unit of its own; --set is in that of the variable.
func TestUnitsOfParameters(t *testing.T) {
	set := `<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>` +
		`<ssv:Parameter name="x0[1]"><ssv:Real value="68" unit="degF"/></ssv:Parameter><ssv:Parameter name="x0[2]"><ssv:Real value="90" unit="km/h"/></ssv:Parameter>` +
		`</ssv:Parameters><ssv:Units><ssc:Unit name="degF"><ssc:BaseUnit K="1" factor="0.5555555555555556" offset="255.3722222222222"/></ssc:Unit>` +
		`<ssc:Unit name="km/h"><ssc:BaseUnit m="1" s="-1" factor="0.2777777777777778"/></ssc:Unit></ssv:Units></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>`
	path := unitSystem(t, map[string]string{"x0[1]": `unit="K" displayUnit="degC"`, "x0[2]": `unit="m/s"`,
		"x0[3]": `unit="degC"`}, nil, set,
		"source.y[1] → sink.u[1]\nsource.y[2] → sink.u[2]\nsource.y[3] → sink.u[3]")
	o := complete(t, path, "--step-size", "0.01", "--set", "source.C[1,1]=1", "--set", "source.C[2,2]=1",
		"--set", "source.C[3,3]=1", "--set", "source.x0[3]=20")
	for name, want := range map[string]float64{"source.y[1]": 293.15, "source.y[2]": 25, "source.y[3]": 20} {
		if got := o.column(t, name)[0]; math.Abs(got-want) > 1e-10 {
			t.Errorf("%s starts at %.17g, want %v", name, got, want)
		}
	}
}

// Dimensions that differ are refused, rad counted, and so is an absolute quantity on a relative one (fmi2 16).
func TestUnitsRefused(t *testing.T) {
	for _, c := range []struct {
		from, to string
		words    []string
	}{
		{`unit="Hz"`, `unit="rad/s"`, []string{"SD11", "s^-1·rad"}},
		{`unit="degC"`, `unit="m/s"`, []string{"SD11", "m·s^-1"}},
		{`unit="degC"`, `unit="K" relativeQuantity="true"`, []string{"SD11", "relativeQuantity"}},
	} {
		path := unitSystem(t, map[string]string{"y[1]": c.from}, map[string]string{"u[1]": c.to}, "", "source.y[1] → sink.u[1]")
		code, output := macrostep(t, "run", path)
		if code != 2 {
			t.Errorf("%s to %s: exit code %d", c.from, c.to, code)
		}
		oneMessage(t, output, code, append(c.words, "units.ssd", "source.y[1]", "sink.u[1]"))
	}
}
