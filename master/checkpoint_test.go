package master_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/fields"
)

// kept is a fake whose state can be kept as bytes.
type kept struct {
	saved
	noise                  master.Replay
	serialize, deserialize error // of these calls
}

type keptState struct {
	U, Y      []float64
	Din, Dout master.Values
}

func newKept(name string, inputs, outputs int) *kept {
	k := &kept{saved: newSaved(name, inputs, outputs)}
	k.info.Caps.SerializeState = true
	return k
}

func (k *kept) SerializeState(s master.State) ([]byte, error) {
	if k.serialize != nil {
		return nil, k.serialize
	}
	v := s.(*savedState)
	return json.Marshal(keptState{v.u, v.y, v.din, v.dout})
}

func (k *kept) DeserializeState(data []byte) (master.State, error) {
	if k.deserialize != nil {
		return nil, k.deserialize
	}
	var v keptState
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return &savedState{v.U, v.Y, v.Din, v.Dout}, nil
}

func (k *kept) VerifyRollback(context.Context, master.Experiment, float64) (master.Replay, error) {
	return k.noise, nil
}

// Watched returns the first output, twice.
func (k *kept) Watched(v *master.Values) error { v.Real[0] = 2 * k.y[0]; return nil }

// talking are the connections of talkers.
func talking() (all []master.Connection) {
	for _, port := range []string{"y1 u1", "n n", "b b", "s s"} {
		out, in, _ := strings.Cut(port, " ")
		all = append(all, wire("one."+out, "two."+in), wire("two."+out, "one."+in))
	}
	return all
}

// talkers are two subsystems that exchange signals of every kind and count.
func talkers(t testing.TB) (*master.System, []*kept) {
	t.Helper()
	kinds := []master.Port{{Name: "n", Kind: master.Integer}, {Name: "b", Kind: master.Boolean}, {Name: "s", Kind: master.String}}
	var subs []master.Subsystem
	var keepers []*kept
	for i, name := range []string{"one", "two"} {
		k := newKept(name, 1, 1)
		k.info.DiscreteIn, k.info.DiscreteOut = kinds, kinds
		k.info.Watch = []master.Port{{Name: "twice"}}
		k.eval = func(u, y []float64) { y[0] = 0.7*y[0] + 0.5*u[0] + float64(i+1) }
		k.discrete = func(in, out *master.Values) {
			out.Integer[0] += in.Integer[0]%7 + int64(i+1)
			out.Boolean[0] = !in.Boolean[0] || out.Integer[0]%3 == 0
			out.String[0] = fmt.Sprintf("%.8s%d", in.String[0], out.Integer[0]%10)
		}
		keepers = append(keepers, k)
		subs = append(subs, k)
	}
	return system(t, subs, talking()...), keepers
}

// everything is a recorder that keeps all of each point.
type everything struct{ rows []string }

func row(p *master.Point) string {
	return fmt.Sprint(p.T, p.Step, p.U, p.Y, p.DiscreteIn, p.DiscreteOut, p.Watch)
}

// checkpointsTo collects checkpoints.
func checkpointsTo(all *[]master.Checkpoint, every float64) *master.Checkpoints {
	return &master.Checkpoints{Every: every, Write: func(c master.Checkpoint) error { *all = append(*all, c); return nil }}
}

func (e *everything) Begin(*master.System, []master.Port) error { return nil }
func (e *everything) Record(p *master.Point) error              { e.rows = append(e.rows, row(p)); return nil }
func (e *everything) Flush() error                              { return nil }
func (e *everything) End(master.Result) error                   { return nil }

// keptTunable has a parameter, which is its second output, too.
type keptTunable struct{ *kept }

func (k keptTunable) Tunables() []master.Port { return []master.Port{{Name: "p"}} }

func (k keptTunable) SetTunable(_ int, v master.Scalar) error { k.y[1] = v.Real; return nil }

func (k keptTunable) Watched(v *master.Values) error { v.Real[0] = k.y[1]; return nil }

