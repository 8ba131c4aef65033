package algorithms

import (
	"math"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// The errors of a component that feeds no other are judged too: of an oscillation into a lag, whose outputs
// nobody takes, by the exact solution.
func TestErrorsOfSinks(t *testing.T) {
	const omega, lag, stop = 10.0, 20.0, 2.0
	for _, preset := range []string{"ex-local", "ex-milne", "im-milne", "richardson"} {
		source := mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {-omega * omega, 0}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
		sink := mastertest.NewLinear("sink", mastertest.Matrices{A: [][]float64{{-lag}}, B: [][]float64{{lag}}, C: [][]float64{{1}}}, []float64{0})
		sys, err := master.NewSystem([]master.Subsystem{source, sink}, []master.Connection{{From: master.Endpoint{Subsystem: "source", Port: "y1"}, To: master.Endpoint{Subsystem: "sink", Port: "u1"}}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(preset, nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: stop, Step: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for more := true; more; {
			if more, err = run.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			at := run.Point()
			// x' = −a x + a cos ωt from 0.
			a, w := lag, omega
			exact := a / (a*a + w*w) * (a*math.Cos(w*at.T) + w*math.Sin(w*at.T) - a*math.Exp(-a*at.T))
			worst = max(worst, math.Abs(at.Y[1]-exact))
		}
		result, err := run.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !(worst < 2e-3) || len(result.Monitored) != 2 {
			t.Errorf("%s: off by %.2g in %d steps, judged by %q", preset, worst, result.Accepted, result.Monitored)
		}
		t.Logf("%s: off by %.2g in %d steps", preset, worst, result.Accepted)
	}
}
