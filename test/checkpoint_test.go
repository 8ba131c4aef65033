package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/probe"
)

// checkpointed is a run with results.csv, trace.csv and run.checkpoint in a folder.
type checkpointed struct {
	dir  string
	args []string
}

// newCheckpointed prepares a run with a checkpoint after so many seconds; "" = none.
func newCheckpointed(t testing.TB, every string, args ...string) *checkpointed {
	all := []string{"run", "--quiet", "--trace", "trace.csv"}
	if every != "" {
		all = append(all, "--checkpoint", every, "run.checkpoint")
	}
	return &checkpointed{dir: t.TempDir(), args: append(all, args...)}
}

func (c *checkpointed) path(name string) string { return filepath.Join(c.dir, name) }

// completed is a run to the end.
func completed(t testing.TB, every string, args ...string) *checkpointed {
	t.Helper()
	c := newCheckpointed(t, every, args...)
	if code, out := macrostepIn(t, c.dir, c.args...); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", c.args, code, out)
	}
	return c
}

// start starts the run.
func (c *checkpointed) start(t testing.TB) *process {
	t.Helper()
	cmd := exec.Command(program, c.args...)
	cmd.Dir = c.dir
	return started(t, cmd)
}

// killed starts the run and kills it some time after its first checkpoint. It reports whether the run was still under
// way.
func (c *checkpointed) killed(t testing.TB, later time.Duration) bool {
	t.Helper()
	p := c.start(t)
	ended := make(chan int, 1)
	go func() { ended <- p.end() }()
	until(t, "there is a checkpoint, or the run ends", func() bool {
		_, err := os.Stat(c.path("run.checkpoint"))
		return err == nil || len(ended) > 0
	})
	time.Sleep(later)
	_ = p.Process.Kill() // it may have ended meanwhile
	return <-ended != 0
}

// resume resumes from the checkpoint, in another folder.
func (c *checkpointed) resume(t testing.TB, args ...string) {
	t.Helper()
	args = append([]string{"run", "--resume", c.path("run.checkpoint")}, args...)
	if code, out := macrostep(t, args...); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, out)
	}
}

// counters returns the manifest without clock times, file names, the number of threads, and whether an earlier run
// has tested something.
func (c *checkpointed) counters(t testing.TB) map[string]any {
	t.Helper()
	m := c.manifest(t)
	for _, key := range []string{"command", "system", "results", "trace", "seconds", "wall_seconds", "master_seconds",
		"record_seconds", "start_seconds", "resumed_from", "checkpoints", "workers"} {
		delete(m, key)
	}
	for _, key := range []string{"replay", "slopes"} {
		for _, test := range m[key].(map[string]any) {
			delete(test.(map[string]any), "known")
		}
	}
	return m
}

func (c *checkpointed) manifest(t testing.TB) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(read(t, c.path("results.json")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// equal compares the files of two runs.
func (c *checkpointed) equal(t testing.TB, with *checkpointed, how string) {
	t.Helper()
	for _, name := range []string{"results.csv", "trace.csv"} {
		if a, b := read(t, c.path(name)), read(t, with.path(name)); !bytes.Equal(a, b) {
			t.Errorf("%s: %s has %d bytes and should have %d, or other bytes", how, name, len(a), len(b))
		}
	}
	got, want := c.counters(t), with.counters(t)
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: %s in the manifest is %v, want %v", how, key, got[key], want[key])
		}
	}
}

