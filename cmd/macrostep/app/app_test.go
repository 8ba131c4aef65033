package app

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

func manifestOf(t *testing.T, path string) record.Manifest {
	t.Helper()
	var m record.Manifest
	if err := json.Unmarshal([]byte(read(t, path)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestArguments holds what the engine is asked for each command line.
func TestArguments(t *testing.T) {
	set := func(v float64, flag string) *simulate.Setting { return &simulate.Setting{Value: v, Source: flag} }
	for _, tt := range []struct {
		args string // separated by |
		want simulate.OpenOptions
	}{
		{"run|s.ssp", simulate.OpenOptions{}},
		{"run|s.ssp|--stop-time|2|--step-size=0.5", simulate.OpenOptions{Stop: set(2, "--stop-time"), Step: set(0.5, "--step-size")}},
		{"run|--stop-time=2|s.ssp|--start-time|-1", simulate.OpenOptions{Start: set(-1, "--start-time"), Stop: set(2, "--stop-time")}},
		{"run|-stop-time|2|s.ssp", simulate.OpenOptions{Stop: set(2, "--stop-time")}},
		{"run|--quiet|s.ssp|--strict|--tolerance|1e-6", simulate.OpenOptions{Strict: true, Tolerance: set(1e-6, "--tolerance")}},
		{"run|s.ssp|--set|a.x=1,2|--set=a.v[1,2]=-3|--set|a.s= b=c ", simulate.OpenOptions{Set: []simulate.Assignment{{Name: "a.x", Value: "1,2"}, {Name: "a.v[1,2]", Value: "-3"}, {Name: "a.s", Value: " b=c "}}}},
		{"run|s.ssp|--stateless|c1|--stateless|a,b", simulate.OpenOptions{Stateless: []string{"c1", "a,b"}}},
		{"run|--strict=false|--|s.ssp", simulate.OpenOptions{}},
		{"run|--log-level|debug|s.ssp", simulate.OpenOptions{Debug: true}},
	} {
		f := &fake{}
		if code, _, stderr := call(t, f, strings.Split(tt.args, "|")...); code != exitDone {
			t.Errorf("%s: exit code %d: %s", tt.args, code, stderr)
			continue
		}
		got := f.asked
		equal := func(a, b *simulate.Setting) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
		if f.path != "s.ssp" || got.Strict != tt.want.Strict || got.Debug != tt.want.Debug ||
			!equal(got.Start, tt.want.Start) || !equal(got.Stop, tt.want.Stop) || !equal(got.Step, tt.want.Step) || !equal(got.Tolerance, tt.want.Tolerance) ||
			!slices.Equal(got.Set, tt.want.Set) || !slices.Equal(got.Stateless, tt.want.Stateless) {
			t.Errorf("%s: the engine is asked for %+v", tt.args, got)
		}
		if f.closed != 1 {
			t.Errorf("%s: closed %d times", tt.args, f.closed)
		}
	}
}

// TestUsage holds wrong command lines to exit code 2, a reason and a pointer to
// the help, before anything is opened.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"run":                                        "SYSTEM (an .ssp, a folder, an .ssd or an .fmu) is missing",
		"run|a.ssp|b.ssp":                            `"b.ssp" is one argument too many`,
		"run|s.ssp|--stop-tim|2":                     "there is no flag --stop-tim; did you mean --stop-time?",
		"run|s.ssp|-x":                               "there is no flag -x",
		"run|s.ssp|--stop-time":                      "--stop-time needs a value",
		"run|s.ssp|--output|--quiet":                 "--output needs a value, and --quiet is a flag",
		"run|s.ssp|--stop-time|1|--stop-time=2":      "--stop-time is given twice",
		"run|s.ssp|--stop-time|soon":                 `--stop-time: "soon" is not a finite number`,
		"run|s.ssp|--stop-time|1,5":                  `--stop-time: "1,5" is not a finite number`,
		"run|s.ssp|--stop-time|Inf":                  `--stop-time: "Inf" is not a finite number`,
		"run|s.ssp|--step-size|NaN":                  `--step-size: "NaN" is not a finite number`,
		"run|s.ssp|--step-size|0":                    "--step-size: 0 is not greater than 0",
		"run|s.ssp|--step-size|-1e-3":                "--step-size: -1e-3 is not greater than 0",
		"run|s.ssp|--output-interval|-1":             "--output-interval: -1 is not greater than 0",
		"run|s.ssp|--tolerance|0":                    "--tolerance: 0 is not greater than 0",
		"run|s.ssp|--start-time|2|--stop-time|2":     "--stop-time 2 is not after --start-time 2",
		"run|s.ssp|--set|a.x":                        `--set: "a.x" is not NAME=VALUE`,
		"run|s.ssp|--set|=1":                         `--set: "=1" is not NAME=VALUE`,
		"run|s.ssp|--set|a.x=1|--set|a.x=2":          "--set: a.x is given twice",
		"run|s.ssp|--param|order":                    `--param: "order" is not NAME=VALUE`,
		"run|s.ssp|--algorithm|magic":                `no algorithm is called "magic"`,
		"run|s.ssp|--algorithm=explicit|--param=x=1": `algorithm explicit has no parameter "x"`,
		"run|s.ssp|--record|none|--record|a.*":       "--record: none stands alone",
		"run|s.ssp|--record=":                        "--record: an empty pattern",
		"run|s.ssp|--output=":                        "--output: the value is empty",
		"run|s.ssp|--log-level|loud":                 `--log-level: "loud" is none of debug, info, warn, error`,
		"run|s.ssp|--strict=maybe":                   "invalid boolean value",
		"run|s.ssp|--output|r.json":                  "--output and --manifest are the same file r.json",
		"run|s.ssp|--output|./s.ssp":                 "--output ./s.ssp would overwrite a file that the run reads",
		"run|s.ssp|--input|i.csv|--manifest|i.csv":   "--manifest i.csv would overwrite a file that the run reads",
		"run|--|s.ssp|--quiet":                       `"--quiet" is one argument too many`,
		"rum|s.ssp":                                  `there is no command "rum"; Did you mean "run"?`,
		"--quiet|run|s.ssp":                          "--quiet comes before the command",
		"help|rum":                                   `there is no command "rum"`,
		"info":                                       "FILE (an .fmu, an .ssp, a folder or an .ssd) is missing",
		"algorithms|magic":                           `no algorithm is called "magic"; there are explicit`,
		"completion":                                 "SHELL (bash, zsh or fish) is missing",
		"live":                                       `there is no command "live"; it is a flag: macrostep run SYSTEM --live`,
		"completion|tcsh":                            `"tcsh" is not a known shell`,
		"version|now":                                `"now" is one argument too many; the command takes none`,
	} {
		f := &fake{}
		code, stdout, stderr := call(t, f, strings.Split(args, "|")...)
		if code != exitUsage || stdout != "" || f.path != "" {
			t.Errorf("%s: exit code %d, asked %q, output %q", args, code, f.path, stdout)
		}
		contains(t, args, stderr, "macrostep: ", want, "See: macrostep help")
		if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
			t.Errorf("%s: files were written: %v", args, entries)
		}
	}
	// All mistakes are told at once.
	_, _, stderr := call(t, &fake{}, "run", "s.ssp", "--step-size", "x", "--set", "y", "--tolerance", "-1")
	contains(t, "three mistakes", stderr, "--step-size", "--set", "--tolerance")
}

