package master_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// begun returns a run that has started; it is closed when the test ends.
func begun(t *testing.T, sys *master.System) (*master.Run, error) {
	t.Helper()
	r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1})
	err := r.Start(t.Context())
	t.Cleanup(func() { r.Close() }) //nolint:errcheck // the error is that of Start
	return r, err
}

// initialized is begun for a start that goes well.
func initialized(t *testing.T, sys *master.System) *master.Run {
	t.Helper()
	r, err := begun(t, sys)
	must(t, err)
	return r
}

// A chain is exact after one pass, in whatever order its members are listed:
// each is evaluated once with its final input, beside the first guess.
func TestInitChain(t *testing.T) {
	const n = 6
	rng := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		var subs []master.Subsystem
		var connections []master.Connection
		evals := make([]int, n)
		for i := range n {
			f := newFake(fmt.Sprint("s", i), 1, 1).depends()
			f.info.StartIn = []float64{5}
			f.eval = func(u, y []float64) { evals[i]++; y[0] = 2*u[0] + 1 }
			subs = append(subs, f)
			if i > 0 {
				connections = append(connections, wire(fmt.Sprintf("s%d.y1", i-1), fmt.Sprintf("s%d.u1", i)))
			}
		}
		rng.Shuffle(n, func(i, j int) { subs[i], subs[j] = subs[j], subs[i] })
		r := initialized(t, system(t, subs, connections...))
		want := 5.0
		for i := range n {
			want = 2*want + 1
			if got, _ := r.Real(fmt.Sprintf("s%d.y1", i)); got != want {
				t.Fatalf("s%d.y1 is %g, want %g", i, got, want)
			}
			if evals[i] > 2 {
				t.Fatalf("s%d was evaluated %d times", i, evals[i])
			}
		}
		if res := end(t, r); len(res.Loops) > 0 {
			t.Fatalf("loops %v", res.Loops)
		}
	}
}

// differences hides the directional derivatives of a subsystem.
type differences struct{ *mastertest.Linear }

func (differences) DirectionalDerivative() {}

// A linear loop is solved as by one direct solve, by directional derivatives
// and by differences, also where sweeping would diverge.
func TestInitLinearLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, analytic := range []bool{true, false} {
		for _, gain := range []float64{0.1, 1, 30} {
			for range 20 {
				// Two static subsystems with 3 inputs and outputs each, and a constant source for an offset.
				const m = 3
				var d [2][][]float64
				for i := range d {
					for range m {
						row := make([]float64, m)
						for c := range row {
							row[c] = gain * rng.NormFloat64()
						}
						d[i] = append(d[i], row)
					}
				}
				var subs []master.Subsystem
				for i, name := range []string{"a", "b"} {
					l := mastertest.NewLinear(name, mastertest.Matrices{D: d[i]}, nil)
					l.Info().Stateless = false
					if analytic {
						subs = append(subs, l)
						continue
					}
					l.Info().Caps.DirectionalDerivative = false
					subs = append(subs, differences{l})
				}
				var connections []master.Connection
				offsets := make([]float64, 2*m)
				full := mat.NewDense(2*m, 2*m, nil) // u = full u + offsets
				for k := range m {
					for i, ends := range [][2]string{{"b", "a"}, {"a", "b"}} {
						offset := rng.NormFloat64()
						connections = append(connections, master.Connection{
							From: endpoint(fmt.Sprintf("%s.y%d", ends[0], k+1)), To: endpoint(fmt.Sprintf("%s.u%d", ends[1], k+1)),
							Linear: &master.Linear{Gain: -1.5, Offset: offset},
						})
						offsets[i*m+k] = offset
						for c := range m {
							full.Set(i*m+k, (1-i)*m+c, -1.5*d[1-i][k][c])
						}
					}
				}
				var a mat.Dense
				a.Sub(eye(2*m), full)
				var want mat.VecDense
				if err := want.SolveVec(&a, mat.NewVecDense(2*m, offsets)); err != nil {
					continue // badly conditioned
				}
				r := initialized(t, system(t, subs, connections...))
				for k, got := range r.Point().U {
					if w := want.AtVec(k); math.Abs(got-w) > 1e-9*(1+math.Abs(w)) {
						t.Fatalf("analytic %t, gain %g: u[%d] = %g, want %g", analytic, gain, k, got, w)
					}
				}
				loops := end(t, r).Loops
				if len(loops) != 2 || !loops[0].Initialization || loops[0].Assumed || len(loops[0].Variables) != 4*m || loops[0].Treatment == "" || loops[1].Initialization {
					t.Fatalf("%+v", loops)
				}
			}
		}
	}
}

func eye(n int) *mat.Dense {
	m := mat.NewDense(n, n, nil)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}

