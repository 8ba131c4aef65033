package simulate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/simulate"
)

// One run of an SSP: results and manifest are files.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	system, err := fmus.WriteSystem(dir, "quarter-car-a") // an SSP of yours
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := simulate.Run(context.Background(), simulate.Request{
		System: system, Stop: simulate.Number(2), Step: simulate.Number(1e-3),
		Algorithm: "explicit", Params: map[string]string{"order": "1"}, Output: filepath.Join(dir, "results.csv"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outcome.Manifest.Outcome, outcome.Rows, "rows")
	// Output: complete 2001 rows
}
