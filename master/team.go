package master

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Team is some subsystems that step over the same time, and whose states are saved and restored together, in
// as few calls as possible. It is used once the subsystems are initialised.
type Team struct {
	x       *Exec
	batches []bound
	parts   [][]int // of each thread: indices of its batches

	step, save, restore *Phase

	pieces int                       // in which each member takes the step
	stage  func(i, j int, t float64) // nil: U and DU are set before the step
	// Of the present step.
	ctx  context.Context
	t, H float64
}

// bound is a batch with what the run exchanges with its members.
type bound struct {
	members []int
	places  []int // of the members in the team
	batch   Batch // nil = not used yet
	offered bool  // it has its inputs for the present step
	begun   bool  // the step has begun in the background
	err     error // of the present step
	failed  int   // place in the team of the member with the error

	in, out  []span   // the parts of U and Y of the members
	slopes   [][]span // and of DU, by order
	states   []State  // of the members
	speaking []int    // members with discrete outputs
	hearing  []int    // members with discrete inputs
	loose    []int    // outputs that feed nothing
	varies   bool     // all can vary their step
	stays    bool     // the state of a member is never restored
}

// span is a part of a vector, from the first entry to below the last.
type span struct{ from, to int }

// NewTeam makes a team of some subsystems. Those of one thread with the same BatchKey are called together, in order.
func (x *Exec) NewTeam(members []int) *Team {
	s := &Team{x: x, pieces: 1}
	type key struct {
		batch  any
		worker int
	}
	at, part := map[key]int{}, map[int]int{}
	var firsts, owners []int // of batches, of parts: a member
	for place, i := range members {
		k := key{nil, x.crew.owner[i]}
		if batcher := x.able[i].batcher; batcher != nil {
			k.batch = batcher.BatchKey()
		}
		b, ok := at[k]
		if !ok || k.batch == nil {
			b = len(s.batches)
			at[k], s.batches, firsts = b, append(s.batches, bound{}), append(firsts, i)
			if p, ok := part[k.worker]; ok {
				s.parts[p] = append(s.parts[p], b)
			} else {
				part[k.worker], s.parts, owners = len(s.parts), append(s.parts, []int{b}), append(owners, i)
			}
		}
		s.batches[b].members = append(s.batches[b].members, i)
		s.batches[b].places = append(s.batches[b].places, place)
	}
	s.step = x.crew.phase(owners, func(p int) error { s.stepPart(s.parts[p]); return nil })
	s.save = x.crew.phase(firsts, func(k int) error { return x.saveBatch(&s.batches[k]) })
	s.restore = x.crew.phase(firsts, func(k int) error { return x.restoreBatch(&s.batches[k]) })
	return s
}

// alone returns the batch of subsystem i alone.
func (x *Exec) alone(i int) *bound {
	if x.solo[i] == nil {
		x.solo[i] = &bound{members: []int{i}, places: []int{0}}
	}
	return x.solo[i]
}

// bind makes the batch before its first use.
func (x *Exec) bind(b *bound) error {
	exchange := make([]Exchange, len(b.members))
	var subs []Subsystem
	*b = bound{members: b.members, places: b.places, failed: b.places[0], varies: true}
	for k, i := range b.members {
		info, e := x.Sys.Infos[i], &exchange[k]
		in, out := span{x.Sys.InAt[i], x.Sys.InAt[i+1]}, span{x.Sys.OutAt[i], x.Sys.OutAt[i+1]}
		e.In, e.Out = x.given[in.from:in.to:in.to], x.Out(i)
		b.in, b.out = extend(b.in, in), extend(b.out, out)
		for m := range x.slopes[i] {
			e.Slopes = append(e.Slopes, x.givenSlopes[m][in.from:in.to:in.to])
			if m == len(b.slopes) {
				b.slopes = append(b.slopes, nil)
			}
			b.slopes[m] = extend(b.slopes[m], in)
		}
		if len(info.DiscreteOut) > 0 {
			b.speaking = append(b.speaking, i)
		}
		if len(info.DiscreteIn) > 0 {
			b.hearing = append(b.hearing, i)
		}
		b.loose = append(b.loose, x.loose[i]...)
		b.varies = b.varies && info.Caps.VariableStep
		b.stays = b.stays || x.saver[i] == nil
		subs = append(subs, x.Sys.Subsystems[i])
	}
	b.states = make([]State, len(b.members))
	first := b.members[0]
	if batcher := x.able[first].batcher; batcher != nil {
		batch, err := batcher.NewBatch(subs, exchange)
		if err == nil {
			b.batch = batch
		}
		return err
	}
	b.batch = &solo{subs[0], &x.able[first], &exchange[0], &x.seconds[first]}
	return nil
}

