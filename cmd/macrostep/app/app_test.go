package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// Command lines lead to these options for opening the system.
func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"run|s.ssp|--stop-time|2|--step-size=0.5":                   "stop-time=2 step-size=0.5",
		"run|--stop-time=2|s.ssp|--start-time|-1":                   "start-time=-1 stop-time=2",
		"run|-stop-time|2|s.ssp":                                    "stop-time=2",
		"run|--quiet|s.ssp|--strict|--tolerance|1e-6":               "tolerance=1e-6 strict=true",
		"run|s.ssp|--set|a.x=1,2|--set=a.v[1,2]=-3|--set|a.s= b=c ": "set=a.x=1,2 set=a.v[1,2]=-3 set=a.s= b=c ",
		"run|s.ssp|--stateless|c1|--quirk|a,b=stateless":            "quirk=a,b=stateless quirk=c1=stateless",
		"run|--strict=false|--|s.ssp":                               "strict=false",
		"run|-vv|s.ssp":                                             "debug",
		"s.ssp|--stop-time|2":                                       "stop-time=2",
	} {
		f := &fake{}
		if code, _, stderr := call(t, f, strings.Split(args, "|")...); code != exitDone {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
			continue
		}
		var got []string
		for _, g := range f.asked.Given {
			got = append(got, g.Name+"="+g.Text)
		}
		if f.asked.Debug {
			got = append(got, "debug")
		}
		if f.path != "s.ssp" || f.closed != 1 || strings.Join(got, " ") != want {
			t.Errorf("%s: %s is opened with %q and closed %d times", args, f.path, got, f.closed)
		}
	}
}

