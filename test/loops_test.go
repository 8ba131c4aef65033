package test

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/long"
)

// Algebraic loops of the initialisation are solved: linear and nonlinear ones, through two and three FMUs, one inside
// another, from near and far. The exact solutions follow by hand from
//
//	y = a + u³ with u = −y, so y³ + y = a: y = 2 for a = 10,
//
// and from choosing y and computing a. Relative tolerance 1e-10.
func TestInitialisationLoops(t *testing.T) {
	take := long.Sample(5)
	const tolerance = 1e-10
	f := member{"f", "polynomial", "u", "y"}
	g := member{"g", "polynomial", "u", "y"}
	l := member{"l", "linear", "u[1] u[2]", "y[1] y[2]"}
	k := member{"k", "linear", "u[1]", "y[1]"}
	one := member{"l", "linear", "u[1]", "y[1]"}
	// The inner system holds f and l in a loop of their own, and is itself on a loop with g: y_f = 9 + u_f³, y_g =
	// 5.375 + u_g³, u_f = −y_f − y_g/2, u_g = y_f/2 − y_g; the solution is y_f = 1, y_g = 2 (monotone, so the only
	// one).
	inner := `<ssd:System name="inner"><ssd:Connectors><ssd:Connector name="from" kind="input"><ssc:Real/></ssd:Connector>` +
		`<ssd:Connector name="to" kind="output"><ssc:Real/></ssd:Connector></ssd:Connectors><ssd:Elements>` +
		f.component("resources/") + l.component("resources/") + "</ssd:Elements><ssd:Connections>" +
		wires("f.y → l.u[1]\nfrom → l.u[2]\nl.y[1] → f.u\nl.y[2] → to") + "</ssd:Connections></ssd:System>"
	for _, c := range []struct {
		name     string
		members  []member
		elements string
		lines    string
		set      string
		want     map[string]float64
	}{
		// y_f = 1 + u_f, y_g = 2 − u_g, u_f = y_g, u_g = y_f: y_f = 1 + 2 − y_f = 1.5
		{"linear of two signals", []member{l, f, g}, "", "l.y[1] → f.u\nl.y[2] → g.u\nf.y → l.u[1]\ng.y → l.u[2]",
			"f.a=1 f.b=1 g.a=2 g.b=-1 l.D[1,2]=1 l.D[2,1]=1", map[string]float64{"f.y": 1.5, "g.y": 0.5}},
		{"nonlinear from very far away", []member{f, one}, "", "f.y → l.u[1]\nl.y[1] → f.u",
			"f.a=10 f.d=1 l.D[1,1]=-1 f.u=1e30 l.u[1]=1e30", map[string]float64{"f.y": 2, "l.y[1]": -2}},
		{"three FMUs", []member{f, one, k}, "", "f.y → l.u[1]\nl.y[1] → k.u[1]\nk.y[1] → f.u",
			"f.a=10 f.d=1 l.D[1,1]=0.5 k.D[1,1]=-2", map[string]float64{"f.y": 2, "l.y[1]": 1, "k.y[1]": -2}},
		{"nested from far away", []member{g}, inner, "inner.to → g.u\ng.y → inner.from",
			"inner.f.a=9 inner.f.d=1 g.a=5.375 g.d=1 inner.l.D[1,1]=-1 inner.l.D[1,2]=-0.5 inner.l.D[2,1]=0.5 inner.l.D[2,2]=-1 " +
				"inner.f.u=1000 g.u=-1000 inner.l.u[1]=500 inner.l.u[2]=1e4",
			map[string]float64{"inner.f.y": 1, "g.y": 2, "inner.l.y[1]": -2, "inner.l.y[2]": -1.5}},
	} {
		for _, declared := range []bool{true, false} {
			if !take() {
				continue
			}
			t.Run(fmt.Sprintf("%s/declared=%t", c.name, declared), func(t *testing.T) {
				t.Parallel()
				o := complete(t, looped(t, declared, c.members, c.elements, c.lines, c.set)...)
				for name, want := range c.want {
					if got := o.column(t, name)[0]; !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
						t.Errorf("%s starts at %.17g, want %g", name, got, want)
					}
				}
			})
		}
	}
}

