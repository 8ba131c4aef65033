package twin

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// Twin replaces a subsystem in runs of a strategy: it follows a Response, in deviations
// from the operating point, and has the capabilities that decide how the strategy delivers inputs. It always supports
// rollback.
type Twin struct {
	Decl   master.Info
	r      *linear.Response // over steps of size h
	h      float64
	Order  int                // of input derivatives that it supports
	Driven bool               // includes the motion of the subsystem with held inputs
	Fine   bool               // makes longer steps of several of size h
	Flow   *linear.Flow       // for steps of any size; nil = steps of size h
	space  *linear.StateSpace // the directional derivatives of the subsystem; nil = it gives none
	// Shown and Taken are added to outputs and inputs to make them absolute; nil = deviations.
	Shown, Taken []float64
	Forced       []float64 // outputs after each step, whatever the inputs; nil = its own
	X0, Y0       []float64 // state and outputs at the start
	X, Y         []float64
	next         []float64
	U            [][]float64 // u and its derivatives
	piece        [][]float64 // likewise, at the start of a piece of a step
}

var (
	_ master.Subsystem             = (*Twin)(nil)
	_ master.Initializer           = (*Twin)(nil)
	_ master.StateSaver            = (*Twin)(nil)
	_ master.InputDerivativeSetter = (*Twin)(nil)
	_ master.Substepper            = (*Twin)(nil)
	_ master.Meter                 = (*Twin)(nil)
	_ master.DirectionalDeriver    = (*Twin)(nil)
	_ master.Linearizer            = (*Twin)(nil)
)

// sameStep is the relative tolerance of a step: the times of the many steps of a fast component are rounded.
const sameStep = 1e-6

// NewTwin makes the twin of a subsystem over steps of size h.
func NewTwin(of *master.Info, r *linear.Response, h float64, order int) *Twin {
	n := r.States()
	t := &Twin{r: r, h: h, Order: order, X0: make([]float64, n), X: make([]float64, n), next: make([]float64, n)}
	t.Decl = master.Info{Name: of.Name, In: of.In, Stateless: of.Stateless,
		Step: master.Feedthrough{On: realOnly(of), Assumed: of.Step.Assumed}}
	for _, p := range of.Out {
		if !p.Internal {
			t.Decl.Out = append(t.Decl.Out, p)
		}
	}
	if len(t.Decl.Step.On) > len(t.Decl.Out) {
		t.Decl.Step.On = t.Decl.Step.On[:len(t.Decl.Out)]
	}
	if len(t.Decl.Step.Assumed) > len(t.Decl.Out) {
		t.Decl.Step.Assumed = t.Decl.Step.Assumed[:len(t.Decl.Out)]
	}
	t.Decl.StartIn = make([]float64, len(of.In))
	t.Decl.Caps = master.Caps{VariableStep: true, SaveState: true, InputDerivatives: order > 0}
	t.Y0, t.Y = make([]float64, len(t.Decl.Out)), make([]float64, len(t.Decl.Out))
	t.U = [][]float64{make([]float64, len(of.In))}
	return t
}

// realOnly returns the dependencies of Real outputs on Real inputs.
func realOnly(of *master.Info) [][]int {
	if of.Step.On == nil {
		return nil
	}
	on := make([][]int, len(of.Out))
	for o := range on {
		for _, k := range of.Step.On[o] {
			if k < len(of.In) {
				on[o] = append(on[o], k)
			}
		}
	}
	return on
}

// Seconds returns 0: reading a clock would cost more than a step.
func (t *Twin) Seconds() float64 { return 0 }

func (t *Twin) Info() *master.Info { return &t.Decl }

func (t *Twin) SetInputs(u []float64) error {
	copy(t.U[0], u)
	for k, v := range t.Taken {
		t.U[0][k] -= v
	}
	return nil
}

func (t *Twin) PrepareInputDerivatives(order int) error {
	if order > t.Order {
		return master.ErrCapability
	}
	for len(t.U) <= order {
		t.U = append(t.U, make([]float64, len(t.U[0])))
	}
	return nil
}

func (t *Twin) SetInputDerivatives(order int, du []float64) error {
	copy(t.U[order], du)
	return nil
}

