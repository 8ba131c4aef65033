package test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/probe"
)

// lifetime follows the calls of one instance by the rules of the standard, written independently of the product (fmi2
// 39–62).
type lifetime struct {
	d     *description.ModelDescription
	state byte // as in fmi2 39; 0 before Instantiate, '!' after Fatal, '-' after FreeInstance
	setup bool

	set    bool    // since the last step, or since the last saved state was set (fmi2 44)
	sent   bool    // input derivatives since the last step
	sends  bool    // it has sent some
	now    float64 // communication point that the instance is at
	begun  bool    // it has stepped
	h      string  // size of the last step
	given  string  // the promise of the last step
	sealed float64 // no state before this time may be set
	saved  map[string]savedPoint
	held   int            // saved states
	counts map[string]int // calls by name
	faults []string
}

type savedPoint struct {
	state byte
	now   float64
	begun bool
}

// legalStates is the table of fmi2 39.
var legalStates = map[string]string{
	"SetDebugLogging": "RICPFXTE", "SetupExperiment": "R", "EnterInitializationMode": "R", "ExitInitializationMode": "I",
	"SetReal": "RIC", "SetInteger": "RIC", "SetBoolean": "RIC", "SetString": "RIC",
	"GetReal": "IC", "GetInteger": "IC", "GetBoolean": "IC", "GetString": "IC", // elsewhere for debugging only
	"DoStep": "C", "CancelStep": "P", "GetStatus": "CPFT", "GetRealStatus": "CPFT", "GetBooleanStatus": "CPFT", "GetStringStatus": "CPFT",
	"Terminate": "CF", "Reset": "RICFXTE", "FreeInstance": "RICFXTE", "SetFMUstate": "RICFXTE", "FreeFMUstate": "RICFXTE", "GetFMUstate": "RIC",
	"GetDirectionalDerivative": "IC", "SetRealInputDerivatives": "RIC", "GetRealOutputDerivatives": "C",
}

func (l *lifetime) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// call takes in one call with its arguments as the trace has them.
func (l *lifetime) call(name string, args map[string]string, status string) {
	l.counts[name]++
	if name == "Instantiate" {
		if l.state != 0 {
			l.fault("instantiated again")
		}
		if l.state = 'R'; status == "null" {
			l.state = '!'
		}
		return
	}
	if !strings.ContainsRune(legalStates[name], rune(l.state)) {
		l.fault("%s in %q", name, l.state)
	}
	l.check(name, args)
	switch status {
	case "Fatal":
		l.state = '!'
		return
	case "Error":
		if !strings.HasSuffix(name, "Status") {
			l.state = 'E'
			return
		}
	}
	switch name {
	case "SetupExperiment":
		l.setup = true
		l.now = number(args["start"])
	case "EnterInitializationMode":
		if !l.setup {
			l.fault("initialisation without SetupExperiment")
		}
		l.state = 'I'
	case "ExitInitializationMode":
		l.state, l.set = 'C', false
	case "DoStep":
		l.set, l.sent = false, false
		switch status {
		case "Discard":
			l.state = 'F'
		case "Pending":
			l.state = 'P'
		}
		l.now, l.begun = l.now+number(args["h"]), true
	case "GetStatus":
		l.state = map[string]byte{"OK": 'C', "Warning": 'C', "Discard": 'F', "Error": 'E', "Fatal": '!', "Pending": 'P'}[args["value"]]
	case "CancelStep":
		l.state = 'X'
	case "Terminate":
		l.state = 'T'
	case "FreeInstance":
		if l.held != 0 {
			l.fault("freed with %d saved states", l.held)
		}
		l.state = '-'
	case "GetFMUstate":
		if _, reused := l.saved[args["state"]]; !reused {
			l.held++
		}
		l.saved[args["state"]] = savedPoint{l.state, l.now, l.begun}
	case "FreeFMUstate":
		if l.held--; l.held == 0 { // the call does not tell which it was
			clear(l.saved)
		}
	case "SetFMUstate":
		s, ok := l.saved[args["state"]]
		if !ok {
			l.fault("the state %s is none that was saved", args["state"])
		}
		if s.now < l.sealed-instant(l.sealed) {
			l.fault("back to %g after a step that promised none before %g", s.now, l.sealed)
		}
		l.state, l.now, l.begun, l.set = s.state, s.now, s.begun, false
	}
}

