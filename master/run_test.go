package master_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// A million fixed steps end exactly at t0 + n·H, each point on the way too.
func TestMillionSteps(t *testing.T) {
	const n, start, H = 1_000_000, 0.7, 1e-3
	rec := &times{}
	stop := at(start, n, H)
	r := newRun(t, system(t, []master.Subsystem{&counter{}}), master.Options{Start: start, Stop: stop, Step: H, Recorders: []master.Recorder{rec}})
	result, err := r.Run(t.Context())
	if err != nil || result.Accepted != n || len(rec.t) != n+1 {
		t.Fatalf("%v; %d steps, %d points", err, result.Accepted, len(rec.t))
	}
	for i, got := range rec.t {
		if want := start + float64(float64(i)*H); got != want {
			t.Fatalf("point %d is %.17g, want %.17g", i, got, want)
		}
	}
	if want := start + float64(float64(n)*H); result.Time != want {
		t.Errorf("end at %.17g, want %.17g", result.Time, want)
	}
}

// counter has nothing but a step.
type counter struct{ n int }

func (c *counter) Info() *master.Info {
	return &master.Info{Name: "counter", Caps: master.Caps{VariableStep: true}}
}
func (c *counter) SetInputs([]float64) error { return nil }
func (c *counter) Outputs([]float64) error   { return nil }
func (c *counter) Step(_ context.Context, t, H float64) (float64, error) {
	c.n++
	return t + H, nil
}

// at is a grid point in floating point, unlike an expression of constants.
func at(start float64, n int, H float64) float64 { return start + float64(float64(n)*H) }

func TestGrid(t *testing.T) {
	for _, test := range []struct {
		start, stop, step float64
		fixed             bool
		points            int // steps
		end               float64
		warn              string
	}{
		{0, 1, 0.25, false, 4, 1, ""},
		{0, 1, 0.3, false, 4, 1, ""}, // last step is short
		{0, 1, 0.3, true, 3, at(0, 3, 0.3), "fake cannot vary its step: the run ends at 0.9"},
		{0, 1, 2, false, 1, 1, ""},      // one short step
		{0, 0.3, 0.1, true, 3, 0.3, ""}, // and not 0.30000000000000004
		{0, 0.3 + 1e-11, 0.1, false, 3, at(0, 3, 0.1), ""},
		{0, 0.3 - 1e-11, 0.1, false, 3, at(0, 3, 0.1), ""},
		{0, 0.3 + 1e-9, 0.1, false, 4, 0.3 + 1e-9, ""},
		{-5, 5, 0.1, true, 100, at(-5, 100, 0.1), ""},
	} {
		f := newFake("fake", 0, 1)
		f.info.Caps.VariableStep = !test.fixed
		rec := &times{}
		r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Start: test.start, Stop: test.stop, Step: test.step, Recorders: []master.Recorder{rec}})
		result, err := r.Run(t.Context())
		if err != nil || result.Status != master.Complete || result.Accepted != test.points || result.Time != test.end || rec.t[len(rec.t)-1] != test.end {
			t.Errorf("%+v: %v %s, %d steps to %.17g", test, err, result.Status, result.Accepted, result.Time)
		}
		if got := strings.Join(result.Warnings, "\n"); (test.warn == "") != (got == "") || !strings.Contains(got, test.warn) {
			t.Errorf("%+v: warnings %q", test, got)
		}
		if !test.fixed {
			continue
		}
		// A subsystem that cannot vary its step hears one number only (fmi2 49).
		if i := slices.IndexFunc(f.lengths, func(h float64) bool { return h != test.step }); i >= 0 {
			t.Errorf("%+v: step %d is %.17g", test, i, f.lengths[i])
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, test := range []struct {
		o     master.Options
		fixed bool
		want  string
	}{
		{master.Options{Stop: 1}, false, "step size is 0"},
		{master.Options{Stop: 1, Step: 0.1, Workers: -1}, false, "there are -1 workers; give at least 1, or 0"},
		{master.Options{Stop: 1, Step: 0.1, Tolerance: -1e-3}, false, "the tolerance is -0.001; it must be finite and greater than 0, or 0"},
		{master.Options{Stop: 1, Step: 0.1, Tolerance: math.NaN()}, false, "the tolerance is NaN"},
		{master.Options{Stop: 1, Step: -1}, false, "greater than 0"},
		{master.Options{Stop: 0, Step: 1}, false, "not after the start"},
		{master.Options{Start: 2, Stop: 1, Step: 1}, false, "not after the start"},
		{master.Options{Stop: math.NaN(), Step: 1}, false, "finite"},
		{master.Options{Stop: math.Inf(1), Step: 1}, false, "finite"},
		{master.Options{Start: 1e9, Stop: 2e9, Step: 1e-9}, false, "is negligible"},
		{master.Options{Stop: 1, Step: 2}, true, "shorter than one step"},
		{master.Options{Stop: 1e-12, Step: 1}, false, "no step"},
		{master.Options{Stop: 1, Step: 0.1, Discard: master.ShortenOnDiscard}, false, "roll back"},
	} {
		f := newFake("fake", 0, 1)
		f.info.Caps.VariableStep = !test.fixed
		_, err := master.NewRun(system(t, []master.Subsystem{f}), explicit(t, algorithms.Config{}), test.o)
		contains(t, test.o, err, test.want)
		if f.calls > 0 {
			t.Errorf("%+v: the subsystem was touched", test.o)
		}
	}
}

