package app

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/reason"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// printed returns what is printed for a report with two algorithms, and a verdict.
func printedVerdict(v analyze.Verdict, change func(r *analyze.Report)) string {
	strategy := func(preset string, off float64) analyze.Strategy {
		return analyze.Strategy{Preset: preset, Result: scan.Result{Now: 0.9, Points: []scan.Radius{{Step: 0.01, Radius: 0.9}, {Step: 0.1, Radius: 2}},
			Stable: []scan.Range{{From: 0.01, To: 0.08}},
			Mode:   &scan.Mode{Frequency: 1, Outputs: []scan.Part{{Name: "car.y", Share: 1}}, Connections: []scan.Part{{Name: "car.y -> road.u", Share: 0.2}}}},
			Forecasts: []forecast.Forecast{{Step: 0.01, Error: off, FMUSteps: 200, Of: "car.y"}}}
	}
	r := &analyze.Report{Step: 0.01, From: 0.01, To: 0.1, Asked: 0.01, Recommended: 1, StepToTake: 0.01, Present: &forecast.Own{Preset: "plain"},
		Strategies: []analyze.Strategy{strategy("plain", 0.05), strategy("fine", 0.001)}, Verdict: &v}
	r.Promised = &r.Strategies[1].Forecasts[0]
	if change != nil {
		change(r)
	}
	var out strings.Builder
	(&verdictPrinter{out: &out, r: r, command: "macrostep run a.ssp --set b.c=1"}).print()
	return out.String()
}

// The verdict comes first, then a command that can be pasted, the mode, and the best settings beside the present one.
func TestPrintsVerdict(t *testing.T) {
	text := printedVerdict(analyze.Verdict{State: analyze.Stable, Text: "up to 0.08 s", Error: &forecast.Forecast{Error: 0.05, FMUSteps: 200, Of: "car.y"}}, nil)
	at := 0
	for _, part := range []string{
		"plain, order 0, steps of 0.01 s, from t = 0 s\n", "Stability     Stable up to 0.08 s.\n", "5 % is expected (rms of car.y over 0 s, relative to its standard deviation), above",
		"Better        fine, order 0, steps of 0.01 s: error 0.1 %, the same cost; stable up to 0.08 s.\n",
		"\n              macrostep run a.ssp --set b.c=1 --algorithm fine --param order=0 --step-size 0.01\n",
		"Slowest mode  1 Hz, damping ratio 0.86, halves every 0.066 s; in car (y).\n", "Connections   car.y -> road.u: 10 % more gain, 21 % slower decay\n",
		"\nfine       0      0.01 s  0.1 %  200          up to 0.08 s  <- better\n", "\nplain      0      0.01 s  5 %    200          up to 0.08 s  <- present\n",
	} {
		i := strings.Index(text[at:], part)
		if i < 0 {
			t.Fatalf("%q is missing or out of order:\n%s", part, text)
		}
		at += i
	}
	for _, mark := range []string{"*", "~", "Note", "unknown", "--error:", "nonlinear"} {
		if strings.Contains(text, mark) {
			t.Errorf("%q is explained but does not occur:\n%s", mark, text)
		}
	}
}

// Lines are as wide as the terminal, down to a least width.
func TestWidth(t *testing.T) {
	for columns, want := range map[string]int{"60": 60, "3": leastWidth, "0": math.MaxInt, "": math.MaxInt, "x": math.MaxInt} {
		t.Setenv("COLUMNS", columns)
		if got := (&screen{to: io.Discard}).width(); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, got, want)
		}
	}
	p := &verdictPrinter{width: 60}
	for line := range strings.Lines(p.foldRest(strings.Repeat("a word ", 50), labelWidth)) {
		if len(line) > 61 {
			t.Errorf("%q has %d columns", line, len(line))
		}
	}
}