// Wrong command lines give exit code 2, the reason and a hint at the help, before anything is opened.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"run":                                        "SYSTEM (an .ssp, a folder, an .ssd or an .fmu) is missing",
		"run|a.ssp|b.ssp":                            `"b.ssp" is one argument too many`,
		"run|s.ssp|--check|5%":                       `as in --check=5%`,
		"run|s.ssp|--stop-tim|2":                     `there is no flag --stop-tim; did you mean "--stop-time"?`,
		"demo|--list":                                "there is no flag --list (macrostep demo --help-all lists them)",
		"run|s.ssp|-x":                               "there is no flag -x",
		"run|s.ssp|--stop-time":                      "--stop-time needs a value",
		"run|s.ssp|--output|--quiet":                 "--output needs a value, and --quiet is a flag",
		"run|s.ssp|--stop-time|1|--stop-time=2":      "--stop-time is given twice",
		"run|s.ssp|--stop-time|1,5":                  `--stop-time: "1,5" is not a finite number`,
		"run|s.ssp|--stop-time|Inf":                  `--stop-time: "Inf" is not a finite number`,
		"run|s.ssp|--step-size|NaN":                  `--step-size: "NaN" is not a finite number`,
		"run|s.ssp|--step-size|0":                    "--step-size: 0 is not greater than 0",
		"run|s.ssp|--output-interval|-1":             "--output-interval: -1 is not greater than 0",
		"run|s.ssp|--tolerance|0":                    "--tolerance: 0 is not greater than 0",
		"run|s.ssp|--start-time|2|--stop-time|2":     "--stop-time 2 is not after --start-time 2",
		"run|s.ssp|--set|a.x":                        `--set: "a.x" is not NAME=VALUE`,
		"run|s.ssp|--set|=1":                         `--set: "=1" is not NAME=VALUE`,
		"run|s.ssp|--set|a.x=1|--set|a.x=2":          "--set: a.x is given twice",
		"run|s.ssp|--param|order":                    `--param: "order" is not KEY=VALUE`,
		"run|s.ssp|--algorithm|magic":                `no algorithm is called "magic"`,
		"run|s.ssp|--algorithm=explicit|--param=x=1": `algorithm explicit has no parameter "x"`,
		"run|s.ssp|--record|none|--record|a.*":       "--record: none must be the only pattern",
		"run|s.ssp|--record=":                        "--record: the value is empty",
		"run|s.ssp|--verbose=3":                      `--verbose: "3" is not 1 or 2`,
		"run|s.ssp|--strict=maybe":                   "invalid boolean value",
		"run|s.ssp|--output=r.arrow":                 "--output r.arrow: files .arrow are not written",
		"run|s.ssp|--output|r|--manifest|r":          "--output and --manifest are the same file r",
		"run|s.ssp|--output|./s.ssp":                 "--output ./s.ssp would overwrite a file that the run reads",
		"run|s.ssp|--input|i.csv|--manifest|i.csv":   "--manifest i.csv would overwrite a file that the run reads",
		"run|s.ssp|--live|0|--report|results.csv":    "--output and --report are the same file",
		"run|s.ssp|--live|x":                         `"x" is neither HOST:PORT nor a port`,
		"run|s.ssp|--live|":                          "--live: the value is empty",
		"run|s.ssp|--debug|live-paused":              "the run is continued from a page, which needs --live",
		"run|s.ssp|--debug|paused":                   `"paused" is not one of call-by-call, live-paused, realtime-unbounded, calls=, profile=`,
		"run|s.ssp|--debug|profile":                  "is not one of",
		"run|s.ssp|--debug|profile=":                 "is not one of",
		"run|s.ssp|--debug|live-paused=x":            "is not one of",
		"run|s.ssp|--debug|realtime-unbounded":       "needs --realtime",
		"run|--|s.ssp|--quiet":                       `"--quiet" is one argument too many`,
		"rum|s.ssp":                                  `there is no command "rum"; did you mean "run"?`,
		"--quiet|run|s.ssp":                          "--quiet comes before the command",
		".":                                          ". is a folder without SystemStructure.ssd",
		"help|rum":                                   `there is no command and no topic "rum"; did you mean "run"?`,
		"help|Sobol indices":                         `did you mean "studies"?`,
		"help|quirk":                                 `did you mean "quirks"?`,
		"ssp|grph|s.ssp":                             `there is no command "ssp grph"; did you mean "graph"?`,
		"completion|bsh":                             `"bsh" is not a known shell; did you mean "bash"?`,
		"run|s.ssp|--overrun|skp":                    `"skp" is not one of catch-up, skip, stop; did you mean "skip"?`,
		"run|s.ssp|--on-crash|restat":                `"restat" is not one of stop, restart; did you mean "restart"?`,
		"run|s.ssp|--debug|call=x":                   `did you mean "calls="?`,
		"info":                                       "FILE (an .fmu, an .ssp, a folder or an .ssd) is missing",
		"algorithms|magic":                           `no algorithm is called "magic"; choose one of explicit`,
		"completion":                                 "SHELL (bash, zsh or fish) is missing",
		"completion|tcsh":                            `"tcsh" is not a known shell`,
		"live":                                       `there is no command "live"; it is a flag: macrostep run SYSTEM --live`,
		"version|now":                                `"now" is one argument too many; the command takes none`,
		"ssp":                                        "the command is missing; there are: new, set, graph, pack, unpack",
		"ssp|draw":                                   `there is no command "ssp draw"`,
		"help|ssp|draw":                              `there is no command "ssp draw"`,
		"ssp|new":                                    "FMU is missing",
		"ssp|pack|a|b":                               `"b" is one argument too many`,
		"ssp|graph|s.ssp|--ouput=":                   `there is no flag --ouput; did you mean "--output"?`,
		"ssp|unpack|plain":                           "plain has no extension to leave out",
	} {
		f := &fake{}
		code, stdout, stderr := call(t, f, strings.Split(args, "|")...)
		if code != exitUsage || stdout != "" || f.path != "" {
			t.Errorf("%s: exit code %d, asked %q, output %q", args, code, f.path, stdout)
		}
		contains(t, args, stderr, "macrostep: ", want, "See: macrostep help")
		if strings.Contains(stderr, "?;") {
			t.Errorf("%s: a question does not end its message: %s", args, stderr)
		}
		if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
			t.Errorf("%s: files were written: %v", args, entries)
		}
	}
	// All mistakes are reported together.
	_, _, stderr := call(t, &fake{}, "run", "s.ssp", "--step-size", "x", "--set", "y", "--tolerance", "-1")
	contains(t, "three mistakes", stderr, "--step-size", "--set", "--tolerance")
}

