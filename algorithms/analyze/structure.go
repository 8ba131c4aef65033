package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Structure is the coupling as it follows from the connections of a system. No slice of it is nil.
type Structure struct {
	// Loops of the initialisation, then of a macro step, declared and assumed.
	Loops       []Loop       `json:"loops"`
	Connections []Connection `json:"connections"`
	// Discrete are the connections of Integers, Booleans and Strings. In the models they keep their values at the
	// operating point.
	Discrete    []DiscreteConnection `json:"discrete_connections"`
	Bonds       []Bond               `json:"bonds"`
	Unconnected []string             `json:"unconnected_inputs"` // keep their start values
	Algorithms  []Applicability      `json:"algorithms"`
}

// Loop is an algebraic loop with its gain.
type Loop struct {
	master.Loop
	// Gain is the spectral radius of the immediate effect of the inputs on the loop on themselves; nil = unknown, see
	// Why. With 0 the inputs have no effect on themselves.
	Gain *float64 `json:"gain,omitempty"`
	// StepGain is the same over one macro step with held inputs, the contraction of a fixed-point iteration of order 0;
	// nil = unknown.
	StepGain *float64 `json:"gain_over_step,omitempty"`
	Why      string   `json:"why,omitempty"`
}

// Connection is a connection of Reals.
type Connection struct {
	From string  `json:"from"`
	To   string  `json:"to"`
	Gain float64 `json:"gain"` // of units and transformations
	// Delay is, by preset, the age in macro steps of the newest source value that the input has at the end of a step:
	// 1 = from the start of the step, extrapolated or held; 0 = from its end. For components with one step
	// over several macro steps it is the largest age.
	Delay map[string]float64 `json:"delay"`
}

// DiscreteConnection is a connection of Integers, Booleans or Strings.
type DiscreteConnection struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Loop means that the target can affect the source, through any connections.
	Loop bool `json:"on_loop"`
}

// Bond is a power bond.
type Bond struct {
	Name     string   `json:"name"`
	Pairs    []string `json:"pairs"`    // effort:flow
	Declared bool     `json:"declared"` // else recognised by units
}

// Applicability reports whether an algorithm can be used with these subsystems.
type Applicability struct {
	Preset string `json:"algorithm"`
	// Refused is why it cannot be used, or "".
	Refused string `json:"refused,omitempty"`
	// Unanalysed is why its stability is not analysed, or "".
	Unanalysed string `json:"not_analysed,omitempty"`
}

// structure returns the structure without its loops.
func structure(sys *master.System, o Options) Structure {
	s := Structure{Loops: []Loop{}, Connections: []Connection{}, Discrete: discreteConnections(sys), Bonds: []Bond{}, Unconnected: []string{}}
	turn := newAtEnd(sys)
	holds := sys.Holds()
	rates := &twin.Scheme{Rates: twin.OwnRates(o.Rates)}
	over := func(i int) int { _, over := rates.Rate(sys.Infos[i].Name); return over }
	for k := range sys.InAt[len(sys.InAt)-1] {
		y, ok := sys.Source(k)
		if !ok {
			s.Unconnected = append(s.Unconnected, sys.InName(k))
			continue
		}
		c := Connection{From: sys.OutName(y), To: sys.InName(k), Gain: sys.Gain(k),
			Delay: map[string]float64{twin.Explicit: 1, twin.GaussSeidel: 1, twin.Implicit: 0}}
		i := num.Owner(sys.InAt, k)
		switch from := sys.SourceSubsystem(k); {
		case slices.Contains(sys.Late, i):
			c.Delay[twin.Explicit], c.Delay[twin.GaussSeidel] = 0, 0
		default:
			if holds[k] { // not part of the iteration
				c.Delay[twin.Implicit] = 1
			}
			if turn[i][from] {
				c.Delay[twin.GaussSeidel] = 0
			}
			if both := num.LCM(over(i), over(from)); both > 1 { // the period after which both step together
				c.Delay[twin.Explicit], c.Delay[twin.GaussSeidel] = float64(both), float64(both)
			}
		}
		s.Connections = append(s.Connections, c)
	}
	for i, info := range sys.Infos {
		for k, port := range info.DiscreteIn {
			if !sys.DiscreteConnected(i, k) {
				s.Unconnected = append(s.Unconnected, info.Name+"."+port.Name)
			}
		}
	}
	add := func(bonds []algorithms.Bond, declared bool) {
		for _, b := range bonds {
			bond := Bond{Name: b.Name, Declared: declared}
			for _, p := range b.Pairs {
				bond.Pairs = append(bond.Pairs, p.Effort+":"+p.Flow)
			}
			s.Bonds = append(s.Bonds, bond)
		}
	}
	bonds := o.bonds()
	add(bonds, len(o.Bonds) > 0)
	for _, preset := range algorithms.Presets() {
		s.Algorithms = append(s.Algorithms,
			Applicability{Preset: preset.Name, Refused: unfit(sys, preset.Name, bonds, o), Unanalysed: unanalysed(preset.Name)})
	}
	return s
}