// extend adds a part of a vector to others, merged with an adjacent one.
func extend(parts []span, p span) []span {
	if n := len(parts); n > 0 && parts[n-1].to == p.from {
		parts[n-1].to = p.to
		return parts
	}
	return append(parts, p)
}

// solo is the batch of a subsystem that has none of its own.
type solo struct {
	Subsystem
	able     *abilities
	exchange *Exchange
	seconds  *float64 // spent in it
}

func (*solo) Begin(_, _ float64) bool { return false }

func (s *solo) Step(ctx context.Context, t, h float64, read bool) (ran int, reached float64, err error) {
	began := time.Now()
	if err := s.able.stage(s.Subsystem, s.exchange); err != nil {
		return 0, t, err
	}
	reached, err = s.Subsystem.Step(ctx, t, h)
	short := arrived(t, h, reached)
	if err == nil {
		err = short
	}
	if read && short == nil && (err == nil || errors.Is(err, ErrTerminated)) && len(s.exchange.Out) > 0 {
		if failed := s.Outputs(s.exchange.Out); failed != nil {
			err = failed
		}
	}
	*s.seconds += time.Since(began).Seconds()
	return 1, reached, err
}

func (s *solo) Save(states []State) (failed int, err error) {
	state, err := s.able.saver.SaveState(states[0])
	if err == nil {
		states[0] = state
	}
	return 0, err
}

func (s *solo) Restore(states []State) (failed int, err error) {
	return 0, s.able.saver.RestoreState(states[0])
}

// InPieces makes each member take its steps in n pieces of equal size. Before each piece, stage puts the
// inputs of member i for piece j, which begins at time t, into U and DU, on the thread of the member.
func (s *Team) InPieces(n int, stage func(i, j int, t float64)) { s.pieces, s.stage = n, stage }

// Step advances all members from t by H with the inputs in U and their derivatives in DU, and reads their outputs.
// The error is that of the first member that fails; members after it may have been stepped. If that is a failed
// step, it is a *StepError.
func (s *Team) Step(ctx context.Context, t, H float64) error {
	s.ctx, s.t, s.H = ctx, t, H
	if len(s.batches) == 1 && s.x.crew.alone() {
		b := &s.batches[0]
		s.stepBatch(b)
		return b.err
	}
	if err := s.step.Run(); err != nil {
		return err
	}
	var first error
	at := math.MaxInt
	for k := range s.batches {
		if b := &s.batches[k]; b.err != nil && b.failed < at {
			first, at = b.err, b.failed
		}
	}
	return first
}