// The summary has what a user must see; --verbose adds how the coupling worked, and the notes.
func TestRunComplete(t *testing.T) {
	f := &fake{
		findings: []diag.Finding{{ID: "SD1", Level: diag.Warning, File: "s.ssd", Path: "/x", Line: 3, Message: "odd", Remedy: "mend it"}, {ID: "SD2", Message: "empty source"},
			{ID: "SD3", Message: "old"}},
		warnings: []string{"guessed"},
	}
	code, stdout, stderr := call(t, f, "run", "s.ssp", "--output", "r.csv", "--param", "order=1", "--record", "first.*")
	if code != exitDone || stderr != "warning: s.ssd:3: odd; mend it [SD1]\nwarning: guessed\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	want := regexp.MustCompile(`^complete at t = 1 s: 100 steps of 0\.01 s in .* real time\)
results   r\.csv \(101 rows, 4 columns\)
manifest  r\.json \(2 notes\)
$`)
	if !want.MatchString(stdout) {
		t.Errorf("the summary is\n%s", stdout)
	}
	_, stdout, _ = call(t, f, "run", "s.ssp", "--output", "r.csv", "--param", "order=1", "--record", "first.*", "--verbose")
	contains(t, "the summary", stdout, "algorithm explicit", "order=1", "note: empty source [SD2]\n", "note: old [SD3]\n")
	lines := strings.Split(strings.TrimSpace(read(t, "r.csv")), "\n")
	if len(lines) != 102 || lines[0] != "time,first.y1,first.y2,first.u1" || !strings.HasPrefix(lines[101], "1,") {
		t.Errorf("results of %d lines, from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
	m := manifestOf(t, "r.json")
	if m.Status != master.Complete || m.Reason != "" || m.Steps.Accepted != 100 || m.Parameters["order"] != "1" || m.Results != "r.csv" ||
		m.System != "s.ssp" || m.StepSize.Source != "DefaultExperiment of first" || len(m.FMUs) != 1 || m.FMUSteps["second"] == 0 ||
		len(m.Warnings) != 2 || !slices.Equal(m.Notes, []string{"empty source [SD2]", "old [SD3]"}) || len(m.Delivery) == 0 || m.Command[0] != "run" || m.Tolerance != nil || m.EndTime != 1 {
		t.Errorf("manifest %+v", m)
	}
	if m.Versions.Macrostep == "" || m.Versions.Go == "" || m.Versions.Platform == "" {
		t.Errorf("versions %+v", m.Versions)
	}
}

// The summary and the warnings fit ten lines, however many there are.
func TestSummaryFits(t *testing.T) {
	f := &fake{}
	for k := range 20 {
		f.warnings = append(f.warnings, fmt.Sprintf("guess %d", k))
	}
	_, stdout, stderr := call(t, f, "run", "s.ssp", "--report", "r.html")
	if n := strings.Count(stdout+stderr, "\n"); n != mostLines {
		t.Errorf("%d lines:\n%s%s", n, stdout, stderr)
	}
	contains(t, "the warnings", stderr, "warning: guess 4\n15 more warnings in results.json\n")
	if _, _, stderr = call(t, f, "run", "s.ssp", "--verbose"); strings.Count(stderr, "warning: ") != 20 {
		t.Errorf("--verbose does not print all warnings:\n%s", stderr)
	}
}

// A large table is announced before the first step, with the remedy.
func TestLargeTable(t *testing.T) {
	for args, want := range map[string]string{
		"--stop-time|4e5":                        "results.csv will have about 3.8 GB: 7 variables, a row every 0.01 s; record less with --record or --output-interval, or write",
		"--stop-time|4e5|-o|r.parquet":           "r.parquet will have about 2.6 GB: 7 variables, a row every 0.01 s; record less with --record or --output-interval\n",
		"--stop-time|4e5|--output-interval|1000": "",
		"--stop-time|4e5|--record|none":          "",
		"--stop-time|4e5|--quiet":                "",
	} {
		f := &fake{fault: &mastertest.Faulty{Terminate: true, AtStep: 2}}
		code, _, stderr := call(t, f, append([]string{"run", "s.ssp"}, strings.Split(args, "|")...)...)
		if code != exitDone || want == "" && strings.Contains(stderr, "will have") {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
		contains(t, args, stderr, want)
	}
}

// Flags choose the files of a run, their format and the number of rows.
func TestOutputs(t *testing.T) {
	for args, want := range map[string]struct {
		table, begin string // "" = there is none
		manifest     string
		lines        int
	}{
		"--quiet":                           {"results.csv", "time,", "results.json", 102},
		"--output-interval 0.25":            {"results.csv", "time,", "results.json", 6},
		"--output r":                        {"r", "time,", "r.json", 102},
		"-o a.b.txt":                        {"a.b.txt", "time,first.y1", "a.b.txt.json", 102},
		"--manifest m.json":                 {"results.csv", "time,", "m.json", 102},
		"--output r.parquet":                {"r.parquet", "PAR1", "r.parquet.json", 0},
		"--output r.mat":                    {"r.mat", "3\x00\x00\x00\x04\x00\x00\x00\x0b\x00\x00\x00", "r.mat.json", 0},
		"--record none --output timing.csv": {"", "", "timing.json", 0},
	} {
		code, stdout, stderr := call(t, &fake{warnings: []string{"guessed"}}, append([]string{"run", "s.ssp"}, strings.Fields(args)...)...)
		if quiet := args == "--quiet"; code != exitDone || quiet != (stderr == "") || quiet != (stdout == "") {
			t.Errorf("%s: exit code %d: %s%s", args, code, stdout, stderr)
		} else if !quiet && strings.Contains(stdout, "results   "+want.table+" (") != (want.table != "") {
			t.Errorf("%s: %s", args, stdout)
		}
		if m := manifestOf(t, want.manifest); m.Status != master.Complete || m.Results != want.table {
			t.Errorf("%s: manifest %+v", args, m)
		}
		if want.table == "" {
			if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
				t.Errorf("%s: files %v", args, files)
			}
			continue
		}
		text := read(t, want.table)
		if n := strings.Count(text, "\n"); !strings.HasPrefix(text, want.begin) || want.lines != 0 && n != want.lines {
			t.Errorf("%s: %d lines from %q on", args, n, text[:20])
		}
	}
}

// Errors found before a subsystem is touched give exit code 2 and leave older results alone.
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

// A run that fails gives exit code 1 and keeps its results, and has its page. A subsystem that
// ends the simulation ends the run regularly, and is an error only with --strict.
func TestAfterTheFirstFMU(t *testing.T) {
	const asked = "asked to end the simulation"
	for _, tt := range []struct {
		fault  mastertest.Faulty
		args   []string
		code   int
		status master.Status
		ended  string
		reason string
	}{
		{mastertest.Faulty{Err: errBroken}, nil, exitFailed, master.Failed, "failed at t = ", "first: step from t = 0.5 s"},
		{mastertest.Faulty{Panic: "oops"}, []string{"--report", "run.html"}, exitFailed, master.Failed, "failed at t = ", "oops"},
		{mastertest.Faulty{Terminate: true}, nil, exitDone, master.Terminated, "ended early at t = 0.5 s: 50 steps", asked},
		{mastertest.Faulty{Terminate: true}, []string{"--strict"}, exitFailed, master.Terminated, "ended early at t = 0.5 s: 50 steps", asked},
	} {
		tt.fault.AtStep = 51
		f := &fake{fault: &tt.fault}
		code, stdout, stderr := call(t, f, append([]string{"run", "s.ssp"}, tt.args...)...)
		if code != tt.code || f.closed != 1 || (stderr != "") != (code != exitDone) {
			t.Errorf("%s: exit code %d, closed %d times, %s", tt.reason, code, f.closed, stderr)
		}
		if code != exitDone {
			contains(t, "the error", stderr, "macrostep: ", tt.reason)
		}
		contains(t, "the summary", stdout, tt.ended, "results   results.csv")
		if m := manifestOf(t, "results.json"); m.Status != tt.status || !strings.Contains(m.Reason, tt.reason) {
			t.Errorf("manifest %s: %s", m.Status, m.Reason)
		}
		if rows := strings.Count(read(t, "results.csv"), "\n") - 1; rows < 51 {
			t.Errorf("%s: %d rows are kept", tt.reason, rows)
		}
		if tt.fault.Panic != nil {
			contains(t, "the page", read(t, "run.html"), ">failed<", "oops", `data-name="`)
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
	code, stdout, stderr := callIn(ctx, t, t.TempDir(), f, "run", "s.ssp")
	if code != exitFailed || f.closed != 1 {
		t.Errorf("exit code %d, closed %d times", code, f.closed)
	}
	contains(t, "the message", stderr, "interrupted")
	contains(t, "the summary", stdout, "ended early at t = 0.3 s: 30 steps")
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

// Flags beat the documents. Parameters of a system that names no algorithm go to the algorithms
// that take them; parameters given as flags must fit the algorithm in force.
func TestAlgorithmOfTheSystem(t *testing.T) {
	named := fake{algorithm: "gauss-seidel", params: map[string]string{"order": "2", "delivery": "held"}}
	open := fake{params: map[string]string{"control.safety": "6", "control.rtol": "1e-3,second.y1:1e-2", "control.h0": "1e-4", "order": "2"}}
	const notTaken = "algorithm explicit does not take parameters of the system that are for others: control.h0, control.rtol, control.safety"
	for _, tt := range []struct {
		system fake
		args   string
		want   string // algorithm and some of its parameters
		note   string // "" = no parameter of the system is left out
	}{
		{named, "", "gauss-seidel order=2 delivery=held", ""},
		{named, "--param order=1", "gauss-seidel order=1 delivery=held", ""},
		{named, "--algorithm explicit", "explicit order=0 delivery=auto", "are left out"},
		{open, "", "explicit order=2", notTaken},
		{open, "--algorithm predictor-corrector", "predictor-corrector order=2 control.safety=0.8", "are for others: control.rtol, control.safety=6"},
		{open, "--algorithm ex-slocal", "ex-slocal order=2 control.safety=6 control.rtol=1e-3,second.y1:1e-2 control.h0=1e-4", ""},
		{open, "--algorithm ex-slocal --step-size 0.25", "ex-slocal control.safety=6 control.h0=auto", ""},
		{open, "--algorithm ex-slocal --step-size 0.25 --param control.h0=1e-5", "ex-slocal control.h0=1e-5", ""},
		{open, "--algorithm ex-slocal --param control.safety=3", "ex-slocal control.safety=3", ""},
	} {
		tt.system.params = maps.Clone(tt.system.params)
		if code, _, stderr := call(t, &tt.system, append([]string{"run", "s.ssp"}, strings.Fields(tt.args)...)...); code != exitDone {
			t.Fatalf("%s: %s", tt.args, stderr)
		}
		m := manifestOf(t, "results.json")
		for i, want := range strings.Fields(tt.want) {
			name, value, _ := strings.Cut(want, "=")
			if i == 0 && m.Algorithm != want || i > 0 && m.Parameters[name] != value {
				t.Errorf("%s: %s %v, want %s", tt.args, m.Algorithm, m.Parameters, want)
			}
		}
		told := strings.Join(append(m.Notes, m.Warnings...), "\n")
		any := strings.Contains(told, "does not take") || strings.Contains(told, "are left out")
		if any != (tt.note != "") || !strings.Contains(told, tt.note) {
			t.Errorf("%s: notes and warnings %s", tt.args, told)
		}
	}
	refuses(t, t.TempDir(), &open, map[string]string{"run|s.ssp|--param|control.safety=3": `no parameter "control.safety"`})
	bad := &fake{params: map[string]string{"control.safety": "-1"}}
	refuses(t, t.TempDir(), bad, map[string]string{"run|s.ssp": "annotation of macrostep"}) // no algorithm takes the value
}

// All ways to ask for help print the same, with an example, within the width of a terminal; a
// command that writes --output takes -o for it, and no empty value.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"-h"}} {
		code, stdout, stderr := call(t, &fake{}, args...)
		if code != exitDone || stderr != "" {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
		contains(t, "help", stdout, "macrostep demo", "COMMANDS", "algorithms", "completion", "Exit codes")
	}
	outputs := 0
	for _, c := range (&program{}).app().Commands {
		words := strings.Fields(c.Name)
		_, text, _ := call(t, &fake{}, append([]string{"help"}, words...)...)
		for _, args := range [][]string{append(words[:len(words):len(words)], "--help"), append(words[:len(words):len(words)], "-h")} {
			if code, stdout, stderr := call(t, &fake{}, args...); code != exitDone || stderr != "" || stdout != text {
				t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
			}
		}
		contains(t, c.Name, text, "Example", "macrostep "+c.Name)
		_, full, _ := call(t, &fake{}, append(words[:len(words):len(words)], "--help-all")...)
		for _, f := range flagLines(c) {
			contains(t, c.Name, full, "--"+f.name)
		}
		for _, f := range c.Flags {
			if doc, ok := f.(cli.DocGenerationFlag); ok && takesValue(f) && !strings.Contains(doc.GetUsage(), "`") {
				t.Errorf("--%s of %s has no name for its value", f.Names()[0], c.Name)
			}
		}
		if common := commonFlags[c.Name]; common == nil && full != text {
			t.Errorf("--help-all of %s prints something else:\n%s", c.Name, full)
		} else if common != nil {
			contains(t, c.Name, text, "--"+common[0], "--help-all")
		}
		if n := strings.Count(text, "\n"); n > 40 {
			t.Errorf("the help of %s has %d lines", c.Name, n)
		}
		for line := range strings.Lines(c.Description) {
			if len([]rune(line)) > 85 {
				t.Errorf("%s: a line is too long: %s", c.Name, line)
			}
		}
		for _, line := range flagLines(c) { // one line for each
			if len([]rune(line.head+line.usage)) > 190 || strings.Contains(line.usage, "\n") {
				t.Errorf("%s: --%s takes more than a line: %s", c.Name, line.name, line.usage)
			}
		}
		if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == flagOutput }) {
			continue
		}
		outputs++
		if flags, _, _, err := arrange(c, []string{"-o", "f"}); err != nil || !slices.Equal(flags, []string{"--output=f"}) {
			t.Errorf("%s: %v, %v", c.Name, flags, err)
		}
		contains(t, c.Name, text, "  -o, --output ")
		args := append(words, ".", "-o", "")
		if c.Name == "ssp set" {
			args = append(args, "a.b=1")
		}
		_, _, stderr := call(t, &fake{}, args...)
		contains(t, c.Name, stderr, "--output: the value is empty")
	}
	if outputs != 10 {
		t.Errorf("%d commands have --output", outputs)
	}
}