// tunedTalkers are talkers, and a subsystem with a parameter that is set by nobody else.
func tunedTalkers(t testing.TB) *master.System {
	sys, _ := talkers(t)
	k := newKept("three", 0, 2)
	k.info.Watch = []master.Port{{Name: "p"}}
	k.y[1] = 2
	k.eval = func(_, y []float64) { y[0] += y[1] }
	return system(t, append(sys.Subsystems, keptTunable{k}), talking()...)
}

// meddler sets variables of every kind, and lets them go, by a count of its own.
type meddler struct{ calls int }

func (m *meddler) Bind(*master.Run) error { return nil }

func (m *meddler) Archive(a *master.Archive) { a.All(&m.calls) }

func (m *meddler) At(r *master.Run) error {
	m.calls++
	set := func(s master.Scalar) func(*master.Variable) error {
		return func(v *master.Variable) error { return v.Set(s) }
	}
	override := func(gain, offset float64) func(*master.Variable) error {
		return func(v *master.Variable) error { return v.Override(master.Linear{Gain: gain, Offset: offset}) }
	}
	for _, do := range []struct {
		call int
		name string
		do   func(*master.Variable) error
	}{
		{3, "two.n", set(master.Scalar{Kind: master.Integer, Integer: -7})},
		{5, "three.p", set(real(0.25))},
		{9, "one.s", set(master.Scalar{Kind: master.String, Text: "mine"})},
		{14, "one.u1", override(0.5, 0.1)},
		{20, "one.y1", override(0.9, 0)},
		{31, "one.b", set(master.Scalar{Kind: master.Boolean, Boolean: true})},
		{36, "two.n", (*master.Variable).Release},
		{45, "three.p", (*master.Variable).Release},
		{55, "one.u1", (*master.Variable).Release},
		{66, "one.s", (*master.Variable).Release},
		{77, "one.y1", (*master.Variable).Release},
		{88, "one.b", (*master.Variable).Release},
	} {
		if do.call == m.calls {
			v, err := r.Variable(do.name)
			if err != nil {
				return err
			}
			return do.do(v)
		}
	}
	return nil
}

// What a hook has set, and has in mind, goes on as in the unbroken run.
func TestResumeHooks(t *testing.T) {
	resumes(t, []float64{0.03}, tunedTalkers, func() []master.Hook { return []master.Hook{&meddler{}} })
}

// All kinds of signals, watched variables and Go subsystems go on as in the
// unbroken run, with any number of threads, and at each of its checkpoints.
func TestResume(t *testing.T) {
	resumes(t, []float64{0.01, 0.037, 0.3}, func(t testing.TB) *master.System { sys, _ := talkers(t); return sys }, func() []master.Hook { return nil })
}

func resumes(t *testing.T, intervals []float64, talkers func(testing.TB) *master.System, hooks func() []master.Hook) {
	for _, workers := range []int{1, 2} {
		for _, every := range intervals {
			whole := &everything{}
			var made []master.Checkpoint
			want := run(t, newRun(t, talkers(t), master.Options{Stop: 1, Step: 0.01, Workers: workers,
				Recorders: []master.Recorder{whole}, Hooks: hooks(), Checkpoints: checkpointsTo(&made, every)}))
			if n := int(1/every+1e-9) - 1; len(made) < n || len(made) > n+1 {
				t.Errorf("%d checkpoints every %g s", len(made), every)
			}
			for k, c := range made {
				rest := &everything{}
				var later []master.Checkpoint
				r := newRun(t, talkers(t), master.Options{Stop: 1, Step: 0.01, Workers: workers,
					Recorders: []master.Recorder{rest}, Hooks: hooks(), Checkpoints: checkpointsTo(&later, every), Resume: c.State})
				start(t, r)
				if now := row(r.Point()); now != whole.rows[c.Steps] {
					t.Errorf("resumed at %g: the point is\n%s, want\n%s", c.T, now, whole.rows[c.Steps])
				}
				got := toTheEnd(t, r)
				if !reflect.DeepEqual(rest.rows, whole.rows[c.Steps+1:]) {
					t.Errorf("resumed at %g: other rows", c.T)
				}
				if !reflect.DeepEqual(timeless(got), timeless(want)) {
					t.Errorf("resumed at %g: %+v, want %+v", c.T, got, want)
				}
				if len(made) != len(later)+k+1 {
					t.Errorf("resumed at %g: %d more checkpoints of %d", c.T, len(later), len(made))
				}
			}
		}
	}
}

