package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/docs"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// newRun makes a run of the two parts of mastertest's oscillator in which a scenario is played.
func newRun(t testing.TB, s *Scenario, preset string, o master.Options, first, second master.Subsystem) (*Player, *master.Run, error) {
	t.Helper()
	sys, err := master.NewSystem([]master.Subsystem{first, second}, mastertest.OscillatorConnections())
	must(t, err)
	c, err := algorithms.New(preset, nil)
	must(t, err)
	if o.Stop == 0 {
		o.Stop, o.Step = 1, 0.01
	}
	p := s.Play()
	o.Hooks = []master.Hook{p}
	run, err := master.NewRun(sys, c.Algorithm, o)
	return p, run, err
}

// play runs the oscillator with a scenario.
func play(t testing.TB, preset string, text string, o master.Options) (*Player, *mastertest.Memory, master.Result, error) {
	t.Helper()
	s, err := parse(t.Context(), "test.yaml", []byte(text))
	if err != nil {
		return nil, nil, master.Result{}, err
	}
	linear := mastertest.Oscillator()
	m := &mastertest.Memory{}
	o.Recorders = []master.Recorder{m}
	p, run, err := newRun(t, s, preset, o, linear[0], linear[1])
	if err != nil {
		return p, m, master.Result{}, err
	}
	result, err := run.Run(t.Context())
	return p, m, result, err
}

// The order of events, how long they last, and who wins where two act on one variable.
func TestEvents(t *testing.T) {
	p, m, result, err := play(t, "explicit", `
events:
  - at: 0.5
    set: {first.u1: 1}
  - at: 0.1
    set: {first.u1: 2}
    for: 0.1
  - at: 0.15
    offset: {first.u1: 7}
    scale: {first.u1: 0}
  - at: 0.3
    release: first.u1
  - when: first.u1 >= 1
    from: 0.4
    freeze: [second.u1]
  - at: 0.5
    set: {first.u1: 3}
  - when: [first.u1 == 3, second.u1 < 1e9]
    stop: seen
expect:
  - {variable: first.u1, at: 0.05, value: 2, relative: 1000}
  - {variable: first.u1, always: {from: 0.15, until: 0.29}, value: 7, tolerance: 0}
  - {variable: first.u1, eventually: {from: 0.3}, value: 3, tolerance: 0}
`, master.Options{})
	if err != nil || result.Status != master.Complete || !strings.Contains(result.Reason, "seen") || p.Err() != nil {
		t.Fatalf("%v, %v (%s), %v", err, result.Status, result.Reason, p.Err())
	}
	at := func(time float64) float64 {
		k := slices.IndexFunc(m.T, func(x float64) bool { return math.Abs(x-time) < 1e-9 })
		return m.U[k][0]
	}
	// The offset at 0.15 takes over: what was set at 0.1 for 0.1 s is not released.
	for time, want := range map[float64]float64{0.1: 2, 0.14: 2, 0.15: 7, 0.2: 7, 0.29: 7, 0.5: 3} {
		if got := at(time); got != want {
			t.Errorf("at %g s it is %g, not %g", time, got, want)
		}
	}
	if at(0.3) == 7 || at(0.09) == 2 {
		t.Error("it is held too long")
	}
	// A condition sees what stood before the events of its point; a stop ends it at the next.
	if last := m.T[len(m.T)-1]; math.Abs(last-0.51) > 1e-9 {
		t.Errorf("it ended at %g", last)
	}
	var lines []int
	for _, e := range p.Report().Events {
		lines = append(lines, e.Line)
	}
	if !slices.Equal(lines, []int{5, 8, 11, 3, 16, 13, 18}) {
		t.Errorf("the events were those of lines %v", lines)
	}
	if !slices.Equal(result.Manipulated, []string{"first.u1", "second.u1"}) {
		t.Errorf("manipulated: %v", result.Manipulated)
	}
}

