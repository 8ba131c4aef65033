package algorithms_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// further is a subsystem whose last output, which feeds nothing, is infinite, 0 or NaN.
type further struct {
	*mastertest.Linear
	t     float64
	quiet bool // it is 0
}

func (f *further) at(t float64) float64 {
	switch {
	case f.quiet || t > 0.1 && t <= 0.2:
		return 0
	case t > 0.2:
		return math.NaN()
	}
	return math.Inf(1)
}

func (f *further) Step(ctx context.Context, t, h float64) (float64, error) {
	f.t = t + h
	return f.Linear.Step(ctx, t, h)
}

func (f *further) Outputs(y []float64) error {
	err := f.Linear.Outputs(y)
	y[len(y)-1] = f.at(f.t)
	return err
}

// Its derivatives are not known.
func (f *further) Linearize(dx, du, rate, slope []float64) error {
	err := f.Linear.Linearize(dx, du, rate, slope)
	if len(slope) > 0 && !f.quiet {
		slope[len(slope)-1] = math.NaN()
	}
	return err
}

func (f *further) DirectionalDerivative(du, dy []float64) error {
	err := f.Linear.DirectionalDerivative(du, dy)
	if !f.quiet {
		dy[len(dy)-1] = math.NaN()
	}
	return err
}

// An output that feeds nothing and is not finite is recorded as it is. It changes nothing else: every preset takes the same
// steps with the same values as if it were 0, even where it is monitored.
func TestOutputsThatAreNotFinite(t *testing.T) {
	for preset, cases := range resumableCases() {
		for _, params := range cases {
			for _, level := range []master.Level{master.NoLevel, master.Velocity} {
				t.Run(fmt.Sprintf("%s %v %d", preset, params, level), func(t *testing.T) {
					t.Parallel()
					run := func(quiet bool) (master.Result, *mastertest.Memory) {
						first := &further{Linear: mastertest.NewLinear("first", mastertest.Matrices{
							A: [][]float64{{0, 1}, {-100, -1}}, B: [][]float64{{0}, {1}}, C: [][]float64{{1, 0}, {0, 1}, {0, 0}},
						}, []float64{1, 0}), quiet: quiet}
						first.Info().Out[2].Level = level
						sys := systemOf(t, []master.Subsystem{first, mastertest.Oscillator()[1]}, mastertest.OscillatorConnections())
						bond := Bond{Name: "joint", Pairs: []Pair{{Effort: "second.y1", Flow: "first.y2"}}}
						result, memory := simulate(t, sys, chosen(t, preset, params, With{Bonds: []Bond{bond}}).Algorithm, master.Options{Stop: 0.3, Step: 0.01})
						clearTimes(&result)
						return result, memory
					}
					want, quiet := run(true)
					got, odd := run(false)
					first := &further{}
					for n, at := range odd.T {
						if v := odd.Y[n][2]; math.Float64bits(v) != math.Float64bits(first.at(at)) {
							t.Fatalf("%g is recorded at t = %g s, want %g", v, at, first.at(at))
						}
						odd.Y[n][2] = 0
					}
					if !slices.Equal(odd.T, quiet.T) || !reflect.DeepEqual(odd.Y, quiet.Y) || !reflect.DeepEqual(odd.U, quiet.U) {
						t.Error("the other values or the steps differ")
					}
					if n := len(got.Warnings) - len(want.Warnings); n != 4 { // infinite and NaN, and both again at the end
						t.Errorf("%d more warnings: %q", n, got.Warnings)
					}
					if got.Warnings, want.Warnings = nil, nil; !reflect.DeepEqual(got, want) {
						t.Errorf("the result is\n%+v, want\n%+v", got, want)
					}
				})
			}
		}
	}
}
