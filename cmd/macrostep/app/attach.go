package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/metrics"
	"github.com/macrostep/macrostep/master/results/page"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
)

// attached is the user interface of a run: messages, progress, pages and metrics.
type attached struct {
	p   *program
	r   *runRequest
	ctx context.Context
	con *console

	progress *progress // nil until the first event of progress
	printed  time.Time // when the current activity was last printed

	report, table, trace string   // absolute paths, because an FMU may change the working directory
	seen                 *watcher // nil = there is no page
	live                 *liveRun
	metrics              *metrics.Metrics
	closing              []func() // called at the end
	ended                chan struct{}
}

// attach returns the user interface of a run.
func (p *program) attach(ctx context.Context, r *runRequest, con *console) (*attached, error) {
	a := &attached{p: p, r: r, ctx: ctx, con: con}
	if p.job != nil && r.Isolate == assemble.IsolateNever { // limits also the loading of libraries
		p.job.Limit(supervise.Limits{Call: r.StepTimeout, Memory: r.MemoryLimit})
	}
	if r.Report == "" {
		return a, nil
	}
	for _, file := range []struct {
		to   *string
		path string
	}{{&a.report, r.Report}, {&a.table, r.Output}, {&a.trace, r.Trace}} {
		if file.path == "" {
			continue
		}
		var err error
		if *file.to, err = filepath.Abs(file.path); err != nil {
			return nil, fmt.Errorf("--%s: %w", flagReport, err)
		}
	}
	// It is written after the run, when an error would come late.
	temp, _, err := beside(r.Report, true)
	if err == nil {
		err = temp.Remove()
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagReport, err)
	}
	return a, nil
}

// event prints an event of a run.
func (a *attached) event(e simulate.Event) {
	if e.Kind == simulate.Progress {
		a.con.settle(nil) // the run goes on
	}
	switch {
	case e.Kind == simulate.Message:
		a.con.log(e)
	case e.Kind == simulate.Doing && e.Text == "":
		a.con.clear()
	case e.Kind == simulate.Note: // the user asked for it, so that --quiet does not hide it
		a.con.clear()
		fmt.Fprintln(a.p.stdout, e.Text)
	case a.r.Quiet:
	case e.Kind == simulate.Doing:
		if time.Since(a.printed) > waits(a.con) {
			a.con.status(e.Text)
			a.printed = time.Now()
		}
	case e.Kind == simulate.Progress:
		if a.progress == nil {
			a.progress = newProgress(a.con, e.Progress.Start)
		}
		a.progress.observe(e.Progress)
	}
}

// prepare adds pages and metrics to a run.
func (a *attached) prepare(ctx context.Context, run *simulate.Prepared) (context.Context, error) {
	r, opt, m := a.r, run.Options, run.Manifest
	if r.Report != "" || r.Live != "" {
		a.seen = newWatcher(run.Record, opt.Start)
		a.seen.driven = run.Driven
		a.seen.watch(opt, run.Choice, run.System)
	}
	var err error
	if r.Live != "" || r.Metrics != "" {
		a.metrics = metrics.New(r.System)
		report := opt.Observe
		opt.Observe = func(p master.Progress) {
			a.metrics.Observe(p)
			report(p)
		}
	}
	if r.Live != "" {
		a.live = &liveRun{seen: a.seen, title: titleOf(r.System), manifest: m, start: opt.Start, stop: opt.Stop, paused: r.LivePaused}
		if ctx, err = a.live.follow(ctx, r.Live, a.metrics); err != nil {
			return nil, err
		}
		a.live.graph, a.live.noGraph = picture(r.System, a.p.dialects)
		opt.Admit = a.live.admit
		a.ctx = ctx
		a.con.print("the run can be followed at " + a.live.url)
	}
	if r.Metrics != "" {
		l, err := listenMetrics(r.Metrics)
		if err != nil {
			return nil, err
		}
		a.closing = append(a.closing, serveMetrics(l, a.metrics))
		a.con.print("metrics at " + l.url)
	}
	return ctx, nil
}

// running is called at the start of the stepping, with a function that keeps the results if the process has
// to end at once, and at its end with nil.
func (a *attached) running(abandon func(reason string) string, s *simulate.System) {
	if abandon == nil {
		close(a.ended)
		if a.p.job != nil {
			a.p.job.OnLost(nil)
		}
		return
	}
	a.ended = make(chan struct{})
	ended := a.ended
	stop := context.AfterFunc(a.ctx, func() { printIsolated(a.con, s.System, ended) })
	a.closing = append(a.closing, func() { stop() })
	if a.p.job != nil {
		a.p.job.Limit(supervise.Limits{Call: s.StepTimeout, Memory: s.MemoryLimit})
		a.p.job.OnLost(func() { abandon("the supervisor of the run has ended") })
	}
}

// end writes the page of a run and stops its services.
func (a *attached) end(out *simulate.Outcome) (err error) {
	if a.metrics != nil && out.Begun {
		a.metrics.Finish(out.Result)
	}
	if a.seen != nil && out.Manifest != nil {
		if a.report != "" {
			err = a.p.reportRun(a, out)
		}
		if a.live != nil {
			if !a.live.page.Loaded() && !a.live.unread() && a.ctx.Err() == nil {
				a.con.print(fmt.Sprintf("the run is over; its page waits %.0f s for a reader (Ctrl-C ends it)", page.Unseen.Seconds()))
			}
			err = errors.Join(err, a.live.finish(out.Manifest))
		}
	} else if a.live != nil {
		err = a.live.end(nil)
	}
	for _, stop := range a.closing {
		stop()
	}
	return err
}