// Two runs, one of them resumed, are in the same state after the step that follows a checkpoint, in all fields but
// these: of configuration, of what is instantiated or prepared for each run, of scratch, and of time.
func TestResumeState(t *testing.T) {
	compared := fields.Comparison{Ignored: map[string]string{
		"Run": "opt can alg parts tick ticked lastFlush startWall starting variables", "runState": "earlier inRecorders", "checkpointing": "past",
		"Exec": "seconds", "solo": "seconds", "steering": "staged du", "fake": "calls lengths",
	}}
	for _, name := range []string{"explicit", "predictor-corrector", "implicit"} {
		from := func(state []byte) *master.Run {
			driven := newKept("driven", 2, 1)
			driven.info.Watch = []master.Port{{Name: "w"}}
			driven.eval = func(u, y []float64) { y[0] = (y[0] + u[0] + u[1]) / 2 }
			driven.step = func(t, H float64) (float64, error) {
				if t > 0.1 && t < 0.3 && H > 0.003 {
					return t, master.ErrDiscard
				}
				return t + H, nil
			}
			sys := tunedTalkers(t)
			sys = system(t, append(sys.Subsystems, infinite{driven}), talking()...)
			r := made(t, sys, preset(t, name, nil), master.Options{Stop: 1, Step: 0.01, Resume: state, Discard: master.ShortenOnDiscard, Signals: ramp(sys.InAt[3]),
				Hooks: []master.Hook{&meddler{}, &setter{}}, Checkpoints: &master.Checkpoints{}})
			start(t, r)
			return r
		}
		whole := from(nil)
		for more := true; more && whole.Steps() < 95; { // beyond all that the meddler does
			c, err := whole.Checkpoint()
			must(t, err)
			more = step(t, whole)
			part := from(c.State)
			step(t, part)
			if d := compared.Differences(part, whole); len(d) > 0 {
				t.Fatalf("%s, a step after t = %g s: %s", name, c.T, strings.Join(d, "\n"))
			}
			end(t, part)
		}
		end(t, whole)
	}
}

// ramp drives an input.
type ramp int

func (r ramp) Inputs() []int                 { return []int{int(r)} }
func (r ramp) Real(_ int, t float64) float64 { return t }
func (r ramp) Over(_ int, t, H float64) (start, end, mean float64) {
	return t, t + H, t + H/2
}
func (r ramp) Discrete(int, float64, *master.Values) {}

// infinite has a watched value that is not a number for a while, which is a warning, once.
type infinite struct{ *kept }

func (k infinite) Watched(v *master.Values) error {
	v.Real[0] = k.y[0]
	if k.y[0] > 0.5 {
		v.Real[0] = math.Inf(1)
	}
	return nil
}

// setter sets a free input for good.
type setter struct{ meddler }

func (s *setter) At(r *master.Run) error {
	if s.calls++; s.calls != 4 {
		return nil
	}
	return r.SetReal("driven.u2", 2)
}

// timeless returns a result without wall times.
func timeless(r master.Result) master.Result {
	r.SubsystemSeconds, r.MasterSeconds, r.WallSeconds, r.RecordSeconds, r.StartSeconds = nil, 0, 0, 0, 0
	return r
}

// bare is an algorithm that cannot be archived.
type bare struct{ master.Algorithm }

