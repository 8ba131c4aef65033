package algorithms

import (
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
)

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

// cubic is t³ at unequal points, the newest first, as entry 1 of two.
func cubic(n int) num.History {
	times := []float64{2, 1.5, 1.25, 0.5, 0.25, 0, -1}[:n]
	h := num.History{Times: times}
	for _, t := range times {
		h.Values = append(h.Values, []float64{0, t * t * t})
	}
	return h
}

// chooser returns the next order for given SDN(1), SDN(2), ….
func chooser(s *stepControl, k, points int, sdn ...float64) int {
	return s.chooseOrder(k, num.History{Times: make([]float64, points)}, func(j int) float64 { return sdn[j-1] })
}

// Every bullet of meyer 5.2.2.
func TestOrderControl(t *testing.T) {
	config := &Control{MaxOrder: 4}
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
		{"rises though the present norm is small", 2, 8, 3, 0, []float64{9, 2, 3, 1}, 3},
		{"1 falls not: too few points", 1, 2, 0, 0, []float64{1, 2}, 1},
		{"falls not: too few points", 3, 4, 0, 0, []float64{9, 2, 1, 2}, 3},
		{"4 failures at order 0", 0, 8, 0, 4, []float64{9, 8, 7, 6}, 0},
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
	return &stepControl{config: &Control{Safety: 2, RatioMin: 0.5, RatioMax: 2, HMin: 1e-12, HMax: 100, MaxOrder: 5, FixedOrder: true}}
}

func judged(pos, vel, u float64, result outcome) attemptOutcome {
	return attemptOutcome{H: 1, order: 1, norms: errorNorms{pos: pos, vel: vel, u: u, inner: math.NaN()}, result: result}
}

// ofInputs are the norms of a step that is judged by its coupling inputs.
func ofInputs(norm float64) errorNorms {
	e := unknownNorms
	e.u = norm
	return e
}

var onePoint = num.History{Times: []float64{0}, Values: [][]float64{nil}}

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
		next, err := s.conclude(test.o, onePoint, nil, nil, nil)
		if err != nil || !near(next.H, test.want, 1e-14) || next.order != 1 {
			t.Errorf("%s: %+v, %v, want H = %g", test.name, next, err, test.want)
		}
	}
	s := stepSizes()
	for _, test := range []struct {
		norms errorNorms
		want  bool
	}{{errorNorms{pos: 1, vel: 0.5, u: nan, inner: math.NaN()}, true}, {errorNorms{0.5, 1.01, nan, nan}, false}, {unknownNorms, true}, {errorNorms{nan, nan, math.Inf(1), nan}, false}, {errorNorms{0.5, 0.5, nan, 1.5}, false}} {
		if got := s.passes(test.norms); got != test.want {
			t.Errorf("%v passes: %t", test.norms, got)
		}
	}
	s = stepSizes()
	s.config.HMax = 1.5
	if next, _ := s.conclude(judged(nan, nan, 0, stepAccepted), onePoint, nil, nil, nil); next.H != 1.5 {
		t.Errorf("the step grows to %g, above its bound", next.H)
	}
}

// A size that a subsystem refused is not tried again at once.
func TestRefusedSizeIsRemembered(t *testing.T) {
	s := stepSizes()
	H, tried := 1.0, 0
	const limit = 0.7
	for range 100 {
		o := attemptOutcome{H: H, order: 1, norms: ofInputs(0)}
		if H > limit {
			o.result = stepDiscarded
			tried++
		}
		next, err := s.conclude(o, onePoint, nil, nil, nil)
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
	// What the subsystem takes now is found out after discardMemory steps.
	s = stepSizes()
	decide := func(o attemptOutcome) float64 {
		next, err := s.conclude(o, onePoint, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return next.H
	}
	decide(attemptOutcome{H: 1, order: 1, result: stepDiscarded})
	for n := 1; n <= discardMemory; n++ {
		if H := decide(attemptOutcome{H: 0.5, order: 1, norms: ofInputs(0)}); (H == 0.5) != (n < discardMemory) {
			t.Errorf("%d steps after a refusal of 1 s: %g s", n, H)
		}
	}
}

// A step must not become smaller than the least one; that it keeps its size there
// is no failure, be it judged or not.
func TestLeastStep(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		name string
		o    attemptOutcome
		hMin float64
		want bool // an error
	}{
		{"falls below", judged(nan, nan, 1e9, errorTooLarge), 0.3, true},
		{"falls to it", judged(nan, nan, 1e9, errorTooLarge), 0.25, true},
		{"falls not so far", judged(nan, nan, 1e9, errorTooLarge), 0.24, false},
		{"no convergence", judged(nan, nan, nan, notConverged), 0.3, true},
		{"stands, shrinks below", judged(nan, nan, 0.8, stepAccepted), 0.85, true},
		{"keeps it", judged(nan, nan, 0.2, stepAccepted), 1, false},
		{"keeps it unjudged", judged(nan, nan, nan, stepUnjudged), 1, false},
		{"grows from it", judged(nan, nan, 0, stepAccepted), 1, false},
	} {
		s := stepSizes()
		s.config.HMin = test.hMin
		_, err := s.conclude(test.o, onePoint, nil, nil, nil)
		if got := err != nil; got != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "control.h-min") || !strings.Contains(err.Error(), "control.rtol")) {
			t.Errorf("%s: the message names no remedy: %v", test.name, err)
		}
	}
}