// A capability that is promised and not there is an error before the run.
func TestPromisesChecked(t *testing.T) {
	for want, promise := range map[string]func(*master.Info){
		"input derivatives":       func(i *master.Info) { i.Caps.InputDerivatives = true },
		"rollback":                func(i *master.Info) { i.Caps.SaveState = true },
		"directional derivatives": func(i *master.Info) { i.Caps.DirectionalDerivative = true },
		"watched variables":       func(i *master.Info) { i.Watch = []master.Port{{Name: "w"}} },
	} {
		f := newFake("fake", 0, 1)
		promise(&f.info)
		_, err := master.NewRun(system(t, []master.Subsystem{f}), explicit(t, algorithms.Config{}), master.Options{Stop: 1, Step: 1})
		if contains(t, want, err, "fake: ", want); !errors.Is(err, master.ErrCapability) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// healthy returns two fakes around a third, of which something is to go wrong.
func healthy(middle master.Subsystem) (subs []master.Subsystem, others []*fake) {
	a, c := newFake("a", 0, 1), newFake("c", 1, 1)
	return []master.Subsystem{a, middle, c}, []*fake{a, c}
}

// Whatever happens in one subsystem, the run ends, says what and where, keeps
// what was recorded, and ends and frees all subsystems once.
func TestContainment(t *testing.T) {
	boom := errors.New("boom")
	linear := func() master.Subsystem {
		return mastertest.NewLinear("b", mastertest.Matrices{A: [][]float64{{-1}}, C: [][]float64{{1}}}, []float64{1})
	}
	for _, test := range []struct {
		name   string
		faulty mastertest.Faulty
		is     error
		want   []string // in the reason
	}{
		{"error", mastertest.Faulty{Err: boom}, boom, []string{"b: step from t = 0.2 s by 0.1 s: boom"}},
		{"panic", mastertest.Faulty{Panic: "oh"}, nil, []string{"panic", "b", "t = 0.2 s", "oh"}},
		{"NaN", mastertest.Faulty{NaN: true}, nil, []string{"b: the output b.y1, which feeds c.u1, is NaN at t = 0.3", "try a smaller step size",
			"its parameters, start values and the inputs without a source", "limit it in the model or remove the connection"}},
		{"discard", mastertest.Faulty{Discard: 0.5}, master.ErrDiscard, []string{"b: ", "t = 0.2 s", "a cannot roll back"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			faulty := test.faulty
			faulty.Subsystem, faulty.AtStep = linear(), 3
			subs, others := healthy(&faulty)
			memory := &mastertest.Memory{}
			r := newRun(t, system(t, subs, wire("b.y1", "c.u1")), master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{memory}})
			result, err := r.Run(t.Context())
			if contains(t, test.name, errors.New(result.Reason), test.want...); err == nil || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v, want %v", err, test.is)
			}
			if result.Status != master.Failed || result.Accepted != 2 || result.Time != 0.2 || r.Time() != 0.2 {
				t.Errorf("%s after %d steps at t = %g", result.Status, result.Accepted, result.Time)
			}
			if len(memory.T) != 3 || !memory.Ended || memory.Result.Status != master.Failed {
				t.Errorf("recorded %v, ended %t as %s", memory.T, memory.Ended, memory.Result.Status)
			}
			// The point is still the last one that was accepted.
			if got, err := r.Real("b.y1"); err != nil || got != memory.Y[2][1] {
				t.Errorf("b.y1 is %g after the failure, want %g; %v", got, memory.Y[2][1], err)
			}
			if again, err2 := r.Close(); again.Status != result.Status || fmt.Sprint(err2) != fmt.Sprint(err) {
				t.Errorf("a second Close gives %v, %v", again, err2)
			}
			for _, f := range others {
				if f.terminated != 1 || f.closed != 1 {
					t.Errorf("%s: terminated %d times, closed %d times", f.info.Name, f.terminated, f.closed)
				}
			}
		})
	}
}