func TestFileInsteadOfCommand(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "s.ssp"), "")
	code, _, stderr := call(t, &fake{}, path)
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	contains(t, "the hint", stderr, "to run it: macrostep run "+path)
}

func TestRunComplete(t *testing.T) {
	f := &fake{
		findings: []diag.Finding{{ID: "SD1", Level: diag.Warning, File: "s.ssd", Message: "odd", Remedy: "mend it"}, {ID: "SD2", Message: "empty source"}}, warnings: []string{"guessed"},
	}
	code, stdout, stderr := call(t, f, "run", "s.ssp", "--output", "r.csv", "--param", "order=1", "--record", "first.*")
	if code != exitDone || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	contains(t, "the summary", stdout, "complete at t = 1 s: 100 steps", "algorithm explicit", "order=1",
		"results   r.csv (101 rows, 4 columns)", "manifest  r.json", "1 note in", "2 warnings", "s.ssd: odd [SD1]; mend it", "guessed")
	lines := strings.Split(strings.TrimSpace(read(t, "r.csv")), "\n")
	if len(lines) != 102 || lines[0] != "time,first.y1,first.y2,first.u1" || !strings.HasPrefix(lines[101], "1,") {
		t.Errorf("results of %d lines, from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	m := manifestOf(t, "r.json")
	if m.Status != master.Complete || m.Reason != "" || m.Steps.Accepted != 100 || m.Parameters["order"] != "1" || m.Results != "r.csv" ||
		m.System != "s.ssp" || m.StepSize.Source != "DefaultExperiment of first" || len(m.FMUs) != 1 || m.FMUSteps["second"] == 0 ||
		len(m.Warnings) != 2 || !slices.Equal(m.Notes, []string{"empty source [SD2]"}) || len(m.Delivery) == 0 || m.Command[0] != "run" || m.Tolerance != nil || m.EndTime != 1 {
		t.Errorf("manifest %+v", m)
	}
	if m.Versions.Macrostep == "" || m.Versions.Go == "" || m.Versions.Platform == "" {
		t.Errorf("versions %+v", m.Versions)
	}
}

func TestRunQuiet(t *testing.T) {
	code, stdout, stderr := call(t, &fake{warnings: []string{"guessed"}}, "run", "s.ssp", "--quiet")
	if code != exitDone || stdout+stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	read(t, "results.csv")
	read(t, "results.json")
}

func TestRecordNone(t *testing.T) {
	code, stdout, _ := call(t, &fake{}, "run", "s.ssp", "--record", "none", "--output", "timing.csv")
	if code != exitDone || strings.Contains(stdout, "results ") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if _, err := os.Stat("timing.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a result file")
	}
	if m := manifestOf(t, "timing.json"); m.Results != "" || m.Status != master.Complete {
		t.Errorf("manifest %+v", m)
	}
}

func TestManifestPlace(t *testing.T) {
	for output, want := range map[string]string{"r.csv": "r.json", "r": "r.json", "a.b.txt": "a.b.json"} {
		if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--output", output); code != exitDone {
			t.Fatal(stderr)
		}
		read(t, want)
	}
	if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--manifest", "m.json"); code != exitDone {
		t.Fatal(stderr)
	}
	read(t, "m.json")
}

