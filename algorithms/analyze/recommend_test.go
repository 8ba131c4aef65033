package analyze

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// An error that may be larger than requested because of its uncertainty is not promised, with the reason.
func TestRecommendsWithoutPromise(t *testing.T) {
	for _, c := range []struct {
		off, doubt float64
		want       string
	}{
		{9e-4, 0.03, "can be promised to have an error of at most 0.01; this one comes nearest: its expected error is only " +
			"an order of magnitude, because the models are off by 0.03"},
		{8e-3, 3e-3, "is uncertain by 0.003"},
		{2e-2, 1e-5, "no strategy has an error of at most 0.01 and a margin"},
	} {
		r := Report{From: 0.1, Recommended: -1, Strategies: []Strategy{{
			Result: scan.Result{Points: []scan.Radius{{Step: 0.1, Radius: 0.9}},
				Stable: []scan.Range{{From: 0.1, To: 10}}},
			Forecasts: []forecast.Forecast{{Step: 1, Error: c.off, Doubt: c.doubt, FMUSteps: 1}},
		}}}
		if r.recommend(0.01); r.Recommended != 0 || !strings.Contains(r.Why, c.want) {
			t.Errorf("off by %g, doubt %g: %d, %s", c.off, c.doubt, r.Recommended, r.Why)
		}
	}
}

// A step of unknown stability is not recommended, although a longer one is known to be stable; nor is a strategy that
// differs in a run.
func TestRecommendsKnown(t *testing.T) {
	r := &Report{Step: 0.01, From: 1e-3, To: 1, Recommended: -1, Strategies: []Strategy{
		{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 0.09, Radius: 0.5}}, Stable: []scan.Range{{From: 0.09, To: 0.09}}}},
		{Preset: "implicit", Result: scan.Result{Points: []scan.Radius{{Step: 0.005, Radius: 0.5},
			{Step: 0.02, Radius: 0.6}}, Stable: []scan.Range{{From: 0.005, To: 0.03}}}},
	}}
	if r.recommend(0.01); r.Recommended != 1 || r.StepToTake != 0.01 {
		t.Errorf("%+v", r)
	}
	r.Strategies[1].Untold, r.Recommended = "a run differs", -1
	if r.recommend(0.01); r.Recommended >= 0 {
		t.Errorf("%+v", r)
	}
}

// A step near an unknown one, or without a margin below the end of a stable range, is not recommended.
func TestCovers(t *testing.T) {
	s := Strategy{Result: scan.Result{Stable: []scan.Range{{From: 1, To: 8}}, Gaps: []scan.Gap{{From: 3, To: 3}}}}
	for h, want := range map[float64]bool{2: true, 3: false, 3.1: false, 3.5: true, 4.5: false} {
		if s.covers(h, 1) != want {
			t.Errorf("covers(%g) is not %t", h, want)
		}
	}
}

// In JSON an unknown radius is null, unknown ranges are left out, and known ones are read back unchanged.
func TestUnknownInJSON(t *testing.T) {
	for _, c := range []struct {
		s          Strategy
		has, hasNo []string
	}{
		{Strategy{Preset: "explicit", Why: "there is no model of a"},
			[]string{`"radius":null`, `"points":[]`, `"unknown":"there is no model of a"`}, []string{`"stable"`}},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1, Radius: 2}}, Now: 2,
			Mode: &scan.Mode{}}}, []string{`},"radius":2,`, `"stable":[]`}, []string{"unknown", `"radius":null`}},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1}},
			Stable: []scan.Range{{From: 1, To: 1}}, Mode: &scan.Mode{}}}, []string{`},"radius":0,`, `"stable":[{`}, []string{"unknown"}},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1, Radius: 2}}},
			Why: "at steps of 3 s: noise"}, []string{`"radius":null`, `"stable":[]`, `"unknown":"at steps of 3 s: noise"`}, nil},
	} {
		text, err := json.Marshal(Report{Strategies: []Strategy{c.s}})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.has {
			if strings.Count(string(text), want) != 1 {
				t.Errorf("%s: not once in %s", want, text)
			}
		}
		_, rest, _ := strings.Cut(string(text), `"strategies"`)
		own, _, _ := strings.Cut(rest, `}]`)
		for _, want := range c.hasNo {
			if strings.Contains(own, want) {
				t.Errorf("%s stands in %s", want, own)
			}
		}
		var back Report
		if err := json.Unmarshal(text, &back); err != nil || back.Strategies[0].Now != c.s.Now ||
			back.Strategies[0].Why != c.s.Why || len(back.Strategies[0].Points) != len(c.s.Points) {
			t.Errorf("%+v, %v", back.Strategies, err)
		}
	}
}