// A step that ends early without a word is a discarded one: its outputs would
// be taken for those at the end.
func TestShortReach(t *testing.T) {
	f := newFake("fake", 0, 1)
	f.step = func(t, H float64) (float64, error) { return t + H/2, nil }
	_, err := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.5}).Run(t.Context())
	var step *master.StepError
	if !errors.As(err, &step) || !errors.Is(err, master.ErrDiscard) || step.Reached != 0.25 || step.Subsystem != "fake" {
		t.Errorf("%v", err)
	}
}

// A failure at any stage of the start makes the run failed, for the recorders too, and does not keep the other
// subsystems from being ended and freed. A failure in ending a subsystem is a warning.
func TestSubsystemFalters(t *testing.T) {
	boom := errors.New("boom")
	const initialisation = "b: initialisation at t = 3 s: boom"
	for stage, says := range map[string]string{
		"enter": initialisation, "eval": initialisation, "exit": initialisation, "outputs": initialisation,
		"terminate": "b: ending: ", "close": "b: ending: ", "close panic": "b: ending: ",
	} {
		subs, others := healthy(&faltering{fake: newFake("b", 1, 1), at: stage, err: boom})
		memory := &mastertest.Memory{}
		result, err := newRun(t, system(t, subs), master.Options{Start: 3, Stop: 4, Step: 0.5, Recorders: []master.Recorder{memory}}).Run(t.Context())
		steps, points, status, initializing := 2, 3, master.Complete, says == initialisation
		if !initializing {
			if said := strings.Join(result.Warnings, ""); err != nil || !strings.HasPrefix(said, says) || !strings.Contains(said, "boom; no result is lost") {
				t.Errorf("%s: %v, warnings %q", stage, err, said)
			}
		} else {
			contains(t, stage, err, says, "boom")
			steps, points, status = 0, 0, master.Failed
			var step *master.StepError
			if !errors.As(err, &step) || !errors.Is(err, boom) || !step.Initialize {
				t.Errorf("%s: %v", stage, err)
			}
		}
		if result.Status != status || result.Accepted != steps {
			t.Errorf("%s: %+v", stage, result)
		}
		if end := memory.Result; len(memory.T) != points || !memory.Ended || end.Status != status || strings.Contains(end.Reason, "boom") != initializing {
			t.Errorf("%s: recorded %v, %+v", stage, memory.T, end)
		}
		for _, f := range others {
			if f.closed != 1 || !initializing && f.terminated != 1 {
				t.Errorf("%s: %s terminated %d times, closed %d times", stage, f.info.Name, f.terminated, f.closed)
			}
		}
	}
}

// faltering fails at a stage of the start.
type faltering struct {
	*fake
	at  string
	err error
}

