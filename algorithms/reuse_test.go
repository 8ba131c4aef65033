package algorithms_test

import (
	"reflect"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// An algorithm can be reused after a run: every preset then gives the points, counters and reports
// of a new one.
func TestReuse(t *testing.T) {
	type ended struct {
		T      []float64
		U, Y   [][]float64
		Result master.Result
	}
	run := func(alg master.Algorithm, H float64) ended {
		t.Helper()
		subs := mastertest.Oscillator()
		sys := systemOf(t, []master.Subsystem{subs[0], subs[1]}, mastertest.OscillatorConnections())
		result, m := simulate(t, sys, alg, master.Options{Stop: 0.5, Step: H})
		clearTimes(&result)
		return ended{m.T, m.U, m.Y, result}
	}
	for _, p := range algorithms.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			fresh := func() master.Algorithm {
				return chosen(t, p.Name, nil, algorithms.With{Bonds: []algorithms.Bond{{Name: "joint", Pairs: []algorithms.Pair{{Effort: "second.y1", Flow: "first.y2"}}}}}).Algorithm
			}
			used := fresh()
			run(used, 0.004)
			if got, want := run(used, 0.01), run(fresh(), 0.01); !reflect.DeepEqual(got, want) {
				t.Errorf("used again it ends with\n%+v, and a new one with\n%+v", got.Result, want.Result)
			}
		})
	}
}
