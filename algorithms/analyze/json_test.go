package analyze

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/scan"
)

// What is unknown is no number in the JSON, and what is known is read back as it was.
func TestUnknownInJSON(t *testing.T) {
	for _, c := range []struct {
		s          Strategy
		has, hasNo []string
	}{
		{Strategy{Preset: "explicit", Why: "there is no model of a"}, []string{`"radius":null`, `"stable":null`, `"points":null`, `"unknown":"there is no model of a"`}, nil},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1, Radius: 2}}, Now: 2, Mode: &scan.Mode{}}}, []string{`},"radius":2}`, `"stable":[]`}, []string{"unknown", `"radius":null`}},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1}}, Stable: []scan.Range{{From: 1, To: 1}}, Mode: &scan.Mode{}}}, []string{`},"radius":0}`, `"stable":[{`}, []string{"unknown"}},
		{Strategy{Preset: "explicit", Result: scan.Result{Points: []scan.Radius{{Step: 1, Radius: 2}}}, Why: "at steps of 3 s: noise"}, []string{`"radius":null`, `"stable":[]`, `"unknown":"at steps of 3 s: noise"`}, nil},
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
		if err := json.Unmarshal(text, &back); err != nil || back.Strategies[0].Now != c.s.Now || back.Strategies[0].Why != c.s.Why || (back.Strategies[0].Points == nil) != (c.s.Points == nil) {
			t.Errorf("%+v, %v", back.Strategies, err)
		}
	}
}