func TestOutputInterval(t *testing.T) {
	if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--output-interval", "0.25"); code != exitDone {
		t.Fatal(stderr)
	}
	if n := strings.Count(read(t, "results.csv"), "\n"); n != 6 {
		t.Errorf("%d lines", n)
	}
}

func TestTwoRunsGiveTheSameBytes(t *testing.T) {
	var results []string
	for range 2 {
		if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--algorithm", "gauss-seidel", "--param", "order=2"); code != exitDone {
			t.Fatal(stderr)
		}
		results = append(results, read(t, "results.csv"))
	}
	if results[0] != results[1] {
		t.Error("they differ")
	}
}

// TestBeforeTheFirstFMU holds errors that are found before a subsystem is
// touched to exit code 2, and to leaving older results alone.
func TestBeforeTheFirstFMU(t *testing.T) {
	dir := t.TempDir()
	table := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	for _, tt := range []struct {
		fake fake
		args []string
		want string
	}{
		{fake{openErr: errBroken}, nil, "macrostep: broken"},
		{fake{}, []string{"--input", "none.csv"}, "none.csv"},
		{fake{}, []string{"--input", table("a.csv", "time,free.u2\n0,1\n")}, `no input is called "free.u2"; did you mean "free.u1"?`},
		{fake{}, []string{"--history", table("b.csv", "time,first.y1\n-1,1\n"), "--param", "order=1"}, `there is no column "first.y2"`},
		{fake{}, []string{"--history", table("c.csv", "time,first.y1,first.y2,second.y1\n-1,1,1,1\n"), "--param", "order=2"}, "1 rows lie before the start time 0 s; the extrapolation order needs 2"},
		{fake{}, []string{"--record", "fist.y1"}, `no variable matches "fist.y1"; did you mean "first.y1"?`},
		{fake{}, []string{"--output", "no/where.csv"}, "create the folder first"},
		{fake{}, []string{"--manifest", "no/where.json"}, "create the folder first"},
		{fake{}, []string{"--log-fmi-calls", "no/where.txt"}, "--log-fmi-calls"},
		{fake{}, []string{"--start-time", "5"}, "is not after the start time 5 s"},
		{fake{algorithm: "magic"}, nil, `no algorithm is called "magic"`},
		{fake{params: map[string]string{"speed": "9"}}, nil, `has no parameter "speed"`},
		{fake{}, []string{"--algorithm", "gauss-seidel", "--param", "sequence=first"}, "sequence"},
	} {
		code, stdout, stderr := call(t, &tt.fake, append([]string{"run", "s.ssp"}, tt.args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%v: exit code %d: %s", tt.args, code, stdout)
		}
		contains(t, strings.Join(tt.args, " "), stderr, tt.want)
		if _, err := os.Stat("results.json"); err == nil {
			t.Errorf("%v: there is a manifest", tt.args)
		}
	}
}

// TestAfterTheFirstFMU holds failing runs to exit code 1, with results so far.
func TestAfterTheFirstFMU(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  mastertest.Faulty
		status master.Status
		reason string
		rows   int
	}{
		{"error", mastertest.Faulty{AtStep: 51, Err: errBroken}, master.Failed, "first: step from t = 0.5 s", 51},
		{"panic", mastertest.Faulty{AtStep: 51, Panic: "oops"}, master.Failed, "oops", 51},
	} {
		f := &fake{fault: &tt.fault}
		code, stdout, stderr := call(t, f, "run", "s.ssp")
		if code != exitFailed || f.closed != 1 {
			t.Errorf("%s: exit code %d, closed %d times", tt.name, code, f.closed)
		}
		contains(t, tt.name, stderr, "macrostep: ", tt.reason)
		contains(t, tt.name, stdout, manifestOf(t, "results.json").Outcome.Ended+" at t = ", "results   results.csv")
		m := manifestOf(t, "results.json")
		if m.Status != tt.status || !strings.Contains(m.Reason, tt.reason) {
			t.Errorf("%s: manifest says %s: %s", tt.name, m.Status, m.Reason)
		}
		if rows := strings.Count(read(t, "results.csv"), "\n") - 1; rows < tt.rows {
			t.Errorf("%s: %d rows are kept", tt.name, rows)
		}
	}
}

