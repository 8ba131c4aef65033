package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/master/record"
)

// tolerance is the largest relative difference between the results of the two programs. macrostep
// computes the weights of an extrapolation from the rounded times of the points; the C program computes
// them once, from the step size. With the weights of macrostep it gives the same bits.
const tolerance = 1e-9

// The C program makes the calls of macrostep: both give the same outputs and the same residual energy,
// without extrapolation to the last bit.
func TestFloor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the C program needs Linux; run this test there, as .ci/run does")
	}
	if _, err := csrc.Compiler(); err != nil {
		t.Skip(err, "; install one, as .ci/run does")
	}
	tools := build(t)
	for _, sys := range systems {
		if !sys.small || sys.real && *thirdParty == "" {
			continue
		}
		s := sys.make(t, tools)
		for _, r := range rows {
			if !r.runs(s) {
				continue
			}
			t.Run(r.name+"/"+s.name, func(t *testing.T) {
				const steps = 300
				got, m := results(t, tools, s, r, steps, s.coarse)
				_, out := run(t, s.plan(r.c, steps, s.coarse), tools.floor)
				var want []float64
				for _, text := range strings.Fields(string(out)) {
					v, err := strconv.ParseFloat(text, 64)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, v)
				}
				if len(want) != len(got) {
					t.Fatalf("the C program gives %d values, macrostep %d", len(want), len(got))
				}
				scale, apart := 0.0, 0.0
				for k := range got {
					scale = max(scale, math.Abs(want[k]))
					if got[k] != want[k] {
						apart = max(apart, math.Abs(got[k]-want[k])/math.Abs(want[k]))
					}
				}
				if !(scale > 0) || scale > 1e12 {
					t.Errorf("the largest value is %v: nothing happens, or it is unstable", scale)
				}
				t.Logf("largest relative difference %.2g", apart)
				if !(apart <= tolerance) || r.c.order == 0 && !r.c.bonds && apart != 0 {
					t.Errorf("macrostep gives\n%v, the C program\n%v", got, want)
				}
				if r.name == fixedPoint.name && m.Iterations != steps {
					t.Errorf("%d corrections in %d macro steps; each must have one", m.Iterations, steps)
				}
			})
		}
	}
}

// results returns the outputs at the end of a run of macrostep, the residual energies, and the manifest.
func results(t *testing.T, tools tools, s *system, r row, steps int, h float64) (out []float64, m record.Manifest) {
	t.Helper()
	file := filepath.Join(tools.dir, "results")
	args := slices.Concat([]string{"run", s.path, "--quiet", "--output", file + ".csv", "--step-size", fmt.Sprint(h),
		"--stop-time", fmt.Sprint(float64(steps) * h)}, s.args, r.of(s))
	run(t, "", tools.macrostep, args...)
	table, err := record.ReadSignals(t.Context(), file+".csv")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file + ".json")
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range s.members {
		for _, name := range member.outputs {
			column, ok := table.Column(name)
			if !ok {
				t.Fatalf("no column %s among %v", name, table.Names)
			}
			out = append(out, table.At(column, table.Times[len(table.Times)-1]))
		}
	}
	if r.c.bonds {
		for _, b := range s.bonds {
			out = append(out, m.Bonds[b.name].ResidualEnergy)
		}
	}
	return out, m
}
