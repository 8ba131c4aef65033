// Program algorithm couples two subsystems by an algorithm of its own: the Jacobi scheme
// whose inputs are held at the mean of the last two communication points.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
)

// smoothed is an algorithm. What repeats steps or chooses their size implements more of
// the interfaces beside master.Algorithm.
type smoothed struct {
	all         *master.StepSet
	last, newer []float64 // L y + b at the last two communication points
}

func (s *smoothed) Check(*master.System) error { return nil }

func (s *smoothed) Init(x *master.Exec, _ float64) (err error) {
	s.last, s.newer = slices.Clone(x.W), slices.Clone(x.W)
	s.all, err = x.NewStepSet(x.Sys.Stepped)
	return err
}

// Attempt changes nothing that a repetition of the step would see: only Accept does.
func (s *smoothed) Attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN()}
	for k := range x.U {
		x.U[k] = (s.last[k] + s.newer[k]) / 2
	}
	for _, i := range x.Sys.Stepped {
		if err := x.StageDiscrete(i, t); err != nil {
			return trial, err
		}
	}
	if err := x.StepAll(ctx, s.all, t, H); err != nil {
		return trial, err
	}
	for _, i := range x.Sys.Late { // stateless ones get the new values of their sources
		x.Couple(i, t+H, x.U)
		if err := errors.Join(x.Stage(i), x.StageDiscrete(i, t+H)); err != nil {
			return trial, err
		}
		if err := x.Step(ctx, i, t, H); err != nil {
			return trial, err
		}
	}
	return trial, nil
}

func (s *smoothed) Accept(x *master.Exec, _ float64) {
	s.last, s.newer = s.newer, s.last
	copy(s.newer, x.W)
}

func (s *smoothed) Reject(_, _ float64) {}

func main() {
	decay := func(name string, x0 float64) master.Subsystem {
		return native.New(native.Model[float64]{
			Name: name, Inputs: []string{"u"}, Outputs: []string{"x"}, Start: x0,
			Step:   func(x *float64, _, H float64, u []float64) error { *x = u[0] + (*x-u[0])*math.Exp(-H); return nil },
			Output: func(x *float64, y []float64) { y[0] = *x },
		})
	}
	sys, err := master.NewSystem([]master.Subsystem{decay("left", 1), decay("right", 0)}, []master.Connection{
		master.Connect("left.x", "right.u"), master.Connect("right.x", "left.u"),
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