// A subsystem that ends the simulation ends the run regularly, an error only with --strict.
func TestTerminated(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := &fake{fault: &mastertest.Faulty{AtStep: 51, Terminate: true}}
		args, want := []string{"run", "s.ssp"}, 0
		if strict {
			args, want = append(args, "--strict"), exitFailed
		}
		code, stdout, stderr := call(t, f, args...)
		if code != want || f.closed != 1 || (stderr != "") != strict {
			t.Errorf("strict %v: exit code %d, closed %d times, %s", strict, code, f.closed, stderr)
		}
		contains(t, "the summary", stdout, "terminated at t = 0.5 s: 50 steps", "first", "asked to end the simulation")
		if m := manifestOf(t, "results.json"); m.Status != master.Terminated || !strings.Contains(m.Reason, "asked to end the simulation") {
			t.Errorf("manifest says %s: %s", m.Status, m.Reason)
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	steps, atStart := 0, ""
	f := &fake{beginStep: func() {
		if steps++; steps == 1 {
			data, err := os.ReadFile("results.json")
			if err != nil {
				t.Error(err)
			}
			atStart = string(data)
		}
		if steps == 30 {
			cancel(master.ErrInterrupted)
		}
	}}
	code, stdout, stderr := callContext(ctx, t, f, "run", "s.ssp")
	if code != exitFailed || f.closed != 1 {
		t.Errorf("exit code %d, closed %d times", code, f.closed)
	}
	contains(t, "the message", stderr, "interrupted")
	contains(t, "the summary", stdout, "interrupted at t = 0.3 s: 30 steps")
	contains(t, "the manifest at the start", atStart, `"status": "incomplete"`)
	if m := manifestOf(t, "results.json"); m.Status != master.Incomplete || m.Steps.Accepted != 30 {
		t.Errorf("manifest %+v", m)
	}
	if n := strings.Count(read(t, "results.csv"), "\n"); n != 32 {
		t.Errorf("%d lines", n)
	}
}

// TestInput drives the free input by a ramp: its integral is exact.
func TestInput(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "in.csv"), "time,free.u1\n0,0\n1,2\n")
	f := &fake{}
	if code, _, stderr := call(t, f, "run", "s.ssp", "--input", path, "--record", "free.*", "--step-size", "0.5"); code != exitDone {
		t.Fatal(stderr)
	}
	if !slices.Equal(f.asked.Driven, []string{"free.u1"}) {
		t.Errorf("driven %v", f.asked.Driven)
	}
	s, err := record.ReadSignals(t.Context(), "results.csv")
	if err != nil {
		t.Fatal(err)
	}
	u, ok := s.Column("free.u1")
	if !ok || s.At(u, 0) != 0 || s.At(u, 0.5) != 1 || s.At(u, 1) != 2 {
		t.Errorf("the input is recorded as %s", read(t, "results.csv"))
	}
}

// TestAlgorithmOfTheSystem holds the order of precedence: flags, then documents.
func TestAlgorithmOfTheSystem(t *testing.T) {
	system := fake{algorithm: "gauss-seidel", params: map[string]string{"order": "2", "delivery": "held"}}
	for _, tt := range []struct {
		args   []string
		preset string
		want   map[string]string
	}{
		{nil, "gauss-seidel", map[string]string{"order": "2", "delivery": "held"}},
		{[]string{"--param", "order=1"}, "gauss-seidel", map[string]string{"order": "1", "delivery": "held"}},
		{[]string{"--algorithm", "explicit"}, "explicit", map[string]string{"order": "0", "delivery": "auto"}},
	} {
		f := system
		f.params = maps.Clone(system.params)
		if code, _, stderr := call(t, &f, append([]string{"run", "s.ssp"}, tt.args...)...); code != exitDone {
			t.Fatal(stderr)
		}
		m := manifestOf(t, "results.json")
		if m.Algorithm != tt.preset {
			t.Errorf("%v: algorithm %s", tt.args, m.Algorithm)
		}
		for k, v := range tt.want {
			if m.Parameters[k] != v {
				t.Errorf("%v: %s=%s", tt.args, k, m.Parameters[k])
			}
		}
		if dropped := slices.ContainsFunc(m.Warnings, func(w string) bool { return strings.Contains(w, "are left out") }); dropped != (tt.preset == "explicit") {
			t.Errorf("%v: warnings %v", tt.args, m.Warnings)
		}
	}
}

