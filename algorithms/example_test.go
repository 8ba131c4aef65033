package algorithms_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// lag is a subsystem of one's own: x' = u − x, with u held over a step.
type lag struct {
	info master.Info
	x, u float64
}

func newLag(name string, x float64) *lag {
	return &lag{info: master.Info{Name: name, In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "x"}},
		Caps: master.Caps{VariableStep: true}}, x: x}
}

func (l *lag) Info() *master.Info          { return &l.info }
func (l *lag) SetInputs(u []float64) error { l.u = u[0]; return nil }
func (l *lag) Outputs(y []float64) error   { y[0] = l.x; return nil }
func (l *lag) Step(_ context.Context, t, H float64) (float64, error) {
	l.x = l.u + (l.x-l.u)*math.Exp(-H)
	return t + H, nil
}

// Two subsystems in Go, each following the other.
func Example() {
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem(
		[]master.Subsystem{newLag("left", 1), newLag("right", 0)},
		[]master.Connection{{From: at("left", "x"), To: at("right", "u")}, {From: at("right", "x"), To: at("left", "u")}})
	if err != nil {
		log.Fatal(err)
	}
	choice, err := algorithms.New("explicit", map[string]string{"order": "1"})
	if err != nil {
		log.Fatal(err)
	}
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 5, Step: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	result, err := run.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	left, _ := run.Real("left.x")
	fmt.Printf("%s after %d steps: left.x = %.3f\n", result.Status, result.Accepted, left)
	// Output: complete after 500 steps: left.x = 0.500
}
