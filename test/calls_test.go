package test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/test/probe"
)

// lifetime follows the calls of one instance by the rules of the standard, written
// down here a second time (fmi2 39–62).
type lifetime struct {
	d     *fmi.ModelDescription
	state byte // as in fmi2 39; 0 before Instantiate, '!' after Fatal, '-' after FreeInstance
	setup bool

	set    bool    // since the last step, or since the last saved state was set (fmi2 44)
	sent   bool    // input derivatives since the last step
	sends  bool    // it has sent some
	now    float64 // communication point that the instance is at
	begun  bool    // it has stepped
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
		if s.now <= l.sealed { // macrostep promises nothing of a step that it may repeat
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
		if math.Abs(t-l.now) > 1e-12*max(1, math.Abs(t)) || !l.begun && t != l.now {
			l.fault("a step from %g, the instance is at %g", t, l.now)
		}
		if l.sends && !l.sent {
			l.fault("a step from %g without the input derivatives of the steps before", t)
		}
		l.now = t
		if args["noRestoreBefore"] == "1" {
			l.sealed = max(l.sealed, t)
		}
	case name == "GetDirectionalDerivative" || name == "GetRealOutputDerivatives":
		if l.state == 'C' && l.set {
			l.fault("%s at %g after a value was set and no step made", name, l.now)
		}
	case strings.HasPrefix(name, "Set") && args["vr"] != "":
		l.set = l.state == 'C'
		l.eachVariable(name[3:], args["vr"], func(v *fmi.ScalarVariable) bool {
			exact, input := v.Initial == fmi.Exact && v.Variability != fmi.Constant, v.Causality == fmi.Input
			switch l.state {
			case 'R':
				return exact || v.Initial == fmi.Approx
			case 'I':
				return exact || input
			}
			return input || v.Causality == fmi.Parameter && v.Variability == fmi.Tunable
		})
	case strings.HasPrefix(name, "Get") && args["vr"] != "":
		if l.state == 'C' && l.set {
			l.fault("%s at %g after a value was set and no step made", name, l.now)
		}
		l.eachVariable(name[3:], args["vr"], func(v *fmi.ScalarVariable) bool {
			return l.state != 'I' || v.Causality == fmi.Output ||
				slices.ContainsFunc(l.d.InitialUnknowns, func(u fmi.Unknown) bool { return &l.d.Variables[u.Index-1] == v })
		})
	}
}