// Each mark and each reason that occurs is explained in a line, and only those.
func TestExplainsMarks(t *testing.T) {
	unknown := analyze.Verdict{State: analyze.Unknown, Text: "no model", Reasons: []reason.Word{reason.OwnSteps}, NoError: []reason.Word{reason.OwnSteps, reason.NoTime}}
	for name, c := range map[string]struct {
		verdict analyze.Verdict
		change  func(r *analyze.Report)
		lines   []string
	}{
		"reasons": {unknown, func(r *analyze.Report) {
			r.Strategies[0].Points = nil
			r.Subsystems = []analyze.Subsystem{{Name: "motor", Why: "steps [own-steps]"}, {Name: "load"}}
		}, []string{"Stability     Unknown (own-steps).", "Error         Unknown (own-steps, no-time).", "own-steps: motor takes", "no-time: trial runs"}},
		"trial runs": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) { r.Strategies[1].Seen = &analyze.Seen{Least: 1e-3} },
			[]string{"up to 0.08 s*  <- better", "* seen in trial runs of the system itself, which do not show growth below 0.1 % per step"}},
		"rough": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) {
			r.Promised.Doubt = 0.04
			r.Stray = &forecast.Stray{Off: 0.04, Of: "car.y"}
		}, []string{"error ~0.1 %", "Nothing tried is sure to be within 1 %", "~ an order of magnitude: along the motion, car.y is off its model by 4 %"}},
		"rough and large": {analyze.Verdict{State: analyze.Close, Error: &forecast.Forecast{Error: 0.05, Doubt: 0.06}}, nil,
			[]string{"Error         ~5 % is expected", "not sure", "\nplain      0      0.01 s  ~5 %"}},
		"rough and too large": {analyze.Verdict{State: analyze.Close, Error: &forecast.Forecast{Error: 0.05, Doubt: 0.03}}, nil,
			[]string{"Error         ~5 % is expected", "deviation), above the\n"}},
		"nearest": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) { r.Promised.Error = 0.02 },
			[]string{"Nothing tried is sure to be within 1 %; this comes nearest."}},
		"nearest of those known": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) {
			r.Promised.Error, r.Strategies[0].Forecasts[0] = 0.02, forecast.Forecast{Step: 0.01, Error: 0.015, Doubt: 0.02}
		}, []string{"this comes nearest, since its error is\n              known better."}},
		"about as near": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) {
			r.Promised.Doubt, r.Strategies[0].Forecasts[0] = 0.02, forecast.Forecast{Step: 0.01, Error: 0.0005, Doubt: 0.019}
		}, []string{"this comes about as near as any,\n"}},
		"nearer by variable steps": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) {
			r.Promised.Error = 0.03
			r.Varying = []forecast.Varying{{Preset: "v", Settled: []forecast.Settled{{Forecast: forecast.Forecast{Error: 0.02}}}}}
		}, []string{"this comes nearest with steps of"}},
		"safer": {analyze.Verdict{State: analyze.Close}, func(r *analyze.Report) { r.Promised = nil },
			[]string{"Safer         fine, order 0", "its error is unknown", "<- safer"}},
		"keep": {analyze.Verdict{State: analyze.Stable, Keep: true}, nil, []string{"Keep it", "--algorithm plain --param order=0 --step-size 0.005"}},
		"no time": {analyze.Verdict{State: analyze.Stable}, func(r *analyze.Report) {
			r.Promised, r.Recommended, r.Strategies[0].Seen = nil, -1, &analyze.Seen{Missed: 3}
		}, []string{"Trial runs ran out of time", "\n              macrostep analyze a.ssp --set b.c=1 --runs 120\n"}},
		"nothing": {unknown, func(r *analyze.Report) { r.Recommended, r.Why = -1, "all is unknown" }, []string{"Nothing can be recommended: all is unknown."}},
		"uncoupled": {analyze.Verdict{State: analyze.Uncoupled}, func(r *analyze.Report) { r.Tolerance = 1e-4 },
			[]string{"No component feeds another", "--tolerance 1e-05"}},
		"alone": {unknown, func(r *analyze.Report) {
			r.Alone = []scan.Growth{{Component: "car", Rate: 2}, {Component: "road", Rate: 2, ByStep: true}}
		}, []string{"No step changes that", "Take a shorter --step-size."}},
		"growing": {analyze.Verdict{State: analyze.Unstable, Text: "it grows"}, func(r *analyze.Report) { r.Strategies[0].Now = 2 },
			[]string{"Unstable: it grows.", "Growing mode", "car.y -> road.u: 10 % less gain, 1.4 % slower growth"}},
		"variable steps": {analyze.Verdict{State: analyze.Varying, Text: "steps of 1 s"}, func(r *analyze.Report) {
			r.Present.Preset, r.Own = "ex-milne", &forecast.Settled{Forecast: forecast.Forecast{Step: 0.2, Error: 0.02}}
		}, []string{"The algorithm chooses its steps: steps of 1 s.", "variable  <- present"}},
	} {
		text := printedVerdict(c.verdict, c.change)
		for _, line := range c.lines {
			if !strings.Contains(text, line) {
				t.Errorf("%s: %q is missing:\n%s", name, line, text)
			}
		}
		for _, w := range reason.All() {
			explained := strings.Contains(text, "\n"+string(w)+": ")
			if occurs := slices.Contains(slices.Concat(c.verdict.Reasons, c.verdict.NoError), w); explained && !occurs {
				t.Errorf("%s: %s does not occur:\n%s", name, w, text)
			}
		}
	}
}
