package analyze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// powered has a second output that is a nonlinear function of the first.
type powered struct{ *mastertest.Linear }

func (s powered) Outputs(y []float64) error {
	err := s.Linear.Outputs(y)
	y[1] = y[0] + 0.3*y[0]*y[0]
	return err
}

// driven is an oscillator without inputs that drives another one, close to resonance, whose outputs feed no input.
func driven(t *testing.T, rate float64, wrap func(*mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	from := mastertest.NewLinear("from", mastertest.Matrices{A: [][]float64{{0, 1}, {-100, 2 * rate}}, B: [][]float64{{}, {}},
		C: [][]float64{{1, 0}}}, []float64{0, 10})
	to := mastertest.NewLinear("to", mastertest.Matrices{A: [][]float64{{0, 1}, {-90, -0.2}}, B: [][]float64{{0}, {90}},
		C: [][]float64{{1, 0}, {0, 1}}}, []float64{0, 0})
	return analyzetest.System(t, []master.Subsystem{from, wrap(to)}, "from.y1 -> to.u1")
}

func plain(s *mastertest.Linear) master.Subsystem { return s }

// algorithmOf returns the algorithm of a strategy.
func algorithmOf(t *testing.T, s twin.Scheme) master.Algorithm {
	t.Helper()
	alg, err := s.Algorithm()
	if err != nil {
		t.Fatal(err)
	}
	return alg
}

// The error is that of the output where it is largest, which may feed no input: a real run has the same.
func testErrorOfOutputsThatFeedNobody(t *testing.T) {
	const stop, H, finer = 10, 0.02, 100
	r := analyse(t, driven(t, -0.15, plain), Options{Step: H, Stop: stop, Order: 2, Error: 0.01})
	fine := course(t, driven(t, -0.15, plain), algorithmOf(t, twin.Scheme{Preset: twin.Explicit, Order: 2}), H/finer, stop, finer)
	looked := 0
	for order := range 3 {
		for _, f := range r.strategyOf(twin.Explicit, order).Forecasts {
			if f.Step != H {
				continue
			}
			looked++
			y := course(t, driven(t, -0.15, plain), algorithmOf(t, twin.Scheme{Preset: twin.Explicit, Order: order}), H, stop, 1)
			if want, _ := relativeError(y, fine); !(math.Abs(f.Error-want) <= 0.05*want) || !strings.HasPrefix(f.Of, "to.") {
				t.Errorf("order %d: off by %.4g of %s, a run by %.4g", order, f.Error, f.Of, want)
			}
		}
	}
	if looked != 3 || r.Promised == nil || r.Promised.Error > 0.01 {
		t.Errorf("%d looked at, promised %+v", looked, r.Promised)
	}
}

// A nonlinear output that feeds no input is left out of the errors, with a note.
func TestErrorBesidesPowers(t *testing.T) {
	sys := driven(t, -0.15, func(s *mastertest.Linear) master.Subsystem { return powered{s} })
	r := analyse(t, sys, Options{Step: 0.02, Stop: 10, Order: 1, Error: 0.01})
	if r.Large != "" || r.Promised == nil || r.Promised.Of != "to.y1" || !strings.Contains(strings.Join(r.Notes, "\n"), "to.y2") {
		t.Errorf("%q, %q, promised %+v, %q; %q", r.Large, r.WhyNoError, r.Promised, r.Notes, r.Strategies[0].Why)
	}
}

// quarterCar is sadjina's quarter car in reticulation B, of exact subsystems, after a jump of the road: the chassis
// with spring and damper takes the velocity of the wheel and returns the force. load is the force at rest, in N.
func quarterCar(t testing.TB, load float64) (*master.System, []algorithms.Bond) {
	t.Helper()
	q := exact.LinearQuarterCar()
	chassis := mastertest.NewLinear("chassis", mastertest.Matrices{ // z_c, v_c, z_w, load
		A: [][]float64{{0, 1, 0, 0}, {-q.Kc / q.Mc, -q.Dc / q.Mc, q.Kc / q.Mc, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
		B: [][]float64{{0}, {q.Dc / q.Mc}, {1}, {0}},
		C: [][]float64{{q.Kc, q.Dc, -q.Kc, 1}}, D: [][]float64{{-q.Dc}},
	}, []float64{0, 0, 0, load})
	wheel := mastertest.NewLinear("wheel", mastertest.Matrices{ // z_w less that of the road, v_w, load
		A: [][]float64{{0, 1, 0}, {-q.Kw / q.Mw, 0, -1 / q.Mw}, {0, 0, 0}}, B: [][]float64{{0}, {1 / q.Mw}, {0}}, C: [][]float64{{0, 1, 0}},
	}, []float64{-q.ZRoad, 0, load})
	return analyzetest.Pair(t, chassis, wheel),
		[]algorithms.Bond{{Name: "axle", Pairs: []algorithms.Pair{{Effort: "chassis.y1", Flow: "wheel.y1"}}}}
}

// The errors that are forecast with energy correction are those of real runs against the exact solution, within a
// factor of 3, also with a load at rest, which is part of the power.
func testCorrectedForecast(t *testing.T) {
	for _, load := range []float64{0, 4000} {
		for order := range 2 {
			if !long.On && (load == 0 || order == 0) {
				continue
			}
			sys, bonds := quarterCar(t, load)
			r := analyse(t, sys, Options{Step: 2e-3, From: 1e-3, To: 4e-3, Order: order, Stop: 2, Error: 0.01, Bonds: bonds})
			s := r.strategyOf(twin.EnergyCorrection, order)
			if len(s.Forecasts) != len(forecast.Candidates) {
				t.Fatalf("load %g N, order %d: %+v, %s", load, order, s.Forecasts, r.WhyNoError)
			}
			for _, f := range s.Forecasts {
				var times []float64
				for k := range int(math.Round(r.Horizon/f.Step)) + 1 {
					times = append(times, float64(k)*f.Step)
				}
				q := exact.LinearQuarterCar()
				x, err := q.Solve(times)
				if err != nil {
					t.Fatal(err)
				}
				var want [][]float64
				for _, x := range x {
					want = append(want, []float64{q.Force(x) + load, x[3]})
				}
				sys, bonds := quarterCar(t, load)
				alg := algorithmOf(t, twin.Scheme{Preset: twin.EnergyCorrection, Order: order, Bonds: bonds})
				got, _ := relativeError(course(t, sys, alg, f.Step, r.Horizon, 1), want)
				t.Logf("load %g N, order %d, %g s: error %.3g, forecast %.3g of %s", load, order, f.Step, got, f.Error, f.Of)
				if !(got < 3*f.Error && f.Error < 3*got) {
					t.Errorf("load %g N, order %d, %g s: error %.3g, forecast %.3g of %s", load, order, f.Step, got, f.Error, f.Of)
				}
			}
		}
	}
}

// localOf returns the local error of haid's oscillator by its propagation matrix, of the output where
// it is largest, and that output.
func localOf(o exact.Haid, H float64, k, steps int) (worst float64, of string) {
	phi := exact.Corrected{Haid: o, H: H, P: k}.Propagation()
	size, _ := phi.Dims()
	var got, want [][]float64
	for i := k; i < steps; i++ {
		t := float64(i) * H
		z := mat.NewVecDense(size, nil)
		for n, v := range o.States(t) {
			z.SetVec(n, v)
		}
		for j := range k + 1 {
			for n, v := range o.Outputs(t - float64(j)*H) {
				z.SetVec(4+3*j+n, v)
			}
		}
		var next mat.VecDense
		next.MulVec(phi, z)
		y := o.Outputs(t + H)
		got, want = append(got, next.RawVector().Data[4:7]), append(want, y[:])
	}
	worst, at := relativeError(got, want)
	return worst, []string{"one.y1", "one.y2", "two.y1"}[at]
}

// The local errors are those of the coupling, by the independent propagation matrix, and grow with the power of the
// step that belongs to the order.
func TestLocalErrors(t *testing.T) {
	const H = 5e-5
	stop, highest := 0.1, 1
	if long.On {
		stop, highest = 1, 2
	}
	o := exact.DefaultHaid()
	o.Start = [4]float64{1e-3, 1, -2e-3, 0.3}
	for name, caps := range map[string]func(*master.Caps){
		"derivatives": nil,
		"held":        func(c *master.Caps) { c.InputDerivatives = false },
	} {
		if name == "held" && !long.On {
			continue
		}
		r := analyse(t, analyzetest.Haid(t, o, analyzetest.With(caps)), Options{Step: H, Order: highest, Stop: stop, From: H, To: 2 * H})
		for _, s := range r.Strategies {
			if corrector := s.Preset == twin.Corrector; (s.Local == nil) != corrector || (s.WhyNoLocal == "") == corrector {
				t.Errorf("%s: %s, order %d: %+v, %s", name, s.Preset, s.Order, s.Local, s.WhyNoLocal)
				continue
			}
			if s.Preset != twin.Explicit {
				continue
			}
			steps := int(math.Round(r.Horizon / H))
			if want, of := localOf(o, H, s.Order, steps); math.Abs(s.Local.Error-want) > 0.2*want || s.Local.Of != of {
				t.Errorf("%s: order %d: %+v, want %g of %s", name, s.Order, *s.Local, want, of)
			}
			half, _ := localOf(o, H/2, s.Order, steps)
			twice, _ := localOf(o, 2*H, s.Order, steps)
			if slope := math.Log(twice/half) / math.Log(4); math.Abs(s.Local.Growth-slope) > 0.1 || math.Abs(slope-float64(s.Order)-1) > 0.5 {
				t.Errorf("%s: order %d: grows by the power %.3f, want %.3f", name, s.Order, s.Local.Growth, slope)
			}
		}
	}
}

// Errors are forecast for a motion that decays over many subsystems to less than rounding; outputs that hardly move
// do not count in them.
func TestRingForecast(t *testing.T) {
	const n = 60
	var subs []master.Subsystem
	var links []string
	for i := range n {
		sub := analyzetest.Lag(fmt.Sprint("c", i), -1, 1, float64(max(1-i, 0)))
		sub.Info().Caps.InputDerivatives = false
		subs = append(subs, sub)
		links = append(links, fmt.Sprintf("c%d.y1 -> c%d.u1", i, (i+1)%n))
	}
	r := analyse(t, analyzetest.System(t, subs, links...), Options{Step: 1e-2, Stop: 1, From: 5e-3, To: 2e-2, Error: 0.01})
	if r.WhyNoError != "" || r.Promised == nil {
		t.Fatalf("%s; %s", r.WhyNoError, r.Why)
	}
	for _, s := range r.Strategies {
		for _, f := range s.Forecasts {
			if f.Step <= 1e-2 && f.Error > 1 && s.Preset != twin.Corrector {
				t.Errorf("%s, %g s: off by %g of %s", s.Preset, f.Step, f.Error, f.Of)
			}
		}
	}
}

// No errors are forecast for a system at rest, and none decide what is recommended.
func TestAtRest(t *testing.T) {
	r := analyse(t, lagLoop(t, -50, 0), Options{Step: 0.01, Stop: 5, Order: 1, Error: 0.01})
	if !strings.Contains(r.WhyNoError, "moves from here on") || r.Promised != nil || r.Recommended < 0 || r.StepToTake != 0.01 {
		t.Errorf("%q, promised %+v, recommended %d at %g s", r.WhyNoError, r.Promised, r.Recommended, r.StepToTake)
	}
	for _, s := range r.Strategies {
		if s.Forecasts != nil || s.Local != nil || len(s.Stable) == 0 {
			t.Errorf("%s: %+v, %+v, %v", s.Preset, s.Forecasts, s.Local, s.Stable)
		}
	}
}
