package algorithms_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// relay is a subsystem with one input and one output whose own cost is negligible. Further outputs are infinite.
type relay struct {
	info master.Info
	u, x float64
}

func (r *relay) Info() *master.Info          { return &r.info }
func (r *relay) SetInputs(u []float64) error { r.u = u[0]; return nil }
func (r *relay) Outputs(y []float64) error {
	y[0] = r.x
	for k := range y[1:] {
		y[1+k] = math.Inf(1)
	}
	return nil
}
func (r *relay) Seconds() float64             { return 0 }
func (r *relay) FreeState(master.State) error { return nil }
func (r *relay) RestoreState(s master.State) error {
	saved := s.(*relay)
	r.u, r.x = saved.u, saved.x
	return nil
}
func (r *relay) SaveState(reuse master.State) (master.State, error) {
	saved, ok := reuse.(*relay)
	if !ok {
		saved = &relay{}
	}
	saved.u, saved.x = r.u, r.x
	return saved, nil
}
func (r *relay) DirectionalDerivative(_, dy []float64) error {
	dy[0] = 0
	return nil
}
func (r *relay) States() []master.StateInfo { return relayStates }
func (r *relay) Linearize(dx, du, dxdot, dy []float64) error {
	rate, out := 0.0, 0.0
	if dx != nil {
		rate, out = -dx[0], dx[0]
	}
	if du != nil {
		rate += du[0]
	}
	if dxdot != nil {
		dxdot[0] = rate
	}
	if dy != nil {
		dy[0] = out
	}
	return nil
}
func (r *relay) ReadStates(x, xdot []float64) error {
	x[0], xdot[0] = r.x, r.u-r.x
	return nil
}
func (r *relay) Step(_ context.Context, t, H float64) (float64, error) {
	r.x += H * (r.u - r.x)
	return t + H, nil
}
func (r *relay) PrepareInputDerivatives(int) error        { return nil }
func (r *relay) SetInputDerivatives(int, []float64) error { return nil }

var relayStates = make([]master.StateInfo, 1)

// ring returns n relays in a ring, with further outputs.
func ring(tb testing.TB, n int, further ...master.Port) *master.System {
	tb.Helper()
	var subs []master.Subsystem
	var wires []string
	name := func(i int) string { return fmt.Sprint("r", i%n) }
	for i := range n {
		subs = append(subs, &relay{x: float64(i), info: master.Info{
			Name: name(i), In: []master.Port{{Name: "u"}}, Out: append([]master.Port{{Name: "x"}}, further...),
			Caps: master.Caps{VariableStep: true, InputDerivatives: true, SaveState: true, DirectionalDerivative: true},
		}})
		wires = append(wires, name(i)+".x "+name(i+1)+".u")
	}
	return system(tb, subs, wires...)
}

// startedOn returns a run that can be stepped for a long time, and is closed at the end of the test.
func startedOn(tb testing.TB, sys *master.System, c Config) *master.Run {
	tb.Helper()
	r, err := master.NewRun(sys, newExplicit(tb, c), master.Options{Stop: 1e6, Step: 1.0 / 1024})
	if err == nil {
		err = r.Start(context.Background())
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if _, err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
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
	{"implicit", Config{Scheme: Implicit, Order: 1}},
	{"implicit,newton-los", Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: NewtonLOS}}},
	{"implicit,broyden", Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: Broyden}}},
	{"implicit,iqn", Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: IQN}}},
	{"implicit,fixed-point", Config{Scheme: Implicit, Order: 1, Solver: Solver{Kind: FixedPoint}}},
	{"ex-local", adaptive(ExLocal, Jacobi)},
	{"ex-milne", adaptive(ExMilne, Jacobi)},
	{"ex-slocal", adaptive(ExSLocal, Jacobi)},
	{"im-milne", adaptive(ImMilne, Implicit)},
	{"im-slocal", adaptive(ImSLocal, Implicit)},
	{"richardson", adaptive(Richardson, Jacobi)},
	{"predictor-corrector", adaptive(PredictorCorrector, Jacobi)},
	{"model,directional", Config{Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01}}},
	{"model,directional,order=2", Config{Order: 2, Delivery: Held, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.1}}},
	{"model,identify", Config{Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: IdentifiedJacobian}}},
	{"model,subspace", Config{Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: IdentifiedJacobian, Subspace: true}}},
	{"feedthrough", Config{Correct: FeedthroughCorrection, Model: Model{Refresh: 0.01}}},
}

// adaptive returns a configuration with variable order and step size.
func adaptive(e Estimator, s Scheme) Config {
	all := []Tolerance{{Value: 1e-3}}
	return Config{Scheme: s, Control: Control{Estimator: e, Safety: 4, RatioMin: 0.5, RatioMax: 2,
		HMin: 1e-12, HMax: 0.1, MaxOrder: 5, PCTolerance: all, PCRho: all}}
}

// A macro step allocates nothing, nor with outputs that are infinite.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, b := range benchConfigs {
		r := startedOn(t, ring(t, 10, master.Port{Name: "y"}), b.config)
		ctx := context.Background()
		var err error
		for range 100 { // the steps grow, and solvers learn
			if _, err = r.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(200, func() { _, err = r.Step(ctx) }); n != 0 || err != nil {
			t.Errorf("%s: %g allocations a step, %v", b.name, n, err)
		}
	}
}

// BenchmarkMacroStep measures a macro step of n subsystems of negligible cost.
func BenchmarkMacroStep(b *testing.B) {
	for _, c := range benchConfigs {
		for _, n := range []int{2, 10, 100} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				r := startedOn(b, ring(b, n), c.config)
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
