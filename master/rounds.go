package master

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Turn is a part of a macro step: the inputs of some subsystems are coupled to the
// outputs as they are by then, and one subsystem takes its step.
type Turn struct {
	Couple []int
	Step   int // -1 = none
}

// Repeater is an algorithm that may do nothing in a macro step but hold inputs, in an
// order that is always the same. Such steps can be left to the subsystems, many at a time.
type Repeater interface {
	// Turns gives a macro step, nil if there is more to it. It is asked after Init.
	Turns() []Turn
	// Repeated tells, in place of Accept, that some macro steps were taken so, the
	// last of which ended at t; x.W holds L y + b there.
	Repeated(x *Exec, t float64, steps int)
}

// RoundsMaker is a subsystem that can, with the others of its kind that make up the
// whole system, take many macro steps without coming back in between.
type RoundsMaker interface {
	// NewRounds gives ErrCapability if not all of the members can.
	NewRounds(RoundPlan) (Rounds, error)
}

// RoundPlan is a macro step as it is repeated.
type RoundPlan struct {
	Members     []Subsystem // of the system, all of them
	Turns       []RoundTurn
	Start, Step float64 // the communication points are Start + i·Step
	Rows        int     // macro steps of a Run that can be shown; 0 = none
}

// RoundTurn is a Turn with its links.
type RoundTurn struct {
	Reals    []RealCopy
	Discrete []DiscreteCopy // Integers and Booleans
	Step     int
}

// RealCopy takes Real output Out of subsystem From, times Gain plus Offset, to Real
// input In of subsystem To.
type RealCopy struct {
	From, Out, To, In int
	Gain, Offset      float64
}

// DiscreteCopy takes a discrete output to an input; Out and In count those of the kind.
type DiscreteCopy struct {
	From, Out, To, In int
	Kind              Kind
}

// At gives communication point i.
func (p *RoundPlan) At(i int) float64 { return p.Start + float64(float64(i)*p.Step) }

// Rounds takes macro steps of a whole system. Inputs that no turn couples keep what
// was staged.
type Rounds interface {
	// Run takes n macro steps, the first from communication point i, keeps, with rows,
	// what each gave (n is at most RoundPlan.Rows then), and gives how many were done. finite tells whether all coupled outputs of the last of them are
	// numbers: it ends after the first of which not all are. failed is the turn that
	// has ended it in the macro step behind those; -1 = none.
	Run(i, n int, rows bool) (done int, finite bool, failed int)
	// Stop makes the macro step under way the last one of the present Run. Another
	// goroutine calls it.
	Stop()
	// Outcome gives, after a turn has failed in the macro step from t by H, what
	// Subsystem.Step would have given.
	Outcome(ctx context.Context, t, H float64) (reached float64, err error)
	// Show makes outputs, discrete and watched values those after macro step j of the
	// last Run, which had rows; -1: those of now.
	Show(j int)
}

// leaps takes macro steps by the rounds of a system.
type leaps struct {
	turns    []Turn
	rounds   Rounds
	repeater Repeater
	most     int  // macro steps at once
	rows     int  // of which each can be recorded
	size     int  // of the next leap, in macro steps
	staged   bool // the inputs that nothing drives are what the subsystems have
	failed   int  // turn that failed in the macro step under way; -1 = none
}

// A leap should take this long: little beside what a user waits for, much beside a
// crossing.
const (
	leapTime = 2 * time.Millisecond
	stopLeap = 50 * time.Millisecond // it ends with its macro step, so that a user who stops the run does not wait
	longLeap = 1 << 14               // macro steps
	leapRows = 1 << 20               // bytes of a leap's rows
)