// bench gives outcomes on the cubic history with an order that may change.
type bench struct {
	*stepControl
	entries    []int
	w, scratch []float64
	past       num.History
}

func newBench(config Control) *bench {
	return &bench{stepControl: &stepControl{config: &config}, entries: []int{1}, w: []float64{2}, scratch: make([]float64, 1), past: cubic(7)}
}

func (b *bench) next(t *testing.T, H float64, k int, norm float64, result outcome) decision {
	t.Helper()
	d, err := b.conclude(attemptOutcome{H: H, order: k, norms: ofInputs(norm), result: result}, b.past, b.entries, b.w, b.scratch)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func variable() Control {
	return Control{Safety: 2, RatioMin: 0.5, RatioMax: 2, HMin: 1e-12, HMax: 100, MaxOrder: 5}
}

// N_succ counts the steps that stand, at one order and without a smaller step,
// and N_fail those that fail in a row.
func TestCountsOfSteps(t *testing.T) {
	const keeps, shrinks = 0.3, 0.9 // at order 1: r = 1.29, 0.75
	b := newBench(variable())
	b.config.FixedOrder = true
	for _, step := range []struct {
		name                string
		norm                float64
		result              outcome
		successes, failures int
	}{
		{"stands", keeps, stepAccepted, 1, 0},
		{"stands", keeps, stepAccepted, 2, 0},
		{"unjudged", math.NaN(), stepUnjudged, 3, 0},
		{"a smaller step", shrinks, stepAccepted, 0, 0},
		{"stands", keeps, stepAccepted, 1, 0},
		{"fails", 2, errorTooLarge, 0, 1},
		{"fails again", 2, notConverged, 0, 2},
		{"discarded", math.NaN(), stepDiscarded, 0, 3},
		{"stands after failures", keeps, stepAccepted, 1, 0},
	} {
		b.next(t, 0.01, 1, step.norm, step.result)
		if b.successes != step.successes || b.failures != step.failures {
			t.Errorf("%s: %d and %d, want %d and %d", step.name, b.successes, b.failures, step.successes, step.failures)
		}
	}
	// On a cubic SDN falls steeply at a small H: the order rises, and counting
	// starts again.
	b = newBench(variable())
	for n := range 2 {
		d := b.next(t, 0.01, 1, keeps, stepAccepted)
		if want := 1 + n; d.order != want || b.successes != 1-n {
			t.Errorf("step %d: order %d, %d successes", n, d.order, b.successes)
		}
	}
}

// The failures of an attempt lower the order: to 1 at the fourth in a row, to 0 at
// the sixth; a discarded step is one of them but changes no order itself.
func TestFailuresLowerTheOrder(t *testing.T) {
	b := newBench(variable())
	for n, want := range []int{3, 3, 3, 1, 1, 0} {
		if d := b.next(t, 0.01, 3, 9, errorTooLarge); d.order != want {
			t.Errorf("failure %d: order %d, want %d", n+1, d.order, want)
		}
	}
	b = newBench(variable())
	for range 7 {
		if d := b.next(t, 0.01, 3, math.NaN(), stepDiscarded); d.order != 3 {
			t.Errorf("a discarded step makes order %d", d.order)
		}
	}
	if d := b.next(t, 0.01, 3, 1.01, errorTooLarge); d.order != 0 || !near(d.H, 0.0025, 1e-15) {
		t.Errorf("after discarded steps a failure gives %+v", d)
	}
	// What succeeded before a failure raises no order.
	b = newBench(variable())
	b.successes = 9
	if d := b.next(t, 0.01, 1, 1.1, errorTooLarge); d.order != 1 {
		t.Errorf("a failure after nine steps raises the order to %d", d.order)
	}
	// Large steps: SDN grows with the degree, which lowers the order unless the
	// step is not judged or discarded.
	for _, test := range []struct {
		result outcome
		want   int
	}{{stepAccepted, 1}, {errorTooLarge, 1}, {notConverged, 1}, {stepUnjudged, 2}, {stepDiscarded, 2}} {
		if d := newBench(variable()).next(t, 4, 2, 0.3, test.result); d.order != test.want {
			t.Errorf("outcome %d: order %d, want %d", test.result, d.order, test.want)
		}
	}
}

// Order and step size can be fixed, each for itself.
func TestFixedOrderAndStep(t *testing.T) {
	config := variable()
	config.FixedOrder = true
	if d := newBench(config).next(t, 4, 2, 0, stepAccepted); d.order != 2 || d.H != 8 {
		t.Errorf("fixed order: %+v", d)
	}
	config = variable()
	config.FixedStep = true
	b := newBench(config)
	if !b.passes(ofInputs(math.Inf(1))) {
		t.Error("with a fixed step the norm only informs")
	}
	if d := b.next(t, 4, 2, 1e9, stepAccepted); d.order != 1 || d.H != 4 {
		t.Errorf("fixed step: %+v", d)
	}
	_, err := b.conclude(attemptOutcome{H: 4, order: 2, result: notConverged}, b.past, b.entries, b.w, b.scratch)
	if err == nil || !strings.Contains(err.Error(), "control.step=variable") {
		t.Errorf("a fixed step that does not converge: %v", err)
	}
}

// A change of order takes its step size from (33), whatever the estimate says,
// and an a-priori estimate that is no number shrinks the step.
func TestStepSizeFollowsOrder(t *testing.T) {
	b := newBench(variable())
	const H = 4
	d := b.next(t, H, 2, 1e-9, stepAccepted)
	r := math.Pow(2*b.past.APriori(1, H, b.entries, b.w, b.scratch), -0.5)
	if r > 0.5 {
		t.Fatalf("r = %g is not below its bound", r)
	}
	if d.order != 1 || d.H != 0.5*H {
		t.Errorf("%+v, want order 1 and half the step", d)
	}
	b.w[0] = 80 // r within its bounds
	d = b.next(t, H, 2, 1e9, stepAccepted)
	if r = math.Pow(2*b.past.APriori(1, H, b.entries, b.w, b.scratch), -0.5); r < 0.5 || r > 0.9 {
		t.Fatalf("r = %g is at a bound", r)
	}
	if d.order != 1 || !near(d.H, r*H, 1e-14) {
		t.Errorf("%+v, want order 1 and %g", d, r*H)
	}
	// After a first failure too, and with at most 0.9 of the step.
	for w, want := range map[float64]float64{80: 0.9 * r, 1e3: 0.9} {
		b.w[0], b.failures = w, 0
		if d = b.next(t, H, 2, 1e9, errorTooLarge); d.order != 1 || !near(d.H, want*H, 1e-14) {
			t.Errorf("after a failure, weight %g: %+v, want order 1 and %g", w, d, want*H)
		}
	}
	if r := b.ratio(attemptOutcome{H: H, order: 2}, 1, num.History{Times: b.past.Times[:2]}, b.entries, b.w, b.scratch); r != 1 {
		t.Errorf("without the points of an a-priori estimate the ratio is %g", r)
	}
	b.past.Values[0] = []float64{0, math.NaN()}
	b.failures = failuresToZero
	if d = b.next(t, H, 2, 0.1, stepAccepted); !(d.H > 0 && d.H < math.Inf(1)) {
		t.Errorf("values that are no number: %+v", d)
	}
	if r := b.ratio(attemptOutcome{H: H, order: 2}, 1, b.past, b.entries, b.w, b.scratch); r != 0 {
		t.Errorf("values that are no number give the ratio %g", r)
	}
}

// On errors C H^p the step size settles where the safety factor times the error
// is 1, within the range in which a step is kept; from above and below.
func TestStepSizeSettles(t *testing.T) {
	for k := range MaxOrder + 1 {
		for level := range 3 {
			p := k + 3 - level
			for _, start := range []float64{1e-7, 10} {
				s := stepSizes()
				H, rejected, settled := start, 0, 0
				for range 200 {
					norms := [3]float64{math.NaN(), math.NaN(), math.NaN()}
					norms[level] = 1e3 * math.Pow(H, float64(p))
					o := attemptOutcome{H: H, order: k, norms: errorNorms{pos: norms[0], vel: norms[1], u: norms[2], inner: math.NaN()}}
					if !s.passes(o.norms) {
						o.result = errorTooLarge
						rejected++
					}
					next, err := s.conclude(o, onePoint, nil, nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					if settled++; next.H != H {
						settled = 0
					}
					H = next.H
				}
				best := math.Pow(2e3, -1/float64(p))
				if ratio := best / H; ratio < 1-1e-12 || ratio >= 2 || settled < 100 {
					t.Errorf("order %d, level %d, from %g: H = %g, best %g, kept for %d steps", k, level, start, H, best, settled)
				}
				if start < best && rejected > 0 {
					t.Errorf("order %d, level %d: growing from %g, %d steps were rejected", k, level, start, rejected)
				}
			}
		}
	}
}

// follow runs the control on one coupling variable that is known: a step's error
// is that of the extrapolation (21).
func follow(t *testing.T, config Control, k int, u func(t float64) float64, end, tolerance float64) (orders [MaxOrder + 1]int, rejected int, trace []attemptOutcome) {
	t.Helper()
	const H0 = 1e-7
	s := &stepControl{config: &config}
	var past num.History
	push := func(t float64) num.History {
		return num.History{Times: append([]float64{t}, past.Times[:min(len(past.Times), input.MaxPoints)]...),
			Values: append([][]float64{{u(t)}}, past.Values[:min(len(past.Values), input.MaxPoints)]...)}
	}
	past = push(0)
	entries, w, scratch := []int{0}, []float64{tolerance}, make([]float64, 1)
	H := H0
	for past.Times[0] < end {
		now := past.Times[0]
		o := attemptOutcome{H: H, order: k, norms: unknownNorms, result: stepUnjudged}
		if len(past.Times) > k {
			var table num.WeightTable
			num.Weights(&table, past.Times[:k+1], now+H, 0)
			e := -u(now + H)
			for i := range k + 1 {
				e += float64(table[0][i] * past.Values[i][0])
			}
			o.norms.u, o.result = math.Abs(e)/tolerance, stepAccepted
			if !s.passes(o.norms) {
				o.result = errorTooLarge
			}
		}
		seen := past
		if o.result != errorTooLarge {
			seen = push(now + H)
			orders[k]++
		} else {
			rejected++
		}
		next, err := s.conclude(o, seen, entries, w, scratch)
		if err != nil {
			t.Fatalf("t = %g: %v", now, err)
		}
		trace = append(trace, o)
		past, H, k = seen, next.H, next.order
	}
	return orders, rejected, trace
}

// Order and step size together: a smooth variable is followed with high orders
// and fewer steps than with any lower fixed order; at a kink the order falls.
func TestOrderFollowsTheSignal(t *testing.T) {
	const end, tolerance = 20, 1e-6
	count := func(orders [MaxOrder + 1]int) (n int) {
		for _, v := range orders {
			n += v
		}
		return n
	}
	config := variable()
	smooth, rejected, _ := follow(t, config, 0, math.Sin, end, tolerance)
	steps := count(smooth)
	if high := smooth[4] + smooth[5]; high < steps/2 || rejected > steps/5 {
		t.Errorf("orders %v, %d steps rejected", smooth, rejected)
	}
	config.FixedOrder = true
	for k := 1; k < 4; k++ {
		fixed, _, _ := follow(t, config, k, math.Sin, end, tolerance)
		if n := count(fixed); n <= steps {
			t.Errorf("order %d takes %d steps, variable order %d", k, n, steps)
		}
	}
	config.FixedOrder = false
	kinked, _, trace := follow(t, config, 0, func(t float64) float64 { return math.Abs(math.Sin(t)) }, end, tolerance)
	// The extrapolation over a kink is wrong in first order whatever its degree:
	// steps become small there, orders fall behind it, and both recover.
	for kink := math.Pi; kink < end; kink += math.Pi {
		smallest, lowest, behind := 1.0, MaxOrder, 0.0
		now := 0.0
		for _, o := range trace {
			if o.result != stepAccepted {
				continue
			}
			if math.Abs(now-kink) < 0.1 {
				smallest, lowest = min(smallest, o.H), min(lowest, o.order)
			}
			if now > kink && now < kink+1 {
				behind = max(behind, o.H)
			}
			now += o.H
		}
		if smallest > 1e-4 || lowest > 3 || behind < 0.01 {
			t.Errorf("kink at %g: the step fell to %g, the order to %d, the step recovered to %g", kink, smallest, lowest, behind)
		}
	}
	if n := count(kinked); n > 1000 {
		t.Errorf("%d steps, without kinks %d", n, steps)
	}
}
