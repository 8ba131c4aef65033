package analyze

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
)

// eulerLag is x' = −a x + b u, y = x, solved in Euler steps of its own as long as they fit, which cannot go back
// and gives directional derivatives.
type eulerLag struct {
	info      master.Info
	a, b, own float64
	u, x      float64
	once      bool // no further instances
}

func newEulerLag(name string, a, b, own float64) *eulerLag {
	return &eulerLag{info: master.Info{Name: name, In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "y"}}, StartIn: []float64{0},
		Step: master.Feedthrough{On: [][]int{nil}}, Init: master.Feedthrough{On: [][]int{nil}}, Caps: master.Caps{VariableStep: true, DirectionalDerivative: true}},
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

// twin.Directional derivatives know nothing of the steps of a solver: where these make a difference, models are
// measured; where there are no further instances to see it on, that is told; and where they make
// none, the derivatives are taken.
func TestDirectionalDeparts(t *testing.T) {
	for name, c := range map[string]struct {
		own   float64
		once  bool
		model string
	}{"long steps": {0.09, false, twin.Renewed}, "long steps once": {0.09, true, twin.Directional}, "short steps": {1e-7, false, twin.Directional}} {
		one, two := newEulerLag("one", 4, 6, c.own), newEulerLag("two", 5, -7, c.own)
		one.once, two.once = c.once, c.once
		sys := analyzetest.Pair(t, one, two)
		const H = 0.1
		o := Options{Step: H, Order: 0, Stop: 10, From: 0.05, To: 0.2}
		if c.own < 1e-3 {
			o = Options{Step: 1e-5, Order: 0, Stop: 1e-3, From: 0.5e-5, To: 2e-5}
		}
		r, err := Run(t.Context(), sys, o)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, s := range r.Subsystems {
			if s.Model != c.model || c.once != strings.Contains(s.Why, "could not be held against what it does: once in a process") {
				t.Errorf("%s: %+v", name, s)
			}
		}
		for _, s := range r.Strategies {
			switch s.Preset {
			case "model-based-corrector":
				if known := s.Points != nil; known == (c.model == twin.Renewed) || !known && !strings.Contains(s.Why, "corrects by the directional derivatives") {
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