func (s *faltering) fail(stage string) error {
	if s.at == stage {
		return s.err
	}
	return nil
}
func (s *faltering) EnterInit(ctx context.Context, e master.Experiment) error {
	return errors.Join(s.fail("enter"), s.fake.EnterInit(ctx, e))
}
func (s *faltering) EvalInit() error { return errors.Join(s.fail("eval"), s.fake.EvalInit()) }
func (s *faltering) ExitInit() error { return errors.Join(s.fail("exit"), s.fake.ExitInit()) }
func (s *faltering) Outputs(y []float64) error {
	return errors.Join(s.fail("outputs"), s.fake.Outputs(y))
}
func (s *faltering) Terminate() error { return errors.Join(s.fail("terminate"), s.fake.Terminate()) }
func (s *faltering) Close() error {
	if s.at == "close panic" {
		panic(s.err)
	}
	return errors.Join(s.fail("close"), s.fake.Close())
}

// broken is a recorder that fails or panics in one of its methods.
type broken struct {
	mastertest.Memory
	at    string
	err   error
	panic bool
}

func (b *broken) hit(at string) error {
	if b.at != at {
		return nil
	}
	if b.panic {
		panic(b.err)
	}
	return b.err
}
func (b *broken) Begin(*master.System, []master.Port) error { return b.hit("begin") }
func (b *broken) Record(p *master.Point) error {
	if p.Step == 2 {
		if err := b.hit("record"); err != nil {
			return err
		}
	}
	return b.Memory.Record(p)
}
func (b *broken) End(r master.Result) error { return errors.Join(b.Memory.End(r), b.hit("end")) }

// A recorder that fails ends the run; the others are ended all the same.
func TestRecorderFails(t *testing.T) {
	boom := errors.New("boom")
	for _, stage := range []string{"begin", "record", "end"} {
		for _, panics := range []bool{false, true} {
			b := &broken{at: stage, err: boom, panic: panics}
			before, after := &mastertest.Memory{}, &mastertest.Memory{}
			f := newFake("fake", 0, 1)
			result, err := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{before, b, after}}).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "boom") || result.Status != master.Failed || !strings.Contains(result.Reason, "boom") {
				t.Errorf("%s, panic=%t: %v, %+v", stage, panics, err, result)
			}
			if !before.Ended || after.Ended != (stage != "begin") {
				t.Errorf("%s, panic=%t: before ended %t, after ended %t", stage, panics, before.Ended, after.Ended)
			}
			if f.closed != 1 {
				t.Errorf("%s, panic=%t: closed %d times", stage, panics, f.closed)
			}
		}
	}
}

// A run whose context ends, before its start or on the way, is incomplete, ends its recorders
// and frees its subsystems.
func TestCancel(t *testing.T) {
	for _, steps := range []int{0, 6} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := newFake("fake", 0, 1)
		f.step = func(t, H float64) (float64, error) {
			if len(f.lengths) == steps {
				cancel(master.ErrInterrupted)
			}
			return t + H, nil
		}
		points := steps + 1
		if steps == 0 {
			points = 0
			cancel(master.ErrInterrupted)
		}
		memory := &mastertest.Memory{}
		result, err := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{memory}}).Run(ctx)
		at := fmt.Sprintf("t = %.1g", 0.1*float64(steps))
		if !errors.Is(err, master.ErrInterrupted) || result.Status != master.Incomplete || !strings.Contains(result.Reason, at) || result.Accepted != steps {
			t.Errorf("%v, %+v", err, result)
		}
		if len(memory.T) != points || !memory.Ended || memory.Result.Status != master.Incomplete || f.terminated != 1 || f.closed != 1 {
			t.Errorf("%d points, ended %t as %s; terminated %d, closed %d", len(memory.T), memory.Ended, memory.Result.Status, f.terminated, f.closed)
		}
	}
}

// A run that is closed early, or never started, is incomplete and frees its subsystems.
func TestCloseEarly(t *testing.T) {
	for steps := -1; steps < 3; steps++ {
		f := newFake("fake", 0, 1)
		r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1})
		if steps >= 0 {
			start(t, r)
		}
		for range steps {
			if more, err := r.Step(t.Context()); !more || err != nil {
				t.Fatal(more, err)
			}
		}
		result, err := r.Close()
		if err != nil || result.Status != master.Incomplete || result.Accepted != max(steps, 0) || f.closed != 1 || (f.terminated == 1) != (steps >= 0) {
			t.Errorf("after %d steps: %v, %+v, closed %d, terminated %d", steps, err, result, f.closed, f.terminated)
		}
		if more, err := r.Step(t.Context()); more || err == nil {
			t.Error("a closed run can be stepped")
		}
		contains(t, "a closed run", r.Start(t.Context()), "a run can be started only once; call NewRun")
	}
}

