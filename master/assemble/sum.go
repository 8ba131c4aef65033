package assemble

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/ssp"
)

// sum is a function of OSP as a subsystem: outputs y_j = Σ u_i over the terms of j.
// It has no states, so it is stepped after its sources, with their new values. It has all
// capabilities.
type sum struct {
	info  master.Info
	terms [][]int
	u     [][]float64 // derivatives 0, 1, … of the inputs at the start of the step
	end   []float64   // inputs at the last communication point
}

var (
	_ master.Subsystem             = (*sum)(nil)
	_ master.Initializer           = (*sum)(nil)
	_ master.StateSaver            = (*sum)(nil)
	_ master.StateSerializer       = (*sum)(nil)
	_ master.InputDerivativeSetter = (*sum)(nil)
	_ master.Substepper            = (*sum)(nil)
	_ master.DirectionalDeriver    = (*sum)(nil)
	_ master.Linearizer            = (*sum)(nil)
	_ master.StateReader           = (*sum)(nil)
)

func newSum(f ssp.Function) *sum {
	s := &sum{terms: f.Terms, u: [][]float64{make([]float64, len(f.Inputs))}, end: make([]float64, len(f.Inputs))}
	s.info = master.Info{Name: f.Path, Stateless: true, StartIn: make([]float64, len(f.Inputs)), Caps: master.Caps{
		VariableStep: true, InputDerivatives: true, SaveState: true, SerializeState: true, DirectionalDerivative: true}}
	for _, name := range f.Inputs {
		s.info.In = append(s.info.In, master.Port{Name: name})
	}
	for _, name := range f.Outputs {
		s.info.Out = append(s.info.Out, master.Port{Name: name})
	}
	s.info.Step = master.Feedthrough{On: f.Terms, Assumed: make([]bool, len(f.Terms))}
	s.info.Init = s.info.Step
	return s
}

// Info describes the function.
func (s *sum) Info() *master.Info { return &s.info }

// SetInputs stages u.
func (s *sum) SetInputs(u []float64) error {
	copy(s.u[0], u)
	return nil
}

// PrepareInputDerivatives makes room for derivatives up to order.
func (s *sum) PrepareInputDerivatives(order int) error {
	for len(s.u) <= order {
		s.u = append(s.u, make([]float64, len(s.end)))
	}
	return nil
}

// SetInputDerivatives stages the derivative of one order.
func (s *sum) SetInputDerivatives(order int, du []float64) error {
	copy(s.u[order], du)
	return nil
}

// Step evaluates the polynomials of the inputs, Σ u⁽ᵏ⁾ Hᵏ/k!, at the end of the step.
func (s *sum) Step(_ context.Context, t, H float64) (float64, error) {
	for k := range s.u {
		for i := range s.end {
			v, factor := 0.0, 1.0
			for q := k; q < len(s.u); q++ {
				v += float64(factor * s.u[q][i])
				factor *= H / float64(q-k+1)
			}
			s.u[k][i] = v
		}
	}
	copy(s.end, s.u[0])
	return t + H, nil
}

// Substep is the same as Step.
func (s *sum) Substep(ctx context.Context, t, h float64) (float64, error) { return s.Step(ctx, t, h) }

// Outputs returns the sums.
func (s *sum) Outputs(y []float64) error {
	s.add(s.end, y)
	return nil
}

func (s *sum) add(u, y []float64) {
	for j, terms := range s.terms {
		y[j] = 0
		for _, i := range terms {
			y[j] += u[i]
		}
	}
}

// EnterInit does nothing.
func (s *sum) EnterInit(context.Context, master.Experiment) error { return nil }

// EvalInit applies the staged inputs.
func (s *sum) EvalInit() error {
	copy(s.end, s.u[0])
	return nil
}

// ExitInit does nothing.
func (s *sum) ExitInit() error { return nil }

// SaveState copies all inputs.
func (s *sum) SaveState(reuse master.State) (master.State, error) {
	state, _ := reuse.([]float64)
	state = append(state[:0], s.end...)
	for _, u := range s.u {
		state = append(state, u...)
	}
	return state, nil
}

// RestoreState restores all inputs.
func (s *sum) RestoreState(state master.State) error {
	v, ok := state.([]float64)
	if n := len(s.end); !ok || len(v) != n*(1+len(s.u)) {
		return fmt.Errorf("%s: this is no state of the function", s.info.Name)
	}
	v = v[copy(s.end, v):]
	for _, u := range s.u {
		v = v[copy(u, v):]
	}
	return nil
}

// FreeState does nothing.
func (s *sum) FreeState(master.State) error { return nil }

// SerializeState returns the bytes of a saved state.
func (s *sum) SerializeState(state master.State) ([]byte, error) {
	var data []byte
	for _, v := range state.([]float64) {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return data, nil
}

// DeserializeState returns the state for the bytes of SerializeState.
func (s *sum) DeserializeState(data []byte) (master.State, error) {
	if n := 8 * len(s.end) * (1 + len(s.u)); len(data) != n {
		return nil, fmt.Errorf("%s: a saved state has %d bytes, not %d", s.info.Name, n, len(data))
	}
	state := make([]float64, len(data)/8)
	for i := range state {
		state[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return state, nil
}

// DirectionalDerivative returns dy = ∂y/∂u · du.
func (s *sum) DirectionalDerivative(du, dy []float64) error {
	s.add(du, dy)
	return nil
}

// States returns nil: there are no states.
func (s *sum) States() []master.StateInfo { return nil }

// Linearize returns dy = ∂y/∂u · du.
func (s *sum) Linearize(_, du, _, dy []float64) error {
	switch {
	case dy == nil:
	case du == nil:
		clear(dy)
	default:
		s.add(du, dy)
	}
	return nil
}

// ReadStates does nothing: there are no states.
func (s *sum) ReadStates(_, _ []float64) error { return nil }
