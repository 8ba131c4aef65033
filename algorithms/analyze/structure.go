package analyze

import (
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Structure is the coupling as it follows from the connections of a system. No slice of it is nil.
type Structure struct {
	// Loops of the initialisation, then of a macro step, declared and assumed.
	Loops       []master.Loop        `json:"loops"`
	Connections []Connection         `json:"connections"`
	Discrete    []DiscreteConnection `json:"discrete_connections"` // of Integers, Booleans and Strings
	Bonds       []Bond               `json:"bonds"`
	Unconnected []string             `json:"unconnected_inputs"` // keep their start values
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

// Coupling returns the structure of a system with rates and bonds, which are declared or recognised by units.
func Coupling(sys *master.System, rates []algorithms.Rate, bonds []algorithms.Bond, declared bool) Structure {
	s := Structure{Loops: slices.Concat([]master.Loop{}, sys.InitLoops(), sys.Loops), Connections: []Connection{}, Discrete: discreteConnections(sys), Bonds: []Bond{}, Unconnected: []string{}}
	turn := newAtEnd(sys)
	holds := sys.Holds()
	over := func(i int) int { // macro steps in a step of a subsystem
		for _, r := range rates {
			if r.Component == sys.Infos[i].Name {
				return max(r.Over, 1)
			}
		}
		return 1
	}
	for k := range sys.InAt[len(sys.InAt)-1] {
		y, ok := sys.Source(k)
		if !ok {
			s.Unconnected = append(s.Unconnected, sys.InName(k))
			continue
		}
		c := Connection{From: sys.OutName(y), To: sys.InName(k), Gain: sys.Gain(k),
			Delay: map[string]float64{explicit: 1, gaussSeidel: 1, implicit: 0}}
		i := num.Owner(sys.InAt, k)
		switch from := sys.SourceSubsystem(k); {
		case slices.Contains(sys.Late, i):
			c.Delay[explicit], c.Delay[gaussSeidel] = 0, 0
		default:
			if holds[k] { // not part of the iteration
				c.Delay[implicit] = 1
			}
			if turn[i][from] {
				c.Delay[gaussSeidel] = 0
			}
			if both := num.LCM(over(i), over(from)); both > 1 { // the period after which both step together
				c.Delay[explicit], c.Delay[gaussSeidel] = float64(both), float64(both)
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
	for _, b := range bonds {
		bond := Bond{Name: b.Name, Declared: declared}
		for _, p := range b.Pairs {
			bond.Pairs = append(bond.Pairs, p.Effort+":"+p.Flow)
		}
		s.Bonds = append(s.Bonds, bond)
	}
	return s
}

// The presets with which the delays of connections are given.
const explicit, gaussSeidel, implicit = "explicit", "gauss-seidel", "implicit"

// discreteConnections returns the connections of Integers, Booleans and Strings.
func discreteConnections(sys *master.System) []DiscreteConnection {
	out := []DiscreteConnection{}
	owner := func(place string) int {
		return slices.IndexFunc(sys.Infos, func(i *master.Info) bool {
			port, ok := strings.CutPrefix(place, i.Name+".")
			named := func(p master.Port) bool { return p.Name == port }
			return ok && (slices.ContainsFunc(i.DiscreteOut, named) || slices.ContainsFunc(i.DiscreteIn, named))
		})
	}
	for _, l := range sys.DiscreteLinks() {
		from, to := owner(l.From), owner(l.To)
		out = append(out, DiscreteConnection{From: l.From, To: l.To, Loop: from == to || from >= 0 && to >= 0 && sys.Affects(to, from)})
	}
	return out
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
