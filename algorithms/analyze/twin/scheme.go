package twin

import (
	"fmt"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Presets whose propagation is analysed.
const (
	Explicit         = "explicit"
	GaussSeidel      = "gauss-seidel"
	Implicit         = "implicit"
	Corrector        = "model-based-corrector"
	EnergyCorrection = "energy-correction"
)

// Scheme is one strategy at one extrapolation order, as the command line names it.
type Scheme struct {
	Preset string
	Params map[string]string
	Order  int
	// Substeps is their number where inputs are sampled; 0 = that which strategies take by default.
	Substeps int
	// Rates are those of the components that have others than that of the macro step.
	Rates []algorithms.Rate
	// Bonds are those at which the energy is corrected. A force that makes up for an energy divides it by a velocity
	// (rodriguez (17)): the system is not linear, so that no eigenvalue shows whether motions grow.
	Bonds []algorithms.Bond
	// Ideal tells that the inputs of components that can neither take derivatives nor vary their step, in runs held, are
	// sampled too: it is no run but the motion that runs are compared with.
	Ideal bool
	// Hidden tells that the strategy has more state than the outputs at the last
	// communication points, or is not linear: its propagation is not formed but followed.
	Hidden bool
	// Reach is how many connections farther, at most, something has been seen in one step, as far as is
	// known from steps that were looked at before; used by one thread at a time.
	Reach int
}

// Holds reports whether the inputs of a component are held, whatever the order.
func (s *Scheme) Holds(m *Model) bool { return m.Order == 0 && !m.Info.Caps.VariableStep && !s.Ideal }

// Algorithm returns the strategy anew.
func (s *Scheme) Algorithm() (master.Algorithm, error) {
	params := map[string]string{"order": fmt.Sprint(s.Order)}
	for k, v := range s.Params {
		params[k] = v
	}
	choice, err := algorithms.New(s.Preset, params, algorithms.With{Rates: s.Rates, Bonds: s.Bonds})
	if err != nil {
		return nil, err
	}
	return choice.Algorithm, nil
}

// Start makes a run of the strategy over some steps.
func (s *Scheme) Start(sys *master.System, h float64, steps int) (*master.Run, error) {
	alg, err := s.Algorithm()
	if err != nil {
		return nil, err
	}
	return master.NewRun(sys, alg, master.Options{Stop: (float64(steps) + 0.5) * h, Step: h, Workers: 1})
}

// StepOf returns the size of the steps that subsystem i takes.
func (p *Point) StepOf(i int, s *Scheme, h float64) float64 {
	m := p.Models[i]
	steps, over := s.Rate(m.Info.Name)
	if steps > 1 { // with the polynomials at the start of each of them
		return h / float64(steps)
	}
	h *= float64(over)
	if s.Holds(m) || s.Order <= m.Order || m.Info.Stateless || len(m.Info.In) == 0 {
		return h
	}
	if s.Substeps > 0 {
		return h / float64(s.Substeps)
	}
	return h / substeps
}

// substeps is the number that the strategies take by default.
const substeps = 10

// Twins makes the linear system that the strategy is run on at steps of size h. scaled, if not
// negative, is an input whose connection has its gain multiplied by gain. Driven ones move by
// themselves too.
func (p *Point) Twins(s *Scheme, h float64, scaled int, gain float64, driven bool) ([]*Twin, *master.System, error) {
	return p.TwinsOf(s, h, scaled, gain, driven, driven)
}

// TwinsOf is twins; whole ones have the states that no input reaches, too.
func (p *Point) TwinsOf(s *Scheme, h float64, scaled int, gain float64, driven, whole bool) ([]*Twin, *master.System, error) {
	twins := make([]*Twin, len(p.Models))
	for i, m := range p.Models {
		r, err := p.Over(i, p.StepOf(i, s, h))
		if err != nil {
			return nil, nil, err
		}
		if whole && r.Whole != nil {
			r = r.Whole
		}
		twins[i] = NewTwin(m.Info, r, p.StepOf(i, s, h), m.Order)
		twins[i].Driven = driven
		twins[i].Decl.Caps.VariableStep = !s.Holds(m)
	}
	system, err := p.Couple(twins, scaled, gain)
	return twins, system, err
}

// Absolute has twin i take and show what the component does, in place of deviations from that: tolerances go by values, and a power
// is a product of them.
func (p *Point) Absolute(i int, t *Twin) {
	sys := p.X.Sys
	t.Taken, t.Shown = p.X.W[sys.InAt[i]:sys.InAt[i+1]], p.Y[sys.OutAt[i]:sys.OutAt[i]+p.Models[i].Outputs()]
	copy(t.Decl.StartIn, t.Taken)
}

// Couple connects twins like the system, with another gain of input scaled.
func (p *Point) Couple(twins []*Twin, scaled int, gain float64) (*master.System, error) {
	sys := p.X.Sys
	var subs []master.Subsystem
	for _, t := range twins {
		subs = append(subs, t)
	}
	var links []master.Connection
	for k := range sys.InAt[len(sys.InAt)-1] {
		y, ok := sys.Source(k)
		if !ok {
			continue
		}
		g := sys.Gain(k)
		if k == scaled {
			g *= gain
		}
		line := &master.Linear{Gain: g}
		if twins[num.Owner(sys.InAt, k)].Taken != nil {
			line.Offset = sys.Offset(k)
		}
		links = append(links, master.Connection{From: endpoint(sys, sys.OutAt, y, false), To: endpoint(sys, sys.InAt, k, true), Linear: line})
	}
	return master.NewSystem(subs, links)
}

// endpoint names the entry of u or y, whose parts begin at offsets.
func endpoint(sys *master.System, offsets []int, at int, input bool) master.Endpoint {
	i := num.Owner(offsets, at)
	ports := sys.Infos[i].Out
	if input {
		ports = sys.Infos[i].In
	}
	return master.Endpoint{Subsystem: sys.Infos[i].Name, Port: ports[at-offsets[i]].Name}
}
