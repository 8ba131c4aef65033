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
	// Substeps is their number where inputs are sampled; 0 = the default of the strategies.
	Substeps int
	// Rates are those of components that do not take one step per macro step.
	Rates []algorithms.Rate
	// Bonds are those at which the energy is corrected. The correcting force divides an energy by a velocity
	// (rodriguez (17)): it is not linear, so that eigenvalues do not show whether motions grow.
	Bonds []algorithms.Bond
	// Ideal samples the inputs of components with neither input derivatives nor variable steps, too, which runs hold: it
	// is for the motion with which runs are compared.
	Ideal bool
	// Hidden means that the strategy has more state than the outputs at the last communication points, or is not linear:
	// its propagation matrix cannot be formed, and a run is followed.
	Hidden bool
	// Reach is the largest distance in connections over which a step had an effect at earlier step sizes; used by one
	// goroutine at a time.
	Reach int
}

// Holds reports whether the inputs of a component are held at every order.
func (s *Scheme) Holds(m *Model) bool { return m.Order == 0 && !m.Info.Caps.VariableStep && !s.Ideal }

// Algorithm returns a new instance of the strategy.
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

// Start returns a run of the strategy over some steps of size h, not yet started.
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
	if steps > 1 { // each with its own polynomial
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

// substeps is the default number of substeps.
const substeps = 10

// Twins returns the linear system for the strategy at steps of size h. scaled, if not
// negative, is an input whose connection has its gain multiplied by gain. Driven twins include the motion of the
// subsystems with held inputs.
func (p *Point) Twins(s *Scheme, h float64, scaled int, gain float64, driven bool) ([]*Twin, *master.System, error) {
	return p.TwinsOf(s, h, scaled, gain, driven, driven)
}

// TwinsOf is Twins; whole twins also have the states that no input reaches.
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
		twins[i].space, twins[i].Decl.Caps.DirectionalDerivative = m.Space, m.Space != nil
	}
	system, err := p.Couple(twins, scaled, gain)
	return twins, system, err
}

// Absolute makes the inputs and outputs of twin i absolute values instead of deviations, as needed for tolerances and
// powers.
func (p *Point) Absolute(i int, t *Twin) {
	sys := p.X.Sys
	t.Taken, t.Shown = p.X.W[sys.InAt[i]:sys.InAt[i+1]], p.Y[sys.OutAt[i]:sys.OutAt[i]+p.Models[i].Outputs()]
	copy(t.Decl.StartIn, t.Taken)
}

// Couple connects twins like the system, with the gain of input scaled multiplied by gain.
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

// endpoint returns the port of an entry of u or y; offsets are those of the subsystems.
func endpoint(sys *master.System, offsets []int, at int, input bool) master.Endpoint {
	i := num.Owner(offsets, at)
	ports := sys.Infos[i].Out
	if input {
		ports = sys.Infos[i].In
	}
	return master.Endpoint{Subsystem: sys.Infos[i].Name, Port: ports[at-offsets[i]].Name}
}