// What stands in the way of checkpoints is told before the first step.
func TestCheckpointsRefused(t *testing.T) {
	write := func(master.Checkpoint) error { return nil }
	fine := &master.Checkpoints{Every: 0.5, Write: write}
	alg := explicit(t, algorithms.Config{})
	bytesless := func(keepers []*kept) { keepers[1].info.Caps.SerializeState = false }
	for _, c := range []struct {
		spoil func([]*kept)
		alg   master.Algorithm
		o     master.Options
		says  string
		is    error
	}{
		{nil, alg, master.Options{Checkpoints: &master.Checkpoints{Every: -1, Write: write}}, "it must not be negative", nil},
		{nil, alg, master.Options{Checkpoints: &master.Checkpoints{Every: 1}}, "need a destination", nil},
		{nil, bare{alg}, master.Options{Checkpoints: fine}, "the algorithm", master.ErrCapability},
		{nil, alg, master.Options{Checkpoints: fine, Hooks: []master.Hook{&hook{}}}, "the hook *master_test.hook", master.ErrCapability},
		{bytesless, alg, master.Options{Checkpoints: fine}, "and two cannot serialise its state", master.ErrCapability},
		{bytesless, alg, master.Options{Resume: []byte{}}, "and two cannot serialise its state", master.ErrCapability},
	} {
		sys, keepers := talkers(t)
		if c.spoil != nil {
			c.spoil(keepers)
		}
		c.o.Stop, c.o.Step = 1, 0.1
		_, err := master.NewRun(sys, c.alg, c.o)
		if contains(t, c.o, err, c.says); c.is != nil && !errors.Is(err, c.is) {
			t.Error(err)
		}
	}
	for want, spoil := range map[string]func(*kept){
		"two: serialising the state at t = 0 s: no room":        func(k *kept) { k.serialize = errors.New("no room") },
		"two: reading a serialised state at t = 0 s: no memory": func(k *kept) { k.deserialize = errors.New("no memory") },
	} {
		sys, keepers := talkers(t)
		spoil(keepers[1])
		_, err := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Checkpoints: fine}).Run(t.Context())
		contains(t, "start", err, want, "canSerializeFMUstate")
	}
}

// Checkpoints that are not written do not end the run; each stretch of them is told
// once. Replay noise is told at the start.
func TestCheckpointWarnings(t *testing.T) {
	sys, keepers := talkers(t)
	keepers[0].noise = master.Replay{Replays: 1e-7}
	n := 0
	r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Checkpoints: &master.Checkpoints{Every: 0.1, Write: func(master.Checkpoint) error {
		if n++; n == 4 {
			return nil
		}
		return errors.New("no room")
	}}})
	result, err := r.Run(t.Context())
	if err != nil || n != 9 || len(result.Warnings) != 3 {
		t.Fatalf("%v; %d checkpoints; %q", err, n, result.Warnings)
	}
	for i, want := range []string{"one repeats a step to 1e-07 only", "t = 0.1 s could not be written: no room; the run goes on", "t = 0.5 s could not"} {
		if !strings.Contains(result.Warnings[i], want) {
			t.Errorf("%q, want … %s", result.Warnings[i], want)
		}
	}
}

// A subsystem whose steps differ if they may be undone is refused where they may be, and only saved elsewhere.
func TestUnpromised(t *testing.T) {
	for _, discard := range []master.DiscardPolicy{master.StopOnDiscard, master.ShortenOnDiscard} {
		sys, keepers := talkers(t)
		for _, k := range keepers {
			k.info.Caps.VariableStep = true
		}
		keepers[0].noise = master.Replay{Unpromised: "y is 2", Untested: "it differs"}
		r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Discard: discard, Checkpoints: &master.Checkpoints{}})
		result, err := r.Run(t.Context())
		if discard == master.ShortenOnDiscard {
			if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "something else: y is 2; choose") {
				t.Errorf("it may be undone: %v", err)
			}
		} else if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "not fully tested: it differs") {
			t.Errorf("it is only saved: %v, %q", err, result.Warnings)
		}
	}
}