// Stepping from outside gives the same bits as Run.
func TestStepAPI(t *testing.T) {
	a, b := &mastertest.Memory{}, &mastertest.Memory{}
	fresh := func(m *mastertest.Memory) *master.Run {
		sys, _ := oscillator(t)
		return newRun(t, sys, master.Options{Stop: 1.03, Step: 0.1, Recorders: []master.Recorder{m}})
	}
	run(t, fresh(a))
	r := fresh(b)
	start(t, r)
	for n := range a.T {
		p := r.Point()
		y, errY := r.Real("first.y1")
		u, errU := r.Real("second.u2")
		must(t, errors.Join(errY, errU))
		if r.Time() != a.T[n] || r.Steps() != n || !slices.Equal(p.Y, a.Y[n]) || !slices.Equal(p.U, a.U[n]) || y != a.Y[n][0] || u != a.U[n][2] {
			t.Fatalf("step %d at %g: %v", n, r.Time(), p)
		}
		if more := step(t, r); more != (n < len(a.T)-2) { // the last one is past the end
			t.Fatalf("after step %d: more is %t", n, more)
		}
	}
	if result := end(t, r); result.Status != master.Complete {
		t.Errorf("%+v", result)
	}
	if !slices.Equal(a.T, b.T) || !equal(a.Y, b.Y) || !equal(a.U, b.U) {
		t.Error("the records differ")
	}
}

func equal(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(p, q []float64) bool { return slices.Equal(p, q) })
}

// A value set before the start is the one of the initialisation. Inputs that are not free cannot be set.
func TestSetReal(t *testing.T) {
	f := newFake("fake", 1, 1).depends()
	f.info.StartIn = []float64{3}
	f.eval = func(u, y []float64) { y[0] = 2 * u[0] }
	for _, want := range []float64{6, 10} {
		r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1})
		if want == 10 {
			must(t, r.SetReal("fake.u1", 5))
		}
		start(t, r)
		if got, _ := r.Real("fake.y1"); got != want {
			t.Errorf("%g, want %g", got, want)
		}
		end(t, r)
	}
	sys, _ := oscillator(t)
	r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1})
	defer r.Close()
	for name, want := range map[string]string{
		"first.y1": "no Real input", "nothing": "no Real input", "first.u1": "connected to second.y1",
	} {
		contains(t, name, r.SetReal(name, 1), want)
	}
	_, err := r.Real("first.u9")
	contains(t, "Real", err, "first.u9")
}

// signals drives fake.u1 with 10 t and its Integer with the whole part of 10 t.
type signals struct{}

func (signals) Inputs() []int                 { return []int{0} }
func (signals) Real(_ int, t float64) float64 { return 10 * t }
func (signals) Over(_ int, t, H float64) (start, end, mean float64) {
	return 10 * t, 10 * (t + H), 10 * (t + H/2)
}
func (signals) Discrete(sub int, t float64, v *master.Values) {
	v.Integer[0] = int64(10*t + 1e-9)
}

// Signals from outside hold at a point from there on, from the initialisation; over a step a subsystem without input derivatives gets their mean.
func TestSignals(t *testing.T) {
	f := newFake("fake", 1, 1)
	f.info.DiscreteIn, f.info.DiscreteOut = []master.Port{{Name: "i", Kind: master.Integer}}, []master.Port{{Name: "o", Kind: master.Integer}}
	f.depends()
	f.eval = func(u, y []float64) { y[0] = u[0] }
	f.discrete = func(in, out *master.Values) { out.Integer[0] = in.Integer[0] }
	r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Start: 1, Stop: 2, Step: 0.5, Signals: signals{}})
	start(t, r)
	check := func(u, y float64, o int64) {
		t.Helper()
		p := r.Point()
		if math.Abs(p.U[0]-u) > 1e-12 || math.Abs(p.Y[0]-y) > 1e-12 || p.DiscreteOut[0].Integer[0] != o {
			t.Errorf("t = %g: %v", r.Time(), p)
		}
	}
	check(10, 10, 10)
	step(t, r)
	check(15, 12.5, 10)
	step(t, r)
	check(20, 17.5, 15)
	if err := r.SetReal("fake.u1", 1); err == nil {
		t.Error("an input driven by signals can be set")
	}
	end(t, r)
}

