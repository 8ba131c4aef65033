package study

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Executor makes runs.
type Executor interface {
	// Run makes the run of each variant and hands its row to done, one at a time and in any
	// order. It returns when all are done, done returns an error, or ctx is done; the error is
	// nil only if done has taken a row of each variant. It may be called by several goroutines.
	// Each row passes [Plan.CheckRow] before.
	Run(ctx context.Context, variants []Variant, done func(Row) error) error
}

// Local returns an executor that makes runs in this process, as many at a time as there are cores if
// parallel is 0. An FMU that ends the process ends the study.
func Local(m *Model, parallel int) Executor {
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	return &local{m, make(chan struct{}, parallel)}
}

type local struct {
	model *Model
	slots chan struct{}
}

func (l *local) Run(ctx context.Context, variants []Variant, done func(Row) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	var mu sync.Mutex // of done
	for _, v := range variants {
		select {
		case <-ctx.Done():
		case l.slots <- struct{}{}:
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-l.slots }()
			within, end := l.model.plan.limit(ctx, v)
			defer end()
			row, err := l.model.Run(within, v)
			if err != nil && within.Err() != nil {
				row, err = l.model.plan.NoRow(v, TimedOut, err.Error()), nil
			}
			if err == nil {
				err = l.model.plan.CheckRow(v, &row)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil && ctx.Err() == nil {
				err = done(row)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// limit bounds a run by the time limit of the plan.
func (p *Plan) limit(ctx context.Context, v Variant) (context.Context, context.CancelFunc) {
	if p.TimeLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, p.Longest(v), p.OverTime(v))
}

// checkTime is the time for a run and its check, in time limits of a run.
const checkTime = 10

// Longest returns the time limit of a variant; 0 = there is none.
func (p *Plan) Longest(v Variant) time.Duration {
	if v.checks() {
		return checkTime * p.TimeLimit
	}
	return p.TimeLimit
}

// OverTime returns the error of a run that takes longer than the plan allows.
func (p *Plan) OverTime(v Variant) error {
	if v.checks() {
		return fmt.Errorf("the check took longer than %v (%d × time-limit)", p.Longest(v), checkTime)
	}
	return fmt.Errorf("the run took longer than %v (time-limit)", p.TimeLimit)
}
