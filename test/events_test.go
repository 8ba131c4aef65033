package test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// samplerFMU returns the FMU of probe.Sampler whose Clock has this variability.
func samplerFMU(t testing.TB, interval string) string {
	t.Helper()
	attributes := fmt.Sprintf(`intervalVariability=%q`, interval)
	if interval == "constant" {
		attributes += ` intervalDecimal="0.1"`
	}
	return once(t, "sampler_"+interval+".fmu", func(string) error {
		_, err := probe.Sampler(work, "sampler_"+interval, attributes)
		return err
	})
}

// sampled writes a system of a plant x' = -0.5 x + u and the controller of probe.Sampler.
func sampled(t testing.TB) (path string, set []string) {
	t.Helper()
	dir := t.TempDir()
	path = coupled(t, dir, "2", []member{{"plant", "linear", "u[1]", "y[1]"}, {"controller", "sampler_constant", "u", "y"}},
		"plant.y[1] → controller.u\ncontroller.y → plant.u[1]")
	copyFMUs(t, filepath.Join(dir, "resources"), "linear")
	write(t, filepath.Join(dir, "resources", "sampler_constant.fmu"), read(t, samplerFMU(t, "constant")))
	for _, v := range []string{"plant.A[1,1]=-0.5", "plant.B[1,1]=1", "plant.C[1,1]=1", "plant.x0[1]=1", "controller.kp=2", "controller.ki=3"} {
		set = append(set, "--set", v)
	}
	return path, set
}

// A controller that samples when its Clock ticks gives, before the plant, the exact solution of the sampled system (fmi3
// 20, 21), and the same bytes however it runs.
func TestEventsController(t *testing.T) {
	path, set := sampled(t)
	args := slices.Concat(set, []string{path, "--algorithm=explicit", "--param", "scheme=gauss-seidel", "--param", "sequence=controller,plant",
		"--param", "delivery=held", "--step-size=0.02"})
	o := complete(t, args...)
	const T, kp, ki = 0.1, 2.0, 3.0
	x, i, y := 1.0, 0.0, 0.0
	X, Y, Z := o.column(t, "plant.y[1]"), o.column(t, "controller.y"), o.column(t, "time")
	if len(X) != 101 {
		t.Fatalf("%d rows", len(X))
	}
	for k := range X {
		if k == 0 { // a tick after the initialisation
			y, i = -kp*x+i, i-ki*T*x
		}
		if math.Abs(X[k]-x) > 1e-13 || math.Abs(Y[k]-y) > 1e-13 {
			t.Fatalf("t = %g: x = %.17g, y = %.17g, want %.17g and %.17g", Z[k], X[k], Y[k], x, y)
		}
		if k%5 == 0 && k > 0 { // one at the start of the step
			y, i = -kp*x+i, i-ki*T*x
		}
		x = x*math.Exp(-0.5*0.02) - y*math.Expm1(-0.5*0.02)/0.5
	}

	for name, more := range map[string][]string{"isolated": {"--isolate=always"}, "two threads": {"--workers=2"}, "traced": {"--debug", "calls=calls.txt"},
		"host": {hostFlag(t)}} {
		if complete(t, append(slices.Clone(args), more...)...).table(t) != o.table(t) {
			t.Errorf("%s: other bytes", name)
		}
	}
	c := completed(t, "0.33", append(slices.Clone(args), "--stop-time=1", "--output=results.csv")...)
	rest := complete(t, "--resume", c.path("run.checkpoint"), "--stop-time=2")
	if rows := rest.column(t, "controller.y"); rows[len(rows)-1] != Y[len(Y)-1] {
		t.Error("resumed: other bytes")
	}
}

