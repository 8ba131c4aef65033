package analyze

import (
	"errors"
	"fmt"
	"math/cmplx"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
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
	// Unanalysed is why nothing is told of its stability, "" if it is among the strategies.
	Unanalysed string `json:"not_analysed,omitempty"`
}

// Schemes of the delays.
const (
	explicitScheme    = "explicit"
	gaussSeidelScheme = "gauss-seidel"
	implicitScheme    = "implicit"
	correctorScheme   = "model-based-corrector"
)

// structure finds all of it but the loops.
func structure(sys *master.System, o Options) Structure {
	s := Structure{Loops: []Loop{}, Connections: []Connection{}, Discrete: discreteConnections(sys), Bonds: []Bond{}, Unconnected: []string{}}
	turn := newAtEnd(sys)
	holds := sys.Holds()
	rates := &scheme{rates: ownRatesOf(o.Rates)}
	over := func(i int) int { _, over := rates.rate(sys.Infos[i].Name); return over }
	for k := range sys.InAt[len(sys.InAt)-1] {
		y, ok := sys.Source(k)
		if !ok {
			s.Unconnected = append(s.Unconnected, sys.InName(k))
			continue
		}
		c := Connection{From: sys.OutName(y), To: sys.InName(k), Gain: sys.Gain(k), Delay: map[string]float64{explicitScheme: 1, gaussSeidelScheme: 1, implicitScheme: 0}}
		i := ownerOf(sys.InAt, k)
		switch from := sys.SourceSubsystem(k); {
		case slices.Contains(sys.Late, i):
			c.Delay[explicitScheme], c.Delay[gaussSeidelScheme] = 0, 0
		default:
			if holds[k] { // it takes no part in the iteration
				c.Delay[implicitScheme] = 1
			}
			if turn[i][from] {
				c.Delay[gaussSeidelScheme] = 0
			}
			if both := leastCommonMultiple(over(i), over(from)); both > 1 { // from one point that both take part at to the next
				c.Delay[explicitScheme], c.Delay[gaussSeidelScheme] = float64(both), float64(both)
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

// discreteConnections gives those of Integers, Booleans and Strings.
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
	return reason(err)
}

// unfound refuses the presets that need what subsystems have been found not to do.
func (p *point) unfound(list []Applicability) {
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
func (p *point) fails(alg master.Algorithm) string {
	user, ok := alg.(master.RollbackUser)
	if !ok {
		return ""
	}
	without, _ := alg.(master.Waiver)
	for _, i := range user.NeedsRollback(p.x.Sys) {
		if p.x.Reverts(i) {
			continue
		}
		why, ok := p.broken[i]
		if !ok {
			return fmt.Sprintf("%s cannot go back (canGetAndSetFMUstate)", p.x.Sys.Infos[i])
		}
		if without == nil || !without.DoesWithout(i, fmt.Errorf("%w: %s", master.ErrCapability, why)) {
			return why
		}
	}
	return ""
}

// unanalysed returns why a preset is not among the strategies that are looked at.
func unanalysed(preset string) string {
	if toleranceOf(preset) != "" {
		return "" // its steps are forecast
	}
	switch preset {
	case explicitScheme, gaussSeidelScheme, implicitScheme, correctorScheme, energyCorrection:
		return ""
	}
	return "no twin runs it"
}

// errOnlyInitial tells of a dependency that there is only in the initialisation.
var errOnlyInitial = errors.New("it depends on them during the initialisation only")

// slopes gives how the outputs of subsystem i follow its inputs, [ny × nu]: at once, or over
// a step of size h with the inputs held if that is not 0.
func (p *point) slopes(i int, h float64) (*mat.Dense, error) {
	info, sub := p.x.Sys.Infos[i], p.x.Sys.Subsystems[i]
	ny, nu := p.models[i].outputs(), len(info.In)
	if h > 0 {
		r, err := p.over(i, h)
		if err != nil {
			return nil, err
		}
		return r.D[0], nil
	}
	d := mat.NewDense(max(ny, 1), max(nu, 1), nil)
	if deriver, ok := master.As[master.DirectionalDeriver](sub); ok && info.Caps.DirectionalDerivative {
		du, dy := make([]float64, nu), make([]float64, len(info.Out))
		for k := range nu {
			clear(du)
			du[k] = 1
			if err := deriver.DirectionalDerivative(du, dy); err != nil {
				return nil, fmt.Errorf("%s: %w", info, err)
			}
			for o := range ny {
				d.Set(o, k, dy[o])
			}
		}
		return d, nil
	}
	// D(h) = D + c h + d h² + …: what is left at once of three responses over short steps.
	const short = 0.1
	weights := []float64{1. / 3, -2, 8. / 3}
	for n, w := range weights {
		r, err := p.over(i, short*p.step/float64(int(1)<<n))
		if err != nil {
			return nil, err
		}
		if info.Stateless {
			return r.D[0], nil
		}
		for o := range ny {
			for k := range nu {
				d.Set(o, k, d.At(o, k)+w*r.D[0].At(o, k))
			}
		}
	}
	return d, nil
}

// gain gives the spectral radius of L D over the Real inputs on a loop, D being the slopes at
// once or over a step.
func (p *point) gain(l *master.Loop, h float64) (float64, error) {
	sys := p.x.Sys
	var ins []int // entries of u
	for _, name := range l.Variables {
		if u, ok := sys.FindIn(name); ok {
			ins = append(ins, u)
		} else if _, ok := sys.FindOut(name); !ok {
			return 0, fmt.Errorf("%s on it is no Real", name)
		}
	}
	m := mat.NewDense(len(ins), len(ins), nil)
	for from, u := range ins {
		i := ownerOf(sys.InAt, u)
		d, err := p.slopes(i, h)
		if err != nil {
			return 0, err
		}
		info := sys.Infos[i]
		for to, v := range ins {
			y, ok := sys.Source(v)
			if !ok || y < sys.OutAt[i] || y >= sys.OutAt[i+1] {
				continue
			}
			o := y - sys.OutAt[i]
			in := u - sys.InAt[i]
			switch on := func(f *master.Feedthrough) bool { return o < len(f.On) && slices.Contains(f.On[o], in) }; {
			case h > 0 || on(&info.Step):
				m.Set(to, from, sys.Gain(v)*d.At(o, in))
			case l.Initialization && on(&info.Init):
				return 0, fmt.Errorf("%s: %w", info, errOnlyInitial)
			}
		}
	}
	var e mat.Eigen
	if !e.Factorize(m, mat.EigenNone) {
		return 0, errors.New("its eigenvalues were not found")
	}
	worst := 0.0
	for _, v := range e.Values(nil) {
		worst = max(worst, cmplx.Abs(v))
	}
	return worst, nil
}

// loops gives the loops with their gains.
func (p *point) loops(found []master.Loop) []Loop {
	out := []Loop{}
	for _, l := range found {
		loop := Loop{Loop: l}
		if g, err := p.gain(&l, 0); err == nil {
			loop.Gain = &g
		} else {
			loop.Why = err.Error()
		}
		if !l.Initialization {
			if g, err := p.gain(&l, p.step); err == nil {
				loop.StepGain = &g
			}
		}
		out = append(out, loop)
	}
	return out
}
