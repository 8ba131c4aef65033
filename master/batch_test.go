package master_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// member is a Linear that can be stepped in a batch, and counts the crossings.
type member struct {
	*mastertest.Linear
	key       string
	crossings *int
	failAt    int // the step at which it fails; 0 = never
	steps     int
	full      bool // no state can be saved
}

func (m *member) SaveState(reuse master.State) (master.State, error) {
	if m.full {
		return nil, errors.New("no room")
	}
	return m.Linear.SaveState(reuse)
}

func (m *member) Step(ctx context.Context, t, H float64) (float64, error) {
	m.steps++
	if m.steps == m.failAt {
		return t + H/2, master.ErrDiscard
	}
	return m.Linear.Step(ctx, t, H)
}

func (m *member) BatchKey() any { return m.key }

func (m *member) NewBatch(members []master.Subsystem, exchange []master.Exchange) (master.Batch, error) {
	g := &memberBatch{crossings: m.crossings, exchange: exchange}
	for _, s := range members {
		g.members = append(g.members, s.(*member))
	}
	return g, nil
}

type memberBatch struct {
	members   []*member
	exchange  []master.Exchange
	crossings *int
}

func (*memberBatch) Begin(_, _ float64) bool { return false }

func (g *memberBatch) Save(states []master.State) (failed int, err error) {
	for i, m := range g.members {
		if states[i], err = m.SaveState(states[i]); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (g *memberBatch) Restore(states []master.State) (failed int, err error) {
	for i, m := range g.members {
		if err := m.RestoreState(states[i]); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (g *memberBatch) Step(ctx context.Context, t, H float64, read bool) (int, float64, error) {
	*g.crossings++
	for i, m := range g.members {
		x := &g.exchange[i]
		err := m.SetInputs(x.In)
		for k, du := range x.Slopes {
			err = errors.Join(err, m.SetInputDerivatives(k+1, du))
		}
		if err != nil {
			return i + 1, t, err
		}
		if reached, err := m.Step(ctx, t, H); err != nil {
			return i + 1, reached, err
		}
		if err := m.Outputs(x.Out); read && err != nil {
			return i + 1, t + H, err
		}
	}
	return len(g.members), t + H, nil
}

// If a member of a batch cannot save its state, the states that others have saved before it are freed.
func TestBatchStatesFreed(t *testing.T) {
	var subs []master.Subsystem
	var all []*member
	for i, l := range []*mastertest.Linear{mastertest.Oscillator()[0], mastertest.Oscillator()[1]} {
		m := &member{Linear: l, key: "k", crossings: new(int), full: i == 1}
		subs, all = append(subs, m), append(all, m)
	}
	_, err := made(t, system(t, subs, mastertest.OscillatorConnections()...), preset(t, "implicit", nil), master.Options{Stop: 1, Step: 0.01}).Run(t.Context())
	if contains(t, "a full batch", err, "second: saving the state", "no room"); all[0].Calls.Save != 1 || all[0].Calls.Free != 1 {
		t.Errorf("%d states were saved, %d freed", all[0].Calls.Save, all[0].Calls.Free)
	}
}

// Stepping in batches gives the bits of stepping one by one, also when a member in the middle fails:
// same points, same error, same counts, nothing called after the failure.
func TestBatches(t *testing.T) {
	type outcome struct {
		memory  *mastertest.Memory
		status  master.Status
		err     string
		steps   [4]int // of a, c, d and e: b, which is alone with its key, may step before or after a failure
		counted [4]int
		point   []float64
	}
	const names = "abcde"
	run := func(batched bool, failAt int) (o outcome, crossings int) {
		var subs []master.Subsystem
		var members []*member
		var connections []master.Connection
		for i := range names {
			name := names[i : i+1]
			m := &member{crossings: &crossings, key: "one", Linear: mastertest.NewLinear(name, mastertest.Matrices{
				A: [][]float64{{-1 - float64(i)}}, B: [][]float64{{0.5}}, C: [][]float64{{1}},
			}, []float64{float64(i)})}
			switch name {
			case "b":
				m.key = "other"
			case "d":
				m.failAt = failAt
			case "e":
				m.Info().Caps.VariableStep = false // steps of another length than the others
			}
			members = append(members, m)
			if batched {
				subs = append(subs, m)
			} else {
				subs = append(subs, single{m})
			}
			next := (i + 1) % len(names)
			connections = append(connections, wire(name+".y1", names[next:next+1]+".u1"))
		}
		o.memory = &mastertest.Memory{}
		r := made(t, system(t, subs, connections...), explicit(t, algorithms.Config{Order: 2}),
			master.Options{Stop: 2, Step: 0.1, Recorders: []master.Recorder{o.memory}})
		result, err := r.Run(t.Context())
		o.status, o.err, o.point = result.Status, fmt.Sprint(err), slices.Clone(r.Point().Y)
		if failed := (*master.StepError)(nil); failAt > 0 && (!errors.As(err, &failed) || failed.Subsystem != "d" || !errors.Is(err, master.ErrDiscard)) {
			t.Errorf("failure at %d: %v", failAt, err)
		}
		for k, i := range []int{0, 2, 3, 4} {
			o.steps[k], o.counted[k] = members[i].steps, result.SubsystemSteps[i]
		}
		o.memory.Result = master.Result{} // which has wall times
		return o, crossings
	}
	for failAt, points := range map[int]int{0: 21, 1: 1, 7: 7} {
		one, none := run(false, failAt)
		many, some := run(true, failAt)
		if none != 0 || some == 0 {
			t.Errorf("%d crossings one by one, %d in batches", none, some)
		}
		if !reflect.DeepEqual(one, many) || len(one.memory.T) != points {
			t.Errorf("failure at %d: %+v, want %+v with %d points", failAt, many, one, points)
		}
	}
}

// single hides that a member can be batched.
type single struct{ *member }

func (single) NewBatch() {}

// A batch that stops early without an error is not believed.
func TestBatchStopsShort(t *testing.T) {
	a, b := &lazy{newFake("a", 0, 1)}, &lazy{newFake("b", 0, 1)}
	_, err := newRun(t, system(t, []master.Subsystem{a, b}), master.Options{Stop: 1, Step: 0.1}).Run(t.Context())
	var step *master.StepError
	if !errors.As(err, &step) || step.Subsystem != "a" || !errors.Is(err, master.ErrDiscard) {
		t.Errorf("%v", err)
	}
}

// lazy makes batches that step their first member only.
type lazy struct{ *fake }

func (*lazy) BatchKey() any { return 0 }
func (*lazy) NewBatch([]master.Subsystem, []master.Exchange) (master.Batch, error) {
	return lazyBatch{&memberBatch{}}, nil
}

type lazyBatch struct{ *memberBatch }

func (lazyBatch) Step(_ context.Context, t, H float64, _ bool) (int, float64, error) {
	return 1, t + H, nil
}

// Batches that step by themselves are sent off before the others step, and waited for after
// them, also where another fails. Of several failures that of the first subsystem counts.
func TestBatchesSentOff(t *testing.T) {
	const fails = 3 // the step at which they do
	for _, c := range []struct {
		away, here int // the step at which they fail
		want       string
	}{{0, 0, ""}, {0, fails, "here"}, {fails, 0, "away"}, {fails, fails, "away"}} {
		var calls []string
		crossings := 0
		member := func(name, key string, failAt int) *member {
			return &member{crossings: &crossings, key: key, failAt: failAt, Linear: mastertest.NewLinear(name, mastertest.Matrices{
				A: [][]float64{{-1}}, B: [][]float64{{0.5}}, C: [][]float64{{1}}}, []float64{1})}
		}
		away, here := member("away", "away", c.away), member("here", "here", c.here)
		r := made(t, system(t, []master.Subsystem{sentOff{away, &calls}, noted{here, &calls}}, wire("away.y1", "here.u1"), wire("here.y1", "away.u1")),
			explicit(t, algorithms.Config{}), master.Options{Stop: 1, Step: 0.1})
		_, err := r.Run(t.Context())
		var step *master.StepError
		if errors.As(err, &step); c.want == "" && err != nil || c.want != "" && (step == nil || step.Subsystem != c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		steps := 10
		if c.want != "" {
			steps = fails
		}
		if want := slices.Repeat([]string{"begin", "here", "end"}, steps); !slices.Equal(calls, want) {
			t.Errorf("%+v: the calls are %v", c, calls)
		}
	}
}

// noted is a member whose batch notes when it steps, sentOff one whose batch can be sent off.
type (
	noted struct {
		*member
		calls *[]string
	}
	sentOff   noted
	notedHere struct {
		master.Batch
		calls *[]string
	}
	notedAway struct{ notedHere }
)

func (n noted) NewBatch(_ []master.Subsystem, exchange []master.Exchange) (master.Batch, error) {
	g, err := n.member.NewBatch([]master.Subsystem{n.member}, exchange)
	return notedHere{g, n.calls}, err
}

func (n sentOff) NewBatch(_ []master.Subsystem, exchange []master.Exchange) (master.Batch, error) {
	g, err := n.member.NewBatch([]master.Subsystem{n.member}, exchange)
	return notedAway{notedHere{g, n.calls}}, err
}

func (g notedHere) Step(ctx context.Context, t, H float64, read bool) (int, float64, error) {
	*g.calls = append(*g.calls, "here")
	return g.Batch.Step(ctx, t, H, read)
}

func (g notedAway) Begin(_, _ float64) bool {
	*g.calls = append(*g.calls, "begin")
	return true
}

func (g notedAway) Step(ctx context.Context, t, H float64, read bool) (int, float64, error) {
	*g.calls = append(*g.calls, "end")
	return g.Batch.Step(ctx, t, H, read)
}

// Of several failures that of the first subsystem counts, however subsystems are batched or spread over threads.
func TestFirstFailure(t *testing.T) {
	for _, keys := range []string{"kkk", "klk", "kll", "klm"} {
		for workers := 1; workers <= 3; workers++ {
			var subs []master.Subsystem
			for i := range keys {
				failAt := 3
				if i == 0 {
					failAt = 0
				}
				subs = append(subs, &member{crossings: new(int), key: keys[i : i+1], failAt: failAt,
					Linear: mastertest.NewLinear("abc"[i:i+1], mastertest.Matrices{A: [][]float64{{-1}}, C: [][]float64{{1}}}, []float64{1})})
			}
			_, err := made(t, system(t, subs), explicit(t, algorithms.Config{}), master.Options{Stop: 1, Step: 0.1, Workers: workers}).Run(t.Context())
			if step := (*master.StepError)(nil); !errors.As(err, &step) || step.Subsystem != "b" {
				t.Errorf("batches %s, %d workers: %v", keys, workers, err)
			}
		}
	}
}

// The state that a subsystem could not replace is kept, and freed in the end.
func TestStateKeptAfterFailure(t *testing.T) {
	m := &member{Linear: mastertest.Oscillator()[0], crossings: new(int)}
	subs := []master.Subsystem{single{m}, mastertest.Oscillator()[1]}
	r := made(t, system(t, subs, mastertest.OscillatorConnections()...), preset(t, "implicit", nil), master.Options{Stop: 1, Step: 0.01})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.Step(t.Context())
	m.full = true
	if _, failed := r.Step(t.Context()); err != nil || failed == nil {
		t.Errorf("%v, %v", err, failed)
	}
	if _, err := r.Close(); err == nil || m.Calls.Free != 1 {
		t.Errorf("%v: %d states are freed", err, m.Calls.Free)
	}
}

// A panic on another thread is that of the subsystem that panics, and counts after the failure of an earlier one.
func TestPanicOfBatch(t *testing.T) {
	for _, c := range []struct {
		fails, panics int
		want          string
	}{{-1, 3, "panic near subsystem f3"}, {-1, 5, "panic near subsystem f5"}, {0, 3, "f0: step from"}, {5, 3, "panic near subsystem f3"}} {
		for workers := 2; workers <= 3; workers++ {
			var subs []master.Subsystem
			for i := range 6 {
				f := newFake(fmt.Sprint("f", i), 0, 1)
				f.step = func(t, H float64) (float64, error) {
					switch {
					case i == c.panics && t > 0.45:
						panic("on purpose")
					case i == c.fails && t > 0.45:
						return t, errors.New("fails")
					}
					return t + H, nil
				}
				subs = append(subs, f)
			}
			_, err := newRun(t, system(t, subs), master.Options{Stop: 1, Step: 0.1, Workers: workers}).Run(t.Context())
			contains(t, fmt.Sprintf("%+v, %d workers", c, workers), err, c.want)
		}
	}
}

// Inputs that are not finite count before failed steps, however subsystems are batched or spread over threads.
func TestInputsBeforeSteps(t *testing.T) {
	for _, keys := range []string{"kk", "kl"} {
		for workers := 1; workers <= 2; workers++ {
			var subs []master.Subsystem
			for i := range keys {
				subs = append(subs, &member{crossings: new(int), key: keys[i : i+1], failAt: 1 - i,
					Linear: mastertest.NewLinear("ab"[i:i+1], mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{1})})
			}
			step := func(x *master.Exec) error {
				x.U[1] = math.NaN()
				return x.NewTeam([]int{0, 1}).Step(t.Context(), 0, 0.5)
			}
			_, err := made(t, system(t, subs), &asking{step}, master.Options{Stop: 1, Step: 0.5, Workers: workers}).Run(t.Context())
			contains(t, fmt.Sprintf("batches %s, %d workers", keys, workers), err, "the extrapolated value of the input b.u1 is NaN")
		}
	}
}
