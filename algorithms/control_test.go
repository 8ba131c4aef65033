package algorithms

import (
	"math"
	"testing"
)

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

func TestNorm(t *testing.T) {
	for _, test := range []struct {
		e, w []float64
		want float64
	}{
		{nil, nil, 0},
		{[]float64{3, 4}, []float64{1, 1}, math.Sqrt(12.5)},
		{[]float64{-1e-3, 0}, []float64{1e-3, 1e-300}, math.Sqrt(0.5)},
		{[]float64{0}, []float64{0}, 0}, // no error needs no weight
	} {
		if got := wrms(test.e, test.w); !near(got, test.want, 1e-15) {
			t.Errorf("%v by %v: %g, want %g", test.e, test.w, got, test.want)
		}
	}
	if v := wrms([]float64{math.NaN(), 1}, []float64{1, 1}); !math.IsNaN(v) {
		t.Errorf("the norm of NaN is %g", v)
	}
}

// Equidistant: the constants of numerics.md (meyer); unequal: quadrature.
func TestErrorConstants(t *testing.T) {
	const H = 0.25
	equal := []float64{1, 0.75, 0.5, 0.25, 0, -0.25, -0.5}
	for j, want := range [][2]float64{{0.5, 1}, {1. / 6, 0.5}, {0.125, 5. / 12}, {19. / 180, 3. / 8}, {math.NaN(), 251. / 720}} {
		pos, vel := errorConstants(j, H, equal)
		if !near(vel, want[1], 1e-14) || !math.IsNaN(want[0]) && !near(pos, want[0], 1e-14) {
			t.Errorf("degree %d: C_pos %g, C_vel %g, want %g", j, pos, vel, want)
		}
	}
	uneven := []float64{3, 2.2, 1.9, 0.4, -1, -1.1, -5}
	for j := range maxNodes {
		const n = 20000
		pos, vel := 0.0, 0.0
		for i := range n {
			s := (float64(i) + 0.5) / n
			v := 1.0
			for m := range j {
				v *= (3 + s*H - uneven[m]) / (3 + H - uneven[m])
			}
			vel += v / n
			pos += v * (1 - s) / n // Cauchy's formula for the double integral
		}
		p, v := errorConstants(j, H, uneven)
		if !near(p, pos, 1e-8) || !near(v, vel, 1e-8) {
			t.Errorf("degree %d: %g and %g, by quadrature %g and %g", j, p, v, pos, vel)
		}
	}
}

// cubic is t³ at unequal points, the newest first, as entry 1 of two.
func cubic(n int) history {
	times := []float64{2, 1.5, 1.25, 0.5, 0.25, 0, -1}[:n]
	h := history{times: times}
	for _, t := range times {
		h.values = append(h.values, []float64{0, t * t * t})
	}
	return h
}

// Derivatives and the a-priori estimate are exact on a cubic.
func TestHistoryNorms(t *testing.T) {
	const H = 0.5
	entries, w, scratch := []int{1}, []float64{2}, make([]float64, 1)
	h := cubic(6)
	for j, want := range map[int]float64{3: H * H * H * 6 / 2, 4: 0, 5: 0} {
		if got := h.scaledDerivative(j, H, entries, w, scratch); !near(got, want, 1e-12) {
			t.Errorf("SDN(%d) = %g, want %g", j, got, want)
		}
	}
	// Degree 1: the secant. Degree 2 misses t³ by the product of the distances.
	if got, want := h.scaledDerivative(1, H, entries, w, scratch), H*(8-3.375)/0.5/2; !near(got, want, 1e-13) {
		t.Errorf("SDN(1) = %g, want %g", got, want)
	}
	if got, want := h.aPriori(2, H, entries, w, scratch), 0.5*1*1.25/2; !near(got, want, 1e-12) {
		t.Errorf("a-priori estimate %g, want %g", got, want)
	}
	if h.holds(6) || !h.holds(5) {
		t.Error("six points make degree 5")
	}
}

// chooser gives the next order for given SDN(1), SDN(2), ….
func chooser(s *stepControl, k, points int, sdn ...float64) int {
	return s.chooseOrder(k, history{times: make([]float64, points)}, func(j int) float64 { return sdn[j-1] })
}

// Every bullet of meyer 5.2.2.
func TestOrderControl(t *testing.T) {
	config := controlConfig{MaxOrder: 4}
	for _, test := range []struct {
		name                         string
		k, points, successes, failed int
		sdn                          []float64
		want                         int
	}{
		{"1 falls to 0", 1, 8, 0, 0, []float64{1, 2}, 0},
		{"1 stays", 1, 8, 0, 0, []float64{1, 1.9}, 1},
		{"falls", 3, 8, 0, 0, []float64{9, 2, 1, 2}, 2},
		{"falls not", 3, 8, 0, 0, []float64{9, 2.1, 1, 2}, 3},
		{"3 failures leave the order", 3, 8, 0, 3, []float64{9, 8, 7, 6}, 3},
		{"4 failures: order 1", 3, 8, 0, 4, []float64{9, 8, 7, 6}, 1},
		{"6 failures: order 0", 3, 8, 0, 6, []float64{9, 8, 7, 6}, 0},
		{"0 rises", 0, 8, 1, 0, []float64{1, 0.4}, 1},
		{"0 stays", 0, 8, 1, 0, []float64{1, 0.5}, 0},
		{"0 waits for a step", 0, 8, 0, 0, []float64{1, 0.1}, 0},
		{"rises", 2, 8, 3, 0, []float64{9, 8, 3, 2}, 3},
		{"rises not: not smaller", 2, 8, 3, 0, []float64{9, 8, 2, 2}, 2},
		{"rises not: too few steps at this order", 2, 8, 2, 0, []float64{9, 8, 3, 2}, 2},
		{"rises not: too few points", 2, 4, 3, 0, []float64{9, 8, 3, 2}, 2},
		{"falls after success", 2, 8, 3, 0, []float64{9, 2, 2, 3}, 1},
		{"rises no further", 4, 8, 5, 0, []float64{9, 8, 7, 6, 5, 4}, 4},
		{"lowering goes first", 2, 8, 3, 0, []float64{1, 1, 1, 0.1}, 1},
	} {
		s := &stepControl{config: config, successes: test.successes, failures: test.failed}
		if got := chooser(s, test.k, test.points, test.sdn...); got != test.want {
			t.Errorf("%s: order %d, want %d", test.name, got, test.want)
		}
	}
}