// Parameters of a system that names no algorithm go to those that take them; flags
// are held to the algorithm in force.
func TestParametersForSomeAlgorithms(t *testing.T) {
	params := map[string]string{"control.safety": "6", "control.rtol": "1e-3,second.y1:1e-2", "control.h0": "1e-4", "order": "2"}
	for _, tt := range []struct {
		args []string
		note string
		want map[string]string
	}{
		{nil, "algorithm explicit does not take parameters of the system that are for others: control.h0, control.rtol, control.safety", map[string]string{"order": "2"}},
		{[]string{"--algorithm", "predictor-corrector"}, "are for others: control.rtol, control.safety=6", map[string]string{"order": "2", "control.safety": "0.8"}},
		{[]string{"--algorithm", "ex-slocal"}, "", map[string]string{"order": "2", "control.safety": "6", "control.rtol": "1e-3,second.y1:1e-2", "control.h0": "1e-4"}},
		{[]string{"--algorithm", "ex-slocal", "--step-size", "0.25"}, "", map[string]string{"control.safety": "6", "control.h0": "auto"}},
		{[]string{"--algorithm", "ex-slocal", "--step-size", "0.25", "--param", "control.h0=1e-5"}, "", map[string]string{"control.h0": "1e-5"}},
		{[]string{"--algorithm", "ex-slocal", "--param", "control.safety=3"}, "", map[string]string{"control.safety": "3"}},
	} {
		f := fake{params: maps.Clone(params)}
		if code, _, stderr := call(t, &f, append([]string{"run", "s.ssp"}, tt.args...)...); code != exitDone {
			t.Fatalf("%v: %s", tt.args, stderr)
		}
		m := manifestOf(t, "results.json")
		for k, v := range tt.want {
			if m.Parameters[k] != v {
				t.Errorf("%v: %s=%s", tt.args, k, m.Parameters[k])
			}
		}
		notes := strings.Join(m.Notes, "\n")
		if told := strings.Contains(notes, "does not take"); told != (tt.note != "") || !strings.Contains(notes, tt.note) {
			t.Errorf("%v: notes %s", tt.args, notes)
		}
	}
	code, _, stderr := call(t, &fake{params: params}, "run", "s.ssp", "--param", "control.safety=3")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	contains(t, "a flag for another algorithm", stderr, `no parameter "control.safety"`)
	code, _, stderr = call(t, &fake{params: map[string]string{"control.safety": "-1"}}, "run", "s.ssp")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	contains(t, "a value that no algorithm takes", stderr, "annotation of macrostep")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"-h"}} {
		code, stdout, stderr := call(t, &fake{}, args...)
		if code != exitDone || stderr != "" {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
		contains(t, "help", stdout, "macrostep demo", "COMMANDS", "algorithms", "completion", "Exit codes")
	}
	for _, c := range []string{"run", "info", "algorithms", "plot", "compare", "report", "scenario", "demo", "completion", "man", "version"} {
		var texts []string
		for _, args := range [][]string{{"help", c}, {c, "--help"}, {c, "x", "-h"}} {
			code, stdout, stderr := call(t, &fake{}, args...)
			if code != exitDone || stderr != "" {
				t.Errorf("%v: exit code %d: %s", args, code, stderr)
			}
			texts = append(texts, stdout)
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Errorf("%s: the ways to ask for help differ", c)
		}
		contains(t, c, texts[0], "Example", "macrostep "+c)
	}
}

func TestVersion(t *testing.T) {
	_, command, _ := call(t, &fake{}, "version")
	contains(t, "version", command, "macrostep ", "go1.", "/")
	if code, flag, _ := call(t, &fake{}, "--version"); code != exitDone || !strings.Contains(flag, simulate.Version()) {
		t.Errorf("--version: %s", flag)
	}
}

