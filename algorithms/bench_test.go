package algorithms

import (
	"context"
	"fmt"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// relay is a subsystem of one input and one output that costs next to nothing
// and meters itself at nothing, so that a step is all master.
type relay struct {
	info master.Info
	u, x float64
}

func (r *relay) Info() *master.Info          { return &r.info }
func (r *relay) SetInputs(u []float64) error { r.u = u[0]; return nil }
func (r *relay) Outputs(y []float64) error   { y[0] = r.x; return nil }
func (r *relay) Seconds() float64            { return 0 }
func (r *relay) Step(_ context.Context, t, H float64) (float64, error) {
	r.x += H * (r.u - r.x)
	return t + H, nil
}
func (r *relay) PrepareInputDerivatives(int) error        { return nil }
func (r *relay) SetInputDerivatives(int, []float64) error { return nil }

// ring gives n relays, each fed by the one before.
func ring(tb testing.TB, n int) *master.System {
	tb.Helper()
	var subs []master.Subsystem
	var connections []master.Connection
	name := func(i int) string { return fmt.Sprint("r", i%n) }
	for i := range n {
		subs = append(subs, &relay{x: float64(i), info: master.Info{
			Name: name(i), In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "x"}},
			Caps: master.Caps{VariableStep: true, InputDerivatives: true},
		}})
		connections = append(connections, master.Connection{
			From: master.Endpoint{Subsystem: name(i), Port: "x"}, To: master.Endpoint{Subsystem: name(i + 1), Port: "u"},
		})
	}
	sys, err := master.NewSystem(subs, connections)
	if err != nil {
		tb.Fatal(err)
	}
	return sys
}

// started gives a run that can be stepped for a long time.
func started(tb testing.TB, n int, c Config) *master.Run {
	tb.Helper()
	r, err := master.NewRun(ring(tb, n), newExplicit(tb, c), master.Options{Stop: 1e9, Step: 1e-3})
	if err != nil {
		tb.Fatal(err)
	}
	if err := r.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return r
}

var benchConfigs = []struct {
	name   string
	config Config
}{
	{"explicit", Config{}},
	{"gauss-seidel", Config{Scheme: GaussSeidel}},
	{"explicit,order=2", Config{Order: 2}},
	{"explicit,order=2,substeps=10", Config{Order: 2, Delivery: Substeps}},
}

// A macro step allocates nothing.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, b := range benchConfigs {
		r := started(t, 10, b.config)
		ctx := context.Background()
		var err error
		if n := testing.AllocsPerRun(200, func() { _, err = r.Step(ctx) }); n != 0 || err != nil {
			t.Errorf("%s: %g allocations a step, %v", b.name, n, err)
		}
		if _, err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkMacroStep is the cost of one macro step over n subsystems that cost
// next to nothing.
func BenchmarkMacroStep(b *testing.B) {
	for _, c := range benchConfigs {
		for _, n := range []int{2, 10, 100} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				r := started(b, n, c.config)
				defer func() {
					if _, err := r.Close(); err != nil {
						b.Error(err)
					}
				}()
				ctx := context.Background()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := r.Step(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
