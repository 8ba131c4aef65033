package ssp_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
)

// tool reads the annotations of a tool that this module does not know: its Step at the
// experiment is a macro step.
type tool struct{}

func (tool) Read(r *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) (steps []ssp.StepHint, taken bool) {
	if a.Type != "org.tool" || at != ssp.AtExperiment {
		return nil, false
	}
	for _, k := range a.Node().Kids {
		if k.Name == "Step" {
			steps = append(steps, ssp.StepHint{Value: 0.1, Source: a.Type, Place: r.Place(k)})
		} else {
			r.Add(ssp.RuleForeignPart, k, "the setting %q is not understood", k.El.FullTag())
		}
	}
	return steps, true
}

func (tool) Settings([]*ssp.FlatComponent, bool, *diag.List) ssp.OwnSettings {
	return ssp.OwnSettings{}
}

var toolDialect = ssp.Dialect{Name: "tool", New: func() ssp.Annotations { return tool{} }}

// A program adds a dialect of its own to those of package ssp/dialect.
func ExampleDialect() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "system.ssd")
	if err := os.WriteFile(path, []byte(`<SystemStructureDescription version="1.0" name="example"
  xmlns="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <System name="top"/>
  <DefaultExperiment><Annotations><ssc:Annotation type="org.tool"><Step xmlns="urn:tool"/></ssc:Annotation></Annotations></DefaultExperiment>
</SystemStructureDescription>`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	var findings diag.List
	p, err := ssp.Open(path, &findings, toolDialect)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	n, err := p.Flatten(nil, &findings) // there are no FMUs to ask about
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n.Step[0].Value, n.Step[0].Source)
	for _, f := range findings.Findings {
		fmt.Println(f.ID, f.Message)
	}
	// Output:
	// 0.1 org.tool
	// SD21T the macro step of 0.1 s is taken from org.tool
}