// A system in place of a command is run; other files and folders are refused with a remedy.
func TestSystemIsRun(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"s.ssp", "d/SystemStructure.ssd", "osp/OspSystemStructure.xml", "fmu/modelDescription.xml", "demo/SystemStructure.ssd",
		"empty/v.txt", "p.xml", "t.csv", "c.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), "<a>events:</a>")
	}
	for _, path := range []string{"s.ssp", "s.ssp#v.ssd", "s.fmu", "d", "d/", "d#v.ssd", "d/SystemStructure.ssd", "osp", "osp/OspSystemStructure.xml", "fmu"} {
		f := &fake{}
		if code, _, stderr := callIn(t.Context(), t, dir, f, path, "--stop-time", "2", "--output", "r.csv"); code != exitDone || f.path != path ||
			manifestOf(t, "r.json").Command[0] != "run" {
			t.Errorf("%s: exit code %d, opened %s: %s", path, code, f.path, stderr)
		}
	}
	refuses(t, dir, &fake{}, map[string]string{
		"p.xml":             "to run it: macrostep run p.xml",
		"t.csv":             "to look at it: macrostep plot t.csv",
		"c.yaml":            "macrostep run SYSTEM --scenario c.yaml",
		"empty":             "empty is a folder without SystemStructure.ssd",
		"s.ssp|--stop-tim":  `did you mean "--stop-time"?`,
		"s.ssp|d":           `"d" is one argument too many`,
		"demo|--stop-time=": "--stop-time is for a chain", // the command
	})
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

