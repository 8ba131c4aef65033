package analyze

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// quarterCar is sadjina's quarter car in reticulation B, of exact subsystems: the chassis with spring and damper takes
// the velocity of the wheel and gives the force. It is at rest, or
// the road has jumped; load is what the spring carries at rest, in N.
func quarterCar(t testing.TB, jumps bool, load float64) (*master.System, []algorithms.Bond) {
	t.Helper()
	q := exact.LinearQuarterCar()
	lift := 0.0
	if jumps {
		lift = -q.ZRoad
	}
	chassis := mastertest.NewLinear("chassis", mastertest.Matrices{ // z_c, v_c, z_w, load
		A: [][]float64{{0, 1, 0, 0}, {-q.Kc / q.Mc, -q.Dc / q.Mc, q.Kc / q.Mc, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
		B: [][]float64{{0}, {q.Dc / q.Mc}, {1}, {0}},
		C: [][]float64{{q.Kc, q.Dc, -q.Kc, 1}}, D: [][]float64{{-q.Dc}},
	}, []float64{0, 0, 0, load})
	wheel := mastertest.NewLinear("wheel", mastertest.Matrices{ // z_w less that of the road, v_w, load
		A: [][]float64{{0, 1, 0}, {-q.Kw / q.Mw, 0, -1 / q.Mw}, {0, 0, 0}}, B: [][]float64{{0}, {1 / q.Mw}, {0}}, C: [][]float64{{0, 1, 0}},
	}, []float64{lift, 0, load})
	sys := analyzetest.Pair(t, chassis, wheel)
	return sys, []algorithms.Bond{{Name: "axle", Pairs: []algorithms.Pair{{Effort: "chassis.y1", Flow: "wheel.y1"}}}}
}

// correctedCar is the real strategy on the quarter car.
func correctedCar(t *testing.T, order int, load float64) (*master.System, master.Algorithm) {
	t.Helper()
	sys, bonds := quarterCar(t, true, load)
	alg, err := (&twin.Scheme{Preset: twin.EnergyCorrection, Order: order, Bonds: bonds}).Algorithm()
	if err != nil {
		t.Fatal(err)
	}
	return sys, alg
}

// The errors that are forecast with energy correction are those of real runs against the exact solution, within a
// factor of 3, with a load at rest too: it takes part in the power.
func testCorrectedForecast(t *testing.T) {
	for _, load := range []float64{0, 4000} {
		for order := range 2 {
			if !long.On && (load == 0 || order == 0) {
				continue
			}
			sys, bonds := quarterCar(t, true, load)
			r, err := Run(t.Context(), sys, Options{Step: 2e-3, From: 1e-3, To: 4e-3, Order: order, Stop: 2, Error: 0.01, Bonds: bonds})
			if err != nil {
				t.Fatal(err)
			}
			s := r.strategyOf(twin.EnergyCorrection, order)
			if len(s.Forecasts) != len(forecast.Candidates) {
				t.Fatalf("load %g N, order %d: %+v, %s", load, order, s.Forecasts, r.WhyNoError)
			}
			for _, f := range s.Forecasts {
				got := carError(t, order, load, f.Step, r.Horizon)
				t.Logf("load %g N, order %d, %g s: error %.3g, forecast %.3g of %s", load, order, f.Step, got, f.Error, f.Of)
				if !(got < 3*f.Error && f.Error < 3*got) {
					t.Errorf("load %g N, order %d, %g s: error %.3g, forecast %.3g of %s", load, order, f.Step, got, f.Error, f.Of)
				}
			}
		}
	}
}

// carError returns the error of force and velocity of the wheel, as a forecast defines it.
func carError(t *testing.T, order int, load, h, horizon float64) float64 {
	t.Helper()
	sys, alg := correctedCar(t, order, load)
	n := int(math.Round(horizon / h))
	run, err := master.NewRun(sys, alg, master.Options{Stop: (float64(n) + 0.5) * h, Step: h, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := exact.LinearQuarterCar()
	var times []float64
	for k := range n + 1 {
		times = append(times, float64(k)*h)
	}
	x, err := q.Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	var off, mean, square [2]float64
	for k := range x {
		want := [2]float64{q.Force(x[k]) + load, x[k][3]}
		for o, v := range want {
			d := run.Point().Y[o] - v
			off[o] += d * d / float64(n+1)
			mean[o] += v / float64(n+1)
			square[o] += v * v / float64(n+1)
		}
		if k < n {
			if _, err := run.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	worst := 0.0
	for o := range off {
		worst = max(worst, math.Sqrt(off[o]/(square[o]-mean[o]*mean[o])))
	}
	return worst
}
