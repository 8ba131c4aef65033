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
type tool struct{ asked []ssp.Asked }

func (d *tool) Read(r *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) (hints []ssp.StepHint, taken bool) {
	if a.Type != "org.tool" || at != ssp.AtExperiment {
		return nil, false
	}
	for _, k := range a.Node().Kids {
		if k.Name == "Step" {
			d.asked = append(d.asked, ssp.Asked{Name: ssp.StepSize, Text: "0.1", From: a.Type, Place: r.Place(k)})
		} else {
			r.Add(ssp.RuleForeignPart, k, "the setting %q is not understood", k.El.FullTag())
		}
	}
	return nil, true
}

func (d *tool) Settings([]*ssp.FlatComponent, bool, *diag.List) []ssp.Asked { return d.asked }

var toolDialect = ssp.Dialect{Name: "tool", New: func() ssp.Annotations { return &tool{} }}

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
  <DefaultExperiment><Annotations><ssc:Annotation type="org.tool"><Step xmlns="urn:tool"/></ssc:Annotation>
    <ssc:Annotation type="org.tool"><Gadget xmlns="urn:tool"/></ssc:Annotation></Annotations></DefaultExperiment>
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
	fmt.Println(n.Asked[0], n.Asked[0].From)
	for _, f := range findings.Findings {
		fmt.Println(f.Line, f.ID, f.Message)
	}
	// Output:
	// --step-size 0.1 org.tool
	// 5 SD21P the setting "Gadget" is not understood
	// 4 SD21T --step-size 0.1 is taken from org.tool
}
