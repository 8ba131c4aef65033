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
	driven  []string                      // inputs with external signals
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

// Begin chooses the variables: those of the table of results, at most pageWatched.
func (w *watcher) Begin(sys *master.System, measured []master.Port) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	recorded, err := record.Variables(sys, measured, w.choice, w.driven)
	if err != nil {
		return err
	}
	for _, v := range recorded {
		switch {
		case v.Value == nil:
		case len(w.curves) == pageWatched:
			w.left++
		default:
			w.values = append(w.values, v.Value)
			w.curves = append(w.curves, curve{name: v.Name, own: v.Name, unit: v.Unit, held: v.Held, equals: v.Equals})
		}
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

// shown returns the curves on the page of the run while it goes on, in the order of their plots.
func (w *watcher) shown(components []string) []*curve {
	plots, of, _ := plotsOf([]*reportParts{w.parts("", nil)})
	by := map[string]*curve{}
	for _, c := range of {
		by[c.name] = c
	}
	var list []*curve
	for _, g := range byComponent(plots[:min(len(plots), pagePlots)], components) {
		for _, q := range g.Plots {
			list = append(list, by[q.Name])
		}
	}
	return list
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
func (w *watcher) watch(opt *master.Options, choice *algorithms.Choice, sys *master.System) {
	opt.Recorders = append(slices.Clip(opt.Recorders), w)
	plain := choice.Values["order"] == "0" && choice.Values["scheme"] != "implicit" && master.PlanOf(choice.Algorithm, sys, opt.Step).FirstStep == 0
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