// An algorithm that repeats steps restores what is known of events with the states: the Clock ticks as often as in a plain
// run. Where it chooses the step sizes, steps end at the announced events (fmi3 22).
func TestEventsRollback(t *testing.T) {
	path, set := sampled(t)
	args := slices.Concat(set, []string{path, "--algorithm=implicit", "--step-size=0.02", "--record=controller.ticks"})
	o := complete(t, args...)
	if ticks := o.column(t, "controller.ticks"); ticks[len(ticks)-1] != 20 {
		t.Errorf("%g ticks", ticks[len(ticks)-1])
	}
	if complete(t, append(args, "--isolate=always")...).table(t) != o.table(t) {
		t.Error("isolated: other bytes")
	}

	dir := t.TempDir()
	path = coupled(t, dir, "1", []member{{"one", "linear", "u[1]", "y[1]"}, {"two", "linear", "u[1]", "y[1]"}, {"sampler", "sampler_constant", "", "z"}},
		"one.y[1] → two.u[1]\ntwo.y[1] → one.u[1]")
	copyFMUs(t, filepath.Join(dir, "resources"), "linear")
	write(t, filepath.Join(dir, "resources", "sampler_constant.fmu"), read(t, samplerFMU(t, "constant")))
	set = []string{"--set=sampler.pace=0.07", "--set=one.x0[1]=1"}
	for _, name := range []string{"one", "two"} {
		set = append(set, "--set="+name+".A[1,1]=-1", "--set="+name+".B[1,1]=0.5", "--set="+name+".C[1,1]=1")
	}
	for _, algorithm := range []string{"ex-local", "im-milne"} {
		o := complete(t, append(set, path, "--algorithm", algorithm, "--record=sampler.ticks", "--record=sampler.stairs")...)
		at, ticks, stairs := o.column(t, "time"), o.column(t, "sampler.ticks"), o.column(t, "sampler.stairs")
		for event := 0.07; event < 1; event += 0.07 {
			if !slices.ContainsFunc(at, func(t float64) bool { return math.Abs(t-event) < 1e-9 }) {
				t.Errorf("%s: no step ends at the event at %g s", algorithm, event)
			}
		}
		if n := len(at) - 1; ticks[n] != 11 || stairs[n] != 14 || n > 500 {
			t.Errorf("%s: %g ticks, %g stairs, %d steps", algorithm, ticks[n], stairs[n], n)
		}
	}
}

// Discrete inputs act where they change, time events on time, also between communication points and with early returns
// (fmi3 19, 21); what a Clock of each kind ticks follows from its interval (fmi3 20).
func TestEventsInside(t *testing.T) {
	table := filepath.Join(t.TempDir(), "d.csv")
	write(t, table, []byte("time,d,n\n0,1,0\n0.2,1,2\n0.2,1,2\n0.5,-1,2\n1,-1,2\n"))
	path := samplerFMU(t, "constant")
	words := filepath.Join(t.TempDir(), "words.csv")
	write(t, words, []byte("time,word\n0,a\n0.45,b\n"))
	c := completed(t, "0.3", path, "--input", words, "--step-size=0.1", "--stop-time=1", "--output=results.csv") // which tests states
	if rows := readCSV(t, c.path("results.csv")); rows[len(rows)-1][slices.Index(rows[0], "sampler_constant.updates")] != "12" {
		t.Errorf("%v: want 11 ticks and one more event for the word", rows[len(rows)-1])
	}
	for _, more := range [][]string{nil, {"--set=fault=8"}, {"--isolate=always"}} {
		o := complete(t, append(more, path, "--input", table, "--step-size=0.1", "--stop-time=1", "--set=pace=0.07")...)
		z, s, stairs := o.column(t, "sampler_constant.z"), o.column(t, "sampler_constant.s"), o.column(t, "sampler_constant.stairs")
		if want := 0.2*1 + 0.3*3 + 0.5*1; math.Abs(z[10]-want) > 1e-12 || s[3] != 3 || s[10] != 1 || stairs[10] != 14 || stairs[7] != 9 { // the tenth at 0.7 s waits for the inputs there
			t.Errorf("%v: z = %.17g, want %g; s = %v, stairs = %v", more, z[10], want, s, stairs)
		}
	}
	for interval, c := range map[string]struct {
		ticks float64
		set   []string
	}{"fixed": {11, nil}, "tunable": {11, nil}, "changing": {4, []string{"--set=kind=1"}}, // at 0.1, 0.3, 0.6, 1
		"countdown": {3, []string{"--set=kind=2", "--set=pace=0.3", "--set=interval=0.05"}}} {
		o := complete(t, append(c.set, samplerFMU(t, interval), "--step-size=0.1", "--stop-time=1")...)
		if ticks := o.column(t, "sampler_"+interval+".ticks"); ticks[len(ticks)-1] != c.ticks {
			t.Errorf("%s: %g ticks, want %g", interval, ticks[len(ticks)-1], c.ticks)
		}
	}
}

