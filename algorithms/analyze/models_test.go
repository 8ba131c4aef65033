package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// A component that reacts later than responses are followed looks like one without response. Over the time of the
// forecast the reaction shows, and the stability is unknown.
func TestActsLater(t *testing.T) {
	for name, c := range map[string]struct {
		second master.Subsystem
		known  bool
	}{
		"dead time":      {revertible(delayed("late", 5, 120)), false},
		"long dead time": {revertible(delayed("late", 5, 400)), false}, "sampled": {revertible(sampled("late", 5, 1)), false},
		"sampled once": {revertible(sampled("late", 5, 12)), false},
		"plant":        {analyzetest.Lag("late", -1, -5, 0), true},
	} {
		sys := analyzetest.Pair(t, analyzetest.Lag("one", -1, 1, 1), c.second)
		r := analyse(t, sys, Options{Step: 0.01, From: 0.01, To: 0.02, Stop: 20})
		for _, s := range r.Strategies {
			if told := s.Points != nil; told != c.known || !c.known && !strings.Contains(s.Why, "off its model by 1 of how much") {
				t.Errorf("%s: %s: %v, %q", name, s.Preset, s.Points, s.Why)
			}
		}
		if (r.Recommended >= 0) != c.known || c.known == strings.Contains(r.Subsystems[1].Why, "reacts later") {
			t.Errorf("%s: recommended %d, %+v", name, r.Recommended, r.Subsystems[1])
		}
	}
}

// eulerLag is x' = −a x + b u, y = x, solved by Euler steps of about its own size, without rollback but with
// directional derivatives.
type eulerLag struct {
	info      master.Info
	a, b, own float64
	u, x      float64
	once      bool // no further instances
}

func newEulerLag(name string, a, b, own float64) *eulerLag {
	return &eulerLag{info: master.Info{Name: name, In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "y"}}, StartIn: []float64{0},
		Step: master.Feedthrough{On: [][]int{nil}}, Init: master.Feedthrough{On: [][]int{nil}},
		Caps: master.Caps{VariableStep: true, DirectionalDerivative: true}},
		a: a, b: b, own: own, x: 1}
}

func (s *eulerLag) Info() *master.Info          { return &s.info }
func (s *eulerLag) SetInputs(u []float64) error { s.u = u[0]; return nil }
func (s *eulerLag) Step(_ context.Context, t, h float64) (float64, error) {
	n := s.steps(h)
	for range n {
		s.x += h / float64(n) * (s.b*s.u - s.a*s.x)
	}
	return t + h, nil
}
func (s *eulerLag) steps(h float64) int        { return max(int(math.Round(h/s.own)), 1) }
func (s *eulerLag) Outputs(y []float64) error  { y[0] = s.x; return nil }
func (s *eulerLag) States() []master.StateInfo { return []master.StateInfo{{Name: "x"}} }
func (s *eulerLag) Linearize(dx, du, dxdot, dy []float64) error {
	dxdot[0], dy[0] = s.b*du[0]-s.a*dx[0], dx[0]
	return nil
}
func (s *eulerLag) DirectionalDerivative(du, dy []float64) error {
	dy[0] = 0
	return nil
}
func (s *eulerLag) Duplicate(context.Context, int) (master.Subsystem, error) {
	if s.once {
		return nil, errors.New("once in a process")
	}
	return newEulerLag(s.info.Name, s.a, s.b, s.own), nil
}

// Directional derivatives do not contain the internal steps of a solver. Where these matter, models are measured on
// further instances; without further instances, the report says that this was not checked.
func TestDirectionalDeparts(t *testing.T) {
	for name, c := range map[string]struct {
		own   float64
		once  bool
		model string
	}{"long steps": {0.09, false, twin.Renewed}, "long steps once": {0.09, true, twin.Directional},
		"short steps": {1e-7, false, twin.Directional}} {
		one, two := newEulerLag("one", 4, 6, c.own), newEulerLag("two", 5, -7, c.own)
		one.once, two.once = c.once, c.once
		sys := analyzetest.Pair(t, one, two)
		const H = 0.1
		o := Options{Step: H, Order: 0, Stop: 10, From: 0.05, To: 0.2}
		if c.own < 1e-3 {
			o = Options{Step: 1e-5, Order: 0, Stop: 1e-3, From: 0.5e-5, To: 2e-5}
		}
		r := analyse(t, sys, o)
		for _, s := range r.Subsystems {
			if s.Model != c.model || c.once != strings.Contains(s.Why, "could not be checked: once in a process") {
				t.Errorf("%s: %+v", name, s)
			}
		}
		for _, s := range r.Strategies {
			switch s.Preset {
			case "model-based-corrector":
				if known := s.Points != nil; known == (c.model == twin.Renewed) || !known &&
					!strings.Contains(s.Why, "corrects by the directional derivatives") {
					t.Errorf("%s: %v, %q", name, s.Points, s.Why)
				}
			case "explicit":
				if len(s.Points) != scan.Points {
					t.Errorf("%s: %d points: %s", name, len(s.Points), s.Why)
				}
				for _, p := range s.Points {
					if c.once {
						break
					}
					// [x₁ x₂]⁺ = [e₁ g₁; g₂ e₂] [x₁ x₂], |λ|² = e₁ e₂ − g₁ g₂ where complex.
					e, g := [2]float64{}, [2]float64{}
					for k, l := range []*eulerLag{one, two} {
						n := float64(l.steps(p.Step))
						e[k] = math.Pow(1-l.a*p.Step/n, n)
						g[k] = l.b / l.a * (1 - e[k])
					}
					if want := math.Sqrt(e[0]*e[1] - g[0]*g[1]); math.Abs(p.Radius-want) > 1e-6 {
						t.Errorf("%s: radius %g at %g s, want %g", name, p.Radius, p.Step, want)
						break
					}
				}
			}
		}
	}
}