// pair is a loop of two: a gives f(u), b hands it back.
func pair(f func(u float64) float64) []master.Subsystem {
	a, b := newFake("a", 1, 1).depends(), newFake("b", 1, 1).depends()
	a.eval = func(u, y []float64) { y[0] = f(u[0]) }
	b.eval = func(u, y []float64) { y[0] = u[0] }
	return []master.Subsystem{a, b}
}

var ring = []master.Connection{wire("a.y1", "b.u1"), wire("b.y1", "a.u1")}

// solved starts a ring of two, the first of which computes f, with its derivative slope unless that
// is nil, and returns what they exchange.
func solved(t *testing.T, f, slope func(float64) float64, start float64) (values []float64, err error) {
	t.Helper()
	subs := pair(f)
	if slope != nil {
		_, subs = derivingPair(f, slope)
	}
	for _, s := range subs {
		s.Info().StartIn = []float64{start}
	}
	r, err := begun(t, system(t, subs, ring...))
	return slices.Concat(r.Point().U, r.Point().Y), err
}

// A nonlinear loop is solved by Newton from the start values, also where repetition runs away,
// where a first full step would, where the function has no value at the start, and where
// derivatives are right only at the start.
func TestInitNonlinearLoop(t *testing.T) {
	exponential := func(u float64) float64 { return 2 - math.Exp(u) }
	for name, test := range map[string]struct {
		f, slope    func(float64) float64
		start, want float64
	}{
		"cosine":             {f: math.Cos, want: 0.7390851332151607},
		"runs away":          {f: func(u float64) float64 { return 3 - u*u*u }, start: 1, want: 1.2134116627622296},
		"runs away fast":     {f: exponential, start: 3, want: 0.4428544010023886},
		"square root":        {f: func(u float64) float64 { return 2 / u }, start: 1, want: math.Sqrt2},
		"full step too far":  {f: func(u float64) float64 { return u - math.Atan(u) }, start: 2.5},
		"scale":              {f: func(u float64) float64 { return 1e6 * math.Cos(u*1e-6) }, want: 0.7390851332151607e6},
		"no value at start":  {f: func(u float64) float64 { return 1 - 3*math.Log(u) }, want: 1},
		"end of the domain":  {f: func(u float64) float64 { return math.Sqrt(-u) - 2 }, want: -1},
		"derivatives, wrong": {f: exponential, slope: wrongBut(3), start: 3, want: 0.4428544010023886},
	} {
		values, err := solved(t, test.f, test.slope, test.start)
		for _, got := range values {
			if err != nil || math.Abs(got-test.want) > 1e-9*(1+math.Abs(test.want)) {
				t.Errorf("%s: %v, %v, want %g", name, err, values, test.want)
				break
			}
		}
	}
}

// wrongBut returns the derivative of 2 − e^u at one point, and elsewhere one with which the loop is
// singular.
func wrongBut(at float64) func(float64) float64 {
	return func(u float64) float64 {
		if u == at {
			return -math.Exp(u)
		}
		return math.Exp(u)
	}
}

