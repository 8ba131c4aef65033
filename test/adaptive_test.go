package test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// attempts reads a table of --trace.
func attempts(t testing.TB, path string) []map[string]float64 {
	t.Helper()
	rows := readCSV(t, path)
	if got := strings.Join(rows[0], ","); got != "t,H,k,iterations,estimate,indicator,accepted" {
		t.Fatalf("the header is %s", got)
	}
	var out []map[string]float64
	for _, row := range rows[1:] {
		m := map[string]float64{}
		for i, text := range row {
			m[rows[0][i]] = number(text)
		}
		out = append(out, m)
	}
	return out
}

// An FMU that discards steps above a size makes the control shrink and recover: the run completes, with steps below
// that size but not far below it.
func TestRefusedStepsAreLearnt(t *testing.T) {
	for _, preset := range []string{"ex-slocal", "ex-milne", "im-slocal", "richardson"} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "trace.csv")
			a := runPair(t, "misbehave", "fault=TooLong above=0.03", "--algorithm", preset, "--param", "control.h0=0.01",
				"--param", "control.rtol=1", "--param", "control.atol=1", "--trace", trace)
			if a.manifest.Status != "complete" {
				t.Fatalf("%s", a.output)
			}
			refused, largest, sum := 0, 0.0, 0.0
			for _, at := range attempts(t, trace) {
				if at["accepted"] == 1 {
					largest = max(largest, at["H"])
					sum += at["H"]
				} else {
					refused++
				}
			}
			if math.Abs(sum-1) > 1e-12 || refused == 0 || largest > 0.06 {
				t.Errorf("%d steps refused, the largest accepted is %g, their sum %g", refused, largest, sum)
			}
			if n := a.manifest.Steps.Accepted; n > 150 || refused > n/4 {
				t.Errorf("%d steps were refused and %d accepted", refused, n)
			}
		})
	}
}

// A run warns while its steps stay far below the requested size, and fails when the step cannot be halved again; the
// message names the variable whose error limits the steps. The force of energy-oscillator follows its inputs
// directly, and lags a step behind. The force of corrector-oscillator (1e6 N/m, no nominal value) needs no tolerance
// of its own.
func TestTinySteps(t *testing.T) {
	t.Parallel()
	const told = "the steps stay at "
	run := func(name string, args ...string) (code int, output string) {
		return macrostep(t, append([]string{"run", system(t, name), "--algorithm", "ex-slocal", "--record", "none",
			"--manifest", filepath.Join(t.TempDir(), "m.json")}, args...)...)
	}
	code, output := run("energy-oscillator", "--stop-time", "2e-6")
	if code != 0 || strings.Count(output, told) != 1 || !strings.Contains(output, "of the error of right.f (") ||
		!strings.Contains(output, "control.atol=right.f:VALUE") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	for name, args := range map[string][]string{"corrector-oscillator": {"--stop-time", "1e-2"}, "two-mass-ff": nil} {
		if code, output := run(name, args...); code != 0 || strings.Contains(output, told) {
			t.Errorf("%s: exit code %d\n%s", name, code, output)
		}
	}
	if code, output := run("quarter-car-b"); code != 1 || !strings.Contains(output, "chassis.F_c depends directly on chassis.v_w") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	if code, output := run("energy-oscillator"); code != 1 || !strings.Contains(output, "times the tolerance, mostly that of right.f (") {
		t.Errorf("exit code %d\n%s", code, output)
	}
}

// The table of attempts has an estimate where the algorithm estimates errors and an indicator where it has one, else
// empty cells; the report plots what the table has.
func TestTraceColumns(t *testing.T) {
	t.Parallel()
	for preset, want := range map[string]struct{ estimates, indicates bool }{
		"explicit": {}, "ex-slocal": {estimates: true}, "ecco": {indicates: true}, "predictor-corrector": {indicates: true},
	} {
		dir := t.TempDir()
		trace, page := filepath.Join(dir, "steps.csv"), filepath.Join(dir, "run.html")
		if code, out := macrostepIn(t, dir, "run", system(t, "quarter-car-a"), "--stop-time", "0.05",
			"--algorithm", preset, "--trace", trace, "--report", page); code != 0 {
			t.Fatal(out)
		}
		if text := string(read(t, trace)); strings.Contains(text, "NaN") {
			t.Errorf("%s: NaN in\n%.300s", preset, text)
		}
		rows := attempts(t, trace)
		some := func(column string) bool {
			return slices.ContainsFunc(rows, func(row map[string]float64) bool { return !math.IsNaN(row[column]) })
		}
		if some("estimate") != want.estimates || some("indicator") != want.indicates {
			t.Errorf("%s: estimates %v, indicators %v", preset, some("estimate"), some("indicator"))
		}
		again := filepath.Join(dir, "again.html")
		call(t, "report", trace, "-o", filepath.Join(dir, "table.html")).is(t, 0)
		call(t, "report", filepath.Join(dir, "results.csv"), "-o", again).is(t, 0)
		for _, name := range []string{page, again} {
			text := string(read(t, name))
			if strings.Contains(text, `data-name="error estimate"`) != want.estimates ||
				strings.Contains(text, `data-name="indicator of the coupling error"`) != want.indicates {
				t.Errorf("%s: other plots in %s", preset, filepath.Base(name))
			}
		}
	}
}