func (t *Twin) Step(_ context.Context, at, h float64) (float64, error) {
	pieces := 1
	if t.Flow != nil {
		return at + h, t.Flow.Step(t.X, t.Y, t.U, h)
	}
	if t.Fine {
		pieces = max(int(math.Round(h/t.h)), 1)
	}
	if math.Abs(h-float64(pieces)*t.h) > sameStep*h {
		return at, errors.New("the algorithm rejects this step and tries a shorter one, for which there is no model [not-covered]")
	}
	if t.Forced != nil {
		copy(t.Y, t.Forced)
		return at + h, nil
	}
	if pieces == 1 {
		t.step(t.U)
		return at + h, nil
	}
	for j := range pieces {
		// The derivatives at the start of the piece, or the value in its middle if the response has no powers.
		for len(t.piece) < len(t.U) {
			t.piece = append(t.piece, make([]float64, len(t.U[0])))
		}
		s := float64(j) * t.h
		if len(t.r.D) == 1 {
			t.sample(j, s)
			t.step(t.piece[:1])
			continue
		}
		for m := range t.piece {
			linear.Taylor(t.piece[m], t.U, m, s)
		}
		t.step(t.piece)
	}
	return at + h, nil
}

// sample puts the inputs over piece j, which begins at s, into piece[0]: their values in its middle. Inputs with
// feedthrough have the value at the end of every second piece, and the piece before compensates for it, like substeps of
// the strategies.
func (t *Twin) sample(j int, s float64) {
	now := t.piece[0]
	linear.Taylor(now, t.U, 0, s+t.h/2)
	end, other := make([]float64, len(now)), make([]float64, len(now))
	if j%2 == 1 {
		linear.Taylor(end, t.U, 0, s+t.h)
	} else {
		linear.Taylor(end, t.U, 0, s+2*t.h)
		linear.Taylor(other, t.U, 0, s+3*t.h/2)
	}
	for _, on := range t.Decl.Step.On {
		for _, k := range on {
			if j%2 == 1 {
				now[k] = end[k]
			} else if other[k] != end[k] {
				now[k] += other[k] - end[k]
				other[k] = end[k] // once
			}
		}
	}
}

// step makes a step of size h with these derivatives of the inputs at its start.
func (t *Twin) step(derivatives [][]float64) {
	clear(t.next)
	clear(t.Y)
	if t.Driven {
		copy(t.next, t.r.Own)
		copy(t.Y, t.r.OwnY)
	}
	if len(t.X) > 0 {
		linear.Multiply(t.next, t.r.A, t.X, 1)
		linear.Multiply(t.Y, t.r.C, t.X, 1)
	}
	factor := 1.0 // h^m/m!
	for m, u := range derivatives {
		if m > 0 {
			factor *= t.h / float64(m)
		}
		if m < len(t.r.B) && len(t.X) > 0 {
			linear.Multiply(t.next, t.r.B[m], u, factor)
		}
		if m < len(t.r.D) {
			linear.Multiply(t.Y, t.r.D[m], u, factor)
		}
	}
	copy(t.X, t.next)
}

func (t *Twin) Substep(ctx context.Context, at, h float64) (float64, error) {
	return t.Step(ctx, at, h)
}

func (t *Twin) Outputs(y []float64) error {
	copy(y, t.Y)
	for o, v := range t.Shown {
		y[o] += v
	}
	return nil
}

// Restart restores the state at the start.
func (t *Twin) Restart() {
	copy(t.X, t.X0)
	copy(t.Y, t.Y0)
}

func (t *Twin) EnterInit(context.Context, master.Experiment) error {
	t.Restart()
	return nil
}
func (t *Twin) EvalInit() error { return nil }
func (t *Twin) ExitInit() error { return nil }

func (t *Twin) SaveState(s master.State) (master.State, error) {
	v, _ := s.([]float64)
	return append(append(v[:0], t.X...), t.Y...), nil
}

func (t *Twin) RestoreState(s master.State) error {
	v := s.([]float64)
	copy(t.Y, v[copy(t.X, v):])
	return nil
}

func (t *Twin) FreeState(master.State) error { return nil }

// States lists the states of the directional derivatives, which are those of the subsystem and not of the twin.
func (t *Twin) States() []master.StateInfo {
	if t.space == nil || t.space.A == nil {
		return nil
	}
	n, _ := t.space.A.Dims()
	return make([]master.StateInfo, n)
}

func (t *Twin) DirectionalDerivative(du, dy []float64) error { return t.Linearize(nil, du, nil, dy) }

func (t *Twin) Linearize(dx, du, dxdot, dy []float64) error {
	for _, of := range []struct {
		to               []float64
		byState, byInput *mat.Dense
	}{{dxdot, t.space.A, t.space.B}, {dy, t.space.C, t.space.D}} {
		clear(of.to)
		if dx != nil {
			linear.Multiply(of.to, of.byState, dx, 1)
		}
		if du != nil {
			linear.Multiply(of.to, of.byInput, du, 1)
		}
	}
	return nil
}
