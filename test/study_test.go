package test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/study"
)

// table is a table of a study, by column.
type studyTable map[string][]string

// rowsOfStudy reads the results of a study.
func rowsOfStudy(t testing.TB, folder string) studyTable {
	t.Helper()
	rows := readCSV(t, filepath.Join(folder, "results.csv"))
	out := studyTable{}
	for i, name := range rows[0] {
		for _, row := range rows[1:] {
			out[name] = append(out[name], row[i])
		}
	}
	return out
}

// numbers returns a column as numbers.
func (s studyTable) numbers(t testing.TB, name string) []float64 {
	t.Helper()
	var out []float64
	for _, text := range s[name] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

// makeStudy carries out a study in a folder of its own, which it returns.
func makeStudy(t testing.TB, plan string, files ...string) (folder string, o *outcome) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plan.yaml"), plan)
	for i := 0; i+1 < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	cmd := exec.Command(program, "study", "plan.yaml", "--output", "study")
	cmd.Dir = dir
	ownCache(t, cmd)
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "study"), &outcome{args: cmd.Args[1:], code: cmd.ProcessState.ExitCode(), output: string(output)}
}

// A row of a study has the values that macrostep run gives with the same settings, to the bit.
func TestStudyEqualsRuns(t *testing.T) {
	t.Parallel()
	folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {stop-time: 0.2}
vary:
  coupling.c_c: [300, 500]
  run.param.order: [0, 2]
  run.step-size: [1e-3, 2e-3]
collect: {last: final(mass1.x), top: maximum(mass2.x), early: "value(mass1.x, 0.1)"}
keep: all
`, system(t, "two-mass-ff")))
	o.is(t, 0, "8 runs: 8 ok")
	var index struct{ Units, Starts map[string]string }
	if err := json.Unmarshal(read(t, filepath.Join(folder, "study.json")), &index); err != nil {
		t.Fatal(err)
	}
	if u := fmt.Sprint(index.Units, index.Starts); u != "map[coupling.c_c:N/m early:m last:m run.step-size:s top:m] map[coupling.c_c:1000]" {
		t.Errorf("units and values in the system: %s", u)
	}
	rows := rowsOfStudy(t, folder)
	for i := range rows["run"] {
		one := complete(t, system(t, "two-mass-ff"), "--stop-time", "0.2", "--algorithm", "explicit", "--set", "coupling.c_c="+rows["coupling.c_c"][i],
			"--param", "order="+rows["run.param.order"][i], "--step-size", rows["run.step-size"][i])
		x := one.columns["mass1.x"]
		if got := rows.numbers(t, "last")[i]; got != x[len(x)-1] {
			t.Errorf("run %d ends at %g, and alone at %g", i, got, x[len(x)-1])
		}
		if got, want := rows.numbers(t, "top")[i], slices.Max(one.columns["mass2.x"]); got != want {
			t.Errorf("run %d: maximum %g, alone %g", i, got, want)
		}
		if kept := string(read(t, filepath.Join(folder, "runs", fmt.Sprint(i, ".csv")))); kept != string(read(t, one.results)) {
			t.Errorf("run %d: its table is not that of a run alone", i)
		}
	}
}

// Runs that crash, hang, fail or become unstable have rows that say so, and do no harm to the others: their values
// are those of runs alone.
func TestStudySurvives(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	rows.WriteString("bad.fault,bad.during,bad.at,run.step-size,bad.marker\n")
	for i := range 24 {
		fault := map[int]string{3: "Segfault,DoStep,0.05,0.01", 8: "Exit7,DoStep,0.02,0.01", 13: "EndlessSleep,DoStep,0.03,0.01", 17: "Error,DoStep,0.04,0.01"}[i]
		if fault == "" {
			fault = "None,DoStep,0,0.01"
		}
		fmt.Fprintln(&rows, fault+",")
	}
	// Texts, items by number, and empty cells; the reason of the last row is long.
	rows.WriteString(`None,DoStep,0,0.01,"a, ""b"""
0,DoStep,0,0.01,
None,,,,
Nonsense,DoStep,0,0.01,
`)
	folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {stop-time: 0.1, step-size: 0.01}
design: table
table: rows.csv
time-limit: 2s
collect: {x: final(good.x)}
`, badPair(t, "misbehave")), "rows.csv", rows.String())
	o.is(t, 0, "28 runs: 23 ok, 2 failed, 2 crashed, 1 time limit", "Nonsense: the variable is an Enumeration", "…\n",
		"page      "+filepath.Join("study", "report.html"))
	page := string(read(t, filepath.Join(folder, "report.html")))
	for _, part := range []string{">complete, 5 of 28 runs not ok</span>", "SIGSEGV", "2 (7.14 %)"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q", part)
		}
	}
	if text := string(read(t, filepath.Join(folder, "results.parquet"))); !strings.HasPrefix(text, "PAR1") {
		t.Errorf("results.parquet begins with %.4q", text)
	}
	table := rowsOfStudy(t, folder)
	want := map[int][2]string{
		3:  {"crashed", "SIGSEGV"},
		8:  {"crashed", "fmi2DoStep"},
		13: {"time limit", "2s"},
		17: {"failed", "bad"},
		27: {"failed", "ForkDaemon"},
	}
	for i, status := range table["status"] {
		if w, bad := want[i]; bad && (status != w[0] || !strings.Contains(table["reason"][i], w[1]) || table["x"][i] != "") {
			t.Errorf("run %d: %s, %s, x = %q", i, status, table["reason"][i], table["x"][i])
		} else if !bad && (status != "ok" || table["x"][i] != table["x"][0]) {
			t.Errorf("run %d: %s %s, x = %s", i, status, table["reason"][i], table["x"][i])
		}
	}
}