// What goes wrong in Event Mode is named with the time and the remedy, and rows are kept.
func TestEventsFaults(t *testing.T) {
	for fault, want := range map[int][]string{
		1:  {"fmi3UpdateDiscreteStates: at t = 0.3 s the event iteration has not ended after 1000 calls", "correct the model"},
		2:  {"fmi3UpdateDiscreteStates: at t = 0.3 s the next event time is NaN"},
		4:  {"fmi3DoStep: the FMU has returned early, or announced events, 1001 times near t = 0.3 s"},
		5:  {"ended in fmi3UpdateDiscreteStates at t = 0.3 s: "},
		6:  {"fmi3UpdateDiscreteStates", "did not return within"},
		9:  {"ended in fmi3EnterEventMode at t = 0.3 s: "},
		10: {"fmi3DoStep: the FMU has returned early, or announced events, 1001 times near t = 0.3 s"},
	} {
		o := run(t, samplerFMU(t, "constant"), fmt.Sprintf("--set=fault=%d", fault), "--set=at=0.3", "--step-size=0.1", "--stop-time=1", "--isolate=always", "--step-timeout=5")
		if o.is(t, 1, append(want, "sampler_constant.fmu")...); o.rows != 3 && (o.rows != 4 || fault != 4 && fault != 10) {
			t.Errorf("fault %d: %d rows", fault, o.rows)
		}
	}
	o := run(t, samplerFMU(t, "constant"), "--set=fault=3", "--set=at=0.3", "--step-size=0.1", "--stop-time=1")
	if o.code != 0 || o.manifest.Status != "terminated" || o.rows != 4 || !strings.Contains(o.manifest.Reason, "at t = 0.3 s") {
		t.Errorf("%s, %d rows\n%s", o.manifest.Status, o.rows, o.output)
	}
	run(t, samplerFMU(t, "fixed"), "--set=fault=7").is(t, 1, "at t = 0 s the fixed Clock tick has the interval NaN s", "correct the parameters")
	run(t, system(t, "quarter-car-a"), "--quirk=wheel=eventMode").is(t, 2, "wheel", "has no event mode (hasEventMode of FMI 3.0)")
	call(t, "info", samplerFMU(t, "triggered")).is(t, 2, "tick is a Clock: it ticks when another FMU triggers it", "FA13")
}

// Clocks are neither exchanged nor recorded, and need no connector.
func TestEventsClocks(t *testing.T) {
	path, made := samplerFMU(t, "constant"), filepath.Join(t.TempDir(), "made.ssp")
	call(t, "validate", path, "--dynamic").is(t, 0)
	if o := complete(t, path, "--record=*", "--stop-time=1", "--step-size=0.1"); o.columns["sampler_constant.u"] == nil || o.columns["sampler_constant.tick"] != nil {
		t.Error("the Clock is recorded, or inputs are not")
	}
	call(t, "ssp", "new", "sampler="+path, "--output", made).is(t, 0)
	if o := complete(t, made, "--stop-time=1", "--step-size=0.1"); o.column(t, "sampler.ticks")[10] != 11 {
		t.Error("the Clock of the component does not tick")
	}
}

// A discrete input that a scenario sets switches event mode on; an event one rounding error before the end leaves no step.
func TestEventsDriven(t *testing.T) {
	dir := t.TempDir()
	played := filepath.Join(dir, "d.yaml")
	write(t, played, []byte("events: [{at: 0.5, set: {d: 2}}]\n"))
	o := complete(t, samplerFMU(t, "constant"), "--scenario", played, "--step-size=0.1", "--stop-time=1", "--debug", "calls="+filepath.Join(dir, "calls.txt"))
	if z := o.column(t, "sampler_constant.z"); math.Abs(z[10]-1) > 1e-12 || !strings.Contains(string(read(t, filepath.Join(dir, "calls.txt"))), "eventModeUsed=1") {
		t.Errorf("z = %v", z)
	}
	path := coupled(t, dir, "1", []member{{"one", "linear", "u[1]", "y[1]"}, {"sampler", "sampler_constant", "", "z"}}, "one.y[1] → one.u[1]")
	copyFMUs(t, filepath.Join(dir, "resources"), "linear")
	write(t, filepath.Join(dir, "resources", "sampler_constant.fmu"), read(t, samplerFMU(t, "constant")))
	complete(t, path, "--algorithm=ex-local", "--set=sampler.pace=0.9999999999999999", "--set=one.C[1,1]=1", "--set=one.x0[1]=1", "--set=one.B[1,1]=-1")
}
