package master_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// deriving is a fake with directional derivatives.
type deriving struct {
	*fake
	slope func(u float64) float64
	asked int
	err   error
}

func (d *deriving) DirectionalDerivative(du, dy []float64) error {
	d.asked++
	dy[0] = d.slope(d.u[0]) * du[0]
	return d.err
}

// derivingPair is pair with derivatives of the first.
func derivingPair(f, slope func(u float64) float64) (*deriving, []master.Subsystem) {
	subs := pair(f)
	d := &deriving{fake: subs[0].(*fake), slope: slope}
	d.info.Caps.DirectionalDerivative = true
	subs[0] = d
	return d, subs
}

// A directional derivative that is not what the outputs do is told with both
// values, and the loop is solved by differences; a right one is used.
func TestInitWrongDerivatives(t *testing.T) {
	steep := func(u float64) float64 { return 3 - u*u*u } // repetition runs away
	const solution = 1.2134116627622296
	for _, c := range []struct {
		name  string
		slope func(u float64) float64
		err   error
		says  []string
	}{
		{name: "right", slope: func(u float64) float64 { return -3 * u * u }},
		{name: "a little off", slope: func(u float64) float64 { return -3.05 * u * u }},
		{name: "twice as large", slope: func(u float64) float64 { return -6 * u * u }, says: []string{"a.y1 by a.u1 is -6", "differences give -3"}},
		{name: "of the other sign", slope: func(u float64) float64 { return 3 * u * u }, says: []string{"a.y1 by a.u1 is 3", "differences give -3"}},
		{name: "zero", slope: func(float64) float64 { return 0 }, says: []string{"a.y1 by a.u1 is 0", "differences give -3"}},
		{name: "NaN", slope: func(float64) float64 { return math.NaN() }, says: []string{"a.y1 by a.u1 is NaN", "differences give -3"}},
		{name: "refused", slope: func(float64) float64 { return 0 }, err: fmt.Errorf("%w: there are none", master.ErrCapability), says: []string{"there are none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, subs := derivingPair(steep, c.slope)
			d.err = c.err
			for _, s := range subs {
				s.Info().StartIn = []float64{1}
			}
			r := initialized(t, system(t, subs, ring...))
			if got, _ := r.Real("a.u1"); math.Abs(got-solution) > 1e-9 {
				t.Errorf("a.u1 is %.17g, want %g", got, solution)
			}
			warnings := end(t, r).Warnings
			if (len(warnings) == 0) != (c.says == nil) || len(warnings) > 1 {
				t.Fatalf("warnings %q", warnings)
			}
			if c.says != nil {
				for _, s := range append(c.says, "a: initialisation", "differences are taken instead") {
					if !strings.Contains(warnings[0], s) {
						t.Errorf("%q lacks %q", warnings[0], s)
					}
				}
				if d.asked != 1 {
					t.Errorf("wrong derivatives were asked for %d times", d.asked)
				}
			}

			strict := newRun(t, system(t, subs, ring...), master.Options{Stop: 1, Step: 0.1, Strict: true})
			_, err := strict.Run(t.Context())
			if (err == nil) != (c.says == nil) || err != nil && !strings.Contains(err.Error(), c.says[0]) {
				t.Errorf("strict: %v", err)
			}
		})
	}
}

// Derivatives that are right at the start and nowhere else keep Newton from its
// end; differences find it.
func TestInitDerivativesWrongElsewhere(t *testing.T) {
	_, subs := derivingPair(func(u float64) float64 { return 2 - math.Exp(u) }, func(u float64) float64 {
		if u == 3 {
			return -math.Exp(u)
		}
		return math.Exp(u) // with which the loop is singular, and leads away
	})
	for _, s := range subs {
		s.Info().StartIn = []float64{3}
	}
	r := initialized(t, system(t, subs, ring...))
	if got, _ := r.Real("a.u1"); math.Abs(got-0.4428544010023886) > 1e-9 {
		t.Errorf("a.u1 is %.17g", got)
	}
}

// Curvature, rounding and what moves nothing are no lies.
func TestInitRightDerivatives(t *testing.T) {
	for name, c := range map[string]struct {
		f, slope func(u float64) float64
		start    float64
	}{
		"curved":  {func(u float64) float64 { return 3 + math.Sin(300*u) }, func(u float64) float64 { return 300 * math.Cos(300*u) }, 3},
		"noisy":   {func(u float64) float64 { return 3 - u*u + 1e-9*math.Sin(1e12*u) }, func(u float64) float64 { return -2 * u }, 1},
		"nothing": {func(u float64) float64 { return 3 - 1e-9*u }, func(float64) float64 { return 0 }, 1},
	} {
		_, subs := derivingPair(c.f, c.slope)
		for _, s := range subs {
			s.Info().StartIn = []float64{c.start}
		}
		r, err := begun(t, system(t, subs, ring...))
		if err != nil && name != "noisy" { // whose loop has no exact solution
			t.Errorf("%s: %v", name, err)
		}
		if res, _ := r.Close(); len(res.Warnings) > 0 {
			t.Errorf("%s: %q", name, res.Warnings)
		}
	}
}

