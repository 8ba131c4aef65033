package analyze

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// feedthroughLoop is a loop of two subsystems x' = -a x + u, y = x + d u, whose immediate gain is
// √|d1 d2|: the eigenvalues of [[0, d1], [d2, 0]]. A third input is not connected.
func feedthroughLoop(t *testing.T, d1, d2 float64, caps func(*master.Caps)) *master.System {
	t.Helper()
	make1 := func(name string, a, d float64, more bool) *mastertest.Linear {
		m := mastertest.Matrices{A: [][]float64{{-a}}, B: [][]float64{{1}}, C: [][]float64{{1}}, D: [][]float64{{d}}}
		if more {
			m.B, m.D = [][]float64{{1, 0.5}}, [][]float64{{d, 0}}
		}
		s := mastertest.NewLinear(name, m, []float64{1})
		caps(&s.Info().Caps)
		return s
	}
	return analyzetest.Pair(t, make1("one", 2, d1, false), make1("two", 3, d2, true))
}

// The structure lists loops with their gains, immediate and over a step, connections with their delays, and algorithms
// that cannot be used, whatever the source of the models.
func TestStructure(t *testing.T) {
	const d1, d2, H = 0.5, -0.32, 0.01
	over := func(a, d float64) float64 { return d + (1-math.Exp(-a*H))/a }
	for name, caps := range map[string]func(*master.Caps){
		"measured":    func(c *master.Caps) { c.DirectionalDerivative = false },
		"directional": func(c *master.Caps) { c.SaveState = false },
	} {
		r := analyse(t, feedthroughLoop(t, d1, d2, caps),
			Options{Step: H, Stop: 1, BondsSeen: []algorithms.Bond{{Name: "b",
				Pairs: []algorithms.Pair{{Effort: "one.y1", Flow: "two.y1"}}}}})
		s := r.Structure
		if len(s.Loops) != 2 || !s.Loops[0].Initialization || s.Loops[1].Initialization {
			t.Fatalf("%s: loops %+v", name, s.Loops)
		}
		for _, l := range s.Loops {
			if want := math.Sqrt(-d1 * d2); l.Gain == nil || math.Abs(*l.Gain-want) > 1e-6 {
				t.Errorf("%s: gain of %+v, want %g", name, l, want)
			}
			if l.Assumed || l.Treatment == "" || len(l.Variables) != 4 {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if want := math.Sqrt(-over(2, d1) * over(3, d2)); s.Loops[1].StepGain == nil || math.Abs(*s.Loops[1].StepGain-want) > 1e-6 {
			t.Errorf("%s: gain over a step of %+v, want %g", name, s.Loops[1], want)
		}
		if want := []string{"two.u2"}; !reflect.DeepEqual(s.Unconnected, want) {
			t.Errorf("%s: unconnected %v", name, s.Unconnected)
		}
		want := []Connection{
			{"two.y1", "one.u1", 1, map[string]float64{"explicit": 1, "gauss-seidel": 1, "implicit": 0}},
			{"one.y1", "two.u1", 1, map[string]float64{"explicit": 1, "gauss-seidel": 0, "implicit": 0}},
		}
		if !reflect.DeepEqual(s.Connections, want) {
			t.Errorf("%s: connections %+v", name, s.Connections)
		}
		if want := []Bond{{"b", []string{"one.y1:two.y1"}, false}}; !reflect.DeepEqual(s.Bonds, want) {
			t.Errorf("%s: bonds %+v", name, s.Bonds)
		}
		if len(s.Algorithms) != len(algorithms.Presets()) {
			t.Errorf("%s: %+v", name, s.Algorithms)
		}
		for _, a := range s.Algorithms {
			repeats := strings.HasPrefix(a.Preset, "ex-") || strings.HasPrefix(a.Preset, "im") || a.Preset == "richardson"
			if refused := name == "directional" && repeats; (a.Refused != "") != refused {
				t.Errorf("%s: %+v", name, a)
			}
			analysed := false
			for _, s := range r.Strategies {
				analysed = analysed || s.Preset == a.Preset
			}
			if forecast.ToleranceOf(a.Preset) != "" { // its steps are forecast, where errors are
				analysed = a.Refused != "" || r.WhyNoError != "" ||
					slices.ContainsFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset == a.Preset })
			}
			if analysed != (a.Unanalysed == "") {
				t.Errorf("%s: %+v, but it is analysed: %t", name, a, analysed)
			}
		}
		text, err := json.Marshal(r.Structure)
		if err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// Inputs of subsystems that are stepped after their sources have no delay; discrete inputs have one in implicit
// coupling too.
func TestDelays(t *testing.T) {
	one, two := analyzetest.Lag("one", -1, 1, 1), analyzetest.Lag("two", -1, 1, 1)
	two.Info().In[0].Discrete = true
	spring := mastertest.NewLinear("spring", mastertest.Matrices{D: [][]float64{{1}}}, nil)
	spring.Info().Stateless = true
	sys := analyzetest.System(t, []master.Subsystem{spring, one, two}, "one.y1 -> spring.u1", "spring.y1 -> two.u1", "two.y1 -> one.u1")
	want := map[string][3]float64{"spring.u1": {0, 0, 0}, "one.u1": {1, 1, 0}, "two.u1": {1, 0, 1}}
	for _, c := range structure(sys, Options{Step: 0.1}).Connections {
		got := [3]float64{c.Delay["explicit"], c.Delay["gauss-seidel"], c.Delay["implicit"]}
		if got != want[c.To] {
			t.Errorf("%s: %v, want %v", c.To, got, want[c.To])
		}
	}
}

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

// Discrete connections are listed. If one closes a loop, the stability is unknown; if not, only the motion is.
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
		"on a loop": {[]master.Connection{real("one", "two"), held("two", "one")},
			[]DiscreteConnection{{"two.out", "one.in", true}}, "two.out -> one.in of Integers"},
		"through a third": {[]master.Connection{real("one", "two"), held("two", "three"), real("three", "one")},
			[]DiscreteConnection{{"two.out", "three.in", true}}, "two.out -> three.in of Integers"},
		"two": {[]master.Connection{held("one", "two"), held("two", "one")},
			[]DiscreteConnection{{"one.out", "two.in", true}, {"two.out", "one.in", true}}, "and 1 more"},
		"from outside": {[]master.Connection{real("one", "two"), real("two", "one"), held("three", "one")},
			[]DiscreteConnection{{"three.out", "one.in", false}}, ""},
		"none": {[]master.Connection{real("one", "two"), real("two", "one")}, []DiscreteConnection{}, ""},
	} {
		sys, err := master.NewSystem([]master.Subsystem{newSwitching("one"), newSwitching("two"), newSwitching("three")}, c.links)
		if err != nil {
			t.Fatal(name, err)
		}
		r := analyse(t, sys, Options{Step: 0.01, Stop: 1, Order: 1})
		if !reflect.DeepEqual(r.Structure.Discrete, c.want) {
			t.Errorf("%s: %+v", name, r.Structure.Discrete)
		}
		for _, s := range r.Strategies {
			if c.unknown != "" && (s.Points != nil || !strings.Contains(s.Why, c.unknown)) || c.unknown == "" &&
				(len(s.Stable) == 0 || s.Why != "") {
				t.Errorf("%s: %s, order %d: %v, %q", name, s.Preset, s.Order, s.Stable, s.Why)
			}
		}
		if (r.Recommended < 0) != (c.unknown != "") || (r.Promised != nil) != (len(c.want) == 0) {
			t.Errorf("%s: recommended %d, promised %+v: %s, %s", name, r.Recommended, r.Promised, r.Why, r.WhyNoError)
		}
	}
}
