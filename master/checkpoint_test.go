package master_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
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
			out.Integer[0] += in.Integer[0]%7 + int32(i+1)
			out.Boolean[0] = !in.Boolean[0] || out.Integer[0]%3 == 0
			out.String[0] = fmt.Sprintf("%.8s%d", in.String[0], out.Integer[0]%10)
		}
		keepers = append(keepers, k)
		subs = append(subs, k)
	}
	return system(t, subs,
		wire("one.y1", "two.u1"), wire("two.y1", "one.u1"), wire("one.n", "two.n"), wire("two.n", "one.n"),
		wire("one.b", "two.b"), wire("two.b", "one.b"), wire("one.s", "two.s"), wire("two.s", "one.s")), keepers
}

// everything is a recorder that keeps all of each point.
type everything struct{ rows []string }

func (e *everything) Begin(*master.System, []master.Port) error { return nil }
func (e *everything) Record(p *master.Point) error {
	e.rows = append(e.rows, fmt.Sprint(p.T, p.Step, p.U, p.Y, p.DiscreteIn, p.DiscreteOut, p.Watch))
	return nil
}
func (e *everything) Flush() error            { return nil }
func (e *everything) End(master.Result) error { return nil }

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
	var connections []master.Connection
	for _, c := range [][2]string{{"one.y1", "two.u1"}, {"two.y1", "one.u1"}, {"one.n", "two.n"}, {"two.n", "one.n"}, {"one.b", "two.b"}, {"two.b", "one.b"}, {"one.s", "two.s"}, {"two.s", "one.s"}} {
		connections = append(connections, wire(c[0], c[1]))
	}
	return system(t, []master.Subsystem{sys.Subsystems[0], sys.Subsystems[1], keptTunable{k}}, connections...)
}

// meddler sets variables of every kind, and lets them go, by a count of its own.
type meddler struct{ calls int }

func (m *meddler) Bind(*master.Run) error { return nil }

func (m *meddler) Archive(a *master.Archive) { a.Int(&m.calls) }