// Progress and Flush come with the clock, not with the steps; a run that takes
// a while has them.
func TestProgress(t *testing.T) {
	var seen []master.Progress
	sub := newFake("fake", 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(t, system(t, []master.Subsystem{sub}), master.Options{Stop: 1e9, Step: 1, Observe: func(p master.Progress) {
		seen = append(seen, p)
		if len(seen) == 2 {
			cancel()
		}
	}})
	result, err := r.Run(ctx)
	if !errors.Is(err, context.Canceled) || result.Status != master.Incomplete || len(seen) != 2 {
		t.Fatal(err, result.Status, len(seen))
	}
	for i, p := range seen {
		if p.Steps == 0 || p.T != float64(p.Steps) || p.Stop != 1e9 || p.Wall <= 0 || i > 0 && p.Steps <= seen[i-1].Steps {
			t.Errorf("%+v", p)
		}
	}
}

// A repetition, asked for by the algorithm or by a subsystem that discards its steps, gets shorter
// steps from the same state, if the subsystems can roll back, and an error if they cannot. Where
// no step is short enough the run ends after a bounded number of attempts.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name     string
		largest  float64 // accepted step
		discards bool
		policy   master.DiscardPolicy
		is       error // nil = it goes well
		says     string
	}{
		{"shorter steps", 0.25, false, master.ShortenOnDiscard, nil, ""},
		{"no rollback", 0.25, false, master.StopOnDiscard, master.ErrCapability, ""},
		{"no step is accepted", 0, false, master.ShortenOnDiscard, nil, "t = 0 s"},
		{"every step is discarded", 1, true, master.ShortenOnDiscard, master.ErrDiscard, "t = 0 s"},
	} {
		s := newSaved("fake", 0, 1)
		s.step = func(t, H float64) (float64, error) {
			if c.discards {
				return t, master.ErrDiscard
			}
			s.y[0] += H
			return t + H, nil
		}
		alg := &picky{Algorithm: explicit(t, algorithms.Config{}), largest: c.largest}
		result, err := made(t, system(t, []master.Subsystem{s}), alg, master.Options{Stop: 2, Step: 1, Discard: c.policy}).Run(t.Context())
		if c.is == nil && c.says == "" {
			if err != nil || result.Rejected == 0 || result.Time != 2 || math.Abs(s.y[0]-2) > 1e-15 {
				t.Errorf("%s: %v, %+v, %g", c.name, err, result, s.y[0])
			}
			continue
		}
		contains(t, c.name, err, c.says)
		if result.Status != master.Failed || c.is != nil && !errors.Is(err, c.is) || result.Rejected > 100 {
			t.Errorf("%s: %v, %+v", c.name, err, result)
		}
	}
}

// picky accepts no step above the largest.
type picky struct {
	master.Algorithm
	largest float64
}

func (p *picky) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	err := p.Algorithm.Attempt(ctx, x, t, H, trial)
	if H > p.largest {
		trial.Verdict = master.Retry
	}
	return err
}