// prepareLeaps finds out whether macro steps can be left to the subsystems.
func (r *Run) prepareLeaps() error {
	repeater, ok := r.alg.(Repeater)
	if !ok || r.opt.CallByCall || r.want > 0 || r.opt.Attempts != nil || r.keepers != nil || r.opt.Signals != nil || len(r.x.crew.errs) > 1 || r.x.steering != nil || r.pacer != nil {
		return nil
	}
	for i := range r.sys.Subsystems {
		if r.x.saver[i] != nil || r.x.restarter[i] != nil || r.x.own[i] != r.grid.step {
			return nil
		}
	}
	turns := repeater.Turns()
	if len(turns) == 0 || len(r.sys.Subsystems) == 0 {
		return nil
	}
	maker, ok := As[RoundsMaker](r.sys.Subsystems[0])
	if !ok {
		return nil
	}
	l := &leaps{turns: turns, repeater: repeater, most: longLeap, size: 1, failed: -1}
	plan := RoundPlan{Members: r.sys.Subsystems, Start: r.grid.start, Step: r.grid.step}
	for _, t := range turns {
		turn, ok := r.sys.roundTurn(t)
		if !ok {
			return nil
		}
		plan.Turns = append(plan.Turns, turn)
	}
	if len(r.opt.Recorders) > 0 {
		const word = 8
		l.rows = max(1, min(l.most, leapRows/(word*(1+r.sys.values()))))
		plan.Rows = l.rows
	}
	var err error
	if l.rounds, err = maker.NewRounds(plan); err == nil {
		r.leaps = l
	} else if errors.Is(err, ErrCapability) {
		err = nil
	}
	return err
}

// values is the number of values that the subsystems give at a communication point.
func (s *System) values() int {
	n := 0
	for _, info := range s.Infos {
		n += len(info.Out) + len(info.DiscreteOut) + len(info.Watch)
	}
	return n
}

// roundTurn lists the links of a turn; ok tells that each is a copy.
func (s *System) roundTurn(t Turn) (turn RoundTurn, ok bool) {
	turn.Step = t.Step
	for _, i := range t.Couple {
		for k := s.InAt[i]; k < s.InAt[i+1]; k++ {
			y := s.source[k]
			if y < 0 {
				continue
			}
			from := owner(s.OutAt, y)
			turn.Reals = append(turn.Reals, RealCopy{
				From: from, Out: y - s.OutAt[from], To: i, In: k - s.InAt[i], Gain: s.gain[k], Offset: s.offset[k],
			})
		}
		for _, l := range s.linkAt[i] {
			d := &s.discrete[l]
			if d.table != nil || d.kind == String {
				return turn, false
			}
			turn.Discrete = append(turn.Discrete, DiscreteCopy{From: d.from, Out: d.out, To: i, In: d.in, Kind: d.kind})
		}
	}
	return turn, true
}

// leap takes as many macro steps at once as seem good.
func (r *Run) leap(ctx context.Context) (more bool, err error) {
	l := r.leaps
	n, rows := min(l.size, r.grid.whole-r.onGrid, r.admitted-r.accepted, r.growth.next-r.accepted), false
	if unseen := r.unseen(); unseen > 1 {
		n = min(n, unseen)
	} else {
		n, rows = min(n, l.rows), true
	}
	if r.err != nil || r.phase != running || n < 1 {
		return r.Step(ctx)
	}
	defer r.contain(&err)
	if ctx.Err() != nil {
		return false, r.cancelled(ctx)
	}
	if !l.staged {
		if err := r.stageAll(); err != nil {
			return false, r.fail(err)
		}
		l.staged = true
	}
	r.x.current = outside
	begin := time.Now()
	done, finite, failed := l.rounds.Run(r.onGrid, n, rows)
	l.adapt(time.Since(begin), done)
	for i := range r.x.steps {
		r.x.steps[i] += done
	}
	if err := r.take(done, finite, rows); err != nil {
		return false, err
	}
	if failed >= 0 {
		l.failed, l.staged = failed, false
		return r.Step(ctx)
	}
	return r.goOn()
}

// unseen gives the number of macro steps that no recorder wants to see but for their end.
func (r *Run) unseen() int {
	next := math.Inf(1)
	for _, rec := range r.opt.Recorders {
		s, ok := rec.(Sparse)
		if !ok {
			return 0
		}
		next = min(next, s.Next())
	}
	const before = 1.5 // macro steps: its last point may be one that is not wanted yet
	return int(min(math.Floor((next-r.t)/r.grid.step-before), longLeap))
}

