package algorithms

import (
	"math"
	"strconv"
	"testing"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// tableI is the controller of sadjina, Table I.
func tableI(gain int) *indicatorControl {
	return &indicatorControl{size: &piController{safety: 0.8, gain: gain}, indicated: indicated{before: math.NaN(), now: math.NaN()},
		config: Control{RatioMin: 0.2, RatioMax: 1.5, HMin: 1e-4, HMax: 1e-2}}
}

// The PI controller (15) of sadjina: its form, its limits, and indicators that
// leave the range of numbers.
func TestPIController(t *testing.T) {
	const H = 1e-3
	nan, inf := math.NaN(), math.Inf(1)
	for _, test := range []struct {
		name        string
		gain, order int
		before, now float64
		want        float64 // over H
	}{
		{"order 2", 2, 2, 0.3, 0.5, 0.8 * math.Pow(0.5, -0.7/4) * math.Pow(0.3, 0.1)},
		{"the first step takes the place of the one before", 2, 0, nan, 0.5, 0.8 * math.Pow(0.5, -0.15)},
		{"no indicator yet", 2, 0, nan, nan, 1},
		{"largest ratio", 2, 0, 1e-2, 1e-4, 1.5},
		{"smallest ratio", 2, 0, 1, 1e6, 0.2},
		{"no error", 2, 0, 0, 0, 1.5},
		{"no error after a large one", 2, 0, 1e3, 0, 1.5},
		{"an error after none", 2, 0, 0, 1, 0.2},
		{"beyond numbers", 2, 0, inf, inf, 0.2},
		{"beyond numbers, then good", 2, 0, inf, 1e-3, 1.5},
		{"beyond numbers after none", 2, 0, 0, inf, 0.2},
	} {
		c := tableI(test.gain)
		c.before, c.now = test.before, test.now
		if got := c.next(H, test.order); !near(got/H, test.want, 1e-14) {
			t.Errorf("%s: ratio %.17g, want %.17g", test.name, got/H, test.want)
		}
	}
	c := tableI(2)
	c.quality = &predictorCorrector{}
	c.now = 0.3
	c.accept(nil, 0)
	c.now = 0.5
	if got, want := c.next(H, 0)/H, 0.8*math.Pow(0.5, -0.35)*math.Pow(0.3, 0.2); !near(got, want, 1e-14) {
		t.Errorf("the indicator of the step before is not taken: ratio %g, want %g", got, want)
	}
	for _, bound := range []struct{ now, H, want float64 }{{1e-9, 9e-3, 1e-2}, {1e9, 2e-4, 1e-4}} {
		c = tableI(2)
		c.now = bound.now
		if got := c.next(bound.H, 0); got != bound.want {
			t.Errorf("indicator %g: the next step is %g, want its bound %g", bound.now, got, bound.want)
		}
	}
}

// The gains are kI = 0.3/(m+2), kP = 0.4/(m+2) for ECCO, over m+1 for the predictor/corrector.
// Those that are given take their place, also zero.
func TestPIGains(t *testing.T) {
	for _, test := range []struct {
		preset string
		params map[string]string
		want   float64
	}{
		{"ecco", nil, 0.8 * math.Pow(0.5, -0.35) * math.Pow(0.3, 0.2)},
		{"predictor-corrector", nil, 0.8 * math.Pow(0.5, -0.7) * math.Pow(0.3, 0.4)},
		{"ecco", map[string]string{"control.i-gain": "0.15", "control.p-gain": "0.2", "control.safety": "0.99"}, 0.99 * math.Pow(0.5, -0.35) * math.Pow(0.3, 0.2)},
		{"ecco", map[string]string{"control.i-gain": "0.1", "control.p-gain": "0", "order": "2"}, 0.8 * math.Pow(0.5, -0.1)},
		{"ecco", map[string]string{"control.p-gain": "0.1"}, 0.8 * math.Pow(0.5, -0.25) * math.Pow(0.3, 0.1)},
	} {
		choice, err := New(test.preset, test.params, With{Bonds: []Bond{{Name: "b", Pairs: []Pair{{Effort: "a.F", Flow: "b.v"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		c := choice.Algorithm.(*Coupling).control.(*indicatorControl)
		order, _ := strconv.Atoi(choice.Values["order"])
		c.config.HMin, c.config.HMax, c.before, c.now = 1e-9, 1, 0.3, 0.5
		if got := c.next(1e-3, order) / 1e-3; !near(got, test.want, 1e-14) {
			t.Errorf("%s %v: ratio %g, want %g", test.preset, test.params, got, test.want)
		}
	}
	for _, v := range []string{"-0.1", "2", "much"} {
		if _, err := New("ecco", map[string]string{"control.i-gain": v}); err == nil {
			t.Errorf("a gain of %s is taken", v)
		}
	}
}

// On an indicator C H² the controller settles where α ε^(−kI) = 1: at ε = 0.226
// for ECCO with order 0 and α = 0.8, not at 1 (sadjina).
func TestPIControllerSettles(t *testing.T) {
	for _, start := range []float64{1e-4, 1e-2} {
		c := tableI(2)
		c.quality = &predictorCorrector{}
		H := start
		for range 400 {
			c.now = 2e5 * H * H
			H = c.next(H, 0)
			c.accept(nil, 0)
		}
		if want := math.Pow(0.8, 1/0.15); !near(c.now, want, 1e-9) || math.Abs(want-0.226) > 5e-4 {
			t.Errorf("from %g: ε settles at %g, want %g", start, c.now, want)
		}
	}
}

// recorded returns the indicator (17) outputs 3 and 0 of a system, each with its
// own TOL and ρ.
func recorded(times []float64, values [][2]float64) (*predictorCorrector, *master.Exec) {
	p := &predictorCorrector{outputs: []int{0, 3}, tol: []float64{0.5, 0.01}, r: []float64{1e-4, 0.2}}
	for i := range p.values {
		p.values[i] = make([]float64, 2)
	}
	x := &master.Exec{Y: make([]float64, 4)}
	for i, t := range times {
		x.Y[0], x.Y[3] = values[i][0], values[i][1]
		p.accept(x, t)
	}
	return p, x
}

// (17) by hand, on unequal steps: linear through (1, 2), (1.5, 3) the predictor is
// 3.5 at 1.75; through (1, −4), (1.5, −1) it is 0.5. Order 1 takes the parabola through
// the last three points; a short history lowers the degree; one point predicts nothing.
func TestPredictorCorrectorIndicator(t *testing.T) {
	times, values := []float64{0, 1, 1.5}, [][2]float64{{7, 7}, {2, -4}, {3, -1}}
	const t0, H = 1.5, 0.25
	weights := [3]float64{0.75 * 0.25 / (1 * 1.5), 1.75 * 0.25 / (1 * -0.5), 1.75 * 0.75 / (1.5 * 0.5)}
	parabola := 7*weights[0] + 2*weights[1] + 3*weights[2]
	nan := math.NaN()
	for _, test := range []struct {
		name   string
		points int
		order  int
		y0, y3 float64
		want   float64
	}{
		{"the first is worse", 3, 0, 4, 0.5, 0.5 / (0.5 * (1 + 1e-4*4))},
		{"below its prediction", 3, 0, 3, 0.5, 0.5 / (0.5 * (1 + 1e-4*3.5))}, // the predictor is larger
		{"the second is worse", 3, 0, 4, 0.3, 0.2 / (0.01 * (1 + 0.2*0.5))},
		{"the second, negative", 3, 0, 3.5, -2.5, 3 / (0.01 * (1 + 0.2*2.5))},
		{"as predicted", 3, 0, 3.5, 0.5, 0},
		{"order 1", 3, 1, 4, 7*weights[0] - 4*weights[1] - weights[2],
			math.Abs(4-parabola) / (0.5 * (1 + 1e-4*max(4, math.Abs(parabola))))},
		{"two points", 2, 3, 4, 0.5, 0.5 / (0.5 * (1 + 1e-4*4))},
		{"one point", 1, 0, 4, 0.5, nan},
		{"not a number", 3, 0, nan, 0.5, math.Inf(1)},
	} {
		p, x := recorded(times[3-test.points:], values[3-test.points:])
		x.Y[0], x.Y[3] = test.y0, test.y3
		if got := p.measure(x, t0, H, test.order); got != test.want && !near(got, test.want, 1e-13) && !(math.IsNaN(got) && math.IsNaN(test.want)) {
			t.Errorf("%s: %.17g, want %.17g", test.name, got, test.want)
		}
	}
	// Older points than any predictor needs are dropped.
	var long []float64
	var many [][2]float64
	for n := range 2 * num.MaxNodes {
		long, many = append(long, float64(n)), append(many, [2]float64{float64(n * n), 1})
	}
	p, x := recorded(long, many)
	x.Y[0], x.Y[3] = 4*num.MaxNodes*num.MaxNodes, 1
	if got := p.measure(x, 2*num.MaxNodes-1, 1, MaxOrder); !near(got, 0, 1e-9) {
		t.Errorf("a parabola over many points: %g", got)
	}
}