func (m *meddler) At(r *master.Run) error {
	m.calls++
	text, whole, yes := master.Scalar{Kind: master.String, Text: "mine"}, master.Scalar{Kind: master.Integer, Integer: -7}, master.Scalar{Kind: master.Boolean, Boolean: true}
	for _, do := range []struct {
		call int
		name string
		do   func(*master.Variable) error
	}{
		{3, "two.n", func(v *master.Variable) error { return v.Set(whole) }},
		{5, "three.p", func(v *master.Variable) error { return v.Set(real(0.25)) }},
		{9, "one.s", func(v *master.Variable) error { return v.Set(text) }},
		{14, "one.u1", func(v *master.Variable) error { return v.Override(master.Linear{Gain: 0.5, Offset: 0.1}) }},
		{20, "one.y1", func(v *master.Variable) error { return v.Override(master.Linear{Gain: 0.9}) }},
		{31, "one.b", func(v *master.Variable) error { return v.Set(yes) }},
		{36, "two.n", (*master.Variable).Release},
		{45, "three.p", (*master.Variable).Release},
		{55, "one.u1", (*master.Variable).Release},
		{66, "one.s", (*master.Variable).Release},
		{77, "one.y1", (*master.Variable).Release},
		{88, "one.b", (*master.Variable).Release},
	} {
		if do.call == m.calls {
			v, err := r.Variable(do.name)
			if err == nil {
				err = do.do(v)
			}
			if err != nil {
				return err
			}
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
			o := master.Options{Stop: 1, Step: 0.01, Workers: workers, Recorders: []master.Recorder{whole},
				Checkpoints: &master.Checkpoints{Every: every, Write: func(c master.Checkpoint) error { made = append(made, c); return nil }}}
			o.Hooks = hooks()
			want, err := newRun(t, talkers(t), o).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := int(1/every+1e-9) - 1; len(made) < n || len(made) > n+1 {
				t.Errorf("%d checkpoints every %g s", len(made), every)
			}
			for _, c := range made {
				rest := &everything{}
				o.Recorders, o.Resume, o.Hooks = []master.Recorder{rest}, c.State, hooks()
				later := []master.Checkpoint{}
				o.Checkpoints = &master.Checkpoints{Every: every, Write: func(c master.Checkpoint) error { later = append(later, c); return nil }}
				r := newRun(t, talkers(t), o)
				if err := r.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				p := r.Point()
				if now := fmt.Sprint(p.T, p.Step, p.U, p.Y, p.DiscreteIn, p.DiscreteOut, p.Watch); now != whole.rows[c.Steps] {
					t.Errorf("resumed at %g: the point is\n%s, want\n%s", c.T, now, whole.rows[c.Steps])
				}
				for more := true; more; {
					if more, err = r.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				got, err := r.Close()
				if err != nil || !reflect.DeepEqual(rest.rows, whole.rows[c.Steps+1:]) {
					t.Errorf("resumed at %g: %v, other rows", c.T, err)
				}
				want.SubsystemSeconds, want.MasterSeconds, want.WallSeconds, got.SubsystemSeconds, got.MasterSeconds, got.WallSeconds = nil, 0, 0, nil, 0, 0
				if !reflect.DeepEqual(got, want) {
					t.Errorf("resumed at %g: %+v, want %+v", c.T, got, want)
				}
				if len(made) != len(later)+indexOf(made, c.T)+1 {
					t.Errorf("resumed at %g: %d more checkpoints of %d", c.T, len(later), len(made))
				}
			}
		}
	}
}

func indexOf(list []master.Checkpoint, t float64) int {
	for i, c := range list {
		if c.T == t {
			return i
		}
	}
	return -1
}

// bare is an algorithm that cannot be archived.
type bare struct{ master.Algorithm }

// What stands in the way of checkpoints is told before the first step.
func TestCheckpointsRefused(t *testing.T) {
	write := func(master.Checkpoint) error { return nil }
	for want, o := range map[string]*master.Checkpoints{
		"it is 0 or greater": {Every: -1, Write: write}, "need a place": {Every: 1},
	} {
		sys, _ := talkers(t)
		if _, err := master.NewRun(sys, explicit(t, algorithms.Config{}), master.Options{Stop: 1, Step: 0.1, Checkpoints: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want … %s", err, want)
		}
	}
	o := master.Options{Stop: 1, Step: 0.1, Checkpoints: &master.Checkpoints{Every: 0.5, Write: write}}
	sys, _ := talkers(t)
	if _, err := master.NewRun(sys, bare{explicit(t, algorithms.Config{})}, o); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "the algorithm") {
		t.Error(err)
	}
	hooked := o
	hooked.Hooks = []master.Hook{&hook{at: func(*master.Run) error { return nil }}}
	if _, err := master.NewRun(sys, explicit(t, algorithms.Config{}), hooked); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "the hook *master_test.hook") {
		t.Error(err)
	}
	sys, keepers := talkers(t)
	keepers[1].info.Caps.SerializeState = false
	for _, c := range []master.Options{o, {Stop: 1, Step: 0.1, Resume: []byte{}}} {
		if _, err := master.NewRun(sys, explicit(t, algorithms.Config{}), c); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "and two cannot serialise its state") {
			t.Error(err)
		}
	}
	for want, spoil := range map[string]func(*kept){
		"two: serialising the state at t = 0 s: no room":        func(k *kept) { k.serialize = errors.New("no room") },
		"two: reading a serialised state at t = 0 s: no memory": func(k *kept) { k.deserialize = errors.New("no memory") },
	} {
		sys, keepers := talkers(t)
		spoil(keepers[1])
		r := newRun(t, sys, o)
		if err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "canSerializeFMUstate") {
			t.Errorf("%v, want … %s", err, want)
		}
		if _, err := r.Close(); err == nil {
			t.Error("the run went well")
		}
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

// A run that is cancelled leaves a checkpoint where it stands, if asked.
func TestCheckpointOnInterrupt(t *testing.T) {
	var made []master.Checkpoint
	whole := &everything{}
	sys, _ := talkers(t)
	o := master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{whole}}
	if _, err := newRun(t, sys, o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sys, _ = talkers(t)
	o.Recorders = nil
	o.Checkpoints = &master.Checkpoints{OnInterrupt: true, Write: func(c master.Checkpoint) error { made = append(made, c); return nil }}
	r := newRun(t, sys, o)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := r.Start(ctx)
	for range 4 {
		if _, err := r.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cancel(master.ErrInterrupted)
	if _, end := r.Step(ctx); err != nil || !errors.Is(end, master.ErrInterrupted) {
		t.Fatal(err, end)
	}
	if result, _ := r.Close(); len(made) != 1 || made[0].Steps != 4 || result.Status != master.Incomplete {
		t.Fatalf("%d checkpoints, %+v", len(made), result)
	}
	rest := &everything{}
	sys, _ = talkers(t)
	o.Recorders, o.Resume = []master.Recorder{rest}, made[0].State
	if _, err := newRun(t, sys, o).Run(t.Context()); err != nil || !reflect.DeepEqual(rest.rows, whole.rows[5:]) {
		t.Errorf("%v; %q, want %q", err, rest.rows, whole.rows[5:])
	}
}

// State of another run, or state that was tampered with, is an error or leads to a
// run, but never to a panic; the subsystems are ended.
func TestForeignState(t *testing.T) {
	var made []master.Checkpoint
	sys := tunedTalkers(t)
	o := master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{&meddler{}}, Checkpoints: &master.Checkpoints{Every: 0.45, Write: func(c master.Checkpoint) error { made = append(made, c); return nil }}}
	if _, err := newRun(t, sys, o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := made[0].State
	o.Checkpoints = nil
	a, b := newKept("one", 1, 1), newKept("two", 1, 1)
	o.Resume = good
	if _, err := newRun(t, system(t, []master.Subsystem{a, b}, wire("one.y1", "two.u1")), o).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not fit this run") {
		t.Errorf("a system with other signals: %v", err)
	}
	if a.closed != 1 || a.terminated != 1 {
		t.Errorf("closed %d times, terminated %d times", a.closed, a.terminated)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		bad := append([]byte{}, good...)
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		if rng.IntN(4) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		}
		sys := tunedTalkers(t)
		o.Resume, o.Hooks = bad, []master.Hook{&meddler{}}
		ctx, cancel := context.WithCancel(t.Context())
		r := newRun(t, sys, o)
		err := r.Start(ctx)
		for k := 0; err == nil && k < 20; k++ {
			var more bool
			if more, err = r.Step(ctx); !more {
				break
			}
		}
		cancel()
		if _, end := r.Close(); end != nil && strings.Contains(end.Error(), "panic") {
			t.Fatalf("%v", end)
		}
	}
}

