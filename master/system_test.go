package master_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// Connect finds subsystem and port in names that have dots themselves.
func TestConnect(t *testing.T) {
	a, inner := newFake("a", 1, 1), newFake("a.b", 1, 1)
	a.info.Out[0].Name, inner.info.Out[0].Name = "body.v", "v"
	sys := system(t, []master.Subsystem{a, inner}, master.Connect("a.body.v", "a.b.u1"), master.Connect("a.b.v", "a.u1"))
	for in, out := range []int{1, 0} {
		if y, ok := sys.Source(in); !ok || y != out {
			t.Errorf("input %d comes from %d, %t", in, y, ok)
		}
	}
}

func TestConnectionsRefused(t *testing.T) {
	build := func() []master.Subsystem {
		a, b := newFake("a", 1, 1), newFake("sys.b", 2, 1)
		for _, f := range []*fake{a, b} {
			f.info.DiscreteIn = []master.Port{{Name: "i", Kind: master.Integer}, {Name: "flag", Kind: master.Boolean}}
			f.info.DiscreteOut = []master.Port{{Name: "n", Kind: master.Integer}, {Name: "s", Kind: master.String}}
		}
		return []master.Subsystem{a, b}
	}
	double := &master.Linear{Gain: 2}
	for _, test := range []struct {
		connections []master.Connection
		want        string
	}{
		{[]master.Connection{wire("c.y1", "a.u1")}, `c.y1 → a.u1: no subsystem "c"`},
		{[]master.Connection{wire("a.y1", "c.u1")}, `no subsystem "c"`},
		{[]master.Connection{wire("a.y1", "sys.b.u3")}, `sys.b has no input "u3"`},
		{[]master.Connection{wire("a.u1", "sys.b.u1")}, `a has no output "u1"`},
		{[]master.Connection{wire("a.y1", "sys.b.u1"), wire("sys.b.y1", "sys.b.u1")}, "already has a source, a.y1"},
		{[]master.Connection{wire("a.n", "sys.b.i"), wire("sys.b.n", "sys.b.i")}, "already has a source, a.n"},
		{[]master.Connection{wire("a.n", "sys.b.u1")}, "different types"},
		{[]master.Connection{wire("a.y1", "sys.b.i")}, "different types"},
		{[]master.Connection{wire("a.s", "sys.b.i")}, "different types"},
		{[]master.Connection{wire("a.n", "sys.b.flag")}, "different types"},
		{[]master.Connection{{From: endpoint("a.n"), To: endpoint("sys.b.i"), Linear: double}}, "Real signals only"},
		{[]master.Connection{{From: endpoint("a.y1"), To: endpoint("sys.b.u1"), Map: map[int64]int64{1: 2}}}, "does not apply to Real"},
	} {
		_, err := master.NewSystem(build(), test.connections)
		contains(t, test.connections, err, test.want)
	}
	// All faults at once.
	_, err := master.NewSystem(build(), []master.Connection{wire("c.y1", "a.u1"), wire("a.y1", "a.u9")})
	if err == nil || !strings.Contains(err.Error(), "c.y1") || !strings.Contains(err.Error(), "u9") {
		t.Errorf("%v", err)
	}
}

func TestSubsystemsRefused(t *testing.T) {
	with := func(change func(*master.Info)) master.Subsystem {
		f := newFake("f", 2, 1)
		change(&f.info)
		return f
	}
	for want, subs := range map[string][]master.Subsystem{
		"the system has no subsystem; give at least one": nil,
		`two subsystems are called "f"`:                  {newFake("f", 0, 1), newFake("f", 1, 0)},
		"1 start values for 2 inputs":                    {with(func(i *master.Info) { i.StartIn = []float64{1} })},
		"f: Step.On has 2 entries for 1 outputs":         {with(func(i *master.Info) { i.Step.On = [][]int{nil, nil} })},
		"f: Init.On[0] names input 2 of 2":               {with(func(i *master.Info) { i.Init.On = [][]int{{2}} })},
		"f: Step.On[0] names input -1 of 2":              {with(func(i *master.Info) { i.Step.On = [][]int{{-1}} })},
		"f: Step.Assumed has 2 entries for 1 outputs":    {with(func(i *master.Info) { i.Step.Assumed = []bool{true, true} })},
	} {
		if _, err := master.NewSystem(subs, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want … %s", err, want)
		}
	}
}