// ownSteps takes internal steps of a fixed size like some FMUs: those that end within the macro step.
type ownSteps struct {
	*mastertest.Linear
	own float64
}

func (s *ownSteps) Step(ctx context.Context, t, H float64) (float64, error) {
	last := math.Floor((t+H)/s.own + 1e-6)
	for n := math.Floor(t/s.own + 1e-6); n < last; n++ {
		if _, err := s.Linear.Step(ctx, n*s.own, s.own); err != nil {
			return t, err
		}
	}
	return t + H, nil
}

// loopOf is a loop of two masses on springs, coupled by a third; a subsystem may be wrapped.
func loopOf(t *testing.T, wrap func(*mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	make1 := func(name string, c float64) master.Subsystem {
		s := mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{0, 1}, {-c, -0.4}},
			B: [][]float64{{0}, {3}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
		s.Info().Caps.InputDerivatives, s.Info().Caps.DirectionalDerivative = false, false
		return wrap(s)
	}
	return analyzetest.Pair(t, make1("one", 7), make1("two", 9))
}

// For subsystems with internal steps, the radii at whole multiples of these are found, and only known steps are
// recommended.
func TestOwnSteps(t *testing.T) {
	const own = 0.02
	o := Options{Step: own, Order: 0, Stop: 10}
	stepped := analyse(t, loopOf(t, func(l *mastertest.Linear) master.Subsystem { return &ownSteps{l, own} }), o)
	alone := map[int]*Report{} // by multiple
	for i, s := range stepped.Strategies {
		if s.Preset != "explicit" && s.Preset != "gauss-seidel" {
			continue
		}
		if s.Multiples != own || len(s.Points) != scan.MostMultiples {
			t.Fatalf("%s: multiples of %g, %d points, %s", s.Preset, s.Multiples, len(s.Points), s.Why)
		}
		for n, point := range s.Points {
			if n >= 3 && !long.On {
				break
			}
			if alone[n] == nil {
				alone[n] = analyse(t, loopOf(t, plain), Options{Step: point.Step, From: point.Step, To: 1.01 * point.Step})
			}
			if want := alone[n].Strategies[i].Now; math.Abs(point.Step-float64(n+1)*own) > 1e-12 || math.Abs(point.Radius-want) > 1e-6 {
				t.Errorf("%s: radius %.9f at %g s, want %.9f", s.Preset, point.Radius, point.Step, want)
			}
		}
	}
	if k := stepped.Recommended; k < 0 || !stepped.Strategies[k].covers(stepped.StepToTake, stepped.From) {
		t.Errorf("recommended: %d with %g s: %s", k, stepped.StepToTake, stepped.Why)
	}
}

// forgetful claims rollback and fails.
type forgetful struct{ *mastertest.Linear }

func (forgetful) VerifyRollback(context.Context, master.Experiment, float64) (master.Replay, error) {
	return master.Replay{}, fmt.Errorf("%w: it leaves x where it was", master.ErrCapability)
}

// Where rollback is found broken, algorithms that need it are refused.
func TestBrokenRollback(t *testing.T) {
	for _, broken := range []bool{false, true} {
		sys := analyzetest.Haid(t, exact.DefaultHaid(), func(s *mastertest.Linear) master.Subsystem {
			if broken && s.Info().Name == "two" {
				return forgetful{s}
			}
			return s
		})
		r := analyse(t, sys, Options{Step: 1e-4, From: 1e-4, To: 2e-4})
		for _, s := range r.Strategies {
			if refused := strings.Contains(s.Why, "it leaves x where it was") && s.Points == nil; refused != (broken && s.Preset == "implicit") {
				t.Errorf("broken %t: %s: %q, %v", broken, s.Preset, s.Why, s.Points)
			}
		}
		for _, a := range r.Structure.Algorithms {
			repeats := strings.HasPrefix(a.Preset, "ex-") || strings.HasPrefix(a.Preset, "im") || a.Preset == "richardson"
			if refused := strings.Contains(a.Refused, "it leaves x where it was"); refused != (broken && repeats) {
				t.Errorf("broken %t: %s: %q", broken, a.Preset, a.Refused)
			}
		}
		if s := r.Subsystems[1]; broken != strings.Contains(s.Why, "it leaves x where it was") {
			t.Errorf("broken %t: %+v", broken, s)
		}
	}
}
