package test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// attempts reads a table of --trace.
func attempts(t testing.TB, path string) []map[string]float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows[0], ","); got != "t,H,k,iterations,estimate,accepted" {
		t.Fatalf("the header is %s", got)
	}
	var out []map[string]float64
	for _, row := range rows[1:] {
		m := map[string]float64{}
		for i, text := range row {
			if m[rows[0][i]], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, m)
	}
	return out
}

// An FMU that discards steps above a size makes the control shrink and recover:
// the run comes to its end with steps below that size and not far below it.
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

// Steps that stay far below what was asked for are told while they are taken, with the
// variable whose error holds them down, and so is it when the step cannot be halved again.
// A damping of 1e9 N s/m makes newtons of the rounding of velocities: a tolerance of a
// millionth of one is met by no step, and one of a thousandth is.
func TestTinySteps(t *testing.T) {
	t.Parallel()
	const told = "the steps stay at "
	run := func(name string, args ...string) (code int, output string) {
		return macrostep(t, append([]string{"run", system(t, name), "--algorithm", "ex-slocal", "--record", "none", "--manifest", filepath.Join(t.TempDir(), "m.json")}, args...)...)
	}
	code, output := run("corrector-oscillator", "--start-time", "1", "--stop-time", "1.00000004")
	if code != 0 || strings.Count(output, told) != 1 || !strings.Contains(output, "of the error of one.F (") || !strings.Contains(output, "control.atol=one.F:VALUE") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	for name, args := range map[string][]string{"corrector-oscillator": {"--stop-time", "1e-2", "--param", "control.atol=one.F:1e-3"}, "two-mass-ff": nil} {
		if code, output := run(name, args...); code != 0 || strings.Contains(output, told) {
			t.Errorf("%s: exit code %d\n%s", name, code, output)
		}
	}
	if code, output := run("quarter-car-b"); code != 1 || !strings.Contains(output, "chassis.F_c follows chassis.v_w directly") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	if code, output := run("energy-oscillator"); code != 1 || !strings.Contains(output, "times the tolerance, mostly that of right.f (") {
		t.Errorf("exit code %d\n%s", code, output)
	}
}

// An FMU whose rollback forgets a state is refused before anything relies on it.
func TestBrokenRollbackIsRefused(t *testing.T) {
	for _, preset := range []string{"implicit", "ex-slocal", "im-milne"} {
		a := runPair(t, "misbehave", "fault=ForgetState", "--algorithm", preset)
		if a.code != 1 || !strings.Contains(a.output, "bad (misbehave.fmu): rollback") {
			t.Errorf("%s: exit code %d\n%s", preset, a.code, a.output)
		}
	}
}

// Serial and parallel runs give the same bytes.
func TestWorkersGiveTheSameBytes(t *testing.T) {
	for _, args := range [][]string{
		{"--algorithm", "explicit", "--param", "order=2"}, {"--algorithm", "gauss-seidel", "--param", "order=1", "--param", "substeps=3"},
		{"--algorithm", "implicit", "--param", "order=2"}, {"--algorithm", "implicit", "--param", "solver.kind=broyden"},
		{"--algorithm", "im-milne"}, {"--algorithm", "ex-local"}, {"--algorithm", "richardson"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			var tables []string
			for _, workers := range []string{"1", "3"} {
				o := complete(t, append([]string{system(t, "two-mass-ff"), "--workers", workers}, args...)...)
				data, err := os.ReadFile(o.results)
				if err != nil {
					t.Fatal(err)
				}
				tables = append(tables, string(data))
			}
			if tables[0] != tables[1] {
				t.Error("three workers give another table than one")
			}
		})
	}
}
