package mastertest_test

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
	"github.com/macrostep/macrostep/master/mastertest"
)

func linear() *mastertest.Linear { return mastertest.Oscillator()[0] }

func TestLinearConforms(t *testing.T) {
	if err := mastertest.TestSubsystem(func() (master.Subsystem, error) { return linear(), nil }, []float64{3}, 2, 0.1); err != nil {
		t.Error(err)
	}
}

// Linear against closed forms: a lag driven by polynomials up to degree 5,
// handed over as derivatives.
func TestLinearExact(t *testing.T) {
	for degree := range 6 {
		// x' = −x + tⁿ, x(0) = 0: x = Σ (−1)^j n!/(n−j)! t^{n−j} − (−1)ⁿ n! e^{−t}.
		exact := func(t float64) float64 {
			sum, c := 0.0, 1.0
			for j := 0; j <= degree; j++ {
				sum += c * math.Pow(t, float64(degree-j))
				c *= -float64(degree - j)
			}
			return sum - math.Pow(-1, float64(degree))*math.Gamma(float64(degree)+1)*math.Exp(-t)
		}
		l := mastertest.NewLinear("lag", mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{0})
		if err := l.PrepareInputDerivatives(degree); err != nil {
			t.Fatal(err)
		}
		const H = 0.375
		for n := range 4 {
			now := H * float64(n)
			// The m-th derivative of tⁿ.
			for m, v := 0, 1.0; m <= degree; m++ {
				d := []float64{v * math.Pow(now, float64(degree-m))}
				v *= float64(degree - m)
				var err error
				if m == 0 {
					err = l.SetInputs(d)
				} else {
					err = l.SetInputDerivatives(m, d)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.Step(t.Context(), now, H); err != nil {
				t.Fatal(err)
			}
			y := make([]float64, 1)
			if err := l.Outputs(y); err != nil {
				t.Fatal(err)
			}
			if want := exact(now + H); math.Abs(y[0]-want) > 1e-12 {
				t.Errorf("degree %d at t = %g: %.17g, want %.17g", degree, now+H, y[0], want)
			}
		}
	}
}

// Every way of breaking the contract is caught.
func TestBrokenSubsystems(t *testing.T) {
	made := 0
	for _, test := range []struct {
		name  string
		fresh func() master.Subsystem
		want  string
	}{
		{"restores nothing", func() master.Subsystem { return forgetful{linear()} }, "repeated after a restore"},
		{"restores the start", func() master.Subsystem { return &nostalgic{Linear: linear()} }, "rollback leads elsewhere"},
		{"no method", func() master.Subsystem { return bare{linear()} }, "declares rollback but has no method"},
		{"every one different", func() master.Subsystem {
			made++
			return mastertest.NewLinear("l", mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1}}, C: [][]float64{{1}}}, []float64{float64(made)})
		}, "two runs differ"},
		{"NaN", func() master.Subsystem { return &mastertest.Faulty{Subsystem: linear(), AtStep: 2, NaN: true} }, "output y1 is NaN"},
		{"short reach", func() master.Subsystem { return short{linear()} }, "ended at"},
		{"error", func() master.Subsystem {
			return &mastertest.Faulty{Subsystem: linear(), AtStep: 3, Err: errors.New("boom")}
		}, "boom"},
		{"discard", func() master.Subsystem { return &mastertest.Faulty{Subsystem: linear(), AtStep: 3, Discard: 0.5} }, "discarded"},
	} {
		err := mastertest.TestSubsystem(func() (master.Subsystem, error) { return test.fresh(), nil }, []float64{3}, 0, 0.1)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want … %s", test.name, err, test.want)
		}
	}
}

type forgetful struct{ *mastertest.Linear }

func (forgetful) RestoreState(master.State) error { return nil }

// nostalgic goes back to the first state it ever saved.
type nostalgic struct {
	*mastertest.Linear
	first master.State
}

