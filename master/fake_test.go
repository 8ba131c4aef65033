package master_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// fake is a subsystem made of functions. Every call counts, and writes the
// count unlocked, so that the race detector proves that there is one caller.
type fake struct {
	info master.Info
	u, y []float64
	// eval computes y from u; nil leaves y as it is.
	eval func(u, y []float64)
	// step is called at each Step before eval; nil reaches the end.
	step func(t, H float64) (float64, error)

	din, dout master.Values
	discrete  func(in, out *master.Values)

	calls      int
	lengths    []float64 // of each Step
	terminated int
	closed     int
}

func newFake(name string, inputs, outputs int) *fake {
	f := &fake{u: make([]float64, inputs), y: make([]float64, outputs)}
	f.info = master.Info{Name: name, In: ports("u", inputs), Out: ports("y", outputs), Caps: master.Caps{VariableStep: true}}
	return f
}

func ports(prefix string, n int) []master.Port {
	var p []master.Port
	for i := range n {
		p = append(p, master.Port{Name: prefix + string(rune('1'+i))})
	}
	return p
}

// depends declares that every output depends on every input.
func (f *fake) depends() *fake {
	on := make([][]int, len(f.info.Out)+len(f.info.DiscreteOut))
	for i := range on {
		for k := range len(f.info.In) + len(f.info.DiscreteIn) {
			on[i] = append(on[i], k)
		}
	}
	ft := master.Feedthrough{On: on, Assumed: make([]bool, len(on))}
	f.info.Step, f.info.Init = ft, ft
	return f
}

// assumes marks all dependencies as assumed.
func (f *fake) assumes() *fake {
	f.depends()
	for i := range f.info.Step.Assumed {
		f.info.Step.Assumed[i] = true
	}
	return f
}

func (f *fake) Info() *master.Info { return &f.info }

func (f *fake) SetInputs(u []float64) error {
	f.calls++
	copy(f.u, u)
	return nil
}

func (f *fake) Step(_ context.Context, t, H float64) (float64, error) {
	f.calls++
	f.lengths = append(f.lengths, H)
	if f.step != nil {
		if reached, err := f.step(t, H); err != nil || reached != t+H {
			return reached, err
		}
	}
	f.update()
	return t + H, nil
}

func (f *fake) update() {
	if f.eval != nil {
		f.eval(f.u, f.y)
	}
	if f.discrete != nil {
		f.discrete(&f.din, &f.dout)
	}
}

func (f *fake) Outputs(y []float64) error {
	f.calls++
	copy(y, f.y)
	return nil
}

func (f *fake) EnterInit(context.Context, master.Experiment) error {
	if f.din.Integer == nil {
		f.din, f.dout = master.NewValues(f.info.DiscreteIn), master.NewValues(f.info.DiscreteOut)
	}
	return nil
}
func (f *fake) EvalInit() error { f.calls++; f.update(); return nil }
func (f *fake) ExitInit() error { return nil }

func (f *fake) SetDiscrete(v *master.Values) error { copyValues(&f.din, v); return nil }
func (f *fake) Discrete(v *master.Values) error    { copyValues(v, &f.dout); return nil }

func copyValues(to, from *master.Values) {
	copy(to.Real, from.Real)
	copy(to.Integer, from.Integer)
	copy(to.Boolean, from.Boolean)
	copy(to.String, from.String)
}

func (f *fake) Terminate() error { f.terminated++; return nil }
func (f *fake) Close() error     { f.closed++; return nil }

// saved is a fake that can go back.
type saved struct{ *fake }

type savedState struct {
	u, y      []float64
	din, dout master.Values
}

func newSaved(name string, inputs, outputs int) saved {
	f := newFake(name, inputs, outputs)
	f.info.Caps.SaveState = true
	return saved{f}
}

func (s saved) SaveState(master.State) (master.State, error) {
	clone := func(v *master.Values) master.Values {
		return master.Values{Integer: slices.Clone(v.Integer), Boolean: slices.Clone(v.Boolean), String: slices.Clone(v.String)}
	}
	return &savedState{slices.Clone(s.u), slices.Clone(s.y), clone(&s.din), clone(&s.dout)}, nil
}

func (s saved) RestoreState(state master.State) error {
	v := state.(*savedState)
	copy(s.u, v.u)
	copy(s.y, v.y)
	copyValues(&s.din, &v.din)
	copyValues(&s.dout, &v.dout)
	return nil
}

func (s saved) FreeState(master.State) error { return nil }

var wire = master.Connect

// endpoint splits "subsystem.port".
func endpoint(name string) master.Endpoint {
	at := strings.LastIndexByte(name, '.')
	return master.Endpoint{Subsystem: name[:max(at, 0)], Port: name[at+1:]}
}

func system(t testing.TB, subs []master.Subsystem, connections ...master.Connection) *master.System {
	t.Helper()
	sys, err := master.NewSystem(subs, connections)
	must(t, err)
	return sys
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func explicit(t testing.TB, c algorithms.Config) master.Algorithm {
	t.Helper()
	e, err := algorithms.NewCoupling(c)
	must(t, err)
	return e
}

// preset returns the algorithm of a preset.
func preset(t testing.TB, name string, params map[string]string) master.Algorithm {
	t.Helper()
	choice, err := algorithms.New(name, params)
	must(t, err)
	return choice.Algorithm
}

func made(t testing.TB, sys *master.System, alg master.Algorithm, o master.Options) *master.Run {
	t.Helper()
	r, err := master.NewRun(sys, alg, o)
	must(t, err)
	return r
}

// newRun makes a run of explicit coupling.
func newRun(t testing.TB, sys *master.System, o master.Options) *master.Run {
	t.Helper()
	return made(t, sys, explicit(t, algorithms.Config{}), o)
}

// run runs to the end, which must come without an error.
func run(t testing.TB, r *master.Run) master.Result {
	t.Helper()
	result, err := r.Run(t.Context())
	must(t, err)
	return result
}

func start(t testing.TB, r *master.Run) {
	t.Helper()
	must(t, r.Start(t.Context()))
}

func step(t testing.TB, r *master.Run) (more bool) {
	t.Helper()
	more, err := r.Step(t.Context())
	must(t, err)
	return more
}

func end(t testing.TB, r *master.Run) master.Result {
	t.Helper()
	result, err := r.Close()
	must(t, err)
	return result
}

// contains fails the test unless err is an error with all of these texts.
func contains(t testing.TB, what any, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want … %s", what, err, text)
		}
	}
}

// oscillator returns a fresh system with memory.
func oscillator(t testing.TB) (*master.System, []*mastertest.Linear) {
	t.Helper()
	subs := mastertest.Oscillator()
	return system(t, []master.Subsystem{subs[0], subs[1]}, mastertest.OscillatorConnections()...), subs
}

// times is a recorder that keeps the times only.
type times struct{ t []float64 }

func (r *times) Begin(*master.System, []master.Port) error { return nil }
func (r *times) Record(p *master.Point) error              { r.t = append(r.t, p.T); return nil }
func (r *times) Flush() error                              { return nil }
func (r *times) End(master.Result) error                   { return nil }