// stepPart steps the batches of one thread one after the other, while others step in the background. After a failure
// it steps only those that may contain an earlier member that fails, so that the error depends neither on threads nor
// on processes, and waits for those in the background.
func (s *Team) stepPart(part []int) {
	var b *bound
	if crew := s.x.crew; !crew.alone() {
		defer func() { // as in Phase.part, for one batch of several
			if v := recover(); v != nil {
				b.err, b.failed = crew.panicked(b.members[0], v), b.places[0]
			}
		}()
	}
	at := math.MaxInt
	for _, k := range part {
		b = &s.batches[k]
		b.err, b.offered, b.begun = nil, false, false
		if s.pieces > 1 || s.stage != nil || b.places[0] > at {
			continue
		}
		if b.err = s.x.offer(b, s.t, s.H); b.err != nil {
			b.failed = b.places[0] - len(s.x.Sys.Subsystems) // before all steps
			at = min(at, b.failed)
			continue
		}
		b.offered, b.begun = true, b.batch.Begin(s.t, s.H)
	}
	for _, background := range []bool{false, true} {
		for _, k := range part {
			b = &s.batches[k]
			if b.err != nil || b.begun != background || !background && b.places[0] > at {
				continue
			}
			if s.stepBatch(b); b.err != nil {
				at = min(at, b.failed)
			}
		}
	}
}

// stepBatch takes the present step with the members of a batch, piece by piece.
func (s *Team) stepBatch(b *bound) {
	if s.pieces == 1 && s.stage == nil {
		b.err = s.x.stepBatch(s.ctx, b, s.t, s.H, true)
		return
	}
	t, h := s.t, s.H
	for j := range s.pieces {
		if s.pieces > 1 {
			if s.ctx.Err() != nil {
				b.err, b.failed = context.Cause(s.ctx), b.places[0]
				return
			}
			h = s.H / float64(s.pieces)
			t = BeginOf(s.t+s.H*float64(j)/float64(s.pieces), h, s.t+s.H)
		}
		if s.stage != nil {
			for _, i := range b.members {
				s.stage(i, j, t)
			}
		}
		if b.err = s.x.stepBatch(s.ctx, b, t, h, j == s.pieces-1); b.err != nil {
			return
		}
	}
}

// BeginOf returns the start of a piece of size h of a macro step that ends at end: t, or slightly less,
// so that rounding carries no piece past the end, which may be the stop time that the FMU was told
// (fmi2 40).
func BeginOf(t, h, end float64) float64 {
	largest := max(math.Abs(t), math.Abs(end))
	for digit := math.Nextafter(largest, math.Inf(1)) - largest; t+h > end; {
		t -= digit
	}
	return t
}

// stepBatch steps a batch from t by h. After an error b.failed is the place of its member.
func (x *Exec) stepBatch(ctx context.Context, b *bound, t, h float64, read bool) error {
	b.failed = b.places[0]
	if !b.offered {
		if err := x.offer(b, t, h); err != nil {
			return err
		}
	}
	b.offered, b.begun = false, false
	x.touch(b.members[0])
	ran, reached, err := b.batch.Step(ctx, t, h, read)
	stepped := ran
	if err == nil && ran < len(b.members) {
		err = fmt.Errorf("%w: it kept the rest of its batch from stepping", ErrDiscard)
	} else if err == nil {
		err = arrived(t, h, reached)
	} else if errors.Is(err, ErrTerminated) && arrived(t, h, reached) == nil {
		stepped = len(b.members)
	}
	for _, i := range b.members[:stepped] {
		x.steps[i]++
	}
	if err != nil {
		k := max(ran-1, 0)
		if err := x.judge(b.members[k], t, h, reached, err); err != nil {
			b.failed = b.places[k]
			return err
		}
	}
	if !read {
		return nil
	}
	x.setAside(b.loose)
	for _, i := range b.speaking {
		if err := x.able[i].discrete.Discrete(&x.discreteOut[i]); err != nil {
			return err
		}
	}
	return nil
}

