package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/ssp"
)

// ports has an input u and an output y.
type ports struct{}

func (ports) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) {
	return connectorSet{
		"u": {Name: "u", Type: ssp.Real, Causality: "input", Settable: true}, "y": {Name: "y", Type: ssp.Real, Causality: "output", Settable: true},
	}, nil
}

const settingsDocument = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="s" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ms="https://github.com/macrostep/macrostep/ssp/1">
<ssd:System name="s"><ssd:Elements>
<ssd:Component name="c" source="c.fmu"><ssd:Annotations><ssc:Annotation type="com.github.macrostep"><ms:Component %s/></ssc:Annotation></ssd:Annotations></ssd:Component>
<ssd:Component name="d" source="d.fmu"/>
</ssd:Elements></ssd:System>
<ssd:DefaultExperiment startTime="1" stopTime="2"><ssd:Annotations><ssc:Annotation type="com.github.macrostep">
<ms:Settings version="1" %s>%s</ms:Settings></ssc:Annotation></ssd:Annotations></ssd:DefaultExperiment>
</ssd:SystemStructureDescription>
`

// settingExamples are examples for the names of values in the docs of settings.
var settingExamples = map[string]string{
	"": "true", "T": "0.25", "H": "0.002", "R": "1e-5", "N": "3", "FACTOR": "2", "PRESET": "gauss-seidel", "KEY=VALUE": "order=2", "LIMIT": "1%", "LIMIT[:VARIABLE,…]": "1%:c.*", "GLOB": "c.*",
	"NAME=COMPONENT.EFFORT:COMPONENT.FLOW": "axle=c.y:d.y", "COMPONENT=N": "c=1/3", "NAME=VALUE": "c.u=3", "COMPONENT=QUIRK": "c=noTerminate",
	"COMPONENT": "c", "GLOB=HOST": "c=lab:7447", "EVERY FILE": "10 run.checkpoint",
}

// example returns an example of a value of a setting; paths are in a folder with table.csv.
func example(t *testing.T, e *simulate.Entry, folder string) string {
	t.Helper()
	switch text, known := settingExamples[e.Value()]; {
	case e.Choices != nil && e.Value() == "POLICY":
		list := e.Choices()
		return list[len(list)-1]
	case strings.HasPrefix(e.Value(), "FILE"):
		return filepath.Join(folder, "table.csv")
	case known:
		return text
	}
	t.Fatalf("--%s: there is no example of a value %q", e.Name, e.Value())
	return ""
}

// inAnnotation returns an example of a setting in the annotations of a document: an attribute of a component, an attribute of the
// experiment, or an element. bare is a text for a component.
func inAnnotation(e *simulate.Entry, text string) (component, attribute, element string) {
	name, parts, isElement := strings.Cut(e.Annotation, " ")
	switch {
	case name == "Bond":
		element = `<ms:Bond name="axle"><ms:Pair effort="c.y" flow="d.y"/></ms:Bond>`
	case isElement:
		element = "<ms:" + name
		rest := text
		names := strings.Fields(parts)
		for i, part := range names {
			value := rest
			if i < len(names)-1 {
				value, rest, _ = strings.Cut(rest, "=")
			}
			element += fmt.Sprintf(" %s=%q", part, value)
		}
		element += "/>"
	case name != "":
		attribute = fmt.Sprintf("%s=%q", name, strings.TrimPrefix(text, "/"))
	default:
		_, value, _ := strings.Cut(text, "=")
		component = fmt.Sprintf("%s=%q", e.Component, value)
	}
	return component, attribute, element
}

// bare returns a request without what differs by the way of its settings.
func bare(t *testing.T, r simulate.Request) string {
	t.Helper()
	r.System, r.Output, r.Manifest, r.Given, r.LogLevel, r.Format, r.Checkpoints.Resume = "", "", "", nil, 0, 0, ""
	for _, s := range []**simulate.Setting{&r.Start, &r.Stop, &r.Step, &r.Tolerance} {
		if *s != nil {
			*s = &simulate.Setting{Value: (*s).Value}
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + fmt.Sprint(r.Record)
}

// Every setting of the table means the same as a flag, in an annotation, from a dialect, in a study and in a checkpoint.
func TestEverySetting(t *testing.T) {
	var parsed simulate.Request
	p := newProgram(nil, nil, &bytes.Buffer{}, &bytes.Buffer{})
	app := p.app()
	app.Command("run").Action = func(c *cli.Context) error {
		r, err := parseRun(c)
		if err == nil {
			parsed = r.Request
		}
		return err
	}
	page := read(t, filepath.Join("..", "..", "..", "docs", "ssp-settings.md"))
	for _, e := range simulate.Settings {
		if slices.Contains([]string{"resume", "overrun", "realtime-priority", "budget"}, e.Name) {
			continue // they need another one
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "table.csv"), "time,c.u\n0,1\n")
		text := example(t, e, dir)
		want := simulate.Request{}
		if err := want.Apply(e.Name, text, "test"); err != nil {
			t.Errorf("--%s %s: %v", e.Name, text, err)
			continue
		}
		if reflect.DeepEqual(bare(t, want), bare(t, simulate.Request{})) && !slices.Contains([]string{"output", "manifest"}, e.Name) {
			t.Errorf("--%s %s changes nothing", e.Name, text)
		}
		if err := want.Complete(); err != nil {
			t.Error(err)
		}
		check := func(way string, got simulate.Request, err error) {
			t.Helper()
			if err == nil {
				err = got.Complete()
			}
			if got.Workers == 1 { // of a study
				got.Workers = 0
			}
			if g, w := bare(t, got), bare(t, want); err != nil || g != w {
				t.Errorf("--%s %s, %s: %v\n%s\nwant\n%s", e.Name, text, way, err, g, w)
			}
		}

		args := []string{"s.ssp", "--" + e.Name + "=" + text}
		if every, file, two := strings.Cut(text, " "); two {
			args = []string{"s.ssp", "--" + e.Name, every, filepath.Join(dir, file)}
			want = simulate.Request{}
			if err := want.Apply(e.Name, every+" "+filepath.Join(dir, file), ""); err != nil {
				t.Fatal(err)
			}
			text = every + " " + filepath.Join(dir, file)
		}
		if e.Name != "manifest" && e.Name != "output" { // they are compared by name
			flags, rest, _, err := arrange(app.Command("run"), args)
			if err == nil {
				err = app.Run(slices.Concat([]string{"macrostep", "run"}, flags, []string{"--output=" + filepath.Join(dir, "r.csv"), "--"}, rest))
			}
			check("as a flag", parsed, err)
		}

		if e.Scope != simulate.OfCall {
			value, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := study.Parse(filepath.Join(dir, "study.yaml"), fmt.Appendf(nil, "system: s.ssp\nvary: {c.u: [1]}\ncollect: final(c.y)\nrun:\n  %s: %s\n", e.Name, value), nil)
			if err != nil {
				t.Errorf("--%s in a study: %v", e.Name, err)
			} else {
				got, err := plan.Request(plan.Run)
				check("in a study", got, err)
			}
		}

		checkpoint := filepath.Join(dir, "c")
		if err := (&record.Checkpoint{Settings: want.Given}).Write(checkpoint); err != nil {
			t.Fatal(err)
		}
		again := simulate.Request{Checkpoints: simulate.Checkpointing{Resume: checkpoint}}
		err := again.Continue()
		check("in a checkpoint", again, err)

		if e.Annotation == "" && e.Component == "" {
			continue
		}
		inDocument := text
		if e.Path {
			inDocument = "table.csv"
		}
		component, attribute, element := inAnnotation(e, inDocument)
		if e.Name == "isolate" || e.Name == "stateless" {
			component = e.Component + `="true"`
			if attribute = ""; e.Name == "isolate" {
				attribute = `isolation="never"`
			}
		}
		write(t, filepath.Join(dir, "SystemStructure.ssd"), fmt.Sprintf(settingsDocument, component, attribute, element))
		l := &diag.List{}
		s, err := ssp.Open(dir, l, simulate.Dialects(nil)...)
		if err != nil {
			t.Errorf("--%s: %v", e.Name, err)
			continue
		}
		n, err := s.Flatten(ports{}, l)
		if err != nil {
			t.Errorf("--%s: %v", e.Name, err)
			continue
		}
		got, err := simulate.AskedBy(n.Asked)
		if e.Name == "isolate" { // the component, too
			want.IsolateComponents = []string{"c"}
		}
		check("in an annotation", got, err)
		for _, a := range n.Asked {
			if a.From != "annotation of macrostep" || a.Place.Line == 0 {
				t.Errorf("--%s: %+v", e.Name, a)
			}
		}
		for _, word := range strings.Fields(e.Annotation + " " + e.Component) {
			if !strings.Contains(page, "`"+word) {
				t.Errorf("--%s: docs/ssp-settings.md does not describe %s", e.Name, word)
			}
		}
	}
}