// Steps of a size that the algorithm chooses end at the times of the file.
func TestTimesExact(t *testing.T) {
	for _, preset := range []string{"im-slocal", "predictor-corrector"} {
		_, m, _, err := play(t, preset, `
events:
  - {at: 0.123456789, set: {first.u1: 1}, for: 0.1}
expect:
  - {variable: first.y1, at: 0.654321, max: 10}
  - {variable: first.y1, always: {from: 0.3333, until: 0.7777}, max: 10}
`, master.Options{})
		must(t, err)
		for _, want := range []float64{0.123456789, 0.123456789 + 0.1, 0.654321, 0.3333, 0.7777} {
			if !slices.Contains(m.T, want) {
				t.Errorf("%s: no step ends at %v", preset, want)
			}
		}
	}
}

// The same bits with any number of workers, and with algorithms that go back.
func TestWorkers(t *testing.T) {
	const text = `
events:
  - {at: 0.2, scale: {second.y1: 0.5}, for: 0.3}
  - {when: first.y1 < 0, freeze: [second.u2], for: 0.1}
`
	for _, preset := range []string{"explicit", "implicit", "ex-slocal"} {
		_, one, _, err := play(t, preset, text, master.Options{Stop: 1, Step: 0.01, Workers: 1})
		must(t, err)
		_, two, result, err := play(t, preset, text, master.Options{Stop: 1, Step: 0.01, Workers: 2})
		if err != nil || len(result.Manipulated) != 2 {
			t.Fatal(err, result.Manipulated)
		}
		if !slices.Equal(one.T, two.T) || !slices.EqualFunc(one.Y, two.Y, slices.Equal[[]float64]) || !slices.EqualFunc(one.U, two.U, slices.Equal[[]float64]) {
			t.Errorf("%s: the results differ", preset)
		}
	}
}

// Tables drive connected inputs, by the time of the run and by that since the event.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "ramp.csv"), []byte("time,first.u1,other\n0,0,5\n1,10,5\n"), 0o666))
	path := filepath.Join(dir, "s.yaml")
	s, err := parse(t.Context(), path, []byte(`
events:
  - {at: 0.2, replay: {first.u1: ramp.csv, second.u1: {file: ramp.csv, column: first.u1, relative: true}}, for: 0.5}
expect:
  - {variable: first.u1, at: 0.3, value: 3, tolerance: 1e-9}
  - {variable: second.u1, at: 0.3, value: 1, tolerance: 1e-9}
  - {variable: first.u1, at: 0.69, value: 6.9, tolerance: 1e-9}
  - {variable: first.u1, at: 0.7, min: 100}
`))
	must(t, err)
	if !slices.Equal(s.Files(), []string{filepath.Join(dir, "ramp.csv")}) {
		t.Errorf("files: %v", s.Files())
	}
	linear := mastertest.Oscillator()
	p, run, err := newRun(t, s, "explicit", master.Options{}, linear[0], linear[1])
	must(t, err)
	if _, err := run.Run(t.Context()); err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
}

// Conditions and expectations see an output as its component gives it.
func TestRawOutputs(t *testing.T) {
	p, m, _, err := play(t, "explicit", `
events:
  - {at: 0, set: {first.y1: 50}, for: 0.05}
  - {when: first.y1 > 40, stop: manipulated}
expect:
  - {variable: first.y1, always: true, max: 40}
  - {variable: second.u1, always: {until: 0.04}, value: 50, tolerance: 0}
`, master.Options{})
	if err != nil || p.Err() != nil || len(p.Report().Events) != 2 || p.Report().Happened != 1 || p.Report().Given != 2 || m.T[len(m.T)-1] < 1 {
		t.Errorf("%v, %v: %+v", err, p.Err(), p.Report())
	}
}

