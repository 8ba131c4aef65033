package simulate

import (
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
)

// The coupling is blamed only if the run is off, and called stable only if it is known not to be.
func TestStability(t *testing.T) {
	grows := &master.Growth{Output: "a.y", Doubling: 1, Factor: 10}
	for name, c := range map[string]struct {
		run, reference *master.Growth
		worst          float64 // < 0 = unknown
		partial        bool
		want, says     string
	}{
		"small error":              {nil, nil, 0.4, false, master.Stable, ""},
		"large error":              {nil, nil, 0.6, false, master.NotJudged, ""},
		"huge error":               {nil, nil, 101, false, master.Unstable, "the coupling is unstable"},
		"unknown":                  {nil, nil, -1, false, master.NotJudged, ""},
		"a part":                   {nil, nil, 0.01, true, master.NotJudged, ""},
		"grows, close":             {grows, nil, 0.4, false, master.Grows, "the coupling is not the cause"},
		"grows, off":               {grows, nil, 0.6, false, master.Unstable, "the coupling is unstable"},
		"both grow, close":         {grows, grows, 0.4, false, master.Grows, "the coupling is not the cause"},
		"both grow, off":           {grows, grows, 1.9, false, master.Grows, "the coupling may add to it"},
		"both grow, much less far": {grows, grows, 2.1, false, master.Unstable, "the coupling is unstable"},
		"grows, unknown":           {grows, nil, -1, false, master.Grows, master.CauseUnknown},
	} {
		result := master.Result{Status: master.Complete, Growing: c.run}
		e := &record.Error{}
		if c.worst >= 0 {
			e.Worst = &c.worst
		}
		o := stability(result.Outcome(), c.run, e, &measure.Bar{Grows: c.reference, Partial: c.partial})
		if o.Stability != c.want || !strings.HasSuffix(o.Growth, c.says) || (o.Growth == "") != (c.says == "") {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
