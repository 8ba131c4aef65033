package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/reason"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// judged returns a report on one strategy at 0.01 s, scanned from 0.001 to 0.1 s.
func judged(s Strategy, change func(r *Report)) *Report {
	s.Preset = "explicit"
	r := &Report{Step: 0.01, From: 0.001, To: 0.1, Asked: 0.01, Recommended: -1, Strategies: []Strategy{s}, Present: &forecast.Own{Preset: "explicit"}}
	if change != nil {
		change(r)
	}
	r.Verdict = r.judgePresent()
	return r
}

// known returns a strategy with a radius at 0.01 s that is stable over ranges; the scan is known up to its end.
func known(radius float64, stable ...scan.Range) Strategy {
	return Strategy{Result: scan.Result{Now: radius, Stable: stable, Mode: &scan.Mode{},
		Points: []scan.Radius{{Step: 0.001, Radius: 0.9}, {Step: 0.01, Radius: radius}, {Step: 0.1, Radius: 2}}}}
}

func TestVerdict(t *testing.T) {
	gap := known(0.9, scan.Range{From: 0.001, To: 0.03})
	gap.Gaps = []scan.Gap{{From: 0.031, To: 0.05, Why: "noise [noise]"}}
	seen := known(0.9, scan.Range{From: 0.01, To: 0.01})
	seen.Seen, seen.Mode, seen.Points = &Seen{Now: true}, nil, seen.Points[1:2]
	here := known(0.9, scan.Range{From: 0.005, To: 0.01})
	here.Seen, here.Gaps = &Seen{}, []scan.Gap{{From: 0.002, To: 0.004, Why: "slow [undecided]"}, {From: 0.011, To: 0.09, Why: "slow [undecided]"}}
	there := known(0, scan.Range{From: 0.001, To: 0.005})
	there.Mode, there.Gaps = nil, []scan.Gap{{From: 0.009, To: 0.02, Why: "slow [undecided]"}}
	forecasts := func(off float64) func(r *Report) {
		return func(r *Report) {
			r.Strategies[0].Forecasts = []forecast.Forecast{{Step: 0.01, Error: off, FMUSteps: 200}}
			r.recommend(r.Asked)
		}
	}
	for name, c := range map[string]struct {
		of     Strategy
		change func(r *Report)
		says   string
		margin float64
		keep   bool
	}{
		"margin":        {known(0.9, scan.Range{From: 0.001, To: 0.05}), nil, "stable up to 0.05 s, 5 times the present step", 5, true},
		"exact":         {known(0.9, scan.Range{From: 0.001, To: 0.05}), forecasts(0.001), "stable up to 0.05 s", 5, true},
		"inexact":       {known(0.9, scan.Range{From: 0.001, To: 0.05}), forecasts(0.1), "stable up to 0.05 s", 5, true},
		"close":         {known(0.9, scan.Range{From: 0.001, To: 0.0101}), nil, "stable, but with little margin: up to 0.0101 s, hardly above the present step", 1.01, false},
		"everywhere":    {known(0.9, scan.Range{From: 0.001, To: 0.1}), nil, "stable up to the longest step tried, 0.1 s, 10 times the present one", 10, true},
		"a gap":         {gap, nil, "stable up to at least 0.03 s, 3 times the present step", 3, true},
		"a window":      {known(0.9, scan.Range{From: 0.005, To: 0.05}), nil, "stable from 0.005 s up to 0.05 s, 5 times the present step; below that it is unstable", 5, true},
		"one trial run": {seen, nil, "stable at this step in trial runs; shorter and longer ones are unknown", 1, false},
		"unstable":      {known(2, scan.Range{From: 0.001, To: 0.005}), nil, "unstable: a disturbance doubles every 0.01 s (1 steps); stable only up to 0.005 s", 0, false},
		"two ranges":    {known(2, scan.Range{From: 0.001, To: 0.002}, scan.Range{From: 0.004, To: 0.005}), nil, "; stable only up to 0.002 s and from 0.004 to 0.005 s", 0, false},
		"from here":     {here, nil, "stable from 0.005 s up to this step in trial runs; shorter and longer ones are unknown", 1, false},
		"never stable":  {known(2), nil, "no step tried from 0.001 to 0.1 s is stable", 0, false},
		"by itself":     {known(2), func(r *Report) { r.Whole = &scan.Growth{Rate: 4} }, "the system itself is unstable, whatever the step", 0, false},
		"small motions": {known(2), func(r *Report) { r.Large, r.Unconfirmed, r.Whole = "too large", "too large", &scan.Growth{Rate: 4} }, "while the motion is small", 0, false},
		"unknown here":  {there, nil, "unknown: stable only up to 0.005 s", 0, false},
		"unknown":       {Strategy{Why: "it jumps [nonlinear]"}, nil, "unknown: it jumps", 0, false},
		"uncoupled":     {Strategy{Why: "no component feeds another [uncoupled]"}, nil, "not coupled", 0, false},
	} {
		r := judged(c.of, c.change)
		v := r.Verdict
		if !strings.Contains(v.String(), c.says) || math.Abs(v.Margin-c.margin) > 1e-9 || v.Keep != c.keep {
			t.Errorf("%s: %q, margin %g, keep %t", name, v, v.Margin, v.Keep)
		}
	}
	if v := judged(there, nil).Verdict; !slices.Equal(v.Reasons, []reason.Word{reason.Undecided}) {
		t.Errorf("reasons %v", v.Reasons)
	}
}