// A resumed run gives the bytes of the unbroken one: from its last checkpoint, with later rows in the file, and after the
// process was killed, also again and again. Checkpoints change no results. What each preset keeps is tested in package
// algorithms.
func TestResume(t *testing.T) {
	take := long.Sample(4)
	rng := rand.New(rand.NewPCG(11, 7))
	for _, c := range []struct {
		system, args string
		every        float64 // s
		kills        int
	}{
		{"quarter-car-a", "--algorithm explicit --param order=1 --record * --record bond.* --stop-time 0.4", 0.09, 1},
		{"energy-star-3", "--algorithm model-based-corrector --param order=1 --record * --record bond.* --stop-time 0.1", 0.03, 1},
		{"crane", "--algorithm energy-correction --stop-time 0.2", 0.07, 1},
		{"pendula", "--algorithm predictor-corrector --stop-time 0.3", 0.05, 1},
		{"contact-oscillator", "--algorithm im-slocal --stop-time 0.02", 0.006, 1},
		{"energy-oscillator", "--algorithm ecco --stop-time 0.2", 0.04, 1},
		{"quarter-car-a", "--param order=1 --output-interval 0.0123 --rate chassis=3 --record * --record bond.* --step-size 1e-4 --stop-time 20", 0.7, 8},
	} {
		later := time.Duration(rng.Int64N(int64(c.kills) * 10e6))
		if !take() {
			continue
		}
		t.Run(c.system+" "+c.args, func(t *testing.T) {
			t.Parallel()
			args, every := append(strings.Fields(c.args), system(t, c.system)), fmt.Sprint(c.every)
			whole, plain := completed(t, every, args...), completed(t, "", args...)
			for _, table := range []string{"results.csv", "trace.csv"} {
				if !bytes.Equal(read(t, plain.path(table)), read(t, whole.path(table))) {
					t.Errorf("checkpoints change %s", table)
				}
			}
			broken := newCheckpointed(t, every, args...)
			kills := 0
			for kills < c.kills && broken.killed(t, later) {
				kills++
				broken.args = []string{"run", "--resume", "run.checkpoint"}
			}
			broken.resume(t)
			broken.equal(t, whole, fmt.Sprintf("killed %d times and resumed", kills))
			from := broken.manifest(t)["resumed_from"].(map[string]any)
			if c.kills > 1 && kills == 0 || from["checkpoint"] != broken.path("run.checkpoint") ||
				!(from["time"].(float64) >= c.every) || !(from["steps"].(float64) >= 1) {
				t.Errorf("%d kills, resumed from %v", kills, from)
			}
			broken.resume(t)
			broken.equal(t, whole, "resumed from the last checkpoint")
		})
	}
}

// With --checkpoint an interrupt writes a checkpoint and prints the command that resumes it.
func TestCheckpointOnInterrupt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // there is no such signal
	}
	args := []string{"--stop-time", "30", "--step-size", "1e-4", "--record", "none", "--param", "order=2", system(t, "quarter-car-b")}
	c := newCheckpointed(t, "0", args...)
	c.args = slices.DeleteFunc(c.args, func(arg string) bool { return arg == "--quiet" })
	p := c.start(t)
	written(t, c.path("trace.csv"), 1000)
	p.signal(t, syscall.SIGINT)
	if code := p.end(); code != 1 || !strings.Contains(p.out.String(), "macrostep run --resume run.checkpoint") {
		t.Fatalf("exit code %d\n%s", code, p.out.String())
	}
	before := read(t, c.path("trace.csv"))
	c.resume(t, "--quiet")
	after, whole := read(t, c.path("trace.csv")), read(t, completed(t, "", args...).path("trace.csv"))
	if len(after) <= len(before) || !bytes.HasPrefix(after, before) || !bytes.Equal(after, whole) {
		t.Errorf("%d bytes of attempts, %d when it was interrupted: not those of the run that was not", len(after), len(before))
	}
}

// A default step is that of the first run, also after a second resumption and with another stop time. A warning and the
// manifest say so.
func TestResumeDefaultStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Its document has no step size.
	if _, err := probe.Sources(dir, "life", probe.LifeCapabilities+` canSerializeFMUstate="true"`); err != nil {
		t.Fatal(err)
	}
	pair := systemOf(t, dir, map[string]string{"first": "life", "second": "life"})
	c := completed(t, "0.1", "--compile", "--stop-time", "0.25", pair)
	for _, stop := range []string{"0.35", "0.55"} {
		call(t, "run", "--resume", c.path("run.checkpoint"), "--quiet=false", "--stop-time", stop).is(t, 0,
			"warning: no step size is given: the macro step remains 0.00025 s, a thousandth of the time span of the run that is resumed;")
	}
	if step := c.manifest(t)["step_size"].(map[string]any); step["value"] != 0.00025 || step["source"] != "a thousandth of the time span of the run that is resumed" {
		t.Errorf("the step size in the manifest is %v", step)
	}
	given := completed(t, "0.1", "--compile", "--stop-time", "0.25", "--step-size", "0.00025", pair)
	if o := call(t, "run", "--resume", given.path("run.checkpoint"), "--quiet=false", "--stop-time", "0.35"); strings.Contains(o.output, "no step size is given") {
		t.Errorf("the step was given\n%s", o.output)
	}
}

// With --output a resumed run writes the rows after the checkpoint to another file, and leaves the first file
// unchanged.
func TestResumeIntoAnotherFile(t *testing.T) {
	for _, rows := range []string{"--record=*", "--output-interval=0.0107"} {
		c := completed(t, "0.123", "--stop-time", "0.3", rows, system(t, "quarter-car-a"))
		whole := read(t, c.path("results.csv"))
		c.resume(t, "--output", c.path("rest.csv"), "--trace", c.path("rest-trace.csv"))
		if !bytes.Equal(whole, read(t, c.path("results.csv"))) {
			t.Error("the first file has changed")
		}
		header, rest, _ := bytes.Cut(read(t, c.path("rest.csv")), []byte("\n"))
		if !bytes.HasPrefix(whole, header) || !bytes.HasSuffix(whole, append([]byte("\n"), rest...)) ||
			bytes.Count(rest, []byte("\n")) < 3 {
			t.Errorf("%s: the rest is not the end of the whole", rows)
		}
		if first, _, _ := strings.Cut(string(rest), ","); rows == "--record=*" && first != "0.247" {
			t.Errorf("the first row behind the checkpoint at t = 0.246 is that of t = %s", first)
		}
	}
}