// looped returns the arguments of a run of members with values. If declared, the FMUs keep their directional
// derivatives and dependencies.
func looped(t *testing.T, declared bool, members []member, elements, lines, set string) (args []string) {
	t.Helper()
	dir := t.TempDir()
	coupled(t, dir, "0.01", members, lines, elements)
	for _, name := range []string{"linear", "polynomial"} {
		all := entries(t, fmu(t, name))
		for i := range all {
			if !declared && all[i].Name == "modelDescription.xml" {
				text := strings.Replace(string(all[i].data), ` providesDirectionalDerivative="true"`, "", 1)
				a, z := strings.Index(text, "<ModelStructure>"), strings.Index(text, "</ModelStructure>")
				all[i].data = []byte(text[:a] + "<ModelStructure>" + text[z:])
			}
		}
		pack(t, filepath.Join(dir, "resources", name+".fmu"), all...)
	}
	args = []string{dir, "--step-size", "0.01"}
	for s := range strings.FieldsSeq(set) {
		args = append(args, "--set", s)
	}
	return args
}

// A loop without a solution is named with its residual, and one without a unique solution as such; the run fails.
func testInitialisationWithoutSolution(t *testing.T) {
	t.Parallel()
	members := []member{{"f", "polynomial", "u", "y"}, {"k", "linear", "u[1]", "y[1]"}}
	const unsolved = "is not solved"
	for set, says := range map[string]string{
		"f.a=1 f.b=1 f.c=1 k.D[1,1]=1":                    unsolved,             // y = 1 + y + y²
		"f.a=2 f.b=1 f.c=1 k.D[1,1]=1 f.u=1e3 k.u[1]=1e3": unsolved,             // y = 2 + y + y², from far away
		"f.a=1 f.b=1 k.D[1,1]=1":                          "no unique solution", // y = 1 + y
	} {
		for _, declared := range []bool{true, false} {
			o := run(t, looped(t, declared, members, "", "f.y → k.u[1]\nk.y[1] → f.u", set)...)
			words := []string{"algebraic loop", "f.u", says}
			if says == unsolved {
				words = append(words, "residual")
			}
			if o.code != 1 || o.manifest.Status != "failed" {
				t.Errorf("%s: exit code %d, status %q", set, o.code, o.manifest.Status)
			}
			oneMessage(t, o.output, o.code, words)
		}
	}
}

// In bad, w = x + d u, but its ModelStructure declares no dependency of w on u.
var (
	liar   = member{"bad", "misbehave", "u", "w x"}
	cubic  = member{"f", "polynomial", "u", "y"}
	steady = member{"k", "polynomial", "u", "y"} // with an input that is not connected, a constant
)

