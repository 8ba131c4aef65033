// Program algorithm couples two subsystems by an algorithm of its own: the Jacobi scheme
// whose inputs are held at the mean of the last two communication points.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
)

// smoothed is an algorithm. What repeats steps or chooses their size implements more of
// the interfaces beside master.Algorithm.
type smoothed struct {
	all    *master.StepSet
	before []float64 // L y + b at the communication point before the last
}

func (s *smoothed) Check(*master.System) error { return nil }

func (s *smoothed) Init(x *master.Exec, _ float64) (err error) {
	members := make([]int, len(x.Sys.Subsystems))
	for i := range members {
		members[i] = i
	}
	s.before = append([]float64(nil), x.W...)
	s.all, err = x.NewStepSet(members)
	return err
}

func (s *smoothed) Attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN()}
	for k := range x.U {
		x.U[k] = (x.W[k] + s.before[k]) / 2
	}
	copy(s.before, x.W)
	for i := range x.Sys.Subsystems {
		if err := x.Stage(i); err != nil {
			return trial, err
		}
		if err := x.StageDiscrete(i, t); err != nil {
			return trial, err
		}
	}
	return trial, x.StepAll(ctx, s.all, t, H)
}

func (s *smoothed) Accept(*master.Exec, float64) {}
func (s *smoothed) Reject(_, _ float64)          {}

func main() {
	decay := func(name string, x0 float64) master.Subsystem {
		return native.New(native.Model[float64]{
			Name: name, Inputs: []string{"u"}, Outputs: []string{"x"}, Start: x0,
			Step:   func(x *float64, _, H float64, u []float64) error { *x = u[0] + (*x-u[0])*math.Exp(-H); return nil },
			Output: func(x *float64, y []float64) { y[0] = *x },
		})
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{decay("left", 1), decay("right", 0)}, []master.Connection{
		{From: at("left", "x"), To: at("right", "u")}, {From: at("right", "x"), To: at("left", "u")},
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := master.NewRun(sys, &smoothed{}, master.Options{Stop: 10, Step: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	left, _ := run.Real("left.x")
	fmt.Printf("left.x = %.4f\n", left)
}