// check judges what a call is about.
func (l *lifetime) check(name string, args map[string]string) {
	switch {
	case name == "SetRealInputDerivatives":
		l.set, l.sent, l.sends = true, true, true
		if !l.d.CoSimulation.CanInterpolateInputs {
			l.fault("input derivatives for an FMU that does not interpolate")
		}
		for _, o := range list(args["order"]) {
			if o < 1 {
				l.fault("an input derivative of order %d", o)
			}
		}
	case name == "GetFMUstate", name == "SetFMUstate", name == "FreeFMUstate":
		if !l.d.CoSimulation.CanGetAndSetFMUState {
			l.fault("%s for an FMU that does not offer it", name)
		}
	case name == "DoStep":
		t, h := number(args["t"]), number(args["h"])
		if !(h > 0) {
			l.fault("a step by %g", h)
		}
		if math.Abs(t-l.now) > instant(t) || !l.begun && t != l.now {
			l.fault("a step from %g, the instance is at %g", t, l.now)
		}
		if l.sends && !l.sent {
			l.fault("a step from %g without the input derivatives of the steps before", t)
		}
		l.now = t
		// All steps carry the promise, or none does; one that could be given is given (fmi2 50).
		given := args["noRestoreBefore"]
		if l.given != "" && l.given != given {
			l.fault("a step from %g with the promise %s after one with %s", t, given, l.given)
		}
		if l.given = given; given == "1" {
			l.sealed = max(l.sealed, t)
		} else if l.held == 0 {
			l.fault("a step from %g without the promise of no restore before it, and no state that is saved", t)
		}
		if l.h != "" && l.h != args["h"] && !l.d.CoSimulation.CanHandleVariableCommunicationStepSize {
			l.fault("a step by %s after those by %s", args["h"], l.h)
		}
		l.h = args["h"]
	case name == "GetDirectionalDerivative" || name == "GetRealOutputDerivatives":
		if l.state == 'C' && l.set {
			l.fault("%s at %g after a value was set and no step made", name, l.now)
		}
	case strings.HasPrefix(name, "Set") && args["vr"] != "":
		l.set = l.state == 'C'
		l.eachVariable(name[3:], args["vr"], func(v *description.ScalarVariable) bool {
			exact, input := v.Initial == description.Exact && v.Variability != description.Constant, v.Causality == description.Input
			switch l.state {
			case 'R':
				return exact || v.Initial == description.Approx
			case 'I':
				return exact || input
			}
			return input || v.Causality == description.Parameter && v.Variability == description.Tunable
		})
	case strings.HasPrefix(name, "Get") && args["vr"] != "":
		if l.state == 'C' && l.set {
			l.fault("%s at %g after a value was set and no step made", name, l.now)
		}
		l.eachVariable(name[3:], args["vr"], func(v *description.ScalarVariable) bool {
			return l.state != 'I' || v.Causality == description.Output ||
				slices.ContainsFunc(l.d.InitialUnknowns, func(u description.Unknown) bool { return &l.d.Variables[u.Index-1] == v })
		})
	}
}

// eachVariable checks for each value reference whether one of its variables may be accessed in this state.
func (l *lifetime) eachVariable(kind, references string, allowed func(v *description.ScalarVariable) bool) {
	for _, vr := range list(references) {
		ok := false
		for i := range l.d.Variables {
			v := &l.d.Variables[i]
			same := v.Type.String() == kind || kind == "Integer" && v.Type == description.Enumeration
			ok = ok || same && int(v.ValueReference) == vr && allowed(v)
		}
		if !ok {
			l.fault("%s %d must not be accessed in %q", kind, vr, l.state)
		}
	}
}

