package master_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// given is a fake with parameters of every kind, which its output shows.
type given struct {
	*fake
	p master.Values
}

var kinds = []master.Port{{Name: "r"}, {Name: "i", Kind: master.Integer}, {Name: "b", Kind: master.Boolean}, {Name: "s", Kind: master.String}}

func newGiven(name string) *given {
	g := &given{newFake(name, 0, 1), master.NewValues(kinds)}
	g.info.Params = kinds
	return g
}

func (g *given) SetParameter(k int, v master.Values) error {
	switch kinds[k].Kind {
	case master.Real:
		g.p.Real = v.Real
	case master.Integer:
		g.p.Integer = v.Integer
	case master.Boolean:
		g.p.Boolean = v.Boolean
	case master.String:
		g.p.String = v.String
	}
	return nil
}

// maker returns a value of each kind, which are those after its own parameter.
func maker() *given {
	g := newGiven("maker")
	g.info.DiscreteOut = []master.Port{{Name: "i", Kind: master.Integer}, {Name: "b", Kind: master.Boolean}, {Name: "s", Kind: master.String}}
	g.depends()
	g.eval = func(u, y []float64) { y[0] = 1 + g.p.Real[0] }
	g.discrete = func(_, out *master.Values) {
		out.Integer[0], out.Boolean[0], out.String[0] = 4, true, "text"
	}
	return g
}

// Outputs give parameters their values once, during the initialisation, each after
// what it depends on, through factors and tables.
func TestTransfers(t *testing.T) {
	first, last := newGiven("first"), newGiven("last")
	first.eval = func(u, y []float64) { y[0] = 10 }
	last.eval = func(u, y []float64) { y[0] = last.p.Real[0] }
	scaled := wire("maker.y1", "last.r")
	scaled.Linear = &master.Linear{Gain: 2, Offset: 1}
	widened := wire("maker.i", "real.r") // an Integer, by the table and then as a Real
	widened.Linear, widened.Map = &master.Linear{Gain: 0.5, Offset: 1}, map[int64]int64{4: 7}
	real := newGiven("real")
	table, inverted := wire("maker.i", "last.i"), wire("maker.b", "last.b")
	table.Map, inverted.Map = map[int64]int64{4: 7}, map[int64]int64{1: 0}
	m := maker()
	s := system(t, []master.Subsystem{last, m, first, real}, wire("first.y1", "maker.r"), scaled, table, inverted, wire("maker.s", "last.s"), widened)
	if len(s.Loops) != 0 {
		t.Errorf("loops %v", s.Loops)
	}
	r := initialized(t, s)
	if got := fmt.Sprint(m.p.Real, last.p, real.p.Real); got != "[10] {[23] [7] [false] [text]} [4.5]" {
		t.Errorf("parameters %s", got)
	}
	if y, _ := r.Real("last.y1"); y != 23 {
		t.Errorf("last.y1 is %v", y)
	}
	// What the source gives later does not come there.
	first.eval = func(u, y []float64) { y[0] = 20 }
	step(t, r)
	if m.p.Real[0] != 10 {
		t.Errorf("the parameter is %v", m.p.Real[0])
	}
}

func TestBadTransfers(t *testing.T) {
	plain := newFake("plain", 0, 1)
	plain.info.Params = kinds
	linear, table := wire("maker.i", "other.i"), wire("maker.y1", "other.r")
	linear.Linear, table.Map = &master.Linear{Gain: 2}, map[int64]int64{1: 2}
	for _, c := range []struct {
		connections []master.Connection
		want        string
	}{
		{[]master.Connection{wire("maker.y1", "other.i")}, "different types"},
		{[]master.Connection{linear}, "Real signals only"},
		{[]master.Connection{table}, "does not apply"},
		{[]master.Connection{wire("maker.y1", "other.r"), wire("other.y1", "other.r")}, "already has a source, maker.y1"},
		{[]master.Connection{wire("maker.i", "other.i"), wire("maker.i", "other.i")}, "already has a source, maker.i"},
		{[]master.Connection{wire("maker.y1", "plain.r")}, "plain cannot take parameters"},
		{[]master.Connection{wire("maker.y1", "other.x")}, `no input "x"`},
		{[]master.Connection{wire("maker.x", "other.r")}, `no output "x"`},
	} {
		_, err := master.NewSystem([]master.Subsystem{maker(), newGiven("other"), plain}, c.connections)
		contains(t, c.connections, err, c.want)
	}
	// A loop, a value that is no number, and one that does not stay.
	a, b := maker(), newGiven("b")
	b.depends()
	b.eval = func(u, y []float64) { y[0] = b.p.Real[0] }
	if _, err := begun(t, system(t, []master.Subsystem{a, b}, wire("maker.y1", "b.r"), wire("b.y1", "maker.r"))); err == nil || !strings.Contains(err.Error(), "b.r depends on itself") && !strings.Contains(err.Error(), "maker.r depends on itself") {
		t.Errorf("a loop: %v", err)
	}
	a, b = maker(), newGiven("b")
	a.eval = func(u, y []float64) { y[0] = math.NaN() }
	if _, err := begun(t, system(t, []master.Subsystem{a, b}, wire("maker.y1", "b.r"))); err == nil || !strings.Contains(err.Error(), "maker.y1 gives NaN to the parameter b.r") {
		t.Errorf("NaN: %v", err)
	}
	a, b = maker(), newGiven("b")
	a.info.In = ports("u", 1)
	a.u = make([]float64, 1)
	a.assumes()
	a.eval = func(u, y []float64) { y[0] = u[0] }
	b.eval = func(u, y []float64) { y[0] = 1 + b.p.Real[0] }
	if _, err := begun(t, system(t, []master.Subsystem{a, b}, wire("maker.y1", "b.r"), wire("b.y1", "maker.u1"))); err == nil || !strings.Contains(err.Error(), "maker.y1 has changed since") {
		t.Errorf("hidden dependency: %v", err)
	}
}
