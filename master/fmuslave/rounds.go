package fmuslave

import (
	"context"
	"errors"
	"fmt"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// rounds takes macro steps of a whole system of FMUs in this process in one crossing.
type rounds struct {
	plan    master.RoundPlan
	members []*Slave
	timed   []*Slave
	batch   *fmi.Rounds
	first   int // communication point at which the last crossing began

	// Of the call that ended the last crossing.
	status fmi.Status
	err    error
	failed *Slave
}

// NewRounds prepares the crossings for a system whose subsystems are all slaves in
// this process.
func (s *Slave) NewRounds(plan master.RoundPlan) (master.Rounds, error) {
	r := &rounds{plan: plan}
	p := fmi.RoundPlan{Start: plan.Start, Step: plan.Step, Rows: plan.Rows}
	for _, m := range plan.Members {
		slave, ok := master.As[*Slave](m)
		if !ok || slave.GroupKey() != (groupKey{}) {
			return nil, fmt.Errorf("%w: not all subsystems are FMUs in this process", master.ErrCapability)
		}
		if err := slave.settle(); err != nil {
			return nil, err
		}
		r.members = append(r.members, slave)
		if slave.clock.runs {
			r.timed = append(r.timed, slave)
		}
		p.Steppers = append(p.Steppers, slave.stepper)
	}
	for _, turn := range plan.Turns {
		t := fmi.Turn{Stepper: turn.Step}
		for _, l := range turn.Reals {
			t.Reals = append(t.Reals, fmi.RealCopy{From: l.From, Out: l.Out, To: l.To, In: l.In, Gain: l.Gain, Offset: l.Offset})
		}
		for _, l := range turn.Discrete {
			c := fmi.IntegerCopy{From: l.From, Out: l.Out, To: l.To, In: l.In}
			if l.Kind == master.Boolean {
				t.Booleans = append(t.Booleans, c)
			} else {
				t.Integers = append(t.Integers, c)
			}
		}
		if turn.Step >= 0 {
			t.Judged = len(r.members[turn.Step].out)
		}
		p.Turns = append(p.Turns, t)
	}
	var err error
	r.batch, err = fmi.NewRounds(p)
	if errors.Is(err, fmi.ErrNoRounds) {
		return nil, fmt.Errorf("%w: %w", master.ErrCapability, err)
	}
	return r, err
}

// Run carries out n rounds from communication point i.
func (r *rounds) Run(i, n int, rows bool) (done int, finite bool, failed int) {
	done, finite, failed, r.status, r.err = r.batch.Run(i, n, rows)
	for _, m := range r.members {
		m.stale = false
	}
	if failed >= 0 {
		r.failed = r.members[r.plan.Turns[failed].Step]
	}
	r.first = i
	if done > 0 && !rows {
		r.checkClocks(i, i+done)
	}
	return done, finite, failed
}

// Stop ends the present Run after the macro step under way.
func (r *rounds) Stop() { r.batch.Stop() }

// Outcome judges the step from t by H whose call has ended the last Run.
func (r *rounds) Outcome(ctx context.Context, t, H float64) (reached float64, err error) {
	return r.failed.after(ctx, t, H, r.status, r.err)
}

// checkClocks compares the times of the FMUs with communication point end, to which
// steps since point begin have led.
func (r *rounds) checkClocks(begin, end int) {
	t := r.plan.At(end - 1)
	for _, m := range r.timed {
		m.checkClock(r.plan.At(begin), t, r.plan.At(end)-t)
	}
}

// Show shows the outputs of round j of the last Run; -1: those of now.
func (r *rounds) Show(j int) {
	r.batch.Show(j)
	if j >= 0 {
		r.checkClocks(r.first+j, r.first+j+1)
	}
}
