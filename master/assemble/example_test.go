package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// A system of two masses is opened once and runs a thousand times, with another coupling
// spring each time, on all cores. Nothing is written: what the runs give stays in memory.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, err := fmus.WriteSystem(dir, "two-mass-ff") // any .ssp will do; these FMUs need a C compiler
	if err != nil {
		log.Fatal(err)
	}

	model, err := assemble.OpenModel(path, assemble.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	const runs = 1000
	var deviations [runs]float64 // of the frequency, from that of the opposed motion without damping
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < runs; k = int(next.Add(1)) - 1 {
				stiffness := 500 + 5*float64(k) // N/m
				measured, err := frequency(model, stiffness)
				if err != nil {
					log.Fatal(err)
				}
				exact := math.Sqrt(1000+2*stiffness) / (2 * math.Pi) // Hz: 1 kg on 1000 N/m, and twice the coupling
				deviations[k] = math.Abs(measured/exact - 1)
			}
		})
	}
	workers.Wait()

	worst := 0.0
	for _, d := range deviations {
		worst = max(worst, d)
	}
	fmt.Printf("%d runs, each frequency within 0.1 %%: %t\n", runs, worst < 1e-3)
	// Output: 1000 runs, each frequency within 0.1 %: true
}

// frequency runs a system of the model and returns the frequency in Hz of the first mass.
func frequency(model *assemble.Model, stiffness float64) (_ float64, err error) {
	system, err := model.Instantiate(
		assemble.Real("coupling.c_c", stiffness), assemble.Real("coupling.d_c", 0),
		assemble.Real("mass1.x0", 1), assemble.Real("mass1.d", 0),
		assemble.Real("mass2.x0", -1), assemble.Real("mass2.d", 0),
	)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	choice, err := algorithms.New("explicit", map[string]string{"order": "2"})
	if err != nil {
		return 0, err
	}
	var points record.Columns
	run, err := master.NewRun(system.System, choice.Algorithm, master.Options{
		Stop: 0.25, Step: system.Step.Value, Recorders: []master.Recorder{&points},
	})
	if err != nil {
		return 0, err
	}
	if _, err := run.Run(context.Background()); err != nil {
		return 0, err
	}
	x, err := points.Real("mass1.x")
	if err != nil {
		return 0, err
	}
	var zeros []float64 // s
	t := points.Time()
	for i := 1; i < len(x); i++ {
		if (x[i-1] > 0) != (x[i] > 0) {
			zeros = append(zeros, t[i]-(t[i]-t[i-1])*x[i]/(x[i]-x[i-1]))
		}
	}
	half := float64(len(zeros) - 1) // periods
	return half / 2 / (zeros[len(zeros)-1] - zeros[0]), nil
}
