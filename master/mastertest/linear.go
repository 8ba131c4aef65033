package mastertest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
)

// Linear is the subsystem x' = A x + B u, y = C x + D u, integrated exactly for inputs that are polynomials of
// the prepared order. It has every capability. Without states it is stateless.
type Linear struct {
	info  master.Info
	n, m  int // states, inputs
	x0, x []float64
	next  []float64   // scratch of Step
	u     [][]float64 // derivatives 0, 1, … of the inputs at the start of the step
	y     []float64   // outputs as last read
	state []master.StateInfo
	a, b  *mat.Dense
	c, d  *mat.Dense
	t     float64
	phi   *mat.Dense // of the step size below: [x; u; u'; …] to x
	h     float64
	Calls Calls
	owner int // written by every call, unlocked: the race detector proves single ownership
}

// Calls counts the calls of a subsystem.
type Calls struct{ Set, Step, Outputs, Save, Restore, Free, Linearize int }

// Matrices holds the state-space matrices by rows; nil = none.
type Matrices struct{ A, B, C, D [][]float64 }

var (
	_ master.Subsystem             = (*Linear)(nil)
	_ master.Initializer           = (*Linear)(nil)
	_ master.StateSaver            = (*Linear)(nil)
	_ master.InputDerivativeSetter = (*Linear)(nil)
	_ master.DirectionalDeriver    = (*Linear)(nil)
	_ master.Linearizer            = (*Linear)(nil)
	_ master.StateReader           = (*Linear)(nil)
	_ master.StateSerializer       = (*Linear)(nil)
)

// NewLinear returns a subsystem with inputs u1, u2, …, states x1, x2, … and outputs y1, y2, … that starts at
// x0. Feedthrough is declared for nonzero entries of D.
func NewLinear(name string, m Matrices, x0 []float64) *Linear {
	l := &Linear{n: len(x0), x0: x0, x: append([]float64(nil), x0...), next: make([]float64, len(x0))}
	inputs, outputs := 0, max(len(m.C), len(m.D))
	if len(m.B) > 0 {
		inputs = len(m.B[0])
	} else if len(m.D) > 0 {
		inputs = len(m.D[0])
	}
	l.m = inputs
	l.a, l.b = dense(m.A, l.n, l.n), dense(m.B, l.n, inputs)
	l.c, l.d = dense(m.C, outputs, l.n), dense(m.D, outputs, inputs)
	l.info.Name = name
	for i := range inputs {
		l.info.In = append(l.info.In, master.Port{Name: fmt.Sprintf("u%d", i+1)})
	}
	for i := range l.n {
		l.state = append(l.state, master.StateInfo{Name: fmt.Sprintf("x%d", i+1), Derivative: fmt.Sprintf("der(x%d)", i+1)})
	}
	l.info.StartIn = make([]float64, inputs)
	f := master.Feedthrough{On: make([][]int, outputs), Assumed: make([]bool, outputs)}
	for i := range outputs {
		l.info.Out = append(l.info.Out, master.Port{Name: fmt.Sprintf("y%d", i+1)})
		for j := range inputs {
			if len(m.D) > 0 && m.D[i][j] != 0 {
				f.On[i] = append(f.On[i], j)
			}
		}
	}
	l.info.Step, l.info.Init = f, f
	l.info.Stateless = l.n == 0
	l.info.Caps = master.Caps{VariableStep: true, InputDerivatives: true, SaveState: true, SerializeState: true,
		DirectionalDerivative: true}
	l.u = [][]float64{make([]float64, inputs)}
	l.y = make([]float64, outputs)
	return l
}

func dense(rows [][]float64, r, c int) *mat.Dense {
	if r == 0 || c == 0 {
		return nil
	}
	m := mat.NewDense(r, c, nil)
	for i, row := range rows {
		m.SetRow(i, row)
	}
	return m
}

// Info may be changed before a system is made, to remove capabilities.
func (l *Linear) Info() *master.Info { return &l.info }

// SetInputs stages u.
func (l *Linear) SetInputs(u []float64) error {
	l.owner++
	l.Calls.Set++
	copy(l.u[0], u)
	return nil
}

// PrepareInputDerivatives allocates derivatives up to order.
func (l *Linear) PrepareInputDerivatives(order int) error {
	l.phi = nil
	for len(l.u) <= order {
		l.u = append(l.u, make([]float64, l.m))
	}
	return nil
}

// SetInputDerivatives stages the derivative of one order.
func (l *Linear) SetInputDerivatives(order int, du []float64) error {
	l.owner++
	copy(l.u[order], du)
	return nil
}

// Step integrates exactly with one exponential of the block matrix
// [A B 0 …; 0 0 I …; …], whose first row gives ∫ e^{A(h−s)} B sʲ/j! ds.
func (l *Linear) Step(_ context.Context, t, h float64) (float64, error) {
	l.owner++
	l.Calls.Step++
	if l.n > 0 && (l.phi == nil || h != l.h) {
		size := l.n + l.m*len(l.u)
		block := mat.NewDense(size, size, nil)
		block.Slice(0, l.n, 0, l.n).(*mat.Dense).Scale(h, l.a)
		if l.m > 0 {
			block.Slice(0, l.n, l.n, l.n+l.m).(*mat.Dense).Scale(h, l.b)
		}
		for i := range l.m * (len(l.u) - 1) {
			block.Set(l.n+i, l.n+l.m+i, h)
		}
		var e mat.Dense
		e.Exp(block)
		l.phi, l.h = mat.DenseCopyOf(e.Slice(0, l.n, 0, size)), h
	}
	for i := range l.next {
		l.next[i] = 0
		for j, x := range l.x {
			l.next[i] += l.phi.At(i, j) * x
		}
		for k, u := range l.u {
			for j := range u {
				l.next[i] += l.phi.At(i, l.n+k*l.m+j) * u[j]
			}
		}
	}
	copy(l.x, l.next)
	// The inputs advance along their polynomials.
	for k := range l.u {
		for j := range l.u[k] {
			v, f := 0.0, 1.0
			for q := k; q < len(l.u); q++ {
				v += l.u[q][j] * f
				f *= h / float64(q-k+1)
			}
			l.u[k][j] = v
		}
	}
	l.t = t + h
	l.evaluate()
	return l.t, nil
}