// Where no checkpoint is made, a run that could make some allocates no more than
// any other.
func TestNoCheckpointNoAllocation(t *testing.T) {
	steps := func(c *master.Checkpoints) float64 {
		k := newKept("one", 1, 1)
		k.eval = func(u, y []float64) { y[0] = 0.5 }
		r := newRun(t, system(t, []master.Subsystem{&quietKept{k}}), master.Options{Stop: 1e6, Step: 1, Checkpoints: c})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		n := testing.AllocsPerRun(1000, func() {
			if _, err := r.Step(ctx); err != nil {
				t.Fatal(err)
			}
		})
		if _, err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []*master.Checkpoints{nil, {Every: 1e5, OnInterrupt: true, Write: func(master.Checkpoint) error { return nil }}} {
		if n := steps(c); n != 0 {
			t.Errorf("%+v: %g allocations a step", c, n)
		}
	}
}

// quietKept keeps no list of its steps.
type quietKept struct{ *kept }

func (q *quietKept) Step(_ context.Context, t, H float64) (float64, error) { return t + H, nil }

// toTheEnd steps a run to its end and closes it.
func toTheEnd(t testing.TB, r *master.Run) master.Result {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	result, err := r.Close()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A checkpoint is made on demand, announced or not, at any step, and the run goes on from it
// as it does itself.
func TestCheckpointOnDemand(t *testing.T) {
	for _, announced := range []*master.Checkpoints{nil, {}} {
		whole := &everything{}
		sys, _ := talkers(t)
		if _, err := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{whole}}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for at := range 10 {
			first := &everything{}
			sys, _ := talkers(t)
			o := master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{first}, Checkpoints: announced}
			r := newRun(t, unverified(t, sys, announced == nil), o)
			if _, err := r.Checkpoint(); err == nil {
				t.Error("there is a checkpoint before the start")
			}
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range at {
				if _, err := r.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			c, err := r.Checkpoint()
			if err != nil || c.Steps != at || c.T != r.Time() {
				t.Fatalf("%v: %+v", err, c)
			}
			toTheEnd(t, r)
			rest := &everything{}
			sys, _ = talkers(t)
			o.Recorders, o.Resume = []master.Recorder{rest}, c.State
			if _, err := newRun(t, unverified(t, sys, announced == nil), o).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(first.rows, whole.rows) || !reflect.DeepEqual(rest.rows, whole.rows[at+1:]) {
				t.Errorf("after %d steps: other rows", at)
			}
			if _, err := r.Checkpoint(); err == nil {
				t.Error("there is a checkpoint after the close")
			}
		}
	}
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
	return system(t, subs, wire("one.y1", "two.u1"), wire("two.y1", "one.u1"), wire("one.n", "two.n"), wire("two.n", "one.n"),
		wire("one.b", "two.b"), wire("two.b", "one.b"), wire("one.s", "two.s"), wire("two.s", "one.s"))
}

// Where no checkpoint can be made the message says why, and the run goes on.
func TestCheckpointOnDemandRefused(t *testing.T) {
	sys, _ := talkers(t)
	var inside error
	h := &hook{at: func(r *master.Run) error { _, inside = r.Checkpoint(); return nil }}
	r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{h}})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(t.Context()); err != nil || inside == nil || !strings.Contains(inside.Error(), "between two steps") {
		t.Errorf("%v, in a hook %v", err, inside)
	}
	if _, err := r.Checkpoint(); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "one: ") || !strings.Contains(err.Error(), "&master.Checkpoints{}") {
		t.Error(err)
	}
	toTheEnd(t, r)
	f := newFake("gauge", 0, 1)
	r = newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.1})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Checkpoint(); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "gauge does not offer its state") || !strings.Contains(err.Error(), "master.Archiver") || strings.Contains(err.Error(), "canSerialize") {
		t.Error(err)
	}
	if result := toTheEnd(t, r); result.Status != master.Complete {
		t.Errorf("%+v", result)
	}
}