// What is no number on a loop is named with its subsystem; where it is so only at
// the start values, the loop is solved from beside them.
func TestInitNotFinite(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(u float64) float64
		want string
	}{
		{"NaN", func(float64) float64 { return math.NaN() }, "a: the output a.y1 is NaN"},
		{"infinite", func(float64) float64 { return math.Inf(-1) }, "a: the output a.y1 is infinite"},
		{"around the start", func(u float64) float64 {
			if 12*u == math.Trunc(12*u) { // there Newton looks for another start
				return 3 + u
			}
			return math.NaN()
		}, "a: the derivative of a.y1 by a.u1 is NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := begun(t, system(t, pair(c.f), ring...))
			if err == nil {
				t.Fatalf("it is solved: %v", r.Point().U)
			}
			for _, want := range []string{"a.u1 → a.y1 → b.u1 → b.y1", c.want, "set start values"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "singular") {
				t.Errorf("%q", err)
			}
		})
	}
	// A start where the function has no value, and one at the end of its domain.
	for name, c := range map[string]struct {
		f           func(u float64) float64
		start, want float64
	}{
		"logarithm": {func(u float64) float64 { return 1 - 3*math.Log(u) }, 0, 1},
		"root":      {func(u float64) float64 { return math.Sqrt(-u) - 2 }, 0, -1},
	} {
		subs := pair(c.f)
		for _, s := range subs {
			s.Info().StartIn = []float64{c.start}
		}
		r, err := begun(t, system(t, subs, ring...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if u, _ := r.Real("a.u1"); math.Abs(u-c.want) > 1e-9 {
			t.Errorf("%s: u is %g, want %g", name, u, c.want)
		}
	}
}

// A dependency that is denied orders the initialisation once it is seen, like one
// that is declared; it is told, and refused by a strict run.
func TestInitLeaks(t *testing.T) {
	build := func() []master.Subsystem {
		// a.y1 = 2 a.u1 + a.u2, and says that it depends on nothing.
		a, b, c := newFake("a", 2, 1), newFake("b", 1, 1).depends(), newFake("c", 0, 2)
		a.eval = func(u, y []float64) { y[0] = 2*u[0] + u[1] }
		b.eval = func(u, y []float64) { y[0] = u[0] + 1 }
		c.eval = func(u, y []float64) { y[0], y[1] = 5, 7 }
		return []master.Subsystem{b, a, c}
	}
	wires := []master.Connection{wire("a.y1", "b.u1"), wire("c.y1", "a.u1"), wire("c.y2", "a.u2")}
	r := initialized(t, system(t, build(), wires...))
	if got, _ := r.Real("b.y1"); got != 18 {
		t.Errorf("b.y1 is %g, want 18", got)
	}
	res := end(t, r)
	const says = "a: the output a.y1 depends directly on the input a.u1 in the initialisation, by 2, and its description says that it does not"
	if len(res.Warnings) != 2 || !strings.Contains(res.Warnings[0], says) || !strings.Contains(res.Warnings[1], "a.u2 in the initialisation, by 1") || len(res.Loops) != 0 {
		t.Errorf("%q, loops %v", res.Warnings, res.Loops)
	}
	_, err := newRun(t, system(t, build(), wires...), master.Options{Stop: 1, Step: 0.1, Strict: true}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "strict") {
		t.Errorf("strict: %v", err)
	}

	// What closes a loop makes it one that is solved: a = 0.5 b, b = a + 1.
	subs := build()
	subs[1].(*fake).eval = func(u, y []float64) { y[0] = 0.5 * u[0] }
	r = initialized(t, system(t, subs, wire("a.y1", "b.u1"), wire("b.y1", "a.u1")))
	if got, _ := r.Real("b.y1"); math.Abs(got-2) > 1e-11 {
		t.Errorf("b.y1 is %.17g, want 2", got)
	}
	if res := end(t, r); len(res.Loops) != 1 || !res.Loops[0].Initialization || len(res.Warnings) != 1 {
		t.Errorf("loops %+v, %q", res.Loops, res.Warnings)
	}
}

// What moves by itself, by noise, or with an input that it names, denies nothing.
func TestInitNoLeaks(t *testing.T) {
	calls := 0.0
	for name, eval := range map[string]func(u, y []float64){
		"counts":  func(u, y []float64) { calls++; y[0] = calls },
		"settles": func(u, y []float64) { calls++; y[0] = min(calls, 2) },
		"noise":   func(u, y []float64) { y[0] = 3 + 1e-9*u[0] },
		"other":   func(u, y []float64) { y[0] = u[1] },
	} {
		calls = 0
		a, c := newFake("a", 2, 1), newFake("c", 0, 2)
		a.info.Init.On = [][]int{{1}}
		a.eval = eval
		c.eval = func(u, y []float64) { y[0], y[1] = 5, 7 }
		r := initialized(t, system(t, []master.Subsystem{a, c}, wire("c.y1", "a.u1"), wire("c.y2", "a.u2")))
		if res := end(t, r); len(res.Warnings) > 0 {
			t.Errorf("%s: %q", name, res.Warnings)
		}
	}
}

// leaky is a fake that finds dependencies which it denies.
type leaky struct {
	saved
	leaks []master.Leak
	ins   [][]int
}

func (l *leaky) VerifyFeedthrough(_ context.Context, _ master.Experiment, _ float64, ins []int) ([]master.Leak, error) {
	l.ins = append(l.ins, slices.Clone(ins))
	return l.leaks, nil
}

// A dependency that was found within a step shows in the loops; only subsystems
// that the run takes back are tested.
func TestStepLeaks(t *testing.T) {
	for _, shorten := range []bool{false, true} {
		for _, declared := range []bool{false, true} {
			a, b := &leaky{saved: newSaved("a", 2, 1), leaks: []master.Leak{{Slope: 2}}}, newSaved("b", 1, 1)
			b.depends()
			if declared {
				a.depends()
			}
			o := master.Options{Stop: 1, Step: 0.1}
			if shorten {
				o.Discard = master.ShortenOnDiscard
			}
			res := run(t, newRun(t, system(t, []master.Subsystem{a, b}, wire("a.y1", "b.u1"), wire("b.y1", "a.u1")), o))
			told := slices.ContainsFunc(res.Warnings, func(s string) bool {
				return strings.Contains(s, "a: the output a.y1 depends directly on the input a.u1 within a step, by 2")
			})
			if tested := shorten && !declared; told != tested || (len(a.ins) == 1) != tested || tested && !slices.Equal(a.ins[0], []int{0}) {
				t.Errorf("shorten %t, declared %t: asked for %v, %q", shorten, declared, a.ins, res.Warnings)
			}
			looped := slices.ContainsFunc(res.Loops, func(l master.Loop) bool { return !l.Initialization && slices.Contains(l.Variables, "a.y1") })
			if looped != (shorten || declared) {
				t.Errorf("shorten %t, declared %t: loops %+v", shorten, declared, res.Loops)
			}
			if !shorten || declared {
				continue
			}
			o.Strict = true
			if _, err := newRun(t, system(t, []master.Subsystem{a, b}, wire("a.y1", "b.u1"), wire("b.y1", "a.u1")), o).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "within a step") {
				t.Errorf("strict: %v", err)
			}
		}
	}
}

