package test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// scenarioCases are scenarios on the quarter car, whose chassis settles at 0.1 m, the height of the road.
var scenarioCases = []struct {
	name, text string
	code       int
	says       []string // parts of the output
}{
	{name: "expectations that hold", text: `
expect:
  - {variable: chassis.z_c, at: 4, value: 0.1, relative: 0.05}
  - {variable: chassis.v_c, always: , min: -1, max: 1}
  - {variable: wheel.z_w, eventually: {until: 0.2}, min: 0.1}
`, says: []string{"3 of 3 expectations met"}},
	{name: "a sensor that freezes", text: `
events:
  - {at: 0.2, freeze: [chassis.v_c], for: 0.1}
expect:
  - {variable: wheel.v_c, always: {from: 0.2, until: 0.299}, min: 0.1, max: 0.5}
`, says: []string{"froze chassis.v_c at 0.", "t = 0.3 s: released chassis.v_c", "1 of 1 expectation met"}},
	{name: "a spring that breaks, and a stop", text: `
events:
  - {when: chassis.z_c > 0.09, scale: {wheel.F_c: 0}}
  - {when: "chassis.z_c > 0.5", stop: the chassis has left}
expect:
  - {variable: chassis.F_c, eventually: , value: 0, tolerance: 0}
`, says: []string{"stopped by s.yaml", "the chassis has left", "complete at t = "}},
	{name: "a replay", text: `
events:
  - {at: 1, replay: {chassis.F_c: {file: force.csv, column: F, relative: true}}}
expect:
  - {variable: chassis.F_c, at: 1.5, value: 50, tolerance: 1e-6}
  - {variable: chassis.F_c, at: 3, value: 100, tolerance: 0}
`, says: []string{"replays chassis.F_c from", "2 of 2 expectations met"}},
	{name: "a variable that is none, and an unknown key", text: `
events:
  - {at: 1, set: {wheel.f_c: 1}}
`, code: 2, says: []string{`s.yaml:3: no variable is called "wheel.f_c"; did you mean "wheel.F_c"?`}},
	{name: "an event after the end", text: `
events:
  - {at: 5, stop: late}
`, says: []string{"s.yaml:3: the event did not happen before the run ended at t = 4 s"}},
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, c := range scenarioCases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "s.yaml"), c.text)
			write(t, filepath.Join(dir, "force.csv"), "time,F\n0,0\n1,100\n")
			code, out := macrostepIn(t, dir, "run", system(t, "quarter-car-a"), "--scenario", "s.yaml", "--verbose")
			(&outcome{code: code, output: out}).is(t, c.code, c.says...)
			checked := 0 // the check alone judges the names only
			if c.code == 2 {
				checked = 1
			}
			code, out = macrostepIn(t, dir, "validate", "s.yaml", system(t, "quarter-car-a"))
			(&outcome{code: code, output: out}).is(t, checked, "s.yaml: ")
		})
	}
}

// A free input that a scenario sets, replays and releases has the effect of a table of inputs that jumps at the same times.
func TestScenarioFreeInput(t *testing.T) {
	dir := t.TempDir()
	wheel, err := fmus.Build(dir, "quarter_wheel_a")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "s.yaml"), `
events:
  - {at: 0.5, set: {quarter_wheel_a.v_c: 1}, for: 0.25}
  - {at: 1, replay: {quarter_wheel_a.v_c: later.csv}}
`)
	write(t, filepath.Join(dir, "later.csv"), "time,quarter_wheel_a.v_c\n1,0\n1.5,0\n1.5,0.75\n2,0.75\n")
	write(t, filepath.Join(dir, "in.csv"), "time,quarter_wheel_a.v_c\n0,0\n0.5,0\n0.5,1\n0.75,1\n0.75,0\n1,0\n1.5,0\n1.5,0.75\n2,0.75\n")
	results := map[string]string{}
	for _, flag := range []string{"--scenario=s.yaml", "--input=in.csv"} {
		code, out := macrostepIn(t, dir, "run", wheel, "--stop-time", "2", "--step-size", "0.0078125",
			"--record", "*.?_w", "--record", "*.F_c", "--output", "r.csv", flag)
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s", flag, code, out)
		}
		results[string(read(t, filepath.Join(dir, "r.csv")))] = flag
	}
	if len(results) != 1 {
		t.Error("the results differ")
	}
}

// Real time from the command line: the manifest has the statistics, and the run takes its time.
func TestRealtime(t *testing.T) {
	dir := t.TempDir()
	code, out := macrostepIn(t, dir, "run", system(t, "quarter-car-a"), "--stop-time", "0.5", "--realtime=2",
		"--overrun", "skip", "--output", "r.csv")
	if code != 0 || !strings.Contains(out, "real time 2 ×, 500 deadlines of 500 µs") || !strings.Contains(out, "late by") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil || !bytes.Contains(data, []byte(`"overrun_policy": "skip"`)) || !bytes.Contains(data, []byte(`"p99_9"`)) {
		t.Errorf("%v\n%s", err, data)
	}
	if code, out := macrostepIn(t, dir, "run", system(t, "quarter-car-a"), "--stop-time", "0.1", "--realtime=10",
		"--debug", "realtime-unbounded", "--algorithm", "im-slocal"); code != 0 {
		t.Errorf("unbounded: exit code %d\n%s", code, out)
	}
}
