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

// Structure is what the graph of a system tells of its coupling. No slice of it is nil.
type Structure struct {
	// Loops of the initialisation, then of a macro step, declared and assumed.
	Loops       []Loop       `json:"loops"`
	Connections []Connection `json:"connections"`
	// Discrete are the connections of Integers, Booleans and Strings. The models are of Reals: in
	// them these keep the values that they have at the operating point.
	Discrete    []DiscreteConnection `json:"discrete_connections"`
	Bonds       []Bond               `json:"bonds"`
	Unconnected []string             `json:"unconnected_inputs"` // nothing feeds them: they keep their start value
	Algorithms  []Applicability      `json:"algorithms"`
}

// Loop is an algebraic loop, and by how much what goes around it comes back.
type Loop struct {
	master.Loop
	// Gain is the spectral radius of the matrix by which a change of the inputs on the loop
	// comes back to them at once; nil = not known, see Why. 0: there is no loop in fact.
	Gain *float64 `json:"gain,omitempty"`
	// StepGain is the same over one macro step with the inputs held: by it a fixed-point
	// iteration of order 0 contracts; nil = not known.
	StepGain *float64 `json:"gain_over_step,omitempty"`
	Why      string   `json:"why,omitempty"`
}

// Connection is one of Reals.
type Connection struct {
	From string  `json:"from"`
	To   string  `json:"to"`
	Gain float64 `json:"gain"` // of units and transformations
	// Delay tells by scheme of what age, in macro steps, the newest value is that the input
	// has at the end of a step: 1 = of the beginning of the step, extrapolated or held; 0 = of its end. Of components that
	// take one step over several, it is the largest such age.
	Delay map[string]float64 `json:"delay"`
}

// DiscreteConnection is one of Integers, Booleans or Strings.
type DiscreteConnection struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Loop tells that what it tells its target can come back to its source, by whatever connections.
	Loop bool `json:"on_loop"`
}

// Bond is a power bond.
type Bond struct {
	Name     string   `json:"name"`
	Pairs    []string `json:"pairs"`    // effort:flow
	Declared bool     `json:"declared"` // else seen by units
}

// Applicability reports whether an algorithm can be used with these subsystems.
type Applicability struct {
	Preset string `json:"algorithm"`
	// Refused is why it cannot be used, "" if it can.
	Refused string `json:"refused,omitempty"`
	// Unanalysed is the reason why its stability is not analysed, "" if it is among the strategies.
	Unanalysed string `json:"not_analysed,omitempty"`
}

// structure finds all of it but the loops.
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
		c := Connection{From: sys.OutName(y), To: sys.InName(k), Gain: sys.Gain(k), Delay: map[string]float64{twin.Explicit: 1, twin.GaussSeidel: 1, twin.Implicit: 0}}
		i := num.Owner(sys.InAt, k)
		switch from := sys.SourceSubsystem(k); {
		case slices.Contains(sys.Late, i):
			c.Delay[twin.Explicit], c.Delay[twin.GaussSeidel] = 0, 0
		default:
			if holds[k] { // it takes no part in the iteration
				c.Delay[twin.Implicit] = 1
			}
			if turn[i][from] {
				c.Delay[twin.GaussSeidel] = 0
			}
			if both := num.LCM(over(i), over(from)); both > 1 { // from one point that both take part at to the next
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
		s.Algorithms = append(s.Algorithms, Applicability{Preset: preset.Name, Refused: unfit(sys, preset.Name, bonds, o), Unanalysed: unanalysed(preset.Name)})
	}
	return s
}

// bonds are those that the system declares, else those that units show.
func (o *Options) bonds() []algorithms.Bond {
	if len(o.Bonds) > 0 {
		return o.Bonds
	}
	return o.BondsSeen
}

// discreteConnections returns those of Integers, Booleans and Strings.
func discreteConnections(sys *master.System) []DiscreteConnection {
	out := []DiscreteConnection{}
	// What has an effect on which: all outputs of a subsystem may follow all of its inputs later.
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

// heldOnLoop returns why nothing can be told of the stability: a connection that is in no model closes
// a loop; "" if there is none.
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
	return fmt.Sprintf("%s of Integers, Booleans or Strings close a loop that no linear model follows: whether it is stable is not known", first)
}

// newAtEnd tells for a Gauss–Seidel step, by subsystem, which others have new values when
// its turn comes.
func newAtEnd(sys *master.System) []map[int]bool {
	out := make([]map[int]bool, len(sys.Subsystems))
	done := map[int]bool{}
	for _, i := range sys.SequenceFromGraph() {
		if slices.Contains(sys.Late, i) {
			continue // as soon as its sources are new
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

// unfit returns why a run with the preset would be refused, "" if it would not. No subsystem
// is touched.
func unfit(sys *master.System, preset string, bonds []algorithms.Bond, o Options) string {
	var with algorithms.With
	if algorithms.UsesEnergy(preset) {
		with.Bonds = bonds
	}
	choice, err := algorithms.New(preset, nil, with)
	if err == nil {
		_, err = master.NewRun(sys, choice.Algorithm, master.Options{Start: o.Start, Stop: o.Start + 2*o.Step, Step: o.Step, Tolerance: o.Tolerance})
	}
	if err == nil {
		return ""
	}
	return twin.Reason(err)
}

// unfound refuses the presets that need what subsystems have been found not to do.
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

// fails returns why an algorithm cannot take all subsystems back that it has to, "" if it can.
func (p *analysis) fails(alg master.Algorithm) string {
	user, ok := alg.(master.RollbackUser)
	if !ok {
		return ""
	}
	without, _ := alg.(master.Waiver)
	for _, i := range user.NeedsRollback(p.X.Sys) {
		if p.X.Reverts(i) {
			continue
		}
		why, ok := p.Broken[i]
		if !ok {
			return fmt.Sprintf("%s cannot go back (canGetAndSetFMUstate)", p.X.Sys.Infos[i])
		}
		if without == nil || !without.DoesWithout(i, fmt.Errorf("%w: %s", master.ErrCapability, why)) {
			return why
		}
	}
	return ""
}

// unanalysed returns why a preset is not among the strategies that are looked at.
func unanalysed(preset string) string {
	if forecast.ToleranceOf(preset) != "" {
		return "" // its steps are forecast
	}
	switch preset {
	case twin.Explicit, twin.GaussSeidel, twin.Implicit, twin.Corrector, twin.EnergyCorrection:
		return ""
	}
	return "no twin runs it"
}