// offer passes the members of a batch their discrete inputs, and computes the others that they get in a step
// from t by h. It fails if one of them cannot take the step.
func (x *Exec) offer(b *bound, t, h float64) error {
	x.touch(b.members[0])
	if b.batch == nil {
		if err := x.bind(b); err != nil {
			return err
		}
	}
	if x.ending.Load() {
		for _, i := range b.members {
			if x.ended[i] != nil {
				return x.ended[i]
			}
		}
	}
	for _, i := range b.hearing {
		if x.unsent[i] {
			if err := x.sendDiscrete(i); err != nil {
				return err
			}
		}
	}
	if err := x.give(b); err != nil {
		return err
	}
	if !b.varies && h != x.step {
		for _, i := range b.members {
			if err := x.ready(i, t, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge returns the error of a failed step of subsystem i from t by H. If the subsystem ends the simulation
// exactly at t+H, the step is complete.
func (x *Exec) judge(i int, t, H, reached float64, err error) error {
	failed := x.failed(i, t, H, reached, err)
	if errors.Is(err, ErrTerminated) && arrived(t, H, reached) == nil {
		failed.Reached = min(reached, t+H)
		x.ended[i] = failed
		x.ending.Store(true)
		return nil
	}
	return failed
}

func (x *Exec) failed(i int, t, H, reached float64, err error) *StepError {
	info := x.Sys.Infos[i]
	return &StepError{Subsystem: info.Name, Source: info.Source, T: t, H: H, Reached: reached, Err: err}
}

// arrived returns ErrDiscard if a step ended early, because its outputs would be taken for those at t+H.
func arrived(t, H, reached float64) error {
	end := t + H
	if !(end-reached <= gridTolerance*H+4*0x1p-52*math.Abs(end)) {
		return fmt.Errorf("%w: it ended early, at t = %.12g s, without an error", ErrDiscard, reached)
	}
	return nil
}

// terminated returns how the first subsystem has ended the simulation; nil = none has.
func (x *Exec) terminated() *StepError {
	if x.ending.Load() {
		for _, end := range x.ended {
			if end != nil {
				return end
			}
		}
	}
	return nil
}

// Restore restores the states and outputs of all members at the last accepted communication point, from where they
// can be stepped again.
func (s *Team) Restore() error {
	if len(s.batches) == 0 {
		return nil
	}
	return s.restore.Run()
}

func (x *Exec) restoreBatch(b *bound) error {
	x.touch(b.members[0])
	if b.batch == nil {
		if err := x.bind(b); err != nil {
			return err
		}
	}
	if b.stays {
		return x.notListed(b)
	}
	for _, at := range b.out {
		copy(x.Y[at.from:at.to], x.keptY[at.from:at.to])
	}
	for _, i := range b.speaking {
		x.discreteOut[i].set(&x.keptDiscrete[i])
	}
	for k, i := range b.members {
		x.restores[i]++
		x.ended[i] = nil
		b.states[k] = x.states[i]
	}
	failed, err := b.batch.Restore(b.states)
	if err != nil {
		return fmt.Errorf("%s: going back to t = %.12g s: %w", x.Sys.Infos[b.members[failed]], x.point, err)
	}
	return nil
}

// notListed returns the error of an algorithm that restores a batch with a subsystem whose state the run does not save.
func (x *Exec) notListed(b *bound) error {
	for _, i := range b.members {
		if x.saver[i] == nil {
			return fmt.Errorf("%s: %w: the algorithm restores its state without having listed it (Plan.Rollback)",
				x.Sys.Infos[i], ErrCapability)
		}
	}
	return nil
}

func (x *Exec) saveBatch(b *bound) error {
	x.touch(b.members[0])
	if b.batch == nil {
		if err := x.bind(b); err != nil {
			return err
		}
	}
	for k, i := range b.members {
		x.saves[i]++
		b.states[k] = x.states[i]
	}
	failed, err := b.batch.Save(b.states)
	for k, i := range b.members {
		x.states[i] = b.states[k] // also of those before an error, to be freed in the end
	}
	if err != nil {
		return fmt.Errorf("%s: saving the state at t = %.12g s: %w", x.Sys.Infos[b.members[failed]], x.point, err)
	}
	return nil
}
