package fmus

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Chain is the nonlinear oscillator chain of meyer 6.2 cut into pieces: subsystems
// s1, s2, … of consecutive masses, joined by
// stateless couplings c1, c2, … (force/force decomposition). The paper does not specify the
// ends; here both are joined to the ground by the same spring as between masses.
type Chain struct {
	Masses     int // of the whole chain
	Subsystems int // at least 1, of at least two masses each
	// Ends is the number of masses in the first and in the last subsystem (meyer
	// 6.6.2, 6.6.3); 0: as many as in the others. The others differ by one mass at most.
	Ends int
	// Set holds values of parameters of the FMU chain, for all subsystems; those
	// of the springs, c, d, C and D, are also for the couplings.
	Set map[string]float64
}

// placed are the parameters of the FMU that follow from the place of a piece in the chain.
var placed = []string{"masses", "number", "total", "ground_left", "ground_right"}

// sizes returns the masses of each subsystem.
func (c Chain) sizes() ([]int, error) {
	inner, masses := c.Subsystems, c.Masses
	if c.Subsystems < 1 {
		return nil, fmt.Errorf("a chain of %d subsystems; there must be at least one", c.Subsystems)
	}
	if c.Ends != 0 {
		inner, masses = c.Subsystems-2, c.Masses-2*c.Ends
		if inner < 1 {
			return nil, fmt.Errorf("a chain with ends of their own needs at least 3 subsystems, not %d", c.Subsystems)
		}
	}
	if masses < 2*inner || c.Ends != 0 && c.Ends < 2 {
		ends := ""
		if c.Ends != 0 {
			ends = fmt.Sprintf(", %d at each end", c.Ends)
		}
		return nil, fmt.Errorf("%d masses do not make %d subsystems of at least two each%s", c.Masses, c.Subsystems, ends)
	}
	sizes := make([]int, 0, c.Subsystems)
	for i := range inner {
		n := masses / inner
		if i < masses%inner {
			n++
		}
		sizes = append(sizes, n)
	}
	if c.Ends != 0 {
		sizes = append(slices.Insert(sizes, 0, c.Ends), c.Ends)
	}
	return sizes, nil
}

// chainValue is one parameter of a component of a chain.
type chainValue struct {
	name  string
	whole bool
	value float64
}

