// Program supervised runs two FMUs with a controller in Go several times in an engine, a child process
// that is replaced if an FMU ends it. Each run keeps its results.
//
//	supervised chassis.fmu wheel.fmu
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
)

func main() {
	// The engine is this program in another process; Main does not return there.
	supervise.Main(supervise.Config{Builders: map[string]simulate.Builder{"skyhook": skyhook}})
	if len(os.Args) != 3 {
		log.Fatal("name the FMUs: supervised chassis.fmu wheel.fmu")
	}
	engine := supervise.New(supervise.Options{})
	defer engine.Close()
	for _, damping := range []string{"0", "500", "1000"} {
		request := simulate.Request{
			Builder: "skyhook", Values: map[string]string{"chassis": os.Args[1], "wheel": os.Args[2], "damping": damping},
			Start: simulate.Number(0), Stop: simulate.Number(4), Step: simulate.Number(1e-3),
			Algorithm: "explicit", Params: map[string]string{"order": "1"}, Output: "damping-" + damping + ".csv",
		}
		outcome, err := engine.Run(context.Background(), request, nil)
		var death *supervise.Death
		switch {
		case errors.As(err, &death):
			fmt.Printf("damping %s: %d rows are left: %v\n", damping, outcome.Rows, err)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("damping %s: %s, %d rows\n", damping, outcome.Manifest.Outcome, outcome.Rows)
		}
	}
}

// skyhook builds the system, in the engine.
func skyhook(_ context.Context, values map[string]string) (*master.System, func() error, error) {
	damping, err := strconv.ParseFloat(values["damping"], 64)
	if err != nil {
		return nil, nil, err
	}
	chassis, err := fmuslave.Open("chassis", values["chassis"])
	if err != nil {
		return nil, nil, err
	}
	wheel, err := fmuslave.Open("wheel", values["wheel"])
	if err != nil {
		return nil, nil, err
	}
	controller := native.Func("skyhook", []string{"F", "v"}, []string{"F_c"}, func(_ float64, u, y []float64) { y[0] = u[0] + damping*u[1] })
	sys, err := master.NewSystem([]master.Subsystem{chassis, wheel, controller}, []master.Connection{
		master.Connect("wheel.F_c", "skyhook.F"), master.Connect("chassis.v_c", "skyhook.v"),
		master.Connect("skyhook.F_c", "chassis.F_c"), master.Connect("chassis.v_c", "wheel.v_c"),
	})
	return sys, nil, err
}