// instant returns the difference up to which two times are equal.
func instant(t float64) float64 { return 1e-12 * max(1, math.Abs(t)) }

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// list reads "[1 2 3…20]" up to the ellipsis.
func list(s string) []int {
	var out []int
	for f := range strings.FieldsSeq(strings.Trim(s, "[]")) {
		f, _, _ = strings.Cut(f, "…")
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// argument is one of a call in "t=0 h=0.1 vr=[0 1]".
var argument = regexp.MustCompile(`(\w+)=(\[[^]]*\]|\S*)`)

// arguments splits those of a call.
func arguments(s string) map[string]string {
	out := map[string]string{}
	for _, m := range argument.FindAllStringSubmatch(s, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// followed is a run whose calls were checked.
type followed struct {
	code        int
	output, log string
	lives       map[string]*lifetime
}

// followRun runs a system and checks its calls.
func followRun(t *testing.T, path string, args ...string) followed {
	t.Helper()
	dir := t.TempDir()
	code, output := macrostepIn(t, dir, append([]string{"run", "--quiet", "--debug", "calls=calls.txt", path}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, "calls.txt"))
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return followed{code, output, string(text), follow(t, string(text), descriptions(t, path))}
}

// follow checks a log of calls of components with these descriptions.
func follow(t *testing.T, log string, descriptions map[string]*description.ModelDescription) map[string]*lifetime {
	t.Helper()
	lives := map[string]*lifetime{}
	for line := range strings.Lines(log) {
		call, result, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		_, call, _ = strings.Cut(call, " ") // the time
		name, call, _ := strings.Cut(call, " fmi2")
		function, args, _ := strings.Cut(call, " ")
		r := strings.Fields(result)
		if !ok || function == "" || len(r) == 0 {
			t.Fatalf("not understood: %q", line)
		}
		l := lives[name]
		if l == nil || l.state == '-' && strings.Contains(name, " (") {
			// Instances that only test something are called "name (what)".
			component, _, _ := strings.Cut(strings.Trim(name, `"`), " (")
			if descriptions[component] == nil {
				t.Fatalf("a call of %q: %q", name, line)
			}
			l = &lifetime{d: descriptions[component], saved: map[string]savedPoint{}, counts: map[string]int{}, sealed: math.Inf(-1)}
			lives[name] = l
		}
		known := len(l.faults)
		l.call(function, arguments(args), r[0])
		if len(l.faults) > known && known < 5 {
			t.Errorf("%s: %s: %s", name, strings.Join(l.faults[known:], "; "), strings.TrimSpace(line))
		}
	}
	return lives
}

// descriptions returns the model descriptions of the components of a system.
func descriptions(t *testing.T, path string) map[string]*description.ModelDescription {
	t.Helper()
	a, err := assemble.Open(path, assemble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	out := map[string]*description.ModelDescription{}
	for _, c := range a.Components {
		out[c.Name] = c.FMU.Description
	}
	return out
}

// With every algorithm and outcome: each call is legal in its state and for its variables, steps follow one another,
// nothing is read between setting and stepping, and every instance is freed (fmi2 39–41, 44, 48, 50, 54–56, 58, 62).
func TestCallsAreLegal(t *testing.T) {
	t.Parallel()
	type run struct {
		name  string
		path  string
		args  []string
		calls []string // that must occur, so that the run shows what it is for
		ends  string   // states that the components end in: "-" freed, "!" fatal
	}
	var runs []run
	take := long.Sample(8)
	for _, s := range []string{"two-mass-fd", "two-mass-ff", "two-mass-dd", "quarter-car-a"} {
		if !take() {
			continue
		}
		for _, args := range [][]string{
			{"--algorithm", "explicit"},
			{"--algorithm", "explicit", "--param", "order=2"},
			{"--algorithm", "explicit", "--param", "order=2", "--param", "delivery=substeps"},
			{"--algorithm", "gauss-seidel", "--param", "order=1"},
			{"--algorithm", "explicit", "--param", "discard=shorten"},
			{"--record", "*"},
		} {
			runs = append(runs, run{s + " " + strings.Join(args, " "), system(t, s), append(args, "--stop-time", "0.05"), nil, "-"})
		}
	}
	bad := func(name, fmu, set, ends string, calls []string, args ...string) {
		for _, s := range strings.Fields(set) {
			args = append(args, "--set", "bad."+s)
		}
		runs = append(runs, run{name, badPair(t, fmu), append([]string{"--step-size", "0.1"}, args...), calls, ends})
	}
	bad("discarded and shortened", "misbehave", "fault=Discard at=0.35", "-",
		[]string{"SetFMUstate", "FreeFMUstate", "GetRealStatus", "GetBooleanStatus"}, "--param", "discard=shorten")
	bad("shortened with derivatives", "misbehave", "fault=TooLong above=0.03", "-",
		[]string{"SetFMUstate", "SetRealInputDerivatives"}, "--param", "discard=shorten", "--param", "order=2")
	bad("discarded", "misbehave", "fault=Discard at=0.35", "-", []string{"GetBooleanStatus"})
	bad("asks to end", "misbehave", "fault=DiscardAndEnd at=0.35", "-", []string{"GetBooleanStatus"})
	bad("asks to end, with rollback", "misbehave", "fault=DiscardAndEnd at=0.35", "-", []string{"SetFMUstate"},
		"--param", "discard=shorten")
	bad("pending", "misbehave", "fault=Pending at=0.35 polls=3", "-", []string{"GetStatus"})
	bad("error", "misbehave", "fault=Error at=0.35", "-", nil)
	bad("error with a saved state", "misbehave", "fault=Error at=0.35", "-", []string{"FreeFMUstate"}, "--param", "discard=shorten")
	bad("error in initialisation", "misbehave", "fault=Error during=GetReal", "-", nil)
	bad("fatal", "misbehave", "fault=Fatal at=0.35", "!-", nil)
	bad("refuses to be", "misbehave_refuse", "", "!-", nil)
	bad("constant steps", "misbehave_constant", "", "-", nil)
	bad("start elsewhere", "misbehave", "", "-", nil, "--start-time", "-3", "--stop-time", "-2")
	// A variable of each kind and sort of start, one of them constant.
	constant := `<ScalarVariable name="c" valueReference="99" variability="constant"><Real start="1"/></ScalarVariable>`
	every, err := probe.Pack(t.TempDir(), "every", strings.Replace(probe.Description("every", probe.Everything, ""),
		"</ModelVariables>", constant+"</ModelVariables>", 1))
	if err != nil {
		t.Fatal(err)
	}
	runs = append(runs, run{"every kind", every, []string{"--stop-time", "0.1", "--step-size", "0.01",
		"--set", "every.a=2", "--set", "every.mode=high", "--set", "every.s=x", "--set", "every.b=false", "--record", "*"},
		[]string{"SetString", "GetString", "SetInteger", "GetInteger", "SetBoolean", "GetBoolean"}, "-"})
	take = long.Sample(2)
	for _, r := range runs {
		if !take() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ends, calls := map[byte]bool{}, map[string]int{}
			o := followRun(t, r.path, r.args...)
			for name, l := range o.lives {
				ends[l.state] = true
				for call, n := range l.counts {
					calls[call] += n
				}
				if l.counts["SetupExperiment"] > 1 || l.counts["Terminate"] > 1 || l.counts["FreeInstance"] > 1 {
					t.Errorf("%s: %v", name, l.counts)
				}
			}
			if got := string(slices.Sorted(maps.Keys(ends))); got != r.ends {
				t.Errorf("the components end in %q, want %q\n%s", got, r.ends, o.output)
			}
			for _, name := range r.calls {
				if calls[name] == 0 {
					t.Errorf("no %s: the run does not show what it is for", name)
				}
			}
		})
	}
}

// In a run with fixed steps every step has the same size to the last bit. Each step promises that no restore will go back
// before it, unless the run may repeat steps (fmi2 49, 50).
func TestWhatStepsAreTold(t *testing.T) {
	t.Parallel()
	const H = 0.01
	take := long.Sample(2)
	for _, c := range []struct {
		name, system string
		args         string
		sizes        []float64 // of all steps; nil = they vary
		repeats      bool      // steps may be repeated
	}{
		{"explicit", "two-mass-fd", "--algorithm explicit", []float64{H}, false},
		{"explicit by substeps", "two-mass-fd", "--algorithm explicit --param order=2 --param substeps=7",
			[]float64{H / 7, H}, false},
		{"explicit by substeps, shortened", "two-mass-fd",
			"--algorithm explicit --param order=2 --param substeps=7 --param discard=shorten", []float64{H / 7, H}, true},
		{"shortened", "two-mass-fd", "--algorithm explicit --param discard=shorten", []float64{H}, true},
		{"gauss-seidel", "two-mass-fd", "--algorithm gauss-seidel --param order=1", []float64{H}, false},
		{"rates", "two-mass-ff", "--algorithm explicit --rate mass1=3 --rate mass2=1/3", []float64{H / 3, H, 3 * H}, false},
		{"rates, shortened", "two-mass-fd", "--algorithm explicit --rate mass1=3 --param discard=shorten", []float64{H / 3, H}, true},
		{"implicit, with a stateless component", "two-mass-ff", "--algorithm implicit --param order=1", []float64{H}, true},
		{"implicit by substeps", "two-mass-fd", "--algorithm implicit --param order=1 --param substeps=3", []float64{H / 3, H}, true},
		{"two solutions", "two-mass-fd", "--algorithm ex-local --param control.step=fixed --param control.max-order=2", []float64{H}, true},
		{"step doubling", "two-mass-fd", "--algorithm richardson --param control.step=fixed", []float64{H, H / 2}, true},
		{"energy", "two-mass-fd", "--algorithm energy-correction --bond b=coupling.F:mass1.v", []float64{H}, false},
		{"steps that vary, implicit", "two-mass-fd", "--algorithm im-milne", nil, true},
		{"steps that vary, doubled", "two-mass-fd", "--algorithm richardson", nil, true},
		{"steps that vary, not repeated", "two-mass-fd", "--algorithm predictor-corrector", nil, false},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := followRun(t, system(t, c.system), append([]string{"--start-time", "0.1", "--stop-time", "0.22", "--step-size", "0.01"},
				strings.Fields(c.args)...)...)
			told := map[float64]bool{}
			for line := range strings.Lines(o.log) {
				_, call, step := strings.Cut(line, " fmi2DoStep ")
				if name, _, _ := strings.Cut(line, " fmi2"); !step || strings.Contains(name, " (") {
					continue
				}
				call, _, _ = strings.Cut(call, " -> ")
				args := arguments(call)
				told[number(args["h"])] = true
				if promised := args["noRestoreBefore"] == "1"; promised == c.repeats {
					t.Errorf("the step from %s: the promise is %v", args["t"], promised)
				}
			}
			if o.code != 0 {
				t.Errorf("exit code %d\n%s", o.code, o.output)
			}
			if sizes := slices.Sorted(maps.Keys(told)); c.sizes != nil && !slices.Equal(sizes, slices.Sorted(slices.Values(c.sizes))) {
				t.Errorf("the steps are told %v, want %v", sizes, c.sizes)
			}
		})
	}
}

// An FMU that computes something else in steps that may be undone gives the same results with every algorithm that
// repeats nothing, also if its states are saved; the other algorithms are refused.
func testUncommittedSteps(t *testing.T) {
	t.Parallel()
	for args, refused := range map[string]bool{
		"--algorithm explicit --rate bad=2":                                           false,
		"--algorithm gauss-seidel --isolate always --on-crash restart":                false,
		"--algorithm explicit --param discard=shorten":                                true,
		"--algorithm implicit --isolate always":                                       true,
		"--algorithm implicit --param order=1 --param substeps=2":                     true,
		"--algorithm ex-local --param control.step=fixed --param control.max-order=2": true,
		"--algorithm im-milne":                                                        true,
		"--algorithm richardson --param control.step=fixed":                           true,
	} {
		t.Run(args, func(t *testing.T) {
			args := append([]string{badPair(t, "misbehave"), "--step-size", "0.01", "--stop-time", "0.2"}, strings.Fields(args)...)
			good, bad := run(t, args...), run(t, append(args, "--set", "bad.fault=Uncommitted")...)
			if !refused {
				if good.code != 0 || bad.code != 0 || good.table(t) != bad.table(t) {
					t.Errorf("exit codes %d and %d, or the results differ", good.code, bad.code)
				}
				return
			}
			if bad.code != 1 || bad.rows > 0 { // before the first step
				t.Errorf("exit code %d, %d rows", bad.code, bad.rows)
			}
			for _, part := range []string{"bad (misbehave.fmu)", "noSetFMUStatePriorToCurrentPoint = false",
				"with true and", "with false", "choose an algorithm"} {
				if !strings.Contains(bad.manifest.Reason, part) {
					t.Errorf("no %q in %q", part, bad.manifest.Reason)
				}
			}
		})
	}
}

// The calls of runs of third-party FMUs and systems are legal, too.
func testRealCalls(t *testing.T) {
	systems, err := filepath.Glob(filepath.Join(*realDir, "systems", "*", "*", "SystemStructure.ssd"))
	if err != nil {
		t.Fatal(err)
	}
	paths := append(realFMUs(t), pair(t), filepath.Join(*realDir, "systems", "libcosim", "demo", "demo.ssp"))
	for _, s := range systems {
		if fmus, err := filepath.Glob(filepath.Join(filepath.Dir(s), "resources", "*.fmu")); err == nil && len(fmus) > 0 {
			paths = append(paths, filepath.Dir(s))
		}
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			o := followRun(t, path, "--step-size", "0.01", "--stop-time", "0.05")
			for name, l := range o.lives {
				if o.code != 0 || l.state != '-' {
					t.Errorf("exit code %d, %s ends in %q\n%s", o.code, name, l.state, o.output)
				}
			}
		})
	}
}