// verified is a fake whose derivatives are put to the test.
type verified struct {
	*deriving
	test master.SlopeTest
	lie  error
	h    float64
}

func (v *verified) VerifyDerivatives(_ context.Context, _ master.Experiment, h float64) (master.SlopeTest, error) {
	v.h = h
	return v.test, v.lie
}

// relying is an algorithm that uses the directional derivatives of subsystem 0.
type relying struct {
	master.Algorithm
}

func (relying) NeedsDerivatives(*master.System) []int { return []int{0} }

// The derivatives that an algorithm relies on are verified before it begins.
func TestDerivativesAreVerified(t *testing.T) {
	build := func(relies bool) (*verified, *master.Run) {
		d, subs := derivingPair(func(u float64) float64 { return u / 2 }, func(float64) float64 { return 0.5 })
		v := &verified{deriving: d, test: master.SlopeTest{Difference: 0.01, Step: 1e-3}}
		subs[0] = v
		alg := explicit(t, algorithms.Config{})
		if relies {
			alg = relying{alg}
		}
		r := made(t, system(t, subs, ring...), alg, master.Options{Stop: 1, Step: 0.1})
		return v, r
	}
	v, r := build(true)
	res, err := r.Run(t.Context())
	if err != nil || v.h != 0 || // nothing is taken back
		len(res.Slopes) != 1 || res.Slopes["a"] != v.test {
		t.Errorf("%v, H = %g, %v", err, v.h, res.Slopes)
	}
	v, r = build(true)
	v.lie = fmt.Errorf("%w: a.y1 by a.u1 is 4", master.ErrCapability)
	res, err = r.Run(t.Context())
	if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "a: directional derivatives at t = 0 s") || !strings.Contains(err.Error(), "a.y1 by a.u1 is 4") {
		t.Errorf("%v", err)
	}
	if res.Accepted != 0 || res.Status != master.Failed {
		t.Errorf("%d steps, %s", res.Accepted, res.Status)
	}
	v, r = build(false)
	v.lie = errors.New("not asked")
	if res, err := r.Run(t.Context()); err != nil || res.Slopes != nil {
		t.Errorf("%v, %v", err, res.Slopes)
	}
}

// What subsystems changed around them is put back on the way and at the end.
func TestTidy(t *testing.T) {
	asked := 0
	f := newFake("f", 0, 1)
	r := newRun(t, system(t, []master.Subsystem{f}), master.Options{Stop: 1, Step: 0.5, Tidy: func() []string {
		if f.closed > 0 {
			t.Error("asked after the subsystems were closed")
		}
		if asked++; asked > 1 {
			return nil
		}
		return []string{"something was changed"}
	}})
	res, err := r.Run(t.Context())
	if err != nil || asked == 0 || !slices.Equal(res.Warnings, []string{"something was changed"}) {
		t.Errorf("%v, asked %d times, warnings %q", err, asked, res.Warnings)
	}
}
