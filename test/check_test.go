package test

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/judged"
	"github.com/macrostep/macrostep/test/long"
)

// The measured error of runs of the demo systems, with all presets and orders, is within a factor of 2.5 of that from the exact
// solution in at least 95 % of them; below 1e-4 an upper bound suffices if it is below 1e-3.
func TestCheckAgainstExact(t *testing.T) {
	type setting struct {
		system, preset string
		params         map[string]string
		part           float64 // of the step of the system
	}
	var all []setting
	systems := demos()
	names := slices.Sorted(maps.Keys(systems))
	for _, name := range names {
		for _, p := range algorithms.Presets() {
			var variants []map[string]string
			switch {
			case slices.Contains(estimating, p.Name):
				for _, rtol := range []string{"1e-3", "1e-4", "1e-5"} {
					variants = append(variants, map[string]string{"control.rtol": rtol})
				}
			case p.Name == "ecco", p.Name == "predictor-corrector":
				name := map[string]string{"ecco": "ecco.tolerance", "predictor-corrector": "pc.tolerance"}[p.Name]
				for _, tolerance := range []string{"1e-3", "1e-4", "1e-5"} {
					variants = append(variants, map[string]string{name: tolerance})
				}
			default:
				for order := range 4 {
					variants = append(variants, map[string]string{"order": fmt.Sprint(order)})
				}
			}
			for _, params := range variants {
				all = append(all, setting{name, p.Name, params, 1})
				if params["order"] != "" {
					all = append(all, setting{name, p.Name, params, 0.5})
				}
			}
		}
	}
	n, off := 0, 0
	take := long.Sample(61)
	for _, s := range all {
		if !take() {
			continue
		}
		d := systems[s.system]
		bar, truth, atMost, why := checkedRun(t, s.system, d, s.preset, s.params, s.part)
		if why != "" {
			t.Logf("%s %s %v: %s", s.system, s.preset, s.params, why)
			continue
		}
		n++
		ratio := truth / bar
		if !(ratio > 0.4 && ratio < 2.5) && !(truth < 1e-4 && bar < 1e-3 && bar >= truth/2.5) {
			off++
			t.Logf("%s %s %v × %g: bar %.3g (%t), true %.3g", s.system, s.preset, s.params, s.part, bar, atMost, truth)
		}
	}
	t.Logf("%d of %d are off", off, n)
	if n == 0 || float64(off) > 0.05*float64(n) {
		t.Errorf("%d of %d are off", off, n)
	}
}

// checkedRun makes a run with a check and returns the measured and the true error of the worst output of which the solution is known.
// why says why there is none.
func checkedRun(t *testing.T, name string, d demo, preset string, params map[string]string, part float64) (bar, truth float64, atMost bool, why string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.csv")
	req := simulate.Request{System: system(t, name), Algorithm: preset, Params: params, Output: path, Check: &simulate.Check{Limit: 1}}
	sys, err := simulate.Open(t.Context(), req.System, simulate.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req.Step = &simulate.Setting{Value: sys.Step.Value * part}
	if d.stop > 0 {
		req.Stop = &simulate.Setting{Value: d.stop}
	}
	_ = sys.Close()
	out, err := simulate.Run(t.Context(), req)
	if err != nil {
		return 0, 0, false, err.Error()
	}
	e := out.Manifest.Error
	if e.Worst == nil {
		return 0, 0, false, e.Unknown
	}
	table, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	times := table.Times
	each := 1 + len(times)/2000
	var at []float64
	for i := 0; i < len(times); i += each {
		at = append(at, times[i])
	}
	want, err := d.solve(at[1:])
	if err != nil {
		t.Fatal(err)
	}
	for k, output := range d.outputs {
		at := slices.IndexFunc(table.Columns, func(c results.Column) bool { return c.Bare == output })
		if at < 0 {
			t.Fatalf("%s has no %s", name, output)
		}
		c := table.Columns[at].Values
		mean, square, deviation := 0.0, 0.0, 0.0
		for i := range want {
			mean += want[i][k] / float64(len(want))
		}
		for i := range want {
			v := c[(i+1)*each] - want[i][k]
			square += v * v
			deviation += (want[i][k] - mean) * (want[i][k] - mean)
		}
		truth = max(truth, math.Sqrt(square/deviation))
		if r := e.Variables[output].Relative; r != nil {
			bar = max(bar, *r)
		}
	}
	return bar, truth, e.AtMost, ""
}

// The error that is measured of the systems of package judged, at three steps each, is of the same class as the true one (up to 5 %, up to
// 50 %, above) or within a factor of 2.5 of it: never lower, at least nine times of ten, and in at most one of twenty there is none.
func TestCheckJudged(t *testing.T) {
	class := func(e float64) int {
		return map[bool]int{true: 1}[e > 0.05] + map[bool]int{true: 1}[e > 0.5]
	}
	n, right, unknown := 0, 0, 0
	for _, s := range judged.Systems() {
		path, err := s.Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, H := range s.Steps {
			if i == 0 && !long.On {
				continue
			}
			table := filepath.Join(t.TempDir(), "results.csv")
			out, err := simulate.Run(t.Context(), simulate.Request{System: path, Step: &simulate.Setting{Value: H}, Stop: &simulate.Setting{Value: s.Stop},
				Output: table, Check: &simulate.Check{Limit: 1}})
			if err != nil {
				t.Fatal(err)
			}
			truth, where, err := judged.Error(s, table)
			if err != nil {
				t.Fatal(err)
			}
			n++
			e := out.Manifest.Error
			if e.Worst == nil {
				unknown++
				t.Logf("%s, H = %g s: %.3g of %s, unknown: %s", s.Name, H, truth, where, e.Unknown)
				continue
			}
			ratio := truth / *e.Worst
			t.Logf("%s, H = %g s: %.3g of %s, %s (ratio %.2g, %d runs, %s)", s.Name, H, truth, where, e, ratio, e.Runs, e.Reference)
			switch {
			case class(truth) == class(*e.Worst) || ratio > 0.4 && ratio < 2.5:
				right++
			case ratio > 1:
				t.Errorf("%s, H = %g s: the error is %.3g, and this reassures: %s", s.Name, H, truth, e)
			}
		}
	}
	if float64(right) < 0.9*float64(n) || float64(unknown) > 0.05*float64(n) {
		t.Errorf("%d of %d are right, %d unknown", right, n, unknown)
	}
}
