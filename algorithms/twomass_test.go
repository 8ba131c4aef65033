package algorithms_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/oracle"
)

var (
	// symmetric is the model of schweizer 3.2.
	symmetric = withStart(exact.DefaultTwoMass())
	// uneven has two different masses.
	uneven = withStart(exact.TwoMass{M1: 1, M2: 1.75, C1: 1000, C2: 700, Cc: 850, D1: 10, D2: 12, Dc: 7})
)

func withStart(o exact.TwoMass) exact.TwoMass {
	o.Start = [4]float64{1, -20, -0.5, 30}
	return o
}

// split is a decomposition of the oscillator (schweizer 2.1 to 2.3) into subsystems.
type split struct {
	name        string
	oscillator  exact.TwoMass
	subsystems  []*mastertest.Linear
	connections []master.Connection
	past        func(x [4]float64) []float64 // y; NaN where no extrapolated input needs it
}

func cut(o exact.TwoMass, name string) *split {
	s := &split{name: name, oscillator: o}
	nan := math.NaN()
	for i, m := range oracle.Masses(o, name) {
		n := fmt.Sprintf("mass%d", i+1)
		s.subsystems = append(s.subsystems, mastertest.NewLinear(n, mastertest.Matrices{
			A: rows(m.A), B: rows(m.B), C: [][]float64{{1, 0}, {0, 1}}}, o.Start[2*i:2*i+2]))
		if m.ByForce {
			c := master.Connection{From: endpoint("coupling.y1"), To: endpoint(n + ".u1")}
			if i == 1 {
				c.Linear = &master.Linear{Gain: -1}
			}
			s.connections = append(s.connections, c)
			continue
		}
		for j := range 2 {
			s.connections = append(s.connections, master.Connection{From: endpoint(fmt.Sprintf("mass%d.y%d", 2-i, j+1)), To: endpoint(fmt.Sprintf("%s.u%d", n, j+1))})
		}
	}
	switch name {
	case "ff":
		s.past = func(x [4]float64) []float64 { return []float64{nan, nan, nan, nan, o.Force(x)} }
	case "fd":
		s.past = func(x [4]float64) []float64 { return []float64{x[0], x[1], nan, nan, o.Force(x)} }
	case "dd":
		s.past = func(x [4]float64) []float64 { return x[:] }
		return s
	}
	s.subsystems = append(s.subsystems, mastertest.NewLinear("coupling",
		mastertest.Matrices{D: [][]float64{{-o.Cc, -o.Dc, o.Cc, o.Dc}}}, nil))
	for i, n := range []string{"mass1", "mass2"} {
		for j := range 2 {
			s.connections = append(s.connections, master.Connection{From: endpoint(fmt.Sprintf("%s.y%d", n, j+1)), To: endpoint(fmt.Sprintf("coupling.u%d", 2*i+j+1))})
		}
	}
	return s
}

func rows(m *mat.Dense) [][]float64 {
	n, _ := m.Dims()
	var out [][]float64
	for i := range n {
		out = append(out, m.RawRowView(i))
	}
	return out
}

func (s *split) system(t testing.TB) *master.System {
	t.Helper()
	return s.wrapped(t, func(_ int, l *mastertest.Linear) master.Subsystem { return l })
}

// wrapped returns the system with wrapped subsystems.
func (s *split) wrapped(t testing.TB, wrap func(i int, l *mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	var subs []master.Subsystem
	for i, l := range s.subsystems {
		subs = append(subs, wrap(i, l))
	}
	return systemOf(t, subs, s.connections)
}

// run returns the states at every communication point.
func (s *split) run(t testing.TB, alg master.Algorithm, o master.Options) [][4]float64 {
	t.Helper()
	_, memory := simulate(t, s.system(t), alg, o)
	var states [][4]float64
	for _, y := range memory.Y {
		states = append(states, [4]float64(y[:4]))
	}
	return states
}

// history returns the exact past of k points.
func (s *split) history(k int, H float64) []master.PastOutputs {
	var past []master.PastOutputs
	for j := k; j > 0; j-- {
		past = append(past, master.PastOutputs{T: -float64(j) * H, Y: s.past(s.oscillator.At(-float64(j) * H))})
	}
	return past
}