func (n *nostalgic) SaveState(reuse master.State) (master.State, error) {
	s, err := n.Linear.SaveState(reuse)
	if n.first == nil {
		n.first = s
	}
	return s, err
}
func (n *nostalgic) RestoreState(master.State) error { return n.Linear.RestoreState(n.first) }

// bare hides all capabilities that are claimed.
type bare struct{ l *mastertest.Linear }

func (b bare) Info() *master.Info          { return b.l.Info() }
func (b bare) SetInputs(u []float64) error { return b.l.SetInputs(u) }
func (b bare) Outputs(y []float64) error   { return b.l.Outputs(y) }
func (b bare) Step(ctx context.Context, t, H float64) (float64, error) {
	return b.l.Step(ctx, t, H)
}

type short struct{ *mastertest.Linear }

func (s short) Step(ctx context.Context, t, H float64) (float64, error) {
	return s.Linear.Step(ctx, t, H/2)
}

// wrong is an algorithm that breaks the contract in one way.
type wrong struct {
	master.Algorithm
	attempt func(ctx context.Context, inner master.Algorithm, x *master.Exec, t, H float64, trial *master.Trial) error
	accept  func(inner master.Algorithm, x *master.Exec, t float64)
}

func (w *wrong) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	if w.attempt != nil {
		return w.attempt(ctx, w.Algorithm, x, t, H, trial)
	}
	return w.Algorithm.Attempt(ctx, x, t, H, trial)
}

func (w *wrong) Accept(x *master.Exec, t float64) {
	if w.accept != nil {
		w.accept(w.Algorithm, x, t)
		return
	}
	w.Algorithm.Accept(x, t)
}

func explicit() master.Algorithm {
	e, err := algorithms.NewCoupling(algorithms.Config{})
	if err != nil {
		panic(err)
	}
	return e
}

func TestBrokenAlgorithms(t *testing.T) {
	if err := mastertest.TestAlgorithm(explicit); err != nil {
		t.Fatalf("the healthy one fails: %v", err)
	}
	runs := 0.0
	for _, test := range []struct {
		name  string
		fresh func() master.Algorithm
		want  string
	}{
		{"forgets a subsystem", func() master.Algorithm {
			return &wrong{Algorithm: explicit(), attempt: func(ctx context.Context, _ master.Algorithm, x *master.Exec, t, H float64, trial *master.Trial) error {
				return x.Step(ctx, 0, t, H)
			}}
		}, "second was left at t = 1"},
		{"never couples", func() master.Algorithm {
			return &wrong{Algorithm: explicit(), accept: func(master.Algorithm, *master.Exec, float64) {}}
		}, "does not converge"},
		{"a running number", func() master.Algorithm {
			return &wrong{Algorithm: explicit(), attempt: func(ctx context.Context, inner master.Algorithm, x *master.Exec, t, H float64, trial *master.Trial) error {
				runs++
				err := inner.Attempt(ctx, x, t, H, trial)
				x.Y[0] += runs * 1e-9
				return err
			}}
		}, "two runs differ"},
		{"remembers", func() master.Algorithm {
			n := 0
			return &wrong{Algorithm: explicit(), attempt: func(ctx context.Context, inner master.Algorithm, x *master.Exec, t, H float64, trial *master.Trial) error {
				n++
				err := inner.Attempt(ctx, x, t, H, trial)
				x.Y[0] += float64(n/64) * 1e-9
				return err
			}}
		}, "used a second time"},
	} {
		if err := mastertest.TestAlgorithm(test.fresh); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want … %s", test.name, err, test.want)
		}
	}
	for _, test := range []struct {
		name string
		alg  jacobi
		want string
	}{
		{"the history advances with the attempt", jacobi{mean: true}, "the first discards steps: at t = 1.02734375 the outputs are"},
		{"late ones are stepped with the others", jacobi{all: true}, "a late subsystem: "},
		{"half steps, whoever takes them", jacobi{halves: true}, "the first takes steps of one size only: "},
		{"it writes what belongs to the run", jacobi{writes: true}, "changed Exec.W"},
	} {
		if err := mastertest.TestAlgorithm(func() master.Algorithm { alg := test.alg; return &alg }); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want … %s", test.name, err, test.want)
		}
	}
	if err := mastertest.TestAlgorithm(func() master.Algorithm { return &jacobi{} }); err != nil {
		t.Errorf("a plain Jacobi scheme: %v", err)
	}
	picky := func() master.Algorithm { return &jacobi{all: true, derivatives: true, picky: true} }
	if err := mastertest.TestAlgorithm(picky); err != nil {
		t.Errorf("what it cannot do it refuses: %v", err)
	}
	stuck := func() master.Algorithm {
		return &wrong{Algorithm: explicit(), attempt: func(_ context.Context, _ master.Algorithm, _ *master.Exec, _, _ float64, trial *master.Trial) error {
			trial.Verdict = master.Retry
			return nil
		}}
	}
	if err := mastertest.TestAlgorithm(stuck); !errors.Is(err, master.ErrCapability) {
		t.Errorf("always retries: %v", err)
	}
}

