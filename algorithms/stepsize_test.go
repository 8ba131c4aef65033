package algorithms

import (
	"math"
	"strings"
	"testing"

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
		s := &stepControl{config: config, stepState: stepState{successes: test.successes, failures: test.failed}}
		if got := chooser(s, test.k, test.points, test.sdn...); got != test.want {
			t.Errorf("%s: order %d, want %d", test.name, got, test.want)
		}
	}
}

// bench is a step control with meyer's example values on the cubic history.
type bench struct {
	*stepControl
	entries    []int
	w, scratch []float64
	past       num.History
}

func newBench(change ...func(*Control)) *bench {
	config := Control{Safety: 2, RatioMin: 0.5, RatioMax: 2, HMin: 1e-12, HMax: 100, MaxOrder: 5}
	for _, f := range change {
		f(&config)
	}
	return &bench{stepControl: &stepControl{config: &config}, entries: []int{1}, w: []float64{2}, scratch: make([]float64, 1), past: cubic(7)}
}

func fixedOrder(c *Control) { c.FixedOrder = true }

func (b *bench) decide(o attemptOutcome) (decision, error) {
	return b.conclude(o, b.past, b.entries, b.w, b.scratch)
}

// next decides after an attempt that is judged by its coupling inputs.
func (b *bench) next(t *testing.T, H float64, k int, norm float64, result outcome) decision {
	t.Helper()
	d, err := b.decide(attemptOutcome{H: H, order: k, norms: ofInputs(norm), result: result})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ofInputs(norm float64) errorNorms {
	e := unknownNorms
	e.u = norm
	return e
}

// Every rule of meyer 5.3, for a step of 1 s at order 1.
func TestStepSizeControl(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		name        string
		pos, vel, u float64
		result      outcome
		past        int // failures before
		want        float64
	}{
		{"grows by the largest ratio", nan, nan, 1e-9, stepAccepted, 0, 2},
		{"no error", nan, nan, 0, stepAccepted, 0, 2},
		{"keeps", nan, nan, 0.2, stepAccepted, 0, 1}, // r = 0.4^(−1/2) = 1.58
		{"shrinks by r", nan, nan, 0.8, stepAccepted, 0, math.Pow(1.6, -0.5)},
		{"shrinks at least to 0.9", nan, nan, 0.5001, stepAccepted, 0, 0.9},
		{"the worse level", 0.9, 0.6, nan, stepAccepted, 0, math.Pow(1.8, -0.25)},
		{"the worse level, velocity", 0.51, 0.9, nan, stepAccepted, 0, math.Pow(1.8, -1./3)},
		{"unjudged keeps", nan, nan, nan, stepUnjudged, 0, 1},
		{"first failure", nan, nan, 2, errorTooLarge, 0, 0.9 * 0.5},
		{"first failure, bound", nan, nan, 1e9, errorTooLarge, 0, 0.25},
		{"not a number", nan, nan, math.Inf(1), errorTooLarge, 0, 0.25},
		{"second failure", nan, nan, 1.1, errorTooLarge, 1, 0.25},
		{"no convergence", nan, nan, nan, notConverged, 0, 0.25},
		{"discarded", nan, nan, nan, stepDiscarded, 0, 0.5},
	} {
		b := newBench(fixedOrder)
		b.failures = test.past
		next, err := b.decide(attemptOutcome{H: 1, order: 1, norms: errorNorms{test.pos, test.vel, test.u, nan}, result: test.result})
		if err != nil || !near(next.H, test.want, 1e-14) || next.order != 1 {
			t.Errorf("%s: %+v, %v, want H = %g", test.name, next, err, test.want)
		}
	}
	for norms, want := range map[errorNorms]bool{
		{1, 0.5, nan, nan}: true, {0.5, 1.01, nan, nan}: false, unknownNorms: true,
		{nan, nan, math.Inf(1), nan}: false, {0.5, 0.5, nan, 1.5}: false,
	} {
		if got := newBench().passes(norms); got != want {
			t.Errorf("%v passes: %t", norms, got)
		}
	}
	if d := newBench(fixedOrder, func(c *Control) { c.HMax = 1.5 }).next(t, 1, 1, 0, stepAccepted); d.H != 1.5 {
		t.Errorf("the step grows to %g, above its bound", d.H)
	}
}

// A size that a subsystem refused is tried again only after discardMemory steps.
func TestRefusedSizeIsRemembered(t *testing.T) {
	b := newBench(fixedOrder)
	b.next(t, 1, 1, math.NaN(), stepDiscarded)
	for n := 1; n <= discardMemory; n++ {
		if d := b.next(t, 0.5, 1, 0, stepAccepted); (d.H == 0.5) != (n < discardMemory) {
			t.Errorf("%d steps after a refusal of 1 s: %g s", n, d.H)
		}
	}
}

