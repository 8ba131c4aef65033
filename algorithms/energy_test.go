package algorithms_test

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// eulerMass is one side of rodriguez's double linear oscillator: a mass on a
// spring, integrated by one step of symplectic Euler. The one with the coupling
// spring (kc > 0) takes position and velocity of the other and gives the force,
// computed with the input at the start of its step; the other takes the force.
type eulerMass struct {
	info        master.Info
	m, k, c, kc float64
	x, v, f     float64
	u           [2]float64
}

func newEulerMass(name string, k, kc, v float64) *eulerMass {
	e := &eulerMass{m: 1, k: k, kc: kc, v: v, info: master.Info{Name: name, Caps: master.Caps{VariableStep: true, InputDerivatives: true},
		Out: []master.Port{{Name: "x"}, {Name: "v"}}}}
	if kc > 0 {
		e.info.In = []master.Port{{Name: "x"}, {Name: "v"}}
		e.info.Out = append(e.info.Out, master.Port{Name: "f"})
		e.info.Step = master.Feedthrough{On: [][]int{nil, nil, {0}}}
	} else {
		e.info.In = []master.Port{{Name: "f"}}
	}
	return e
}

func (e *eulerMass) Info() *master.Info { return &e.info }

func (e *eulerMass) SetInputs(u []float64) error { copy(e.u[:], u); return nil }

func (e *eulerMass) Outputs(y []float64) error { copy(y, []float64{e.x, e.v, e.f}); return nil }

// Its one stage is at the start of the step, where derivatives do not show.
func (e *eulerMass) PrepareInputDerivatives(int) error        { return nil }
func (e *eulerMass) SetInputDerivatives(int, []float64) error { return nil }

func (e *eulerMass) Step(_ context.Context, t, H float64) (float64, error) {
	force := e.u[0]
	if e.kc > 0 {
		force = -e.kc * (e.x - e.u[0])
	}
	e.v += H * (force - e.k*e.x - e.c*e.v) / e.m
	e.x += H * e.v
	if e.kc > 0 {
		e.f = e.kc * (e.x - e.u[0])
	}
	return t + H, nil
}

// doubleOscillator has the parameters of rodriguez; its mechanical
// energy is 10 kJ at the start.
func doubleOscillator(t testing.TB) *master.System {
	t.Helper()
	return system(t, []master.Subsystem{newEulerMass("left", 10, 100, 100), newEulerMass("right", 1000, 0, -100)},
		"left.f right.f", "right.x left.x", "right.v left.v")
}

// lastEnergy returns the mean mechanical energy over the last second of 10 s in
// steps of 1 ms: symplectic Euler makes it oscillate.
func lastEnergy(t testing.TB, c Config) float64 {
	t.Helper()
	c.Bonds = []Bond{{Name: "spring", Pairs: []Pair{{Effort: "left.f", Flow: "right.v"}}}}
	_, memory := simulate(t, doubleOscillator(t), newExplicit(t, c), master.Options{Stop: 10, Step: 1e-3})
	sum := 0.0
	const last = 1000
	for _, y := range memory.Y[len(memory.Y)-last:] {
		x1, v1, x2, v2 := y[0], y[1], y[3], y[4]
		sum += (v1*v1 + v2*v2 + 10*x1*x1 + 100*(x1-x2)*(x1-x2) + 1000*x2*x2) / 2
	}
	return sum / last
}

func corrected(mu float64) Config {
	return Config{Correct: EnergyCorrection, Energy: Energy{Mu: mu}}
}

