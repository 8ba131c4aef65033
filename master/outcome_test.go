package master_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// evolving is a run of one subsystem whose only output is f of the time, with a nominal value.
func evolving(t *testing.T, f func(t float64) float64, nominal float64, o master.Options) (master.Result, error) {
	t.Helper()
	s := newFake("a", 0, 1)
	s.info.Out[0].Nominal = nominal
	s.y[0] = f(o.Start)
	s.step = func(at, H float64) (float64, error) { s.y[0] = f(at + H); return at + H, nil }
	return newRun(t, system(t, []master.Subsystem{s}), o).Run(t.Context())
}

// Values that grow as those of an unstable system are told from those that are only large.
func TestStability(t *testing.T) {
	o := master.Options{Stop: 10, Step: 0.001}
	for name, test := range map[string]struct {
		f       func(t float64) float64
		nominal float64
		want    string
	}{
		"1e16 in ten seconds":           {func(t float64) float64 { return math.Pow(10, 1.6*t) }, 0, master.Unstable},
		"1e16, oscillating":             {func(t float64) float64 { return math.Pow(10, 1.6*t) * math.Cos(31*t) }, 0, master.Unstable},
		"1e16, from a force of 1e6 N":   {func(t float64) float64 { return 1e6 * math.Pow(10, t) }, 0, master.Unstable},
		"from noise":                    {func(t float64) float64 { return 1e-12 * math.Pow(10, 3*max(t-1, 0)) }, 0, master.Unstable},
		"a population of 20, up to 3e7": {func(t float64) float64 { return 20 * math.Pow(1.5e6, t/10) }, 0, master.Stable},
		"a force of 1e6 N, nominal 1":   {func(t float64) float64 { return 1e6 * math.Sin(t) }, 1, master.Stable},
		"an impact of 1e8 N":            {func(t float64) float64 { return map[bool]float64{true: 1e8}[t > 9.9] }, 0, master.Stable},
		"the energy of a power station": {func(t float64) float64 { return 1e12 * t }, 0, master.Stable},
		"a cube of time":                {func(t float64) float64 { return 1e11 * t * t * t }, 0, master.Stable},
		"a clock in ns":                 {func(t float64) float64 { return 1.7e18 + 1e9*t }, 0, master.Stable},
		"decay from 1e16":               {func(t float64) float64 { return 1e16 * math.Exp(-t) }, 0, master.Stable},
	} {
		result, err := evolving(t, test.f, test.nominal, o)
		if got := result.Outcome(); err != nil || got.Stability != test.want || (got.Unstable != "") != (test.want == master.Unstable) || got.Ended != master.EndedComplete {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
		if warned := len(result.Warnings) > 0 && strings.Contains(result.Warnings[0], "a.y1 has grown to"); warned != (test.want == master.Unstable) {
			t.Errorf("%s: %q", name, result.Warnings)
		}
	}
	// What grows steadily is named where subsystems are coupled, and only there.
	for name, test := range map[string]struct {
		f       func(t float64) float64
		growing bool
	}{
		"an oscillation that grows": {func(t float64) float64 { return math.Exp(t/2) * math.Cos(5*t) }, true},
		"1.45 in a quarter":         {func(t float64) float64 { return math.Pow(1.45, t/2.5) }, true},
		"less than that":            {func(t float64) float64 { return math.Pow(1.35, t/2.5) }, false},
		"below a first transient":   {func(t float64) float64 { return 10*math.Exp(-100*t) + math.Pow(1.45, t/2.5) }, false},
		"a square":                  {func(t float64) float64 { return t * t }, false},
		"a ramp":                    {func(t float64) float64 { return t }, false},
		"a step":                    {func(t float64) float64 { return map[bool]float64{true: 1}[t > 5] }, false},
		"an oscillation":            {func(t float64) float64 { return math.Sin(t) }, false},
		"what is unstable anyway":   {func(t float64) float64 { return math.Pow(10, 1.6*t) }, false},
	} {
		for _, coupled := range []bool{true, false} {
			a, b := newFake("a", 0, 1), newFake("b", 1, 1)
			a.step = func(at, H float64) (float64, error) { a.y[0] = test.f(at + H); return at + H, nil }
			a.y[0] = test.f(0)
			var connections []master.Connection
			if coupled {
				connections = []master.Connection{wire("a.y1", "b.u1")}
			}
			result, err := newRun(t, system(t, []master.Subsystem{a, b}, connections...), o).Run(t.Context())
			if grows := result.Growing != nil && result.Growing.Output == "a.y1"; err != nil || grows != (test.growing && coupled) {
				t.Errorf("%s, coupled %t: %v, %q", name, coupled, err, result.Growing)
			}
		}
	}
	// Few steps, and steps of any number, tell it too.
	for _, n := range []float64{1, 3, 4, 31, 32, 33, 70, 1000} {
		o.Step = 10 / n
		result, err := evolving(t, func(t float64) float64 { return math.Pow(10, 1.6*t) }, 0, o)
		if err != nil || result.Unstable == "" {
			t.Errorf("%g steps: %v, %+v", n, err, result.Outcome())
		}
	}
}

// expecting is a hook that expects something.
type expecting struct {
	hook
	e master.Expectations
}

func (e *expecting) Expectations() master.Expectations { return e.e }

// The verdict on a run is how it ended, whether it was stable, and whether it did what was
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
		"well":              {f: fine, want: "complete", ok: true, strict: true},
		"as expected":       {f: fine, e: master.Expectations{Met: 2}, want: "complete, expectations met", ok: true, strict: true},
		"not as expected":   {f: fine, e: master.Expectations{Met: 2, Failed: 1, Undecided: 1}, want: "complete, expectations not met"},
		"too short":         {f: fine, e: master.Expectations{Met: 2, Undecided: 1}, want: "complete, expectations undecided"},
		"unstable":          {f: grows, want: "complete, unstable", ok: true},
		"unstable, no more": {f: grows, e: master.Expectations{Failed: 1}, want: "complete, unstable, expectations not met"},
		"by a hook":         {f: fine, at: master.ErrStop, want: "complete", ok: true, strict: true},
		"failed":            {f: fine, at: errors.New("no"), want: "failed"},
		"interrupted":       {f: fine, at: master.ErrInterrupted, want: "interrupted"},
	} {
		h := &expecting{e: test.e}
		h.at = func(r *master.Run) error {
			if r.Time() > 0.05 {
				return test.at
			}
			return nil
		}
		result, _ := evolving(t, test.f, 0, master.Options{Stop: 0.1, Step: 0.001, Hooks: []master.Hook{h}})
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

// Swings of a coupling in a loop that grow, even if more and more slowly, leave the stability unknown.
func TestSwings(t *testing.T) {
	o := master.Options{Stop: 10, Step: 0.001}
	for name, test := range map[string]struct {
		f        func(t float64) float64
		open     bool // no loop
		swelling bool
	}{
		"slow down":         {f: func(t float64) float64 { return 3 + (0.5+t)*math.Sin(40*t) }, swelling: true},
		"about a ramp":      {f: func(t float64) float64 { return 100*t + (0.5+t)*math.Sin(40*t) }, swelling: true},
		"between samples":   {f: func(t float64) float64 { return (0.5 + t) * math.Sin(2*math.Pi*t/0.128) }, swelling: true},
		"no loop":           {f: func(t float64) float64 { return (0.5 + t) * math.Sin(40*t) }, open: true},
		"hardly":            {f: func(t float64) float64 { return (10 + t) * math.Sin(40*t) }},
		"have grown before": {f: func(t float64) float64 { return min(0.5+t, 3) * math.Sin(40*t) }},
		"die out":           {f: func(t float64) float64 { return math.Exp(-t) * math.Sin(40*t) }},
		"a cube":            {f: func(t float64) float64 { return t * t * t }},
	} {
		a, b := newFake("a", 1, 1), newFake("b", 1, 1)
		a.step = func(at, H float64) (float64, error) { a.y[0] = test.f(at + H); return at + H, nil }
		a.y[0] = test.f(0)
		connections := []master.Connection{wire("a.y1", "b.u1")}
		if !test.open {
			connections = append(connections, wire("b.y1", "a.u1"))
		}
		result, err := newRun(t, system(t, []master.Subsystem{a, b}, connections...), o).Run(t.Context())
		want := "complete"
		if test.swelling {
			want += ", stability unknown"
		}
		if swells := result.Growing != nil && result.Growing.Swings; err != nil || swells != test.swelling || result.Outcome().String() != want {
			t.Errorf("%s: %v, %q, %q", name, err, result.Growing, result.Outcome())
		}
	}
}
