package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// Sources of the models of subsystems.
const (
	Measured    = "measured"    // by steps repeated from a saved state, its own solver included
	Directional = "directional" // by directional derivatives, integrated exactly
	None        = "none"
)

const (
	// responseSteps are those over which the response to an input is followed.
	responseSteps = 25
	// kick is how far an input is moved, relative to its magnitude.
	kick = 1e-3
	// measuredNoise is the part of the largest singular value of a measured response
	// that counts as none, where replays are exact.
	measuredNoise = 1e-10
	// outputRounding is what is certain of no output, relative to it.
	outputRounding = 4e-16
)

// point is a coupled system at an operating point, of which the models are taken: it holds the
// run there while they are.
type point struct {
	ctx    context.Context
	x      *master.Exec
	t      float64
	order  int // highest power of s that inputs may have
	models []*model
}

// model is what is known of one subsystem.
type model struct {
	info         *master.Info
	source, why  string
	interpolates bool
	space        *StateSpace // Directional
	known        map[float64]*Response
	misfit       float64 // of measured models: largest error of a step in the response, relative
}

// newPoint chooses where the model of each subsystem comes from.
func newPoint(ctx context.Context, x *master.Exec, t float64, order int) (*point, error) {
	p := &point{ctx: ctx, x: x, t: t, order: order}
	for i, info := range x.Sys.Infos {
		m := &model{info: info, source: Measured, interpolates: x.Interpolates(i), known: map[float64]*Response{}}
		p.models = append(p.models, m)
		if x.Reverts(i) {
			continue
		}
		if m.space, m.why = p.derivatives(i); m.why == "" {
			m.source = Directional
			continue
		}
		m.source, m.why = None, "it cannot go back (canGetAndSetFMUstate), and "+m.why
	}
	return p, nil
}

// outputs gives the number of outputs that are no internal ones.
func (m *model) outputs() int {
	n := 0
	for _, o := range m.info.Out {
		if !o.Internal {
			n++
		}
	}
	return n
}

// derivatives asks subsystem i for its state space.
func (p *point) derivatives(i int) (*StateSpace, string) {
	sys := p.x.Sys
	info, sub := sys.Infos[i], sys.Subsystems[i]
	linear, ok := master.As[master.Linearizer](sub)
	if !info.Caps.DirectionalDerivative || !ok {
		return nil, "it gives no directional derivatives (providesDirectionalDerivative)"
	}
	n, nu, ny := len(linear.States()), len(info.In), len(info.Out)
	if n == 0 && !info.Stateless {
		return nil, "it exposes no continuous states with their derivatives (ModelStructure/Derivatives)"
	}
	s := &StateSpace{D: mat.NewDense(max(ny, 1), max(nu, 1), nil)}
	if n > 0 {
		s.A, s.B, s.C = mat.NewDense(n, n, nil), mat.NewDense(n, max(nu, 1), nil), mat.NewDense(max(ny, 1), n, nil)
	}
	rate, slope := make([]float64, n), make([]float64, ny)
	for c := range n + nu {
		dx, du := make([]float64, n), make([]float64, nu)
		if c < n {
			dx[c] = 1
		} else {
			du[c-n] = 1
		}
		if err := linear.Linearize(dx, du, rate, slope); err != nil {
			return nil, err.Error()
		}
		for r, v := range rate {
			if c < n {
				s.A.Set(r, c, v)
			} else {
				s.B.Set(r, c-n, v)
			}
		}
		for r, v := range slope {
			if c < n {
				s.C.Set(r, c, v)
			} else {
				s.D.Set(r, c-n, v)
			}
		}
	}
	return s, ""
}

// over gives the response of subsystem i over steps of size h.
func (p *point) over(i int, h float64) (*Response, error) {
	m := p.models[i]
	if r, ok := m.known[h]; ok {
		return r, nil
	}
	var r *Response
	var err error
	switch m.source {
	case Measured:
		r, err = p.measure(i, h)
	case Directional:
		r, err = m.space.Over(h, p.order)
	default:
		err = errors.New(m.why)
	}
	if err != nil {
		return nil, fmt.Errorf("%s over steps of %g s: %w", m.info, h, err)
	}
	m.known[h] = r
	return r, nil
}

