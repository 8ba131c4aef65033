package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// The report names the modes of unstable strategies, not only that of the recommended one.
func TestPrintsUnstableModes(t *testing.T) {
	mode := func(from string) *scan.Mode {
		return &scan.Mode{Frequency: 1.25, Outputs: []scan.Part{{Name: from, Share: 1}}, Connections: []scan.Part{{Name: from + " -> arm.u1", Share: 0.25}}}
	}
	strategy := func(preset string, radius float64) analyze.Strategy {
		s := analyze.Strategy{Preset: preset, Result: scan.Result{Points: []scan.Radius{{Step: 0.1, Radius: radius}}, Now: radius, Mode: mode(preset + ".y")}}
		if radius <= 1 {
			s.Stable = []scan.Range{{From: 0.1, To: 0.2}}
		}
		return s
	}
	for _, unstable := range []int{0, 1, 3, 5} {
		r := &analyze.Report{Step: 0.1, From: 0.1, To: 0.2, Strategies: []analyze.Strategy{strategy("good", 0.9), strategy("fair", 0.95)}}
		for n := range unstable {
			r.Strategies = append(r.Strategies, strategy(fmt.Sprint("bad", n), 1.5))
		}
		var out strings.Builder
		printAnalysis(&out, r)
		text := out.String()
		for n := range unstable {
			want := fmt.Sprintf("unstable at 0.1 s: bad%d of order 0 grows by 1.5 in each step: 1.25 Hz; mostly in bad%d.y (1)\nconnections by how their gain changes it: bad%d.y -> arm.u1 (+0.25)", n, n, n)
			if strings.Contains(text, want) != (n < shownUnstable) {
				t.Errorf("%d unstable, number %d: %s", unstable, n, text)
			}
		}
		if !strings.Contains(text, "good.y -> arm.u1") || strings.Contains(text, "fair.y") || strings.Contains(text, "and 2 more unstable") != (unstable == 5) {
			t.Errorf("%d unstable: %s", unstable, text)
		}
		r.Whole = &scan.Growth{Rate: 1} // then no connection limits anything
		out.Reset()
		if printAnalysis(&out, r); strings.Contains(out.String(), "unstable at") {
			t.Error(out.String())
		}
	}
}

// The recommended command has the rates of the strategy, with names quoted for the shell.
func TestChosenRates(t *testing.T) {
	got := (&analyze.Strategy{Preset: "explicit", Order: 1, Rates: []string{"motor=10", "my room=1/3"}}).Flags()
	if want := `--algorithm explicit --param order=1 --rate motor=10 --rate "my room=1/3"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