// bonds returns the declared bonds, else those recognised by units.
func (o *Options) bonds() []algorithms.Bond {
	if len(o.Bonds) > 0 {
		return o.Bonds
	}
	return o.BondsSeen
}

// discreteConnections returns the connections of Integers, Booleans and Strings.
func discreteConnections(sys *master.System) []DiscreteConnection {
	out := []DiscreteConnection{}
	// reaches[i] are the subsystems that affect i; all outputs of a subsystem may depend on all its inputs.
	reaches := make([]map[int]bool, len(sys.Infos))
	var visit func(seen map[int]bool, to int)
	visit = func(seen map[int]bool, to int) {
		for _, from := range sys.Sources(to) {
			if !seen[from] {
				seen[from] = true
				visit(seen, from)
			}
		}
	}
	for i := range sys.Infos {
		reaches[i] = map[int]bool{}
		visit(reaches[i], i)
	}
	owner := func(place string) int {
		return slices.IndexFunc(sys.Infos, func(i *master.Info) bool {
			port, ok := strings.CutPrefix(place, i.Name+".")
			named := func(p master.Port) bool { return p.Name == port }
			return ok && (slices.ContainsFunc(i.DiscreteOut, named) || slices.ContainsFunc(i.DiscreteIn, named))
		})
	}
	for _, l := range sys.DiscreteLinks() {
		from, to := owner(l.From), owner(l.To)
		out = append(out, DiscreteConnection{From: l.From, To: l.To, Loop: from == to || from >= 0 && to >= 0 && reaches[from][to]})
	}
	return out
}

// heldOnLoop returns that the stability is unknown because a discrete connection, which is in no model, closes
// a loop, or "".
func (s *Structure) heldOnLoop() string {
	on, first := 0, ""
	for _, c := range s.Discrete {
		if c.Loop {
			if on++; on == 1 {
				first = c.From + " -> " + c.To
			}
		}
	}
	switch {
	case on == 0:
		return ""
	case on > 1:
		first += fmt.Sprintf(" and %d more", on-1)
	}
	return fmt.Sprintf("%s of Integers, Booleans or Strings close a loop that linear models do not contain: its stability is unknown [discrete]", first)
}

// newAtEnd returns, by subsystem, which others have new values when its turn comes in a Gauss–Seidel step.
func newAtEnd(sys *master.System) []map[int]bool {
	out := make([]map[int]bool, len(sys.Subsystems))
	done := map[int]bool{}
	for _, i := range sys.SequenceFromGraph() {
		if slices.Contains(sys.Late, i) {
			continue // stepped as soon as its sources have stepped
		}
		out[i] = map[int]bool{}
		for j := range done {
			out[i][j] = true
		}
		done[i] = true
		for _, l := range sys.Late {
			if !done[l] && !slices.ContainsFunc(sys.Sources(l), func(from int) bool { return !done[from] }) {
				done[l] = true
			}
		}
	}
	return out
}

// unfit returns why a run with the preset would be refused, or "". It calls no subsystem.
func unfit(sys *master.System, preset string, bonds []algorithms.Bond, o Options) string {
	var with algorithms.With
	if algorithms.UsesEnergy(preset) {
		with.Bonds = bonds
	}
	choice, err := algorithms.New(preset, nil, with)
	if err == nil {
		_, err = master.NewRun(sys, choice.Algorithm,
			master.Options{Start: o.Start, Stop: o.Start + 2*o.Step, Step: o.Step, Tolerance: o.Tolerance})
	}
	if err == nil {
		return ""
	}
	return twin.Reason(err)
}

// unfound refuses the presets that need capabilities which subsystems claim but were found not to have.
func (p *analysis) unfound(list []Applicability) {
	for k := range list {
		a := &list[k]
		if a.Refused != "" {
			continue
		}
		if choice, err := algorithms.New(a.Preset, nil); err == nil {
			a.Refused = p.fails(choice.Algorithm)
		}
	}
}

// fails returns why the rollback that an algorithm needs is not possible, or "".
func (p *analysis) fails(alg master.Algorithm) string {
	without, _ := alg.(master.Waiver)
	for _, i := range master.PlanOf(alg, p.X.Sys, 1).Rollback {
		if p.X.Reverts(i) {
			continue
		}
		why, ok := p.Broken[i]
		if !ok {
			return fmt.Sprintf("%s cannot go back (canGetAndSetFMUstate) [no-rollback]", p.X.Sys.Infos[i])
		}
		if without == nil || !without.DoesWithout(i, fmt.Errorf("%w: %s", master.ErrCapability, why)) {
			return why
		}
	}
	return ""
}

// unanalysed returns why a preset is not analysed, or "".
func unanalysed(preset string) string {
	if forecast.ToleranceOf(preset) != "" {
		return "" // its steps are forecast
	}
	switch preset {
	case twin.Explicit, twin.GaussSeidel, twin.Implicit, twin.Corrector, twin.EnergyCorrection:
		return ""
	}
	return "the analysis does not support it [not-covered]"
}
