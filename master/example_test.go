package master_test

import (
	"context"
	"fmt"
	"log"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
)

// A tank and its controller, stepped by the program itself, which opens the drain halfway.
func Example() {
	type water struct{ Level float64 }
	tank := native.New(native.Model[water]{
		Name: "tank", Inputs: []string{"inflow", "drain"}, Outputs: []string{"level"},
		Step:   func(s *water, _, H float64, u []float64) error { s.Level += H * (u[0] - u[1]*s.Level); return nil },
		Output: func(s *water, y []float64) { y[0] = s.Level },
	})
	controller := native.Func("controller", []string{"level"}, []string{"inflow"},
		func(_ float64, u, y []float64) { y[0] = 3 * (1 - u[0]) })

	system, err := master.NewSystem([]master.Subsystem{tank, controller}, []master.Connection{
		master.Connect("tank.level", "controller.level"), master.Connect("controller.inflow", "tank.inflow"),
	})
	if err != nil {
		log.Fatal(err)
	}
	choice, err := algorithms.New("explicit", nil)
	if err != nil {
		log.Fatal(err)
	}
	run, err := master.NewRun(system, choice.Algorithm, master.Options{Stop: 20, Step: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if err := stepped(run); err != nil {
		log.Fatal(err)
	}
	result, err := run.Close()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status)
	// Output:
	// at 10 s the level is 1.00
	// at 20 s the level is 0.75
	// complete
}

// stepped makes the steps of a run one by one. Run.Run does all of this, and Close.
func stepped(run *master.Run) error {
	if err := run.Start(context.Background()); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = run.Step(context.Background()); err != nil {
			return err
		}
		if n := run.Steps(); n%1000 == 0 {
			level, err := run.Real("tank.level")
			if err != nil {
				return err
			}
			fmt.Printf("at %.0f s the level is %.2f\n", run.Time(), level)
			if err := run.SetReal("tank.drain", 1); err != nil {
				return err
			}
		}
	}
	return nil
}
