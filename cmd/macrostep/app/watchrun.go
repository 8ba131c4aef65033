package app

import (
	"slices"
	"sync"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

// watcher is a recorder that thins the variables for a page, in little memory. Other goroutines may read
// its curves under its lock.
type watcher struct {
	mu      sync.Mutex
	choice  record.Selection
	driven  []string                      // inputs given from outside
	values  []func(*master.Point) float64 // by curve
	curves  []curve
	left    int // number of variables without a curve
	t       float64
	steps   int
	attempt *stepCurves // nil = attempts are not recorded
	begun   chan struct{}
}

// newWatcher returns a watcher of a run from start in s.
func newWatcher(choice record.Selection, start float64) *watcher {
	if choice.IsNone() { // concerns only the table
		choice = record.Selection{}
	}
	return &watcher{choice: choice, t: start, begun: make(chan struct{})}
}

// Begin chooses the variables: those that --record names, else all outputs, the quantities that the algorithm
// measures, inputs given from outside, and unconnected inputs of components without outputs. Connected
// inputs equal their sources.
func (w *watcher) Begin(sys *master.System, measured []master.Port) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	take := func(name string, p master.Port, byDefault bool, value func(*master.Point) float64) {
		if p.Kind == master.String || !byDefault && w.choice.IsDefault() || !w.choice.IsDefault() && !w.choice.Match(name) {
			return
		}
		if len(w.curves) == pagePlots {
			w.left++
			return
		}
		w.values = append(w.values, value)
		w.curves = append(w.curves, curve{name: name, unit: p.Unit, held: p.Kind != master.Real || p.Discrete})
	}
	for k, p := range measured {
		take(p.Name, p, true, func(q *master.Point) float64 { return q.Measured[k] })
	}
	for i, info := range sys.Infos {
		name := func(p master.Port) string { return info.Name + "." + p.Name }
		discrete := func(ports []master.Port, byDefault bool, values func(*master.Point) []master.Values) {
			var n [master.String + 1]int // ports of each kind so far
			for _, p := range ports {
				at := n[p.Kind]
				n[p.Kind]++
				take(name(p), p, byDefault || slices.Contains(w.driven, name(p)), func(q *master.Point) float64 {
					return numberIn(&values(q)[i], p.Kind, at)
				})
			}
		}
		outputs := len(info.DiscreteOut) > 0
		for k, p := range info.Out {
			if !p.Internal {
				outputs = true
				take(name(p), p, true, func(q *master.Point) float64 { return q.Y[sys.OutAt[i]+k] })
			}
		}
		discrete(info.DiscreteOut, true, func(q *master.Point) []master.Values { return q.DiscreteOut })
		for k, p := range info.In {
			take(name(p), p, !outputs || slices.Contains(w.driven, name(p)), func(q *master.Point) float64 { return q.U[sys.InAt[i]+k] })
		}
		discrete(info.DiscreteIn, !outputs, func(q *master.Point) []master.Values { return q.DiscreteIn })
		discrete(info.Watch, true, func(q *master.Point) []master.Values { return q.Watch })
	}
	for i := range w.curves {
		w.curves[i].thin = results.NewThinner(spansEach(len(w.curves)))
	}
	close(w.begun)
	return nil
}

// Record adds a communication point.
func (w *watcher) Record(p *master.Point) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t, w.steps = p.T, p.Step
	for i, value := range w.values {
		w.curves[i].thin.Add(p.T, value(p))
	}
	return nil
}

// numberIn returns a value of a kind as a number, 0 for a String.
func numberIn(v *master.Values, kind master.Kind, at int) float64 {
	switch kind {
	case master.Real:
		return v.Real[at]
	case master.Integer:
		return float64(v.Integer[at])
	case master.Boolean:
		if v.Boolean[at] {
			return 1
		}
	}
	return 0
}

// RecordAttempt adds an attempt at a macro step.
func (w *watcher) RecordAttempt(t, H float64, trial master.Trial, accepted bool, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempt.RecordAttempt(t, H, trial, accepted, err)
}

// reached returns the time in s and the number of macro steps so far.
func (w *watcher) reached() (t float64, steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.t, w.steps
}

func (w *watcher) names() []string {
	var names []string
	for i := range w.curves {
		names = append(names, w.curves[i].name)
	}
	return names
}

func (w *watcher) Flush() error            { return nil }
func (w *watcher) End(master.Result) error { return nil }

// attemptRecorders passes attempts to several recorders.
type attemptRecorders []master.AttemptRecorder

func (a attemptRecorders) RecordAttempt(t, H float64, trial master.Trial, accepted bool, err error) error {
	for _, r := range a {
		if err := r.RecordAttempt(t, H, trial, accepted, err); err != nil {
			return err
		}
	}
	return nil
}

// watch adds the watcher to a run. Attempts with equal steps of order 0 are not recorded, because the run
// could no longer take many steps at once.
func (w *watcher) watch(opt *master.Options, choice *algorithms.Choice) {
	opt.Recorders = append(slices.Clip(opt.Recorders), w)
	sizer, ok := choice.Algorithm.(master.StepSizer)
	plain := choice.Values["order"] == "0" && choice.Values["scheme"] != "implicit" && (!ok || sizer.StepSizes(opt.Step) == 0)
	if plain && opt.Attempts == nil {
		return
	}
	w.attempt = newStepCurves()
	if opt.Attempts != nil {
		opt.Attempts = attemptRecorders{opt.Attempts, w}
		return
	}
	opt.Attempts = w
}

// parts returns the content of the page of the run.
func (w *watcher) parts(title string, m *record.Manifest) *reportParts {
	return &reportParts{title: title, manifest: m, curves: w.curves, left: w.left, steps: w.attempt}
}