// The demo builds and runs one example. Several are built only.
func TestDemo(t *testing.T) {
	code, stdout, stderr := call(t, nil, "demo", "-o", "my examples")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	at := func(name string) string { return filepath.Join("my examples", name) }
	contains(t, "the demo", stdout, "built "+at("quarter-car-a.ssp"), "complete at t = 4 s: ", at("quarter-car-a.csv"),
		"in a browser:\n   "+at("quarter-car-a.html"), "Try next", "run '"+at("quarter-car-a.ssp")+"' --algorithm gauss-seidel")
	if m := manifestOf(t, at("quarter-car-a.json")); m.Status != master.Complete || m.System != at("quarter-car-a.ssp") {
		t.Errorf("manifest %+v", m)
	}
	if n := strings.Count(stdout, "\n"); n > 24 {
		t.Errorf("the demo prints %d lines:\n%s", n, stdout)
	}
	code, stdout, stderr = call(t, nil, "demo", "two-mass-fd", "two-mass-ff")
	if code != exitDone || strings.Contains(stdout, "complete") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	contains(t, "two", stdout, " 1 of 2  built ", " 2 of 2  built "+filepath.Join("macrostep-demo", "two-mass-"), "Run one:")
}

// The flags define the chain. Impossible values are refused before anything is built.
func TestDemoChain(t *testing.T) {
	code, stdout, stderr := call(t, nil, "demo", "--masses", "30", "chain", "-o", "my chain", "--subsystems=3", "--ends", "5",
		"--set", "seed=4", "--set=d=2e3", "--stop-time", "0.001")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	at := func(name string) string { return filepath.Join("my chain", name) }
	contains(t, "the chain", stdout, "built "+at("chain.ssp"), "--algorithm ex-slocal --stop-time 0.001", "complete at t = 0.001 s", at("chain.csv"))
	_, stdout, _ = callIn(t.Context(), t, ".", nil, "info", at("chain.ssp"))
	contains(t, "the chain", stdout, "s1.masses        = 5 ", "s2.masses        = 20 ", "s3.total         = 30 ", "s3.seed          = 4 ", "s1.d             = 2000 ")
	t.Setenv("CC", "no-such-compiler")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	refuses(t, t.TempDir(), nil, map[string]string{
		"demo|--masses|30":                     "write: macrostep demo chain --masses",
		"demo|chain|--masses|5|--subsystems|7": "do not make 7 subsystems",
		"demo|chain|--set|q=3":                 `no parameter "q"; it has m, c, d`,
		"demo|chain|--set|m=heavy":             "the value is not a number",
		"demo|chain|--algorithm|magic":         `no algorithm is called "magic"`,
		"demo|chain|--stop-time=-1":            "--stop-time: -1 is not greater",
		"demo|chain|pendula":                   `"pendula" is one argument too many`,
		"demo|pendulum":                        `no example is called "pendulum"; did you mean "pendula"?`,
		"demo|--all|crane":                     "--all builds crane too",
		"demo|chain|--masses|many":             "invalid value",
		"demo|chain":                           "the chain: ",
		"demo":                                 "building examples: ",
	})
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, _ := call(t, &fake{}, "completion", shell)
		if code != exitDone {
			t.Errorf("%s: exit code %d", shell, code)
		}
		contains(t, shell, script, "macrostep", completeCommand)
	}
	const presets = "explicit gauss-seidel implicit ex-local ex-milne ex-slocal im-milne im-slocal richardson predictor-corrector " +
		"ecco energy-correction model-based-corrector"
	dir := t.TempDir()
	table := write(t, filepath.Join(dir, "r.csv"), "time,a.x,a.y,b.z\n0,1,2,3\n")
	described(t, filepath.Join(dir, "car.fmu"), model("car", "output Real wheel.x", "parameter Real wheel.k N/m 1"))
	described(t, filepath.Join(dir, "road.fmu"), model("road", "parameter Real h m 0"))
	in(t, dir, "ssp", "new", "car.fmu", "road.fmu", "-o", "s.ssp")
	system := filepath.Join(dir, "s.ssp")
	for words, want := range map[string]string{
		"":                      "run info validate analyze algorithms plot compare report study worker host ssp demo completion man version help",
		"al":                    "algorithms",
		"help|ru":               "run running",
		"run|--st":              "--start-time --stop-time --step-size --strict --step-timeout",
		"run|--algorithm|":      presets,
		"run|--algorithm|=":     presets,
		"run|--algorithm|=|g":   "gauss-seidel",
		"run|--algorithm=g":     "--algorithm=gauss-seidel",
		"run|s.ssp|--isolate=n": "--isolate=never",
		"run|--param|o":         "order=",
		"run|--algorithm|gauss-seidel|--param|seq": "sequence=",
		"run|--param|order|=":                      "",
		"run|--output|":                            "",
		"run|--quiet|":                             "",
		"run|":                                     "",
		"algorithms|":                              presets,
		"completion|f":                             "fish",
		"nothing|":                                 "",
		"ssp|":                                     "new set graph pack unpack",
		"ssp|g":                                    "graph",
		"help|ssp|p":                               "pack",
		"ssp|new|--connect-":                       "--connect-by-name",
		"ssp|new|--for|":                           "omsimulator osp",
		"ssp|set|--f":                              "--force",
		"run|--on-crash|r":                         "restart",
		"run|--debug|c":                            "call-by-call calls=",
		"compare|--norm|":                          "range rms",
		"plot|" + table + "|--select|":             "a. b.",
		"plot|-o|p.svg|" + table + "|--select|a.":        "a.x a.y",
		"compare|" + table + "|" + table + "|--rtol|a.x": "a.x=",
		"report|" + table + "|--select=b":                "--select=b.",
		"plot|--select|":                                 "",
		"plot|":                                          "",
		"run|" + system + "|--set|":                      "car. road.",
		"run|" + system + "|--set|car.wheel.":            "car.wheel.k=",
		"run|" + system + "|--record|car.w":              "car.wheel.",
		"info|" + system + "|--explain|car.wheel.x":      "car.wheel.x",
		"ssp|set|" + system + "|road.":                   "road.h=",
		"study|--design|m":                               "monte-carlo morris",
		system + "|--stop":                               "--stop-time",
		system + "|--set|road.":                          "road.h=",
		"study|--keep=":                                  "--keep=none --keep=failed --keep=all",
		"study|" + system + "|--vary|car.wheel.":         "car.wheel.k=",
		"study|" + system + "|--vary|run.step":           "run.step-size=",
		"worker|--cr":                                    "--credentials",
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

// The descriptions of an FMU and of a system are those of testdata, for people and as JSON.
func TestInfo(t *testing.T) {
	fmu, system := testFMU(), testSystemDescription()
	for golden, print := range map[string]func(io.Writer){
		"info-fmu.txt": func(w io.Writer) { writeInfo(w, fmu) }, "info-fmu.json": func(w io.Writer) { _ = writeInfoJSON(w, fmu) },
		"info-ssp.txt": func(w io.Writer) { writeInfo(w, system) }, "info-ssp.json": func(w io.Writer) { _ = writeInfoJSON(w, system) },
	} {
		var b bytes.Buffer
		print(&b)
		path := filepath.Join("testdata", golden)
		if *update {
			write(t, path, b.String())
		}
		if want := read(t, path); b.String() != want {
			t.Errorf("%s\nwant\n%s", b.String(), want)
		}
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
		if err != nil || help != "" {
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

// --debug profile writes profiles that can be read, also of a run that fails, and refuses a folder
// that cannot be made.
func TestProfile(t *testing.T) {
	for variable, code := range map[string]int{"first.y1": exitDone, "fist.y1": exitUsage} {
		if got, _, stderr := call(t, &fake{}, "run", "s.ssp", "--record", variable, "--debug", "profile=p/q"); got != code {
			t.Errorf("exit code %d: %s", got, stderr)
		}
		for _, name := range []string{cpuProfile, heapProfile} {
			if text := read(t, filepath.Join("p/q", name)); !strings.HasPrefix(text, "\x1f\x8b") {
				t.Errorf("%s is no profile", name)
			}
		}
	}
	file := write(t, filepath.Join(t.TempDir(), "file"), "")
	refuses(t, t.TempDir(), &fake{}, map[string]string{"run|s.ssp|--debug|profile=" + file + "/p": "--debug profile: "})
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
		for _, f := range c.VisibleFlags() {
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
