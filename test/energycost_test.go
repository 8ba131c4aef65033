package test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/test/long"
)

// energyRuns are combinations of the methods that use bonds.
var energyRuns = []struct {
	system, preset string
	params         map[string]string
	rates          []algorithms.Rate
}{
	{"energy-star-5", "explicit", nil, nil}, // monitored
	{"energy-star-5", "ecco", map[string]string{"ecco.tolerance": "1e-3"}, nil},
	{"energy-star-5", "energy-correction", nil, nil},
	{"energy-star-5", "energy-correction", map[string]string{"control": "ecco", "ecco.tolerance": "1e-3", "order": "1", "energy.nu": "0.25"}, nil},
	{"energy-star-5", "energy-correction", map[string]string{"order": "1"}, []algorithms.Rate{{Component: "right", Steps: 10, Over: 1}}},
	{"energy-star-5", "energy-correction", map[string]string{"scheme": "gauss-seidel", "energy.mu": "0.1"}, []algorithms.Rate{{Component: "left2", Steps: 3, Over: 1}}},
	{"energy-star-5", "energy-correction", nil, []algorithms.Rate{{Component: "left1", Steps: 1, Over: 2}}},
	{"pendula", "energy-correction", map[string]string{"energy.nu": "1"}, nil},
	{"quarter-car-b", "predictor-corrector", nil, nil},
}

// A macro step allocates nothing, whatever is done with the bonds.
func testEnergyAllocations(t *testing.T) {
	for _, c := range energyRuns {
		t.Run(fmt.Sprint(c.system, c.preset, c.params, c.rates), func(t *testing.T) {
			a, err := assemble.Open(system(t, c.system), assemble.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			var bonds []algorithms.Bond
			candidates, _ := a.Bonds()
			for _, b := range candidates {
				if c.system != "pendula" || b.Name == "left_right" || b.Name == "left_right_4" {
					bonds = append(bonds, algorithms.Bond{Name: b.Name, Pairs: []algorithms.Pair{{Effort: b.Effort, Flow: b.Flow}}})
				}
			}
			if len(bonds) == 0 {
				t.Fatal("no bonds")
			}
			choice, err := algorithms.New(c.preset, c.params, algorithms.With{Bonds: bonds, Rates: c.rates, Spike: 50})
			if err != nil {
				t.Fatal(err)
			}
			r, err := master.NewRun(a.System, choice.Algorithm, master.Options{Stop: 100, Step: 1e-3})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			step := func() {
				if _, err := r.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				step()
			}
			// Beyond the blocks of the detector of jumps.
			if n := testing.AllocsPerRun(2000, step); n != 0 {
				t.Errorf("%g allocations a macro step", n)
			}
		})
	}
}

// Two threads give the bytes and the totals of one.
func testEnergyParallel(t *testing.T) {
	t.Parallel()
	take := long.Sample(6)
	for _, c := range energyRuns {
		if !take() {
			continue
		}
		args := []string{system(t, c.system), "--algorithm", c.preset, "--monitor-energy", "--stop-time", "1"}
		for _, p := range slices.Sorted(maps.Keys(c.params)) {
			args = append(args, "--param", p+"="+c.params[p])
		}
		for _, r := range c.rates {
			rate := fmt.Sprint(r.Steps)
			if r.Over > 1 {
				rate = fmt.Sprint("1/", r.Over)
			}
			args = append(args, "--rate", r.Component+"="+rate)
		}
		one, two := complete(t, args...), complete(t, append(args, "--workers", "2")...)
		a, errA := os.ReadFile(one.results)
		b, errB := os.ReadFile(two.results)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%v: %d rows by one thread, %d other ones by two", args[1:], one.rows, two.rows)
		}
		warnings := slices.DeleteFunc(slices.Clone(two.manifest.Warnings), func(w string) bool { return strings.HasPrefix(w, "with 2 workers") }) // which do not pay
		if !reflect.DeepEqual(one.manifest.Bonds, two.manifest.Bonds) || !slices.Equal(one.manifest.Warnings, warnings) {
			t.Errorf("%v: bonds %+v and %+v, warnings %q and %q", args[1:], one.manifest.Bonds, two.manifest.Bonds, one.manifest.Warnings, two.manifest.Warnings)
		}
	}
}