// Failed expectations are reported with line, time, value and limit, impossible expectations and
// events before the run.
func TestFailures(t *testing.T) {
	for text, want := range map[string]string{
		"\nevents:\n  - {at: 0, set: {first.y9: 1}}":                                  `test.yaml:3: no variable is called "first.y9"`,
		"\nevents:\n  - {at: 0, set: {first.u1: on}}":                                 `"on" is not a finite number`,
		"\nevents:\n  - {at: 0, set: {first.u1: .inf}}":                               "is not a finite number",
		"\nevents:\n  - {at: 0, set: {first.u1: '1'}}":                                "is not a finite number",
		"\nevents:\n  - {when: first.u1 > x, set: {first.u1: 1}}":                     `"x" is not a finite number`,
		"\nevents:\n  - {when: u1 > 1, set: {first.u1: 1}}":                           `did you mean "first.u1"`,
		"{variable: first.y1, at: 0, value: 2, tolerance: 0.5}":                       "test.yaml:3: first.y1 is 1 at t = 0 s, 0.5 beyond the limit of 1.5; expected is first.y1 = 2 ± 0.5 at t = 0 s",
		"{variable: first.y1, at: 0, value: 2, relative: 0.1, tolerance: 0.1}":        "first.y1 = 2 ± 0.3 at",
		"{variable: first.y1, always: , min: 0.5}":                                    "test.yaml:3: first.y1 is 0.",
		"{variable: first.y1, always: true, min: 1}":                                  "is 0.995021 at t = 0.01 s, 0.004979 beyond the limit of 1; expected is first.y1 ≥ 1 always; at worst -0.688208 at t = 0.56 s",
		"{variable: first.y1, eventually: {until: 0.5}, min: 1.25}":                   "came no nearer than 1 at t = 0 s, 0.25 beyond the limit of 1.25; expected is first.y1 ≥ 1.25 eventually until t = 0.5 s",
		"{variable: first.y1, always: {from: 0.991, until: 0.999}, max: 5}":           "never judged: the run ended at t = 1 s",
		"{variable: first.y1, eventually: {from: 0.2, until: 0.3}, min: -1, max: -2}": "min -1 is greater than max -2",
		"{variable: first.y1, at: 2, max: 5}":                                         "not judged before 2 s, and the run ends at 1 s",
		"{variable: first.y3, at: 1, max: 5}":                                         `no variable is called "first.y3"; did you mean`,
		"{variable: first.y1, at: 1, value: 5}":                                       "within a tolerance",
		"{variable: first.y1, at: 1, value: yes}":                                     `"yes" is not a finite number`,
	} {
		if !strings.Contains(text, "events") {
			text = "\nexpect:\n  - " + text
		}
		p, _, _, err := play(t, "explicit", text+"\n", master.Options{})
		if err == nil {
			err = p.Err()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n  %v,\n  not %s", text, err, want)
		}
	}
}

// Where a subsystem ends the simulation, an expectation over the whole run is judged; one
// that reaches beyond the end is not.
func TestTerminated(t *testing.T) {
	s, err := parse(t.Context(), "test.yaml", []byte("\nexpect:\n  - {variable: first.y1, always: , min: -5}\n  - {variable: first.y1, always: {until: 0.9}, min: -5}\n"))
	must(t, err)
	linear := mastertest.Oscillator()
	p, run, err := newRun(t, s, "explicit", master.Options{}, &mastertest.Faulty{Subsystem: linear[0], AtStep: 51, Terminate: true}, linear[1])
	must(t, err)
	result, err := run.Run(t.Context())
	if err != nil || result.Status != master.Terminated {
		t.Fatalf("%v, %s", err, result.Status)
	}
	if all := p.Report().Expectations; !all[0].Passed || !all[1].Unjudged {
		t.Errorf("%+v", all)
	}
}

// A run that is to stop at the first failure does.
func TestStopOnFailure(t *testing.T) {
	p, m, result, err := play(t, "explicit", "stop-on-failure: true\nexpect:\n  - {variable: first.y1, always: , min: 0}\n", master.Options{})
	if err != nil || p.Err() == nil || !strings.Contains(result.Reason, "line 3") || result.Time > 0.5 || m.Y[len(m.Y)-1][0] >= 0 || m.Y[len(m.Y)-2][0] < 0 {
		t.Errorf("%v, %v, %s at %g", err, p.Err(), result.Reason, result.Time)
	}
}