// eachVariable asks of each value reference whether one of its variables may be
// accessed now.
func (l *lifetime) eachVariable(kind, references string, allowed func(v *fmi.ScalarVariable) bool) {
	for _, vr := range list(references) {
		ok := false
		for i := range l.d.Variables {
			v := &l.d.Variables[i]
			same := v.Type.String() == kind || kind == "Integer" && v.Type == fmi.Enumeration
			ok = ok || same && int(v.ValueReference) == vr && allowed(v)
		}
		if !ok {
			l.fault("%s %d must not be accessed in %q", kind, vr, l.state)
		}
	}
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// list reads "[1 2 3…20]", as far as it is written.
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

// arguments splits "t=0 h=0.1 vr=[0 1]".
func arguments(s string) map[string]string {
	out := map[string]string{}
	for s != "" {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		end := strings.IndexByte(rest, ' ')
		if strings.HasPrefix(rest, "[") {
			end = strings.IndexByte(rest, ']') + 1
		}
		if end < 0 || end >= len(rest) {
			end = len(rest)
		}
		out[name] = rest[:end]
		s = strings.TrimLeft(rest[end:], " ")
	}
	return out
}

// follow judges a log of calls; the descriptions are those of the components.
func follow(t *testing.T, log string, descriptions map[string]*fmi.ModelDescription) map[string]*lifetime {
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
		if l == nil {
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

// descriptions gives those of the components of a system.
func descriptions(t *testing.T, path string) map[string]*fmi.ModelDescription {
	t.Helper()
	a, err := assemble.Open(path, assemble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	out := map[string]*fmi.ModelDescription{}
	for _, c := range a.Components {
		out[c.Name] = c.FMU.Description
	}
	return out
}

// Whatever the algorithm and the outcome: every call is legal where it is made,
// about variables that may be accessed there, steps follow one another, nothing
// is read between setting and stepping, and every life is ended (fmi2 39–41, 44,
// 48, 50, 54–56, 58, 62).
func TestCallsAreLegal(t *testing.T) {
	type run struct {
		name  string
		path  string
		args  []string
		calls []string // that must occur, so that the run shows what it is for
		ends  string   // states that the components end in: "-" freed, "!" fatal
	}
	var runs []run
	for _, s := range []string{"two-mass-fd", "two-mass-ff", "two-mass-dd", "quarter-car-a"} {
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
	bad("discarded and shortened", "misbehave", "fault=Discard at=0.35", "-", []string{"SetFMUstate", "FreeFMUstate", "GetRealStatus", "GetBooleanStatus"}, "--param", "discard=shorten")
	bad("shortened with derivatives", "misbehave", "fault=TooLong above=0.03", "-", []string{"SetFMUstate", "SetRealInputDerivatives"}, "--param", "discard=shorten", "--param", "order=2")
	bad("discarded", "misbehave", "fault=Discard at=0.35", "-", []string{"GetBooleanStatus"})
	bad("asks to end", "misbehave", "fault=DiscardAndEnd at=0.35", "-", []string{"GetBooleanStatus"})
	bad("asks to end, with rollback", "misbehave", "fault=DiscardAndEnd at=0.35", "-", []string{"SetFMUstate"}, "--param", "discard=shorten")
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
	every, err := probe.Pack(t.TempDir(), "every", strings.Replace(probe.Description("every", probe.Everything, ""), "</ModelVariables>", constant+"</ModelVariables>", 1))
	if err != nil {
		t.Fatal(err)
	}
	runs = append(runs, run{"every kind", every, []string{"--stop-time", "0.1", "--step-size", "0.01", "--set", "every.a=2", "--set", "every.mode=high", "--set", "every.s=x", "--record", "*"},
		[]string{"SetString", "GetString", "SetInteger", "GetInteger", "SetBoolean", "GetBoolean"}, "-"})
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "calls.txt")
			_, o := macrostepIn(t, dir, append([]string{"run", "--quiet", "--log-fmi-calls", log, r.path}, r.args...)...)
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatalf("%v\n%s", err, o)
			}
			lives := follow(t, string(text), descriptions(t, r.path))
			ends := map[byte]bool{}
			for name, l := range lives {
				ends[l.state] = true
				if l.counts["SetupExperiment"] > 1 || l.counts["Terminate"] > 1 || l.counts["FreeInstance"] > 1 {
					t.Errorf("%s: %v", name, l.counts)
				}
			}
			if got := string(slices.Sorted(maps.Keys(ends))); got != r.ends {
				t.Errorf("the components end in %q, want %q\n%s", got, r.ends, o)
			}
			for _, name := range r.calls {
				n := 0
				for _, l := range lives {
					n += l.counts[name]
				}
				if n == 0 {
					t.Errorf("no %s: the run does not show what it is for", name)
				}
			}
		})
	}
}

// The calls of runs of FMUs and systems made by others are legal, too.
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
			dir := t.TempDir()
			log := filepath.Join(dir, "calls.txt")
			code, o := macrostepIn(t, dir, "run", "--quiet", "--log-fmi-calls", log, "--step-size", "0.01", "--stop-time", "0.05", path)
			text, err := os.ReadFile(log)
			if err != nil || code != 0 {
				t.Fatalf("%v, exit code %d\n%s", err, code, o)
			}
			for name, l := range follow(t, string(text), descriptions(t, path)) {
				if l.state != '-' {
					t.Errorf("%s ends in %q", name, l.state)
				}
			}
		})
	}
}
