package algorithms_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// sampler claims to interpolate its inputs, but samples them at the start of its step.
type sampler struct{ *mastertest.Linear }

func (s *sampler) SetInputDerivatives(int, []float64) error { return nil }

// sampled returns a decomposition whose components with states are samplers.
func sampled(t testing.TB, name string) *master.System {
	t.Helper()
	return cut(uneven, name).wrapped(t, func(_ int, l *mastertest.Linear) master.Subsystem { return &sampler{l} })
}

// adaptiveRun runs a preset over 0.1 s and returns the result and the NRMSE of the velocity of mass
// 1, weighted by the step sizes.
func adaptiveRun(t *testing.T, sys *master.System, preset, rtol string) (master.Result, float64) {
	t.Helper()
	result, memory := simulate(t, sys, chosen(t, preset, map[string]string{"control.rtol": rtol}).Algorithm, master.Options{Stop: 0.1, Step: 1e-3})
	off, square := 0.0, 0.0
	for i := 1; i < len(memory.T); i++ {
		H := memory.T[i] - memory.T[i-1]
		want := uneven.At(memory.T[i])[1]
		off += H * (memory.Y[i][1] - want) * (memory.Y[i][1] - want)
		square += H * want * want
	}
	return result, math.Sqrt(off / square)
}

func warned(r *master.Result, text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// A run warns that the errors of held inputs are not estimated.
func TestHeldInputsAreNoted(t *testing.T) {
	for _, some := range []bool{true, false} {
		sys := cut(uneven, "dd").wrapped(t, func(i int, l *mastertest.Linear) master.Subsystem {
			l.Info().In[0].Discrete = some && i == 0
			return l
		})
		result, _ := adaptiveRun(t, sys, "ex-local", "1e-3")
		if noted := warned(&result, "the error estimate ignores inputs that are held"); noted != some {
			t.Errorf("%t: %q", some, result.Warnings)
		}
	}
}

// Estimates that compare solutions with different input polynomials are 0 if the components sample
// their inputs. Without audits, im-milne and ex-milne are wrong at every tolerance. With exact
// components an audit finds nothing.
func TestAudit(t *testing.T) {
	const blind = "underestimates the error"
	for _, preset := range []string{"ex-local", "ex-milne", "im-milne", "im-slocal", "richardson"} {
		r, e := adaptiveRun(t, sampled(t, "dd"), preset, "1e-4")
		// Richardson's own halves show it.
		if preset != "richardson" && !warned(&r, blind) || !(e < 1e-2) {
			t.Errorf("%s: error %.2g, warnings %q", preset, e, r.Warnings)
		}
		_, tight := adaptiveRun(t, sampled(t, "dd"), preset, "1e-5")
		if !(tight < e/2) {
			t.Errorf("%s: error %.2g at a tolerance of 1e-5, %.2g at 1e-4", preset, tight, e)
		}
		r, e = adaptiveRun(t, cut(uneven, "dd").system(t), preset, "1e-4")
		if len(r.Warnings) > 0 || !(e < 1e-3) {
			t.Errorf("%s, exact components: error %.2g, warnings %q", preset, e, r.Warnings)
		}
	}
}

// Implicit coupling warns if no output responds to corrections.
func TestImplicitWithoutAnswer(t *testing.T) {
	const told = "do not respond to the inputs"
	for name, sys := range map[string]*master.System{"sampled": sampled(t, "dd"), "exact": cut(uneven, "dd").system(t)} {
		r, _ := simulate(t, sys, chosen(t, "implicit", nil).Algorithm, master.Options{Stop: 0.05, Step: 1e-3})
		if warned(&r, told) != (name == "sampled") {
			t.Errorf("%s: %q", name, r.Warnings)
		}
	}
}

// bouncer is a mass whose velocity is reversed at a given time.
type bouncer struct {
	*mastertest.Linear
	at float64
}

func (b *bouncer) Step(ctx context.Context, t, H float64) (float64, error) {
	end := t + H
	if t < b.at && b.at <= end {
		if _, err := b.Linear.Step(ctx, t, b.at-t); err != nil {
			return t, err
		}
		state, _ := b.SaveState(nil)
		x := state.([]float64) // time, position, velocity, inputs
		x[2] = -x[2]
		if err := b.RestoreState(x); err != nil {
			return t, err
		}
		t, H = b.at, end-b.at
	}
	_, err := b.Linear.Step(ctx, t, H)
	return end, err
}

// A bounce of one mass during a step lets the force on the other one jump. Explicit estimates by
// states miss it; the audit bounds the error.
func TestJumpWithinStep(t *testing.T) {
	const at = 0.1234
	solve := func(preset, rtol string) (float64, int) {
		sys := cut(symmetric, "ff").wrapped(t, func(i int, l *mastertest.Linear) master.Subsystem {
			if i == 0 {
				return &bouncer{Linear: l, at: at}
			}
			return l
		})
		_, memory := simulate(t, sys, chosen(t, preset, map[string]string{"control.rtol": rtol}).Algorithm, master.Options{Stop: 0.2, Step: 1e-3})
		before := symmetric.At(at)
		before[1] = -before[1]
		o := symmetric
		o.Start = before
		want := o.At(0.2 - at)
		return math.Abs(memory.Y[len(memory.Y)-1][3]-want[3]) / 30, len(memory.T)
	}
	for _, preset := range []string{"ex-local", "ex-milne", "richardson"} {
		for rtol, bound := range map[string]float64{"1e-3": 2e-2, "1e-5": 5e-4, "1e-7": 2e-6} {
			if e, n := solve(preset, rtol); !(e < bound) {
				t.Errorf("%s: error %.2g at %s in %d steps", preset, e, rtol, n)
			}
		}
	}
}

// The errors of a component that feeds no other are estimated, too: the exact solution of a lag
// after an oscillation.
func TestErrorsOfSinks(t *testing.T) {
	const w, a, stop = 10.0, 20.0, 2.0
	for _, preset := range []string{"ex-local", "ex-milne", "im-milne", "richardson"} {
		source := mastertest.NewLinear("source", mastertest.Matrices{A: [][]float64{{0, 1}, {-w * w, 0}}, C: [][]float64{{1, 0}}}, []float64{1, 0})
		sink := mastertest.NewLinear("sink", mastertest.Matrices{A: [][]float64{{-a}}, B: [][]float64{{a}}, C: [][]float64{{1}}}, []float64{0})
		result, memory := simulate(t, system(t, []master.Subsystem{source, sink}, "source.y1 sink.u1"), chosen(t, preset, nil).Algorithm, master.Options{Stop: stop, Step: 0.01})
		worst := 0.0
		for n, at := range memory.T { // x' = −a x + a cos ωt from 0
			exact := a / (a*a + w*w) * (a*math.Cos(w*at) + w*math.Sin(w*at) - a*math.Exp(-a*at))
			worst = max(worst, math.Abs(memory.Y[n][1]-exact))
		}
		if !(worst < 2e-3) || len(result.Monitored) != 2 {
			t.Errorf("%s: off by %.2g in %d steps, judged by %q", preset, worst, result.Accepted, result.Monitored)
		}
	}
}
