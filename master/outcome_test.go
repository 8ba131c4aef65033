package master_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// evolving is a run of a subsystem whose only output is f of the time, and of one that it feeds; in a loop if it is fed by that, too.
func evolving(t *testing.T, f func(t float64) float64, loop bool, o master.Options) (master.Result, error) {
	t.Helper()
	a, b := newFake("a", 1, 1), newFake("b", 1, 1)
	a.y[0] = f(o.Start)
	a.step = func(at, H float64) (float64, error) { a.y[0] = f(at + H); return at + H, nil }
	connections := []master.Connection{wire("a.y1", "b.u1")}
	if loop {
		connections = append(connections, wire("b.y1", "a.u1"))
	}
	return newRun(t, system(t, []master.Subsystem{a, b}, connections...), o).Run(t.Context())
}

// Only motion that grows like that of an unstable coupling is reported, with the time in which it doubles.
func TestGrowth(t *testing.T) {
	const none, swings = 0, true
	after := func(at float64, f func(t float64) float64) func(t float64) float64 {
		return func(t float64) float64 {
			if t < at {
				return 0
			}
			return f(t - at)
		}
	}
	noise := func(t float64) float64 { return 1e-9 * math.Sin(1e6*t*t) }
	for name, test := range map[string]struct {
		f      func(t float64) float64
		every  float64 // s, in which it doubles; 0 = it does not
		swings bool
	}{
		"exponential":         {func(t float64) float64 { return math.Exp2(t) }, 1, false},
		"1e16 in ten seconds": {func(t float64) float64 { return math.Pow(10, 1.6*t) }, 0.188, false},
		"1e16, oscillating":   {func(t float64) float64 { return math.Pow(10, 1.6*t) * math.Cos(31*t) }, 0.188, swings},
		"in each step":        {func(t float64) float64 { return math.Exp2(t/2) * math.Cos(math.Pi*math.Round(t/0.001)) }, 2, swings},
		"about a ramp":        {func(t float64) float64 { return 100*t + math.Exp2(t/2)*math.Sin(40*t) }, 1.8, swings},
		"after rest":          {after(6, func(t float64) float64 { return 1e-6 * math.Exp2(5*t) * math.Sin(40*t) }), 0.2, swings},
		"after other motion":  {func(t float64) float64 { return math.Sin(5*t) + 1e-9*math.Exp2(4*t)*math.Sin(200*t) }, 0.25, swings},
		"in the last eighth": {func(t float64) float64 {
			return math.Sin(5*t) + after(8.6, func(t float64) float64 { return 1e-3 * math.Exp2(12*t) * math.Sin(400*t) })(t)
		}, 1. / 12, swings},
		"more and more slowly":       {func(t float64) float64 { return 3 + (0.5+t)*math.Sin(40*t) }, 3.6, swings},
		"in the first half":          {func(t float64) float64 { return min(1, 1e-6*math.Exp2(6*t)) * math.Sin(40*t) }, 0.2, swings},
		"between samples":            {func(t float64) float64 { return math.Exp2(t/2) * math.Sin(2*math.Pi*t/0.128) }, 2, swings},
		"hardly":                     {func(t float64) float64 { return (10 + t) * math.Sin(40*t) }, none, false},
		"have grown before":          {func(t float64) float64 { return min(0.5+t, 3) * math.Sin(40*t) }, none, false},
		"die out":                    {func(t float64) float64 { return math.Exp(-t) * math.Sin(40*t) }, none, false},
		"a force of 1e6":             {func(t float64) float64 { return 1e6 * math.Sin(t) }, none, false},
		"an impact":                  {func(t float64) float64 { return map[bool]float64{true: 1e8}[t > 9.9] }, none, false},
		"a force that rises":         {after(9.8, func(t float64) float64 { return 1e6 * math.Pow(t, 1.5) }), none, false},
		"a step response after rest": {after(7.6, func(t float64) float64 { return 1 - math.Exp(-t)*math.Cos(30*t) }), none, false},
		"an oscillation after rest":  {after(9, func(t float64) float64 { return math.Sin(90 * t) }), none, false},
		"a step after noise": {func(t float64) float64 {
			return noise(t) + after(7.7, func(t float64) float64 { return math.Exp(-t) * math.Sin(30*t) })(t)
		}, none, false},
		"a ramp":                      {func(t float64) float64 { return 1e12 * t }, none, false},
		"a square":                    {func(t float64) float64 { return t * t }, none, false},
		"a cube":                      {func(t float64) float64 { return 1e11 * t * t * t }, none, false},
		"a clock in ns":               {func(t float64) float64 { return 1.7e18 + 1e9*t }, none, false},
		"decay from 1e16":             {func(t float64) float64 { return 1e16 * math.Exp(-t) }, none, false},
		"noise":                       {noise, none, false},
		"rounding beside a constant":  {func(t float64) float64 { return 1e6 + 1e-3*math.Exp2(t/2)*math.Sin(40*t) }, none, false},
		"the integral of an even one": {func(t float64) float64 { return t + math.Cos(5*t)/5 }, none, false},
	} {
		for _, loop := range []bool{true, false} {
			result, err := evolving(t, test.f, loop, master.Options{Stop: 10, Step: 0.001})
			g, o := result.Growing, result.Outcome()
			if (g != nil) != (loop && test.every > 0) || err != nil || (o.Stability == master.Grows) != (g != nil) || (o.Growth != "") != (g != nil) {
				t.Errorf("%s, in a loop: %t: %v, %v, %+v", name, loop, g, err, o)
				continue
			}
			if g != nil && (g.Output != "a.y1" || g.Swings != test.swings || math.Abs(g.Doubling/test.every-1) > 0.1 || len(result.Warnings) != 1) {
				t.Errorf("%s: %v, want every %.3g s; %q", name, g, test.every, result.Warnings)
			}
		}
	}
	// The steps of a subsystem of its own, on a parabola, are no swings.
	stairs := func(t float64) float64 { return 1 - 60*math.Pow(0.01*math.Floor(t/0.01+1e-9), 2) }
	for _, stop := range []float64{0.1, 0.12, 0.15, 0.2} {
		if result, err := evolving(t, stairs, true, master.Options{Stop: stop, Step: 0.002}); err != nil || result.Growing != nil {
			t.Errorf("stairs up to %g s: %v, %v", stop, err, result.Growing)
		}
	}
	// 16 steps or more suffice.
	for _, n := range []float64{16, 31, 32, 33, 127, 128, 129, 1000} {
		result, err := evolving(t, func(t float64) float64 { return math.Pow(10, 1.6*t) }, true, master.Options{Stop: 10, Step: 10 / n})
		if err != nil || result.Growing == nil || math.Abs(result.Growing.Doubling/0.188-1) > 0.1 {
			t.Errorf("%g steps: %v, %+v", n, err, result.Growing)
		}
	}
}

