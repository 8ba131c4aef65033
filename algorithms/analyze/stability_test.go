package analyze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// x' = a x + b u, y = x in a loop with y' = −4 y + x: components that grow by themselves are listed with their rate,
// and the whole system if the coupling does not hold them.
func TestUnstableAlone(t *testing.T) {
	for name, c := range map[string]struct{ a, b, alone float64 }{
		"unstable": {3, 0.5, 3}, "held": {1, -9, 1}, "stable": {-1, -1, 0},
	} {
		sys := analyzetest.Pair(t, analyzetest.Lag("one", c.a, c.b, 1), analyzetest.Lag("two", -4, 1, 1))
		r := analyse(t, sys, Options{Step: 1e-2, Order: 1, Stop: 1, From: 1e-3, To: 1e-1})
		if len(r.Alone) == 1 && r.Alone[0].ByStep {
			t.Errorf("%s: by the step: %+v", name, r.Alone)
		}
		if (c.alone != 0) != (len(r.Alone) == 1) || c.alone != 0 && (r.Alone[0].Component != "one" || math.Abs(r.Alone[0].Rate-c.alone) > 1e-6) {
			t.Errorf("%s: alone %+v", name, r.Alone)
		}
		// λ² + (4−a) λ − 4a − b = 0
		half := (c.a - 4) / 2
		want := half + math.Sqrt(half*half+4*c.a+c.b)
		if !(want > 0) {
			want = 0
		}
		if (want > 0) != (r.Whole != nil) || want > 0 && math.Abs(r.Whole.Rate-want) > 1e-2*want {
			t.Errorf("%s: whole %+v, want %g", name, r.Whole, want)
		}
	}
}

// An undamped oscillator whose solver takes one Euler step a macro step grows the faster the longer the step is: that is
// not its own motion.
func TestUnstableByStep(t *testing.T) {
	euler := revertible(newSignal("one", 1, 2, []float64{1, 0}, func(u, x []float64, _, h float64) {
		x[0], x[1] = x[0]+h*x[1], x[1]+h*(u[0]-x[0])
	}))
	r := analyse(t, analyzetest.Pair(t, euler, analyzetest.Lag("two", -4, 0.1, 1)), Options{Step: 0.1, Stop: 5, From: 0.01, To: 1})
	if len(r.Alone) != 1 || !r.Alone[0].ByStep || math.Abs(r.Alone[0].Rate-0.05) > 1e-3 {
		t.Errorf("alone %+v", r.Alone)
	}
}

// With many subsystems the limits are those of the eigenvalues.
func testManySubsystems(t *testing.T) {
	for _, n := range []int{25, 100} {
		sys, radius := analyzetest.Masses(t, n)
		r := analyse(t, sys, Options{Step: 2e-3, Stop: 2, From: 5e-4, To: 0.05, Error: 0.01})
		s := r.strategyOf("explicit", 0)
		if want := radius(2e-3); math.Abs(s.Now-want) > 1e-6 {
			t.Errorf("%d: radius %.6f, want %.6f", n, s.Now, want)
		}
		checkLimit(t, fmt.Sprint(n), s, radius)
		if r.Promised == nil {
			t.Errorf("%d: recommended: %v, %s", n, r.Promised, r.Why)
		}
	}
}

// checkLimit compares the end of the first stable range with exact radii.
func checkLimit(t *testing.T, name string, s *Strategy, radius func(h float64) float64) {
	t.Helper()
	if len(s.Stable) == 0 {
		t.Errorf("%s: nothing is stable: %s", name, s.Why)
		return
	}
	limit := s.Stable[0].To
	if below, above := radius(0.995*limit), radius(1.005*limit); !(below <= 1 && above > 1) {
		t.Errorf("%s: stable to %g s, radii %.6f and %.6f around it", name, limit, below, above)
	}
}

// One state that feeds a component without states: the coupled step is of rank 1, or 0.
func TestOneState(t *testing.T) {
	for _, rate := range []float64{-2, 0.5} {
		if rate > 0 && !long.On {
			continue
		}
		gain := mastertest.NewLinear("gain", mastertest.Matrices{D: [][]float64{{0.25}}}, nil)
		sys := analyzetest.Pair(t, analyzetest.Lag("lag", rate, 1, 1), gain)
		for _, s := range analyse(t, sys, Options{Step: 0.01, Stop: 1, Order: 2, Error: 0.01}).Strategies {
			if want := math.Exp((rate + 0.25) * 0.01); s.Why != "" || math.Abs(s.Now-want) > 1e-3 {
				t.Errorf("%s, order %d: radius %.6f, want %.6f; %s", s.Preset, s.Order, s.Now, want, s.Why)
			}
		}
	}
}

// Of an unstable coupling, the connections whose gain makes it unstable are listed first.
func TestNamesConnection(t *testing.T) {
	for _, n := range []int{6, 30} {
		if n > 6 && !long.On {
			continue
		}
		const stiff = 3 // the pair 3, 4
		var subs []master.Subsystem
		var links []master.Connection
		name := func(i int) string { return fmt.Sprint("c", i) }
		for i := range n {
			subs = append(subs, mastertest.NewLinear(name(i),
				mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1, 1}}, C: [][]float64{{1}}}, []float64{1}))
			for _, from := range []int{i - 1, i + 1} {
				if from < 0 || from >= n {
					continue
				}
				gain, port := 0.05, map[bool]string{true: "u1", false: "u2"}[from < i]
				if from == stiff && i == stiff+1 {
					gain = 40
				} else if i == stiff && from == stiff+1 {
					gain = -40
				}
				links = append(links, master.Connection{From: master.Endpoint{Subsystem: name(from), Port: "y1"},
					To: master.Endpoint{Subsystem: name(i), Port: port}, Linear: &master.Linear{Gain: gain}})
			}
		}
		sys, err := master.NewSystem(subs, links)
		if err != nil {
			t.Fatal(err)
		}
		s := &analyse(t, sys, Options{Step: 0.05, Stop: 0.05, From: 0.04, To: 0.06}).Strategies[0]
		if s.IsStable() || s.Mode == nil || len(s.Mode.Connections) < 2 {
			t.Fatalf("%d: %+v", n, s)
		}
		for _, c := range s.Mode.Connections[:2] {
			if !strings.HasPrefix(c.Name, "c3.y1 -> c4.") && !strings.HasPrefix(c.Name, "c4.y1 -> c3.") {
				t.Errorf("%d components: %+v", n, s.Mode.Connections)
			}
		}
	}
}