// The words of the table agree with the verdict.
func TestReach(t *testing.T) {
	for want, s := range map[string]Strategy{
		"at all steps tried":     known(0.9, scan.Range{From: 0.001, To: 0.1}),
		"from 0.005 s on":        known(0.9, scan.Range{From: 0.005, To: 0.1}),
		"up to 0.05 s":           known(0.9, scan.Range{From: 0.001, To: 0.05}),
		"no, only up to 0.005 s": known(2, scan.Range{From: 0.001, To: 0.005}),
		"no, but up to 0.002 s":  known(2, scan.Range{From: 0.001, To: 0.002}, scan.Range{From: 0.004, To: 0.005}),
	} {
		if got := s.Reach(0.01, judged(s, nil)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An algorithm that chooses its steps has no strategy: the verdict is its own forecast.
func TestVerdictVarying(t *testing.T) {
	own := func(s forecast.Settled, promised *forecast.Forecast) *Verdict {
		return judged(Strategy{}, func(r *Report) { r.Present.Preset, r.Own, r.Promised = "ex-milne", &s, promised }).Verdict
	}
	good := forecast.Settled{Forecast: forecast.Forecast{Step: 0.02, Error: 0.005, FMUSteps: 100}, Short: 0.01, Long: 0.03, Accepted: 9}
	if v := own(good, nil); v.State != Varying || !v.Keep || v.Error == nil || !strings.Contains(v.String(), "steps of 0.01 to 0.03 s are expected") {
		t.Errorf("%+v", v)
	}
	if v := own(good, &forecast.Forecast{Error: 0.005, FMUSteps: 50}); v.Keep {
		t.Errorf("twice the cost: %+v", v)
	}
	if v := own(forecast.Settled{Fails: "the step size fell"}, nil); v.State != Fails || v.Error != nil || v.Keep {
		t.Errorf("%+v", v)
	}
}

// The recommended setting comes first, then one of each algorithm: within the error by cost, then by error.
func TestBest(t *testing.T) {
	with := func(preset string, order int, forecasts ...forecast.Forecast) Strategy {
		s := known(0.9, scan.Range{From: 0.001, To: 0.1})
		s.Preset, s.Order, s.Forecasts = preset, order, forecasts
		return s
	}
	r := &Report{Step: 0.01, From: 0.001, To: 0.1, Asked: 0.01, Recommended: -1, Strategies: []Strategy{
		with("a", 0, forecast.Forecast{Step: 0.01, Error: 0.5, FMUSteps: 1}),
		with("b", 0, forecast.Forecast{Step: 0.01, Error: 0.009, FMUSteps: 30}),
		with("b", 1, forecast.Forecast{Step: 0.005, Error: 0.009, FMUSteps: 20}, forecast.Forecast{Step: 0.01, Error: 0.02, FMUSteps: 10}),
		with("c", 0), with("d", 0, forecast.Forecast{Step: 0.01, Error: 0.001, FMUSteps: 25}),
	}, Varying: []forecast.Varying{{Preset: "v", Settled: []forecast.Settled{{Forecast: forecast.Forecast{Error: 0.002, FMUSteps: 22}}}}}}
	r.recommend(r.Asked)
	var got []string
	for _, a := range r.Best() {
		got = append(got, a.preset())
	}
	if want := []string{"b", "v", "d", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if best := r.Best()[0]; best.Step != 0.005 || best.Strategy.Order != 1 || !r.Recommends(&best) {
		t.Errorf("%+v", best)
	}
}

// Where the uncertainty of the models prevails, a smaller expected error is not worth its cost.
func TestRecommendsCheapOfUncertain(t *testing.T) {
	s := known(0.9, scan.Range{From: 0.001, To: 0.1})
	s.Forecasts = []forecast.Forecast{{Step: 0.001, Error: 0.0003, Doubt: 0.04, FMUSteps: 2000}, {Step: 0.01, Error: 0.006, Doubt: 0.04, FMUSteps: 200},
		{Step: 0.02, Error: 0.02, Doubt: 0.04, FMUSteps: 100}}
	r := &Report{Step: 0.01, From: 0.001, To: 0.1, Recommended: -1, Strategies: []Strategy{s}}
	if r.recommend(0.01); r.StepToTake != 0.01 {
		t.Errorf("%g s: %s", r.StepToTake, r.Why)
	}
	r.Promised, r.Strategies[0].Forecasts[0].Doubt = nil, 0.02 // now it is surer
	if r.recommend(0.01); r.StepToTake != 0.001 {
		t.Errorf("%g s: %s", r.StepToTake, r.Why)
	}
}

// A mode is described by its frequency and how fast it dies out, a connection by the effect of a tenth of its gain.
func TestDescribesModes(t *testing.T) {
	mode := func(radius, frequency float64, connections ...scan.Part) (*Report, *Strategy) {
		s := known(radius)
		s.Mode = &scan.Mode{Frequency: frequency, Connections: connections,
			Outputs: []scan.Part{{Name: "a.b.x", Share: 1}, {Name: "c.y", Share: 0.5}, {Name: "a.b.v", Share: 0.1}}}
		r := judged(s, func(r *Report) { r.Subsystems = []Subsystem{{Name: "a.b"}, {Name: "c"}} })
		return r, &r.Strategies[0]
	}
	decay := math.Exp(-2 * math.Pi * 0.01) // with 1 Hz: damping ratio 1/√2
	for _, c := range []struct {
		radius, frequency float64
		want              string
	}{
		{decay, 1, "1 Hz, damping ratio 0.71, halves every 0.11 s"}, {0.5, 0, "no oscillation, halves every 0.01 s"},
		{2, 50, "alternates from step to step, doubles every 0.01 s"}, {1, 3, "3 Hz, undamped"},
	} {
		r, s := mode(c.radius, c.frequency)
		if got := r.Describe(s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	r, s := mode(0.9, 1, scan.Part{Name: "p", Share: 0.5}, scan.Part{Name: "q", Share: -0.0949}, scan.Part{Name: "r", Share: 1e-3})
	if got := r.Where(s.Mode); got != "a.b (x, v), c (y)" {
		t.Error(got)
	}
	levers, grows := r.Levers(s)
	if grows || len(levers) != 2 || math.Abs(levers[0].Effect+0.527) > 1e-3 || math.Abs(levers[1].Effect-0.1) > 1e-3 {
		t.Errorf("%v, grows %t", levers, grows)
	}
}