// A step that would shrink to the smallest size or below is an error with a remedy;
// one that already has this size goes on.
func TestLeastStep(t *testing.T) {
	for _, test := range []struct {
		name   string
		norm   float64
		result outcome
		hMin   float64
		want   bool // an error
	}{
		{"falls below", 1e9, errorTooLarge, 0.3, true},
		{"falls to it", 1e9, errorTooLarge, 0.25, true},
		{"stays above", 1e9, errorTooLarge, 0.24, false},
		{"no convergence", math.NaN(), notConverged, 0.3, true},
		{"accepted, shrinks below", 0.8, stepAccepted, 0.85, true},
		{"keeps it", 0.2, stepAccepted, 1, false},
		{"keeps it unjudged", math.NaN(), stepUnjudged, 1, false},
		{"grows from it", 0, stepAccepted, 1, false},
	} {
		b := newBench(fixedOrder, func(c *Control) { c.HMin = test.hMin })
		_, err := b.decide(attemptOutcome{H: 1, order: 1, norms: ofInputs(test.norm), result: test.result})
		if (err != nil) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "control.h-min") || !strings.Contains(err.Error(), "control.rtol")) {
			t.Errorf("%s: the message names no remedy: %v", test.name, err)
		}
	}
}

// N_succ counts accepted steps in a row at one order without a smaller step, N_fail failed attempts
// in a row.
func TestCountsOfSteps(t *testing.T) {
	const keeps, shrinks = 0.3, 0.9 // at order 1: r = 1.29, 0.75
	b := newBench(fixedOrder)
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
	// On a cubic, SDN falls steeply at a small H: the order rises, and the count starts again.
	b = newBench()
	for n := range 2 {
		d := b.next(t, 0.01, 1, keeps, stepAccepted)
		if want := 1 + n; d.order != want || b.successes != 1-n {
			t.Errorf("step %d: order %d, %d successes", n, d.order, b.successes)
		}
	}
}

// Failures lower the order: the fourth in a row to 1, the sixth to 0. A discarded step counts but
// does not change the order itself.
func TestFailuresLowerTheOrder(t *testing.T) {
	b := newBench()
	for n, want := range []int{3, 3, 3, 1, 1, 0} {
		if d := b.next(t, 0.01, 3, 9, errorTooLarge); d.order != want {
			t.Errorf("failure %d: order %d, want %d", n+1, d.order, want)
		}
	}
	b = newBench()
	for range 7 {
		if d := b.next(t, 0.01, 3, math.NaN(), stepDiscarded); d.order != 3 {
			t.Errorf("a discarded step makes order %d", d.order)
		}
	}
	if d := b.next(t, 0.01, 3, 1.01, errorTooLarge); d.order != 0 || !near(d.H, 0.0025, 1e-15) {
		t.Errorf("after discarded steps a failure gives %+v", d)
	}
	// Successes before a failure do not raise the order.
	b = newBench()
	b.successes = 9
	if d := b.next(t, 0.01, 1, 1.1, errorTooLarge); d.order != 1 {
		t.Errorf("a failure after nine steps raises the order to %d", d.order)
	}
	// With large steps SDN grows with the degree, which lowers the order unless the step is
	// unjudged or discarded.
	for _, test := range []struct {
		result outcome
		want   int
	}{{stepAccepted, 1}, {errorTooLarge, 1}, {notConverged, 1}, {stepUnjudged, 2}, {stepDiscarded, 2}} {
		if d := newBench().next(t, 4, 2, 0.3, test.result); d.order != test.want {
			t.Errorf("outcome %d: order %d, want %d", test.result, d.order, test.want)
		}
	}
}

// Order and step size can be fixed separately.
func TestFixedOrderAndStep(t *testing.T) {
	if d := newBench(fixedOrder).next(t, 4, 2, 0, stepAccepted); d.order != 2 || d.H != 8 {
		t.Errorf("fixed order: %+v", d)
	}
	b := newBench(func(c *Control) { c.FixedStep = true })
	if !b.passes(ofInputs(math.Inf(1))) {
		t.Error("with a fixed step the norm only informs")
	}
	if d := b.next(t, 4, 2, 1e9, stepAccepted); d.order != 1 || d.H != 4 {
		t.Errorf("fixed step: %+v", d)
	}
	_, err := b.decide(attemptOutcome{H: 4, order: 2, result: notConverged})
	if err == nil || !strings.Contains(err.Error(), "control.step=variable") {
		t.Errorf("a fixed step that does not converge: %v", err)
	}
}

// After a change of order the step size follows (33) instead of the estimate. If the a-priori
// estimate is NaN, the step shrinks.
func TestStepSizeFollowsOrder(t *testing.T) {
	b := newBench()
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

// For errors C H^p the step size converges, from above and below, to a value at which the safety
// factor times the error is 1 or slightly less.
func TestStepSizeSettles(t *testing.T) {
	for k := range MaxOrder + 1 {
		for level := range 3 {
			p := k + 3 - level
			best := math.Pow(2e3, -1/float64(p))
			for _, start := range []float64{1e-7, 10} {
				b := newBench(fixedOrder)
				H, rejected, settled := start, 0, 0
				for range 200 {
					e := 1e3 * math.Pow(H, float64(p))
					o := attemptOutcome{H: H, order: k, norms: unknownNorms}
					*[]*float64{&o.norms.pos, &o.norms.vel, &o.norms.u}[level] = e
					if e > 1 {
						o.result = errorTooLarge
						rejected++
					}
					next, err := b.decide(o)
					if err != nil {
						t.Fatal(err)
					}
					if settled++; next.H != H {
						settled = 0
					}
					H = next.H
				}
				if ratio := best / H; ratio < 1-1e-12 || ratio >= 2 || settled < 100 || start < best && rejected > 0 {
					t.Errorf("order %d, level %d, from %g: H = %g, best %g, kept for %d steps, %d rejected", k, level, start, H, best, settled, rejected)
				}
			}
		}
	}
}