// stepSizes is a control with fixed order and meyer's example values.
func stepSizes() *stepControl {
	return &stepControl{config: controlConfig{Safety: 2, RatioMin: 0.5, RatioMax: 2, HMin: 1e-12, HMax: 100, MaxOrder: 5, FixedOrder: true}}
}

func judged(pos, vel, u float64, result outcome) attemptOutcome {
	return attemptOutcome{H: 1, order: 1, norms: errorNorms{pos, vel, u}, result: result}
}

// Every rule of meyer 5.3.
func TestStepSizeControl(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		name string
		o    attemptOutcome
		past int // failures before
		want float64
	}{
		{"grows by the largest ratio", judged(nan, nan, 1e-9, stepAccepted), 0, 2},
		{"no error", judged(nan, nan, 0, stepAccepted), 0, 2},
		{"keeps", judged(nan, nan, 0.2, stepAccepted), 0, 1}, // r = 0.4^(−1/2) = 1.58
		{"shrinks by r", judged(nan, nan, 0.8, stepAccepted), 0, math.Pow(1.6, -0.5)},
		{"shrinks at least to 0.9", judged(nan, nan, 0.5001, stepAccepted), 0, 0.9},
		{"the worse level", judged(0.9, 0.6, nan, stepAccepted), 0, math.Pow(1.8, -0.25)},
		{"the worse level, velocity", judged(0.51, 0.9, nan, stepAccepted), 0, math.Pow(1.8, -1./3)},
		{"unjudged keeps", judged(nan, nan, nan, stepUnjudged), 0, 1},
		{"first failure", judged(nan, nan, 2, errorTooLarge), 0, 0.9 * 0.5},
		{"first failure, bound", judged(nan, nan, 1e9, errorTooLarge), 0, 0.25},
		{"no number", judged(nan, nan, math.Inf(1), errorTooLarge), 0, 0.25},
		{"second failure", judged(nan, nan, 1.1, errorTooLarge), 1, 0.25},
		{"no convergence", judged(nan, nan, nan, notConverged), 0, 0.25},
		{"discarded", judged(nan, nan, nan, stepDiscarded), 0, 0.5},
	} {
		s := stepSizes()
		s.failures = test.past
		next, err := s.conclude(test.o, history{times: []float64{0}, values: [][]float64{nil}}, nil, nil, nil)
		if err != nil || !near(next.H, test.want, 1e-14) || next.order != 1 {
			t.Errorf("%s: %+v, %v, want H = %g", test.name, next, err, test.want)
		}
	}
	s := stepSizes()
	for _, test := range []struct {
		norms errorNorms
		want  bool
	}{{errorNorms{1, 0.5, nan}, true}, {errorNorms{0.5, 1.01, nan}, false}, {errorNorms{nan, nan, nan}, true}, {errorNorms{nan, nan, math.Inf(1)}, false}} {
		if got := s.passes(test.norms); got != test.want {
			t.Errorf("%v passes: %t", test.norms, got)
		}
	}
	s.config.HMin = 0.3
	if _, err := s.conclude(judged(nan, nan, 1e9, errorTooLarge), history{times: []float64{0}}, nil, nil, nil); err == nil {
		t.Error("a step below the least one is no error")
	}
	s = stepSizes()
	s.config.HMax = 1.5
	if next, _ := s.conclude(judged(nan, nan, 0, stepAccepted), history{times: []float64{0}}, nil, nil, nil); next.H != 1.5 {
		t.Errorf("the step grows to %g, above its bound", next.H)
	}
}

// A change of order takes the a-priori estimate (31), (33).
func TestStepSizeAtNewOrder(t *testing.T) {
	s := stepSizes()
	s.config.FixedOrder = false
	entries, w, scratch := []int{1}, []float64{2}, make([]float64, 1)
	h := cubic(6)
	o := attemptOutcome{H: 0.5, order: 2, norms: errorNorms{math.NaN(), math.NaN(), 1e-9}, result: stepAccepted}
	if got, want := s.ratio(o, 1, h, entries, w, scratch), math.Pow(2*h.aPriori(1, 0.5, entries, w, scratch), -0.5); !near(got, want, 1e-15) {
		t.Errorf("ratio %g, want %g", got, want)
	}
}

// A size that a subsystem refused is not tried again at once.
func TestRefusedSizeIsRemembered(t *testing.T) {
	s := stepSizes()
	H, tried := 1.0, 0
	const limit = 0.7
	for range 100 {
		o := attemptOutcome{H: H, order: 1, norms: errorNorms{math.NaN(), math.NaN(), 0}}
		if H > limit {
			o.result = stepDiscarded
			tried++
		}
		next, err := s.conclude(o, history{times: []float64{0}}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		H = next.H
	}
	if tried == 0 || tried > 6 {
		t.Errorf("the refused size was tried %d times in 100 steps", tried)
	}
	if H < limit/2 || H > limit {
		t.Errorf("the step settled at %g of at most %g", H, limit)
	}
}
