// Package native makes subsystems from Go code: functions of inputs, models with a state that can be restored,
// tables over time.
//
//	limiter := native.Func("limiter", []string{"u"}, []string{"y"}, func(t float64, u, y []float64) {
//		y[0] = max(-1, min(1, u[0]))
//	})
//	counter := native.New(native.Model[int]{Name: "counter", Outputs: []string{"n"},
//		Step:   func(n *int, t, H float64, u []float64) error { *n++; return nil },
//		Output: func(n *int, y []float64) { y[0] = float64(*n) },
//	})
//
// Other subsystems implement master.Subsystem, which has four methods, and optional interfaces of package
// master. mastertest.TestSubsystem tests them.
package native

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// ports returns Real ports of these names.
func ports(names []string) []master.Port {
	out := make([]master.Port, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// describe returns a description with the common capabilities.
func describe(name string, in, out []string) master.Info {
	return master.Info{
		Name: name, In: ports(in), Out: ports(out), StartIn: make([]float64, len(in)),
		Caps: master.Caps{VariableStep: true, SaveState: true, SerializeState: true},
	}
}

// function is a subsystem without a state.
type function struct {
	instant
	info master.Info
	f    func(t float64, u, y []float64)
	v    []float64
}

// instant is the state of a function.
type instant struct {
	t    float64
	u, y []float64
}

func newInstant(s *master.Info) instant {
	return instant{u: make([]float64, len(s.In)), y: make([]float64, len(s.Out))}
}

func (i *instant) set(from *instant) {
	i.t = from.t
	copy(i.u, from.u)
	copy(i.y, from.y)
}

var (
	_ master.Subsystem          = (*function)(nil)
	_ master.Initializer        = (*function)(nil)
	_ master.StateSaver         = (*function)(nil)
	_ master.Archiver           = (*function)(nil)
	_ master.DirectionalDeriver = (*function)(nil)
)

// Func returns a subsystem without a state: y = f(t, u), u [len(in)], y [len(out)], with the inputs at the same
// time. f must give the same result for the same arguments and must not keep the slices. The subsystem is
// stepped after its sources, with their new values (System.Late). Its directional derivatives are differences
// of f.
func Func(name string, in, out []string, f func(t float64, u, y []float64)) master.Subsystem {
	s := &function{info: describe(name, in, out), f: f, v: make([]float64, len(in))}
	s.instant = newInstant(&s.info)
	s.info.Stateless = true
	s.info.Caps.DirectionalDerivative = len(in) > 0
	on := make([][]int, len(out))
	for o := range on {
		for k := range in {
			on[o] = append(on[o], k)
		}
	}
	s.info.Step = master.Feedthrough{On: on}
	s.info.Init = s.info.Step
	return s
}

// Table returns a subsystem whose outputs are the columns of a table of numbers (record.ReadSignals). They are
// linear between rows, and constant before the first and after the last. The error names file, line and
// column of a cell that is not a number.
func Table(name string, t *record.Signals) (master.Subsystem, error) {
	columns := make([]func(float64) master.Scalar, len(t.Names))
	for k, n := range t.Names {
		var err error
		if columns[k], err = t.Replay(n, master.Port{}); err != nil {
			return nil, err
		}
	}
	return Func(name, nil, t.Names, func(t float64, _, y []float64) {
		for k, column := range columns {
			y[k] = column(t).Real
		}
	}), nil
}

func (s *function) Info() *master.Info { return &s.info }

func (s *function) SetInputs(u []float64) error { copy(s.u, u); return nil }

func (s *function) Step(_ context.Context, t, H float64) (float64, error) {
	s.t = t + H
	s.f(s.t, s.u, s.y)
	return s.t, nil
}

func (s *function) Outputs(y []float64) error { copy(y, s.y); return nil }

func (s *function) EnterInit(_ context.Context, e master.Experiment) error {
	s.t = e.Start
	return nil
}

func (s *function) EvalInit() error { s.f(s.t, s.u, s.y); return nil }
func (s *function) ExitInit() error { return s.EvalInit() }

func (s *function) SaveState(reuse master.State) (master.State, error) {
	i, ok := reuse.(*instant)
	if !ok {
		saved := newInstant(&s.info)
		i = &saved
	}
	i.set(&s.instant)
	return i, nil
}

func (s *function) RestoreState(state master.State) error {
	s.set(state.(*instant))
	return nil
}

func (s *function) FreeState(master.State) error { return nil }

// Archive carries the instant into a checkpoint or back.
func (s *function) Archive(a *master.Archive) { a.All(&s.instant) }

// DirectionalDerivative returns the slope of f along du by a central difference.
func (s *function) DirectionalDerivative(du, dy []float64) error {
	size, step := 0.0, 0.0
	for k := range du {
		size = max(size, math.Abs(du[k]))
		step = max(step, math.Abs(s.u[k]))
	}
	clear(dy)
	if size == 0 {
		return nil
	}
	h := 0x1p-17 * max(step, 1) / size // the cube root of the rounding
	y := make([]float64, len(dy))
	for _, sign := range []float64{1, -1} {
		for k := range du {
			s.v[k] = s.u[k] + sign*h*du[k]
		}
		s.f(s.t, s.v, y)
		for o := range dy {
			dy[o] += sign * y[o] / (2 * h)
		}
	}
	return nil
}

// Model describes a subsystem with a state S. Step and Output are required; the other
// fields may be left out, but a system needs a name for each of its subsystems.
type Model[S any] struct {
	Name            string
	Inputs, Outputs []string // Reals
	Start           S        // the state at the start
	// Step advances the state from t to t+H with the inputs u [len(Inputs)], which are held. An error ends
	// the run; master.ErrDiscard requests a smaller step.
	Step func(s *S, t, H float64, u []float64) error
	// Output computes y [len(Outputs)] from the state. Outputs do not depend on inputs within a step.
	Output func(s *S, y []float64)
	// Clone copies a state, so that it can be restored. Without it the state is copied by assignment; if it
	// contains references (pointers, slices, maps …), the model has no rollback.
	Clone func(s S) S
	// Archive writes a state into a checkpoint or reads it (master.Archive). A state without references needs
	// none. Without it a model with any other state cannot take part in checkpoints.
	Archive func(s *S, a *master.Archive)
}

// New returns a subsystem from a model. It panics if Step or Output is missing.
func New[S any](m Model[S]) master.Subsystem {
	if m.Step == nil || m.Output == nil {
		panic(fmt.Sprintf("native: model %s has no Step or no Output", m.Name))
	}
	s := &model[S]{info: describe(m.Name, m.Inputs, m.Outputs), Model: m, u: make([]float64, len(m.Inputs))}
	copies := plain(reflect.TypeFor[S]())
	s.info.Caps.SaveState = m.Clone != nil || copies
	s.info.Caps.SerializeState = m.Archive != nil || copies
	if s.Clone == nil {
		s.Clone = func(s S) S { return s }
	}
	on := master.Feedthrough{On: make([][]int, len(m.Outputs))}
	s.info.Step, s.info.Init = on, on
	return s
}

// plain reports whether values of a type contain no references.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.UnsafePointer:
		return false
	}
	return true
}