// False claims of an FMU are found before a result relies on them (fmi2 27, 43, 60): an undeclared dependency orders
// the initialisation like a declared one, wrong directional derivatives are replaced by differences, and each warning
// names FMU, output, input and both values. With --strict the run is refused.
func TestLiesInInitialisation(t *testing.T) {
	t.Parallel()
	take := long.Sample(3)
	const w, y = "bad.w", "f.y"
	for _, c := range []struct {
		name    string
		members []member
		lines   string
		set     string // of bad
		args    []string
		want    map[string]float64 // at the start
		says    []string           // in the warnings; nil: there are none
	}{
		// k.y = 4, w = 1 + 0.5·4, f.y = 10 + w. f comes before bad in the document.
		{name: "hidden dependency", members: []member{cubic, liar, steady}, lines: "k.y → bad.u\nbad.w → f.u", set: "d=0.5",
			args: []string{"--set", "k.a=4", "--set", "f.a=10", "--set", "f.b=1"}, want: map[string]float64{w: 3, y: 13},
			says: []string{"bad (misbehave.fmu): the output bad.w depends directly on the input bad.u in the initialisation, by 0.5, and its description says that it does not"}},
		{name: "no dependency", members: []member{cubic, liar, steady}, lines: "k.y → bad.u\nbad.w → f.u",
			args: []string{"--set", "k.a=4", "--set", "f.a=10", "--set", "f.b=1"}, want: map[string]float64{w: 1, y: 11}},
		// w = 1 − 5 f.y, f.y = 1 + 0.5 w: f.y = 1.5/3.5, and repetition runs away. Nothing relies on the derivatives.
		{name: "hidden loop, wrong derivatives", members: []member{cubic, liar}, lines: "f.y → bad.u\nbad.w → f.u",
			set:  "d=-5 fault=WrongDerivatives",
			args: []string{"--set", "f.a=1", "--set", "f.b=0.5"}, want: map[string]float64{w: 1 - 5*1.5/3.5, y: 1.5 / 3.5},
			says: []string{"by -5"}},
		{name: "hidden loop, derivatives refused", members: []member{cubic, liar}, lines: "f.y → bad.u\nbad.w → f.u",
			set:  "d=-5 fault=Error during=GetDirectionalDerivative",
			args: []string{"--set", "f.a=1", "--set", "f.b=0.5"}, want: map[string]float64{w: 1 - 5*1.5/3.5, y: 1.5 / 3.5},
			says: []string{"by -5"}},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			system := ours(t, c.members, c.lines)
			a := runSystem(t, system, c.set, c.args...)
			if a.code != 0 || a.manifest.Status != "complete" || !a.clean("bad") {
				t.Fatalf("exit code %d, %s, calls %v\n%s", a.code, a.manifest.Reason, a.calls["bad"], a.output)
			}
			for name, want := range c.want {
				if got := a.column(t, name)[0]; math.Abs(got-want) > 1e-9 {
					t.Errorf("%s is %.17g at the start, want %g", name, got, want)
				}
			}
			told := a.warnings()
			for _, s := range c.says {
				if strings.Count(told, s) != 1 || !strings.Contains(a.output, s) {
					t.Errorf("%q is not said once in %q\n%s", s, told, a.output)
				}
			}
			if c.says == nil && told != "" {
				t.Errorf("warnings %q", told)
			}
			strict := runSystem(t, system, c.set, append(c.args, "--strict")...)
			if (strict.code == 0) != (c.says == nil) {
				t.Errorf("strict: exit code %d\n%s", strict.code, strict.output)
			}
			if c.says != nil && (strict.code != 1 || !strings.Contains(strict.manifest.Reason, "because the run is strict") ||
				strict.rows > 0) {
				t.Errorf("strict: exit code %d, %d rows, %q", strict.code, strict.rows, strict.manifest.Reason)
			}
		})
	}
}

// Directional derivatives are compared with steps of the FMU before an algorithm relies on them, once (fmi2 60); the
// manifest has the difference.
func TestLyingDerivatives(t *testing.T) {
	t.Parallel()
	los := []string{"--algorithm", "implicit", "--param", "solver.kind=newton-los"}
	members := []member{{"good", "mass_force", "F", "x"}, liar}
	lines := "good.x → bad.u\nbad.x → good.F"
	system := ours(t, members, lines)

	a := runSystem(t, system, "fault=WrongDerivatives", los...)
	for _, s := range []string{"bad (misbehave.fmu): directional derivatives at t = 0 s", "x changes by", "unit of u",
		"noDirectionalDerivatives"} {
		if a.code != 1 || a.rows > 0 || !strings.Contains(a.manifest.Reason, s) {
			t.Errorf("exit code %d, %d rows, %q is not in %q", a.code, a.rows, s, a.manifest.Reason)
		}
	}
	if !a.clean("bad") || !a.clean("good") {
		t.Errorf("bad %v, good %v", a.calls["bad"], a.calls["good"])
	}
	// An algorithm that does not use them runs.
	runSystem(t, system, "fault=WrongDerivatives", "--algorithm", "implicit").is(t, 0)

	first := systemCommand(t, system, "x0=0.75", los...)
	for k, known := range []bool{false, true} {
		cmd := exec.Command(first.Path, first.Args[1:]...)
		cmd.Dir, cmd.Env = first.Dir, first.Env // with the same cache
		a := examine(t, started(t, cmd))
		if a.code != 0 || len(a.manifest.Warnings) > 0 || len(a.manifest.Slopes) != 2 {
			t.Fatalf("run %d: exit code %d, %v\n%s", k, a.code, a.manifest.Slopes, a.output)
		}
		for name, s := range a.manifest.Slopes {
			if s.Difference > 0.05 || s.Untested != "" || !(s.Step > 0) || name == "bad" && s.Known != known {
				t.Errorf("run %d: %s: %+v", k, name, s)
			}
		}
	}
}