// stopped is a subsystem that is told the stop time.
type stopped struct{ *kept }

func (stopped) UsesStop() bool { return true }

// A run goes on to a later stop time as one that had it from the start, also from its end.
// Where the earlier one has left traces, a warning or an error says so.
func TestLaterStop(t *testing.T) {
	run := func(o master.Options, preset string, until float64, told bool) (rows []string, c master.Checkpoint, result master.Result, err error) {
		t.Helper()
		sys, keepers := talkers(t)
		for _, k := range keepers {
			k.info.Caps.SaveState = true
		}
		if told {
			sys = system(t, []master.Subsystem{stopped{keepers[0]}})
		}
		e := &everything{}
		o.Recorders, o.Checkpoints = []master.Recorder{e}, &master.Checkpoints{}
		alg, err := algorithms.New(preset, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := master.NewRun(sys, alg.Algorithm, o)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Start(t.Context())
		for more := err == nil; more && r.Time() < until-1e-9; {
			if more, err = r.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err == nil {
			if c, err = r.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
		result, _ = r.Close()
		return e.rows, c, result, err
	}
	const fixed, variable = "explicit", "predictor-corrector"
	for _, preset := range []string{fixed, variable} {
		long, _, _, _ := run(master.Options{Stop: 2, Step: 0.1}, preset, 2, false)
		for _, at := range []float64{0.3, 1} {
			rows, c, _, _ := run(master.Options{Stop: 1, Step: 0.1}, preset, at, false)
			rest, _, result, err := run(master.Options{Stop: 2, Step: 0.1, Resume: c.State}, preset, 2, false)
			clipped := preset == variable && at == 1
			if err != nil || !clipped && !reflect.DeepEqual(append(rows, rest...), long) {
				t.Errorf("%s from %g: %v, other rows", preset, at, err)
			}
			if warned := strings.Contains(fmt.Sprint(result.Warnings), "were chosen to end at the stop time 1 s"); warned != clipped {
				t.Errorf("%s from %g: %q", preset, at, result.Warnings)
			}
		}
	}
	// The end is the stop time; what follows begins on the grid, which differs by rounding.
	long, _, _, _ := run(master.Options{Stop: 2, Step: 0.1}, fixed, 2, false)
	_, c, ended, _ := run(master.Options{Stop: 0.3, Step: 0.1}, fixed, 0.3, false)
	if rest, _, _, err := run(master.Options{Stop: 2, Step: 0.1, Resume: c.State}, fixed, 2, false); err != nil || ended.Time != 0.3 || !reflect.DeepEqual(rest, long[4:]) {
		t.Errorf("from the end at %v: %v, other rows", ended.Time, err)
	}
	_, c, _, _ = run(master.Options{Stop: 1, Step: 0.1}, fixed, 1, false)
	for what, o := range map[string]master.Options{
		"nothing left to do":                {Stop: 1, Step: 0.1, Resume: c.State},
		"the step size was 0.1, and is 0.2": {Stop: 2, Step: 0.2, Resume: c.State},
		"the start time was 0, and is 0.1":  {Start: 0.1, Stop: 2, Step: 0.1, Resume: c.State},
	} {
		if _, _, _, err := run(o, fixed, 2, false); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want … %s", err, what)
		}
	}
	_, c, _, _ = run(master.Options{Stop: 1.05, Step: 0.1}, fixed, 1.05, false)
	if _, _, _, err := run(master.Options{Stop: 2, Step: 0.1, Resume: c.State}, fixed, 2, false); err == nil || !strings.Contains(err.Error(), "which is not on the grid of 0.1 s") {
		t.Error(err)
	}
	_, c, _, _ = run(master.Options{Stop: 1, Step: 0.125}, fixed, 0.5, true)
	for stop, warns := range map[float64]bool{1: false, 2: true} {
		if _, _, result, err := run(master.Options{Stop: stop, Step: 0.125, Resume: c.State}, fixed, stop, true); err != nil || strings.Contains(fmt.Sprint(result.Warnings), "one was told the stop time 1 s") != warns {
			t.Errorf("to %g: %v, %q", stop, err, result.Warnings)
		}
	}
}