// Stepping a Linear and reading it allocates nothing.
func TestLinearDoesNotAllocate(t *testing.T) {
	l, u, y := linear(), []float64{1}, make([]float64, 2)
	now := 0.0
	if n := testing.AllocsPerRun(100, func() {
		if err := l.SetInputs(u); err != nil {
			t.Error(err)
		}
		if _, err := l.Step(context.Background(), now, 0.125); err != nil {
			t.Error(err)
		}
		if err := l.Outputs(y); err != nil {
			t.Error(err)
		}
		now += 0.125
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// jacobi is the Jacobi scheme with inputs held, and what can be wrong with it.
type jacobi struct {
	mean        bool // inputs are the mean of the last two points, noted in the attempt
	all         bool // late subsystems are stepped with the others
	halves      bool // every step is taken in two halves
	derivatives bool // every subsystem gets an input derivative
	writes      bool // Exec.W is used as scratch
	picky       bool // systems on which this would go wrong are refused

	members []int
	before  []float64
	zero    []float64
}

func (j *jacobi) Check(s *master.System) error {
	if !j.picky {
		return nil
	}
	if len(s.Late) > 0 {
		return fmt.Errorf("%w: late subsystems", master.ErrCapability)
	}
	for _, info := range s.Infos {
		if !info.Caps.InputDerivatives {
			return fmt.Errorf("%w: %s takes no input derivatives", master.ErrCapability, info.Name)
		}
	}
	return nil
}

func (j *jacobi) InputDerivativeOrder() int {
	if j.derivatives {
		return 1
	}
	return 0
}

func (j *jacobi) Init(x *master.Exec, _ float64) error {
	j.members = x.Sys.Stepped
	if j.all {
		j.members = nil
		for i := range x.Sys.Subsystems {
			j.members = append(j.members, i)
		}
	}
	for _, i := range j.members {
		if j.derivatives {
			if err := x.PrepareDerivatives(i, 1); err != nil {
				return err
			}
		}
	}
	j.before, j.zero = slices.Clone(x.W), make([]float64, len(x.W))
	return nil
}

func (j *jacobi) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	copy(x.U, x.W)
	if j.mean {
		for k := range x.U {
			x.U[k] = (x.W[k] + j.before[k]) / 2
		}
		copy(j.before, x.W)
	}
	if j.writes {
		x.W[0]++
	}
	for _, i := range j.members {
		if err := x.Stage(i); err != nil {
			return err
		}
		steps := 1
		if j.halves {
			steps = 2
		}
		h := H / float64(steps)
		for n := range steps {
			if err := x.Step(ctx, i, t+float64(n)*h, h); err != nil {
				return err
			}
		}
	}
	if j.all {
		return nil
	}
	for _, i := range x.Sys.Late {
		x.Couple(i, t+H, x.U)
		if err := x.Stage(i); err != nil {
			return err
		}
		if err := x.Step(ctx, i, t, H); err != nil {
			return err
		}
	}
	return nil
}

func (j *jacobi) Accept(*master.Exec, float64) {}
func (j *jacobi) Reject(_, _ float64)          {}