// The μ that keeps the energy, by bisection, is that of (20) and (21).
func testSpuriousShare(t *testing.T) {
	const E0 = 1e4
	for _, test := range []struct {
		name  string
		rates []Rate
		order int
		want  float64
	}{
		{"single rate", nil, 0, 0.5},
		{"R = 2, hold", []Rate{{"right", 2, 1}}, 0, 0.625},
		{"R = 5, hold", []Rate{{"right", 5, 1}}, 0, 0.7},
		{"R = 10, hold", []Rate{{"right", 10, 1}}, 0, 0.725},
		{"R = 10, polynomial", []Rate{{"right", 10, 1}}, 1, 0.5},
		{"R = 1/2, hold", []Rate{{"left", 2, 1}}, 0, 0.5},
		{"R = 1/10, hold", []Rate{{"left", 10, 1}}, 0, 0.5},
		{"R = 1/2, polynomial", []Rate{{"left", 2, 1}}, 1, 0.25},
		{"R = 1/5, polynomial", []Rate{{"left", 5, 1}}, 1, 0.1},
		{"R = 1/10, polynomial", []Rate{{"left", 10, 1}}, 1, 0.05},
	} {
		at := func(mu float64) float64 {
			c := corrected(mu)
			c.Rates, c.Order = test.rates, test.order
			return lastEnergy(t, c)
		}
		lo, hi := 0.0, 2*test.want
		for range 9 {
			if mid := (lo + hi) / 2; at(mid) > E0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		got := (lo + hi) / 2
		t.Logf("%s: μ = %.4f, by the formula %.4f", test.name, got, test.want)
		if math.Abs(got-test.want) > 0.03*test.want {
			t.Errorf("%s: μ = %g keeps the energy, the formula gives %g", test.name, got, test.want)
		}
	}
}

// spy records the inputs of each step.
type spy struct {
	*mastertest.Linear
	u [][]float64
}

func (s *spy) Unwrap() master.Subsystem { return s.Linear }

func (s *spy) SetInputs(u []float64) error {
	s.u = append(s.u, slices.Clone(u))
	return s.Linear.SetInputs(u)
}

// The magnitude of the correction of one force is limited, not its components, nor the forces that make it up (rodriguez
// 3.2, 5.1): a planar force, and two forces on the hub of a star.
func TestCorrectionIsLimitedInMagnitude(t *testing.T) {
	const limit, most, steps = 0.02, 30.0, 2000
	// Forces of springs on a mass that moves in a plane, or on the hub of a star.
	spring := func(name string, k, v float64) *mastertest.Linear { // u = (x, v) of the mass, y = force
		return mastertest.NewLinear(name, mastertest.Matrices{
			A: [][]float64{{0, 1}, {-10 - k, 0}}, B: [][]float64{{0, 0}, {k, 0}}, C: [][]float64{{k, 0}}, D: [][]float64{{-k, 0}},
		}, []float64{0, v})
	}
	plane := mastertest.NewLinear("left", mastertest.Matrices{
		A: [][]float64{{0, 1, 0, 0}, {-110, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, -70, 0}},
		B: [][]float64{{0, 0, 0, 0}, {100, 0, 0, 0}, {0, 0, 0, 0}, {0, 60, 0, 0}},
		C: [][]float64{{100, 0, 0, 0}, {0, 0, 60, 0}}, D: [][]float64{{-100, 0, 0, 0}, {0, -60, 0, 0}},
	}, []float64{0, 100, 0, 30})
	right := func() *spy {
		return &spy{Linear: mastertest.NewLinear("right", mastertest.Matrices{
			A: [][]float64{{0, 1, 0, 0}, {-1000, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, -600, 0}}, B: [][]float64{{0, 0}, {1, 0}, {0, 0}, {0, 1}},
			C: [][]float64{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}},
		}, []float64{0, -100, 0, 20})}
	}
	hub := &spy{Linear: mastertest.NewLinear("right", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-1000, 0}}, B: [][]float64{{0, 0}, {1, 1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{0, -100})}
	inPlane := right()
	for name, c := range map[string]struct {
		sys   *master.System
		to    *spy
		bonds []Bond
		force func(u []float64) []float64 // the force on the mass
	}{
		"plane": {system(t, []master.Subsystem{plane, inPlane}, "left.y1 right.u1", "left.y2 right.u2", "right.y1 left.u1",
			"right.y3 left.u2", "right.y2 left.u3", "right.y4 left.u4"), inPlane,
			[]Bond{{Name: "spring", Pairs: []Pair{{Effort: "left.y1", Flow: "right.y2"}, {Effort: "left.y2", Flow: "right.y4"}}}},
			func(u []float64) []float64 { return u }},
		"star": {system(t, []master.Subsystem{spring("one", 55, 100), spring("two", 45, -20), hub}, "one.y1 right.u1", "two.y1 right.u2",
			"right.y1 one.u1", "right.y2 one.u2", "right.y1 two.u1", "right.y2 two.u2"), hub,
			[]Bond{{Name: "one", Pairs: []Pair{{Effort: "one.y1", Flow: "right.y2"}}}, {Name: "two", Pairs: []Pair{{Effort: "two.y1", Flow: "right.y2"}}}},
			func(u []float64) []float64 { return []float64{u[0] + u[1]} }},
	} {
		for _, absolute := range []bool{false, true} {
			c.to.u = nil
			e := Energy{Mu: 0.5, Limit: limit}
			if absolute {
				e = Energy{Mu: 0.5, LimitAbsolute: []Tolerance{{Value: most}}}
			}
			_, memory := simulate(t, c.sys, newExplicit(t, Config{Correct: EnergyCorrection, Energy: e, Bonds: c.bonds}),
				master.Options{Stop: steps * 1e-3, Step: 1e-3})
			size := func(v []float64) (s float64) {
				for _, x := range v {
					s = math.Hypot(s, x)
				}
				return s
			}
			sent := c.to.u[len(c.to.u)-steps:]
			atLimit, apart := 0, 0
			for n, u := range sent {
				w := memory.U[n][len(memory.U[n])-len(u):]
				correct := make([]float64, len(u))
				for j := range u {
					correct[j] = u[j] - w[j]
				}
				got, allowed := size(c.force(correct)), limit*size(c.force(w))
				if absolute {
					allowed = min(most, size(c.force(w)))
				}
				if got > allowed*(1+1e-9)+1e-9 {
					t.Fatalf("%s: at step %d the correction is %g, allowed are %g", name, n, got, allowed)
				}
				if got > allowed*(1-1e-9)-1e-9 {
					atLimit++
				}
				for j := range u {
					if !absolute && math.Abs(correct[j]) > 1.01*limit*math.Abs(w[j]) {
						apart++
					}
				}
			}
			if atLimit < 100 || !absolute && apart < 100 {
				t.Errorf("%s, absolute %t: %d of %d steps are limited, and %d parts exceed their own limits", name, absolute, atLimit, steps, apart)
			}
		}
	}
}