// A checkpoint of another run or a damaged one is refused, and nothing is touched; the message names the difference.
func testForeignCheckpoints(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "copy.ssp")
	original := read(t, system(t, "quarter-car-a"))
	write(t, model, original)
	c := completed(t, "0.1", "--stop-time", "0.3", model)
	good, results := read(t, c.path("run.checkpoint")), read(t, c.path("results.csv"))
	refused := func(says []string, args ...string) {
		t.Helper()
		call(t, append([]string{"run", "--resume", c.path("run.checkpoint")}, args...)...).is(t, 2, says...)
		if !bytes.Equal(results, read(t, c.path("results.csv"))) {
			t.Fatalf("%v: the results have changed", says)
		}
	}
	for args, says := range map[string]string{
		"--algorithm gauss-seidel":                           "algorithm was explicit, but is gauss-seidel",
		"--param order=2":                                    "parameter order was 0, but is 2",
		"--step-size 0.002":                                  "the step size was 0.001, but is 0.002",
		"--set wheel.m_w=41":                                 "the value of wheel.m_w is 41, but was absent",
		"--output-interval 0.01":                             "the time between rows was 0, but is 0.01",
		"--rate wheel=2":                                     "the rate of wheel is 2/1, but was absent",
		"--quirk wheel=noRollback":                           "the quirks of wheel is noRollback",
		system(t, "two-mass-ff"):                             "component wheel was with states",
		"--monitor-energy --bond axle=wheel.F_c:chassis.v_c": "bond axle is ",
	} {
		refused([]string{says, "the checkpoint belongs to another run"}, strings.Fields(args)...)
	}
	write(t, model, read(t, system(t, "quarter-car-b")))
	refused([]string{"the FMU of wheel was sha256:", "the inputs of wheel was"})
	write(t, model, original)

	damaged := map[string]string{string(good) + "x": "damaged", "time,a\n0,1\n": "not a checkpoint of macrostep",
		string(good[:8]) + string(rune(77)) + string(good[9:]): "format 77"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		bad := slices.Clone(good)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		damaged[string(bad)] = "checkpoint"
	}
	for _, n := range []int{0, 5, 20, len(good) / 2, len(good) - 1} {
		damaged[string(good[:n])] = "checkpoint"
	}
	for text, says := range damaged {
		write(t, c.path("run.checkpoint"), text)
		refused([]string{says})
	}
	write(t, c.path("run.checkpoint"), good)
	for says, text := range map[string]string{"it ends after": string(results[:1000]),
		"are not what they were": strings.Replace(string(results), "0.1", "0.2", 1)} {
		write(t, c.path("results.csv"), text)
		call(t, "run", "--resume", c.path("run.checkpoint")).is(t, 2, says, "name another file")
		if string(read(t, c.path("results.csv"))) != text {
			t.Errorf("%s: the results have changed", says)
		}
	}
	// An unterminated last row is replaced.
	write(t, c.path("results.csv"), results[:len(results)-3])
	c.resume(t)
	if !bytes.Equal(results, read(t, c.path("results.csv"))) {
		t.Error("an unterminated last row was not replaced")
	}
}