func TestAlgorithms(t *testing.T) {
	_, list, _ := call(t, &fake{}, "algorithms")
	contains(t, "the list", list, "explicit (default)", "gauss-seidel")
	_, one, _ := call(t, &fake{}, "algorithms", "explicit")
	contains(t, "the explanation", one, "Source: schweizer", "order=0  (0 … 5)", "--algorithm explicit --param")
	for line := range strings.Lines(one) {
		if len([]rune(line)) > 80 {
			t.Errorf("a line is too long: %s", line)
		}
	}
}

func TestDemo(t *testing.T) {
	f := &fake{}
	code, stdout, stderr := call(t, f, "demo", "my examples")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	at := func(name string) string { return filepath.Join("my examples", name) }
	contains(t, "the demo", stdout, "built "+at("two-mass-ff.ssp"), "complete at t = 1 s: 1000 steps", at("quarter-car-a.csv"),
		"Try next", "run '"+at("quarter-car-a.ssp")+"' --algorithm gauss-seidel")
	if !strings.HasSuffix(stdout, at("quarter-car-a.html")+"\n") {
		t.Errorf("the demo does not end with the path of its page:\n%s", stdout)
	}
	if f.path != at("quarter-car-a.ssp") || f.asked.Step == nil || f.asked.Step.Value != 1e-3 {
		t.Errorf("asked for %s with %+v", f.path, f.asked)
	}
	if m := manifestOf(t, at("quarter-car-a.json")); m.Algorithm != "explicit" || m.Status != master.Complete {
		t.Errorf("manifest %+v", m)
	}
	code, _, stderr = call(t, &fake{compiler: errors.New("no C compiler: install gcc or clang, or set CC")}, "demo")
	if code != exitUsage {
		t.Errorf("without compiler: exit code %d", code)
	}
	contains(t, "without compiler", stderr, "building the example quarter-car-a: no C compiler: install gcc or clang")
}

