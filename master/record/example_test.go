package record_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/master/record"
)

// The points of a run go to a file, and those of one variable also to memory.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ramp := native.Func("ramp", nil, []string{"height", "slope"}, func(t float64, _, y []float64) { y[0], y[1] = 2*t, 2 })
	system, err := master.NewSystem([]master.Subsystem{ramp}, nil)
	if err != nil {
		log.Fatal(err)
	}
	choice, err := algorithms.New("explicit", nil)
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "results.csv") // .parquet writes Parquet
	file := record.NewTable(path, record.Options{})
	only, err := record.ParseSelection([]string{"*.height"})
	if err != nil {
		log.Fatal(err)
	}
	memory := &record.Columns{Select: only}
	run, err := master.NewRun(system, choice.Algorithm, master.Options{
		Stop: 1, Step: 0.5, Recorders: []master.Recorder{file, memory},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Run(context.Background()); err != nil {
		log.Fatal(err)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	height, err := memory.Real("ramp.height")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.Names(), height)
	// Output:
	// time,ramp.height,ramp.slope
	// 0,0,2
	// 0.5,1,2
	// 1,2,2
	// [ramp.height] [0 1 2]
}