// State of another run, or state that was tampered with, is an error or leads to a
// run, but never to a panic; the subsystems are ended.
func TestForeignState(t *testing.T) {
	var made []master.Checkpoint
	o := master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{&meddler{}}, Checkpoints: checkpointsTo(&made, 0.45)}
	run(t, newRun(t, tunedTalkers(t), o))
	o.Checkpoints = nil
	good := made[0].State
	a, b := newKept("one", 1, 1), newKept("two", 1, 1)
	o.Resume = good
	_, err := newRun(t, system(t, []master.Subsystem{a, b}, wire("one.y1", "two.u1")), o).Run(t.Context())
	if contains(t, "a system with other signals", err, "does not fit this run"); a.closed != 1 || a.terminated != 1 {
		t.Errorf("closed %d times, terminated %d times", a.closed, a.terminated)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		bad := slices.Clone(good)
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		if rng.IntN(4) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		}
		o.Hooks, o.Resume = []master.Hook{&meddler{}}, bad
		r := newRun(t, tunedTalkers(t), o)
		more := r.Start(t.Context()) == nil
		for k := 0; more && k < 20; k++ {
			more, _ = r.Step(t.Context())
		}
		if _, err := r.Close(); err != nil && strings.Contains(err.Error(), "panic") {
			t.Fatalf("%v", err)
		}
	}
}

// Where no checkpoint is made, a run that could make some allocates no more than
// any other.
func TestNoCheckpointNoAllocation(t *testing.T) {
	for _, c := range []*master.Checkpoints{nil, {Every: 1e5, OnInterrupt: true, Write: func(master.Checkpoint) error { return nil }}} {
		r := newRun(t, system(t, []master.Subsystem{&quietKept{newKept("one", 1, 1)}}), master.Options{Stop: 1e6, Step: 1, Checkpoints: c})
		start(t, r)
		if n := testing.AllocsPerRun(1000, func() { step(t, r) }); n != 0 {
			t.Errorf("%+v: %g allocations a step", c, n)
		}
		end(t, r)
	}
}

// quietKept keeps no list of its steps.
type quietKept struct{ *kept }

func (q *quietKept) Step(_ context.Context, t, H float64) (float64, error) { return t + H, nil }

// toTheEnd steps a run to its end and closes it.
func toTheEnd(t testing.TB, r *master.Run) master.Result {
	t.Helper()
	for step(t, r) {
	}
	return end(t, r)
}

// A checkpoint is made on demand, announced or not, at any step, and the run goes on from it
// as it does itself.
func TestCheckpointOnDemand(t *testing.T) {
	for _, announced := range []*master.Checkpoints{nil, {}} {
		fresh := func(resume []byte) (*master.Run, *everything) {
			sys, _ := talkers(t)
			rows := &everything{}
			o := master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{rows}, Checkpoints: announced, Resume: resume}
			return newRun(t, unverified(t, sys, announced == nil), o), rows
		}
		undisturbed, whole := fresh(nil)
		run(t, undisturbed)
		for at := range 10 {
			r, first := fresh(nil)
			if _, err := r.Checkpoint(); err == nil {
				t.Error("there is a checkpoint before the start")
			}
			start(t, r)
			for range at {
				step(t, r)
			}
			c, err := r.Checkpoint()
			if err != nil || c.Steps != at || c.T != r.Time() {
				t.Fatalf("%v: %+v", err, c)
			}
			toTheEnd(t, r)
			resumed, rest := fresh(c.State)
			run(t, resumed)
			if !reflect.DeepEqual(first.rows, whole.rows) || !reflect.DeepEqual(rest.rows, whole.rows[at+1:]) {
				t.Errorf("after %d steps: other rows", at)
			}
			if _, err := r.Checkpoint(); err == nil {
				t.Error("there is a checkpoint after the close")
			}
		}
	}
}

// restarted is a subsystem that was lost once, in its tenth step.
type restarted struct{ *kept }

func (r restarted) Keep() error { return nil }

func (r restarted) Restarts() []master.Restart {
	if len(r.lengths) < 10 {
		return nil
	}
	return []master.Restart{{Time: 0.9, Call: "Step", Cause: "a test"}}
}