// The chain of the flags is built and run; what cannot be is told before.
func TestDemoChain(t *testing.T) {
	f := &fake{}
	code, stdout, stderr := call(t, f, "demo", "--masses", "30", "chain", "my chain", "--subsystems=3", "--ends", "5", "--damping", "2e3", "--set", "seed=4", "--stop-time", "0.5")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if c := f.chain; c.Masses != 30 || c.Subsystems != 3 || c.Ends != 5 || !maps.Equal(c.Set, map[string]float64{"d": 2e3, "seed": 4}) {
		t.Errorf("the chain is %+v", c)
	}
	at := func(name string) string { return filepath.Join("my chain", name) }
	contains(t, "the chain", stdout, "built "+at("chain.ssp"), "--algorithm ex-slocal --stop-time 0.5", "complete at t = 0.5 s", at("chain.csv"))
	if f.path != at("chain.ssp") || f.asked.Stop == nil || f.asked.Stop.Value != 0.5 {
		t.Errorf("asked for %s with %+v", f.path, f.asked)
	}
	for want, args := range map[string][]string{
		"write: macrostep demo chain --masses":  {"--masses", "30"},
		"do not make 7 subsystems":              {"chain", "--masses", "5", "--subsystems", "7"},
		`no parameter "q"; it has m, c, d`:      {"chain", "--set", "q=3"},
		"the value is not a number":             {"chain", "--set", "m=heavy"},
		"give the same parameter":               {"chain", "--set", "d=3", "--damping", "3"},
		`no algorithm is called "magic"`:        {"chain", "--algorithm", "magic"},
		"--stop-time: -1 is not greater":        {"chain", "--stop-time=-1"},
		`"more" is one argument too many`:       {"chain", "dir", "more"},
		"invalid value":                         {"chain", "--masses", "many"},
		"the chain: no C compiler: install gcc": nil,
	} {
		f := &fake{}
		if args == nil {
			args, f.compiler = []string{"chain"}, errors.New("no C compiler: install gcc or clang, or set CC")
		}
		code, stdout, stderr := call(t, f, append([]string{"demo"}, args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%v: exit code %d: %s", args, code, stdout)
		}
		contains(t, strings.Join(args, " "), stderr, want)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, _ := call(t, &fake{}, "completion", shell)
		if code != exitDone {
			t.Errorf("%s: exit code %d", shell, code)
		}
		contains(t, shell, script, "macrostep", completeCommand)
	}
	table := filepath.Join(t.TempDir(), "r.csv")
	write(t, table, "time,a.x,a.y,b.z\n0,1,2,3\n")
	for words, want := range map[string]string{
		"":                         "run info validate bonds analyze algorithms plot compare report ssp scenario demo completion man version help",
		"al":                       "algorithms",
		"help|ru":                  "run",
		"run|--st":                 "--start-time --stop-time --step-size --stateless --strict --step-timeout",
		"run|--algorithm|":         "explicit gauss-seidel implicit ex-local ex-milne ex-slocal im-milne im-slocal richardson predictor-corrector ecco energy-correction model-based-corrector",
		"run|--algorithm|=":        "explicit gauss-seidel implicit ex-local ex-milne ex-slocal im-milne im-slocal richardson predictor-corrector ecco energy-correction model-based-corrector",
		"run|--algorithm|=|g":      "gauss-seidel",
		"run|--algorithm=g":        "--algorithm=gauss-seidel",
		"run|s.ssp|--log-level|":   "debug info warn error",
		"run|s.ssp|--log-level=er": "--log-level=error",
		"run|--param|o":            "order=",
		"run|--algorithm|gauss-seidel|--param|seq": "sequence=",
		"run|--param|order|=":                      "",
		"run|--output|":                            "",
		"run|--quiet|":                             "",
		"run|":                                     "",
		"algorithms|":                              "explicit gauss-seidel implicit ex-local ex-milne ex-slocal im-milne im-slocal richardson predictor-corrector ecco energy-correction model-based-corrector",
		"completion|f":                             "fish",
		"nothing|":                                 "",
		"run|--on-crash|r":                         "restart",
		"run|--debug|c":                            "call-by-call",
		"compare|--norm|":                          "range rms",
		"plot|" + table + "|--select|":             "a. b.",
		"plot|-o|p.svg|" + table + "|--select|a.":        "a.x a.y",
		"compare|" + table + "|" + table + "|--rtol|a.x": "a.x=",
		"report|" + table + "|--select=b":                "--select=b.",
		"plot|--select|":                                 "",
		"plot|":                                          "",
		"run|" + table + "|--set|":                       "car. road.",
		"run|" + table + "|--set|car.wheel.":             "car.wheel.k=",
		"run|" + table + "|--record|car.w":               "car.wheel.",
		"info|" + table + "|--explain|car.wheel.x":       "car.wheel.x",
		"ssp|set|" + table + "|road.":                    "road.h=",
		"demo|ch":                                        "chain",
	} {
		code, stdout, stderr := call(t, &fake{}, append([]string{completeCommand}, strings.Split(words, "|")...)...)
		var got []string
		for line := range strings.Lines(stdout) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if code != exitDone || stderr != "" || strings.Join(got, " ") != want {
			t.Errorf("%q completes to %q, want %q", words, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	for _, name := range []string{"m.fmu", "s.ssp"} {
		for _, format := range []string{"", "--json"} {
			args := []string{"info", name}
			golden := filepath.Join("testdata", "info-"+strings.TrimPrefix(filepath.Ext(name), ".")+".txt")
			if format != "" {
				args = []string{"info", format, name}
				golden = strings.TrimSuffix(golden, ".txt") + ".json"
			}
			golden, err := filepath.Abs(golden)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(golden), func(t *testing.T) {
				code, stdout, stderr := call(t, &fake{}, args...)
				if code != exitDone || stderr != "" {
					t.Fatalf("exit code %d: %s", code, stderr)
				}
				if *update {
					write(t, golden, stdout)
				}
				if want := read(t, golden); stdout != want {
					t.Errorf("%s\nwant\n%s", stdout, want)
				}
				if format != "" && !json.Valid([]byte(stdout)) {
					t.Error("it is no JSON")
				}
			})
		}
	}
	if code, _, stderr := call(t, &fake{openErr: errBroken}, "info", "m.fmu"); code != exitUsage || !strings.Contains(stderr, "broken") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("run s.ssp --set a=1,2 --quiet")
	f.Add("run -- --x --stop-time")
	f.Add("run --param=x= -h --strict=")
	cmd := (&program{}).runCommand()
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		flags, rest, help, err := arrange(cmd, args)
		if err != nil || help {
			return
		}
		if len(flags)+len(rest) > len(args) {
			t.Errorf("%q grows to %q and %q", args, flags, rest)
		}
		again, more, _, err := arrange(cmd, slices.Concat(flags, []string{"--"}, rest))
		if err != nil || !slices.Equal(again, flags) || !slices.Equal(more, rest) {
			t.Errorf("%q and %q are arranged to %q and %q: %v", flags, rest, again, more, err)
		}
	})
}

// Every command that writes --output takes -o for it, and shows that in its help; no flag takes
// an empty value.
func TestOutputAlias(t *testing.T) {
	commands := 0
	for _, c := range (&program{}).app().Commands {
		if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == flagOutput }) {
			continue
		}
		commands++
		if flags, _, _, err := arrange(c, []string{"-o", "f"}); err != nil || !slices.Equal(flags, []string{"--output=f"}) {
			t.Errorf("%s: %v, %v", c.Name, flags, err)
		}
		contains(t, c.Name, helpText(c), "  -o, --output F")
		args := append(strings.Fields(c.Name), ".", "-o", "")
		if c.Name == "ssp set" {
			args = append(args, "a.b=1")
		}
		_, _, stderr := call(t, &fake{}, args...)
		contains(t, c.Name, stderr, "--output: the value is empty")
	}
	if commands != 8 {
		t.Errorf("%d commands have --output", commands)
	}
}

