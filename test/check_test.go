package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/record"
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
	take := long.Sample(127)
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

// Steps with an energy correction at which almost the same step gives results as different, although the system is not chaotic:
// references tell, once their steps are small enough.
func TestCheckConverges(t *testing.T) {
	t.Parallel()
	bar, truth, _, why := checkedRun(t, "pendula", demos()["pendula"], "energy-correction", map[string]string{"order": "1"}, 1)
	if ratio := truth / bar; why != "" || !(ratio > 0.4 && ratio < 2.5) {
		t.Errorf("bar %.3g, true %.3g, %s", bar, truth, why)
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
	each := 1 + len(times)/50_000
	var at []float64
	for i := 0; i < len(times); i += each {
		at = append(at, times[i])
	}
	want, err := d.solve(at[1:])
	if err != nil {
		t.Fatal(err)
	}
	weight := func(i int) float64 { return at[min(i+2, len(at)-1)] - at[i] } // of the time
	for k, output := range d.outputs {
		at := slices.IndexFunc(table.Columns, func(c results.Column) bool { return c.Bare == output })
		if at < 0 {
			t.Fatalf("%s has no %s", name, output)
		}
		c := table.Columns[at].Values
		mean, total, square, deviation := 0.0, 0.0, 0.0, 0.0
		for i := range want {
			total += weight(i)
			mean += weight(i) * want[i][k]
		}
		mean /= total
		for i := range want {
			v := c[(i+1)*each] - want[i][k]
			square += weight(i) * v * v
			deviation += weight(i) * (want[i][k] - mean) * (want[i][k] - mean)
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

// From the command line: the line, the limit, strict runs, the budget, and what is in the manifest.
func TestCheckCommand(t *testing.T) {
	t.Parallel()
	path := system(t, "quarter-car-b")
	for _, c := range []struct {
		args []string
		code int
		says string
		warn bool
	}{
		{[]string{"--check"}, 0, "coupling error: wheel.v_w about 7.2 % of its motion (±0.03 m/s); errors inside FMUs are not measured", true},
		{[]string{"--check=10%"}, 0, "coupling error: wheel.v_w about 7.2 %", false},
		{[]string{"--check=0.1", "--strict"}, 0, "coupling error: wheel.v_w about 7.2 %", false},
		{[]string{"--check=1%", "--strict"}, 1, "macrostep: the coupling error of wheel.v_w, 7.2 % of its motion, is above the limit of 1 %: take smaller steps", true},
		{[]string{"--check", "--algorithm", "richardson", "--param", "control.rtol=1e-2"}, 0, "coupling error: chassis.F_c at most 2.5 %", false},
		{[]string{"--check", "--budget", "1e-9"}, 0, "coupling error: unknown: the budget is used up", true},
		{[]string{"--check", "--realtime=1000"}, 0, "coupling error: unknown: not checked, because the run cannot be repeated: it is in real time", true},
	} {
		dir := t.TempDir()
		code, output := macrostep(t, append([]string{"run", "--output", filepath.Join(dir, "r.csv"), path}, c.args...)...)
		var m record.Manifest
		if err := json.Unmarshal(read(t, filepath.Join(dir, "r.json")), &m); err != nil {
			t.Fatal(err)
		}
		known := !strings.Contains(c.says, "unknown")
		if code != c.code || !strings.Contains(output, c.says) || (len(m.Warnings) > 0) != c.warn || (m.Error.Worst != nil) != known {
			t.Errorf("%v: exit code %d, warnings %q\n%s", c.args, code, m.Warnings, output)
		}
		if known && !strings.Contains(c.says, "at most") && (math.Abs(*m.Error.Worst-0.072) > 1e-3 || m.Error.Until != m.EndTime || len(m.Error.Variables) != 5) {
			t.Errorf("%v: %+v", c.args, m.Error)
		}
	}
	for _, c := range [][]string{
		{"--budget needs --check or --accuracy", "run", path, "--budget", "1"},
		{"for 5 %, write 5%", "run", path, "--check=5"},
		{"--check does not apply to studies", "study", path, "--vary", "wheel.k_w=1e5", "--collect", "final(chassis.v_c)", "--run", "check=1%", "-o", filepath.Join(t.TempDir(), "s")},
	} {
		if code, output := macrostep(t, c[1:]...); code != 2 && code != 1 || !strings.Contains(output, c[0]) {
			t.Errorf("%v: exit code %d\n%s", c[1:], code, output)
		}
	}
}

// A run that a scenario stops between communication points is measured to there, though finer runs stop earlier.
func TestCheckStopped(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"at: 3.2345", "when: chassis.z_c > 0.1"} {
		dir := t.TempDir()
		scenario := filepath.Join(dir, "s.yaml")
		write(t, scenario, "events:\n  - "+when+"\n    stop: enough\n")
		code, output := macrostep(t, "run", system(t, "quarter-car-b"), "--scenario", scenario, "--check=50%", "--strict", "--output", filepath.Join(dir, "r.csv"))
		if code != 0 || !strings.Contains(output, "coupling error: ") || strings.Contains(output, "up to t =") || strings.Contains(output, "unknown") {
			t.Errorf("%s: exit code %d\n%s", when, code, output)
		}
	}
}

// An FMU that crashes in another run than the user's costs the bar, and no result.
func TestCheckCrash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"--isolate never", "warning: the coupling error is unknown: the process ended while it was measured", 0},
		{"--isolate never --strict", "macrostep: the coupling error is unknown: the process ended while it was measured", 1},
		{"--isolate always", "coupling error: good.x about", 0},
	} {
		args := append([]string{"--step-size", "0.02", "--check"}, strings.Fields(c.args)...)
		p := started(t, systemCommand(t, badPair(t, "misbehave"), "fault=Segfault during=SetFMUstate", args...))
		if code := p.end(); code != c.code || !strings.Contains(p.out.String(), c.says) || len(readCSV(t, p.path("results.csv"))) != 52 {
			t.Errorf("%s: exit code %d\n%s", c.args, code, p.out.String())
		}
	}
}

// An FMU that crashes in a trial run of a search is isolated, and the search starts again.
func TestSearchCrash(t *testing.T) {
	t.Parallel()
	p := started(t, systemCommand(t, badPair(t, "misbehave"), "fault=Segfault at=0.985", "--step-size", "0.02", "--accuracy", "50%", "--budget", "600"))
	code, out := p.end(), p.out.String()
	if code != 1 || strings.Count(out, "all starts again") != 1 || !strings.Contains(out, "no setting with an error of 50 % is known") || len(readCSV(t, p.path("results.csv"))) != 52 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
