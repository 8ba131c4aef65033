// Package metrics exports the progress of a run: as text for Prometheus and as a variable of
// package expvar.
//
//	m := metrics.New("rig")
//	http.Handle("/metrics", m)
//	expvar.Publish("rig", m)
//	run, err := master.NewRun(sys, alg, master.Options{…, Observe: m.Observe})
//
// It stores the progress that the run reports a few times per second (master.Progress) and takes
// no other time of the run.
package metrics

import (
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/macrostep/macrostep/master"
)

// Metrics holds the last progress of a run. All methods may be called from any goroutine.
type Metrics struct {
	name string
	last atomic.Pointer[master.Progress]
	end  atomic.Pointer[master.Outcome] // nil = running
}

var (
	_ http.Handler = (*Metrics)(nil)
	_ expvar.Var   = (*Metrics)(nil)
)

// New returns metrics for a run. Its name is the label run.
func New(name string) *Metrics { return &Metrics{name: name} }

// Observe stores the progress of the run (master.Options.Observe).
func (m *Metrics) Observe(p master.Progress) { m.last.Store(&p) }

// Finish stores the outcome of the run.
func (m *Metrics) Finish(r master.Result) {
	o := r.Outcome()
	m.end.Store(&o)
}

// String returns the progress as JSON, for expvar; null before the first.
func (m *Metrics) String() string {
	data, err := json.Marshal(m.last.Load())
	if err != nil {
		return "null" // a number is not finite
	}
	return string(data)
}

// ServeHTTP returns the metrics in the text format of Prometheus, version 0.0.4.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = m.write(w) // fails if the client has disconnected
}

func (m *Metrics) write(w io.Writer) error {
	label := `run="` + strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`).Replace(m.name) + `"`
	var b strings.Builder
	metric := func(name, kind, help string, v float64) {
		fmt.Fprintf(&b, "# HELP macrostep_%s %s\n# TYPE macrostep_%s %s\nmacrostep_%s{%s} %s\n",
			name, help, name, kind, name, label, strconv.FormatFloat(v, 'g', -1, 64))
	}
	if p := m.last.Load(); p != nil {
		metric("time_seconds", "gauge", "Simulated time.", p.T)
		metric("stop_time_seconds", "gauge", "Simulated time at which the run ends.", p.Stop)
		metric("steps_total", "counter", "Accepted macro steps.", float64(p.Steps))
		metric("rejected_steps_total", "counter", "Rejected attempts at macro steps.", float64(p.Rejected))
		metric("iterations_total", "counter", "Iterations of correctors.", float64(p.Iterations))
		metric("wall_seconds", "gauge", "Time since the stepping began.", p.Wall.Seconds())
		if t := p.Timing; t != nil {
			metric("overruns_total", "counter", "Steps that missed their deadline.", float64(t.Overruns))
			metric("skipped_slots_total", "counter", "Time slots of macro steps that were skipped.", float64(t.Skipped))
			histogram(&b, "lateness_seconds", "Time from a deadline until the run continued.", label, &t.Lateness)
			histogram(&b, "work_seconds", "Time from there until the next step was done.", label, &t.Work)
		}
	}
	if o := m.end.Load(); o != nil {
		metric, labels := "macrostep_outcome", fmt.Sprintf(`%s,ended=%q,stability=%q,expectations=%q`, label, o.Ended, o.Stability, o.Expectations)
		fmt.Fprintf(&b, "# HELP %s How the run ended: 1, with the verdict in the labels.\n# TYPE %[1]s gauge\n%[1]s{%s} 1\n", metric, labels)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func histogram(b *strings.Builder, name, help, label string, d *master.Distribution) {
	fmt.Fprintf(b, "# HELP macrostep_%s %s\n# TYPE macrostep_%s histogram\n", name, help, name)
	n := 0
	for _, c := range d.Histogram {
		n += c.Count
		fmt.Fprintf(b, "macrostep_%s_bucket{%s,le=\"%s\"} %d\n", name, label, strconv.FormatFloat(c.UpTo, 'g', -1, 64), n)
	}
	fmt.Fprintf(b, "macrostep_%s_bucket{%s,le=\"+Inf\"} %d\nmacrostep_%s_sum{%s} %s\nmacrostep_%s_count{%s} %d\n",
		name, label, n, name, label, strconv.FormatFloat(d.Mean*float64(n), 'g', -1, 64), name, label, n)
}