// A run with a scenario, resumed from any checkpoint, gives the same bytes and verdicts.
func testResumeScenario(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "fault.yaml")
	for name, text := range map[string]string{"pedal.csv": "time,v\n0,0\n0.1,0.5\n0.4,-0.5\n", "fault.yaml": `
name: everything at once
events:
  - {at: 0.02, offset: {wheel.F_c: 20}, for: 0.21}
  - {at: 0.05, freeze: [chassis.F_c], for: 0.1}
  - {when: wheel.z_w > 0.05, from: 0.06, scale: {chassis.v_c: 0.5}}
  - {at: 0.12, replay: {wheel.v_c: {file: pedal.csv, column: v, relative: true}}}
  - {at: 0.33, release: [wheel.v_c, chassis.v_c], set: {chassis.F_c: 30}}
expect:
  - {variable: wheel.z_w, always: {}, max: 0.05}
  - {variable: wheel.z_w, always: {until: 0.3}, max: 1}
  - {variable: wheel.v_w, eventually: {until: 0.1}, min: 1}
  - {variable: wheel.v_w, eventually: {}, min: 100}
  - {variable: chassis.z_c, at: 0.1, min: -1}
  - {variable: chassis.z_c, at: 0.39, min: -1}
`} {
		write(t, filepath.Join(dir, name), text)
	}
	for _, algorithm := range []string{"explicit", "im-slocal", "model-based-corrector"} {
		first := ""
		for _, every := range []string{"0.39", "0.035", "0.25"} {
			c := newCheckpointed(t, every, "--algorithm", algorithm, "--param", "order=1", "--stop-time", "0.4",
				"--scenario", path, system(t, "quarter-car-a"))
			if algorithm == "im-slocal" { // FMUs with a solver of fixed steps leave an error that no step size removes
				c.args = append(c.args, "--param", "control.step=fixed")
			}
			for _, args := range [][]string{c.args, {"run", "--resume", "run.checkpoint", "--quiet"}} {
				code, output := macrostepIn(t, c.dir, args...)
				if code != 1 || !strings.Contains(output, "wheel.v_w came no nearer") {
					t.Fatalf("%s: exit code %d\n%s", algorithm, code, output)
				}
				m := c.manifest(t)
				left := fmt.Sprint(m["scenario"], m["manipulated"], m["warnings"], output,
					string(read(t, c.path("results.csv"))), string(read(t, c.path("trace.csv"))))
				if first == "" {
					first = left
				}
				if left != first {
					t.Errorf("%s, every %s s, %s: other rows or verdicts", algorithm, every, args[1])
				}
			}
		}
		if !strings.Contains(first, "replays wheel.v_c") || strings.Count(first, "passed:true") != 4 {
			t.Errorf("the scenario did not play: %.2000s", first)
		}
	}
	c := newCheckpointed(t, "0.2", "--stop-time", "0.4", "--scenario", path, system(t, "quarter-car-a"))
	_, _ = macrostepIn(t, c.dir, c.args...)
	for name, why := range map[string]string{"pedal.csv": "table 1 of the scenario", "fault.yaml": "the scenario"} {
		old := read(t, filepath.Join(dir, name))
		write(t, filepath.Join(dir, name), string(old)+"\n")
		if code, output := macrostepIn(t, c.dir, "run", "--resume", "run.checkpoint"); code != 2 || !strings.Contains(output, why) {
			t.Errorf("%s has changed: exit code %d\n%s", name, code, output)
		}
		write(t, filepath.Join(dir, name), old)
	}
}

// The page of a resumed run shows all of the run if its results hold all rows, else a note.
func TestResumeReport(t *testing.T) {
	c := completed(t, "0.123", "--stop-time", "0.3", "--report", "car.html", system(t, "quarter-car-a"))
	drawn := func(name string) []string {
		return regexp.MustCompile(`class="line l\d" d="[^"]*"`).FindAllString(string(read(t, c.path(name))), -1)
	}
	want := drawn("car.html")
	c.resume(t)
	if got := drawn("car.html"); len(want) < 5 || !slices.Equal(got, want) {
		t.Errorf("%d lines, or others than the %d of the run as a whole", len(got), len(want))
	}
	c.resume(t, "--output", c.path("rest.csv"), "--trace", c.path("rest-trace.csv"), "--report", c.path("rest.html"))
	if page := string(read(t, c.path("rest.html"))); !strings.Contains(page, "earlier points are not in its results") ||
		!strings.Contains(page, "<dd>from "+c.path("run.checkpoint")+" at 0.246 s</dd>") {
		t.Error("the page of the rest does not tell that it is one")
	}
}

// A run resumed to a later stop time gives the bytes of one that had it from the start: tables, attempts, scenario
// and counters.
func TestResumeToLaterStop(t *testing.T) {
	t.Parallel()
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	write(t, scenario, "events:\n  - {at: 0.05, scale: {wheel.F_c: 0.9}, for: 0.2}\n  - {at: 0.25, offset: {wheel.F_c: 1}}\nexpect:\n  - {variable: chassis.z_c, always: {}, max: 1}\n")
	for name, args := range map[string][]string{
		"fixed steps":    {"--param", "order=1", "--output-interval", "0.007"},
		"variable steps": {"--algorithm", "ex-slocal"},
	} {
		t.Run(name, func(t *testing.T) {
			args = append(args, "--scenario", scenario, system(t, "quarter-car-a"))
			whole := completed(t, "0.06", append(args, "--stop-time", "0.3")...)
			c := completed(t, "0.06", append(args, "--stop-time", "0.13")...)
			c.resume(t, "--stop-time", "0.3")
			c.equal(t, whole, name)
		})
	}
}