// Restarts and the timing of a run in real time include those before the checkpoint.
func TestResumeReports(t *testing.T) {
	fresh := func(resume []byte) *master.Run {
		k := newKept("one", 0, 1)
		k.info.Caps.Restarts = true
		return newRun(t, system(t, []master.Subsystem{restarted{k}}), master.Options{Stop: 2, Step: 0.1, Resume: resume,
			Checkpoints: &master.Checkpoints{}, Realtime: &master.Realtime{Factor: 1000}})
	}
	r := fresh(nil)
	start(t, r)
	for range 15 {
		step(t, r)
	}
	c, err := r.Checkpoint()
	must(t, err)
	end(t, r)
	for range 2 { // the second run is resumed by a third one
		r = fresh(c.State)
		start(t, r)
		step(t, r)
		c, err = r.Checkpoint()
		must(t, err)
		end(t, r)
	}
	r = fresh(c.State)
	got := run(t, r)
	timing, count := got.Realtime, 0
	for _, b := range timing.Work.Histogram {
		count += b.Count
	}
	if len(got.Restarts["one"]) != 1 || timing.Deadlines != 20 || count != 20 || timing.Factor != 1000 || len(timing.Settings) > 2 {
		t.Errorf("%+v, %+v", got, timing)
	}
}

// Where a subsystem or a hook has ended the run there is nothing to continue.
func TestNoCheckpointAfterEnd(t *testing.T) {
	ends := newKept("one", 0, 1)
	ends.step = func(t, H float64) (float64, error) {
		if t+H > 0.55 {
			return t + H, master.ErrTerminated
		}
		return t + H, nil
	}
	stops := &stopping{}
	for says, r := range map[string]*master.Run{
		"one: step from": newRun(t, system(t, []master.Subsystem{ends}), master.Options{Stop: 1, Step: 0.1, Checkpoints: &master.Checkpoints{}}),
		"enough":         newRun(t, system(t, []master.Subsystem{newKept("one", 0, 1)}), master.Options{Stop: 1, Step: 0.1, Checkpoints: &master.Checkpoints{}, Hooks: []master.Hook{stops}}),
	} {
		start(t, r)
		for step(t, r) {
		}
		if r.Time() > 0.65 {
			t.Errorf("the run has not ended: t = %g s", r.Time())
		}
		_, err := r.Checkpoint()
		contains(t, says, err, "the run has ended at t = 0.6 s", says, "nothing to continue")
		end(t, r)
	}
}

// stopping is a hook that ends the run.
type stopping struct{}

func (*stopping) Bind(*master.Run) error  { return nil }
func (*stopping) Archive(*master.Archive) {}
func (*stopping) At(r *master.Run) error {
	if r.Time() > 0.55 {
		return fmt.Errorf("%w: enough", master.ErrStop)
	}
	return nil
}

// untested hides the test of the rollback.
type untested struct {
	master.Subsystem
	master.StateSaver
	master.StateSerializer
	master.DiscreteIO
	master.Initializer
	master.Watcher
}

// unverified returns the same system, whose subsystems do not test their rollback.
func unverified(t testing.TB, sys *master.System, really bool) *master.System {
	if !really {
		return sys
	}
	var subs []master.Subsystem
	for _, s := range sys.Subsystems {
		k := s.(*kept)
		subs = append(subs, untested{k, k, k, k, k, k})
	}
	return system(t, subs, talking()...)
}

// Where no checkpoint can be made the message says why, and the run goes on.
func TestCheckpointOnDemandRefused(t *testing.T) {
	sys, _ := talkers(t)
	var inside error
	h := &hook{at: func(r *master.Run) error { _, inside = r.Checkpoint(); return nil }}
	hooked := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{h}})
	plain := newRun(t, system(t, []master.Subsystem{newFake("gauge", 0, 1)}), master.Options{Stop: 1, Step: 0.1})
	for r, says := range map[*master.Run][]string{
		hooked: {"one: ", "&master.Checkpoints{}"}, plain: {"gauge does not offer its state", "master.Archiver"},
	} {
		start(t, r)
		step(t, r)
		_, err := r.Checkpoint()
		if contains(t, "between steps", err, says...); !errors.Is(err, master.ErrCapability) || r == plain && strings.Contains(err.Error(), "canSerialize") {
			t.Error(err)
		}
		if result := toTheEnd(t, r); result.Status != master.Complete {
			t.Errorf("%+v", result)
		}
	}
	contains(t, "in a hook", inside, "between two steps")
}

