package algorithms_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// deliveries returns what an algorithm reports after a few steps.
func deliveries(t *testing.T, s *split, c Config) []master.Delivery {
	t.Helper()
	e := newExplicit(t, c)
	simulate(t, s.system(t), e, master.Options{Stop: 0.01, Step: 0.001})
	return e.Report().Delivery
}

func TestDeliveriesReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		take   func(*master.Info) // capabilities away
		want   string             // of mass1's force; then of mass2's position
		order  int
	}{
		{"derivatives", Config{Order: 2}, nil, "derivatives", 2},
		{"asked for substeps", Config{Order: 2, Delivery: Substeps, Substeps: 3}, nil, "substeps=3", 2},
		{"asked for held", Config{Order: 2, Delivery: Held}, nil, "held", 0},
		{"order 0", Config{}, nil, "held", 0},
		{"no interpolation", Config{Order: 1}, func(i *master.Info) { i.Caps.InputDerivatives = false }, "substeps=10", 1},
		{"no interpolation, asked for", Config{Order: 1, Delivery: Derivatives, Substeps: 7},
			func(i *master.Info) { i.Caps.InputDerivatives = false }, "substeps=7", 1},
		{"fixed step", Config{Order: 1}, func(i *master.Info) { i.Caps.VariableStep = false }, "derivatives", 1},
		{"fixed step, asked for substeps", Config{Order: 1, Delivery: Substeps},
			func(i *master.Info) { i.Caps.VariableStep = false }, "held", 0},
		{"nothing", Config{Order: 1}, func(i *master.Info) { i.Caps = master.Caps{} }, "held", 0},
		{"discrete", Config{Order: 1}, func(i *master.Info) {
			for k := range i.In {
				i.In[k].Discrete = true
			}
		}, "held", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := cut(symmetric, "fd")
			if test.take != nil {
				for _, l := range s.subsystems {
					test.take(l.Info())
				}
			}
			got := deliveries(t, s, test.config)
			var want []master.Delivery
			for _, in := range []string{"mass1.u1", "mass2.u1", "mass2.u2"} {
				want = append(want, master.Delivery{Input: in, How: test.want, Order: test.order})
			}
			for _, in := range []string{"u1", "u2", "u3", "u4"} {
				want = append(want, master.Delivery{Input: "coupling." + in, How: "late"})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// Inputs from discrete outputs and inputs without source are held.
func TestHeldInputs(t *testing.T) {
	s := cut(symmetric, "dd")
	s.subsystems[0].Info().Out[0].Discrete = true
	s.connections = slices.DeleteFunc(s.connections, func(c master.Connection) bool { return c.To.String() == "mass1.u2" })
	got := deliveries(t, s, Config{Order: 2})
	want := []master.Delivery{
		{Input: "mass1.u1", How: "derivatives", Order: 2}, {Input: "mass1.u2", How: "held"},
		{Input: "mass2.u1", How: "held"}, {Input: "mass2.u2", How: "derivatives", Order: 2},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSequenceRefused(t *testing.T) {
	sys := cut(symmetric, "dd").system(t)
	for _, test := range []struct {
		sequence []string
		want     string
	}{
		{[]string{"mass1", "mass3"}, `"mass3", which is not a subsystem`},
		{[]string{"mass1", "mass1"}, `names "mass1" twice`},
		{[]string{"mass1"}, "must name every subsystem once"},
	} {
		e := newExplicit(t, Config{Scheme: GaussSeidel, Sequence: test.sequence})
		if err := e.Check(sys); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want … %s", test.sequence, err, test.want)
		}
	}
}

// Values out of range and parts that exclude each other are refused.
func TestConfigRefused(t *testing.T) {
	for _, c := range []Config{
		{Order: -1}, {Order: MaxOrder + 1}, {Substeps: -1},
		{Scheme: Implicit, Correct: ModelCorrection}, {Correct: ModelCorrection, Control: Control{Estimator: ExSLocal}},
	} {
		if _, err := NewCoupling(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// integrator follows its input, from 0.
func integrator(name string) *mastertest.Linear {
	return mastertest.NewLinear(name, mastertest.Matrices{A: [][]float64{{0}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{0})
}

// explicitly calls f with both explicit schemes, all orders below n, and deliveries.
func explicitly(t *testing.T, n int, f func(t *testing.T, c Config)) {
	for _, scheme := range []Scheme{Jacobi, GaussSeidel} {
		for k := range n {
			for _, delivery := range []Delivery{Derivatives, Substeps} {
				t.Run(fmt.Sprintf("scheme %d, order %d, delivery %d", scheme, k, delivery), func(t *testing.T) {
					f(t, Config{Scheme: scheme, Order: k, Delivery: delivery, Substeps: 2})
				})
			}
		}
	}
}

// A value set between two steps holds from there on, at every order.
func TestSetRealTakesEffectAtOnce(t *testing.T) {
	explicitly(t, 3, func(t *testing.T, c Config) {
		r := startedOn(t, system(t, []master.Subsystem{integrator("sink")}), c)
		want := 0.0
		for n := range 8 {
			u := float64(n%3) * 2
			if err := r.SetReal("sink.u1", u); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			want += u / 1024
			if got, _ := r.Real("sink.y1"); got != want {
				t.Errorf("%g after step %d, want %g", got, n+1, want)
			}
		}
	})
}

// ramp drives the first input with t from outside.
type ramp struct{}

func (ramp) Inputs() []int                 { return []int{0} }
func (ramp) Real(_ int, t float64) float64 { return t }
func (ramp) Over(_ int, t, H float64) (start, end, mean float64) {
	return t, t + H, t + H/2
}
func (ramp) Discrete(_ int, _ float64, _ *master.Values) {}

// A signal from outside is known over the whole step: whatever the order, a ramp is met exactly from the first step on, though
// nothing is known from before the start.
func TestSignalsAreInterpolated(t *testing.T) {
	explicitly(t, 4, func(t *testing.T, c Config) {
		_, memory := simulate(t, system(t, []master.Subsystem{integrator("sink")}), newExplicit(t, c), master.Options{Start: 1, Stop: 3, Step: 0.5, Signals: ramp{}})
		for n, now := range memory.T {
			want := (now*now - 1) / 2
			if math.Abs(memory.Y[n][0]-want) > 1e-11 || memory.U[n][0] != now {
				t.Errorf("t = %g: input %g, integral %.17g, want %g", now, memory.U[n][0], memory.Y[n][0], want)
			}
		}
	})
}

// tent drives the first input with a tent from 1.1 to 1.6 whose top is at 1.2 and 1 high.
type tent struct{ ramp }

func (tent) Real(_ int, t float64) float64 { return max(0, min((t-1.1)/0.1, (1.6-t)/0.4)) }

func (s tent) Over(_ int, t, H float64) (start, end, mean float64) {
	integral := func(t float64) float64 {
		up, down := max(0, min(t-1.1, 0.1)), max(0, min(t-1.2, 0.4))
		return up*up/0.2 + down - down*down/0.8
	}
	return s.Real(0, t), s.Real(0, t+H), (integral(t+H) - integral(t)) / H
}

// Where a signal is not linear over the step, its integral is met nevertheless.
func TestSignalsKeepTheirIntegral(t *testing.T) {
	const area = 0.25
	for _, delivery := range []Delivery{Auto, Substeps, Held} {
		for _, follows := range []bool{true, false} {
			for order := range 3 {
				for _, rate := range []Rate{{Steps: 1, Over: 1}, {Steps: 4, Over: 1}, {Steps: 1, Over: 2}} {
					rate.Component = "sink"
					t.Run(fmt.Sprint(delivery, follows, order, rate), func(t *testing.T) {
						sink := integrator("sink")
						sink.Info().Caps.InputDerivatives = follows
						c := Config{Order: order, Delivery: delivery, Rates: []Rate{rate}}
						_, memory := simulate(t, system(t, []master.Subsystem{sink}), newExplicit(t, c),
							master.Options{Start: 1, Stop: 3, Step: 0.25, Signals: tent{}})
						n := len(memory.T) - 1
						if got := memory.Y[n][0]; math.Abs(got-area) > 1e-11 {
							t.Errorf("integral %.17g, want %g", got, area)
						}
					})
				}
			}
		}
	}
}

// Corrections by models work with a signal from outside at every order, also of a subsystem that is not coupled.
func TestSignalsWithModels(t *testing.T) {
	for order := range 3 {
		for _, kind := range []JacobianSource{DirectionalJacobian, IdentifiedJacobian} {
			sink := integrator("sink")
			c := Config{Order: order, Correct: ModelCorrection, Model: Model{Jacobian: kind}}
			_, memory := simulate(t, system(t, []master.Subsystem{sink}), newExplicit(t, c), master.Options{Start: 1, Stop: 3, Step: 0.25, Signals: tent{}})
			if got := memory.Y[len(memory.Y)-1][0]; math.Abs(got-0.25) > 1e-11 {
				t.Errorf("order %d, %v: integral %g", order, kind, got)
			}
		}
	}
}

// lazy is an integrator that ignores another derivative while the value is the one that it expects, as FMUs of Dymola do.
type lazy struct {
	*mastertest.Linear
	u, du, step float64
	ignores     bool
}

func (l *lazy) SetInputs(u []float64) error {
	l.ignores = u[0] == l.u+l.du*l.step
	l.u = u[0]
	return l.Linear.SetInputs(u)
}

func (l *lazy) SetInputDerivatives(order int, du []float64) error {
	if !l.ignores {
		l.du = du[0]
	}
	return l.Linear.SetInputDerivatives(order, []float64{l.du})
}

// A bend of a signal reaches an FMU that would ignore it.
func TestBendsAreNoticed(t *testing.T) {
	l := &lazy{Linear: integrator("sink"), step: 0x1p-5}
	_, memory := simulate(t, system(t, []master.Subsystem{l}), newExplicit(t, Config{}), master.Options{Start: 0, Stop: 2, Step: 0x1p-5, Signals: corner{}})
	if got := memory.Y[len(memory.Y)-1][0]; math.Abs(got-0.5) > 1e-9 {
		t.Errorf("integral %g, want 0.5", got)
	}
}

// corner is a signal that is 0 until 1 s and rises by 1/s from then on.
type corner struct{ ramp }

func (corner) Real(_ int, t float64) float64 { return max(0, t-1) }

func (s corner) Over(_ int, t, H float64) (start, end, mean float64) {
	start, end = s.Real(0, t), s.Real(0, t+H)
	return start, end, (start + end) / 2
}

// witness is an integrator that keeps the range of its input.
type witness struct {
	*mastertest.Linear
	u, low, high float64
}

func (w *witness) SetInputs(u []float64) error {
	w.u = u[0]
	return w.Linear.SetInputs(u)
}

func (w *witness) SetInputDerivatives(order int, du []float64) error {
	if end := w.u + 0.25*du[0]; order == 1 {
		w.low, w.high = min(w.low, w.u, end), max(w.high, w.u, end)
	}
	return w.Linear.SetInputDerivatives(order, du)
}

// What an input gets lies between values of its signal, also where its mean is met.
func TestSignalsKeepTheirRange(t *testing.T) {
	w := &witness{Linear: integrator("sink")}
	simulate(t, system(t, []master.Subsystem{w}), newExplicit(t, Config{}), master.Options{Start: 1, Stop: 3, Step: 0.25, Signals: tent{}})
	if w.low < -1e-12 || w.high < 0.5 || w.high > 1 {
		t.Errorf("the input was between %g and %g", w.low, w.high)
	}
}

// A Real that changes only at communication points is held at every order: the
// value at the start of the step, or with Gauss–Seidel the new one if its
// source has been stepped.
func TestDiscreteRealsAreHeld(t *testing.T) {
	explicitly(t, 3, func(t *testing.T, c Config) {
		for _, marked := range []string{"source", "sink"} {
			// y1 = t is read by the sink as a stair.
			source := mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {0, 0}}, C: [][]float64{{1, 0}}}, []float64{0, 1})
			sink := integrator("sink")
			if marked == "source" {
				source.Info().Out[0].Discrete = true
			} else {
				sink.Info().In[0].Discrete = true
			}
			_, memory := simulate(t, system(t, []master.Subsystem{source, sink}, "source.y1 sink.u1"), newExplicit(t, c), master.Options{Stop: 8, Step: 1})
			for n, y := range memory.Y {
				want := float64(n*(n-1)) / 2
				if c.Scheme == GaussSeidel {
					want += float64(n)
				}
				if math.Abs(y[1]-want) > 1e-12 {
					t.Errorf("%s: %g after %d steps, want %g", marked, y[1], n, want)
				}
			}
		}
	})
}
