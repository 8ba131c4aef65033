package app

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// invocation lists the flags of run that belong to one call of the program, not to a system: files to
// write, messages, strictness, compilation, checkpoints, real time.
var invocation = []string{
	"output", "manifest", "trace", "report", flagLive, "log-fmi-calls", "log-level", flagDebug, "quiet", "verbose", "strict", "compile",
	flagCheckpoint, flagResume, flagAnalyze, flagCheck, flagBudget,
	flagRealtime, flagOverrun, flagPriority, flagScenario, flagMetrics, flagHostTimeout, flagCredentials, flagCA,
}

// counterparts gives, for all other flags, the attribute or element of ms:Settings, or the attribute
// of ms:Component, with the same meaning. want is the name of the setting in its sources; "" = that of
// the flag.
var counterparts = map[string]struct{ attribute, element, component, want string }{
	"tolerance":         {attribute: `tolerance="1e-5"`},
	"step-size":         {attribute: `stepSize="0.5"`},
	flagAlgorithm:       {attribute: `algorithm="gauss-seidel"`},
	flagParam:           {element: `<ms:Param key="order" value="2"/>`, want: "param order"},
	"stateless":         {element: `<ms:Stateless component="c"/>`, want: "stateless c"},
	flagBond:            {element: `<ms:Bond name="axle"><ms:Pair effort="c.y" flow="d.y"/></ms:Bond>`, want: "bond axle"},
	flagRate:            {element: `<ms:Rate component="c" ratio="1/3"/>`, want: "rate c"},
	"monitor-energy":    {attribute: `monitorEnergy="true"`},
	"energy-spike":      {attribute: `energySpike="0"`},
	"workers":           {attribute: `workers="3"`},
	"input":             {attribute: `input="table.csv"`},
	"history":           {attribute: `history="table.csv"`},
	flagIsolate:         {attribute: `isolation="never"`},
	"isolate-component": {component: `isolate="true"`, want: "isolate-component c"},
	flagOn:              {component: `host="lab:7447"`, want: "on c"},
	flagOnCrash:         {attribute: `restarts="2"`},
	flagRestarts:        {attribute: `restarts="2"`, want: flagOnCrash},
	flagStepTimeout:     {attribute: `stepTimeout="2"`},
	flagMemoryLimit:     {attribute: `memoryLimit="200"`},
	flagQuirk:           {component: `quirks="noTerminate"`, want: "quirk c noTerminate"},
	"record":            {element: `<ms:Record match="c.*"/>`},
	"output-interval":   {attribute: `outputInterval="0.25"`},
	"start-time":        {want: "startTime of the DefaultExperiment"},
	"stop-time":         {want: "stopTime of the DefaultExperiment"},
	"set":               {want: "a ParameterBinding"},
}

// ports has an input u and an output y.
type ports struct{}

func (ports) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) {
	return connectorSet{
		"u": {Name: "u", Type: ssp.Real, Causality: "input", Settable: true}, "y": {Name: "y", Type: ssp.Real, Causality: "output", Settable: true},
	}, nil
}

const settingsDocument = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
  xmlns:ms="https://github.com/macrostep/macrostep/ssp/1">
<ssd:System name="s"><ssd:Elements>
<ssd:Component name="c" source="c.fmu"><ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>
<ssv:Parameter name="u"><ssv:Real value="3"/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>
<ssd:Annotations><ssc:Annotation type="com.github.macrostep"><ms:Component %s/></ssc:Annotation></ssd:Annotations></ssd:Component>
<ssd:Component name="d" source="d.fmu"/>
</ssd:Elements></ssd:System>
<ssd:DefaultExperiment startTime="1" stopTime="2"><ssd:Annotations><ssc:Annotation type="com.github.macrostep">
<ms:Settings version="1" %s>%s</ms:Settings></ssc:Annotation></ssd:Annotations></ssd:DefaultExperiment>
</ssd:SystemStructureDescription>
`

// Every flag of run has a counterpart in a document, which is read, or belongs to the invocation.
func TestEveryFlagHasACounterpart(t *testing.T) {
	var seen []string
	for _, f := range (&program{}).runCommand().Flags {
		name := f.Names()[0]
		seen = append(seen, name)
		c, ok := counterparts[name]
		if ok == slices.Contains(invocation, name) {
			t.Errorf("--%s needs a counterpart in documents (package ssp), or belongs to the invocation", name)
			continue
		}
		if !ok {
			continue
		}
		dir, l := t.TempDir(), &diag.List{}
		write(t, filepath.Join(dir, "SystemStructure.ssd"), fmt.Sprintf(settingsDocument, c.component, c.attribute, c.element))
		write(t, filepath.Join(dir, "table.csv"), "time,c.u\n0,1\n")
		s, err := ssp.Open(dir, l, dialect.All()...)
		if err != nil {
			t.Errorf("--%s: %v", name, err)
			continue
		}
		n, err := s.Flatten(ports{}, l)
		if err != nil {
			t.Errorf("--%s: %v", name, err)
			continue
		}
		want := cmp.Or(c.want, name)
		switch name {
		case "start-time":
			ok = *n.Experiment.Start == 1
		case "stop-time":
			ok = *n.Experiment.Stop == 2
		case "set":
			ok = len(n.Settings) == 1 && n.Settings[0].Value.Real == 3
		case "step-size":
			ok = len(n.Step) == 1 && n.Step[0].Value == 0.5
		default:
			_, ok = n.Own.Sources[want]
		}
		if !ok {
			t.Errorf("--%s: %s is not read; there is %v", name, want, n.Own.Sources)
		}
	}
	for _, name := range slices.Concat(invocation, slices.Collect(maps.Keys(counterparts))) {
		if !slices.Contains(seen, name) {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

// docs/ssp-settings.md names every attribute and element.
func TestCounterpartsAreDescribed(t *testing.T) {
	page := read(t, filepath.Join("..", "..", "..", "docs", "ssp-settings.md"))
	for name, c := range counterparts {
		for _, text := range []string{c.attribute, c.component, strings.TrimPrefix(c.element, "<ms:")} {
			word := strings.FieldsFunc(text, func(r rune) bool { return r == '=' || r == ' ' })
			if len(word) > 0 && !strings.Contains(page, word[0]) {
				t.Errorf("--%s: docs/ssp-settings.md does not describe %s", name, word[0])
			}
		}
	}
}