// stopped is a subsystem that is told the stop time.
type stopped struct{ *kept }

func (stopped) UsesStop() bool { return true }

// A run goes on to a later stop time like one that had it from the start, also from its end. If the
// earlier stop time has had an effect, a warning or an error reports it.
func TestLaterStop(t *testing.T) {
	// to runs a preset to a time, and makes a checkpoint there.
	to := func(name string, until float64, wrap func(*kept) master.Subsystem, o master.Options) (rows []string, state []byte, result master.Result, err error) {
		t.Helper()
		sys, keepers := talkers(t)
		if wrap != nil {
			sys = system(t, []master.Subsystem{wrap(keepers[0])})
		}
		e := &everything{}
		o.Recorders, o.Checkpoints = []master.Recorder{e}, &master.Checkpoints{}
		r := made(t, sys, preset(t, name, nil), o)
		if err = r.Start(t.Context()); err == nil {
			for r.Time() < until-1e-9 && step(t, r) {
			}
			c, err := r.Checkpoint()
			must(t, err)
			state = c.State
		}
		result, _ = r.Close()
		return e.rows, state, result, err
	}
	const fixed, variable = "explicit", "predictor-corrector"
	for _, c := range []struct {
		preset     string
		at, stop   float64 // of the checkpoint, and of its run
		start, H   float64 // of the run that goes on to 2 s; H = 0: the same, and its rows are those of an unbroken run
		wrap       func(*kept) master.Subsystem
		warns, err string
	}{
		{preset: fixed, at: 0.3, stop: 1},
		{preset: fixed, at: 1, stop: 1},
		{preset: fixed, at: 0.3, stop: 0.3}, // on the grid, up to rounding
		{preset: variable, at: 0.3, stop: 1},
		{preset: variable, at: 1, stop: 1, H: 0.1, warns: "were chosen to end at the stop time 1 s"},
		{preset: fixed, at: 0.5, stop: 1, H: 0.1, wrap: func(k *kept) master.Subsystem { return stopped{k} }, warns: "one was told the stop time 1 s"},
		{preset: fixed, at: 2, stop: 2, H: 0.1, err: "nothing left to do"},
		{preset: fixed, at: 1, stop: 1, H: 0.2, err: "the step size was 0.1, but is 0.2"},
		{preset: fixed, at: 1, stop: 1, start: 0.1, H: 0.1, err: "the start time was 0, but is 0.1"},
		{preset: fixed, at: 1.05, stop: 1.05, H: 0.1, err: "which is not on the grid of 0.1 s"},
	} {
		same, first := c.H == 0, 0.1
		if same {
			c.H = 0.1
		}
		if c.wrap != nil {
			c.H, first = 0.125, 0.125 // whose multiples are exact, so that no step passes the stop time
		}
		rows, state, _, _ := to(c.preset, c.at, c.wrap, master.Options{Stop: c.stop, Step: first})
		rest, _, result, err := to(c.preset, 2, c.wrap, master.Options{Start: c.start, Stop: 2, Step: c.H, Resume: state})
		if c.err != "" {
			contains(t, c, err, c.err)
			continue
		}
		if warned := strings.Join(result.Warnings, ""); err != nil || strings.Contains(warned, "stop time") != (c.warns != "") || !strings.Contains(warned, c.warns) {
			t.Errorf("%+v: %v, %q", c, err, result.Warnings)
		}
		if !same {
			continue
		}
		long, _, _, _ := to(c.preset, 2, nil, master.Options{Stop: 2, Step: 0.1})
		if !reflect.DeepEqual(rest, long[len(rows):]) {
			t.Errorf("%+v: other rows", c)
		}
	}
}