// A loop without a solution is an error with its variables, the place and the remedy; a value that
// is not finite is reported with its subsystem.
func TestInitUnsolvable(t *testing.T) {
	for name, test := range map[string]struct {
		f    func(float64) float64
		want []string
	}{
		"singular":         {func(u float64) float64 { return u + 1 }, []string{"no unique solution", "singular", "cut the loop"}},
		"no real solution": {func(u float64) float64 { return u + 1 + u*u }, []string{"is not solved", "residual at ", "Newton iterations"}},
		"NaN":              {func(float64) float64 { return math.NaN() }, []string{"a: the output a.y1 is NaN", "set start values"}},
		"infinite":         {func(float64) float64 { return math.Inf(-1) }, []string{"a: the output a.y1 is infinite", "set start values"}},
		"around the start": {func(u float64) float64 {
			if 12*u == math.Trunc(12*u) { // there Newton looks for another start
				return 3 + u
			}
			return math.NaN()
		}, []string{"a: the derivative of a.y1 with respect to a.u1 is NaN", "set start values"}},
	} {
		_, err := solved(t, test.f, nil, 0)
		contains(t, name, err, append(test.want, "a.u1 → a.y1 → b.u1 → b.y1")...)
		if err != nil && strings.Contains(err.Error(), "singular") != (name == "singular") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A loop that exists by assumption only settles in the sweeps.
func TestInitAssumedLoop(t *testing.T) {
	// In truth a.y1 = 4 and b.y1 = a.y1 + 1, c.y1 = b.y1 + 1; nothing feeds back.
	a, b, c := newFake("a", 1, 1).assumes(), newFake("b", 1, 1).assumes(), newFake("c", 1, 1).assumes()
	a.eval = func(u, y []float64) { y[0] = 4 }
	b.eval = func(u, y []float64) { y[0] = u[0] + 1 }
	c.eval = b.eval
	for _, subs := range [][]master.Subsystem{{a, b, c}, {c, b, a}, {b, a, c}} {
		r := initialized(t, system(t, subs, wire("a.y1", "b.u1"), wire("b.y1", "c.u1"), wire("c.y1", "a.u1")))
		if p := r.Point(); !slices.Equal(slices.Sorted(slices.Values(p.Y)), []float64{4, 5, 6}) {
			t.Errorf("outputs %v", p.Y)
		}
		if loops := end(t, r).Loops; len(loops) != 2 || !loops[0].Assumed || !strings.Contains(loops[0].Treatment, "sweeps") {
			t.Errorf("%+v", loops)
		}
	}
}

// A ring of Booleans and Integers settles by repetition, or is named.
func TestInitDiscreteLoop(t *testing.T) {
	same := func(i int64) int64 { return i }
	build := func(f, second func(int64) int64) *master.System {
		var subs []master.Subsystem
		for k, name := range []string{"a", "b"} {
			f := []func(int64) int64{f, second}[k]
			g := newFake(name, 0, 0)
			g.info.DiscreteIn = []master.Port{{Name: "in", Kind: master.Integer}}
			g.info.DiscreteOut = []master.Port{{Name: "out", Kind: master.Integer}}
			g.discrete = func(in, out *master.Values) { out.Integer[0] = f(in.Integer[0]) }
			subs = append(subs, g.depends())
		}
		return system(t, subs, wire("a.out", "b.in"), wire("b.out", "a.in"))
	}
	r := initialized(t, build(func(i int64) int64 { return min(i+1, 7) }, same))
	if p := r.Point(); p.DiscreteOut[0].Integer[0] != 7 || p.DiscreteOut[1].Integer[0] != 7 || p.DiscreteIn[0].Integer[0] != 7 {
		t.Errorf("%v %v", p.DiscreteOut, p.DiscreteIn)
	}
	_, err := begun(t, build(func(i int64) int64 { return 1 - i }, same))
	if err == nil || !strings.Contains(err.Error(), "do not settle") || !strings.Contains(err.Error(), "a.in → a.out → b.in → b.out") {
		t.Errorf("%v", err)
	}
}

// A mixed loop: the Real solution decides a Boolean, which changes the Real equation.
func TestInitMixedLoop(t *testing.T) {
	a, b := newFake("a", 1, 1), newFake("b", 1, 1)
	a.info.DiscreteIn = []master.Port{{Name: "high", Kind: master.Boolean}}
	b.info.DiscreteOut = []master.Port{{Name: "high", Kind: master.Boolean}}
	a.depends()
	b.depends()
	a.eval = func(u, y []float64) {
		y[0] = 1 - 0.5*u[0]
		if a.din.Boolean[0] {
			y[0] += 3
		}
	}
	b.eval = func(u, y []float64) { y[0] = u[0] }
	b.discrete = func(in, out *master.Values) { out.Boolean[0] = b.u[0] > 0.6 }
	r := initialized(t, system(t, []master.Subsystem{a, b}, append(ring, wire("b.high", "a.high"))...))
	if got, _ := r.Real("a.y1"); math.Abs(got-4/1.5) > 1e-12 || !r.Point().DiscreteOut[1].Boolean[0] {
		t.Errorf("a.y1 is %g, want %g", got, 4/1.5)
	}
}

// Outputs are read again once initialisation has been left (fmi2 71).
func TestInitReadAgain(t *testing.T) {
	f := &late{newFake("f", 0, 1)}
	g := newFake("g", 1, 1)
	r := initialized(t, system(t, []master.Subsystem{f, g}, wire("f.y1", "g.u1")))
	if got, _ := r.Real("f.y1"); got != 42 {
		t.Errorf("f.y1 is %g", got)
	}
	if got, _ := r.Real("g.u1"); got != 42 {
		t.Errorf("g.u1 is %g", got)
	}
}

// A run warns of an output that feeds an input and changes when the initialisation ends; a strict run does not begin.
func TestInitTellsChanged(t *testing.T) {
	for _, c := range []struct{ fed, strict, told bool }{{true, false, true}, {true, true, true}, {false, true, false}} {
		f, g := &late{newFake("f", 0, 1)}, newFake("g", 1, 1)
		var connections []master.Connection
		if c.fed {
			connections = append(connections, wire("f.y1", "g.u1"))
		}
		r := newRun(t, system(t, []master.Subsystem{f, g}, connections...), master.Options{Stop: 1, Step: 0.1, Strict: c.strict})
		err := r.Start(t.Context())
		res, _ := r.Close()
		const text = "f.y1 was 0 in the initialisation, and is 42 after it: g.u1"
		if told := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], text); told != (c.told && !c.strict) {
			t.Errorf("%+v: %q", c, res.Warnings)
		}
		if fails := err != nil && strings.Contains(err.Error(), text); fails != (c.told && c.strict) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// late knows its outputs only when it has left initialisation mode.
type late struct{ *fake }

func (l *late) ExitInit() error { l.y[0] = 42; return nil }