// A study from flags reads files relative to the folder that it is started in, wherever its system is.
func TestStudyFromFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "reference.csv"), "time,mass1.x\n0,1\n")
	code, output := macrostepIn(t, dir, "study", system(t, "two-mass-ff"), "--vary", "mass1.x0=1, 3", "--vary", "run.param.order=0,1",
		"--collect", "off=deviation(mass1.x, reference.csv)", "--run", "stop-time=0.01", "--run", "param=max-iterations=1", "--run", "algorithm=explicit")
	o := &outcome{args: []string{"study"}, code: code, output: output}
	o.is(t, 2, "max-iterations")
	code, output = macrostepIn(t, dir, "study", system(t, "two-mass-ff"), "--vary", "mass1.x0=1, 3", "--vary", "run.param.order=0,1",
		"--collect", "off=deviation(mass1.x, reference.csv)", "--run", "stop-time=0.01", "--run", "algorithm=explicit")
	o = &outcome{args: []string{"study"}, code: code, output: output}
	o.is(t, 0, "4 runs: 4 ok")
	rows := rowsOfStudy(t, filepath.Join(dir, "two-mass-ff-study"))
	if got, want := rows["off"], []string{"0", "0", "2", "2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The observed order of a convergence study is k + 1 for extrapolation of the order k.
func TestStudyConvergence(t *testing.T) {
	t.Parallel()
	for k, from := range []float64{1e-3, 1e-3, 2e-3} {
		folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {algorithm: explicit, param: {order: %d}, stop-time: 0.1, set: {coupling.d_c: 0}} # so that inputs are flat at the start
convergence: {from: %g, tolerance: 1e-15, most: 5}
collect: {x: final(mass1.x)}
`, system(t, "two-mass-ff"), k, from))
		o.is(t, 0, "not settled")
		x := rowsOfStudy(t, folder).numbers(t, "x")
		n := len(x) - 1
		if order := math.Log2(math.Abs((x[n-1] - x[n-2]) / (x[n] - x[n-1]))); math.Abs(order-float64(k+1)) > 0.1 {
			t.Errorf("order %d: observed %g, of %v", k, order, x)
		}
	}
}

// checksOf reads the measured errors of a study.
func checksOf(t testing.TB, folder string) []study.Checked {
	t.Helper()
	var summary study.Report
	if err := json.Unmarshal(read(t, filepath.Join(folder, "summary.json")), &summary); err != nil {
		t.Fatal(err)
	}
	return summary.Checks
}

// The errors that a study measures are those that macrostep run --check measures, to the bit.
func TestStudyCheck(t *testing.T) {
	t.Parallel()
	path := system(t, "two-mass-ff")
	folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {stop-time: 0.2, algorithm: explicit, set: {mass1.x0: 2}}
vary:
  coupling.c_c: [300, 500]
  run.param.order: [0, 2]
  run.step-size: [1e-3, 2e-3]
collect: {last: final(mass1.x), top: maximum(mass2.x)}
check: 4
`, path))
	o.is(t, 0, "8 runs: 8 ok", "measured in 4 of 8 runs (the smallest last, the largest last, 2 at random)")
	rows, checks := rowsOfStudy(t, folder), checksOf(t, folder)
	last := rows.numbers(t, "last")
	if len(checks) != 4 || last[checks[0].Run] != slices.Min(last) || last[checks[1].Run] != slices.Max(last) {
		t.Fatalf("%+v of runs that end at %v", checks, last)
	}
	page, worst := string(read(t, filepath.Join(folder, "report.html"))), 0.0
	for k, c := range checks {
		if want := []string{"smallest", "largest", "random", "random"}[k]; c.Why != want {
			t.Errorf("run %d is the %s one, want %s", c.Run, c.Why, want)
		}
		one := complete(t, path, "--stop-time", "0.2", "--algorithm", "explicit", "--set", "mass1.x0=2",
			"--set", "coupling.c_c="+rows["coupling.c_c"][c.Run], "--param", "order="+rows["run.param.order"][c.Run],
			"--step-size", rows["run.step-size"][c.Run], "--check")
		e, want := c.Error, one.manifest.Error
		if e.Worst == nil || *e.Worst != *want.Worst || e.Where != want.Where || e.Reference != want.Reference || e.Runs != want.Runs {
			t.Errorf("run %d: %+v, and alone %+v", c.Run, e, want)
			continue
		}
		for _, name := range []string{"mass1.x", "mass2.x"} {
			if e.Variables[name].Absolute != want.Variables[name].Absolute || e.Variables[name].Absolute == 0 {
				t.Errorf("run %d, %s: %+v, and alone %+v", c.Run, name, e.Variables[name], want.Variables[name])
			}
		}
		if worst = max(worst, *e.Worst); !strings.Contains(page, "<td>"+e.Size()) {
			t.Errorf("the page does not have %s of run %d", e.Size(), c.Run)
		}
	}
	o.is(t, 0, fmt.Sprintf("at most %s (run", (&record.Error{Worst: &worst}).Size()))
}

