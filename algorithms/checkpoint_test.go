package algorithms_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/fields"
	"github.com/macrostep/macrostep/test/long"
)

// bent is a subsystem whose response depends on the sign of its inputs.
type bent struct {
	*mastertest.Linear
	u []float64
}

func (b *bent) SetInputs(u []float64) error {
	b.u = append(b.u[:0], u...)
	for i, v := range u {
		b.u[i] *= 1 + 0.1*math.Tanh(v)
	}
	return b.Linear.SetInputs(b.u)
}

// bentSystem is a decomposition of the two-mass oscillator with nonlinear subsystems.
func bentSystem(t testing.TB, cut *split) *master.System {
	t.Helper()
	return cut.wrapped(t, func(_ int, l *mastertest.Linear) master.Subsystem { return &bent{Linear: l} })
}

// resumable is a run that keeps its points and checkpoints.
type resumable struct {
	mastertest.Memory
	alg         *Coupling
	checkpoints []master.Checkpoint
	result      master.Result
}

func newResumable(t testing.TB, stop, H float64, preset string, params map[string]string, w With, every float64, sys *master.System, from []byte) *resumable {
	t.Helper()
	choice := chosen(t, preset, params, w)
	r := &resumable{alg: choice.Algorithm.(*Coupling)}
	run, err := master.NewRun(sys, r.alg, master.Options{
		Stop: stop, Step: H, Discard: choice.Discard, Recorders: []master.Recorder{&r.Memory}, Resume: from,
		Checkpoints: &master.Checkpoints{Every: every, Write: func(c master.Checkpoint) error { r.checkpoints = append(r.checkpoints, c); return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.result, err = run.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// resumableCases returns all presets with defaults, and with parameters that use other parts.
func resumableCases() map[string][]map[string]string {
	cases := map[string][]map[string]string{}
	for _, p := range Presets() {
		cases[p.Name] = append(cases[p.Name], nil)
	}
	add := func(preset string, pairs ...string) {
		params := map[string]string{}
		for k := 0; k < len(pairs); k += 2 {
			params[pairs[k]] = pairs[k+1]
		}
		cases[preset] = append(cases[preset], params)
	}
	for order := 1; order <= MaxOrder; order++ {
		add("explicit", "order", fmt.Sprint(order))
	}
	add("explicit", "order", "2", "substeps", "3")
	add("gauss-seidel", "order", "2")
	add("gauss-seidel", "order", "3")
	for _, kind := range choices("implicit", "solver.kind") {
		add("implicit", "solver.kind", kind, "order", "2")
		add("implicit", "solver.kind", kind, "order", "0")
		add("im-slocal", "solver.kind", kind)
	}
	add("implicit", "solver.kind", "fixed-point", "solver.sweep", "gauss-seidel")
	add("implicit", "solver.kind", "fixed-point", "solver.relaxation", "0.9")
	add("implicit", "delivery", "substeps", "substeps", "3")
	add("predictor-corrector", "order", "2")
	add("energy-correction", "energy.nu", "0.5", "energy.mu", "0.7")
	for _, source := range choices("model-based-corrector", "model.jacobian")[1:] {
		for _, refresh := range []string{"0", "0.01", "1"} {
			add("model-based-corrector", "model.jacobian", source, "model.refresh", refresh, "order", "1")
		}
	}
	add("model-based-corrector", "model.jacobian", "directional", "model.refresh", "1", "order", "3")
	add("model-based-corrector", "model.jacobian", "identify", "order", "3")
	add("model-based-corrector", "scheme", "gauss-seidel", "control", "predictor-corrector")
	return cases
}

// choices returns the values of a parameter.
func choices(preset, param string) []string {
	table := Presets()
	p := table[slices.IndexFunc(table, func(p Preset) bool { return p.Name == preset })].Params
	return strings.Split(p[slices.IndexFunc(p, func(q Param) bool { return q.Name == param })].Range, ", ")
}

// massBond holds a power bond by decomposition.
var massBond = map[string]Bond{
	"ff": {Name: "spring", Pairs: []Pair{{Effort: "coupling.y1", Flow: "mass1.y2"}}},
	"fd": {Name: "spring", Pairs: []Pair{{Effort: "coupling.y1", Flow: "mass1.y2"}}},

	"through": {Name: "spring", Pairs: []Pair{{Effort: "two.y1", Flow: "one.y2"}}},
}

// A run resumed from any checkpoint has the points of the uninterrupted run bit for bit, its
// counters, and ends with the algorithm in the same state.
func TestResume(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	cases := resumableCases()
	for _, preset := range slices.Sorted(maps.Keys(cases)) {
		for _, params := range cases[preset] {
			for _, system := range []string{"ff", "fd", "dd"} {
				w := With{Spike: 30}
				if b, ok := massBond[system]; ok {
					w.Bonds = []Bond{b}
				} else if UsesEnergy(preset) {
					continue
				}
				every := 0.004 + 0.02*rng.Float64()
				t.Run(fmt.Sprintf("%s %v %s", preset, params, system), func(t *testing.T) {
					sameAfterResume(t, preset+"/"+system, params, w, every)
				})
			}
		}
	}
}

// The same with several rates.
func TestResumeRates(t *testing.T) {
	for _, order := range []string{"0", "2"} {
		for _, preset := range []string{"explicit", "gauss-seidel", "model-based-corrector"} {
			w := With{Rates: []Rate{{Component: "mass1", Steps: 4, Over: 1}, {Component: "mass2", Steps: 1, Over: 3}}}
			sameAfterResume(t, preset+"/dd", map[string]string{"order": order}, w, 0.007)
			w.Bonds = []Bond{massBond["fd"]}
			sameAfterResume(t, preset+"/fd", map[string]string{"order": order}, w, 0.005)
		}
	}
}

// sameAfterResume compares runs of a preset with a decomposition, "preset/dd".
func sameAfterResume(t *testing.T, name string, params map[string]string, w With, every float64) {
	t.Helper()
	preset, decomposition, _ := strings.Cut(name, "/")
	sameAfterResumeOf(t, preset, params, w, every, func() *master.System { return bentSystem(t, cut(uneven, decomposition)) })
}

func sameAfterResumeOf(t *testing.T, preset string, params map[string]string, w With, every float64, system func() *master.System) {
	t.Helper()
	sameAfterResumeOver(t, 0.05, 1e-3, preset, params, w, every, system)
}

func sameAfterResumeOver(t *testing.T, stop, H float64, preset string, params map[string]string, w With, every float64, system func() *master.System) *resumable {
	t.Helper()
	whole := newResumable(t, stop, H, preset, params, w, every, system(), nil)
	if len(whole.checkpoints) < 2 {
		t.Fatalf("%d checkpoints every %g s", len(whole.checkpoints), every)
	}
	for _, c := range whole.checkpoints {
		part := newResumable(t, stop, H, preset, params, w, every, system(), c.State)
		at := slices.Index(whole.T, c.T) + 1
		if c.Steps != at-1 || !slices.Equal(part.T, whole.T[at:]) {
			t.Fatalf("resumed at t = %g s: %d points, want %d", c.T, len(part.T), len(whole.T)-at)
		}
		for k := range part.T {
			for i, v := range part.Y[k] {
				if math.Float64bits(v) != math.Float64bits(whole.Y[at+k][i]) {
					t.Fatalf("resumed at t = %g s: y[%d] at t = %g s is %x, want %x", c.T, i, part.T[k], v, whole.Y[at+k][i])
				}
			}
		}
		clearTimes(&part.result)
		clearTimes(&whole.result)
		if !reflect.DeepEqual(part.result, whole.result) {
			t.Errorf("resumed at t = %g s: %+v, want %+v", c.T, part.result, whole.result)
		}
		if d := differences(part.alg, whole.alg); len(d) > 0 {
			t.Errorf("resumed at t = %g s: %s", c.T, strings.Join(d, "; "))
		}
	}
	return whole
}

// shaker makes inputs jump and follow signals, by a count of its own.
type shaker struct {
	calls int
	v     [2]*master.Variable // the first inputs of the first two subsystems with inputs
}

func (s *shaker) Bind(r *master.Run) (err error) {
	for i, names := range [][]string{{"one.u1", "mass1.u1"}, {"two.u1", "mass2.u1"}} {
		if s.v[i], err = r.Variable(names[0]); err != nil {
			s.v[i], err = r.Variable(names[1])
		}
	}
	return err
}

func (s *shaker) At(r *master.Run) error {
	switch s.calls++; s.calls {
	case 5, 21:
		return s.v[0].Override(master.Linear{Gain: 0.7, Offset: 0.2})
	case 6, 25:
		return s.v[0].Release()
	case 12:
		return s.v[1].Set(master.Scalar{Real: 0.5 + r.Time()})
	case 13, 14, 15, 16:
		return s.v[1].Track(master.Scalar{Real: 0.5 + r.Time()})
	case 17:
		return s.v[1].Release()
	}
	return nil
}

func (s *shaker) Archive(a *master.Archive) { a.All(&s.calls) }

// A run that is resumed at any step makes the next one like the run that goes on, and then has an algorithm in the
// same state: after jumps, in their wake, after rejected and discarded steps, while models are learnt.
func TestResumeAtEveryStep(t *testing.T) {
	cases, next := resumableCases(), long.Sample(13)
	systems := map[string]func() *master.System{
		"through": func() *master.System { // a jump passes through a subsystem with states
			one, two := halves(exact.DefaultHaid())
			return oscillatorSystem(t, &bent{Linear: one}, &bent{Linear: two})
		},
	}
	for _, name := range []string{"ff", "fd", "dd"} {
		systems[name] = func() *master.System { return bentSystem(t, cut(uneven, name)) }
	}
	for _, preset := range slices.Sorted(maps.Keys(cases)) {
		for k, params := range cases[preset] {
			for _, name := range slices.Sorted(maps.Keys(systems)) {
				w := With{Spike: 30}
				if b, ok := massBond[name]; ok {
					w.Bonds = []Bond{b}
				} else if UsesEnergy(preset) {
					continue
				}
				if !next() && (name != "through" || k > 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s %v %s", preset, params, name), func(t *testing.T) {
					t.Parallel()
					sameNextStep(t, preset, params, w, systems[name])
				})
			}
		}
	}
	rates := With{Rates: []Rate{{Component: "mass1", Steps: 4, Over: 1}, {Component: "mass2", Steps: 1, Over: 3}}, Bonds: []Bond{massBond["fd"]}}
	for _, preset := range []string{"explicit", "gauss-seidel", "model-based-corrector", "energy-correction", "ecco"} {
		t.Run(preset+" with rates", func(t *testing.T) {
			sameNextStep(t, preset, map[string]string{"order": "2"}, rates, systems["fd"])
		})
	}
	for _, preset := range []string{"ex-slocal", "im-slocal"} {
		t.Run(preset+" with discarded steps", func(t *testing.T) {
			sameNextStep(t, preset, map[string]string{"order": "1", "control.rtol": "1e-2"}, With{}, func() *master.System {
				s := cut(uneven, "dd")
				return systemOf(t, []master.Subsystem{&refusing{s.subsystems[0], 0.01, 0.03, 4e-4}, s.subsystems[1]}, s.connections)
			})
		})
	}
}

func sameNextStep(t *testing.T, preset string, params map[string]string, w With, system func() *master.System) {
	t.Helper()
	from := func(state []byte) (*master.Run, *Coupling) {
		choice := chosen(t, preset, params, w)
		r, err := master.NewRun(system(), choice.Algorithm, master.Options{Stop: 0.05, Step: 1e-3, Discard: choice.Discard, Resume: state,
			Hooks: []master.Hook{&shaker{}}, Checkpoints: &master.Checkpoints{}})
		if err == nil {
			err = r.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return r, choice.Algorithm.(*Coupling)
	}
	whole, alg := from(nil)
	defer whole.Close()
	for more := true; more && whole.Steps() < 40; {
		c, err := whole.Checkpoint()
		if err == nil {
			more, err = whole.Step(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		part, resumed := from(c.State)
		if _, err := part.Step(t.Context()); err != nil {
			t.Fatalf("resumed at t = %g s: %v", c.T, err)
		}
		if d := append((fields.Comparison{}).Differences(part.Point(), whole.Point()), differences(resumed, alg)...); len(d) > 0 {
			t.Fatalf("a step after t = %g s (%d): %s", c.T, c.Steps, strings.Join(d, "; "))
		}
		if _, err := part.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// refusing discards steps above a limit, for some time.
type refusing struct {
	*mastertest.Linear
	from, to, limit float64
}

func (r *refusing) Step(ctx context.Context, t, H float64) (float64, error) {
	if t >= r.from && t < r.to && H > r.limit {
		return t, master.ErrDiscard
	}
	return r.Linear.Step(ctx, t, H)
}

// The control remembers a discarded step size over a checkpoint.
func TestResumeAfterDiscard(t *testing.T) {
	sameAfterResumeOf(t, "ex-slocal", map[string]string{"order": "1", "control.rtol": "1e-2"}, With{}, 0.002, func() *master.System {
		s := cut(uneven, "dd")
		subs := []master.Subsystem{&refusing{s.subsystems[0], 0.01, 0.03, 4e-4}, s.subsystems[1]}
		sys := systemOf(t, subs, s.connections)
		return sys
	})
}

// Identified models are resumed, during identification and when they are trusted.
func TestResumeIdentified(t *testing.T) {
	for _, how := range []string{"least-squares", "subspace"} {
		for _, order := range []string{"0", "1"} {
			whole := sameAfterResumeOver(t, 4e-3, 1e-5, "model-based-corrector", map[string]string{"model.jacobian": "identify", "model.identification": how, "order": order}, With{}, 2.9e-4, func() *master.System {
				one, two := halves(exact.DefaultHaid())
				return oscillatorSystem(t, one, two)
			})
			for name, m := range whole.result.Models {
				if m.Evaluations == 0 || m.Uncorrected > 300 || m.PredictionError == nil || m.Order == nil || (m.SingularValues != nil) != (how == "subspace") {
					t.Errorf("%s, order %s: the model of %s was hardly in use: %+v", how, order, name, m)
				}
			}
		}
	}
}

func clearTimes(r *master.Result) {
	r.SubsystemSeconds, r.MasterSeconds, r.WallSeconds, r.RecordSeconds, r.StartSeconds = nil, 0, 0, 0, 0
}

// scratch names the fields, by type, whose content is written before each use, and
// need not be equal after a resume.
var scratch = map[string]string{
	"polynomial":     "nodes",
	"grid":           "old",
	"Approximation":  "newest newestFirst ahead course",
	"errorControl":   "second e w scratch past",
	"block":          "fed base shapedPos shapedVel heldPos heldVel",
	"Broyden":        "z dz step hit updates",
	"FixedPoint":     "change",
	"IQN":            "columns q triangle alpha rest",
	"LU":             "x largest reached path next mark forFactor forSolve",
	"Matrix":         "Val",
	"column":         "delta",
	"linearModel":    "b ab dy",
	"stateSpace":     "dx du rate slope now held",
	"identified":     "now phi solved scratch current sigma off",
	"SubspaceWindow": "states singular inputs outputs",
	"LeastSquares":   "row out",
}

// differences compares two algorithms. It leaves out scratch and what belongs to the run.
func differences(a, b any) []string {
	return fields.Comparison{
		Ignored: scratch,
		Skip: func(path, field string) bool { // responses are found anew with each Jacobian
			return field == "s" && strings.Contains(path, "blocks[")
		},
		Outside: func(t reflect.Type) bool { return strings.HasSuffix(t.PkgPath(), "/master") },
	}.Differences(a, b)
}
