package analyze

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// feedthroughLoop is a loop of two subsystems x' = -a x + u, y = x + d u, whose gain at once is
// √|d1 d2|: the eigenvalues of [[0, d1], [d2, 0]]. A third input is fed by nobody.
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

// Loops are told with their gains, at once and over a step, connections with their delays, and
// what cannot be used, whatever the model comes from.
func TestStructure(t *testing.T) {
	const d1, d2, H = 0.5, -0.32, 0.01
	over := func(a, d float64) float64 { return d + (1-math.Exp(-a*H))/a }
	for name, caps := range map[string]func(*master.Caps){
		"measured":    func(c *master.Caps) { c.DirectionalDerivative = false },
		"directional": func(c *master.Caps) { c.SaveState = false },
	} {
		r, err := Run(t.Context(), feedthroughLoop(t, d1, d2, caps), Options{Step: H, Stop: 1, BondsSeen: []algorithms.Bond{{Name: "b", Pairs: []algorithms.Pair{{Effort: "one.y1", Flow: "two.y1"}}}}})
		if err != nil {
			t.Fatal(name, err)
		}
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
				analysed = a.Refused != "" || r.WhyNoError != "" || slices.ContainsFunc(r.Varying, func(v forecast.Varying) bool { return v.Preset == a.Preset })
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

// What is stepped late has no delay; what is held by its kind is as old in implicit coupling too.
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

// What stands at the limit is told as such, what is not exact there too, and what a run would do otherwise.
func TestLimit(t *testing.T) {
	for _, damped := range []bool{true, false} {
		o, H := exact.DefaultHaid(), 1e-4
		if !damped {
			H = 2e-6
			o.D1, o.D2, o.DK = 0, 0, 0
		}
		r, err := Run(t.Context(), analyzetest.Haid(t, o, nil), Options{Step: H, Order: 0, From: H / 2, To: 2 * H, At: 2.4 * H})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			hidden := s.Preset == "model-based-corrector"
			if s.Preset == "implicit" && s.AtLimit() == damped {
				t.Errorf("damped %t: %s: at the limit %t, radius %.9f", damped, s.Preset, s.AtLimit(), s.Now)
			}
			if inexact := strings.Contains(s.Untold, "hardly damped"); inexact != (hidden && !damped) {
				t.Errorf("damped %t: %s: %q", damped, s.Preset, s.Untold)
			}
		}
		if want := []string{fmt.Sprintf("the operating point is the first communication point after the %.10g s that are asked for", 2.4*H)}; !reflect.DeepEqual(r.Notes, want) || math.Abs(r.At-3*H) > 1e-9*H {
			t.Errorf("%q", r.Notes)
		}
	}
}
