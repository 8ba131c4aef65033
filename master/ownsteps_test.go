package master_test

import (
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// Subsystems at rest, relays and algebraic ones do not compute at steps of their own.
func TestOwnSteps(t *testing.T) {
	const H = 0.01
	at := func(every float64) func(t float64) float64 { // the start of a step of this length
		return func(t float64) float64 { return every * math.Floor(t/every+1e-9) }
	}
	sine := func(f func(t float64) float64) func(t, u float64) float64 {
		return func(t, _ float64) float64 { return math.Sin(f(t)) }
	}
	smooth := sine(func(t float64) float64 { return t })
	through := func(_, u float64) float64 { return 2 * u }
	for name, test := range map[string]struct {
		a, b func(t, u float64) float64
		want string // the subsystems, with their steps
	}{
		"one":               {sine(at(0.05)), smooth, "a every 0.05 s"},
		"two macro steps":   {sine(at(0.02)), sine(at(0.02)), "a every 0.02 s, b every 0.02 s"},
		"of no macro steps": {sine(at(0.035)), smooth, "a every 0.035 s"},
		"both":              {sine(at(0.1)), sine(at(0.1)), "a every 0.1 s, b every 0.1 s"},
		"neither":           {smooth, smooth, ""},
		"shorter ones":      {sine(at(0.015)), smooth, ""},
		"few of them":       {sine(at(1.5)), smooth, ""},
		"a relay":           {func(t, _ float64) float64 { return math.Mod(math.Floor(t/0.5+1e-9), 2) }, smooth, ""},
		"an algebraic one":  {sine(at(0.05)), through, "a every 0.05 s"},
		"at rest first":     {func(t, _ float64) float64 { return math.Sin(max(t-3, 0)) }, smooth, ""},
		"at rest later":     {func(t, _ float64) float64 { return math.Sin(min(at(0.05)(t), 4)) }, smooth, "a every 0.05 s"},
		"uneven":            {func(t, _ float64) float64 { return math.Floor(2 * t * t) }, smooth, ""},
	} {
		a, b := newFake("a", 1, 1), newFake("b", 1, 1)
		for s, f := range map[*fake]func(t, u float64) float64{a: test.a, b: test.b} {
			s.step = func(t, H float64) (float64, error) { s.y[0] = f(t+H, s.u[0]); return t + H, nil }
		}
		result, err := newRun(t, system(t, []master.Subsystem{a, b}, wire("a.y1", "b.u1"), wire("b.y1", "a.u1")), master.Options{Stop: 10, Step: H}).Run(t.Context())
		var told []string
		for _, w := range result.Warnings {
			name, rest, _ := strings.Cut(w, ": its outputs change only every ")
			every, _, _ := strings.Cut(rest, ":")
			told = append(told, name+" every "+every)
		}
		if got := strings.Join(told, ", "); err != nil || got != test.want {
			t.Errorf("%s: %v, %q, want %q", name, err, got, test.want)
		}
	}
}
