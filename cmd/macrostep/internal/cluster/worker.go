package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/macrostep/macrostep/master/study"
)

// Engine makes runs in a process of its own.
type Engine interface {
	// Run makes the run of a variant, and returns within its time limit. The error is a *Death if the
	// process has ended.
	Run(ctx context.Context, v study.Variant) (study.Row, error)
	Close() error
}

// Death is the end of an engine during a run; the next Run starts another.
type Death struct{ Reason string }

func (d *Death) Error() string { return d.Reason }

// Worker has its engines run variants of a study.
type Worker struct {
	Tasks   Tasks
	Engines int // 0 = as many as cores
	// New makes an engine with this number, from 0.
	New func(number int) Engine
	// Kept is the folder with files of runs that the study lacks; "" = they are where they belong.
	Kept string
}

// Run runs variants until the study is over, which is no error, or ctx is done.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	count := w.Engines
	if count <= 0 {
		count = runtime.GOMAXPROCS(0)
	}
	var running sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		running.Go(func() {
			e := w.New(i)
			err := w.work(ctx, i, e)
			if err != nil {
				cancel(err)
			}
			if errors.Is(err, ErrOver) {
				err = nil
			}
			errs[i] = errors.Join(err, e.Close())
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// work has an engine run variants.
func (w *Worker) work(ctx context.Context, number int, e Engine) error {
	var last *Result
	for {
		v, err := w.Tasks.Next(ctx, number, last)
		if err == nil {
			last, err = w.run(ctx, number, e, v)
		}
		if err == nil && ctx.Err() == nil {
			continue
		}
		if errors.Is(err, ErrOver) || errors.Is(context.Cause(ctx), ErrOver) {
			return ErrOver
		}
		w.Tasks.Release(number)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// run makes the run of a variant. It returns nil if nobody needs the result.
func (w *Worker) run(ctx context.Context, number int, e Engine, v study.Variant) (*Result, error) {
	needed, stop := w.hold(ctx, number, v)
	row, err := e.Run(needed, v)
	unneeded := needed.Err() != nil && ctx.Err() == nil
	stop()
	r := &Result{Variant: v, Row: &row}
	var death *Death
	switch {
	case unneeded:
		return nil, nil
	case errors.As(err, &death) && ctx.Err() == nil:
		r.Row, r.Death = nil, death.Reason
		return r, nil
	case err != nil:
		return nil, err
	}
	if w.Kept != "" {
		r.Kept = filesOf(w.Kept, v)
	}
	return r, nil
}

// hold holds a variant until stop is called. The context ends when nobody needs its row any more.
func (w *Worker) hold(ctx context.Context, number int, v study.Variant) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var holding sync.WaitGroup
	holding.Go(func() {
		tick := time.NewTicker(holdEach)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !w.Tasks.Hold(ctx, number, v) {
					cancel()
				}
			}
		}
	})
	return ctx, func() { cancel(); holding.Wait() }
}

// holdEach is the time between two messages that a variant is still being run.
var holdEach = leaseTime / 3

// filesOf lists the files of a run that is kept.
func filesOf(folder string, v study.Variant) (paths []string) {
	for _, name := range study.KeptFiles(v.ID) {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}