// A discarded step is taken in pieces: to where the subsystem got, then on to
// the grid. The pieces see the discrete signals of their start, not those of
// the attempt that was thrown away.
func TestDiscardShorten(t *testing.T) {
	build := func(discard float64) ([]master.Subsystem, []master.Connection) {
		// The counter adds one at each step that stands; the sum takes it over.
		count, sum := newSaved("count", 0, 1), newSaved("sum", 0, 1)
		count.info.DiscreteOut = []master.Port{{Name: "n", Kind: master.Integer}}
		sum.info.DiscreteIn = []master.Port{{Name: "n", Kind: master.Integer}}
		started := false
		count.step = func(t, H float64) (float64, error) { started = true; return t + H, nil }
		count.discrete = func(_, out *master.Values) {
			if started {
				out.Integer[0]++
			}
		}
		sum.step = func(t, H float64) (float64, error) {
			sum.y[0] += H * float64(sum.din.Integer[0])
			return t + H, nil
		}
		rest := mastertest.NewLinear("rest", mastertest.Matrices{A: [][]float64{{-1}}, C: [][]float64{{1}}}, []float64{1})
		faulty := &mastertest.Faulty{Subsystem: rest, AtStep: 3, Discard: discard}
		return []master.Subsystem{count, sum, faulty}, []master.Connection{wire("count.n", "sum.n")}
	}
	for _, discard := range []float64{0.25, 0} {
		subs, connections := build(discard)
		memory := &mastertest.Memory{}
		r := newRun(t, system(t, subs, connections...), master.Options{Stop: 4, Step: 1, Discard: master.ShortenOnDiscard, Recorders: []master.Recorder{memory}})
		result, err := r.Run(t.Context())
		if err != nil || result.Status != master.Complete || result.Rejected != 1 || result.Accepted != 5 {
			t.Fatalf("%v, %+v", err, result)
		}
		piece := 2 + discard
		if discard == 0 {
			piece = 2.5
		}
		if want := []float64{0, 1, 2, piece, 3, 4}; !slices.Equal(memory.T, want) {
			t.Errorf("points %v, want %v", memory.T, want)
		}
		// n is 0, 1, 2, 3, 4 at the start of the steps.
		want := 0*1 + 1*1 + 2*(piece-2) + 3*(3-piece) + 4*1.0
		if got := memory.Y[5][1]; got != want {
			t.Errorf("sum %g, want %g", got, want)
		}
		if got := memory.Y[5][2]; math.Abs(got-math.Exp(-4)) > 1e-15 {
			t.Errorf("rest %g, want %g", got, math.Exp(-4))
		}
	}
}

// told notes what a subsystem is told about the experiment.
type told struct {
	*fake
	e master.Experiment
}

func (s *told) EnterInit(ctx context.Context, e master.Experiment) error {
	s.e = e
	return s.fake.EnterInit(ctx, e)
}

// A subsystem is told start and tolerance, and whether the stop time is one that
// no step passes, not by a rounding either (fmi2 40).
func TestExperiment(t *testing.T) {
	for _, c := range []struct {
		start, stop, step float64
		known             bool
	}{
		{0, 1, 0.25, true},
		{-1, 1, 0.3, true},           // ends with a shorter step
		{0, 0.3, 0.1, false},         // 3·0.1 is above 0.3
		{0, 0.3 - 1e-11, 0.1, false}, // on the grid but for less than the tolerance
	} {
		s := &told{fake: newFake("f", 0, 1)}
		r := newRun(t, system(t, []master.Subsystem{s}), master.Options{Start: c.start, Stop: c.stop, Step: c.step, Tolerance: 1e-3})
		run(t, r)
		if e := s.e; e.Start != c.start || e.Stop != c.stop || e.StopKnown != c.known || !e.HasTol || e.Tolerance != 1e-3 {
			t.Errorf("%+v: told %+v", c, e)
		}
	}
}