// values returns the parameters of all subsystems and of all couplings, in the order
// of the parameters of the FMU chain. Those of the couplings include the default springs of the chain, because
// the FMU of the couplings has other defaults.
func (c Chain) values() (pieces, couplings []chainValue, err error) {
	var names []string
	for _, v := range chain().variables {
		if v.role != parameter && v.role != count || slices.Contains(placed, v.name) {
			continue
		}
		names = append(names, v.name)
		value, given := c.Set[v.name]
		switch {
		case !given:
			value = v.start
		case math.IsNaN(value) || math.IsInf(value, 0):
			return nil, nil, fmt.Errorf("parameter %s of the chain: %g is not a finite number", v.name, value)
		case v.role == count && (value != math.Trunc(value) || value < *v.min || value > math.MaxInt32):
			return nil, nil, fmt.Errorf("parameter %s of the chain: %g is not a whole number of at least %g", v.name, value, *v.min)
		}
		if given {
			pieces = append(pieces, chainValue{v.name, v.role == count, value})
		}
		if slices.Contains([]string{"c", "d", "C", "D"}, v.name) {
			couplings = append(couplings, chainValue{v.name + "_c", false, value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		if !slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("the chain has no parameter %q; it has %s", name, strings.Join(names, ", "))
		}
	}
	return pieces, couplings, nil
}

// ChainDocument returns SystemStructure.ssd of a chain, with meyer's settings for the
// control of order and step: 0.5 s, and 1 µs for steps of one size.
// Errors: sizes and parameters that are not possible.
func ChainDocument(c Chain) ([]byte, error) {
	sizes, err := c.sizes()
	if err != nil {
		return nil, err
	}
	pieces, couplings, err := c.values()
	if err != nil {
		return nil, err
	}
	d := &chainDocument{}
	d.line(`<?xml version="1.0" encoding="UTF-8"?>`)
	d.line(`<ssd:SystemStructureDescription version="1.0" name="chain"`)
	d.line(`    description="Nonlinear oscillator chain of %d masses in %d subsystems, force/force decomposition"`, c.Masses, c.Subsystems)
	d.line(`    xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"`)
	d.line(`    xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"`)
	d.line(`    xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">`)
	d.line(`  <ssd:System name="chain">`)
	d.elements(c, sizes, pieces, couplings)
	if len(sizes) > 1 {
		d.connections(len(sizes))
	}
	d.line(`  </ssd:System>`)
	d.line(`  <ssd:Units>`)
	for _, u := range units {
		if u.name == "N" || u.name == "m" || u.name == "m/s" {
			d.line(`    <ssc:Unit name="%s"><ssc:BaseUnit %s/></ssc:Unit>`, u.name, u.base)
		}
	}
	d.line(`  </ssd:Units>`)
	d.experiment(len(sizes))
	d.line(`</ssd:SystemStructureDescription>`)
	return []byte(d.String()), nil
}

// chainDocument builds SystemStructure.ssd.
type chainDocument struct{ strings.Builder }

func (d *chainDocument) line(format string, a ...any) { fmt.Fprintf(d, format+"\n", a...) }

type connector struct{ name, kind, unit string }

func (d *chainDocument) component(name, fmu string, connectors []connector, values []chainValue) {
	d.line(`      <ssd:Component name="%s" type="application/x-fmu-sharedlibrary" source="resources/%s.fmu" implementation="CoSimulation">`, name, fmu)
	d.line(`        <ssd:Connectors>`)
	for _, c := range connectors {
		d.line(`          <ssd:Connector name="%s" kind="%s"><ssc:Real unit="%s"/></ssd:Connector>`, c.name, c.kind, c.unit)
	}
	d.line(`        </ssd:Connectors>`)
	d.line(`        <ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="%s"><ssv:Parameters>`, name)
	for _, v := range values {
		kind := "Real"
		if v.whole {
			kind = "Integer"
		}
		d.line(`          <ssv:Parameter name="%s"><ssv:%s value="%s"/></ssv:Parameter>`, v.name, kind, number(v.value))
	}
	d.line(`        </ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>`)
	d.line(`      </ssd:Component>`)
}

// elements writes the subsystems and couplings.
func (d *chainDocument) elements(c Chain, sizes []int, pieces, couplings []chainValue) {
	d.line(`    <ssd:Elements>`)
	number, last := 1, len(sizes)
	for i, n := range sizes {
		i++
		list := []chainValue{{"masses", true, float64(n)}, {"number", true, float64(number)}, {"total", true, float64(c.Masses)}}
		var connectors []connector
		for _, side := range []struct {
			name string
			at   int
		}{{"left", 1}, {"right", last}} {
			if i == side.at {
				list = append(list, chainValue{"ground_" + side.name, true, 1})
				continue
			}
			connectors = append(connectors, connector{"F_" + side.name, "input", "N"},
				connector{"x_" + side.name, "output", "m"}, connector{"v_" + side.name, "output", "m/s"})
		}
		d.component(fmt.Sprintf("s%d", i), "chain", connectors, append(list, pieces...))
		if i < last {
			d.component(fmt.Sprintf("c%d", i), "coupling_cubic", []connector{{"x1", "input", "m"}, {"v1", "input", "m/s"},
				{"x2", "input", "m"}, {"v2", "input", "m/s"}, {"F", "output", "N"}}, couplings)
		}
		number += n
	}
	d.line(`    </ssd:Elements>`)
}

// connections connects a number of subsystems through their couplings.
func (d *chainDocument) connections(subsystems int) {
	d.line(`    <ssd:Connections>`)
	for i := 1; i < subsystems; i++ {
		for _, v := range []string{"x", "v"} {
			d.line(`      <ssd:Connection startElement="s%d" startConnector="%s_right" endElement="c%d" endConnector="%s1"/>`, i, v, i, v)
			d.line(`      <ssd:Connection startElement="s%d" startConnector="%s_left" endElement="c%d" endConnector="%s2"/>`, i+1, v, i, v)
		}
		d.line(`      <ssd:Connection startElement="c%d" startConnector="F" endElement="s%d" endConnector="F_right"/>`, i, i)
		d.line(`      <ssd:Connection startElement="c%d" startConnector="F" endElement="s%d" endConnector="F_left">`+
			`<ssc:LinearTransformation factor="-1"/></ssd:Connection>`, i, i+1)
	}
	d.line(`    </ssd:Connections>`)
}

// experiment writes the default experiment with the settings of a run.
func (d *chainDocument) experiment(subsystems int) {
	d.line(`  <ssd:DefaultExperiment startTime="0" stopTime="0.5">`)
	d.line(`    <ssd:Annotations>`)
	d.line(`      <ssc:Annotation type="com.github.macrostep">`)
	d.line(`        <ms:Settings xmlns:ms="https://github.com/macrostep/macrostep/ssp/1" version="1" stepSize="1e-06">`)
	relative, absolute := []string{"1e-5"}, []string(nil)
	for i := 1; i < subsystems; i++ {
		relative, absolute = append(relative, fmt.Sprintf("c%d.F:1e-3", i)), append(absolute, fmt.Sprintf("c%d.F:1e-1", i))
	}
	d.line(`          <ms:Param key="control.rtol" value="%s"/>`, strings.Join(relative, ","))
	if absolute != nil {
		d.line(`          <ms:Param key="control.atol" value="%s"/>`, strings.Join(absolute, ","))
	}
	for _, s := range [][2]string{{"safety", "6"}, {"h0", "1e-7"}, {"ratio-min", "0.5"}, {"ratio-max", "2"}} {
		d.line(`          <ms:Param key="control.%s" value="%s"/>`, s[0], s[1])
	}
	d.line(`        </ms:Settings>`)
	d.line(`      </ssc:Annotation>`)
	d.line(`    </ssd:Annotations>`)
	d.line(`  </ssd:DefaultExperiment>`)
}

// WriteChain builds the FMUs of a chain and writes dir/chain.ssp, replacing an existing file.
// Errors are those of Build and of ChainDocument.
func WriteChain(dir string, c Chain) (path string, err error) {
	document, err := ChainDocument(c)
	if err != nil {
		return "", err
	}
	return newBuilder(context.Background()).writePackage(dir, "chain", document)
}
