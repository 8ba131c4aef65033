package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// loopDocument couples two linear FMUs y = bias·x + gain·u in a loop of gain 1,
// which has no solution unless the bias is 0.
const loopDocument = `<?xml version="1.0" encoding="UTF-8"?>
<s:SystemStructureDescription name="loop" version="1.0" xmlns:s="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <s:System name="loop">
    <s:Elements>
      <s:Component name="a" source="linear.fmu"><s:Connectors>
        <s:Connector name="u[1]" kind="input"><c:Real/></s:Connector><s:Connector name="y[1]" kind="output"><c:Real/></s:Connector>
      </s:Connectors></s:Component>
      <s:Component name="b" source="linear.fmu"><s:Connectors>
        <s:Connector name="u[1]" kind="input"><c:Real/></s:Connector><s:Connector name="y[1]" kind="output"><c:Real/></s:Connector>
      </s:Connectors></s:Component>
    </s:Elements>
    <s:Connections>
      <s:Connection startElement="a" startConnector="y[1]" endElement="b" endConnector="u[1]"/>
      <s:Connection startElement="b" startConnector="y[1]" endElement="a" endConnector="u[1]"/>
    </s:Connections>
  </s:System>
  <s:DefaultExperiment startTime="0" stopTime="1"/>
</s:SystemStructureDescription>
`

// loopSystem writes the loop beside its FMU.
func loopSystem(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := fmus.Build(dir, "linear"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "loop.ssd")
	if err := os.WriteFile(path, []byte(loopDocument), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run that fails in its initialisation says why, and keeps a manifest.
func TestFailedInitialisation(t *testing.T) {
	o := run(t, loopSystem(t), "--set", "a.D[1,1]=1", "--set", "b.D[1,1]=1", "--set", "a.C[1,1]=1", "--set", "a.x0[1]=1")
	if o.code != 1 || o.manifest.Status != "failed" || strings.Contains(o.output, "goroutine") {
		t.Fatalf("exit code %d, status %q\n%s", o.code, o.manifest.Status, o.output)
	}
	for _, part := range []string{"a.u[1]", "b.y[1]", "algebraic loop"} {
		if !strings.Contains(o.manifest.Reason, part) || !strings.Contains(o.output, part) {
			t.Errorf("%q is missing in the reason %q or in\n%s", part, o.manifest.Reason, o.output)
		}
	}
}

// A loop with a solution is solved: y_a = 1 + y_b/2, y_b = y_a/2.
func TestSolvedInitialisation(t *testing.T) {
	o := complete(t, loopSystem(t), "--set", "a.D[1,1]=0.5", "--set", "b.D[1,1]=0.5", "--set", "a.C[1,1]=1", "--set", "a.x0[1]=1")
	if y := o.column(t, "a.y[1]")[0]; y < 4.0/3-1e-14 || y > 4.0/3+1e-14 {
		t.Errorf("a.y[1] starts at %.17g, want 4/3", y)
	}
}

// A run does not write over what it reads, nor into the results of another run.
func TestProtectedFiles(t *testing.T) {
	path := loopSystem(t)
	model := filepath.Join(filepath.Dir(path), "linear.fmu")
	before, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--output", "--manifest", "--log-fmi-calls"} {
		code, output := macrostep(t, "run", path, flag, model)
		if code != 2 || !strings.Contains(output, "would overwrite") {
			t.Errorf("%s: exit code %d\n%s", flag, code, output)
		}
	}
	if after, err := os.ReadFile(model); err != nil || string(after) != string(before) {
		t.Errorf("the FMU has changed: %v", err)
	}
}