// Names and places of the vectors, with subsystems that have no entries between.
func TestNames(t *testing.T) {
	sys := system(t, []master.Subsystem{newFake("none", 0, 0), newFake("a", 2, 1), newFake("mute", 1, 0), newFake("p.b", 0, 2)}, wire("p.b.y2", "a.u2"))
	for i, want := range []string{"a.u1", "a.u2", "mute.u1"} {
		if got := sys.InName(i); got != want {
			t.Errorf("u[%d] is %s, want %s", i, got, want)
		}
		if at, ok := sys.FindIn(want); !ok || at != i {
			t.Errorf("%s is at %d, %t", want, at, ok)
		}
	}
	for i, want := range []string{"a.y1", "p.b.y1", "p.b.y2"} {
		if got := sys.OutName(i); got != want {
			t.Errorf("y[%d] is %s, want %s", i, got, want)
		}
		if at, ok := sys.FindOut(want); !ok || at != i {
			t.Errorf("%s is at %d, %t", want, at, ok)
		}
	}
	if _, ok := sys.FindIn("a.y1"); ok {
		t.Error("an output is found among the inputs")
	}
	if src, ok := sys.Source(1); !ok || src != 2 || sys.SourceSubsystem(1) != 3 {
		t.Errorf("a.u2 is fed by %d, %t", src, ok)
	}
	if _, ok := sys.Source(0); ok || sys.SourceSubsystem(0) != -1 {
		t.Error("a.u1 is fed")
	}
	if got := sys.ExtrapolatedOutputs(); !slices.Equal(got, []int{2}) {
		t.Errorf("extrapolated outputs %v", got)
	}
}

// stateless marks a fake, with all feedthrough.
func stateless(name string, inputs, outputs int) *fake {
	f := newFake(name, inputs, outputs).depends()
	f.info.Stateless = true
	f.eval = func(u, y []float64) {
		sum := 1.0
		for _, v := range u {
			sum += v
		}
		for k := range y {
			y[k] = sum
		}
	}
	return f
}

// Stateless subsystems are stepped late, after their sources, and those on a
// loop of their own kind are not.
func TestStatelessOrder(t *testing.T) {
	// Listed against the flow: z ← y ← x ← a; p ⇄ q is a loop; r follows it; s feeds itself.
	subs := []master.Subsystem{
		stateless("z", 1, 1), stateless("y", 1, 1), newFake("a", 1, 1), stateless("x", 1, 1),
		stateless("p", 1, 1), stateless("q", 1, 1), stateless("r", 1, 1), stateless("s", 1, 1),
	}
	sys := system(t, subs, wire("a.y1", "x.u1"), wire("x.y1", "y.u1"), wire("y.y1", "z.u1"), wire("z.y1", "a.u1"),
		wire("p.y1", "q.u1"), wire("q.y1", "p.u1"), wire("q.y1", "r.u1"), wire("s.y1", "s.u1"))
	if want := []int{2, 4, 5, 7}; !slices.Equal(sys.Stepped, want) {
		t.Errorf("stepped %v, want %v", sys.Stepped, want)
	}
	late := slices.Clone(sys.Late)
	slices.Sort(late)
	if want := []int{0, 1, 3, 6}; !slices.Equal(late, want) {
		t.Errorf("late %v, want %v in some order", sys.Late, want)
	}
	place := func(i int) int { return slices.Index(sys.Late, i) }
	if place(3) > place(1) || place(1) > place(0) {
		t.Errorf("late %v does not follow the flow", sys.Late)
	}
	// The chain is consistent at every point, whatever the scheme.
	subs[2].(*fake).step = func(t, H float64) (float64, error) {
		f := subs[2].(*fake)
		f.y[0] = t + H
		return t + H, nil
	}
	for _, scheme := range []algorithms.Scheme{algorithms.Jacobi, algorithms.GaussSeidel} {
		memory := &mastertest.Memory{}
		small := system(t, subs[:4], wire("a.y1", "x.u1"), wire("x.y1", "y.u1"), wire("y.y1", "z.u1"))
		r := made(t, small, explicit(t, algorithms.Config{Scheme: scheme}), master.Options{Stop: 1, Step: 0.25, Recorders: []master.Recorder{memory}})
		run(t, r)
		for n, y := range memory.Y[1:] {
			now := memory.T[n+1]
			if want := []float64{now + 3, now + 2, now, now + 1}; !slices.Equal(y, want) {
				t.Errorf("scheme %d, t = %g: %v, want %v", scheme, now, y, want)
			}
		}
	}
}