// Errors in files have a line and a remedy.
func TestRead(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                       {"empty"},
		"name: x\n":                              {"neither events nor expectations"},
		"a: [":                                   {"test.yaml:1: did not find", "correct the YAML"},
		"a: 1\n\xff\xfe":                         {"test.yaml:2: there is the byte 0xff, and a scenario is text in UTF-8"},
		"\x7fELF\x02\x00\x00":                    {"test.yaml:1: there is the byte 0x02"},
		"events:\n  - {when: a.b => 1, stop: x}": {`test.yaml:2: the operator of the condition "a.b => 1" is written >=, not =>`},
		"events:\n  - {when: a.b =< 1, stop: x}": {`is written <=, not =<`},
		"expect:\n  - {variable: a, always: yes, max: 1}": {`test.yaml:2: always is "yes"; it must be true, which means over the whole run, or a mapping of from, until`},
		"- 1":                          {"test.yaml:1: the scenario is a list"},
		"evnts: 1\nexpect: 3":          {`test.yaml:1: the scenario has no key "evnts"; did you mean "events"?`, "test.yaml:2: expect is \"3\"; it must be a list"},
		"events:\n  - {at: 1}":         {"test.yaml:2: the event does nothing"},
		"events:\n  - {set: {a.b: 1}}": {"give one of at and when"},
		"events:\n  - {at: 1, when: a > 2, stop: x}":                      {"give one of at and when"},
		"events:\n  - {at: 1, from: 2, stop: x}":                          {"from is the earliest time of a condition"},
		"events:\n  - {at: .nan, stop: x}":                                {"at is \".nan\"; it must be a finite number"},
		"events:\n  - {at: 1, for: 0, set: {a: 1}}":                       {"for is 0; it must be greater than 0"},
		"events:\n  - {at: 1, for: 1, release: a}":                        {"no lasting action"},
		"events:\n  - at: 1\n    set: {a: 1}\n    scale: {a: 2}":          {"test.yaml:4: the event acts on a twice, here and in line 3"},
		"events:\n  - {when: a >, stop: x}":                               {"is not \"component.variable OPERATOR value\""},
		"events:\n  - {at: 1, replay: {a: none.csv}}":                     {"test.yaml:2: reading signals"},
		"events:\n  - {at: 1, set: {a: 1, a: 2}}":                         {`set has "a" twice`},
		"events: &e\n  - {at: 1, stop: x}":                                {"anchors and aliases"},
		"events:\n  - &e {at: 1, stop: x}\n  - *e":                        {"test.yaml:2: anchors", "test.yaml:3: anchors"},
		"events:\n  - {at: 1, stop: x}\n---\na: 1\n":                      {"a second document"},
		"expect:\n  - {variable: a, at: 1}":                               {"either bounds or a value"},
		"expect:\n  - {variable: a, max: 1}":                              {"give one of at, always and eventually"},
		"expect:\n  - {variable: a, at: 1, always: , max: 1}":             {"give one of at, always and eventually"},
		"expect:\n  - {variable: a, at: 1, max: 1, tolerance: 1}":         {"not to bounds"},
		"expect:\n  - {variable: a, at: 1, value: 1, tolerance: -1}":      {"tolerance is -1; it must be at least 0"},
		"expect:\n  - {variable: a, always: {from: 2, until: 1}, max: 1}": {"which is earlier"},
		"expect:\n  - {variable: a, always: 3, max: 1}":                   {"always is \"3\"; it must be true, which"},
	} {
		_, err := parse(t.Context(), "test.yaml", []byte(text))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q:\n  %v,\n  not %s", text, err, w)
			}
		}
	}
	if _, err := Read(t.Context(), filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// example is that of the page in the documentation.
func example() string {
	_, text, _ := strings.Cut(docs.Page("scenarios"), "A scenario is a YAML file:\n\n")
	text, _, _ = strings.Cut(text, "\n\nAn event happens")
	return text
}

// The example of the page is a scenario.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "pedal.csv"), []byte("time,pedal\n0,1\n"), 0o666))
	s, err := parse(t.Context(), filepath.Join(dir, "x.yaml"), []byte(example()))
	if err != nil || s.Events() != 4 || s.Expectations() != 3 || !s.StopOnFailure || len(s.Variables) != 6 {
		t.Errorf("%v: %+v", err, s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example()))
	f.Add([]byte("events:\n  - {when: [a > 1], release: [b], stop: x}\nexpect:\n  - {variable: a, eventually: , value: true}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "replay") || strings.Contains(string(data), "file") {
			return // it would look for files
		}
		s, err := parse(t.Context(), "fuzz.yaml", data)
		if (s == nil) == (err == nil) && err == nil {
			t.Fatal("neither a scenario nor an error")
		}
		if err != nil {
			return
		}
		if s.Events()+s.Expectations() == 0 {
			t.Fatal("nothing to do")
		}
		p, _, _, err := play(t, "explicit", string(data), master.Options{Stop: 0.05, Step: 0.01})
		if err == nil {
			p.Report()
			_ = p.Err()
		}
	})
}

