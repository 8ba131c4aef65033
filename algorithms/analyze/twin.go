package analyze

import (
	"context"
	"errors"
	"math"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// twin stands for a subsystem in runs of a strategy: it follows a Response, in deviations
// from the operating point, and has the capabilities that decide how inputs reach the
// original. It can always go back.
type twin struct {
	info   master.Info
	r      *linear.Response // over steps of size h
	h      float64
	order  int          // of input derivatives that it takes
	driven bool         // it moves by itself too
	fine   bool         // it takes longer steps in several of its own
	flow   *linear.Flow // it takes steps of any size; nil = of size h
	// shown and taken are outputs and inputs at the operating point, where not deviations from them are to be
	// seen; nil = they are.
	shown, taken []float64
	forced       []float64 // outputs that it shows whatever is done with it; nil = its own
	x0, y0       []float64 // where it starts
	x, y         []float64
	next         []float64
	u            [][]float64 // u and its derivatives
	piece        [][]float64 // likewise, at the start of a piece of a step
}

var (
	_ master.Subsystem             = (*twin)(nil)
	_ master.Initializer           = (*twin)(nil)
	_ master.StateSaver            = (*twin)(nil)
	_ master.InputDerivativeSetter = (*twin)(nil)
	_ master.Substepper            = (*twin)(nil)
	_ master.Meter                 = (*twin)(nil)
)

// sameStep is how far a step may be from that of the model, relative to it: the times of the many steps of a fast
// component are rounded.
const sameStep = 1e-6

// newTwin makes the twin of a subsystem over steps of size h.
func newTwin(of *master.Info, r *linear.Response, h float64, order int) *twin {
	n := r.States()
	t := &twin{r: r, h: h, order: order, x0: make([]float64, n), x: make([]float64, n), next: make([]float64, n)}
	t.info = master.Info{Name: of.Name, In: of.In, Step: master.Feedthrough{On: realOnly(of), Assumed: of.Step.Assumed}, Stateless: of.Stateless}
	for _, p := range of.Out {
		if !p.Internal {
			t.info.Out = append(t.info.Out, p)
		}
	}
	if len(t.info.Step.On) > len(t.info.Out) {
		t.info.Step.On = t.info.Step.On[:len(t.info.Out)]
	}
	if len(t.info.Step.Assumed) > len(t.info.Out) {
		t.info.Step.Assumed = t.info.Step.Assumed[:len(t.info.Out)]
	}
	t.info.StartIn = make([]float64, len(of.In))
	t.info.Caps = master.Caps{VariableStep: true, SaveState: true, InputDerivatives: order > 0}
	t.y0, t.y = make([]float64, len(t.info.Out)), make([]float64, len(t.info.Out))
	t.u = [][]float64{make([]float64, len(of.In))}
	return t
}

// realOnly gives the dependencies of Real outputs on Real inputs.
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

// Seconds tells nothing: reading a clock costs more than a step, and nobody asks.
func (t *twin) Seconds() float64 { return 0 }

func (t *twin) Info() *master.Info { return &t.info }

func (t *twin) SetInputs(u []float64) error {
	copy(t.u[0], u)
	for k, v := range t.taken {
		t.u[0][k] -= v
	}
	return nil
}

func (t *twin) PrepareInputDerivatives(order int) error {
	if order > t.order {
		return master.ErrCapability
	}
	for len(t.u) <= order {
		t.u = append(t.u, make([]float64, len(t.u[0])))
	}
	return nil
}

func (t *twin) SetInputDerivatives(order int, du []float64) error {
	copy(t.u[order], du)
	return nil
}

func (t *twin) Step(_ context.Context, at, h float64) (float64, error) {
	pieces := 1
	if t.flow != nil {
		return at + h, t.flow.Step(t.x, t.y, t.u, h)
	}
	if t.fine {
		pieces = max(int(math.Round(h/t.h)), 1)
	}
	if math.Abs(h-float64(pieces)*t.h) > sameStep*h {
		return at, errors.New("the algorithm does not come to terms with this step and tries a shorter one")
	}
	if t.forced != nil {
		copy(t.y, t.forced)
		return at + h, nil
	}
	if pieces == 1 {
		t.step(t.u)
		return at + h, nil
	}
	for j := range pieces {
		// The derivatives at the start of the piece; where the response has no powers, the value in
		// its middle.
		for len(t.piece) < len(t.u) {
			t.piece = append(t.piece, make([]float64, len(t.u[0])))
		}
		s := float64(j) * t.h
		if len(t.r.D) == 1 {
			t.sample(j, s)
			t.step(t.piece[:1])
			continue
		}
		for m := range t.piece {
			linear.Taylor(t.piece[m], t.u, m, s)
		}
		t.step(t.piece)
	}
	return at + h, nil
}

// sample puts the inputs over piece j, which begins at s, into piece[0]: their values in its middle;
// of those that outputs follow at once, as the strategies sample them over two substeps, at the end
// of each second piece that at its end, for which the one before makes up.
func (t *twin) sample(j int, s float64) {
	now := t.piece[0]
	linear.Taylor(now, t.u, 0, s+t.h/2)
	end, other := make([]float64, len(now)), make([]float64, len(now))
	if j%2 == 1 {
		linear.Taylor(end, t.u, 0, s+t.h)
	} else {
		linear.Taylor(end, t.u, 0, s+2*t.h)
		linear.Taylor(other, t.u, 0, s+3*t.h/2)
	}
	for _, on := range t.info.Step.On {
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

// step takes one of its own steps with inputs of these derivatives at its start.
func (t *twin) step(derivatives [][]float64) {
	clear(t.next)
	clear(t.y)
	if t.driven {
		copy(t.next, t.r.Own)
		copy(t.y, t.r.OwnY)
	}
	if len(t.x) > 0 {
		linear.Multiply(t.next, t.r.A, t.x, 1)
		linear.Multiply(t.y, t.r.C, t.x, 1)
	}
	factor := 1.0 // h^m/m!
	for m, u := range derivatives {
		if m > 0 {
			factor *= t.h / float64(m)
		}
		if m < len(t.r.B) && len(t.x) > 0 {
			linear.Multiply(t.next, t.r.B[m], u, factor)
		}
		if m < len(t.r.D) {
			linear.Multiply(t.y, t.r.D[m], u, factor)
		}
	}
	copy(t.x, t.next)
}

func (t *twin) Substep(ctx context.Context, at, h float64) (float64, error) {
	return t.Step(ctx, at, h)
}

func (t *twin) Outputs(y []float64) error {
	copy(y, t.y)
	for o, v := range t.shown {
		y[o] += v
	}
	return nil
}

// restart goes back to where it starts.
func (t *twin) restart() {
	copy(t.x, t.x0)
	copy(t.y, t.y0)
}

func (t *twin) EnterInit(context.Context, master.Experiment) error {
	t.restart()
	return nil
}
func (t *twin) EvalInit() error { return nil }
func (t *twin) ExitInit() error { return nil }

func (t *twin) SaveState(s master.State) (master.State, error) {
	v, _ := s.([]float64)
	return append(append(v[:0], t.x...), t.y...), nil
}

func (t *twin) RestoreState(s master.State) error {
	v := s.([]float64)
	copy(t.y, v[copy(t.x, v):])
	return nil
}

func (t *twin) FreeState(master.State) error { return nil }
