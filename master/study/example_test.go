package study_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/study"
)

// Two masses move against each other, with another coupling spring in each run. The first
// zero of the motion is a quarter of its period. The rows stay in memory.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if _, err := fmus.WriteSystem(dir, "two-mass-ff"); err != nil { // any system will do; these FMUs need a C compiler
		log.Fatal(err)
	}

	plan, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(`
system: two-mass-ff.ssp # beside study.yaml, which need not exist
run: {stop-time: 0.25, step-size: 1e-3, algorithm: explicit, param: {order: 2}}
vary:
  coupling.c_c: linear(500, 1500, 11) # N/m
  coupling.d_c: [0]
  mass1.d: [0]
  mass2.d: [0]
  mass1.x0: [1]
  mass2.x0: [-1]
collect:
  quarter: crossing(mass1.x, 0, down) # s
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	found, err := carryOut(plan)
	if err != nil {
		log.Fatal(err)
	}

	worst := 0.0
	for _, row := range found.Rows {
		stiffness, err := strconv.ParseFloat(row.Values[0], 64)
		if err != nil {
			log.Fatal(err)
		}
		exact := math.Pi / 2 / math.Sqrt(1000+2*stiffness) // 1 kg on 1000 N/m, and twice the coupling
		worst = max(worst, math.Abs(row.Collected[0]/exact-1))
	}
	report := study.Summarise(plan, found)
	fmt.Printf("%d runs are ok, each zero within 0.1 %%: %t\n", report.Statuses[study.OK], worst < 1e-3)
	for _, e := range report.Effects[:1] {
		fmt.Printf("rank correlation of %s and %s: %.0f\n", e.Factor, e.Quantity, e.Rank)
	}
	// Output:
	// 11 runs are ok, each zero within 0.1 %: true
	// rank correlation of coupling.c_c and quarter: -1
}

// carryOut makes the runs of a plan on all cores of this process.
func carryOut(plan *study.Plan) (_ *study.Findings, err error) {
	ctx := context.Background()
	model, err := study.Open(ctx, plan, study.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	s := &study.Study{Plan: plan}
	return s.Run(ctx, study.Local(model, 0))
}