// An undeclared dependency within a step is found in FMUs that the run takes back, and the loop that it closes is
// named; following a state within the step is no dependency (fmi2 27).
func TestHiddenFeedthrough(t *testing.T) {
	t.Parallel()
	members := []member{{"good", "mass_force", "F", "x v"}, liar}
	lines := "good.x → bad.u\nbad.w → good.F"
	system := ours(t, members, lines)
	for _, c := range []struct {
		set  string
		args []string
		tell bool
	}{
		{"d=0.5", []string{"--algorithm", "implicit"}, true},
		{"d=1e-3", []string{"--algorithm", "implicit"}, true},
		{"d=0.5", []string{"--param", "discard=shorten"}, true},
		{"d=0", []string{"--algorithm", "implicit"}, false},
		{"d=0.5", nil, false}, // nothing is taken back, and nothing relies on it
	} {
		a := runSystem(t, system, c.set, append(c.args, "--step-size", "0.01")...)
		if a.code != 0 {
			t.Fatalf("%s %v: exit code %d\n%s", c.set, c.args, a.code, a.output)
		}
		told := a.warnings()
		says := fmt.Sprintf("bad (misbehave.fmu): the output bad.w depends directly on the input bad.u within a step, by %s,",
			strings.TrimPrefix(c.set, "d="))
		says = strings.Replace(says, "1e-3", "0.001", 1)
		if n := strings.Count(told, "within a step"); c.tell && (n != 1 || !strings.Contains(told, says)) || !c.tell && n != 0 {
			t.Errorf("%s %v: warnings %q, want %q", c.set, c.args, told, says)
		}
		if c.tell {
			if a := runSystem(t, system, c.set, append(c.args, "--step-size", "0.01", "--strict")...); a.code != 1 ||
				!strings.Contains(a.manifest.Reason, "within a step") {
				t.Errorf("%s %v, strict: exit code %d, %q", c.set, c.args, a.code, a.manifest.Reason)
			}
		}
	}
}

// Our own FMUs, whose claims are true, cause no warnings.
func TestTruthIsNotDoubted(t *testing.T) {
	t.Parallel()
	take := long.Sample(4)
	for _, name := range fmus.Systems() {
		if !take() {
			continue
		}
		if strings.HasSuffix(name, "blackbox") {
			continue // it claims nothing
		}
		for _, kind := range []string{"newton-fd", "newton-los"} {
			o := run(t, system(t, name), "--algorithm", "implicit", "--param", "solver.kind="+kind, "--stop-time", "0.05", "--strict")
			o.is(t, 0)
			for component, s := range o.manifest.Slopes {
				// A square root has no slope at the rest position, where the run starts.
				untested := s.Untested != "" && name != "sqrt-oscillator"
				if s.Difference > 0.05 || untested {
					t.Errorf("%s, %s: %s: %+v", name, kind, component, s)
				}
			}
		}
	}
}