// TestHelpFits keeps the help within the width of a terminal.
func TestHelpFits(t *testing.T) {
	for _, c := range []string{"run", "info", "algorithms", "plot", "compare", "report", "scenario", "demo", "completion", "man", "version"} {
		_, text, _ := call(t, &fake{}, "help", c)
		for line := range strings.Lines(text) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 84 {
				t.Errorf("%s: a line is too long: %s", c, line)
			}
		}
	}
}

// The format of the results is that of the file's extension.
func TestOutputFormat(t *testing.T) {
	for _, c := range []struct {
		args  []string
		file  string
		begin string
	}{
		{[]string{"--output", "r.arrow"}, "r.arrow", "ARROW1\x00\x00\xff\xff\xff\xff"},
		{[]string{"-o", "r.arrows"}, "r.arrows", "\xff\xff\xff\xff"},
		{[]string{"--output", "r.feather"}, "r.feather", "ARROW1\x00\x00\xff\xff\xff\xff"},
		{[]string{"--output", "x.dat"}, "x.dat", "time,first.y1"},
	} {
		code, stdout, stderr := call(t, &fake{}, append([]string{"run", "s.ssp"}, c.args...)...)
		if code != exitDone {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
			continue
		}
		contains(t, "the summary", stdout, "results   "+c.file+" (101 rows, ")
		if text := read(t, c.file); !strings.HasPrefix(text, c.begin) {
			t.Errorf("%v: the file begins with %q", c.args, text[:20])
		}
		if name := strings.TrimSuffix(c.file, filepath.Ext(c.file)) + ".json"; manifestOf(t, name).Status != master.Complete {
			t.Errorf("%v: the manifest is not complete", c.args)
		}
	}
	for _, c := range [][2]string{{"--output=r.parquet", "--output r.parquet: files .parquet are not written"}} {
		code, _, stderr := call(t, &fake{}, "run", "s.ssp", c[0])
		if code != exitUsage {
			t.Errorf("%s: exit code %d", c[0], code)
		}
		contains(t, c[0], stderr, c[1])
	}
}

// --debug profile leaves profiles that can be read, also of a run that fails, and no folder
// that cannot be made goes unnoticed.
func TestProfile(t *testing.T) {
	if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--debug", "profile=p/q"); code != exitDone {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, name := range []string{cpuProfile, heapProfile} {
		if text := read(t, filepath.Join("p/q", name)); !strings.HasPrefix(text, "\x1f\x8b") {
			t.Errorf("%s is no profile", name)
		}
	}
	if code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--record", "fist.y1", "--debug", "profile=failed"); code == exitDone {
		t.Error("a wrong name is recorded: " + stderr)
	}
	read(t, filepath.Join("failed", heapProfile))
	code, _, stderr := call(t, &fake{}, "run", "s.ssp", "--debug", "profile="+filepath.Join(write(t, filepath.Join(t.TempDir(), "file"), ""), "p"))
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	contains(t, "no folder", stderr, "--debug profile: ", "name a folder")
}

// The manual page has every command and flag, and no line that troff would take for a
// command of its own.
func TestMan(t *testing.T) {
	code, page, stderr := call(t, &fake{}, "man")
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	app := (&program{}).app()
	for _, c := range app.Commands {
		contains(t, "the page", page, "\n.SH "+strings.ToUpper(c.Name)+"\n")
		for _, f := range c.Flags {
			contains(t, "the page", page, `\-\-`+strings.ReplaceAll(f.Names()[0], "-", `\-`))
		}
	}
	macros := regexp.MustCompile(`^\.(TH|SH|SS|PP|TP|B|nf|fi|nh|ad)\b`)
	for line := range strings.Lines(page) {
		if (line[0] == '.' || line[0] == '\'') && !macros.MatchString(line) {
			t.Errorf("a line that troff takes for a command: %s", line)
		}
		if strings.ContainsFunc(line, func(c rune) bool { return c > 0x7f }) {
			t.Errorf("a line that is not in ASCII: %s", line)
		}
	}
	if n := strings.Count(page, "\n.nf\n"); n != strings.Count(page, "\n.fi\n") {
		t.Errorf("%d times lines stay as they are, and %d times that ends", n, strings.Count(page, "\n.fi\n"))
	}
}