// lagLoop is a loop of two lags x' = −x + b u, y = x, with a gain of g around it.
func lagLoop(t *testing.T, g, x0 float64) *master.System {
	t.Helper()
	return analyzetest.Pair(t, analyzetest.Lag("one", -1, 1, x0), analyzetest.Lag("two", -1, g, 0))
}

// With a gain of 1 around a loop an eigenvalue is 1 at every step and in every strategy: the radius
// is not smaller, and the radius of all other motions is reported separately.
func TestLasts(t *testing.T) {
	for g, want := range map[float64]float64{0.9: math.Exp((math.Sqrt(0.9) - 1) * 0.01), 1: 1, 1.02: math.Exp((math.Sqrt(1.02) - 1) * 0.01)} {
		if g != 1 && !long.On {
			continue
		}
		r := analyse(t, lagLoop(t, g, 1), Options{Step: 0.01, From: 5e-3, To: 0.02, Stop: 1, Order: 1})
		for _, s := range r.Strategies {
			if math.Abs(s.Now-want) > 1e-4 || g == 1 && math.Abs(s.Now-1) > linear.Marginal {
				t.Errorf("gain %g: %s, order %d: radius %.9g, want %.9g", g, s.Preset, s.Order, s.Now, want)
			}
			for _, at := range s.Points {
				if g == 1 && math.Abs(at.Radius-1) > linear.Marginal {
					t.Errorf("%s, order %d: radius %.9g at %g s", s.Preset, s.Order, at.Radius, at.Step)
				}
			}
			if formed := s.Preset != "model-based-corrector"; formed && s.Lasts != (g == 1) || s.Lasts &&
				math.Abs(s.Besides-math.Exp(-0.02)) > 3e-4 {
				t.Errorf("gain %g: %s, order %d: lasts %t besides %.9g", g, s.Preset, s.Order, s.Lasts, s.Besides)
			}
		}
	}
}

// The motion of a component that nothing feeds is part of the radius, whatever the strategy.
func TestFreeMotion(t *testing.T) {
	const H = 0.02
	for rate, want := range map[float64]float64{-0.15: math.Exp(-0.1 * H), -0.05: math.Exp(-0.05 * H), 0: 1, 0.3: math.Exp(0.3 * H)} {
		if rate != 0 && rate != 0.3 && !long.On {
			continue
		}
		r := analyse(t, driven(t, rate, plain), Options{Step: H, Stop: 5, From: H / 2, To: 2 * H, Order: 1, Error: 0.01})
		for _, s := range r.Strategies {
			if math.Abs(s.Now-want) > 1e-5 || s.Lasts != (rate == 0) || s.Lasts && math.Abs(s.Besides-math.Exp(-0.1*H)) > 1e-5 {
				t.Errorf("%g: %s of order %d: radius %.8f, want %.8f; lasts %t besides %.8f", rate, s.Preset, s.Order, s.Now, want, s.Lasts, s.Besides)
			}
			if grows := rate > 0; (len(s.Stable) == 0) != grows || rate > -0.1 && rate != 0 && s.Mode.Outputs[0].Share == 0 {
				t.Errorf("%g: %s of order %d: stable %v, %v", rate, s.Preset, s.Order, s.Stable, s.Mode.Outputs)
			}
		}
		if r.Subsystems[0].States != 2 || (len(r.Alone) == 1) != (rate > 0) || (r.Whole != nil) != (rate > 0) {
			t.Errorf("%g: %d states, alone %v, whole %v", rate, r.Subsystems[0].States, r.Alone, r.Whole)
		}
	}
}

// A radius at the limit is marked as such, as are inexact ones there; the operating point is a communication point.
func TestLimit(t *testing.T) {
	for _, damped := range []bool{true, false} {
		o, H := exact.DefaultHaid(), 1e-4
		if !damped {
			H = 2e-6
			o.D1, o.D2, o.DK = 0, 0, 0
		}
		r := analyse(t, analyzetest.Haid(t, o, nil), Options{Step: H, From: H / 2, To: 2 * H, At: 2.4 * H})
		for _, s := range r.Strategies {
			hidden := s.Preset == "model-based-corrector"
			if s.Preset == "implicit" && s.AtLimit() == damped {
				t.Errorf("damped %t: %s: at the limit %t, radius %.9f", damped, s.Preset, s.AtLimit(), s.Now)
			}
			if inexact := strings.Contains(s.Untold, "hardly damped"); inexact != (hidden && !damped) {
				t.Errorf("damped %t: %s: %q", damped, s.Preset, s.Untold)
			}
		}
		if want := fmt.Sprintf("%.10g", 2.4*H); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], want) || math.Abs(r.At-3*H) > 1e-9*H {
			t.Errorf("%q", r.Notes)
		}
	}
}