// A subsystem that ends the simulation ends the run regularly (fmi2 52): at the end of the step if it
// gets there, else at the last common point, and the run says so. The outcome does not depend on the number of workers.
func TestLastPoint(t *testing.T) {
	// A part of the system: a decay, which may end the simulation in its third step, after a share of it.
	type part struct {
		share float64
		ends  bool
		alone bool // it advances to the end that it reports
	}
	build := func(parts []part) (subs []master.Subsystem) {
		for i, p := range parts {
			name := string(rune('a' + i))
			d := mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{-1}}, C: [][]float64{{1}}}, []float64{1})
			switch {
			case p.alone:
				f := newFake(name, 0, 1)
				f.step = func(t, H float64) (float64, error) {
					if t < 2 {
						f.y[0] = t + H
						return t + H, nil
					}
					f.y[0] = t + p.share*H
					return t + p.share*H, master.ErrTerminated
				}
				subs = append(subs, f)
			case p.ends: // in that step it does not step
				subs = append(subs, &mastertest.Faulty{Subsystem: d, AtStep: 3, Terminate: true, Discard: p.share})
			default:
				subs = append(subs, d)
			}
		}
		return subs
	}
	ends := func(share float64) part { return part{share: share, ends: true} }
	alone := func(share float64) []part { return []part{{share: share, alone: true}} }
	decay := part{}
	const stop, shorten = master.StopOnDiscard, master.ShortenOnDiscard
	const common, within = "ends at the last common point, t = 2 s", "to run up to 2.25 s, choose a step size with a communication point there"
	whole, start := []float64{0, 1, 2, 3}, []float64{0, 1, 2}
	atWhole, atStart := math.Exp(-3), math.Exp(-2)
	nan := math.NaN()
	for _, c := range []struct {
		name    string
		parts   []part
		discard master.DiscardPolicy
		want    []float64
		at      float64  // value of the last output at the end
		says    []string // in warning and reason; nil = no warning
	}{
		{"alone", alone(0.25), stop, start, 2, []string{common, within}},
		{"alone, at the end", alone(1), stop, whole, 3, nil},
		{"alone, where it is", alone(0), stop, start, 2, nil},
		{"alone, unknown", alone(nan), stop, start, 2, []string{common}},
		{"rollback", []part{ends(0.25), decay}, shorten, start, atStart, []string{common, within}},
		{"rollback, where it is", []part{decay, ends(0)}, shorten, start, atStart, nil},
		{"rollback, at the end", []part{ends(1), decay}, shorten, whole, atWhole, nil},
		{"rollback, unknown", []part{ends(nan), decay}, shorten, start, atStart, []string{common}},
		{"no rollback", []part{decay, ends(0.25)}, stop, start, atStart, []string{common, within}},
		{"no rollback, first", []part{ends(0.25), decay}, stop, start, atStart, []string{common, within}},
		{"no rollback, where it is", []part{decay, ends(0)}, stop, start, atStart, nil},
		{"no rollback, at the end", []part{ends(1), decay}, stop, whole, atWhole, nil},
		{"both at the end", []part{ends(1), ends(1), decay}, stop, whole, atWhole, nil},
		{"one in the step, one at its end", []part{ends(1), ends(0.25), decay}, shorten, start, atStart, []string{common, within}},
	} {
		for workers := 1; workers <= 2; workers++ {
			for _, strict := range []bool{false, true} {
				name := fmt.Sprintf("%s, %d workers, strict %v", c.name, workers, strict)
				memory := &mastertest.Memory{}
				r := newRun(t, system(t, build(c.parts)), master.Options{Stop: 4, Step: 1, Discard: c.discard,
					Recorders: []master.Recorder{memory}, Workers: workers, Strict: strict})
				result, err := r.Run(t.Context())
				last := c.want[len(c.want)-1]
				if errors.Is(err, master.ErrTerminated) != strict || !strict && err != nil || result.Status != master.Terminated ||
					result.Time != last || result.Accepted != len(c.want)-1 || !r.Terminated() {
					t.Errorf("%s: %v, %s at t = %g after %d steps: %s", name, err, result.Status, result.Time, result.Accepted, result.Reason)
				}
				if !slices.Equal(memory.T, c.want) || memory.Result.Status != master.Terminated {
					t.Fatalf("%s: points %v, want %v; ended as %s", name, memory.T, c.want, memory.Result.Status)
				}
				y := memory.Y[len(memory.Y)-1]
				if got := y[len(y)-1]; math.Abs(got-c.at) > 1e-15 {
					t.Errorf("%s: %g at the end, want %g", name, got, c.at)
				}
				warned := strings.Join(result.Warnings, "\n")
				if (warned != "") != (c.says != nil) {
					t.Errorf("%s: warnings %q", name, warned)
				}
				contains(t, name, errors.New(result.Reason), append(c.says, "asked to end the simulation")...)
				contains(t, name, errors.New(warned), c.says...)
			}
		}
	}
}

// Rollback keeps one state a subsystem alive, and frees it.
func TestStatesFreed(t *testing.T) {
	sys, subs := oscillator(t)
	run(t, newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Discard: master.ShortenOnDiscard}))
	for _, l := range subs {
		if l.Calls.Save == 0 || l.Calls.Restore != 10 || l.Calls.Free != 1 {
			t.Errorf("%s: %+v", l.Info().Name, l.Calls)
		}
	}
}