// Stiffness and damping are found from 1000 measured points with noise of 1 % of the range, to 1 %.
func TestStudyCalibrates(t *testing.T) {
	t.Parallel()
	const stiffness, damping = 730., 6.5
	truth := complete(t, system(t, "two-mass-ff"), "--set", fmt.Sprint("coupling.c_c=", stiffness), "--set", fmt.Sprint("coupling.d_c=", damping),
		"--step-size", "1e-3", "--stop-time", "1", "--algorithm", "explicit", "--param", "order=2")
	random := rand.New(rand.NewPCG(1, 2))
	var csv strings.Builder
	csv.WriteString("time,mass1.x\n")
	x := truth.columns["mass1.x"]
	span := slices.Max(x) - slices.Min(x)
	for i := 1; i < len(x); i++ {
		fmt.Fprintf(&csv, "%g,%g\n", truth.columns["time"][i], x[i]+0.01*span*random.NormFloat64())
	}
	folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {step-size: 1e-3, stop-time: 1, algorithm: explicit, param: {order: 2}}
vary:
  coupling.c_c: linear(100, 2000)
  coupling.d_c: log(0.5, 50)
optimise: {fit: measured.csv, evaluations: 200}
collect: {end: final(mass1.x)}
`, system(t, "two-mass-ff")), "measured.csv", csv.String())
	o.is(t, 0, "best")
	rows := rowsOfStudy(t, folder)
	best, least := 0, math.Inf(1)
	for i, d := range rows.numbers(t, "deviation(mass1.x)") {
		if d < least {
			best, least = i, d
		}
	}
	c, d := rows.numbers(t, "coupling.c_c")[best], rows.numbers(t, "coupling.d_c")[best]
	if math.Abs(c/stiffness-1) > 0.01 || math.Abs(d/damping-1) > 0.01 || len(x) != 1001 {
		t.Errorf("found %g and %g, want %g and %g, from %d points", c, d, stiffness, damping, len(x))
	}
	var summary struct {
		Fit struct {
			Parameters []struct{ Low, High float64 }
			Columns    []struct{ Fitted []float64 }
		}
	}
	if err := json.Unmarshal(read(t, filepath.Join(folder, "summary.json")), &summary); err != nil {
		t.Fatal(err)
	}
	for j, want := range []float64{stiffness, damping} {
		if p := summary.Fit.Parameters[j]; p.Low > want || p.High < want || p.High-p.Low > 0.1*want {
			t.Errorf("from %g to %g, want %g", p.Low, p.High, want)
		}
	}
	if n := len(summary.Fit.Columns[0].Fitted); n != 1000 {
		t.Errorf("%d points of the best run", n)
	}
}

// What is wrong is said before the first run: the file, the system and the variables.
func TestStudyRefuses(t *testing.T) {
	t.Parallel()
	s := system(t, "two-mass-ff")
	for plan, want := range map[string]string{
		"{system: " + s + ", vary: {coupling.c_x: [1]}, collect: [final(mass1.x)]}":                           `no variable "c_x"`,
		"{system: " + s + ", vary: {coupling.c_c: [1]}, collect: [final(mass1.y)]}":                           `no variable "mass1.y"`,
		"{system: " + s + ", vary: {run.algorithm: [explicitt]}, collect: [final(mass1.x)]}":                  "explicitt",
		"{system: " + s + ", run: {step: 1}, vary: {coupling.c_c: [1]}, collect: [final(mass1.x)]}":           `no setting "step"; did you mean "step-size"`,
		"{system: " + s + ", run: {record: 'mass1.y'}, vary: {coupling.c_c: [1]}, collect: [final(mass1.x)]}": `record: no variable matches "mass1.y"; did you mean`,
		"{system: none.ssp, vary: {coupling.c_c: [1]}, collect: [final(mass1.x)]}":                            "none.ssp",
		"{system: " + s + ", scenario: none.yaml, vary: {coupling.c_c: [1]}, collect: [final(mass1.x)]}":      "none.yaml",
		"{system: " + s + ", vary: {coupling.c_c: [1]}, collect: ['deviation(mass1.x, none.csv)']}":           "none.csv",
		"{system: " + s + ", check: 1, convergence: {}, collect: [final(mass1.x)]}":                           "check: convergence",
	} {
		folder, o := makeStudy(t, plan)
		o.is(t, 2, want)
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: a folder is left", plan)
		}
	}
}

// Studies of third-party systems: a speed controller with its drive, whose rows are those of single runs, and the
// environmental control of an aircraft, a folder whose documents choose the recorded variables.
func testRealStudies(t *testing.T) {
	path := pair(t)
	folder, o := makeStudy(t, fmt.Sprintf(`
system: %s
run: {step-size: 5e-3, set: {controller.u_s: 10}, tolerance: 1e-9}
vary: {controller.PI.k: "log(20, 200, 3)", controller.PI.Ti: [0.05, 0.5]}
collect: {end: final(drivetrain.w)}
`, path))
	o.is(t, 0, "6 runs: 6 ok")
	rows := rowsOfStudy(t, folder)
	for i, end := range rows.numbers(t, "end") {
		alone := complete(t, path, "--step-size", "5e-3", "--set", "controller.u_s=10", "--tolerance", "1e-9",
			"--set", "controller.PI.k="+rows["controller.PI.k"][i], "--set", "controller.PI.Ti="+rows["controller.PI.Ti"][i]).columns["drivetrain.w"]
		if end != alone[len(alone)-1] {
			t.Errorf("run %d ends at %g, and alone at %g", i, end, alone[len(alone)-1])
		}
	}
	folder, o = makeStudy(t, fmt.Sprintf(`
system: %s
run: {stop-time: 0.1}
vary: {ECS_HW.pipeB.L: [0.5, 1.5]}
collect: {feed: final(ECS_HW.consumerFeed.m)}
`, filepath.Join(*realDir, "systems", "omsimulator", "embrace")))
	o.is(t, 0, "2 runs: 2 ok")
	if feed := rowsOfStudy(t, folder).numbers(t, "feed"); feed[0] == feed[1] {
		t.Errorf("the length of the pipe has no effect: %v", feed)
	}
}
