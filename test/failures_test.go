package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// A file that cannot grow keeps whole rows, and the run says how many.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("the size of files is limited by a shell on Linux")
		return
	}
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `ulimit -f 100; exec "$0" run "$1" --step-size 1e-5 --output "$2"`, program, system(t, "quarter-car-a"), filepath.Join(dir, "r.csv"))
	out, _ := cmd.CombinedOutput()
	data, err := os.ReadFile(filepath.Join(dir, "r.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := bytes.Count(data, []byte("\n")) - 1
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	last, _, _ := strings.Cut(lines[len(lines)-1], ",")
	if cmd.ProcessState.ExitCode() != 1 || !bytes.HasSuffix(data, []byte("\n")) {
		t.Errorf("exit code %d; the file ends with %q", cmd.ProcessState.ExitCode(), lines[len(lines)-1])
	}
	for _, says := range []string{fmt.Sprintf("(%d rows,", rows), "the rows up to t = " + last + " s are kept"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
}

// A log of calls that cannot be written fails a run that is otherwise complete.
func TestFullLog(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("there is no device that is always full")
		return
	}
	o := run(t, system(t, "quarter-car-a"), "--log-fmi-calls", "/dev/full")
	if o.code != 1 || !strings.Contains(o.output, "--log-fmi-calls: the log ends early") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}

// A run that comes to its end and its values nowhere is warned about.
func TestGrowthIsTold(t *testing.T) {
	page := filepath.Join(t.TempDir(), "run.html")
	args := []string{system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1", "--report", page}
	o := complete(t, args...)
	if text := string(mustRead(t, page)); !strings.Contains(text, ">complete, unstable<") || !strings.Contains(text, "\n    &#34;stability&#34;: &#34;unstable&#34;,\n") {
		t.Errorf("the page does not say that the run is unstable\n%s", o.output)
	}
	if strict := run(t, append(args, "--strict")...); strict.code != 1 || strict.manifest.Status != "complete" {
		t.Errorf("strictly: exit code %d, %s", strict.code, strict.manifest.Status)
	}
	if !slices.ContainsFunc(o.manifest.Warnings, func(w string) bool { return strings.Contains(w, "has grown to") }) {
		t.Errorf("%q", o.manifest.Warnings)
	}
}

// What the documents show to be wrong ends a run before an FMU is called.
func TestFoundBeforeTheFMUs(t *testing.T) {
	for _, args := range [][]string{
		{"--algorithm", "im-milne", "--param", "control.atol=nope.x:1"},
		{"--bond", "x=chassis.F:wheel.v"},
		{"--algorithm", "gauss-seidel", "--param", "sequence=chassis"},
		{"--rate", "nope=2"},
	} {
		calls := filepath.Join(t.TempDir(), "calls.txt")
		o := run(t, append([]string{system(t, "quarter-car-a"), "--log-fmi-calls", calls}, args...)...)
		data, _ := os.ReadFile(calls)
		if o.code != 2 || len(data) > 0 {
			t.Errorf("%v: exit code %d, %d bytes of calls\n%s", args, o.code, len(data), o.output)
		}
	}
}

// A run goes on when nobody reads any longer what it prints.
func TestNobodyReads(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	// It has something to say before it begins, while it runs and at its end.
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--param", "order=5", "--step-size", "0.1", "--log-level", "debug", "--isolate-component", "wheel")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
	if err := cmd.Run(); err != nil {
		t.Errorf("the run ended: %v", err)
	}
	if m := string(read(t, filepath.Join(dir, "results.json"))); !strings.Contains(m, `"status": "complete"`) {
		t.Errorf("manifest %s", m)
	}
}