// bound keeps leaps from becoming long, where steps suddenly take longer, until the
// function it gives is called.
func (l *leaps) bound() (end func()) {
	tick, done := time.NewTicker(stopLeap), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-tick.C:
				l.rounds.Stop()
			case <-done:
				return
			}
		}
	})
	return func() {
		tick.Stop()
		close(done)
		wg.Wait()
	}
}

// adapt chooses the size of the next leap.
func (l *leaps) adapt(took time.Duration, done int) {
	switch {
	case took < leapTime/2 && done == l.size:
		l.size = min(2*l.size, l.most)
	case took > leapTime:
		l.size = max(1, l.size/2)
	}
}

// stageAll hands every subsystem its inputs at the present point, for those that
// nothing drives.
func (r *Run) stageAll() error {
	copy(r.x.U, r.x.W)
	for i := range r.sys.Subsystems {
		if err := r.x.Stage(i); err != nil {
			return err
		}
		if err := r.x.StageDiscrete(i, r.t); err != nil {
			return err
		}
	}
	return nil
}

// take accepts the macro steps of a leap.
func (r *Run) take(done int, finite, rows bool) error {
	l := r.leaps
	if done == 0 {
		return nil
	}
	first, steps := done-1, done // the macro step that is looked at, those up to it
	if rows {
		first, steps = 0, 1
	}
	for j := first; j < done; j++ {
		if rows {
			l.rounds.Show(j)
		}
		for i := range r.sys.Subsystems {
			if err := r.x.Read(i); err != nil {
				return r.fail(err)
			}
		}
		reached := r.grid.at(r.onGrid + steps)
		if !finite && j == done-1 {
			if err := r.x.finite(reached); err != nil {
				r.x.revert()
				return r.fail(err)
			}
		}
		r.onGrid, r.t, r.accepted = r.onGrid+steps, reached, r.accepted+steps
		r.count(Trial{}, steps)
		r.x.keep()
		r.growth.see(r.accepted, r.x.Y)
		r.x.CoupleAll(r.t, r.x.W)
		if err := r.record(); err != nil {
			return err
		}
	}
	if rows {
		l.rounds.Show(-1)
	}
	l.repeater.Repeated(r.x, r.t, done)
	return nil
}

// attempt takes one macro step by the algorithm, or what a leap has left of one.
func (r *Run) attempt(ctx context.Context, H float64) (Trial, error) {
	if l := r.leaps; l != nil && l.failed >= 0 {
		failed := l.failed
		l.failed = -1
		return Trial{}, r.finishRound(ctx, failed, H)
	}
	return r.alg.Attempt(ctx, r.x, r.t, H)
}

// finishRound finishes the macro step in which a turn has failed, turn by turn, as
// far as that failure lets it.
func (r *Run) finishRound(ctx context.Context, failed int, H float64) error {
	x, l := r.x, r.leaps
	for _, turn := range l.turns[:failed] {
		if i := turn.Step; i >= 0 {
			x.steps[i]++
			if err := x.Read(i); err != nil {
				return err
			}
		}
	}
	i := l.turns[failed].Step
	x.touch(i)
	x.steps[i]++
	reached, err := l.rounds.Outcome(ctx, r.t, H)
	if err := x.judge(i, r.t, H, reached, err); err != nil {
		return err
	}
	if err := x.Read(i); err != nil {
		return err
	}
	for _, turn := range l.turns[failed+1:] {
		for _, c := range turn.Couple {
			x.Couple(c, r.t+H, x.U)
			if err := x.Stage(c); err != nil {
				return err
			}
			if err := x.StageDiscrete(c, r.t+H); err != nil {
				return err
			}
		}
		if turn.Step >= 0 {
			if err := x.Step(ctx, turn.Step, r.t, H); err != nil {
				return err
			}
		}
	}
	return nil
}
