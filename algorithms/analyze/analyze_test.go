package analyze

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// analyse runs an analysis that must succeed.
func analyse(t *testing.T, sys *master.System, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), sys, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// strategyOf returns the strategy of a preset and order.
func (r *Report) strategyOf(preset string, order int) *Strategy {
	return &r.Strategies[slices.IndexFunc(r.Strategies, func(s Strategy) bool { return s.Preset == preset && s.Order == order })]
}

// signal is a subsystem in Go of which no model is known: its state starts with its outputs, and step changes it.
type signal struct {
	info master.Info
	u, x []float64
	step func(u, x []float64, t, h float64)
}

func newSignal(name string, inputs, outputs int, x []float64, step func(u, x []float64, t, h float64)) *signal {
	s := &signal{u: make([]float64, inputs), x: slices.Clone(x), step: step,
		info: master.Info{Name: name, StartIn: make([]float64, inputs), Caps: master.Caps{VariableStep: true}}}
	for k := range inputs {
		s.info.In = append(s.info.In, master.Port{Name: "u" + string(rune('1'+k))})
	}
	for k := range outputs {
		s.info.Out = append(s.info.Out, master.Port{Name: "y" + string(rune('1'+k))})
	}
	none := master.Feedthrough{On: make([][]int, outputs)}
	s.info.Step, s.info.Init = none, none
	return s
}

func (s *signal) Info() *master.Info          { return &s.info }
func (s *signal) SetInputs(u []float64) error { copy(s.u, u); return nil }
func (s *signal) Step(_ context.Context, t, h float64) (float64, error) {
	s.step(s.u, s.x, t, h)
	return t + h, nil
}
func (s *signal) Outputs(y []float64) error                    { copy(y, s.x); return nil }
func (s *signal) SaveState(master.State) (master.State, error) { return slices.Clone(s.x), nil }
func (s *signal) RestoreState(v master.State) error            { copy(s.x, v.([]float64)); return nil }
func (s *signal) FreeState(master.State) error                 { return nil }

// revertible lets the analysis save and restore the state.
func revertible(s *signal) *signal { s.info.Caps.SaveState = true; return s }

// lagged is x' = (b u − x)/T, y = x, exact for held inputs.
func lagged(name string, b, T, x0 float64) *signal {
	return newSignal(name, 1, 1, []float64{x0}, func(u, x []float64, _, h float64) {
		x[0] = b*u[0] + (x[0]-b*u[0])*math.Exp(-h/T)
	})
}

// sampled is a proportional controller that samples its input every so many seconds.
func sampled(name string, g, every float64) *signal {
	return newSignal(name, 1, 1, []float64{0}, func(u, x []float64, t, h float64) {
		if math.Floor((t+h)/every+1e-6) > math.Floor(t/every+1e-6) {
			x[0] = -g * u[0]
		}
	})
}

// delayed returns −g times its input of some steps before.
func delayed(name string, g float64, steps int) *signal {
	return newSignal(name, 1, 1, make([]float64, 1+steps), func(u, x []float64, _, _ float64) {
		x[0] = -g * x[1]
		copy(x[1:], x[2:])
		x[steps] = u[0]
	})
}

// course runs an algorithm over steps of H and returns the outputs every so many steps.
func course(t *testing.T, sys *master.System, alg master.Algorithm, H, stop float64, every int) (out [][]float64) {
	t.Helper()
	run, err := master.NewRun(sys, alg, master.Options{Stop: stop, Step: H, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = run.Start(t.Context())
	for n, more := 0, true; err == nil; n++ {
		if n%every == 0 {
			out = append(out, slices.Clone(run.Point().Y))
		}
		if !more {
			break
		}
		more, err = run.Step(t.Context())
	}
	if _, closed := run.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return out
}

// relativeError returns the error of outputs as a forecast defines it, root mean square by standard deviation, and the
// index of the output where it is largest.
func relativeError(got, want [][]float64) (worst float64, of int) {
	for o := range want[0] {
		off, mean, square := 0.0, 0.0, 0.0
		for n := range want {
			off += (got[n][o] - want[n][o]) * (got[n][o] - want[n][o])
			mean += want[n][o] / float64(len(want))
		}
		for n := range want {
			square += (want[n][o] - mean) * (want[n][o] - mean)
		}
		if e := math.Sqrt(off / square); e > worst {
			worst, of = e, o
		}
	}
	return worst, of
}
