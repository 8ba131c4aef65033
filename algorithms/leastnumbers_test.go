package algorithms

import (
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// Of inputs near the least numbers differences are taken as of those that are 0: after many subsystems in
// a chain there is that little left.
func TestImplicitNearLeastNumbers(t *testing.T) {
	one := func(name string, x0 float64) master.Subsystem {
		return mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{x0})
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{one("a", 1e-320), one("b", 0)}, []master.Connection{
		{From: at("a", "y1"), To: at("b", "u1")}, {From: at("b", "y1"), To: at("a", "u1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	choice, err := New("implicit", map[string]string{"order": "1"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 0.1, Step: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = run.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if result, err := run.Close(); err != nil || result.Accepted != 10 {
		t.Errorf("%d steps, %v", result.Accepted, err)
	}
}
