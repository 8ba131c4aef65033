package analyze

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// switching is a subsystem with an Integer at each end besides its Reals.
type switching struct {
	*mastertest.Linear
	info master.Info
}

func (s *switching) Info() *master.Info               { return &s.info }
func (s *switching) SetDiscrete(*master.Values) error { return nil }
func (s *switching) Discrete(*master.Values) error    { return nil }

// newSwitching makes x' = −x + u/2, y = x.
func newSwitching(name string) *switching {
	l := mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{0.5}}, C: [][]float64{{1}}}, []float64{1})
	s := &switching{l, *l.Info()}
	s.info.DiscreteIn = []master.Port{{Name: "in", Kind: master.Integer}}
	s.info.DiscreteOut = []master.Port{{Name: "out", Kind: master.Integer}}
	for _, f := range []*master.Feedthrough{&s.info.Step, &s.info.Init} {
		f.On = append(slices.Clone(f.On), nil)
		if f.Assumed != nil {
			f.Assumed = append(slices.Clone(f.Assumed), false)
		}
	}
	return s
}

// Connections that are not of Reals are told of. Where one closes a loop, nothing is told of the
// stability; where it only comes from elsewhere, nothing of the motion.
func TestDiscreteConnections(t *testing.T) {
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	real := func(from, to string) master.Connection {
		return master.Connection{From: at(from, "y1"), To: at(to, "u1")}
	}
	held := func(from, to string) master.Connection {
		return master.Connection{From: at(from, "out"), To: at(to, "in")}
	}
	for name, c := range map[string]struct {
		links   []master.Connection
		want    []DiscreteConnection
		unknown string
	}{
		"on a loop": {[]master.Connection{real("one", "two"), held("two", "one")}, []DiscreteConnection{{"two.out", "one.in", true}}, "two.out -> one.in of Integers"},
		"through a third": {[]master.Connection{real("one", "two"), held("two", "three"), real("three", "one")},
			[]DiscreteConnection{{"two.out", "three.in", true}}, "two.out -> three.in of Integers"},
		"two":          {[]master.Connection{held("one", "two"), held("two", "one")}, []DiscreteConnection{{"one.out", "two.in", true}, {"two.out", "one.in", true}}, "and 1 more"},
		"from outside": {[]master.Connection{real("one", "two"), real("two", "one"), held("three", "one")}, []DiscreteConnection{{"three.out", "one.in", false}}, ""},
		"none":         {[]master.Connection{real("one", "two"), real("two", "one")}, []DiscreteConnection{}, ""},
	} {
		sys, err := master.NewSystem([]master.Subsystem{newSwitching("one"), newSwitching("two"), newSwitching("three")}, c.links)
		if err != nil {
			t.Fatal(name, err)
		}
		r, err := Run(t.Context(), sys, Options{Step: 0.01, Stop: 1, Order: 1})
		if err != nil {
			t.Fatal(name, err)
		}
		if !reflect.DeepEqual(r.Structure.Discrete, c.want) {
			t.Errorf("%s: %+v", name, r.Structure.Discrete)
		}
		for _, s := range r.Strategies {
			if c.unknown != "" && (s.Points != nil || !strings.Contains(s.Why, c.unknown)) || c.unknown == "" && (len(s.Stable) == 0 || s.Why != "") {
				t.Errorf("%s: %s, order %d: %v, %q", name, s.Preset, s.Order, s.Stable, s.Why)
			}
		}
		if (r.Recommended < 0) != (c.unknown != "") || (r.Promised != nil) != (len(c.want) == 0) {
			t.Errorf("%s: recommended %d, promised %+v: %s, %s", name, r.Recommended, r.Promised, r.Why, r.WhyNoError)
		}
	}
}
