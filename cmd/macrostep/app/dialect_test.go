package app

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// stepping reads annotations of the type org.tool: the macro step is 0.125 s.
type stepping struct{}

func (stepping) Read(_ *ssp.Reader, a ssp.Annotation, at ssp.Site, _ string) ([]ssp.StepHint, bool) {
	return nil, a.Type == "org.tool" && at == ssp.AtExperiment
}

func (stepping) Settings([]*ssp.FlatComponent, bool, *diag.List) []ssp.Asked {
	return []ssp.Asked{{Name: ssp.StepSize, Text: "0.125", From: "org.tool"}}
}

// A dialect that a program adds is read by its commands; without it the annotation has no effect.
func TestDialectOfAProgram(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "system.ssd"), `<SystemStructureDescription version="1.0" name="example"
  xmlns="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <System name="top"><Elements><Component name="c" source="none.fmu"/></Elements></System>
  <DefaultExperiment stopTime="1"><Annotations><ssc:Annotation type="org.tool"><Step xmlns="urn:tool"/></ssc:Annotation></Annotations></DefaultExperiment>
</SystemStructureDescription>`)
	for _, c := range []struct {
		dialects []ssp.Dialect
		read     bool
	}{{dialect.All(), false}, {append(dialect.All(), ssp.Dialect{Name: "tool", New: func() ssp.Annotations { return stepping{} }}), true}} {
		var out bytes.Buffer
		p := newProgram([]string{"info", path}, strings.NewReader(""), &out, &out)
		p.dialects = c.dialects
		p.run(t.Context())
		if strings.Contains(out.String(), "0.125") != c.read {
			t.Errorf("read: %t\n%s", c.read, out.String())
		}
	}
}
