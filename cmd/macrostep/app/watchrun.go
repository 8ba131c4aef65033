package app

import (
	"slices"
	"sync"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

// watcher keeps what a page shows of a run, in little memory: a recorder that thins. Its
// curves may be looked at from other goroutines under its lock.
type watcher struct {
	mu      sync.Mutex
	choice  record.Selection
	driven  []string // inputs that are given from outside
	columns []watched
	curves  []curve
	left    int // variables that are not among the curves
	t       float64
	steps   int
	attempt *stepCurves // nil = attempts are not looked at
	begun   chan struct{}
}

// watched is where the values of a curve are found in a point.
type watched struct {
	from watchedFrom
	kind master.Kind
	sub  int
	at   int // in U or Y, or among the values of the kind
}

type watchedFrom uint8

const (
	ofU watchedFrom = iota
	ofY
	ofMeasured
	ofDiscreteIn
	ofDiscreteOut
	ofWatch
)

// newWatcher makes a watcher of a run from start on.
func newWatcher(choice record.Selection, start float64) *watcher {
	if choice.IsNone() { // that is about the table
		choice = record.Selection{}
	}
	return &watcher{choice: choice, t: start, begun: make(chan struct{})}
}

// Begin chooses the variables: those that --record names, else all outputs, what the
// algorithm measures, the inputs that are given from outside, and those that nothing is
// connected to of components without outputs. Connected inputs are what their sources are.
func (w *watcher) Begin(sys *master.System, measured []master.Port) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	take := func(name string, p master.Port, c watched, byDefault bool) {
		if p.Kind == master.String || !byDefault && w.choice.IsDefault() || !w.choice.IsDefault() && !w.choice.Match(name) {
			return
		}
		if len(w.curves) == pagePlots {
			w.left++
			return
		}
		c.kind = p.Kind
		w.columns = append(w.columns, c)
		w.curves = append(w.curves, curve{name: name, unit: p.Unit, held: p.Kind != master.Real || p.Discrete})
	}
	for k, p := range measured {
		take(p.Name, p, watched{from: ofMeasured, at: k}, true)
	}
	for i, info := range sys.Infos {
		name := func(p master.Port) string { return info.Name + "." + p.Name }
		discrete := func(ports []master.Port, from watchedFrom, byDefault bool) {
			var n [master.String + 1]int // ports of each kind so far
			for _, p := range ports {
				take(name(p), p, watched{from: from, sub: i, at: n[p.Kind]}, byDefault || slices.Contains(w.driven, name(p)))
				n[p.Kind]++
			}
		}
		outputs := len(info.DiscreteOut) > 0
		for k, p := range info.Out {
			if !p.Internal {
				outputs = true
				take(name(p), p, watched{from: ofY, at: sys.OutAt[i] + k}, true)
			}
		}
		discrete(info.DiscreteOut, ofDiscreteOut, true)
		for k, p := range info.In {
			take(name(p), p, watched{from: ofU, at: sys.InAt[i] + k}, !outputs || slices.Contains(w.driven, name(p)))
		}
		discrete(info.DiscreteIn, ofDiscreteIn, !outputs)
		discrete(info.Watch, ofWatch, true)
	}
	for i := range w.curves {
		w.curves[i].thin = results.NewThinner(spansEach(len(w.curves)))
	}
	close(w.begun)
	return nil
}

// Record takes a communication point.
func (w *watcher) Record(p *master.Point) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t, w.steps = p.T, p.Step
	for i := range w.columns {
		c := &w.columns[i]
		var v float64
		switch c.from {
		case ofU:
			v = p.U[c.at]
		case ofY:
			v = p.Y[c.at]
		case ofMeasured:
			v = p.Measured[c.at]
		case ofDiscreteIn:
			v = c.of(&p.DiscreteIn[c.sub])
		case ofDiscreteOut:
			v = c.of(&p.DiscreteOut[c.sub])
		case ofWatch:
			v = c.of(&p.Watch[c.sub])
		}
		w.curves[i].thin.Add(p.T, v)
	}
	return nil
}

func (c *watched) of(v *master.Values) float64 {
	switch c.kind {
	case master.Real:
		return v.Real[c.at]
	case master.Integer:
		return float64(v.Integer[c.at])
	case master.Boolean:
		if v.Boolean[c.at] {
			return 1
		}
	}
	return 0
}

// RecordAttempt takes an attempt at a macro step.
func (w *watcher) RecordAttempt(t, H float64, trial master.Trial, accepted bool, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempt.RecordAttempt(t, H, trial, accepted, err)
}

// reached tells how far the run is.
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

// attemptRecorders hands attempts to several recorders.
type attemptRecorders []master.AttemptRecorder

func (a attemptRecorders) RecordAttempt(t, H float64, trial master.Trial, accepted bool, err error) error {
	for _, r := range a {
		if err := r.RecordAttempt(t, H, trial, accepted, err); err != nil {
			return err
		}
	}
	return nil
}

// watch makes a watcher part of a run. Attempts are looked at where they may tell more
// than equal steps of order 0 do, of which many are taken at once as long as nobody looks.
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

// parts returns what the page of the run is made of.
func (w *watcher) parts(title string, m *record.Manifest) *reportParts {
	return &reportParts{title: title, manifest: m, curves: w.curves, left: w.left, steps: w.attempt}
}
