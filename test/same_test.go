package test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
)

// The ways of running that must not change any result.
const (
	threads    = "--workers=3"
	apart      = "--isolate=always" // each FMU in a process of its own
	callByCall = "--debug=call-by-call"
)

// same runs a system once as it is and once with a further flag, and compares tables and manifests.
func same(t *testing.T, flag string, args ...string) *outcome {
	t.Helper()
	want, got := run(t, args...), run(t, append([]string{flag}, args...)...)
	table := func(o *outcome) string {
		data, _ := os.ReadFile(o.results) // a run that fails early leaves none
		return string(data)
	}
	if table(got) != table(want) {
		t.Errorf("%v %s: the results differ", args, flag)
	}
	a, b := &want.manifest, &got.manifest
	if want.code != got.code || a.Status != b.Status || a.Reason != b.Reason {
		t.Errorf("%v: exit code %d, %s, %q; with %s %d, %s, %q", args, want.code, a.Status, a.Reason, flag, got.code, b.Status, b.Reason)
	}
	if flag == apart && a.Status == "failed" {
		// Isolated FMUs step side by side: in the step that fails, those behind the culprit may step, too.
		for name, n := range a.FMUSteps {
			if more := b.FMUSteps[name] - n; more == 1 {
				b.FMUSteps[name]--
			}
		}
	}
	if a.Steps != b.Steps || !reflect.DeepEqual(a.FMUSteps, b.FMUSteps) || !reflect.DeepEqual(a.Bonds, b.Bonds) {
		t.Errorf("%v: %+v, %v, %+v; with %s %+v, %v, %+v", args, a.Steps, a.FMUSteps, a.Bonds, flag, b.Steps, b.FMUSteps, b.Bonds)
	}
	if flag == callByCall && want.warnings() != got.warnings() {
		t.Errorf("%v: warnings %q, with %s %q", args, want.warnings(), flag, got.warnings())
	}
	return want
}

// Parallel runs, isolated FMUs and FMI calls made one by one give the same bytes as usual, with every kind of
// algorithm and with a scenario.
func TestSameResults(t *testing.T) {
	take := long.Sample(11)
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	write(t, scenario, `
events:
  - {at: 0.1, scale: {wheel.F_c: 0.5}, for: 0.2}
  - {when: chassis.v_c < 0, offset: {wheel.v_c: 0.01}, for: 0.1}
expect:
  - {variable: chassis.z_c, always: , max: 1}
`)
	for _, c := range []struct{ system, args string }{
		{"quarter-car-a", "explicit --param order=2 --record *"},
		{"two-mass-ff", "explicit --param order=2 --rate mass1=3"},
		{"two-mass-ff", "gauss-seidel --param order=1 --param substeps=3 --output-interval 0.0137"},
		{"two-mass-ff", "implicit --param order=2"},
		{"two-mass-ff", "implicit --param solver.kind=broyden"},
		{"two-mass-fd", "implicit --param solver.kind=newton-fd"},
		{"two-mass-ff", "im-milne"},
		{"two-mass-ff", "ex-local"},
		{"two-mass-ff", "richardson"},
		{"two-mass-dd", "ex-slocal"},
		{"contact-oscillator", "im-slocal"},
		{"corrector-oscillator", "model-based-corrector --stop-time 0.1"},
		{"quarter-car-a", "ecco"},
		{"crane", "explicit --stop-time 0.5"},
		{"quarter-car-b", "predictor-corrector --monitor-energy"},
		{"energy-star-5", "energy-correction --rate right=10 --param order=1 --stop-time 1"},
		{"energy-star-5", "energy-correction --param control=ecco --param ecco.tolerance=1e-3 --stop-time 1"},
		{"energy-star-5", "energy-correction --param scheme=gauss-seidel --param energy.mu=0.1 --rate left2=3 --stop-time 1"},
		{"pendula", "energy-correction --param energy.nu=1 --stop-time 1"},
		{"quarter-car-a", "explicit --stop-time 1 --scenario " + scenario},
		{"quarter-car-a", "implicit --stop-time 1 --scenario " + scenario},
		{"quarter-car-a", "ex-slocal --param control.step=fixed --stop-time 1 --scenario " + scenario},
	} {
		if !take() {
			continue
		}
		t.Run(c.system+" "+c.args, func(t *testing.T) {
			t.Parallel()
			args := append([]string{system(t, c.system), "--algorithm"}, strings.Fields(c.args)...)
			for _, flag := range []string{threads, apart, callByCall} {
				if o := same(t, flag, args...); o.code != 0 || o.rows < 10 {
					t.Errorf("%v: exit code %d, %d rows\n%s", args, o.code, o.rows, o.output)
				}
			}
		})
	}
	path := system(t, "quarter-car-a")
	want := complete(t, path).manifest.FMUSteps
	for _, flag := range []string{"--output-interval=0.5", "--record=none"} {
		if got := complete(t, path, flag).manifest.FMUSteps; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: steps %v, with every row %v", flag, got, want)
		}
	}
}

// A fault amid many steps has the same reason, rows and counts, however the calls are made.
func TestSameFaults(t *testing.T) {
	take := long.Sample(9)
	for k, set := range []string{
		"fault=Warning", "fault=Discard at=0.35", "fault=DiscardMute at=0.35", "fault=DiscardAndEnd at=0.35",
		"fault=Error at=0.35", "fault=Fatal at=0.35", "fault=Undefined at=0.35", "fault=Error",
		"fault=Pending at=0.35 polls=3 times=1", "fault=Pending at=0.35 polls=3 ending=Error",
		"fault=Pending at=0.35 polls=3 ending=Discard fraction=0.5",
		"fault=NaN at=0.35", "fault=Infinity at=0.35", "fault=NaN during=GetReal at=0.35",
		"fault=NaN during=GetReal at=0.35 variable=3", "fault=Error during=GetReal at=0.35",
		"fault=Fatal during=GetReal at=0.35", "fault=Error during=SetReal at=0.35", "fault=Discard during=SetReal at=0.35",
		"fault=Warning during=SetReal at=0.35", "fault=Warning during=GetReal at=0.35", "fault=Error during=Terminate",
		"fault=Discard at=0.35 --param=discard=shorten", "fault=TooLong above=0.0006 at=0.35 --param=discard=shorten",
	} {
		if !take() {
			continue
		}
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			args := []string{badPair(t, "misbehave+third"), "--step-size", "0.001", "--record", "*",
				"--algorithm", []string{"explicit", "gauss-seidel"}[k%2]}
			for _, word := range strings.Fields(set) {
				if strings.HasPrefix(word, "--") {
					args = append(args, word)
				} else {
					args = append(args, "--set", "bad."+word)
				}
			}
			for _, flag := range []string{apart, callByCall} {
				same(t, flag, args...)
			}
		})
	}
	same(t, callByCall, badPair(t, "misbehave_constant"), "--step-size", "0.003", "--stop-time", "1")
}
