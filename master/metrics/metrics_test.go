package metrics

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
)

func TestMetrics(t *testing.T) {
	m := New("a \"rig\"\\\n")
	if m.String() != "null" {
		t.Errorf("before the first: %s", m)
	}
	m.Observe(master.Progress{T: 0.5, Stop: 2, Steps: 500, Rejected: 3, Wall: time.Second, Timing: &master.Timing{Overruns: 2,
		Lateness: master.Distribution{Mean: 2e-6, Histogram: []master.Bucket{{UpTo: 1e-6, Count: 3}, {UpTo: 5e-6, Count: 1}}}}})
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	text := w.Body.String()
	const label = `{run="a \"rig\"\\\n"}`
	for _, want := range []string{
		"macrostep_time_seconds" + label + " 0.5\n", "macrostep_steps_total" + label + " 500\n", "# TYPE macrostep_rejected_steps_total counter\n",
		"macrostep_overruns_total" + label + " 2\n", `le="1e-06"} 3` + "\n", `le="5e-06"} 4` + "\n", `le="+Inf"} 4` + "\n",
		"macrostep_lateness_seconds_sum" + label + " 8e-06\n", "macrostep_lateness_seconds_count" + label + " 4\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var back struct{ T float64 }
	if err := json.Unmarshal([]byte(m.String()), &back); err != nil || back.T != 0.5 {
		t.Errorf("%v: %s", err, m)
	}
}

// The outcome is among the metrics once the run has ended, also of one too short to be observed.
func TestOutcome(t *testing.T) {
	m := New("rig")
	m.Finish(master.Result{Status: master.Complete, Accepted: 3, Diverged: true, Reason: "it overflows", Expectations: master.Expectations{Failed: 1}})
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	if want := `macrostep_outcome{run="rig",ended="complete",stability="unstable",expectations="not met"} 1` + "\n"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no %q in\n%s", want, w.Body)
	}
}