func (l *Linear) evaluate() {
	for i := range l.y {
		l.y[i] = 0
		for j, x := range l.x {
			l.y[i] += l.c.At(i, j) * x
		}
		for j, u := range l.u[0] {
			if l.d != nil {
				l.y[i] += l.d.At(i, j) * u
			}
		}
	}
}

// Outputs copies y.
func (l *Linear) Outputs(y []float64) error {
	l.owner++
	l.Calls.Outputs++
	copy(y, l.y)
	return nil
}

// EnterInit resets to the start.
func (l *Linear) EnterInit(_ context.Context, e master.Experiment) error {
	l.t = e.Start
	copy(l.x, l.x0)
	for _, u := range l.u {
		clear(u)
	}
	copy(l.u[0], l.info.StartIn)
	return nil
}

// EvalInit computes the outputs at the start.
func (l *Linear) EvalInit() error { l.evaluate(); return nil }

// ExitInit does nothing.
func (l *Linear) ExitInit() error { return nil }

// SaveState saves states and inputs.
func (l *Linear) SaveState(master.State) (master.State, error) {
	l.Calls.Save++
	s := append([]float64{l.t}, l.x...)
	for _, u := range l.u {
		s = append(s, u...)
	}
	return s, nil
}

// RestoreState restores them.
func (l *Linear) RestoreState(s master.State) error {
	l.owner++
	l.Calls.Restore++
	v := s.([]float64)
	l.t = v[0]
	copy(l.x, v[1:])
	for k, u := range l.u {
		copy(u, v[1+l.n+k*l.m:])
	}
	l.evaluate()
	return nil
}

// FreeState counts the call.
func (l *Linear) FreeState(master.State) error { l.Calls.Free++; return nil }

// SerializeState returns the numbers of a state.
func (l *Linear) SerializeState(s master.State) ([]byte, error) {
	var out []byte
	for _, v := range s.([]float64) {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out, nil
}

// DeserializeState is the inverse of SerializeState.
func (l *Linear) DeserializeState(data []byte) (master.State, error) {
	if len(data) != 8*(1+l.n+l.m*len(l.u)) {
		return nil, fmt.Errorf("%d bytes are no state of %s", len(data), l.info.Name)
	}
	v := make([]float64, len(data)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return v, nil
}

// DirectionalDerivative returns D du.
func (l *Linear) DirectionalDerivative(du, dy []float64) error {
	return l.Linearize(nil, du, nil, dy)
}

// States lists the states.
func (l *Linear) States() []master.StateInfo { return l.state }

// Linearize returns A dx + B du and C dx + D du.
func (l *Linear) Linearize(dx, du, dxdot, dy []float64) error {
	l.owner++
	l.Calls.Linearize++
	clear(dxdot)
	clear(dy)
	for _, p := range []struct {
		to, by []float64
		m      *mat.Dense
	}{{dxdot, dx, l.a}, {dxdot, du, l.b}, {dy, dx, l.c}, {dy, du, l.d}} {
		if p.m == nil || p.by == nil {
			continue
		}
		for i := range p.to {
			for j, v := range p.by {
				p.to[i] += p.m.At(i, j) * v
			}
		}
	}
	return nil
}

// ReadStates returns x and A x + B u.
func (l *Linear) ReadStates(x, xdot []float64) error {
	l.owner++
	copy(x, l.x)
	for i := range xdot {
		xdot[i] = 0
		for j, v := range l.x {
			xdot[i] += l.a.At(i, j) * v
		}
		for j, v := range l.u[0] {
			xdot[i] += l.b.At(i, j) * v
		}
	}
	return nil
}

// Faulty is a subsystem that fails on purpose.
type Faulty struct {
	master.Subsystem
	AtStep    int     // the step or substep, counted from 1, at which it fails; 0 = never
	Discard   float64 // it discards after this share of the step
	Terminate bool    // it ends the simulation after a share Discard of the step
	NaN       bool    // its first output is NaN
	Err       error   // it returns this
	Panic     any     // it panics with this
	steps     int
	nan       bool
}

// Unwrap returns the subsystem without faults.
func (f *Faulty) Unwrap() master.Subsystem { return f.Subsystem }

// Step fails at step AtStep, and otherwise steps.
func (f *Faulty) Step(ctx context.Context, t, h float64) (float64, error) {
	f.steps++
	if f.steps != f.AtStep {
		return f.Subsystem.Step(ctx, t, h)
	}
	switch {
	case f.Panic != nil:
		panic(f.Panic)
	case f.Err != nil:
		return t, f.Err
	case f.Terminate:
		return t + f.Discard*h, master.ErrTerminated
	case f.NaN:
		f.nan = true
		return f.Subsystem.Step(ctx, t, h)
	}
	reached, err := f.Subsystem.Step(ctx, t, f.Discard*h)
	if err != nil {
		return reached, err
	}
	return reached, master.ErrDiscard
}

// Outputs returns NaN as the first output after a fault NaN.
func (f *Faulty) Outputs(y []float64) error {
	err := f.Subsystem.Outputs(y)
	if f.nan && len(y) > 0 {
		y[0] = math.NaN()
	}
	return err
}