// The residual energy of bonds that are only watched is that of monitored ones, and is recorded nowhere. A large one is noted,
// one as large as what the bond carries is a warning.
func TestWatchedBonds(t *testing.T) {
	bonds := []Bond{{Name: "spring", Pairs: []Pair{{Effort: "left.f", Flow: "right.v"}}}}
	share := regexp.MustCompile(`bond spring: the coupling has added or removed ([0-9.]+) times`)
	for H, told := range map[float64][2]bool{1e-3: {}, 4e-3: {true, false}, 1.6e-2: {false, true}} { // noted, warned of
		monitored, _ := simulate(t, doubleOscillator(t), newExplicit(t, Config{Bonds: bonds}), master.Options{Stop: 10, Step: H})
		watching := newExplicit(t, Config{Watched: bonds})
		if plan := watching.Plan(doubleOscillator(t), H); len(plan.Quantities) > 0 {
			t.Errorf("watched bonds are recorded: %v", plan.Quantities)
		}
		result, _ := simulate(t, doubleOscillator(t), watching, master.Options{Stop: 10, Step: H})
		if result.Bonds != nil {
			t.Errorf("%g s: watched bonds are reported: %v", H, result.Bonds)
		}
		b := monitored.Bonds["spring"]
		want := math.Abs(b.ResidualEnergy) / (10 * b.MeanAbsPower)
		for k, texts := range [][]string{result.Notes, result.Warnings} {
			found := share.FindStringSubmatch(strings.Join(texts, "\n"))
			if (found != nil) != told[k] {
				t.Errorf("%g s: a share of %.3g: %q", H, want, texts)
			}
			if found == nil {
				continue
			}
			if got, err := strconv.ParseFloat(found[1], 64); err != nil || math.Abs(got/want-1) > 0.1 {
				t.Errorf("%g s: a share of %g, monitored it is %.3g", H, got, want)
			}
		}
	}
}