// Many events at few points happen in their order, and what they hold ends in time.
func TestManyEvents(t *testing.T) {
	const n = 3000
	var b strings.Builder
	b.WriteString("events:\n")
	order := rand.New(rand.NewPCG(9, 10)).Perm(n)
	for _, k := range order {
		fmt.Fprintf(&b, "  - {at: %g, set: {first.u1: %d}, for: 0.0335}\n", float64(k)/n, k)
	}
	b.WriteString("  - {when: first.u1 == 1500, freeze: [second.u1], for: 0.1}\nexpect:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {variable: first.u1, at: %g, min: -10}\n", float64(i)/n)
	}
	p, _, _, err := play(t, "explicit", b.String(), master.Options{})
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	var lines, want []int
	for _, e := range p.Report().Events {
		if strings.HasPrefix(e.Did[0], "set") {
			lines = append(lines, e.Line)
		}
	}
	for k := range n {
		want = append(want, 2+slices.Index(order, k))
	}
	if !slices.Equal(lines, want) {
		t.Error("the events are not in the order of their times")
	}
	if r := p.Report(); r.Happened != n+1 || len(r.Expectations) != n || r.Expectations[n-1].Time == nil {
		t.Errorf("%d events happened, %d expectations", r.Happened, len(r.Expectations))
	}
}

// The report has the limits and the times of expectations.
func TestReportedLimits(t *testing.T) {
	p, _, _, err := play(t, "explicit", "expect:\n  - {variable: first.u1, always: {from: 0.25, until: 0.5}, max: 1e9}\n"+
		"  - {variable: first.u1, eventually: {}, min: -1e9, max: 1e9}\n  - {variable: first.u1, at: 0.5, value: 0, tolerance: 1e9}\n", master.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range p.Report().Expectations {
		text := fmt.Sprint(e.Once)
		for _, v := range []*float64{e.Min, e.Max, e.From, e.Until} {
			if v == nil {
				text += " -"
			} else {
				text += fmt.Sprintf(" %g", *v)
			}
		}
		got = append(got, text)
	}
	if want := []string{"false - 1e+09 0.25 0.5", "true -1e+09 1e+09 - -", "false -1e+09 1e+09 0.5 0.5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A context interrupts reading.
func TestReadInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	must(t, os.WriteFile(path, []byte("events:\n  - {at: 0, stop: now}\n"), 0o666))
	if _, err := Read(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := Read(ctx, path); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := read(ctx, path); !errors.Is(err, why) {
		t.Error(err)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
