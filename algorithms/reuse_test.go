package algorithms_test

import (
	"reflect"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// An algorithm whose run has ended is as new: every preset gives another run, of a system of
// the same kind with other values, what a new one gives: points, counters and reports.
func TestReuse(t *testing.T) {
	type ended struct {
		T      []float64
		U, Y   [][]float64
		Result master.Result
	}
	run := func(alg master.Algorithm, H float64) ended {
		t.Helper()
		subs := mastertest.Oscillator()
		sys, err := master.NewSystem([]master.Subsystem{subs[0], subs[1]}, mastertest.OscillatorConnections())
		if err != nil {
			t.Fatal(err)
		}
		m := &mastertest.Memory{}
		r, err := master.NewRun(sys, alg, master.Options{Stop: 0.5, Step: H, Recorders: []master.Recorder{m}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result.SubsystemSeconds, result.WallSeconds, result.MasterSeconds = nil, 0, 0
		return ended{m.T, m.U, m.Y, result}
	}
	for _, p := range algorithms.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			fresh := func() master.Algorithm {
				with := algorithms.With{Bonds: []algorithms.Bond{{Name: "joint", Pairs: []algorithms.Pair{{Effort: "second.y1", Flow: "first.y2"}}}}}
				c, err := algorithms.New(p.Name, nil, with)
				if err != nil {
					t.Fatal(err)
				}
				return c.Algorithm
			}
			used := fresh()
			run(used, 0.004)
			if got, want := run(used, 0.01), run(fresh(), 0.01); !reflect.DeepEqual(got, want) {
				t.Errorf("used again it ends with\n%+v, and a new one with\n%+v", got.Result, want.Result)
			}
		})
	}
}