// Values that overflow make a run unstable.
func TestDiverges(t *testing.T) {
	result, err := evolving(t, func(t float64) float64 { return math.Exp(1000 * t) }, true, master.Options{Stop: 10, Step: 0.01})
	if o := result.Outcome(); err == nil || o.Ended != master.EndedFailed || o.Stability != master.Unstable || !strings.Contains(o.Growth, "a.y1, which feeds b.u1, is infinite") {
		t.Errorf("%v, %+v", err, o)
	}
	// So does what overflows within a subsystem, which then fails; a failure of moderate values does not.
	for size, want := range map[float64]string{1e20: master.Unstable, 1e3: master.NotJudged} {
		a, b := newFake("a", 1, 1), newFake("b", 1, 1)
		a.step = func(at, H float64) (float64, error) {
			if a.y[0] == size {
				return at, errors.New("not finite")
			}
			a.y[0] = size
			return at + H, nil
		}
		result, err := newRun(t, system(t, []master.Subsystem{a, b}, wire("a.y1", "b.u1"), wire("b.y1", "a.u1")), master.Options{Stop: 1, Step: 0.1}).Run(t.Context())
		if o := result.Outcome(); err == nil || o.Stability != want {
			t.Errorf("%g: %v, %+v", size, err, o)
		}
	}
}

// expecting is a hook that expects something.
type expecting struct {
	hook
	e master.Expectations
}

func (e *expecting) Expectations() master.Expectations { return e.e }

// The verdict on a run is how it ended, whether anything grew, and whether it did what was
// expected of it.
func TestOutcome(t *testing.T) {
	fine := func(float64) float64 { return 1 }
	grows := func(t float64) float64 { return math.Pow(10, 160*t) }
	for name, test := range map[string]struct {
		f          func(float64) float64
		e          master.Expectations
		at         error // of a hook
		want       string
		ok, strict bool
	}{
		"well":             {f: fine, want: "complete", ok: true, strict: true},
		"as expected":      {f: fine, e: master.Expectations{Met: 2}, want: "complete, expectations met", ok: true, strict: true},
		"not as expected":  {f: fine, e: master.Expectations{Met: 2, Failed: 1, Undecided: 1}, want: "complete, expectations not met"},
		"too short":        {f: fine, e: master.Expectations{Met: 2, Undecided: 1}, want: "complete, expectations undecided"},
		"growing":          {f: grows, want: "complete, grows", ok: true},
		"growing, no more": {f: grows, e: master.Expectations{Failed: 1}, want: "complete, grows, expectations not met"},
		"by a hook":        {f: fine, at: master.ErrStop, want: "complete", ok: true, strict: true},
		"failed":           {f: fine, at: errors.New("no"), want: "failed"},
		"interrupted":      {f: fine, at: master.ErrInterrupted, want: "interrupted"},
	} {
		h := &expecting{e: test.e}
		h.at = func(r *master.Run) error {
			if r.Time() > 0.05 {
				return test.at
			}
			return nil
		}
		result, _ := evolving(t, test.f, true, master.Options{Stop: 0.1, Step: 0.001, Hooks: []master.Hook{h}})
		o := result.Outcome()
		if o.String() != test.want || o.OK(false) != test.ok || o.OK(true) != test.strict {
			t.Errorf("%s: %q, %v, strictly %v", name, o, o.OK(false), o.OK(true))
		}
	}
	// A regular end that a subsystem has asked for is strictly no success.
	if o := (&master.Result{Status: master.Terminated, Accepted: 1}).Outcome(); o.String() != "terminated" || !o.OK(false) || o.OK(true) {
		t.Errorf("%q", o)
	}
}
