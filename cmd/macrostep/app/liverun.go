package app

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/metrics"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/results/page"
)

const flagLive = "live"

// liveRun is a run with a live page, whose readers can pause, step and stop the run.
type liveRun struct {
	seen     *watcher
	title    string
	manifest *record.Manifest
	start    float64
	stop     float64
	ctx      context.Context // of the command
	cancel   context.CancelCauseFunc
	graph    template.HTML
	noGraph  string

	mu      sync.Mutex
	paused  bool
	steps   int // macro steps allowed while it is paused
	changed chan struct{}
	chunk   int // macro steps that admit allows at a time
	asked   time.Time

	*service
	page    *page.Live
	scraped atomic.Bool // metrics were read
}

// errStoppedHere is the cause of a run that its page has stopped.
var errStoppedHere = fmt.Errorf("stopped on its page: %w", master.ErrInterrupted)

// follow serves the page and the metrics of a run. The context that it returns ends when the page stops the run.
func (l *liveRun) follow(ctx context.Context, address string, m *metrics.Metrics) (context.Context, error) {
	var err error
	if l.service, err = listen(flagLive, address, "/"); err != nil {
		return nil, err
	}
	l.changed, l.chunk, l.asked = make(chan struct{}), 1, time.Now()
	l.page = page.NewLive(l, l.guard)
	mux := http.NewServeMux()
	mux.Handle("/", l.page)
	mux.Handle("/metrics", l.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.scraped.Store(true)
		m.ServeHTTP(w, r)
	})))
	l.serve(mux)
	l.ctx = ctx
	ctx, l.cancel = context.WithCancelCause(ctx)
	return ctx, nil
}

// end sends the page of the whole run to the readers, unless p is nil, and ends the service.
func (l *liveRun) end(p *page.Page) error {
	var err error
	if p != nil {
		err = l.page.End(l.ctx, p)
	}
	l.cancel(nil)
	l.service.stop()
	return err
}

// Limits of the chunks: a pause takes effect within about askAtLeast.
const (
	askAtLeast = 20 * time.Millisecond
	mostAtOnce = 1 << 20
)

// admit returns the number of macro steps that may be taken now (master.Admission).
func (l *liveRun) admit(ctx context.Context) (n int, paused bool, err error) {
	for {
		l.mu.Lock()
		switch {
		case !l.paused:
			// Large chunks keep a run fast, small ones make it pause soon.
			if took := time.Since(l.asked); took < askAtLeast/2 {
				l.chunk = min(2*l.chunk, mostAtOnce)
			} else if took > askAtLeast {
				l.chunk = max(1, l.chunk/2)
			}
			l.asked = time.Now()
			n = l.chunk
			l.mu.Unlock()
			return n, paused, nil
		case l.steps > 0:
			l.steps--
			l.mu.Unlock()
			return 1, true, nil
		}
		paused = true
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 1, true, nil // the run checks the context
		}
	}
}

// Command executes pause, resume, step or stop.
func (l *liveRun) Command(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch name {
	case "pause":
		l.paused = true
	case "resume":
		l.paused, l.steps, l.chunk, l.asked = false, 0, 1, time.Now()
	case "step":
		if l.paused {
			l.steps++
		}
	case "stop":
		l.cancel(errStoppedHere)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next command.
func (l *liveRun) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// State returns the state and progress of the run.
func (l *liveRun) State() page.State {
	t, steps := l.seen.reached()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := page.State{
		State: "running", Text: fmt.Sprintf("t = %s of %s s, %s", number(t), number(l.stop), plural(steps, "macro step")),
		Done: (t - l.start) / (l.stop - l.start),
	}
	if l.paused {
		s.State = "paused"
	}
	return s
}

// Page returns the page of the run so far.
func (l *liveRun) Page(ctx context.Context) (p *page.Page, from, to float64, err error) {
	select {
	case <-l.seen.begun:
	case <-ctx.Done():
		return nil, 0, 0, ctx.Err()
	}
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	parts := l.seen.parts(l.title, nil)
	parts.graph, parts.noGraph, parts.steps, parts.going = l.graph, l.noGraph, nil, true
	p = pageOf(parts, componentsOf(l.manifest))
	p.Facts = []page.Fact{
		{Name: "system", Value: l.manifest.System}, {Name: "algorithm", Value: l.manifest.Algorithm + parameterList(given(l.manifest))},
	}
	return p, l.start, l.seen.t, nil
}

// Follow returns a function that returns the changes since its last call.
func (l *liveRun) Follow() func() ([]page.Update, float64) {
	var known []results.Known
	var followed []*curve // in the order of the plots of the page
	return func() (list []page.Update, to float64) {
		select {
		case <-l.seen.begun:
		default:
			return nil, 0
		}
		l.seen.mu.Lock()
		defer l.seen.mu.Unlock()
		if known == nil {
			followed = l.seen.shown(componentsOf(l.manifest))
			known = make([]results.Known, len(followed))
		}
		for i, c := range followed {
			u := page.Update{Plot: i}
			var any bool
			if u.Keep, u.T, u.V, any = c.thin.News(&known[i], nil, nil); any {
				list = append(list, u)
			}
		}
		return list, l.seen.t
	}
}

// unread reports whether only a program reads the run, which waits for no page.
func (l *liveRun) unread() bool { return l.scraped.Load() && !l.page.Loaded() }

// finish ends the service with the page of the whole run.
func (l *liveRun) finish(m *record.Manifest) error {
	if l.unread() {
		return l.end(nil)
	}
	parts := l.seen.parts(l.title, m)
	parts.graph, parts.noGraph = l.graph, l.noGraph
	p := pageOf(parts, componentsOf(l.manifest))
	p.Facts = append(p.Facts, page.Fact{Name: "live page", Value: "The run is over. Nothing on this page changes any more."})
	return l.end(p)
}