type model[S any] struct {
	Model[S]
	info  master.Info
	state S
	u     []float64
}

var (
	_ master.Subsystem   = (*model[int])(nil)
	_ master.Initializer = (*model[int])(nil)
	_ master.StateSaver  = (*model[int])(nil)
	_ master.Archiver    = (*model[int])(nil)
)

func (m *model[S]) Info() *master.Info { return &m.info }

func (m *model[S]) SetInputs(u []float64) error { copy(m.u, u); return nil }

func (m *model[S]) Step(_ context.Context, t, H float64) (float64, error) {
	if err := m.Model.Step(&m.state, t, H, m.u); err != nil {
		return t, err
	}
	return t + H, nil
}

func (m *model[S]) Outputs(y []float64) error { m.Output(&m.state, y); return nil }

// EnterInit resets to the start state, so that a model can run again.
func (m *model[S]) EnterInit(context.Context, master.Experiment) error {
	m.state = m.Clone(m.Start)
	return nil
}

func (m *model[S]) EvalInit() error { return nil }
func (m *model[S]) ExitInit() error { return nil }

// kept is a saved state, with the staged inputs.
type kept[S any] struct {
	state S
	u     []float64
}

func (m *model[S]) SaveState(reuse master.State) (master.State, error) {
	k, ok := reuse.(*kept[S])
	if !ok {
		k = &kept[S]{u: make([]float64, len(m.u))}
	}
	k.state = m.Clone(m.state)
	copy(k.u, m.u)
	return k, nil
}

func (m *model[S]) RestoreState(state master.State) error {
	k := state.(*kept[S])
	m.state = m.Clone(k.state)
	copy(m.u, k.u)
	return nil
}

func (m *model[S]) FreeState(master.State) error { return nil }

// Archive carries the state and the inputs into a checkpoint or back.
func (m *model[S]) Archive(a *master.Archive) {
	a.All(m.u)
	if m.Model.Archive != nil {
		m.Model.Archive(&m.state, a)
	} else {
		a.All(&m.state)
	}
}