// A loop is reported with its variables along it, and as assumed if declared
// dependencies alone do not close it.
func TestLoops(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b *fake
		want []master.Loop
	}{
		{"no feedthrough", newFake("a", 1, 1), newFake("b", 1, 1), nil},
		{"half", newFake("a", 1, 1).depends(), newFake("b", 1, 1), nil},
		{"declared", newFake("a", 1, 1).depends(), newFake("b", 1, 1).depends(), []master.Loop{{Variables: []string{"a.u1", "a.y1", "b.u1", "b.y1"}}}},
		{"assumed", newFake("a", 1, 1).depends(), newFake("b", 1, 1).assumes(), []master.Loop{{Variables: []string{"a.u1", "a.y1", "b.u1", "b.y1"}, Assumed: true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sys := system(t, []master.Subsystem{test.a, test.b}, wire("a.y1", "b.u1"), wire("b.y1", "a.u1"))
			if len(sys.Loops) != len(test.want) {
				t.Fatalf("%+v, want %+v", sys.Loops, test.want)
			}
			for i, want := range test.want {
				got := sys.Loops[i]
				if !slices.Equal(got.Variables, want.Variables) || got.Assumed != want.Assumed || got.Initialization || got.Treatment == "" {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

// Loops through discrete signals are loops too; two separate ones are two.
func TestDiscreteLoops(t *testing.T) {
	gate := func(name string) *fake {
		f := newFake(name, 0, 0)
		f.info.DiscreteIn = []master.Port{{Name: "in", Kind: master.Boolean}}
		f.info.DiscreteOut = []master.Port{{Name: "out", Kind: master.Boolean}}
		return f.depends()
	}
	sys := system(t, []master.Subsystem{gate("a"), gate("b"), newFake("c", 1, 1).depends()},
		wire("a.out", "b.in"), wire("b.out", "a.in"), wire("c.y1", "c.u1"))
	var got []string
	for _, l := range sys.Loops {
		got = append(got, strings.Join(l.Variables, " "))
	}
	slices.Sort(got)
	if want := []string{"a.in a.out b.in b.out", "c.u1 c.y1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Gauss–Seidel takes the order of the flow where there is one.
func TestSequenceFromGraph(t *testing.T) {
	sys := system(t, []master.Subsystem{newFake("d", 1, 1), newFake("c", 1, 1), newFake("b", 2, 1), newFake("a", 1, 1)},
		wire("a.y1", "b.u1"), wire("b.y1", "c.u1"), wire("c.y1", "b.u2"), wire("c.y1", "d.u1"))
	if got, want := sys.SequenceFromGraph(), []int{3, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Gain and offset of a connection, and start values of free inputs.
func TestCoupling(t *testing.T) {
	a, b := newFake("a", 0, 1), newFake("b", 2, 1)
	a.y[0] = 3
	b.info.StartIn = []float64{7, 8}
	c := master.Connection{From: endpoint("a.y1"), To: endpoint("b.u1"), Linear: &master.Linear{Gain: -2, Offset: 0.5}}
	r := newRun(t, system(t, []master.Subsystem{a, b}, c), master.Options{Stop: 1, Step: 1})
	start(t, r)
	step(t, r)
	if !slices.Equal(b.u, []float64{-5.5, 8}) || !slices.Equal(r.Point().U, b.u) {
		t.Errorf("inputs %v, point %v", b.u, r.Point().U)
	}
	end(t, r)
}

// Discrete signals are copied at communication points, through their tables.
func TestDiscreteSignals(t *testing.T) {
	src, dst := newFake("src", 0, 0), newFake("dst", 0, 0)
	src.info.DiscreteOut = []master.Port{
		{Name: "b", Kind: master.Boolean}, {Name: "i", Kind: master.Integer}, {Name: "s", Kind: master.String}, {Name: "j", Kind: master.Integer},
	}
	dst.info.DiscreteIn = []master.Port{
		{Name: "i", Kind: master.Integer}, {Name: "j", Kind: master.Integer}, {Name: "b", Kind: master.Boolean}, {Name: "s", Kind: master.String}, {Name: "k", Kind: master.Integer},
	}
	n := int64(0)
	src.discrete = func(_, out *master.Values) {
		n++
		out.Integer[0], out.Integer[1] = n, 100+n
		out.Boolean[0] = n%2 == 0
		out.String[0] = strings.Repeat("x", int(n))
	}
	sys := system(t, []master.Subsystem{src, dst}, wire("src.j", "dst.i"),
		master.Connection{From: endpoint("src.i"), To: endpoint("dst.j"), Map: map[int64]int64{2: 20, 3: 30}},
		master.Connection{From: endpoint("src.b"), To: endpoint("dst.b"), Map: map[int64]int64{0: 1, 1: 0}},
		wire("src.s", "dst.s"), wire("src.i", "dst.k"))
	r := newRun(t, sys, master.Options{Stop: 4, Step: 1})
	start(t, r)
	for more := true; more; {
		before := n
		want := master.Values{Integer: []int64{100 + n, map[int64]int64{1: 1, 2: 20, 3: 30}[n], n}, Boolean: []bool{n%2 != 0}, String: []string{strings.Repeat("x", int(n))}}
		if n > 3 {
			want.Integer[1] = n
		}
		if p := r.Point().DiscreteIn[1]; !slices.Equal(p.Integer, want.Integer) {
			t.Errorf("t = %g: point %v, want %v", r.Time(), p, want)
		}
		var err error
		if more, err = r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if before+1 != n || !slices.Equal(dst.din.Integer, want.Integer) || !slices.Equal(dst.din.Boolean, want.Boolean) || !slices.Equal(dst.din.String, want.String) {
			t.Errorf("t = %g: %v, want %v", r.Time(), dst.din, want)
		}
	}
	end(t, r)
}

// The history before the start must hold what is extrapolated.
func TestPastRefused(t *testing.T) {
	for _, y := range [][]float64{{math.NaN(), 0, 0}, {0, 0}, nil} {
		sys, _ := oscillator(t)
		r := newRun(t, sys, master.Options{Stop: 1, Step: 0.1, Past: []master.PastOutputs{{T: -0.1, Y: y}}})
		if result, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "history") || result.Status != master.Failed {
			t.Errorf("%v: %v", y, err)
		}
	}
}