// measure follows subsystem i over responseSteps steps of size h, once as it goes with its
// inputs held, and once for each coefficient of each input over the first step, always from
// the operating point.
func (p *point) measure(i int, h float64) (*Response, error) {
	m, x := p.models[i], p.x
	ny, nu := m.outputs(), len(m.info.In)
	powers := 1
	if m.interpolates {
		powers += p.order
	}
	base, err := p.follow(i, h, -1, 0, 0)
	if err != nil {
		return nil, err
	}
	markov := make([]*mat.Dense, responseSteps)
	for j := range markov {
		markov[j] = mat.NewDense(max(ny, 1), max(nu*powers, 1), nil)
	}
	noise := max(measuredNoise, 100*x.Replay(i).Replays)
	rounding, sizes := mat.NewDense(max(ny, 1), max(nu*powers, 1), nil), make([]float64, ny)
	for _, y := range base {
		for o, v := range y {
			sizes[o] = max(sizes[o], math.Abs(v))
		}
	}
	for power := range powers {
		for k := range nu {
			size := math.Abs(x.W[x.Sys.InAt[i]+k])
			if size == 0 {
				size = m.info.In[k].Nominal
			}
			if size == 0 {
				size = 1
			}
			way := size * max(kick, math.Sqrt(x.Replay(i).Replays))
			moved, err := p.follow(i, h, k, power, way)
			if err != nil {
				return nil, err
			}
			for o := range ny {
				rounding.Set(o, power*nu+k, max(outputRounding, x.Replay(i).Replays)*sizes[o]/way)
			}
			for j := range moved {
				for o := range ny {
					markov[j].Set(o, power*nu+k, (moved[j][o]-base[j][o])/way)
				}
			}
		}
	}
	if err := x.Restore(i); err != nil {
		return nil, err
	}
	a, b, c, err := realise(markov, rounding, noise)
	if err != nil {
		return nil, err
	}
	r := &Response{A: a, C: c}
	for power := range powers {
		r.D = append(r.D, mat.DenseCopyOf(markov[0].Slice(0, max(ny, 1), power*nu, max((power+1)*nu, 1))))
		if b != nil {
			n, _ := b.Dims()
			r.B = append(r.B, mat.DenseCopyOf(b.Slice(0, n, power*nu, (power+1)*nu)))
		}
	}
	return r, nil
}

// follow goes back to the operating point and takes steps with the inputs held, but for the
// coefficient of the power of s/h of input k over the first step, which is moved.
func (p *point) follow(i int, h float64, k, power int, way float64) ([][]float64, error) {
	x := p.x
	if err := x.Restore(i); err != nil {
		return nil, err
	}
	ny := p.models[i].outputs()
	u := x.U[x.Sys.InAt[i]:x.Sys.InAt[i+1]]
	du := make([]float64, len(u))
	out := make([][]float64, responseSteps)
	for j := range out {
		copy(u, x.W[x.Sys.InAt[i]:])
		if j == 0 && k >= 0 && power == 0 {
			u[k] += way
		}
		if err := x.Stage(i); err != nil {
			return nil, err
		}
		if p.models[i].interpolates && p.order > 0 {
			factor := 1.0 // m!/h^m
			for m := 1; m <= p.order; m++ {
				factor *= float64(m) / h
				clear(du)
				if j == 0 && k >= 0 && m == power {
					du[k] = factor * way
				}
				if err := x.StageDerivative(i, m, du); err != nil {
					return nil, err
				}
			}
		}
		if err := x.Step(p.ctx, i, p.t+float64(float64(j)*h), h); err != nil {
			return nil, err
		}
		out[j] = append([]float64(nil), x.Out(i)[:ny]...)
	}
	return out, nil
}

// prober is an algorithm that goes to the operating point by another one, and has something
// done there.
type prober struct {
	*algorithms.Coupling
	at    float64
	order int
	do    func(ctx context.Context, x *master.Exec, t float64) error
	done  bool
}

// NeedsRollback gives all subsystems that can: their responses are measured.
func (p *prober) NeedsRollback(s *master.System) []int {
	var out []int
	for i, info := range s.Infos {
		if _, ok := master.As[master.StateSaver](s.Subsystems[i]); ok && info.Caps.SaveState {
			out = append(out, i)
		}
	}
	return out
}

// DoesWithout lets subsystems that do not keep their promises be told of.
func (p *prober) DoesWithout(int, error) bool { return true }

// InputDerivativeOrder asks for those that responses are measured to.
func (p *prober) InputDerivativeOrder() int { return p.order }

func (p *prober) Init(x *master.Exec, t0 float64) error {
	for i := range x.Sys.Subsystems {
		if p.order > 0 && x.Interpolates(i) {
			if err := x.PrepareDerivatives(i, p.order); err != nil {
				return err
			}
		}
	}
	return p.Coupling.Init(x, t0)
}

func (p *prober) Attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	if !p.done && t >= p.at-1e-9*H {
		p.done = true
		if err := p.do(ctx, x, t); err != nil {
			return master.Trial{}, err
		}
	}
	return p.Coupling.Attempt(ctx, x, t, H)
}
