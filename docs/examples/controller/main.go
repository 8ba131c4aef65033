// Program controller couples two FMUs and a controller in Go: a quarter car whose
// suspension a skyhook damper assists.
//
//	controller chassis.fmu wheel.fmu
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/master/record"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("name the FMUs: controller chassis.fmu wheel.fmu")
	}
	chassis, err := fmuslave.Open("chassis", os.Args[1])
	check(err)
	wheel, err := fmuslave.Open("wheel", os.Args[2])
	check(err)
	skyhook := native.Func("skyhook", []string{"F", "v"}, []string{"F_c"}, func(_ float64, u, y []float64) { y[0] = u[0] + 500*u[1] })
	sys, err := master.NewSystem([]master.Subsystem{chassis, wheel, skyhook}, []master.Connection{
		master.Connect("wheel.F_c", "skyhook.F"), master.Connect("chassis.v_c", "skyhook.v"),
		master.Connect("skyhook.F_c", "chassis.F_c"), master.Connect("chassis.v_c", "wheel.v_c"),
	})
	check(err)
	choice, err := algorithms.New("explicit", map[string]string{"order": "1"})
	check(err)
	csv := record.NewTable("controller.csv", record.Options{})
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 4, Step: 1e-3, Recorders: []master.Recorder{csv}})
	check(err)
	result, err := run.Run(context.Background())
	check(err)
	z, err := run.Real("chassis.z_c")
	check(err)
	fmt.Printf("%s after %d steps: chassis.z_c = %.4f m\n", result.Status, result.Accepted, z)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
